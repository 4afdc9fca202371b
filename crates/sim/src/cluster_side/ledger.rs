//! Ledger: what must hold on the side of a cluster, kept by somebody who believes neither core.
//!
//! ```text
//! what a process heard and was shown ─┐
//! what the store has ─────────────────┼─▶ every effect that leaves is judged ─▶ the first that is wrong ends the run
//! what the shard accepted ────────────┘
//! ```

use super::{
    Out, Side,
    kubelets::{machine_named, node_name},
    operators::request_in,
    streams::News,
};
use crate::{clock::Moment, watch::Rule};
use bigfleet_model::{MachineId, Row, Time, quantity::parse_demand};
use bigfleet_operator_core::{
    DrainPhase, Effect, Event, Eviction, Frame, Heard, Kind, MachineState, NodeLine, ObjectKey,
    RequestFacts, Write,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// A Pod that has had its Node for so long waits for nobody, as far as anybody could know.
const KNOWN_TO_RUN: u64 = 60_000;
/// An earlier process may have begun to cordon so much sooner than it was done.
const CORDON_TOOK: u64 = 35_000;

/// An instruction as a process heard it.
#[derive(Clone, Debug)]
struct HeardOrder {
    voluntary: bool,
    deadline: Time,
}

/// What one process knows, by what it was told.
#[derive(Clone, Debug, Default)]
struct Told {
    orders: BTreeMap<MachineId, HeardOrder>,
    /// What its requests say, as of the last list that was whole.
    believed: BTreeMap<ObjectKey, Asked>,
    filling: Option<BTreeMap<ObjectKey, Asked>>,
    /// Machines it has reported as Ready.
    ready: BTreeSet<MachineId>,
    /// When the newest roll-up left that was accepted, of those whose answer it heard.
    accepted_left: Option<Moment>,
    /// When each roll-up left.
    left: BTreeMap<String, Moment>,
}

/// The ledger of a cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    told: BTreeMap<u64, Told>,
    /// When each request was made.
    made: BTreeMap<String, Moment>,
    /// Since when each Node is cordoned for a drain, and by which process.
    cordoned: BTreeMap<String, Moment>,
    /// What the last instruction about a machine said.
    orders: BTreeMap<MachineId, HeardOrder>,
    /// Nodes that a person cordoned, by name and uid.
    pub(super) persons: BTreeMap<String, String>,
    pub(super) pods_made: u64,
}

impl Ledger {
    pub(super) fn process_ended(&mut self, number: u64) {
        self.told.remove(&number);
    }

    pub(super) fn request_made(&mut self, facts: &RequestFacts, now: Moment) {
        self.made.entry(facts.uid.clone()).or_insert(now);
    }

    /// A process is told something.
    pub(super) fn told(&mut self, number: u64, now: Moment, event: &Event) {
        let told = self.told.entry(number).or_default();
        match event {
            Event::Opened(_) => {
                told.ready.clear();
                told.left.clear();
            }
            Event::Heard(_, heard) => match heard {
                Heard::Reclaim(reclaim) => {
                    let grace = u64::try_from(reclaim.grace_seconds).unwrap_or(0);
                    let grace = if grace == 0 { 30 } else { grace };
                    let order = HeardOrder {
                        voluntary: reclaim.voluntary,
                        deadline: now.time() + Duration::from_secs(grace),
                    };
                    for target in &reclaim.targets {
                        if let Ok(machine) = MachineId::new(&target.machine) {
                            self.orders.insert(machine.clone(), order.clone());
                            told.orders.insert(machine, order.clone());
                        }
                    }
                }
                Heard::NodeState(node) => {
                    let is_over =
                        matches!(node.state, MachineState::Configured | MachineState::Idle);
                    if (is_over || node.is_removed)
                        && let Ok(machine) = MachineId::new(&node.machine)
                    {
                        told.orders.remove(&machine);
                        self.orders.remove(&machine);
                    }
                }
                Heard::Ack {
                    rollup_id,
                    disposition: Some(bigfleet_operator_core::Disposition::Accepted),
                    ..
                } => {
                    let left = told.left.get(rollup_id).copied();
                    told.accepted_left = told.accepted_left.max(left);
                }
                _ => {}
            },
            _ => {}
        }
    }

