//! Drains: instructions taken in, and what the drains want done carried out (operator.md §7).

use super::OperatorCore;
use crate::{
    defect::Defect,
    drain::{DrainOrder, DrainStep, KeptRecord, Whereabouts},
    effect::{Effect, Frame, Note, Write},
    event::{EffectId, EvictionOutcome, MachineState, Reclaim, Target},
    follow::Followed,
    machines::registry::{Found, Registry},
    objects::{Kind, NodeFacts, ObjectKey, Phase},
    queue::Item,
};
use bigfleet_model::{MachineId, Time};

/// Machines of one instruction; more are dropped and counted.
const MOST_TARGETS: usize = 10_000;
/// From a shard that does not say whether a drain can wait: this grace, and nobody who takes over.
const VOLUNTARY_GRACE_SECONDS: i64 = 600;

struct Places<'a> {
    registry: &'a Registry,
    nodes: &'a Followed<NodeFacts>,
}

impl Whereabouts for Places<'_> {
    fn node_of(&self, machine: &MachineId, node_name: &str) -> Option<&NodeFacts> {
        match self.registry.found_as(machine, node_name) {
            Found::Node(name) => self.nodes.get(&ObjectKey::cluster(&name)),
            Found::None | Found::Ambiguous => None,
        }
    }

    fn node(&self, name: &str) -> Option<&NodeFacts> {
        self.nodes.get(&ObjectKey::cluster(name))
    }
}

impl OperatorCore {
    pub(super) fn reclaim(&mut self, now: Time, reclaim: Reclaim, effects: &mut Vec<Effect>) {
        let whole_units = self.session.features().whole_units;
        let guessed =
            reclaim.preemptor_priority == 0 && reclaim.grace_seconds == VOLUNTARY_GRACE_SECONDS;
        let voluntary = if whole_units {
            reclaim.voluntary
        } else {
            guessed
        };
        let mut targets = reclaim.targets;
        if targets.is_empty() {
            targets = reclaim
                .nodes
                .iter()
                .map(|entry| self.target_named(entry))
                .collect();
        }
        self.counters.frames_dropped += targets.len().saturating_sub(MOST_TARGETS) as u64;
        for target in targets.into_iter().take(MOST_TARGETS) {
            let Ok(machine) = MachineId::new(&target.machine) else {
                self.counters.frames_dropped += 1;
                continue;
            };
            let order = DrainOrder {
                instruction: reclaim.instruction.clone(),
                machine,
                node_name: target.node_name,
                grace_seconds: reclaim.grace_seconds,
                voluntary,
            };
            self.instruct(now, order, &target.provider_id, effects);
        }
    }

    /// An entry of a shard that names no targets: a Node's name or a machine's id.
    fn target_named(&self, entry: &str) -> Target {
        let machine = self.registry.machine_of(entry);
        Target {
            machine: machine.map_or(entry, MachineId::as_str).to_owned(),
            node_name: entry.to_owned(),
            provider_id: String::new(),
        }
    }

    fn instruct(
        &mut self,
        now: Time,
        order: DrainOrder,
        provider_id: &str,
        effects: &mut Vec<Effect>,
    ) {
        let machine = order.machine.clone();
        let was_known = self.registry.is_known(&machine);
        self.registry
            .recall(now, &machine, MachineState::Draining, provider_id);
        let nodes = self.nodes.iter().map(|(_, node)| node);
        let unaccounted = self
            .registry
            .unaccounted(nodes, &self.config.unmanaged_nodes);
        let is_nowhere = self.nodes.is_fresh(now)
            && unaccounted == 0
            && *self.registry.found(&machine) == Found::None;
        let places = Places {
            registry: &self.registry,
            nodes: &self.nodes,
        };
        let mut steps = Vec::new();
        self.drains
            .instruct(now, order, &places, is_nowhere, &mut steps);
        if !was_known && !self.drains.has(&machine) {
            self.registry.left(&machine); // nobody ever heard of it but in this instruction
        }
        self.drain_steps(steps, effects);
    }

    pub(super) fn reclaim_cancelled(&mut self, instruction: &str, effects: &mut Vec<Effect>) {
        let mut steps = Vec::new();
        let kept = self
            .nodes
            .iter()
            .filter_map(|(_, node)| KeptRecord::of(node));
        self.drains.cancel(instruction, kept.collect(), &mut steps);
        self.drain_steps(steps, effects);
    }

    /// The machine is to serve: a drain of it is taken back, also one that only its Node remembers.
    pub(super) fn release_machine(&mut self, machine: &MachineId, effects: &mut Vec<Effect>) {
        let kept = match self.registry.found(machine) {
            Found::Node(node) => self.record_of(node),
            Found::None | Found::Ambiguous => None,
        };
        let mut steps = Vec::new();
        let kept = kept.filter(|kept| kept.record.machine == *machine);
        self.drains.release(machine, kept.as_ref(), &mut steps);
        self.drain_steps(steps, effects);
    }

