//! The coordinator's core among shards that keep their side of the rules.

#![allow(clippy::unwrap_used, reason = "helpers of tests may stop a test")]

mod bad_input;
mod commands;
mod defects;
mod examples;
mod reports;
mod restoring;
mod shard;
mod snapshots;
mod support;
mod walks;
mod world;
