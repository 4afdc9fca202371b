//! engine.md §12.4: co-location.

use crate::check::check;

/// A gang of cluster `a` that wants this many GPUs of one rack, eight at a time.
fn gang(gpus: u32, machines: &str) -> String {
    format!("need a group=g1 rack=Same gpu={gpus} min:gpu=8\n{machines}")
}

#[test]
fn ex_s1_the_rack_that_fits_with_least_to_spare() {
    check(
        &gang(
            24,
            "a0..a1 Idle gpu=8 rack=r1
             b0..b4 Idle gpu=8 rack=r2
             c0..c2 Idle gpu=8 rack=r3",
        ),
        "Bootstrap c0 for a
         Bootstrap c1 for a
         Bootstrap c2 for a
         domain a: r3",
    );
}

#[test]
fn ex_s2_the_rack_that_serves_more_already() {
    check(
        &gang(
            24,
            "x1..x2 Configured a gpu=8 rack=r1
             i1..i4 Idle gpu=8 rack=r1
             z1 Configured a gpu=8 rack=r2
             j1..j2 Idle gpu=8 rack=r2",
        ),
        "Bootstrap i1 for a
         claims: i1 x1 x2
         held: z1
         domain a: r1",
    );
    check(
        &gang(
            24,
            "x1..x2 Configured a gpu=8 rack=r1 own=g1
             i1 Configured a gpu=8 rack=r1 own=g1
             z1 Configured a gpu=8 rack=r2",
        ),
        "Reclaim z1 from a",
    );
}

#[test]
fn ex_s3_own_machines_decide_the_rack() {
    let machines = "x1..x3 Configured a gpu=8 rack=rx own=g1
         y1..y3 Configured a gpu=8 rack=rx own-raw=p=0|ipb=1|rpb=1|reqs=rack:5:;|spr=,g2
         z1..z3 Configured a gpu=8 rack=ry own-raw=p=0|ipb=1|rpb=1|reqs=rack:5:;|spr=,g3";
    check(
        &gang(24, machines),
        "Reclaim y1 from a
         Reclaim y2 from a
         Reclaim y3 from a
         Reclaim z1 from a
         Reclaim z2 from a
         Reclaim z3 from a
         claims: x1 x2 x3
         domain a/g1: rx",
    );
    let siblings = "need a group=g2 rack=Same gpu=24 min:gpu=8
         need a group=g3 rack=Same gpu=24 min:gpu=8";
    check(
        &gang(24, &format!("{machines}\n{siblings}")),
        "claims a/g1: x1 x2 x3
         claims a/g2: y1 y2 y3
         claims a/g3: z1 z2 z3",
    );
}

const MORE_ELSEWHERE: &str = "x1..x2 Configured a gpu=8 rack=r1 own=g1
     i1..i3 Idle gpu=8 rack=r2";

#[test]
fn ex_s4_more_coverage_elsewhere_moves_the_gang() {
    check(
        &gang(40, MORE_ELSEWHERE),
        "Bootstrap i1 for a
         Bootstrap i2 for a
         Bootstrap i3 for a
         claims: i1 i2 i3
         held: x1 x2
         short a: gpu=16 TOPOLOGY_UNSATISFIABLE
         domain a: r2 unsatisfiable",
    );
    check(
        &gang(
            40,
            "x1..x2 Configured a gpu=8 rack=r1
             i1..i2 Configured a gpu=8 rack=r2 own=g1
             i3 Configuring a gpu=8 rack=r2 own=g1",
        ),
        "claims: i1 i2 i3
         held: x1 x2",
    );
    check(
        &gang(
            40,
            "x1..x2 Configured a gpu=8 rack=r1
             i1..i3 Configured a gpu=8 rack=r2 own=g1",
        ),
        "Reclaim x1 from a
         Reclaim x2 from a",
    );
}

#[test]
fn ex_s5_equal_coverage_moves_nothing() {
    check(
        &gang(
            40,
            "x1..x2 Configured a gpu=8 rack=r2 own=g1
             i1 Idle gpu=8 rack=r2
             j1..j3 Idle gpu=8 rack=r1",
        ),
        "Bootstrap i1 for a
         claims: i1 x1 x2
         held:
         short a: gpu=16
         domain a: r2 unsatisfiable",
    );
}

#[test]
fn ex_s6_a_parked_gang_keeps_what_it_has() {
    check(
        &format!("need a group=g1 rack=Same gpu=40 min:gpu=8 parked\n{MORE_ELSEWHERE}"),
        "claims: x1 x2
         short a: gpu=24 TOPOLOGY_UNSATISFIABLE
         domain a: r1 unsatisfiable",
    );
}

#[test]
fn ex_s7_own_machines_before_cheaper_ones() {
    let machines = "m9 Configured a gpu=8 $2 rack=r1 own=g1
         m1 Configured a gpu=8 $1 rack=r1";
    check(
        &gang(
            16,
            &format!("{machines}\nm8 Configuring a gpu=8 $2 rack=r1 own=g1"),
        ),
        "claims: m8 m9
         held: m1",
    );
    check(
        &gang(
            16,
            &format!("{machines}\nm8 Configured a gpu=8 $2 rack=r1 own=g1"),
        ),
        "Reclaim m1 from a
         claims: m8 m9",
    );
}

#[test]
fn ex_s8_a_later_gang_sees_what_an_earlier_one_took() {
    check(
        "need a group=ga rack=Same gpu=16 min:gpu=8 arrival=1
         need a group=gb rack=Same gpu=16 min:gpu=8 arrival=2
         i1..i2 Idle gpu=8 rack=r1
         j1..j3 Idle gpu=8 rack=r2",
        "Bootstrap i1 for a
         Bootstrap i2 for a
         Bootstrap j1 for a
         Bootstrap j2 for a
         claims a/ga: i1 i2
         claims a/gb: j1 j2
         satisfied a/ga
         satisfied a/gb",
    );
}

const TWO_ON_THEIR_WAY: &str = "need a group=ga rack=Same gpu=16 min:gpu=8
     k1 Creating gpu=8 rack=r1 own=ga
     s1 Speculative gpu=8 rack=r1
     s2..s3 Speculative gpu=8 rack=r2";

#[test]
fn ex_s9_an_intent_that_names_no_need_is_supply() {
    check(
        &format!(
            "{TWO_ON_THEIR_WAY}
             k2 Creating gpu=8 rack=r1 own-raw=p=0|ipb=1|rpb=1|reqs=rack:5:;|spr=,gb for=a"
        ),
        "claims a/ga: k1 k2
         ended: k2
         restamps: k2
         domain a/ga: r1",
    );
    check(
        &format!(
            "{TWO_ON_THEIR_WAY}
             need a group=gb rack=Same gpu=8 min:gpu=8
             k2 Creating gpu=8 rack=r1 own=gb"
        ),
        "Provision s1 for a
         claims a/ga: k1 s1
         claims a/gb: k2
         domain a/ga: r1
         ended:",
    );
}

#[test]
fn ex_s10_coverage_counts_each_dimension_at_most_once() {
    check(
        "need a group=g1 rack=Same cpu=100 memory=100Gi
         i1 Idle cpu=90 memory=20Gi rack=r1
         j1 Idle cpu=60 memory=60Gi rack=r2",
        "Bootstrap j1 for a
         short a: cpu=40 memory=40Gi
         domain a: r2 unsatisfiable",
    );
}
