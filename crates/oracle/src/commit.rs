//! Commit (RF-7, RF-13): what changes without an action.

use crate::{
    hold::{Preempted, is_preempted},
    ledger::{How, Ledger},
    world::{Unit, World, is_ready, may_acquire},
};
use bigfleet_model::{MachineId, Need, Restamp, State, Terms};

/// RF-13: intents that ended before the pass, or that nobody claimed for their Need, by id.
pub(crate) fn ended_intents(world: &World<'_>, ledger: &Ledger<'_>) -> Vec<MachineId> {
    let units = world.units.iter();
    let ended = units.filter(|unit| has_ended(world, ledger, unit));
    ended.map(|unit| unit.id().clone()).collect()
}

fn has_ended(world: &World<'_>, ledger: &Ledger<'_>, unit: &Unit<'_>) -> bool {
    if unit.ended {
        return true;
    }
    let Some(key) = unit.machine().intent().and(unit.attribution.as_ref()) else {
        return false;
    };
    let claimed = ledger
        .claimant(unit)
        .is_some_and(|rank| world.needs[rank].key() == *key);
    // RF-1: its Need is absent and its cluster has not reported; engine.md §22.3 no. 15: `acquire: false`.
    let stands = !may_acquire(world.fleet, &key.cluster)
        || (!is_ready(world.fleet, &key.cluster) && !world.has_need(key));
    !claimed && !stands
}

/// RF-7, by machine id.
pub(crate) fn restamps(
    world: &World<'_>,
    ledger: &Ledger<'_>,
    preempted: &[Preempted<'_>],
    reclaims: &[&Unit<'_>],
) -> Vec<Restamp> {
    let units = world.units.iter();
    let kept = units.filter(|unit| !is_preempted(preempted, unit));
    kept.filter_map(|unit| {
        let goes = reclaims.iter().any(|other| other.id() == unit.id());
        restamp(world, ledger, unit, goes)
    })
    .collect()
}

fn restamp(world: &World<'_>, ledger: &Ledger<'_>, unit: &Unit<'_>, goes: bool) -> Option<Restamp> {
    // RF-20: a Restore carries its Need itself.
    if ledger.how(unit) == Some(How::Restored) {
        return None;
    }
    let machine = unit.id().clone();
    // RF-21: what was replaced is attributed to the Need that gave it back, unless it goes at once.
    let gave_back = ledger.replaced_by(unit).filter(|_| !goes);
    let holder = ledger.claimant(unit).or(gave_back);
    let holder: Option<&Need> = holder.map(|rank| &*world.needs[rank]);
    if let Some(need) = holder
        && gets_a_restamp(unit.state())
        && unit.machine().attribution() != Some(need.key())
    {
        return Some(Restamp {
            machine,
            need: need.key(),
            terms: Terms::of(&need.row.profile),
        });
    }
    // Passed on and not ended, claimed or not.
    let (need, terms) = unit.heir.clone()?;
    (!has_ended(world, ledger, unit)).then_some(Restamp {
        machine,
        need,
        terms,
    })
}

/// Bound, Creating or Draining; Idle and Speculative ones get their intent with their action.
fn gets_a_restamp(state: State) -> bool {
    match state {
        State::Configured | State::Configuring | State::Creating | State::Draining => true,
        State::Idle | State::Speculative | State::Deleting | State::Failed => false,
    }
}
