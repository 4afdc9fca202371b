//! EX-RF1 to EX-RF8: a machine belongs to the Need it was committed to.

use crate::check::check;

#[test]
fn ex_rf1_a_gang_that_cannot_complete_buys_nothing() {
    check(
        "need a group=g1 rack=Same gpu=16 min:gpu=8
         x1 Configured a gpu=8 rack=r1 own=g1
         s1 Speculative gpu=8 rack=r2",
        "claims: x1
         short a: gpu=8
         domain a: r1 unsatisfiable
         held:",
    );
}

const DRAINING_FOR_A: &str = "d1 Draining b cpu=4 own=a";

#[test]
fn ex_rf2_a_machine_being_freed_counts() {
    check(
        &format!("need a cpu=8 min:cpu=4 prio=1000\n{DRAINING_FOR_A}\na1 Configured a cpu=4"),
        "claims: a1 d1
         satisfied a
         ended:
         held:",
    );
}

#[test]
fn ex_rf3_the_row_shrank_while_a_machine_is_on_its_way() {
    check(
        &format!("need a cpu=4 min:cpu=4 prio=1000\n{DRAINING_FOR_A}\na1 Configured a cpu=4"),
        "claims: d1
         held: a1
         ended:",
    );
    check(
        &format!("need a cpu=4 min:cpu=4 prio=1000\n{DRAINING_FOR_A}\na1 Configured a cpu=4 own=a"),
        "claims: a1
         ended: d1",
    );
}

#[test]
fn ex_rf4_a_gang_served_as_a_gang_stays_one() {
    check(
        "need a group=g1 rack=Same cpu=20
         x1..x2 Configured a cpu=16 rack=r1 own=g1
         i1 Idle cpu=32 rack=r2",
        "claims a/g1: x1 x2
         absent a/fold:g1",
    );
}

#[test]
fn ex_rf5_a_folded_gang_stays_folded_while_its_machine_is_made() {
    check(
        "need a group=g1 rack=Same cpu=20
         s1 Creating cpu=32 rack=r1 own=fold:g1",
        "claims a/fold:g1: s1
         satisfied a/fold:g1
         absent a/g1
         ended:",
    );
}

#[test]
fn ex_rf6_a_smaller_machine_is_shed_once_after_the_larger_one_serves() {
    let need = "need a cpu=8\na1 Configured a cpu=4 $3 own=a";
    check(
        &format!("{need}\ni1 Idle cpu=8 $1"),
        "Bootstrap i1 for a
         claims: a1 i1",
    );
    check(
        &format!("{need}\ni1 Configuring a cpu=8 $1 own=a"),
        "claims: i1
         held: a1",
    );
    check(
        &format!("{need}\ni1 Failed cpu=8 $1\ni2 Idle cpu=4 $1"),
        "Bootstrap i2 for a
         claims: a1 i2
         held:",
    );
    check(
        &format!("{need}\ni1 Configured a cpu=8 $1 own=a"),
        "Reclaim a1 from a
         claims: i1",
    );
    check("need a cpu=8\ni1 Configured a cpu=8 $1 own=a", "");
}

#[test]
fn ex_rf7_a_broad_need_leaves_a_narrow_ones_machines() {
    let needs = "need a name:p cpu=4 prio=1000
         need a name:g group=g cpu=8 prio=100 rack=Same
         g1 Configured a cpu=4 $1 rack=r1 own=g
         g2 Configured a cpu=4 $2 rack=r1 own=g";
    check(
        &format!("{needs}\nm1..m2 Configured a cpu=4 $2"),
        "Reclaim m2 from a
         claims g: g1 g2
         claims p: m1
         restamps: m1",
    );
    check(
        &format!("{needs}\nm1 Configured a cpu=4 $2 own=p"),
        "claims g: g1 g2
         claims p: m1
         restamps:",
    );
}

#[test]
fn ex_rf8_a_higher_need_takes_over_only_what_it_cannot_buy() {
    let needs = "need a name:high cpu=8 prio=1000
         need a name:low cpu=8 prio=100
         a1..a2 Configured a cpu=4 own=low";
    check(
        needs,
        "claims high: a1 a2
         claims low:
         restamps: a1 a2
         short low: cpu=8",
    );
    check(
        &format!("{needs}\ns1..s2 Speculative cpu=4"),
        "Provision s1 for a
         Provision s2 for a
         claims high: s1 s2
         claims low: a1 a2
         satisfied low",
    );
}
