//! An explanation says what the decision says, and asking changes nothing.

#![allow(
    clippy::expect_used,
    reason = "test code: an explanation without what the test is about fails it"
)]

use bigfleet_engine::{
    Choice, ClaimSource, Comparison, Equals, Explainer, Explanation, Fate, NotReplaced, Outranks,
    Rule, StaysBecause, VictimFate, decide, explain,
};
use bigfleet_model::{ActionKind, Decision, Fleet, Leaving, MachineId, NeedKey, UnmetReason};
use bigfleet_testkit::{Fixture, generate::Generator};
use std::collections::BTreeSet;

fn explained(text: &str, called: &str) -> Explanation {
    let fixture = Fixture::read(text);
    let explained = explain(&fixture.fleet, &fixture.need_key(called));
    let explained = explained.unwrap_or_else(|| panic!("{called} is explained"));
    agrees(&explained, &decide(&fixture.fleet));
    explained
}

/// What an explanation says of claims, actions, domain and victims is what was decided.
fn agrees(explained: &Explanation, decision: &Decision) {
    let verdict = &decision.needs[explained.position - 1];
    assert_eq!(explained.verdict, *verdict);
    assert_eq!(explained.needs, decision.needs.len());
    let key = verdict.need.key();
    let is_claimed = |fate: &Fate| matches!(fate, Fate::Claimed(_));
    let claimed = explained
        .machines
        .iter()
        .filter(|alike| is_claimed(&alike.fate));
    assert_eq!(
        claimed.map(|alike| alike.count).sum::<usize>(),
        verdict.claimed as usize,
        "{explained:#?}"
    );
    let claims: BTreeSet<(&MachineId, &NeedKey)> = decision
        .claims
        .iter()
        .map(|claim| (&claim.machine, &claim.need))
        .collect();
    for alike in &explained.machines {
        for machine in &alike.machines {
            let is_ours = claims.contains(&(machine, &key));
            match &alike.fate {
                Fate::Claimed(_) => assert!(is_ours, "{machine}: {alike:?}"),
                Fate::ClaimedBy(other) => assert!(claims.contains(&(machine, other)), "{alike:?}"),
                // Needs whose texts collide have one key.
                _ => assert!(!is_ours || collides(decision, &key), "{machine}: {alike:?}"),
            }
        }
    }
    let chosen = explained
        .choice
        .as_ref()
        .and_then(|choice| choice.chosen.clone());
    assert_eq!(
        chosen.unwrap_or_default(),
        verdict.same_domain,
        "{explained:#?}"
    );
    let picked = explained
        .preemption
        .iter()
        .flat_map(|weighed| &weighed.victims);
    let picked = picked.filter(|victim| victim.fate == VictimFate::Picked);
    let picked: BTreeSet<&MachineId> = picked.map(|victim| &victim.machine).collect();
    let preempts = explained
        .actions
        .iter()
        .filter(|action| action.kind == ActionKind::Preempt);
    let preempts: BTreeSet<&MachineId> = preempts.map(|action| &action.machine).collect();
    assert_eq!(picked, preempts, "{explained:#?}");
    assert_eq!(picked.len(), verdict.victims_found as usize);
    for action in &explained.actions {
        assert!(decision.actions.contains(action));
    }
}

fn collides(decision: &Decision, key: &NeedKey) -> bool {
    1 < decision
        .needs
        .iter()
        .filter(|other| other.need.key() == *key)
        .count()
}

/// Everything stays within its bounds, whatever the fleet.
fn is_bounded(explained: &Explanation, fleet: &Fleet) {
    assert!(explained.machines.len() <= 50 && explained.ahead.len() <= 10);
    let listed: usize = explained.machines.iter().map(|alike| alike.count).sum();
    assert_eq!(listed + explained.left_out.machines, fleet.machines.len());
    assert!(
        explained
            .machines
            .iter()
            .all(|alike| alike.machines.len() <= 5)
    );
}

