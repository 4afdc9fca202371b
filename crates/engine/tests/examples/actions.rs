//! engine.md §18: a whole cycle.

use crate::check::check;

const IMPORTANT: &str = "need a cpu=8 min:cpu=4 prio=1000000
     b1 Configured b cpu=4 $1 stamp=100
     b2 Configured b cpu=4 $2 stamp=100
     b3 Configured b cpu=4 $3 stamp=100
     i1 Idle cpu=4 BareMetal";

#[test]
fn ex_ac1_what_is_to_be_reclaimed_anyway_makes_way_first() {
    check(
        &format!("{IMPORTANT}\nneed b cpu=8 min:cpu=4 prio=100"),
        "Bootstrap i1 for a
         Preempt b3 from b grace 10 for a
         claims a: i1
         claims b: b1 b2
         short a: cpu=4",
    );
}

#[test]
fn ex_ac2_a_cluster_that_has_not_reported_has_no_excess() {
    check(
        &format!("{IMPORTANT}\ncluster b not-ready"),
        "Bootstrap i1 for a
         Preempt b1 from b grace 10 for a",
    );
}

#[test]
fn ex_ac3_the_same_again() {
    ex_ac1_what_is_to_be_reclaimed_anyway_makes_way_first();
    ex_ac1_what_is_to_be_reclaimed_anyway_makes_way_first();
}
