//! Serving: the kit driven by tokio and tonic.
//!
//! ```text
//! tonic ── Request ──▶ driver (one thread) ── batch ──▶ Kit ─▶ Store ─▶ answers
//!   ▲                     ▲                                      │ then
//!   └── answers ──────────┼──────────── Settled, TimedOut ◀── Backend work, one task each
//! ```
//!
//! The driver takes whatever has arrived, stores it in one trip to the disk, and only then answers.
//! Reads of a batch are answered before its mutations are handled, so no read ever sees what is not
//! stored, and no lock is held while the disk turns.

mod backend;
mod backend_work;
pub(crate) mod convert;
mod driver;
#[cfg(feature = "flags")]
mod flags;
mod listing;
mod machine_encoding;
mod metrics;
mod periodic;
mod process;
mod service;

pub use backend::{Backend, Cancelled, Job, Readiness};
#[cfg(feature = "flags")]
pub use flags::{DurationRefused, ProviderFlags, duration};
pub use process::{Clock, Provider, Settings, StartRefused, run, start};
pub use service::{Faithful, Reads};
