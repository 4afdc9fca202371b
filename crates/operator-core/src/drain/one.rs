//! One drain: its stage, what is known of its Pods, and what follows from both.

use super::{DrainOrder, DrainStep, DrainTerms, record::DrainRecord};
use crate::{
    defect::Defect,
    effect::{DrainPhase, Eviction},
    event::{EffectId, EvictionOutcome},
    objects::{NodeFacts, Phase},
    pods::PodBrief,
};
use bigfleet_model::{MachineId, Time};
use std::{collections::BTreeMap, time::Duration};

/// Pods of one Node that are evicted at once (OP-36).
const MOST_PODS: usize = 16;
/// Pods on their way out of a Node that has been silent for so long are lost (OP-38).
const SILENT_FOR: Duration = Duration::from_secs(60);
/// A Pod whose eviction was accepted and that shows no sign of it is asked again.
const ASK_AGAIN: Duration = Duration::from_secs(15);
const FIRST_REFUSAL: Duration = Duration::from_secs(5);
const LONGEST_REFUSAL: Duration = Duration::from_secs(30);
/// In its last seconds a preemption gives Pods no more than what is left.
const LAST_SECONDS: Duration = Duration::from_secs(30);

/// How far a drain is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// No Node is the machine yet.
    Waiting,
    /// The patch is on its way.
    Cordoning,
    /// Cordoned; nobody is evicted yet.
    Settling,
    /// Pods are being evicted.
    Evicting,
    /// The grace is over, Pods are left.
    Over,
    /// No Pod that counts is left.
    Done,
    /// It was taken back; the Node is to be as before.
    Releasing,
}

impl Stage {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Cordoning => "cordoning",
            Self::Settling => "settling",
            Self::Evicting => "evicting",
            Self::Over => "over",
            Self::Done => "done",
            Self::Releasing => "releasing",
        }
    }
}

#[derive(Clone, Debug)]
struct Attempt {
    is_in_flight: bool,
    not_before: Time,
    refusals: u32,
    is_refused: bool,
}

#[derive(Clone, Debug)]
struct Seat {
    name: String,
    uid: String,
}

#[derive(Clone, Debug)]
pub(crate) struct Drain {
    order: DrainOrder,
    deadline: Time,
    stage: Stage,
    seat: Option<Seat>,
    cordoned: Option<Time>,
    cordoned_before: bool,
    /// It was taken back while the patch was on its way.
    is_cancelled: bool,
    pods_id: Option<EffectId>,
    pods: Option<Vec<PodBrief>>,
    attempts: BTreeMap<String, Attempt>,
    said: Option<(DrainPhase, u32)>,
    /// The version the Node had when it was last tried to release it.
    tried: Option<String>,
    in_the_way: Option<String>,
}

impl Drain {
    pub(crate) fn new(order: DrainOrder, deadline: Time) -> Self {
        Self {
            order,
            deadline,
            stage: Stage::Waiting,
            seat: None,
            cordoned: None,
            cordoned_before: false,
            is_cancelled: false,
            pods_id: None,
            pods: None,
            attempts: BTreeMap::new(),
            said: None,
            tried: None,
            in_the_way: None,
        }
    }

    /// A drain that only its Node remembers, to be taken back.
    pub(crate) fn releasing(record: &DrainRecord, node_name: &str) -> Self {
        let order = DrainOrder {
            instruction: record.instruction.clone(),
            machine: record.machine.clone(),
            node_name: node_name.to_owned(),
            grace_seconds: 0,
            voluntary: record.voluntary,
        };
        Self {
            stage: Stage::Releasing,
            cordoned_before: record.cordoned_before,
            ..Self::new(order, record.deadline)
        }
    }

    pub(crate) fn machine(&self) -> &MachineId {
        &self.order.machine
    }

    pub(crate) fn stage(&self) -> Stage {
        self.stage
    }

    pub(crate) fn deadline(&self) -> Time {
        self.deadline
    }

    pub(crate) fn cordoned_before(&self) -> bool {
        self.cordoned_before
    }

