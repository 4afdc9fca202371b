//! The coordinator as a value: which shard owns what. Commands and reports in, tables and answers out.
//!
//! ```text
//! log ────────────────▶ ┌─────────────────┐ ─▶ tables, the same on every replica ─▶ snapshot
//! reports of shards ──▶ │ CoordinatorCore │ ─▶ commands to agree on ─▶ log
//! admins, readers ────▶ └─────────────────┘ ─▶ answers
//! ```
//!
//! Three sentences carry the rest. *Committed before told*: no shard gains what the log does not say it may have. *A loss counts when
//! its shard says so*, from its disk, after it has heard this reign. *Nothing waits in a queue*: what a shard is told is derived from
//! tables and its report. So a leader may die at any moment, and so may a message.
//!
//! Nothing here reads a clock, a file or a random number. The rules are in `docs/spec/coordinator.md`, and a comment names the rule it
//! serves.
//!
//! # Parts
//!
//! | Part | Owns | Keeps true |
//! |---|---|---|
//! | `tables` | shards, identities, domains, clusters, machines, transfers | the same commands make the same tables; what is refused changes nothing |
//! | `tables/heard` | what a shard's words make of them | one holder per domain, one owner per machine on record |
//! | `tables/restore` | what they become after a backup was put back | shards are believed, the backup is not |
//! | `report` | reading a report | every bound is checked before anything is believed |
//! | `answer` | what a shard is told | a function of tables and report |
//! | `leading` | what only a leader knows | it begins empty with every reign |
//! | `core` | the order of checks; steps that wait for agreement | no answer leaves before what it rests on is applied |
//! | `reads` | what people are shown | copies, in order |
//!
//! # What is not here
//!
//! Consensus, disks, formats and gRPC belong to the runtime, `bigfleet-coordinator`. Rebalancing is not built: its tables are,
//! and a transfer that a shard reports is brought to its end, but nothing begins one.

mod defect;
mod limits;
mod names;
mod refused;

mod caller;
mod command;
mod facts;
mod report;

mod tables;

mod answer;
mod counters;
mod leading;

mod core;
mod reads;

pub use crate::core::{AdminRequest, CoordinatorCore, Settings, Step, Ticket};
pub use answer::{Answer, Instruction, Order, TransferStep};
pub use caller::Caller;
pub use command::{Command, Identity};
pub use counters::{Counters, OrderKind, ReportEnd};
pub use defect::Defect;
pub use facts::{Exception, ExceptionKind, Facts, Holdings, RecordState, Stamp, TransferRecord};
pub use limits::TERM_BUMP;
pub use names::{Domain, NameRefused, Provider, ShardId, TransferId};
pub use reads::{DomainCounts, Shown, ShownCluster, ShownReport, ShownShard};
pub use refused::{Code, Refused};
pub use report::{
    Ack, AckOutcome, ExceptionFacts, Pool, ReportFacts, ReportRefused, Scope, Shortfall,
    ShortfallRequirement, Summary, TransferFacts,
};
pub use tables::{
    Applied, DomainRow, IdentityRow, MachineRow, RowRefused, ShardRow, Snapshot, Tables, Transfer,
    TransferState,
};
