//! Phase 2: machines of lower priority make way for Needs still short (RF-10, V-1..V-9).
//!
//! ```text
//! shape ── first asked for ──▶ lines of (head start, penalties), each by (victim priority, id)
//!                                └─ a Need merges those that begin below its priority, by score
//! ```
//!
//! What decides about a victim does not change while the phase runs, so the machines of a shape are looked at
//! once for all Needs. Within a line the score falls as the victim priority rises, whoever asks: its order is that
//! of every Need (D-8).

use crate::{
    excess::Excess,
    fleet_tables::FleetTables,
    index::{MachineIndex, NeedIndex, ShapeIndex, UseIndex},
    lines::Line,
    picking::Deficit,
    pool::PoolKind,
    table::Table,
};
use bigfleet_model::{Dollars, Terms};
use std::{
    cmp::{Ordering, Reverse},
    collections::BTreeMap,
};

/// Configured machines as Phase 2 sees them, shape by shape as Needs ask for them.
#[derive(Default)]
pub(crate) struct Victims {
    shapes: Table<ShapeIndex, Option<Vec<VictimLine>>>,
    /// No victim of a shape stands below this.
    floors: Table<ShapeIndex, Option<i32>>,
    /// The highest priority at which a Need of a use found no victim anywhere.
    in_vain: BTreeMap<UseIndex, i32>,
}

/// Victims of one shape that differ in victim priority and id alone, by these.
struct VictimLine {
    /// They are excess and would be reclaimed anyway.
    has_head_start: bool,
    /// The terms of one of them: all have these penalties.
    terms: Terms,
    line: Line<i32>,
}

impl VictimLine {
    fn class(&self) -> VictimClass {
        VictimClass::new(self.has_head_start, &self.terms)
    }

    /// What ranks its machines for a Need of this priority (V-5).
    fn rank(&self, priority: i32, standing: i32) -> VictimRank {
        let gap = i64::from(priority) - i64::from(standing);
        VictimRank {
            has_head_start: Reverse(self.has_head_start),
            score: Reverse(Score(victim_score(gap, &self.terms))),
        }
    }
}

/// Where a line of victims is found.
#[derive(Clone, Copy)]
struct LinePlace {
    shape: ShapeIndex,
    at: usize,
}

impl Victims {
    /// # Panics
    ///
    /// If the shape was not lined up.
    fn line(&self, place: LinePlace) -> &VictimLine {
        match &self.shapes[place.shape] {
            Some(lines) => &lines[place.at],
            None => unreachable!("a shape is lined up before a line of it is named"),
        }
    }

    /// # Panics
    ///
    /// As [`Self::line`].
    fn line_mut(&mut self, place: LinePlace) -> &mut VictimLine {
        match &mut self.shapes[place.shape] {
            Some(lines) => &mut lines[place.at],
            None => unreachable!("a shape is lined up before a line of it is named"),
        }
    }
}

/// What decides about a victim beside its shape and its victim priority.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct VictimClass {
    has_head_start: bool,
    penalties: (Dollars, Dollars),
}

impl VictimClass {
    fn new(has_head_start: bool, terms: &Terms) -> Self {
        Self {
            has_head_start,
            penalties: (terms.interruption, terms.reclamation),
        }
    }
}

/// The order in which victims are picked, but for the id (V-5).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct VictimRank {
    has_head_start: Reverse<bool>,
    score: Reverse<Score>,
}

/// How suitable a victim is (V-4).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Score(pub(crate) f64);