    /// A stream of a process brought something: a list counts once it is whole.
    pub(super) fn brought(&mut self, number: u64, kind: Kind, news: &News) {
        if kind != Kind::Request {
            return;
        }
        let told = self.told.entry(number).or_default();
        match news {
            News::Began => told.filling = Some(BTreeMap::new()),
            News::Listed(object, _) => {
                if let (Some(filling), Some(facts)) = (&mut told.filling, request_in(object)) {
                    filling.insert(facts.key.clone(), asked(facts));
                }
            }
            News::Changed(change) => {
                let Some(facts) = request_in(&change.object) else {
                    return;
                };
                let cache = told.filling.as_mut().unwrap_or(&mut told.believed);
                if change.is_gone {
                    cache.remove(&change.key);
                } else {
                    cache.insert(change.key.clone(), asked(facts));
                }
            }
            News::Whole(_) => {
                if let Some(filled) = told.filling.take() {
                    told.believed = filled;
                }
            }
            News::Broken => told.filling = None,
            News::Fresh(_) => {}
        }
    }
}

/// What a request asks for, in milli-cpu, and whether it says that its Pod is stuck.
#[derive(Clone, Copy, Debug)]
struct Asked {
    milli: i128,
    is_stuck: bool,
}

fn asked(facts: &RequestFacts) -> Asked {
    let text = facts.spec.resources.get("cpu");
    let status = facts.status.as_ref();
    Asked {
        milli: text.and_then(|text| parse_demand(text).ok()).unwrap_or(0),
        is_stuck: status.is_some_and(|status| status.stuck.is_some()),
    }
}

fn is_spare(row: &Row) -> bool {
    row.group.as_str().starts_with("spare:")
}

/// The most of a bin with so much cpu that a record of spares has in one line.
fn recorded(record: &str, milli_cpu: i128) -> i128 {
    let bin = format!("cpu~{milli_cpu}");
    let lines = record.lines().filter(|line| {
        let mut words = line.split([' ', '=', ',']);
        line.starts_with("spare ") && words.any(|word| word == bin)
    });
    let counts = lines.filter_map(|line| {
        let count = line.split(' ').find_map(|word| word.strip_prefix("n="))?;
        count.parse::<i128>().ok()
    });
    counts.max().unwrap_or(0)
}

impl Side {
    /// Judges an effect as it leaves.
    pub(super) fn look_at_effect(
        &mut self,
        now: Moment,
        number: u64,
        effect: &Effect,
        out: &mut Out,
    ) {
        match effect {
            Effect::Write(_, write) => {
                self.check_lead(number, "writes", out);
                self.check_word(now, number, write, out);
            }
            Effect::Dial(_) => self.check_lead(number, "dials", out),
            Effect::Evict(_, eviction) => {
                self.check_lead(number, "evicts", out);
                self.check_eviction(now, number, eviction, out);
            }
            Effect::Send(_, Frame::RollUp { id, rows, .. }) => {
                let told = self.ledger.told.entry(number).or_default();
                told.left.insert(id.clone(), now);
                self.check_roll_up(number, rows, out);
            }
            // No Node is it yet; the shard need not wait for anybody, and whoever comes until then came too late.
            Effect::Send(
                _,
                Frame::DrainReport {
                    machine,
                    phase: DrainPhase::Unresolved,
                    ..
                },
            ) => {
                self.ledger.orders.remove(machine);
            }
            Effect::Send(_, Frame::NodeReport { nodes, .. }) => {
                self.check_report(number, nodes, out);
            }
            _ => {}
        }
    }

