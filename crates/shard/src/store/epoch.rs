//! The epoch file: a number that never goes back, replaced whole or not at all (FE-1, SH-4).

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// What the file holds; `None` if there is none.
pub(super) fn read(path: &Path) -> io::Result<Option<String>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(why) => Err(why),
    }
}

/// Beside it, to the disk, over it, and the directory to the disk: whoever looks sees the old number or
/// the new one.
pub(super) fn write(path: &Path, epoch: u64) -> io::Result<()> {
    let beside = path.with_extension("new");
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&beside)?;
    file.write_all(format!("{epoch}\n").as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&beside, path)?;
    let directory = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}
