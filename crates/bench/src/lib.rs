//! Named workloads, measured and judged.
//!
//! ```text
//! decide     the engine alone: a cold load, full cycles, cycles at the catalog's churn, quiet ones
//! core       a shard as a value: what is decided is committed, written and answered
//! processes  a shard, a provider, a coordinator, an operator and a pod controller as programs, measured from outside
//! ```
//!
//! Times are for people, and for the [`Check`]s each report ends in. What a test relies on is the digest,
//! which pins the meaning, and the work, which counts what was touched.

mod checks;
mod memory;
mod percentiles;
mod pinned;

mod closed_loop;
mod rig;

mod decide;
mod growth;
mod told;

mod core;
mod shard;

pub mod processes;

pub use crate::core::{CoreReport, core};
pub use checks::{Check, Judged, Promises};
pub use decide::{DecideReport, Settings, decide};
pub use growth::Growth;
pub use percentiles::Percentiles;
pub use pinned::{CO_LOCATED_DIGEST, FIVE_K_DIGEST};
pub use rig::{Facts, Rig, Units};
pub use shard::{Measured, Shard};
pub use told::Told;

/// Told what is being measured, and how much of how much is done, for whoever shows progress.
pub type Progress<'a> = &'a mut (dyn FnMut(&'static str, usize, usize) + Send);
