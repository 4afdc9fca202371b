//! Drains: machines whose Pods have to leave, one drain per machine (operator.md §7).
//!
//! ```text
//! instruction ─▶ waiting ─▶ cordoning ─▶ settling ─▶ evicting ─▶ done
//!                   │                        └── deadline ──▶ over
//!                   └─ cancel, CONFIGURED ─▶ releasing ─▶ none        IDLE, removed ─▶ none
//! ```
//!
//! Events only change what is known; [`Drains::advance`] is the one place that decides what follows. A Pod is evicted
//! only for an instruction heard in this process (OP-34): a record that is found on a Node keeps it cordoned, and nothing
//! more, until the shard says the same again.

pub(crate) mod one;
pub(crate) mod record;

pub use record::{DRAIN_ANNOTATION, DrainRecord};

use crate::{
    defect::Defect,
    effect::{DrainPhase, Eviction},
    event::{EffectId, EvictionOutcome},
    objects::{NodeFacts, Phase},
    pods::PodBrief,
};
use bigfleet_model::{MachineId, Time};
use one::{Drain, Stage};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// Drains that evict at once (OP-36).
const MOST_EVICTING: usize = 64;
/// An instruction that names no grace has this one.
const DEFAULT_GRACE: Duration = Duration::from_secs(30);

/// An order to drain one machine.
#[derive(Clone, Debug)]
pub(crate) struct DrainOrder {
    pub(crate) instruction: String,
    pub(crate) machine: MachineId,
    /// The Node as far as the shard knows.
    pub(crate) node_name: String,
    pub(crate) grace_seconds: i64,
    pub(crate) voluntary: bool,
}

/// A record, and the Node it is on.
#[derive(Clone, Debug)]
pub(crate) struct KeptRecord {
    pub(crate) node: String,
    pub(crate) record: DrainRecord,
}

impl KeptRecord {
    pub(crate) fn of(node: &NodeFacts) -> Option<Self> {
        let record = node.drain.as_deref().and_then(DrainRecord::parse)?;
        let node = node.name.clone();
        Some(Self { node, record })
    }
}

/// What a drain wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DrainStep {
    Cordon {
        node: String,
        uid: String,
        record: String,
    },
    Release {
        node: String,
        uid: String,
        version: String,
        uncordon: bool,
    },
    FollowPods {
        machine: MachineId,
        node: String,
    },
    ForgetPods(EffectId),
    Evict {
        machine: MachineId,
        eviction: Eviction,
    },
    /// An eviction that has not left must not.
    Withhold(Eviction),
    Phase {
        machine: MachineId,
        phase: Phase,
    },
    Ack {
        instruction: String,
    },
    Report {
        instruction: String,
        machine: MachineId,
        node: String,
        phase: DrainPhase,
        pods: u32,
    },
    /// Its grace is over and Pods are left.
    Overdue {
        machine: MachineId,
        pods: u32,
    },
    /// A Pod that must not be disturbed is in the way.
    InTheWay {
        node: String,
        pod: String,
    },
}

/// Where a machine's Node is.
pub(crate) trait Whereabouts {
    /// The Node that is the machine, by the registry and by the name the shard gives.
    fn node_of(&self, machine: &MachineId, node_name: &str) -> Option<&NodeFacts>;
    /// The Node of this name.
    fn node(&self, name: &str) -> Option<&NodeFacts>;
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct DrainTerms {
    /// How long a drain that can wait does so after its cordon.
    pub(crate) settle: Duration,
    pub(crate) defect: Option<Defect>,
}

#[derive(Clone, Debug)]
pub(crate) struct Drains {
    terms: DrainTerms,
    drains: BTreeMap<MachineId, Drain>,
    is_dirty: bool,
    next: Option<Time>,
}

impl Drains {
    pub(crate) fn new(terms: DrainTerms) -> Self {
        Self {
            terms,
            drains: BTreeMap::new(),
            is_dirty: false,
            next: None,
        }
    }

