//! The one place that names the engines under test.

use bigfleet_engine::{Engine, Mistake};
use bigfleet_model::{Decision, Fleet};

/// Decides on `before` three ways and compares with `after`; the language is the testkit's.
#[track_caller]
pub(crate) fn check(before: &str, after: &str) {
    bigfleet_testkit::check(bigfleet_oracle::decide, before, after);
    bigfleet_testkit::check(bigfleet_engine::decide, before, after);
    bigfleet_testkit::check(incremental, before, after);
}

/// With a mistake switched on the engine decides `wrong` instead; switched off, it decides `right`.
#[track_caller]
pub(crate) fn caught(mistake: Mistake, before: &str, right: &str, wrong: &str) {
    check(before, right);
    let mistaken = |fleet: &Fleet| {
        let mut engine = Engine::new();
        engine.make(mistake);
        engine.load(fleet);
        engine.decide_full(fleet.now);
        engine.decision()
    };
    bigfleet_testkit::check(mistaken, before, wrong);
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
