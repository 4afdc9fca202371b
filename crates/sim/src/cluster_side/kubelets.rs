//! Kubelets: machines that have joined, as Nodes, and Nodes whose machines are gone.
//!
//! ```text
//! Configured ─▶ boots ─▶ Node, Ready        no longer its own ─▶ silent ─▶ not Ready ─▶ Pods told to end
//! ```
//!
//! A machine that returns under its name finds the Node it left, cordon and all.

use super::{
    Out, Side, SideEvent,
    store::{Resource, in_seconds},
};
use crate::{
    clock::{Moment, seconds},
    size::Size,
};
use bigfleet_model::{MachineId, Shape};
use bigfleet_operator_core::{NodeFacts, Object, ObjectKey, machine_label};
use std::{collections::BTreeMap, sync::Arc};

/// Pods of a Node that is silent for so long are told to end.
const TAINTED_AFTER: u64 = seconds(300);
/// While more than so many in a hundred are silent, none are.
const DISRUPTED: usize = 55;

/// A machine that runs a kubelet of this cluster.
#[derive(Clone, Debug)]
pub(super) struct Kubelet {
    boot: u64,
    shape: Arc<Shape>,
    provider_id: String,
    is_registered: bool,
}

/// The name of a machine's Node.
pub(crate) fn node_name(machine: &MachineId) -> String {
    format!("node-{machine}")
}

/// The machine whose Node has this name.
pub(crate) fn machine_named(node: &str) -> Option<MachineId> {
    MachineId::new(node.strip_prefix("node-")?).ok()
}

impl Side {
    /// Whether a machine is of this cluster as far as its kubelet knows.
    pub(crate) fn runs(&self, machine: &MachineId) -> bool {
        self.kubelets.contains_key(machine)
    }

    /// Whether it is a Node.
    pub(crate) fn has_node(&self, machine: &MachineId) -> bool {
        let known = self.kubelets.get(machine);
        known.is_some_and(|kubelet| kubelet.is_registered)
    }

    pub(super) fn runs_node(&self, node: &str) -> bool {
        machine_named(node).is_some_and(|machine| self.has_node(&machine))
    }

    /// A machine is the cluster's own: it becomes a Node after so many milliseconds.
    pub(crate) fn boot(
        &mut self,
        now: Moment,
        machine: MachineId,
        shape: Arc<Shape>,
        provider_id: String,
        takes: u64,
    ) {
        self.boots += 1;
        let boot = self.boots;
        let kubelet = Kubelet {
            boot,
            shape,
            provider_id,
            is_registered: false,
        };
        self.kubelets.insert(machine.clone(), kubelet);
        self.planned
            .push((now.after(takes), SideEvent::Registers(machine, boot)));
    }

    /// It is so no longer, whatever ran on it.
    pub(crate) fn halt(&mut self, now: Moment, machine: &MachineId) {
        self.kubelets.remove(machine);
        let takes = self.dice.between(1_000, 40_000);
        self.planned
            .push((now.after(takes), SideEvent::Silent(machine.clone())));
    }

    pub(super) fn register(&mut self, now: Moment, machine: &MachineId, boot: u64) {
        let Some(kubelet) = self.kubelets.get_mut(machine) else {
            return;
        };
        if kubelet.boot != boot {
            return;
        }
        kubelet.is_registered = true;
        let shape = Arc::clone(&kubelet.shape);
        let provider_id = kubelet.provider_id.clone();
        let name = node_name(machine);
        let mut labels: BTreeMap<String, String> = shape
            .attributes()
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect();
        if self.plan.nodes_are_labelled {
            let (key, value) = machine_label(machine.as_str());
            labels.insert(key.to_owned(), value);
        }
        let at = in_seconds(now.time());
        if self.store.node(&name).is_some() {
            self.store.change_node(&name, |node| {
                (node.is_ready, node.ready_since) = (true, at);
                node.labels.extend(labels);
            });
            return;
        }
        let usable = match &shape.allocatable {
            Some(_) => Size::of(&shape),
            None => Size::of(&shape).part(self.plan.usable),
        };
        let uid = self.store.next_uid();
        self.store.put(Object::Node(Box::new(NodeFacts {
            name,
            uid,
            version: String::new(),
            created: at,
            labels,
            provider_id,
            is_ready: true,
            ready_since: at,
            is_cordoned: false,
            allocatable: usable.amounts(),
            drain: None,
            disruption: None,
            empty_since: None,
            removable_since: None,
        })));
    }

