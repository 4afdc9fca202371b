//! Spread: how evenly a Need's machines lie over the values of its topology keys (RF-9).

use crate::{
    NONE,
    book::{Book, MachineIx, NeedIx},
    own::Draft,
    tables::{DomainIx, ShapeIx},
};
use std::collections::BTreeMap;

/// Per constraint, the domains that count in one step and how many machines lie in each.
pub(crate) struct Balance {
    /// (topology key, skew).
    constraints: Vec<(u32, i64)>,
    counts: Vec<BTreeMap<DomainIx, i64>>,
}

/// Machines that lie in the same domains, in keep order.
struct Line {
    shape: ShapeIx,
    machines: Vec<MachineIx>,
    next: usize,
}

impl Balance {
    /// The domains of a step: those of its candidates, and those with claims.
    pub(crate) fn new(
        book: &Book,
        need: NeedIx,
        candidates: impl IntoIterator<Item = ShapeIx>,
    ) -> Self {
        let mut balance = Self::empty(book, need, candidates);
        for machine in book.claims(need) {
            balance.count(book, book.record(*machine).shape);
        }
        balance
    }

    /// The domains of a step of a Need without claims.
    fn empty(book: &Book, need: NeedIx, candidates: impl IntoIterator<Item = ShapeIx>) -> Self {
        let profile = &book.tables.profiles[book.need(need).profile as usize];
        let constraints = profile.spreads.to_vec();
        let mut counts = vec![BTreeMap::new(); constraints.len()];
        for shape in candidates {
            for ((key, _), counts) in constraints.iter().zip(&mut counts) {
                counts
                    .entry(book.tables.keys[*key as usize].domain(shape))
                    .or_insert(0);
            }
        }
        Self {
            constraints,
            counts,
        }
    }

    /// Whether one more machine of this shape keeps every skew.
    pub(crate) fn admits(&self, book: &Book, shape: ShapeIx) -> bool {
        self.constraints
            .iter()
            .zip(&self.counts)
            .all(|((key, skew), counts)| {
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
        profile
            .spreads
            .iter()
            .all(|(key, _)| self.tables.keys[*key as usize].domain(shape) != NONE)
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
            self.claimant(**machine) == NONE
                && self.lies_somewhere(need, record.shape)
                && self.contributes(need, record.shape)
        };
        let mut candidates: Vec<MachineIx> = machines.iter().filter(candidate).copied().collect();
        candidates.sort_by(|one, other| {
            let shapes = (self.record(*one).shape, self.record(*other).shape);
            order(self, *one, *other)
                .then_with(|| self.by_values(need, shapes.0, shapes.1))
                .then_with(|| self.ids.compare(*one, *other))
        });
        let shapes = candidates.iter().map(|machine| self.record(*machine).shape);
        let mut balance = Balance::new(self, need, shapes);
        self.work.machines += candidates.len() as u64;
        while !self.holding(need).is_covered() {
            let eligible = |machine: &MachineIx| {
                let shape = self.record(*machine).shape;
                self.contributes(need, shape) && balance.admits(self, shape)
            };
            let Some(place) = candidates.iter().position(eligible) else {
                return;
            };
            let machine = candidates.remove(place);
            self.claim(need, machine);
            balance.count(self, self.record(machine).shape);
        }
    }

    /// Own machines as evenly as they go (RF-9): again and again the lowest that keeps the spread,
    /// in keep order but for the id, then by topology values, then by id. Given in keep order, they
    /// are so within each combination of values; only the heads are compared.
    pub(crate) fn draft_spread(&self, need: NeedIx, own: &[MachineIx], draft: &mut Draft) {
        let mut shapes: Vec<ShapeIx> = Vec::new();
        let mut lines: Vec<Line> = Vec::new();
        for machine in own {
            let shape = self.record(*machine).shape;
            if !self.lies_somewhere(need, shape) || !draft.gains_from(self, need, shape) {
                continue;
            }
            shapes.push(shape);
            let same = |line: &&mut Line| self.by_values(need, line.shape, shape).is_eq();
            match lines.iter_mut().find(same) {
                Some(line) => line.machines.push(*machine),
                None => lines.push(Line {
                    shape,
                    machines: vec![*machine],
                    next: 0,
                }),
            }
        }
        let mut balance = Balance::empty(self, need, shapes);
        while !draft.is_covered() {
            let mut lowest: Option<(usize, usize, MachineIx)> = None;
            for (at, line) in lines.iter().enumerate() {
                if !balance.admits(self, line.shape) {
                    continue;
                }
                let gains =
                    |machine: &MachineIx| draft.gains_from(self, need, self.record(*machine).shape);
                let Some(skipped) = line.machines[line.next..].iter().position(gains) else {
                    continue;
                };
                let place = line.next + skipped;
                let head = line.machines[place];
                let is_lower = |(best, _, held): (usize, usize, MachineIx)| {
                    self.by_keep_key(head, held)
                        .then_with(|| self.by_values(need, line.shape, lines[best].shape))
                        .then_with(|| self.ids.compare(head, held))
                        .is_lt()
                };
                if lowest.is_none_or(is_lower) {
                    lowest = Some((at, place, head));
                }
            }
            let Some((at, place, machine)) = lowest else {
                return;
            };
            // Those passed over have nothing of what is wanted, and what is wanted only shrinks.
            lines[at].next = place + 1;
            let shape = self.record(machine).shape;
            draft.gains_from(self, need, shape);
            draft.add(machine);
            balance.count(self, shape);
        }
    }

    pub(crate) fn by_keep_key(&self, one: MachineIx, other: MachineIx) -> std::cmp::Ordering {
        let key = |machine: MachineIx| {
            let record = self.record(machine);
            crate::tables::keep_key(record.number, &self.tables.terms[record.terms as usize])
        };
        key(one).cmp(&key(other))
    }
}
