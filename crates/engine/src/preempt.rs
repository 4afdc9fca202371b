//! Phase 2: machines of lower priority make way for Needs still short (RF-10, V-1..V-9).

use crate::{
    catalog::victim_score,
    excess::Excess,
    fleet_tables::FleetTables,
    index::{DimensionIndex, MachineIndex, NeedIndex, ShapeIndex},
    pool::PoolKind,
    spread::Balance,
};
use std::cmp::Ordering;

/// A machine that may be preempted, with what ranks it (V-5).
#[derive(Clone, Copy)]
struct VictimCandidate {
    machine: MachineIndex,
    /// It is excess and would be reclaimed anyway.
    has_head_start: bool,
    score: f64,
}

/// What a Need still wants after the drains and victims of Phase 2; its Phase 1 residual stays as it is.
struct Deficit {
    need: NeedIndex,
    dimensions: Vec<DimensionIndex>,
    left: Vec<i128>,
}

impl Deficit {
    fn of(tables: &FleetTables, need: NeedIndex) -> Self {
        let entry = tables.need(need);
        let dimensions = entry
            .wanted
            .iter()
            .map(|(dimension, _)| dimension)
            .collect();
        Self {
            need,
            dimensions,
            left: tables.holding(need).left.to_vec(),
        }
    }

    fn is_covered(&self) -> bool {
        self.left.iter().all(|left| *left <= 0)
    }

    fn shrinks_by(&self, tables: &FleetTables, shape: ShapeIndex) -> bool {
        let credit = tables.credit(self.need, shape);
        let mut each = self.dimensions.iter().zip(&self.left);
        each.any(|(dimension, left)| 0 < *left && 0 < credit.amount(*dimension))
    }

    fn change(&mut self, tables: &FleetTables, machine: MachineIndex, sign: i128) {
        let credit = tables.credit(self.need, tables.record(machine).shape);
        for (dimension, left) in self.dimensions.iter().zip(&mut self.left) {
            *left -= sign * i128::from(credit.amount(*dimension));
        }
    }
}

/// What Phase 2 did for one Need.
pub(crate) struct PreemptionResult {
    pub(crate) need: NeedIndex,
    pub(crate) victims: Vec<MachineIndex>,
    /// Whether it claimed machines that were already draining.
    pub(crate) promised: bool,
    /// Whether the Need will be covered when all drains are done.
    pub(crate) resolved: bool,
}

impl FleetTables {
    /// Preempts for one Need: marks its victims, and claims machines that are already draining.
    pub(crate) fn preempt(&mut self, need: NeedIndex, excess: &Excess) -> PreemptionResult {
        let is_gang = self.is_gang(need);
        let mut result = PreemptionResult {
            need,
            victims: Vec::new(),
            promised: false,
            resolved: false,
        };
        if self.is_parked(need) || (is_gang && self.holding(need).domain.is_none()) {
            return result;
        }
        let mut deficit = Deficit::of(self, need);
        let mut draining = self.free_drains(need);
        let drains = self.pick(need, &mut deficit, &mut draining, Self::by_price);
        let mut victims = self.victims(need, excess);
        if self.is_traced(need) {
            let ranks = victims.iter();
            let ranks = ranks.map(|victim| (victim.machine, victim.score, victim.has_head_start));
            self.trace_victims(need, excess, ranks);
        }
        let order = |_: &Self, one: &VictimCandidate, other: &VictimCandidate| by_rank(one, other);
        let mut picked = self.pick_among(need, &mut deficit, &drains, &mut victims, order);
        self.trace_picked(need, &picked, &deficit.left);
        if deficit.is_covered() && !self.is_spread(need) {
            self.prune_victims(&mut deficit, &mut picked);
        }
        if is_gang && !deficit.is_covered() {
            return result;
        }
        result.promised = !drains.is_empty();
        for machine in drains {
            self.claim_promised(need, machine);
        }
        for machine in &picked {
            self.records[*machine].preempted = true;
        }
        self.holding_mut(need).victims.clone_from(&picked);
        result.victims = picked;
        result.resolved = deficit.is_covered();
        result
    }

    /// A drain promised in Phase 2 is claimed, but the residual stays Phase 1's (VD-1).
    fn claim_promised(&mut self, need: NeedIndex, machine: MachineIndex) {
        let left = self.holding(need).left.clone();
        self.claim(need, machine);
        self.holding_mut(need).left = left;
    }

