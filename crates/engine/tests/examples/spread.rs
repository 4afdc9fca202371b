//! engine.md §12.5: spread. Four-cpu machines, a Need of 16 cpu, key zone.

use crate::check::check;

#[test]
fn ex_sp1_one_each_before_a_second() {
    check(
        "need a cpu=16 spread=zone/1
         a1..a3 Idle cpu=4 $1 zone=a
         b1 Idle cpu=4 $5 zone=b
         c1 Idle cpu=4 $9 zone=c",
        "Bootstrap a1 for a
         Bootstrap b1 for a
         Bootstrap c1 for a
         Bootstrap a2 for a",
    );
}

#[test]
fn ex_sp2_an_exhausted_zone_blocks_the_others() {
    check(
        "need a cpu=16 spread=zone/1
         a1..a3 Idle cpu=4 $1 zone=a
         b1 Idle cpu=4 $5 zone=b",
        "Bootstrap a1 for a
         Bootstrap b1 for a
         Bootstrap a2 for a
         short a: cpu=4 SPREAD_UNSATISFIABLE",
    );
}

#[test]
fn ex_sp3_what_serves_already_counts() {
    check(
        "need a cpu=16 spread=zone/1
         x1..x2 Configured a cpu=4 zone=a
         a1 Idle cpu=4 $1 zone=a
         b1..b2 Idle cpu=4 $5 zone=b",
        "Bootstrap b1 for a
         Bootstrap b2 for a
         claims: b1 b2 x1 x2",
    );
}

#[test]
fn ex_sp4_a_skew_of_two() {
    check(
        "need a cpu=16 spread=zone/2
         a1..a3 Idle cpu=4 $1 zone=a
         b1..b2 Idle cpu=4 $5 zone=b",
        "Bootstrap a1 for a
         Bootstrap a2 for a
         Bootstrap b1 for a
         Bootstrap a3 for a",
    );
}