    pub(crate) fn node(&self) -> Option<&str> {
        self.seat.as_ref().map(|seat| seat.name.as_str())
    }

    pub(crate) fn node_name(&self) -> &str {
        &self.order.node_name
    }

    pub(crate) fn is_on(&self, node: &str) -> bool {
        self.node() == Some(node)
    }

    pub(crate) fn is_for(&self, instruction: &str) -> bool {
        self.order.instruction == instruction
    }

    /// Whether the same instruction is being carried out.
    pub(crate) fn is_same(&self, instruction: &str) -> bool {
        self.is_for(instruction) && self.stage != Stage::Releasing && !self.is_cancelled
    }

    pub(crate) fn follows(&mut self, id: EffectId) {
        self.pods_id = Some(id);
    }

    pub(crate) fn is_following(&self, id: EffectId) -> bool {
        self.pods_id == Some(id)
    }

    pub(crate) fn forget_pods(&self, steps: &mut Vec<DrainStep>) {
        steps.extend(self.pods_id.map(DrainStep::ForgetPods));
        let evicting = self.pods.iter().flatten().filter(|pod| {
            let attempt = self.attempts.get(&pod.uid);
            attempt.is_some_and(|attempt| attempt.is_in_flight)
        });
        steps.extend(evicting.map(|pod| DrainStep::Withhold(eviction(pod, None))));
    }

    pub(crate) fn report(&mut self, phase: DrainPhase, pods: u32, steps: &mut Vec<DrainStep>) {
        self.said = Some((phase, pods));
        steps.push(DrainStep::Report {
            instruction: self.order.instruction.clone(),
            machine: self.order.machine.clone(),
            node: self.node().unwrap_or(&self.order.node_name).to_owned(),
            phase,
            pods,
        });
    }

    /// The same instruction again: the shard asks how far it is, and perhaps gives more time.
    pub(crate) fn again(&mut self, deadline: Time, steps: &mut Vec<DrainStep>) {
        if self.stage == Stage::Over {
            self.deadline = deadline;
            self.said = None;
            if self.cordoned.is_some() {
                self.stage = Stage::Evicting;
                return self.report(DrainPhase::Started, self.remaining(false), steps);
            }
            self.stage = Stage::Waiting;
        }
        if let Some((phase, pods)) = self.said {
            self.report(phase, pods, steps);
        }
    }

    /// A Node whose record is of this very instruction goes on where it was. Whether it does.
    pub(crate) fn take_up(
        &mut self,
        now: Time,
        node: &NodeFacts,
        cordoned_before: Option<bool>,
        terms: DrainTerms,
        steps: &mut Vec<DrainStep>,
    ) -> bool {
        let record = node.drain.as_deref().and_then(DrainRecord::parse);
        self.cordoned_before = match (&record, cordoned_before) {
            (Some(record), _) => record.cordoned_before,
            (None, Some(before)) => before,
            (None, None) => node.is_cordoned,
        };
        if terms.defect == Some(Defect::CordonNotRemembered) {
            self.cordoned_before = false;
        }
        let is_same = |record: &DrainRecord| {
            record.instruction == self.order.instruction && record.machine == self.order.machine
        };
        let Some(record) = record.filter(is_same).filter(|_| node.is_cordoned) else {
            return false;
        };
        self.seat = Some(Seat::of(node));
        self.order.voluntary = record.voluntary;
        self.start(record.cordoned.min(now), steps);
        true
    }

    /// One patch: the record, the cordon, the Node's uid.
    pub(crate) fn cordon(
        &mut self,
        now: Time,
        node: &NodeFacts,
        terms: DrainTerms,
        steps: &mut Vec<DrainStep>,
    ) {
        self.seat = Some(Seat::of(node));
        self.stage = Stage::Cordoning;
        let record = DrainRecord {
            instruction: self.order.instruction.clone(),
            machine: self.order.machine.clone(),
            deadline: self.deadline,
            cordoned: now,
            voluntary: self.order.voluntary,
            cordoned_before: self.cordoned_before,
        };
        let is_recorded = terms.defect != Some(Defect::CordonWithoutRecord);
        steps.push(DrainStep::Cordon {
            node: node.name.clone(),
            uid: node.uid.clone(),
            record: if is_recorded {
                record.text()
            } else {
                String::new()
            },
        });
    }

