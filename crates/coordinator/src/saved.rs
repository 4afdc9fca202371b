//! Saved: a snapshot as it leaves a coordinator, in frames, and the archive a caller makes of them.
//!
//! ```text
//! frames ─▶ .bigfleet-snapshot-<process> beside the target ─▶ on disk ─▶ read again, whole ─▶ renamed
//! ```
//!
//! A target that exists is replaced by a backup that reads, or stays.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use bigfleet_wire::v1alpha1::{SnapshotSaveChunk, snapshot_save_chunk::Payload};

use crate::archive::{Archive, ArchiveRefused, META, STATE, meta_of};
use crate::tar;

/// Bytes of one frame.
const FRAME: usize = 1 << 20;

/// One frame that says what follows, and the bytes in pieces.
pub(crate) fn frames(index: u64, term: u64, data: &[u8]) -> Vec<SnapshotSaveChunk> {
    let meta = Payload::MetaJson(meta_of(index, term, data));
    let pieces = data
        .chunks(FRAME)
        .map(|piece| Payload::Data(piece.to_vec()));
    let payloads = std::iter::once(meta).chain(pieces);
    payloads
        .map(|payload| SnapshotSaveChunk {
            payload: Some(payload),
        })
        .collect()
}

/// An archive that is being written.
#[derive(Debug)]
pub struct ArchiveWriter {
    file: File,
    spool: PathBuf,
    target: PathBuf,
    /// Where the header of the tables is, which says how long they are.
    header_at: u64,
    size: u64,
}

impl ArchiveWriter {
    /// Begins one for this target, with what is said of the tables.
    pub fn begin(target: &Path, meta: &[u8]) -> Result<Self, ArchiveRefused> {
        let folder = target.parent().filter(|it| !it.as_os_str().is_empty());
        let name = format!(".bigfleet-snapshot-{}", std::process::id());
        let spool = folder.unwrap_or(Path::new(".")).join(name);
        let opened = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&spool);
        let file = opened.map_err(failed(&spool))?;
        let mut writer = Self {
            file,
            spool,
            target: target.to_owned(),
            header_at: 0,
            size: 0,
        };
        let size = meta.len() as u64;
        writer.put(&tar::header(META, size))?;
        writer.put(meta)?;
        writer.put(&tar::padding(size))?;
        let at = writer.file.stream_position();
        writer.header_at = at.map_err(failed(&writer.spool))?;
        writer.put(&tar::header(STATE, 0))?;
        Ok(writer)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), ArchiveRefused> {
        self.file.write_all(bytes).map_err(failed(&self.spool))
    }

    /// The next piece of the tables.
    pub fn data(&mut self, piece: &[u8]) -> Result<(), ArchiveRefused> {
        self.size += piece.len() as u64;
        self.put(piece)
    }

    /// Ends it, reads it as a restore would, and only then puts it in place.
    pub fn finish(mut self) -> Result<Archive, ArchiveRefused> {
        let size = self.size;
        self.put(&tar::padding(size))?;
        self.put(&tar::END)?;
        let mut patched = || -> io::Result<()> {
            self.file.seek(SeekFrom::Start(self.header_at))?;
            self.file.write_all(&tar::header(STATE, size))?;
            self.file.sync_all()
        };
        patched().map_err(failed(&self.spool))?;
        let archive = Archive::open(&self.spool)?;
        let renamed = std::fs::rename(&self.spool, &self.target);
        renamed.map_err(failed(&self.target))?;
        Ok(archive)
    }
}

impl Drop for ArchiveWriter {
    fn drop(&mut self) {
        // After a rename there is none of that name.
        drop(std::fs::remove_file(&self.spool));
    }
}

fn failed(path: &Path) -> impl Fn(io::Error) -> ArchiveRefused {
    move |source| ArchiveRefused::Io {
        path: path.to_owned(),
        source,
    }
}
