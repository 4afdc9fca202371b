//! Draw: a cluster's objects, by the catalog's weights, until it has its Pods (workloads.md §1).
//!
//! Every cluster has its own stream of the seed, so the first twenty clusters of a fleet of two
//! thousand are those of a fleet of twenty.

use bigfleet_seeded::Stream;

use crate::{
    catalog::{Archetype, BANDS, Catalog, ORDERED_MOST, Together},
    catalogs::ZONES,
    demand::Demand,
    tables::Tables,
    valid,
};
use bigfleet_model::{INSTANCE_TYPE_KEY, Operator, Profile, Requirement, ZONE_KEY};

/// The label that names a machine's rack.
pub const RACK_KEY: &str = "topology.bigfleet/rack";

/// A catalog with its profiles and Pod sizes numbered.
#[derive(Debug)]
pub(crate) struct Draw<'a> {
    catalog: &'a Catalog,
    weights: Vec<u32>,
    kinds: Vec<ArchetypeNumbers>,
    /// Pods of plain archetypes that are alike: what they are, and how many the cluster has.
    plain: Vec<Plain>,
}

/// The numbers of one archetype.
#[derive(Debug)]
struct ArchetypeNumbers {
    size_weights: Vec<u32>,
    units: Vec<u16>,
    /// Profiles by priority class, without and with the spread.
    profiles: Vec<[u16; 2]>,
    /// Names of gangs, by the order drawn in a cluster.
    groups: Vec<u32>,
    /// How many gangs the cluster being drawn has.
    gangs: usize,
}

#[derive(Debug)]
struct Plain {
    profile: u16,
    unit: u16,
    pods: u32,
}

/// A gang of the cluster being drawn.
struct DrawnGang {
    profile: u16,
    group: u32,
    unit: u16,
    pods: u32,
}

impl<'a> Draw<'a> {
    pub(crate) fn new(catalog: &'a Catalog, tables: &mut Tables) -> Self {
        let kinds = catalog
            .archetypes()
            .iter()
            .map(|archetype| ArchetypeNumbers::new(archetype, tables));
        let kinds: Vec<ArchetypeNumbers> = kinds.collect();
        let weights = catalog.archetypes().iter().map(Archetype::drawn).collect();
        let mut plain = Vec::new();
        for (kind, archetype) in kinds.iter().zip(catalog.archetypes()) {
            if archetype.gang.is_none() && !archetype.burst_only {
                let profiles = kind.profiles.iter().flatten();
                let pairs =
                    profiles.flat_map(|profile| kind.units.iter().map(|unit| (*profile, *unit)));
                plain.extend(pairs);
            }
        }
        plain.sort();
        plain.dedup();
        let counted = |(profile, unit)| Plain {
            profile,
            unit,
            pods: 0,
        };
        Self {
            catalog,
            weights,
            kinds,
            plain: plain.into_iter().map(counted).collect(),
        }
    }

    /// The number of an archetype's Pod size.
    pub(crate) fn unit(&self, archetype: usize, size: usize) -> u16 {
        self.kinds[archetype].units[size]
    }

    /// Draws one cluster of so many Pods. The last object is cut to what is left.
    pub(crate) fn cluster(
        &mut self,
        random: &mut Stream,
        pods: u32,
        tables: &mut Tables,
        demand: &mut Demand,
    ) {
        let mut left = pods;
        let mut gangs: Vec<DrawnGang> = Vec::new();
        let drawable = self.weights.iter().any(|weight| 0 < *weight);
        while 0 < left && drawable {
            let at = random.weighted(&self.weights);
            let (kind, archetype) = (&mut self.kinds[at], &self.catalog.archetypes()[at]);
            let unit = kind.units[random.weighted(&kind.size_weights)];
            let class = random.below(archetype.priorities().len() as u32) as usize;
            let replicas = replicas(archetype, random).min(left);
            left -= replicas;
            if let Some(gang) = archetype.gang {
                let group = kind.next_group(archetype, same_key(gang.together), tables);
                let profile = kind.profiles[class][0];
                gangs.push(DrawnGang {
                    profile,
                    group,
                    unit,
                    pods: replicas,
                });
            } else {
                let chance = archetype.spread.as_ref().map_or(0.0, |(_, chance)| *chance);
                let profile = kind.profiles[class][usize::from(random.chance(chance))];
                self.add(profile, unit, replicas);
            }
        }
        for plain in self.plain.iter_mut().filter(|plain| 0 < plain.pods) {
            demand.push(plain.profile, 0, plain.unit, plain.pods);
            plain.pods = 0;
        }
        for gang in gangs {
            demand.push(gang.profile, gang.group, gang.unit, gang.pods);
        }
        demand.close_cluster();
        self.kinds.iter_mut().for_each(|kind| kind.gangs = 0);
    }

