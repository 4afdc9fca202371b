//! Idle machines that are given back once their hold has run out.
//!
//! Only these have a clock, so it is kept here and not in every machine's record.

use crate::{fleet_tables::FleetTables, index::MachineIndex, machines::MachineFact};
use bigfleet_model::{CapacityType, State, Time};
use std::collections::{BTreeMap, BTreeSet};

/// Free Idle machines of tiers that are given back.
#[derive(Clone, Debug, Default)]
pub(crate) struct IdleMachines {
    since: BTreeMap<MachineIndex, (CapacityType, Time)>,
    /// The same by tier and since when they are idle.
    by_tier: BTreeMap<CapacityType, BTreeSet<(Time, MachineIndex)>>,
}

impl IdleMachines {
    /// The tier of a machine that is here, and since when it is idle.
    pub(crate) fn get(&self, machine: MachineIndex) -> Option<(CapacityType, Time)> {
        self.since.get(&machine).copied()
    }

    pub(crate) fn insert(&mut self, machine: MachineIndex, tier: CapacityType, since: Time) {
        self.since.insert(machine, (tier, since));
        self.by_tier
            .entry(tier)
            .or_default()
            .insert((since, machine));
    }

    pub(crate) fn remove(&mut self, machine: MachineIndex) {
        if let Some((tier, since)) = self.since.remove(&machine)
            && let Some(idle) = self.by_tier.get_mut(&tier)
        {
            idle.remove(&(since, machine));
        }
    }
}

impl FleetTables {
    /// The tier of a machine that is given back after its hold, and since when it is idle.
    pub(crate) fn idle_clock(&self, fact: &MachineFact<'_>) -> Option<(CapacityType, Time)> {
        let tier = self.catalog.shapes[fact.shape.shape].shape.capacity_type;
        let is_returned = match tier {
            CapacityType::OnDemand | CapacityType::Spot => true,
            CapacityType::BareMetal | CapacityType::Reserved | CapacityType::Unspecified => false,
        };
        let is_there = !fact.unavailable && fact.leaving.is_none();
        let is_free = fact.state == State::Idle && fact.attribution.is_none() && is_there;
        let since = fact.idle_since.filter(|_| is_returned && is_free)?;
        Some((tier, since))
    }

    /// Idle machines whose hold has run out, by id, and when the next one's does.
    pub(crate) fn releases(&self, now: Time) -> (Vec<MachineIndex>, Option<Time>) {
        let mut released = Vec::new();
        let mut next: Option<Time> = None;
        for (tier, idle) in &self.idle.by_tier {
            let Some(hold) = self.holds.of(*tier) else {
                continue;
            };
            let unclaimed = |at: &&(Time, MachineIndex)| self.record(at.1).claimant.is_none();
            for (since, machine) in idle.iter().filter(unclaimed) {
                if !self.holds.expired(*tier, *since, now) {
                    // Whoever became idle later goes later.
                    let ends = *since + hold;
                    next = Some(next.map_or(ends, |next| next.min(ends)));
                    break;
                }
                released.push(*machine);
            }
        }
        released.sort_by(|one, other| self.ids.compare(*one, *other));
        (released, next)
    }
}
