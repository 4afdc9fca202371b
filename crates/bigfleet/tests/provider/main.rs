//! `bigfleet provider fake` as a process: who may call it, what its prices do, and what is said
//! of it by the command that certifies.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "../processes/mod.rs"]
mod processes;

mod certified;
mod prices;
mod restarts;
mod tls;
