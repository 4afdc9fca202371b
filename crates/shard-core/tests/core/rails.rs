//! Rails, pause, dry-run, admission: what limits what leaves (shard.md §5, SH-2).

use crate::support::{FULL, Refusal, World, at, cluster, id, world};
use bigfleet_model::{ActionKind, ClusterId, State};
use bigfleet_shard_core::{
    Code, Effect, Event, Frame, OperationId, Outcome, PauseNote, PausedBy, ProviderCall, Record,
    Scope, ShardConfig,
};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// EX-SR1, in a world: 40 Configured, 12 excess, 5 % → 2 now, 10 capped, and no faster by waking.
#[test]
fn ex_sr1_two_of_twelve_are_reclaimed() {
    let mut world = World::new(
        ShardConfig::production("s", "p"),
        "m01..m40 Configured a cpu=4 $1",
    );
    world.drains = false;
    world.ask("a", "cpu=112", 1.0);
    let draining = |world: &World| {
        let draining = world
            .core
            .machines()
            .filter(|one| one.state() == State::Draining);
        draining.count()
    };
    assert_eq!(draining(&world), 2);
    assert_eq!(world.core.counters().reclaims_capped, 10);
    for _ in 0..5 {
        world.tell(Event::CycleDue);
    }
    assert_eq!(draining(&world), 2, "woken cycles do not drain faster");
    world.run(10.0);
    assert!((3..=4).contains(&draining(&world)));
}

/// SR-3, SH-8: a held roll-up keeps the demand, is acknowledged, and makes nobody ready.
#[test]
fn a_held_roll_up_keeps_the_last_demand() {
    let mut world = World::new(
        ShardConfig::production("s", "p"),
        "m01..m20 Configured a cpu=4 $1",
    );
    let rows: String = (1..=20)
        .map(|n| format!("cpu=4 k{n}=DoesNotExist\n"))
        .collect();
    world.connect("a", FULL);
    world.run(1.0);
    world.roll_up("a", "");
    assert!(
        !world.core.is_cluster_ready(&cluster("a")),
        "20 machines serve nobody?"
    );
    world.roll_up("a", &rows);
    assert!(world.core.is_cluster_ready(&cluster("a")));
    for _ in 0..2 {
        world.roll_up("a", "");
        world.run(10.0);
    }
    assert_eq!(world.core.counters().rollups_held[&cluster("a")], 2);
    assert_eq!(
        world.core.counters().actions.get(&ActionKind::Reclaim),
        None
    );
    world.roll_up("a", "");
    world.run(1.0);
    assert_eq!(world.core.counters().rollups_held[&cluster("a")], 0);
    assert_eq!(
        world.core.counters().actions[&ActionKind::Reclaim],
        1,
        "rail 1 still holds"
    );
}

/// SH-40: what the gate let go and nobody wrote before it closed waits behind it, and leaves as what it was.
#[test]
fn a_call_that_was_withdrawn_by_a_pause_keeps_its_intent() {
    let mut world = world("s1..s2 Speculative cpu=4 $1");
    world.provider.answer_after = 5.0;
    for machine in ["s1", "s2"] {
        let refusals = vec![Refusal::NeverSent];
        world.provider.refuse.insert(id(machine), refusals);
    }
    world.connect("a", FULL);
    world.run(1.0);
    world.roll_up("a", "cpu=4");
    world.run(1.0);
    let called = world.calls();
    assert_eq!(called.len(), 1, "{called:?}");
    let (by, scope) = (PausedBy::Admin, Scope::All);
    world.tell(Event::Pause {
        by,
        scope: scope.clone(),
        since: None,
        until: None,
        note: PauseNote::default(),
    });
    world.run(30.0);
    assert_eq!(world.core.counters().rollbacks, 0);
    assert_eq!(world.outcomes(), []);
    assert_eq!(world.core.gauges().in_flight, 1, "it is still meant");
    assert_eq!(world.calls(), called, "nothing left meanwhile");
    world.provider.refuse.clear();
    world.tell(Event::Resume { by, scope });
    world.run(1.0);
    let again = [called.clone(), called].concat();
    assert_eq!(world.calls(), again, "the same machine, at once");
}