#[test]
fn asking_changes_nothing_and_the_answer_agrees() {
    let (mut needs, mut gangs, mut weighed, mut fates) = (0, 0, 0, BTreeSet::new());
    for seed in 0..400 {
        let mut generator = Generator::new(seed);
        let mut fleet = generator.fleet();
        for _ in 0..4 {
            let decision = decide(&fleet);
            let mut explainer = Explainer::new(&fleet);
            assert_eq!(explainer.decision(), decision, "seed {seed}");
            for at in 0..decision.needs.len() {
                let explained = explainer.at(at).expect("there is a Need at this position");
                assert_eq!(explainer.decision(), decision, "seed {seed}, position {at}");
                agrees(&explained, &decision);
                is_bounded(&explained, &fleet);
                needs += 1;
                gangs += usize::from(explained.choice.is_some());
                weighed += usize::from(explained.preemption.is_some_and(|p| !p.victims.is_empty()));
                fates.extend(explained.machines.iter().map(|alike| word(&alike.fate)));
            }
            generator.edit(&mut fleet);
        }
    }
    println!("{needs} needs, {gangs} gangs, {weighed} with victims, fates {fates:?}");
    assert!(1_000 < needs && 100 < gangs && 100 < weighed);
    assert!(20 <= fates.len(), "{fates:?}");
}

fn word(fate: &Fate) -> String {
    let text = format!("{fate:?}");
    text.chars().take_while(char::is_ascii_alphabetic).collect()
}

fn gang(gpus: u32, machines: &str) -> Choice {
    let text = format!("need a group=g1 rack=Same gpu={gpus} min:gpu=8\n{machines}");
    explained(&text, "a").choice.expect("a gang chooses")
}

fn chose(choice: &Choice) -> (Rule, Option<&str>, Option<&str>, Option<Comparison>) {
    let Choice {
        rule,
        chosen,
        runner_up,
        decided_by,
        ..
    } = choice;
    (*rule, chosen.as_deref(), runner_up.as_deref(), *decided_by)
}

#[test]
fn ex_s1_the_least_to_spare_decides() {
    let choice = gang(
        24,
        "a0..a1 Idle gpu=8 rack=r1
         b0..b4 Idle gpu=8 rack=r2
         c0..c2 Idle gpu=8 rack=r3",
    );
    let by = Some(Comparison::LeastToSpare);
    assert_eq!(chose(&choice), (Rule::Complete, Some("r3"), Some("r2"), by));
    let table = choice
        .domains
        .iter()
        .map(|of| (of.domain.as_str(), of.qualifies, of.idle));
    assert_eq!(
        table.collect::<Vec<_>>(),
        [("r3", true, 3), ("r2", true, 5), ("r1", false, 2)]
    );
}

#[test]
fn ex_s2_what_is_credited_decides() {
    let choice = gang(
        24,
        "x1..x2 Configured a gpu=8 rack=r1
         i1..i4 Idle gpu=8 rack=r1
         z1 Configured a gpu=8 rack=r2
         j1..j2 Idle gpu=8 rack=r2",
    );
    let by = Some(Comparison::CreditCoverage);
    assert_eq!(chose(&choice), (Rule::Complete, Some("r1"), Some("r2"), by));
}

#[test]
fn ex_s3_home_decides() {
    let choice = gang(
        24,
        "x1..x3 Configured a gpu=8 rack=rx own=g1
         z1..z3 Configured a gpu=8 rack=ry own-raw=p=0|ipb=1|rpb=1|reqs=rack:5:;|spr=,g3",
    );
    assert_eq!(chose(&choice), (Rule::Home, Some("rx"), None, None));
}

