//! engine.md §14: excess and release.

use crate::check::check;

const THREE: &str = "m1 Configured a cpu=4 $1
     m2 Configured a cpu=4 $2
     m3 Configured a cpu=4 $3";

#[test]
fn ex_r1_excess_goes_cheapest_first() {
    check(
        &format!("{THREE}\nneed a cpu=4"),
        "Reclaim m2 from a
         Reclaim m3 from a",
    );
}

#[test]
fn ex_r2_nothing_is_taken_from_a_cluster_that_has_not_reported() {
    check(&format!("{THREE}\ncluster a not-ready"), "");
    check(THREE, "");
}

#[test]
fn ex_r3_a_cluster_that_wants_nothing_gets_nothing() {
    check(
        &format!("{THREE}\ncluster a"),
        "Reclaim m1 from a
         Reclaim m2 from a
         Reclaim m3 from a",
    );
}

#[test]
fn ex_r4_an_idle_machine_is_released_after_its_hold() {
    let at = |seconds: u32, machine: &str| {
        format!("now {seconds}\ni1 Idle cpu=4 idle-since=1000 {machine}")
    };
    check(&at(1599, "OnDemand"), "");
    check(&at(1600, "OnDemand"), "Delete i1");
    check(
        &format!("{}\nneed a cpu=4", at(1600, "OnDemand")),
        "Bootstrap i1 for a",
    );
    check(&at(1059, "Spot"), "");
    check(&at(1060, "Spot"), "Delete i1");
    check(&at(1000 + 30 * 86_400, "BareMetal"), "");
    // A restart at 1500 s saw it idle from then on.
    let restarted = |now: u32| format!("now {now}\ni1 Idle cpu=4 idle-since=1500 OnDemand");
    check(&restarted(2099), "");
    check(&restarted(2100), "Delete i1");
}
