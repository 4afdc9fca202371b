//! Seed: the machines a steady fleet has, and whom each serves (workloads.md §3.3, RF-1, RF-12).
//!
//! ```text
//! a cluster's rows ──▶ machines of the row's archetype until it is covered ──▶ committed to that row
//!                      gangs that one machine holds count together, as the row they fold to
//! ```
//!
//! Demand and seed come from one catalog and one draw. A tier drawn from the shares alone leaves some
//! clusters short and others with excess, and the first minutes measure how that is put right. Here
//! every row is covered, and no machine of a row can be missed: the last one is the smallest that
//! covers what is left, and an archetype's sizes differ by a factor of two at most, so whichever
//! machine one takes away, the row is short. A decision on the seeded fleet has nothing to do.

use bigfleet_seeded::Stream;

use crate::{
    Size,
    catalog::{Catalog, Together},
    demand::{Cell, Demand},
    draw::Draw,
    hosts::{Hosts, Places, Tier},
    tables::Tables,
};
use std::collections::BTreeMap;

/// A serving machine: what it is and whom it serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seat {
    /// A row of its cluster.
    pub(crate) row: u32,
    pub(crate) shape: u16,
    /// Whether it serves the folded form of that row.
    pub(crate) folded: bool,
}

/// The serving machines of all clusters, one cluster after another.
#[derive(Clone, Debug)]
pub(crate) struct Seats {
    pub(crate) seats: Vec<Seat>,
    /// Where each cluster begins; one more at the end.
    pub(crate) starts: Vec<usize>,
}

impl Default for Seats {
    fn default() -> Self {
        Self {
            seats: Vec::new(),
            starts: vec![0],
        }
    }
}

impl Seats {
    pub(crate) fn push(&mut self, seat: Seat) {
        self.seats.push(seat);
    }

    pub(crate) fn close_cluster(&mut self) {
        self.starts.push(self.seats.len());
    }

    /// The cluster of a seat.
    pub(crate) fn cluster(&self, seat: usize) -> usize {
        self.starts.partition_point(|start| *start <= seat) - 1
    }
}

/// Seeds serving machines.
#[derive(Debug)]
pub(crate) struct Seeder<'a> {
    catalog: &'a Catalog,
    hosts: &'a Hosts,
    places: Places<'a>,
    random: Stream,
    /// Archetype of each Pod size.
    archetypes: Vec<usize>,
    size_weights: Vec<Vec<u32>>,
}

impl<'a> Seeder<'a> {
    pub(crate) fn new(
        catalog: &'a Catalog,
        hosts: &'a Hosts,
        draw: &Draw<'_>,
        random: Stream,
    ) -> Self {
        let mut archetypes = Vec::new();
        for (at, archetype) in catalog.archetypes().iter().enumerate() {
            for size in 0..archetype.sizes.len() {
                let unit = usize::from(draw.unit(at, size));
                archetypes.resize(archetypes.len().max(unit + 1), 0);
                archetypes[unit] = at;
            }
        }
        Self {
            catalog,
            hosts,
            places: Places::new(hosts, Tier::Configured),
            random,
            archetypes,
            size_weights: size_weights(catalog),
        }
    }

    /// Covers every row of a cluster.
    pub(crate) fn cluster(
        &mut self,
        demand: &Demand,
        cluster: usize,
        tables: &mut Tables,
        seats: &mut Seats,
    ) {
        let mut classes: BTreeMap<(u16, u16, u32), (u32, u32)> = BTreeMap::new();
        let rows = demand.cells(cluster).chunk_by(|a, b| a.row == b.row);
        for cells in rows {
            let Some(first) = cells.first() else { continue };
            let archetype = self.archetypes[usize::from(first.unit)];
            let together = self.catalog.archetypes()[archetype]
                .gang
                .map(|gang| gang.together);
            match together {
                None => self.cover(
                    archetype,
                    wanted(tables, cells),
                    None,
                    first.row,
                    false,
                    seats,
                ),
                Some(_) if tables.fold(first.profile, first.unit, first.pods).is_some() => {
                    let class = (first.profile, first.unit, first.pods);
                    classes.entry(class).or_insert((first.row, 0)).1 += 1;
                }
                Some(together) => {
                    let zone = self.places.open_block(archetype);
                    let zone = (together == Together::Zone).then_some(zone);
                    self.cover(
                        archetype,
                        wanted(tables, cells),
                        zone,
                        first.row,
                        false,
                        seats,
                    );
                }
            }
        }
        for ((_, unit, members), (row, gangs)) in classes {
            let want = tables.unit(unit).times(members).times(gangs);
            let archetype = self.archetypes[usize::from(unit)];
            self.cover(archetype, want, None, row, true, seats);
        }
        seats.close_cluster();
    }

    fn cover(
        &mut self,
        archetype: usize,
        mut want: Size,
        zone: Option<u32>,
        row: u32,
        folded: bool,
        seats: &mut Seats,
    ) {
        while want != Size::default() {
            let drawn = self.random.weighted(&self.size_weights[archetype]);
            let last = self.hosts.smallest_covering(archetype, want);
            let size = last.unwrap_or(drawn);
            let shape = match zone {
                None => self.places.next(archetype, size),
                Some(zone) => self.places.next_in_zone(archetype, size, zone),
            };
            seats.push(Seat { row, shape, folded });
            want = want.minus(self.hosts.offer(archetype, size));
        }
    }
}

/// The machines of a tier that serves nobody: so many of each archetype, in the catalog's order.
pub(crate) fn pool(
    catalog: &Catalog,
    hosts: &Hosts,
    tier: Tier,
    counts: &[u64],
    mut random: Stream,
) -> Vec<u16> {
    let mut places = Places::new(hosts, tier);
    let mut shapes = Vec::with_capacity(counts.iter().sum::<u64>() as usize);
    for (archetype, weights) in size_weights(catalog).iter().enumerate() {
        for _ in 0..counts[archetype] {
            let size = random.weighted(weights);
            shapes.push(places.next(archetype, size));
        }
    }
    shapes
}

fn wanted(tables: &Tables, cells: &[Cell]) -> Size {
    let of = |cell: &Cell| tables.unit(cell.unit).times(cell.pods);
    cells.iter().map(of).fold(Size::default(), Size::plus)
}

fn size_weights(catalog: &Catalog) -> Vec<Vec<u32>> {
    let weights =
        |sizes: &[(u32, Size)]| sizes.iter().map(|(weight, _)| (*weight).max(1)).collect();
    catalog
        .archetypes()
        .iter()
        .map(|archetype| weights(&archetype.sizes))
        .collect()
}