    pub(crate) fn cordon_ended(&mut self, now: Time, is_done: bool, steps: &mut Vec<DrainStep>) {
        if self.stage != Stage::Cordoning {
            return;
        }
        if self.is_cancelled {
            self.stage = Stage::Releasing;
        } else if is_done {
            self.start(now, steps);
        } else {
            self.seat = None;
            self.stage = Stage::Waiting;
        }
    }

    /// The Node is cordoned: say so and look at its Pods.
    fn start(&mut self, cordoned: Time, steps: &mut Vec<DrainStep>) {
        self.cordoned = Some(cordoned);
        self.stage = if self.order.voluntary {
            Stage::Settling
        } else {
            Stage::Evicting
        };
        let machine = self.order.machine.clone();
        steps.push(DrainStep::Phase {
            machine: machine.clone(),
            phase: Phase::Draining,
        });
        steps.push(DrainStep::Ack {
            instruction: self.order.instruction.clone(),
        });
        self.report(DrainPhase::Started, 0, steps);
        let node = self.node().unwrap_or_default().to_owned();
        steps.push(DrainStep::FollowPods { machine, node });
    }

    /// Takes the drain back; whether there is anything to undo.
    pub(crate) fn release(&mut self, steps: &mut Vec<DrainStep>) -> bool {
        self.forget_pods(steps);
        self.pods_id = None;
        match self.stage {
            Stage::Cordoning => {
                self.is_cancelled = true;
                true
            }
            Stage::Waiting => false,
            Stage::Over if self.cordoned.is_none() => false,
            Stage::Settling | Stage::Evicting | Stage::Over | Stage::Done | Stage::Releasing => {
                self.stage = Stage::Releasing;
                true
            }
        }
    }

    pub(crate) fn pods(&mut self, pods: Option<Vec<PodBrief>>) {
        if let Some(pods) = pods {
            let is_there = |uid: &String| pods.iter().any(|pod| pod.uid == *uid);
            self.attempts.retain(|uid, _| is_there(uid));
            self.pods = Some(pods);
        }
    }

    pub(crate) fn evicted(&mut self, now: Time, uid: &str, outcome: &EvictionOutcome) {
        let Some(attempt) = self.attempts.get_mut(uid) else {
            return;
        };
        attempt.is_in_flight = false;
        attempt.is_refused = false;
        match outcome {
            EvictionOutcome::Sent => attempt.not_before = now + ASK_AGAIN,
            EvictionOutcome::Gone => {
                self.attempts.remove(uid);
                if let Some(pods) = &mut self.pods {
                    pods.retain(|pod| pod.uid != uid);
                }
            }
            EvictionOutcome::Throttled(_) => attempt.not_before = now,
            EvictionOutcome::Budget | EvictionOutcome::Failed(_) => {
                let doubled = FIRST_REFUSAL * 2_u32.saturating_pow(attempt.refusals.min(8));
                attempt.not_before = now + doubled.min(LONGEST_REFUSAL);
                attempt.refusals += 1;
                attempt.is_refused = true;
            }
        }
    }

    fn counting(&self, is_silent: bool) -> impl Iterator<Item = &PodBrief> {
        let pods = self.pods.iter().flatten();
        pods.filter(move |pod| pod.counts(is_silent))
    }

    fn remaining(&self, is_silent: bool) -> u32 {
        u32::try_from(self.counting(is_silent).count()).unwrap_or(u32::MAX)
    }

