//! The scripted scenarios: a few machines, one story each, and where it must end.
//!
//! All on one kind of GPU machine. The stories are the reference's; the latencies, the order of
//! events and the roll-ups' phases are the seed's.

use super::Scenario;
use crate::{
    build::{pool, work},
    clock::{Moment, minutes, seconds},
    dice::Dice,
    gate::{Count, Gate},
    plan::{Change, ClusterPlan, Plan, Stages},
    size::Size,
};
use bigfleet_model::{State, quantity::format_milli};
use bigfleet_provider_kit::Transition;

pub(super) const ALL: &[Scenario] = &[
    Scenario::small(
        "training-job-topology",
        "64 idle GPU machines, and one cluster that needs all of them",
        training_job,
    ),
    Scenario::small(
        "capacity-stockout",
        "32 machines for a job of 64: half of it is served, and one Need stays short by the rest",
        stockout,
    ),
    Scenario::small(
        "priority-inversion",
        "a job of higher priority takes all four machines of another",
        inversion,
    ),
    Scenario::small(
        "withdrawal",
        "32 machines are given back when nobody needs them any more",
        withdrawal,
    ),
    Scenario::small(
        "provider-configure-failure",
        "one Configure fails: another machine is taken, the broken one stays Failed",
        configure_failure,
    ),
    Scenario::small(
        "drain-failure-withdrawal",
        "one Drain fails while a cluster withdraws",
        drain_failure,
    ),
];

const GPU: Size = Size::gpu(64, 256, 8);

/// The first machine of the pool: the one that is taken first, and that fails where one does.
const FIRST: &str = "gpu-0000";

/// A cluster that wants so many whole GPU machines.
fn job(name: &str, machines: u32, priority: i32) -> ClusterPlan {
    let wanted = work(GPU, machines)
        .priority(priority)
        .penalties(8192.0, 1e9);
    ClusterPlan::new(name, vec![wanted.build()])
}

fn fleet(idle: u32, clusters: Vec<ClusterPlan>) -> Plan {
    let stages = Stages {
        repair: crate::dice::Latency::NONE,
        ..Stages::CLOUD
    };
    Plan {
        machines: pool("gpu", GPU, idle).kind("a3-highgpu-8g").owned().build(),
        clusters,
        stages,
        calm: Moment(minutes(10)),
        rest_within: minutes(60),
        ..Plan::default()
    }
}

fn training_job(_: &mut Dice) -> Plan {
    Plan {
        gates: vec![
            Gate::Serving(0, Count::exactly(64)),
            Gate::Short(Count::NONE),
            Gate::Pending(0, Count::NONE),
        ],
        ..fleet(64, vec![job("a", 64, 1_000_000)])
    }
}

fn stockout(_: &mut Dice) -> Plan {
    Plan {
        gates: vec![
            Gate::Serving(0, Count::exactly(32)),
            Gate::Short(Count::exactly(1)),
            Gate::Pending(0, Count::exactly(32)),
            Gate::Judge(|world| {
                let core = world.process().map(|one| &one.core);
                let mut short = core.into_iter().flat_map(|core| core.shortfalls());
                let missing = short.next().map(|one| one.deficit.get("nvidia.com/gpu"));
                match missing.map(format_milli).as_deref() {
                    Some("256") => Ok(()),
                    other => Err(format!("{other:?} GPUs are missing, not 256")),
                }
            }),
        ],
        ..fleet(32, vec![job("a", 64, 1_000_000)])
    }
}

fn inversion(dice: &mut Dice) -> Plan {
    let when = Moment(seconds(dice.between(60, 240)));
    let grow = Change::Scale {
        cluster: 1,
        work: 0,
        pods: 4,
    };
    Plan {
        timeline: vec![(when, grow)],
        calm: Moment(minutes(10)),
        gates: vec![
            Gate::Serving(0, Count::NONE),
            Gate::Serving(1, Count::exactly(4)),
            Gate::Short(Count::exactly(1)),
        ],
        ..fleet(4, vec![job("a", 4, 100_000), job("b", 0, 1_000_000)])
    }
}

fn withdrawal(dice: &mut Dice) -> Plan {
    let when = Moment(seconds(dice.between(60, 240)));
    let shrink = Change::ScaleAll {
        cluster: 0,
        per_mille: 0,
    };
    Plan {
        timeline: vec![(when, shrink)],
        gates: vec![
            Gate::InState(State::Idle, Count::exactly(32)),
            Gate::Short(Count::NONE),
        ],
        ..fleet(32, vec![job("a", 32, 1000)])
    }
}

fn configure_failure(_: &mut Dice) -> Plan {
    let fails = Change::FailNext {
        kind: Transition::Configure,
        machine: Some(FIRST),
        count: 1,
    };
    Plan {
        timeline: vec![(Moment::START, fails)],
        gates: vec![
            Gate::Serving(0, Count::exactly(3)),
            Gate::InState(State::Failed, Count::exactly(1)),
            Gate::FailedWithError(FIRST),
            Gate::Short(Count::NONE),
        ],
        ..fleet(4, vec![job("a", 3, 1000)])
    }
}

fn drain_failure(dice: &mut Dice) -> Plan {
    let when = Moment(seconds(dice.between(60, 240)));
    let fails = Change::FailNext {
        kind: Transition::Drain,
        machine: Some(FIRST),
        count: 1,
    };
    let shrink = Change::ScaleAll {
        cluster: 0,
        per_mille: 0,
    };
    Plan {
        timeline: vec![(when, fails), (when, shrink)],
        gates: vec![
            Gate::InState(State::Idle, Count::exactly(7)),
            Gate::InState(State::Failed, Count::exactly(1)),
            Gate::FailedWithError(FIRST),
        ],
        ..fleet(8, vec![job("a", 8, 1000)])
    }
}
