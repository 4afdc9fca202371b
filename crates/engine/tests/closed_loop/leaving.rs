//! Machines that leave, at static demand (RF-21): each is replaced first, once, and for nothing else.
//!
//! After every cycle a count of its own says whether somebody left too early: of each Need the machines that
//! serve it, of which one that goes is none.

use crate::{
    DECIDE,
    disturbances::{WANTED, all_latencies, busy},
    driver::{Latency, Loop, Tally},
    starts::{Sizes, free_pool, settled},
};
use bigfleet_model::{
    ActionKind, Amounts, Decision, Fleet, Leaving, MachineId, Need, Reason, State,
};
use bigfleet_seeded::Prng;

fn serving(fleet: &Fleet) -> Vec<MachineId> {
    let machines = fleet.machines.iter();
    let serving = machines.filter(|(_, found)| found.machine.state() == State::Configured);
    serving.map(|(id, _)| id.clone()).collect()
}

fn mark<'m>(
    fleet: &mut Fleet,
    machines: impl IntoIterator<Item = &'m MachineId>,
    word: Option<Leaving>,
) {
    for id in machines {
        if let Some(found) = fleet.machines.get_mut(id) {
            found.leaving = word;
        }
    }
}

/// What a Need has of machines that serve: those that count for it and are Configured.
fn served(fleet: &Fleet, decision: &Decision, need: &Need) -> Amounts {
    let claims = decision.claims.iter();
    let claims = claims.filter(|claim| claim.need == need.key());
    let machines = claims.map(|claim| &fleet.machines[&claim.machine].machine);
    let serving = machines.filter(|machine| machine.state() == State::Configured);
    serving.fold(Amounts::NONE, |sum, machine| {
        sum.add(machine.shape().effective())
    })
}

/// One cycle: a machine that leaves soon goes only if it has nothing of what others that serve its Need lack.
/// Rows of whole units are counted elsewhere.
fn step(run: &mut Loop, what: &str) -> Decision {
    let before = run.fleet.clone();
    let decision = run.step();
    let actions = decision.actions.iter();
    for action in actions.filter(|action| action.reason == Reason::Leaving) {
        let found = &before.machines[&action.machine];
        let attribution = found.machine.attribution();
        let mut needs = decision.needs.iter().map(|verdict| &verdict.need);
        if let Some(need) = needs.find(|need| Some(need.key()) == attribution)
            && found.leaving == Some(Leaving::Soon)
            && !need.row.whole_units
        {
            let lacks = need.row.aggregate.sub(&served(&before, &decision, need));
            assert!(
                !found.machine.shape().effective().contributes_to(&lacks),
                "{what}: {} leaves {}, which lacks {lacks:?}\n{}",
                action.machine,
                need.key(),
                run.story.join("\n")
            );
        }
    }
    decision
}

/// Runs until nothing is on its way and nothing is decided any more.
fn settle(run: &mut Loop, what: &str) -> Decision {
    for _ in 0..1000 {
        let rested = !run.on_the_way();
        let decision = step(run, what);
        if rested && crate::driver::is_quiet(&decision) {
            return decision;
        }
    }
    panic!("{what}: never quiet\n{}", run.story.join("\n"));
}

/// Where machines have one size, one acquisition each and no other drain.
#[test]
fn whichever_machine_leaves_soon_is_replaced_first_and_once() {
    let calm = settled(busy());
    for leaves in &serving(&calm) {
        for latency in all_latencies() {
            let mut fleet = calm.clone();
            mark(&mut fleet, [leaves], Some(Leaving::Soon));
            let mut run = Loop::new(DECIDE, fleet, latency, 1);
            settle(&mut run, "soon");
            let once = Tally {
                acquired: 1,
                reclaimed: 1,
                preempted: 0,
            };
            let story = run.story.join("\n");
            assert_eq!(run.tally, once, "{leaves} {latency:?}\n{story}");
            let state = run.fleet.machines[leaves].machine.state();
            assert_eq!(state, State::Idle, "for the mechanic");
        }
    }
}

/// A rack at once: gangs move as a whole, what is spread finds other places, and all of the rack is out.
#[test]
fn a_rack_leaves_at_once() {
    let calm = settled(busy());
    for rack in ["r1", "r2", "r3"] {
        let in_rack = |id: &&MachineId| {
            let shape = calm.machines[*id].machine.shape();
            shape.attribute("rack") == Some(rack)
        };
        let all: Vec<&MachineId> = calm.machines.keys().filter(in_rack).collect();
        let out = serving(&calm).iter().filter(in_rack).count();
        for latency in all_latencies() {
            let mut fleet = calm.clone();
            mark(&mut fleet, all.iter().copied(), Some(Leaving::Soon));
            let mut run = Loop::new(DECIDE, fleet, latency, 2);
            let decision = settle(&mut run, rack);
            let story = run.story.join("\n");
            let short = decision.needs.iter().find(|verdict| !verdict.satisfied);
            assert!(short.is_none(), "{rack} {latency:?}\n{story}");
            let once = Tally {
                acquired: out,
                reclaimed: out,
                preempted: 0,
            };
            assert_eq!(run.tally, once, "{rack} {latency:?}\n{story}");
            let left = all
                .iter()
                .find(|id| run.fleet.machines[**id].machine.state().is_bound());
            assert_eq!(left, None, "{rack} {latency:?}\n{story}");
            assert_eq!(serving(&run.fleet).len(), WANTED);
        }
    }
}

