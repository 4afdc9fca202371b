//! Cover: what Needs have, judged from the outside, by adding up.
//!
//! ```text
//! reclaim of m from c ─▶ every plain Need of c that can use m is covered by serving machines (RF-11)
//! probe ─▶ a Need short of what is attributed to it, and a free machine it may take ─▶ not for long
//! ```
//!
//! Plain Needs only: which rack a gang waits for, and how far a spread may lean, is the engine's
//! business, and the oracle's to check.

use super::{Decided, Rule};
use crate::{
    clock::seconds,
    log::Sample,
    world::{Happening, World},
};
use bigfleet_model::{ActionKind, Amounts, MachineId, NeedKey, Row, Shape, State};
use bigfleet_shard_core::ShardCore;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// With so much in flight, admission (SH-2) may be what a Need waits for.
const ADMITTED: usize = 4000;

impl World {
    /// One cycle's decision, just committed.
    pub(crate) fn look_at_decision(&mut self, decided: &[Decided]) {
        let of = |kind: ActionKind| decided.iter().filter(move |one| one.2 == kind);
        if of(ActionKind::Reclaim).next().is_none() {
            return;
        }
        let mut reclaims: BTreeMap<usize, u32> = BTreeMap::new();
        for (_, machine, _, cluster) in of(ActionKind::Reclaim) {
            let name = cluster.as_ref().map_or("", |cluster| cluster.as_str());
            let Some(cluster) = self.cluster_named(name) else {
                continue;
            };
            *reclaims.entry(cluster).or_default() += 1;
            let heard = self
                .process()
                .is_some_and(|one| one.heard.contains(&cluster));
            if !heard {
                let text = format!("{machine} is reclaimed from {name}, which has not reported");
                self.watch.broke(Rule::ReportedFirst, self.now, text);
            }
            self.check_cover(cluster, machine, decided);
        }
        self.check_cap(&reclaims, of(ActionKind::Preempt).count() as u32);
    }

    /// RF-11, and §10.4: nobody acquires for a Need what it gives up.
    fn check_cover(&mut self, cluster: usize, machine: &MachineId, decided: &[Decided]) {
        let Some(core) = self.process().map(|process| &process.core) else {
            return;
        };
        let Some(shape) = core.machine(machine).map(|one| one.shape().clone()) else {
            return;
        };
        let id = &self.clusters[cluster].id;
        let rows = self.watch.demand.of(cluster).unwrap_or_default();
        for row in rows.iter().filter(|row| is_plain(row)) {
            let can_use = shape.serves(&row.profile, &row.min_unit)
                && shape.effective().contributes_to(&row.aggregate);
            if !can_use {
                continue;
            }
            let key = key(id, row);
            let serving = attributed(core, &key, |state| state == State::Configured);
            let text = if !serving.covers(&row.aggregate) {
                let covered = format!("{serving:?} of {:?}", row.aggregate);
                format!("{machine} is reclaimed from {id} while {key} is served {covered}")
            } else if let Some(other) = acquired_for(core, &key, decided) {
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
            if patience < now.since(since) {
                let text = format!("{need} is short since {since} s beside machines it may take");
                self.watch.broke(Rule::ServedInTime, now, text);
                return;
            }
        }
    }

    /// One cycle, one List, and what the network and a cycle may take in between.
    fn patience(&self) -> u64 {
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

    /// Plain Needs with less attributed to them than they want, while the provider and the ledger
    /// both have a machine free that they can use.
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
            for row in rows.iter().filter(|row| is_plain(row)) {
                let key = key(&cluster.id, row);
                let has = has.remove(&key).unwrap_or_default();
                if has.covers(&row.aggregate) {
                    continue;
                }
                let free = free.get_or_insert_with(|| self.free_shapes(core));
                let usable = |shape: &Arc<Shape>| {
                    shape.serves(&row.profile, &row.min_unit)
                        && shape.effective().contributes_to(&row.aggregate)
                };
                if free.iter().any(usable) {
                    short.insert(key);
                }
            }
        }
        short
    }

    /// The shapes of machines nobody has, as the ledger and the provider agree.
    fn free_shapes(&self, core: &ShardCore) -> BTreeSet<Arc<Shape>> {
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
        there.map(|one| Arc::clone(one.shape())).collect()
    }

    fn sample(&mut self) {
        let Some(process) = self.processes.get(&self.current) else {
            return;
        };
        let gauges = process.core.gauges();
        let states = State::ALL.map(|state| self.cloud.count(state) as u32);
        let mut serving = Vec::new();
        if self.trace.is_on() {
            serving = vec![0; self.clusters.len()];
            for one in self
                .cloud
                .machines()
                .filter(|one| one.state == State::Configured)
            {
                if let Some(cluster) = self.cluster_named(&one.cluster) {
                    serving[cluster] += 1;
                }
            }
        }
        let sample = Sample {
            at: self.now,
            short: process.core.shortfalls().count() as u32,
            short_by_class: gauges.shortfalls_by_class,
            states,
            serving,
            pending: self.clusters.iter().map(|one| one.pods.pending()).sum(),
        };
        self.trace.sample(&sample);
        self.log.samples.push(sample);
    }
}

fn is_plain(row: &Row) -> bool {
    row.profile.same_key().is_none() && row.profile.hard_spreads().next().is_none()
}

fn key(cluster: &bigfleet_model::ClusterId, row: &Row) -> NeedKey {
    NeedKey {
        cluster: cluster.clone(),
        fingerprint: row.profile.fingerprint().clone(),
        group: row.group.clone(),
    }
}

fn attributed(core: &ShardCore, need: &NeedKey, counts: impl Fn(State) -> bool) -> Amounts {
    let own = core.machines().filter(|one| {
        counts(one.state())
            && one
                .attribution()
                .is_some_and(|attribution| attribution == *need)
    });
    own.fold(Amounts::default(), |sum, one| {
        sum.add(one.shape().effective())
    })
}

fn attributed_by_need(core: &ShardCore) -> BTreeMap<NeedKey, Amounts> {
    let mut has: BTreeMap<NeedKey, Amounts> = BTreeMap::new();
    for one in core.machines().filter(|one| one.state() != State::Failed) {
        if let Some(need) = one.attribution() {
            let sum = has.entry(need).or_default();
            *sum = sum.add(one.shape().effective());
        }
    }
    has
}

/// A machine newly acquired for a Need in this decision; one that only goes on its way is none.
fn acquired_for(core: &ShardCore, need: &NeedKey, decided: &[Decided]) -> Option<MachineId> {
    let mut acquired = decided.iter().filter(|one| one.2 == ActionKind::Provision);
    let found = acquired.find(|(_, machine, ..)| {
        let known = core.machine(machine).and_then(|one| one.attribution());
        known.is_some_and(|attribution| attribution == *need)
    });
    found.map(|(_, machine, ..)| machine.clone())
}
