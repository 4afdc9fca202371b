//! Picking from candidates (RF-3, RF-8, RF-9): in a step's order, or evenly over domains.

use crate::world::{Unit, World, credit, credits};
use bigfleet_model::{Amounts, Need, Spread};
use std::collections::{BTreeMap, BTreeSet};

/// Candidates with their place in the step's order, id left out.
pub(crate) type Candidates<'w, K> = Vec<(K, &'w Unit<'w>)>;

/// The place of a machine that is replaced, for a Need with a DoNotSchedule spread (RF-21); nothing to others.
#[derive(Clone, Debug)]
pub(crate) struct InPlace<'w> {
    /// Its values of all topology keys, if it has them: what has the same is eligible.
    values: Option<Vec<&'w str>>,
    /// Per topology key, its value if a bound machine of the cluster that stays has it: that is a domain.
    domains: Vec<Option<&'w str>>,
}

impl<'w> InPlace<'w> {
    pub(crate) fn of(world: &World<'_>, need: &Need, unit: &Unit<'w>) -> Self {
        let domain = |spread: &Spread| {
            let key = spread.topology_key();
            let value = unit.domain(key)?;
            let serves = |other: &Unit<'_>| {
                other.bound_to(&need.cluster) && other.stays() && other.domain(key) == Some(value)
            };
            world.units.iter().any(serves).then_some(value)
        };
        Self {
            values: values(need, unit),
            domains: need.row.profile.hard_spreads().map(domain).collect(),
        }
    }
}

/// A machine's values of all topology keys, in key order (RF-9).
fn values<'w>(need: &Need, unit: &Unit<'w>) -> Option<Vec<&'w str>> {
    let spreads = need.row.profile.hard_spreads();
    spreads
        .map(|spread| unit.domain(spread.topology_key()))
        .collect()
}

/// Takes candidates in the step's order until nothing is wanted; a Need with a DoNotSchedule spread
/// takes only eligible ones (RF-9). `so_far` is what the Need has already.
pub(crate) fn pick<'w, K: Ord>(
    need: &Need,
    wanted: &Amounts,
    so_far: &[&'w Unit<'w>],
    candidates: Candidates<'w, K>,
    in_place: Option<&InPlace<'w>>,
) -> Vec<&'w Unit<'w>> {
    if has_spread(need) {
        evenly(need, wanted, so_far, candidates, in_place)
    } else {
        in_order(need, wanted, candidates)
    }
}

/// As [`pick`], but own is never refused: what the spread leaves is taken in order (RF-9).
pub(crate) fn pick_own<'w, K: Ord + Clone>(
    need: &Need,
    wanted: &Amounts,
    so_far: &[&'w Unit<'w>],
    candidates: Candidates<'w, K>,
    in_place: Option<&InPlace<'w>>,
) -> Vec<&'w Unit<'w>> {
    let mut picked = pick(need, wanted, so_far, candidates.clone(), in_place);
    let wanted = wanted.sub(&credits(need, picked.iter().copied()));
    let not_picked = |unit: &Unit<'_>| picked.iter().all(|other| other.id() != unit.id());
    let rest = candidates.into_iter().filter(|(_, unit)| not_picked(unit));
    let rest = in_order(need, &wanted, rest.collect());
    picked.extend(rest);
    picked
}

/// Whether the Need has a DoNotSchedule spread in force; gangs ignore theirs (RF-9).
pub(crate) fn has_spread(need: &Need) -> bool {
    need.row.profile.hard_spreads().next().is_some()
}

fn in_order<'w, K: Ord>(
    need: &Need,
    wanted: &Amounts,
    mut candidates: Candidates<'w, K>,
) -> Vec<&'w Unit<'w>> {
    candidates.sort_by(|(a, x), (b, y)| (a, x.id()).cmp(&(b, y.id())));
    let mut wanted = wanted.clone();
    let mut picked = Vec::new();
    for (_, unit) in candidates {
        // RF-3, with what is still wanted now.
        if credit(need, unit).contributes_to(&wanted) {
            wanted = wanted.sub(&credit(need, unit));
            picked.push(unit);
        }
    }
    picked
}

