//! Reports: the order of checks, what a reign must hear first, what is replaced, and what is asked again.

use bigfleet_coordinator_core::{
    AckOutcome, Caller, Code, Refused, ReportEnd, Scope, Shortfall, Step,
};
use bigfleet_model::{Amounts, Bucket, Operator};

use crate::{
    shard::Shard,
    support::{One, machine, shard, shown, two_shards},
};

/// CO-18: leader, arguments, certificate, identity.
#[test]
fn checks_come_in_order() {
    let mut one = One::new(None);
    let (mut s1, _s2) = two_shards(&mut one);
    let bad_name = |core: &mut Shard| {
        let mut facts = core.report();
        facts.shard = String::new();
        facts
    };
    let other = Caller::Named("bigfleet://shard/s2".to_owned());
    let admin = Caller::Named("bigfleet://admin".to_owned());
    let code = |step: Step| match step {
        Step::Refuse(refused) => refused.code(),
        step => panic!("{step:?}"),
    };
    let refused = one.core.report(one.now, &other, bad_name(&mut s1));
    assert_eq!(code(refused), Code::InvalidArgument);
    for caller in [&other, &admin] {
        let refused = one.core.report(one.now, caller, s1.report());
        assert_eq!(code(refused), Code::PermissionDenied);
    }
    let mut copy = s1.clone();
    copy.process += 1;
    let refused = one.core.report(one.now, &Caller::Unverified, copy.report());
    assert_eq!(code(refused), Code::AlreadyExists);
    one.core.deposed();
    let refused = one.core.report(one.now, &other, bad_name(&mut s1));
    let Step::Refuse(refused) = refused else {
        panic!();
    };
    assert_eq!(refused, Refused::NotLeader);
    assert_eq!(refused.to_string(), "coordinator: not leader");
    assert!(one.core.read(&Caller::Unverified).is_err());
}

/// CO-19: the first report is registration, the second is heard.
#[test]
fn a_shard_alone_on_its_provider_has_everything() {
    let mut one = One::new(None);
    let mut s1 = Shard::new("s1", "p:1");
    assert_eq!(shown(&one.round(&mut s1)), "WAIT");
    assert_eq!(shown(&one.round(&mut s1)), "EVERYTHING");
    assert!(s1.acts_on(&machine("a1")));
    let mut s2 = Shard::new("s2", "p:1");
    one.round(&mut s2);
    assert_eq!(shown(&one.round(&mut s2)), "ASSIGNED", "and nothing is");
    assert!(!s2.acts_on(&machine("a1")));
    // The first assignment ends it, once the shard has let go of the rest.
    one.assign("a", "s1").unwrap();
    one.assign("b", "s2").unwrap();
    assert_eq!(shown(&one.round(&mut s1)), "EVERYTHING assign zone=a");
    one.rounds(&mut s2, 2);
    assert!(s1.acts_on(&machine("b1")) && !s2.acts_on(&machine("b1")));
    s1.let_go();
    one.rounds(&mut s1, 2);
    one.rounds(&mut s2, 2);
    assert!(s1.acts_on(&machine("a1")) && !s1.acts_on(&machine("b1")));
    assert!(s2.acts_on(&machine("b1")));
}

/// A shard whose answer was lost before it had anything on disk is told again.
#[test]
fn everything_is_told_again_when_the_answer_is_lost() {
    let mut one = One::new(None);
    let mut s1 = Shard::new("s1", "p:1");
    one.round(&mut s1);
    let lost = one.take(s1.report()).unwrap();
    assert_eq!(lost.scope, Scope::Everything);
    assert_eq!(shown(&one.round(&mut s1)), "EVERYTHING");
}

/// CO-18: a report that was seen, or overtaken, is answered and changes nothing.
#[test]
fn replayed_and_reordered_reports_change_nothing() {
    let mut one = One::new(None);
    let (mut s1, _s2) = two_shards(&mut one);
    let (first, second) = (s1.report(), s1.report());
    one.take(second.clone()).unwrap();
    let (tables, seen) = (one.core.tables().clone(), reported(&one, "s1"));
    for late in [second, first] {
        assert_eq!(shown(&one.take(late).unwrap()), "WAIT");
        assert_eq!(*one.core.tables(), tables);
        assert_eq!(reported(&one, "s1"), seen);
    }
    assert_eq!(one.core.counters().reports[&ReportEnd::Old], 2);
}

fn reported(one: &One, id: &str) -> Vec<bigfleet_coordinator_core::ShownReport> {
    let shown = one.core.read(&Caller::Unverified).unwrap();
    shown.reports(one.now, Some(id))
}

