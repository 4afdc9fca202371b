//! The Kubernetes side of every process: our three resources as types, calls, and a list and watch.
//!
//! ```text
//! resources ─▶ crds ─▶ what `bigfleet crds` prints
//! kubeconfig ─▶ Cluster ── call ──▶ one request, one answer, or a Refused that says what the server said
//!                  └────── follow ─▶ list and watch: Began Seen Gone Whole Fresh Broken
//! ```
//!
//! Calls are made of a method, a path and bytes, and nothing retries them: what a refusal means is decided by whoever
//! asked. Objects are decoded one by one, into types that hold the fields somebody reads and no others.

mod call;
mod connect;
mod crds;
mod credentials;
mod follow;
mod kubeconfig;
mod moment;
mod resources;
mod schema;
mod watch;

pub use call::{Call, Cause, Refused, StatusSaid};
pub use connect::{Cluster, ConnectRefused};
pub use crds::{crds, crds_yaml};
pub use follow::{Follow, Followed, Followers, Place, Seen};
pub use moment::{micros_text, nanos, seconds_text};
pub use resources::{
    AvailableCapacitySpec, AvailableCapacityStatus, CapacityRequestSpec, CapacityRequestStatus,
    Condition, GROUP, LabelExpression, LabelSelector, NodeReference, OBJECT_VERSION, Peers,
    Quantity, Requirement, ResourceKind, Taint, TopologySpread, UpcomingNodeSpec,
    UpcomingNodeStatus,
};
