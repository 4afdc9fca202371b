//! SH-22: what keeps ending badly is tried by one machine at a time, and a cluster's trouble stays its own.

use crate::support::{FULL, Refusal, World, cluster, id};
use bigfleet_model::State;
use bigfleet_shard_core::{
    Code, Defect, Event, JoinStep, NodeFact, PauseNote, PausedBy, Record, Scope, SessionId,
    ShardConfig, Value,
};

fn config(defect: Option<Defect>) -> ShardConfig {
    ShardConfig {
        defect,
        ..ShardConfig::undamped("s", "p")
    }
}

fn failed(world: &World) -> usize {
    let machines = world.provider.machines.values();
    machines
        .filter(|there| there.machine.state() == State::Failed)
        .count()
}

/// Two hundred Idle machines, and whatever is configured for `a` fails.
fn bad_cluster(config: ShardConfig) -> World {
    let mut world = World::new(config, "m001..m200 Idle cpu=4 $1");
    world.provider.latency = 1.0;
    world.provider.fails_for.insert(cluster("a"));
    world.connect("a", FULL);
    world.connect("b", FULL);
    world.run(1.0);
    world
}

fn wanted(machines: u32) -> String {
    format!("cpu={} min:cpu=4", machines * 4)
}

/// A cluster that wants five and gets only Failed ones used up two hundred in a minute, and its neighbour
/// got none.
#[test]
fn a_failing_configure_does_not_burn_the_pool() {
    let burnt = [None, Some(Defect::FailedConfigureForgiven)].map(|defect| {
        let mut world = bad_cluster(config(defect));
        world.roll_up("a", &wanted(5));
        world.run(600.0);
        let burnt = failed(&world);
        world.roll_up("b", &wanted(40));
        world.run(60.0);
        (burnt, world.provider.serving().get("b").copied())
    });
    assert_eq!(burnt, [(10, Some(40)), (200, None)]);
}

#[test]
fn a_budget_is_three_for_one_that_is_missing_and_holds_for_a_day() {
    for (missing, most) in [(1, 3), (2, 4), (5, 10)] {
        let mut world = bad_cluster(config(None));
        world.roll_up("a", &wanted(missing));
        world.run(20_000.0);
        assert_eq!(failed(&world), most, "{missing} are missing");
        let trouble = world.core.join_trouble(&cluster("a")).unwrap();
        assert_eq!((trouble.step, trouble.spent), (JoinStep::Configure, most));
        assert!(trouble.exhausted && trouble.breaker.is_open());
        assert!(trouble.breaker.last_error.contains("broken"), "{trouble:?}");
    }
}

/// One success now and then does not buy a cluster the whole budget once more: what it spends is bounded by
/// what came to serve it, however long its machines come and go.
#[test]
fn a_cluster_of_which_one_in_six_joins_does_not_burn_the_pool() {
    let mut world = bad_cluster(config(None));
    world.provider.one_joins_in = 6;
    for _ in 0..20 {
        world.roll_up("a", &wanted(5));
        world.run(3_000.0);
        world.roll_up("a", "");
        world.run(300.0);
    }
    let (burnt, tried) = (failed(&world), world.provider.configures_to_fail as usize);
    assert!(5 < burnt, "some were tried after the first success");
    assert!(burnt <= 10 + 2 * (tried - burnt), "{burnt} of {tried}");
    assert!(burnt < 40, "{burnt} of 200");
    assert!(world.core.join_trouble(&cluster("a")).unwrap().exhausted);
    world.roll_up("b", &wanted(40));
    world.run(60.0);
    assert_eq!(world.provider.serving().get("b"), Some(&40));
}

/// Quiet at static demand: an exhausted budget is not asked about again and again.
#[test]
fn an_open_breaker_is_quiet() {
    let mut world = bad_cluster(config(None));
    world.roll_up("a", &wanted(5));
    world.run(2_000.0);
    world.clear();
    let restamps = world.core.counters().restamps;
    world.run(2_000.0);
    assert_eq!(world.calls(), Vec::<String>::new());
    assert_eq!(world.core.counters().restamps, restamps);
}

