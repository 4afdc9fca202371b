//! Workload: a fleet and its demand, drawn and held in a few bytes per machine.

use crate::{
    demand::{Demand, write_rows},
    hosts::Tier,
    seed::{Seat, Seats},
    tables::Tables,
    valid,
};
use bigfleet_model::{Assignment, ClusterId, Group, NeedKey, Profile, Row, Shape, Terms};
use std::{fmt, ops::Range, sync::Arc};

/// A fleet and its demand. Machines and rows are handed out as streams; what is held is a number or
/// two each.
#[derive(Clone, Debug)]
pub struct Workload {
    name: String,
    seed: u64,
    clusters: Vec<ClusterId>,
    pub(crate) tables: Tables,
    pub(crate) demand: Demand,
    pub(crate) seats: Seats,
    /// Shape numbers of Idle, Speculative and Spot machines.
    pools: [Vec<u16>; 3],
}

/// The pools' tiers, in the order they are held and streamed.
const POOLS: [Tier; 3] = [Tier::Idle, Tier::Speculative, Tier::Spot];

impl Workload {
    pub(crate) fn assemble(
        name: &str,
        seed: u64,
        tables: Tables,
        mut demand: Demand,
        mut seats: Seats,
        pools: [Vec<u16>; 3],
    ) -> Self {
        demand.shrink();
        seats.seats.shrink_to_fit();
        let id = |cluster| valid(ClusterId::new(&format!("kwok-cluster-{cluster}")));
        Self {
            name: name.to_owned(),
            seed,
            clusters: (0..demand.clusters()).map(id).collect(),
            tables,
            demand,
            seats,
            pools,
        }
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The seed it was drawn from.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Every distinct shape a machine of it may have. [`SeededMachine::shape`] is a position here.
    pub fn shapes(&self) -> &[Arc<Shape>] {
        self.tables.shapes()
    }

    /// Every distinct profile its rows may have, as received, before any gang folds.
    pub fn profiles(&self) -> &[Arc<Profile>] {
        self.tables.profiles()
    }

    /// How much there is of everything.
    pub fn counts(&self) -> Counts {
        let clusters = 0..self.demand.clusters();
        let [idle, speculative, spot] = self.pools.each_ref().map(Vec::len);
        let configured = self.seats.seats.len();
        Counts {
            clusters: clusters.len(),
            pods: clusters
                .clone()
                .map(|at| u64::from(self.demand.pods(at)))
                .sum(),
            rows: clusters.map(|at| self.demand.row_count(at) as usize).sum(),
            configured,
            idle,
            speculative: speculative + spot,
            machines: configured + idle + speculative + spot,
        }
    }

    /// Every machine: those of the clusters, one cluster after another, then the free ones by tier.
    pub fn machines(&self) -> impl Iterator<Item = SeededMachine> + '_ {
        let serving = (0..self.clusters.len()).flat_map(|cluster| self.serving(cluster));
        let free = POOLS
            .into_iter()
            .zip(&self.pools)
            .flat_map(|(tier, shapes)| {
                let machine = move |(number, shape): (u32, &u16)| SeededMachine {
                    tier,
                    number,
                    shape: *shape,
                    serves: None,
                };
                (0..).zip(shapes).map(machine)
            });
        serving.chain(free)
    }

    /// The machines that serve one cluster.
    pub fn serving(&self, cluster: usize) -> impl ExactSizeIterator<Item = SeededMachine> + '_ {
        self.seat_range(cluster)
            .map(move |seat| self.seat(cluster, seat))
    }

    pub(crate) fn seat_range(&self, cluster: usize) -> Range<usize> {
        self.seats.starts[cluster]..self.seats.starts[cluster + 1]
    }

    pub(crate) fn seat(&self, cluster: usize, seat: usize) -> SeededMachine {
        let Seat { row, shape, folded } = self.seats.seats[seat];
        SeededMachine {
            tier: Tier::Configured,
            number: (seat - self.seats.starts[cluster]) as u32,
            shape,
            serves: Some(Serves {
                cluster: cluster as u32,
                row,
                folded,
            }),
        }
    }

    /// What a serving machine is committed to; `None` for a free one.
    pub fn commitment(&self, machine: &SeededMachine) -> Option<Commitment<'_>> {
        let serves = machine.serves?;
        let cluster = serves.cluster as usize;
        let cells = self.demand.cells(cluster);
        let first = cells.get(cells.partition_point(|cell| cell.row < serves.row))?;
        let folded = || {
            self.tables
                .folded_group((first.profile, first.unit, first.pods))
        };
        let (profile, group) = match folded().filter(|_| serves.folded) {
            Some(group) => (self.tables.folded(first.profile), group),
            None => (
                self.tables.profile(first.profile),
                self.tables.group(first.group),
            ),
        };
        Some(Commitment {
            cluster: &self.clusters[cluster],
            profile,
            group,
        })
    }

    /// The clusters, in order of their number.
    pub fn clusters(&self) -> impl ExactSizeIterator<Item = Cluster<'_>> {
        (0..self.clusters.len()).map(|number| self.cluster(number))
    }

    /// One cluster.
    ///
    /// # Panics
    ///
    /// If there is none of that number.
    pub fn cluster(&self, number: usize) -> Cluster<'_> {
        assert!(
            number < self.clusters.len(),
            "cluster {number} of {}",
            self.clusters.len()
        );
        Cluster {
            workload: self,
            number,
        }
    }
}

