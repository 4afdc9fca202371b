//! engine.md §13: priority inversions.

use crate::check::check;

#[test]
fn ex_v1_victims_by_score() {
    check(
        "need a cpu=8 prio=1000
         cluster b not-ready
         v1 Configured b cpu=4 stamp=100 penalty=$8
         v2 Configured b cpu=4 stamp=100 ipenalty=$4
         v3 Configured b cpu=4 stamp=85 ipenalty=$8192 penalty=$65536
         v4 Configured b cpu=4 stamp=100",
        "Preempt v4 from b grace 600 for a
         Preempt v3 from b grace 600 for a",
    );
}

#[test]
fn ex_v2_too_small_and_too_important_are_no_victims() {
    check(
        "need a cpu=8 min:cpu=4 prio=1000000
         cluster b not-ready
         l1 Configured b cpu=4 stamp=100
         l2 Configured b cpu=4 stamp=200000
         l3 Configured b cpu=2 stamp=100
         l4 Configured b cpu=4 stamp=1000000",
        "Preempt l1 from b grace 10 for a
         Preempt l2 from b grace 30 for a",
    );
}

#[test]
fn ex_v3_grace_edges() {
    for (gap, grace) in [
        (900_001, 10),
        (900_000, 30),
        (500_001, 30),
        (500_000, 120),
        (100_001, 120),
        (100_000, 600),
    ] {
        check(
            &format!(
                "need a cpu=4 prio={gap}
                 cluster b not-ready
                 v1 Configured b cpu=4 stamp=0"
            ),
            &format!("Preempt v1 from b grace {grace} for a"),
        );
    }
}

const ONE_RACK_SHORT: &str = "need a group=g1 rack=Same gpu=16 min:gpu=8 prio=1000
     x1 Configured a gpu=8 rack=r1 own=g1
     cluster b not-ready";

#[test]
fn ex_v4_a_victim_elsewhere_is_of_no_use() {
    check(
        &format!("{ONE_RACK_SHORT}\nv1 Configured b gpu=8 rack=r2 stamp=100"),
        "claims: x1
         short a: gpu=8 TOPOLOGY_UNSATISFIABLE
         domain a: r1 unsatisfiable",
    );
    // Unless a rack with enough of them exists (RF-6, case 2).
    check(
        &format!("{ONE_RACK_SHORT}\nv1..v2 Configured b gpu=8 rack=r2 stamp=100"),
        "Preempt v1 from b grace 600 for a
         Preempt v2 from b grace 600 for a
         held: x1
         short a: gpu=16 PRIORITY_STARVED
         domain a: r2",
    );
}

#[test]
fn ex_v5_a_need_never_preempts_its_own() {
    check(
        "need a cpu=8 prio=1000
         m1 Configured a cpu=4 stamp=100",
        "claims: m1
         short a: cpu=4",
    );
}
