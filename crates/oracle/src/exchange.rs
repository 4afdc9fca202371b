//! Exchange (RF-18): one of two equals goes, so let it be the dearer, or the one that disturbs less.

use crate::{
    domain::Choice,
    hold::{Preempted, held_for, is_excess, is_preempted},
    ledger::{How, Ledger},
    order::keep_order_with_id,
    pick::has_spread,
    world::{Unit, World, can_use, domain_of, is_gang},
};
use bigfleet_model::{Amounts, Need, State};
use std::cmp::Reverse;

/// RF-18. `residuals` is Phase 1's verdict (engine.md §22.3 no. 16).
pub(crate) fn exchange<'w>(
    world: &'w World<'w>,
    ledger: &mut Ledger<'w>,
    choices: &[Option<Choice>],
    preempted: &[Preempted<'w>],
    residuals: &[Amounts],
) {
    let would_go = |unit: &&Unit<'_>| {
        is_excess(world, ledger, preempted, unit)
            && held_for(world, ledger, choices, preempted, unit).is_none()
            && !unit.not_ready()
            && unit.stays()
    };
    let mut going: Vec<&Unit<'_>> = world.units.iter().filter(would_go).collect();
    going.sort_by_key(|unit| keep_order_with_id(unit));
    for unit in going {
        if let Some((rank, dearer)) = dearest(world, ledger, preempted, residuals, unit) {
            ledger.give_back(dearer);
            ledger.claim(rank, unit, How::Exchanged);
        }
    }
}

/// The dearest Configured equal claimed by a Need that could use `unit` instead, and that no Need still
/// short can use; then the one that disturbs least, then the largest id.
fn dearest<'w>(
    world: &'w World<'w>,
    ledger: &Ledger<'w>,
    preempted: &[Preempted<'w>],
    residuals: &[Amounts],
    unit: &Unit<'_>,
) -> Option<(usize, &'w Unit<'w>)> {
    let cluster = unit.machine().cluster()?;
    let of_cluster = world
        .needs
        .iter()
        .enumerate()
        .filter(|(_, need)| need.cluster == *cluster);
    let wanted_by_short = |other: &Unit<'_>| {
        of_cluster
            .clone()
            .any(|(rank, need)| !residuals[rank].is_zero() && can_use(need, other))
    };
    let mut equals = Vec::new();
    for (rank, need) in of_cluster.clone() {
        if !can_use(need, unit) {
            continue;
        }
        equals.extend(ledger.units(rank).into_iter().filter_map(|other| {
            let goes = other.state() == State::Configured
                && !is_preempted(preempted, other)
                && other.allocatable() == unit.allocatable()
                && (is_dearer(need, unit, other) || disturbs_less(need, unit, other))
                && !wanted_by_short(other);
            goes.then_some((rank, other))
        }));
    }
    equals.into_iter().max_by_key(|(_, other)| {
        let disturbs = Reverse(other.fleet.disturbs());
        (other.machine().keep_price(), disturbs, other.id().clone())
    })
}

/// A plain Need without a DoNotSchedule spread lets go what is strictly dearer.
fn is_dearer(need: &Need, unit: &Unit<'_>, other: &Unit<'_>) -> bool {
    !is_gang(need)
        && !has_spread(need)
        && unit.machine().keep_price() < other.machine().keep_price()
}

/// Any Need lets go what is as dear, costs no more to lose and disturbs strictly less, if it lies where
/// `unit` does.
fn disturbs_less(need: &Need, unit: &Unit<'_>, other: &Unit<'_>) -> bool {
    let in_place = if is_gang(need) {
        domain_of(need, unit).is_some() && domain_of(need, unit) == domain_of(need, other)
    } else {
        let mut spreads = need.row.profile.hard_spreads();
        spreads.all(|spread| {
            let key = spread.topology_key();
            unit.domain(key) == other.domain(key)
        })
    };
    in_place
        && unit.machine().keep_price() == other.machine().keep_price()
        && other.machine().terms().reclamation <= unit.machine().terms().reclamation
        && other.fleet.disturbs() < unit.fleet.disturbs()
}
