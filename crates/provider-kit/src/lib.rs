//! What every provider shares, so that an author writes substrate code only.
//!
//! ```text
//! callers ══ gRPC ══▶ serve ── events ──▶ Kit ── changes ──▶ store (memory, or a log on disk)
//!                       ▲                  │ effects
//!                       └──── Backend ◀────┘    create, configure, drain, delete: yours
//! ```
//!
//! [`Kit`] is the contract as a plain value: check order, fencing, idempotency, positions, listing.
//! The `serve` feature drives it with tokio and tonic; a simulator drives the same value with a
//! queue of its own. `docs/write-a-provider.md` is the way in.

mod call;
mod event;
mod machine;
mod options;

mod admit;
mod cursor;
mod fencing_marks;
mod kit;
mod list;
mod reconcile;
mod seed;
mod settle;
mod tables;

#[cfg(feature = "serve")]
mod serve;
#[cfg(feature = "serve")]
mod store;

pub use call::{Ack, Ask, Mutation, Refusal, Token, Transition};
pub use event::{CallId, Created, Effect, Event, Outcome, Quote, Task, Work};
pub use fencing_marks::{Mark, MarkKey};
pub use kit::Kit;
pub use list::{ListPage, Query};
pub use machine::{Failure, FailureClass, Instance, Machine, Offer, TextMap};
pub use options::{Fencing, Options, Retry, Timeouts};
pub use seed::{SeedRefused, check as check_instance};
#[cfg(feature = "serve")]
pub use serve::{
    Backend, Cancelled, Clock, Faithful, Job, Provider, Readiness, Reads, Settings, StartRefused,
    run, start,
};
#[cfg(feature = "flags")]
pub use serve::{DurationRefused, ProviderFlags, duration};
#[cfg(feature = "serve")]
pub use store::StoreRefused;
pub use tables::{Change, MachineEntry, Tables};

pub use bigfleet_model::{CapacityType, Host, MachineId, State};
/// What a provider that does not start says for it, in one line.
#[cfg(feature = "serve")]
pub use bigfleet_net::chain;
