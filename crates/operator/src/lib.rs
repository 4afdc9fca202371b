//! Drives `operator-core`: one task owns the value, and everything else only listens or does what it says.
//!
//! ```text
//! list and watch ─▶ ┌─────────┐ ─▶ hands: calls to the API server, evictions, rendering ─▶ ┐
//! session ────────▶ │ process │ ─▶ frames to the shard                                     │ answers
//! lease, clock ───▶ └─────────┘ ◀────────────────────────────────────────────────────────── ┘
//! ```
//!
//! No decision is made here. A read that failed is no event; a write that failed is told to the core, which knows what
//! follows. What a cluster is told to do when this process is gone: nothing. Pods and Nodes stay as they are.
//!
//! [`read_why`] reads what a cluster shows of one Pod, for whoever waits for it; no process is needed for that.
//!
//! The pod controller is a process of its own ([`start_pods`]): it makes a CapacityRequest of every Pod, and may be
//! replaced by anybody's.

mod clock;
mod frames;
mod hands;
mod health;
mod lease;
mod metrics;
mod notes;
mod pods;
mod process;
mod read;
mod secrets;
mod session;
mod settings;
mod template;
mod why;
mod write;

pub use health::serve_probes;
pub use pods::{PodSettings, Pods, start_pods};
pub use process::{Operator, StartRefused, start};
pub use settings::{Leading, OperatorSettings};
pub use template::read_template;
pub use why::{PodNotRead, pod_names, read_why};
