//! Which shard is meant: what was said, else what the config file says, else a running `bigfleet up`, else the
//! usual port.
//!
//! ```text
//! --shard ─▶ --context ─▶ $BIGFLEET_SHARD ─▶ $BIGFLEET_CONTEXT ─▶ current context ─▶ bigfleet up ─▶ 127.0.0.1:7780
//! └────────────── named: somebody said it ─────────────┘          └──── implicit: steering asks first ────┘
//!
//! bigfleet up ── writes ──▶ <runtime dir>/bigfleet-up.addr, removed when it ends
//! ```
//!
//! The file of `bigfleet up` is followed only if this user wrote it, nobody else could have, and the process
//! that wrote it is alive.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use bigfleet_net::TlsFiles;

use crate::config::{self, Config};
use crate::error::CtlError;
use crate::own_file;

/// Where a shard on this host listens by default.
pub const USUAL: &str = "127.0.0.1:7780";

const FILE: &str = "bigfleet-up.addr";

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
            text: format!("{shard} {}\n", std::process::id()),
        };
        own_file::replace(&published.path, &published.text)?;
        Ok(published)
    }
}

impl Drop for PublishedAddress {
    fn drop(&mut self) {
        // Only our own: a later `bigfleet up` may have replaced it.
        if fs::read_to_string(&self.path).is_ok_and(|text| text == self.text) {
            drop(fs::remove_file(&self.path));
        }
    }
}

/// How a shard came to be the one that is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// `--shard`, or `BIGFLEET_SHARD`.
    Said,
    /// `--context`, or `BIGFLEET_CONTEXT`: the context of this name.
    Named(String),
    /// The current context of the config file.
    Current(String),
    /// The address that a running `bigfleet up` published.
    Up,
    /// Nothing said anything: the usual port.
    Usual,
}

impl Origin {
    /// Why this shard, for who did not name one; `None` for who did.
    pub fn implicit(&self) -> Option<String> {
        match self {
            Self::Said | Self::Named(_) => None,
            Self::Current(name) => Some(format!("the current context, {name}")),
            Self::Up => Some("the one `bigfleet up` runs here".to_owned()),
            Self::Usual => Some("the usual address".to_owned()),
        }
    }
}

/// A shard to call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its address, `host:port`.
    pub address: String,
    /// How it came to be this one.
    pub origin: Origin,
    /// The certificates its context names.
    pub tls: Option<TlsFiles>,
    /// What a person should know besides, such as a file that was not followed.
    pub notes: Vec<String>,
}

/// What the command line and the environment say.
#[derive(Clone, Debug, Default)]
pub struct Said {
    /// `--shard`.
    pub shard: Option<String>,
    /// `--context`.
    pub context: Option<String>,
    /// `BIGFLEET_SHARD`.
    pub shard_variable: Option<String>,
    /// `BIGFLEET_CONTEXT`.
    pub context_variable: Option<String>,
    /// The config file.
    pub config: Option<PathBuf>,
    /// Where `bigfleet up` leaves its address.
    pub runtime_dir: PathBuf,
}

impl Said {
    /// These flags, and what the environment says.
    pub fn here(shard: Option<&str>, context: Option<&str>) -> Self {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        Self {
            shard: shard.map(str::to_owned),
            context: context.map(str::to_owned),
            shard_variable: variable("BIGFLEET_SHARD"),
            context_variable: variable("BIGFLEET_CONTEXT"),
            config: config::path(),
            runtime_dir: runtime_dir(),
        }
    }

    /// The shard that is meant.
    pub fn target(&self) -> Result<Target, CtlError> {
        let said = |address: &String| plain(address.clone(), Origin::Said);
        // In the order in which they count; the file is read only if it is needed.
        if let Some(address) = &self.shard {
            return Ok(said(address));
        }
        if let Some(name) = &self.context {
            return self.context(name, Origin::Named(name.clone()));
        }
        if let Some(address) = &self.shard_variable {
            return Ok(said(address));
        }
        if let Some(name) = &self.context_variable {
            return self.context(name, Origin::Named(name.clone()));
        }
        if let Some(name) = self.load()?.current_context {
            return self.context(&name, Origin::Current(name.clone()));
        }
        let (found, notes) = found_in(&self.runtime_dir);
        let target = match found {
            Some(address) => plain(address.to_string(), Origin::Up),
            None => plain(USUAL.to_owned(), Origin::Usual),
        };
        Ok(Target { notes, ..target })
    }

    fn load(&self) -> Result<Config, CtlError> {
        let config = self.config.as_deref().map(Config::load).transpose()?;
        Ok(config.unwrap_or_default())
    }

    fn context(&self, name: &str, origin: Origin) -> Result<Target, CtlError> {
        let config = self.load()?;
        let context = config.context(name)?;
        let tls = context.files()?;
        Ok(Target {
            tls,
            ..plain(context.shard.clone(), origin)
        })
    }
}

fn plain(address: String, origin: Origin) -> Target {
    Target {
        address,
        origin,
        tls: None,
        notes: Vec::new(),
    }
}

