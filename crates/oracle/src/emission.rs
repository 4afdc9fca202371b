//! Emission (RF-14): the actions, in their order.

use crate::{
    hold::Preempted,
    ledger::{How, Ledger},
    score::grace_seconds,
    world::{Unit, World, may_acquire},
};
use bigfleet_model::{Action, ActionKind, Need, Reason, State, Terms};

///
const RECLAIM_GRACE_SECONDS: u32 = 600;

/// RF-14: per Need in T order Restores, Bootstraps (promised, then new), Provisions; then Preempts,
/// Reclaims, Deletes.
pub(crate) fn actions(
    world: &World<'_>,
    ledger: &Ledger<'_>,
    preempted: &[Preempted<'_>],
    reclaims: &[&Unit<'_>],
    releases: &[&Unit<'_>],
) -> Vec<Action> {
    let mut actions = Vec::new();
    for (rank, need) in world.needs.iter().enumerate() {
        let to = |unit| acquisition(ActionKind::Restore, Reason::Restored, need, unit);
        actions.extend(claimed(ledger, rank, State::Draining, How::Restored).map(to));
        // RF-16: no promised Bootstrap.
        if may_acquire(world.fleet, &need.cluster) {
            let promised = claimed(ledger, rank, State::Idle, How::Own);
            let to = |unit| acquisition(ActionKind::Bootstrap, Reason::Promised, need, unit);
            actions.extend(promised.map(to));
        }
        let to = |unit| acquisition(ActionKind::Bootstrap, Reason::Idle, need, unit);
        actions.extend(claimed(ledger, rank, State::Idle, How::New).map(to));
        let to = |unit| acquisition(ActionKind::Provision, Reason::Speculative, need, unit);
        actions.extend(claimed(ledger, rank, State::Speculative, How::New).map(to));
    }
    actions.extend(preempted.iter().map(|pick| preempt(world, pick)));
    actions.extend(reclaims.iter().map(|unit| reclaim(unit)));
    actions.extend(releases.iter().map(|unit| delete(unit)));
    actions
}

/// A Need's claims in a state that came about in a way, in claim order.
pub(crate) fn claimed<'c, 'w>(
    ledger: &'c Ledger<'w>,
    rank: usize,
    state: State,
    how: How,
) -> impl Iterator<Item = &'w Unit<'w>> + use<'c, 'w> {
    let claims = ledger.claims(rank).iter();
    claims
        .filter(move |claim| claim.unit.state() == state && claim.how == how)
        .map(|claim| claim.unit)
}

fn acquisition(kind: ActionKind, reason: Reason, need: &Need, unit: &Unit<'_>) -> Action {
    Action {
        kind,
        machine: unit.id().clone(),
        cluster: Some(need.cluster.clone()),
        purpose: Some((need.key(), Terms::of(&need.row.profile))),
        grace_seconds: 0,
        preemptor_priority: 0,
        reason,
    }
}

/// V-6.
fn preempt(world: &World<'_>, pick: &Preempted<'_>) -> Action {
    let need = &world.needs[pick.rank];
    Action {
        kind: ActionKind::Preempt,
        machine: pick.unit.id().clone(),
        cluster: pick.unit.machine().cluster().cloned(),
        purpose: Some((need.key(), Terms::of(&need.row.profile))),
        grace_seconds: grace_seconds(need, pick.priority),
        preemptor_priority: need.row.profile.priority(),
        reason: Reason::Inversion,
    }
}

/// R-1, RF-21. Names no Need (engine.md §22.3 no. 10).
fn reclaim(unit: &Unit<'_>) -> Action {
    Action {
        kind: ActionKind::Reclaim,
        machine: unit.id().clone(),
        cluster: unit.machine().cluster().cloned(),
        purpose: None,
        grace_seconds: RECLAIM_GRACE_SECONDS,
        preemptor_priority: 0,
        reason: if unit.stays() {
            Reason::Excess
        } else {
            Reason::Leaving
        },
    }
}

/// Names no Need (engine.md §22.3 no. 10).
fn delete(unit: &Unit<'_>) -> Action {
    Action {
        kind: ActionKind::Delete,
        machine: unit.id().clone(),
        cluster: None,
        purpose: None,
        grace_seconds: 0,
        preemptor_priority: 0,
        reason: Reason::Release,
    }
}
