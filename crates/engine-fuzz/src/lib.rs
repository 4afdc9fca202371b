//! Three engines, one answer: on every step of histories that nobody would think of.
//!
//! ```text
//! seed ─▶ History ── edit, commit, arrive ──▶ trail of fleets ─┬─ oracle ──────┐
//!                                                              ├─ full ────────┼─▶ equal, or a Mismatch
//!                                                              ├─ incremental ─┤        │ minimise
//!                                                              └─ wander ──────┘        ▼
//!                                                                          a few lines of fleet file
//! ```
//!
//! [`History::run`] compares every list of the decision on every step and counts what it has seen, so
//! that a test can tell that it tests something. A [`Subject`] is what is compared; tests put a
//! defect into one and see it caught.

mod coverage;
mod edit;
mod trail;
mod wander;

mod compare;
mod invent;
mod obey;
mod subject;

mod history;
mod minimise;
mod simplify;

pub use compare::{Difference, Way, at_the_end};
pub use coverage::Coverage;
pub use history::{History, Mismatch, Mode};
pub use minimise::minimise;
pub use subject::{Feed, Production, Subject};
pub use trail::{Stop, Then};
pub use wander::wander;
