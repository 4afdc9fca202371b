//! Replacing (RF-21): machines that leave `soon` are given back for machines that stay, where those are free.
//!
//! ```text
//! a gang with room elsewhere ──▶ all its leaving claims at once, in the domain that holds it
//! any other ──▶ one by one, each for as much as it gave, or not at all
//! ```

use crate::{
    domain::{Choice, choose_staying},
    ledger::{How, Ledger},
    order::keep_order_with_id,
    pass_a::home,
    pass_b::give_back_redundant,
    pick::{InPlace, prune},
    steps::Search,
    world::{Unit, World, is_gang, lies_in},
};
use bigfleet_model::State;

/// RF-21, in the Need's turn of pass B. `choice` is what a gang that was short chose, and becomes what it
/// chooses here.
pub(crate) fn replace<'w>(
    world: &'w World<'w>,
    ledger: &mut Ledger<'w>,
    rank: usize,
    choice: &mut Option<Choice>,
) {
    let need = &world.needs[rank];
    let units = ledger.units(rank).into_iter();
    let mut leaving: Vec<&Unit<'_>> = units.filter(|unit| unit.leaves_soon()).collect();
    // An incomplete gang buys nothing.
    if leaving.is_empty() || (is_gang(need) && !ledger.is_covered(rank)) {
        return;
    }
    let moves = is_gang(need).then(|| choose_staying(world, ledger, rank));
    if let Some(elsewhere) = moves.flatten() {
        move_gang(world, ledger, rank, &leaving, &elsewhere);
        *choice = Some(elsewhere);
        return;
    }
    let domain = match choice {
        Some(choice) => choice.domain.clone(),
        None => home(world, need).unwrap_or_default(),
    };
    leaving.sort_by_key(|unit| keep_order_with_id(unit));
    for unit in leaving.into_iter().rev() {
        replace_one(world, ledger, rank, &domain, unit);
    }
}

/// A gang gives back its leaving claims and those outside of the domain chosen, and takes there.
fn move_gang<'w>(
    world: &'w World<'w>,
    ledger: &mut Ledger<'w>,
    rank: usize,
    leaving: &[&'w Unit<'w>],
    elsewhere: &Choice,
) {
    for unit in leaving {
        ledger.replace(unit);
    }
    for unit in ledger.units(rank) {
        if !lies_in(&world.needs[rank], unit, &elsewhere.domain) {
            ledger.give_back(unit);
        }
    }
    let search = Search {
        last_resort: false,
        ..Search::new(world, rank, &elsewhere.domain)
    };
    take(&search, ledger);
    give_back_redundant(world, ledger, rank);
}

/// `unit` is given back if then the Need can be covered as far as with it; else nothing changes.
fn replace_one<'w>(
    world: &'w World<'w>,
    ledger: &mut Ledger<'w>,
    rank: usize,
    domain: &str,
    unit: &'w Unit<'w>,
) {
    let need = &world.needs[rank];
    let before = ledger.clone();
    let search = Search {
        short_by: ledger.wanted(rank),
        last_resort: false,
        in_place: Some(InPlace::of(world, need, unit)),
        ..Search::new(world, rank, domain)
    };
    ledger.replace(unit);
    take(&search, ledger);
    if !search.wanted(ledger).is_zero() {
        *ledger = before;
        return;
    }
    // RF-8 for what was taken for it.
    let is_taken_for_it = |other: &Unit<'_>| {
        ledger.how(other) == Some(How::New) && before.claimant(other) != Some(rank)
    };
    let (taken, kept): (Vec<_>, Vec<_>) = ledger
        .units(rank)
        .into_iter()
        .partition(|other| is_taken_for_it(other));
    let goal = need.row.aggregate.sub(&search.short_by);
    for redundant in prune(need, &goal, &kept, &taken) {
        ledger.give_back(redundant);
    }
}

/// B0 to B4 (parked, `acquire: false`: B0 to B1a), of machines that stay.
fn take<'w>(search: &Search<'w>, ledger: &mut Ledger<'w>) {
    search.take_own(ledger);
    search.take_leftovers(ledger);
    search.take_back(ledger);
    if search.may_acquire() {
        search.acquire(ledger, State::Idle);
        search.acquire(ledger, State::Creating);
        search.provision(ledger);
    }
}