/// SR-4: paused, the cycle runs, and what it decides is counted, audited and dropped.
#[test]
fn a_paused_shard_decides_and_commits_nothing() {
    let mut world = world("m1 Idle cpu=4 $1");
    world.tell(Event::Pause {
        by: PausedBy::Configuration,
        scope: Scope::All,
        since: None,
        until: None,
        note: PauseNote::default(),
    });
    world.ask("a", "cpu=4", 20.0);
    assert_eq!(world.state("m1"), State::Idle);
    assert!(1 <= world.core.counters().suppressed[&ActionKind::Bootstrap]);
    assert_eq!(world.outcomes()[0], ("m1".to_owned(), Outcome::Suppressed));
    assert!(world.core.counters().actions.is_empty());
    world.tell(Event::Resume {
        by: PausedBy::Admin,
        scope: Scope::All,
    });
    world.run(10.0);
    assert_eq!(
        world.state("m1"),
        State::Idle,
        "an admin does not lift the file's pause"
    );
    world.tell(Event::Resume {
        by: PausedBy::Configuration,
        scope: Scope::All,
    });
    world.run(10.0);
    assert_eq!(world.state("m1"), State::Configured);
}

/// SR-5.
#[test]
fn a_dry_run_shows_and_does_nothing() {
    let mut config = ShardConfig::undamped("s", "p");
    config.dry_run = true;
    let mut world = World::new(config, "m1 Idle cpu=4 $1");
    world.ask("a", "cpu=4", 20.0);
    assert_eq!(world.state("m1"), State::Idle);
    assert!(world.calls().is_empty());
    assert!(1 <= world.core.counters().dry_run[&ActionKind::Bootstrap]);
}

/// SH-16: what was committed before the pause waits too, and its deadline stands still.
#[test]
fn a_deadline_stands_still_while_paused() {
    let mut world = world("m1 Configured a cpu=4 $1");
    world.drains = false;
    world.ask("a", "", 100.0);
    world.tell(Event::Pause {
        by: PausedBy::Admin,
        scope: Scope::Cluster(cluster("a")),
        since: None,
        until: Some(at(world.now + 5000.0)),
        note: PauseNote::default(),
    });
    world.run(4000.0);
    assert_eq!(
        world.state("m1"),
        State::Draining,
        "not cancelled while paused"
    );
    world.run(1400.0);
    assert_eq!(
        world.state("m1"),
        State::Draining,
        "400 s of its grace are left after 5000"
    );
    world.run(200.0);
    assert!(
        world
            .outcomes()
            .contains(&("m1".to_owned(), Outcome::DrainBlocked))
    );
}

/// SH-2: more is decided than the wire takes; nothing committed is dropped.
#[test]
fn a_backlog_waits_for_slots_and_buys_nothing_extra() {
    let mut config = ShardConfig::undamped("s", "p");
    config.execute_concurrency = 1;
    let mut world = World::new(config, "s001..s150 Speculative cpu=4 $1");
    world.provider.answer_after = 1.0;
    world.ask("a", "cpu=400", 30.0);
    assert!(world.core.gauges().on_wire <= 1);
    assert_eq!(world.core.counters().actions[&ActionKind::Provision], 100);
    world.run(400.0);
    assert_eq!(world.provider.creates(), 100);
    assert_eq!(world.provider.serving()["a"], 100);
}

/// CY-6: the cycle's own limit defers, wakes, and starves nobody.
#[test]
fn a_cycle_limit_defers_and_wakes() {
    let mut config = ShardConfig::undamped("s", "p");
    config.max_actions_per_cycle = 2;
    let mut world = World::new(config, "m1..m7 Idle cpu=4 $1");
    world.ask("a", "cpu=28", 2.0);
    assert_eq!(
        world.provider.serving()["a"],
        7,
        "well before the next interval"
    );
    assert!(0 < world.core.counters().deferred);
}

