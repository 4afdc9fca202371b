//! Nodes: what operators tell of them (SH-17, SH-19).

use super::{ShardCore, incident::LateAnswer};
use crate::{
    defect::Defect,
    effect::{Alert, Effect},
    event::{NodeFact, SessionId},
    schedule::Timer,
    settings::NODE_FREEZE,
};
use bigfleet_model::{ClusterId, Disruption, MachineId, Time};
use std::collections::{BTreeMap, BTreeSet};

impl ShardCore {
    pub(super) fn nodes_reported(
        &mut self,
        now: Time,
        session: SessionId,
        complete: bool,
        nodes: Vec<NodeFact>,
    ) {
        let Some(cluster) = self.sessions.cluster(session).cloned() else {
            return self.late(LateAnswer::Session);
        };
        self.sessions.note_node_report(&cluster);
        let by_host = if nodes.iter().any(|node| node.machine.is_none()) {
            self.supply.by_host(&cluster)
        } else {
            BTreeMap::new()
        };
        let mut named = BTreeSet::new();
        for fact in nodes {
            let found = || by_host.get(&fact.provider_id).cloned();
            let Some(machine) = fact.machine.or_else(found) else {
                continue;
            };
            let name = Some(fact.node_name);
            self.node_reported(now, &cluster, &machine, name, fact.ready, fact.disruption);
            named.insert(machine);
        }
        if complete {
            let bound: Vec<MachineId> = self.supply.bound_to(&cluster).cloned().collect();
            for machine in bound.into_iter().filter(|id| !named.contains(id)) {
                self.node_reported(now, &cluster, &machine, None, false, None);
            }
        }
    }

    fn node_reported(
        &mut self,
        now: Time,
        cluster: &ClusterId,
        machine: &MachineId,
        name: Option<String>,
        is_ready: bool,
        disruption: Option<Disruption>,
    ) {
        let report = self
            .supply
            .report_node(cluster, machine, name, is_ready, now);
        let Some(report) = report else {
            return self.late(LateAnswer::Node);
        };
        self.supply.note_disruption(machine, disruption);
        if report.is_first {
            self.joined(now, cluster);
        }
        if report.is_ready_again {
            self.remember(machine);
            self.schedule.want_cycle();
        }
        if let Some(deadline) = report.deadline {
            self.schedule.set(deadline, Timer::Node(machine.clone()));
        }
    }

    /// Forgets what operators told of disruption: for whoever tests that it decides nothing by itself.
    pub fn forget_disruption(&mut self) {
        let clusters = self.supply.ledger().clusters().cloned();
        for cluster in clusters.collect::<Vec<_>>() {
            self.supply.forget_disruption(&cluster);
        }
    }

    /// A node should be ready by now. Only an operator that reports nodes, and is there to report
    /// them, is taken at its word.
    pub(super) fn judge_node(&mut self, now: Time, machine: &MachineId, effects: &mut Vec<Effect>) {
        let Some(cluster) = self.supply.overdue_node(machine, now).cloned() else {
            return;
        };
        let session = self.sessions.of(&cluster);
        let reports = session.is_some_and(|session| session.reports_nodes);
        let window = self.schedule.interval();
        let is_partitioned =
            !self.has(Defect::PartitionBelieved) && self.supply.is_partitioned(&cluster, now);
        if reports && !is_partitioned && self.supply.flip_node(machine, &cluster, window, now) {
            self.remember(machine);
            self.schedule.want_cycle();
            if self.supply.is_new_node(machine) {
                self.never_joined(now, machine, &cluster);
            }
            return;
        }
        let again = now + NODE_FREEZE;
        self.schedule.set(again, Timer::Node(machine.clone()));
        if reports {
            effects.push(Effect::Alert(Alert::NodesFrozen { cluster }));
        }
    }
}
