//! What the engine remembers saves work. It never changes an answer, so only counts of work can show
//! that it is used at all.

use bigfleet_engine::{Counts, Engine, Work};
use bigfleet_engine_fuzz::{Feed, History, Mode, Subject};
use bigfleet_model::{Disruption, Fleet, MachineId, Time};
use bigfleet_testkit::fleet;
use std::{cell::Cell, time::Duration};

/// An engine that has decided on a fleet.
fn decided(fleet: &Fleet) -> Engine {
    let mut engine = Engine::new();
    engine.load(fleet);
    engine.decide(fleet.now);
    engine
}

/// What deciding on the second fleet touches after the first; both answers are checked.
fn work_between(before: &str, after: &str) -> Work {
    let (before, after) = (fleet(before), fleet(after));
    let mut engine = decided(&before);
    assert_eq!(engine.decision(), bigfleet_oracle::decide(&before));
    let start = engine.work();
    engine.follow(&before, &after);
    engine.decide(after.now);
    assert_eq!(engine.decision(), bigfleet_oracle::decide(&after));
    let end = engine.work();
    Work {
        needs: end.needs - start.needs,
        machines: end.machines - start.machines,
        classes: end.classes - start.classes,
        marked: end.marked - start.marked,
    }
}

#[test]
fn facts_that_repeat_themselves_leave_a_cycle_quiet() {
    let fleet = fleet(
        "m1..m3 Configured a cpu=4 own=n
         m4 Configuring a cpu=4 own=n
         i1 Idle cpu=4 OnDemand idle-since=900
         i2 Idle cpu=4 OnDemand
         k1 Creating cpu=4 own=n
         s1 Speculative cpu=4 unavailable
         need a name:n cpu=20",
    );
    let mut engine = decided(&fleet);
    let before = engine.work();
    engine.load(&fleet);
    let mut parts = 0;
    engine.decide_in_parts(fleet.now, &mut |_| parts += 1);
    assert_eq!(parts, 0, "nothing changed, so nothing is decided");
    assert_eq!(engine.work(), before);
}

/// RF-2: it is live, so thousands of changes a minute must cost next to nothing.
#[test]
fn what_draining_would_disturb_wakes_nobody_where_nothing_leaves() {
    let mut fleet = fleet(
        "m1..m9 Configured a cpu=4 own=n
         h1 Configured a cpu=4
         k1 Configuring a cpu=4 own=n
         need a name:n cpu=40",
    );
    let mut engine = decided(&fleet);
    assert_eq!(engine.held().len(), 1, "held is not leaving");
    let (before, decision) = (engine.work(), engine.decision());
    for machine in fleet.machines.values_mut() {
        machine.disruption = Disruption::new(7);
        engine.set_disruption(machine.machine.id(), machine.disruption);
    }
    let mut parts = 0;
    engine.decide_in_parts(fleet.now, &mut |_| parts += 1);
    assert_eq!((parts, engine.work()), (0, before));
    assert_eq!(engine.decision(), decision);
    assert_eq!(decision, bigfleet_oracle::decide(&fleet));
}

/// Where something leaves, the answer follows; the Needs that had no part in it are not looked at.
#[test]
fn what_draining_would_disturb_is_read_where_something_leaves() {
    let mut fleet = fleet(
        "m1..m9 Configured a cpu=4 own=n
         need a name:n cpu=32
         x1..x9 Configured b cpu=4 own=o
         need b name:o cpu=36",
    );
    let mut engine = decided(&fleet);
    let before = engine.work();
    let empty = MachineId::new("m4").unwrap();
    let none = Some(Disruption::NONE);
    if let Some(machine) = fleet.machines.get_mut(&empty) {
        machine.disruption = none;
    }
    engine.set_disruption(&empty, none);
    engine.set_disruption(&MachineId::new("unknown").unwrap(), none);
    engine.decide(fleet.now);
    assert_eq!(engine.decision(), bigfleet_oracle::decide(&fleet));
    assert_eq!(engine.actions()[0].machine, empty);
    assert_eq!(engine.work().marked, before.marked, "no Need is marked");
    assert_eq!(engine.work().needs, before.needs, "no Need is walked");
}

#[test]
fn a_need_that_needs_all_it_has_is_not_walked() {
    let work = work_between(
        "m1..m9 Configured a cpu=4 own=n
         need a name:n cpu=36",
        "m1..m9 Configured a cpu=4 own=n
         need a name:n cpu=35",
    );
    let expected = Work {
        marked: 1,
        ..Work::default()
    };
    assert_eq!(work, expected, "the Need is looked at, and nothing else");
}

/// One of nine is excess and held by nothing, so its cluster is looked through; the Need is not walked.
#[test]
fn a_need_whose_last_claim_is_still_right_is_not_walked() {
    let work = work_between(
        "m1..m9 Configured a cpu=4 own=n
         need a name:n cpu=32",
        "m1..m9 Configured a cpu=4 own=n
         need a name:n cpu=31",
    );
    assert_eq!(work.needs, 0, "{work:?}");
    let walked = work_between(
        "m1..m9 Configured a cpu=4 own=n
         need a name:n cpu=32",
        "m1..m9 Configured a cpu=4 own=n
         need a name:n cpu=28",
    );
    assert_eq!(walked.needs, 1, "one machine fewer: {walked:?}");
}

#[test]
fn a_need_that_did_not_change_costs_nothing() {
    let work = work_between(
        "m1..m9 Configured a cpu=4 own=n
         o1..o9 Configured b cpu=4 own=o
         need a name:n cpu=36
         need b name:o cpu=36",
        "m1..m9 Configured a cpu=4 own=n
         o1..o8 Configured b cpu=4 own=o
         need a name:n cpu=36
         need b name:o cpu=32",
    );
    assert_eq!(work.machines, 8, "those of b: {work:?}");
    assert_eq!(work.needs, 0, "{work:?}");
}

