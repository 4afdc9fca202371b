//! A shard as a value: what it knows, what it decided, what is on its way; events in, effects out.
//!
//! ```text
//!            ┌──────────────────────────────── ShardCore ───────────────────────────────┐
//! List, Get ─▶ truth ─▶ ledger ─▶ engine ─▶ cycle: rails, admission ─▶ commit ─▶ Persist │
//! roll-ups ──▶ demand ────┘                                              │ barrier       │
//! operators ─▶ sessions, drains, nodes ◀─────────────────────────────────┤               │
//! calls ─────▶ settle ◀──────────────── gate: pause, fence, slots ◀──────┘               │
//!            └───────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! [`ShardCore::handle`] is the one way in. The runtime and the simulator drive the same value. It
//! reads no clock, no file and no random number: time is an argument, ids are counters and the epoch.
//! The rules are in `docs/spec/shard.md`, and a comment names the rule it serves.
//!
//! Three invariants carry the rest. A machine's state changes at commit, never in a call (DC-1). No
//! call, instruction or blob request leaves before its commit is on disk (SH-5). Everything that acts
//! on a machine leaves at one place, the gate (SH-16).
//!
//! # What it costs
//!
//! A cycle costs what changed: machines are found by hash, rows are compared with the ones sent before
//! them, hints are counted per kind of demand. `bigfleet bench core` measures it, and
//! `docs/performance.md` has the figures.
//!
//! # What is not here
//!
//! Streams and what waits in them, paging, files and TLS belong to the runtime, which has [`RollUpLane`]
//! to use; carrying a [`Report`] and its answer to the shard link. Not built: moves of machines between
//! shards, which are answered as failed.

mod admin;
mod audit;
mod defect;
mod effect;
mod event;
mod record;
mod settings;

mod core;
mod export;
mod numbers;
mod read;
mod report;
mod view;

mod adopt;
mod intern;
mod ledger;
mod ownership;
mod rebuild;
mod stock;
mod truth;

mod demand;
mod guard;
mod hints;
mod parking;
mod rows;
mod shortfall;

mod admission;
mod cycle;
mod rails;

mod breaker;
mod gate;
mod operation;
mod pause;
mod settle;

mod drain;
mod lane;
mod node;
mod rollup;
mod session;

mod churn;
mod counters;
mod histogram;
mod timers;

pub use crate::core::ShardCore;
pub use audit::{AuditRecord, Outcome};
pub use breaker::Pool;
pub use churn::GangChurn;
pub use counters::{Counters, Rejections};
pub use defect::Defect;
pub use effect::{
    Alert, Barrier, CloseReason, Confidence, Echo, Effect, Frame, GetId, ListId, NodeState,
    OperationId, ProviderCall, RequestId, Token,
};
pub use event::{
    BlobAnswer, CallOutcome, Code, DrainPhase, Event, Features, Got, Listed, NodeFact, PausedBy,
    SessionId, Sighting,
};
pub use export::{Export, explain};
pub use guard::Baseline;
pub use histogram::{Histogram, Latencies, Phase};
pub use lane::RollUpLane;
pub use ledger::GaugeKey;
pub use numbers::{Number, Value};
pub use pause::{KeptPause, Pause, PauseNote, Scope};
pub use read::{
    BackoffView, BreakerView, ClusterView, Decided, MachineFilter, MachineView, NeedView, PAGE,
    Page, RailsView, Stage, Unavailable, WorkView,
};
pub use rebuild::{StartRefused, next_epoch};
pub use record::{Kept, KeptOperation, Record};
pub use report::{
    CapacityPool, Disposition, Domain, Instruction, InstructionAck, Order, Report, Summary,
};
pub use settings::{Rails, ShardConfig};
pub use shortfall::{ReportedShortfall, Shortfall, Withheld};
pub use view::{Awaits, Gauges};
