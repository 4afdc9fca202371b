//! `bigfleet shard` as a process: real gRPC, a real store, operators from a script, a provider in a
//! process of its own. One binary, so that the scene is compiled once; a module per subject.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "../shard_scene/mod.rs"]
mod shard_scene;

mod aborts;
mod admin;
mod adversary;
mod capped;
mod coordinator;
mod crowding;
mod departures;
mod drained;
mod flags;
mod following;
mod gates;
mod hostile;
mod identity;
mod kills;
mod listening;
mod measured;
mod open_metrics;
mod panics;
mod providers;
mod reads;
mod soak;
mod taken_back;
mod twins;
mod watching;
