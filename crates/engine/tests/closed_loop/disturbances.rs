//! What goes wrong or changes while machines are on their way (AT-2, AT-3, AT-4, AT-5).

use crate::{
    DECIDE,
    commit::change,
    driver::{Latency, Loop, Tally},
    starts::{settled, with_rows},
};
use bigfleet_model::{Fleet, MachineId, Profile, State};

/// Every kind of row, twice as many machines as they need, all of one size.
pub(crate) fn busy() -> Fleet {
    bigfleet_testkit::fleet(
        "holds OnDemand=never Spot=never
         need a name:web cpu=20 min:cpu=4 prio=100
         need a group=g1 rack=Same cpu=8 min:cpu=4 prio=300
         need a group=g2 rack=Same cpu=8 min:cpu=4 prio=300
         need a group=small rack=Same cpu=4 min:cpu=4 prio=50
         need b name:spread cpu=16 prio=200 spread=zone/1
         need b name:batch cpu=8 prio=1
         i1..i4 Idle cpu=4 $1 rack=r1 zone=z1
         i5..i6 Idle cpu=4 $1 rack=r2 zone=z2
         s1..s8 Speculative cpu=4 $1 rack=r1 zone=z1
         t1..t8 Speculative cpu=4 $1 rack=r2 zone=z2
         u1..u8 Speculative cpu=4 $1 rack=r3 zone=z3",
    )
}

/// Machines of four cpu that cover every row of [`busy`].
pub(crate) const WANTED: usize = 16;

pub(crate) fn all_latencies() -> impl Iterator<Item = Latency> {
    [Latency::Zero].into_iter().chain(Latency::SLOW)
}

fn settle(run: &mut Loop, what: &str) {
    assert!(
        run.settle(1000),
        "{what}: never quiet\n{}",
        run.story.join("\n")
    );
}

fn only_acquired(acquired: usize) -> Tally {
    Tally {
        acquired,
        ..Tally::default()
    }
}

#[test]
fn undisturbed_it_takes_exactly_what_is_wanted() {
    for latency in all_latencies() {
        let mut run = Loop::new(DECIDE, busy(), latency, 1);
        settle(&mut run, "undisturbed");
        assert_eq!(run.tally, only_acquired(WANTED), "{latency:?}");
    }
}

/// The failing arm: intents lost on arrival, as in the design this one replaces, must show.
#[test]
fn lost_intents_are_caught() {
    let caught = Latency::SLOW.into_iter().any(|latency| {
        let mut run = Loop::new(DECIDE, busy(), latency, 1);
        run.forgetful = true;
        !run.settle(1000) || run.tally != only_acquired(WANTED)
    });
    assert!(
        caught,
        "the loop no longer shows the defect it guards against"
    );
}

/// AT-3: a backlog buys nothing twice.
#[test]
fn an_executor_that_takes_few_actions_buys_nothing_twice() {
    for executor in [1, 2, 3, 5] {
        for latency in all_latencies() {
            let mut run = Loop::new(DECIDE, busy(), latency, 2);
            run.executor = executor;
            settle(&mut run, "executor");
            assert_eq!(run.tally, only_acquired(WANTED), "{executor} {latency:?}");
        }
    }
}

/// AT-4: every failed create is replaced exactly once.
#[test]
fn a_failing_create_is_replaced_once() {
    for latency in all_latencies() {
        let mut run = Loop::new(DECIDE, busy(), latency, 3);
        run.failing = 4;
        settle(&mut run, "failing");
        let machines = run.fleet.machines.values();
        let failed = machines.filter(|found| found.machine.state() == State::Failed);
        let failed = failed.count();
        assert!(0 < failed, "no create failed");
        assert_eq!(run.tally, only_acquired(WANTED + failed), "{latency:?}");
    }
}

