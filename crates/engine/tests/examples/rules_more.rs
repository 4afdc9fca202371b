//! EX-RF9 to EX-RF15.

use crate::check::check;

#[test]
fn ex_rf9_what_turns_out_redundant_is_given_back() {
    check(
        "need a cpu=16
         i1 Idle cpu=4 $1
         i2 Idle cpu=16 $2",
        "Bootstrap i2 for a
         claims: i2",
    );
}

#[test]
fn ex_rf10_a_gang_preempts_where_that_completes_it() {
    let gang = "need a group=g1 rack=Same gpu=16 min:gpu=8 prio=1000000
         b3 Configured b gpu=8 rack=r2 stamp=100
         cluster b not-ready";
    check(
        &format!("{gang}\nb1..b2 Configured b gpu=8 rack=r1 stamp=100"),
        "Preempt b1 from b grace 10 for a
         Preempt b2 from b grace 10 for a
         domain a: r1",
    );
    check(
        &format!("{gang}\nb1..b2 Draining b gpu=8 rack=r1 own=g1"),
        "claims: b1 b2
         satisfied a",
    );
    check(
        &format!("{gang}\nb1 Draining b gpu=8 rack=r1 own=g1\nb2 Idle gpu=8 rack=r1 own=g1"),
        "Bootstrap b2 for a (promised)
         claims: b1 b2",
    );
    check(
        &format!("{gang}\nb1..b2 Idle gpu=8 rack=r1 own=g1"),
        "Bootstrap b1 for a (promised)
         Bootstrap b2 for a (promised)
         claims: b1 b2
         ended:",
    );
}

#[test]
fn ex_rf11_a_spread_is_kept_by_preemption_too() {
    let need = "need a cpu=16 prio=1000 spread=zone/1
         cluster x not-ready
         a1 Configured a cpu=4 zone=a own=a
         b1 Configured a cpu=4 zone=b own=a
         a2..a3 Idle cpu=4 zone=a
         v1 Configured x cpu=4 zone=a stamp=100";
    check(
        &format!("{need}\nv2 Configured x cpu=4 zone=b stamp=100"),
        "Bootstrap a2 for a
         Preempt v2 from x grace 600 for a
         claims: a1 a2 b1",
    );
    check(
        need,
        "Bootstrap a2 for a
         short a: cpu=4 SPREAD_UNSATISFIABLE",
    );
}

#[test]
fn ex_rf12_an_edited_priority_buys_nothing() {
    check(
        "need a cpu=4 prio=200
         k1 Creating cpu=4 own-raw=p=100|ipb=1|rpb=1|reqs=|spr= for=a
         s1 Speculative cpu=4",
        "claims: k1
         restamps: k1
         ended:",
    );
}

#[test]
fn ex_rf13_an_edited_priority_folds_nothing() {
    check(
        "need a group=g1 rack=Same cpu=20 prio=200
         x1..x2 Configured a cpu=16 rack=r1 own-raw=p=100|ipb=1|rpb=1|reqs=rack:5:;|spr=,g1
         s1 Speculative cpu=32 rack=r2",
        "claims a/g1: x1 x2
         restamps: x1 x2
         absent a/fold:g1",
    );
}

#[test]
fn ex_rf14_as_many_gangs_fold_as_the_big_machines_hold() {
    check(
        "need a group=g1 rack=Same cpu=20
         need a group=g2 rack=Same cpu=20
         big Idle cpu=32 rack=r2
         i1..i2 Idle cpu=16 rack=r1",
        "Bootstrap big for a
         Bootstrap i1 for a
         Bootstrap i2 for a
         claims a/fold:g1: big
         claims a/g2: i1 i2
         absent a/g1",
    );
}

#[test]
fn ex_rf15_the_dearer_of_two_equals_goes() {
    check(
        "need a cpu=8
         x1..x2 Configured a cpu=4 $5 Spot own=a
         m1 Configured a cpu=4 $0 own-raw=p=7|ipb=1|rpb=1|reqs=gone:3:;|spr=",
        "Reclaim x2 from a
         claims: m1 x1
         restamps: m1",
    );
    check(
        "need a cpu=8
         x1 Configured a cpu=4 $5 Spot own=a
         m1 Configured a cpu=4 $0 own=a",
        "claims: m1 x1",
    );
}