    /// OP-11: only the process that has the lease acts.
    fn check_lead(&self, number: u64, does: &str, out: &mut Out) {
        let holder = self.store.lease.as_ref().map(|(_, holder)| holder.as_str());
        let own = self.operators.get(&number).map(|one| one.holder.as_str());
        if own.is_some() && own != holder {
            let holder = holder.unwrap_or("nobody");
            out.broke(
                Rule::OneActs,
                format!("operator {number} {does} while {holder} has the lease"),
            );
        }
    }

    /// OP-34, OP-38, OP-52 and the stages of operator.md §7.
    fn check_eviction(&self, now: Moment, number: u64, eviction: &Eviction, out: &mut Out) {
        let Some(pod) = self.store.pod(&eviction.pod) else {
            return;
        };
        let Some(machine) = machine_named(&pod.node) else {
            return;
        };
        let (pod_name, node) = (&pod.key.name, &pod.node);
        let told = self.ledger.told.get(&number);
        let Some(order) = told.and_then(|told| told.orders.get(&machine)) else {
            out.broke(
                Rule::Instructed,
                format!("operator {number} evicts {pod_name} from {node}, and was not told to"),
            );
            return;
        };
        if order.deadline < now.time() {
            out.broke(
                Rule::Instructed,
                format!("operator {number} evicts {pod_name} from {node} after its time"),
            );
        }
        if !order.voluntary {
            return;
        }
        let cordoned = self.ledger.cordoned.get(node).copied();
        let settled = cordoned.map_or(0, |at| now.since(at));
        if settled + CORDON_TOOK.min(self.plan.settle / 2) < self.plan.settle {
            out.broke(
                Rule::Settled,
                format!("{pod_name} is evicted {settled} ms after {node} was cordoned"),
            );
        }
        let mut others = self.store.pods_on(node);
        if let Some(precious) = others.find(|one| self.rules_of(one.work).are_precious) {
            let precious = &precious.key.name;
            out.broke(
                Rule::Undisturbed,
                format!(
                    "{pod_name} is evicted from {node}, where {precious} must not be disturbed"
                ),
            );
        }
    }

    /// OP-2, OP-17, OP-22, OP-67.
    fn check_roll_up(&self, number: u64, rows: &[Row], out: &mut Out) {
        let plain = rows.iter().filter(|row| !is_spare(row));
        let said: i128 = plain.clone().map(|row| row.aggregate.get("cpu")).sum();
        let told = self.ledger.told.get(&number);
        let believed: i128 =
            told.map_or(0, |told| told.believed.values().map(|one| one.milli).sum());
        if said != believed {
            out.broke(
                Rule::WholeDemand,
                format!(
                    "operator {number} asks for {said} milli-cpu, and its requests for {believed}"
                ),
            );
        }
        if let Some(row) = plain.into_iter().find(|row| row.whole_units) {
            let group = row.group.as_str();
            out.broke(
                Rule::WholeDemand,
                format!("the row {group} asks for whole units, though it is no spare"),
            );
        }
        let record = self.store.spare_record.as_deref().unwrap_or_default();
        for row in rows.iter().filter(|row| is_spare(row)) {
            let unit = row.min_unit.get("cpu").max(1);
            let count = row.aggregate.get("cpu") / unit;
            if recorded(record, unit) < count {
                let group = row.group.as_str();
                out.broke(
                    Rule::SparesRecorded,
                    format!("{count} of {group} are asked for, and the record has fewer"),
                );
            }
        }
    }

    /// OP-33: a network that broke looks like many Nodes at once.
    fn check_report(&mut self, number: u64, nodes: &[NodeLine], out: &mut Out) {
        let told = self.ledger.told.entry(number).or_default();
        let lost = nodes.iter().filter(|line| !line.ready);
        let lost = lost
            .filter(|line| told.ready.contains(&line.machine))
            .count();
        let was = told.ready.len();
        for line in nodes {
            if line.ready {
                told.ready.insert(line.machine.clone());
            } else {
                told.ready.remove(&line.machine);
            }
        }
        if 3 <= lost && was < 2 * lost {
            out.broke(
                Rule::MassFlip,
                format!("{lost} of {was} Nodes are reported as lost at once"),
            );
        }
    }