#[test]
fn one_probe_that_succeeds_lets_the_others_follow() {
    let mut world = bad_cluster(config(None));
    world.roll_up("a", &wanted(5));
    world.run(20.0);
    let before = failed(&world);
    assert!(
        (5..=6).contains(&before),
        "five at once, then one: {before}"
    );
    world.provider.fails_for.clear();
    world.run(60.0);
    assert_eq!(world.provider.serving().get("a"), Some(&5));
    assert!(failed(&world) <= before + 1, "one may have been on its way");
    assert!(world.core.rails().bootstraps.is_empty());
    assert!(world.core.join_trouble(&cluster("a")).is_none());
}

/// What was used up and is supply again was not used up; and a person may say: try afresh.
#[test]
fn a_slot_that_is_repaired_or_a_person_lets_a_cluster_go_on() {
    let mut world = bad_cluster(config(None));
    world.roll_up("a", &wanted(1));
    world.run(2_000.0);
    assert_eq!(failed(&world), 3);
    let numbers = world.core.numbers();
    let oldest = numbers
        .iter()
        .find(|one| one.name == "bigfleet_shard_failed_oldest_seconds");
    let Value::Gauge(oldest) = oldest.unwrap().value else {
        panic!("{oldest:?}");
    };
    assert!((1_900.0..2_000.0).contains(&oldest), "it ages: {oldest}");
    let broken = world.provider.machines.values_mut();
    let mut broken = broken.filter(|there| there.machine.state() == State::Failed);
    broken.next().unwrap().become_state(State::Idle);
    world.run(700.0);
    assert_eq!(failed(&world), 3, "one was repaired, and one was tried");

    let scope = Scope::Cluster(cluster("a"));
    world.provider.fails_for.clear();
    world.tell(Event::Pause {
        by: PausedBy::Admin,
        scope: scope.clone(),
        since: None,
        until: None,
        note: PauseNote::default(),
    });
    world.run(700.0);
    assert_eq!(world.provider.serving().get("a"), None);
    world.tell(Event::Resume {
        by: PausedBy::Admin,
        scope,
    });
    world.run(20.0);
    assert_eq!(world.provider.serving().get("a"), Some(&1));
}

/// A crash loop does not burn the pool either, and would if breakers and what was spent were not on record.
#[test]
fn a_budget_survives_restarts() {
    let burnt = [true, false].map(|is_kept| {
        let mut world = bad_cluster(config(None));
        for epoch in 2..40 {
            for name in ["a", "b"] {
                if !world.sessions.contains_key(&cluster(name)) {
                    world.connect(name, FULL);
                }
            }
            world.run(1.0);
            world.roll_up("a", &wanted(5));
            world.run(6.0);
            let mut disk = world.disk.found(0);
            if !is_kept {
                disk.retain(|record| !matches!(record, Record::Breaker { .. }));
                for record in &mut disk {
                    if let Record::Machine {
                        kept: Some(kept), ..
                    } = record
                    {
                        kept.spent = None;
                    }
                }
            }
            let provider = world.provider.clone();
            world = World::around(config(None), provider, epoch, disk, world.now);
        }
        failed(&world)
    });
    assert!(burnt[0] <= 10 && 50 < burnt[1], "{burnt:?}");
}

/// Create that says NOT_FOUND: 1,550 calls in 30 s were seen.
#[test]
fn a_pool_whose_slots_are_not_there_is_tried_one_by_one() {
    let calls = [None, Some(Defect::ProbesUnlimited)].map(|defect| {
        let mut world = World::new(config(defect), "s001..s200 Speculative cpu=4 $1");
        for machine in world.provider.machines.keys() {
            let gone = vec![Refusal::Code(Code::NotFound); 9];
            world.provider.refuse.insert(machine.clone(), gone);
        }
        world.connect("a", FULL);
        world.run(1.0);
        world.roll_up("a", &wanted(5));
        world.run(75.0);
        let pools = world.core.rails().breakers;
        assert!(pools.len() == 1 && pools[0].breaker.is_open(), "{pools:?}");
        world.calls().len()
    });
    // Five at once, then one after 10 s, 30 s and 70 s.
    assert_eq!(calls, [8, 20]);
}

