//! The everyday verbs as processes, against a shard that is one too.
//!
//! ```text
//! Operator ══▶ bigfleet shard ──▶ bigfleet provider fake
//!                   ▲
//!                   └── bigfleet get · describe · explain · pause · resume · retire · release · top · decide --from-shard
//! ```

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "../shard_scene/mod.rs"]
mod shard_scene;

mod called;
mod scene;
mod terminal;

mod audit;
mod certificates;
mod completion;
mod drills;
mod habits;
mod letting_go;
mod lists;
mod operations;
mod others;
mod pages;
mod status;
mod steering;
mod taken_home;
mod top;
