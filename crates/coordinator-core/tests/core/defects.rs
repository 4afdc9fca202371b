//! Failing arms: with a mistake switched on, two shards have one machine, or none has it. With it off, the same story ends well.

use bigfleet_coordinator_core::{AdminRequest, Caller, Defect, Holdings, Step};

use crate::{
    shard::Shard,
    support::{One, machine, two_shards},
    walks::walk,
};

/// A random walk that goes wrong shows the mistake.
#[test]
fn walks_notice() {
    for defect in [
        Defect::ReignNotRaised,
        Defect::FloorIgnored,
        Defect::HolderFollowsDesired,
        Defect::GrantedUnrecorded,
        Defect::HolderLostOnRemoval,
        Defect::ForeignLeftOut,
        Defect::RestoreDoesNotWait,
        Defect::RestoreNotRebuilt,
        Defect::RestoredTells,
    ] {
        let is_noticed = (1..=100).any(|seed| walk(seed, Some(defect)).is_err());
        assert!(is_noticed, "{defect:?} goes unnoticed");
    }
}

/// Whether two shards have machine `a1`.
type Story = fn(&mut One) -> bool;

/// The mistakes that need two things to go wrong at the same moment, each with the story that brings them together.
const STORIES: [(Defect, Story); 6] = [
    (Defect::OldReportBelieved, overtaken),
    (Defect::UnheardBelieved, from_before_the_reign),
    (Defect::UnsettledIgnored, agreed_on_late),
    (Defect::EpochUnchecked, of_an_earlier_start),
    (Defect::ProcessUnchecked, of_a_second_process),
    (Defect::DirectoryUnchecked, of_another_directory),
];

#[test]
fn stories_notice() {
    for (defect, story) in STORIES {
        assert!(!story(&mut One::new(None)), "without {defect:?}");
        assert!(
            story(&mut One::new(Some(defect))),
            "{defect:?} goes unnoticed"
        );
    }
    let noticed = STORIES.len() + 9;
    assert_eq!(noticed, Defect::ALL.len(), "each mistake has its test");
}

fn both_have_it(s1: &Shard, s2: &Shard) -> bool {
    s1.acts_on(&machine("a1")) && s2.acts_on(&machine("a1"))
}

/// The grant is under way; a report from before it arrives after the domain was moved.
fn overtaken(one: &mut One) -> bool {
    let (mut s1, mut s2) = two_shards(one);
    one.assign("a", "s1").unwrap();
    let before = s1.report();
    let grant = one.take(s1.report()).unwrap();
    one.move_to("a", "s2").unwrap();
    one.take(before).unwrap();
    one.rounds(&mut s2, 3);
    s1.hear(&grant);
    both_have_it(&s1, &s2)
}

/// The same, and the leader changed in between, so that the new one has nothing to compare the report with.
fn from_before_the_reign(one: &mut One) -> bool {
    let (mut s1, mut s2) = (Shard::new("s1", "p:1"), Shard::new("s2", "p:1"));
    for shard in [&mut s1, &mut s2] {
        shard.holdings = Some(Holdings::default());
        one.rounds(shard, 2);
    }
    one.assign("a", "s1").unwrap();
    let before = s1.report();
    let grant = one.take(s1.report()).unwrap();
    one.elect();
    one.move_to("a", "s2").unwrap();
    one.take(before).unwrap();
    one.rounds(&mut s2, 4);
    s1.hear(&grant);
    both_have_it(&s1, &s2)
}

/// Words that were given up on are agreed on after the next report was answered.
fn agreed_on_late(one: &mut One) -> bool {
    let (mut s1, mut s2) = two_shards(one);
    one.assign("a", "s1").unwrap();
    one.take(s1.report()).unwrap();
    one.assign("b", "s1").unwrap();
    let caller = Caller::Unverified;
    let Step::Propose(slow, _given_up) = one.core.report(one.now, &caller, s1.report()) else {
        panic!("nothing to agree on");
    };
    one.unassign("b");
    let grant = match one.core.report(one.now, &caller, s1.report()) {
        Step::Answer(answer) => {
            one.move_to("a", "s2").unwrap();
            one.core.apply(&slow);
            answer
        }
        Step::Propose(entry, ticket) => {
            one.core.apply(&slow);
            let results = one.core.apply(&entry);
            let Step::Answer(answer) = one.core.proceed(one.now, ticket, &results) else {
                panic!();
            };
            one.move_to("a", "s2").unwrap();
            answer
        }
        Step::Refuse(refused) => panic!("{refused}"),
    };
    one.rounds(&mut s2, 3);
    s1.hear(&grant);
    both_have_it(&s1, &s2)
}

/// Somebody else reports as `s1`, twice, and does not hold what the real one does.
fn impersonated(one: &mut One, other: impl Fn(&Shard) -> Shard) -> bool {
    let (mut s1, mut s2) = two_shards(one);
    let mut other = other(&s1);
    s1.restart();
    one.assign("a", "s1").unwrap();
    one.rounds(&mut s1, 3);
    one.move_to("a", "s2").unwrap();
    for _ in 0..3 {
        let _refused = one.take(other.report());
    }
    one.rounds(&mut s2, 3);
    both_have_it(&s1, &s2)
}

/// Reports of the process before, which were on their way for long.
fn of_an_earlier_start(one: &mut One) -> bool {
    impersonated(one, Shard::clone)
}

/// A copy of the directory, started as often as the original.
fn of_a_second_process(one: &mut One) -> bool {
    impersonated(one, |s1| {
        let mut copy = s1.clone();
        copy.restart();
        copy.process += 77;
        copy
    })
}

/// Another directory of a shard with this name, with records of its own.
fn of_another_directory(one: &mut One) -> bool {
    impersonated(one, |s1| {
        let mut other = s1.clone();
        other.epoch += 10;
        other.directory += 77;
        other.process += 77;
        other
    })
}

/// What pausing does is on record, whoever leads.
#[test]
fn pausing_outlives_a_leader() {
    let mut one = One::new(None);
    one.ask(AdminRequest::PauseRebalancing(true)).unwrap();
    one.elect();
    assert!(one.core.tables().is_rebalancing_paused());
}
