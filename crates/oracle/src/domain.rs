//! Domain choice (RF-6): where a gang that is short after pass A is served.

use crate::{
    ledger::Ledger,
    pass_a::own,
    score::{Score, score},
    steps::may_take_back,
    world::{Unit, World, can_use, credit, credits, domain_of, is_parked, may_acquire},
};
use bigfleet_model::{Amounts, DomainCoverage, Need, State};
use std::{
    cmp::{Ordering, Reverse},
    collections::BTreeMap,
};

/// S-5, cov: the share covered, dimension by dimension, each at most 1. Fixed order (D-3).
pub(crate) fn coverage(have: &Amounts, want: &Amounts) -> f64 {
    ratios(have, want).fold(0.0, |sum, ratio| sum + ratio.min(1.0))
}

/// S-5, over: the same without the cap.
fn commitment(have: &Amounts, want: &Amounts) -> f64 {
    ratios(have, want).fold(0.0, |sum, ratio| sum + ratio)
}

fn ratios(have: &Amounts, want: &Amounts) -> impl Iterator<Item = f64> {
    want.iter()
        .map(|(name, milli)| have.get(name.as_str()) as f64 / milli as f64)
}

/// How a gang can be served in the domain chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Case {
    /// 1: the domain's total covers it.
    Fits,
    /// 2: total and victims cover it.
    WithVictims,
    /// 3: nothing does; or there is no domain at all.
    Partial,
}

/// What was chosen, and from what.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    /// Empty if there is no domain at all.
    pub(crate) domain: String,
    pub(crate) case: Case,
    /// The domains weighed, best covered first.
    pub(crate) candidates: Vec<DomainCoverage>,
}

/// One value of the Same key and what the gang could use there.
#[derive(Clone, Debug, Default)]
struct Bucket<'w> {
    own: Vec<&'w Unit<'w>>,
    /// Leftovers, and drains that can be taken back (B1, B1a).
    leftovers: Vec<&'w Unit<'w>>,
    idle: Vec<&'w Unit<'w>>,
    speculative: Vec<&'w Unit<'w>>,
    victims: Vec<&'w Unit<'w>>,
}

impl<'w> Bucket<'w> {
    /// cred = own + leftovers + B1a's.
    fn cred(&self) -> Vec<&'w Unit<'w>> {
        [self.own.as_slice(), &self.leftovers].concat()
    }

    fn cred_and_idle(&self) -> Vec<&'w Unit<'w>> {
        [self.cred().as_slice(), &self.idle].concat()
    }

    fn total(&self) -> Vec<&'w Unit<'w>> {
        [self.cred_and_idle().as_slice(), &self.speculative].concat()
    }

    /// The victims counted until total + victims covers D; `None` if they never do.
    fn victims_needed(&self, need: &Need) -> Option<usize> {
        let aggregate = &need.row.aggregate;
        let mut have = credits(need, self.total());
        for (count, victim) in self.victims.iter().enumerate() {
            if have.covers(aggregate) {
                return Some(count);
            }
            have = have.add(&credit(need, victim));
        }
        have.covers(aggregate).then_some(self.victims.len())
    }
}

