//! The log: what was committed and what the provider did, for gates, laws and charts.

use crate::clock::Moment;
use bigfleet_model::{ActionKind, ClusterId, MachineId};

/// One committed action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Committed {
    pub(crate) at: Moment,
    pub(crate) kind: ActionKind,
    pub(crate) machine: MachineId,
    /// The cluster that gets or loses the machine.
    pub(crate) cluster: Option<ClusterId>,
    /// Of a Preempt: the priority of whom the machine served, and of whom it is taken for.
    pub(crate) priorities: Option<(i32, i32)>,
}

/// The state of the fleet at a moment, for charts and drift.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) at: Moment,
    /// Needs that are short.
    pub(crate) short: u32,
    /// Needs that are short, by class: other, batch, service, critical.
    pub(crate) short_by_class: [u32; 4],
    /// Machines by state, in the order of [`bigfleet_model::State::ALL`].
    pub(crate) states: [u32; 8],
    /// Each cluster's machines: Configuring, Configured, Draining. Only where a trace is kept.
    pub(crate) clusters: Vec<(ClusterId, [u32; 3])>,
    /// Pods that wait for a node.
    pub(crate) pending: u32,
}

/// What happened, as far as anybody asks afterwards.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    /// Committed actions, in order.
    pub(crate) actions: Vec<Committed>,
    /// Creates the provider took on.
    pub(crate) creates: Vec<Moment>,
    /// Drains the provider took on.
    pub(crate) drains: u64,
    /// One sample per cycle interval.
    pub(crate) samples: Vec<Sample>,
}

impl Log {
    /// How many actions of a kind were committed from one moment up to another.
    pub(crate) fn count(&self, kind: ActionKind, from: Moment, until: Moment) -> u64 {
        let of = self.actions.iter().filter(|one| one.kind == kind);
        of.filter(|one| from <= one.at && one.at < until).count() as u64
    }
}
