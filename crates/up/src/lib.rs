//! The whole system in one process: what a newcomer runs first.
//!
//! ```text
//! clusters that play a scenario ══ Session, gRPC ══▶ shard ── gRPC ──▶ a cloud in memory
//!      ▲ orders                                       │                   ▲ interruptions
//!      └──────────────── scenario ────────────────────┼───────────────────┘
//!                                                     └─ a snapshot per cycle ─▶ lines
//! ```
//!
//! The shard is the one of `bigfleet shard` with its rails on, the cloud the one of `bigfleet provider fake`.
//! Clusters are small values that speak the real operator session. Only time is not real: all three live by
//! one clock that can be made faster, so that a hold of ten minutes is over in seconds.

mod pace;

mod demand;
mod hardware;
mod scenario;

mod cluster;
mod operator;

mod cloud;
mod folder;
mod from_file;

mod cycle_snapshot;
mod lines;
mod maintenance;
mod up;

pub use from_file::{FleetRefused, MOST_MACHINES};
pub use lines::Line;
pub use pace::SPEEDS;
pub use scenario::{Scenario, ScenarioUnknown};
pub use up::{Options, Up, UpRefused};
