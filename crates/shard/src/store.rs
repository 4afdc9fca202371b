//! The store: what a shard must not forget, on disk before anything leaves (SH-4, SH-5).
//!
//! ```text
//! data-dir/epoch       the authority for the epoch: text, replaced whole
//! data-dir/shard.redb  commitments, demand, ownership; one commit for all that waits, then Persisted
//! ```
//!
//! A thread of its own writes and waits for the disk; the driver goes on taking events meanwhile, and
//! whatever was handed over during one commit is in the next. A commit that fails ends the process:
//! the core never hears that it is durable, so nothing of it leaves. The file of the database is locked
//! for as long as the process lives, and the epoch is only touched under that lock.

mod ages;
mod epoch;
mod format;
mod holdings;
mod identity;

use std::fs::Permissions;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bigfleet_model::{NeedKey, Time};
use bigfleet_shard_core::{Barrier, Event, Record, next_epoch};
use redb::{
    Database, DatabaseError, ReadTransaction, ReadableDatabase, ReadableTable,
    ReadableTableMetadata, StorageError, Table, TableDefinition, TableError, TableHandle,
    WriteTransaction,
};

use crate::hub::{Hub, Told};
use crate::timing::{TIMING, milliseconds};
use crate::trouble::Trouble;
use ages::Age;
use format::Value;

/// The version of what is inside; one more once there are holdings. A store of a later one is refused.
const FORMAT: u64 = 1;
/// Writes that wait for the disk. One comes per deciding cycle, and all that wait are one commit: this
/// many is a disk that has not answered for minutes.
const WAITING: usize = 4096;
/// Bytes the database keeps in memory.
const CACHE: usize = 64 << 20;

const META: TableDefinition<'static, &str, u64> = TableDefinition::new("meta");
const MACHINES: TableDefinition<'static, &str, &[u8]> = TableDefinition::new("machines");
const CLUSTERS: TableDefinition<'static, &str, &[u8]> = TableDefinition::new("clusters");
const OWNED: TableDefinition<'static, &str, ()> = TableDefinition::new("owned");
const RETIRED: TableDefinition<'static, &str, ()> = TableDefinition::new("retired");
const RELEASED: TableDefinition<'static, &str, ()> = TableDefinition::new("released");
/// What admins have paused, by scope.
const PAUSES: TableDefinition<'static, &str, &[u8]> = TableDefinition::new("pauses");
/// What keeps ending badly, by what it is.
const BREAKERS: TableDefinition<'static, &str, &[u8]> = TableDefinition::new("breakers");
/// What admins have marked to leave, by machine.
const DRAINS: TableDefinition<'static, &str, &[u8]> = TableDefinition::new("drains");
/// When machines were reclaimed lately, by cluster.
const RECLAIMS: TableDefinition<'static, &str, &[u8]> = TableDefinition::new("reclaims");
/// Cluster, fingerprint, group; unix seconds.
const ARRIVALS: TableDefinition<'static, (&str, &str, &str), f64> =
    TableDefinition::new("arrivals");
/// As earlier versions wrote it: key, value; whether it is assigned. One that was taken away is remembered too.
const DOMAINS: TableDefinition<'static, (&str, &str), bool> = TableDefinition::new("domains");
/// Instructions that were carried out, in that order.
const INSTRUCTIONS: TableDefinition<'static, u64, &str> = TableDefinition::new("instructions");
/// Of those, the last so many are kept.
const MOST_INSTRUCTIONS: u64 = 1024;

const FORMAT_KEY: &str = "format";
const EPOCH_KEY: &str = "epoch";
const FOREIGN_KEY: &str = "foreign-seen";
const TERM_KEY: &str = "term";

