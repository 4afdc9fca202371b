//! Machine: entries that were agreed on become tables. Tables are in memory; what is on disk is a snapshot and the log after it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bigfleet_coordinator_core::{CoordinatorCore, Tables};
use openraft::storage::RaftStateMachine;
use openraft::{EntryPayload, OptionalSend, RaftSnapshotBuilder, Snapshot, StorageIOError};

use super::store::{Kept, Store};
use super::types::{Entry, Group, LogId, Outcome, SnapshotMeta, StorageError, StoredMembership};
use crate::{read_entry, read_snapshot, write_snapshot};

/// A replica's core, for whoever serves and for whoever applies.
#[derive(Clone, Debug)]
pub(crate) struct SharedCore(Arc<Mutex<CoordinatorCore>>);

impl SharedCore {
    pub(crate) fn new(core: CoordinatorCore) -> Self {
        Self(Arc::new(Mutex::new(core)))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, CoordinatorCore> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What was applied.
#[derive(Clone, Debug)]
struct Reached {
    last: Option<LogId>,
    membership: StoredMembership,
}

/// The tables of a replica, as the library drives them.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    core: SharedCore,
    reached: Arc<Mutex<Reached>>,
    kept: Arc<Mutex<Option<Kept>>>,
    store: Store,
}

/// A snapshot that cannot be read is damage, and ends the replica.
pub(crate) fn tables_of(data: &[u8]) -> Result<Tables, String> {
    let rows = read_snapshot(data).map_err(|why| why.to_string())?;
    Tables::from_snapshot(rows).map_err(|why| why.to_string())
}

fn damaged(why: String) -> StorageError {
    StorageIOError::read_snapshot(None, &std::io::Error::other(why)).into()
}

impl Machine {
    /// The machine as the snapshot left it; the log brings it up to date.
    pub(crate) fn new(core: SharedCore, kept: Option<Kept>, store: Store) -> Self {
        let reached = kept.as_ref().map_or(
            Reached {
                last: None,
                membership: StoredMembership::default(),
            },
            |kept| Reached {
                last: kept.meta.last_log_id,
                membership: kept.meta.last_membership.clone(),
            },
        );
        Self {
            core,
            reached: Arc::new(Mutex::new(reached)),
            kept: Arc::new(Mutex::new(kept)),
            store,
        }
    }

    fn reached(&self) -> MutexGuard<'_, Reached> {
        self.reached.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kept(&self) -> MutexGuard<'_, Option<Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn keep(&self, kept: Kept) -> Result<(), StorageError> {
        let written = self.store.keep(&kept).await;
        let signature = Some(kept.meta.signature());
        written.map_err(|why| StorageIOError::write_snapshot(signature, &why))?;
        *self.kept() = Some(kept);
        Ok(())
    }
}

impl RaftStateMachine<Group> for Machine {
    type SnapshotBuilder = Self;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, StoredMembership), StorageError> {
        let reached = self.reached();
        Ok((reached.last, reached.membership.clone()))
    }

    async fn apply<I>(&mut self, entries: I) -> Result<Vec<Outcome>, StorageError>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let mut outcomes = Vec::new();
        for entry in entries {
            let mut outcome = Outcome::default();
            // Tables and how far they are change together: a snapshot is taken under both locks.
            let mut core = self.core.lock();
            let mut reached = self.reached();
            reached.last = Some(entry.log_id);
            match entry.payload {
                EntryPayload::Blank => {}
                EntryPayload::Normal(payload) => {
                    // What this release cannot read it must not skip: its tables would be others.
                    let commands = read_entry(&payload.0);
                    let commands = commands.map_err(|why| {
                        let why = std::io::Error::other(why.to_string());
                        StorageError::from(StorageIOError::apply(entry.log_id, &why))
                    })?;
                    outcome = Outcome(core.apply(&commands));
                }
                EntryPayload::Membership(membership) => {
                    reached.membership = StoredMembership::new(Some(entry.log_id), membership);
                }
            }
            outcomes.push(outcome);
        }
        Ok(outcomes)
    }

    async fn get_snapshot_builder(&mut self) -> Self {
        self.clone()
    }

    async fn begin_receiving_snapshot(&mut self) -> Result<Box<Vec<u8>>, StorageError> {
        Ok(Box::default())
    }

    async fn install_snapshot(
        &mut self,
        meta: &SnapshotMeta,
        snapshot: Box<Vec<u8>>,
    ) -> Result<(), StorageError> {
        let (meta, data) = (meta.clone(), *snapshot);
        let tables = tables_of(&data).map_err(damaged)?;
        let (last, membership) = (meta.last_log_id, meta.last_membership.clone());
        self.keep(Kept { meta, data }).await?;
        let mut core = self.core.lock();
        core.install(tables);
        *self.reached() = Reached { last, membership };
        Ok(())
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Snapshot<Group>>, StorageError> {
        let kept = self.kept();
        Ok(kept.as_ref().map(|kept| Snapshot {
            meta: kept.meta.clone(),
            snapshot: Box::new(kept.data.clone()),
        }))
    }
}

impl RaftSnapshotBuilder<Group> for Machine {
    async fn build_snapshot(&mut self) -> Result<Snapshot<Group>, StorageError> {
        let (tables, reached) = {
            let core = self.core.lock();
            (core.tables().clone(), self.reached().clone())
        };
        let data = write_snapshot(&tables);
        let snapshot_id = reached.last.map_or_else(
            || "0-0".to_owned(),
            |last| format!("{}-{}", last.leader_id.term, last.index),
        );
        let meta = SnapshotMeta {
            last_log_id: reached.last,
            last_membership: reached.membership,
            snapshot_id,
        };
        let snapshot = Box::new(data.clone());
        self.keep(Kept {
            meta: meta.clone(),
            data,
        })
        .await?;
        Ok(Snapshot { meta, snapshot })
    }
}