/// RF-6.
pub(crate) fn choose<'w>(world: &'w World<'w>, ledger: &Ledger<'w>, rank: usize) -> Choice {
    let need = &world.needs[rank];
    let aggregate = &need.row.aggregate;
    let parked = is_parked(need) || !may_acquire(world.fleet, &need.cluster);
    let buckets = buckets(world, ledger, rank, Counting::All);
    let cov = |units: Vec<&Unit<'_>>| coverage(&credits(need, units), aggregate);
    let candidates = candidates(&buckets, need);
    if let Some(domain) = fitting(&buckets, need) {
        return choice(domain, Case::Fits, candidates);
    }

    let with_victims = buckets.iter().filter_map(|(domain, bucket)| {
        let victims = bucket.victims_needed(need)?;
        Some((domain, bucket, victims))
    });
    // Case 2: cov(own) desc, fewest victims, value asc.
    let with_victims = with_victims.min_by(|(v, a, few), (w, b, many)| {
        greater_first(cov(a.own.clone()), cov(b.own.clone()))
            .then(few.cmp(many))
            .then(v.cmp(w))
    });
    if let Some((domain, _, _)) = with_victims.filter(|_| !parked) {
        return choice(domain, Case::WithVictims, candidates);
    }

    let some = buckets
        .iter()
        .filter(|(_, bucket)| !bucket.cred_and_idle().is_empty());
    // Case 3: cov(cred + idle) desc, cov(own) desc, cov(cred) desc, count of these desc, value asc.
    let partial = some.min_by(|(v, a), (w, b)| {
        greater_first(cov(a.cred_and_idle()), cov(b.cred_and_idle()))
            .then(greater_first(cov(a.own.clone()), cov(b.own.clone())))
            .then(greater_first(cov(a.cred()), cov(b.cred())))
            .then(b.cred_and_idle().len().cmp(&a.cred_and_idle().len()))
            .then(v.cmp(w))
    });
    let domain = partial.map_or("", |(domain, _)| domain);
    choice(domain, Case::Partial, candidates)
}

/// RF-21: case 1 of RF-6 for a gang with claims, counting only machines that stay.
pub(crate) fn choose_staying<'w>(
    world: &'w World<'w>,
    ledger: &Ledger<'w>,
    rank: usize,
) -> Option<Choice> {
    let need = &world.needs[rank];
    let buckets = buckets(world, ledger, rank, Counting::Staying);
    let domain = fitting(&buckets, need)?;
    Some(choice(domain, Case::Fits, candidates(&buckets, need)))
}

/// Case 1: cov(own) desc, cov(cred) desc, over(total) asc, count desc, value asc.
fn fitting<'b>(buckets: &BTreeMap<&'b str, Bucket<'_>>, need: &Need) -> Option<&'b str> {
    let aggregate = &need.row.aggregate;
    let sum = |units: Vec<&Unit<'_>>| credits(need, units);
    let cov = |units: Vec<&Unit<'_>>| coverage(&sum(units), aggregate);
    let over = |bucket: &Bucket<'_>| commitment(&sum(bucket.total()), aggregate);
    let fitting = buckets
        .iter()
        .filter(|(_, bucket)| sum(bucket.total()).covers(aggregate));
    let best = fitting.min_by(|(v, a), (w, b)| {
        greater_first(cov(a.own.clone()), cov(b.own.clone()))
            .then(greater_first(cov(a.cred()), cov(b.cred())))
            .then(over(a).total_cmp(&over(b)))
            .then(b.total().len().cmp(&a.total().len()))
            .then(v.cmp(w))
    });
    best.map(|(domain, _)| *domain)
}

fn choice(domain: &str, case: Case, candidates: Vec<DomainCoverage>) -> Choice {
    Choice {
        domain: domain.to_owned(),
        case,
        candidates,
    }
}

fn greater_first(a: f64, b: f64) -> Ordering {
    b.total_cmp(&a)
}

/// Which machines are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counting {
    All,
    /// Those that no mark says leave (RF-21).
    Staying,
}