#[test]
fn ex_s4_what_is_at_hand_decides() {
    let choice = gang(
        40,
        "x1..x2 Configured a gpu=8 rack=r1 own=g1
         i1..i3 Idle gpu=8 rack=r2",
    );
    let by = Some(Comparison::CoverageAtHand);
    assert_eq!(chose(&choice), (Rule::Partial, Some("r2"), Some("r1"), by));
}

#[test]
fn ex_s5_own_decides_where_as_much_is_at_hand() {
    let choice = gang(
        40,
        "x1..x2 Configured a gpu=8 rack=r2 own=g1
         i1 Idle gpu=8 rack=r2
         j1..j3 Idle gpu=8 rack=r1",
    );
    let by = Some(Comparison::OwnCoverage);
    assert_eq!(chose(&choice), (Rule::Partial, Some("r2"), Some("r1"), by));
}

#[test]
fn ex_rf10_victims_complete_the_gang() {
    let explained = explained(
        "need a group=g1 rack=Same gpu=16 min:gpu=8 prio=1000000
         cluster b not-ready
         b1..b2 Configured b gpu=8 rack=r1 stamp=100
         b3 Configured b gpu=8 rack=r2 stamp=100
         c1..c3 Configured b gpu=8 rack=r3 stamp=100",
        "a",
    );
    let choice = explained.choice.expect("a gang chooses");
    // Two victims each: the smaller value decides.
    let by = Some(Comparison::Value);
    assert_eq!(
        chose(&choice),
        (Rule::WithVictims, Some("r1"), Some("r3"), by)
    );
    assert_eq!(choice.domains[0].victims, Some(2));
    let weighed = explained.preemption.expect("phase 2 weighed");
    let fates = weighed
        .victims
        .iter()
        .map(|victim| (victim.machine.as_str(), victim.fate));
    let elsewhere = VictimFate::OutsideDomain;
    assert_eq!(
        fates.collect::<Vec<_>>(),
        [
            ("b1", VictimFate::Picked),
            ("b2", VictimFate::Picked),
            ("b3", elsewhere),
            ("c1", elsewhere),
            ("c2", elsewhere),
            ("c3", elsewhere),
        ]
    );
}

fn victims(text: &str) -> Vec<(String, i32, Option<i64>, VictimFate)> {
    let weighed = explained(text, "a").preemption.expect("phase 2 weighed");
    let shown = weighed.victims.into_iter().map(|victim| {
        let millionths = victim.score.map(|score| (score * 1e6).round() as i64);
        (
            victim.machine.to_string(),
            victim.standing,
            millionths,
            victim.fate,
        )
    });
    shown.collect()
}

#[test]
fn ex_v1_victims_with_their_scores() {
    let weighed = victims(
        "need a cpu=8 prio=1000
         cluster b not-ready
         v1 Configured b cpu=4 stamp=100 penalty=$8
         v2 Configured b cpu=4 stamp=100 ipenalty=$4
         v3 Configured b cpu=4 stamp=85 ipenalty=$8192 penalty=$65536
         v4 Configured b cpu=4 stamp=100",
    );
    let of = |id: &str, standing, score, fate| (id.to_owned(), standing, Some(score), fate);
    assert_eq!(
        weighed,
        [
            of("v4", 100, 920_003_333, VictimFate::Picked),
            of("v3", 85, 915_003_347, VictimFate::Picked),
            of("v2", 100, 910_028_333, VictimFate::NotReached),
            of("v1", 100, 910_015_833, VictimFate::NotReached),
        ]
    );
}

#[test]
fn ex_v2_what_cannot_be_a_victim_and_why() {
    let text = "need a cpu=8 min:cpu=4 prio=1000000
         cluster b not-ready
         l1 Configured b cpu=4 stamp=100
         l2 Configured b cpu=4 stamp=200000
         l3 Configured b cpu=2 stamp=100
         l4 Configured b cpu=4 stamp=1000000";
    let picked = VictimFate::Picked;
    assert_eq!(
        victims(text),
        [
            ("l1".to_owned(), 100, Some(999_920_003_333), picked),
            ("l2".to_owned(), 200_000, Some(800_020_003_333), picked),
            ("l4".to_owned(), 1_000_000, None, VictimFate::NotOutranked),
        ]
    );
    assert_eq!(fate(&explained(text, "a"), "l3"), "BelowMinUnit");
}

