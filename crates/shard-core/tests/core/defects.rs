//! Every defect changes an outcome: a switch that does nothing would make a failing arm worthless.
//!
//! Each scenario runs twice, with the rule kept and with the old mistake, and says what differs.

use crate::support::{FULL, Refusal, World, cluster, id};
use bigfleet_model::{ActionKind, Machine, State};
use bigfleet_shard_core::{Code, Defect, Features, Rails, Record, ShardConfig};

/// What a scenario shows with the rule kept, and with the mistake.
fn arms<T>(defect: Defect, scenario: impl Fn(ShardConfig) -> T) -> (T, T) {
    let kept = ShardConfig::undamped("s", "p");
    assert_eq!(kept.defect, None);
    assert_eq!(ShardConfig::production("s", "p").defect, None);
    let broken = ShardConfig {
        defect: Some(defect),
        ..kept.clone()
    };
    (scenario(kept), scenario(broken))
}

fn count(world: &World, kind: ActionKind) -> u64 {
    let actions = &world.core.counters().actions;
    actions.get(&kind).copied().unwrap_or(0)
}

/// Whose machine it is, by its commitment.
fn owner(world: &World, name: &str) -> Option<String> {
    let attribution = world
        .core
        .machine(&id(name))
        .and_then(Machine::attribution)?;
    Some(attribution.cluster.to_string())
}

fn started(config: ShardConfig, machines: &str, clusters: &[&str]) -> World {
    let mut world = World::new(config, machines);
    for name in clusters {
        world.connect(name, FULL);
    }
    world.run(1.0);
    world
}

#[test]
fn all_defects_are_listed_once() {
    let mut all = Defect::ALL.to_vec();
    all.dedup();
    assert!(all.is_sorted());
    assert_eq!(all.len(), Defect::ALL.len());
}

#[test]
fn attribution_lost_at_maturing_gives_the_machine_to_somebody_else() {
    let served = arms(Defect::AttributionLostAtMaturing, |config| {
        let mut world = started(config, "s1 Speculative cpu=4 $1", &["a", "b"]);
        world.provider.latency = 30.0;
        world.roll_up("a", "cpu=4 prio=10");
        world.run(5.0);
        world.roll_up("b", "cpu=4 prio=1000");
        world.run(40.0);
        let machine = world.core.machine(&id("s1")).unwrap();
        machine.cluster().map(ToString::to_string)
    });
    assert_eq!(served, (Some("a".to_owned()), Some("b".to_owned())));
}

#[test]
fn claims_not_committed_leave_the_machine_without_an_owner() {
    let owners = arms(Defect::ClaimsNotCommitted, |config| {
        let mut world = started(config, "m1 Configured a cpu=4 $1", &["a"]);
        world.roll_up("a", "cpu=4");
        world.run(1.0);
        owner(&world, "m1")
    });
    assert_eq!(owners, (Some("a".to_owned()), None));
}

#[test]
fn roll_up_arrival_reset_lets_the_patient_wait_longer() {
    let first = arms(Defect::RollUpArrivalReset, |config| {
        let mut world = started(config, "x1 Speculative cpu=1 $1", &["a", "b"]);
        world.roll_up("b", "cpu=4 min:cpu=4");
        world.run(5.0);
        world.roll_up("a", "cpu=4 min:cpu=4");
        world.run(5.0);
        world.roll_up("b", "cpu=4 min:cpu=4");
        let more = World::new(ShardConfig::undamped("s", "p"), "m1 Idle cpu=4 $1");
        world.provider.machines.extend(more.provider.machines);
        world.run(20.0);
        owner(&world, "m1").unwrap()
    });
    assert_eq!(first, ("b".to_owned(), "a".to_owned()));
}

#[test]
fn first_roll_up_gate_off_reclaims_before_the_cluster_has_spoken() {
    let reclaims = arms(Defect::FirstRollUpGateOff, |config| {
        let mut world = started(config, "m1..m5 Configured a cpu=4 $1", &["a"]);
        world.run(60.0);
        count(&world, ActionKind::Reclaim)
    });
    assert_eq!(reclaims, (0, 5));
}

