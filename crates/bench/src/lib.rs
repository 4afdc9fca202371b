//! Named workloads, measured.
//!
//! [`decide`] measures the decision engine: a cold load, full cycles, cycles at the catalog's own
//! churn in closed loop, and quiet ones. Times are for people; what a gate may rely on is the digest,
//! which pins the meaning, and the work, which counts what was touched.

mod closed_loop;
mod decide;
mod memory;
mod percentiles;

pub use decide::{DecideReport, Progress, Settings, decide};
pub use percentiles::Percentiles;
