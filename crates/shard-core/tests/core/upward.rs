//! Reports and instructions (shard.md §10), what admins say (shard.md §11), and what is counted of gangs (shard.md §8).

use crate::support::{FULL, World, at, cluster, crowded, id, world};
use bigfleet_model::{ActionKind, State};
use bigfleet_shard_core::{
    Answer, Disposition, Domain, Event, Instruction, Order, Outcome, PauseNote, PausedBy, Scope,
    ShardConfig, ShardCore,
};

fn domain(value: &str) -> Domain {
    Domain {
        key: "rack".to_owned(),
        value: value.to_owned(),
    }
}

fn instruct(world: &mut World, term: u64, id: &str, order: Order) {
    let instruction = Instruction {
        id: id.to_owned(),
        term,
        sequence: 1,
        order,
    };
    world.tell(Event::Answered(Box::new(Answer {
        term,
        instructions: vec![instruction],
        ..Answer::default()
    })));
}

fn acks(world: &World) -> Vec<(String, Disposition)> {
    let acks = world.core.report().acks.into_iter();
    acks.map(|ack| (ack.id, ack.disposition)).collect()
}

/// EX-CO1: nobody carries reports for an hour; cycles do not change, and acks wait.
#[test]
fn ex_co1_without_anybody_above_cycles_are_the_same_and_acks_wait() {
    let run = |instructed: bool| {
        let mut world = world("s1..s4 Speculative cpu=4 $1");
        world.connect("a", FULL);
        world.run(1.0);
        if instructed {
            instruct(&mut world, 1, "i1", Order::Unknown);
        }
        world.roll_up("a", "cpu=8");
        world.run(3600.0);
        world
    };
    let (alone, told) = (run(false), run(true));
    assert_eq!(alone.calls(), told.calls());
    assert_eq!(
        acks(&told),
        [("i1".to_owned(), Disposition::RejectedInvalid)]
    );
    let mut told = told;
    told.tell(Event::Reported { acks: 1 });
    assert_eq!(acks(&told), []);
}

/// EX-CO2: the same instruction twice is carried out once and acked twice, also across a restart.
#[test]
fn ex_co2_an_instruction_is_carried_out_once_and_acked_each_time() {
    let mut world = world("m1 Idle cpu=4 $1");
    for _ in 0..2 {
        instruct(&mut world, 1, "i1", Order::AssignDomain(domain("r1")));
    }
    let done = ("i1".to_owned(), Disposition::Accepted);
    assert_eq!(acks(&world), [done.clone(), done.clone()]);
    assert_eq!(world.core.report().acks[1].reason, "duplicate-redelivery");
    instruct(&mut world, 1, "i2", Order::UnassignDomain(domain("r1")));
    world.run(10.0);
    let disk = world.disk.records().to_vec();
    let config = ShardConfig::undamped("s", "p");
    let mut again = World::around(config, world.provider.clone(), 2, disk, world.now);
    instruct(&mut again, 1, "i1", Order::AssignDomain(domain("r1")));
    assert_eq!(acks(&again), [done]);
    let report = again.core.report();
    assert_eq!(report.term_seen, 1);
    let held = report.held.unwrap();
    assert!(
        !held.everything && held.domains.is_empty(),
        "an empty set is not everything"
    );
}

/// EX-FE4.
#[test]
fn ex_fe4_an_instruction_of_an_earlier_term_is_stale() {
    let mut world = world("m1 Idle cpu=4 $1");
    world.tell(Event::CoordinatorTerm(5));
    let stale = Instruction {
        id: "i1".to_owned(),
        term: 4,
        sequence: 1,
        order: Order::AssignDomain(domain("r1")),
    };
    world.tell(Event::Answered(Box::new(Answer {
        term: 5,
        instructions: vec![stale],
        ..Answer::default()
    })));
    assert_eq!(
        acks(&world),
        [("i1".to_owned(), Disposition::RejectedStale)]
    );
    let held = world.core.report().held.unwrap();
    assert!(
        held.everything && held.domains.is_empty(),
        "a coordinator that says no scope means everything"
    );
    instruct(&mut world, 4, "i2", Order::Unknown);
    assert_eq!(acks(&world).len(), 1, "a whole answer of an earlier term");
    instruct(&mut world, 6, "i3", Order::Move);
    assert_eq!(
        acks(&world)[1].1,
        Disposition::RejectedInvalid,
        "never ACCEPTED for nothing, and not asked again"
    );
    instruct(&mut world, 6, "", Order::Unknown);
    assert_eq!(acks(&world).len(), 2);
}

