//! The folder: what a demonstration keeps on disk, and that nothing of it stays behind.
//!
//! ```text
//! <folder>/shard/        the shard's store, epoch and pause file
//! <folder>/cloud.state   the cloud's memory, where there is to be one
//! <folder>/audit.jsonl   every decision
//! ```
//!
//! A folder nobody named is fresh, readable by its owner alone, and removed however this ends.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Tries to find a name nobody has taken.
const TRIES: u32 = 100;

/// A folder, and whether it goes with us.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    fleeting: bool,
}

impl Folder {
    /// The folder somebody named, which stays.
    pub(crate) fn named(path: &Path) -> io::Result<Self> {
        fs::create_dir_all(path)?;
        Ok(Self {
            path: path.to_owned(),
            fleeting: false,
        })
    }

    /// A fresh one in the place for temporary files, which does not stay.
    pub(crate) fn fresh() -> io::Result<Self> {
        let parent = std::env::temp_dir();
        let mut last = None;
        for attempt in 0..TRIES {
            let name = format!("bigfleet-up-{}-{attempt}", std::process::id());
            let path = parent.join(name);
            // Never one that is there already: it may be somebody else's.
            match fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {
                    return Ok(Self {
                        path,
                        fleeting: true,
                    });
                }
                Err(why) if why.kind() == io::ErrorKind::AlreadyExists => last = Some(why),
                Err(why) => {
                    return Err(io::Error::new(
                        why.kind(),
                        format!("{}: {why}", parent.display()),
                    ));
                }
            }
        }
        Err(last.unwrap_or_else(|| io::Error::other("no name is free")))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn shard(&self) -> PathBuf {
        self.path.join("shard")
    }

    pub(crate) fn audit(&self) -> PathBuf {
        self.path.join("audit.jsonl")
    }

    pub(crate) fn cloud(&self) -> PathBuf {
        self.path.join("cloud.state")
    }

    /// Whether what is kept here is meant to be found again.
    pub(crate) fn stays(&self) -> bool {
        !self.fleeting
    }

    /// Goes away if it is fleeting; what is still there of it.
    pub(crate) fn remove(self) -> Option<PathBuf> {
        let path = self.path.clone();
        let fleeting = self.fleeting;
        drop(self);
        (fleeting && path.exists()).then_some(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.fleeting {
            drop(fs::remove_dir_all(&self.path));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fresh_one_is_nobody_elses_and_does_not_stay() {
        let (one, other) = (Folder::fresh().unwrap(), Folder::fresh().unwrap());
        assert_ne!(one.path(), other.path());
        fs::create_dir(one.shard()).unwrap();
        let path = one.path().to_owned();
        assert_eq!(one.remove(), None);
        assert!(!path.exists());
        drop(other);
    }

    #[test]
    fn one_that_was_named_stays() {
        let parent = Folder::fresh().unwrap();
        let named = Folder::named(&parent.path().join("a/b")).unwrap();
        let path = named.path().to_owned();
        assert_eq!(named.remove(), None);
        assert!(path.exists());
    }
}
