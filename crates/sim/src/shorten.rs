//! Shortening: the least of a failing plan that still fails, by the same rule.
//!
//! ```text
//! weather off? ─▶ still broken? ─▶ leave out one entry of the timeline after another ─▶ Without
//! ```
//!
//! Leaving something out changes later draws, so what is left is another history; it breaks the same
//! rule, and there is less of it to read.

use crate::{
    defect::Defect,
    dice::Dice,
    plan::{Plan, Weather},
    run::run_without,
    scenarios::Scenario,
    watch::Rule,
};
use std::collections::BTreeSet;

/// At most so many runs are spent on one failure, and no more once they had so many events: the better
/// part of a minute.
const MOST_RUNS: usize = 150;
const MOST_EVENTS: u64 = 10_000_000;

/// What is left out of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Without {
    /// Entries of the timeline, by position.
    pub changes: BTreeSet<usize>,
    /// Whether nothing is lost, late or stale.
    pub weather: bool,
}

impl Without {
    /// Takes it out of a plan; positions stay what they were.
    pub(crate) fn take_from(&self, plan: &mut Plan) {
        let timeline = std::mem::take(&mut plan.timeline);
        let kept = timeline.into_iter().enumerate();
        let kept = kept.filter(|(at, _)| !self.changes.contains(at));
        plan.timeline = kept.map(|(_, entry)| entry).collect();
        if self.weather {
            plan.weather = Weather {
                break_every: plan.weather.break_every,
                ..Weather::default()
            };
        }
    }
}

/// What can be left out of a failing run so that it still breaks this rule; and what is left of its
/// timeline, in words.
pub fn shorten(
    scenario: &Scenario,
    seed: u64,
    defect: Option<Defect>,
    rule: Rule,
) -> (Without, Vec<String>) {
    let plan = scenario.plan(&mut Dice::stream(seed, 0));
    let (mut runs, mut events) = (0, 0);
    let mut fails = |without: &Without| {
        if MOST_RUNS <= runs || MOST_EVENTS <= events {
            return false;
        }
        let done = run_without(scenario, seed, defect, without, false);
        runs += 1;
        events += done.events;
        done.broken.is_some_and(|broken| broken.rule == rule)
    };
    let mut without = Without::default();
    let fair = Without {
        weather: true,
        ..Without::default()
    };
    if fails(&fair) {
        without = fair;
    }
    // Halves first, then one by one, the latest first: what comes last is most often idle.
    let mut width = plan.timeline.len().div_ceil(2).max(1);
    loop {
        let mut end = plan.timeline.len();
        while 0 < end {
            let start = end.saturating_sub(width);
            let mut less = without.clone();
            less.changes.extend(start..end);
            if less != without && fails(&less) {
                without = less;
            }
            end = start;
        }
        if width == 1 {
            break;
        }
        width = width.div_ceil(2);
    }
    let entries = plan.timeline.iter().enumerate();
    let left = entries.filter(|(at, _)| !without.changes.contains(at));
    let mut left: Vec<_> = left.map(|(_, (when, change))| (*when, change)).collect();
    left.sort_by_key(|(when, _)| *when);
    let left = left
        .iter()
        .map(|(when, change)| format!("{when} {change:?}"));
    (without, left.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A failure that needs one crash of many things keeps little more than that crash.
    #[test]
    fn what_does_not_matter_is_left_out() {
        let scenario = Scenario::named("random-faults").unwrap();
        let defect = Defect::named("first-roll-up-gate-off");
        let seeds = 1..30;
        let failing = seeds.into_iter().find_map(|seed| {
            let broken = crate::run(&scenario, seed, defect, false).broken?;
            Some((seed, broken.rule))
        });
        let (seed, rule) = failing.unwrap();
        let (without, left) = shorten(&scenario, seed, defect, rule);
        let again = run_without(&scenario, seed, defect, &without, false);
        assert_eq!(again.broken.map(|broken| broken.rule), Some(rule));
        assert!(left.len() <= 4, "{left:?}");
    }
}
