//! The shard's address: what --shard says, else that of a running `bigfleet up`, else the usual port.
//!
//! ```text
//! bigfleet up ── writes ──▶ <runtime dir>/bigfleet-up.addr ── read by ──▶ every verb without --shard
//!                └─ removes it when it ends; one left by a killed process leads to "nothing answers"
//! ```
//!
//! The file is written whole and then moved into place, so nobody reads half an address.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Where a shard on this host listens by default.
pub const USUAL: &str = "127.0.0.1:7780";

const FILE: &str = "bigfleet-up.addr";
/// The file is not read if it is longer: it cannot hold an address then.
const MOST_BYTES: u64 = 300;

/// The runtime directory of this user: `$XDG_RUNTIME_DIR`, or where temporary files go.
pub fn runtime_dir() -> PathBuf {
    let named = std::env::var_os("XDG_RUNTIME_DIR").filter(|dir| !dir.is_empty());
    named.map_or_else(std::env::temp_dir, |dir: OsString| PathBuf::from(dir))
}

/// The address of a running `bigfleet up`, in a file that is removed when this is dropped.
#[derive(Debug)]
pub struct PublishedAddress {
    path: PathBuf,
    text: String,
}

impl PublishedAddress {
    /// Writes the address where the verbs look for it. An older one is replaced, so that the verbs mean
    /// the `bigfleet up` that was started last.
    pub fn publish(shard: SocketAddr) -> io::Result<Self> {
        Self::publish_in(&runtime_dir(), shard)
    }

    fn publish_in(folder: &Path, shard: SocketAddr) -> io::Result<Self> {
        let published = Self {
            path: folder.join(FILE),
            text: shard.to_string(),
        };
        let unfinished = folder.join(format!("{FILE}.{}", std::process::id()));
        drop(fs::remove_file(&unfinished));
        let written = write_new(&unfinished, &published.text);
        let moved = written.and_then(|()| fs::rename(&unfinished, &published.path));
        if moved.is_err() {
            drop(fs::remove_file(&unfinished));
        }
        moved.map(|()| published)
    }
}

/// Fails if the file exists, even as a link: others may write to the folder for temporary files.
fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes()))
}

impl Drop for PublishedAddress {
    fn drop(&mut self) {
        // Only our own: a later `bigfleet up` may have replaced it.
        if fs::read_to_string(&self.path).is_ok_and(|text| text == self.text) {
            drop(fs::remove_file(&self.path));
        }
    }
}

/// The address to call: `said` if given, else that of `bigfleet up`, else the usual port.
pub fn target(said: Option<&str>) -> String {
    target_in(&runtime_dir(), said)
}

fn target_in(folder: &Path, said: Option<&str>) -> String {
    match said {
        Some(said) => said.to_owned(),
        None => found_in(folder).map_or_else(|| USUAL.to_owned(), |found| found.to_string()),
    }
}

/// What `bigfleet up` wrote; anything but an address counts as nothing.
fn found_in(folder: &Path) -> Option<SocketAddr> {
    let path = folder.join(FILE);
    let small = fs::metadata(&path).is_ok_and(|file| file.is_file() && file.len() <= MOST_BYTES);
    if !small {
        return None;
    }
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder =
            std::env::temp_dir().join(format!("bigfleet-ctl-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn what_is_said_goes_before_what_up_left_and_that_before_the_usual_port() {
        let folder = folder("address");
        let shard: SocketAddr = "127.0.0.1:4711".parse().unwrap();
        assert_eq!(target_in(&folder, None), USUAL);
        let published = PublishedAddress::publish_in(&folder, shard).unwrap();
        assert_eq!(target_in(&folder, None), "127.0.0.1:4711");
        assert_eq!(target_in(&folder, Some("shard:1")), "shard:1");
        drop(published);
        assert_eq!(target_in(&folder, None), USUAL);
        assert_eq!(
            fs::read_dir(&folder).unwrap().count(),
            0,
            "nothing is left behind"
        );
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_later_up_keeps_its_address_when_an_earlier_one_ends() {
        let folder = folder("addresses");
        let first = PublishedAddress::publish_in(&folder, "127.0.0.1:1".parse().unwrap()).unwrap();
        let second = PublishedAddress::publish_in(&folder, "127.0.0.1:2".parse().unwrap()).unwrap();
        drop(first);
        assert_eq!(target_in(&folder, None), "127.0.0.1:2");
        drop(second);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_file_that_holds_no_address_is_as_good_as_none() {
        let folder = folder("no-address");
        for text in ["", "not an address", "1.2.3.4", &"9".repeat(1000)] {
            fs::write(folder.join(FILE), text).unwrap();
            assert_eq!(target_in(&folder, None), USUAL, "{text}");
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
