//! The certificate: what the reports of a run amount to.
//!
//! ```text
//! a required behaviour or the baseline failed ──▶ FAILED
//! else something required was not tried ───────▶ INCOMPLETE, and why
//! else ────────────────────────────────────────▶ CERTIFIED
//! ```
//!
//! Behaviours of ours never decide: they are beyond what the contract asks for.

use std::collections::BTreeSet;
use std::fmt;

use crate::behaviour::{Capability, Profile, Suite};
use crate::runner::{Outcome, Report};

/// What a run amounts to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Everything that was asked for was tried, and kept.
    Certified,
    /// Something was found broken.
    Failed,
    /// Nothing was found broken, but something was not tried.
    Incomplete,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Certified => "CERTIFIED",
            Self::Failed => "FAILED",
            Self::Incomplete => "INCOMPLETE",
        })
    }
}

/// How many reports ended how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Kept.
    pub passed: usize,
    /// Broken.
    pub failed: usize,
    /// Not needed of this provider, which lacks a capability.
    pub skipped: usize,
    /// Not tried, or not asked for.
    pub untried: usize,
}

impl Counts {
    fn of<'r>(reports: impl Iterator<Item = &'r Report>) -> Self {
        let mut counts = Self::default();
        for report in reports {
            *match report.outcome {
                Outcome::Passed => &mut counts.passed,
                Outcome::Failed(_) => &mut counts.failed,
                Outcome::Lacks(_) => &mut counts.skipped,
                Outcome::NotTried(_) => &mut counts.untried,
            } += 1;
        }
        counts
    }

    /// How many were looked at.
    pub fn tests(&self) -> usize {
        self.passed + self.failed + self.skipped
    }
}

/// A run, judged.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// The name of the provider.
    pub provider: String,
    /// What it was to be certified for.
    pub profiles: Vec<Profile>,
    /// Where the properties drew from.
    pub rng_seed: u64,
    /// Skips count as not tried.
    pub strict_skips: bool,
    /// The command that was run, up to its filter; with one it replays a behaviour.
    pub command: String,
    /// One for every behaviour there is.
    pub reports: Vec<Report>,
}

impl Certificate {
    /// The reports of one suite.
    pub fn suite(&self, suite: Suite) -> impl Iterator<Item = &Report> {
        let reports = self.reports.iter();
        reports.filter(move |report| report.behaviour.suite() == suite)
    }

    /// How the reports of one suite ended.
    pub fn counts(&self, suite: Suite) -> Counts {
        Counts::of(self.suite(suite))
    }

    /// Whether the profiles that were selected ask for it.
    pub fn is_required(&self, report: &Report) -> bool {
        report.behaviour.suite() == Suite::Contract && self.asks_for(report)
    }

    /// Whether its outcome is part of the verdict.
    pub fn decides(&self, report: &Report) -> bool {
        report.behaviour.suite() == Suite::Baseline || self.is_required(report)
    }

    /// Whether the profiles that were selected have it tried at all.
    pub fn asks_for(&self, report: &Report) -> bool {
        let profiles = report.behaviour.profiles();
        profiles
            .iter()
            .any(|profile| self.profiles.contains(profile))
    }

    /// Whether something a profile asks for was found broken.
    pub fn breaks(&self, profile: Profile) -> bool {
        self.suite(Suite::Contract).any(|report| {
            report.behaviour.profiles().contains(&profile)
                && matches!(report.outcome, Outcome::Failed(_))
        })
    }

    fn required(&self) -> impl Iterator<Item = &Report> {
        self.reports
            .iter()
            .filter(|report| self.is_required(report))
    }

    /// Required behaviours that were found broken.
    pub fn required_failed(&self) -> usize {
        Counts::of(self.required()).failed
    }

    /// Required behaviours that were not tried.
    pub fn required_missing(&self) -> usize {
        self.required()
            .filter(|report| self.is_missing(report))
            .count()
    }

