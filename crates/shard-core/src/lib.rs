//! A shard as a value: what it knows, what it decided, what is on its way; events in, effects out.
//!
//! ```text
//!            ┌─────────────────────────────── ShardCore ───────────────────────────────┐
//! List, Get ─▶ supply ─▶ decide ─▶ rails ─▶ commit ─▶ journal ─▶ Persist                │
//! roll-ups ──▶ demand ─────┘         │         │         │ barrier                      │
//! operators ─▶ sessions              │         ▼         ▼                              │
//! calls ─────▶ settle ◀──────────────┴─── gate ◀────── work                             │
//!            └─────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! [`ShardCore::handle`] is the one way in. The runtime and the simulator drive the same value. It
//! reads no clock, no file and no random number: time is an argument, ids are counters and the epoch.
//! The rules are in `docs/spec/shard.md`, and a comment names the rule it serves.
//!
//! # Parts
//!
//! | Part | Owns | Keeps true |
//! |---|---|---|
//! | `supply` | machines, the engine, what the provider said, nodes, what is whose | inventory, indexes and engine agree; what is gone is gone from all of it |
//! | `demand` | rows, shortfalls, parking, hints, churn of gangs | the rows in force are those the engine was told |
//! | `work` | operations, who waits for what, calls on the wire | an operation is in exactly one stage, and listed there and nowhere else |
//! | `rails` | reclaim cap, quarantine, pauses, fencing, incidents, backoffs, released clusters | a rail lets pass or holds back, and never changes a decision |
//! | `leaving` | admins' marks, providers' notices, how far each machine has come | of two words the stronger one counts |
//! | `sessions` | connected operators | one session per cluster, one cluster per session |
//! | `journal` | what is to reach the disk | what is pending is in the next write, and a flush is armed |
//! | `schedule` | reminders and the pace of cycles | once a cycle has begun another is due |
//! | `holdings` | scope, domains, exceptions, transfer records | a domain is held until nothing of it can still be acquired here |
//! | `uplink` | term, instructions, acks | the term never goes back; an instruction is carried out once |
//! | `reads` | nothing but the verdicts last asked for | reading changes nothing |
//!
//! Fields are private to a part. A part is handed what it needs and answers with a value: `demand` gets
//! `supply`'s engine to tell its rows to and its stock to count hints from, `reads` gets shared references
//! to all of them, and no other part knows another. `core` says in which order they are asked, one file
//! per kind of event: `cycle`, `gate`, `settle`, `breakers`, `drains`, `lists`, `machines`, `nodes`, `sessions`,
//! `roll_ups`, `admin`, `above`, `leaving`, `restart`, `persistence`, `incident`.
//!
//! Four invariants carry the rest. A machine's state changes at commit, never in a call (DC-1). No call,
//! instruction or blob request leaves before its commit is on disk (SH-5). Everything that acts on a
//! machine leaves at one place, the gate (SH-16). What cannot happen is said aloud and closes it (SH-21).
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
//! to use; carrying a [`Report`] and its answer to the shard link. Not built: the steps of moves of machines between
//! shards, which are answered as invalid; what they leave on disk and on the wire is laid down.

mod audit;
mod defect;
mod effect;
mod event;
mod record;
mod settings;

mod core;

mod demand;
mod holdings;
mod journal;
mod leaving;
mod list_pace;
mod rails;
mod reads;
mod schedule;
mod sessions;
mod set_back;
mod supply;
mod uplink;
mod work;

mod counters;
mod histogram;
mod intern;
mod lane;

pub use crate::core::{LateAnswer, ShardCore, StartRefused, next_epoch};
pub use audit::{AuditRecord, Outcome};
pub use counters::{Counters, Rejections};
pub use defect::{AboveDefect, Defect};
pub use demand::{GangChurn, ReportedShortfall, Shortfall, Withheld};
pub use effect::{
    Alert, Barrier, CloseReason, Confidence, Echo, Effect, Frame, GetId, ListId, NodeState,
    OperationId, ProviderCall, RequestId, Token,
};
pub use event::{
    BlobAnswer, CallOutcome, Code, DrainPhase, Event, Features, Got, Listed, NodeFact, PausedBy,
    SessionId, Sighting,
};
pub use histogram::{Histogram, Latencies, Phase};
pub use holdings::{
    Exception, ExceptionKind, Held, HeldDomain, HeldScope, Stamp, ToldScope, TransferRecord,
    TransferRole, TransferState,
};
pub use lane::RollUpLane;
pub use leaving::{DrainMark, LeavingPhase, LeavingSource, LeavingView, LeavingWait};
pub use rails::{
    Baseline, BreakerKey, JoinStep, KeptBreaker, KeptPause, Pause, PauseNote, Pool, Scope,
};
pub use reads::{
    Awaits, BackoffView, BreakerView, CapacityPool, CappedView, ClusterView, Decided, Export,
    Gauges, HeldView, MachineFilter, MachineView, NeedStage, NeedView, Number, PAGE, Page,
    Progress, RailsView, Report, Stage, Summary, Trouble, Unavailable, Value, WorkView, explain,
};
pub use record::{Kept, KeptOperation, Record};
pub use settings::{Rails, ShardConfig};
pub use supply::GaugeKey;
pub use uplink::{Answer, Disposition, Domain, Instruction, InstructionAck, Order};
