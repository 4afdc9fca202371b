//! Identity: the number of a data directory, and whether it is still the one it was drawn with (CO-13, CO-14).
//!
//! ```text
//! new directory ─▶ number drawn, with the file it is in ─▶ every later start compares
//! a copy is another file; superseded ─▶ refused, until --records-lost forgets everything but the epoch
//! ```
//!
//! Two directories of one shard are told apart by it, whatever their epochs. The device is not compared: a volume that is attached
//! elsewhere has another one, and is the same directory.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::UNIX_EPOCH;

use bigfleet_shard_core::Record;
use redb::{Database, ReadableDatabase, ReadableTable, TableHandle, UntypedTableHandle};
use ring::rand::{SecureRandom, SystemRandom};

use super::{EPOCH_KEY, FORMAT, FORMAT_KEY, META, StoreRefused, Tables, Wanted, ages, holdings};

const DIRECTORY_KEY: &str = "directory";
const INODE_KEY: &str = "inode";
const BORN_KEY: &str = "born";

/// The directory's number: as it was drawn, or drawn now.
pub(super) fn settle(
    database: &Database,
    path: &Path,
    records: &[Record],
    wanted: &Wanted,
) -> Result<u64, StoreRefused> {
    let io = |problem: String| StoreRefused::Io {
        path: path.to_owned(),
        problem,
    };
    let (inode, born) = file(path).map_err(|why| io(why.to_string()))?;
    let known = known(database).map_err(|why| io(why.to_string()))?;
    if wanted.records_lost {
        forget(database).map_err(|why| io(why.to_string()))?;
    } else if records.contains(&Record::Superseded) {
        return Err(StoreRefused::Superseded(path.to_owned()));
    } else if let Some(known) = known {
        if wanted.refuses_copies && (known.inode, known.born) != (inode, born) {
            return Err(StoreRefused::Copy(path.to_owned()));
        }
        return Ok(known.directory);
    }
    let directory = drawn().map_err(io)?;
    let this = Known {
        directory,
        inode,
        born,
    };
    note(database, &this).map_err(|why| io(why.to_string()))?;
    Ok(directory)
}

/// What was noted when the number was drawn.
struct Known {
    directory: u64,
    inode: u64,
    born: u64,
}

fn known(database: &Database) -> Result<Option<Known>, redb::Error> {
    let read = database.begin_read()?;
    if !read.list_tables()?.any(|table| table.name() == META.name()) {
        return Ok(None);
    }
    let meta = read.open_table(META)?;
    let of = |key| Ok::<_, redb::Error>(meta.get(key)?.map(|it| it.value()));
    let (Some(directory), Some(inode)) = (of(DIRECTORY_KEY)?, of(INODE_KEY)?) else {
        return Ok(None);
    };
    let born = of(BORN_KEY)?.unwrap_or_default();
    Ok(Some(Known {
        directory,
        inode,
        born,
    }))
}

fn note(database: &Database, known: &Known) -> Result<(), redb::Error> {
    let write = database.begin_write()?;
    {
        let mut tables = Tables::open(&write)?;
        tables.meta.insert(DIRECTORY_KEY, known.directory)?;
        tables.meta.insert(INODE_KEY, known.inode)?;
        tables.meta.insert(BORN_KEY, known.born)?;
        if tables.meta.get(FORMAT_KEY)?.is_none() {
            tables.meta.insert(FORMAT_KEY, FORMAT)?;
        }
    }
    ages::put(&write, &[])?;
    write.commit()?;
    Ok(())
}

/// Everything but the epoch.
fn forget(database: &Database) -> Result<(), redb::Error> {
    let write = database.begin_write()?;
    let epoch = {
        let meta = write.open_table(META)?;
        meta.get(EPOCH_KEY)?.map(|epoch| epoch.value())
    };
    let tables: Vec<UntypedTableHandle> = write.list_tables()?.collect();
    for table in tables {
        write.delete_table(table)?;
    }
    {
        let mut tables = Tables::open(&write)?;
        if let Some(epoch) = epoch {
            tables.meta.insert(EPOCH_KEY, epoch)?;
        }
        tables.meta.insert(FORMAT_KEY, FORMAT)?;
    }
    write.commit()?;
    Ok(())
}

/// Takes over what an earlier version wrote, before anything is read.
pub(super) fn take_over(database: &Database) -> Result<(), redb::Error> {
    let read = database.begin_read()?;
    let is_new = !read.list_tables()?.any(|table| table.name() == META.name());
    drop(read);
    if is_new {
        return Ok(());
    }
    let write = database.begin_write()?;
    let is_taken = {
        let mut meta = write.open_table(META)?;
        let is_known = meta.get(FORMAT_KEY)?.map(|format| format.value()) == Some(FORMAT);
        let is_taken = is_known && holdings::take_over(&write, &mut meta)?;
        if is_taken {
            meta.insert(FORMAT_KEY, holdings::FORMAT)?;
        }
        is_taken
    };
    if is_taken {
        write.commit()?;
    } else {
        write.abort()?;
    }
    Ok(())
}

/// What tells a file from a copy of it: its inode, and when it was made, in nanoseconds, where the file system says.
fn file(path: &Path) -> std::io::Result<(u64, u64)> {
    let found = std::fs::metadata(path)?;
    let born = found.created().ok();
    let born = born.and_then(|born| born.duration_since(UNIX_EPOCH).ok());
    let nanos = born.map_or(0, |born| born.as_nanos());
    Ok((found.ino(), u64::try_from(nanos).unwrap_or(u64::MAX)))
}

/// Never zero, which is "none" on the wire.
fn drawn() -> Result<u64, String> {
    let mut bytes = [0; 8];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| "the system gives no random number".to_owned())?;
    Ok(u64::from_ne_bytes(bytes).max(1))
}