#[test]
fn truncated_list_believed_empties_the_ledger() {
    for fails in [false, true] {
        let known = arms(Defect::TruncatedListBelieved, |config| {
            let mut world = started(config, "m01..m40 Configured a cpu=4 $1", &["a"]);
            world.provider.hidden = (10..30).map(|n| id(&format!("m{n}"))).collect();
            world.provider.list_fails = fails;
            world.run(15.0);
            world.core.machines().count()
        });
        let left = if fails { 0 } else { 20 };
        assert_eq!(known, (40, left), "a List that fails: {fails}");
    }
}

#[test]
fn create_error_burns_the_slot() {
    let served = arms(Defect::CreateErrorBurnsSlot, |config| {
        let mut world = started(config, "s1 Speculative cpu=4 $1", &["a"]);
        let refusals = vec![Refusal::Code(Code::ResourceExhausted)];
        world.provider.refuse.insert(id("s1"), refusals);
        world.roll_up("a", "cpu=4");
        world.run(600.0);
        world.provider.serving().get("a").copied()
    });
    assert_eq!(served, (Some(1), None));
}

#[test]
fn commit_after_calling_buys_twice_for_one_need() {
    let seen = arms(Defect::CommitAfterCalling, |config| {
        let mut world = started(config, "s1..s2 Speculative cpu=4 $1", &["a", "b"]);
        world.provider.answer_after = 20.0;
        world.roll_up("a", "cpu=4 prio=10");
        world.run(1.0);
        let state = world.state("s1");
        world.roll_up("b", "cpu=4 prio=1000");
        world.run(5.0);
        let bought_for = |record: &Record| match record {
            Record::Machine { machine, kept } if *machine == id("s2") => {
                let need = kept.as_ref()?.operation.as_ref()?.need.clone()?;
                Some(need.cluster.to_string())
            }
            _ => None,
        };
        (state, world.disk.records().iter().find_map(bought_for))
    });
    let kept = (State::Creating, Some("b".to_owned()));
    let broken = (State::Speculative, Some("a".to_owned()));
    assert_eq!(seen, (kept, broken));
}

#[test]
fn intents_that_are_not_durable_are_forgotten() {
    let owners = arms(Defect::IntentNotDurable, |config| {
        let mut world = started(config.clone(), "s1 Speculative cpu=4 $1", &["a"]);
        world.provider.latency = 60.0;
        world.roll_up("a", "cpu=4");
        world.run(10.0);
        let disk = world.disk.records().to_vec();
        let mut again = World::around(config, world.provider.clone(), 2, disk, world.now);
        again.run(5.0);
        owner(&again, "s1")
    });
    assert_eq!(owners, (Some("a".to_owned()), None));
}

#[test]
fn fencing_not_checked_goes_on_calling() {
    let calls = arms(Defect::FencingNotChecked, |config| {
        let mut world = started(config, "s1..s2 Speculative cpu=4 $1", &["a"]);
        let fenced = vec![Refusal::Code(Code::FailedPrecondition)];
        world.provider.refuse.insert(id("s1"), fenced);
        world.roll_up("a", "cpu=4");
        world.run(60.0);
        (world.core.is_ready(), world.calls().len())
    });
    assert_eq!(calls, ((false, 1), (true, 3)));
}

#[test]
fn reclaim_cap_off_drains_everything_at_once() {
    let reclaims = arms(Defect::ReclaimCapOff, |config| {
        let railed = ShardConfig {
            rails: Rails {
                reclaim_cap_per_million: 50_000,
                roll_up_guard: false,
            },
            ..config
        };
        let mut world = started(railed, "m01..m40 Configured a cpu=4 $1", &["a"]);
        world.roll_up("a", "");
        world.run(1.0);
        count(&world, ActionKind::Reclaim)
    });
    assert_eq!(reclaims, (2, 40));
}