/// CO-3.
#[test]
fn the_summary_counts_machines_and_measures_demand_against_what_is_bound() {
    let mut world = world(
        "m1..m2 Configured a cpu=4 $1 type=m5 zone=z1
         i1 Idle cpu=4 $1 type=m5 zone=z2
         s1..s3 Speculative cpu=8 $2 type=c5 zone=z2",
    );
    world.ask("a", "cpu=6", 1.0);
    let summary = world.core.summary();
    assert_eq!((summary.machines, summary.free), (6, 4));
    assert_eq!(
        summary.by_zone,
        [("z1".to_owned(), 2), ("z2".to_owned(), 4)].into()
    );
    let cpu = summary
        .utilisation
        .iter()
        .find(|(name, _)| name.as_str() == "cpu");
    assert_eq!(cpu.map(|(_, part)| *part), Some(0.75));
    let pools: Vec<_> = summary
        .pools
        .iter()
        .map(|pool| (pool.zone.as_str(), pool.idle, pool.speculative))
        .collect();
    assert_eq!(pools, [("z2", 0, 3), ("z2", 1, 0), ("z1", 0, 0)]);
    assert!(world.core.report().acts);
}

/// AD-1: an admin speaks for a cluster whose operator never comes; the rails still hold.
#[test]
fn g14_a_released_cluster_gives_its_machines_back_as_the_rails_allow() {
    let mut world = World::new(
        ShardConfig::production("s", "p"),
        "m01..m40 Configured a cpu=4 $1",
    );
    world.run(600.0);
    assert!(
        world.calls().is_empty(),
        "nobody has said that it wants nothing"
    );
    let release = |machines| Event::ReleaseCluster {
        cluster: cluster("a"),
        machines,
    };
    world.tell(release(39));
    world.run(60.0);
    assert!(world.calls().is_empty(), "another number releases nothing");
    assert!(world.core.may_release(&cluster("a"), 40).is_none());
    world.tell(release(40));
    world.run(1.0);
    assert_eq!(world.calls().len(), 2, "a twentieth");
    // The word stands across a restart.
    let disk = world.disk.records().to_vec();
    let config = ShardConfig::production("s", "p");
    let mut again = World::around(config, world.provider.clone(), 2, disk, world.now);
    again.run(900.0);
    assert!(again.provider.serving().is_empty());
    let session = again.connect("a", FULL);
    assert!(
        again.core.may_release(&cluster("a"), 0).is_some(),
        "it speaks for itself"
    );
    assert!(!again.frames(session).is_empty());
}

/// A Failed machine can be forgotten, and is new once it is something else again.
#[test]
fn a_retired_machine_is_not_taken_in_while_it_is_failed() {
    let mut world = world("m1..m2 Idle cpu=4 $1");
    world.run(1.0);
    let retire = Event::RetireMachine { machine: id("m1") };
    world.tell(retire.clone());
    assert!(world.core.machine(&id("m1")).is_some(), "it is not Failed");
    world.there("m1").become_state(State::Failed);
    world.run(20.0);
    assert_eq!(world.state("m1"), State::Failed);
    world.tell(retire);
    assert_eq!(world.outcomes().last().unwrap().1, Outcome::Retired);
    world.run(60.0);
    assert!(world.core.machine(&id("m1")).is_none());
    world.there("m1").become_state(State::Idle);
    world.run(20.0);
    assert_eq!(world.state("m1"), State::Idle);
    // That it is something else again outlives a restart: the next failure is one to be seen.
    let disk = world.disk.records().to_vec();
    let config = ShardConfig::production("s", "p");
    let mut again = World::around(config, world.provider.clone(), 2, disk, world.now);
    again.run(1.0);
    again.there("m1").become_state(State::Failed);
    again.run(20.0);
    assert_eq!(again.state("m1"), State::Failed);
}

