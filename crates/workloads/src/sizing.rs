//! Sizing: how many machines a demand implies, and how a tier is split over archetypes (workloads.md §3.3).
//!
//! ```text
//! Pods ── share of each archetype ── ÷ Pods per machine, rounded up ──▶ machines ─┬─▶ Idle × 0.2
//!                                          + one gang per zone, once ─────────────┘─▶ Speculative × 3
//! ```
//!
//! The gang floor keeps one whole gang of every kind acquirable in every zone. It is applied once per
//! shard, on the acquirable tier: once per cluster and tier, as the first generators did, turns 289
//! machines per cluster into 361 and doubles the share of GPUs.
//!
//! All of it is integer arithmetic.

use crate::catalog::{Archetype, Catalog};

/// The machines each archetype's share of the Pods fills, in the order of the catalog.
pub fn demanded(catalog: &Catalog, pods: u64, density: u32) -> Vec<u64> {
    let all: u128 = shares(catalog).sum();
    let machines = |archetype: &Archetype| {
        let share = u128::from(pods) * u128::from(archetype.pod_share());
        let per_machine = all * u128::from(archetype.packing(density));
        to_count(share.div_ceil(per_machine.max(1)))
    };
    catalog.archetypes().iter().map(machines).collect()
}

/// The machines that hold one whole gang of the archetype in each zone; none for a plain one.
pub fn gang_floor(archetype: &Archetype, zones: usize) -> u64 {
    match archetype.gang {
        Some(gang) if !archetype.burst_only => u64::from(gang.sizes().1) * zones.max(1) as u64,
        Some(_) | None => 0,
    }
}

/// The effective fleet: what the Pods fill, and the gang floors on top.
pub fn effective(catalog: &Catalog, pods: u64, density: u32, zones: usize) -> u64 {
    if catalog.archetypes().is_empty() {
        return pods.div_ceil(u64::from(density.max(1)));
    }
    let filled: u64 = demanded(catalog, pods, density).iter().sum();
    let floors = catalog
        .archetypes()
        .iter()
        .map(|archetype| gang_floor(archetype, zones));
    filled + floors.sum::<u64>()
}

/// A tier of so many machines split by machine share: the sum is exact, remainders go to the largest
/// first, then in the order of the catalog.
pub fn split(catalog: &Catalog, total: u64, density: u32) -> Vec<u64> {
    let packings = catalog
        .archetypes()
        .iter()
        .map(|archetype| archetype.packing(density));
    let common = packings.fold(1, |common, packing| lcm(common, packing.into()));
    let share = |archetype: &Archetype| {
        u128::from(archetype.pod_share())
            * u128::from(common / u64::from(archetype.packing(density)))
    };
    let shares: Vec<u128> = catalog.archetypes().iter().map(share).collect();
    let all = shares.iter().sum::<u128>().max(1);
    let whole = |share: &u128| to_count(u128::from(total) * share / all);
    let mut counts: Vec<u64> = shares.iter().map(whole).collect();
    let mut order: Vec<usize> = (0..shares.len()).collect();
    order.sort_by_key(|at| {
        (
            std::cmp::Reverse(u128::from(total) * shares[*at] % all),
            *at,
        )
    });
    let missing = total.saturating_sub(counts.iter().sum());
    for at in order.into_iter().take(missing as usize) {
        counts[at] += 1;
    }
    counts
}

/// The same with every gang archetype raised to its floor, which may exceed the total. An empty tier
/// stays empty.
pub fn split_with_floors(catalog: &Catalog, total: u64, density: u32, zones: usize) -> Vec<u64> {
    let mut counts = split(catalog, total, density);
    if 0 < total {
        for (count, archetype) in counts.iter_mut().zip(catalog.archetypes()) {
            *count = (*count).max(gang_floor(archetype, zones));
        }
    }
    counts
}

fn shares(catalog: &Catalog) -> impl Iterator<Item = u128> {
    catalog
        .archetypes()
        .iter()
        .map(|archetype| archetype.pod_share().into())
}

fn lcm(a: u64, b: u64) -> u64 {
    let gcd = |mut a: u64, mut b: u64| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    a / gcd(a, b).max(1) * b
}

fn to_count(machines: u128) -> u64 {
    u64::try_from(machines).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{coverage, realistic};

    /// workloads.md §3.3, the checks.
    #[test]
    fn effective_fleets_are_the_published_ones() {
        assert_eq!(effective(&coverage(), 5_000, 100, 3), 610);
        assert_eq!(
            demanded(&realistic(), 500_000, 100).iter().sum::<u64>(),
            5_682
        );
        assert_eq!(effective(&realistic(), 500_000, 100, 3), 5_784);
        assert_eq!(effective(&realistic(), 5_000_000, 100, 3), 56_892);
        assert_eq!(effective(&realistic(), 50_000_000, 100, 3), 567_973);
    }

    #[test]
    fn a_split_is_exact_and_close_to_the_shares() {
        let catalog = realistic();
        for total in [0, 1, 7, 289, 5_784, 1_703_919] {
            let counts = split(&catalog, total, 100);
            assert_eq!(counts.iter().sum::<u64>(), total);
            assert_eq!(counts[9], 0, "the large gang has no machines");
        }
        assert_eq!(
            split(&catalog, 289, 100),
            [192, 33, 16, 3, 5, 4, 15, 9, 12, 0]
        );
    }

    #[test]
    fn a_floor_is_one_gang_per_zone_and_only_where_there_is_a_tier() {
        let catalog = realistic();
        assert_eq!(
            split_with_floors(&catalog, 289, 100, 3),
            [192, 33, 16, 3, 15, 15, 15, 24, 48, 0],
            "361 machines: what a floor per cluster used to do"
        );
        assert_eq!(
            split_with_floors(&catalog, 17_352, 100, 3),
            split(&catalog, 17_352, 100),
            "on the acquirable tier of a real fleet no floor is reached"
        );
        assert_eq!(
            split_with_floors(&catalog, 0, 100, 3).iter().sum::<u64>(),
            0
        );
    }
}