    /// A Node with a record that nobody carries out. It stays cordoned, unless its machine is known to serve.
    pub(super) fn look_at_record(
        &mut self,
        now: Time,
        node: &NodeFacts,
        effects: &mut Vec<Effect>,
    ) {
        let Some(KeptRecord { record, .. }) = KeptRecord::of(node) else {
            return;
        };
        if self.drains.has(&record.machine) {
            return;
        }
        if self.has(Defect::RecordIsAnInstruction) {
            let order = DrainOrder {
                instruction: record.instruction,
                machine: record.machine,
                node_name: node.name.clone(),
                grace_seconds: VOLUNTARY_GRACE_SECONDS,
                voluntary: record.voluntary,
            };
            return self.instruct(now, order, "", effects);
        }
        let serves = self.registry.heard_state(&record.machine) == Some(MachineState::Configured);
        if serves && !self.has(Defect::ConfiguredIsNoCancel) {
            let machine = record.machine.clone();
            self.release_machine(&machine, effects);
        }
    }

    pub(super) fn advance_drains(&mut self, now: Time, effects: &mut Vec<Effect>) {
        let places = Places {
            registry: &self.registry,
            nodes: &self.nodes,
        };
        let mut steps = Vec::new();
        self.drains.advance(now, &places, &mut steps);
        self.drain_steps(steps, effects);
    }

    pub(super) fn evicted(&mut self, now: Time, id: EffectId, outcome: EvictionOutcome) {
        let Some(item) = self.queue.ended(id) else {
            return;
        };
        let at = match &outcome {
            EvictionOutcome::Sent => 0,
            EvictionOutcome::Gone => 1,
            EvictionOutcome::Budget => 2,
            EvictionOutcome::Throttled(_) | EvictionOutcome::Failed(_) => 3,
        };
        self.counters.evictions[at] += 1;
        if let EvictionOutcome::Throttled(after) = &outcome {
            self.queue.throttled(now, *after);
        } else {
            self.queue.is_well();
        }
        if let Item::Evict { machine, eviction } = item {
            self.drains.evicted(now, &machine, &eviction.uid, &outcome);
        }
    }

    pub(super) fn drain_steps(&mut self, steps: Vec<DrainStep>, effects: &mut Vec<Effect>) {
        for step in steps {
            self.drain_step(step, effects);
        }
    }

    fn drain_step(&mut self, step: DrainStep, effects: &mut Vec<Effect>) {
        match step {
            DrainStep::Cordon { node, uid, record } => {
                self.queue
                    .push(Item::Write(Write::CordonNode { node, uid, record }));
            }
            DrainStep::Release {
                node,
                uid,
                version,
                uncordon,
            } => {
                self.queue.push(Item::Write(Write::ReleaseNode {
                    node,
                    uid,
                    version,
                    uncordon,
                }));
            }
            DrainStep::FollowPods { machine, node } => {
                let id = self.next_id();
                self.drains.follows(&machine, id);
                effects.push(Effect::FollowPods(id, node));
            }
            DrainStep::ForgetPods(id) => effects.push(Effect::ForgetPods(id)),
            DrainStep::Evict { machine, eviction } => {
                self.queue.push(Item::Evict { machine, eviction });
            }
            DrainStep::Withhold(eviction) => {
                let machine = MachineId::new("-").ok();
                if let Some(machine) = machine {
                    self.queue
                        .withdraw(&Item::Evict { machine, eviction }.slot());
                }
            }
            DrainStep::Phase { machine, phase } => {
                let upcome = self.upcoming.phase(self.now, &machine, phase, "");
                self.write_upcoming(upcome);
            }
            DrainStep::Ack { instruction } => {
                let nodes_started = 1;
                self.send(
                    Frame::ReclaimAck {
                        instruction,
                        nodes_started,
                    },
                    effects,
                );
            }
            DrainStep::Report {
                instruction,
                machine,
                node,
                phase,
                pods,
            } => {
                if self.session.features().drain_report {
                    let frame = Frame::DrainReport {
                        instruction,
                        machine,
                        node_name: node,
                        phase,
                        pods_remaining: pods,
                    };
                    self.send(frame, effects);
                }
            }
            DrainStep::Overdue { machine, pods } => {
                // OP-35: a shard that hears reports decides by itself.
                if !self.session.features().drain_report {
                    let error = format!("the grace is over and {pods} Pods are left");
                    let upcome = self
                        .upcoming
                        .phase(self.now, &machine, Phase::Failed, &error);
                    self.write_upcoming(upcome);
                }
            }
            DrainStep::InTheWay { node, pod } => {
                effects.push(Effect::Tell(Note {
                    kind: Kind::Node,
                    about: ObjectKey::cluster(&node),
                    reason: "MustNotBeDisturbed",
                    message: format!(
                        "Pod {pod} must not be disturbed; nobody is evicted from this Node"
                    ),
                }));
            }
        }
    }
}
