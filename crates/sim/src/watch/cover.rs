//! Cover: what Needs have, judged from the outside, by adding up.
//!
//! ```text
//! reclaim of m from c ─▶ every Need of c that can use m and waits for another is covered by serving
//!                        machines (RF-11); every plain one, whether it waits or not; no gang in two racks
//! probe ─▶ a plain Need short of what is attributed to it, and a free machine it may take ─▶ not for long
//!          a gang short of what it has in every rack, and a rack that could hold all of it ─▶ nor that
//! ```
//!
//! Which rack a gang waits for, and how far a spread may lean, is the engine's business, and the oracle's
//! to check.

use super::{Decided, Rule};
use crate::{
    chart::BOUND,
    clock::seconds,
    log::Sample,
    world::{Happening, World},
};
use bigfleet_model::{ActionKind, Amounts, Machine, MachineId, NeedKey, Row, Shape, State};
use bigfleet_shard_core::ShardCore;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// A gang that found no rack tries again after so many cycles (§15).
const PARKED: u64 = 32;
/// With so much in flight, admission (SH-2) may be what a Need waits for.
const ADMITTED: usize = 4000;

impl World {
    /// One cycle's decision, just committed, and the machines whose commitments it changed.
    pub(crate) fn look_at_decision(&mut self, decided: &[Decided], touched: &BTreeSet<&MachineId>) {
        if let Some((one, earlier)) = self.watch.commits.doubled(decided) {
            let (operation, machine) = (one.operation, &one.machine);
            let text = format!("{operation} begins on {machine} while {earlier} is under way");
            self.watch.broke(Rule::OneOperation, self.now, text);
        }
        self.check_bought(decided, touched);
        let mut drained: BTreeMap<usize, (u32, u32)> = BTreeMap::new();
        for one in decided {
            let (machine, name) = (&one.machine, one.cluster.as_ref());
            let name = name.map_or("", |cluster| cluster.as_str());
            let Some(cluster) = self.cluster_named(name) else {
                continue;
            };
            match one.kind {
                ActionKind::Reclaim => drained.entry(cluster).or_default().0 += 1,
                ActionKind::Preempt => drained.entry(cluster).or_default().1 += 1,
                ActionKind::Bootstrap | ActionKind::Provision | ActionKind::Delete => {}
            }
            if one.kind != ActionKind::Reclaim {
                continue;
            }
            let heard = self
                .process()
                .is_some_and(|one| one.heard.contains(&cluster));
            if !heard {
                let text = format!("{machine} is reclaimed from {name}, which has not reported");
                self.watch.broke(Rule::ReportedFirst, self.now, text);
            }
            self.check_cover(cluster, machine, decided);
        }
        self.check_cap(&drained);
    }

    /// RF-11, and §10.4: nobody acquires for a Need what it gives up.
    pub(super) fn check_cover(&mut self, cluster: usize, machine: &MachineId, decided: &[Decided]) {
        let Some(core) = self.process().map(|process| &process.core) else {
            return;
        };
        let Some(shape) = core.machine(machine).map(|one| one.shape().clone()) else {
            return;
        };
        let id = &self.clusters[cluster].id;
        let rows = self.watch.demand.of(cluster).unwrap_or_default();
        for row in rows {
            if !can_use(row, &shape) {
                continue;
            }
            let key = key(id, row);
            // What never became a node serves nobody; it is kept for its own Need, and for one that
            // waits for another machine.
            let waits =
                |one: &Machine| is_attributed(one, &key) && one.state() != State::Configured;
            let waits = core.machines().any(waits);
            let is_node = self.clusters[cluster].pods.has_node(machine);
            let of_no_use = self.plan.clusters[cluster].node_reports
                && !is_node
                && !was_for(core, machine, &key);
            // Where a gang may stand is the engine's business, but what it waits for has not arrived.
            if !waits && (of_no_use || !is_plain(row)) || !is_in_one_place(core, &key, row) {
                continue;
            }
            let serving = attributed(core, &key, |one| one.state() == State::Configured);
            let text = if !serving.covers(&row.aggregate) {
                let own = core.machines().filter(|one| is_attributed(one, &key));
                let own = names(own, core);
                let wanted = &row.aggregate;
                let node = if is_node { "" } else { " (no node)" };
                format!(
                    "{machine}{node} is reclaimed from {id} while {key} wants {wanted:?} and has {own}"
                )
            } else if let Some(other) = acquired_for(&key, decided).filter(|_| is_plain(row)) {
                format!("{machine} is reclaimed from {id} while {other} is acquired for {key}")
            } else {
                continue;
            };
            let rule = match serving.covers(&row.aggregate) {
                true => Rule::NoRoundTrip,
                false => Rule::MakeBeforeBreak,
            };
            self.watch.broke(rule, self.now, text);
            return;
        }
    }