/// shard.md §8: a gang that settles is counted in, and then nothing moves; one that moves house is counted.
#[test]
fn g22_a_gang_that_moves_house_is_counted() {
    let mut world = world("r1..r2 Idle cpu=4 $1 rack=a\n t1..t2 Idle cpu=4 $2 rack=b");
    world.ask("a", "cpu=8 group=g1 rack=Same", 300.0);
    let counters = world.core.counters();
    assert_eq!((counters.gang_joined, counters.gang_left), (2, 0));
    for name in ["r1", "r2"] {
        world.there(name).become_state(State::Failed);
    }
    world.run(300.0);
    let churn: Vec<_> = world.core.gang_churn().values().cloned().collect();
    assert_eq!((churn[0].joined, churn[0].left, churn[0].flips), (4, 2, 1));
    assert_eq!(churn[0].domain, "b");
    world.roll_up("a", "");
    assert!(world.core.gang_churn().is_empty());
}

/// SH-2: one cluster does not take every call slot.
#[test]
fn g15_one_cluster_does_not_take_every_slot() {
    let mut world = crowded(4, "s01..s40 Speculative cpu=4 $1", 60.0);
    world.roll_up("a", "cpu=80");
    world.run(5.0);
    assert_eq!(world.calls().len(), 3);
    world.roll_up("b", "cpu=8");
    world.run(5.0);
    assert_eq!(world.calls().len(), 4);
    world.run(2000.0);
    assert_eq!(
        world.provider.serving(),
        [("a".to_owned(), 20), ("b".to_owned(), 2)].into()
    );
}

/// However many wait for their cluster's share, whoever is paused, and whoever gives up: each gets its turn,
/// and no cluster ever more than its share.
#[test]
fn g15_what_waits_for_its_clusters_share_gets_its_turn() {
    let mut world = crowded(4, "s01..s60 Speculative cpu=4 $1", 2.0);
    world.roll_up("a", "cpu=80");
    world.run(5.0);
    let waiting = world.core.gauges().waiting;
    assert!(10 < waiting, "{waiting} wait");
    let scope = Scope::Cluster(cluster("a"));
    world.tell(Event::Pause {
        by: PausedBy::Admin,
        scope: scope.clone(),
        since: None,
        until: None,
        note: PauseNote::default(),
    });
    world.run(10.0);
    assert_eq!(world.core.gauges().on_wire, 0, "nothing of a leaves");
    world.roll_up("b", "cpu=40");
    world.run(10.0);
    let by = PausedBy::Admin;
    world.tell(Event::Resume { by, scope });
    // Half of them are not wanted any more: they make room without having had a call.
    world.roll_up("a", "cpu=40");
    let most = std::iter::repeat_with(|| {
        world.run(0.5);
        world.core.gauges().on_wire
    });
    assert!(most.take(400).all(|on_wire| on_wire <= 4));
    assert_eq!(
        world.provider.serving(),
        [("a".to_owned(), 10), ("b".to_owned(), 10)].into()
    );
    assert_eq!(world.core.gauges().waiting, 0);
}

/// AU-3: with the events up to the one an audit record names, the same core says the same again.
#[test]
fn g19_an_audit_record_can_be_replayed() {
    let mut world = world("s1..s3 Speculative cpu=4 $1\n m1 Configured b cpu=4 $1");
    world.provider.latency = 20.0;
    world.connect("a", FULL);
    world.connect("b", FULL);
    world.run(1.0);
    world.roll_up("b", "");
    world.roll_up("a", "cpu=8");
    world.run(200.0);
    let audits: Vec<_> = world.audits().into_iter().cloned().collect();
    assert!(5 <= audits.len());
    for audit in audits {
        let config = ShardConfig::undamped("s", "p");
        let mut core = ShardCore::new(config, audit.epoch, at(0.0)).unwrap();
        let mut effects = Vec::new();
        for (when, event) in &world.history[..audit.event as usize] {
            effects.clear();
            core.handle(*when, event.clone(), &mut effects);
        }
        let wanted = bigfleet_shard_core::Effect::Audit(audit);
        assert!(effects.contains(&wanted), "{wanted:?}");
    }
    assert!(
        world
            .core
            .counters()
            .actions
            .contains_key(&ActionKind::Reclaim)
    );
}