    /// Draining machines without intent that the Need can use, by (price, id).
    fn free_drains(&mut self, need: NeedIndex) -> Vec<MachineIndex> {
        let mut machines = Vec::new();
        let shapes = self.catalog.by_price(self.need(need).usage);
        let is_free = |shape: &ShapeIndex| 0 < self.stocks[*shape].pool(PoolKind::Draining).free();
        for shape in shapes.filter(is_free).collect::<Vec<_>>() {
            let Self { stocks, ids, .. } = self;
            stocks[shape].pool_mut(PoolKind::Draining).sort(ids);
            if self.is_within_reach(need, shape) {
                let pool = self.stocks[shape].pool(PoolKind::Draining);
                let free = |machine: &&MachineIndex| self.claimant(**machine).is_none();
                machines.extend(pool.machines.iter().filter(free));
            }
        }
        machines.sort_by(|one, other| {
            self.by_price(one, other)
                .then_with(|| self.ids.compare(*one, *other))
        });
        machines
    }

    fn by_price(&self, one: &MachineIndex, other: &MachineIndex) -> Ordering {
        let price = |at: &MachineIndex| self.catalog.shapes[self.record(*at).shape].price;
        price(one).cmp(&price(other))
    }

    /// Inside the gang's domain; for a spread Need, inside some domain of every key.
    pub(crate) fn is_within_reach(&self, need: NeedIndex, shape: ShapeIndex) -> bool {
        if self.is_gang(need) {
            self.domain_of(need, shape) == self.holding(need).domain
        } else {
            self.lies_somewhere(need, shape)
        }
    }

    fn pick(
        &self,
        need: NeedIndex,
        deficit: &mut Deficit,
        machines: &mut Vec<MachineIndex>,
        order: impl Fn(&Self, &MachineIndex, &MachineIndex) -> Ordering,
    ) -> Vec<MachineIndex> {
        let mut victims: Vec<VictimCandidate> = machines
            .drain(..)
            .map(|machine| VictimCandidate {
                machine,
                has_head_start: false,
                score: 0.0,
            })
            .collect();
        let order = |tables: &Self, one: &VictimCandidate, other: &VictimCandidate| {
            order(tables, &one.machine, &other.machine)
        };
        self.pick_among(need, deficit, &[], &mut victims, order)
    }

    /// Picks in order until the deficit is covered; for a spread Need, only what keeps the spread.
    fn pick_among(
        &self,
        need: NeedIndex,
        deficit: &mut Deficit,
        before: &[MachineIndex],
        victims: &mut Vec<VictimCandidate>,
        order: impl Fn(&Self, &VictimCandidate, &VictimCandidate) -> Ordering,
    ) -> Vec<MachineIndex> {
        let shape = |victim: &VictimCandidate| self.record(victim.machine).shape;
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
            let eligible = |victim: &VictimCandidate| {
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

    /// Gives back each victim that the deficit is covered without (RF-8).
    fn prune_victims(&self, deficit: &mut Deficit, picked: &mut Vec<MachineIndex>) {
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
    fn victims(&mut self, need: NeedIndex, excess: &Excess) -> Vec<VictimCandidate> {
        let priority = self.priority(need);
        let mut victims = Vec::new();
        let mut looked_at = 0;
        for shape in self.catalog.by_price(self.need(need).usage) {
            if !self.is_within_reach(need, shape) {
                continue;
            }
            let configured = &self.stocks[shape].configured;
            looked_at += configured.len();
            for machine in configured {
                let record = self.record(*machine);
                let raised = excess.hold_priority(*machine).unwrap_or(i32::MIN);
                let Some(standing) = self.victim_priority(*machine, priority) else {
                    continue;
                };
                let standing = standing.max(raised);
                if priority <= standing || record.preempted {
                    continue;
                }
                let may_reclaim = record
                    .cluster
                    .is_some_and(|cluster| self.may_reclaim(cluster));
                let is_loose = self.claimant(*machine).is_none() && may_reclaim;
                let terms = &self.catalog.terms[record.terms].terms;
                let gap = i64::from(priority) - i64::from(standing);
                victims.push(VictimCandidate {
                    machine: *machine,
                    has_head_start: is_loose && excess.hold_priority(*machine).is_none(),
                    score: victim_score(gap, terms),
                });
            }
        }
        self.work.machines += looked_at as u64;
        victims
    }

    /// How long a victim may take to drain (V-7).
    pub(crate) fn grace(&self, need: NeedIndex, machine: MachineIndex, excess: &Excess) -> u32 {
        let priority = self.priority(need);
        let standing = self.victim_priority(machine, i32::MAX).unwrap_or(i32::MAX);
        let standing = standing.max(excess.hold_priority(machine).unwrap_or(i32::MIN));
        match i64::from(priority) - i64::from(standing) {
            900_001.. => 10,
            500_001.. => 30,
            100_001.. => 120,
            _ => 600,
        }
    }
}

fn by_rank(one: &VictimCandidate, other: &VictimCandidate) -> Ordering {
    other
        .has_head_start
        .cmp(&one.has_head_start)
        .then_with(|| other.score.total_cmp(&one.score))
}