/// Why a data directory is not used.
#[derive(Debug, thiserror::Error)]
pub enum StoreRefused {
    /// A file or the directory cannot be read or written.
    #[error("{}: {problem}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the system says.
        problem: String,
    },
    /// Another process has it.
    #[error("{} is in use by another process", .0.display())]
    InUse(PathBuf),
    /// It was written by a later version.
    #[error(
        "{} has format {found}, and this version knows {}: it was written by a later one",
        path.display(), holdings::FORMAT
    )]
    Newer {
        /// The database.
        path: PathBuf,
        /// The format it says it has.
        found: u64,
    },
    /// It does not hold what was written.
    #[error("{} is damaged: {problem}; restore it, or move it away and start with --epoch-floor", path.display())]
    Damaged {
        /// The database.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// Another process took over from the one that wrote it (CO-14).
    #[error(
        "{}: the coordinator knows another process as this shard; if that one is gone, start this one once with \
         --records-lost, and with --epoch-floor above the epoch the coordinator names",
        .0.display()
    )]
    Superseded(PathBuf),
    /// It is not the file it was when its directory's number was drawn.
    #[error(
        "{} is a copy: two processes with it would be taken for one; if the original is gone for good, start this one once \
         with --records-lost",
        .0.display()
    )]
    Copy(PathBuf),
    /// The epoch is not one.
    #[error("{}: {refused}", path.display())]
    Epoch {
        /// The epoch file.
        path: PathBuf,
        /// What is wrong with it.
        refused: bigfleet_shard_core::StartRefused,
    },
}

/// How a data directory is to be opened.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wanted {
    /// The least epoch to take.
    pub(crate) epoch_floor: u64,
    /// Forget everything but the epoch.
    pub(crate) records_lost: bool,
    /// Whether a copy of a directory is refused.
    pub(crate) refuses_copies: bool,
}

/// A data directory, locked, with what it held.
pub(crate) struct Opened {
    /// This process's epoch; on disk already.
    pub(crate) epoch: u64,
    /// Drawn with the directory.
    pub(crate) directory: u64,
    /// What was remembered.
    pub(crate) records: Vec<Record>,
    /// Since when Needs were not served in full.
    pub(crate) ages: Vec<(NeedKey, Time)>,
    database: Database,
    path: PathBuf,
}

/// Opens or makes a data directory, and takes the next epoch.
pub(crate) fn open(data_dir: &Path, wanted: Wanted) -> Result<Opened, StoreRefused> {
    let io = |path: &Path| {
        let path = path.to_owned();
        move |why: std::io::Error| StoreRefused::Io {
            path,
            problem: why.to_string(),
        }
    };
    private_dir(data_dir).map_err(io(data_dir))?;
    let path = data_dir.join("shard.redb");
    let (database, directory, (records, ages)) = guarded(&path, || {
        let database = lock(&path)?;
        let mut loaded = load(&database, &path)?;
        let directory = identity::settle(&database, &path, &loaded.0, &wanted)?;
        if wanted.records_lost {
            loaded = load(&database, &path)?;
        }
        Ok((database, directory, loaded))
    })?;
    let file = data_dir.join("epoch");
    let text = epoch::read(&file).map_err(io(&file))?;
    let refused = |refused| StoreRefused::Epoch {
        path: file.clone(),
        refused,
    };
    let next = next_epoch(text.as_deref(), wanted.epoch_floor).map_err(refused)?;
    let seen = records.iter().filter_map(|record| match record {
        Record::Epoch(seen) => Some(*seen),
        _ => None,
    });
    // The same epoch again would send the same tokens and operation ids for other decisions.
    if let Some(recorded) = seen.max().filter(|seen| next <= *seen) {
        return Err(refused(bigfleet_shard_core::StartRefused::EpochWentBack {
            given: next,
            recorded,
        }));
    }
    epoch::write(&file, next).map_err(io(&file))?;
    Ok(Opened {
        epoch: next,
        directory,
        records,
        ages,
        database,
        path,
    })
}

/// Writes records into a data directory, as a shard does: for whoever measures or tests one that
/// remembers much. The directory has lived through one epoch more then.
pub fn remember(data_dir: &Path, records: &[Record]) -> Result<(), StoreRefused> {
    let opened = open(data_dir, Wanted::default())?;
    let io = |why: redb::Error| StoreRefused::Io {
        path: opened.path.clone(),
        problem: why.to_string(),
    };
    commit(&opened.database, &[Record::Epoch(opened.epoch)], &[]).map_err(io)?;
    commit(&opened.database, records, &[]).map_err(io)
}