    fn add(&mut self, profile: u16, unit: u16, pods: u32) {
        let key = |plain: &Plain| (plain.profile, plain.unit).cmp(&(profile, unit));
        if let Ok(at) = self.plain.binary_search_by(key) {
            self.plain[at].pods += pods;
        }
    }
}

impl ArchetypeNumbers {
    fn new(archetype: &Archetype, tables: &mut Tables) -> Self {
        let profile = |class: &i32, tables: &mut Tables| {
            [false, true].map(|spread| tables.add_profile(profile(archetype, *class, spread)))
        };
        Self {
            size_weights: archetype
                .sizes
                .iter()
                .map(|(weight, _)| (*weight).max(1))
                .collect(),
            units: archetype
                .sizes
                .iter()
                .map(|(_, size)| tables.add_unit(*size))
                .collect(),
            profiles: archetype
                .priorities()
                .iter()
                .map(|class| profile(class, tables))
                .collect(),
            groups: Vec::new(),
            gangs: 0,
        }
    }

    /// Gangs are told apart within a cluster only, so clusters share the names.
    fn next_group(&mut self, archetype: &Archetype, same_key: &str, tables: &mut Tables) -> u32 {
        let at = self.gangs;
        self.gangs += 1;
        if self.groups.len() <= at {
            let app = format!("{}-{at}", archetype.name);
            self.groups.push(tables.add_group(same_key, &app));
        }
        self.groups[at]
    }
}

fn replicas(archetype: &Archetype, random: &mut Stream) -> u32 {
    if let Some(gang) = archetype.gang {
        let (least, most) = gang.sizes();
        return random.between(least, most);
    }
    let (_, least, most) = BANDS[random.weighted(&BANDS.map(|(weight, ..)| weight))];
    let drawn = random.between(least, most);
    if archetype.ordered {
        drawn.min(ORDERED_MOST)
    } else {
        drawn
    }
}

pub(crate) fn same_key(together: Together) -> &'static str {
    match together {
        Together::Rack => RACK_KEY,
        Together::Zone => ZONE_KEY,
    }
}

/// What the archetype's objects of this priority ask of a machine (workloads.md §2.1).
fn profile(archetype: &Archetype, priority: i32, spread: bool) -> Profile {
    let zones = ZONES.map(str::to_owned).to_vec();
    let mut requirements = vec![
        requirement(
            INSTANCE_TYPE_KEY,
            Operator::In,
            archetype.instance_types.clone(),
        ),
        requirement(ZONE_KEY, Operator::In, zones),
    ];
    if let Some(gang) = archetype.gang {
        requirements.push(requirement(
            same_key(gang.together),
            Operator::Same,
            Vec::new(),
        ));
    }
    let carried = archetype.spread.iter().filter(|_| spread);
    let spread = carried.map(|(spread, _)| spread.clone()).collect();
    let (interruption, reclamation) = archetype.buckets();
    Profile::new(requirements, spread, priority, interruption, reclamation)
}

pub(crate) fn requirement(key: &str, operator: Operator, values: Vec<String>) -> Requirement {
    valid(Requirement::new(key.to_owned(), operator, values).ok_or("a requirement without a key"))
}
