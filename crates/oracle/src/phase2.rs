//! Phase 2 (RF-10, V-1..V-9): machines of lower priority make way for Needs still short.

use crate::{
    domain::{Choice, priority},
    hold::{Preempted, held_for, is_excess, is_preempted},
    ledger::{How, Ledger},
    pick::{pick, prune},
    score::score,
    world::{Unit, World, can_use, credits, is_gang, is_parked, lies_in, may_acquire},
};
use bigfleet_model::{Amounts, State};
use std::{cmp::Reverse, collections::BTreeMap};

/// What Phase 2 did.
#[derive(Debug)]
pub(crate) struct Phase2<'w> {
    /// In pick order.
    pub(crate) preempted: Vec<Preempted<'w>>,
    /// Per Need: short, and not fully covered by what Phase 2 found (V-8).
    pub(crate) unresolved: Vec<bool>,
}

/// The priority each machine held at the start of Phase 2 has at least (RF-11).
type HeldPriorities<'w> = BTreeMap<&'w str, i32>;

/// RF-10. `residuals` is what Phase 1 left uncovered.
pub(crate) fn phase2<'w>(
    world: &'w World<'w>,
    ledger: &mut Ledger<'w>,
    choices: &[Option<Choice>],
    residuals: &[Amounts],
) -> Phase2<'w> {
    // Holds as of the start of Phase 2.
    let held: HeldPriorities<'_> = world
        .units
        .iter()
        .filter_map(|unit| {
            Some((
                unit.id().as_str(),
                held_for(world, ledger, choices, &[], unit)?,
            ))
        })
        .collect();
    let excess: Vec<&Unit<'_>> = world
        .units
        .iter()
        .filter(|unit| is_excess(world, ledger, &[], unit))
        .filter(|unit| !held.contains_key(unit.id().as_str()))
        .collect();
    let mut preempted = Vec::new();
    let mut unresolved = Vec::new();
    for (rank, need) in world.needs.iter().enumerate() {
        let domain = choices[rank]
            .as_ref()
            .map_or("", |choice| choice.domain.as_str());
        // V-2 and RF-16.
        let skipped = is_parked(need)
            || (is_gang(need) && domain.is_empty())
            || !may_acquire(world.fleet, &need.cluster);
        if residuals[rank].is_zero() || skipped {
            unresolved.push(!residuals[rank].is_zero());
            continue;
        }
        let promised = promise(world, ledger, rank, domain, &residuals[rank]);
        let left = residuals[rank].sub(&credits(need, promised.iter().copied()));
        let victims = {
            let so_far = [ledger.units(rank).as_slice(), &promised].concat();
            let chooser = Chooser {
                world,
                ledger,
                held: &held,
                excess: &excess,
                preempted: &preempted,
            };
            chooser.victims(rank, domain, &left, &so_far)
        };
        let left = left.sub(&credits(need, victims.iter().map(|victim| victim.unit)));
        unresolved.push(!left.is_zero());
        // A gang gets all of it only if together it covers the residual.
        if is_gang(need) && !left.is_zero() {
            continue;
        }
        ledger.claim_all(rank, promised, How::Promised);
        preempted.extend(victims);
    }
    Phase2 {
        preempted,
        unresolved,
    }
}

/// RF-10, first: Draining machines without intent get one, by (price, id).
fn promise<'w>(
    world: &'w World<'w>,
    ledger: &Ledger<'w>,
    rank: usize,
    domain: &str,
    wanted: &Amounts,
) -> Vec<&'w Unit<'w>> {
    let need = &world.needs[rank];
    let draining = |unit: &&Unit<'_>| {
        unit.state() == State::Draining
            && unit.without_intent()
            && unit.stays()
            && ledger.is_free(unit)
            && can_use(need, unit)
            && lies_in(need, unit, domain)
    };
    let draining = world.units.iter().filter(draining);
    let candidates = draining
        .map(|unit| (unit.machine().price(), unit))
        .collect();
    pick(need, wanted, &ledger.units(rank), candidates, None)
}

/// What the choice of victims looks at.
struct Chooser<'c, 'w> {
    world: &'w World<'w>,
    ledger: &'c Ledger<'w>,
    held: &'c HeldPriorities<'w>,
    excess: &'c [&'w Unit<'w>],
    preempted: &'c [Preempted<'w>],
}

impl<'w> Chooser<'_, 'w> {
    /// V-3 with RF-11: the stamp, the claimant, and the Needs it is held for, whichever is highest.
    fn priority(&self, unit: &Unit<'_>) -> i32 {
        let priority = priority(self.world, self.ledger, unit);
        let held = self.held.get(unit.id().as_str()).copied();
        held.map_or(priority, |held| priority.max(held))
    }

    /// V-3..V-5, then pruned as in RF-8. `so_far` is what the Need has, `left` what it wants.
    fn victims(
        &self,
        rank: usize,
        domain: &str,
        left: &Amounts,
        so_far: &[&'w Unit<'w>],
    ) -> Vec<Preempted<'w>> {
        let need = &self.world.needs[rank];
        let eligible = |unit: &&Unit<'_>| {
            unit.state() == State::Configured
                && unit.stays()
                && self.priority(unit) < need.row.profile.priority()
                && can_use(need, unit)
                && lies_in(need, unit, domain)
                && !is_preempted(self.preempted, unit)
        };
        // V-5: excess about to be reclaimed anyway first; then score desc, id.
        let order = |unit: &Unit<'_>| {
            let excess = self.excess.iter().any(|other| other.id() == unit.id());
            (
                Reverse(excess),
                Reverse(score(need, unit, self.priority(unit))),
            )
        };
        let eligible = self.world.units.iter().filter(eligible);
        let candidates = eligible.map(|unit| (order(unit), unit)).collect();
        let picked = pick(need, left, so_far, candidates, None);
        let given_back = prune(need, &need.row.aggregate, so_far, &picked);
        let stays = |unit: &&&Unit<'_>| given_back.iter().all(|back| back.id() != unit.id());
        let victim = |unit: &&'w Unit<'w>| Preempted {
            unit,
            rank,
            priority: self.priority(unit),
        };
        picked.iter().filter(stays).map(victim).collect()
    }
}