    /// Every ten seconds: a sample for the charts, and a look at who is short beside free supply.
    pub(crate) fn probe(&mut self) {
        self.queue.at(self.now.after(seconds(10)), Happening::Probe);
        self.sample();
        self.check_progress();
        let limited = self.plan.shard.actions_per_cycle != 0;
        let judged = self.process().is_some_and(|process| {
            process.core.is_ready()
                && process.reachable
                && self.watch.paused_until < self.now
                && process.core.gauges().in_flight < ADMITTED
        });
        let short = match judged && !limited && self.cloud.away_until <= self.now {
            true => self.short_beside_free(),
            false => BTreeSet::new(),
        };
        self.watch.short.retain(|need, _| short.contains(need));
        let (now, patience) = (self.now, self.patience());
        for need in short {
            let since = *self.watch.short.entry(need.clone()).or_insert(now);
            let parked = match need.group.is_empty() {
                true => 0,
                false => seconds(self.plan.shard.cycle_seconds) * PARKED,
            };
            if patience + parked < now.since(since) {
                let text = format!("{need} is short since {since} s beside machines it may take");
                self.watch.broke(Rule::ServedInTime, now, text);
                return;
            }
        }
    }

    /// One cycle, one List, and what the network and a cycle may take in between.
    pub(super) fn patience(&self) -> u64 {
        let stages = &self.plan.stages;
        let ways = 2 * (stages.network.most() + stages.list.most() + stages.cycle.most());
        let lists = match self.is_calm
            || self.plan.weather.list_failed + self.plan.weather.list_stale == 0
        {
            true => 1,
            false => 6, // several in a row may fail or be stale
        };
        seconds(self.plan.shard.cycle_seconds) * (1 + lists) + ways + seconds(10)
    }

    /// Needs with less attributed to them than they want, while the provider and the ledger both have
    /// a machine free that they can use; for gangs, a rack of them that is enough.
    fn short_beside_free(&self) -> BTreeSet<NeedKey> {
        let mut short = BTreeSet::new();
        let Some(core) = self.process().map(|process| &process.core) else {
            return short;
        };
        let mut has = attributed_by_need(core);
        let mut free = None;
        for (number, cluster) in self.clusters.iter().enumerate() {
            let acquires = cluster.session.is_some() && core.withheld(&cluster.id).is_none();
            let Some(rows) = self.watch.demand.of(number).filter(|_| acquires) else {
                continue;
            };
            for row in rows {
                let key = key(&cluster.id, row);
                let has = has.remove(&key).unwrap_or_default();
                let same = row.profile.same_key();
                let served = has.covers(&row.aggregate) && same.is_none();
                if served || row.profile.hard_spreads().next().is_some() {
                    continue;
                }
                let free = free.get_or_insert_with(|| self.free_shapes(core));
                let usable = free.iter().filter(|(shape, _)| can_use(row, shape));
                let helps = match same {
                    None => usable.count() != 0,
                    Some(same) => {
                        let own = own_places(core, &key, same);
                        !may_fold(row, core) && completes(row, same, own, usable)
                    }
                };
                if helps {
                    short.insert(key);
                }
            }
        }
        short
    }

    /// The shapes of machines nobody has, as the ledger and the provider agree, and how many each.
    fn free_shapes(&self, core: &ShardCore) -> BTreeMap<Arc<Shape>, u32> {
        let free = core.machines().filter(|one| {
            matches!(one.state(), State::Idle | State::Speculative)
                && one.intent().is_none()
                && !core.is_pending(one.id())
                && !self.watch.is_backing_off(one, self.now)
        });
        let there = free.filter(|one| {
            let there = self.cloud.machine(one.id());
            there.is_some_and(|there| there.state == one.state())
        });
        let mut shapes = BTreeMap::new();
        there.for_each(|one| *shapes.entry(Arc::clone(one.shape())).or_default() += 1);
        shapes
    }

    fn sample(&mut self) {
        let Some(process) = self.processes.get(&self.current) else {
            return;
        };
        let gauges = process.core.gauges();
        let states = State::ALL.map(|state| self.cloud.count(state) as u32);
        let mut clusters = Vec::new();
        if self.trace.is_on() {
            let ids = self.clusters.iter().map(|one| one.id.clone());
            clusters = ids.map(|id| (id, [0; 3])).collect();
            for one in self.cloud.machines() {
                let state = BOUND.iter().position(|state| *state == one.state);
                if let (Some(cluster), Some(state)) = (self.cluster_named(&one.cluster), state) {
                    clusters[cluster].1[state] += 1;
                }
            }
        }
        let sample = Sample {
            at: self.now,
            short: process.core.shortfalls().count() as u32,
            short_by_class: gauges.shortfalls_by_class,
            states,
            clusters,
            pending: self.clusters.iter().map(|one| one.pods.pending()).sum(),
        };
        self.trace.sample(&sample);
        self.log.samples.push(sample);
    }
}

pub(super) fn is_plain(row: &Row) -> bool {
    row.profile.same_key().is_none() && row.profile.hard_spreads().next().is_none()
}

fn can_use(row: &Row, shape: &Shape) -> bool {
    shape.serves(&row.profile, &row.min_unit) && shape.effective().contributes_to(&row.aggregate)
}

