//! Machines: what the shard and the cluster say of them, brought together (OP-29 to OP-33, OP-40 to OP-43).

use super::OperatorCore;
use crate::{
    defect::Defect,
    drain::KeptRecord,
    effect::{Alert, Effect, NodeLine, Note, Write},
    event::{MachineState, NodeState, SessionId},
    machines::{
        registry::{Found, MACHINE_LABEL, machine_label},
        report::ReportTerms,
        upcoming::Upcome,
    },
    objects::{Kind, NodeFacts, NodeReadiness, ObjectKey, Phase, UpcomingNode},
    queue::Item,
    session::Resync,
};
use bigfleet_model::{MachineId, Time};
use std::collections::{BTreeMap, BTreeSet};

impl OperatorCore {
    pub(super) fn node_facts(&self, name: &str) -> Option<&NodeFacts> {
        self.nodes.get(&ObjectKey::cluster(name))
    }

    /// A frame about a machine.
    pub(super) fn node_state(
        &mut self,
        now: Time,
        session: SessionId,
        frame: NodeState,
        effects: &mut Vec<Effect>,
    ) {
        let is_ours = frame.cluster.is_empty() || frame.cluster == self.config.cluster.as_str();
        let Some(machine) = MachineId::new(&frame.machine).ok().filter(|_| is_ours) else {
            self.counters.frames_dropped += 1;
            return;
        };
        self.session.named(session, &machine);
        let phase = self.upcoming.get(&machine).map(|known| known.phase);
        let is_early = matches!(phase, Some(Phase::Provisioning | Phase::Launched));
        // A machine that failed and was made good is a slot again, and nobody's.
        let is_slot = frame.state == MachineState::Speculative && phase.is_some();
        let is_idle = frame.state == MachineState::Idle;
        let leaves = frame.is_removed || ((is_idle || is_slot) && !is_early);
        if leaves {
            if !self.has(Defect::NoCleaningOnLeaving) {
                self.machine_left(&machine, effects);
            }
            return;
        }
        self.departures.named(now, &machine);
        let upcome = self.upcoming.heard(now, &machine, &frame, true);
        self.write_upcoming(upcome);
        if frame.state == MachineState::Idle && phase.is_none() {
            return;
        }
        self.registry
            .heard(now, &machine, frame.state, &frame.provider_id);
        self.machine_seen(now, &machine, effects);
        if frame.state == MachineState::Configured && !self.has(Defect::ConfiguredIsNoCancel) {
            self.release_machine(&machine, effects);
        }
    }

    /// The cluster remembers a machine nobody named in this process.
    pub(super) fn recall_machine(
        &mut self,
        now: Time,
        machine: &MachineId,
        known: &UpcomingNode,
        effects: &mut Vec<Effect>,
    ) {
        let state = match known.phase {
            Phase::Provisioning => MachineState::Creating,
            Phase::Launched => MachineState::Idle,
            Phase::Registered => MachineState::Configuring,
            Phase::Ready => MachineState::Configured,
            Phase::Draining | Phase::Drained => MachineState::Draining,
            Phase::Failed => MachineState::Failed,
        };
        let since = known.started.unwrap_or(now);
        self.registry
            .recall(since, machine, state, &known.provider_id);
        self.machine_seen(now, machine, effects);
    }

    /// A machine or its Node changed: the Node's label, the UpcomingNode and the next report follow.
    pub(super) fn machine_seen(
        &mut self,
        now: Time,
        machine: &MachineId,
        effects: &mut Vec<Effect>,
    ) {
        let found = self.registry.found(machine).clone();
        let was_ambiguous = self.upcoming.get(machine).and_then(|known| known.readiness);
        let node = match &found {
            Found::Node(name) => self.node_facts(name).cloned(),
            Found::None | Found::Ambiguous => None,
        };
        let readiness = match (&found, &node) {
            (Found::Ambiguous, _) => NodeReadiness::Ambiguous,
            (_, Some(node)) if node.is_ready => NodeReadiness::Ready,
            (_, Some(_)) => NodeReadiness::NotReady,
            (_, None) => NodeReadiness::NoNode,
        };
        if readiness == NodeReadiness::Ambiguous && was_ambiguous != Some(NodeReadiness::Ambiguous)
        {
            let message = format!("more than one Node could be machine {machine}; none is touched");
            self.tell_of_machine(machine, "Ambiguous", message, effects);
        }
        let name = node.as_ref().map(|node| node.name.as_str());
        let upcome = self.upcoming.node(machine, name, readiness);
        self.write_upcoming(upcome);
        if let Some(node) = &node {
            self.label_node(machine, node);
        }
        let line = node.map(|node| NodeLine {
            machine: machine.clone(),
            provider_id: self.registry.provider_id(machine).to_owned(),
            ready: node.is_ready,
            disruption: node.disruption.map(|disruption| disruption.min(15)),
            node_name: node.name,
        });
        self.reports.is_now(now, machine, line);
    }

    /// OP-30.
    fn label_node(&mut self, machine: &MachineId, node: &NodeFacts) {
        let (key, value) = machine_label(machine.as_str());
        if node.labels.get(key) == Some(&value) {
            return;
        }
        self.queue.push(Item::Write(Write::LabelNode {
            node: node.name.clone(),
            uid: node.uid.clone(),
            key,
            value,
        }));
    }

    pub(super) fn write_upcoming(&mut self, upcome: Option<Upcome>) {
        let Some(upcome) = upcome else { return };
        self.queue.push(Item::Write(match upcome {
            Upcome::Apply(machine, content) => Write::ApplyUpcoming {
                name: crate::machines::upcoming::upcoming_name(&machine),
                machine,
                content,
            },
            Upcome::Delete(name) => Write::DeleteUpcoming { name },
        }));
    }

