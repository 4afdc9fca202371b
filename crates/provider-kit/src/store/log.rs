//! The log: changes appended, checked on the way back, rewritten as a snapshot now and then.
//!
//! ```text
//! header: magic │ incarnation │ crc        frame: length │ crc of it │ crc of payload │ payload
//! ```
//!
//! One batch is one frame, written and synced before the next begins. So only the last frame can be
//! torn by a crash, and it was never acknowledged: it is cut off. A frame that is complete and wrong
//! was acknowledged once: the file is refused, naming it. A snapshot is written beside the file and
//! renamed over it, so there is always one whole state.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::{Store, StoreRefused, import, new_incarnation, record};
use crate::machine::Offer;
use crate::tables::{Change, Tables};

const MAGIC: &[u8; 8] = b"bfkitv01";
const HEADER: u64 = 20;
const FRAME_HEAD: u64 = 12;
const SECTOR: usize = 512;
/// A log is rewritten when it has grown by this much and by four times its last snapshot.
const COMPACT_AFTER: u64 = 64 << 20;
/// Changes per frame of a snapshot.
const SNAPSHOT_BATCH: usize = 1024;
/// Different offers remembered while loading.
const MOST_OFFERS: usize = 64;
/// How long to wait for a killed predecessor to let go of the file.
const LOCK_TRIES: u32 = 60;
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// The log on disk.
#[derive(Debug)]
pub(crate) struct LogStore {
    path: PathBuf,
    file: File,
    /// Everything up to here is whole and synced.
    good: u64,
    /// The size of the last snapshot.
    base: u64,
    /// A failed write that could not be taken back; nothing more may be appended behind it.
    poisoned: bool,
    compact_after: u64,
    _lock: File,
}

impl LogStore {
    /// Opens a state file, or makes one, and loads what it holds.
    pub(crate) fn open(path: &Path) -> Result<(Self, Tables), StoreRefused> {
        let failed = |action| {
            move |source| StoreRefused::Io {
                path: path.into(),
                action,
                source,
            }
        };
        if let Some(parent) = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
        {
            let mut made = fs::DirBuilder::new();
            made.recursive(true).mode(0o700);
            made.create(parent)
                .map_err(failed("cannot make its directory"))?;
        }
        let lock = lock(path)?;
        let tables = match first_byte(path).map_err(failed("cannot read"))? {
            None => {
                let tables = Tables::new(new_incarnation());
                write_snapshot(path, &tables).map_err(failed("cannot write"))?;
                tables
            }
            Some(b'{') => {
                let tables = import::import(path, new_incarnation())?;
                let kept = with_suffix(path, ".imported.json");
                fs::copy(path, kept).map_err(failed("cannot keep a copy"))?;
                write_snapshot(path, &tables).map_err(failed("cannot write"))?;
                tables
            }
            Some(_) => {
                let (tables, good) = load(path)?;
                let file = OpenOptions::new().write(true).open(path);
                let file = file.map_err(failed("cannot open"))?;
                file.set_len(good)
                    .map_err(failed("cannot cut off a torn record"))?;
                file.sync_all().map_err(failed("cannot sync"))?;
                tables
            }
        };
        let file = OpenOptions::new()
            .append(true)
            .open(path)
            .map_err(failed("cannot open"))?;
        let good = file.metadata().map_err(failed("cannot measure"))?.len();
        let path = path.to_owned();
        let compact_after = COMPACT_AFTER;
        let store = Self {
            path,
            file,
            good,
            base: good,
            poisoned: false,
            compact_after,
            _lock: lock,
        };
        Ok((store, tables))
    }

    fn append(&mut self, payload: &[u8]) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(payload.len() + FRAME_HEAD as usize);
        frame(&mut bytes, payload)?;
        self.file.write_all(&bytes)?;
        self.file.sync_data()?;
        self.good += bytes.len() as u64;
        Ok(())
    }
}