/// A report replaces the one before, with nothing too; a removed shard has none.
#[test]
fn a_report_replaces_the_one_before() {
    let mut one = One::new(None);
    let (mut s1, _s2) = two_shards(&mut one);
    let mut facts = s1.report();
    facts.summary.machines = 7;
    facts.shortfalls = vec![Shortfall {
        requirements: Vec::new(),
        deficit: Amounts::NONE,
        priority: 5,
        age_cycles: 1,
        bucket: Bucket::UNSPECIFIED,
        constrained: false,
        fingerprint: "f".to_owned(),
        min_unit: Amounts::NONE,
        whole_units: false,
    }];
    one.take(facts).unwrap();
    assert_eq!(reported(&one, "s1")[0].shortfalls.len(), 1);
    assert_eq!(reported(&one, "s1")[0].summary.machines, 7);
    one.take(s1.report()).unwrap();
    assert_eq!(reported(&one, "s1")[0].shortfalls, []);
    assert_eq!(reported(&one, "s1")[0].summary.machines, 0);
    assert!(!reported(&one, "s1")[0].is_stale);
    one.now = one.now + std::time::Duration::from_secs(31);
    assert!(reported(&one, "s1")[0].is_stale);
    one.remove("s1", false).unwrap();
    assert_eq!(reported(&one, "s1"), []);
    assert_eq!(reported(&one, "nobody"), []);
}

/// A requirement that machines share a topology keeps a shortfall at home, whatever its shard says.
#[test]
fn a_shortfall_with_same_is_constrained() {
    let mut one = One::new(None);
    let (mut s1, _s2) = two_shards(&mut one);
    let mut facts = s1.report();
    let requirement = bigfleet_coordinator_core::ShortfallRequirement {
        key: "rack".to_owned(),
        operator: Some(Operator::Same),
        values: Vec::new(),
    };
    facts.shortfalls = vec![Shortfall {
        requirements: vec![requirement],
        deficit: Amounts::NONE,
        priority: 0,
        age_cycles: 9,
        bucket: Bucket::UNSPECIFIED,
        constrained: false,
        fingerprint: String::new(),
        min_unit: Amounts::NONE,
        whole_units: false,
    }];
    one.take(facts).unwrap();
    assert!(reported(&one, "s1")[0].shortfalls[0].constrained);
}

/// CO-31, CO-19: what the leader cannot derive from a digest it asks for, once.
#[test]
fn lists_are_asked_for_when_the_digest_is_unknown() {
    let mut one = One::new(None);
    let (mut s1, _s2) = two_shards(&mut one);
    one.assign("a", "s1").unwrap();
    one.rounds(&mut s1, 3);
    one.elect();
    assert_eq!(
        shown(&one.round(&mut s1)),
        "WAIT",
        "a digest the tables expect"
    );
    assert_eq!(shown(&one.round(&mut s1)), "ASSIGNED");
    // It holds something nobody told it to, as after a restore.
    s1.holdings
        .as_mut()
        .unwrap()
        .domains
        .insert(crate::support::zone("z"));
    assert_eq!(shown(&one.round(&mut s1)), "WAIT send-lists");
    assert_eq!(shown(&one.round(&mut s1)), "ASSIGNED unassign zone=z");
    assert_eq!(shown(&one.round(&mut s1)), "ASSIGNED unassign zone=z");
    s1.let_go();
    assert_eq!(shown(&one.round(&mut s1)), "WAIT send-lists");
    assert_eq!(shown(&one.round(&mut s1)), "ASSIGNED");
    assert_eq!(one.holder("z"), None);
}

/// CO-23: an instruction keeps its id while it is wanted; a failed one is left alone for three reports.
#[test]
fn instructions_are_named_once_and_rest_after_a_failure() {
    let mut one = One::new(None);
    let (mut s1, _s2) = two_shards(&mut one);
    one.assign("a", "s1").unwrap();
    let first = one.take(s1.report()).unwrap();
    let again = one.take(s1.report()).unwrap();
    assert_eq!(first.instructions, again.instructions, "nobody answered");
    assert_eq!(first.instructions[0].id.len(), 16);
    s1.outcome = AckOutcome::Failed;
    one.round(&mut s1);
    let rests: Vec<String> = (0..5).map(|_| shown(&one.round(&mut s1))).collect();
    let (rest, given) = ("ASSIGNED", "ASSIGNED assign zone=a");
    assert_eq!(rests, [rest, rest, rest, given, rest]);
    s1.outcome = AckOutcome::RejectedInvalid;
    one.rounds(&mut s1, 4);
    let rests: Vec<String> = (0..9).map(|_| shown(&one.round(&mut s1))).collect();
    assert!(rests.iter().all(|shown| shown == rest), "{rests:?}");
    let before = &first.instructions[0].id;
    one.elect();
    s1.outcome = AckOutcome::Accepted;
    one.round(&mut s1);
    let anew = one.take(s1.report()).unwrap();
    assert_ne!(anew.instructions[0].id, *before, "of another reign");
}

/// At most 256 at a time, and in the end all of them.
#[test]
fn many_domains_come_in_several_answers() {
    let mut one = One::new(None);
    let (mut s1, _s2) = two_shards(&mut one);
    for number in 0..600 {
        one.assign(&format!("a{number}"), "s1").unwrap();
    }
    let counts = [0; 6].map(|_| one.round(&mut s1).instructions.len());
    assert_eq!(
        counts,
        [256, 0, 256, 0, 88, 0],
        "lists are asked for in between"
    );
}

