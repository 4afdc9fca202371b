//! Co-located: the engine benchmark's fleet, written down rather than drawn (workloads.md §6).
//!
//! ```text
//! per cluster   1 row  tiny, 17,500 × 400m/500Mi       175 machines of 100     covered exactly
//!   (20 of      1 row  service, 3,000 × 2200m/8500Mi    30 machines of  10     270 short, for ever
//!    them)     95 rows cache, gangs of 4 × 4/32Gi       30 machines of  10     they fold; 8 short
//!              32 rows GPU, gangs of 5 × 64/gpu 8       15 machines of   1     145 short
//! for all      1,000 Idle and 12,000 Speculative, turn by turn tiny, cache, GPU
//! ```
//!
//! It is a running fleet at its worst moment, not a quiet one: nearly every row is a gang, and most
//! are short. Machines are of the first instance type their row names; no free one is of the type
//! the service asks for. Nothing is said of zones in the rows: all machines stand in one.

use crate::{
    Size, Workload,
    demand::Demand,
    draw::{RACK_KEY, requirement},
    hosts::{Tier, add_shape},
    seed::{Seat, Seats},
    tables::Tables,
};
use bigfleet_model::{Bucket, INSTANCE_TYPE_KEY, Operator, Profile};

const CLUSTERS: usize = 20;
const ZONE: &str = "zone-a";
const BLOCK: u32 = 8;
const RACKS: u32 = 12;
const IDLE: u32 = 1_000;
const SPECULATIVE: u32 = 12_000;

/// One of the four kinds of row, and the machines made for it.
struct RowKind {
    name: &'static str,
    instance_types: &'static [&'static str],
    unit: Size,
    priority: i32,
    /// Rows per cluster, and Pods per row.
    rows: (u32, u32),
    gang: bool,
    /// Serving machines per cluster, and Pods each is made for.
    machines: (u32, u32),
}

const KINDS: [RowKind; 4] = [
    RowKind {
        name: "tiny",
        instance_types: &["m6i.large", "m6i.xlarge"],
        unit: Size::milli(400, 500),
        priority: 100,
        rows: (1, 17_500),
        gang: false,
        machines: (175, 100),
    },
    RowKind {
        name: "service",
        instance_types: &["m6i.xlarge"],
        unit: Size::milli(2200, 8500),
        priority: 1000,
        rows: (1, 3_000),
        gang: false,
        machines: (30, 10),
    },
    RowKind {
        name: "cache",
        instance_types: &["r6i.2xlarge"],
        unit: Size::cores(4, 32),
        priority: 1000,
        rows: (95, 4),
        gang: true,
        machines: (30, 10),
    },
    RowKind {
        name: "gpu",
        instance_types: &["a3-highgpu-8g"],
        unit: Size::cores(64, 0).with_gpus(8),
        priority: 1000,
        rows: (32, 5),
        gang: true,
        machines: (15, 1),
    },
];

/// Which kinds the free machines take turns in.
const TURNS: [usize; 3] = [0, 2, 3];

/// The fleet. Nothing of it is random; the seed is only carried.
pub(crate) fn co_located(seed: u64) -> Workload {
    let mut tables = Tables::new();
    let numbers = KINDS.each_ref().map(|kind| {
        let profile = tables.add_profile(profile(kind));
        (profile, tables.add_unit(kind.unit))
    });
    let groups = KINDS.each_ref().map(|kind| groups(kind, &mut tables));
    let mut demand = Demand::default();
    for _ in 0..CLUSTERS {
        for ((kind, (profile, unit)), groups) in KINDS.iter().zip(numbers).zip(&groups) {
            for group in groups {
                demand.push(profile, *group, unit, kind.rows.1);
            }
        }
        demand.close_cluster();
    }
    let idle = free(Tier::Idle, IDLE, &mut tables);
    let speculative = free(Tier::Speculative, SPECULATIVE, &mut tables);
    let mut seats = Seats::default();
    let mut counters = [0; KINDS.len()];
    for _ in 0..CLUSTERS {
        let mut row = 0;
        for (at, kind) in KINDS.iter().enumerate() {
            let counter = &mut counters[at];
            let machines =
                (0..kind.machines.0).map(|_| host(Tier::Configured, kind, counter, &mut tables));
            let machines: Vec<u16> = machines.collect();
            let (profile, unit) = numbers[at];
            let folded = tables.fold(profile, unit, kind.rows.1).is_some();
            if kind.gang && !folded {
                seat_gangs(kind, row, &machines, &mut seats)
            } else {
                machines
                    .into_iter()
                    .for_each(|shape| seats.push(Seat { row, shape, folded }))
            }
            row += kind.rows.0;
        }
        seats.close_cluster();
    }
    Workload::assemble(
        "co-located",
        seed,
        tables,
        demand,
        seats,
        [idle, speculative, Vec::new()],
    )
}

/// Gangs take the machines of one rack; what a rack has left over begins a gang of its own, so no
/// gang is torn between two racks.
fn seat_gangs(kind: &RowKind, first_row: u32, machines: &[u16], seats: &mut Seats) {
    let whole = kind.rows.1.div_ceil(kind.machines.1) as usize;
    let racks = machines.chunk_by(|a, b| a == b);
    let gangs = racks.flat_map(|rack| rack.chunks(whole));
    for (row, gang) in (first_row..).zip(gangs) {
        for shape in gang {
            seats.push(Seat {
                row,
                shape: *shape,
                folded: false,
            });
        }
    }
}

fn profile(kind: &RowKind) -> Profile {
    let types = kind.instance_types.iter().map(|name| (*name).to_owned());
    let mut requirements = vec![requirement(
        INSTANCE_TYPE_KEY,
        Operator::In,
        types.collect(),
    )];
    if kind.gang {
        requirements.push(requirement(RACK_KEY, Operator::Same, Vec::new()));
    }
    let penalty = Bucket::of(8192.0);
    Profile::new(requirements, Vec::new(), kind.priority, penalty, penalty)
}

/// The group of each row of a kind.
fn groups(kind: &RowKind, tables: &mut Tables) -> Vec<u32> {
    let mut group = |at| {
        if kind.gang {
            tables.add_group(RACK_KEY, &format!("{}-{at}", kind.name))
        } else {
            0
        }
    };
    (0..kind.rows.0).map(&mut group).collect()
}

fn free(tier: Tier, machines: u32, tables: &mut Tables) -> Vec<u16> {
    let mut counters = [0; KINDS.len()];
    let mut turn = |machine: u32| {
        let at = TURNS[machine as usize % TURNS.len()];
        host(tier, &KINDS[at], &mut counters[at], tables)
    };
    (0..machines).map(&mut turn).collect()
}

/// The next machine of a kind: eight to a rack, twelve racks, then round again.
fn host(tier: Tier, kind: &RowKind, counter: &mut u32, tables: &mut Tables) -> u16 {
    let rack = format!("{ZONE}-rack-{}", *counter / BLOCK % RACKS);
    *counter += 1;
    let size = (kind.unit, Some(kind.unit.times(kind.machines.1)));
    add_shape(
        tables,
        tier,
        kind.instance_types[0],
        (ZONE, rack),
        None,
        size,
    )
}
