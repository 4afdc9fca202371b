//! Pass B (RF-5): those still short are served one after another, in T order; each of all then replaces what
//! leaves (RF-21).
//!
//! ```text
//! B0 own ─▶ B1 leftovers ─▶ B1a drains taken back
//!   ─▶ B2 Idle ─▶ B3 Creating ─▶ B4 Speculative ─▶ prune ─▶ B5 lower priority
//!   ─▶ what leaves `soon` is replaced
//! ```

use crate::{
    domain::{Case, Choice, choose},
    ledger::{How, Ledger},
    order::keep_order,
    pick::prune,
    replace::replace,
    steps::Search,
    world::{Unit, World, credits, is_gang, lies_in},
};
use bigfleet_model::State;

/// RF-5. Per Need, the domain chosen if it is a gang that was short, or that moves for what leaves.
pub(crate) fn pass_b<'w>(world: &'w World<'w>, ledger: &mut Ledger<'w>) -> Vec<Option<Choice>> {
    let mut choices = Vec::new();
    for rank in 0..world.needs.len() {
        // Short when its turn comes: after pass A, or because B5 took from it.
        let short = !ledger.is_covered(rank);
        let gang = short && is_gang(&world.needs[rank]);
        let mut choice = gang.then(|| choose(world, ledger, rank));
        if short {
            serve(world, ledger, rank, choice.as_ref());
        }
        replace(world, ledger, rank, &mut choice);
        choices.push(choice);
    }
    choices
}

/// Whether a Need takes over from Needs of lower priority (B5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TakeOver {
    Yes,
    IfThatCompletes,
    No,
}

fn serve<'w>(world: &'w World<'w>, ledger: &mut Ledger<'w>, rank: usize, choice: Option<&Choice>) {
    let need = &world.needs[rank];
    let domain = choice.map_or("", |choice| choice.domain.as_str());
    if is_gang(need) {
        // RF-5: a gang gives back pass-A claims outside its domain.
        for unit in ledger.units(rank) {
            if !lies_in(need, unit, domain) {
                ledger.give_back(unit);
            }
        }
        if domain.is_empty() {
            return;
        }
    }

    let search = Search::new(world, rank, domain);
    search.take_own(ledger); // B0
    search.take_leftovers(ledger); // B1
    search.take_back(ledger); // B1a
    if !search.may_acquire() {
        return;
    }
    // RF-6, column "Takes".
    let (speculative, take_over) = match choice.map(|choice| choice.case) {
        None | Some(Case::Fits) => (true, TakeOver::Yes),
        Some(Case::WithVictims) => (true, TakeOver::IfThatCompletes),
        Some(Case::Partial) => (false, TakeOver::No),
    };
    search.acquire(ledger, State::Idle); // B2
    search.acquire(ledger, State::Creating); // B3
    if speculative {
        search.provision(ledger); // B4
    }
    give_back_redundant(world, ledger, rank); // RF-8
    if take_over != TakeOver::No {
        displace(&search, ledger, take_over); // B5
    }
}

/// RF-8: when B2–B4 cover the Need.
pub(crate) fn give_back_redundant<'w>(world: &'w World<'w>, ledger: &mut Ledger<'w>, rank: usize) {
    let of = |new: bool| -> Vec<&'w Unit<'w>> {
        let claims = ledger.claims(rank).iter();
        let wanted = claims.filter(|claim| (claim.how == How::New) == new);
        wanted.map(|claim| claim.unit).collect()
    };
    let need = &world.needs[rank];
    for unit in prune(need, &need.row.aggregate, &of(false), &of(true)) {
        ledger.give_back(unit);
    }
}

/// B5: bound machines of its cluster still claimed as own by Needs of strictly lower priority, by
/// (that Need's priority, keep order), those that leave last within one priority (RF-21). The claim moves.
fn displace<'w>(search: &Search<'w>, ledger: &mut Ledger<'w>, take_over: TakeOver) {
    let (world, rank) = (search.world, search.rank);
    let need = &world.needs[rank];
    let mut candidates = Vec::new();
    for (other, holder) in world.needs.iter().enumerate() {
        let theirs = holder.row.profile.priority();
        if holder.cluster != need.cluster || need.row.profile.priority() <= theirs {
            continue;
        }
        for claim in ledger.claims(other) {
            let unit = claim.unit;
            if claim.how == How::Own && unit.bound_to(&need.cluster) && search.is_of_use(unit) {
                candidates.push(((theirs, unit.leaves_soon(), keep_order(unit)), unit));
            }
        }
    }
    let picked = search.pick(ledger, candidates);
    let left = ledger
        .wanted(rank)
        .sub(&credits(need, picked.iter().copied()));
    if take_over == TakeOver::IfThatCompletes && !left.is_zero() {
        return;
    }
    for unit in picked {
        ledger.give_back(unit);
        ledger.claim(rank, unit, How::TakenOver);
    }
}
