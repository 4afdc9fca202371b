//! Pods: what the operator reads of those on a Node that drains, and the pod controller as a value of its own.
//!
//! | File | Idea |
//! |---|---|
//! | `brief` | which Pods a drain has to move (OP-38, OP-52) |
//! | `request` | the request of a Pod, as a function of the Pod (OP-47 to OP-50) |
//! | `seen` | what the scheduler and the Nodes show, as words (OP-60) |
//! | `controller` | what should be, compared with what is |

pub(crate) mod brief;
mod controller;
mod request;
mod seen;

pub use brief::{Controller, PodBrief, PodPhase};
pub use controller::{PodController, PodEffect, PodEvent, ShownNode, ShownRequest};
pub(crate) use request::is_ignored;
pub use request::{ContainerFacts, PenaltyDefaults, PodConfig, PodFacts, request_name, request_of};
pub use seen::{disruption_of, stuck_of};