#[test]
fn a_pruned_victim_and_one_that_goes_anyway() {
    let weighed = explained(
        "need a cpu=8 prio=1000
         cluster b
         need b cpu=8 min:cpu=8 prio=10
         e1 Configured b cpu=4 stamp=10
         v1 Configured b cpu=8 stamp=10 own=b",
        "a",
    );
    let weighed = weighed.preemption.expect("phase 2 weighed").victims;
    let shown = weighed
        .iter()
        .map(|victim| (victim.machine.as_str(), victim.has_head_start, victim.fate));
    let expected = [
        ("v1", false, VictimFate::Picked),
        ("e1", true, VictimFate::Pruned),
    ];
    assert_eq!(shown.collect::<Vec<_>>(), expected);
}

/// What became of one machine, in a word.
fn fate(explained: &Explanation, id: &str) -> String {
    let named = |machine: &MachineId| machine.as_str() == id;
    let alike = explained
        .machines
        .iter()
        .find(|alike| alike.machines.iter().any(named));
    word(
        &alike
            .unwrap_or_else(|| panic!("{id} is in {explained:#?}"))
            .fate,
    )
}

#[test]
fn ex_sp2_the_spread_leaves_a_machine() {
    let explained = explained(
        "need a cpu=16 spread=zone/1
         a1..a3 Idle cpu=4 $1 zone=a
         b1 Idle cpu=4 $5 zone=b
         n1 Idle cpu=4 $1",
        "a",
    );
    assert_eq!(
        explained.verdict.unmet_reason,
        UnmetReason::SpreadUnsatisfiable
    );
    assert_eq!(fate(&explained, "a3"), "Spread");
    assert_eq!(fate(&explained, "n1"), "NoDomain");
    assert_eq!(fate(&explained, "b1"), "Claimed");
}

#[test]
fn every_machine_says_why_it_was_not_taken() {
    let explained = explained(
        "need a name:big cpu=8 min:cpu=4 prio=5 type=In(m5)
         need a name:twin cpu=4 min:cpu=4 prio=5 arrival=9 type=In(m5) rb=3
         need b name:away cpu=4 prio=9
         cluster c not-ready
         ok Idle cpu=8 $1 type=m5
         tw Idle cpu=4 $0 type=m5
         aw Idle cpu=4 $0
         pr Idle cpu=4 type=m5 own=away
         un Idle cpu=4 $0 type=m5 unavailable
         sm Idle cpu=2 $0 type=m5
         wt Idle cpu=8 $0 type=c5
         dr Draining cpu=4 type=m5 c
         sv Configured c cpu=4 type=m5 stamp=1
         fa Failed cpu=4 type=m5",
        "big",
    );
    let of = |id: &str| fate(&explained, id);
    assert_eq!(of("ok"), "Claimed");
    assert_eq!(of("tw"), "ClaimedBy");
    assert_eq!(of("pr"), "ClaimedBy");
    assert_eq!(of("un"), "Unavailable");
    assert_eq!(of("sm"), "BelowMinUnit");
    assert_eq!(of("wt"), "Requirement");
    assert_eq!(of("aw"), "Requirement");
    assert_eq!(of("sv"), "Serving");
    assert_eq!(of("fa"), "Failed");
    assert_eq!(of("dr"), "Draining");
    assert_eq!((explained.position, explained.needs), (3, 3));
    let by: Vec<Outranks> = explained.ahead.iter().map(|ahead| ahead.by).collect();
    assert_eq!(by, [Outranks::Priority(9, 5), Outranks::Reclamation(3, 1)]);
}

