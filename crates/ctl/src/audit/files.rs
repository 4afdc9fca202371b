//! The files of an audit log, read in the order they were written, also while they are set aside.
//!
//! ```text
//! look ─▶ open audit.jsonl, .1, .2, …  ─▶ those not open yet are new ─▶ oldest first, each from where it was left
//! ```
//!
//! A file stays open once it was seen, so it is read to its end whatever it is called by then, and its inode is
//! nobody else's. Files are opened newest first: one that moves on meanwhile is met twice, never missed.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Files that are kept open: more than any log has, few enough for a process.
const MOST_OPEN: usize = 64;

/// An audit log with all that was set aside of it, and how far it was read.
#[derive(Debug)]
pub struct AuditFiles {
    path: PathBuf,
    /// Oldest first.
    open: VecDeque<OpenFile>,
}

#[derive(Debug)]
struct OpenFile {
    file: File,
    identity: (u64, u64),
    read_to: u64,
}

impl AuditFiles {
    /// The log at this path; nothing is read yet.
    pub fn of(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            open: VecDeque::new(),
        }
    }

    /// Where the log is written to.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Hands out every whole line that was written since the last call, in order. Half a line at the end of a
    /// file is handed out once it is whole. Stops where `each` does not want to go on.
    pub fn read<E>(
        &mut self,
        mut each: impl FnMut(&str) -> Result<(), E>,
    ) -> io::Result<Result<(), E>> {
        self.open_new_ones()?;
        for open in &mut self.open {
            if let Err(stopped) = open.read(&mut each)? {
                return Ok(Err(stopped));
            }
        }
        self.close_gone_ones();
        Ok(Ok(()))
    }

    fn open_new_ones(&mut self) -> io::Result<()> {
        let mut new: Vec<OpenFile> = Vec::new(); // newest first
        // While files are renamed, one number after the other has no file.
        let mut missing_in_a_row = 0;
        for number in 0.. {
            let found = OpenFile::open(&self.numbered(number))?;
            missing_in_a_row = match found {
                None => missing_in_a_row + 1,
                Some(_) => 0,
            };
            let is_known = |file: &OpenFile| {
                let mut known = self.open.iter().chain(&new);
                known.any(|known| known.identity == file.identity)
            };
            match found {
                Some(file) if !is_known(&file) => new.push(file),
                Some(_) => {}
                None if 1 < missing_in_a_row => break,
                None => {}
            }
        }
        self.open.extend(new.into_iter().rev());
        Ok(())
    }

    /// Lets go of files that were deleted, which have been read, and of the oldest of very many.
    fn close_gone_ones(&mut self) {
        let is_there = |open: &OpenFile| open.file.metadata().is_ok_and(|file| 0 < file.nlink());
        self.open.retain(is_there);
        while MOST_OPEN < self.open.len() {
            self.open.pop_front();
        }
    }

    fn numbered(&self, number: u32) -> PathBuf {
        if number == 0 {
            return self.path.clone();
        }
        let mut name = self.path.as_os_str().to_owned();
        name.push(format!(".{number}"));
        PathBuf::from(name)
    }
}

impl OpenFile {
    fn open(path: &Path) -> io::Result<Option<Self>> {
        let file = match File::open(path) {
            Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let metadata = file.metadata()?;
        Ok(Some(Self {
            file,
            identity: (metadata.dev(), metadata.ino()),
            read_to: 0,
        }))
    }

    fn read<E>(
        &mut self,
        each: &mut impl FnMut(&str) -> Result<(), E>,
    ) -> io::Result<Result<(), E>> {
        let metadata = self.file.metadata()?;
        // Whoever rotates by copying begins the same file anew.
        if metadata.is_file() && metadata.len() < self.read_to {
            self.read_to = 0;
        }
        if metadata.is_file() {
            self.file.seek(SeekFrom::Start(self.read_to))?;
        }
        let mut reader = BufReader::new(&self.file);
        let mut text = Vec::new();
        loop {
            text.clear();
            let read = reader.read_until(b'\n', &mut text)?;
            if !text.ends_with(b"\n") {
                return Ok(Ok(()));
            }
            self.read_to += read as u64;
            if let Err(stopped) = each(&String::from_utf8_lossy(&text)) {
                return Ok(Err(stopped));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let name = format!("bigfleet-audit-files-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            std::fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn log(&self) -> PathBuf {
            self.0.join("audit.jsonl")
        }

        fn write(&self, text: &str) {
            let mut options = File::options();
            let file = options.create(true).append(true).open(self.log());
            io::Write::write_all(&mut file.unwrap(), text.as_bytes()).unwrap();
        }

        fn rename(&self, from: &str, to: &str) {
            let path = |suffix: &str| self.0.join(format!("audit.jsonl{suffix}"));
            std::fs::rename(path(from), path(to)).unwrap();
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            drop(std::fs::remove_dir_all(&self.0));
        }
    }

    fn news(files: &mut AuditFiles) -> String {
        let mut text = String::new();
        let read = files.read(|line| {
            text += line;
            Ok::<(), Infallible>(())
        });
        read.unwrap().unwrap();
        text.replace('\n', " ")
    }

    #[test]
    fn several_rotations_between_two_looks_lose_nothing() {
        let folder = Folder::new("rotations");
        let mut files = AuditFiles::of(&folder.log());
        folder.write("1\n");
        assert_eq!(news(&mut files), "1 ");
        folder.write("2\n");
        folder.rename("", ".1");
        folder.write("3\n");
        folder.rename(".1", ".2");
        folder.rename("", ".1");
        folder.write("4\nhal");
        assert_eq!(news(&mut files), "2 3 4 ");
        folder.write("f\n");
        assert_eq!(news(&mut files), "half ");
        assert_eq!(news(&mut files), "");
    }

    /// In the middle of a rotation one number has no file, and the log itself may have none.
    #[test]
    fn a_look_in_the_middle_of_a_rotation_neither_loses_nor_repeats() {
        let folder = Folder::new("gap");
        let mut files = AuditFiles::of(&folder.log());
        folder.write("1\n");
        folder.rename("", ".2");
        folder.write("2\n");
        assert_eq!(news(&mut files), "1 2 ");
        folder.write("3\n");
        folder.rename("", ".1");
        assert_eq!(news(&mut files), "3 ");
        folder.write("4\n");
        assert_eq!(news(&mut files), "4 ");
        assert_eq!(files.open.len(), 3);
    }

    #[test]
    fn what_was_deleted_is_read_to_its_end_and_closed() {
        let folder = Folder::new("deleted");
        let mut files = AuditFiles::of(&folder.log());
        folder.write("1\n");
        assert_eq!(news(&mut files), "1 ");
        folder.write("2\n");
        std::fs::remove_file(folder.log()).unwrap();
        folder.write("3\n");
        assert_eq!(news(&mut files), "2 3 ");
        assert_eq!(files.open.len(), 1);
    }

    #[test]
    fn a_file_that_was_emptied_is_read_anew() {
        let folder = Folder::new("emptied");
        let mut files = AuditFiles::of(&folder.log());
        folder.write("first\n");
        assert_eq!(news(&mut files), "first ");
        std::fs::write(folder.log(), "2\n").unwrap();
        assert_eq!(news(&mut files), "2 ");
    }
}
