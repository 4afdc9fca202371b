//! The one place that names the engines under test.

use bigfleet_engine::Engine;
use bigfleet_model::{Decision, Fleet};

/// Decides on `before` three ways and compares with `after`; the language is the testkit's.
#[track_caller]
pub(crate) fn check(before: &str, after: &str) {
    bigfleet_testkit::check(bigfleet_oracle::decide, before, after);
    bigfleet_testkit::check(bigfleet_engine::decide, before, after);
    bigfleet_testkit::check(incremental, before, after);
}

/// Machine by machine, with a decision after each.
fn incremental(fleet: &Fleet) -> Decision {
    let mut engine = Engine::new();
    let (mut known, mut next) = (
        Fleet::default(),
        Fleet {
            machines: Default::default(),
            ..fleet.clone()
        },
    );
    for machine in fleet.machines.values() {
        engine.follow(&known, &next);
        engine.decide(fleet.now);
        known = next.clone();
        next.put(machine.clone());
    }
    engine.follow(&known, &next);
    engine.decide(fleet.now);
    engine.decision()
}