/// How much there is of everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Clusters.
    pub clusters: usize,
    /// Pods of all clusters.
    pub pods: u64,
    /// Rows of all clusters, before any gang folds.
    pub rows: usize,
    /// Machines that serve.
    pub configured: usize,
    /// Idle machines.
    pub idle: usize,
    /// Quota, on demand and spot.
    pub speculative: usize,
    /// All machines.
    pub machines: usize,
}

/// A machine of a workload, in 20 bytes. Prints its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeededMachine {
    /// The part of the fleet it belongs to: its state, price and chance of interruption.
    pub tier: Tier,
    /// Its number in its cluster or tier.
    pub number: u32,
    shape: u16,
    /// Whom it serves.
    pub serves: Option<Serves>,
}

/// Whom a machine serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Serves {
    /// The number of the cluster.
    pub cluster: u32,
    /// A row of the cluster, as [`Cluster::rows`] numbers them.
    pub row: u32,
    /// Whether the row is a gang that folds, and the machine serves the folded form.
    pub folded: bool,
}

impl SeededMachine {
    /// The position of its shape in [`Workload::shapes`].
    pub fn shape(&self) -> usize {
        self.shape.into()
    }

    /// Appends its id.
    pub fn write_id(&self, text: &mut String) {
        use fmt::Write as _;
        // Writing to a string cannot fail.
        let _ = write!(text, "{self}");
    }
}

impl fmt::Display for SeededMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.number;
        match (self.tier, self.serves) {
            (Tier::Configured, Some(Serves { cluster, .. })) => {
                write!(f, "conf-s0-c{cluster}-i{number}")
            }
            (Tier::Configured, None) => write!(f, "conf-s0-i{number}"),
            (Tier::Idle, _) => write!(f, "idle-{number}"),
            (Tier::Speculative, _) => write!(f, "spec-{number}"),
            (Tier::Spot, _) => write!(f, "spot-{number}"),
        }
    }
}

/// What a serving machine is committed to: a row as received, or the row a gang folds to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commitment<'a> {
    /// Whose Need.
    pub cluster: &'a ClusterId,
    /// Its profile, folded where the gang folds.
    pub profile: &'a Arc<Profile>,
    /// Its gang, `fold:…` where the gang folds, or empty.
    pub group: &'a Group,
}

impl Commitment<'_> {
    /// The terms.
    pub fn terms(&self) -> Terms {
        Terms::of(self.profile)
    }

    /// The identity of the Need.
    pub fn key(&self) -> NeedKey {
        NeedKey {
            cluster: self.cluster.clone(),
            fingerprint: self.profile.fingerprint().clone(),
            group: self.group.clone(),
        }
    }

    /// The commitment as a machine's record carries it.
    pub fn assignment(&self) -> Assignment {
        Assignment {
            terms: self.terms(),
            fingerprint: self.profile.fingerprint().clone(),
            group: self.group.clone(),
            keep_price: Some(Tier::Configured.price()),
        }
    }
}

/// One cluster of a workload.
#[derive(Clone, Copy, Debug)]
pub struct Cluster<'a> {
    workload: &'a Workload,
    number: usize,
}

impl<'a> Cluster<'a> {
    /// Its number.
    pub fn number(self) -> usize {
        self.number
    }

    /// Its id.
    pub fn id(self) -> &'a ClusterId {
        &self.workload.clusters[self.number]
    }

    /// How many Pods it runs.
    pub fn pods(self) -> u32 {
        self.workload.demand.pods(self.number)
    }

    /// How many rows it reports, before any gang folds.
    pub fn row_count(self) -> usize {
        self.workload.demand.row_count(self.number) as usize
    }

    /// Its roll-up: the plain rows, then a row per gang. Written out as one asks for them.
    pub fn rows(self) -> impl Iterator<Item = Row> + 'a {
        let Workload { tables, demand, .. } = self.workload;
        write_rows(tables, demand.cells(self.number), &[])
    }

    /// How many rows are left once the gangs that one machine can hold have folded.
    pub fn folded_row_count(self) -> usize {
        let Workload { tables, demand, .. } = self.workload;
        let mut classes = Vec::new();
        let mut rows = 0;
        for cells in demand.cells(self.number).chunk_by(|a, b| a.row == b.row) {
            let Some(first) = cells.first() else { continue };
            let class = (first.profile, first.unit, first.pods);
            match tables.folded_group(class) {
                Some(_) => classes.push(class),
                None => rows += 1,
            }
        }
        classes.sort();
        classes.dedup();
        rows + classes.len()
    }
}
