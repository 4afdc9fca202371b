//! What stands around a shard's core where nothing is real: a disk, and the answers of providers and operators.
//!
//! ```text
//! Persist ─────────▶ Disk ──────▶ Persisted
//! Call, Get, List ─▶ provider ──▶ CallEnded, GotMachine, ListPage, ListEnded
//! Send ────────────▶ operator ──▶ BlobAnswered, DrainReported
//! ```
//!
//! The simulator, the core's own tests and the bench each put a core into a world of their own. When an
//! answer comes, and whether it goes wrong, is theirs to decide; what it looks like if it goes right is
//! the same for all of them, and is here.

mod disk;
mod operator;
mod provider;

pub use disk::Disk;
pub use operator::{blob, obey};
pub use provider::{bare, call_ended, found, listed, shown};
