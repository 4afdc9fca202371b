//! engine.md §20 in closed loop: static demand is a fixed point, for every latency and completion order.
//!
//! The starts are *clean*: nothing in flight without an intent, every serving machine attributed or
//! claimed. Steady latencies are tried beside random ones, since random ones hide loops.
#![allow(
    clippy::expect_used,
    reason = "test code: what cannot be fails the test"
)]

mod commit;
mod disturbances;
mod driver;
mod fixed_point;
mod leaving;
mod starts;

/// The engine driven. The loop itself knows none.
const DECIDE: driver::Decide = bigfleet_engine::decide;