    /// Decides what follows; whether the drain is over and may be forgotten.
    pub(crate) fn advance(
        &mut self,
        now: Time,
        node: Option<&NodeFacts>,
        has_turn: bool,
        terms: DrainTerms,
        steps: &mut Vec<DrainStep>,
    ) -> bool {
        let is_same =
            |node: &&NodeFacts| self.seat.as_ref().is_none_or(|seat| seat.uid == node.uid);
        let node = node.filter(is_same);
        let is_silent = node.is_none_or(|node| is_silent(node, now));
        match self.stage {
            Stage::Waiting => {
                if self.deadline <= now {
                    self.end(DrainPhase::Blocked, 0, steps);
                } else if let Some(node) = node
                    && !self.take_up(now, node, None, terms, steps)
                {
                    self.cordon(now, node, terms, steps);
                }
                false
            }
            Stage::Cordoning => false,
            Stage::Releasing => self.advance_release(node, steps),
            Stage::Settling | Stage::Evicting | Stage::Over | Stage::Done if node.is_none() => {
                self.advance_without_node(now, steps)
            }
            Stage::Over | Stage::Done => false,
            Stage::Settling | Stage::Evicting => {
                self.advance_pods(now, is_silent, has_turn, terms, steps);
                false
            }
        }
    }

    fn advance_release(&mut self, node: Option<&NodeFacts>, steps: &mut Vec<DrainStep>) -> bool {
        let Some(node) = node else {
            return true;
        };
        self.seat = Some(Seat::of(node));
        let Some(text) = &node.drain else {
            return true; // there is no record of it any more
        };
        let is_ours = DrainRecord::parse(text)
            .is_some_and(|record| record.instruction == self.order.instruction);
        if !is_ours {
            return true;
        }
        if self.tried.as_ref() != Some(&node.version) {
            self.tried = Some(node.version.clone());
            steps.push(DrainStep::Release {
                node: node.name.clone(),
                uid: node.uid.clone(),
                version: node.version.clone(),
                uncordon: !self.cordoned_before,
            });
        }
        false
    }

    /// The Node is gone or another one: drained, once its Pods are gone too.
    fn advance_without_node(&mut self, now: Time, steps: &mut Vec<DrainStep>) -> bool {
        let remaining = self.remaining(true);
        if remaining == 0 {
            self.report(DrainPhase::Drained, 0, steps);
            return true;
        }
        if self.stage != Stage::Over && self.deadline <= now {
            self.end(DrainPhase::Blocked, remaining, steps);
        }
        false
    }

    fn advance_pods(
        &mut self,
        now: Time,
        is_silent: bool,
        has_turn: bool,
        terms: DrainTerms,
        steps: &mut Vec<DrainStep>,
    ) {
        let remaining = self.remaining(is_silent);
        if self.pods.is_some() && remaining == 0 {
            self.stage = Stage::Done;
            let (machine, phase) = (self.order.machine.clone(), Phase::Drained);
            steps.push(DrainStep::Phase { machine, phase });
            return self.report(DrainPhase::Drained, 0, steps);
        }
        if self.deadline <= now {
            return self.end(DrainPhase::Blocked, remaining, steps);
        }
        if self.stage == Stage::Settling {
            let settles = terms.defect != Some(Defect::VoluntaryNotSettled);
            if settles && now < self.settled(terms) {
                return;
            }
            self.stage = Stage::Evicting;
        }
        if self.pods.is_none() || !has_turn {
            return;
        }
        if let Some(pod) = self.undisturbed(is_silent, terms) {
            let name = pod.key.to_string();
            if self.in_the_way.as_ref() != Some(&name) {
                let node = self.node().unwrap_or_default().to_owned();
                self.in_the_way = Some(name.clone());
                steps.push(DrainStep::InTheWay { node, pod: name });
            }
            return self.blocked(remaining, steps);
        }
        self.evict(now, is_silent, steps);
        if self.attempts.values().any(|attempt| attempt.is_refused) {
            self.blocked(remaining, steps);
        }
    }

    /// OP-52: a Pod that a drain that can wait leaves alone.
    fn undisturbed(&self, is_silent: bool, terms: DrainTerms) -> Option<&PodBrief> {
        let is_kept = self.order.voluntary && terms.defect != Some(Defect::DisturbsAnyPod);
        let mut pods = self.counting(is_silent).filter(|_| is_kept);
        pods.find(|pod| pod.must_not_be_disturbed())
    }

