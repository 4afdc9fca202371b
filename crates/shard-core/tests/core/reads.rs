//! What a shard shows of itself (shard.md §9): pages, verdicts, work in flight, rails, and the fleet as a value.

use crate::support::{FULL, Refusal, World, at, cluster, id, world};
use bigfleet_model::{ActionKind, Fleet, State};
use bigfleet_shard_core::{
    Code, Decided, Event, Export, MachineFilter, PauseNote, PausedBy, Scope, ShardConfig, Stage,
    Unavailable, explain,
};
use std::time::Duration;

/// The fleet, copied so many machines at a time, with what happens between two steps.
fn export(world: &mut World, most: usize, mut between: impl FnMut(&mut World, usize)) -> Fleet {
    let mut export = Export::new();
    for step in 0..10_000 {
        if let Some(fleet) = world.core.export_step(&mut export, most) {
            return fleet;
        }
        between(world, step);
    }
    panic!("an export that never ends");
}

const BUSY: &str = "i1..i3 Idle cpu=4 $1
     s1..s9 Speculative cpu=4 $2
     x1..x2 Configured b cpu=4 $1 stamp=100 own-raw=F,";

fn busy() -> World {
    let mut world = world(BUSY);
    world.provider.latency = 40.0;
    world.connect("a", FULL);
    world.connect("b", FULL);
    world.run(1.0);
    world.roll_up("b", "cpu=8 prio=100");
    world.roll_up("a", "cpu=24 prio=1000");
    world.run(5.0);
    world
}

/// A copy made in small steps is the fleet of its last moment, whatever happened meanwhile.
#[test]
fn an_export_in_steps_is_the_fleet_of_its_last_moment() {
    for most in [1, 2, 5, 100] {
        let mut world = busy();
        let stepped = export(&mut world, most, |world, step| {
            world.run(0.7);
            if step == 3 {
                world.roll_up("a", "cpu=32 prio=1000\n cpu=4 prio=7");
            }
            if step == 6 {
                world.provider.machines.remove(&id("s9"));
            }
        });
        let mut whole = world.core.clone();
        let at_once = {
            let mut export = Export::new();
            let mut steps = (0..9).filter_map(|_| whole.export_step(&mut export, 1000));
            steps.next().unwrap()
        };
        assert_eq!(stepped, at_once, "{most} at a time");
        whole.handle(at(world.now), Event::Woken, &mut Vec::new());
    }
}

/// The verdicts of a cycle of its own.
fn decided(world: &mut World) -> Decided {
    world.core.want_verdicts();
    world.tell(Event::CycleDue);
    (**world.core.decided().unwrap()).clone()
}

/// What is exported is what was decided on: deciding on it says the same of every Need.
#[test]
fn verdicts_are_those_of_the_exported_fleet() {
    let mut world = busy();
    world.run(300.0);
    world.roll_up(
        "a",
        "cpu=24 prio=1000\n cpu=64 min:cpu=64 group=g1 rack=Same",
    );
    world.run(600.0);
    let fleet = export(&mut world, 1000, |_, _| {});
    let decided = decided(&mut world);
    let mut expected = bigfleet_engine::decide(&fleet).needs;
    assert_eq!(decided.needs.len(), expected.len());
    for view in &decided.needs {
        let key = view.verdict.need.key();
        let at = expected.iter().position(|one| one.need.key() == key);
        assert_eq!(view.verdict, expected.remove(at.unwrap()));
        assert_eq!(view.verdict.satisfied, view.age == 0);
        assert_eq!(view.verdict.satisfied, view.unresolved.is_zero());
    }
    let gang = &decided.needs.last().unwrap();
    assert!(gang.verdict.parked && 8 < gang.parked_age, "{gang:?}");
    let explained = explain(&fleet, &gang.verdict.need.key()).unwrap();
    assert_eq!(explained.verdict, gang.verdict);
}

/// V-8: what preemption frees is no longer missing.
#[test]
fn unresolved_is_what_preemption_does_not_free() {
    let mut world = world("v1 Configured b cpu=4 $1 stamp=100 own-raw=F,");
    world.connect("a", FULL);
    world.ask("b", "cpu=4 prio=100", 1.0);
    world.core.want_verdicts();
    world.roll_up("a", "cpu=12 prio=1000");
    let decided = world.core.decided().unwrap();
    assert_eq!(
        (decided.cycle, decided.at),
        (world.core.gauges().cycle, at(world.now))
    );
    let view = &decided.needs[0];
    let cpu = |amounts: &bigfleet_model::Amounts| amounts.get("cpu") / 1000;
    assert_eq!(
        (cpu(&view.verdict.residual), cpu(&view.unresolved)),
        (12, 8)
    );
    assert_eq!(view.verdict.victims_found, 1);
}

#[test]
fn machines_are_shown_in_pages_by_what_is_asked() {
    let world = busy();
    let all = world.core.machines_page(&MachineFilter::default(), None);
    assert_eq!((all.entries.len(), all.next), (14, None));
    let filter = MachineFilter {
        cluster: Some(cluster("a")),
        states: vec![State::Creating],
        ..MachineFilter::default()
    };
    let bought = world.core.machines_page(&filter, Some(&id("s1")));
    let names: Vec<_> = bought.entries.iter().map(|one| one.machine.id()).collect();
    assert_eq!(names, [&id("s2"), &id("s3")]);
    let works = bought.entries.iter().map(|one| one.work);
    assert!(works.eq([Some(ActionKind::Provision); 2]));
}

