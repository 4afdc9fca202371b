//! Rest: what must be so on the side of a cluster once nothing happens any more.

use super::{
    Out, Side,
    kubelets::{machine_named, node_name},
};
use crate::{clock::Moment, watch::Rule};
use bigfleet_model::MachineId;
use bigfleet_operator_core::NodeFacts;
use std::collections::BTreeMap;

/// What the shard has of a machine that is bound to this cluster: whether it is being drained.
pub(super) type Bound = BTreeMap<MachineId, bool>;

impl Side {
    /// Nothing is left behind, nobody waits, and Nodes are open that nobody drains.
    pub(super) fn check_rest(&self, bound: &Bound, is_short: bool, out: &mut Out) {
        for upcoming in self.store.upcoming() {
            let machine = upcoming.machine.as_deref().unwrap_or_default();
            let is_bound =
                MachineId::new(machine).is_ok_and(|machine| bound.contains_key(&machine));
            if !is_bound {
                let name = &upcoming.name;
                out.broke(
                    Rule::NoNodeLeaks,
                    format!("{name} is left, and {machine} is not the cluster's"),
                );
            }
        }
        let is_orphan = |node: &&NodeFacts| {
            let machine = machine_named(&node.name);
            machine.is_none_or(|machine| !bound.contains_key(&machine))
        };
        // Where more than half were not named, Nodes stay as they are: a guess would cost Pods (OP-42).
        let orphans = self.store.nodes().filter(is_orphan).count();
        let is_mass = self.store.nodes().count() < 2 * orphans;
        for node in self.store.nodes() {
            let machine = machine_named(&node.name);
            let drains = machine.as_ref().and_then(|machine| bound.get(machine));
            let name = &node.name;
            let Some(drains) = drains else {
                if is_mass && !node.is_ready {
                    continue;
                }
                out.broke(
                    Rule::NoNodeLeaks,
                    format!("{name} is left, and its machine is not the cluster's"),
                );
                continue;
            };
            let by_person = self.ledger.persons.get(name) == Some(&node.uid);
            if (node.is_cordoned && !by_person || node.drain.is_some()) && !drains {
                out.broke(
                    Rule::Uncordoned,
                    format!("{name} stays cordoned, and nobody drains it"),
                );
            }
        }
        for machine in bound.keys().filter(|machine| self.has_node(machine)) {
            if self.store.node(&node_name(machine)).is_none() {
                out.broke(Rule::NodeKept, format!("{machine} runs and has no Node"));
            }
        }
        let pending = self.pending();
        if 0 < pending && !is_short {
            let waits = self.store.pods().find(|pod| pod.node.is_empty());
            let waits = waits.map_or("one that was not made", |pod| pod.key.name.as_str());
            out.broke(
                Rule::EveryPodRuns,
                format!("{pending} Pods wait in the end, {waits} among them"),
            );
        }
    }

    /// Whether a process leads, knows everything and waits for nothing.
    pub(super) fn is_settled(&self) -> bool {
        let leader = self.leader().and_then(|number| self.operators.get(&number));
        // Nobody ends a Pod on a Node that is silent.
        let is_heard = |node: &str| self.store.node(node).is_some_and(|node| node.is_ready);
        let mut placed = self.store.pods().filter(|pod| is_heard(&pod.node));
        let waits = placed.any(|pod| pod.is_terminating || !pod.is_running);
        self.controller.is_some()
            && !waits
            && leader.is_some_and(|process| {
                process.core.is_whole() && process.core.writes_waiting() == 0
            })
    }

    /// What counts as an action: writes, evictions, and when something last changed.
    pub(super) fn done(&self) -> (u64, u64, Moment) {
        (self.writes, self.evicted, self.stirred_at)
    }
}
