//! `bigfleet provider exec` as a process: the examples on real substrates, restarts, and where bootstrap data goes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "../shard_scene/mod.rs"]
mod shard_scene;

mod check;
mod local_processes;
mod misbehaves;
mod new;
mod restart;
mod scene;
mod secrets;
mod virtual_machines;