/// Which clusters an operation concerns, from what was written before it left.
fn concerned(disk: &[Record]) -> BTreeMap<OperationId, BTreeSet<ClusterId>> {
    let mut concerned: BTreeMap<OperationId, BTreeSet<ClusterId>> = BTreeMap::new();
    for record in disk {
        if let Record::Machine {
            kept: Some(kept), ..
        } = record
            && let Some(operation) = &kept.operation
        {
            let need = operation.need.as_ref().map(|need| need.cluster.clone());
            let known = concerned.entry(operation.id).or_default();
            known.extend(operation.cluster.iter().cloned().chain(need));
        }
    }
    concerned
}

fn scope(number: u8) -> Scope {
    match number % 4 {
        0 => Scope::All,
        1 => Scope::Provider("p".to_owned()),
        2 => Scope::Cluster(cluster("a")),
        _ => Scope::Cluster(cluster("b")),
    }
}

/// One step of a random history.
fn step(world: &mut World, paused: &mut BTreeSet<Scope>, (what, how): (u8, u8)) {
    let name = ["a", "b"][usize::from(how % 2)];
    let connected = world.sessions.contains_key(&cluster(name));
    match what % 8 {
        0 | 1 if connected => {
            let cpu = u32::from(how / 2 % 8) * 4;
            let prio = if how % 3 == 0 { 1_000_000 } else { 100 };
            let rows = if cpu == 0 {
                String::new()
            } else {
                format!("cpu={cpu} prio={prio}")
            };
            world.roll_up(name, &rows);
        }
        2 => {
            if how % 4 == 0 && connected {
                world.disconnect(name);
            } else {
                world.connect(name, FULL);
            }
        }
        3 => {
            let scope = scope(how / 2);
            paused.insert(scope.clone());
            world.tell(Event::Pause {
                by: PausedBy::Admin,
                scope,
                since: None,
                until: None,
                note: PauseNote::default(),
            });
        }
        4 => {
            let lifted: Vec<Scope> = paused.iter().cloned().collect();
            for scope in lifted {
                paused.remove(&scope);
                world.tell(Event::Resume {
                    by: PausedBy::Admin,
                    scope,
                });
            }
        }
        5 => world.provider.latency = f64::from(how % 40),
        6 => {
            let ids: Vec<_> = world.provider.machines.keys().cloned().collect();
            let machine = &ids[usize::from(how) % ids.len()];
            let there = world.provider.machines.get_mut(machine).unwrap();
            there.become_state(State::Failed);
            there.due = None;
        }
        _ => world.run(f64::from(how % 60)),
    }
}

