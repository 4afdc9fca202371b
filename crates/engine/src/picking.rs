//! Picking: which machines a Need takes from lines that stand side by side.
//!
//! ```text
//! m7 m2 m9 …  ─┐
//! m1 m4 …     ─┼─▶ the lowest of the first that helps and keeps the spread ─▶ its line moves up by one
//! m5 m6 …     ─┘
//! ```
//!
//! Nothing is claimed here. A line whose machines no longer help is left for good, because what is wanted only
//! shrinks; one that the spread refuses is asked again after the next machine.

use crate::{
    fleet_tables::FleetTables,
    index::{DimensionIndex, DomainIndex, MachineIndex, NeedIndex, ShapeIndex},
    spread::{Balance, Place},
};
use std::{
    cmp::Ordering,
    collections::{BTreeMap, BinaryHeap},
};

/// What a Need still wants while machines are picked for it.
#[derive(Clone)]
pub(crate) struct Deficit {
    pub(crate) need: NeedIndex,
    dimensions: Vec<DimensionIndex>,
    pub(crate) left: Vec<i128>,
}

impl Deficit {
    pub(crate) fn of(tables: &FleetTables, need: NeedIndex) -> Self {
        let entry = tables.need(need);
        let dimensions = entry.wanted.iter().map(|(dimension, _)| dimension);
        Self {
            need,
            dimensions: dimensions.collect(),
            left: tables.holding(need).left.to_vec(),
        }
    }

    pub(crate) fn is_covered(&self) -> bool {
        self.left.iter().all(|left| *left <= 0)
    }

    pub(crate) fn shrinks_by(&self, tables: &FleetTables, shape: ShapeIndex) -> bool {
        let credit = tables.credit(self.need, shape);
        let mut each = self.dimensions.iter().zip(&self.left);
        each.any(|(dimension, left)| 0 < *left && 0 < credit.amount(*dimension))
    }

    /// How many machines are needed at least, if each has the most that any of these shapes has; at least one.
    pub(crate) fn least(
        &self,
        tables: &FleetTables,
        shapes: impl Iterator<Item = ShapeIndex> + Clone,
    ) -> usize {
        let each = self.dimensions.iter().zip(&self.left);
        let needed = each
            .filter(|(_, left)| 0 < **left)
            .map(|(dimension, left)| {
                let amount = |shape| tables.credit(self.need, shape).amount(*dimension);
                let most = shapes.clone().map(amount).max().unwrap_or(0);
                let most = i128::from(most.max(1));
                usize::try_from((left + most - 1) / most).unwrap_or(usize::MAX)
            });
        needed.max().unwrap_or(0).max(1)
    }

    /// Adds a machine, or takes it away again.
    pub(crate) fn change(&mut self, tables: &FleetTables, machine: MachineIndex, sign: i128) {
        self.change_by(tables, tables.record(machine).shape, sign);
    }

    /// Adds so many machines of a shape.
    pub(crate) fn change_by(&mut self, tables: &FleetTables, shape: ShapeIndex, count: i128) {
        let credit = tables.credit(self.need, shape);
        for (dimension, left) in self.dimensions.iter().zip(&mut self.left) {
            *left -= count * i128::from(credit.amount(*dimension));
        }
    }
}

/// The machines that were picked, in this order.
#[derive(Default)]
pub(crate) struct Picks {
    pub(crate) machines: Vec<MachineIndex>,
    /// The line each was taken from.
    pub(crate) lines: Vec<usize>,
    /// How many firsts of lines were looked at.
    pub(crate) looks: u64,
}

impl Picks {
    fn add<R>(&mut self, first: &First<'_, R>) {
        self.machines.push(first.machine);
        self.lines.push(first.line);
    }
}

/// Lines merged: the first of each, the lowest on top.
pub(crate) struct Merged<'t, R, I> {
    tables: &'t FleetTables,
    /// The Need by whose topology values machines of equal rank are compared, before their ids.
    spread: Option<NeedIndex>,
    lines: Vec<(ShapeIndex, I)>,
    firsts: BinaryHeap<First<'t, R>>,
}

/// The first of a line.
pub(crate) struct First<'t, R> {
    tables: &'t FleetTables,
    spread: Option<NeedIndex>,
    rank: R,
    shape: ShapeIndex,
    pub(crate) machine: MachineIndex,
    line: usize,
}

impl<R: Ord> First<'_, R> {
    fn order(&self, other: &Self) -> Ordering {
        let tables = self.tables;
        let values = |need| tables.by_values(need, self.shape, other.shape);
        self.rank
            .cmp(&other.rank)
            .then_with(|| self.spread.map_or(Ordering::Equal, values))
            .then_with(|| tables.ids.compare(self.machine, other.machine))
    }
}

/// The lowest is the greatest, which is what a heap gives first.
impl<R: Ord> Ord for First<'_, R> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.order(self)
    }
}

impl<R: Ord> PartialOrd for First<'_, R> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<R: Ord> PartialEq for First<'_, R> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<R: Ord> Eq for First<'_, R> {}

