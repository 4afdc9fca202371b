//! Replaced: a store written whole, and put where another one was.
//!
//! The old file is locked from the first look until the new one is in its place, so that no process can begin on it meanwhile.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use openraft::CommittedLeaderId;
use redb::Database;

use super::messages::Stored;
use super::store::{
    Belonging, FILE, Kept, StoreRefused, belonging_of, database_refused, drawn, fill, folder_of,
};
use super::types::{LogId, Member, Membership, SnapshotMeta, StoredMembership, Vote};
use crate::restore::sync_folder;

/// A store that no other process has. One that is damaged is nobody's, and its group is not known.
#[derive(Debug)]
pub(crate) struct Held {
    /// Dropped last: it is the lock.
    _database: Option<Database>,
    belonging: Belonging,
}

impl Held {
    /// The group it belongs to.
    pub(crate) fn cluster(&self) -> Option<&str> {
        self.belonging.cluster.as_deref()
    }
}

/// Looks into a data directory and keeps others out of its store; `None` if there is none.
pub(crate) fn hold(folder: &Path) -> Result<Option<Held>, StoreRefused> {
    let path = folder.join(FILE);
    if !path.exists() {
        return Ok(None);
    }
    match Database::open(&path) {
        Err(redb::DatabaseError::DatabaseAlreadyOpen) => Err(StoreRefused::InUse(path)),
        // A damaged store is what one restores over.
        Err(why) => {
            tracing::warn!(%why, "the store that is there does not read");
            let belonging = Belonging::default();
            Ok(Some(Held {
                _database: None,
                belonging,
            }))
        }
        Ok(database) => {
            let belonging = belonging_of(&database).unwrap_or_default();
            Ok(Some(Held {
                _database: Some(database),
                belonging,
            }))
        }
    }
}

/// What a replica begins with that is its whole group.
#[derive(Clone, Debug)]
pub(crate) struct NewStore {
    pub(crate) cluster: String,
    pub(crate) generation: u64,
    pub(crate) member: Member,
    /// The place in the log its tables stand for.
    pub(crate) index: u64,
    pub(crate) term: u64,
    /// The tables, as a snapshot.
    pub(crate) data: Vec<u8>,
}

/// A store that is on disk, beside where it belongs. Removed if it does not get there.
#[derive(Debug)]
pub(crate) struct Written {
    folder: PathBuf,
    beside: PathBuf,
}

/// Writes a store whole, beside the place it is for.
pub(crate) fn write_new(folder: &Path, new: &NewStore) -> Result<Written, StoreRefused> {
    folder_of(folder)?;
    let beside = folder.join(format!("{FILE}.new"));
    let failed = |source| StoreRefused::Io {
        path: beside.clone(),
        source,
    };
    if beside.exists() {
        if let Err(redb::DatabaseError::DatabaseAlreadyOpen) = Database::open(&beside) {
            return Err(StoreRefused::InUse(beside));
        }
        // What a restore left that was cut short.
        fs::remove_file(&beside).map_err(failed)?;
    }
    let written = Written {
        folder: folder.to_owned(),
        beside: beside.clone(),
    };
    let directory = drawn()?;
    let at = LogId::new(CommittedLeaderId::new(new.term, directory), new.index);
    let members = std::collections::BTreeMap::from([(directory, new.member.clone())]);
    let voters = std::collections::BTreeSet::from([directory]);
    let membership = Membership::new(vec![voters], members);
    let meta = SnapshotMeta {
        last_log_id: Some(at),
        last_membership: StoredMembership::new(Some(at), membership),
        snapshot_id: format!("{}-{}", new.term, new.index),
    };
    let kept = Kept {
        meta,
        data: new.data.clone(),
    };
    let belonging = Belonging {
        cluster: Some(new.cluster.clone()),
        generation: new.generation,
    };
    // Whoever leads next does so in a later term than any entry has.
    let vote = Vote::new(new.term, directory).write();
    let made = fill(&beside, directory, &belonging, &vote, &at.write(), &kept);
    made.map_err(database_refused(&beside))?;
    Ok(written)
}

impl Written {
    /// Puts it in place, in one step: at every moment there is the old store or the new one. The old one gets a second name before.
    pub(crate) fn put_in_place(
        self,
        held: Option<Held>,
        keep_in: &Path,
    ) -> Result<Option<PathBuf>, (PathBuf, io::Error)> {
        let place = self.folder.join(FILE);
        let moved = held.is_some().then(|| keep_in.join(FILE));
        if let Some(kept) = &moved {
            let linked = fs::create_dir_all(keep_in)
                .and_then(|()| fs::hard_link(&place, kept))
                .and_then(|()| sync_folder(keep_in));
            linked.map_err(|why| (kept.clone(), why))?;
        }
        let renamed = fs::rename(&self.beside, &place).and_then(|()| sync_folder(&self.folder));
        renamed.map_err(|why| (place, why))?;
        drop(held);
        Ok(moved)
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        // After a rename there is none of that name.
        drop(fs::remove_file(&self.beside));
    }
}
