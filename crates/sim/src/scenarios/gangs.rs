//! The gang sweep: rack gangs and zone gangs that share one kind of machine, in twelve settings in
//! which a chooser without memory never settles. The reference looks at it; here it must be still.
//!
//! ```text
//! Setting ── the seed's turn, and latencies drawn ──▶ half an hour ─▶ ten minutes without an action
//! ```

use super::Scenario;
use crate::{
    build::{Pool, pool, work},
    clock::{Moment, minutes},
    dice::{Dice, Latency},
    gate::{Count, Gate, MOVES},
    plan::{Change, ClusterPlan, Plan, Stages, Work},
    size::Size,
};
use bigfleet_model::ActionKind;

pub(super) const ALL: &[Scenario] = &[
    Scenario::small(
        "gang-sweep",
        "twelve settings of rack and zone gangs on one kind of machine: each comes to a fixed point",
        sweep,
    ),
    Scenario::large(
        "gang-sweep-at-scale",
        "the largest of these settings, with sizes seen in a real fleet: 89 machines needed, 1,342 there",
        |dice| {
            let stamped = dice.turn(2) == 0;
            fixed_point(
                dice,
                Setting {
                    stamped,
                    speculative: 1002,
                    ..AT_SCALE
                },
            )
        },
    ),
    Scenario::small(
        "large-gangs",
        "zone gangs of 64 to 256 and rack gangs of 16 arrive at once, where plain demand holds parts of every rack",
        large_gangs,
    ),
];

const GPU: Size = Size::gpu(64, 256, 8);
const CLUSTERS: usize = 2;

/// What one setting is about. Counts are per cluster but for the pools, which all share.
#[derive(Clone, Copy, Debug)]
struct Setting {
    /// Rack gangs, and how large each is.
    small: (usize, u32),
    /// Zone gangs, and how large each is.
    medium: (usize, u32),
    /// How much smaller the very last of them is.
    last_lacks: u32,
    /// Machines that serve from the start: rack by rack for the small, then for the medium.
    serving: (u32, u32),
    idle: u32,
    speculative: u32,
    /// Machines side by side in a rack, and racks in a zone.
    block: usize,
    racks: usize,
    /// Whether the medium gangs come first in the roll-up.
    medium_first: bool,
    /// Whether machines say which gang they serve.
    stamped: bool,
}

const BASE: Setting = Setting {
    small: (4, 3),
    medium: (1, 8),
    last_lacks: 0,
    serving: (12, 8),
    idle: 12,
    speculative: 24,
    block: 4,
    racks: 12,
    medium_first: false,
    stamped: false,
};

/// The shape of the incident: more machines serve than are wanted, and far more could be had.
const FIELD: Setting = Setting {
    small: (6, 3),
    medium: (2, 8),
    serving: (20, 20),
    idle: 60,
    speculative: 120,
    racks: 20,
    ..BASE
};

const SETTINGS: [Setting; 12] = [
    BASE,
    // What serves is not what is wanted.
    Setting {
        serving: (9, 12),
        ..BASE
    },
    // Gangs do not tile the racks.
    Setting { block: 5, ..BASE },
    Setting {
        medium_first: true,
        ..BASE
    },
    Setting {
        racks: 60,
        block: 2,
        ..BASE
    },
    // Hardly anything to choose from, and a great deal.
    Setting {
        idle: 1,
        speculative: 2,
        ..BASE
    },
    Setting {
        idle: 60,
        speculative: 240,
        ..BASE
    },
    FIELD,
    Setting {
        stamped: true,
        ..FIELD
    },
    Setting {
        stamped: true,
        ..BASE
    },
    AT_SCALE,
    Setting {
        stamped: true,
        ..AT_SCALE
    },
];

/// 36 and 53 machines wanted, 40 and 60 that serve, 240 idle, and 660 to be had, for a thousand in all: every
/// rack of every zone has more than any gang wants with that many as with 1,002, which `gang-sweep-at-scale` has.
const AT_SCALE: Setting = Setting {
    small: (6, 3),
    medium: (3, 9),
    last_lacks: 1,
    serving: (20, 30),
    idle: 240,
    speculative: 660,
    racks: 40,
    ..BASE
};

fn sweep(dice: &mut Dice) -> Plan {
    let setting = SETTINGS[dice.turn(SETTINGS.len())];
    fixed_point(dice, setting)
}

