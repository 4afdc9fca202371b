//! Hosts: the machines made for each archetype, and where they stand (workloads.md §3.1, §3.2, §3.4).
//!
//! A seeded machine is made for its archetype: it offers so many of one of its Pod sizes, whatever
//! the real machine of that name offers. Three zones of ten racks; ordinary machines go round zones
//! and racks one by one, those of rack gangs in blocks as large as the largest gang, since one by
//! one no rack would ever hold a gang.

use crate::{
    Size,
    catalog::{Archetype, Catalog, Together},
    catalogs::ZONES,
    draw::RACK_KEY,
    tables::Tables,
};
use bigfleet_model::{CapacityType, Price, Probability, Shape, State};
use std::collections::BTreeMap;

/// The label that names the archetype a Configured or elastic machine was made for.
pub const ARCHETYPE_KEY: &str = "scaletest.bigfleet/archetype";

const RACKS_PER_ZONE: u32 = 10;

/// A part of the fleet that is held and paid for in one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// Serving a cluster; owned.
    Configured,
    /// Owned headroom.
    Idle,
    /// On-demand quota.
    Speculative,
    /// Spot quota.
    Spot,
}

impl Tier {
    /// Every tier.
    pub const ALL: [Self; 4] = [Self::Configured, Self::Idle, Self::Speculative, Self::Spot];

    /// The state of its machines.
    pub fn state(self) -> State {
        match self {
            Self::Configured => State::Configured,
            Self::Idle => State::Idle,
            Self::Speculative | Self::Spot => State::Speculative,
        }
    }

    /// How its machines are held and paid for.
    pub fn capacity_type(self) -> CapacityType {
        match self {
            Self::Configured | Self::Idle => CapacityType::BareMetal,
            Self::Speculative => CapacityType::OnDemand,
            Self::Spot => CapacityType::Spot,
        }
    }

    /// Dollars per hour.
    pub fn price_per_hour(self) -> f64 {
        match self {
            Self::Configured | Self::Idle => 0.0,
            Self::Speculative => 1.0,
            Self::Spot => 0.3,
        }
    }

    /// The chance per hour of being taken away.
    pub fn interruption_probability(self) -> f64 {
        match self {
            Self::Configured | Self::Idle => 0.0,
            Self::Speculative => 0.05,
            Self::Spot => 0.30,
        }
    }

    /// The price as a checked value.
    pub fn price(self) -> Price {
        Price::new(self.price_per_hour()).unwrap_or(Price::ZERO)
    }

    /// The chance of interruption as a checked value.
    pub fn interruption(self) -> Probability {
        Probability::new(self.interruption_probability()).unwrap_or(Probability::ZERO)
    }
}

/// The shape numbers of every machine that can be made for a catalog.
#[derive(Debug)]
pub(crate) struct Hosts {
    kinds: Vec<HostKind>,
}

#[derive(Debug)]
struct HostKind {
    /// What a machine for each Pod size offers.
    offers: Vec<Size>,
    /// Sizes, the smallest offer first.
    ascending: Vec<usize>,
    types: u32,
    block: u32,
    /// Shape numbers by tier, then by type, size, zone and rack.
    numbers: [Vec<u16>; 4],
}

impl Hosts {
    /// Makes the shapes of these tiers.
    pub(crate) fn new(
        catalog: &Catalog,
        density: u32,
        tiers: &[Tier],
        tables: &mut Tables,
    ) -> Self {
        let kinds = catalog.archetypes().iter();
        let kinds = kinds.map(|archetype| HostKind::new(archetype, density, tiers, tables));
        Self {
            kinds: kinds.collect(),
        }
    }

    /// What a machine for this archetype and Pod size offers.
    pub(crate) fn offer(&self, archetype: usize, size: usize) -> Size {
        self.kinds[archetype].offers[size]
    }

    /// The size of the smallest machine for the archetype that covers all of it.
    pub(crate) fn smallest_covering(&self, archetype: usize, want: Size) -> Option<usize> {
        let kind = &self.kinds[archetype];
        let mut sizes = kind.ascending.iter().copied();
        sizes.find(|size| kind.offers[*size].covers(want))
    }
}

