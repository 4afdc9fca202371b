//! What surrounds the coordinator's core: consensus, the store, the RPCs, the process, and the formats on disk.
//!
//! ```text
//! RPC ─▶ service ─▶ core ─▶ commands ─▶ consensus ─▶ log, snapshots ─▶ core's tables
//!
//! commands ◀─▶ entry of the log ┐
//!                               ├─ version, checksum, message
//! Snapshot ◀─▶ snapshot         ┘
//! Snapshot ◀── state document of the reference (JSON), one way
//!
//! snapshot ─▶ archive, export ─▶ restore ─▶ data directory of one replica
//! ```
//!
//! What is read is checked as if a stranger had written it.

mod archive;
mod consensus;
mod counts;
mod export;
mod format;
mod forming;
mod metrics_page;
mod process;
mod raft;
mod reference;
mod report_facts;
mod restore;
mod saved;
mod service;
mod tar;

pub use archive::{Archive, ArchiveRefused, WrittenBy};
pub use export::Export;
pub use format::{FormatRefused, read_entry, read_snapshot, write_entry, write_snapshot};
pub use forming::{Forming, ordinal};
pub use process::{Coordinator, Settings, StartRefused, start};
pub use raft::{Belonging, Member, Pace, ReplicaRefused, StoreRefused};
pub use reference::{ReferenceRefused, read_reference};
pub use restore::{RestoreRefused, RestoreSettings, Restored, USUAL_TERM_BUMP, restore};
pub use saved::ArchiveWriter;
pub use tar::TarRefused;