#[test]
fn a_gang_that_folded_is_explained_by_what_it_folded_to() {
    let text = "need a group=g1 rack=Same cpu=8\n i1 Idle cpu=8 rack=r1";
    let explained = explained(text, "a/g1");
    assert!(
        explained
            .verdict
            .need
            .row
            .group
            .as_str()
            .starts_with("fold:")
    );
    assert_eq!(explained.machines[0].fate, Fate::Claimed(ClaimSource::Idle));
    let nobody = Fixture::read("need b cpu=1").need_key("b");
    assert_eq!(explain(&Fixture::read(text).fleet, &nobody), None);
}

#[test]
fn an_explanation_of_a_crowd_stays_small() {
    let racks = (0..200).map(|at| format!("r{at}-0..r{at}-1 Idle gpu=8 rack=r{at}\n"));
    let serving =
        (0..200).map(|at| format!("s{at} Configured b gpu=8 stamp=1 rack=s type=t{at}\n"));
    let text: String = racks.chain(serving).collect();
    let explained = explained(
        &format!("cluster b not-ready\nneed a group=g rack=Same gpu=2000 prio=9\n{text}"),
        "a",
    );
    let choice = explained.choice.expect("a gang chooses");
    assert_eq!((choice.domains.len(), choice.left_out), (50, 150));
    assert_eq!(explained.left_out.groups, 2 + 200 - 50);
    assert_eq!(explained.machines.len(), 50);
    let weighed = explained.preemption.expect("phase 2 weighed");
    assert_eq!((weighed.victims.len(), weighed.left_out), (50, 150));
}

/// RF-19: what whole units count, and what the same machines would count for otherwise.
#[test]
fn whole_units_say_what_they_leave_out() {
    let text = |whole: &str| {
        format!(
            "need a name:n cpu=9 memory=9 min:cpu=3 {whole}
             m1..m3 Configured a cpu=4 memory=2 own=n"
        )
    };
    let whole = explained(&text("whole"), "n").whole_units.expect("whole");
    assert_eq!(whole.counted.key(), "cpu=9000;memory=6000;");
    assert_eq!(whole.otherwise.key(), "cpu=12000;memory=6000;");
    assert_eq!(explained(&text(""), "n").whole_units, None);
}

/// RF-20.
#[test]
fn a_drain_that_is_taken_back_is_told_from_one_that_is_promised() {
    let taken = |text: &str, called: &str| {
        let explained = explained(text, called);
        let drains = explained.machines.into_iter();
        drains.map(|alike| alike.fate).next()
    };
    let restored = taken("need a cpu=4\n m1 Draining a cpu=4 reversible", "a");
    assert_eq!(restored, Some(Fate::Claimed(ClaimSource::Restored)));
    let promised = taken("need b cpu=4\n m1 Draining a cpu=4 reversible", "b");
    assert_eq!(promised, Some(Fate::Claimed(ClaimSource::Draining)));
}

/// RF-18, R-1: the first comparison that differs, with the equal that would go next.
#[test]
fn a_reclaim_says_what_its_equal_has_over_it() {
    let why = |first: &str, second: &str| {
        let fixture = Fixture::read(&format!(
            "need a name:n cpu=4
             m1 Configured a cpu=4 own=n {first}
             m2 Configured a cpu=4 own=n {second}
             m3 Configured a cpu=8 not-ready"
        ));
        let decision = decide(&fixture.fleet);
        let equals = Equals::new(&fixture.fleet, &decision);
        let small = fixture
            .fleet
            .machines
            .keys()
            .filter(|id| id.as_str() != "m3");
        let mut found = small.filter_map(|id| equals.of(id));
        let equal = found.next().expect("one goes, one stays");
        assert_eq!(found.next(), None);
        (equal.machine.to_string(), equal.because)
    };
    let is = |because: StaysBecause, what: &str| format!("{because:?}").starts_with(what);
    let (stays, because) = why("disruption=0", "disruption=3");
    assert!(stays == "m2" && is(because, "DisturbsMore"), "{because:?}");
    let (stays, because) = why("disruption=0", "disruption=3 keep=$2");
    assert!(stays == "m1" && is(because, "Cheaper"), "{because:?}");
    let (stays, because) = why("", "penalty=$8");
    assert!(stays == "m2" && is(because, "DearerToLose"), "{because:?}");
    let (stays, because) = why("", "");
    assert!(stays == "m1" && because == StaysBecause::Id, "{because:?}");
}