impl Store for LogStore {
    fn commit(&mut self, changes: &[Change]) -> io::Result<()> {
        if self.poisoned {
            return Err(io::Error::other(
                "an earlier failed write could not be taken back",
            ));
        }
        let payload = record::encode(changes.iter(), (0, 0));
        self.append(&payload).inspect_err(|_| {
            // What was half written must go, or the next batch would follow garbage.
            let undone = self
                .file
                .set_len(self.good)
                .and_then(|()| self.file.sync_all());
            self.poisoned = undone.is_err();
        })
    }

    fn compact(&mut self, tables: &Tables) -> io::Result<()> {
        let grown = self.good.saturating_sub(self.base);
        if grown < self.compact_after.max(4 * self.base) {
            return Ok(());
        }
        write_snapshot(&self.path, tables)?;
        self.file = OpenOptions::new().append(true).open(&self.path)?;
        self.good = self.file.metadata()?.len();
        self.base = self.good;
        self.poisoned = false;
        Ok(())
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// A lock of its own, since compaction replaces the state file. The system lets go of it when the
/// process dies, however it dies.
fn lock(path: &Path) -> Result<File, StoreRefused> {
    let beside = with_suffix(path, ".lock");
    let failed = |source| StoreRefused::Io {
        path: beside.clone(),
        action: "cannot lock",
        source,
    };
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(&beside);
    let file = file.map_err(failed)?;
    for _ in 0..LOCK_TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(fs::TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
            Err(fs::TryLockError::Error(source)) => return Err(failed(source)),
        }
    }
    Err(StoreRefused::InUse(path.to_owned()))
}

fn first_byte(path: &Path) -> io::Result<Option<u8>> {
    match File::open(path) {
        Ok(file) => BufReader::new(file).bytes().next().transpose(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn frame(into: &mut impl Write, payload: &[u8]) -> io::Result<()> {
    let length = u32::try_from(payload.len())
        .map_err(io::Error::other)?
        .to_be_bytes();
    into.write_all(&length)?;
    into.write_all(&crc32fast::hash(&length).to_be_bytes())?;
    into.write_all(&crc32fast::hash(payload).to_be_bytes())?;
    into.write_all(payload)
}

/// Writes the whole state beside the file and puts it in its place in one step.
fn write_snapshot(path: &Path, tables: &Tables) -> io::Result<()> {
    let beside = with_suffix(path, ".tmp");
    let made = OpenOptions::new()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .open(&beside)?;
    let mut file = BufWriter::new(made);
    let mut header = MAGIC.to_vec();
    header.extend(tables.incarnation().to_be_bytes());
    header.extend(crc32fast::hash(&header).to_be_bytes());
    file.write_all(&header)?;
    let counters = (tables.head(), tables.next_operation());
    let mut batch = Vec::with_capacity(SNAPSHOT_BATCH);
    for change in tables.snapshot() {
        batch.push(change);
        if batch.len() == SNAPSHOT_BATCH {
            frame(&mut file, &record::encode(batch.iter(), counters))?;
            batch.clear();
        }
    }
    frame(&mut file, &record::encode(batch.iter(), counters))?;
    file.into_inner()?.sync_all()?;
    fs::rename(&beside, path)?;
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}

/// Loads every whole frame; answers with where the last one ends.
fn load(path: &Path) -> Result<(Tables, u64), StoreRefused> {
    let failed = |source| StoreRefused::Io {
        path: path.into(),
        action: "cannot read",
        source,
    };
    let file = File::open(path).map_err(failed)?;
    let end = file.metadata().map_err(failed)?.len();
    let mut reader = Reader {
        file: BufReader::new(file),
        offset: 0,
        end,
        record: 0,
    };
    let damaged = |reader: &Reader, problem: String| StoreRefused::Damaged {
        path: path.to_owned(),
        record: reader.record,
        offset: reader.offset,
        problem,
    };
    let incarnation = reader.header().map_err(failed)?;
    let incarnation =
        incarnation.ok_or_else(|| damaged(&reader, "not the header of a state file".to_owned()))?;
    let mut tables = Tables::new(incarnation);
    let mut offers = Vec::new();
    loop {
        reader.record += 1;
        match reader.frame().map_err(failed)? {
            Frame::Torn => return Ok((tables, reader.offset)),
            Frame::Wrong(problem) => return Err(damaged(&reader, problem)),
            Frame::Whole(payload) => {
                let read = record::decode(&payload);
                let (changes, batch) = read.map_err(|problem| damaged(&reader, problem))?;
                let shared = changes.into_iter().map(|change| share(change, &mut offers));
                shared.for_each(|change| tables.load(change));
                tables.restore_counters(batch.head, batch.next_operation);
                reader.offset += FRAME_HEAD + payload.len() as u64;
            }
        }
    }
}

/// Thousands of slots offer the same few things; they share them, as they did before the restart.
fn share(mut change: Change, offers: &mut Vec<Arc<Offer>>) -> Change {
    if let Change::Machine { machine, .. } = &mut change
        && let Some(machine) = Arc::get_mut(machine)
    {
        match offers.iter().find(|offer| **offer == machine.offer) {
            Some(offer) => machine.offer = Arc::clone(offer),
            None if offers.len() < MOST_OFFERS => offers.push(Arc::clone(&machine.offer)),
            None => {}
        }
    }
    change
}

enum Frame {
    Whole(Vec<u8>),
    /// Cut short by a crash, so never acknowledged; also the plain end of the file.
    Torn,
    Wrong(String),
}

struct Reader {
    file: BufReader<File>,
    /// Where the current record begins.
    offset: u64,
    end: u64,
    record: u64,
}

impl Reader {
    fn header(&mut self) -> io::Result<Option<u64>> {
        let mut header = [0; HEADER as usize];
        if self.end < HEADER {
            return Ok(None);
        }
        self.file.read_exact(&mut header)?;
        let (body, sum) = header.split_at(16);
        let (magic, incarnation) = body.split_at(8);
        let whole = crc32fast::hash(body).to_be_bytes() == *sum && magic == MAGIC;
        self.offset = HEADER;
        let incarnation = <[u8; 8]>::try_from(incarnation).map_err(io::Error::other)?;
        Ok(whole.then(|| u64::from_be_bytes(incarnation)))
    }

    fn frame(&mut self) -> io::Result<Frame> {
        let left = self.end - self.offset;
        if left < FRAME_HEAD {
            return Ok(Frame::Torn);
        }
        let mut head = [[0_u8; 4]; 3];
        for part in &mut head {
            self.file.read_exact(part)?;
        }
        let [length, length_sum, payload_sum] = head;
        if crc32fast::hash(&length).to_be_bytes() != length_sum {
            return self.blank_to_the_end(&head.concat());
        }
        let length = u64::from(u32::from_be_bytes(length));
        if left - FRAME_HEAD < length {
            return Ok(Frame::Torn);
        }
        let mut payload = vec![0; length as usize];
        self.file.read_exact(&mut payload)?;
        if crc32fast::hash(&payload).to_be_bytes() == payload_sum {
            return Ok(Frame::Whole(payload));
        }
        let last = left == FRAME_HEAD + length;
        Ok(
            if last && has_blank_sector(&payload, self.offset + FRAME_HEAD) {
                Frame::Torn
            } else {
                Frame::Wrong("its checksum does not match".to_owned())
            },
        )
    }

    /// A file that grew before its data arrived ends in zeros; anything else is damage.
    fn blank_to_the_end(&mut self, head: &[u8]) -> io::Result<Frame> {
        let mut rest = Vec::new();
        self.file.seek(SeekFrom::Start(self.offset))?;
        self.file.read_to_end(&mut rest)?;
        let blank = head.iter().chain(&rest).all(|byte| *byte == 0);
        Ok(if blank {
            Frame::Torn
        } else {
            Frame::Wrong("the checksum of its length does not match".to_owned())
        })
    }
}

/// Whether a sector's share of the payload never reached the disk.
fn has_blank_sector(payload: &[u8], offset: u64) -> bool {
    let into = (offset % SECTOR as u64) as usize;
    let (first, rest) = payload.split_at((SECTOR - into).min(payload.len()));
    let mut sectors = std::iter::once(first).chain(rest.chunks(SECTOR));
    sectors.any(|sector| !sector.is_empty() && sector.iter().all(|byte| *byte == 0))
}

#[cfg(test)]
mod tests;
