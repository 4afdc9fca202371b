//! Phase 2: machines of lower priority make way for Needs still short (RF-10, V-1..V-9).

use crate::{
    NONE,
    book::{Book, MachineIx, NeedIx},
    excess::Held,
    pool::PoolKind,
    spread::Balance,
    tables::{ShapeIx, score},
};
use std::cmp::Ordering;

/// A machine that may be preempted, with what ranks it (V-5).
#[derive(Clone, Copy)]
struct Victim {
    machine: MachineIx,
    /// Excess that is about to go anyway.
    has_head_start: bool,
    score: f64,
}

/// What is still wanted of a Need after promises and victims, kept beside its Phase 1 residual.
struct Deficit {
    dimensions: Vec<u32>,
    left: Vec<i128>,
}

impl Deficit {
    fn of(book: &Book, need: NeedIx) -> Self {
        let entry = book.need(need);
        let dimensions = entry
            .wanted
            .iter()
            .map(|(dimension, _)| *dimension)
            .collect();
        Self {
            dimensions,
            left: book.holding(need).left.to_vec(),
        }
    }

    fn is_covered(&self) -> bool {
        self.left.iter().all(|left| *left <= 0)
    }

    fn shrinks_by(&self, book: &Book, shape: ShapeIx) -> bool {
        let shape = &book.tables.shapes[shape as usize];
        let mut each = self.dimensions.iter().zip(&self.left);
        each.any(|(dimension, left)| 0 < *left && 0 < shape.amount(*dimension))
    }

    fn change(&mut self, book: &Book, machine: MachineIx, sign: i128) {
        let shape = &book.tables.shapes[book.record(machine).shape as usize];
        for (dimension, left) in self.dimensions.iter().zip(&mut self.left) {
            *left -= sign * i128::from(shape.amount(*dimension));
        }
    }
}

/// What Phase 2 did for one Need.
pub(crate) struct Preemption {
    pub(crate) need: NeedIx,
    pub(crate) victims: Vec<MachineIx>,
    /// Whether it claimed drains that were going on.
    pub(crate) promised: bool,
    /// Whether the Need is covered once all of it is done.
    pub(crate) resolved: bool,
}

impl Book {
    /// Preempts for one Need. Marks the victims and claims the drains it promises itself.
    pub(crate) fn preempt(&mut self, need: NeedIx, held: &Held) -> Preemption {
        let is_gang = self.tables.profiles[self.need(need).profile as usize].same_key != NONE;
        let mut nothing = Preemption {
            need,
            victims: Vec::new(),
            promised: false,
            resolved: false,
        };
        if self.is_parked(need) || (is_gang && self.holding(need).domain == NONE) {
            return nothing;
        }
        let mut deficit = Deficit::of(self, need);
        let mut draining = self.free_drains(need);
        let drains = self.pick(need, &mut deficit, &mut draining, Self::by_price);
        let mut victims = self.victims(need, held);
        if self.is_traced(need) {
            let ranks = victims.iter();
            let ranks = ranks.map(|victim| (victim.machine, victim.score, victim.has_head_start));
            self.trace_victims(need, held, ranks);
        }
        let order = |_: &Self, one: &Victim, other: &Victim| by_rank(one, other);
        let mut picked = self.pick_among(need, &mut deficit, &drains, &mut victims, order);
        self.trace_picked(need, &picked, &deficit.left);
        if deficit.is_covered() && !self.is_spread(need) {
            self.prune_victims(&mut deficit, &mut picked);
        }
        if is_gang && !deficit.is_covered() {
            return nothing;
        }
        nothing.promised = !drains.is_empty();
        for machine in drains {
            self.claim_promised(need, machine);
        }
        for machine in &picked {
            self.records[*machine as usize].preempted = true;
        }
        self.holding_mut(need).victims.clone_from(&picked);
        nothing.victims = picked;
        nothing.resolved = deficit.is_covered();
        nothing
    }

    /// A drain promised in Phase 2 is claimed, but the residual stays Phase 1's (VD-1).
    fn claim_promised(&mut self, need: NeedIx, machine: MachineIx) {
        let left = self.holding(need).left.clone();
        self.claim(need, machine);
        self.holding_mut(need).left = left;
    }

    /// Draining machines without intent that the Need can use, by (price, id).
    fn free_drains(&mut self, need: NeedIx) -> Vec<MachineIx> {
        let mut machines = Vec::new();
        let usage = self.need(need).usage as usize;
        for at in 0..self.tables.uses[usage].by_price.len() {
            let shape = self.tables.uses[usage].by_price[at];
            let Self { stocks, ids, .. } = self;
            let pool = stocks[shape as usize].pool_mut(PoolKind::Draining);
            if pool.free() == 0 {
                continue;
            }
            pool.sort(ids);
            if self.is_within_reach(need, shape) {
                let pool = self.stocks[shape as usize].pool(PoolKind::Draining);
                let free = |machine: &&MachineIx| self.claimant(**machine) == NONE;
                machines.extend(pool.machines.iter().filter(free));
            }
        }
        machines.sort_by(|one, other| {
            self.by_price(one, other)
                .then_with(|| self.ids.compare(*one, *other))
        });
        machines
    }

