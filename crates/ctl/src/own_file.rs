//! Files of this user's: read only if nobody else could have written them.
//!
//! A verb that follows a file acts where the file points. In a folder that others may write to, such as the
//! one for temporary files, a stranger could point it at a shard of their own. So the file that was opened has
//! to belong to this user and be writable by nobody else; a link is not followed.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Larger than anything these files hold.
const MOST_BYTES: u64 = 1 << 20;

/// Why a file is not used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotOurs {
    #[error("it belongs to another user")]
    Owner,
    #[error("others may write to it (its mode is {0:o}); `chmod 600` it")]
    Mode(u32),
    #[error("it is not an ordinary file of a sensible size")]
    Kind,
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// The text of a file; `None` if there is none.
pub(crate) fn read(path: &Path) -> Result<Option<String>, NotOurs> {
    let no_link = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(no_link)
        .open(path);
    let mut file = match opened {
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(None),
        // What a link is refused with; its name differs between systems.
        Err(why) if path.is_symlink() => return Err(why).map_err(|_| NotOurs::Kind),
        opened => opened?,
    };
    check(&file)?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok(Some(text))
}

fn check(file: &File) -> Result<(), NotOurs> {
    // Of what was opened, not of what the path leads to by now.
    let found = file.metadata()?;
    if found.uid() != rustix::process::geteuid().as_raw() {
        return Err(NotOurs::Owner);
    }
    if found.mode() & 0o022 != 0 {
        return Err(NotOurs::Mode(found.mode() & 0o777));
    }
    if !found.is_file() || MOST_BYTES < found.len() {
        return Err(NotOurs::Kind);
    }
    Ok(())
}

/// A file with this text that only this user reads, in place of what was there, in one step.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    use std::io::Write;
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}", std::process::id()));
    let beside = std::path::PathBuf::from(beside);
    drop(std::fs::remove_file(&beside));
    // Fails if somebody put something there meanwhile, even a link.
    let made = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&beside);
    let written = made
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .and_then(|()| std::fs::rename(&beside, path));
    if written.is_err() {
        drop(std::fs::remove_file(&beside));
    }
    written
}