    fn is_missing(&self, report: &Report) -> bool {
        match report.outcome {
            Outcome::NotTried(_) => true,
            Outcome::Lacks(_) => self.strict_skips,
            Outcome::Passed | Outcome::Failed(_) => false,
        }
    }

    /// The verdict.
    pub fn verdict(&self) -> Verdict {
        if self.required_failed() != 0 || self.counts(Suite::Baseline).failed != 0 {
            return Verdict::Failed;
        }
        if self.missing().is_empty() {
            Verdict::Certified
        } else {
            Verdict::Incomplete
        }
    }

    /// Why the run is incomplete: each reason once, with the behaviours it holds for.
    pub fn missing(&self) -> Vec<String> {
        let baseline = self.suite(Suite::Baseline);
        let missing = baseline.chain(self.required());
        let missing = missing.filter(|report| self.is_missing(report));
        let mut reasons: Vec<(String, Vec<&str>)> = Vec::new();
        for report in missing {
            let reason = match &report.outcome {
                Outcome::NotTried(why) => why.clone(),
                Outcome::Lacks(what) => format!("the provider has no {what} (--strict-skips)"),
                Outcome::Passed | Outcome::Failed(_) => continue,
            };
            let id = report.behaviour.id;
            match reasons.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, ids)) => ids.push(id),
                None => reasons.push((reason, vec![id])),
            }
        }
        let mut lines: Vec<String> = reasons.iter().map(|(why, ids)| line(why, ids)).collect();
        let counts = Counts::of(self.required());
        if counts.passed == 0 && lines.is_empty() {
            lines.push("no behaviour that decides was tried".to_owned());
        }
        lines
    }

    /// What the provider was found to do without.
    pub fn lacks(&self) -> BTreeSet<Capability> {
        let lacks = |report: &Report| match report.outcome {
            Outcome::Lacks(what) => Some(what),
            Outcome::Passed | Outcome::Failed(_) | Outcome::NotTried(_) => None,
        };
        // A pool of bare metal has neither slots nor Delete by design; its lane says nothing here.
        let contract = self
            .suite(Suite::Contract)
            .chain(self.suite(Suite::Baseline));
        contract.filter_map(lacks).collect()
    }

    /// Whether everything a profile asks for was tried and kept.
    pub fn reached(&self, profile: Profile) -> bool {
        // A provider that gives nothing back may be certified, and is still no cloud.
        if profile == Profile::Cloud && self.lacks().contains(&Capability::Delete) {
            return false;
        }
        let of_profile = |report: &&Report| {
            let (behaviour, profiles) = (&report.behaviour, report.behaviour.profiles());
            let alone = profile == Profile::BareMetal;
            let decides = behaviour.suite() == Suite::Contract || alone;
            decides && behaviour.suite() != Suite::Baseline && profiles.contains(&profile)
        };
        let counts = Counts::of(self.reports.iter().filter(of_profile));
        counts.passed != 0 && counts.failed + counts.untried == 0
    }

    /// The profiles that were reached, from the lowest level up, until one is missing: cloud, spot and
    /// bare metal are one level, of which one is enough.
    pub fn levels(&self) -> Vec<Profile> {
        let steps: [&[Profile]; 5] = [
            &[Profile::Core],
            &[Profile::Cloud, Profile::Spot, Profile::BareMetal],
            &[Profile::Durable],
            &[Profile::Fault],
            &[Profile::Scale],
        ];
        let mut levels = Vec::new();
        for step in steps {
            let reached = step
                .iter()
                .copied()
                .filter(|profile| self.reached(*profile));
            let before = levels.len();
            levels.extend(reached);
            if levels.len() == before {
                break;
            }
        }
        levels
    }

    /// The command that tries one behaviour again as it was tried.
    pub fn replay(&self, report: &Report) -> String {
        let seed = self.rng_seed;
        format!(
            "{} --rng-seed {seed} --filter {}",
            self.command, report.behaviour.id
        )
    }
}

