//! `bigfleet provider fake` as a process: who may call it, and what its prices do.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "../processes/mod.rs"]
mod processes;

mod prices;
mod tls;
