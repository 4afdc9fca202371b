//! Shortening: the least of a failing plan that still fails the same way.
//!
//! ```text
//! weather off? ─▶ still broken? ─▶ leave out one entry of the timeline after another ─▶ Without
//!                      └─ the same rule; of a gate the same one on the same side; without the defect none
//! ```
//!
//! Leaving something out changes later draws, so what is left is another history, and may be another
//! failure: a scenario that demands one Create for one loss objects, too, when the loss itself is left
//! out. A plan that objects without the defect as well shows nothing about it, and is not taken. Where
//! there is no defect to compare with, a gate judges the whole timeline or nothing: only weather goes.

use crate::{
    defect::Defect,
    descriptions,
    dice::Dice,
    plan::{Plan, Weather},
    run::run_without,
    scenarios::Scenario,
    watch::{Broken, Rule},
};
use std::{collections::BTreeSet, fmt};

/// At most this many runs, and at most this many events, are spent on one failure: nearly a minute.
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

/// An entry was to be left out that the timeline does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoSuchEntry {
    entry: usize,
    entries: usize,
}

impl fmt::Display for NoSuchEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { entry, entries } = self;
        write!(
            f,
            "there is no entry {entry} in this timeline to leave out: "
        )?;
        match entries {
            0 => write!(f, "it has none"),
            1 => write!(f, "it has one, number 0"),
            entries => write!(f, "it has {entries}, numbered 0 to {}", entries - 1),
        }
    }
}

impl std::error::Error for NoSuchEntry {}

impl Without {
    /// Refuses an entry that the timeline of this scenario and seed does not have.
    pub fn check(&self, scenario: &Scenario, seed: u64) -> Result<(), NoSuchEntry> {
        let entries = scenario.plan(&mut Dice::stream(seed, 0)).timeline.len();
        match self.changes.last() {
            Some(entry) if entries <= *entry => Err(NoSuchEntry {
                entry: *entry,
                entries,
            }),
            _ => Ok(()),
        }
    }

    /// Takes it out of a plan; positions stay what they were.
    pub(crate) fn take_from(&self, plan: &mut Plan) {
        let timeline = std::mem::take(&mut plan.timeline);
        let kept = timeline.into_iter().enumerate();
        let kept = kept.filter(|(at, _)| !self.changes.contains(at));
        plan.timeline = kept.map(|(_, entry)| entry).collect();
        if self.weather {
            plan.weather = fair(plan.weather);
        }
    }
}

/// Nothing is lost, late or stale; machines break as they did, since that is what some scenarios are
/// about.
fn fair(weather: Weather) -> Weather {
    Weather {
        break_every: weather.break_every,
        ..Weather::default()
    }
}

/// The least that was found to fail the same way.
#[derive(Clone, Debug)]
pub struct Shortened {
    /// What is left out.
    pub without: Without,
    /// How that run fails: it is another history, so the moment and the numbers may be others.
    pub broken: Broken,
    /// The entries that happen before the failure, as text, in order of time. Later entries may still be
    /// in the plan, since leaving them out would change the draws.
    pub left: Vec<String>,
}

/// What can be left out of a failing run so that it still fails the same way.
pub fn shorten(
    scenario: &Scenario,
    seed: u64,
    defect: Option<Defect>,
    broken: &Broken,
) -> Shortened {
    let plan = scenario.plan(&mut Dice::stream(seed, 0));
    let mut search = Search {
        scenario,
        seed,
        defect,
        runs: 0,
        events: 0,
        without: Without::default(),
        broken: broken.clone(),
    };
    if plan.weather != fair(plan.weather) {
        let weather = true;
        let changes = BTreeSet::new();
        search.try_without(Without { changes, weather });
    }
    if broken.rule != Rule::Gate || defect.is_some() {
        search.thin_out(plan.timeline.len());
    }
    let entries = plan.timeline.iter().enumerate();
    let left = entries.filter(|(at, _)| !search.without.changes.contains(at));
    let left = left.map(|(_, (when, change))| (*when, change));
    let mut left: Vec<_> = left.filter(|(when, _)| *when <= search.broken.at).collect();
    left.sort_by_key(|(when, _)| *when);
    let in_words = |(when, change): &(_, &_)| {
        let words = descriptions::change(change, &plan.clusters);
        format!("{when} {words}")
    };
    Shortened {
        left: left.iter().map(in_words).collect(),
        without: search.without,
        broken: search.broken,
    }
}

/// The shortest yet, and what it cost to find it.
struct Search<'a> {
    scenario: &'a Scenario,
    seed: u64,
    defect: Option<Defect>,
    runs: usize,
    events: u64,
    without: Without,
    broken: Broken,
}

