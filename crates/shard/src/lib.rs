//! The shard's hands: everything around [`ShardCore`](bigfleet_shard_core::ShardCore) that touches the
//! world.
//!
//! ```text
//! operators ─▶ session ──┐                                    ┌─▶ store     one commit, then Persisted
//! provider ──▶ answers ──┼─▶ events ─▶ driver: one thread ────┼─▶ provider  Call, Get, List
//! store ─────▶ Persisted ┘      owns the core, takes one      ├─▶ outboxes  one per session, bounded
//! readers, admins ─▶ questions ─▶ thing after another         └─▶ audit file, log, metrics
//! ```
//!
//! One thread owns the core. It awaits events and nothing else: an effect starts work elsewhere and its
//! answer comes back as an event. So a slow provider, a stuck operator, a full disk or a curious reader
//! cannot delay a cycle, and nothing leaves that the store has not acknowledged, because the core holds
//! it back until then.
//!
//! # Asking and telling: the hook for services
//!
//! Whoever serves a gRPC method that looks at the shard or changes it gets a [`Hub`] (cheap to clone):
//!
//! - [`Hub::ask`] runs a closure on the core between two events and answers with what it returns. Keep it
//!   to one bounded page ([`bigfleet_shard_core::PAGE`]); come back for the next. Questions have their own
//!   bounded queue and come after events, a few at a time.
//! - [`Hub::submit`] has the core take an [`Event`](bigfleet_shard_core::Event), runs a closure right after
//!   it, and answers with what that returns: the outcome. What the event set in motion has been started
//!   then, not finished.
//! - Both answer [`Stopping`] when the shard is on its way out: UNAVAILABLE, for a caller.
//!
//! Add the service to `process::router`, which has the `Hub`, and check the caller first with
//! [`bigfleet_net::Caller`].

mod settings;
mod trouble;

mod clock;
mod hash_key;
mod hub;
mod offload;
mod panics;
mod timing;

mod store;

mod calls;
mod departure;
mod digest;
mod incoming;
mod intake;
mod list_problem;
mod listing;
mod outbox;
mod provider;
mod rpcs;
mod session;
mod session_messages;
mod untold_rows;
mod weight;

mod attribution;
mod audit;
mod driver;
mod events;
mod history;
mod intentions;
mod leaving_news;
mod news;
mod pause;
mod publish;
mod stopwatch;
mod turn;

mod causes;
mod fate_text;

pub mod explanation;

mod admin;
mod read;
mod services;

mod process;

pub use audit::Rotation;
pub use hub::{Hub, Stopping};
pub use panics::{Panicked, Task};
pub use pause::PauseFileRefused;
pub use process::{Failed, Shard, StartRefused, start};
pub use settings::{Around, Settings};
pub use store::{StoreRefused, remember};
pub use trouble::Trouble;
