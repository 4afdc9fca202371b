//! The core in a world of its own: every example of the shard's rules, and histories of them.

#![allow(
    clippy::unwrap_used,
    reason = "test code: what is missing fails the test"
)]

mod support;

mod above;
mod bounds;
mod breakers;
mod cuts;
mod defects;
mod demand;
mod fixed_point;
mod late;
mod leaving;
mod nodes;
mod operators;
mod pace;
mod places;
mod progress;
mod published;
mod rails;
mod reads;
mod repeats;
mod restarts;
mod taken_back;
mod troubles;
mod truth;
mod units;
mod upward;
mod walks;
