//! Pass B (RF-5): those still short are served one after another, in T order.
//!
//! ```text
//! B0 own ─▶ B1 leftovers ─▶ B1a drains taken back
//!   ─▶ B2 Idle ─▶ B3 Creating ─▶ B4 Speculative ─▶ prune ─▶ B5 lower priority
//! ```

use crate::{
    domain::{Case, Choice, choose},
    ledger::{How, Ledger},
    order::{keep_order, restore_order},
    pass_a::take_own,
    pick::{Candidates, pick, prune},
    world::{Unit, World, can_use, credits, is_gang, is_parked, lies_in, may_acquire},
};
use bigfleet_model::{Need, State, effective_cost};

/// RF-5. Per Need, the domain chosen if it is a gang that was short.
pub(crate) fn pass_b<'w>(world: &'w World<'w>, ledger: &mut Ledger<'w>) -> Vec<Option<Choice>> {
    let mut choices = Vec::new();
    for rank in 0..world.needs.len() {
        // Short when its turn comes: after pass A, or because B5 took from it.
        let short = !ledger.is_covered(rank);
        let gang = short && is_gang(&world.needs[rank]);
        let choice = gang.then(|| choose(world, ledger, rank));
        if short {
            serve(world, ledger, rank, choice.as_ref());
        }
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

    take_own(world, ledger, rank, domain); // B0
    take_leftovers(world, ledger, rank, domain); // B1
    take_back(world, ledger, rank, domain); // B1a

    // RF-5, parked: B0 to B1a. RF-16, `acquire: false`: the same.
    if is_parked(need) || !may_acquire(world.fleet, &need.cluster) {
        return;
    }
    // RF-6, column "Takes".
    let (speculative, take_over) = match choice.map(|choice| choice.case) {
        None | Some(Case::Fits) => (true, TakeOver::Yes),
        Some(Case::WithVictims) => (true, TakeOver::IfThatCompletes),
        Some(Case::Partial) => (false, TakeOver::No),
    };
    acquire(world, ledger, rank, domain, State::Idle); // B2
    acquire(world, ledger, rank, domain, State::Creating); // B3
    if speculative {
        provision(world, ledger, rank, domain); // B4
    }
    give_back_redundant(world, ledger, rank); // RF-8
    if take_over != TakeOver::No {
        displace(world, ledger, rank, domain, take_over); // B5
    }
}

/// Picks from the candidates of a step, without claiming.
fn pick_for<'w, K: Ord>(
    world: &'w World<'w>,
    ledger: &Ledger<'w>,
    rank: usize,
    candidates: Candidates<'w, K>,
) -> Vec<&'w Unit<'w>> {
    let (wanted, so_far) = (ledger.wanted(rank), ledger.units(rank));
    pick(&world.needs[rank], &wanted, &so_far, candidates)
}

/// B1: leftovers of its cluster in keep order (RF-1).
fn take_leftovers<'w>(world: &'w World<'w>, ledger: &mut Ledger<'w>, rank: usize, domain: &str) {
    let need = &world.needs[rank];
    let leftover = |unit: &&Unit<'_>| {
        unit.bound_to(&need.cluster)
            && !unit.not_ready()
            && ledger.is_free(unit)
            && can_use(need, unit)
            && lies_in(need, unit, domain)
    };
    let leftovers = world.units.iter().filter(leftover);
    let candidates = leftovers.map(|unit| (keep_order(unit), unit)).collect();
    let picked = pick_for(world, ledger, rank, candidates);
    ledger.claim_all(rank, picked, How::Leftover);
}

/// B1a: machines of its cluster whose drain can be taken back, in keep order (RF-20).
fn take_back<'w>(world: &'w World<'w>, ledger: &mut Ledger<'w>, rank: usize, domain: &str) {
    let need = &world.needs[rank];
    let reversible = |unit: &&Unit<'_>| {
        may_take_back(need, unit) && ledger.is_free(unit) && lies_in(need, unit, domain)
    };
    let reversible = world.units.iter().filter(reversible);
    let candidates = reversible.map(|unit| (restore_order(unit), unit)).collect();
    let picked = pick_for(world, ledger, rank, candidates);
    ledger.claim_all(rank, picked, How::Restored);
}

