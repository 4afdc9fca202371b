//! Machines that leave (SH-20): served elsewhere before they go, by a person's word or their provider's.

use crate::{
    restarts::{config, reconnect, restarted_as},
    support::{FULL, World, at, cluster, id, world},
};
use bigfleet_model::{Leaving, State};
use bigfleet_shard_core::{
    Alert, DrainMark, Effect, Event, Frame, LeavingPhase, LeavingSource, LeavingView, LeavingWait,
    Outcome, ProviderCall, ShardConfig, Value,
};

/// Marks machines, with a deadline so many seconds from now.
fn drain(world: &mut World, names: &[&str], deadline: Option<f64>) {
    let now = world.now;
    let deadline = deadline.map(|seconds| at(now + seconds));
    world.tell(Event::DrainMachines {
        machines: names.iter().map(|name| id(name)).collect(),
        mark: DrainMark::new("ada", "new disks", at(now), deadline),
    });
}

fn undrain(world: &mut World, names: &[&str]) {
    world.tell(Event::UndrainMachines {
        machines: names.iter().map(|name| id(name)).collect(),
        by: "ada".to_owned(),
        reason: "done".to_owned(),
    });
}

fn view(world: &World, name: &str) -> LeavingView {
    let view = world.core.machine_view(&id(name)).unwrap();
    view.leaving.unwrap()
}

fn phase(world: &World, name: &str) -> LeavingPhase {
    view(world, name).phase
}

/// The instructions that were sent for a machine: whether each was voluntary, and its grace.
fn instructions(world: &World, name: &str) -> Vec<(bool, u32)> {
    let sent = world.every.iter().filter_map(|effect| match effect {
        Effect::Send {
            frame:
                Frame::Reclaim {
                    machine,
                    voluntary,
                    grace_seconds,
                    ..
                },
            ..
        } if *machine == id(name) => Some((*voluntary, *grace_seconds)),
        _ => None,
    });
    sent.collect()
}

/// The moments Drain calls left at, by machine.
fn drains(world: &World) -> Vec<(String, f64)> {
    let calls = world
        .effects
        .iter()
        .filter_map(|(at, effect)| match effect {
            Effect::Call {
                machine,
                call: ProviderCall::Drain { .. },
                ..
            } => Some((machine.to_string(), *at)),
            _ => None,
        });
    calls.collect()
}

fn said(world: &World) -> Vec<(String, Outcome, String)> {
    let audits = world.audits().into_iter();
    let about = audits.filter(|one| !one.said.is_empty());
    about
        .map(|one| (one.machine.to_string(), one.outcome, one.said.clone()))
        .collect()
}

/// One machine that serves, and what else there is.
fn serving(machines: &str, needs: &str) -> World {
    let mut world = world(machines);
    world.provider.latency = 5.0;
    world.ask("a", needs, 30.0);
    world
}

/// The replacement serves before the first instruction leaves, and the machine is then nobody's.
#[test]
fn what_leaves_soon_is_replaced_first_and_is_out_then() {
    let mut world = serving("m1 Idle cpu=4 $1\nm2 Idle cpu=4 $2", "cpu=4");
    assert_eq!(world.state("m1"), State::Configured);
    drain(&mut world, &["m1"], None);
    world.run(2.0);
    assert_eq!(world.state("m2"), State::Configuring);
    assert_eq!(phase(&world, "m1"), LeavingPhase::ReplacementComing);
    assert_eq!(view(&world, "m1").replacements, [id("m2")]);
    assert!(
        instructions(&world, "m1").is_empty(),
        "m2 does not serve yet"
    );
    world.run(30.0);
    assert_eq!(
        (world.state("m1"), world.state("m2")),
        (State::Idle, State::Configured)
    );
    assert_eq!(phase(&world, "m1"), LeavingPhase::Out);
    assert_eq!(instructions(&world, "m1").len(), 1);
    assert!(instructions(&world, "m1")[0].0, "voluntary");
    // It stays for the mechanic: neither bound nor released, whatever is short.
    world.roll_up("a", "cpu=8");
    world.run(2.0 * 3600.0);
    assert_eq!(world.state("m1"), State::Idle);
    let expected = (
        "m1".to_owned(),
        Outcome::DrainMarked,
        "by ada: new disks".to_owned(),
    );
    assert_eq!(said(&world), [expected]);
    undrain(&mut world, &["m1"]);
    world.run(60.0);
    assert_eq!(world.state("m1"), State::Configured, "it is supply again");
    assert!(world.core.leaving_machines().next().is_none());
}

