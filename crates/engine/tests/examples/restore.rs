//! EX-RF22 and EX-RF25: drains that are taken back.

use crate::check::check;

#[test]
fn ex_rf22_a_drain_is_taken_back_before_anything_is_acquired() {
    let need = "need a name:n cpu=8
         m1 Configured a cpu=4 $1 own=n
         i1 Idle cpu=4 $0.1";
    check(
        &format!("{need}\nm2 Draining a cpu=4 $1 reversible"),
        "Restore m2 for a
         claims: m1 m2
         restamps:
         satisfied a",
    );
    for other in [
        "m2 Draining a cpu=4 $1",
        "m2 Draining b cpu=4 $1 reversible",
        "m2 Deleting a cpu=4 $1 reversible", // means something while Draining only
    ] {
        check(
            &format!("{need}\n{other}"),
            "Bootstrap i1 for a
             claims: i1 m1",
        );
    }
    check(
        &format!("{need}\nm2 Draining a cpu=4 $1 reversible\nm3 Configured a cpu=4 $9"),
        "claims: m1 m3
         restamps: m3",
    );
    // Parked, and where nothing may be acquired.
    check(
        &format!("cluster a no-acquire\n{need}\nm2 Draining a cpu=4 $1 reversible"),
        "Restore m2 for a",
    );
    check(
        "need a name:n group=g rack=Same cpu=8 parked
         m1 Configured a cpu=4 rack=r1 own=n
         m2 Draining a cpu=4 rack=r1 reversible
         i1 Idle cpu=4 rack=r1",
        "Restore m2 for a
         satisfied a/g",
    );
}

#[test]
fn ex_rf25_an_intent_that_stands_keeps_its_drain() {
    let need = "need a name:n cpu=8
         m1 Configured a cpu=4 $1 own=n
         i1 Idle cpu=4 $0.1";
    check(
        &format!("{need}\nm2 Draining a cpu=4 $1 reversible own-raw=gone, for=a"),
        "Restore m2 for a
         ended: m2
         restamps:",
    );
    check(
        &format!("{need}\nneed b name:o cpu=4\nm2 Draining a cpu=4 $1 reversible own=o"),
        "Bootstrap i1 for a
         claims: i1 m1 m2
         ended:",
    );
    check(
        "need a cpu=8 gpu=1
         m3 Draining a cpu=4 reversible
         i2 Idle cpu=8 gpu=1",
        "Restore m3 for a
         Bootstrap i2 for a",
    );
    check(
        "need a group=g rack=Same cpu=8
         m4 Configured a cpu=4 rack=r1
         m5..m6 Draining a cpu=4 rack=r2 reversible",
        "Restore m5 for a
         Restore m6 for a
         held: m4
         domain a/g: r2",
    );
    // What nobody of its cluster wants is promised to another (RF-10).
    check(
        "cluster a
         need b cpu=4
         m2 Draining a cpu=4 reversible",
        "claims: m2
         restamps: m2",
    );
}
