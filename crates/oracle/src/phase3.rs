//! Phase 3: what no Need claims is let go; what only costs money is released.

use crate::{
    domain::Choice,
    hold::{Preempted, held_for, is_excess},
    ledger::Ledger,
    order::keep_order,
    world::{Unit, World},
};
use bigfleet_model::{MachineId, State};
use std::cmp::Reverse;

/// excess machines that are not held: clusters ascending, keep order in each, but what disturbs less
/// before the id; before all others what leaves `now`, then `soon` (engine.md §22.3 no. 10).
pub(crate) fn reclaims<'w>(
    world: &'w World<'w>,
    ledger: &Ledger<'w>,
    choices: &[Option<Choice>],
    preempted: &[Preempted<'w>],
) -> Vec<&'w Unit<'w>> {
    let goes = |unit: &&Unit<'_>| {
        is_excess(world, ledger, preempted, unit)
            && held_for(world, ledger, choices, preempted, unit).is_none()
    };
    let mut going: Vec<&Unit<'_>> = world.units.iter().filter(goes).collect();
    going.sort_by_key(|unit| {
        let word = Reverse(unit.fleet.leaving);
        let cluster = unit.machine().cluster();
        let disturbs = unit.fleet.disturbs();
        (word, cluster, keep_order(unit), disturbs, unit.id())
    });
    going
}

/// RF-11: machines that would be reclaimed but for make-before-break, by id (engine.md §22.3 no. 7).
pub(crate) fn held(
    world: &World<'_>,
    ledger: &Ledger<'_>,
    choices: &[Option<Choice>],
    preempted: &[Preempted<'_>],
) -> Vec<MachineId> {
    let held = |unit: &&Unit<'_>| held_for(world, ledger, choices, preempted, unit).is_some();
    let units = world.units.iter().filter(held);
    units.map(|unit| unit.id().clone()).collect()
}

/// R-4, by id. A machine with an intent is not released: claimed, standing (RF-1), or ended this
/// cycle, so that its clock starts now (RF-13). Nor is an `unavailable` one (RF-17), nor one that leaves (RF-21).
pub(crate) fn releases<'w>(world: &'w World<'w>, ledger: &Ledger<'w>) -> Vec<&'w Unit<'w>> {
    let expired = |unit: &&Unit<'_>| {
        let tier = unit.machine().shape().capacity_type;
        let since = unit.fleet.idle_since;
        unit.state() == State::Idle
            && ledger.is_free(unit)
            && unit.machine().intent().is_none()
            && !unit.fleet.is_out_of_reach()
            && since.is_some_and(|since| world.fleet.holds.expired(tier, since, world.fleet.now))
    };
    world.units.iter().filter(expired).collect()
}
