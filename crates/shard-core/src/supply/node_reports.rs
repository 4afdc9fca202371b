//! Node reports: what operators say of the nodes of their machines, and what that makes of the machines.

use super::{Supply, nodes::node_state};
use crate::effect::NodeState;
use bigfleet_model::{ClusterId, Disruption, Machine, MachineId, State, Time};
use std::{collections::BTreeMap, time::Duration};

/// What an operator's word about a node comes to.
#[derive(Debug)]
pub(crate) struct NodeReport {
    /// When the node must be ready.
    pub(crate) deadline: Option<Time>,
    /// It is ready for the first time since its machine became Configured.
    pub(crate) is_first: bool,
    /// It was taken as not ready, and is ready now.
    pub(crate) is_ready_again: bool,
}

impl Supply {
    /// The name of a machine's node; empty if it is not known.
    pub(crate) fn node_name(&self, id: &MachineId) -> &str {
        self.nodes.name(id)
    }

    /// What an operator is told of a machine (NS-2).
    pub(crate) fn node_state(&self, machine: &Machine) -> NodeState {
        node_state(machine, self.nodes.name(machine.id()))
    }

    pub(crate) fn forget_node(&mut self, id: &MachineId) {
        self.nodes.forget(id);
    }

    /// A machine became Configured; returns when its node must be ready.
    pub(crate) fn expect_node(
        &mut self,
        id: &MachineId,
        is_reported: bool,
        now: Time,
    ) -> Option<Time> {
        self.nodes.expect(id, is_reported, now)
    }

    /// Whether a machine's node was never ready since the machine became Configured.
    pub(crate) fn is_new_node(&self, id: &MachineId) -> bool {
        self.nodes.is_new(id)
    }

    /// How many machines of a cluster are Configured, and their nodes were neither ready since nor given up.
    pub(crate) fn awaited_nodes(&self, cluster: &ClusterId) -> usize {
        let bound = self.bound_to(cluster).filter(|id| {
            let known = self.ledger.get(id);
            self.nodes.is_new(id)
                && !self.ledger.beside(id).not_ready
                && known.is_some_and(|known| known.state() == State::Configured)
        });
        bound.count()
    }

    /// A cluster's machines by their hosts, which is what an operator knows a node by that has no mark
    /// of ours.
    pub(crate) fn by_host(&self, cluster: &ClusterId) -> BTreeMap<String, MachineId> {
        let hosts = self.bound_to(cluster).filter_map(|id| {
            let host = self.get(id)?.host()?;
            Some((host.reference.clone(), id.clone()))
        });
        hosts.filter(|(host, _)| !host.is_empty()).collect()
    }

    /// A cluster's operator speaks of the node of a machine; no name leaves it as it was. `None` if the
    /// machine is not the cluster's.
    pub(crate) fn report_node(
        &mut self,
        cluster: &ClusterId,
        id: &MachineId,
        name: Option<String>,
        is_ready: bool,
        now: Time,
    ) -> Option<NodeReport> {
        let known = self.ledger.get(id)?;
        if known.cluster() != Some(cluster) {
            return None;
        }
        let serves = known.state() == State::Configured;
        let is_first = is_ready && self.nodes.is_new(id);
        let deadline = self.nodes.report(id, name, is_ready, serves, now);
        Some(NodeReport {
            deadline,
            is_first,
            is_ready_again: is_ready && self.set_not_ready(id, false),
        })
    }

    /// A cluster's operator tells what draining a machine of it would disturb, or does not (SH-19).
    pub(crate) fn note_disruption(&mut self, id: &MachineId, told: Option<Disruption>) {
        self.ledger.note_disruption(id, told);
    }

    /// Another operator speaks for a cluster: what the last one told of disruption is not known any more.
    pub(crate) fn forget_disruption(&mut self, cluster: &ClusterId) {
        for id in self.bound_to(cluster).cloned().collect::<Vec<_>>() {
            self.ledger.note_disruption(&id, None);
        }
    }

    /// The cluster of a Configured machine whose node should have become ready by now.
    pub(crate) fn overdue_node(&self, id: &MachineId, now: Time) -> Option<&ClusterId> {
        let known = self.ledger.get(id)?;
        let is_overdue = known.state() == State::Configured && self.nodes.is_overdue(id, now);
        known.cluster().filter(|_| is_overdue)
    }

    /// Whether so many nodes of a cluster are not ready that none of them is to blame (SH-17).
    pub(crate) fn is_partitioned(&mut self, cluster: &ClusterId, now: Time) -> bool {
        let ledger = &self.ledger;
        let serves = |id: &&MachineId| {
            let known = ledger.get(id);
            known.is_some_and(|known| known.state() == State::Configured)
                && ledger.beside(id).leaving.is_none()
        };
        let serving = ledger.bound_to(cluster).filter(serves);
        self.nodes.is_partitioned(cluster, serving, now)
    }

    /// Takes a machine as not ready, unless a tenth of its cluster is within a window; says which.
    pub(crate) fn flip_node(
        &mut self,
        id: &MachineId,
        cluster: &ClusterId,
        window: Duration,
        now: Time,
    ) -> bool {
        let most = (self.ledger.configured(cluster) / 10).max(1) as usize;
        let may_flip = self.nodes.flip(id, cluster, most, window, now);
        if may_flip {
            self.ledger.note(id, |beside| beside.not_ready = true);
        }
        may_flip
    }
}
