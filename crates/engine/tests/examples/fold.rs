//! engine.md §11: fold.

use crate::check::check;

const EQUAL_GANGS: &str = "need a group=g0 prio=100 rack=Same cpu=6 memory=16Gi
     need a group=g1 prio=100 rack=Same cpu=6 memory=16Gi
     need a group=g2 prio=100 rack=Same cpu=6 memory=16Gi
     need a group=g3 prio=100 rack=Same cpu=6 memory=17179869184
     i1..i3 Idle cpu=16 memory=64Gi $1 rack=r1";

#[test]
fn ex_f1_equal_gangs_become_one_plain_need() {
    check(
        EQUAL_GANGS,
        "Bootstrap i1 for a
         Bootstrap i2 for a
         claims a/fold:g0: i1 i2
         satisfied a/fold:g3
         absent a/g0
         absent a/g1
         absent a/g2
         absent a/g3",
    );
}

/// The folded Need requires `rack Exists` and its group names the aggregate: a machine on its way to
/// exactly that is its own.
#[test]
fn ex_f1_the_folded_form_is_written_so() {
    let on_its_way = "k1 Creating cpu=24 memory=64Gi rack=r1 for=a \
         own-raw=p=100|ipb=1|rpb=1|reqs=rack:3:;|spr=,fold:cpu=6000;memory=17179869184000;";
    check(
        &format!("{EQUAL_GANGS}\n{on_its_way}"),
        "claims a/fold:g0: k1
         ended:
         restamps:",
    );
}

#[test]
fn ex_f2_a_gang_no_machine_holds_stays_one() {
    check(
        &format!("{EQUAL_GANGS}\nneed a group=big prio=100 rack=Same cpu=40 memory=64Gi"),
        "Bootstrap i1 for a
         Bootstrap i2 for a
         Bootstrap i3 for a
         claims a/fold:g0: i1 i2
         absent a/fold:big
         short a/big: cpu=24 TOPOLOGY_UNSATISFIABLE",
    );
}

#[test]
fn ex_f3_only_the_cluster_with_the_big_machine_folds() {
    check(
        "need a group=g1 rack=Same cpu=20
         need b group=g1 rack=Same cpu=20
         b1 Configured b cpu=32 rack=r1
         i1 Idle cpu=16 rack=r1",
        "Bootstrap i1 for a
         short a/g1: cpu=4
         absent a/fold:g1
         absent b/g1
         claims b/fold:g1: b1",
    );
}

#[test]
fn ex_f4_rows_without_same_stay_as_they_are() {
    check(
        "need a name:high prio=9 cpu=4
         need a name:low prio=1 cpu=4
         m1..m2 Configured a cpu=16",
        "claims high: m1
         claims low: m2
         satisfied high
         satisfied low",
    );
}
