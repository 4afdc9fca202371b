//! Arms: each rule that no defect of the shard breaks is broken here by hand, to see it object.

use super::{Decided, Rule};
use crate::{
    build::{pool, work},
    clock::{Moment, minutes, seconds},
    plan::{ClusterPlan, Plan, Work},
    size::Size,
    trace::Trace,
    world::World,
};
use bigfleet_model::{ActionKind, ClusterId, MachineId, NeedKey, Reason, Row, State};
use bigfleet_shard_core::{
    Alert, Barrier, Effect, Event, Frame, NodeState, OperationId, PauseNote, PausedBy,
    ProviderCall, RequestId, Scope, Stage, Token,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

const NODE: Size = Size::plain(8, 32);

/// Two clusters, each served by two machines, two machines nobody needs and one to be bought; all at rest.
fn world() -> World {
    let cluster = |name: &str| ClusterPlan::new(name, vec![work(NODE, 2).build()]);
    let served = |cluster: usize| pool(&format!("own{cluster}"), NODE, 2).serving(cluster, 0);
    let spare = [pool("spare", NODE, 2).owned(), pool("slot", NODE, 1)];
    let pools = [[served(0), served(1)], spare].concat();
    let plan = Plan {
        machines: pools.iter().flat_map(|one| one.build()).collect(),
        clusters: vec![cluster("a"), cluster("b")],
        calm: Moment(minutes(10)),
        ..Plan::default()
    };
    let mut world = World::new(plan, 1, None, Trace::new(false));
    assert!(world.run_until(Moment(minutes(2))));
    world
}

fn id(name: &str) -> MachineId {
    MachineId::new(name).unwrap()
}

fn need(world: &World, cluster: usize) -> NeedKey {
    let row = &world.watch.demand.of(cluster).unwrap()[0];
    NeedKey {
        cluster: world.clusters[cluster].id.clone(),
        fingerprint: row.profile.fingerprint().clone(),
        group: row.group.clone(),
    }
}

fn decided(number: u64, machine: &str, kind: ActionKind, reason: Reason) -> Decided {
    Decided {
        operation: operation(number),
        machine: id(machine),
        kind,
        reason,
        cluster: ClusterId::new("a").ok(),
        need: None,
        not_ready: false,
    }
}

fn operation(number: u64) -> OperationId {
    OperationId { epoch: 1, number }
}

fn call(number: u64, machine: &str) -> Effect {
    Effect::Call {
        operation: operation(number),
        machine: id(machine),
        token: Token {
            shard: "sim".to_owned(),
            epoch: 1,
            sequence: number,
        },
        call: ProviderCall::Create,
    }
}

fn broken(world: &World) -> Option<Rule> {
    world.watch.broken.as_ref().map(|broken| broken.rule)
}

/// A record of an operation, as a process would write it, and the write at its end.
fn commit(world: &mut World, number: u64, machine: &str) {
    world
        .watch
        .commits
        .begun(1, Barrier(1), operation(number), &id(machine));
    world.watch.commits.on_disk(1, Barrier(1));
}

#[test]
fn nobody_objects_to_a_fleet_at_rest() {
    let mut world = world();
    world.check_truth();
    world.check_leaks();
    assert_eq!(broken(&world), None);
}

#[test]
fn a_machine_told_to_two_clusters_is_noticed() {
    let mut world = world();
    let (_, session) = world.clusters[1].session.unwrap();
    let node = NodeState {
        machine: id("own0-0000"),
        state: State::Configured,
        host: None,
        last_error: String::new(),
        node_name: String::new(),
        labels: BTreeMap::new(),
        resources: bigfleet_model::Amounts::default(),
        removed: false,
    };
    let frame = Frame::Node(Box::new(node));
    world.look(1, &[Effect::Send { session, frame }]);
    assert_eq!(broken(&world), Some(Rule::OneOwner));
}

#[test]
fn a_second_operation_on_a_machine_is_noticed() {
    let mut world = world();
    commit(&mut world, 901, "spare-0000");
    commit(&mut world, 902, "spare-0000");
    let second = decided(902, "spare-0000", ActionKind::Delete, Reason::Release);
    world.look_at_decision(&[second], &BTreeSet::new());
    assert_eq!(broken(&world), Some(Rule::OneOperation));
}

#[test]
fn a_call_that_nobody_accounts_for_is_noticed() {
    let mut world = world();
    commit(&mut world, 901, "spare-0000");
    world.look(1, &[call(901, "spare-0000")]);
    assert_eq!(broken(&world), None);
    world.check_leaks();
    assert_eq!(broken(&world), Some(Rule::Audited));
}

#[test]
fn a_call_while_all_is_paused_is_noticed() {
    let mut world = world();
    commit(&mut world, 901, "spare-0000");
    world.tell(
        1,
        Event::Pause {
            by: PausedBy::Admin,
            scope: Scope::All,
            since: None,
            until: Some(world.now.after(seconds(60)).time()),
            note: PauseNote::default(),
        },
    );
    world.look(1, &[call(901, "spare-0000")]);
    assert_eq!(broken(&world), Some(Rule::Paused));
}

#[test]
fn more_calls_than_workers_are_noticed() {
    let mut world = world();
    let workers = world.plan.shard.workers as u64;
    for number in 0..=workers {
        commit(&mut world, 901 + number, "spare-0000");
        assert_eq!(broken(&world), None);
        world.look(1, &[call(901 + number, "spare-0000")]);
    }
    assert_eq!(broken(&world), Some(Rule::Workers));
}

#[test]
fn buying_for_a_need_that_is_covered_is_noticed() {
    let mut world = world();
    let mut bought = decided(901, "spare-0000", ActionKind::Bootstrap, Reason::Idle);
    bought.need = Some(need(&world, 0));
    world.check_bought(&[bought], &BTreeSet::from([&id("spare-0000")]));
    assert_eq!(broken(&world), Some(Rule::NothingTooMuch));
}

#[test]
fn a_decision_that_is_not_in_the_ledger_is_noticed() {
    let mut world = world();
    let bought = decided(901, "spare-0000", ActionKind::Bootstrap, Reason::Idle);
    world.look_at_decision(&[bought], &BTreeSet::new());
    assert_eq!(broken(&world), Some(Rule::Committed));
}

#[test]
fn giving_up_a_machine_while_another_is_acquired_is_noticed() {
    let mut world = world();
    let mut bought = decided(901, "spare-0000", ActionKind::Bootstrap, Reason::Idle);
    bought.need = Some(need(&world, 0));
    let given = decided(902, "spare-0001", ActionKind::Reclaim, Reason::Excess);
    world.check_cover(&[bought, given]);
    assert_eq!(broken(&world), Some(Rule::NoRoundTrip));
}

#[test]
fn a_machine_bound_by_nobody_known_is_noticed() {
    let mut world = world();
    let machine = id("own0-0000");
    world.look(1, &[Effect::Alert(Alert::Conflict { machine })]);
    assert_eq!(broken(&world), Some(Rule::Contract));
}

#[test]
fn work_that_is_left_over_is_noticed() {
    let mut world = world();
    world.clusters[0].pods.scale(0, 3);
    let under_way = |world: &World| world.process().unwrap().core.gauges().in_flight;
    while under_way(&world) == 0 {
        assert!(world.run_until(world.now.after(1)));
    }
    world.check_leaks();
    assert_eq!(broken(&world), Some(Rule::NothingLeaks));
}

#[test]
fn work_that_stands_still_is_noticed() {
    for stage in [
        Stage::Disk,
        Stage::Queued,
        Stage::Blob(RequestId {
            epoch: 1,
            number: 1,
        }),
        Stage::Drain,
        Stage::Call,
        Stage::Provider,
        Stage::Backoff,
        Stage::Confirm,
    ] {
        let mut world = world();
        world.clusters[0].pods.scale(0, 3);
        let under_way = |world: &World| world.process().unwrap().core.work_page(None).entries;
        while under_way(&world).is_empty() {
            assert!(world.run_until(world.now.after(1)));
        }
        let mut work = under_way(&world);
        work[0].stage = stage;
        for minute in 0..20 {
            work[0].attempts = minute;
            world.now = world.now.after(minutes(1));
            world.look_at_work(&work);
            assert_eq!(
                broken(&world),
                None,
                "{stage:?} in another attempt each minute"
            );
        }
        world.now = world.now.after(minutes(20));
        world.look_at_work(&work);
        assert_eq!(broken(&world), Some(Rule::MovesOn), "{stage:?}");
    }
}

/// The shard has not heard of this demand, so it cannot serve it: a wait without a reason.
fn unheard_of(world: &mut World, work: &Work, pods: i64) {
    let rows = [Row {
        profile: Arc::clone(&work.profile),
        aggregate: NODE.times(pods).amounts(),
        min_unit: NODE.amounts(),
        group: work.group.clone(),
        whole_units: false,
    }];
    world.watch.demand.sent("unheard of", &rows);
    world.watch.demand.accepted(0, "unheard of");
}

#[test]
fn a_need_short_beside_free_machines_is_noticed_and_one_without_is_not() {
    let (plain, gang) = (work(NODE, 1).build(), work(NODE, 1).rack_gang("g").build());
    for (work, pods, patience, noticed) in [
        (&plain, 3, minutes(3), true),
        (&gang, 2, minutes(3), false),
        (&gang, 2, minutes(10), true),
        (&gang, 4, minutes(30), false),
    ] {
        let mut world = world();
        unheard_of(&mut world, work, pods);
        world.probe();
        world.now = world.now.after(patience);
        world.probe();
        let expected = noticed.then_some(Rule::ServedInTime);
        assert_eq!(broken(&world), expected, "{pods} machines, {patience} ms");
    }
}

#[test]
fn a_price_that_is_not_the_providers_is_noticed() {
    let mut world = world();
    let changed = world.cloud.reprice(&id("slot-0000"), 2000);
    assert!(!changed.is_empty());
    world.check_truth();
    assert_eq!(broken(&world), Some(Rule::LedgerIsTruth));
}

#[test]
fn an_assertion_that_does_not_hold_is_a_broken_rule() {
    let plan = Plan {
        timeline: vec![(
            Moment(seconds(5)),
            crate::plan::Change::Scale {
                cluster: 7,
                work: 0,
                pods: 1,
            },
        )],
        calm: Moment(minutes(1)),
        ..Plan::default()
    };
    let report = crate::run::run_plan("panics", plan, 1, None, false);
    let broken = report.broken.unwrap();
    assert_eq!(broken.rule, Rule::Panicked);
    assert!(broken.text.contains("index"), "{}", broken.text);
}
