//! Oracle = full = incremental, on every step of invented histories.

use bigfleet_engine::{Engine, decide};
use bigfleet_model::{Decision, Fleet};
use bigfleet_testkit::generate::Generator;

const SEEDS: u64 = 250;
const STEPS: usize = 100;

#[test]
fn three_engines_agree_on_every_step() {
    let seeds = std::env::var("SEEDS").ok().and_then(|s| s.parse().ok()).unwrap_or(SEEDS);
    let first = std::env::var("FIRST").ok().and_then(|s| s.parse().ok()).unwrap_or(0);
    for seed in first..first + seeds {
        history(seed);
    }
}

fn history(seed: u64) {
    let mut generator = Generator::new(seed);
    let mut fleet = generator.fleet();
    let mut engine = Engine::new();
    engine.load(&fleet);
    for step in 0..STEPS {
        engine.decide(fleet.now);
        let place = format!("seed {seed}, step {step}");
        let expected = bigfleet_oracle::decide(&fleet);
        compare(&place, "full", &fleet, &expected, &decide(&fleet));
        compare(&place, "incremental", &fleet, &expected, &engine.decision());
        let before = fleet.clone();
        generator.edit(&mut fleet);
        engine.follow(&before, &fleet);
    }
}

fn compare(place: &str, engine: &str, fleet: &Fleet, expected: &Decision, found: &Decision) {
    if expected == found {
        return;
    }
    let lists = [
        ("actions", format!("{:#?}", expected.actions), format!("{:#?}", found.actions)),
        ("claims", format!("{:?}", expected.claims), format!("{:?}", found.claims)),
        ("ended", format!("{:?}", expected.ended_intents), format!("{:?}", found.ended_intents)),
        ("held", format!("{:?}", expected.held), format!("{:?}", found.held)),
        ("restamps", format!("{:?}", expected.restamps), format!("{:?}", found.restamps)),
        ("needs", format!("{:#?}", expected.needs), format!("{:#?}", found.needs)),
    ];
    for (name, expected, found) in lists {
        if expected != found {
            eprintln!("{name}: oracle {expected}\n{name}: {engine} {found}");
        }
    }
    let _ = fleet;
    panic!("{place}: {engine} differs from the oracle");
}
