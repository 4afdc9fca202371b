//! EX-RF18 to EX-RF21 and EX-RF26: rows of whole units, and what their machines count with.

use crate::check::check;

/// So many actions of a kind, on machines numbered from 1.
fn actions(
    kind: &str,
    prefix: &str,
    machines: std::ops::RangeInclusive<u32>,
    rest: &str,
) -> String {
    let line = |number| format!("{kind} {prefix}{number:02} {rest}\n");
    machines.map(line).collect()
}

/// So many machines, numbered from 1.
fn machines(prefix: &str, count: u32, facts: &str) -> String {
    let line = |number| format!("{prefix}{number:02} {facts}\n");
    (1..=count).map(line).collect()
}

#[test]
fn ex_rf18_ten_units_of_three_take_ten_machines_of_four() {
    let slots = machines("s", 12, "Speculative cpu=4 $1");
    check(
        &format!("need a cpu=30 min:cpu=3\n{slots}"),
        &actions("Provision", "s", 1..=8, "for a"),
    );
    check(
        &format!("need a cpu=30 min:cpu=3 whole\n{slots}"),
        &format!("{}satisfied a", actions("Provision", "s", 1..=10, "for a")),
    );
    check(
        &format!("need a cpu=30 whole\n{slots}"), // without a unit it says nothing
        &actions("Provision", "s", 1..=8, "for a"),
    );
    check(
        "need a cpu=9 memory=12 min:cpu=3 min:memory=4 whole
         s1..s5 Speculative cpu=8 memory=6 $1",
        "Provision s1 for a
         Provision s2 for a
         Provision s3 for a",
    );
    check(
        &format!(
            "need a name:x cpu=15 min:cpu=3 whole\nneed a name:y cpu=15 min:cpu=2 whole\n{slots}"
        ),
        &actions("Provision", "s", 1..=8, "for a"),
    );
}

#[test]
fn ex_rf19_a_gang_goes_where_its_members_fit() {
    let gang = "need a group=g1 rack=Same cpu=960 min:cpu=60";
    let racks =
        machines("x", 15, "Idle cpu=64 rack=r1 $1") + &machines("y", 16, "Idle cpu=64 rack=r2 $2");
    check(
        &format!("{gang}\n{racks}"),
        &format!(
            "{}domain a/g1: r1",
            actions("Bootstrap", "x", 1..=15, "for a")
        ),
    );
    check(
        &format!("{gang} whole\n{racks}"),
        &format!(
            "{}domain a/g1: r2",
            actions("Bootstrap", "y", 1..=16, "for a")
        ),
    );
}

#[test]
fn ex_rf20_whole_gangs_fold_one_to_a_machine() {
    let gangs = |whole: &str| {
        let gang = |n: u32| format!("need a group=g{n} rack=Same cpu=20 min:cpu=5 {whole}\n");
        (1..=3).map(gang).collect::<String>() + "i1..i4 Idle cpu=32 rack=r1 $1"
    };
    check(
        &gangs("whole"),
        "Bootstrap i1 for a
         Bootstrap i2 for a
         Bootstrap i3 for a
         satisfied a/fold:g1",
    );
    check(
        &gangs(""),
        "Bootstrap i1 for a
         Bootstrap i2 for a",
    );
    // A class may hold gangs of both kinds; then the row they fold to is not whole.
    check(
        "need a group=g1 rack=Same cpu=20 min:cpu=5 whole
         need a group=g2 rack=Same cpu=20 min:cpu=5
         need a group=g3 rack=Same cpu=20 min:cpu=5 whole
         i1..i4 Idle cpu=32 rack=r1 $1",
        "Bootstrap i1 for a
         Bootstrap i2 for a",
    );
}

#[test]
fn ex_rf21_what_a_row_has_outgrown_serves_until_it_is_replaced() {
    let row = "need a name:n cpu=72 min:cpu=32";
    let own = machines("m", 10, "Configured a cpu=4 own=n");
    let all = "m01 m02 m03 m04 m05 m06 m07 m08 m09 m10";
    check(
        &format!("{row}\n{own}s1..s3 Speculative cpu=32 $1"),
        &format!(
            "Provision s1 for a
             Provision s2 for a
             Provision s3 for a
             held: {all}
             claims: s1 s2 s3"
        ),
    );
    check(
        &format!("{row}\n{own}s1..s2 Configured a cpu=32 own=n\ns3 Configuring a cpu=32 own=n"),
        &format!("held: {all}\nclaims: s1 s2 s3"),
    );
    check(
        &format!("{row}\n{own}s1..s3 Configured a cpu=32 own=n"),
        &format!("{}held:", actions("Reclaim", "m", 1..=10, "from a")),
    );
    check(&format!("{row}\n{own}"), &format!("held: {all}\nclaims:"));
}

#[test]
fn ex_rf26_an_aggregate_is_of_whole_units() {
    let gang = "need a group=g1 rack=Same cpu=10 min:cpu=3 whole";
    check(
        &format!("{gang}\ni1 Idle cpu=11 rack=r1"),
        "Bootstrap i1 for a
         short a/g1: cpu=3
         domain a/g1: r1 unsatisfiable",
    );
    check(
        &format!("{gang}\ni1 Idle cpu=12 rack=r1"),
        "Bootstrap i1 for a
         satisfied a/fold:g1",
    );
    let victims = "cluster b not-ready\n";
    check(
        &format!(
            "need a cpu=12 min:cpu=3 whole prio=1000\n{victims}v1..v5 Configured b cpu=4 stamp=1"
        ),
        "Preempt v1 from b grace 600 for a
         Preempt v2 from b grace 600 for a
         Preempt v3 from b grace 600 for a
         Preempt v4 from b grace 600 for a",
    );
    check(
        &format!(
            "need a group=g1 rack=Same cpu=12 min:cpu=3 whole prio=1000\n{victims}
             v1..v3 Configured b cpu=4 stamp=1 rack=r1
             w1..w4 Configured b cpu=4 stamp=1 rack=r2"
        ),
        "Preempt w1 from b grace 600 for a
         Preempt w2 from b grace 600 for a
         Preempt w3 from b grace 600 for a
         Preempt w4 from b grace 600 for a
         domain a/g1: r2",
    );
    check(
        "need a name:n cpu=12 min:cpu=3 whole prio=1000
         m1..m3 Configured a cpu=4 own=n $1
         m4 Configuring a cpu=4 own=n $1
         m5 Configured a cpu=4 $2",
        "claims: m1 m2 m3 m4
         held: m5",
    );
}