/// While a pool is probed others are used, and the probe's success opens it to all.
#[test]
fn a_pool_that_is_probed_does_not_hold_up_what_others_have() {
    let mut world = World::new(
        config(None),
        "s1..s9 Speculative cpu=4 $1 type=m5 zone=a
         t1..t6 Speculative cpu=4 $2 type=m5 zone=b",
    );
    world.provider.latency = 30.0;
    for machine in ["s1", "s2", "s3", "s4"] {
        let sold_out = vec![Refusal::Code(Code::ResourceExhausted)];
        world.provider.refuse.insert(id(machine), sold_out);
    }
    world.connect("a", FULL);
    world.run(1.0);
    world.roll_up("a", &wanted(4));
    world.run(3.0);
    assert!(world.core.rails().breakers[0].breaker.is_open());
    assert_eq!(world.calls().len(), 8, "{:?}", world.calls());
    world.clear();
    world.roll_up("a", &wanted(8));
    world.run(20.0);
    let creates = |zone: &str| {
        let calls = world.calls().into_iter();
        calls.filter(|call| call.starts_with(zone)).count()
    };
    assert_eq!(
        (creates("Create s"), creates("Create t")),
        (1, 2),
        "one probe"
    );
    world.run(120.0);
    assert_eq!(world.provider.serving().get("a"), Some(&8));
    assert!(world.core.rails().breakers.is_empty());
}

/// A Configure that ends bound to somebody else is a bad end like any other.
#[test]
fn machines_that_end_up_elsewhere_are_a_bad_end() {
    let mut world = World::new(config(None), "m001..m100 Idle cpu=4 $1");
    world.provider.latency = 1.0;
    world.connect("a", FULL);
    world.run(1.0);
    world.roll_up("a", &wanted(5));
    for _ in 0..300 {
        world.run(1.0);
        for there in world.provider.machines.values_mut() {
            let is_ours = there.machine.cluster() == Some(&cluster("a"));
            if there.machine.state() == State::Configuring && is_ours {
                there.set(|facts| facts.cluster = "somebody".to_owned());
            }
        }
    }
    let elsewhere = world.provider.serving().get("somebody").copied();
    assert!(elsewhere.unwrap() <= 10, "{elsewhere:?}");
    let trouble = world.core.join_trouble(&cluster("a")).unwrap();
    assert_eq!(trouble.step, JoinStep::Configure);
    assert!(trouble.breaker.last_error.contains("somebody"));
}

/// The cluster's operator says of each of its nodes whether it is Ready: those it began with are.
fn nodes(world: &mut World, session: SessionId, new_ready: bool) {
    let machines = world.provider.machines.values();
    let serving = machines.filter(|there| there.machine.state() == State::Configured);
    let nodes: Vec<NodeFact> = serving
        .map(|there| NodeFact {
            machine: Some(there.machine.id().clone()),
            provider_id: String::new(),
            node_name: String::new(),
            ready: new_ready || there.machine.id().as_str().starts_with("own"),
            disruption: None,
        })
        .collect();
    world.tell(Event::NodesReported {
        session,
        complete: false,
        nodes,
    });
}

/// Machines that never become nodes: after the third, one at a time.
#[test]
fn nodes_that_never_join_are_tried_one_at_a_time() {
    let machines = "own01..own20 Configured a cpu=4 $1\n m01..m90 Idle cpu=4 $1";
    let mut world = World::new(config(None), machines);
    let session = world.connect("a", FULL);
    world.run(1.0);
    world.roll_up("a", &wanted(24));
    for _ in 0..360 {
        nodes(&mut world, session, false);
        world.run(30.0);
    }
    let trouble = world.core.join_trouble(&cluster("a")).unwrap();
    assert_eq!(trouble.step, JoinStep::Node);
    assert!(trouble.breaker.is_open(), "{trouble:?}");
    let calls = world.calls();
    let configures = calls.iter().filter(|call| call.starts_with("Configure"));
    let configures = configures.count();
    assert!(
        (6..=24).contains(&configures),
        "{configures} in three hours"
    );
    nodes(&mut world, session, true);
    assert!(world.core.join_trouble(&cluster("a")).is_none());
}
