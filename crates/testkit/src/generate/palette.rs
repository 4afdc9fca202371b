//! Palette: the few values one generator draws from.

use bigfleet_model::{Amounts, Bucket, CapacityType, ClusterId, Dimension};
use bigfleet_seeded::Prng;

const DIMENSIONS: [&[&str]; 4] = [
    &["cpu"],
    &["cpu", "memory"],
    &["cpu", "gpu"],
    &["cpu", "gpu", "memory"],
];

/// Few of everything, so that equals meet.
#[derive(Clone, Debug)]
pub(super) struct Palette {
    pub(super) clusters: Vec<ClusterId>,
    /// Sizes of machines; rows ask for multiples and fractions of them.
    pub(super) sizes: Vec<Amounts>,
    pub(super) prices: Vec<f64>,
    pub(super) chances: Vec<f64>,
    pub(super) racks: Vec<&'static str>,
    pub(super) zones: Vec<&'static str>,
    pub(super) types: Vec<&'static str>,
    pub(super) tiers: Vec<CapacityType>,
    pub(super) priorities: Vec<i32>,
    pub(super) buckets: Vec<Bucket>,
    /// How many rows in a hundred ask for whole units.
    pub(super) whole: usize,
    /// Of how many machines in a hundred it is told what draining them would disturb.
    pub(super) told: usize,
}

impl Palette {
    pub(super) fn draw(prng: &mut Prng) -> Self {
        let clusters: Vec<_> = few(prng, &["a", "b", "c"])
            .into_iter()
            .map(|name| ClusterId::new(name).expect("a name"))
            .collect();
        let dimensions = *prng.pick(&DIMENSIONS);
        let sizes = (0..prng.between(1, 4)).map(|_| size(prng, dimensions));
        let sizes: Vec<_> = sizes.collect();
        let bucket = |number| Bucket::from_number(number).expect("a bucket");
        Self {
            clusters,
            sizes,
            prices: few(prng, &[0.0, 1.0, 2.0, 3.0, 0.4, 0.3]),
            chances: few(prng, &[0.0, 0.05, 0.1, 0.5]),
            racks: few(prng, &["r1", "r2", "r3", "r4"]),
            zones: few(prng, &["z1", "z2", "z3"]),
            types: few(prng, &["m5", "c5", "p4"]),
            tiers: few(prng, &CapacityType::ALL),
            priorities: few(prng, &[0, 100, 100, 1000, 600_000, 1_000_000, -5]),
            buckets: few(prng, &[0, 1, 1, 2, 5, 6, 27].map(bucket)),
            whole: *prng.pick(&[0, 30, 30, 90]),
            told: *prng.pick(&[0, 50, 50, 95]),
        }
    }
}

/// Some of them, at least one, in any order.
fn few<T: Clone>(prng: &mut Prng, all: &[T]) -> Vec<T> {
    let mut all = all.to_vec();
    prng.shuffle(&mut all);
    all.truncate(prng.between(1, all.len()));
    all
}

fn size(prng: &mut Prng, dimensions: &[&str]) -> Amounts {
    let mut entries = Vec::new();
    for name in dimensions {
        let units = *prng.pick(&[2, 4, 4, 8, 16]);
        // Few machines have a gpu at all.
        let units = if *name == "gpu" && prng.percent(50) {
            0
        } else {
            units
        };
        entries.push((Dimension::new(name).expect("a name"), units * 1000));
    }
    Amounts::from_entries(entries)
}
