//! A day of a thousand machines: the ordinary life of a fleet, at the size by which the simulator's own
//! speed is stated.

use super::Scenario;
use crate::{
    build::{Pool, pool, work},
    clock::{Moment, minutes, seconds},
    dice::Dice,
    gate::{Count, Gate},
    plan::{Change, ClusterPlan, Plan, ShardPlan, Weather, Work},
    size::Size,
};
use bigfleet_model::State;

pub(super) const ALL: &[Scenario] = &[Scenario::large(
    "day-1k",
    "1,000 machines, 10 clusters, one day: demand follows the sun, machines break, spot machines are interrupted",
    day,
)];

const HOURS: u64 = 24;
const CLUSTERS: usize = 10;
const NODE: Size = Size::plain(16, 64);
const GPU: Size = Size::gpu(64, 256, 8);

/// What of its most a service runs in each hour, in thousandths.
const CURVE: [u32; HOURS as usize] = [
    500, 450, 420, 400, 400, 450, 550, 650, 780, 880, 950, 1000, 980, 960, 970, 990, 1000, 970,
    920, 850, 770, 690, 620, 560,
];

fn day(dice: &mut Dice) -> Plan {
    let clusters = (0..CLUSTERS).map(|number| ClusterPlan::new(&format!("c{number}"), works()));
    let pools = [
        pool("own", NODE, 300).racks(3, 10, 10).owned(),
        pool("gpu", GPU, 100).kind("gpu").racks(3, 6, 8).owned(),
        pool("spot", NODE, 250).racks(3, 10, 10).spot(),
        pool("demand", NODE, 350).racks(3, 10, 10),
    ];
    Plan {
        machines: pools.iter().flat_map(Pool::build).collect(),
        clusters: clusters.collect(),
        timeline: timeline(dice),
        weather: Weather {
            // Serving machines last a month.
            break_every: minutes(60),
            ..Weather::default()
        },
        shard: ShardPlan {
            rails: true,
            ..ShardPlan::default()
        },
        calm: Moment(minutes(60 * HOURS)),
        rest_within: minutes(60),
        gates: vec![
            Gate::Short(Count::NONE),
            Gate::InState(State::Creating, Count::NONE),
        ],
        ..Plan::default()
    }
}

/// Services, batch that gives way, and a gang for training.
fn works() -> Vec<Work> {
    let service = work(Size::plain(2, 8), 240).kinds(&["m"]);
    let batch = work(Size::plain(4, 8), 60).kinds(&["m"]).priority(10);
    let training = work(GPU, 6).kinds(&["gpu"]).priority(5000);
    vec![
        service.build(),
        batch.penalties(0.0, 0.0).build(),
        training.rack_gang("training").build(),
    ]
}

fn timeline(dice: &mut Dice) -> Vec<(Moment, Change)> {
    let mut timeline = Vec::new();
    for hour in 0..HOURS {
        for cluster in 0..CLUSTERS {
            let mut at = |change| {
                let within = dice.between(seconds(30), minutes(50));
                timeline.push((Moment(minutes(hour * 60) + within), change));
            };
            // Each cluster has noon at another hour.
            let sun = CURVE[(hour as usize + cluster * 2) % CURVE.len()];
            let pods = 240 * sun / 1000;
            at(Change::Scale {
                cluster,
                work: 0,
                pods,
            });
        }
        if hour % 6 == 3 {
            let when = Moment(minutes(hour * 60 + 20));
            timeline.push((when, Change::SpotWave(200)));
            timeline.push((when.after(minutes(10)), Change::Reprice));
        }
    }
    timeline
}
