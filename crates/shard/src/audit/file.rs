//! The file of the audit log: appended to, opened again once its path leads elsewhere, and set aside when it is
//! full.
//!
//! ```text
//! audit.jsonl ── full ──▶ audit.jsonl.1 ──▶ audit.jsonl.2 ──▶ … ──▶ gone
//! ```
//!
//! There are never more than so many files, none of them longer than one may be, so the log is never what fills
//! a disk. Whoever rotates from outside renames the file; the next line goes to a new one.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::store::keep_private;

/// How much of the log is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// A file that would be longer than this is set aside; 0 for never.
    pub max_bytes: u64,
    /// Files that are kept, the one that is written to included.
    pub files: u32,
}

impl Default for Rotation {
    fn default() -> Self {
        Self {
            max_bytes: 256 << 20,
            files: 4,
        }
    }
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)
}

/// A file that is opened again once its path leads elsewhere.
pub(super) struct Reopening {
    pub(super) path: PathBuf,
    file: File,
    /// It ends in the middle of a line.
    pub(super) torn: bool,
    rotation: Rotation,
}

impl Reopening {
    pub(super) fn open(path: &Path, rotation: Rotation) -> io::Result<Self> {
        let file = append(path)?;
        if file.metadata()?.is_file() {
            keep_private(path, 0o600);
        }
        let torn = is_torn(path)?;
        Ok(Self {
            path: path.to_owned(),
            file,
            torn,
            rotation,
        })
    }

    pub(super) fn write(&mut self, text: &str) -> io::Result<()> {
        let held = self.file.metadata()?;
        let there = std::fs::metadata(&self.path);
        let same = there.is_ok_and(|there| (there.dev(), there.ino()) == (held.dev(), held.ino()));
        if !same {
            *self = Self::open(&self.path, self.rotation)?;
        } else if self.is_full(&held, text) {
            self.set_aside()?;
            *self = Self::open(&self.path, self.rotation)?;
        }
        if self.torn {
            self.file.write_all(b"\n")?;
            self.torn = false;
        }
        let written = self.file.write_all(text.as_bytes());
        self.torn = written.is_err();
        written
    }

    /// Whether the text would make the file too long. A pipe has no length.
    fn is_full(&self, held: &std::fs::Metadata, text: &str) -> bool {
        let most = self.rotation.max_bytes;
        let length = held.len();
        held.is_file() && 0 < most && 0 < length && most < length + text.len() as u64
    }

    /// Makes room for a new file: every one that is kept takes the next number, the last is gone.
    fn set_aside(&self) -> io::Result<()> {
        let last = self.rotation.files.saturating_sub(1);
        remove(&self.numbered(last))?;
        for number in (0..last).rev() {
            match std::fs::rename(self.numbered(number), self.numbered(number + 1)) {
                Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(why),
                Err(_) | Ok(()) => {}
            }
        }
        Ok(())
    }

    /// The file with this number; the one that is written to has none.
    fn numbered(&self, number: u32) -> PathBuf {
        if number == 0 {
            return self.path.clone();
        }
        let mut path = self.path.clone().into_os_string();
        path.push(format!(".{number}"));
        path.into()
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(why) if why.kind() != io::ErrorKind::NotFound => Err(why),
        Err(_) | Ok(()) => Ok(()),
    }
}

/// Whether the last byte of a file ends no line. What cannot be read back, as a pipe, is taken for whole.
fn is_torn(path: &Path) -> io::Result<bool> {
    if !std::fs::metadata(path)?.is_file() {
        return Ok(false);
    }
    let mut file = File::open(path)?;
    if file.metadata()?.len() == 0 {
        return Ok(false);
    }
    let mut last = [0];
    file.seek(io::SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = format!("bigfleet-audit-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        drop(std::fs::remove_dir_all(&folder));
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// The files of a folder by name, with what is in them.
    fn files(folder: &Path) -> Vec<(String, String)> {
        let entries = std::fs::read_dir(folder).unwrap();
        let mut files: Vec<(String, String)> = entries
            .map(|entry| entry.unwrap().path())
            .map(|path| {
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                (name, std::fs::read_to_string(&path).unwrap())
            })
            .collect();
        files.sort();
        files
    }

    /// AU-2.
    #[test]
    fn a_full_file_is_set_aside_and_no_more_are_kept_than_so_many() {
        let folder = folder("rotation");
        let rotation = Rotation {
            max_bytes: 10,
            files: 3,
        };
        let mut file = Reopening::open(&folder.join("a"), rotation).unwrap();
        for line in [
            "1234\n",
            "5678\n",
            "2\n",
            "a line that is too long\n",
            "4\n",
        ] {
            file.write(line).unwrap();
        }
        let expected = [
            ("a", "4\n"),
            ("a.1", "a line that is too long\n"),
            ("a.2", "2\n"),
        ];
        let expected = expected.map(|(name, text)| (name.to_owned(), text.to_owned()));
        assert_eq!(files(&folder), expected);
        drop(std::fs::remove_dir_all(&folder));
    }

    #[test]
    fn one_file_is_begun_anew_and_without_a_limit_there_is_one() {
        for (max_bytes, text) in [(5, "b\n"), (0, "aaaa\nb\n")] {
            let folder = folder("one-file");
            let files_kept = if max_bytes == 0 { 4 } else { 1 };
            let rotation = Rotation {
                max_bytes,
                files: files_kept,
            };
            let mut file = Reopening::open(&folder.join("a"), rotation).unwrap();
            file.write("aaaa\n").unwrap();
            file.write("b\n").unwrap();
            assert_eq!(files(&folder), [("a".to_owned(), text.to_owned())]);
            drop(std::fs::remove_dir_all(&folder));
        }
    }
}