/// A damaged file can make the database give up in the middle of reading it; that is an answer too.
fn guarded<T>(
    path: &Path,
    work: impl FnOnce() -> Result<T, StoreRefused>,
) -> Result<T, StoreRefused> {
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    done.unwrap_or_else(|_| Err(damaged(path, "the database cannot make sense of it")))
}

fn damaged(path: &Path, problem: impl ToString) -> StoreRefused {
    StoreRefused::Damaged {
        path: path.to_owned(),
        problem: problem.to_string(),
    }
}

fn lock(path: &Path) -> Result<Database, StoreRefused> {
    let made = Database::builder().set_cache_size(CACHE).create(path);
    keep_private(path, 0o600);
    made.map_err(|why| match why {
        DatabaseError::DatabaseAlreadyOpen => StoreRefused::InUse(path.to_owned()),
        DatabaseError::Storage(StorageError::Io(why))
            if why.kind() != std::io::ErrorKind::InvalidData =>
        {
            StoreRefused::Io {
                path: path.to_owned(),
                problem: why.to_string(),
            }
        }
        why => damaged(path, why),
    })
}

/// A directory that only its owner looks into: the store holds what machines are committed to, and who puts a
/// pause file beside it stops the shard.
fn private_dir(path: &Path) -> std::io::Result<()> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)?;
    keep_private(path, 0o700);
    Ok(())
}

/// Takes from everybody but the owner what they may do with a file that may be older than this rule. A volume
/// that belongs to somebody else stays as it is, and that is said.
pub(crate) fn keep_private(path: &Path, mode: u32) {
    let Ok(found) = std::fs::metadata(path) else {
        return;
    };
    if found.permissions().mode() & 0o777 & !mode == 0 {
        return;
    }
    if let Err(why) = std::fs::set_permissions(path, Permissions::from_mode(mode)) {
        let path = path.display();
        tracing::warn!(%path, err = %why, "others on this host may read or write this");
    }
}

/// What a file holds: records, and ages beside them.
type Held = (Vec<Record>, Vec<(NeedKey, Time)>);

/// Everything in the file, or what is wrong with it.
fn load(database: &Database, path: &Path) -> Result<Held, StoreRefused> {
    identity::take_over(database).map_err(|why| damaged(path, why))?;
    let read = database.begin_read().map_err(|why| damaged(path, why))?;
    let format = match read.open_table(META) {
        Ok(meta) => meta.get(FORMAT_KEY).map_err(|why| damaged(path, why))?,
        Err(TableError::TableDoesNotExist(_)) => return Ok(Held::default()), // new, or from the reference
        Err(why) => return Err(damaged(path, why)),
    };
    match format.map(|format| format.value()) {
        Some(FORMAT | holdings::FORMAT) => {}
        Some(found) if holdings::FORMAT < found => {
            let path = path.to_owned();
            return Err(StoreRefused::Newer { path, found });
        }
        found => return Err(damaged(path, format!("it says its format is {found:?}"))),
    }
    let held = || Ok((records(&read)?, ages::read(&read)?));
    held().map_err(|problem: String| damaged(path, problem))
}