/// RF-21: of a machine that is to leave it is said why it still serves.
#[test]
fn a_machine_that_leaves_says_why_it_is_not_replaced() {
    let fate = |text: &str, called: &str, machine: &str| {
        let explained = explained(text, called);
        let id = MachineId::new(machine).expect("an id");
        let mut groups = explained.machines.iter();
        let group = groups.find(|alike| alike.machines.contains(&id));
        group.map(|alike| alike.fate.clone()).expect("its fate")
    };
    let plain = "need a name:n cpu=8 min:cpu=4\nm1 Configured a cpu=8 own=n leaving=soon\n";
    let gang = "need a name:n group=g rack=Same cpu=8 min:cpu=4
        m1 Configured a cpu=4 rack=r1 own=n leaving=soon
        m2 Configured a cpu=4 rack=r1 own=n\n";
    let spread = "need a name:n cpu=8 prio=9 spread=zone/1
        m1 Configured a cpu=4 zone=a own=n leaving=soon
        m2 Configured a cpu=4 zone=b own=n
        need a name:o group=o cpu=4
        x1 Configured a cpu=4 zone=a own=o\n";
    for (common, more, why) in [
        (plain, "", NotReplaced::NothingFree),
        (plain, "s1 Speculative cpu=4", NotReplaced::NotEnough),
        (
            plain,
            "cluster a no-acquire\ni1 Idle cpu=8",
            NotReplaced::MayNotAcquire,
        ),
        (gang, "i2 Idle cpu=4 rack=r2", NotReplaced::OutsideDomain),
        (spread, "i2 Idle cpu=4 zone=b", NotReplaced::Spread),
    ] {
        let expected = Fate::Claimed(ClaimSource::Leaving(why));
        assert_eq!(
            fate(&format!("{common}{more}"), "n", "m1"),
            expected,
            "{more}"
        );
    }
    let incomplete = gang.replace("cpu=8", "cpu=16");
    let expected = Fate::Claimed(ClaimSource::Leaving(NotReplaced::IncompleteGang));
    assert_eq!(fate(&incomplete, "n", "m1"), expected);
    let parked = format!(
        "{}i1 Idle cpu=4 rack=r1",
        gang.replace("rack=Same", "parked rack=Same")
    );
    let expected = Fate::Claimed(ClaimSource::Leaving(NotReplaced::Parked));
    assert_eq!(fate(&parked, "n", "m1"), expected);

    let replaced = format!(
        "{plain}i1 Idle cpu=8\ni2 Idle cpu=8 leaving=soon\nm3 Configured a cpu=4 leaving=now"
    );
    assert_eq!(fate(&replaced, "n", "m1"), Fate::Held);
    assert_eq!(fate(&replaced, "n", "i2"), Fate::Leaves(Leaving::Soon));
    assert_eq!(fate(&replaced, "n", "m3"), Fate::Leaves(Leaving::Now));
    let victims = explained(
        "need a name:n cpu=4 prio=1000
         need b name:o cpu=4 prio=1
         v1 Configured b cpu=4 own=o leaving=soon",
        "n",
    );
    let victims = victims.preemption.expect("it is short");
    assert_eq!(victims.victims[0].fate, VictimFate::Leaves);
    assert_eq!(victims.victims[0].standing, 1);
}
