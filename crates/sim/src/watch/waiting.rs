//! Waiting: who is short beside what it could have, for how long; and a sample for the charts.
//!
//! ```text
//! probe ─▶ a plain Need short of what is attributed to it, and a free machine it may take ─▶ not for long
//!          a gang short of what it has in every rack, and a rack that could hold all of it ─▶ nor that
//! ```
//!
//! Free is what the ledger and the provider agree nobody has. How far a spread may lean is the engine's
//! business, so hard spreads are left out.

use super::{Rule, cover};
use crate::{
    chart::BOUND,
    clock::seconds,
    descriptions,
    log::Sample,
    world::{Happening, World},
};
use bigfleet_model::{Amounts, Machine, NeedKey, Row, Shape, State};
use bigfleet_shard_core::ShardCore;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// A gang that found no rack tries again after so many cycles (engine.md §15).
const PARKED: u64 = 32;
/// With so much in flight, admission (SH-2) may be what a Need waits for.
const ADMITTED: usize = 4000;

impl World {
    /// Every ten seconds: a sample for the charts, and a look at who is short beside free supply.
    pub(crate) fn probe(&mut self) {
        self.queue.at(self.now.after(seconds(10)), Happening::Probe);
        self.sample();
        self.check_progress();
        self.check_marks();
        let judged = self.process().is_some_and(|process| {
            process.core.is_ready()
                && process.reachable
                && self.watch.paused_until < self.now
                && process.core.gauges().in_flight < ADMITTED
        });
        let short = if judged && self.cloud.away_until <= self.now {
            self.short_beside_free()
        } else {
            BTreeSet::new()
        };
        self.watch.short.retain(|need, _| short.contains(need));
        let (now, patience) = (self.now, self.patience());
        for need in short {
            let since = *self.watch.short.entry(need.clone()).or_insert(now);
            let parked = if need.group.is_empty() {
                0
            } else {
                seconds(self.plan.shard.cycle_seconds) * PARKED
            };
            if patience + parked + self.turn() < now.since(since) {
                let need = descriptions::need(&need);
                let text = format!("{need}: short since {since} s beside machines it may take");
                self.watch.broke(Rule::ServedInTime, now, text);
                return;
            }
        }
    }

    /// Where a cycle may commit only so many actions: until everything there is could have had its turn.
    fn turn(&self) -> u64 {
        let shard = &self.plan.shard;
        let cycles = match shard.actions_per_cycle {
            0 => 0,
            most => self.cloud.len().div_ceil(most),
        };
        seconds(shard.cycle_seconds) * cycles as u64
    }

    /// One cycle, one List, and what the network and a cycle may take in between.
    pub(super) fn patience(&self) -> u64 {
        let stages = &self.plan.stages;
        let ways = 2 * (stages.network.most() + stages.list.most() + stages.cycle.most());
        let weather = &self.plan.weather;
        let lists = if self.is_calm || weather.list_failed + weather.list_stale == 0 {
            1
        } else {
            6 // several in a row may fail or be stale
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
        let mut own = own_by_need(core);
        let mut supply = None;
        for (number, cluster) in self.clusters.iter().enumerate() {
            let acquires = cluster.session.is_some() && core.withheld(&cluster.id).is_none();
            let Some(rows) = self.watch.demand.of(number).filter(|_| acquires) else {
                continue;
            };
            for row in rows {
                let key = cover::key(&cluster.id, row);
                let own = own.remove(&key).unwrap_or_default();
                let places = Places::of(row, &own);
                if places.hold(row) || row.profile.hard_spreads().next().is_some() {
                    continue;
                }
                let supply = supply.get_or_insert_with(|| self.supply(core));
                let helped = match row.profile.same_key() {
                    None => supply.free_for(row).next().is_some(),
                    Some(_) => supply.completes(row, places),
                };
                if helped {
                    short.insert(key);
                }
            }
        }
        short
    }

    fn supply<'a>(&self, core: &'a ShardCore) -> Supply<'a> {
        let mut supply = Supply::default();
        let create = self.plan.stages.create.most();
        for one in core.machines() {
            let (_, count) = supply
                .0
                .entry(Arc::as_ptr(one.shape()))
                .or_insert((one.shape(), 0));
            let free = matches!(one.state(), State::Idle | State::Speculative)
                && one.intent().is_none()
                && core.leaving(one.id()).is_none()
                && !core.is_pending(one.id())
                && !self.watch.is_backing_off(one, self.now, create);
            let there = self.cloud.machine(one.id());
            let free = free && there.is_some_and(|there| there.state == one.state());
            *count += u32::from(free);
        }
        supply
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
            pending: self.clusters.iter().map(|one| one.pending()).sum(),
        };
        self.trace.sample(&sample);
        self.log.samples.push(sample);
    }
}

/// The shapes there are, by where each is kept, and how many machines of it are free.
#[derive(Default)]
struct Supply<'a>(BTreeMap<*const Shape, (&'a Shape, u32)>);

impl<'a> Supply<'a> {
    fn free_for(&self, row: &Row) -> impl Iterator<Item = (&'a Shape, u32)> {
        let free = self.0.values().filter(|(_, count)| 0 < *count);
        free.filter(|(shape, _)| cover::can_use(row, shape))
            .copied()
    }

    /// A gang that fits on one machine may be served beside others of its kind, under another name (RF-12).
    fn may_fold(&self, row: &Row) -> bool {
        let mut shapes = self.0.values();
        shapes.any(|(shape, _)| shape.effective().covers(&row.aggregate))
    }

    /// Whether some rack could hold all of a gang, with what it has and what is free there.
    fn completes(&self, row: &Row, mut places: Places<'a>) -> bool {
        if self.may_fold(row) {
            return false;
        }
        for (shape, count) in self.free_for(row) {
            places.add(row, shape, count);
        }
        places.hold(row)
    }
}

/// What a gang has in each rack; of any other Need everything is in one place.
#[derive(Default)]
struct Places<'a>(BTreeMap<&'a str, Amounts>);

impl<'a> Places<'a> {
    fn of(row: &Row, own: &[&'a Shape]) -> Self {
        let mut places = Self::default();
        own.iter().for_each(|shape| places.add(row, shape, 1));
        places
    }

    fn add(&mut self, row: &Row, shape: &'a Shape, count: u32) {
        let same = row.profile.same_key();
        if let Some(place) = same.map_or(Some(""), |same| shape.attribute(same)) {
            let sum = self.0.entry(place).or_default();
            *sum = sum.add(&cover::credit(row, shape).scale(count.into()));
        }
    }

    fn hold(&self, row: &Row) -> bool {
        self.0.values().any(|sum| sum.covers(&row.aggregate))
    }
}

/// What is attributed to each Need, of what counts.
fn own_by_need(core: &ShardCore) -> BTreeMap<NeedKey, Vec<&Shape>> {
    let mut own: BTreeMap<NeedKey, Vec<&Shape>> = BTreeMap::new();
    let counts = |one: &&Machine| one.state() != State::Failed && !core.is_not_ready(one.id());
    for one in core.machines().filter(counts) {
        if let Some(need) = one.attribution() {
            own.entry(need).or_default().push(one.shape());
        }
    }
    own
}