    fn by_price(&self, one: &MachineIx, other: &MachineIx) -> Ordering {
        let price = |at: &MachineIx| self.tables.shapes[self.record(*at).shape as usize].price;
        price(one).cmp(&price(other))
    }

    /// Inside the gang's domain; for a spread Need, inside some domain of every key.
    fn is_within_reach(&self, need: NeedIx, shape: ShapeIx) -> bool {
        let is_gang = self.tables.profiles[self.need(need).profile as usize].same_key != NONE;
        if is_gang {
            self.domain_of(need, shape) == self.holding(need).domain
        } else {
            self.lies_somewhere(need, shape)
        }
    }

    fn pick(
        &self,
        need: NeedIx,
        deficit: &mut Deficit,
        machines: &mut Vec<MachineIx>,
        order: impl Fn(&Self, &MachineIx, &MachineIx) -> Ordering,
    ) -> Vec<MachineIx> {
        let mut victims: Vec<Victim> = machines
            .drain(..)
            .map(|machine| Victim {
                machine,
                has_head_start: false,
                score: 0.0,
            })
            .collect();
        let order =
            |book: &Self, one: &Victim, other: &Victim| order(book, &one.machine, &other.machine);
        self.pick_among(need, deficit, &[], &mut victims, order)
    }

    /// Picks along the order until the deficit is covered; for a spread Need by eligibility.
    fn pick_among(
        &self,
        need: NeedIx,
        deficit: &mut Deficit,
        before: &[MachineIx],
        victims: &mut Vec<Victim>,
        order: impl Fn(&Self, &Victim, &Victim) -> Ordering,
    ) -> Vec<MachineIx> {
        let shape = |victim: &Victim| self.record(victim.machine).shape;
        victims.retain(|victim| deficit.shrinks_by(self, shape(victim)));
        let spread = self.is_spread(need);
        victims.sort_by(|one, other| {
            let values = || self.by_values(need, shape(one), shape(other));
            let values = || if spread { values() } else { Ordering::Equal };
            order(self, one, other)
                .then_with(values)
                .then_with(|| self.ids.compare(one.machine, other.machine))
        });
        let mut picked = Vec::new();
        let mut balance = Balance::new(self, need, victims.iter().map(shape));
        for machine in before {
            balance.count(self, self.record(*machine).shape);
        }
        while !deficit.is_covered() {
            let eligible = |victim: &Victim| {
                deficit.shrinks_by(self, shape(victim)) && balance.admits(self, shape(victim))
            };
            let Some(place) = victims.iter().position(eligible) else {
                break;
            };
            let machine = victims.remove(place).machine;
            deficit.change(self, machine, 1);
            balance.count(self, self.record(machine).shape);
            picked.push(machine);
        }
        picked
    }

    /// Gives back each victim without which the deficit is still covered (RF-8).
    fn prune_victims(&self, deficit: &mut Deficit, picked: &mut Vec<MachineIx>) {
        picked.retain(|machine| {
            deficit.change(self, *machine, -1);
            let needed = !deficit.is_covered();
            if needed {
                deficit.change(self, *machine, 1);
            }
            needed
        });
    }

    /// Configured machines of lower priority the Need can use (V-3).
    fn victims(&mut self, need: NeedIx, held: &Held) -> Vec<Victim> {
        let priority = self.priority(need);
        let mut victims = Vec::new();
        let mut looked_at = 0;
        for shape in &self.tables.uses[self.need(need).usage as usize].by_price {
            if !self.is_within_reach(need, *shape) {
                continue;
            }
            let configured = &self.stocks[*shape as usize].configured;
            looked_at += configured.len();
            for machine in configured {
                let record = self.record(*machine);
                let raised = held.priority(*machine).unwrap_or(i32::MIN);
                let Some(standing) = self.victim_priority(*machine, priority) else {
                    continue;
                };
                let standing = standing.max(raised);
                if priority <= standing || record.preempted {
                    continue;
                }
                let cluster = &self.clusters[record.cluster as usize];
                let is_loose = self.claimant(*machine) == NONE && cluster.known && cluster.ready;
                let terms = &self.tables.terms[record.terms as usize];
                let gap = i64::from(priority) - i64::from(standing);
                victims.push(Victim {
                    machine: *machine,
                    has_head_start: is_loose && held.priority(*machine).is_none(),
                    score: score(gap, terms),
                });
            }
        }
        self.work.machines += looked_at as u64;
        victims
    }

    /// How long a victim may take to drain (V-7).
    pub(crate) fn grace(&self, need: NeedIx, machine: MachineIx, held: &Held) -> u32 {
        let priority = self.priority(need);
        let standing = self.victim_priority(machine, i32::MAX).unwrap_or(i32::MAX);
        let standing = standing.max(held.priority(machine).unwrap_or(i32::MIN));
        match i64::from(priority) - i64::from(standing) {
            900_001.. => 10,
            500_001.. => 30,
            100_001.. => 120,
            _ => 600,
        }
    }
}

fn by_rank(one: &Victim, other: &Victim) -> Ordering {
    other
        .has_head_start
        .cmp(&one.has_head_start)
        .then_with(|| other.score.total_cmp(&one.score))
}