impl<'t, R: Ord, I: Iterator<Item = (R, MachineIndex)>> Merged<'t, R, I> {
    /// Merges the lines of the shapes that pass a test.
    pub(crate) fn new(
        tables: &'t FleetTables,
        spread: Option<NeedIndex>,
        lines: Vec<(ShapeIndex, I)>,
        helps: impl Fn(ShapeIndex) -> bool,
    ) -> Self {
        let mut merged = Self {
            tables,
            spread,
            lines,
            firsts: BinaryHeap::new(),
        };
        let firsts = (0..merged.lines.len()).filter_map(|line| {
            let first = helps(merged.lines[line].0).then(|| merged.advance(line));
            first.flatten()
        });
        let firsts: Vec<_> = firsts.collect();
        merged.firsts = firsts.into();
        merged
    }

    fn advance(&mut self, line: usize) -> Option<First<'t, R>> {
        let (shape, machines) = &mut self.lines[line];
        let (rank, machine) = machines.next()?;
        Some(First {
            tables: self.tables,
            spread: self.spread,
            rank,
            shape: *shape,
            machine,
            line,
        })
    }
}

/// Every machine, in order.
impl<R: Ord, I: Iterator<Item = (R, MachineIndex)>> Iterator for Merged<'_, R, I> {
    type Item = MachineIndex;

    fn next(&mut self) -> Option<MachineIndex> {
        let first = self.firsts.pop()?;
        let next = self.advance(first.line);
        self.firsts.extend(next);
        Some(first.machine)
    }
}

impl FleetTables {
    /// Picks in order until the deficit is covered; for a spread Need, only what keeps the spread together with
    /// its claims and what was picked before.
    pub(crate) fn pick<R: Ord, I: Iterator<Item = (R, MachineIndex)>>(
        &self,
        deficit: &mut Deficit,
        before: &[MachineIndex],
        lines: Vec<(ShapeIndex, I)>,
    ) -> Picks {
        self.pick_in_place(deficit, None, before, lines)
    }

    /// As [`Self::pick`], for what is to take the place of a machine (RF-21).
    pub(crate) fn pick_in_place<R: Ord, I: Iterator<Item = (R, MachineIndex)>>(
        &self,
        deficit: &mut Deficit,
        place: Option<&Place>,
        before: &[MachineIndex],
        lines: Vec<(ShapeIndex, I)>,
    ) -> Picks {
        let looks = lines.len() as u64;
        let helps = |shape| deficit.shrinks_by(self, shape);
        let spread = Some(deficit.need).filter(|need| self.is_spread(*need));
        let mut merged = Merged::new(self, spread, lines, helps);
        let mut picks = match spread {
            Some(_) => self.pick_evenly(deficit, place, before, &mut merged),
            None => self.pick_along(deficit, &mut merged),
        };
        picks.looks += looks;
        picks
    }

    fn pick_along<R: Ord, I: Iterator<Item = (R, MachineIndex)>>(
        &self,
        deficit: &mut Deficit,
        merged: &mut Merged<'_, R, I>,
    ) -> Picks {
        let mut picks = Picks::default();
        while !deficit.is_covered()
            && let Some(first) = merged.firsts.pop()
        {
            picks.looks += 1;
            if deficit.shrinks_by(self, first.shape) {
                deficit.change_by(self, first.shape, 1);
                picks.add(&first);
                let next = merged.advance(first.line);
                merged.firsts.extend(next);
            }
        }
        picks
    }

    /// Lines that lie in the same domains are merged apart from the others: the spread admits all or none of them.
    fn pick_evenly<R: Ord, I: Iterator<Item = (R, MachineIndex)>>(
        &self,
        deficit: &mut Deficit,
        place: Option<&Place>,
        before: &[MachineIndex],
        merged: &mut Merged<'_, R, I>,
    ) -> Picks {
        let need = deficit.need;
        let mut picks = Picks::default();
        let mut places: BTreeMap<Vec<Option<DomainIndex>>, BinaryHeap<First<'_, R>>> =
            BTreeMap::new();
        for first in merged.firsts.drain() {
            let place = places.entry(self.domains_of(need, first.shape));
            place.or_default().push(first);
        }
        let mut places: Vec<_> = places.into_values().collect();
        let shapes = places.iter().filter_map(|place| Some(place.peek()?.shape));
        let mut balance = Balance::in_place(self, need, shapes, place);
        for machine in before {
            balance.count(self, self.record(*machine).shape);
        }
        while !deficit.is_covered() {
            let mut lowest: Option<usize> = None;
            for at in 0..places.len() {
                picks.looks += 1;
                // Lines that no longer help are left for good.
                while places[at]
                    .peek()
                    .is_some_and(|top| !deficit.shrinks_by(self, top.shape))
                {
                    places[at].pop();
                }
                let Some(top) = places[at].peek() else {
                    continue;
                };
                let is_lower = |held: usize| places[held].peek().is_none_or(|held| held < top);
                if balance.admits(self, top.shape) && lowest.is_none_or(is_lower) {
                    lowest = Some(at);
                }
            }
            let Some(place) = lowest else { break };
            let Some(first) = places[place].pop() else {
                break;
            };
            deficit.change_by(self, first.shape, 1);
            balance.count(self, first.shape);
            picks.add(&first);
            places[place].extend(merged.advance(first.line));
        }
        picks
    }
}