fn line(why: &str, ids: &[&str]) -> String {
    const NAMED: usize = 4;
    let named = ids
        .iter()
        .take(NAMED)
        .copied()
        .collect::<Vec<_>>()
        .join(", ");
    let more = match ids.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{named}{more}: {why}")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{baseline, catalogue};
    use std::time::Duration;

    /// A run in which everything is as `outcome` says.
    pub(crate) fn certificate(outcome: impl Fn(&str) -> Outcome) -> Certificate {
        let reports = [baseline(), catalogue()]
            .concat()
            .into_iter()
            .map(|behaviour| Report {
                behaviour,
                outcome: outcome(behaviour.id),
                took: Duration::from_millis(20),
                exchanges: Vec::new(),
            });
        Certificate {
            provider: "test".to_owned(),
            profiles: vec![Profile::Core, Profile::Cloud],
            rng_seed: 7,
            strict_skips: false,
            command: "bigfleet conformance --binary p".to_owned(),
            reports: reports.collect(),
        }
    }

    fn with(id: &str, other: Outcome) -> Certificate {
        certificate(|this| {
            if this == id {
                other.clone()
            } else {
                Outcome::Passed
            }
        })
    }

    #[test]
    fn everything_kept_is_certified_up_to_the_last_level() {
        let all = certificate(|_| Outcome::Passed);
        assert_eq!(all.verdict(), Verdict::Certified);
        assert_eq!(all.levels(), Profile::ALL);
    }

    #[test]
    fn a_broken_promise_fails_if_it_is_required_or_of_the_baseline() {
        let broken = || Outcome::Failed("broken".to_owned());
        assert_eq!(with("LIFE-01", broken()).verdict(), Verdict::Failed);
        assert_eq!(with("FullLifecycle", broken()).verdict(), Verdict::Failed);
        assert_eq!(with("SCALE-01", broken()).verdict(), Verdict::Certified);
        assert_eq!(with("X-01", broken()).verdict(), Verdict::Certified);
    }

    #[test]
    fn what_was_not_tried_is_incomplete_and_says_why() {
        let untried = || Outcome::NotTried("no machine is left".to_owned());
        let missing = with("META-01", untried());
        assert_eq!(missing.verdict(), Verdict::Incomplete);
        assert_eq!(missing.missing(), ["META-01: no machine is left"]);
        assert!(missing.levels().is_empty());
        assert_eq!(
            with("GetUnknownMachine", untried()).verdict(),
            Verdict::Incomplete
        );
        assert_eq!(with("FAULT-01", untried()).verdict(), Verdict::Certified);
        let nothing = certificate(|_| untried());
        assert_eq!(nothing.verdict(), Verdict::Incomplete);
        assert_eq!(nothing.missing().len(), 1, "a reason is said once");
    }

    #[test]
    fn nothing_that_decides_is_no_certificate() {
        let mut run = certificate(|_| Outcome::Passed);
        run.profiles = vec![Profile::BareMetal];
        assert_eq!(run.verdict(), Verdict::Incomplete);
        assert_eq!(run.missing(), ["no behaviour that decides was tried"]);
    }

    #[test]
    fn a_missing_capability_passes_unless_skips_are_strict() {
        let mut lacking = with("LIFE-08", Outcome::Lacks(Capability::Delete));
        assert_eq!(lacking.verdict(), Verdict::Certified);
        assert_eq!(lacking.lacks(), [Capability::Delete].into());
        assert!(!lacking.levels().contains(&Profile::Cloud));
        lacking.strict_skips = true;
        assert_eq!(lacking.verdict(), Verdict::Incomplete);
    }

    #[test]
    fn levels_end_before_the_first_that_is_missing() {
        let broken = || Outcome::Failed("broken".to_owned());
        let levels = |id| with(id, broken()).levels();
        let start = [
            Profile::Core,
            Profile::Cloud,
            Profile::Spot,
            Profile::BareMetal,
        ];
        assert_eq!(levels("DUR-01"), start);
        assert_eq!(levels("SCALE-09").last(), Some(&Profile::Fault));
        assert!(!levels("X-15").contains(&Profile::BareMetal));
        assert!(levels("LIFE-01").is_empty());
    }
}