fn leaves_paused(world: &World, paused: &BTreeSet<Scope>) -> Option<Effect> {
    let concerned = concerned(world.disk.records());
    let of_session = |session| {
        let mut known = world.sessions.iter();
        known
            .find(|(_, (id, _))| *id == session)
            .map(|(name, _)| name.clone())
    };
    let all = paused.contains(&Scope::All) || paused.contains(&Scope::Provider("p".to_owned()));
    let breach = |effect: &Effect| {
        let mut clusters = BTreeSet::new();
        match effect {
            Effect::Call {
                operation, call, ..
            } => {
                clusters.extend(concerned[operation].iter().cloned());
                if let ProviderCall::Configure { cluster, .. } = call {
                    clusters.insert(cluster.clone());
                }
            }
            Effect::Send {
                session,
                frame: Frame::Reclaim { .. } | Frame::BootstrapRequest { .. },
            } => clusters.extend(of_session(*session)),
            _ => return false,
        }
        all || clusters
            .into_iter()
            .any(|one| paused.contains(&Scope::Cluster(one)))
    };
    world
        .effects
        .iter()
        .map(|(_, one)| one)
        .find(|one| breach(one))
        .cloned()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// SH-16: whatever the history, no effect of a paused scope leaves; and what was recorded
    /// replays to the same effects, byte for byte.
    #[test]
    fn no_effect_of_a_paused_scope_leaves(
        steps in prop::collection::vec((any::<u8>(), any::<u8>()), 1..40),
    ) {
        let machines = "m1..m4 Idle cpu=4 $1 OnDemand
             s1..s6 Speculative cpu=4 $2 type=t zone=z
             x1..x3 Configured a cpu=4 $1";
        let mut world = world(machines);
        world.connect("a", FULL);
        let mut paused = BTreeSet::new();
        for one in steps {
            world.clear();
            // An effect of this step is judged by the pauses before it and after it.
            let before = paused.clone();
            step(&mut world, &mut paused, one);
            let throughout: BTreeSet<Scope> = before.intersection(&paused).cloned().collect();
            prop_assert_eq!(leaves_paused(&world, &throughout), None);
        }
        let config = ShardConfig::undamped("s", "p");
        let mut again = bigfleet_shard_core::ShardCore::new(config, 1, at(0.0)).unwrap();
        let mut effects = Vec::new();
        for (now, event) in &world.history {
            again.handle(*now, event.clone(), &mut effects);
        }
        prop_assert_eq!(format!("{effects:?}"), format!("{:?}", world.every));
    }

    /// From any history, restarts and lying providers included, the shard becomes quiet once the
    /// faults stop, with every demand covered or visibly short.
    #[test]
    fn once_the_faults_stop_the_shard_is_quiet(
        steps in prop::collection::vec((any::<u8>(), any::<u8>()), 1..40),
    ) {
        let machines = "m1..m4 Idle cpu=4 $1
             s1..s6 Speculative cpu=4 $2 type=t zone=z
             x1..x3 Configured a cpu=4 $1";
        let mut world = world(machines);
        world.connect("a", FULL);
        let mut paused = BTreeSet::new();
        for (what, how) in steps {
            match what % 16 {
                8 => {
                    let torn = usize::from(how) % (world.disk.unsure() + 1);
                    let disk = world.disk.found(torn);
                    let config = ShardConfig::undamped("s", "p");
                    let epoch = world.core.epoch() + 1;
                    let provider = world.provider.clone();
                    world = World::around(config, provider, epoch, disk, world.now + 1.0);
                }
                9 | 10 => {
                    let ids: Vec<_> = world.provider.machines.keys().cloned().collect();
                    let machine = ids[usize::from(how) % ids.len()].clone();
                    let code = [Code::Unavailable, Code::Internal, Code::ResourceExhausted,
                        Code::DeadlineExceeded, Code::InvalidArgument][usize::from(how) % 5];
                    let refusal = match how / 5 % 3 {
                        0 => Refusal::Lost(code),
                        1 => Refusal::Code(code),
                        _ => Refusal::NeverSent,
                    };
                    world.provider.refuse.entry(machine).or_default().push(refusal);
                }
                11 => world.provider.list_fails = how % 2 == 0,
                12 => world.blobs = how % 2 == 0,
                13 => world.drains = how % 2 == 0,
                14 => world.disk_delay = Some(f64::from(how % 3)),
                _ => step(&mut world, &mut paused, (what, how)),
            }
        }
        // Also those that were lifted in a process which did not live to write it down.
        for pause in world.core.rails().pauses {
            world.tell(Event::Resume { by: PausedBy::Admin, scope: pause.scope });
        }
        world.provider.refuse.clear();
        world.provider.list_fails = false;
        world.provider.latency = 5.0;
        (world.blobs, world.drains, world.disk_delay) = (true, true, Some(0.0));
        for name in ["a", "b"] {
            world.connect(name, FULL);
            world.roll_up(name, "cpu=8 prio=5");
        }
        // Beyond every backoff: a reclaim that was given up waits for up to two hours.
        world.run(9000.0);
        let gauges = world.core.gauges();
        prop_assert_eq!(gauges.in_flight, 0);
        world.clear();
        world.run(300.0);
        prop_assert_eq!(world.calls(), Vec::<String>::new());
        let served = world.provider.serving();
        let covered = ["a", "b"].iter().all(|name| served.get(*name) == Some(&2));
        prop_assert!(covered || 0 < world.core.shortfalls().count(), "{:?}", served);
        prop_assert_eq!(world.core.machines().count(), world.provider.machines.len());
        for machine in world.core.machines() {
            let there = &world.provider.machines[machine.id()].machine;
            prop_assert_eq!(machine.state(), there.state());
            prop_assert_eq!(machine.cluster(), there.cluster());
        }
    }
}