/// A gang that fits on one machine may be served beside others of its kind, under another name (RF-12).
fn may_fold(row: &Row, core: &ShardCore) -> bool {
    let fits = |one: &Machine| one.shape().effective().covers(&row.aggregate);
    core.machines().any(fits)
}

/// What a gang has in each rack.
fn own_places(core: &ShardCore, need: &NeedKey, same: &str) -> BTreeMap<String, Amounts> {
    let mut places: BTreeMap<String, Amounts> = BTreeMap::new();
    for one in core
        .machines()
        .filter(|one| is_attributed(one, need) && !core.is_not_ready(one.id()))
    {
        if let Some(place) = one.shape().attribute(same) {
            let sum = places.entry(place.to_owned()).or_default();
            *sum = sum.add(one.shape().effective());
        }
    }
    places
}

/// Whether no rack has all of a gang yet, and one could with what is free there.
fn completes<'a>(
    row: &Row,
    same: &str,
    mut places: BTreeMap<String, Amounts>,
    usable: impl Iterator<Item = (&'a Arc<Shape>, &'a u32)>,
) -> bool {
    if places.values().any(|has| has.covers(&row.aggregate)) {
        return false;
    }
    for (shape, count) in usable {
        if let Some(place) = shape.attribute(same) {
            let sum = places.entry(place.to_owned()).or_default();
            *sum = (0..*count).fold(sum.clone(), |sum, _| sum.add(shape.effective()));
        }
    }
    places.values().any(|would| would.covers(&row.aggregate))
}

/// Of a gang in two racks, what it claims is in the rack the engine prefers; the rest it only has (RF-4).
fn is_in_one_place(core: &ShardCore, need: &NeedKey, row: &Row) -> bool {
    let Some(same) = row.profile.same_key() else {
        return true;
    };
    let own = core.machines().filter(|one| is_attributed(one, need));
    let places: BTreeSet<Option<&str>> = own.map(|one| one.shape().attribute(same)).collect();
    places.len() <= 1
}

fn key(cluster: &bigfleet_model::ClusterId, row: &Row) -> NeedKey {
    NeedKey {
        cluster: cluster.clone(),
        fingerprint: row.profile.fingerprint().clone(),
        group: row.group.clone(),
    }
}

/// What the machines attributed to a Need add up to, of those that count.
pub(super) fn attributed(
    core: &ShardCore,
    need: &NeedKey,
    counts: impl Fn(&Machine) -> bool,
) -> Amounts {
    let own = core
        .machines()
        .filter(|one| is_attributed(one, need) && counts(one) && !core.is_not_ready(one.id()));
    own.fold(Amounts::default(), |sum, one| {
        sum.add(one.shape().effective())
    })
}

/// Machines in words, with their states.
pub(super) fn names<'a>(machines: impl Iterator<Item = &'a Machine>, core: &ShardCore) -> String {
    let name = |one: &Machine| {
        let ready = readiness(core, one.id());
        format!("{} {}{ready}", one.id(), one.state())
    };
    machines.map(name).collect::<Vec<_>>().join(", ")
}

fn readiness(core: &ShardCore, machine: &MachineId) -> &'static str {
    match core.is_not_ready(machine) {
        true => " (no node)",
        false => "",
    }
}

/// Whether a machine that is being drained was committed to a Need.
fn was_for(core: &ShardCore, machine: &MachineId, need: &NeedKey) -> bool {
    core.machine(machine).is_some_and(|one| {
        let assignment = one.assignment();
        assignment.fingerprint == need.fingerprint && assignment.group == need.group
    })
}

/// [`Machine::attribution`] compared, without making it.
pub(super) fn is_attributed(machine: &Machine, need: &NeedKey) -> bool {
    match machine.state() {
        State::Configuring | State::Configured => {
            let assignment = machine.assignment();
            machine.cluster() == Some(&need.cluster)
                && assignment.fingerprint == need.fingerprint
                && assignment.group == need.group
        }
        State::Creating | State::Idle | State::Draining => {
            machine.intent().is_some_and(|intent| intent.need == *need)
        }
        State::Speculative | State::Deleting | State::Failed => false,
    }
}

fn attributed_by_need(core: &ShardCore) -> BTreeMap<NeedKey, Amounts> {
    let mut has: BTreeMap<NeedKey, Amounts> = BTreeMap::new();
    let counts = |one: &&Machine| one.state() != State::Failed && !core.is_not_ready(one.id());
    for one in core.machines().filter(counts) {
        if let Some(need) = one.attribution() {
            let sum = has.entry(need).or_default();
            *sum = sum.add(one.shape().effective());
        }
    }
    has
}

/// A machine newly acquired for a Need in this decision.
fn acquired_for(need: &NeedKey, decided: &[Decided]) -> Option<MachineId> {
    let mut acquired = decided.iter().filter(|one| one.acquires());
    let found = acquired.find(|one| one.need.as_ref() == Some(need));
    found.map(|one| one.machine.clone())
}