impl Search<'_> {
    /// Halves first, then one by one from the end, since late entries are needed least often.
    fn thin_out(&mut self, entries: usize) {
        let mut width = entries.div_ceil(2).max(1);
        loop {
            let mut end = entries;
            while 0 < end {
                let start = end.saturating_sub(width);
                let mut less = self.without.clone();
                less.changes.extend(start..end);
                if less != self.without {
                    self.try_without(less);
                }
                end = start;
            }
            if width == 1 {
                break;
            }
            width = width.div_ceil(2);
        }
    }

    fn try_without(&mut self, less: Without) {
        let Some(broken) = self.run(self.defect, &less) else {
            return;
        };
        let same = is_the_same(&broken, &self.broken);
        if same && (self.defect.is_none() || self.holds_by_itself(&less)) {
            self.without = less;
            self.broken = broken;
        }
    }

    /// Whether the rules hold when the defect is off.
    fn holds_by_itself(&mut self, less: &Without) -> bool {
        self.has_runs_left() && self.run(None, less).is_none()
    }

    fn has_runs_left(&self) -> bool {
        self.runs < MOST_RUNS && self.events < MOST_EVENTS
    }

    fn run(&mut self, defect: Option<Defect>, less: &Without) -> Option<Broken> {
        if !self.has_runs_left() {
            return None;
        }
        let done = run_without(self.scenario, self.seed, defect, less, false);
        self.runs += 1;
        self.events += done.events;
        done.broken
    }
}

/// Whether two runs fail the same way. Numbers and moments may differ; of assertions there are many, so
/// their words count.
fn is_the_same(one: &Broken, other: &Broken) -> bool {
    let words = |text: &str| -> String { text.chars().filter(|one| !one.is_numeric()).collect() };
    let alike = one.rule == other.rule && one.missed == other.missed;
    alike && (one.rule != Rule::Panicked || words(&one.text) == words(&other.text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{clock::Moment, gate::Missed, gate::Side};

    fn failing(name: &str, defect: &str, seeds: std::ops::Range<u64>) -> (Scenario, u64, Broken) {
        let scenario = Scenario::named(name).unwrap();
        let defect = Defect::named(defect);
        let found = seeds.into_iter().find_map(|seed| {
            let broken = crate::run(&scenario, seed, defect, false).broken?;
            Some((seed, broken))
        });
        let (seed, broken) = found.unwrap();
        (scenario, seed, broken)
    }

    /// A failure that needs one crash of many things keeps little more than that crash.
    #[test]
    fn what_does_not_matter_is_left_out() {
        let defect = Defect::named("first-roll-up-gate-off");
        let (scenario, seed, broken) = failing("random-faults", "first-roll-up-gate-off", 1..30);
        let short = shorten(&scenario, seed, defect, &broken);
        let again = run_without(&scenario, seed, defect, &short.without, false);
        assert_eq!(again.broken, Some(short.broken));
        assert_eq!(again.broken.map(|again| again.rule), Some(broken.rule));
        let alone = run_without(&scenario, seed, None, &short.without, false);
        assert_eq!(alone.broken, None);
        assert!(short.left.len() <= 4, "{:?}", short.left);
    }

    /// Without the loss nothing is bought, and the gate objects to that as well: another failure.
    #[test]
    fn what_the_gate_is_about_is_not_left_out() {
        let defect = Defect::named("creating-not-credited");
        let (scenario, seed, broken) = failing("runway", "creating-not-credited", 2..3);
        let short = shorten(&scenario, seed, defect, &broken);
        assert_eq!(short.broken.missed, broken.missed);
        let side = broken.missed.map(|missed| missed.side);
        assert_eq!(side, Some(Side::TooMany));
        assert_eq!(short.left.len(), 1, "{:?}", short.left);
        assert!(!short.without.weather, "there is no weather in it");
        let alone = run_without(&scenario, seed, None, &short.without, false);
        assert_eq!(alone.broken, None);
    }

    /// A gate that is missed though there is no defect: nothing says what it would be without an entry.
    #[test]
    fn a_gate_without_a_defect_keeps_its_timeline() {
        let scenario = Scenario::named("first-come").unwrap();
        let (gate, side) = (0, Side::TooFew);
        let broken = Broken {
            rule: Rule::Gate,
            at: Moment::START,
            text: String::new(),
            missed: Some(Missed { gate, side }),
        };
        let short = shorten(&scenario, 1, None, &broken);
        assert_eq!(short.without, Without::default());
    }

    #[test]
    fn another_side_of_a_gate_and_another_assertion_are_other_failures() {
        let gate = |side| Broken {
            rule: Rule::Gate,
            at: Moment::START,
            text: String::new(),
            missed: Some(Missed { gate: 1, side }),
        };
        assert!(is_the_same(&gate(Side::TooMany), &gate(Side::TooMany)));
        assert!(!is_the_same(&gate(Side::TooMany), &gate(Side::TooFew)));
        let panic = |text: &str| Broken {
            rule: Rule::Panicked,
            at: Moment::START,
            text: text.to_owned(),
            missed: None,
        };
        assert!(is_the_same(&panic("index 3 of 2"), &panic("index 7 of 7")));
        assert!(!is_the_same(&panic("index 3 of 2"), &panic("no such row")));
    }

    #[test]
    fn an_entry_that_is_not_there_cannot_be_left_out() {
        let scenario = Scenario::named("runway").unwrap();
        let without = |entry| Without {
            changes: BTreeSet::from([entry]),
            weather: false,
        };
        assert_eq!(without(0).check(&scenario, 1), Ok(()));
        let refused = without(99).check(&scenario, 1).unwrap_err().to_string();
        assert!(
            refused.contains("99") && refused.contains("number 0"),
            "{refused}"
        );
    }
}