/// Nothing free can take its place: it serves on, and the deadline ends that.
#[test]
fn without_a_replacement_it_serves_until_its_deadline() {
    let mut world = serving("m1 Idle cpu=4 $1", "cpu=4");
    drain(&mut world, &["m1"], Some(600.0));
    world.run(300.0);
    assert_eq!(world.state("m1"), State::Configured);
    let waits = view(&world, "m1");
    assert_eq!(
        (waits.word, waits.phase),
        (Leaving::Soon, LeavingPhase::NoReplacement)
    );
    assert!(
        waits.phase_since.unwrap() < at(world.now - 200.0),
        "its age is kept"
    );
    let age = |world: &World| {
        let numbers = world.core.numbers().into_iter();
        let mut oldest =
            numbers.filter(|one| one.name == "bigfleet_shard_leaving_unreplaced_oldest_seconds");
        match oldest.next().unwrap().value {
            Value::Gauge(age) => age,
            other => panic!("{other:?}"),
        }
    };
    assert!(200.0 < age(&world));
    world.run(301.0);
    assert_eq!(view(&world, "m1").word, Leaving::Now);
    assert_eq!(world.state("m1"), State::Draining);
    assert_eq!(instructions(&world, "m1").len(), 1);
    assert!(!instructions(&world, "m1")[0].0, "nothing is waited for");
    let passed = said(&world);
    let passed = passed.last().unwrap();
    assert_eq!(
        (passed.1, passed.2.as_str()),
        (Outcome::DrainDeadlinePassed, "by ada: new disks")
    );
    world.run(60.0);
    assert_eq!((world.state("m1"), age(&world)), (State::Idle, 0.0));
    assert!(!view(&world, "m1").overdue, "it is out");
}

/// However long a machine has served, its wait begins with its mark; and before a cycle has looked for a
/// replacement nobody says that there is none.
#[test]
fn a_wait_begins_with_the_mark() {
    let mut world = serving("m1 Idle cpu=4 $1", "cpu=4");
    world.run(3600.0);
    let marked = at(world.now);
    drain(&mut world, &["m1"], Some(-5.0));
    let waits = view(&world, "m1");
    assert_eq!((waits.word, waits.deadline), (Leaving::Now, Some(marked)));
    undrain(&mut world, &["m1"]);
    drain(&mut world, &["m1"], None);
    let waits = view(&world, "m1");
    assert!(!waits.is_judged, "{waits:?}");
    assert_eq!(waits.phase_since, Some(marked));
    world.run(30.0);
    assert!(view(&world, "m1").is_judged);
}

/// Neither restarts nor the deadline's passing while no process ran lose the mark, and a lifted one stays lifted.
#[test]
fn an_admins_mark_survives_restarts_until_it_is_lifted() {
    let mut world = serving("m1..m3 Idle cpu=4 $1", "cpu=8");
    drain(&mut world, &["m1", "m2"], Some(60.0));
    undrain(&mut world, &["m2"]);
    world.run(1.0);
    for cut in [world.disk.durable(), world.disk.len()] {
        let mut again = restarted_as(&config(), &world, cut);
        again.now += 120.0;
        reconnect(&mut again, &world);
        again.run(1.0);
        assert_eq!(
            again.core.leaving(&id("m1")),
            Some(Leaving::Now),
            "it has passed"
        );
        assert_eq!(again.core.leaving(&id("m2")), None);
        let passed = said(&again);
        assert_eq!(passed.len(), 1, "{passed:?}");
        assert_eq!(passed[0].1, Outcome::DrainDeadlinePassed);
        again.run(120.0);
        assert_eq!(again.state("m1"), State::Idle);
        undrain(&mut again, &["m1"]);
        again.run(10.0);
        let mut last = restarted_as(&config(), &again, again.disk.len());
        last.run(1.0);
        assert_eq!(last.core.leaving(&id("m1")), None);
    }
}

/// A soon drain that is blocked is given up and tried again; once it is now, nothing is waited for.
#[test]
fn a_blocked_drain_waits_for_the_budget_and_not_past_the_deadline() {
    let mut world = serving("m1 Idle cpu=4 $1\nm2 Idle cpu=4 $2", "cpu=4");
    world.drains = false;
    drain(&mut world, &["m1"], Some(7200.0));
    world.run(1200.0);
    assert!(0 < world.core.counters().drains_blocked);
    assert!(drains(&world).is_empty(), "no budget is broken");
    let waits = view(&world, "m1");
    assert!(
        matches!(waits.waits, Some(LeavingWait::Blocked(_)) | None),
        "{waits:?}"
    );
    assert!(!world.core.is_reversible(&id("m1")), "while it is marked");
    let before = instructions(&world, "m1").len();
    world.run(6100.0);
    assert_eq!(view(&world, "m1").word, Leaving::Now);
    let sent = instructions(&world, "m1");
    assert!(before < sent.len() && !sent.last().unwrap().0);
    world.run(3700.0);
    assert_eq!(
        world.state("m1"),
        State::Idle,
        "Drain(0) at the end of the grace"
    );
}

