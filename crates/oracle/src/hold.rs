//! Make before break (RF-11): a serving machine is never drained because of one that has not
//! arrived.

use crate::{
    domain::{Case, Choice},
    ledger::Ledger,
    world::{Unit, World, can_use, credit, credits, is_ready},
};
use bigfleet_model::{Need, State};

/// A machine picked in Phase 2.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Preempted<'w> {
    pub(crate) unit: &'w Unit<'w>,
    /// The Need it is preempted for.
    pub(crate) rank: usize,
    /// The priority it had as a victim.
    pub(crate) priority: i32,
}

pub(crate) fn is_preempted(preempted: &[Preempted<'_>], unit: &Unit<'_>) -> bool {
    preempted.iter().any(|pick| pick.unit.id() == unit.id())
}

/// R-1 but for the hold: Configured, of a cluster that has reported, claimed by nobody and not
/// preempted. What leaves `now` goes whether its cluster has reported or not (RF-21).
pub(crate) fn is_excess(
    world: &World<'_>,
    ledger: &Ledger<'_>,
    preempted: &[Preempted<'_>],
    unit: &Unit<'_>,
) -> bool {
    let reported = |cluster| is_ready(world.fleet, cluster) || unit.fleet.leaves_now();
    unit.state() == State::Configured
        && unit.machine().cluster().is_some_and(reported)
        && ledger.is_free(unit)
        && !is_preempted(preempted, unit)
}

/// RF-11: the highest priority among the Needs a machine that Phase 3 would reclaim is held for;
/// `None` if it is not held.
pub(crate) fn held_for(
    world: &World<'_>,
    ledger: &Ledger<'_>,
    choices: &[Option<Choice>],
    preempted: &[Preempted<'_>],
    unit: &Unit<'_>,
) -> Option<i32> {
    // RF-21: what leaves `now` is never held, and what leaves `soon` only for the Need it is attributed to.
    if !is_excess(world, ledger, preempted, unit) || unit.fleet.leaves_now() {
        return None;
    }
    let gave_back = ledger.replaced_by(unit).map(|rank| world.needs[rank].key());
    let attribution = gave_back.or(unit.attribution.clone());
    let holds = |(rank, need): (usize, &std::sync::Arc<Need>)| {
        let is_its_own = attribution.as_ref() == Some(&need.key());
        let held = (is_its_own || !unit.leaves_soon())
            && holds_as_spare(ledger, preempted, rank, need, unit)
            || is_its_own && holds_its_own(ledger, choices, preempted, rank, need, unit);
        held.then(|| need.row.profile.priority())
    };
    world.needs.iter().enumerate().filter_map(holds).max()
}

/// The Need could use the machine, waits for one that has not arrived or is being taken away, and
/// its other claims do not cover it alone.
fn holds_as_spare(
    ledger: &Ledger<'_>,
    preempted: &[Preempted<'_>],
    rank: usize,
    need: &Need,
    unit: &Unit<'_>,
) -> bool {
    let aggregate = &need.row.aggregate;
    if unit.machine().cluster() != Some(&need.cluster)
        || !can_use(need, unit)
        || !credit(need, unit).contributes_to(aggregate)
    {
        return false;
    }
    let serves =
        |unit: &&Unit<'_>| unit.state() == State::Configured && !is_preempted(preempted, unit);
    let claims = ledger.units(rank);
    let awaits =
        claims.iter().any(|unit| !serves(unit)) || preempted.iter().any(|pick| pick.rank == rank);
    awaits && !credits(need, claims.into_iter().filter(serves)).covers(aggregate)
}

/// A machine that is `not_ready`, that the Need it is attributed to can no longer use, or whose gang chose a
/// domain with victims and has none there this cycle, is held while that Need, `need`, is present and its
/// Configured claims do not cover it.
fn holds_its_own(
    ledger: &Ledger<'_>,
    choices: &[Option<Choice>],
    preempted: &[Preempted<'_>],
    rank: usize,
    need: &Need,
    unit: &Unit<'_>,
) -> bool {
    let by_victims = |choice: &Choice| choice.case == Case::WithVictims;
    let lacks_victims = choices[rank].as_ref().is_some_and(by_victims)
        && preempted.iter().all(|pick| pick.rank != rank);
    let is_stuck = unit.not_ready() || !can_use(need, unit) || lacks_victims;
    let configured = |unit: &&Unit<'_>| unit.state() == State::Configured;
    let serving = ledger.units(rank).into_iter().filter(configured);
    is_stuck && !credits(need, serving).covers(&need.row.aggregate)
}
