//! Canonical workloads: what a fleet runs, the machines that run it, and how both change; drawn from
//! a seed, with the same bytes on every machine.
//!
//! ```text
//! Catalog ─▶ Scale ── seed ──▶ Workload ─┬─ machines() ─▶ SeededMachine ─▶ shapes(), commitment()
//!            Preset ───────────────┘     ├─ clusters() ─▶ rows()
//!                                        ├─ fleet()      the whole as one value, for small sizes
//!                                        └─ Churn ─▶ next_cycle() ─▶ changed rows, lost machines
//! ```
//!
//! A workload is streamed, not stored: the 500k preset is 2.4 million machines and 460,000 rows, and
//! holds 2 bytes per free machine, 8 per serving one and 20 per kind of Pod in a cluster, some 20 MB
//! in all. A record or a row is written out when somebody asks for it.
//!
//! The seeded fleet is steady: every serving machine is committed to a row it is needed for, in the
//! form the engine attributes it (folded where a gang folds), so a first decision finds nothing to do.
//! The exception is [`Preset::CoLocated`], which is a benchmark of a fleet that is short.
//!
//! ```
//! use bigfleet_workloads::{Churn, Preset};
//!
//! let workload = Preset::Dev50.build(1);
//! for machine in workload.machines() {
//!     let shape = &workload.shapes()[machine.shape()];
//!     let serves = workload.commitment(&machine).map(|commitment| commitment.key());
//!     assert_eq!(serves.is_some(), machine.serves.is_some(), "{machine} {shape:?}");
//! }
//! let mut churn = Churn::new(&workload, 1);
//! let changed = churn.next_cycle().rows.clone();
//! let rows: Vec<_> = changed.into_iter().map(|changed| churn.row(changed)).collect();
//! assert!(!rows.is_empty());
//! ```
//!
//! Rule ids and sections are those of `docs/spec`.

mod size;

mod catalog;
mod catalogs;
pub mod sizing;

mod demand;
mod draw;
mod hosts;
mod seed;
mod tables;

mod co_located;
mod scale;

mod churn;
mod fleet;
mod told;
mod workload;

pub use catalog::{Archetype, Catalog, CatalogRefused, Gang, Together};
pub use catalogs::{ZONES, cost_routing, coverage, realistic};
pub use churn::{CYCLE, ChangedRow, Changes, Churn, Rates};
pub use draw::RACK_KEY;
pub use hosts::{ARCHETYPE_KEY, Tier};
pub use scale::{Elastic, Preset, Scale};
pub use size::Size;
pub use told::ToldDisruption;
pub use workload::{Cluster, Commitment, Counts, SeededMachine, Serves, Workload};

/// What this crate writes down itself is valid by construction; if it is not, the defect is here and
/// no workload may come of it.
fn valid<T, E: std::fmt::Display>(made: Result<T, E>) -> T {
    made.unwrap_or_else(|refused| panic!("a workload holds an invalid value: {refused}"))
}
