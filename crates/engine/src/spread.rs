//! Spread: how evenly a Need's machines lie over the values of its topology keys (RF-9).

use crate::{
    NONE,
    book::{Book, MachineIx, NeedIx},
    tables::{DomainIx, ShapeIx},
};
use std::collections::BTreeMap;

/// Per constraint, the domains that count in one step and how many machines lie in each.
pub(crate) struct Balance {
    /// (topology key, skew).
    constraints: Vec<(u32, i64)>,
    counts: Vec<BTreeMap<DomainIx, i64>>,
}

impl Balance {
    /// The domains of a step: those of its candidates, and those with claims.
    pub(crate) fn new(
        book: &Book,
        need: NeedIx,
        candidates: impl IntoIterator<Item = ShapeIx>,
    ) -> Self {
        let profile = &book.tables.profiles[book.need(need).profile as usize];
        let constraints = profile.spreads.to_vec();
        let mut counts = vec![BTreeMap::new(); constraints.len()];
        for shape in candidates {
            for ((key, _), counts) in constraints.iter().zip(&mut counts) {
                counts.entry(book.tables.keys[*key as usize].domain(shape)).or_insert(0);
            }
        }
        let mut balance = Self { constraints, counts };
        for machine in &book.need(need).claims {
            balance.count(book, book.record(*machine).shape);
        }
        balance
    }

    /// Whether one more machine of this shape keeps every skew.
    pub(crate) fn admits(&self, book: &Book, shape: ShapeIx) -> bool {
        self.constraints.iter().zip(&self.counts).all(|((key, skew), counts)| {
            let domain = book.tables.keys[*key as usize].domain(shape);
            let lowest = counts.values().min().copied().unwrap_or(0);
            let here = counts.get(&domain).copied().unwrap_or(0);
            here < lowest + (*skew).max(1)
        })
    }

    pub(crate) fn count(&mut self, book: &Book, shape: ShapeIx) {
        for ((key, _), counts) in self.constraints.iter().zip(&mut self.counts) {
            let domain = book.tables.keys[*key as usize].domain(shape);
            if domain != NONE {
                *counts.entry(domain).or_insert(0) += 1;
            }
        }
    }
}

impl Book {
    /// Whether a shape lies in a domain of every key a Need is spread over.
    pub(crate) fn lies_somewhere(&self, need: NeedIx, shape: ShapeIx) -> bool {
        let profile = &self.tables.profiles[self.need(need).profile as usize];
        profile.spreads.iter().all(|(key, _)| self.tables.keys[*key as usize].domain(shape) != NONE)
    }

    /// Order of two shapes by the values of the Need's topology keys.
    pub(crate) fn by_values(
        &self,
        need: NeedIx,
        one: ShapeIx,
        other: ShapeIx,
    ) -> std::cmp::Ordering {
        let profile = &self.tables.profiles[self.need(need).profile as usize];
        let values = |shape: ShapeIx| {
            profile.spreads.iter().map(move |(key, _)| {
                let key = &self.tables.keys[*key as usize];
                match key.domain(shape) {
                    NONE => "",
                    domain => key.values.get(domain),
                }
            })
        };
        values(one).cmp(values(other))
    }

    /// Claims, again and again, the lowest machine that keeps the spread. The order of the list
    /// without its last tie-break, the id, is given; the topology values come before it.
    pub(crate) fn take_spread(
        &mut self,
        need: NeedIx,
        machines: &[MachineIx],
        order: impl Fn(&Self, MachineIx, MachineIx) -> std::cmp::Ordering,
    ) {
        let candidate = |machine: &&MachineIx| {
            let record = self.record(**machine);
            record.claimant == NONE
                && self.lies_somewhere(need, record.shape)
                && self.contributes(need, record.shape)
        };
        let mut candidates: Vec<MachineIx> =
            machines.iter().filter(candidate).copied().collect();
        candidates.sort_by(|one, other| {
            let shapes = (self.record(*one).shape, self.record(*other).shape);
            order(self, *one, *other)
                .then_with(|| self.by_values(need, shapes.0, shapes.1))
                .then_with(|| self.ids.compare(*one, *other))
        });
        let shapes = candidates.iter().map(|machine| self.record(*machine).shape);
        let mut balance = Balance::new(self, need, shapes);
        self.work.machines += candidates.len() as u64;
        while !self.need(need).is_covered() {
            let eligible = |machine: &MachineIx| {
                let shape = self.record(*machine).shape;
                self.contributes(need, shape) && balance.admits(self, shape)
            };
            let Some(place) = candidates.iter().position(eligible) else { return };
            let machine = candidates.remove(place);
            self.claim(need, machine);
            balance.count(self, self.record(machine).shape);
        }
    }

    /// Pass A for a spread Need: first evenly, then whatever is still wanted; own is never refused.
    pub(crate) fn take_own_spread(&mut self, need: NeedIx, own: &[MachineIx]) {
        self.take_spread(need, own, Self::by_keep_key);
        self.take(need, own);
    }

    pub(crate) fn by_keep_key(&self, one: MachineIx, other: MachineIx) -> std::cmp::Ordering {
        let key = |machine: MachineIx| {
            let record = self.record(machine);
            crate::tables::keep_key(record.number, &self.tables.terms[record.terms as usize])
        };
        key(one).cmp(&key(other))
    }
}