/// On and off costs at most one acquisition per machine and mark, and what was bought goes again.
#[test]
fn a_mark_that_is_withdrawn_costs_at_most_one_machine() {
    let calm = settled(busy());
    for leaves in serving(&calm).iter().step_by(3) {
        for latency in Latency::SLOW {
            for after in 0..5 {
                let mut fleet = calm.clone();
                mark(&mut fleet, [leaves], Some(Leaving::Soon));
                let mut run = Loop::new(DECIDE, fleet, latency, 3);
                (0..after).for_each(|_| drop(step(&mut run, "on")));
                mark(&mut run.fleet, [leaves], None);
                settle(&mut run, "off");
                let Tally {
                    acquired,
                    reclaimed,
                    preempted,
                } = run.tally;
                let story = run.story.join("\n");
                assert!(
                    acquired <= 1 && preempted == 0,
                    "{leaves} {latency:?}\n{story}"
                );
                // What was not bound yet goes back to the pool, and nothing else is drained for it.
                assert!(reclaimed <= acquired, "{leaves} {latency:?}\n{story}");
                assert_eq!(
                    serving(&run.fleet).len(),
                    WANTED,
                    "{leaves} {latency:?}\n{story}"
                );
            }
        }
    }
}

/// What leaves now goes in the same cycle, and is replaced in it.
#[test]
fn what_leaves_now_goes_in_the_same_cycle() {
    let calm = settled(busy());
    for leaves in &serving(&calm) {
        let mut fleet = calm.clone();
        mark(&mut fleet, [leaves], Some(Leaving::Now));
        let mut run = Loop::new(DECIDE, fleet, Latency::SLOW[1], 4);
        let first = step(&mut run, "now");
        let kinds: Vec<ActionKind> = first.actions.iter().map(|action| action.kind).collect();
        let is_bought = matches!(
            kinds[..],
            [ActionKind::Bootstrap | ActionKind::Provision, _]
        );
        assert!(
            is_bought && kinds[1] == ActionKind::Reclaim,
            "{leaves}: {kinds:?}"
        );
        settle(&mut run, "now");
        let once = Tally {
            acquired: 1,
            reclaimed: 1,
            preempted: 0,
        };
        assert_eq!(run.tally, once, "{leaves}\n{}", run.story.join("\n"));
    }
}

/// On any start: it becomes quiet, nobody leaves too early, and what is still there has no replacement.
#[test]
fn what_leaves_soon_is_out_or_has_no_replacement() {
    let (mut out, mut stuck) = (0, 0);
    for seed in 0..60 {
        for sizes in [Sizes::One, Sizes::Mixed] {
            let calm = settled(free_pool(seed, sizes));
            let mut prng = Prng::new(seed);
            let all = serving(&calm);
            let leave: Vec<&MachineId> = all.iter().filter(|_| prng.percent(40)).collect();
            for latency in [Latency::Zero, Latency::SLOW[1], Latency::SLOW[4]] {
                let mut fleet = calm.clone();
                mark(&mut fleet, leave.iter().copied(), Some(Leaving::Soon));
                let mut run = Loop::new(DECIDE, fleet, latency, seed);
                let what = format!("seed {seed}, {sizes:?}, {latency:?}");
                let decision = settle(&mut run, &what);
                for id in &leave {
                    let is_bound = run.fleet.machines[*id].machine.state().is_bound();
                    let is_claimed = decision.claims.iter().any(|claim| claim.machine == **id);
                    assert_eq!(
                        is_bound,
                        is_claimed,
                        "{what}: {id}\n{}",
                        run.story.join("\n")
                    );
                    *(if is_bound { &mut stuck } else { &mut out }) += 1;
                }
            }
        }
    }
    assert!(200 < out && 200 < stuck, "{out} out, {stuck} not replaced");
}

/// The failing arm: with the mark read as `now`, machines leave before they are replaced.
#[test]
#[should_panic(expected = "leaves")]
fn a_machine_that_leaves_too_early_is_caught() {
    fn too_early(fleet: &Fleet) -> Decision {
        let mut hasty = fleet.clone();
        let soon = hasty.machines.values_mut();
        soon.filter(|found| found.leaving.is_some())
            .for_each(|found| found.leaving = Some(Leaving::Now));
        DECIDE(&hasty)
    }
    let mut fleet = settled(busy());
    let leaves = serving(&fleet);
    mark(&mut fleet, leaves.first(), Some(Leaving::Soon));
    step(
        &mut Loop::new(too_early, fleet, Latency::SLOW[1], 5),
        "too early",
    );
}