/// RF-21: a mark is a fact about one machine. It marks the Need that has it, or what is free, and nothing else.
#[test]
fn a_mark_to_leave_marks_one_need_or_one_supply_entry() {
    let fleet = |marks: [&str; 2]| {
        format!(
            "m1..m8 Configured a cpu=4 own=n
             m9 Configured a cpu=4 own=n {}
             o1..o9 Configured a cpu=4 own=o
             p1..p9 Configured b cpu=4 own=p
             i1 Idle cpu=2 {}
             need a name:n group=n cpu=36 min:cpu=4
             need a name:o group=o cpu=36 min:cpu=4
             need b name:p cpu=36 min:cpu=4",
            marks[0], marks[1]
        )
    };
    let bound = work_between(&fleet(["", ""]), &fleet(["leaving=soon", ""]));
    // The Need, and twice its slot: its machine went and came.
    assert_eq!((bound.needs, bound.marked), (1, 3), "{bound:?}");
    let free = work_between(&fleet(["", ""]), &fleet(["", "leaving=soon"]));
    assert_eq!(free, Work::default());
}

/// RF-21: a machine that nothing can replace is looked at again in every cycle, as a Need is that is short.
#[test]
fn a_blocked_machine_costs_what_a_need_that_is_short_costs() {
    let fleet = |wanted: u32, mark: &str, elsewhere: u32| {
        format!(
            "m1..m8 Configured a cpu=4 own=n
             m9 Configured a cpu=4 own=n {mark}
             o1..o9 Configured a cpu=4 own=o
             i1..i5 Idle cpu=2
             need a name:n group=n cpu={wanted} min:cpu=4 prio=7
             need a name:o group=o cpu=36 min:cpu=4
             need b cpu={elsewhere} min:cpu=2"
        )
    };
    let between = |wanted, mark| work_between(&fleet(wanted, mark, 2), &fleet(wanted, mark, 4));
    let (short, blocked) = (between(40, ""), between(36, "leaving=soon"));
    assert!(
        blocked.machines <= short.machines,
        "{blocked:?} and {short:?}"
    );
    assert!(blocked.marked <= short.marked, "{blocked:?} and {short:?}");
    assert!(blocked.classes <= short.classes && blocked.needs <= short.needs + 1);
}

/// Notes what the engine of a history has touched before each step.
#[derive(Default)]
struct Watched(Cell<Work>);

impl Subject for Watched {
    fn follow(&self, engine: &mut Engine, feed: Feed, before: &Fleet, after: &Fleet) {
        self.0.set(engine.work());
        feed.follow(engine, before, after);
    }
}

/// What some histories touch is written down to the last mark. The answers were compared with the oracle's
/// elsewhere; a number that grows here is a fact that marks more than it changes, one that shrinks is welcome.
#[test]
fn histories_touch_no_more_than_they_did() {
    let touched = |mode, steps| {
        let each = (0..12).map(|seed| {
            let watched = Watched::default();
            let ran = History { seed, steps, mode }.run(&watched);
            assert!(ran.is_ok(), "seed {seed} differs from the oracle");
            watched.0.get()
        });
        each.fold(Work::default(), |sum, work| Work {
            needs: sum.needs + work.needs,
            machines: sum.machines + work.machines,
            classes: sum.classes + work.classes,
            marked: sum.marked + work.marked,
        })
    };
    let few = Work {
        needs: 1697,
        machines: 31_820,
        classes: 507,
        marked: 5078,
    };
    let crowd = Work {
        needs: 3435,
        machines: 224_968,
        classes: 1266,
        marked: 8854,
    };
    assert_eq!(
        (touched(Mode::Few, 60), touched(Mode::Crowd, 12)),
        (few, crowd)
    );
}

#[test]
fn counts_are_those_of_the_fleet() {
    let fleet = fleet(
        "m1..m3 Configured a cpu=4 own=n $1
         m4 Configured a cpu=4 own=n $2
         i1..i2 Idle cpu=8 $2
         need a name:n cpu=16
         need a name:o cpu=8 prio=3",
    );
    let mut engine = decided(&fleet);
    let counts = engine.counts();
    let record_bytes = counts.record_bytes;
    let expected = Counts {
        machines: 6,
        shapes: 3,
        profiles: 2,
        rows: 2,
        rows_after_fold: 2,
        record_bytes,
    };
    assert_eq!(counts, expected);
    let gone = fleet.machines.keys().next().cloned();
    gone.iter().for_each(|id| engine.remove_machine(id));
    assert_eq!(engine.counts().machines, 5);
}

/// A machine is released at the very nanosecond its hold runs out, and time before that changes nothing.
#[test]
fn a_hold_ends_to_the_nanosecond() {
    let since = Time::from_nanos(1_700_000_000_000_000_001);
    let mut fleet = fleet("i1 Idle cpu=4 OnDemand");
    for held in fleet.machines.values_mut() {
        held.idle_since = Some(since);
    }
    let hold = Duration::from_nanos(600_000_000_007);
    fleet.holds.on_demand = Some(hold);
    let nanosecond = |more: i64| Time::from_nanos((since + hold).nanos() + more);
    let mut engine = Engine::new();
    engine.load(&fleet);
    engine.decide(since);
    let mut deleted = |at: Time| {
        let mut decided = false;
        engine.decide_in_parts(at, &mut |_| decided = true);
        (decided, engine.actions().len())
    };
    assert_eq!(deleted(nanosecond(-1)), (false, 0), "still held");
    assert_eq!(deleted(nanosecond(0)), (true, 1), "the hold has run out");
}
