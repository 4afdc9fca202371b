//! The failing arms of RF-21: what becomes of machines that leave if a rule is left out.

use crate::check::caught;
use bigfleet_engine::Mistake;

#[test]
fn a_partial_purchase_is_not_kept() {
    caught(
        Mistake::PartialPurchaseKept,
        "need a name:n cpu=8
         m1 Configured a cpu=8 own=n leaving=soon
         s1 Speculative cpu=4",
        "claims: m1",
        "Provision s1 for a
         claims: m1 s1",
    );
}

#[test]
fn it_is_held_for_its_own_need_only() {
    caught(
        Mistake::LeavingHeldForAnybody,
        "need a name:p group=p cpu=4
         need a name:q group=q cpu=4
         m1 Configured a cpu=4 own=p leaving=soon
         r1 Configured a cpu=4 own=p
         c1 Creating cpu=4 own=q",
        "Reclaim m1 from a (leaving)
         held:",
        "held: m1",
    );
}

#[test]
fn it_is_nobodys_leftover_once_replaced() {
    caught(
        Mistake::LeavingIsLeftover,
        "need a name:p group=p cpu=4
         need a name:q group=q cpu=4
         m1 Configured a cpu=4 own=p leaving=soon
         r1 Configuring a cpu=4 own=p",
        "claims p: r1
         held: m1
         short q: cpu=4",
        "claims p: r1
         claims q: m1
         restamps: m1",
    );
}

#[test]
fn what_is_given_back_belongs_to_the_need_that_gave_it_back() {
    let fleet = "need a name:p cpu=4
        m1 Configured a cpu=4 leaving=soon
        i1 Idle cpu=4";
    caught(
        Mistake::ReplacedNotRestamped,
        fleet,
        "Bootstrap i1 for a
         restamps: m1",
        "Bootstrap i1 for a
         restamps:",
    );
}

#[test]
fn an_incomplete_gang_buys_nothing() {
    caught(
        Mistake::IncompleteGangReplaces,
        "need a name:n group=g rack=Same cpu=16
         m1 Configured a cpu=4 rack=r1 own=n leaving=soon
         m2 Configured a cpu=4 rack=r1 own=n
         s1 Speculative cpu=4 rack=r1",
        "claims: m1 m2
         short a/g: cpu=8",
        "Provision s1 for a
         claims: m2 s1
         held: m1
         short a/g: cpu=8",
    );
}

#[test]
fn what_leaves_soon_is_a_witness() {
    caught(
        Mistake::LeavingIsNoWitness,
        "need a name:g1 group=g1 rack=Same cpu=4
         need a name:g2 group=g2 rack=Same cpu=4
         m0 Configured a cpu=8 rack=r1 own=fold:g1 leaving=soon",
        "absent a/g1
         absent a/g2
         claims: m0",
        "short a/g2: cpu=4",
    );
}

#[test]
fn like_replaces_like_whatever_the_spread_says() {
    caught(
        Mistake::LikeRefusedBySpread,
        "need a name:n cpu=16 spread=zone/1
         a1 Configured a cpu=4 zone=a own=n leaving=soon
         a2..a3 Configured a cpu=4 zone=a own=n
         b1 Configured a cpu=4 zone=b own=n
         a4 Idle cpu=4 zone=a",
        "Bootstrap a4 for a
         held: a1",
        "claims: a1 a2 a3 b1
         held:",
    );
}

#[test]
fn a_zone_that_only_leaves_is_no_domain() {
    caught(
        Mistake::DeadDomainCounts,
        "need a name:n cpu=8 spread=zone/1
         a1 Configured a cpu=4 zone=a own=n leaving=soon
         b1 Configured a cpu=4 zone=b own=n
         b2 Idle cpu=4 zone=b",
        "Bootstrap b2 for a
         held: a1",
        "claims: a1 b1
         held:",
    );
}

#[test]
fn replacing_takes_its_turn() {
    caught(
        Mistake::ReplacedAfterAll,
        "need a name:n cpu=4 prio=1000
         need b cpu=4 prio=50
         m1 Configured a cpu=4 own=n leaving=soon
         i1 Idle cpu=4",
        "Bootstrap i1 for a
         held: m1
         short b: cpu=4",
        "Bootstrap i1 for b
         claims a: m1",
    );
}

#[test]
fn the_intent_of_what_leaves_unbound_ends() {
    caught(
        Mistake::LeavingIntentStands,
        "cluster a not-ready no-acquire
         i1 Idle cpu=4 own-raw=gone, for=a leaving=soon",
        "ended: i1",
        "ended:",
    );
}