/// A drain under way when now comes is instructed again with the same id, and is not cancelled.
#[test]
fn a_drain_under_way_is_hurried_when_now_comes() {
    let mut world = serving("m1 Idle cpu=4 $1\nm2 Idle cpu=4 $2", "cpu=4");
    world.drains = false;
    drain(&mut world, &["m1"], None);
    world.run(30.0);
    assert_eq!(world.state("m1"), State::Draining);
    assert_eq!(instructions(&world, "m1").len(), 1);
    let work = world.core.work_page(None).entries;
    let leaves = world.now + 100.0;
    world.there("m1").leaving = Some(at(leaves));
    world.run(15.0);
    let sent = instructions(&world, "m1");
    assert_eq!(sent.len(), 2, "{sent:?}");
    assert!(!sent[1].0 && sent[1].1 <= 90, "{sent:?}");
    assert_eq!(world.core.work_page(None).entries[0].id, work[0].id);
    world.run(leaves - world.now - 5.0);
    let called = drains(&world);
    assert_eq!(called.len(), 1);
    assert!(
        called[0].1 <= leaves - 9.0,
        "ten seconds before it is taken away"
    );
}

/// A spot machine is given two minutes: its replacement is bought in the same cycle, and it drains at once.
#[test]
fn a_notice_of_two_minutes_drains_and_buys_at_once() {
    let mut world = serving("m1 Idle cpu=4 $1\ns1 Speculative cpu=4 $9", "cpu=4");
    world.clear();
    let told = world.now;
    world.there("m1").leaving = Some(at(told + 120.0));
    world.run(11.0);
    let leaving = view(&world, "m1");
    assert_eq!(
        (leaving.word, leaving.source),
        (Leaving::Now, LeavingSource::Provider)
    );
    let bought = world.effects.iter().find_map(|(at, effect)| match effect {
        Effect::Call {
            call: ProviderCall::Create,
            ..
        } => Some(*at),
        _ => None,
    });
    let heard = world.effects.iter().find_map(|(at, effect)| match effect {
        Effect::Audit(record) if record.outcome == Outcome::LeavingAnnounced => Some(*at),
        _ => None,
    });
    let (bought, heard, drained) = (bought.unwrap(), heard.unwrap(), drains(&world)[0].1);
    assert!(
        bought - heard < 1.0 && drained - heard < 5.0,
        "{heard} {bought} {drained}"
    );
    world.run(60.0);
    assert_eq!(
        (world.state("m1"), world.state("s1")),
        (State::Idle, State::Configured)
    );
    // It will not be taken away after all: it is supply again.
    world.there("m1").leaving = None;
    world.run(20.0);
    assert_eq!(world.core.leaving(&id("m1")), None);
    assert_eq!(said(&world).last().unwrap().1, Outcome::LeavingWithdrawn);
}

/// What leaves now needs no operator; what leaves soon does.
#[test]
fn now_needs_no_operator_and_soon_does() {
    let mut world = serving("m1..m4 Idle cpu=4 $1", "cpu=8");
    let bound: Vec<&str> = ["m1", "m2"].to_vec();
    world.disconnect("a");
    world.run(1.0);
    drain(&mut world, &[bound[0]], Some(0.0));
    drain(&mut world, &[bound[1]], None);
    world.run(60.0);
    assert_eq!(world.state("m1"), State::Idle);
    assert_eq!(world.state("m2"), State::Configured);
    let marked = said(&world).len();
    assert_eq!(
        marked, 2,
        "a deadline that has passed is now, and is not said twice"
    );
}

