//! Store: one file of a replica, on disk before anything is acknowledged.
//!
//! ```text
//! data-dir/coordinator.redb   meta: format, directory, group, vote, what was purged · log · one snapshot
//!
//! writes ─▶ queue ─▶ a thread: all that waits is one commit ─▶ whoever waited is told, in order
//! ```
//!
//! The file is locked while a process has it. A commit that fails is told to everybody who waited for it, and nothing is written
//! after it: the library then ends, and with it the process.

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};

use openraft::storage::LogFlushed;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction};
use tokio::sync::oneshot;

use super::messages::Stored;
use super::types::{Entry, Group, LogId, SnapshotMeta, Vote};
use crate::FormatRefused;

pub(super) const FILE: &str = "coordinator.redb";
/// The version of what is inside. A store of a later one is refused.
const FORMAT: u64 = 1;
/// Bytes the database keeps in memory: the log is in memory anyway.
const CACHE: usize = 16 << 20;

const META: TableDefinition<'static, &str, &[u8]> = TableDefinition::new("meta");
const LOG: TableDefinition<'static, u64, &[u8]> = TableDefinition::new("log");
const SNAPSHOT: TableDefinition<'static, &str, &[u8]> = TableDefinition::new("snapshot");

const FORMAT_KEY: &str = "format";
const DIRECTORY_KEY: &str = "directory";
const CLUSTER_KEY: &str = "cluster";
const GENERATION_KEY: &str = "generation";
const VOTE_KEY: &str = "vote";
const PURGED_KEY: &str = "purged";
const HEAD_KEY: &str = "head";
const DATA_KEY: &str = "data";

/// Why a data directory is not used.
#[derive(Debug, thiserror::Error)]
pub enum StoreRefused {
    /// A file or the directory cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Another process has it.
    #[error("{}: another process uses it", .0.display())]
    InUse(PathBuf),
    /// The database cannot be read or written.
    #[error("{}: {source}", path.display())]
    Database {
        /// The file.
        path: PathBuf,
        /// What the database says.
        source: Box<redb::Error>,
    },
    /// Something in it is damaged.
    #[error("{}: {what}: {source}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The part that does not read.
        what: &'static str,
        /// Why.
        source: FormatRefused,
    },
    /// Written by a later version.
    #[error("{}: written in version {found} of the format; this program reads {FORMAT}", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u64,
    },
    /// No number could be drawn for a new directory.
    #[error("the system gives no random numbers")]
    NoRandomNumbers,
}

/// Which group a replica belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Belonging {
    /// The id of the group; `None` on an empty disk.
    pub cluster: Option<String>,
    /// How often that group was restored.
    pub generation: u64,
}

/// A snapshot as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(crate) meta: SnapshotMeta,
    pub(crate) data: Vec<u8>,
}

/// What a data directory holds.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) directory: u64,
    pub(crate) belonging: Belonging,
    pub(crate) vote: Option<Vote>,
    pub(crate) log: BTreeMap<u64, Entry>,
    pub(crate) purged: Option<LogId>,
    pub(crate) snapshot: Option<Kept>,
}

/// The database, before anything is written to it.
#[derive(Debug)]
pub(crate) struct Disk(Database);

type Done = oneshot::Sender<Result<(), String>>;

enum Write {
    Belonging(Belonging, Done),
    Vote(Vec<u8>, Done),
    Append(Vec<(u64, Vec<u8>)>, LogFlushed<Group>),
    Truncate(u64, Done),
    Purge(u64, Vec<u8>, Done),
    Snapshot(Vec<u8>, Vec<u8>, Done),
}

/// The way to the disk.
#[derive(Clone, Debug)]
pub(crate) struct Store(Sender<Write>);

/// A number nobody else has.
pub(crate) fn drawn() -> Result<u64, StoreRefused> {
    use ring::rand::{SecureRandom, SystemRandom};
    let mut bytes = [0; 8];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| StoreRefused::NoRandomNumbers)?;
    // Zero is "not said" on the wire.
    Ok(u64::from_le_bytes(bytes).max(1))
}

