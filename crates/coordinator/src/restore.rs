//! Restore: a backup becomes the data directory of one replica, which then is the group (CO-46). Offline, never over the network.
//!
//! ```text
//! backup, read whole ─▶ nobody uses the directory, and it is of no other group ─▶ new store beside the old one, on disk
//!                    ─▶ old one also in pre-restore-<time>/ ─▶ new one in its place, in one step
//! ```
//!
//! Whatever goes wrong before the last step, a full disk included, leaves the directory as it was. After it the old store is still there,
//! for whoever finds that this was not the backup they meant.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use bigfleet_coordinator_core::Tables;

use crate::archive::{Archive, WrittenBy};
use crate::raft::{Held, NewStore, drawn, hold, write_new};
use crate::{FormatRefused, Member, StoreRefused, write_snapshot};

/// How far the reign is raised if nobody says otherwise: more elections than a lost group can have held after the backup.
pub const USUAL_TERM_BUMP: u64 = 1 << 20;

/// What to restore into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoreSettings {
    /// The data directory of the replica that starts first; made if there is none.
    pub data_dir: PathBuf,
    /// The replica, as it will be started. Its addresses may be empty: it tells them when it starts.
    pub member: Member,
    /// How far the reign is raised.
    pub term_bump: u64,
}

/// Why nothing was restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreRefused {
    /// The directory.
    #[error(transparent)]
    Store(#[from] StoreRefused),
    /// It has a store that is not of the backup's group.
    #[error(
        "{} belongs to group {present}, and the backup {backup}; restore into an empty directory if that is what you mean",
        path.display()
    )]
    OtherGroup {
        /// The directory.
        path: PathBuf,
        /// Its group.
        present: String,
        /// What the backup says.
        backup: String,
    },
    /// The rows do not fit together with what a restore makes of them.
    #[error("the tables of the backup do not fit")]
    Rows(#[from] FormatRefused),
    /// A file cannot be written or moved.
    #[error("{}; the directory is as it was", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// What a restore made, or would make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The group.
    pub cluster: String,
    /// How often it was restored, this time included.
    pub generation: u64,
    /// Its reign before the next one begins.
    pub reign: u64,
    /// Where the store is that was there before.
    pub moved: Option<PathBuf>,
}

/// Restores; with `dry_run` only says what it would do.
pub fn restore(
    archive: &Archive,
    settings: &RestoreSettings,
    dry_run: bool,
) -> Result<Restored, RestoreRefused> {
    let folder = &settings.data_dir;
    let held = hold(folder)?;
    check_group(archive, folder, held.as_ref())?;
    let mut rows = archive.rows.clone();
    if archive.written_by == WrittenBy::Reference {
        // What its shards heard as the term of the one that leads was the term of its consensus.
        rows.reign = archive.term;
    }
    let cluster = match &rows.cluster {
        Some(cluster) => cluster.clone(),
        None => format!("{:016x}{:016x}", drawn()?, drawn()?),
    };
    rows.cluster = Some(cluster.clone());
    let rows = rows.begin_restore(settings.term_bump);
    let (generation, reign) = (rows.generation, rows.reign);
    let tables = Tables::from_snapshot(rows).map_err(FormatRefused::from)?;
    let mut restored = Restored {
        cluster: cluster.clone(),
        generation,
        reign,
        moved: None,
    };
    if dry_run {
        return Ok(restored);
    }
    let new = NewStore {
        cluster,
        generation,
        member: settings.member.clone(),
        index: archive.index,
        term: archive.term,
        data: write_snapshot(&tables),
    };
    let written = write_new(folder, &new)?;
    restored.moved = written
        .put_in_place(held, &kept_folder(folder))
        .map_err(|(path, source)| RestoreRefused::Io { path, source })?;
    Ok(restored)
}

fn kept_folder(folder: &Path) -> PathBuf {
    let time = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S");
    folder.join(format!("pre-restore-{time}"))
}

fn check_group(
    archive: &Archive,
    folder: &Path,
    held: Option<&Held>,
) -> Result<(), RestoreRefused> {
    let Some(present) = held.and_then(Held::cluster) else {
        return Ok(());
    };
    let backup = match &archive.rows.cluster {
        Some(cluster) if cluster == present => return Ok(()),
        Some(cluster) => format!("to group {cluster}"),
        None => "to none of ours".to_owned(),
    };
    Err(RestoreRefused::OtherGroup {
        path: folder.to_owned(),
        present: present.to_owned(),
        backup,
    })
}

/// Makes a name of a folder durable.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    fs::File::open(folder)?.sync_all()
}