/// First contact wins; the other shard is shown, not stopped.
#[test]
fn a_cluster_at_two_shards_is_shown() {
    let mut one = One::new(None);
    let (mut s1, mut s2) = two_shards(&mut one);
    s1.clusters = vec!["c1".to_owned(), "not an id".to_owned()];
    s2.clusters = vec!["c1".to_owned(), "c2".to_owned()];
    one.round(&mut s1);
    assert_eq!(shown(&one.round(&mut s2)), "ASSIGNED");
    let clusters = one.core.read(&Caller::Unverified).unwrap().clusters();
    let lines = clusters.iter().map(|one| {
        let also: Vec<&str> = one.also_at.iter().map(|shard| shard.as_str()).collect();
        format!("{} {} {}", one.cluster, one.shard, also.join(","))
    });
    assert_eq!(lines.collect::<Vec<_>>(), ["c1 s1 s2", "c2 s2 "]);
}

/// A shard of an earlier version is registered and told nothing, and can be upgraded.
#[test]
fn a_shard_without_a_directory_is_only_registered() {
    let mut one = One::new(None);
    let mut old = Shard::new("s1", "p:1");
    for cycle in 1..4 {
        let mut facts = old.report();
        facts.directory = 0;
        facts.process = String::new();
        facts.digest = vec![1; 32];
        facts.cycle = cycle;
        assert_eq!(shown(&one.take(facts).unwrap()), "WAIT");
    }
    assert_eq!(one.core.tables().snapshot().shards.len(), 1);
    old.restart();
    old.holdings = Some(Default::default());
    one.rounds(&mut old, 2);
    assert_eq!(shown(&one.round(&mut old)), "ASSIGNED");
}

/// The address of a shard that moved is on record at once; an empty one changes nothing.
#[test]
fn addresses_are_followed() {
    let mut one = One::new(None);
    let (mut s1, _s2) = two_shards(&mut one);
    let address = |one: &One| one.core.tables().snapshot().shards[0].1.address.clone();
    let mut facts = s1.report();
    facts.address = "elsewhere:7780".to_owned();
    one.take(facts).unwrap();
    assert_eq!(address(&one), "elsewhere:7780");
    let mut facts = s1.report();
    facts.address = String::new();
    one.take(facts).unwrap();
    assert_eq!(address(&one), "elsewhere:7780");
}

/// A report whose words wait for agreement, and are overtaken, ends with WAIT; the next one agrees on its own words first (CO-24).
#[test]
fn an_answer_waits_for_what_is_unsettled() {
    let mut one = One::new(None);
    let (mut s1, _s2) = two_shards(&mut one);
    one.assign("a", "s1").unwrap();
    let caller = Caller::Unverified;
    let Step::Propose(slow, ticket) = one.core.report(one.now, &caller, s1.report()) else {
        panic!("nothing to agree on");
    };
    // The shard gave up and asks again, while nobody knows what becomes of the first words.
    let Step::Propose(next, newer) = one.core.report(one.now, &caller, s1.report()) else {
        panic!("it must be settled first");
    };
    let results = one.core.apply(&slow);
    let Step::Answer(answer) = one.core.proceed(one.now, ticket, &results) else {
        panic!();
    };
    assert_eq!(shown(&answer), "WAIT", "overtaken");
    let results = one.core.apply(&next);
    let Step::Answer(answer) = one.core.proceed(one.now, newer, &results) else {
        panic!();
    };
    assert_eq!(shown(&answer), "ASSIGNED assign zone=a");
    assert_eq!(one.core.tables().snapshot().shards[0].0, shard("s1"));
}

/// CO-32: two shards that both say everything is theirs are shown; whoever is given a domain lets the rest go.
#[test]
fn two_that_hold_everything_are_shown() {
    let mut one = One::new(None);
    let everything = |id: &str| {
        let mut shard = Shard::new(id, "p:1");
        shard.holdings = Some(bigfleet_coordinator_core::Holdings {
            everything: true,
            ..Default::default()
        });
        shard
    };
    let (mut s1, mut s2) = (everything("s1"), everything("s2"));
    one.rounds(&mut s1, 3);
    one.rounds(&mut s2, 3);
    let shown_now = one.core.read(&Caller::Unverified).unwrap();
    assert_eq!(shown_now.everything_conflicts(), 1);
    one.assign("a", "s1").unwrap();
    one.assign("b", "s2").unwrap();
    for _ in 0..4 {
        one.rounds(&mut s1, 2);
        one.rounds(&mut s2, 2);
        s1.let_go();
        s2.let_go();
    }
    one.rounds(&mut s1, 2);
    one.rounds(&mut s2, 2);
    assert!(s1.acts_on(&machine("a1")) && !s1.acts_on(&machine("b1")));
    assert!(s2.acts_on(&machine("b1")) && !s2.acts_on(&machine("a1")));
    let shown_now = one.core.read(&Caller::Unverified).unwrap();
    assert_eq!(shown_now.everything_conflicts(), 0);
}
