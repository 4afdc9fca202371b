//! Log: what the library reads and appends. All of it is in memory; the store has it on disk before it counts.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io;
use std::ops::RangeBounds;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use openraft::storage::{LogFlushed, RaftLogStorage};
use openraft::{LogState, OptionalSend, RaftLogReader, StorageIOError};

use super::store::Store;
use super::types::{Entry, Group, LogId, StorageError, Vote};

#[derive(Debug)]
struct Entries {
    vote: Option<Vote>,
    purged: Option<LogId>,
    log: BTreeMap<u64, Entry>,
}

/// The log of a replica.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    entries: Arc<Mutex<Entries>>,
    store: Store,
}

fn failed(why: &io::Error) -> StorageError {
    StorageIOError::write_logs(why).into()
}

impl Log {
    pub(crate) fn new(
        vote: Option<Vote>,
        purged: Option<LogId>,
        log: BTreeMap<u64, Entry>,
        store: Store,
    ) -> Self {
        let entries = Arc::new(Mutex::new(Entries { vote, purged, log }));
        Self { entries, store }
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RaftLogReader<Group> for Log {
    async fn try_get_log_entries<R: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: R,
    ) -> Result<Vec<Entry>, StorageError> {
        let entries = self.entries();
        Ok(entries
            .log
            .range(range)
            .map(|(_, entry)| entry.clone())
            .collect())
    }
}

impl RaftLogStorage<Group> for Log {
    type LogReader = Self;

    async fn get_log_state(&mut self) -> Result<LogState<Group>, StorageError> {
        let entries = self.entries();
        let last = entries.log.values().next_back().map(|entry| entry.log_id);
        Ok(LogState {
            last_purged_log_id: entries.purged,
            last_log_id: last.or(entries.purged),
        })
    }

    async fn get_log_reader(&mut self) -> Self {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> Result<(), StorageError> {
        let written = self.store.vote(vote).await;
        written.map_err(|why| StorageError::from(StorageIOError::write_vote(&why)))?;
        self.entries().vote = Some(*vote);
        Ok(())
    }

    async fn read_vote(&mut self) -> Result<Option<Vote>, StorageError> {
        Ok(self.entries().vote)
    }

    async fn append<I>(
        &mut self,
        entries: I,
        callback: LogFlushed<Group>,
    ) -> Result<(), StorageError>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let entries: Vec<Entry> = entries.into_iter().collect();
        let sent = self.store.append(&entries, callback);
        sent.map_err(|why| failed(&why))?;
        let entries = entries.into_iter().map(|one| (one.log_id.index, one));
        self.entries().log.extend(entries);
        Ok(())
    }

    async fn truncate(&mut self, log_id: LogId) -> Result<(), StorageError> {
        self.entries().log.split_off(&log_id.index);
        let written = self.store.truncate(log_id.index).await;
        written.map_err(|why| failed(&why))
    }

    async fn purge(&mut self, log_id: LogId) -> Result<(), StorageError> {
        let written = self.store.purge(&log_id).await;
        written.map_err(|why| failed(&why))?;
        let mut entries = self.entries();
        entries.purged = Some(log_id);
        entries.log = entries.log.split_off(&(log_id.index + 1));
        Ok(())
    }
}