fn records(read: &ReadTransaction) -> Result<Vec<Record>, String> {
    let mut records = Vec::new();
    let meta = read.open_table(META).map_err(text)?;
    let of_meta = |key: &str| Ok::<_, String>(meta.get(key).map_err(text)?.map(|it| it.value()));
    records.extend(of_meta(EPOCH_KEY)?.map(Record::Epoch));
    records.extend(of_meta(FOREIGN_KEY)?.map(|_| Record::ForeignSeen));
    records.extend(of_meta(TERM_KEY)?.map(Record::Term));
    each(read, INSTRUCTIONS, &mut records, |_, id| {
        Ok(Record::Instruction(id.to_owned()))
    })?;
    records.extend(holdings::read(read)?);
    each(read, OWNED, &mut records, |id, ()| format::owned(id))?;
    each(read, RETIRED, &mut records, |id, ()| format::retired(id))?;
    each(read, RELEASED, &mut records, |id, ()| format::released(id))?;
    // These came later than the others, under the same number: a directory without one has none of it.
    if has(read, PAUSES.name())? {
        each(read, PAUSES, &mut records, format::paused)?;
    }
    if has(read, BREAKERS.name())? {
        each(read, BREAKERS, &mut records, format::breaker)?;
    }
    if has(read, DRAINS.name())? {
        each(read, DRAINS, &mut records, format::drained)?;
    }
    if has(read, RECLAIMS.name())? {
        each(read, RECLAIMS, &mut records, format::reclaims)?;
    }
    each(read, ARRIVALS, &mut records, format::arrival)?;
    each(read, CLUSTERS, &mut records, format::cluster)?;
    let mut names = format::Names::default();
    each(read, MACHINES, &mut records, |id, bytes| {
        format::machine(id, bytes, &mut names)
    })?;
    Ok(records)
}

/// Whether there is a table of this name.
fn has(read: &ReadTransaction, name: &str) -> Result<bool, String> {
    let mut tables = read.list_tables().map_err(text)?;
    Ok(tables.any(|table| table.name() == name))
}

fn text(why: impl ToString) -> String {
    why.to_string()
}

fn each<K: redb::Key, V: redb::Value>(
    read: &ReadTransaction,
    table: TableDefinition<'_, K, V>,
    records: &mut Vec<Record>,
    mut of: impl FnMut(K::SelfType<'_>, V::SelfType<'_>) -> Result<Record, String>,
) -> Result<(), String> {
    let named = table.name().to_owned();
    let table = read.open_table(table).map_err(text)?;
    for entry in table.iter().map_err(text)? {
        let (key, value) = entry.map_err(text)?;
        let record = of(key.value(), value.value());
        records.push(record.map_err(|why| {
            let key: String = format!("{:?}", key.value()).chars().take(120).collect();
            format!("the entry {key} of {named}: {why}")
        })?);
    }
    Ok(())
}

/// How commits went.
#[derive(Debug, Default)]
pub(crate) struct CommitTimes(Mutex<Commits>);

/// Commits so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Commits {
    pub(crate) count: u64,
    pub(crate) records: u64,
    pub(crate) took: Duration,
    pub(crate) longest: Duration,
}

impl CommitTimes {
    pub(crate) fn so_far(&self) -> Commits {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, records: u64, took: Duration) {
        let mut commits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        commits.count += 1;
        commits.records += records;
        commits.took += took;
        commits.longest = commits.longest.max(took);
    }
}

/// What is written as one: records, and the ages that ride along.
type Batch = (Barrier, Vec<Record>, Vec<Age>);

/// The store at work.
pub(crate) struct Store {
    batches: SyncSender<Batch>,
    thread: std::thread::JoinHandle<()>,
}

impl Store {
    /// Starts the thread that writes.
    pub(crate) fn start(
        opened: Opened,
        hub: Hub,
        times: Arc<CommitTimes>,
        trouble: Trouble,
    ) -> Result<Self, StoreRefused> {
        let (batches, waiting) = sync_channel(WAITING);
        let (database, path) = (opened.database, opened.path);
        let problem = path.clone();
        let thread = std::thread::Builder::new()
            .name("store".to_owned())
            .spawn(move || {
                let writes = || write_all(&database, &path, &waiting, &hub, &times, &trouble);
                let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(writes));
                // The next write would find it gone; until there is one, nobody would know.
                if ended.is_err() {
                    let problem = format!("{}: the thread that writes panicked", path.display());
                    drop(hub.events.blocking_send(Told::Lost("store", problem)));
                }
            });
        let thread = thread.map_err(|why| StoreRefused::Io {
            path: problem,
            problem: why.to_string(),
        })?;
        Ok(Self { batches, thread })
    }

    /// Hands over a write. An error is a disk that no longer answers.
    pub(crate) fn persist(
        &self,
        barrier: Barrier,
        records: Vec<Record>,
        ages: Vec<Age>,
    ) -> Result<(), String> {
        let sent = self.batches.try_send((barrier, records, ages));
        sent.map_err(|_| format!("{WAITING} writes wait for the disk, or it has failed"))
    }

    /// Writes what still waits, and closes the file.
    pub(crate) fn close(self) {
        drop(self.batches);
        // A thread that panicked has nothing left to close.
        drop(self.thread.join());
    }
}

