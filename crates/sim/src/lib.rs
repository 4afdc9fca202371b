//! Years of fleet life per hour: the shard's core, the operator's core and the provider's kit under one seeded queue.
//!
//! ```text
//! Scenario ── seed ──▶ Plan ─▶ World ── one event at a time ──▶ Report
//!                               │ the real ShardCore and engine · the real provider kit · the real OperatorCore
//!                               │ clusters whose Pods bind, are evicted and return
//!                               └ invariants after every event; then the faults stop: rest is demanded
//! ```
//!
//! One seed decides everything: latencies, the order of events at one moment, which messages are
//! lost, what breaks when. The same seed gives the same bytes on every machine, so a failure is a
//! scenario's name and a number. There is no thread, no clock and no platform arithmetic in here;
//! running many seeds at once is the caller's business.
//!
//! A simulation that cannot fail proves nothing. Every [`Defect`] is an old mistake behind a switch,
//! and some scenario must object to each of them.

mod chart;
mod clock;
mod dice;
mod size;

mod build;
mod descriptions;
mod plan;

mod cloud;
mod log;
mod pods;
mod process;
mod trace;
mod trace_file;

mod cluster_side;
mod drains;
mod faults;
mod hands;
mod operators;
mod provider;
mod world;

mod gate;
mod watch;

mod defect;
mod mutants;
mod run;
mod scenarios;
mod shorten;

#[cfg(test)]
mod harm;
#[cfg(test)]
mod laws;
#[cfg(test)]
mod metamorphic;

pub use chart::Chart;
pub use clock::Moment;
pub use defect::Defect;
pub use gate::{Missed, Side};
pub use mutants::{Caught, hunt};
pub use run::{Report, run, run_without};
pub use scenarios::{Class, Scenario};
pub use shorten::{NoSuchEntry, Shortened, Without, shorten};
pub use trace_file::{BUILT, TraceFile, TraceRefused, begins_a_trace, line_number, trace_text};
pub use watch::{Broken, Rule};
