//! Verdicts (engine.md §17, RF-15): what was decided about each Need, and why it is short.

use crate::{
    domain::{Case, Choice},
    emission::claimed,
    ledger::{How, Ledger},
    pass_a::home,
    phase2::Phase2,
    pick::has_spread,
    world::{Unit, World, can_use, is_gang, is_parked, sum},
};
use bigfleet_model::{Amounts, MatchingSupply, Need, State, UnmetReason, Verdict};
use std::sync::Arc;

/// VD-1: one per Need, in T order.
pub(crate) fn verdicts(
    world: &World<'_>,
    ledger: &Ledger<'_>,
    choices: &[Option<Choice>],
    residuals: &[Amounts],
    phase2: &Phase2<'_>,
) -> Vec<Verdict> {
    let verdict = |(rank, need): (usize, &Arc<Need>)| {
        let mut verdict = facts(world, ledger, choices, residuals, phase2, rank, need);
        verdict.unmet_reason = unmet_reason(world, ledger, &verdict, phase2.unresolved[rank]);
        verdict
    };
    world.needs.iter().enumerate().map(verdict).collect()
}

fn facts(
    world: &World<'_>,
    ledger: &Ledger<'_>,
    choices: &[Option<Choice>],
    residuals: &[Amounts],
    phase2: &Phase2<'_>,
    rank: usize,
    need: &Arc<Need>,
) -> Verdict {
    let satisfied = residuals[rank].is_zero();
    let choice = choices[rank].as_ref();
    let same_domain = match choice {
        Some(choice) => choice.domain.clone(),
        None => home(world, need).unwrap_or_default(),
    };
    // RF-6: covered in pass A, or case 1 or 2.
    let same_satisfiable =
        is_gang(need) && choice.is_none_or(|choice| choice.case != Case::Partial);
    let picks = phase2.preempted.iter().filter(|pick| pick.rank == rank);
    let victims: Vec<&Unit<'_>> = picks.map(|pick| pick.unit).collect();
    Verdict {
        need: Arc::clone(need),
        satisfied,
        residual: residuals[rank].clone(),
        claimed: count(ledger.claims(rank)),
        bootstrap: count(claimed(ledger, rank, State::Idle, How::New)),
        provision: count(claimed(ledger, rank, State::Speculative, How::New)),
        same_domain,
        same_satisfiable,
        parked: is_parked(need),
        victims_found: count(&victims),
        capacity_freed: sum(victims),
        unmet_reason: UnmetReason::Unspecified,
        matching_supply: if satisfied {
            MatchingSupply::default()
        } else {
            matching_supply(world, need)
        },
        same_candidates: choice.map_or(Vec::new(), |choice| choice.candidates.clone()),
    }
}

fn count<T>(items: impl IntoIterator<Item = T>) -> u32 {
    u32::try_from(items.into_iter().count()).unwrap_or(u32::MAX)
}

/// VD-1: machines per state the Need can use, ignoring claims and priority (engine.md §22.3 no. 8).
fn matching_supply(world: &World<'_>, need: &Need) -> MatchingSupply {
    let of = |state| {
        let units = world.units.iter();
        count(units.filter(|unit| unit.state() == state && can_use(need, unit)))
    };
    MatchingSupply::capped(
        of(State::Idle),
        of(State::Speculative),
        of(State::Configured),
    )
}

/// VD-2 with RF-15: the first that applies.
fn unmet_reason(
    world: &World<'_>,
    ledger: &Ledger<'_>,
    verdict: &Verdict,
    unresolved: bool,
) -> UnmetReason {
    let need = &verdict.need;
    let spread_leaves = |unit: &Unit<'_>| {
        matches!(unit.state(), State::Idle | State::Speculative)
            && ledger.is_free(unit)
            && can_use(need, unit)
    };
    if verdict.satisfied {
        UnmetReason::Unspecified
    } else if is_gang(need)
        && (!verdict.same_satisfiable || verdict.parked || verdict.same_domain.is_empty())
    {
        UnmetReason::TopologyUnsatisfiable
    } else if verdict.matching_supply.is_empty() && verdict.claimed == 0 {
        UnmetReason::NoMatchingSupply
    } else if has_spread(need) && world.units.iter().any(spread_leaves) {
        UnmetReason::SpreadUnsatisfiable
    } else if unresolved && 0 < verdict.victims_found {
        UnmetReason::PreemptionExhausted
    } else {
        UnmetReason::PriorityStarved
    }
}