    /// OP-27, OP-53.
    fn check_word(&self, now: Moment, number: u64, write: &Write, out: &mut Out) {
        match write {
            Write::Acknowledge { request, uid, .. } => {
                let told = self.ledger.told.get(&number);
                let accepted = told.and_then(|told| told.accepted_left);
                let made = self.ledger.made.get(uid).copied();
                let is_known = accepted.zip(made).is_some_and(|(left, made)| made <= left);
                if made.is_some() && !is_known {
                    out.broke(
                        Rule::AcknowledgedTruly,
                        format!(
                            "{request} is acknowledged, and no roll-up that has it was accepted"
                        ),
                    );
                }
            }
            Write::Serve {
                request, served, ..
            } if !served.is_served => {
                let owner = self
                    .store
                    .request(request)
                    .and_then(|one| one.owner.as_ref());
                let pod = owner.and_then(|owner| self.store.pod(&owner.key));
                // Whoever still says that it is stuck is told so, however late that is.
                let told = self.ledger.told.get(&number);
                let known = told.and_then(|told| told.believed.get(request));
                let says_so = known.is_some_and(|one| one.is_stuck);
                let runs = pod.filter(|pod| {
                    let ran = now.since(Moment(pod.bound_at));
                    !says_so && !pod.node.is_empty() && KNOWN_TO_RUN < ran
                });
                if let Some(pod) = runs {
                    out.broke(
                        Rule::ToldTruly,
                        format!("{} runs, and is told that it waits", pod.key.name),
                    );
                }
            }
            _ => {}
        }
    }

    /// Judges a write as it is carried out.
    pub(super) fn look_at_write(&mut self, now: Moment, write: &Write, out: &mut Out) {
        match write {
            Write::CordonNode { node, .. } => {
                let is_new = self.store.node(node).is_some_and(|node| !node.is_cordoned);
                let at = self.ledger.cordoned.entry(node.clone()).or_insert(now);
                if is_new {
                    *at = now;
                }
            }
            Write::ReleaseNode { node, .. } => {
                self.ledger.cordoned.remove(node);
            }
            Write::DeleteNode { node, .. } => {
                self.ledger.cordoned.remove(node);
                if self.runs_node(node) {
                    out.broke(
                        Rule::NodeKept,
                        format!("{node} is deleted, though its machine runs"),
                    );
                }
            }
            _ => {}
        }
    }

    /// A machine was drained by its provider. Nobody waits for it: its Pods must have left as their budgets allow.
    pub(crate) fn drained(&self, now: Moment, machine: &MachineId, out: &mut Out) {
        let order = self.ledger.orders.get(machine);
        let waits = order.is_some_and(|order| order.voluntary && now.time() < order.deadline);
        let name = node_name(machine);
        let mut pods = self.store.pods_on(&name);
        let victim = pods.find(|pod| self.is_healthy(pod));
        if let Some(pod) = victim.filter(|_| waits) {
            let pod = &pod.key.name;
            out.broke(
                Rule::BudgetsKept,
                format!("{machine} is taken away under {pod}, though nobody waits for it"),
            );
        }
    }

    /// What a person cordoned stays so, whatever happens.
    pub(super) fn check_persons(&self, out: &mut Out) {
        for (name, uid) in &self.ledger.persons {
            let node = self.store.node(name).filter(|node| node.uid == *uid);
            if node.is_some_and(|node| !node.is_cordoned) {
                out.broke(
                    Rule::PersonsCordon,
                    format!("{name} is no longer cordoned, as a person wants it"),
                );
            }
        }
    }
}