/// From the setting to a standstill.
fn fixed_point(dice: &mut Dice, setting: Setting) -> Plan {
    let calm = Moment(minutes(40));
    let settled = Moment(minutes(30));
    Plan {
        machines: setting.pools().iter().flat_map(Pool::build).collect(),
        clusters: (0..CLUSTERS)
            .map(|number| ClusterPlan::new(&format!("c{number}"), setting.works(number)))
            .collect(),
        stages: Stages {
            create: dice.pick(&[
                Latency::NONE,
                Latency::Fixed(30_000),
                Latency::LongTail(60_000),
            ]),
            configure: dice.pick(&[
                Latency::Between(300, 600),
                Latency::Between(4_500, 9_800),
                Latency::LongTail(30_000),
            ]),
            repair: Latency::NONE,
            ..Stages::CLOUD
        },
        calm,
        rest_within: minutes(60),
        gates: vec![Gate::Actions(MOVES, settled, Moment::NEVER, Count::NONE)],
        ..Plan::default()
    }
}

impl Setting {
    fn works(&self, cluster: usize) -> Vec<Work> {
        let gang = |pods| work(GPU, pods).priority(5000).penalties(8192.0, 65536.0);
        let small = (0..self.small.0).map(|number| {
            let made = gang(self.small.1).kinds(&["a3"]);
            made.rack_gang(&format!("small-{number}")).build()
        });
        let medium = (0..self.medium.0).map(|number| {
            let last = (cluster, number) == (CLUSTERS - 1, self.medium.0 - 1);
            let less = if last { self.last_lacks } else { 0 };
            let made = gang(self.medium.1 - less).kinds(&["a3"]);
            made.zone_gang(&format!("medium-{number}")).build()
        });
        if self.medium_first {
            medium.chain(small).collect()
        } else {
            small.chain(medium).collect()
        }
    }

    fn pools(&self) -> Vec<Pool> {
        let mut next = 0;
        let mut place = |made: Pool, count: u32| {
            let made = made.kind("a3").racks(3, self.racks, self.block);
            let made = made.starting_at(next);
            next += count as usize;
            made
        };
        let mut pools = Vec::new();
        for cluster in 0..CLUSTERS {
            let (small, medium) = if self.medium_first {
                (self.medium.0, 0)
            } else {
                (0, self.small.0)
            };
            for (name, count, work) in [
                ("small", self.serving.0, small),
                ("medium", self.serving.1, medium),
            ] {
                let made = pool(&format!("{name}-c{cluster}"), GPU, count);
                let made = place(made.serving(cluster, work), count);
                pools.push(if self.stamped { made } else { made.unstamped() });
            }
        }
        pools.push(place(pool("idle", GPU, self.idle).owned(), self.idle));
        pools.push(place(pool("spec", GPU, self.speculative), self.speculative));
        pools
    }
}

/// When the gangs come, and when they have what there is for them.
const COME: u64 = minutes(5);
const SERVED: u64 = minutes(30);

/// Plain Pods sit on one machine in three, all over the racks. A zone holds one large gang beside them, and
/// each rack one of sixteen.
fn large_gangs(dice: &mut Dice) -> Plan {
    let gang = |pods| work(GPU, pods).priority(5000).kinds(&["a3"]);
    let sizes = [dice.between(64, 128), dice.between(128, 256)];
    let mut works = vec![work(GPU, 90).kinds(&["a3"]).build()];
    works.extend((0..2).map(|number| gang(0).zone_gang(&format!("zone-{number}")).build()));
    works.extend((0..3).map(|number| gang(0).rack_gang(&format!("rack-{number}")).build()));
    let come = |work: usize, pods: u64| {
        let (cluster, pods) = (0, pods as u32);
        let change = Change::Scale {
            cluster,
            work,
            pods,
        };
        (Moment(COME), change)
    };
    let mut timeline: Vec<(Moment, Change)> = Vec::new();
    timeline.extend((1..).zip(sizes).map(|(work, pods)| come(work, pods)));
    timeline.extend((3..6).map(|work| come(work, 16)));
    let place = |made: Pool| made.kind("a3").racks(3, 10, 1);
    let pools = [
        place(pool("plain", GPU, 90)).serving(0, 0),
        place(pool("idle", GPU, 300)).owned(),
        place(pool("spec", GPU, 600)),
    ];
    let wanted = 90 + sizes.iter().sum::<u64>() + 3 * 16;
    Plan {
        machines: pools.iter().flat_map(Pool::build).collect(),
        clusters: vec![ClusterPlan::new("c0", works)],
        timeline,
        stages: Stages {
            repair: Latency::NONE,
            ..Stages::CLOUD
        },
        calm: Moment(minutes(40)),
        rest_within: minutes(60),
        gates: vec![
            // Pods sit down where a node joins first, so that some of a gang wait for room beside others;
            // what the shard owes them is the machines.
            Gate::Short(Count::NONE),
            Gate::Serving(0, Count::exactly(wanted)),
            Gate::ever(&[ActionKind::Reclaim, ActionKind::Preempt], Count::NONE),
            Gate::Actions(MOVES, Moment(SERVED), Moment::NEVER, Count::NONE),
        ],
        ..Plan::default()
    }
}
