//! Export: whoever leads puts a backup into a folder, every few minutes.
//!
//! ```text
//! folder/.tmp-<replica>/ ─▶ written, on disk, read again ─▶ folder/<time>-<term>-<index>/ ─▶ latest ─▶ the oldest go
//! ```
//!
//! A folder meant to be somewhere else: a mounted bucket, another zone. One that is full or slow holds nothing up but the next export.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::archive::{Archive, ArchiveRefused, META, STATE, meta_of};
use crate::consensus::Consensus;
use crate::counts::Counts;
use crate::raft::SharedCore;

/// Between two looks at whether an export is due.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Where backups go, how often, and how many are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// The folder; made if there is none.
    pub folder: PathBuf,
    /// Between two exports.
    pub interval: Duration,
    /// The newest so many are kept.
    pub retain: usize,
}

/// Exports for as long as the process runs, whenever this replica leads.
pub(crate) async fn keep<C: Consensus>(
    export: Export,
    name: String,
    consensus: Arc<C>,
    core: SharedCore,
    counts: Arc<Counts>,
) {
    let mut last: Option<Instant> = None;
    loop {
        tokio::time::sleep(LOOK_EVERY.min(export.interval)).await;
        let leads = consensus.view().has_quorum && core.lock().is_leading();
        let is_due = last.is_none_or(|at| export.interval <= at.elapsed());
        if !(leads && is_due) {
            continue;
        }
        last = Some(Instant::now());
        let done = once(&export, &name, consensus.as_ref(), &counts).await;
        counts.exported(done.is_ok());
        match done {
            Ok(path) => tracing::info!(path, "snapshot exported"),
            Err(problem) => tracing::warn!(problem, "snapshot not exported"),
        }
    }
}

async fn once<C: Consensus>(
    export: &Export,
    name: &str,
    consensus: &C,
    counts: &Counts,
) -> Result<String, String> {
    let (index, term, data) = consensus.snapshot().await?;
    counts.state_bytes(data.len());
    let (export, name) = (export.clone(), name.to_owned());
    // A disk that hangs must not hold up a thread that keeps the group alive.
    let written = tokio::task::spawn_blocking(move || write(&export, &name, index, term, &data));
    let written = written.await.map_err(|why| why.to_string())?;
    let path = written.map_err(|why| why.to_string())?;
    Ok(path.display().to_string())
}

/// One export: in place whole, or not there.
fn write(
    export: &Export,
    name: &str,
    index: u64,
    term: u64,
    data: &[u8],
) -> Result<PathBuf, ArchiveRefused> {
    let folder = &export.folder;
    let spool = folder.join(format!(".tmp-{name}"));
    let time = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S");
    let named = format!("{time}-{term}-{index}");
    let place = folder.join(&named);
    let put = || -> io::Result<()> {
        fs::create_dir_all(folder)?;
        // What an export left that was cut short.
        drop(fs::remove_dir_all(&spool));
        fs::create_dir(&spool)?;
        durable(&spool.join(META), &meta_of(index, term, data))?;
        durable(&spool.join(STATE), data)?;
        File::open(&spool)?.sync_all()
    };
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| ArchiveRefused::Io { path, source }
    };
    let written = put().map_err(failed(&spool));
    let checked = written.and_then(|()| Archive::open(&spool));
    if let Err(refused) = checked {
        drop(fs::remove_dir_all(&spool));
        return Err(refused);
    }
    let settle = || -> io::Result<()> {
        fs::rename(&spool, &place)?;
        let link = folder.join(format!("latest.tmp-{name}"));
        drop(fs::remove_file(&link));
        std::os::unix::fs::symlink(&named, &link)?;
        fs::rename(&link, folder.join("latest"))?;
        File::open(folder)?.sync_all()
    };
    settle().map_err(failed(&place))?;
    forget(folder, export.retain).map_err(failed(folder))?;
    Ok(place)
}

fn durable(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Removes the oldest. Names begin with the time, so their order is that of their making.
fn forget(folder: &Path, retain: usize) -> io::Result<()> {
    let mut exports = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if is_export(&name) {
            exports.push(name);
        }
    }
    exports.sort();
    let surplus = exports.len().saturating_sub(retain.max(1));
    let mut oldest = exports.iter().take(surplus);
    oldest.try_for_each(|name| fs::remove_dir_all(folder.join(name)))
}

/// `<date>-<time>-<term>-<index>`: nothing else in the folder is ours to remove.
fn is_export(name: &str) -> bool {
    let parts: Vec<&str> = name.split('-').collect();
    let digits = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let dated = parts.first().map(|date| date.len()) == Some(8);
    parts.len() == 4 && dated && parts.iter().all(digits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write_snapshot;
    use bigfleet_coordinator_core::Tables;

    #[test]
    fn the_newest_are_kept_and_nothing_else_is_touched() {
        let folder = std::env::temp_dir().join(format!("bigfleet-export-{}", std::process::id()));
        drop(fs::remove_dir_all(&folder));
        let export = Export {
            folder: folder.clone(),
            interval: Duration::from_secs(1),
            retain: 2,
        };
        fs::create_dir_all(folder.join("mine")).unwrap();
        // What one that was cut short left behind.
        fs::create_dir_all(folder.join(".tmp-c-0")).unwrap();
        fs::write(folder.join(".tmp-c-0/state"), "half").unwrap();
        let data = write_snapshot(&Tables::default());
        for index in 1..=4 {
            write(&export, "c-0", index, 1, &data).unwrap();
        }
        let latest = Archive::open(&folder.join("latest")).unwrap();
        assert_eq!((latest.index, latest.term), (4, 1));
        let names = fs::read_dir(&folder).unwrap();
        let mut names: Vec<String> = names
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .map(|name| {
                name.rsplit_once('-')
                    .map_or(name.clone(), |(_, it)| it.to_owned())
            })
            .collect();
        names.sort();
        assert_eq!(names, ["3", "4", "latest", "mine"]);
        // A snapshot that does not read is not exported, and what was there stays.
        assert!(write(&export, "c-0", 5, 1, &data[1..]).is_err());
        assert_eq!(Archive::open(&folder.join("latest")).unwrap().index, 4);
        assert!(!folder.join(".tmp-c-0").exists());
        fs::remove_dir_all(&folder).unwrap();
    }
}
