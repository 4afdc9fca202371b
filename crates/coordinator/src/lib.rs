//! What surrounds the coordinator's core: consensus, the store, the RPCs, the process, and the formats on disk.
//!
//! ```text
//! RPC ─▶ service ─▶ core ─▶ commands ─▶ consensus ─▶ log, snapshots ─▶ core's tables
//!
//! commands ◀─▶ entry of the log ┐
//!                               ├─ version, checksum, message
//! Snapshot ◀─▶ snapshot         ┘
//! Snapshot ◀── state document of the reference (JSON), one way
//! ```
//!
//! What is read is checked as if a stranger had written it. Not built yet: offline restore, exported snapshots, `raft remove-peer`.

mod consensus;
mod counts;
mod format;
mod forming;
mod process;
mod raft;
mod reference;
mod report_facts;
mod saved;
mod service;

pub use format::{FormatRefused, read_entry, read_snapshot, write_entry, write_snapshot};
pub use forming::{Forming, ordinal};
pub use process::{Coordinator, Settings, StartRefused, start};
pub use raft::{Belonging, Member, Pace, ReplicaRefused, StoreRefused};
pub use reference::{ReferenceRefused, read_reference};
