//! The ledger: who claims what, in the order taken. Each machine is claimed at most once (O-4).

use crate::world::{Unit, World, credits};
use bigfleet_model::{Amounts, MachineId};
use std::collections::BTreeMap;

/// How a machine came to be claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// Own, in pass A or B0.
    Own,
    /// Serving the cluster already, claimed by nobody (B1).
    Leftover,
    /// Draining, and taken back (B1a).
    Restored,
    /// Newly taken (B2, B3, B4).
    New,
    /// Taken over from a Need of lower priority (B5).
    TakenOver,
    /// Draining, promised in Phase 2 (RF-10).
    Promised,
    /// In the place of a dearer equal (RF-18).
    Exchanged,
}

/// A machine a Need counts on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claimed<'w> {
    pub(crate) unit: &'w Unit<'w>,
    pub(crate) how: How,
}

/// Who claims what.
#[derive(Clone, Debug)]
pub(crate) struct Ledger<'w> {
    world: &'w World<'w>,
    by_need: Vec<Vec<Claimed<'w>>>,
    by_machine: BTreeMap<&'w MachineId, usize>,
    /// Machines that leave `soon`, by the Need that gave each back for others (RF-21).
    replaced: BTreeMap<&'w MachineId, usize>,
}

impl<'w> Ledger<'w> {
    pub(crate) fn new(world: &'w World<'w>) -> Self {
        Self {
            world,
            by_need: vec![Vec::new(); world.needs.len()],
            by_machine: BTreeMap::new(),
            replaced: BTreeMap::new(),
        }
    }

    /// The claims of a Need, in the order taken.
    pub(crate) fn claims(&self, rank: usize) -> &[Claimed<'w>] {
        &self.by_need[rank]
    }

    /// The machines a Need claims, in the order taken.
    pub(crate) fn units(&self, rank: usize) -> Vec<&'w Unit<'w>> {
        self.by_need[rank].iter().map(|claim| claim.unit).collect()
    }

    /// The rank of the Need that claims a machine.
    pub(crate) fn claimant(&self, unit: &Unit<'_>) -> Option<usize> {
        self.by_machine.get(unit.id()).copied()
    }

    pub(crate) fn is_free(&self, unit: &Unit<'_>) -> bool {
        self.claimant(unit).is_none()
    }

    /// Claimed by nobody and to be had: what was replaced is attributed to the Need that gave it back, which
    /// does not want it (RF-21).
    pub(crate) fn is_offered(&self, unit: &Unit<'_>) -> bool {
        self.is_free(unit) && self.replaced_by(unit).is_none()
    }

    /// The rank of the Need that gave a machine back for others (RF-21).
    pub(crate) fn replaced_by(&self, unit: &Unit<'_>) -> Option<usize> {
        self.replaced.get(unit.id()).copied()
    }

    /// How a claimed machine came to be so.
    pub(crate) fn how(&self, unit: &Unit<'_>) -> Option<How> {
        let mut claims = self.by_need[self.claimant(unit)?].iter();
        let claim = claims.find(|claim| claim.unit.id() == unit.id());
        claim.map(|claim| claim.how)
    }

    /// What a Need still wants: its aggregate less what its claims count with, used or not (C-4, RF-19).
    pub(crate) fn wanted(&self, rank: usize) -> Amounts {
        let need = &self.world.needs[rank];
        need.row.aggregate.sub(&credits(need, self.units(rank)))
    }

    pub(crate) fn is_covered(&self, rank: usize) -> bool {
        self.wanted(rank).is_zero()
    }

    pub(crate) fn claim(&mut self, rank: usize, unit: &'w Unit<'w>, how: How) {
        let before = self.by_machine.insert(unit.id(), rank);
        assert_eq!(before, None, "machine {} is claimed twice (O-4)", unit.id());
        self.by_need[rank].push(Claimed { unit, how });
    }

    pub(crate) fn claim_all(&mut self, rank: usize, units: Vec<&'w Unit<'w>>, how: How) {
        for unit in units {
            self.claim(rank, unit, how);
        }
    }

    pub(crate) fn give_back(&mut self, unit: &Unit<'_>) {
        if let Some(rank) = self.by_machine.remove(unit.id()) {
            self.by_need[rank].retain(|claim| claim.unit.id() != unit.id());
        }
    }
    /// Gives back a machine that leaves for others in its place (RF-21).
    pub(crate) fn replace(&mut self, unit: &Unit<'w>) {
        if let Some(rank) = self.claimant(unit) {
            self.give_back(unit);
            self.replaced.insert(unit.id(), rank);
        }
    }
}
