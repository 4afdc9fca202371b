//! engine.md §17: why a Need is short.

use crate::check::check;

#[test]
fn ex_vd_no_machine_of_that_type() {
    check(
        "need a cpu=4 type=In(x)
         i1 Idle cpu=4 type=y",
        "short a: cpu=4 NO_MATCHING_SUPPLY",
    );
}

#[test]
fn ex_vd_all_serve_equals() {
    check(
        "need a cpu=4 type=In(x) prio=100
         cluster b not-ready
         b1 Configured b cpu=4 type=x stamp=100",
        "short a: cpu=4 PRIORITY_STARVED",
    );
}

#[test]
fn ex_vd_two_of_three_victims() {
    check(
        "need a cpu=12 prio=1000
         cluster b not-ready
         b1..b2 Configured b cpu=4 stamp=100",
        "Preempt b1 from b grace 600 for a
         Preempt b2 from b grace 600 for a
         short a: cpu=12 PREEMPTION_EXHAUSTED",
    );
}

#[test]
fn ex_vd_no_rack_holds_the_gang() {
    check(
        "need a group=g1 rack=Same gpu=40 min:gpu=8
         x1..x2 Configured a gpu=8 rack=r1 own=g1
         i1..i3 Idle gpu=8 rack=r2",
        "Bootstrap i1 for a
         Bootstrap i2 for a
         Bootstrap i3 for a
         short a: gpu=16 TOPOLOGY_UNSATISFIABLE",
    );
}
