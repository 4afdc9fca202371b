//! Scale: the named fleets, and how a workload is built from one (workloads.md §5).

use bigfleet_seeded::Stream;

use crate::{
    Workload,
    catalog::Catalog,
    catalogs::{ZONES, cost_routing, coverage, realistic},
    co_located::co_located,
    demand::Demand,
    draw::Draw,
    hosts::{Hosts, Tier},
    seed::{Seats, Seeder, pool},
    sizing,
    tables::Tables,
};

/// How large an elastic tier is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elastic {
    /// So many times the effective fleet.
    Times(u64),
    /// So many machines.
    Machines(u64),
}

/// A fleet before it is drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Scale {
    /// What workloads it runs.
    pub catalog: Catalog,
    /// Machines the demand is sized for: `machines × density` Pods.
    pub machines: u32,
    /// Pods per commodity machine.
    pub density: u32,
    /// Pods per cluster; the last cluster takes what is left.
    pub pods_per_cluster: u32,
    /// Whether the demand is served from the start.
    pub served: bool,
    /// Owned headroom, in thousandths of the effective fleet.
    pub idle_per_mille: u64,
    /// On-demand quota.
    pub speculative: Elastic,
    /// Spot quota.
    pub spot: u64,
    /// Whether clusters tell more than sums: whole units, and what draining a machine would disturb
    /// (workloads.md §7).
    pub tells: bool,
}

impl Scale {
    /// The operating point with so many machines: the realistic catalog, 25,000 Pods per cluster, a
    /// fifth of owned headroom and three times as much on demand.
    pub fn of(machines: u32) -> Self {
        Self {
            catalog: realistic(),
            machines,
            density: 100,
            pods_per_cluster: 25_000,
            served: true,
            idle_per_mille: 200,
            speculative: Elastic::Times(3),
            spot: 0,
            tells: false,
        }
    }

    /// How many Pods the fleet is drawn to.
    pub fn pods(&self) -> u64 {
        u64::from(self.machines) * u64::from(self.density)
    }

    /// The effective fleet its tiers are sized by.
    pub fn effective(&self) -> u64 {
        sizing::effective(&self.catalog, self.pods(), self.density, ZONES.len())
    }

    /// How many machines of a tier the sizing rules ask for, per archetype.
    pub fn tier(&self, tier: Tier) -> Vec<u64> {
        let effective = self.effective();
        let floors =
            |total| sizing::split_with_floors(&self.catalog, total, self.density, ZONES.len());
        match tier {
            Tier::Configured => sizing::split(
                &self.catalog,
                if self.served { effective } else { 0 },
                self.density,
            ),
            Tier::Idle => {
                let headroom = (effective * self.idle_per_mille + 500) / 1000;
                sizing::split(&self.catalog, headroom, self.density)
            }
            Tier::Speculative => floors(match self.speculative {
                Elastic::Times(times) => effective * times,
                Elastic::Machines(machines) => machines,
            }),
            Tier::Spot => sizing::split(&self.catalog, self.spot, self.density),
        }
    }

    /// Draws the fleet.
    pub fn build(&self, name: &str, seed: u64) -> Workload {
        let mut tables = Tables::new();
        if self.tells {
            tables.tell_units();
        }
        let mut draw = Draw::new(&self.catalog, &mut tables);
        let used = Tier::ALL
            .into_iter()
            .filter(|tier| self.tier(*tier).iter().any(|n| 0 < *n));
        let used: Vec<Tier> = used.collect();
        let hosts = Hosts::new(&self.catalog, self.density, &used, &mut tables);
        let stream = |tier: Tier| Stream::new(seed, tier_stream(tier));
        let mut seeder = Seeder::new(&self.catalog, &hosts, &draw, stream(Tier::Configured));
        let (mut demand, mut seats) = (Demand::default(), Seats::default());
        let mut left = self.pods();
        while 0 < left {
            let pods = left.min(self.pods_per_cluster.max(1).into()) as u32;
            left -= u64::from(pods);
            let cluster = demand.clusters();
            let mut random = Stream::new(seed, FIRST_CLUSTER + cluster as u64);
            draw.cluster(&mut random, pods, &mut tables, &mut demand);
            if self.served {
                seeder.cluster(&demand, cluster, &mut tables, &mut seats)
            } else {
                seats.close_cluster()
            }
        }
        let pools = [Tier::Idle, Tier::Speculative, Tier::Spot]
            .map(|tier| pool(&self.catalog, &hosts, tier, &self.tier(tier), stream(tier)));
        Workload::assemble(name, seed, tables, demand, seats, pools)
    }
}

/// Streams of the seed: a tier's own, and from here on one per cluster.
const FIRST_CLUSTER: u64 = 1 << 32;

fn tier_stream(tier: Tier) -> u64 {
    match tier {
        Tier::Configured => 1,
        Tier::Idle => 17,
        Tier::Speculative => 31,
        Tier::Spot => 47,
    }
}

/// The fleets with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// The engine benchmark: 20 clusters, 2,580 rows, 18,000 machines (workloads.md §6).
    CoLocated,
    /// 5,000 Pods of the coverage catalog in 2 clusters.
    Dev50,
    /// 500,000 Pods in 20 clusters.
    FiveK,
    /// The same fleet, whose clusters tell more than sums (workloads.md §7).
    FiveKTold,
    /// 5,000,000 Pods in 200 clusters.
    FiftyK,
    /// 50,000,000 Pods in 2,000 clusters: the most one shard is meant for.
    FiveHundredK,
    /// Nothing serves yet; spot and on-demand quota for workloads that do and do not mind.
    CostRouting5k,
}

impl Preset {
    /// Every preset.
    pub const ALL: [Self; 7] = [
        Self::CoLocated,
        Self::Dev50,
        Self::FiveK,
        Self::FiveKTold,
        Self::FiftyK,
        Self::FiveHundredK,
        Self::CostRouting5k,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::CoLocated => "co-located",
            Self::Dev50 => "dev-50",
            Self::FiveK => "5k",
            Self::FiveKTold => "5k-told",
            Self::FiftyK => "50k",
            Self::FiveHundredK => "500k",
            Self::CostRouting5k => "cost-routing-5k",
        }
    }

    /// The preset of this name, if there is one.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|preset| preset.name() == name)
    }

    /// The scale it is drawn at; `None` for the one that is not drawn but written down.
    pub fn scale(self) -> Option<Scale> {
        match self {
            Self::CoLocated => None,
            Self::Dev50 => Some(Scale {
                catalog: coverage(),
                pods_per_cluster: 2_500,
                idle_per_mille: 1200,
                speculative: Elastic::Times(5),
                ..Scale::of(50)
            }),
            Self::FiveK => Some(Scale::of(5_000)),
            Self::FiveKTold => Some(Scale {
                tells: true,
                ..Scale::of(5_000)
            }),
            Self::FiftyK => Some(Scale::of(50_000)),
            Self::FiveHundredK => Some(Scale::of(500_000)),
            Self::CostRouting5k => Some(Scale {
                catalog: cost_routing(),
                served: false,
                idle_per_mille: 0,
                speculative: Elastic::Machines(5_000),
                spot: 5_000,
                ..Scale::of(5_000)
            }),
        }
    }

    /// Draws it. The co-located fleet is the same for every seed.
    pub fn build(self, seed: u64) -> Workload {
        match self.scale() {
            Some(scale) => scale.build(self.name(), seed),
            None => co_located(seed),
        }
    }
}
