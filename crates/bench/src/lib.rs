//! Named workloads, measured.
//!
//! [`decide`] measures the decision engine: a cold load, full cycles, cycles at the catalog's own
//! churn in closed loop, and quiet ones. [`core()`] measures a whole shard the same way: what it
//! decides is committed, written and answered. Times are for people; what a gate may rely on is the
//! digest, which pins the meaning, and the work, which counts what was touched.

mod closed_loop;
mod core;
mod decide;
mod memory;
mod percentiles;
mod rig;
mod shard;

pub use crate::core::{CoreReport, core};
pub use decide::{DecideReport, Progress, Settings, decide};
pub use percentiles::Percentiles;
pub use rig::{Facts, Rig};
pub use shard::{Measured, Shard};

/// The digest of the first decision about the co-located fleet.
pub const CO_LOCATED_DIGEST: &str = "eee1cf54f17dd1cab9099191cf9019a9";
/// The digest of the first decision about the 5k fleet of seed 1.
pub const FIVE_K_DIGEST: &str = "e6fc474e321754be4d8546ab30e8c4d3";