impl Ord for Score {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Score {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Score {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Score {}

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
    pub(crate) fn preempt(
        &mut self,
        need: NeedIndex,
        excess: &Excess,
        victims: &mut Victims,
    ) -> PreemptionResult {
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
        let drains = self.pick_drains(&mut deficit);
        let places = self.line_up_victims(need, excess, victims);
        let priority = self.priority(need);
        if self.is_traced(need) {
            let eligible = places.iter().map(|place| victims.line(*place));
            let eligible = eligible.flat_map(|line| {
                let below = move |standing: &i32| *standing < priority;
                line.line
                    .iter()
                    .filter(move |at| below(&at.0))
                    .map(move |(standing, machine)| {
                        let rank = line.rank(priority, standing);
                        (machine, rank.score.0.0, line.has_head_start)
                    })
            });
            let eligible: Vec<_> = eligible.collect();
            self.trace_victims(need, excess, eligible.into_iter());
        } else if is_gang && !self.would_complete(&deficit, &places, victims) {
            return result;
        }
        let lines = places.iter().map(|place| {
            let line = victims.line(*place);
            let outranked = line.line.iter();
            let outranked = outranked.take_while(move |(standing, _)| *standing < priority);
            let ranked = move |(standing, machine)| (line.rank(priority, standing), machine);
            (place.shape, outranked.map(ranked))
        });
        let picks = self.pick(&mut deficit, &drains, lines.collect());
        self.work.machines += picks.looks;
        let mut picked = picks.machines;
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
        let mut taken: BTreeMap<usize, usize> = BTreeMap::new();
        for line in picks.lines {
            *taken.entry(line).or_default() += 1;
        }
        for (line, count) in taken {
            let line = victims.line_mut(places[line]);
            let is_gone = |machine: MachineIndex| self.record(machine).preempted;
            line.line.drop_first(count, is_gone);
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

    /// Picks draining machines without intent that the Need can use, by (price, id).
    fn pick_drains(&mut self, deficit: &mut Deficit) -> Vec<MachineIndex> {
        let need = deficit.need;
        let shapes = self.catalog.by_price(self.need(need).usage);
        let is_free = |shape: &ShapeIndex| {
            0 < self.stocks[*shape].pool(PoolKind::Draining).free()
                && self.is_within_reach(need, *shape)
        };
        let shapes: Vec<ShapeIndex> = shapes.filter(is_free).collect();
        for shape in &shapes {
            let Self {
                stocks,
                ids,
                records,
                ..
            } = self;
            let pool = stocks[*shape].pool_mut(PoolKind::Draining);
            pool.sort(ids);
            pool.next = pool.free_from(pool.next, records);
        }
        let lines = shapes.into_iter().map(|shape| {
            let price = self.catalog.shapes[shape].price;
            let pool = self.stocks[shape].pool(PoolKind::Draining);
            let machines = pool.machines[pool.next..].iter().copied();
            let free = machines.filter(|machine| self.claimant(*machine).is_none());
            (shape, free.map(move |machine| (price, machine)))
        });
        let picks = self.pick(deficit, &[], lines.collect());
        self.work.machines += picks.looks;
        picks.machines
    }

    /// Inside the gang's domain; for a spread Need, inside some domain of every key.
    pub(crate) fn is_within_reach(&self, need: NeedIndex, shape: ShapeIndex) -> bool {
        if self.is_gang(need) {
            self.domain_of(need, shape) == self.holding(need).domain
        } else {
            self.lies_somewhere(need, shape)
        }
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

    /// The lines of Configured machines that the Need can use and that begin below its priority (V-3), sorted.
    fn line_up_victims(
        &mut self,
        need: NeedIndex,
        excess: &Excess,
        victims: &mut Victims,
    ) -> Vec<LinePlace> {
        let (priority, usage) = (self.priority(need), self.need(need).usage);
        let in_vain = victims.in_vain.get(&usage);
        if in_vain.is_some_and(|found_none| priority <= *found_none) {
            return Vec::new();
        }
        let mut places = Vec::new();
        let mut looks = 0;
        victims.shapes.grow_to(self.stocks.len());
        victims.floors.grow_to(self.stocks.len());
        for shape in self.catalog.by_price(usage) {
            looks += 1;
            if self.stocks[shape].configured.is_empty()
                || victims.floors[shape].is_some_and(|floor| priority <= floor)
                || !self.is_within_reach(need, shape)
            {
                continue;
            }
            let lines = &mut victims.shapes[shape];
            let lines = lines.get_or_insert_with(|| {
                looks += self.stocks[shape].configured.len() as u64;
                self.victims_of(shape, excess)
            });
            let floors = lines.iter().filter_map(|line| line.line.lowest());
            victims.floors[shape] = Some(floors.min().unwrap_or(i32::MAX));
            for (at, line) in lines.iter_mut().enumerate() {
                looks += 1;
                if line.line.may_begin(|standing| *standing < priority) {
                    line.line.sort(&self.ids);
                    places.push(LinePlace { shape, at });
                }
            }
        }
        self.work.machines += looks;
        if places.is_empty() && !self.is_gang(need) && !self.is_spread(need) {
            victims.in_vain.insert(usage, priority);
        }
        places
    }

    /// The Configured machines of a shape, by what decides about them as victims (V-3..V-5).
    fn victims_of(&self, shape: ShapeIndex, excess: &Excess) -> Vec<VictimLine> {
        let mut lines: Vec<VictimLine> = Vec::new();
        let mut places: BTreeMap<VictimClass, usize> = BTreeMap::new();
        for machine in &self.stocks[shape].configured {
            let record = self.record(*machine);
            // One that leaves is nobody's victim (RF-21).
            if record.preempted || record.leaving.is_some() {
                continue;
            }
            let held_at = excess.hold_priority(*machine);
            let standing = self.stands_at(*machine).max(held_at.unwrap_or(i32::MIN));
            let may_reclaim = |cluster| self.may_reclaim(cluster);
            let is_loose =
                self.claimant(*machine).is_none() && record.cluster.is_some_and(may_reclaim);
            let has_head_start = is_loose && held_at.is_none();
            let terms = self.catalog.terms[record.terms].terms;
            let class = VictimClass::new(has_head_start, &terms);
            // Neighbours are mostly alike.
            let like_the_last = lines.last().filter(|line| line.class() == class);
            let place = match like_the_last {
                Some(_) => lines.len() - 1,
                None => *places.entry(class).or_insert_with(|| {
                    lines.push(VictimLine {
                        has_head_start,
                        terms,
                        line: Line::default(),
                    });
                    lines.len() - 1
                }),
            };
            lines[place].line.push(standing, *machine);
        }
        lines
    }

    /// Whether all that these lines have below a gang's priority covers it: it gets all or nothing (RF-10).
    fn would_complete(&self, deficit: &Deficit, places: &[LinePlace], victims: &Victims) -> bool {
        let priority = self.priority(deficit.need);
        let mut left = deficit.clone();
        for place in places {
            let line = &victims.line(*place).line;
            let count = line.count(|standing| *standing < priority);
            left.change_by(self, place.shape, count as i128);
        }
        left.is_covered()
    }

    /// How long a victim may take to drain (V-7).
    pub(crate) fn grace(&self, need: NeedIndex, machine: MachineIndex, excess: &Excess) -> u32 {
        let priority = self.priority(need);
        let held_at = excess.hold_priority(machine).unwrap_or(i32::MIN);
        let standing = self.stands_at(machine).max(held_at);
        match i64::from(priority) - i64::from(standing) {
            900_001.. => 10,
            500_001.. => 30,
            100_001.. => 120,
            _ => 600,
        }
    }
}

/// How suitable a victim is (V-4): by the priority gap, then by how little it costs to interrupt it.
pub(crate) fn victim_score(gap: i64, terms: &Terms) -> f64 {
    const WEIGHT: f64 = 0.1;
    const DRAIN_SECONDS: f64 = 30.0;
    let gap = gap.max(0) as f64;
    gap * 1.0
        + WEIGHT / DRAIN_SECONDS.max(1.0)
        + WEIGHT / terms.interruption.dollars().max(0.01)
        + WEIGHT / terms.reclamation.dollars().max(0.01)
}
