//! The failing arm of RF-4: without own-first a machine changes hands though nothing asked for it.

use bigfleet_engine::{Engine, Mistake};
use bigfleet_model::Restamp;
use bigfleet_testkit::fleet;

/// Two Needs of one cluster, each with the machine that serves it; the dearer belongs to the one
/// that comes first in the order.
const AT_REST: &str = "m1 Configured a cpu=4 $1 own=later
                       m2 Configured a cpu=4 $2 own=first
                       need a name:first cpu=4 prio=10
                       need a name:later cpu=4 prio=1";

fn restamps(own_first: bool) -> Vec<Restamp> {
    let fleet = fleet(AT_REST);
    let mut engine = Engine::new();
    if !own_first {
        engine.make(Mistake::OwnNotFirst);
    }
    engine.load(&fleet);
    engine.decide(fleet.now);
    engine.restamps()
}

#[test]
fn each_need_keeps_its_own_and_without_that_rule_they_trade_places() {
    assert_eq!(restamps(true), []);
    let traded = restamps(false);
    let machines: Vec<&str> = traded.iter().map(|at| at.machine.as_str()).collect();
    assert_eq!(machines, ["m1", "m2"]);
}
