//! What tests are written in: fleets as a few lines of text, before and after.
//!
//! ```
//! use bigfleet_model::Decision;
//! use bigfleet_testkit::{check, fleet};
//!
//! let calm = fleet("m1 Configured a cpu=4 $1\n need a cpu=4");
//! assert_eq!(calm.machines.len(), 1);
//! // A decision function that never does anything passes where nothing is to be done.
//! check(|_| Decision::default(), "m1 Configured a cpu=4 $1", "");
//! ```
//!
//! # Before
//!
//! One thing per line; `#` starts a comment; after the fixed head, tokens come in any order.
//!
//! ```text
//! now 1000
//! holds OnDemand=600 Spot=never
//! cluster b not-ready no-acquire
//! need a name:web cpu=16 min:cpu=4 prio=100 ib=5 rb=6 arrival=9 group=g1 parked
//!        rack=Same zone=In(z1,z2) type=NotIn(m5) gpu-model=Exists tier=DoesNotExist spread=zone/1
//! x1..x3 Configured a cpu=4 memory=16Gi $1.5 p=0.05 type=m5.large zone=z1 Spot rack=r1 own=web
//! ```
//!
//! The need above is one line in a fixture. [`fleet`] documents every token.
//!
//! # After
//!
//! Actions, all of them, in order; beside them any facts the test is about. [`check`] documents
//! them.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "test code: a fixture that cannot be read fails the test, with the line in the message"
)]

mod check;
mod demand;
mod fixture;
mod outcome;
mod supply;

pub mod generate;

#[cfg(test)]
mod tests;

pub use check::check;
pub use fixture::{Fixture, fleet};
pub use outcome::{outcome, story};