/// Rail 1 spreads what leaves soon over cycles, and what leaves now takes nobody's place.
#[test]
fn soon_is_under_rail_one_and_now_is_outside() {
    let rails = || {
        let machines = "m1..m40 Idle cpu=4 $1\nx1..x20 Idle cpu=4 $2";
        let mut world = World::new(ShardConfig::production("s", "p"), machines);
        world.connect("a", FULL);
        world.run(1.0);
        world.roll_up("a", "cpu=160 min:cpu=4");
        world.run(60.0);
        world
    };
    // Those of the cheaper forty that serve no more.
    let gone = |world: &World| {
        let machines = world
            .core
            .machines()
            .filter(|one| one.id().as_str().starts_with('m'));
        machines
            .filter(|one| one.state() != State::Configured)
            .count()
    };
    let mut soon = rails();
    assert_eq!(gone(&soon), 0);
    let marked: Vec<String> = (1..=20).map(|number| format!("m{number}")).collect();
    let marked: Vec<&str> = marked.iter().map(String::as_str).collect();
    drain(&mut soon, &marked, None);
    soon.run(9.0);
    let serves = |number: usize| soon.state(&format!("x{number}")) == State::Configured;
    assert!((1..=20).all(serves), "replaced first");
    assert!((1..=3).contains(&gone(&soon)), "5 % of 60: {}", gone(&soon));
    let mut now = rails();
    drain(&mut now, &marked, Some(0.0));
    now.run(1.0);
    assert!(20 <= gone(&now), "{}", gone(&now));
}

/// A provider that errs does not empty a cluster past rail 1, not even half by half.
#[test]
fn more_notices_than_half_a_cluster_are_held() {
    let mut world = serving("m01..m10 Idle cpu=4 $1", "cpu=40 min:cpu=4");
    let soon = at(world.now + 60.0);
    for there in world.provider.machines.values_mut() {
        there.leaving = Some(soon);
    }
    world.run(11.0);
    let left = |world: &World| {
        let states = world.core.machines().map(|machine| machine.state());
        states.filter(|state| *state != State::Configured).count()
    };
    assert_eq!(left(&world), 5);
    let alarmed = world.every.iter().filter(|effect| {
        matches!(effect, Effect::Alert(Alert::NoticesHeld { machines: 5, cluster: named })
            if *named == cluster("a"))
    });
    assert_eq!(alarmed.count(), 1, "said once");
    world.run(300.0);
    assert_eq!(left(&world), 5, "the other half serves on");
}

/// An odd notice is clamped and counted, and one of a machine that serves nobody is counted too.
#[test]
fn an_odd_notice_is_counted() {
    let mut world = serving("m1..m3 Idle cpu=4 $1", "cpu=4");
    world.there("m1").leaving = Some(at(-5e9));
    world.there("m2").leaving = Some(at(world.now + 9000.0));
    world.run(11.0);
    let odd = &world.core.counters().odd_notices;
    assert_eq!((odd.get("past"), odd.get("unbound")), (Some(&1), Some(&1)));
    world.run(60.0);
    let odd = &world.core.counters().odd_notices;
    assert_eq!(odd.values().sum::<u64>(), 2, "counted once");
    assert_eq!(
        world.state("m3"),
        State::Configured,
        "m2 is given to nobody"
    );
}

/// A machine that is gone takes its mark with it, and one that was never known gets none.
#[test]
fn a_mark_ends_with_its_machine() {
    let mut world = serving("m1..m2 Idle cpu=4 $1", "cpu=4");
    drain(&mut world, &["m2", "nobody"], None);
    assert_eq!(world.core.leaving_machines().count(), 1);
    world.provider.machines.remove(&id("m2"));
    world.run(120.0);
    assert!(world.core.machine(&id("m2")).is_none());
    assert_eq!(world.core.leaving_machines().count(), 0);
    world.run(10.0);
    let again = restarted_as(&config(), &world, world.disk.len());
    assert_eq!(again.core.leaving_machines().count(), 0);
}

/// What cannot be drained says what applies instead.
#[test]
fn a_failed_machine_is_retired_and_not_drained() {
    let mut world = serving("m1..m2 Idle cpu=4 $1", "cpu=4");
    world.there("m2").become_state(State::Failed);
    world.run(30.0);
    let why = world.core.may_drain(&id("m2")).unwrap();
    assert!(why.contains("bigfleet retire machine/m2"), "{why}");
    assert!(
        world
            .core
            .may_drain(&id("m9"))
            .unwrap()
            .contains("not known")
    );
    assert_eq!(world.core.may_drain(&id("m1")), None);
}

/// Undrain in the middle: the drain goes on or is taken back, and what was bought goes by the ordinary rules.
#[test]
fn a_lifted_mark_leaves_an_ordinary_drain() {
    let mut world = serving("m1 Idle cpu=4 $1\nm2 Idle cpu=4 $2", "cpu=4");
    world.drains = false;
    drain(&mut world, &["m1"], None);
    world.run(30.0);
    assert_eq!(world.state("m1"), State::Draining);
    assert!(!world.core.is_reversible(&id("m1")));
    undrain(&mut world, &["m1"]);
    assert!(world.core.is_reversible(&id("m1")));
    world.roll_up("a", "cpu=8");
    world.run(5.0);
    assert_eq!(world.state("m1"), State::Configured, "taken back");
}