    /// Nobody has heard of a Node for a while.
    pub(super) fn silent(&mut self, now: Moment, machine: &MachineId) {
        if self.has_node(machine) && self.partitioned_until <= now {
            return; // it is back
        }
        let name = node_name(machine);
        let at = in_seconds(now.time());
        self.store.change_node(&name, |node| {
            if node.is_ready {
                (node.is_ready, node.ready_since) = (false, at);
            }
        });
        let taints = now.after(TAINTED_AFTER);
        self.planned.push((taints, SideEvent::Tainted(name)));
    }

    /// Pods of a Node that stays silent are told to end, and others take their place.
    pub(super) fn tainted(&mut self, now: Moment, name: &str) {
        let Some(node) = self.store.node(name).filter(|node| !node.is_ready) else {
            return;
        };
        let since = now.time().duration_since(node.ready_since).as_millis() as u64;
        let (mut silent, mut all) = (0, 0);
        for node in self.store.nodes() {
            all += 1;
            silent += usize::from(!node.is_ready);
        }
        if since < TAINTED_AFTER || DISRUPTED * all < silent * 100 {
            let again = now.after(seconds(30));
            self.planned
                .push((again, SideEvent::Tainted(name.to_owned())));
            return;
        }
        let pods = self.store.pods_on(name).filter(|pod| !pod.is_terminating);
        let pods: Vec<ObjectKey> = pods.map(|pod| pod.key.clone()).collect();
        for key in pods {
            self.end_pod(now, &key);
        }
    }

    /// Nodes cannot be heard for so many milliseconds, though they run.
    pub(crate) fn partition(&mut self, now: Moment, millis: u64) {
        self.partitioned_until = now.after(millis);
        let machines: Vec<MachineId> = self.kubelets.keys().cloned().collect();
        let silent = now.after(self.dice.between(1_000, 40_000));
        for machine in machines {
            self.planned.push((silent, SideEvent::Silent(machine)));
        }
        self.planned
            .push((self.partitioned_until, SideEvent::Heard));
    }

    /// They are heard again, those that still run.
    pub(super) fn heard_again(&mut self, now: Moment) {
        let at = in_seconds(now.time());
        let there = self.kubelets.iter().filter(|(_, one)| one.is_registered);
        let names: Vec<String> = there.map(|(machine, _)| node_name(machine)).collect();
        for name in names {
            self.store.change_node(&name, |node| {
                if !node.is_ready {
                    (node.is_ready, node.ready_since) = (true, at);
                }
            });
        }
    }

    /// A Node object of a machine is not there, though it runs: its kubelet makes it again.
    pub(super) fn node_object_gone(&mut self, now: Moment, name: &str, out: &mut Out) {
        let machine = machine_named(name);
        let running = machine.filter(|machine| self.has_node(machine));
        if let Some(machine) = running {
            out.line(|| format!("{name} is gone though it runs"));
            let boot = self.kubelets.get(&machine).map_or(0, |one| one.boot);
            let again = now.after(seconds(10));
            self.planned
                .push((again, SideEvent::Registers(machine, boot)));
        }
        self.is_to_collect = true;
    }

    /// A Pod that was placed runs.
    pub(super) fn runs_now(&mut self, now: Moment, key: &ObjectKey) {
        let Some(pod) = self.store.pod(key) else {
            return;
        };
        let node = pod.node.clone();
        if self.runs_node(&node) && self.partitioned_until <= now {
            self.store.change_pod(key, |pod| pod.is_running = true);
        } else if self.store.node(&node).is_some() {
            let again = now.after(seconds(5));
            self.planned.push((again, SideEvent::Runs(key.clone())));
        }
    }

    /// A person cordons a Node that nobody drains.
    pub(super) fn person_cordons(&mut self, count: usize, out: &mut Out) {
        let open = self.store.nodes();
        let open = open.filter(|node| !node.is_cordoned && node.drain.is_none() && node.is_ready);
        let mut open: Vec<String> = open.map(|node| node.name.clone()).collect();
        self.dice.shuffle(&mut open);
        for name in open.into_iter().take(count) {
            out.struck("person cordons");
            self.store
                .change_node(&name, |node| node.is_cordoned = true);
            let uid = self.store.node(&name).map(|node| node.uid.clone());
            self.ledger.persons.insert(name, uid.unwrap_or_default());
        }
    }

    /// The person opens what is still cordoned for no other reason.
    pub(super) fn person_uncordons(&mut self) {
        for (name, uid) in std::mem::take(&mut self.ledger.persons) {
            self.store.change_node(&name, |node| {
                node.is_cordoned &= node.uid != uid || node.drain.is_some();
            });
        }
    }

    pub(super) fn wipe_requests(&mut self) {
        self.store.is_crd_there = false;
        let all: Vec<ObjectKey> = self.store.requests().map(|one| one.key.clone()).collect();
        for key in all {
            self.store.remove(Resource::Requests, &key);
        }
    }
}
