//! Nodes: what operators are told of machines, and what they tell of nodes (NS-1, SH-17).
//!
//! ```text
//! change ─▶ NodeState to the cluster it is bound to, or has just left
//! node report ─▶ not Ready for 10 min ─▶ not_ready ─▶ no credit, demand re-driven
//! ```
//!
//! If more than a tenth of a cluster would stop being ready at once, the report is doubted, not the
//! machines.

use crate::{
    ShardCore,
    effect::{Alert, Effect, Frame, NodeState},
    event::{NodeFact, SessionId},
    settings::{NODE_DEADLINE, NODE_FREEZE},
    timers::{Timer, after},
};
use bigfleet_model::{
    ClusterId, INSTANCE_TYPE_KEY, Machine, MachineId, State, Time, Via, WriteRefused, ZONE_KEY,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// What operators said of nodes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Nodes {
    by_machine: BTreeMap<MachineId, Node>,
    /// Marked not ready since, for the freeze.
    flips: BTreeMap<ClusterId, (Time, BTreeSet<MachineId>)>,
}

#[derive(Clone, Debug, Default)]
struct Node {
    name: String,
    ready: bool,
    /// Since when it should be ready and is not.
    waiting: Option<Time>,
}

impl Nodes {
    pub(crate) fn name(&self, machine: &MachineId) -> String {
        let node = self.by_machine.get(machine);
        node.map(|node| node.name.clone()).unwrap_or_default()
    }

    pub(crate) fn forget(&mut self, machine: &MachineId) {
        self.by_machine.remove(machine);
    }
}

/// What an operator is told of a machine (NS-2, NS-3).
pub(crate) fn node_state(machine: &Machine, nodes: &Nodes) -> NodeState {
    let shape = machine.shape();
    let mut labels = shape.labels.clone();
    for (key, value) in [
        (INSTANCE_TYPE_KEY, &shape.instance_type),
        (ZONE_KEY, &shape.zone),
    ] {
        if !value.is_empty() {
            labels.insert(key.to_owned(), value.clone());
        }
    }
    NodeState {
        machine: machine.id().clone(),
        state: machine.state(),
        host: machine.host().cloned(),
        node_name: nodes.name(machine.id()),
        last_error: machine.last_error().to_owned(),
        labels,
        resources: shape.effective().clone(),
        removed: false,
    }
}

impl ShardCore {
    /// The one way a known machine changes (XP-7): written, remembered, notified, measured.
    pub(crate) fn change(
        &mut self,
        now: Time,
        machine: Machine,
        via: Via,
        effects: &mut Vec<Effect>,
    ) {
        let id = machine.id().clone();
        let former = match self.ledger.apply(machine, via, now) {
            Ok(former) => former,
            Err(refused) => {
                let unknown = matches!(refused, WriteRefused::NotFound(_));
                debug_assert!(unknown, "{refused}");
                return;
            }
        };
        let Some(known) = self.ledger.get(&id) else {
            return;
        };
        let left = former.cluster();
        let moved = former.state() != known.state() || left != known.cluster();
        let known_state = known.state();
        let configured = moved && known_state == State::Configured;
        let is_committed = |one: &Machine| one.cluster().is_some() || one.intent().is_some();
        let committed = is_committed(&former) || is_committed(known);
        let (was_for, is_for) = (former.attribution(), known.attribution());
        if was_for != is_for {
            let shape = Arc::clone(known.shape());
            self.count_churn(was_for, is_for, &shape);
        }
        if committed || self.operations.contains_key(&id) {
            self.remember(&id);
        }
        if moved {
            self.notify(&id, left, effects);
        }
        if configured {
            self.serves(now, &id);
        } else if moved && known_state != State::Draining {
            self.nodes.forget(&id); // while it drains, its node is still to be named
        }
    }

    /// A machine became Configured: measured once (PL-2), and its node has a deadline (SH-17).
    fn serves(&mut self, now: Time, id: &MachineId) {
        let Some(known) = self.ledger.get(id) else {
            return;
        };
        let fingerprint = known.assignment().fingerprint.clone();
        let Some(cluster) = known.cluster().cloned() else {
            return;
        };
        let demand = self.demand.clusters.get_mut(&cluster);
        if let Some(took) = demand.and_then(|demand| demand.served(&fingerprint, now)) {
            self.latencies.provisioning.observe(took);
        }
        let node = self.nodes.by_machine.entry(id.clone()).or_default();
        if !node.ready {
            node.waiting = Some(now);
            let deadline = after(now, NODE_DEADLINE);
            self.timers.set(deadline, Timer::Node(id.clone()));
        }
    }

    /// Tells the cluster a machine is bound to, and the one it has just left (NS-4).
    pub(crate) fn notify(
        &self,
        id: &MachineId,
        left: Option<&ClusterId>,
        effects: &mut Vec<Effect>,
    ) {
        let Some(known) = self.ledger.get(id) else {
            return;
        };
        let bound = known.cluster();
        if left != bound {
            let state = match bound {
                // Another's by now. To whom it left it is one that serves nobody.
                Some(_) => State::Idle,
                None => known.state(),
            };
            let left_it = || NodeState {
                state,
                ..node_state(known, &self.nodes)
            };
            self.send_node(left, left_it, effects);
        }
        self.send_node(bound, || node_state(known, &self.nodes), effects);
    }

