//! EX-RF16, EX-RF17, EX-RF23, EX-RF24 and EX-RF27: which of equals leaves, and what is held.

use crate::check::check;

#[test]
fn ex_rf16_of_equals_the_one_that_disturbs_least_leaves() {
    let own = |first: &str, second: &str| {
        format!(
            "need a name:n cpu=4
             m1 Configured a cpu=4 $1 own=n {first}
             m2 Configured a cpu=4 $1 own=n {second}"
        )
    };
    check(
        &own("disruption=0", "disruption=3"),
        "Reclaim m1 from a
         claims: m2",
    );
    check(&own("", "disruption=1"), "Reclaim m2 from a");
    check(&own("", "disruption=0"), "Reclaim m2 from a");
    check(
        &own("disruption=0", "disruption=15 keep=$2"),
        "Reclaim m2 from a",
    );
    // Of those that leave, the emptiest comes first.
    check(
        "cluster a
         m1 Configured a cpu=4 $1 disruption=3
         m2 Configured a cpu=4 $1
         m3 Configured a cpu=4 $1 disruption=0
         m4 Configured a cpu=4 $0 disruption=15",
        "Reclaim m4 from a
         Reclaim m3 from a
         Reclaim m2 from a
         Reclaim m1 from a",
    );
}

#[test]
fn ex_rf17_a_row_takes_over_the_busier_machine_of_one_that_ended() {
    check(
        "need a name:p cpu=4 prio=100
         m1 Configured a cpu=4 $1 own=p disruption=0
         m2 Configured a cpu=4 $1 own-raw=p=200|ipb=1|rpb=1|reqs=x:3:;|spr=, stamp=200 disruption=4",
        "Reclaim m1 from a
         claims: m2
         restamps: m2",
    );
}

#[test]
fn ex_rf23_where_nothing_leaves_disruption_says_nothing() {
    for (first, second) in [
        ("", ""),
        ("disruption=15", "disruption=0"),
        ("disruption=0", "disruption=15"),
    ] {
        check(
            &format!(
                "need a name:n cpu=20
                 m1 Configured a cpu=4 $1 own=n {first}
                 m2 Configured a cpu=8 $1 own=n {second}
                 m3 Configured a cpu=4 $2 own=n {second}
                 m4 Configured a cpu=8 $2 own=n {first}"
            ),
            "claims: m1 m2 m3 m4
             held:",
        );
        check(
            &format!(
                "need a name:p cpu=2 prio=100
                 need a name:g group=g rack=Same cpu=8 prio=100
                 g1 Configured a cpu=4 $1 rack=r1 own=g
                 m1 Configured a cpu=4 $1 own=p {first}
                 m2 Configured a cpu=4 $1 own=p rack=r1 {second}"
            ),
            "claims p: m1
             claims g: g1 m2",
        );
    }
}

#[test]
fn ex_rf24_an_equal_is_one_of_the_same_domain_and_penalty() {
    check(
        "need a name:g group=g rack=Same cpu=8
         m0 Configured a cpu=4 rack=r1 own=g disruption=3
         m1 Configured a cpu=4 rack=r1 own=g disruption=0
         m2 Configured a cpu=4 rack=r1 own=g disruption=5",
        "Reclaim m1 from a
         claims: m0 m2",
    );
    check(
        "need a name:s cpu=8 spread=zone/1
         m0 Configured a cpu=4 zone=a own=s disruption=0
         m1 Configured a cpu=4 zone=b own=s disruption=0
         m2 Configured a cpu=4 zone=b own=s disruption=5",
        "Reclaim m1 from a
         claims: m0 m2",
    );
    check(
        "need a name:g group=g rack=Same cpu=8
         m0..m1 Configured a cpu=4 rack=r1 own=g disruption=0
         x1 Configured a cpu=4 rack=r2 disruption=9",
        "Reclaim x1 from a",
    );
    check(
        "need a name:p cpu=4 prio=100
         m1 Configured a cpu=4 $1 own=p penalty=$8 disruption=0
         m2 Configured a cpu=4 $1 own-raw=p=200|ipb=1|rpb=1|reqs=x:3:;|spr=, stamp=200 disruption=4",
        "Reclaim m2 from a
         claims: m1",
    );
}

#[test]
fn ex_rf27_a_gang_that_finds_no_victims_keeps_its_machines() {
    let after = "need c group=g rack=Same cpu=8 prio=100 arrival=1 name:gc
         m5 Configured c cpu=4 rack=r3 own=gc";
    check(
        &format!(
            "{after}
             need b group=h rack=Same cpu=8 prio=100 arrival=2
             need b name:l cpu=8 prio=2
             m1..m2 Configured b cpu=4 rack=r2 own=l"
        ),
        "claims b/h: m1 m2
         held: m5
         domain c/g: r2",
    );
    check(
        &format!(
            "{after}
             need b group=h rack=Same cpu=8 prio=100 arrival=2 name:h
             need b name:l cpu=8 prio=2
             m1..m2 Configured b cpu=4 rack=r2 own=h"
        ),
        "claims c/g: m5
         claims b/h: m1 m2
         held:",
    );
}