/// What a running `bigfleet up` of this user wrote, and what to say about a file that is not followed. What one
/// that was killed has left is as good as nothing.
fn found_in(folder: &Path) -> (Option<SocketAddr>, Vec<String>) {
    let path = folder.join(FILE);
    let text = match own_file::read(&path) {
        Ok(text) => text.unwrap_or_default(),
        Err(why) => {
            let note = format!("{} is not followed: {why}", path.display());
            return (None, vec![note]);
        }
    };
    let mut words = text.split_whitespace();
    let address = words.next().and_then(|word| word.parse().ok());
    let writer = words.next().and_then(|word| word.parse().ok());
    (address.filter(|_| writer.is_some_and(is_alive)), Vec::new())
}

/// Whether a process of this user's has that number. One of somebody else's is not the one that wrote the file.
fn is_alive(process: i32) -> bool {
    let process = (0 < process).then_some(process);
    let process = process.and_then(rustix::process::Pid::from_raw);
    process.is_some_and(|process| rustix::process::test_kill_process(process).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Context;
    use std::os::unix::fs::PermissionsExt;

    struct Home(PathBuf);

    impl Home {
        fn new(name: &str) -> Self {
            let folder = format!("bigfleet-ctl-{name}-{}", std::process::id());
            let folder = std::env::temp_dir().join(folder);
            drop(fs::remove_dir_all(&folder));
            fs::create_dir_all(&folder).unwrap();
            Self(folder)
        }

        fn said(&self) -> Said {
            Said {
                config: Some(self.0.join("config.yaml")),
                runtime_dir: self.0.clone(),
                ..Said::default()
            }
        }

        fn publish(&self, addr: &str) -> PublishedAddress {
            PublishedAddress::publish_in(&self.0, addr.parse().unwrap()).unwrap()
        }

        #[track_caller]
        fn is(&self, said: &Said, address: &str, origin: Origin) {
            let target = said.target().unwrap();
            assert_eq!((target.address.as_str(), target.origin), (address, origin));
        }
    }

    impl Drop for Home {
        fn drop(&mut self) {
            drop(fs::remove_dir_all(&self.0));
        }
    }

    #[test]
    fn who_says_more_exactly_goes_first() {
        let home = Home::new("order");
        let mut said = home.said();
        home.is(&said, USUAL, Origin::Usual);
        let published = home.publish("127.0.0.1:4711");
        home.is(&said, "127.0.0.1:4711", Origin::Up);
        let mut config = Config::default();
        for name in ["prod", "dev"] {
            config.set(Context {
                name: name.to_owned(),
                shard: format!("{name}:1"),
                ..Context::default()
            });
        }
        config.current_context = Some("prod".to_owned());
        config.save(&home.0.join("config.yaml")).unwrap();
        home.is(&said, "prod:1", Origin::Current("prod".to_owned()));
        said.context_variable = Some("dev".to_owned());
        home.is(&said, "dev:1", Origin::Named("dev".to_owned()));
        said.shard_variable = Some("variable:1".to_owned());
        home.is(&said, "variable:1", Origin::Said);
        said.context = Some("prod".to_owned());
        home.is(&said, "prod:1", Origin::Named("prod".to_owned()));
        said.shard = Some("shard:1".to_owned());
        home.is(&said, "shard:1", Origin::Said);
        said.shard = None;
        said.context = Some("nowhere".to_owned());
        assert!(said.target().is_err());
        drop(published);
        assert!(!home.0.join(FILE).exists(), "nothing is left behind");
    }

    #[test]
    fn a_later_up_keeps_its_address_when_an_earlier_one_ends() {
        let home = Home::new("addresses");
        let first = home.publish("127.0.0.1:1");
        let second = home.publish("127.0.0.1:2");
        drop(first);
        home.is(&home.said(), "127.0.0.1:2", Origin::Up);
        drop(second);
    }

    #[test]
    fn a_file_that_could_be_somebody_elses_or_whose_process_is_gone_is_not_followed() {
        let home = Home::new("no-address");
        let path = home.0.join(FILE);
        let own = std::process::id();
        for text in [
            String::new(),
            "not an address".to_owned(),
            "127.0.0.1:1".to_owned(),
            "127.0.0.1:1 0".to_owned(),
            "127.0.0.1:1 -1".to_owned(),
            format!("127.0.0.1:1 {}", i32::MAX),
            format!("1.2.3.4 {own}"),
            "9".repeat(2 << 20),
        ] {
            fs::write(&path, &text).unwrap();
            let said: String = text.chars().take(20).collect();
            assert_eq!(home.said().target().unwrap().address, USUAL, "{said}");
        }
        fs::write(&path, format!("127.0.0.1:1 {own}")).unwrap();
        home.is(&home.said(), "127.0.0.1:1", Origin::Up);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o622)).unwrap();
        let target = home.said().target().unwrap();
        assert_eq!(target.origin, Origin::Usual);
        assert!(target.notes[0].contains("others may write"), "{target:?}");
        let elsewhere = home.0.join("elsewhere");
        fs::write(&elsewhere, format!("127.0.0.1:1 {own}")).unwrap();
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
        home.is(&home.said(), USUAL, Origin::Usual);
    }
}
