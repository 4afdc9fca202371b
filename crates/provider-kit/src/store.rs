//! Stores: where changes go before anyone is told about them.
//!
//! ```text
//! Kit ── pending changes ──▶ Store::commit ── returned ──▶ they survive a kill from here on
//! ```
//!
//! [`Memory`] keeps nothing; [`LogStore`] is a checksummed log on disk. Both are given whole batches,
//! so that many callers share one trip to the disk.

mod import;
mod log;
mod record;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::PathBuf;

use crate::tables::{Change, Tables};

pub(crate) use log::LogStore;

/// Keeps changes over a restart, or refuses to.
pub(crate) trait Store: Send {
    /// Stores a batch: all of it or, with an error, none.
    fn commit(&mut self, changes: &[Change]) -> std::io::Result<()>;

    /// Called between batches: the place to make the store smaller.
    fn compact(&mut self, tables: &Tables) -> std::io::Result<()>;
}

/// Forgets with the process.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Memory;

impl Store for Memory {
    fn commit(&mut self, _: &[Change]) -> std::io::Result<()> {
        Ok(())
    }

    fn compact(&mut self, _: &Tables) -> std::io::Result<()> {
        Ok(())
    }
}

/// A name no other store has: drawn from the randomness the system gives every process.
pub(crate) fn new_incarnation() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Why a state file cannot be used. The provider does not start: a provider without its fencing
/// marks would take orders from anyone.
#[derive(Debug, thiserror::Error)]
pub enum StoreRefused {
    /// The file cannot be read or written.
    #[error("state file {}: {action}", path.display())]
    Io {
        /// The state file.
        path: PathBuf,
        /// The operation that failed, as in "open".
        action: &'static str,
        /// The answer of the operating system.
        source: std::io::Error,
    },
    /// Another process has it.
    #[error("state file {}: in use by another process", .0.display())]
    InUse(PathBuf),
    /// A record that was once complete no longer is.
    #[error("state file {}: record {record} at byte {offset} is damaged: {problem}", path.display())]
    Damaged {
        /// The state file.
        path: PathBuf,
        /// Which record, counted from 1; 0 is the header.
        record: u64,
        /// The byte at which the damage begins.
        offset: u64,
        /// What is wrong with it.
        problem: String,
    },
    /// A JSON state file that cannot be taken over.
    #[error("state file {}: not importable: {problem}", path.display())]
    Import {
        /// The state file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
}