/// SH-30: of 40 machines two may go in ten seconds; half of that later the process dies.
#[test]
fn reclaims_forgotten_reclaims_as_many_again_after_each_start() {
    let reclaims = arms(Defect::ReclaimsForgotten, |config| {
        let railed = ShardConfig {
            rails: Rails {
                reclaim_cap_per_million: 50_000,
                roll_up_guard: false,
            },
            ..config
        };
        let machines = "m01..m40 Configured a cpu=4 $1";
        let mut world = started(railed.clone(), machines, &["a"]);
        let mut drained = Vec::new();
        for epoch in 2..=3 {
            world.roll_up("a", "cpu=112");
            world.run(3.0);
            drained.push(40 - world.provider.serving()["a"]);
            let disk = world.disk.records().to_vec();
            let provider = world.provider.clone();
            world = World::around(railed.clone(), provider, epoch, disk, world.now);
            world.connect("a", FULL);
            world.run(1.0);
        }
        world.roll_up("a", "cpu=112");
        world.run(12.0);
        drained.push(40 - world.provider.serving()["a"]);
        drained
    });
    assert_eq!(reclaims, (vec![2, 2, 3], vec![2, 3, 5]));
}

/// SH-31: nine rows and many machines; three empty roll-ups within a second, and a withdrawal in steps.
#[test]
fn a_hasty_roll_up_guard_believes_three_reports_in_a_second_and_small_steps() {
    let held = |steps: [usize; 3], machines: u32| {
        arms(Defect::HastyRollUpGuard, |config| {
            let railed = ShardConfig {
                rails: Rails {
                    reclaim_cap_per_million: 0,
                    roll_up_guard: true,
                },
                ..config
            };
            let served = format!("m01..m{machines} Configured a cpu=4 $1");
            let mut world = started(railed, &served, &["a"]);
            let rows = |count: usize| -> String {
                let row = |n| format!("cpu=16 k{n}=DoesNotExist\n");
                (0..count).map(row).collect()
            };
            let first = if machines < 20 { 40 } else { 9 };
            world.roll_up("a", &rows(first));
            for step in steps {
                world.roll_up("a", &rows(step));
                world.run(0.2);
            }
            world.core.rails().held.len()
        })
    };
    assert_eq!(held([0, 0, 0], 15), (1, 0), "no faster than twenty seconds");
    assert_eq!(held([5, 1, 0], 15), (1, 0), "in steps");
    assert_eq!(
        held([9, 9, 0], 40),
        (1, 0),
        "nine rows that many machines serve"
    );
}

/// SH-32: ten machines of four cpus; a row may ask for 4,000.
#[test]
fn a_unit_mistake_that_is_believed_takes_everything() {
    let seen = arms(Defect::UnitMistakeBelieved, |config| {
        let railed = ShardConfig {
            rails: Rails {
                reclaim_cap_per_million: 0,
                roll_up_guard: true,
            },
            ..config
        };
        let machines = "m1..m9 Configured b cpu=4 $1\n x1 Configured a cpu=4 $1";
        let mut world = started(railed, machines, &["a", "b"]);
        world.roll_up("b", "cpu=36 prio=100");
        world.roll_up("a", "cpu=4 prio=1000000");
        world.run(1.0);
        world.roll_up("a", "cpu=9000000000000000000 prio=1000000");
        world.run(5.0);
        count(&world, ActionKind::Preempt)
    });
    assert_eq!(seen, (0, 9));
}

/// SH-32: what is said long enough is meant, and mending it is not doubted.
#[test]
fn a_unit_mistake_that_stays_is_believed_and_mended_at_once() {
    let machines = "m1..m9 Configured b cpu=4 $1\n x1 Configured a cpu=4 $1";
    let mut world = started(ShardConfig::production("s", "p"), machines, &["a", "b"]);
    world.roll_up("a", "cpu=4");
    for expected in [1, 2, 0] {
        world.roll_up("a", "cpu=4001");
        assert_eq!(world.core.counters().rollups_held[&cluster("a")], expected);
        if let Some(held) = world.core.rails().held.first() {
            let why = "a row asks for 4001 cpu, and all machines of the shard together have 40";
            assert_eq!(held.why, why);
        }
        world.run(10.0);
    }
    world.roll_up("a", "cpu=4");
    assert!(world.core.rails().held.is_empty());
    world.roll_up("a", "cpu=4000 gpu=9000000");
    assert!(
        world.core.rails().held.is_empty(),
        "a hundred times what there is, and something no machine has"
    );
}

