//! Lines: machines of one shape, in the order in which whoever takes them takes them.
//!
//! ```text
//! last ◀─ m9 m2 m7 ◀─ first     sorted when it is first read; afterwards machines come and go one by one
//! ```
//!
//! All machines of a line help a Need or none does, because they have the same amounts and lie in the same
//! domains. So a Need looks at the first of each line it can use and not at every machine, and one that none of
//! them helps costs as much as there are lines, however many stand in them (D-8).

use crate::{index::MachineIndex, names::Names};
use std::cmp::Ordering;

/// Machines by rank, then by id.
#[derive(Clone, Debug)]
pub(crate) struct Line<R> {
    /// The first is at the end, where it is taken without moving the others.
    machines: Vec<(R, MachineIndex)>,
    is_sorted: bool,
    /// No rank is below this; the lowest there is until machines leave.
    lowest: Option<R>,
}

impl<R> Default for Line<R> {
    fn default() -> Self {
        Self {
            machines: Vec::new(),
            is_sorted: true,
            lowest: None,
        }
    }
}

impl<R: Ord + Copy> Line<R> {
    /// Adds a machine wherever there is room; sorted before the line is read.
    pub(crate) fn push(&mut self, rank: R, machine: MachineIndex) {
        self.machines.push((rank, machine));
        self.is_sorted = self.machines.len() == 1;
        self.lowest = Some(self.lowest.map_or(rank, |lowest| lowest.min(rank)));
    }

    /// Whether some machine may have a rank that passes a test which every rank below it passes too.
    pub(crate) fn may_begin(&self, passes: impl Fn(&R) -> bool) -> bool {
        self.lowest().as_ref().is_some_and(passes)
    }

    /// A rank that no machine is below.
    pub(crate) fn lowest(&self) -> Option<R> {
        self.lowest.filter(|_| !self.machines.is_empty())
    }

    pub(crate) fn sort(&mut self, ids: &Names<MachineIndex>) {
        if !self.is_sorted {
            self.machines
                .sort_by(|one, other| later_first(ids, one, other));
            self.is_sorted = true;
        }
        self.lowest = self.machines.last().map(|(rank, _)| *rank);
    }

    fn insert(&mut self, ids: &Names<MachineIndex>, rank: R, machine: MachineIndex) {
        self.sort(ids);
        let place = self.place(ids, rank, machine);
        self.machines.insert(place, (rank, machine));
        self.sort(ids);
    }

    /// # Panics
    ///
    /// If the machine is not in the line with this rank.
    fn remove(&mut self, ids: &Names<MachineIndex>, rank: R, machine: MachineIndex) {
        self.sort(ids);
        let place = self.place(ids, rank, machine);
        let removed = self.machines.remove(place).1;
        assert_eq!(removed, machine, "{} is in its line", ids.get(machine));
        self.sort(ids);
    }

    /// Inserts a machine that joins, and removes one that leaves.
    pub(crate) fn change(
        &mut self,
        ids: &Names<MachineIndex>,
        rank: R,
        machine: MachineIndex,
        joins: bool,
    ) {
        if joins {
            self.insert(ids, rank, machine);
        } else {
            self.remove(ids, rank, machine);
        }
    }

    fn place(&self, ids: &Names<MachineIndex>, rank: R, machine: MachineIndex) -> usize {
        let sought = (rank, machine);
        let before = |held: &(R, MachineIndex)| later_first(ids, held, &sought).is_lt();
        self.machines.partition_point(before)
    }

    /// The machines in their order. The line is sorted.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (R, MachineIndex)> {
        debug_assert!(self.is_sorted, "a line is sorted before it is read");
        self.machines.iter().rev().copied()
    }

    /// How many machines pass a test.
    pub(crate) fn among(&self, passes: impl Fn(MachineIndex) -> bool) -> usize {
        let machines = self.machines.iter();
        machines.filter(|(_, machine)| passes(*machine)).count()
    }

    pub(crate) fn len(&self) -> usize {
        self.machines.len()
    }

    /// How many ranks pass a test which every rank below a passing one passes too. The line is sorted.
    pub(crate) fn count(&self, passes: impl Fn(&R) -> bool) -> usize {
        debug_assert!(self.is_sorted, "a line is sorted before it is read");
        let fails = |(rank, _): &(R, MachineIndex)| !passes(rank);
        self.machines.len() - self.machines.partition_point(fails)
    }

    /// Drops those of the first `count` machines that are gone. The line is sorted.
    pub(crate) fn drop_first(&mut self, count: usize, is_gone: impl Fn(MachineIndex) -> bool) {
        let first = self.machines.split_off(self.machines.len() - count);
        let stays = |(_, machine): &(R, MachineIndex)| !is_gone(*machine);
        self.machines.extend(first.into_iter().filter(stays));
        self.lowest = self.machines.last().map(|(rank, _)| *rank);
    }
}

fn later_first<R: Ord>(
    ids: &Names<MachineIndex>,
    one: &(R, MachineIndex),
    other: &(R, MachineIndex),
) -> Ordering {
    let by_rank = other.0.cmp(&one.0);
    by_rank.then_with(|| ids.compare(other.1, one.1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bigfleet_seeded::Prng;
    use std::collections::BTreeSet;

    /// Whatever comes and goes, and whenever it is read.
    #[test]
    fn a_line_is_in_order_whenever_it_is_read() {
        for seed in 0..200 {
            let mut random = Prng::new(seed);
            let mut ids = Names::default();
            let (mut line, mut held) = (Line::default(), BTreeSet::new());
            for _ in 0..60 {
                let (rank, id) = (random.below(4), format!("m{}", random.below(30)));
                let machine = ids.intern(&id);
                if held.contains(&(rank, id.clone())) {
                    line.remove(&ids, rank, machine);
                    held.remove(&(rank, id));
                } else if random.chance(0.5) {
                    line.insert(&ids, rank, machine);
                    held.insert((rank, id));
                } else {
                    line.push(rank, machine);
                    held.insert((rank, id));
                }
                let below = random.below(5);
                let some = held.iter().any(|(rank, _)| *rank < below);
                assert!(!some || line.may_begin(|rank| *rank < below), "seed {seed}");
                if random.chance(0.3) {
                    line.sort(&ids);
                    let found = line.iter().map(|(rank, at)| (rank, ids.get(at).to_owned()));
                    assert!(found.eq(held.iter().cloned()), "seed {seed}");
                    let count = held.iter().filter(|(rank, _)| *rank < below).count();
                    assert_eq!(line.count(|rank| *rank < below), count, "seed {seed}");
                    assert_eq!(line.may_begin(|rank| *rank < below), some, "seed {seed}");
                    let first = random.below(held.len() + 1);
                    let is_gone = |at: MachineIndex| ids.get(at).ends_with('3');
                    line.drop_first(first, is_gone);
                    let dropped: Vec<_> = held.iter().take(first).cloned().collect();
                    for (rank, id) in dropped {
                        if id.ends_with('3') {
                            held.remove(&(rank, id));
                        }
                    }
                    assert_eq!(line.len(), held.len(), "seed {seed}");
                }
            }
        }
    }
}
