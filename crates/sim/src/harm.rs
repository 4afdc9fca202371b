//! Harm: what a defect leads to while the rule that stops it at once looks away.
//!
//! ```text
//! defect ─▶ its own rule, blind ─▶ … ─▶ machines bought twice, drained for nothing ─▶ another rule objects
//! ```
//!
//! A rule that objects to a defect as such says that it is there, not that it matters. Here it matters.

use crate::{
    defect::Defect,
    dice::Dice,
    run::{Report, run_plan},
    scenarios::Scenario,
    watch::Rule,
};

/// How a scenario ends while some rules look away.
fn ends(scenario: &str, seed: u64, defect: Option<Defect>, blind_to: &[Rule]) -> Report {
    let scenario = Scenario::named(scenario).unwrap();
    let mut plan = scenario.plan(&mut Dice::stream(seed, 0));
    plan.blind_to = blind_to.to_vec();
    run_plan(scenario.name, plan, seed, defect, false)
}

/// Some seed of a scenario ends at its own gate with a defect, and without it at none.
fn harms(defect: &str, scenario: &str, blind_to: &[Rule]) {
    let named = Defect::named(defect);
    assert!(named.is_some(), "{defect}");
    let harmed = (1..=20).find(|seed| {
        let broken = ends(scenario, *seed, named, blind_to).broken;
        broken.is_some_and(|broken| broken.rule == Rule::Gate)
    });
    let seed = harmed.unwrap_or_else(|| panic!("{defect} harms nobody in {scenario}"));
    let whole = ends(scenario, seed, None, &[]).broken;
    assert!(whole.is_none(), "{scenario} {seed} without: {whole:?}");
}

#[test]
fn what_is_committed_too_late_is_bought_twice() {
    let blind = [Rule::Committed, Rule::NothingTooMuch, Rule::ServedInTime];
    harms("commit-after-calling", "at-3-backlog", &blind);
}

#[test]
fn what_is_not_on_disk_is_forgotten_in_a_crash() {
    let blind = [Rule::DurableFirst];
    harms("intent-not-durable", "promises-over-a-crash", &blind);
}

/// Gangs that stand still prove something only if they move once nothing keeps them where they are.
#[test]
fn gangs_without_a_home_move_from_rack_to_rack() {
    for scenario in [
        "steady-state",
        "unsatisfiable-gang",
        "gang-dwell",
        "incumbency",
        "gang-sweep",
        "own-rack",
    ] {
        harms("no-incumbent", scenario, &[Rule::ClaimsStand]);
    }
}