/// AT-2: whichever machine is lost, exactly one is acquired. A gang's rack has spares here; one
/// whose rack cannot replace a loss moves as a whole.
#[test]
fn one_lost_machine_is_replaced_once() {
    let calm = settled(busy());
    let serving: Vec<MachineId> = calm
        .machines
        .iter()
        .filter(|(_, found)| found.machine.state() == State::Configured)
        .map(|(id, _)| id.clone())
        .collect();
    assert_eq!(serving.len(), WANTED);
    for lost in &serving {
        for latency in all_latencies() {
            let mut fleet = calm.clone();
            fleet.machines.remove(lost);
            let mut run = Loop::new(DECIDE, fleet, latency, 4);
            settle(&mut run, "lost");
            assert_eq!(
                run.tally,
                only_acquired(1),
                "{lost} {latency:?}\n{}",
                run.story.join("\n")
            );
        }
    }
}

/// EX-RF12 in the loop: a row's priority is edited while its machines are on their way.
#[test]
fn an_edited_priority_changes_nothing_in_flight() {
    for after in 0..6 {
        for latency in Latency::SLOW {
            let mut run = Loop::new(DECIDE, busy(), latency, 5);
            (0..after).for_each(|_| drop(run.step()));
            run.fleet = with_rows(run.fleet.clone(), |row| {
                let old = &row.profile;
                let (requirements, spread) = (old.requirements().to_vec(), old.spread().to_vec());
                let priority = old.priority() + 7;
                let (interruption, reclamation) = (old.interruption(), old.reclamation());
                row.profile =
                    Profile::new(requirements, spread, priority, interruption, reclamation).into();
            });
            settle(&mut run, "edited");
            assert_eq!(
                run.tally,
                only_acquired(WANTED),
                "after {after}, {latency:?}\n{}",
                run.story.join("\n")
            );
        }
    }
}

/// AT-5: however long the drain takes, one short Need preempts once.
#[test]
fn a_long_drain_preempts_once() {
    for drain in [0, 1, 5, 20] {
        let fleet = bigfleet_testkit::fleet(
            "need a cpu=8 min:cpu=4 prio=1000
             need b cpu=8 prio=100
             a1 Configured a cpu=4 own=a
             b1..b2 Configured b cpu=4 own=b",
        );
        let latency = Latency::Steady {
            create: 1,
            bind: 2,
            drain,
        };
        let mut run = Loop::new(DECIDE, fleet, latency, 6);
        settle(&mut run, "drain");
        let once = Tally {
            preempted: 1,
            ..Tally::default()
        };
        assert_eq!(run.tally, once, "{drain}\n{}", run.story.join("\n"));
    }
}

/// Prices move under serving machines; the price they are kept at does not (AT-6).
#[test]
fn a_moving_price_drains_nothing() {
    let mut run = Loop::new(DECIDE, settled(busy()), Latency::SLOW[0], 7);
    let ids: Vec<MachineId> = run.fleet.machines.keys().cloned().collect();
    for turn in 0..20 {
        for (at, id) in ids.iter().enumerate() {
            change(&mut run.fleet, id.as_str(), |facts| {
                facts.price_per_hour = ((at * 7 + turn * 3) % 11) as f64;
            });
        }
        run.step();
    }
    assert_eq!(run.tally, Tally::default(), "{}", run.story.join("\n"));
}

/// What demand no longer wants is drained once, held for its time and released once.
#[test]
fn a_machine_is_bought_and_released_once() {
    let fleet = bigfleet_testkit::fleet(
        "cluster a
         need b cpu=4
         m1..m3 Configured a cpu=4 Spot
         b1 Configured b cpu=4 own=b",
    );
    let mut run = Loop::new(DECIDE, fleet, Latency::SLOW[1], 8);
    settle(&mut run, "released");
    assert_eq!((run.tally.reclaimed, run.tally.acquired), (3, 0));
    let speculative =
        |found: &&bigfleet_model::FleetMachine| found.machine.state() == State::Speculative;
    assert_eq!(run.fleet.machines.values().filter(speculative).count(), 3);
}