    fn blocked(&mut self, remaining: u32, steps: &mut Vec<DrainStep>) {
        if self.said != Some((DrainPhase::Blocked, remaining)) {
            self.report(DrainPhase::Blocked, remaining, steps);
        }
    }

    fn evict(&mut self, now: Time, is_silent: bool, steps: &mut Vec<DrainStep>) {
        let flying = self
            .attempts
            .values()
            .filter(|attempt| attempt.is_in_flight)
            .count();
        let is_due = |pod: &&PodBrief| {
            let attempt = self.attempts.get(&pod.uid);
            let may = |attempt: &Attempt| !attempt.is_in_flight && attempt.not_before <= now;
            !pod.is_terminating && attempt.is_none_or(may)
        };
        let due = self.counting(is_silent).filter(is_due);
        let due: Vec<PodBrief> = due
            .take(MOST_PODS.saturating_sub(flying))
            .cloned()
            .collect();
        let left = self.deadline.duration_since(now);
        let is_late = !self.order.voluntary && left <= LAST_SECONDS;
        let grace = is_late.then(|| u32::try_from(left.as_secs()).unwrap_or(0));
        for pod in due {
            let attempt = self.attempts.entry(pod.uid.clone()).or_insert(Attempt {
                is_in_flight: true,
                not_before: now,
                refusals: 0,
                is_refused: false,
            });
            attempt.is_in_flight = true;
            steps.push(DrainStep::Evict {
                machine: self.order.machine.clone(),
                eviction: eviction(&pod, grace),
            });
        }
    }

    /// Its time is over: nobody is evicted any more.
    fn end(&mut self, phase: DrainPhase, remaining: u32, steps: &mut Vec<DrainStep>) {
        self.stage = Stage::Over;
        let flying: Vec<_> = self.pods.iter().flatten().cloned().collect();
        for pod in flying {
            if self
                .attempts
                .get(&pod.uid)
                .is_some_and(|attempt| attempt.is_in_flight)
            {
                steps.push(DrainStep::Withhold(eviction(&pod, None)));
            }
        }
        self.attempts.clear();
        self.report(phase, remaining, steps);
        steps.push(DrainStep::Overdue {
            machine: self.order.machine.clone(),
            pods: remaining,
        });
    }

    fn settled(&self, terms: DrainTerms) -> Time {
        self.cordoned.map_or(self.deadline, |at| at + terms.settle)
    }

    /// When to look again though nothing happens.
    pub(crate) fn next(
        &self,
        now: Time,
        node: Option<&NodeFacts>,
        terms: DrainTerms,
    ) -> Option<Time> {
        let silent = node
            .filter(|node| !node.is_ready && !is_silent(node, now))
            .map(|node| node.ready_since + SILENT_FOR);
        match self.stage {
            Stage::Cordoning | Stage::Over | Stage::Done | Stage::Releasing => None,
            Stage::Waiting => Some(self.deadline),
            Stage::Settling => {
                let next = self.settled(terms).min(self.deadline);
                Time::earliest(silent, Some(next.max(now)))
            }
            Stage::Evicting => {
                let waiting = self
                    .attempts
                    .values()
                    .filter(|attempt| !attempt.is_in_flight);
                let retry = waiting
                    .map(|attempt| attempt.not_before)
                    .filter(|at| now < *at)
                    .min();
                let next = Time::earliest(retry, Some(self.deadline));
                Time::earliest(silent, next)
            }
        }
    }
}

impl Seat {
    fn of(node: &NodeFacts) -> Self {
        Self {
            name: node.name.clone(),
            uid: node.uid.clone(),
        }
    }
}

fn is_silent(node: &NodeFacts, now: Time) -> bool {
    !node.is_ready && SILENT_FOR <= now.duration_since(node.ready_since)
}

fn eviction(pod: &PodBrief, grace_seconds: Option<u32>) -> Eviction {
    Eviction {
        pod: pod.key.clone(),
        uid: pod.uid.clone(),
        grace_seconds,
    }
}