    /// The shard says: drain this machine. `is_nowhere`: no Node can be it.
    pub(crate) fn instruct(
        &mut self,
        now: Time,
        order: DrainOrder,
        places: &impl Whereabouts,
        is_nowhere: bool,
        steps: &mut Vec<DrainStep>,
    ) {
        self.is_dirty = true;
        let grace = u64::try_from(order.grace_seconds)
            .ok()
            .filter(|seconds| 0 < *seconds);
        let grace = grace.map_or(DEFAULT_GRACE, Duration::from_secs);
        let deadline = now + grace;
        if let Some(known) = self.drains.get_mut(&order.machine)
            && known.is_same(&order.instruction)
        {
            return known.again(deadline, steps);
        }
        let old = self.drains.remove(&order.machine);
        if let Some(old) = &old {
            old.forget_pods(steps);
        }
        let node = places.node_of(&order.machine, &order.node_name);
        let Some(node) = node else {
            if is_nowhere {
                steps.push(DrainStep::Report {
                    instruction: order.instruction,
                    machine: order.machine,
                    node: order.node_name,
                    phase: DrainPhase::Unresolved,
                    pods: 0,
                });
                return;
            }
            let mut drain = Drain::new(order, deadline);
            drain.report(DrainPhase::Blocked, 0, steps);
            self.drains.insert(drain.machine().clone(), drain);
            return;
        };
        let mut drain = Drain::new(order, deadline);
        let cordoned_before = old.map(|old| old.cordoned_before());
        let is_kept = drain.take_up(now, node, cordoned_before, self.terms, steps);
        if !is_kept {
            drain.cordon(now, node, self.terms, steps);
        }
        self.drains.insert(drain.machine().clone(), drain);
    }

    /// The shard takes an instruction back.
    pub(crate) fn cancel(
        &mut self,
        instruction: &str,
        kept: Vec<KeptRecord>,
        steps: &mut Vec<DrainStep>,
    ) {
        let of_it = self
            .drains
            .iter()
            .filter(|(_, drain)| drain.is_for(instruction));
        let live: Vec<MachineId> = of_it.map(|(machine, _)| machine.clone()).collect();
        for machine in live {
            self.release(&machine, None, steps);
        }
        for kept in kept
            .iter()
            .filter(|kept| kept.record.instruction == instruction)
        {
            self.release(&kept.record.machine, Some(kept), steps);
        }
    }

    /// The machine is to serve again: whatever drain it had is taken back, also one that only its Node remembers.
    pub(crate) fn release(
        &mut self,
        machine: &MachineId,
        kept: Option<&KeptRecord>,
        steps: &mut Vec<DrainStep>,
    ) {
        self.is_dirty = true;
        if let Some(drain) = self.drains.get_mut(machine) {
            if !drain.release(steps) {
                self.drains.remove(machine);
            }
        } else if let Some(kept) = kept {
            let drain = Drain::releasing(&kept.record, &kept.node);
            self.drains.insert(machine.clone(), drain);
        } else {
            return;
        }
        let (machine, phase) = (machine.clone(), Phase::Ready);
        steps.push(DrainStep::Phase { machine, phase });
    }

    /// The machine has left; nothing is left to drain. Whether its Node is to be released instead of deleted.
    pub(crate) fn left(&mut self, machine: &MachineId, steps: &mut Vec<DrainStep>) {
        if let Some(drain) = self.drains.remove(machine) {
            drain.forget_pods(steps);
            self.is_dirty = true;
        }
    }

    /// Another process leads: records stay where they are.
    pub(crate) fn give_up(&mut self, steps: &mut Vec<DrainStep>) {
        for drain in self.drains.values() {
            drain.forget_pods(steps);
        }
        self.drains.clear();
        self.next = None;
    }

    pub(crate) fn node_changed(&mut self) {
        self.is_dirty = !self.drains.is_empty() || self.is_dirty;
    }

