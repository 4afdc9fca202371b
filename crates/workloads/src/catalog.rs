//! Catalog: what kinds of workload a fleet runs, and how often each is drawn (workloads.md §1, §2.4).
//!
//! The unit of drawing is an *object*: one controller with so many replicas, each one Pod. A gang
//! archetype's object is one gang. Shares are kept as whole numbers, so that a machine count derived
//! from them is exact and the same everywhere.

use crate::Size;
use bigfleet_model::{Bucket, Spread};
use std::{fmt, time::Duration};

/// Which machines a gang's members must share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Together {
    /// One rack.
    Rack,
    /// One zone.
    Zone,
}

/// What makes an archetype's objects gangs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gang {
    /// What the members share.
    pub together: Together,
    /// The fewest members; 0 counts as 1.
    pub least: u32,
    /// The most members; fewer than the fewest counts as the fewest.
    pub most: u32,
    /// Whether a part of the gang is of use. A note: nothing on the wire says so.
    pub partial_ok: bool,
}

impl Gang {
    /// The sizes a gang is drawn from, in order.
    pub fn sizes(self) -> (u32, u32) {
        let least = self.least.max(1);
        (least, self.most.max(least))
    }
}

/// A kind of workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Archetype {
    /// Its name; not empty.
    pub name: String,
    /// How often an object of it is drawn; 0 counts as 1.
    pub weight: u32,
    /// How many Pods a machine is made for; `None` takes the density of the fleet.
    pub pods_per_node: Option<u32>,
    /// The instance types it runs on; at least one.
    pub instance_types: Vec<String>,
    /// What a Pod may ask for, and how often (0 counts as 1); at least one.
    pub sizes: Vec<(u32, Size)>,
    /// The priorities drawn from; none means 1000.
    pub priorities: Vec<i32>,
    /// What an interruption costs, in dollars.
    pub interruption_penalty: f64,
    /// What losing the machine costs, in dollars.
    pub reclamation_penalty: f64,
    /// Set if an object is a gang.
    pub gang: Option<Gang>,
    /// A spread constraint and how many of the objects carry it, from 0 to 1.
    pub spread: Option<(Spread, f64)>,
    /// How long a Pod lives on average; `None` is for ever.
    pub mean_lifetime: Option<Duration>,
    /// Replicas have an identity and an order; there are never more than 25.
    pub ordered: bool,
    /// Never drawn, never seeded: only a burst asks for it.
    pub burst_only: bool,
}

/// Replica bands of an object that is no gang: weight, fewest, most (workloads.md §1).
pub(crate) const BANDS: [(u32, u32, u32); 4] =
    [(55, 1, 5), (30, 6, 25), (12, 26, 100), (3, 101, 400)];

/// The most replicas of an ordered object.
pub(crate) const ORDERED_MOST: u32 = 25;

impl Archetype {
    /// The priorities drawn from.
    pub fn priorities(&self) -> &[i32] {
        match self.priorities.as_slice() {
            [] => &[1000],
            given => given,
        }
    }

    /// How often it is drawn, against the others.
    pub fn drawn(&self) -> u32 {
        if self.burst_only {
            return 0;
        }
        self.weight.max(1)
    }

    /// Its penalties as the wire carries them: interruption, reclamation.
    pub fn buckets(&self) -> (Bucket, Bucket) {
        let Self {
            interruption_penalty,
            reclamation_penalty,
            ..
        } = self;
        (
            Bucket::of(*interruption_penalty),
            Bucket::of(*reclamation_penalty),
        )
    }

    /// How many Pods fit the machine made for it: its own number, or else the density, or one Pod
    /// where a device is asked for (workloads.md §3.1).
    pub fn packing(&self, density: u32) -> u32 {
        let devices = self.sizes.iter().any(|(_, size)| 0 < size.gpus);
        match self.pods_per_node {
            Some(0) | None if devices => 1,
            Some(0) | None => density.max(1),
            Some(pods) => pods,
        }
    }

    /// The expected replicas of an object, in thousandths: 21.375 unless it is a gang.
    pub fn replicas_milli(&self) -> u64 {
        if let Some(gang) = self.gang {
            let (least, most) = gang.sizes();
            return u64::from(least + most) * 500;
        }
        let clamp = |most: u32| most.min(if self.ordered { ORDERED_MOST } else { most });
        let sum_milli = |(weight, least, most): (u32, u32, u32)| -> u64 {
            let replicas = least..=most;
            let sum: u64 = replicas.map(|n| u64::from(clamp(n))).sum();
            u64::from(weight) * sum * 10 / u64::from(most - least + 1)
        };
        BANDS.into_iter().map(sum_milli).sum()
    }

    /// Its share of the Pods, against the others.
    pub fn pod_share(&self) -> u64 {
        u64::from(self.drawn()) * self.replicas_milli()
    }
}

/// Archetypes that passed the checks.
#[derive(Clone, Debug, PartialEq)]
pub struct Catalog(Vec<Archetype>);

/// Why a catalog was refused: which archetype, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogRefused {
    /// Its position.
    pub position: usize,
    /// What is wrong with it.
    pub problem: &'static str,
}

impl fmt::Display for CatalogRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "archetype {} of the catalog {}",
            self.position, self.problem
        )
    }
}

impl std::error::Error for CatalogRefused {}

impl Catalog {
    /// The catalog, or the first thing wrong with it.
    pub fn new(archetypes: Vec<Archetype>) -> Result<Self, CatalogRefused> {
        let refused = |(position, archetype)| {
            problem_of(archetype).map(|problem| CatalogRefused { position, problem })
        };
        match archetypes.iter().enumerate().find_map(refused) {
            Some(refused) => Err(refused),
            None => Ok(Self(archetypes)),
        }
    }

    /// The archetypes, in order.
    pub fn archetypes(&self) -> &[Archetype] {
        &self.0
    }

    /// The same archetypes with the first of their Pod sizes alone: what every row asks for then is whole units.
    pub fn of_one_size(&self) -> Self {
        let mut archetypes = self.0.clone();
        for archetype in &mut archetypes {
            archetype.sizes.truncate(1);
        }
        Self(archetypes)
    }

    /// The position of an archetype.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|archetype| archetype.name == name)
    }
}

fn problem_of(archetype: &Archetype) -> Option<&'static str> {
    let probability = archetype.spread.as_ref().map_or(0.0, |(_, chance)| *chance);
    let problems = [
        (archetype.name.is_empty(), "has no name"),
        (
            archetype.instance_types.is_empty(),
            "has no instance type to run on",
        ),
        (archetype.sizes.is_empty(), "has no size"),
        (
            !(0.0..=1.0).contains(&probability),
            "has a spread probability that is not from 0 to 1",
        ),
        (
            archetype.gang.is_some() && archetype.spread.is_some(),
            "keeps its members together and spreads them",
        ),
    ];
    problems
        .into_iter()
        .find(|(wrong, _)| *wrong)
        .map(|(_, problem)| problem)
}
