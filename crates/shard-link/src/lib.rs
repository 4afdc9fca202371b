//! The link: carries a shard's reports to the coordinator, and its answers back (shard.md §10).
//!
//! ```text
//! shard core ◀─ ask: report ── link ── ReportShard ──▶ coordinator
//!            ◀─── Reported, Answered ──┴──◀ term, scope, foreign, instructions
//! ```
//!
//! The only code on the shard's side that knows there is a coordinator (CO-1). It asks the core like any
//! reader and tells it like any admin; nothing in the shard waits for it, and with nobody to reach it
//! tries again, less and less often, while acks wait in the core. A report that did not arrive changes
//! nothing (CO-4).
//!
//! It finds the replica that leads by itself: several addresses, and the one a follower names (wire 6.16.8).

mod counts;
mod leader;
mod link;
mod messages;

pub use link::{Link, Settings, start};