/// RF-20: offered to the Needs of its own cluster that can use it.
pub(crate) fn may_take_back(need: &Need, unit: &Unit<'_>) -> bool {
    unit.can_be_restored() && unit.machine().cluster() == Some(&need.cluster) && can_use(need, unit)
}

/// Machines without intent in a state that the Need may take; `unavailable` ones are not (RF-17).
fn free<'w>(
    world: &'w World<'w>,
    ledger: &Ledger<'w>,
    rank: usize,
    domain: &str,
    state: State,
) -> Vec<&'w Unit<'w>> {
    let need = &world.needs[rank];
    let free = |unit: &&Unit<'_>| {
        unit.state() == state
            && unit.without_intent()
            && !unit.fleet.unavailable
            && ledger.is_free(unit)
            && can_use(need, unit)
            && lies_in(need, unit, domain)
    };
    world.units.iter().filter(free).collect()
}

/// B2 and B3: Idle, then Creating, without intent, by (price, id).
fn acquire<'w>(
    world: &'w World<'w>,
    ledger: &mut Ledger<'w>,
    rank: usize,
    domain: &str,
    state: State,
) {
    let free = free(world, ledger, rank, domain, state).into_iter();
    let candidates = free.map(|unit| (unit.machine().price(), unit)).collect();
    let picked = pick_for(world, ledger, rank, candidates);
    ledger.claim_all(rank, picked, How::New);
}

/// B4: Speculative, by (effective cost, price, id).
fn provision<'w>(world: &'w World<'w>, ledger: &mut Ledger<'w>, rank: usize, domain: &str) {
    let penalty = world.needs[rank].row.profile.interruption();
    let cost = |unit: &Unit<'_>| {
        let (price, interruption) = (unit.machine().price(), unit.machine().interruption());
        (effective_cost(price, interruption, penalty), price)
    };
    let free = free(world, ledger, rank, domain, State::Speculative).into_iter();
    let candidates = free.map(|unit| (cost(unit), unit)).collect();
    let picked = pick_for(world, ledger, rank, candidates);
    ledger.claim_all(rank, picked, How::New);
}

/// RF-8: when B2–B4 cover the Need.
fn give_back_redundant<'w>(world: &'w World<'w>, ledger: &mut Ledger<'w>, rank: usize) {
    let of = |new: bool| -> Vec<&'w Unit<'w>> {
        let claims = ledger.claims(rank).iter();
        let wanted = claims.filter(|claim| (claim.how == How::New) == new);
        wanted.map(|claim| claim.unit).collect()
    };
    for unit in prune(&world.needs[rank], &of(false), &of(true)) {
        ledger.give_back(unit);
    }
}

/// B5: bound machines of its cluster still claimed as own by Needs of strictly lower priority, by
/// (that Need's priority, keep order). The claim moves.
fn displace<'w>(
    world: &'w World<'w>,
    ledger: &mut Ledger<'w>,
    rank: usize,
    domain: &str,
    take_over: TakeOver,
) {
    let need = &world.needs[rank];
    let mut candidates = Vec::new();
    for (other, holder) in world.needs.iter().enumerate() {
        let theirs = holder.row.profile.priority();
        if holder.cluster != need.cluster || need.row.profile.priority() <= theirs {
            continue;
        }
        for claim in ledger.claims(other) {
            let unit = claim.unit;
            if claim.how == How::Own
                && unit.bound_to(&need.cluster)
                && can_use(need, unit)
                && lies_in(need, unit, domain)
            {
                candidates.push(((theirs, keep_order(unit)), unit));
            }
        }
    }
    let picked = pick_for(world, ledger, rank, candidates);
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