    fn tell_of_machine(
        &self,
        machine: &MachineId,
        reason: &'static str,
        message: String,
        effects: &mut Vec<Effect>,
    ) {
        let name = crate::machines::upcoming::upcoming_name(machine);
        effects.push(Effect::Tell(Note {
            kind: Kind::Upcoming,
            about: ObjectKey::cluster(&name),
            reason,
            message,
        }));
    }

    /// OP-41: a machine is no longer the cluster's.
    pub(super) fn machine_left(&mut self, machine: &MachineId, effects: &mut Vec<Effect>) {
        let upcome = self.upcoming.delete(machine);
        self.write_upcoming(upcome);
        let mut steps = Vec::new();
        self.drains.left(machine, &mut steps);
        self.reports.left(machine);
        let node = self.registry.left(machine);
        if let Some(node) = node {
            if self.config.node_cleanup {
                self.departures.left(machine, node);
            } else if let Some(kept) = self.record_of(&node) {
                self.drains.release(machine, Some(&kept), &mut steps);
            }
        }
        self.drain_steps(steps, effects);
    }

    pub(super) fn record_of(&self, node: &str) -> Option<KeptRecord> {
        self.node_facts(node).and_then(KeptRecord::of)
    }

    /// OP-42: the end of a resync.
    pub(super) fn resynced(&mut self, now: Time, resync: &Resync, effects: &mut Vec<Effect>) {
        self.counters.resyncs[usize::from(!resync.is_counted)] += 1;
        if resync.is_counted {
            self.reports.resynced(now);
        }
        if self.has(Defect::NoCleaningByResync) {
            return;
        }
        let upcoming: BTreeSet<MachineId> = self
            .upcoming
            .iter()
            .map(|(machine, _)| machine.clone())
            .collect();
        let labelled = self.labelled_nodes();
        let ready = self.upcoming.ready();
        let absent = self
            .departures
            .resynced(now, resync, &upcoming, ready, &labelled);
        if absent.is_strange {
            effects.push(Effect::Alert(Alert::StrangeShard));
        }
        for machine in absent.delete {
            self.forget_absent(&machine, effects);
        }
    }

    /// Nodes that say which machine they are.
    fn labelled_nodes(&self) -> BTreeMap<String, MachineId> {
        let named = |node: &NodeFacts| {
            let label = node.labels.get(MACHINE_LABEL);
            let machine = label.and_then(|label| MachineId::new(label).ok());
            machine.or_else(|| self.registry.machine_of(&node.name).cloned())
        };
        let nodes = self.nodes.iter();
        nodes
            .filter_map(|(_, node)| Some((node.name.clone(), named(node)?)))
            .collect()
    }

    /// A machine the shard did not name: its object goes. Its Node is judged by its own silence.
    fn forget_absent(&mut self, machine: &MachineId, effects: &mut Vec<Effect>) {
        let upcome = self.upcoming.delete(machine);
        self.write_upcoming(upcome);
        let mut steps = Vec::new();
        self.drains.left(machine, &mut steps);
        self.drain_steps(steps, effects);
        self.reports.left(machine);
        self.registry.left(machine);
    }

    pub(super) fn advance_departures(&mut self, now: Time, effects: &mut Vec<Effect>) {
        for machine in self.departures.due(now) {
            self.forget_absent(&machine, effects);
        }
        self.departures.rest_ends(now);
        let leaving: Vec<String> = self.departures.leaving().cloned().collect();
        for name in leaving {
            let Some(node) = self.node_facts(&name) else {
                self.departures.node_gone(&name);
                continue;
            };
            let due = self.departures.node_goes(&name, silent_since(node));
            let item = Item::Write(Write::DeleteNode {
                node: name.clone(),
                uid: node.uid.clone(),
            });
            if due.is_some_and(|due| due <= now) && !self.queue.is_pending(&item.slot()) {
                self.queue.push(item);
            }
        }
    }

    pub(super) fn departures_next(&self) -> Option<Time> {
        let goes = |name: &String| {
            let node = self.node_facts(name)?;
            let due = self.departures.node_goes(name, silent_since(node))?;
            (self.now < due).then_some(due)
        };
        let nodes = self.departures.leaving().filter_map(goes).min();
        Time::earliest(self.departures.next(), nodes)
    }

    /// OP-32.
    pub(super) fn report_nodes(&mut self, now: Time, effects: &mut Vec<Effect>) {
        let features = self.session.features();
        let is_due = self.reports.next().is_some_and(|next| next <= now);
        if !features.node_report || !is_due || !self.nodes.is_whole() {
            return;
        }
        let nodes = self.nodes.iter().map(|(_, node)| node);
        let unaccounted = self
            .registry
            .unaccounted(nodes, &self.config.unmanaged_nodes);
        let terms = ReportTerms {
            is_sure: self.session.is_counted()
                && self.nodes.is_fresh(now)
                && unaccounted == 0
                && self.registry.ambiguous() == 0,
            with_disruption: features.disruption,
            no_mass_flip: self.has(Defect::MassFlipBelieved),
        };
        if let Some(frame) = self.reports.build(now, terms) {
            self.send(frame, effects);
        }
    }

    /// OP-43.
    pub(super) fn speak_of_missing_nodes(&mut self, now: Time, effects: &mut Vec<Effect>) {
        for machine in self.upcoming.overdue(now) {
            let message =
                format!("machine {machine} has served for 10 minutes and no Node of it is Ready");
            self.tell_of_machine(&machine, "NodeNotReady", message, effects);
        }
    }
}

fn silent_since(node: &NodeFacts) -> Option<Time> {
    (!node.is_ready).then_some(node.ready_since)
}