/// RF-9: again and again the eligible candidate lowest in (order, values of the keys, id).
fn evenly<'w, K: Ord>(
    need: &Need,
    wanted: &Amounts,
    so_far: &[&'w Unit<'w>],
    mut candidates: Candidates<'w, K>,
    in_place: Option<&InPlace<'w>>,
) -> Vec<&'w Unit<'w>> {
    let spreads: Vec<&Spread> = need.row.profile.hard_spreads().collect();
    let values = |unit: &Unit<'w>| values(need, unit);
    candidates
        .retain(|(_, unit)| values(unit).is_some() && credit(need, unit).contributes_to(wanted));
    let on_offer: Vec<&Unit<'_>> = candidates.iter().map(|(_, unit)| *unit).collect();
    let mut domains: Vec<BTreeSet<&str>> = spreads
        .iter()
        .map(|spread| domains(spread, so_far, &on_offer))
        .collect();
    for (values, alive) in domains
        .iter_mut()
        .zip(in_place.iter().flat_map(|one| &one.domains))
    {
        values.extend(*alive);
    }
    let is_like = |unit: &Unit<'w>| {
        let of = in_place.and_then(|one| one.values.as_ref());
        of.is_some() && values(unit).as_ref() == of
    };

    let mut wanted = wanted.clone();
    let mut have = so_far.to_vec();
    let mut picked = Vec::new();
    while !wanted.is_zero() {
        let eligible = candidates.iter().enumerate().filter(|(_, (_, unit))| {
            let fits = |(spread, domains): (&&Spread, _)| fits(spread, domains, &have, unit);
            credit(need, unit).contributes_to(&wanted)
                && (spreads.iter().zip(&domains).all(fits) || is_like(unit))
        });
        let lowest = eligible
            .min_by(|(_, (a, x)), (_, (b, y))| (a, values(x), x.id()).cmp(&(b, values(y), y.id())));
        let Some((at, _)) = lowest else { break };
        let (_, unit) = candidates.remove(at);
        wanted = wanted.sub(&credit(need, unit));
        have.push(unit);
        picked.push(unit);
    }
    picked
}

/// RF-9: domains, fixed when a step starts: values of its candidates plus values with n > 0.
fn domains<'w>(
    spread: &Spread,
    so_far: &[&'w Unit<'w>],
    on_offer: &[&'w Unit<'w>],
) -> BTreeSet<&'w str> {
    let units = so_far.iter().chain(on_offer);
    units
        .filter_map(|unit| unit.domain(spread.topology_key()))
        .collect()
}

/// RF-9: eligible iff `n[v] ≤ lo + max(1, skew) − 1`.
fn fits(spread: &Spread, domains: &BTreeSet<&str>, have: &[&Unit<'_>], unit: &Unit<'_>) -> bool {
    let mut n: BTreeMap<&str, i64> = domains.iter().map(|value| (*value, 0)).collect();
    for value in have
        .iter()
        .filter_map(|unit| unit.domain(spread.topology_key()))
    {
        *n.entry(value).or_default() += 1;
    }
    let lo = n.values().min().copied().unwrap_or(0);
    let mine = unit
        .domain(spread.topology_key())
        .and_then(|value| n.get(value));
    mine.is_some_and(|mine| *mine < lo + i64::from(spread.max_skew().max(1)))
}

/// RF-8: walks the newly picked in the order picked and gives back each one without which the
/// goal, as a rule the aggregate, is still covered. Not for Needs with a DoNotSchedule spread. Returns those given back.
pub(crate) fn prune<'w>(
    need: &Need,
    goal: &Amounts,
    kept: &[&'w Unit<'w>],
    picked: &[&'w Unit<'w>],
) -> Vec<&'w Unit<'w>> {
    let mut given_back: Vec<&Unit<'_>> = Vec::new();
    let all = credits(need, kept.iter().chain(picked).copied());
    if has_spread(need) || !all.covers(goal) {
        return given_back;
    }
    for unit in picked {
        let others = picked.iter().filter(|other| {
            other.id() != unit.id() && given_back.iter().all(|back| back.id() != other.id())
        });
        let rest = credits(need, kept.iter().chain(others).copied());
        if rest.covers(goal) {
            given_back.push(unit);
        }
    }
    given_back
}
