//! engine.md §12.1 to §12.3 and §12.6: order, credit and acquisition of plain Needs.
//!
//! Needs are served one after another, so nobody is displaced; EX-X4 is the example.

use crate::check::check;

const FOUR_MACHINES: &str = "m1 Configured a cpu=4 $3 penalty=$8
     m2 Configured a cpu=4 $1
     m3 Configured a cpu=4 $3 penalty=$64";

#[test]
fn ex_c1_what_has_not_arrived_holds_what_serves() {
    check(
        &format!("{FOUR_MACHINES}\nm4 Configuring a cpu=4 $0.5\nneed a cpu=7 min:cpu=1"),
        "claims: m2 m4
         held: m1 m3",
    );
    check(
        &format!("{FOUR_MACHINES}\nm4 Configured a cpu=4 $0.5\nneed a cpu=7 min:cpu=1"),
        "Reclaim m3 from a
         Reclaim m1 from a
         claims: m2 m4
         held:",
    );
}

#[test]
fn ex_c2_all_are_needed() {
    check(
        &format!("{FOUR_MACHINES}\nm4 Configuring a cpu=4 $0.5\nneed a cpu=13 min:cpu=1"),
        "claims: m1 m2 m3 m4
         satisfied a
         held:",
    );
}

const TWO_ON_THEIR_WAY: &str = "need a name:web cpu=8 min:cpu=2
     k1 Creating cpu=4 own=web
     s1..s2 Speculative cpu=4 $1";

#[test]
fn ex_c3_an_intent_that_names_no_need_is_supply() {
    check(
        &format!("{TWO_ON_THEIR_WAY}\nk2 Creating cpu=4 own-raw=other for=a"),
        "claims web: k1 k2
         ended: k2
         restamps: k2",
    );
    check(
        &format!(
            "{TWO_ON_THEIR_WAY}
             need a name:other prio=1 cpu=4
             k2 Creating cpu=4 own=other"
        ),
        "Provision s1 for a
         claims web: k1 s1
         claims other: k2
         ended:",
    );
}

#[test]
fn ex_c4_a_machine_below_the_smallest_unit_is_of_no_use() {
    check(
        "need a cpu=2 min:cpu=2
         a Configured a cpu=1
         b Idle cpu=4",
        "Bootstrap b for a
         Reclaim a from a
         claims: b",
    );
}

#[test]
fn ex_a1_idle_machines_by_price_then_id() {
    check(
        "need a cpu=12
         i1..i2 Idle cpu=4 $2
         i0 Idle cpu=4 $3",
        "Bootstrap i1 for a
         Bootstrap i2 for a
         Bootstrap i0 for a",
    );
}

#[test]
fn ex_a2_idle_before_speculative_and_those_by_effective_cost() {
    check(
        "need a cpu=16 min:cpu=4 ipenalty=$2
         a1..a2 Configured a cpu=4
         i1 Idle cpu=4
         s1 Speculative cpu=4 $0.40
         s2 Speculative cpu=4 $0.30 p=0.1",
        "Bootstrap i1 for a
         Provision s1 for a
         claims: a1 a2 i1 s1",
    );
}

#[test]
fn ex_a3_the_penalty_outranks_the_arrival() {
    check(
        "need a cpu=4 prio=100 ib=6 arrival=9
         need b cpu=4 prio=100 ib=3 arrival=1
         i1 Idle cpu=4 $1
         i2 Idle cpu=4 $5",
        "Bootstrap i1 for a
         Bootstrap i2 for b",
    );
}

#[test]
fn ex_a4_the_penalty_decides_between_spot_and_on_demand() {
    for (penalty, chosen) in [
        ("ipenalty=$16", "spot"),
        ("ipenalty=$64", "steady"),
        ("ib=27", "steady"),
    ] {
        check(
            &format!(
                "need a cpu=4 {penalty}
                 spot Speculative cpu=4 $1.00 p=0.05 Spot
                 steady Speculative cpu=4 $3.00 OnDemand"
            ),
            &format!("Provision {chosen} for a"),
        );
    }
}

#[test]
fn ex_x4_the_higher_priority_gets_the_machine_wherever_it_is_listed() {
    for rows in [
        "need a cpu=4 prio=100\nneed b cpu=4 prio=200",
        "need b cpu=4 prio=200\nneed a cpu=4 prio=100",
    ] {
        check(&format!("{rows}\ni1 Idle cpu=4"), "Bootstrap i1 for b");
    }
}
