//! What surrounds the coordinator's core. So far its formats: the log and snapshots as bytes, and the state documents of the
//! reference, read.
//!
//! ```text
//! commands ◀─▶ entry of the log ┐
//!                               ├─ version, checksum, message
//! Snapshot ◀─▶ snapshot         ┘
//! Snapshot ◀── state document of the reference (JSON), one way
//! ```
//!
//! What is read is checked as if a stranger had written it. Consensus, the store, the RPCs and the process are not built yet.

mod format;
mod reference;

pub use format::{FormatRefused, read_entry, read_snapshot, write_entry, write_snapshot};
pub use reference::{ReferenceRefused, read_reference};