    /// The patch that cordons ended; `None` for one that is to be looked for anew.
    pub(crate) fn cordoned(
        &mut self,
        now: Time,
        node: &str,
        is_done: bool,
        steps: &mut Vec<DrainStep>,
    ) {
        self.is_dirty = true;
        for drain in self.drains.values_mut().filter(|drain| drain.is_on(node)) {
            drain.cordon_ended(now, is_done, steps);
        }
    }

    /// The patch that releases ended; whether nothing is left to release.
    pub(crate) fn released(&mut self, node: &str, is_over: bool) {
        self.is_dirty = true;
        let is_it = |drain: &Drain| drain.is_on(node) && drain.stage() == Stage::Releasing;
        if is_over {
            self.drains.retain(|_, drain| !is_it(drain));
        }
    }

    pub(crate) fn follows(&mut self, machine: &MachineId, id: EffectId) {
        if let Some(drain) = self.drains.get_mut(machine) {
            drain.follows(id);
        }
    }

    /// The Pods of a Node, all of them.
    pub(crate) fn pods(&mut self, id: EffectId, pods: Option<Vec<PodBrief>>) {
        self.is_dirty = true;
        for drain in self
            .drains
            .values_mut()
            .filter(|drain| drain.is_following(id))
        {
            drain.pods(pods.clone());
        }
    }

    pub(crate) fn evicted(
        &mut self,
        now: Time,
        machine: &MachineId,
        uid: &str,
        outcome: &EvictionOutcome,
    ) {
        self.is_dirty = true;
        if let Some(drain) = self.drains.get_mut(machine) {
            drain.evicted(now, uid, outcome);
        }
    }

    /// Decides what follows from what is known now.
    pub(crate) fn advance(
        &mut self,
        now: Time,
        places: &impl Whereabouts,
        steps: &mut Vec<DrainStep>,
    ) {
        if !self.is_dirty && self.next.is_none_or(|next| now < next) {
            return;
        }
        self.is_dirty = false;
        // Whoever begins to evict in the first pass has its turn in the second.
        let before = self.turns();
        self.pass(now, places, &before, steps);
        let after = self.turns();
        if after != before {
            self.pass(now, places, &after, steps);
        }
    }

    /// OP-36: those that may evict, the most urgent first.
    fn turns(&self) -> BTreeSet<MachineId> {
        let evicting = self
            .drains
            .iter()
            .filter(|(_, drain)| drain.stage() == Stage::Evicting);
        let mut turns: Vec<_> = evicting
            .map(|(id, drain)| (drain.deadline(), id.clone()))
            .collect();
        turns.sort();
        turns
            .into_iter()
            .take(MOST_EVICTING)
            .map(|turn| turn.1)
            .collect()
    }

    fn pass(
        &mut self,
        now: Time,
        places: &impl Whereabouts,
        turns: &BTreeSet<MachineId>,
        steps: &mut Vec<DrainStep>,
    ) {
        let mut over = Vec::new();
        self.next = None;
        for (machine, drain) in &mut self.drains {
            let node = match drain.node() {
                Some(name) => places.node(name),
                None => places.node_of(machine, drain.node_name()),
            };
            if drain.advance(now, node, turns.contains(machine), self.terms, steps) {
                over.push(machine.clone());
            } else {
                self.next = Time::earliest(self.next, drain.next(now, node, self.terms));
            }
        }
        for machine in over {
            if let Some(drain) = self.drains.remove(&machine) {
                drain.forget_pods(steps);
            }
        }
    }

    pub(crate) fn next(&self) -> Option<Time> {
        self.next
    }

    /// Whether a machine has a drain that this process carries out or takes back.
    pub(crate) fn has(&self, machine: &MachineId) -> bool {
        self.drains.contains_key(machine)
    }

    /// How many are in each stage.
    pub(crate) fn stages(&self) -> BTreeMap<&'static str, usize> {
        let mut stages = BTreeMap::new();
        for drain in self.drains.values() {
            *stages.entry(drain.stage().word()).or_default() += 1;
        }
        stages
    }
}
