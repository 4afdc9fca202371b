//! Archive: a backup as files, and back.
//!
//! ```text
//! file.tar   meta.json, state          an export   <time>-<term>-<index>/meta.json, state
//!                │        └─ our snapshot, or the state document of the reference
//!                └─ index and term of the last entry in it; ours also has its size, its SHA-256, and a check of all four
//! ```
//!
//! Both read the same. Nothing is believed before all of it has been read: the hash, the check, every row. A backup is found to be damaged
//! when it is made and when somebody asks, and not when it is needed.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use bigfleet_coordinator_core::{Snapshot, Tables};
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use crate::tar::{self, TarRefused};
use crate::{FormatRefused, ReferenceRefused, read_reference, read_snapshot};

/// The first file of an archive.
pub(crate) const META: &str = "meta.json";
/// The second.
pub(crate) const STATE: &str = "state";
/// More than this is no backup of a coordinator.
pub(crate) const MOST_BYTES: u64 = 1 << 30;
const VERSION: u32 = 1;

/// Why a backup is not read.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveRefused {
    /// A file or folder cannot be read or written.
    #[error("{}", path.display())]
    Io {
        /// Which one.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// It is no archive, or a damaged one.
    #[error(transparent)]
    Tar(#[from] TarRefused),
    /// `meta.json` does not read.
    #[error("damaged: {META} does not read")]
    Meta(#[source] serde_json::Error),
    /// A backup has entries in it.
    #[error("not a coordinator snapshot: the index in {META} is 0")]
    NoIndex,
    /// `meta.json` and `state` do not belong together, or one of them is damaged.
    #[error("damaged: {0}")]
    Damaged(String),
    /// The tables do not read.
    #[error("{STATE} does not read")]
    State(#[from] FormatRefused),
    /// The tables of the reference do not read.
    #[error("{STATE} does not read")]
    Reference(#[from] ReferenceRefused),
}

/// Who wrote a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WrittenBy {
    /// A coordinator of ours.
    Bigfleet,
    /// The reference coordinator.
    Reference,
}

/// A backup that was read whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Archive {
    /// The index of the last entry in it.
    pub index: u64,
    /// The term of that entry.
    pub term: u64,
    /// Who wrote it.
    pub written_by: WrittenBy,
    /// The SHA-256 of its tables as they are in the archive, in hex.
    pub sha256: String,
    /// The tables, whose rows fit together.
    pub rows: Snapshot,
}

/// What is said of the tables. Readers of the reference need index and term.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Meta {
    version: u32,
    #[serde(rename = "ID")]
    id: String,
    index: u64,
    term: u64,
    size: u64,
    #[serde(rename = "SHA256", skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
    /// Of index, term, size and hash: a bit that flips here would restore to another place of the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    check: Option<String>,
}

fn sha256(bytes: &[u8]) -> String {
    let sum = digest(&SHA256, bytes);
    let bytes = sum.as_ref().iter();
    bytes.map(|byte| format!("{byte:02x}")).collect()
}

fn check(meta: &Meta, hash: &str) -> String {
    let Meta {
        index, term, size, ..
    } = meta;
    let text = format!("{}|{}|{index}|{term}|{size}|{hash}", meta.version, meta.id);
    sha256(text.as_bytes())
}

/// What an archive says of tables of ours.
pub(crate) fn meta_of(index: u64, term: u64, state: &[u8]) -> Vec<u8> {
    let hash = sha256(state);
    let mut meta = Meta {
        version: VERSION,
        id: format!("{term}-{index}"),
        index,
        term,
        size: state.len() as u64,
        ..Meta::default()
    };
    meta.check = Some(check(&meta, &hash));
    meta.sha256 = Some(hash);
    // Texts and numbers always serialise.
    let mut text = serde_json::to_vec_pretty(&meta).unwrap_or_default();
    text.push(b'\n');
    text
}

impl Archive {
    /// Reads an archive file or an export folder, whole.
    pub fn open(path: &Path) -> Result<Self, ArchiveRefused> {
        if path.is_dir() {
            let meta = bounded(&path.join(META))?;
            return Self::read(&meta, &bounded(&path.join(STATE))?);
        }
        let bytes = bounded(path)?;
        let (meta, state) = tar::read(&bytes)?;
        Self::read(meta, state)
    }

    fn read(meta: &[u8], state: &[u8]) -> Result<Self, ArchiveRefused> {
        let meta: Meta = serde_json::from_slice(meta).map_err(ArchiveRefused::Meta)?;
        let hash = sha256(state);
        let is_reference = state.first() == Some(&b'{');
        if !is_reference || meta.sha256.is_some() || meta.check.is_some() {
            meta.fits(state, &hash).map_err(ArchiveRefused::Damaged)?;
        }
        if meta.index == 0 {
            return Err(ArchiveRefused::NoIndex);
        }
        let (written_by, rows) = if is_reference {
            (WrittenBy::Reference, read_reference(state)?)
        } else {
            let rows = read_snapshot(state)?;
            let tables = Tables::from_snapshot(rows).map_err(FormatRefused::from)?;
            (WrittenBy::Bigfleet, tables.snapshot())
        };
        Ok(Self {
            index: meta.index,
            term: meta.term,
            written_by,
            sha256: hash,
            rows,
        })
    }
}

impl Meta {
    fn fits(&self, state: &[u8], hash: &str) -> Result<(), String> {
        let (written, found) = (self.size, state.len() as u64);
        if written != found {
            return Err(format!("{STATE} has {found} bytes, not {written}"));
        }
        if self.sha256.as_deref() != Some(hash) {
            return Err(format!("the SHA-256 of {STATE} is not the one in {META}"));
        }
        if self.check.as_ref() != Some(&check(self, hash)) {
            return Err(format!("{META} is not as it was written"));
        }
        Ok(())
    }
}

fn bounded(path: &Path) -> Result<Vec<u8>, ArchiveRefused> {
    let refused = |source| ArchiveRefused::Io {
        path: path.to_owned(),
        source,
    };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(refused)?;
    let mut file = file.take(MOST_BYTES);
    file.read_to_end(&mut bytes).map_err(refused)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write_snapshot;

    fn archive(meta: &[u8], state: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (name, data) in [(META, meta), (STATE, state)] {
            bytes.extend(tar::header(name, data.len() as u64));
            bytes.extend(data);
            bytes.extend(tar::padding(data.len() as u64));
        }
        bytes.extend(tar::END);
        bytes
    }

    fn parsed(bytes: &[u8]) -> Result<Archive, ArchiveRefused> {
        let (meta, state) = tar::read(bytes)?;
        Archive::read(meta, state)
    }

    fn rows() -> Snapshot {
        let text = r#"{"shards": [{"ID": "s1", "Address": "s1:7780"}], "cluster_to_shard": {"c": "s1"},
            "domain_to_shard": [{"domain": {"Key": "zone", "Value": "a"}, "shard": "s1"}]}"#;
        let mut rows = read_reference(text.as_bytes()).unwrap();
        rows.cluster = Some("group".to_owned());
        rows.reign = 7;
        rows
    }

    #[test]
    fn every_flipped_bit_is_noticed_or_changes_nothing() {
        let tables = Tables::from_snapshot(rows()).unwrap();
        let state = write_snapshot(&tables);
        let whole = archive(&meta_of(41, 3, &state), &state);
        let read = parsed(&whole).unwrap();
        assert_eq!((read.index, read.term, &read.rows), (41, 3, &rows()));
        let mut refused = 0;
        for bit in 0..whole.len() * 8 {
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            match parsed(&flipped) {
                Ok(other) => assert_eq!(other, read, "bit {bit}"),
                Err(_) => refused += 1,
            }
        }
        // Only what fills up the last block of a file, and the end, may flip.
        assert!(refused > (2 * 512 + state.len()) * 8, "{refused}");
    }

    #[test]
    fn an_archive_that_stops_somewhere_is_refused() {
        let tables = Tables::from_snapshot(rows()).unwrap();
        let state = write_snapshot(&tables);
        let meta = meta_of(41, 3, &state);
        let whole = archive(&meta, &state);
        let needed = whole.len() - tar::END.len() - tar::padding(state.len() as u64).len();
        for length in 0..needed {
            assert!(parsed(&whole[..length]).is_err(), "{length} bytes");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        let state = write_snapshot(&Tables::default());
        let other = write_snapshot(&Tables::from_snapshot(rows()).unwrap());
        let meta = meta_of(41, 3, &state);
        let nowhere = meta_of(0, 3, &state);
        let mut turned = Vec::new();
        for (name, data) in [(STATE, &state), (META, &meta)] {
            turned.extend(tar::header(name, data.len() as u64));
            turned.extend(data);
            turned.extend(tar::padding(data.len() as u64));
        }
        turned.extend(tar::END);
        let mut lonely = tar::header(META, meta.len() as u64).to_vec();
        lonely.extend(&meta);
        lonely.extend(tar::padding(meta.len() as u64));
        lonely.extend(tar::END);
        let document = br#"{"shards": [{"ID": "s"}, {"ID": "s"}]}"#;
        let plain = br#"{"Index": 4, "Term": 2, "Version": 1}"#;
        let cases: [(&str, Vec<u8>, &str); 8] = [
            ("other state", archive(&meta, &other), "damaged: state has "),
            (
                "index 0",
                archive(&nowhere, &state),
                "not a coordinator snapshot",
            ),
            (
                "state first",
                turned,
                "not an archive of a coordinator: state comes before meta.json",
            ),
            (
                "no state",
                lonely,
                "not an archive of a coordinator: it has no state",
            ),
            (
                "empty",
                Vec::new(),
                "not an archive of a coordinator: it has no meta.json",
            ),
            ("text", b"hello".repeat(200), "damaged: "),
            (
                "rows",
                archive(plain, document),
                "state does not read: shard s: is there twice",
            ),
            ("no hash", archive(plain, &state), "damaged: state has "),
        ];
        for (case, bytes, words) in cases {
            let refused = bigfleet_net::chain(&parsed(&bytes).unwrap_err());
            assert!(refused.starts_with(words), "{case}: {refused}");
        }
    }

    #[test]
    fn a_reference_archive_is_read() {
        let state = br#"{"shards": [{"ID": "s1"}], "quotas": []}"#;
        let meta = br#"{"Version": 1, "ID": "2-4-1", "Index": 4, "Term": 2, "Peers": "kQ==",
            "Configuration": {"Servers": [{"Suffrage": 0, "ID": "a-0", "Address": "10.0.0.1:7791"}]}, "ConfigurationIndex": 1, "Size": 40}"#;
        let read = parsed(&archive(meta, state)).unwrap();
        assert_eq!((read.index, read.term), (4, 2));
        assert_eq!(read.written_by, WrittenBy::Reference);
        assert_eq!(read.rows.shards.len(), 1);
    }
}
