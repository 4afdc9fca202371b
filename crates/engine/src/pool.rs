//! Pools: machines that are free to take, shape by shape and in the order of their ids.
//!
//! A pool is sorted when it is used, not when a machine enters it, so that loading millions costs one
//! sort per shape. Machines that come later are merged in.

use crate::{
    fleet_tables::{FleetTables, Record},
    index::MachineIndex,
    names::Names,
    table::LongTable,
};
use bigfleet_model::State;

/// The state of the free machines in a pool (RF-5, RF-10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PoolKind {
    Idle,
    Creating,
    Speculative,
    Draining,
}

impl PoolKind {
    pub(crate) fn of(state: State) -> Option<Self> {
        match state {
            State::Idle => Some(Self::Idle),
            State::Creating => Some(Self::Creating),
            State::Speculative => Some(Self::Speculative),
            State::Draining => Some(Self::Draining),
            State::Configuring | State::Configured | State::Deleting | State::Failed => None,
        }
    }
}

/// Machines of one shape nobody has an intent for, by id.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pool {
    pub(crate) machines: Vec<MachineIndex>,
    /// How many are in order. Those that came later follow.
    sorted: usize,
    /// All before this place are claimed.
    pub(crate) next: usize,
    pub(crate) claimed: u32,
}

impl Pool {
    pub(crate) fn free(&self) -> u32 {
        self.machines.len() as u32 - self.claimed
    }

    /// Adds at the end; sorted before the next use.
    pub(crate) fn insert(&mut self, machine: MachineIndex) {
        self.machines.push(machine);
    }

    pub(crate) fn sort(&mut self, ids: &Names<MachineIndex>) {
        if self.sorted == self.machines.len() {
            return;
        }
        let mut late = self.machines[self.sorted..].to_vec();
        late.sort_by(|one, other| ids.compare(*one, *other));
        // From the highest down, each goes to its place, and what is above it moves up once.
        let mut end = self.sorted;
        for (lower, machine) in late.into_iter().enumerate().rev() {
            let place =
                self.machines[..end].partition_point(|held| ids.compare(*held, machine).is_lt());
            self.machines.copy_within(place..end, place + lower + 1);
            self.machines[place + lower] = machine;
            end = place;
        }
        self.next = self.next.min(end);
        self.sorted = self.machines.len();
    }

    /// The first machine from `at` on that nobody claims.
    pub(crate) fn free_from(&self, at: usize, records: &LongTable<MachineIndex, Record>) -> usize {
        let claimed = |machine: &&MachineIndex| records[**machine].claimant.is_some();
        at + self.machines[at..].iter().take_while(claimed).count()
    }

    pub(crate) fn place(&self, machine: MachineIndex, ids: &Names<MachineIndex>) -> usize {
        self.machines
            .partition_point(|held| ids.compare(*held, machine).is_lt())
    }

    pub(crate) fn remove(&mut self, machine: MachineIndex, ids: &Names<MachineIndex>) {
        self.sort(ids);
        let place = self.place(machine, ids);
        assert_eq!(
            self.machines[place],
            machine,
            "{} is in its pool",
            ids.get(machine)
        );
        self.machines.remove(place);
        self.sorted -= 1;
        self.next = self.next.min(place);
    }
}

/// What the engine knows about the machines of a shape together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stock {
    /// Free machines by [`PoolKind`].
    pub(crate) pools: [Pool; 4],
    /// Configured machines of any cluster.
    pub(crate) configured: Vec<MachineIndex>,
    /// Machines per state, claimed or not (VD-1).
    pub(crate) count: [u32; 9],
    /// Idle and Speculative machines claimed by anyone.
    pub(crate) claimed: u32,
    /// Idle, Creating and Speculative machines with no intent on record, and available (RF-12).
    pub(crate) unpromised: u32,
}

impl Stock {
    pub(crate) fn pool(&self, kind: PoolKind) -> &Pool {
        &self.pools[kind as usize]
    }

    pub(crate) fn pool_mut(&mut self, kind: PoolKind) -> &mut Pool {
        &mut self.pools[kind as usize]
    }
}

impl FleetTables {
    /// Changes how many free machines of a shape are claimed, by one machine that is or was.
    pub(crate) fn count_free(&mut self, machine: MachineIndex, change: i32) {
        let record = self.records[machine];
        let kind = self.pool_of(machine);
        let Self { stocks, ids, .. } = self;
        let stock = &mut stocks[record.shape];
        if matches!(record.state, Some(State::Idle | State::Speculative)) {
            stock.claimed = stock.claimed.saturating_add_signed(change);
        }
        let Some(kind) = kind else { return };
        let pool = stock.pool_mut(kind);
        pool.claimed = pool.claimed.saturating_add_signed(change);
        if change < 0 {
            pool.sort(ids);
            pool.next = pool.next.min(pool.place(machine, ids));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool_of(names: &[&str], ids: &mut Names<MachineIndex>) -> Pool {
        let mut pool = Pool::default();
        for name in names {
            pool.insert(ids.intern(name));
        }
        pool.sort(ids);
        pool
    }

    fn names<'a>(pool: &Pool, ids: &'a Names<MachineIndex>) -> Vec<&'a str> {
        pool.machines.iter().map(|held| ids.get(*held)).collect()
    }

    #[test]
    fn machines_that_come_late_are_merged_in() {
        let mut ids = Names::default();
        let mut pool = pool_of(&["d", "h", "b", "f"], &mut ids);
        assert_eq!(names(&pool, &ids), ["b", "d", "f", "h"]);
        for late in ["g", "a", "i", "e", "c"] {
            pool.insert(ids.intern(late));
        }
        pool.sort(&ids);
        let sorted = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
        assert_eq!(names(&pool, &ids), sorted);
    }

    #[test]
    fn a_late_machine_is_found_before_those_that_are_claimed() {
        let mut ids = Names::default();
        let mut pool = pool_of(&["b", "d", "f"], &mut ids);
        pool.next = 2;
        pool.insert(ids.intern("e"));
        pool.sort(&ids);
        assert_eq!(pool.next, 2, "b and d are claimed");
        pool.insert(ids.intern("c"));
        pool.sort(&ids);
        assert_eq!(pool.next, 1, "b is claimed");
    }
}
