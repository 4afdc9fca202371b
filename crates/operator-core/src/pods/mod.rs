//! Pods: what the operator reads of those on a Node that drains, and the pod controller as a value of its own.
//!
//! | File | Idea |
//! |---|---|
//! | `brief` | which Pods a drain has to move (OP-38, OP-52) |

pub(crate) mod brief;

pub use brief::{Controller, PodBrief, PodPhase};
