//! Pools: machines that are free to take, shape by shape and in the order of their ids.
//!
//! A pool is sorted when it is used, not when a machine enters it, so that loading millions costs one
//! sort per shape; a few late-comers are put in place one by one.

use crate::{
    NONE,
    book::{MachineIx, Record},
    names::Names,
};
use bigfleet_model::State;

/// Which pool of free machines (RF-5, RF-10).
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
    pub(crate) machines: Vec<MachineIx>,
    /// How many are in order; those that came in since follow.
    sorted: usize,
    /// All before this place are claimed.
    pub(crate) next: usize,
    pub(crate) claimed: u32,
}

impl Pool {
    pub(crate) fn free(&self) -> u32 {
        self.machines.len() as u32 - self.claimed
    }

    /// Adds at the end; order is made before the next use.
    pub(crate) fn insert(&mut self, machine: MachineIx) {
        self.machines.push(machine);
    }

    pub(crate) fn sort(&mut self, ids: &Names) {
        if self.sorted == self.machines.len() {
            return;
        }
        let few = (self.machines.len() - self.sorted) * 16 < self.sorted;
        if few {
            for machine in self.machines.split_off(self.sorted) {
                let place = self.place(machine, ids);
                self.machines.insert(place, machine);
                self.next = self.next.min(place);
            }
        } else {
            self.machines
                .sort_by(|one, other| ids.compare(*one, *other));
            self.next = 0;
        }
        self.sorted = self.machines.len();
    }

    /// The first machine from `at` on that nobody claims.
    pub(crate) fn free_from(&self, at: usize, records: &[Record]) -> usize {
        let claimed = |machine: &&MachineIx| records[**machine as usize].claimant != NONE;
        at + self.machines[at..].iter().take_while(claimed).count()
    }

    pub(crate) fn place(&self, machine: MachineIx, ids: &Names) -> usize {
        self.machines
            .partition_point(|held| ids.compare(*held, machine).is_lt())
    }

    pub(crate) fn remove(&mut self, machine: MachineIx, ids: &Names) {
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
    pub(crate) configured: Vec<MachineIx>,
    /// Machines per state, whoever has them (VD-1).
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