/// Opens a data directory, which is created if there is none.
pub(crate) fn open(dir: &Path) -> Result<(Opened, Disk), StoreRefused> {
    folder_of(dir)?;
    let path = dir.join(FILE);
    let made = Database::builder().set_cache_size(CACHE).create(&path);
    let database = made.map_err(|why| match why {
        redb::DatabaseError::DatabaseAlreadyOpen => StoreRefused::InUse(path.clone()),
        why => database_refused(&path)(why.into()),
    })?;
    drop(std::fs::set_permissions(
        &path,
        Permissions::from_mode(0o600),
    ));
    if let Some(found) = first_start(&database).map_err(database_refused(&path))?
        && found != FORMAT
    {
        return Err(StoreRefused::Version { path, found });
    }
    let directory = directory(&database, &path)?;
    let opened = read(&database, directory, &path)?;
    Ok((opened, Disk(database)))
}

/// Makes a data directory that others cannot read.
pub(super) fn folder_of(dir: &Path) -> Result<(), StoreRefused> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder.create(dir).map_err(|source| StoreRefused::Io {
        path: dir.to_owned(),
        source,
    })
}

/// The group a store belongs to.
pub(super) fn belonging_of(database: &Database) -> Result<Belonging, redb::Error> {
    let reading = database.begin_read()?;
    let meta = reading.open_table(META)?;
    let cluster = meta.get(CLUSTER_KEY)?;
    let generation = meta.get(GENERATION_KEY)?;
    Ok(Belonging {
        cluster: cluster.map(|bytes| String::from_utf8_lossy(bytes.value()).into_owned()),
        generation: generation
            .and_then(|bytes| number(bytes.value()))
            .unwrap_or_default(),
    })
}

/// Makes a store with all that is in it, in one commit.
pub(super) fn fill(
    path: &Path,
    directory: u64,
    belonging: &Belonging,
    vote: &[u8],
    purged: &[u8],
    kept: &Kept,
) -> Result<(), redb::Error> {
    let database = Database::builder().create(path)?;
    std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
    let writing = database.begin_write()?;
    writing.open_table(LOG)?;
    let mut meta = writing.open_table(META)?;
    meta.insert(FORMAT_KEY, FORMAT.to_le_bytes().as_slice())?;
    meta.insert(DIRECTORY_KEY, directory.to_le_bytes().as_slice())?;
    meta.insert(VOTE_KEY, vote)?;
    meta.insert(PURGED_KEY, purged)?;
    drop(meta);
    let (head, data) = (kept.meta.write(), kept.data.clone());
    let (done, _) = oneshot::channel();
    Write::Belonging(belonging.clone(), done).put(&writing)?;
    let (done, _) = oneshot::channel();
    Write::Snapshot(head, data, done).put(&writing)?;
    writing.commit()?;
    Ok(())
}

pub(super) fn database_refused(path: &Path) -> impl Fn(redb::Error) -> StoreRefused {
    move |source| StoreRefused::Database {
        path: path.to_owned(),
        source: Box::new(source),
    }
}

/// The version of the format that is inside; makes the tables if there is none.
fn first_start(database: &Database) -> Result<Option<u64>, redb::Error> {
    let writing = database.begin_write()?;
    writing.open_table(LOG)?;
    writing.open_table(SNAPSHOT)?;
    let mut meta = writing.open_table(META)?;
    let found = meta
        .get(FORMAT_KEY)?
        .and_then(|value| number(value.value()));
    if found.is_none() {
        meta.insert(FORMAT_KEY, FORMAT.to_le_bytes().as_slice())?;
    }
    drop(meta);
    writing.commit()?;
    Ok(found)
}

