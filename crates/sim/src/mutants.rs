//! Mutants: every defect is switched on, and some scenario must object to it.
//!
//! ```text
//! defect ─▶ its guards first, then every other scenario ─▶ seed 1, 2, … ─▶ broken with it, whole without
//! ```
//!
//! A guard nobody has seen fail guards nothing. Caught means: this scenario and this seed break a rule
//! with the defect and break none without it.

use crate::{defect::Defect, run::run, scenarios::Scenario, watch::Broken};

/// Who objected, and to what.
#[derive(Clone, Debug)]
pub struct Caught {
    /// The scenario.
    pub scenario: &'static str,
    /// The seed.
    pub seed: u64,
    /// The rule that broke.
    pub broken: Broken,
    /// Runs it took.
    pub runs: u64,
}

/// Looks among these scenarios and the seeds up to this one for who objects to a defect.
pub fn hunt(defect: Defect, seeds: u64, among: &[Scenario]) -> Option<Caught> {
    let mut runs = 0;
    let mut scenarios = among.to_vec();
    let told = defect.guards();
    // Guards first; the order among the others is the list's.
    scenarios.sort_by_key(|one| {
        let guard = told.iter().position(|guard| *guard == one.name);
        guard.unwrap_or(told.len())
    });
    for seed in 1..=seeds {
        for scenario in &scenarios {
            runs += 1;
            let Some(broken) = run(scenario, seed, Some(defect), false).broken else {
                continue;
            };
            if run(scenario, seed, None, false).broken.is_none() {
                return Some(Caught {
                    scenario: scenario.name,
                    seed,
                    broken,
                    runs,
                });
            }
        }
    }
    None
}