#[test]
fn a_page_looks_at_a_bounded_number_of_machines() {
    let mut world = world("m0001..m2500 Idle cpu=4 $1");
    world.run(1.0);
    let none = MachineFilter {
        states: vec![State::Failed],
        ..MachineFilter::default()
    };
    let (mut after, mut pages) = (None, 0);
    loop {
        let page = world.core.machines_page(&none, after.as_ref());
        assert!(page.entries.is_empty());
        pages += 1;
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(pages, 3);
}

#[test]
fn flags_say_why_a_machine_is_no_candidate() {
    let mut world = world("s1..s2 Speculative cpu=4 $1 type=m5 zone=a\n m1 Idle cpu=4 $9");
    let sold_out = vec![Refusal::Code(Code::ResourceExhausted)];
    world.provider.refuse.insert(id("s1"), sold_out);
    let breach = bigfleet_model::Breach::Price(-1.0);
    let id_text = "m1".to_owned();
    let refused = bigfleet_model::MachineRefused {
        id: id_text.clone(),
        breach,
    };
    world.connect("a", FULL);
    world.run(1.0);
    world.provider.hidden.insert(id("m1"));
    world.provider.unbelievable = vec![(id_text, refused)];
    world.roll_up("a", "cpu=8");
    world.run(9.5);
    let flagged = MachineFilter {
        flagged: true,
        ..MachineFilter::default()
    };
    let page = world.core.machines_page(&flagged, None);
    let shown: Vec<_> = page
        .entries
        .iter()
        .map(|one| {
            (
                one.machine.id().as_str(),
                one.unavailable,
                one.refused.is_some(),
            )
        })
        .collect();
    let closed = Some(Unavailable::PoolBackoff);
    assert_eq!(
        shown,
        [
            ("m1", None, true),
            ("s1", closed, false),
            ("s2", closed, false)
        ]
    );
    let breakers = world.core.rails().breakers;
    assert_eq!((breakers.len(), breakers[0].breaker.failures), (1, 1));
}

#[test]
fn clusters_show_their_session_demand_and_machines() {
    let mut world = busy();
    let view = world.core.cluster_view(&cluster("a")).unwrap();
    assert!(view.session.is_some() && view.ready && view.accepted.is_some());
    assert_eq!((view.rows, view.short), (1, 0));
    let states = [(State::Creating, 3), (State::Configuring, 3)];
    assert_eq!(view.machines, states.into());
    let (session, _) = world.sessions[&cluster("a")];
    world.tell(Event::RolledUp {
        session,
        cluster: cluster("b"),
        rollup_id: "r".to_owned(),
        rows: Ok(Vec::new()),
    });
    world.disconnect("a");
    let view = world.core.cluster_view(&cluster("a")).unwrap();
    assert!(view.session.is_none() && view.gone_since.is_some() && view.withheld.is_some());
    assert!(view.refused.unwrap().1.contains("RI-5"));
    assert_eq!(world.core.clusters(), [cluster("a"), cluster("b")]);
    assert_eq!(world.core.cluster_view(&cluster("nobody")), None);
}

/// Work in flight: what it waits for and since when, a pause included.
#[test]
fn work_shows_what_it_waits_for_and_since_when() {
    let mut world = world("s1 Speculative cpu=4 $1\n m1 Configured b cpu=4 $1");
    world.provider.latency = 100.0;
    world.drains = false;
    let lost = vec![Refusal::Lost(Code::Unavailable)];
    world.provider.refuse.insert(id("s1"), lost);
    world.connect("a", FULL);
    world.connect("b", FULL);
    world.run(1.0);
    world.roll_up("b", "");
    world.roll_up("a", "cpu=4");
    world.run(1.0);
    let work = world.core.work_page(None).entries;
    let shown: Vec<_> = work.iter().map(|one| (one.action, one.stage)).collect();
    let expected = [
        (ActionKind::Reclaim, Stage::Drain),
        (ActionKind::Provision, Stage::Backoff),
    ];
    assert_eq!(shown, expected);
    assert_eq!(work[1].refused, Some((Code::Unavailable, String::new())));
    let grace = work[0].deadline.unwrap().duration_since(work[0].committed);
    assert_eq!(grace, Duration::from_secs(600));
    world.run(5.0);
    let work = world.core.work_page(Some(&id("m1"))).entries;
    assert_eq!((work.len(), work[0].stage), (1, Stage::Provider));
    assert!(work[0].committed < work[0].since);
    world.tell(Event::Pause {
        by: PausedBy::Admin,
        scope: Scope::All,
        since: None,
        until: Some(at(world.now + 60.0)),
        note: PauseNote::default(),
    });
    let work = world.core.work_page(None).entries;
    assert!(
        work.iter()
            .all(|one| one.stage == Stage::Paused && one.since == at(world.now))
    );
    let pauses = world.core.rails().pauses;
    assert_eq!((pauses.len(), pauses[0].since), (1, at(world.now)));
}

#[test]
fn rails_show_what_they_hold_back() {
    let mut world = World::new(
        ShardConfig::production("s", "p"),
        "m01..m40 Configured a cpu=4 $1",
    );
    world.ask("a", "cpu=100", 1.0);
    let rails = world.core.rails();
    assert_eq!(
        (rails.reclaim_cap_per_million, rails.reclaims_capped),
        (50_000, 13)
    );
    world.provider.hidden = (10..=18).map(|n| id(&format!("m{n}"))).collect();
    world.run(10.0);
    assert!(5 < world.core.rails().removals_held);
    assert!(!world.core.rails().fenced && !world.core.rails().dry_run);
}