fn write_all(
    database: &Database,
    path: &Path,
    waiting: &Receiver<Batch>,
    hub: &Hub,
    times: &CommitTimes,
    trouble: &Trouble,
) {
    while let Ok((mut barrier, mut records, mut ages)) = waiting.recv() {
        // Whatever came meanwhile shares the commit.
        while let Ok((later, more, more_ages)) = waiting.try_recv() {
            barrier = later;
            records.extend(more);
            ages.extend(more_ages);
        }
        let began = Instant::now();
        let count = records.len() as u64;
        trouble.works("store");
        trouble.writes("commit", &records);
        let written = if trouble.store_forgets() {
            Ok(())
        } else {
            commit(database, &records, &ages)
        };
        trouble.writes("committed", &records);
        if let Err(why) = written {
            let problem = format!("{}: {why}; nothing leaves any more", path.display());
            // If the driver is gone already, so is everything that could leave.
            drop(hub.events.blocking_send(Told::Lost("store", problem)));
            return;
        }
        let took = began.elapsed();
        times.add(count, took);
        tracing::debug!(target: TIMING, records = count, ms = milliseconds(took), "commit took");
        let persisted = Told::Event(Event::Persisted { barrier }, None);
        if hub.events.blocking_send(persisted).is_err() {
            return;
        }
    }
}

/// All of them or none, on disk when it returns.
fn commit(database: &Database, records: &[Record], ages: &[Age]) -> Result<(), redb::Error> {
    let write = database.begin_write()?;
    {
        let mut tables = Tables::open(&write)?;
        let format = if records.iter().any(holdings::is_one) {
            holdings::FORMAT
        } else {
            let known = tables.meta.get(FORMAT_KEY)?;
            known.map_or(FORMAT, |known| known.value())
        };
        tables.meta.insert(FORMAT_KEY, format)?;
        for record in records {
            tables.put(record)?;
            holdings::put(&write, &mut tables.meta, record)?;
        }
    }
    ages::put(&write, ages)?;
    write.commit()?;
    Ok(())
}

struct Tables<'t> {
    meta: Table<'t, &'static str, u64>,
    machines: Table<'t, &'static str, &'static [u8]>,
    clusters: Table<'t, &'static str, &'static [u8]>,
    owned: Table<'t, &'static str, ()>,
    retired: Table<'t, &'static str, ()>,
    released: Table<'t, &'static str, ()>,
    pauses: Table<'t, &'static str, &'static [u8]>,
    breakers: Table<'t, &'static str, &'static [u8]>,
    drains: Table<'t, &'static str, &'static [u8]>,
    reclaims: Table<'t, &'static str, &'static [u8]>,
    arrivals: Table<'t, (&'static str, &'static str, &'static str), f64>,
    instructions: Table<'t, u64, &'static str>,
}

impl<'t> Tables<'t> {
    fn open(write: &'t WriteTransaction) -> Result<Self, redb::Error> {
        // An earlier version looks for it, as long as the format is one it knows.
        drop(write.open_table(DOMAINS)?);
        Ok(Self {
            meta: write.open_table(META)?,
            machines: write.open_table(MACHINES)?,
            clusters: write.open_table(CLUSTERS)?,
            owned: write.open_table(OWNED)?,
            retired: write.open_table(RETIRED)?,
            released: write.open_table(RELEASED)?,
            pauses: write.open_table(PAUSES)?,
            breakers: write.open_table(BREAKERS)?,
            drains: write.open_table(DRAINS)?,
            reclaims: write.open_table(RECLAIMS)?,
            arrivals: write.open_table(ARRIVALS)?,
            instructions: write.open_table(INSTRUCTIONS)?,
        })
    }

