//! Exchange (RF-18): one of two equals goes, so let it be the dearer.

use crate::{
    hold::{Preempted, held_for, is_excess, is_preempted},
    ledger::{How, Ledger},
    order::keep_order_with_id,
    pick::has_spread,
    world::{Unit, World, can_use, is_gang},
};
use bigfleet_model::{Amounts, State};

/// RF-18. `residuals` is Phase 1's verdict (engine.md §22.3 no. 16).
pub(crate) fn exchange<'w>(
    world: &'w World<'w>,
    ledger: &mut Ledger<'w>,
    preempted: &[Preempted<'w>],
    residuals: &[Amounts],
) {
    let would_go = |unit: &&Unit<'_>| {
        is_excess(world, ledger, preempted, unit)
            && held_for(world, ledger, preempted, unit).is_none()
            && !unit.not_ready()
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

/// The dearest Configured equal claimed by a plain Need that could use `unit` instead, and that no
/// Need still short can use; then the largest id.
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
    let mut dearer = Vec::new();
    for (rank, need) in of_cluster.clone() {
        if is_gang(need) || has_spread(need) || !can_use(need, unit) {
            continue;
        }
        dearer.extend(ledger.units(rank).into_iter().filter_map(|other| {
            let dearer = other.state() == State::Configured
                && !is_preempted(preempted, other)
                && other.allocatable() == unit.allocatable()
                && unit.machine().keep_price() < other.machine().keep_price()
                && !wanted_by_short(other);
            dearer.then_some((rank, other))
        }));
    }
    dearer
        .into_iter()
        .max_by_key(|(_, other)| (other.machine().keep_price(), other.id().clone()))
}