/// RF-6: what lies in each domain. Parked: cred only. What the gang claims already counts as what it would be
/// unclaimed.
fn buckets<'w>(
    world: &'w World<'w>,
    ledger: &Ledger<'w>,
    rank: usize,
    counting: Counting,
) -> BTreeMap<&'w str, Bucket<'w>> {
    let need = &world.needs[rank];
    let parked = is_parked(need) || !may_acquire(world.fleet, &need.cluster);
    let own = own(world, need);
    let mut buckets: BTreeMap<&str, Bucket<'_>> = BTreeMap::new();
    for unit in &world.units {
        let Some(domain) = domain_of(need, unit) else {
            continue;
        };
        // RF-3: in domain buckets the aggregate is what is wanted.
        if !can_use(need, unit) || !credit(need, unit).contributes_to(&need.row.aggregate) {
            continue;
        }
        if counting == Counting::Staying && !unit.stays() {
            continue;
        }
        let to_be_had = ledger.is_offered(unit) || ledger.claimant(unit) == Some(rank);
        let is_own = to_be_had && own.iter().any(|other| other.id() == unit.id());
        let leftover = world.may_be_leftover(need, unit) || may_take_back(need, unit);
        let leftover = to_be_had && leftover;
        let free = to_be_had && unit.without_intent() && !unit.fleet.is_out_of_reach();
        let bucket = buckets.entry(domain).or_default();
        match unit.state() {
            _ if is_own => bucket.own.push(unit),
            _ if leftover => bucket.leftovers.push(unit),
            State::Idle | State::Creating if free && !parked => bucket.idle.push(unit),
            State::Speculative if free && !parked => bucket.speculative.push(unit),
            State::Configured if !parked && is_victim(world, ledger, need, unit) => {
                bucket.victims.push(unit);
            }
            State::Idle
            | State::Creating
            | State::Speculative
            | State::Configured
            | State::Configuring
            | State::Draining
            | State::Deleting
            | State::Failed => {}
        }
    }
    for bucket in buckets.values_mut() {
        let order = |unit: &&Unit<'w>| -> (Reverse<Score>, _) {
            let priority = priority(world, ledger, unit);
            (Reverse(score(need, unit, priority)), unit.id().clone())
        };
        bucket.victims.sort_by_cached_key(order);
    }
    buckets
}

/// RF-6: a victim's stamped priority and its claimant's are below N's; it is not `not_ready`, nor does it
/// leave (RF-21).
fn is_victim(world: &World<'_>, ledger: &Ledger<'_>, need: &Need, unit: &Unit<'_>) -> bool {
    let is_below = priority(world, ledger, unit) < need.row.profile.priority();
    is_below && !unit.not_ready() && unit.stays()
}

/// The higher of the stamped priority and the claimant's (V-3). A hold raises it in Phase 2, not
/// here (engine.md §22.3 no. 17).
pub(crate) fn priority(world: &World<'_>, ledger: &Ledger<'_>, unit: &Unit<'_>) -> i32 {
    let stamped = unit.machine().assignment().terms.priority;
    let claimant = ledger.claimant(unit).map(|rank| &world.needs[rank]);
    claimant.map_or(stamped, |need| stamped.max(need.row.profile.priority()))
}

/// VD-1: the domains with any machine in cred, idle or spec, best covered first.
fn candidates(buckets: &BTreeMap<&str, Bucket<'_>>, need: &Need) -> Vec<DomainCoverage> {
    let aggregate = &need.row.aggregate;
    let weighed = buckets
        .iter()
        .filter(|(_, bucket)| !bucket.total().is_empty());
    let mut candidates: Vec<DomainCoverage> = weighed
        .map(|(domain, bucket)| {
            let total = credits(need, bucket.total());
            DomainCoverage {
                domain: (*domain).to_owned(),
                coverage_per_mille: per_mille(&total, aggregate),
                satisfiable: total.covers(aggregate),
            }
        })
        .collect();
    candidates.sort_by_key(|found| (Reverse(found.coverage_per_mille), found.domain.clone()));
    candidates.truncate(DomainCoverage::MOST);
    candidates
}

/// VD-1: floor(1000 × min over D's dimensions of min(1, total/D)).
fn per_mille(total: &Amounts, aggregate: &Amounts) -> u32 {
    let of = |(name, want): (&bigfleet_model::Dimension, i128)| {
        thousandths(total.get(name.as_str()).min(want), want)
    };
    aggregate.iter().map(of).min().unwrap_or(1000)
}

/// floor(1000 × part / whole) for 0 ≤ part ≤ whole, exact for every `i128`: the product is built
/// bit by bit, the remainder kept below `whole`.
fn thousandths(part: i128, whole: i128) -> u32 {
    let (part, whole) = (part.unsigned_abs(), whole.unsigned_abs());
    let (mut quotient, mut rest) = (0, 0_u128);
    for bit in (0..10).rev() {
        let added = if 1000 & (1 << bit) == 0 { 0 } else { part };
        quotient *= 2;
        for summand in [rest, added] {
            rest += summand;
            while whole <= rest {
                rest -= whole;
                quotient += 1;
            }
        }
    }
    quotient
}