    fn put(&mut self, record: &Record) -> Result<(), redb::Error> {
        match record {
            Record::Epoch(epoch) => drop(self.meta.insert(EPOCH_KEY, epoch)?),
            Record::ForeignSeen => drop(self.meta.insert(FOREIGN_KEY, 1)?),
            Record::Term(term) => drop(self.meta.insert(TERM_KEY, term)?),
            Record::Machine { machine, kept } => match kept {
                Some(kept) => {
                    let value = Value::of_machine(kept).seal();
                    self.machines.insert(machine.as_str(), value.as_slice())?;
                }
                None => drop(self.machines.remove(machine.as_str())?),
            },
            Record::Cluster {
                cluster,
                baseline,
                replaced,
            } => {
                let value = Value::of_cluster(baseline, replaced).seal();
                self.clusters.insert(cluster.as_str(), value.as_slice())?;
            }
            Record::ClusterForgotten(cluster) => {
                self.clusters.remove(cluster.as_str())?;
                self.released.remove(cluster.as_str())?;
                let of_it = |(of, ..): (&str, &str, &str), _| of != cluster.as_str();
                self.arrivals.retain(of_it)?;
            }
            Record::Owned { machine, owned } => mark(&mut self.owned, machine.as_str(), *owned)?,
            Record::Retired { machine, retired } => {
                mark(&mut self.retired, machine.as_str(), *retired)?;
            }
            Record::Released { cluster, released } => {
                mark(&mut self.released, cluster.as_str(), *released)?;
            }
            Record::Paused { scope, kept } => {
                let key = format::scope_key(scope);
                match kept {
                    Some(kept) => {
                        let value = Value::of_pause(kept).seal();
                        self.pauses.insert(key.as_str(), value.as_slice())?;
                    }
                    None => drop(self.pauses.remove(key.as_str())?),
                }
            }
            Record::Breaker { key, kept } => {
                let key = format::breaker_key(key);
                match kept {
                    Some(kept) => {
                        let value = Value::of_breaker(kept).seal();
                        self.breakers.insert(key.as_str(), value.as_slice())?;
                    }
                    None => drop(self.breakers.remove(key.as_str())?),
                }
            }
            Record::Drained { machine, mark } => match mark {
                Some(mark) => {
                    let value = Value::of_drain(mark).seal();
                    self.drains.insert(machine.as_str(), value.as_slice())?;
                }
                None => drop(self.drains.remove(machine.as_str())?),
            },
            Record::Reclaims { cluster, left } if left.is_empty() => {
                drop(self.reclaims.remove(cluster.as_str())?);
            }
            Record::Reclaims { cluster, left } => {
                let value = Value::of_reclaims(left).seal();
                self.reclaims.insert(cluster.as_str(), value.as_slice())?;
            }
            Record::Arrival { need, at } => {
                let (cluster, print) = (need.cluster.as_str(), need.fingerprint.as_str());
                let key = (cluster, print, need.group.as_str());
                match at {
                    Some(at) => drop(self.arrivals.insert(key, format::seconds(*at))?),
                    None => drop(self.arrivals.remove(key)?),
                }
            }
            // In tables of their own.
            Record::Scope(_)
            | Record::Domain { .. }
            | Record::Exception { .. }
            | Record::Transfer { .. }
            | Record::GoneShard(_)
            | Record::Superseded => {}
            Record::Instruction(id) => self.carried_out(id)?,
        }
        Ok(())
    }

    fn carried_out(&mut self, id: &str) -> Result<(), redb::Error> {
        let last = self.instructions.last()?.map(|(at, _)| at.value());
        let next = last.map_or(0, |last| last + 1);
        self.instructions.insert(next, id)?;
        while MOST_INSTRUCTIONS < self.instructions.len()? {
            self.instructions.pop_first()?;
        }
        Ok(())
    }
}

fn mark(
    table: &mut Table<'_, &'static str, ()>,
    key: &str,
    there: bool,
) -> Result<(), redb::Error> {
    if there {
        drop(table.insert(key, ())?)
    } else {
        drop(table.remove(key)?)
    }
    Ok(())
}

#[cfg(test)]
mod tests;