    pub(crate) fn notify_removed(&self, last: &Machine, effects: &mut Vec<Effect>) {
        let removed = || NodeState {
            removed: true,
            ..node_state(last, &self.nodes)
        };
        self.send_node(last.cluster(), removed, effects);
    }

    fn send_node(
        &self,
        cluster: Option<&ClusterId>,
        state: impl FnOnce() -> NodeState,
        effects: &mut Vec<Effect>,
    ) {
        let session = cluster.and_then(|cluster| self.sessions.of(cluster));
        if let Some(session) = session.filter(|session| session.synced) {
            effects.push(Effect::Send {
                session: session.id,
                frame: Frame::Node(Box::new(state())),
            });
        }
    }

    pub(crate) fn nodes_reported(
        &mut self,
        now: Time,
        session: SessionId,
        complete: bool,
        nodes: Vec<NodeFact>,
    ) {
        let Some(cluster) = self.sessions.cluster(session) else {
            return;
        };
        self.sessions.reports_nodes(&cluster);
        let by_host = match nodes.iter().any(|node| node.machine.is_none()) {
            true => self.by_host(&cluster),
            false => BTreeMap::new(),
        };
        let mut named = BTreeSet::new();
        for fact in nodes {
            let found = || by_host.get(&fact.provider_id).cloned();
            let Some(machine) = fact.machine.or_else(found) else {
                continue;
            };
            self.node_reported(now, &cluster, &machine, fact.node_name, fact.ready);
            named.insert(machine);
        }
        if complete {
            let bound: Vec<MachineId> = self.ledger.bound_to(&cluster).cloned().collect();
            for machine in bound.into_iter().filter(|id| !named.contains(id)) {
                let node_name = self.nodes.name(&machine);
                self.node_reported(now, &cluster, &machine, node_name, false);
            }
        }
    }

    /// A cluster's machines by their hosts, which is what an operator knows a node by that has no mark
    /// of ours.
    fn by_host(&self, cluster: &ClusterId) -> BTreeMap<String, MachineId> {
        let bound = self.ledger.bound_to(cluster);
        let hosts = bound.filter_map(|id| {
            let host = self.ledger.get(id)?.host()?;
            Some((host.reference.clone(), id.clone()))
        });
        hosts.filter(|(host, _)| !host.is_empty()).collect()
    }

    fn node_reported(
        &mut self,
        now: Time,
        cluster: &ClusterId,
        machine: &MachineId,
        name: String,
        ready: bool,
    ) {
        let known = self.ledger.get(machine);
        let Some(known) = known.filter(|known| known.cluster() == Some(cluster)) else {
            return;
        };
        let serves = known.state() == State::Configured;
        let node = self.nodes.by_machine.entry(machine.clone()).or_default();
        (node.name, node.ready) = (name, ready);
        if ready {
            node.waiting = None;
            if self.ledger.beside(machine).not_ready {
                self.ledger.note(machine, |beside| beside.not_ready = false);
                self.remember(machine);
                self.wants_cycle = true;
            }
        } else if serves && node.waiting.is_none() {
            node.waiting = Some(now);
            let deadline = after(now, NODE_DEADLINE);
            self.timers.set(deadline, Timer::Node(machine.clone()));
        }
    }

    /// A node should be ready by now. Only an operator that reports nodes, and is there to report
    /// them, is taken at its word.
    pub(crate) fn judge_node(&mut self, now: Time, machine: &MachineId, effects: &mut Vec<Effect>) {
        let Some(known) = self.ledger.get(machine) else {
            return;
        };
        let waiting = self
            .nodes
            .by_machine
            .get(machine)
            .and_then(|one| one.waiting);
        let (Some(cluster), Some(since)) = (known.cluster().cloned(), waiting) else {
            return;
        };
        if known.state() != State::Configured || now < after(since, NODE_DEADLINE) {
            return;
        }
        let session = self.sessions.of(&cluster);
        if !session.is_some_and(|session| session.reports_nodes) {
            self.timers
                .set(after(now, NODE_FREEZE), Timer::Node(machine.clone()));
            return;
        }
        let most = (self.ledger.configured(&cluster) / 10).max(1) as usize;
        let window = self.config.cycle_interval.as_secs_f64();
        let (began, flips) = self
            .nodes
            .flips
            .entry(cluster.clone())
            .or_insert_with(|| (now, BTreeSet::new()));
        if window <= now.since(*began) {
            *began = now;
            flips.clear();
        }
        if most <= flips.len() {
            self.timers
                .set(after(now, NODE_FREEZE), Timer::Node(machine.clone()));
            effects.push(Effect::Alert(Alert::NodesFrozen { cluster }));
            return;
        }
        flips.insert(machine.clone());
        self.ledger.note(machine, |beside| beside.not_ready = true);
        self.remember(machine);
        self.wants_cycle = true;
    }
}