/// SH-33: a data directory that is lost or an old copy, beside machines that say which epochs were used.
#[test]
fn a_twin_that_is_not_seen_acts() {
    let seen = arms(Defect::TwinNotSeen, |config| {
        let mut world = started(config.clone(), "m1..m4 Idle cpu=4 $1", &["a"]);
        let (provider, disk) = (world.provider.clone(), world.disk.records().to_vec());
        world = World::around(config.clone(), provider, 7, disk, world.now);
        world.connect("a", FULL);
        world.roll_up("a", "cpu=4");
        world.run(20.0);
        [7, 6, 8].map(|epoch| {
            let provider = world.provider.clone();
            let mut twin = World::around(config.clone(), provider, epoch, Vec::new(), world.now);
            twin.connect("a", FULL);
            twin.run(1.0);
            twin.roll_up("a", "cpu=8");
            twin.run(20.0);
            (
                twin.core.is_ready(),
                twin.calls().len(),
                twin.core.rails().twin,
            )
        })
    });
    let acts = (true, 1, None);
    let kept = [(false, 0, Some((7, 7))), (false, 0, Some((7, 6))), acts];
    assert_eq!(seen, (kept, [acts; 3]));
}

#[test]
fn creating_not_credited_buys_again_and_again() {
    let bought = arms(Defect::CreatingNotCredited, |config| {
        let mut world = started(config, "s1..s9 Speculative cpu=4 $1", &["a"]);
        world.provider.latency = 35.0;
        world.roll_up("a", "cpu=4");
        world.run(60.0);
        2 <= count(&world, ActionKind::Provision)
    });
    assert_eq!(bought, (false, true));
}

/// The priority of the Need a machine serves once a second Need has come that sorts before its own.
fn served_first(config: ShardConfig) -> i32 {
    let machines = "g1 Configured a cpu=4 $1\n m1 Idle cpu=4 $2";
    let mut world = started(config, machines, &["a"]);
    world.roll_up("a", "cpu=4 prio=100");
    world.run(20.0);
    world.roll_up("a", "cpu=4 prio=100\n cpu=4 prio=1000");
    world.run(60.0);
    let machine = world.core.machine(&id("g1")).unwrap();
    machine.terms().priority
}

/// EX-RF7 turned round: a Need's machine goes to whoever sorts first.
#[test]
fn credit_by_cluster_only_moves_machines_between_needs() {
    let serves = arms(Defect::CreditByClusterOnly, served_first);
    assert_eq!(serves, (100, 1000));
}

#[test]
fn draining_not_promised_preempts_again_and_again() {
    let preempts = arms(Defect::DrainingNotPromised, |config| {
        let machines = "v1..v4 Configured b cpu=4 $1 stamp=100 own-raw=F,";
        let mut world = World::new(config, machines);
        world.provider.latency = 60.0;
        world.connect("a", FULL);
        world.connect("b", Features::default());
        world.run(1.0);
        world.roll_up("b", "cpu=16 prio=100");
        world.roll_up("a", "cpu=4 prio=1000000");
        world.run(50.0);
        count(&world, ActionKind::Preempt)
    });
    assert_eq!(preempts, (1, 4));
}

/// EX-RF6.
#[test]
fn no_make_before_break_drains_a_machine_before_its_heir_serves() {
    let reclaims = arms(Defect::NoMakeBeforeBreak, |config| {
        let machines = "a1 Configured a cpu=4 $3\n i1 Idle cpu=8 $1";
        let mut world = started(config, machines, &["a"]);
        world.provider.latency = 60.0;
        world.roll_up("a", "cpu=8");
        world.run(30.0);
        let machine = world.core.machine(&id("i1")).unwrap();
        assert_eq!(machine.state(), State::Configuring);
        assert!(world.core.is_cluster_ready(&cluster("a")));
        count(&world, ActionKind::Reclaim)
    });
    assert_eq!(reclaims, (0, 1));
}

/// EX-RF7 once more: what the ledger says is whose is not asked first.
#[test]
fn no_own_first_moves_machines_between_needs() {
    let serves = arms(Defect::NoOwnFirst, served_first);
    assert_eq!(serves, (100, 1000));
}