/// The number drawn with the directory; draws it if there is none.
fn directory(database: &Database, path: &Path) -> Result<u64, StoreRefused> {
    let new = drawn()?;
    let kept = || -> Result<u64, redb::Error> {
        let writing = database.begin_write()?;
        let mut meta = writing.open_table(META)?;
        let found = meta.get(DIRECTORY_KEY)?;
        let found = found.and_then(|value| number(value.value()));
        let directory = found.unwrap_or(new);
        meta.insert(DIRECTORY_KEY, directory.to_le_bytes().as_slice())?;
        drop(meta);
        writing.commit()?;
        Ok(directory)
    };
    kept().map_err(database_refused(path))
}

fn number(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

/// A table's value, still as bytes.
type Bytes = Option<Vec<u8>>;

fn read(database: &Database, directory: u64, path: &Path) -> Result<Opened, StoreRefused> {
    let raw = || -> Result<_, redb::Error> {
        let reading = database.begin_read()?;
        let meta = reading.open_table(META)?;
        let bytes = |key: &str| -> Result<Bytes, redb::Error> {
            Ok(meta.get(key)?.map(|value| value.value().to_vec()))
        };
        let mut log = Vec::new();
        for entry in reading.open_table(LOG)?.iter()? {
            log.push(entry?.1.value().to_vec());
        }
        let snapshot = reading.open_table(SNAPSHOT)?;
        let head = snapshot.get(HEAD_KEY)?.map(|value| value.value().to_vec());
        let data = snapshot.get(DATA_KEY)?.map(|value| value.value().to_vec());
        Ok((
            belonging_of(database)?,
            bytes(VOTE_KEY)?,
            bytes(PURGED_KEY)?,
            log,
            head.zip(data),
        ))
    };
    let (belonging, vote, purged, log, snapshot) = raw().map_err(database_refused(path))?;
    let damaged = |what| {
        move |source| StoreRefused::Damaged {
            path: path.to_owned(),
            what,
            source,
        }
    };
    let read_vote = |bytes: Vec<u8>| Vote::read(&bytes).map_err(damaged("the vote"));
    let read_id = |bytes: Vec<u8>| LogId::read(&bytes).map_err(damaged("what was purged"));
    let read_entry = |bytes: Vec<u8>| {
        let entry = Entry::read(&bytes).map_err(damaged("an entry of the log"))?;
        Ok((entry.log_id.index, entry))
    };
    let read_kept = |(head, data): (Vec<u8>, Vec<u8>)| {
        let meta = SnapshotMeta::read(&head).map_err(damaged("the snapshot"))?;
        Ok(Kept { meta, data })
    };
    Ok(Opened {
        directory,
        belonging,
        vote: vote.map(read_vote).transpose()?,
        log: log.into_iter().map(read_entry).collect::<Result<_, _>>()?,
        purged: purged.map(read_id).transpose()?,
        snapshot: snapshot.map(read_kept).transpose()?,
    })
}

impl Disk {
    /// Starts the thread that writes.
    pub(crate) fn start(self) -> io::Result<Store> {
        let (sender, receiver) = channel();
        let thread = std::thread::Builder::new().name("store".to_owned());
        thread.spawn(move || write_all(&self.0, &receiver))?;
        Ok(Store(sender))
    }
}

/// Writes until nobody is left who could ask, or a commit failed.
fn write_all(database: &Database, writes: &Receiver<Write>) {
    while let Ok(first) = writes.recv() {
        let batch: Vec<Write> = std::iter::once(first).chain(writes.try_iter()).collect();
        let written = commit(database, &batch).map_err(|why| why.to_string());
        if let Err(problem) = &written {
            tracing::error!(problem, "the store cannot be written");
        }
        for write in batch {
            write.end(&written);
        }
        if written.is_err() {
            return;
        }
    }
}

fn commit(database: &Database, batch: &[Write]) -> Result<(), redb::Error> {
    let writing = database.begin_write()?;
    for write in batch {
        write.put(&writing)?;
    }
    writing.commit()?;
    Ok(())
}

impl Write {
    fn put(&self, writing: &WriteTransaction) -> Result<(), redb::Error> {
        match self {
            Self::Belonging(belonging, _) => {
                let mut meta = writing.open_table(META)?;
                let cluster = belonging.cluster.as_deref().unwrap_or_default();
                meta.insert(CLUSTER_KEY, cluster.as_bytes())?;
                let generation = belonging.generation.to_le_bytes();
                meta.insert(GENERATION_KEY, generation.as_slice())?;
            }
            Self::Vote(vote, _) => {
                writing
                    .open_table(META)?
                    .insert(VOTE_KEY, vote.as_slice())?;
            }
            Self::Append(entries, _) => {
                let mut log = writing.open_table(LOG)?;
                for (index, entry) in entries {
                    log.insert(index, entry.as_slice())?;
                }
            }
            Self::Truncate(from, _) => {
                let mut log = writing.open_table(LOG)?;
                log.retain_in(*from.., |_, _| false)?;
            }
            Self::Purge(upto, id, _) => {
                let mut log = writing.open_table(LOG)?;
                log.retain_in(..=*upto, |_, _| false)?;
                writing
                    .open_table(META)?
                    .insert(PURGED_KEY, id.as_slice())?;
            }
            Self::Snapshot(head, data, _) => {
                let mut snapshot = writing.open_table(SNAPSHOT)?;
                snapshot.insert(HEAD_KEY, head.as_slice())?;
                snapshot.insert(DATA_KEY, data.as_slice())?;
            }
        }
        Ok(())
    }

    fn end(self, written: &Result<(), String>) {
        let done = match self {
            Self::Append(_, flushed) => {
                let ended = written.clone().map_err(io::Error::other);
                return flushed.log_io_completed(ended);
            }
            Self::Belonging(_, done) | Self::Vote(_, done) | Self::Truncate(_, done) => done,
            Self::Purge(_, _, done) | Self::Snapshot(_, _, done) => done,
        };
        // Whoever asked may be gone; what was written stays.
        drop(done.send(written.clone()));
    }
}

impl Store {
    async fn written(&self, write: impl FnOnce(Done) -> Write) -> io::Result<()> {
        let (done, ended) = oneshot::channel();
        let gone = |_| io::Error::other("the store is closed");
        self.0.send(write(done)).map_err(|_| gone(()))?;
        let ended = ended.await.map_err(|_| gone(()))?;
        ended.map_err(io::Error::other)
    }

    pub(crate) async fn belong(&self, belonging: Belonging) -> io::Result<()> {
        self.written(|done| Write::Belonging(belonging, done)).await
    }

    pub(crate) async fn vote(&self, vote: &Vote) -> io::Result<()> {
        let vote = vote.write();
        self.written(|done| Write::Vote(vote, done)).await
    }

    /// Answers at once; `flushed` is told when it is on disk.
    pub(crate) fn append(&self, entries: &[Entry], flushed: LogFlushed<Group>) -> io::Result<()> {
        let entries = entries.iter();
        let entries = entries.map(|entry| (entry.log_id.index, entry.write()));
        let sent = self.0.send(Write::Append(entries.collect(), flushed));
        sent.map_err(|_| io::Error::other("the store is closed"))
    }

    pub(crate) async fn truncate(&self, from: u64) -> io::Result<()> {
        self.written(|done| Write::Truncate(from, done)).await
    }

    pub(crate) async fn purge(&self, upto: &LogId) -> io::Result<()> {
        let (index, id) = (upto.index, upto.write());
        self.written(|done| Write::Purge(index, id, done)).await
    }

    pub(crate) async fn keep(&self, kept: &Kept) -> io::Result<()> {
        let (head, data) = (kept.meta.write(), kept.data.clone());
        self.written(|done| Write::Snapshot(head, data, done)).await
    }
}
