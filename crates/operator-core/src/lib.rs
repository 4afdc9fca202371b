//! A cluster's operator and its pod controller as values: what they decide; events in, effects out.
//!
//! ```text
//! API server ─▶ list and watch ─▶ ┌──────────────┐ ─▶ writes, evictions, lists of Pods ─▶ API server
//! shard ──────▶ session ────────▶ │ OperatorCore │ ─▶ frames ───────────────────────────▶ shard
//! clock, lease, template ───────▶ └──────────────┘ ─▶ WakeAt, Render, notes, counts
//! ```
//!
//! [`OperatorCore::handle`] is the one way in. It reads no clock, no file and no random number: time is an argument, and
//! whatever is spread over time is drawn from a seed among its settings. What it must not forget is in the cluster itself: the record
//! of a drain on its Node, machines in UpcomingNodes, spares in a ConfigMap. So a new process begins empty and misses
//! nothing. The rules are in `docs/spec/operator.md`, and a comment names the rule it serves.
//!
//! # Parts
//!
//! | Part | Owns | Keeps true |
//! |---|---|---|
//! | `follow` | the objects of one kind | nothing is decided from a list that was never complete |
//! | `demand` | requests as counts per row and unit; guard, pace and answers of roll-ups | equal demand is equal bytes; a loss is not a withdrawal |
//! | `spare` | bins that stuck Pods opened | no Pod that some machine could host waits for ever, and it comes to rest |
//! | `acknowledge` | requests that have not been told | told only what the shard has |
//! | `machines` | which Node is which machine, reports, UpcomingNodes, departures | no guess touches a Node; no object is left behind |
//! | `drain` | one drain per machine | a Pod is evicted only for an instruction heard in this process |
//! | `bootstrap` | the template, tokens, requests for blobs | nothing waits for the API server |
//! | `available`, `served` | hints and what the shard knows of rows | written when it differs, and not too often |
//! | `queue` | what is to be written | one write of one thing at a time; no class starves |
//! | `why` | nothing: what is told of a Pod that waits | what was not read is unknown, never absent |
//! | `session`, `lead` | the way to the shard; whether this process leads | who does not lead is silent |
//!
//! [`PodController`] is a value of its own: Pods and requests in, writes out.
//!
//! Fields are private to a part. `core` says in which order parts are asked, one file per kind of event.
//!
//! # What is not here
//!
//! Watching, HTTP, gRPC, files and the lease itself belong to the runtime, `bigfleet-operator`. Times of the
//! cluster are read as nanoseconds since 1970 on the operator's clock.

mod counters;
mod defect;
mod effect;
mod event;
mod objects;
mod settings;

mod core;

mod acknowledge;
mod available;
mod bootstrap;
mod demand;
mod drain;
mod follow;
mod lead;
mod machines;
mod pods;
mod queue;
mod served;
mod session;
mod spare;
mod why;

mod jitter;
mod limits;
mod sha256;

pub use crate::core::OperatorCore;
pub use bootstrap::{RenderJob, RenderRefused, Template, TemplateRefused, Value};
pub use counters::{Counters, Held};
pub use defect::Defect;
pub use demand::Degraded;
pub use drain::{DRAIN_ANNOTATION, DrainRecord};
pub use effect::{Alert, DrainPhase, Effect, Eviction, Frame, NodeLine, Note, Write};
pub use event::{
    BootstrapRequest, ClosedBy, Disposition, Echo, EffectId, Event, EvictionOutcome, Heard, Hint,
    JoinToken, MachineState, NodeState, OwnerState, OwnersFound, Reclaim, RowStatus, SessionId,
    Target, WriteOutcome,
};
pub use follow::Count;
pub use lead::{LEASE_DURATION, LeaseStep, LeaseWatch, RENEW_EVERY, RENEW_WITHIN};
pub use machines::registry::{MACHINE_HASH_LABEL, MACHINE_LABEL, machine_label};
pub use objects::{
    Availability, AvailableCapacity, AvailableFacts, Kind, LabelRule, LabelSelector, NodeFacts,
    NodeReadiness, Object, ObjectKey, Owner, PeerTerm, Phase, RequestFacts, RequestSpec,
    RequestStatus, Served, SpreadRule, Stuck, StuckReason, Taint, UpcomingFacts, UpcomingNode,
};
pub use pods::{
    ContainerFacts, Controller, PenaltyDefaults, PodBrief, PodConfig, PodController, PodEffect,
    PodEvent, PodFacts, PodPhase, ShownNode, ShownRequest, disruption_of, request_name, request_of,
    stuck_of,
};
pub use settings::OperatorConfig;
pub use why::{
    Account, Hop, HopName, HopState, LeaseSeen, NeedName, NeedSaid, NotRead, ShardSaid, Verdict,
    WaitingPod, WhyFacts, account, machine_to_ask, need_name, node_to_read,
};