impl HostKind {
    fn new(archetype: &Archetype, density: u32, tiers: &[Tier], tables: &mut Tables) -> Self {
        let packing = archetype.packing(density);
        let offers: Vec<Size> = archetype
            .sizes
            .iter()
            .map(|(_, size)| size.times(packing))
            .collect();
        let mut ascending: Vec<usize> = (0..offers.len()).collect();
        ascending.sort_by_key(|size| (offers[*size], *size));
        let block = match archetype.gang {
            Some(gang) if gang.together == Together::Rack => gang.sizes().1,
            Some(_) | None => 1,
        };
        let mut numbers = [const { Vec::new() }; 4];
        for tier in tiers.iter().filter(|_| !archetype.burst_only) {
            let made = &mut numbers[*tier as usize];
            for instance_type in &archetype.instance_types {
                for ((_, unit), offer) in archetype.sizes.iter().zip(&offers) {
                    for zone in ZONES {
                        for rack in 0..RACKS_PER_ZONE {
                            let place = (zone, format!("{zone}-rack-{rack}"));
                            let label = (*tier != Tier::Idle).then_some(archetype.name.as_str());
                            let size = (*unit, Some(*offer));
                            made.push(add_shape(tables, *tier, instance_type, place, label, size));
                        }
                    }
                }
            }
        }
        Self {
            offers,
            ascending,
            types: archetype.instance_types.len() as u32,
            block,
            numbers,
        }
    }
}

/// The number of the shape of a machine that stands there and has this hardware and this to offer.
pub(crate) fn add_shape(
    tables: &mut Tables,
    tier: Tier,
    instance_type: &str,
    (zone, rack): (&str, String),
    archetype: Option<&str>,
    (resources, offer): (Size, Option<Size>),
) -> u16 {
    let mut labels = BTreeMap::from([(RACK_KEY.to_owned(), rack)]);
    if let Some(name) = archetype {
        labels.insert(ARCHETYPE_KEY.to_owned(), name.to_owned());
    }
    tables.add_shape(Shape {
        instance_type: instance_type.to_owned(),
        zone: zone.to_owned(),
        capacity_type: tier.capacity_type(),
        labels,
        resources: tables.amounts(resources),
        allocatable: offer.map(|offer| tables.amounts(offer)),
    })
}

/// Gives the machines of one tier their places, in order.
#[derive(Debug)]
pub(crate) struct Places<'a> {
    hosts: &'a Hosts,
    tier: Tier,
    /// Machines placed so far.
    running: u32,
    /// Machines placed so far, by archetype.
    counters: Vec<u32>,
}

impl<'a> Places<'a> {
    pub(crate) fn new(hosts: &'a Hosts, tier: Tier) -> Self {
        Self {
            hosts,
            tier,
            running: 0,
            counters: vec![0; hosts.kinds.len()],
        }
    }

    /// The shape number of the next machine of this archetype and size.
    pub(crate) fn next(&mut self, archetype: usize, size: usize) -> u16 {
        let slot = self.slot(archetype);
        self.place(archetype, size, slot % ZONES.len() as u32, slot)
    }

    /// The same in the zone given, whatever zone was next.
    pub(crate) fn next_in_zone(&mut self, archetype: usize, size: usize, zone: u32) -> u16 {
        let slot = self.slot(archetype);
        self.place(archetype, size, zone, slot)
    }

    /// Leaves the block begun, so that the next machines stand together; says in which zone.
    pub(crate) fn open_block(&mut self, archetype: usize) -> u32 {
        let block = self.hosts.kinds[archetype].block;
        let counter = &mut self.counters[archetype];
        *counter = counter.next_multiple_of(block);
        *counter / block % ZONES.len() as u32
    }

    fn slot(&self, archetype: usize) -> u32 {
        self.counters[archetype] / self.hosts.kinds[archetype].block
    }

    fn place(&mut self, archetype: usize, size: usize, zone: u32, slot: u32) -> u16 {
        let kind = &self.hosts.kinds[archetype];
        let sized = (self.running % kind.types) as usize * kind.offers.len() + size;
        let spot = (zone * RACKS_PER_ZONE + slot % RACKS_PER_ZONE) as usize;
        self.running += 1;
        self.counters[archetype] += 1;
        let spots = ZONES.len() * RACKS_PER_ZONE as usize;
        kind.numbers[self.tier as usize][sized * spots + spot]
    }
}
