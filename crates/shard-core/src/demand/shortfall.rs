//! Shortfalls: what is still missing, and for how many cycles (engine.md §16).
//!
//! Kept per Need, so that ages of unrelated Needs do not mix; merged by fingerprint only where they
//! are reported upward.

use bigfleet_model::{Amounts, ClusterId, Fingerprint, Need, NeedKey, UnmetReason, Verdict};
use std::{cmp::Reverse, collections::BTreeMap, sync::OnceLock};

/// How many entries are reported upward.
const REPORTED: usize = 100;

/// Why the shard itself does not acquire for a cluster, beside what the engine says (RF-16).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Withheld {
    /// No operator is connected.
    NoOperatorSession,
    /// Its operator could not bootstrap machines lately.
    BootstrapBackoff,
    /// It is paused.
    ActuationPaused,
}

impl Withheld {
    /// The same in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::NoOperatorSession => "no operator of its cluster is connected",
            Self::BootstrapBackoff => "machines failed to join its cluster lately",
            Self::ActuationPaused => "changes to machines of its cluster are paused",
        }
    }
}

/// One Need that is short.
#[derive(Clone, Debug, PartialEq)]
pub struct Shortfall {
    /// The Need, as evaluated.
    pub need: Need,
    /// What is missing after everything that is on its way.
    pub deficit: Amounts,
    /// Cycles in a row.
    pub age: u32,
    /// Why, by the engine.
    pub reason: UnmetReason,
    /// Why the shard holds back.
    pub withheld: Option<Withheld>,
}

/// One line of the report upward.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportedShortfall {
    /// A Need of this profile.
    pub need: Need,
    /// What all Needs of the profile miss together.
    pub deficit: Amounts,
    /// The highest age among them.
    pub age: u32,
    /// No machine of another shard can help (CO-41).
    pub constrained: bool,
}

/// Needs a decision left short, counted once for all who ask.
#[derive(Clone, Debug, Default)]
pub(crate) struct ShortCounts {
    of_cluster: BTreeMap<ClusterId, u32>,
    of_reason: BTreeMap<UnmetReason, u32>,
}

impl ShortCounts {
    pub(crate) fn of(short: &[Verdict]) -> Self {
        let mut counts = Self::default();
        for verdict in short {
            *counts.of_reason.entry(verdict.unmet_reason).or_default() += 1;
            let cluster = &verdict.need.cluster;
            match counts.of_cluster.get_mut(cluster) {
                Some(count) => *count += 1,
                None => drop(counts.of_cluster.insert(cluster.clone(), 1)),
            }
        }
        counts
    }

    pub(crate) fn of_cluster(&self, cluster: &ClusterId) -> u32 {
        self.of_cluster.get(cluster).copied().unwrap_or(0)
    }

    pub(crate) fn of_reason(&self, reason: UnmetReason) -> u32 {
        self.of_reason.get(&reason).copied().unwrap_or(0)
    }
}

/// Distinct fingerprints that are short, as the gauges split them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Split {
    /// By priority class: other, batch, service, critical (SF-5).
    pub(crate) by_class: [u32; 4],
}

/// Everything that is short now.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shortfalls {
    entries: BTreeMap<NeedKey, Shortfall>,
    /// Made by the first who asks after a cycle: there may be tens of thousands.
    split: OnceLock<Split>,
}

impl Shortfalls {
    /// Takes in what a cycle left short.
    pub(crate) fn review(&mut self, short: impl IntoIterator<Item = Shortfall>) {
        let before = std::mem::take(&mut self.entries);
        self.split.take();
        for mut entry in short {
            let key = entry.need.key();
            entry.age = before.get(&key).map_or(1, |known| known.age + 1);
            self.entries.insert(key, entry);
        }
    }

    /// For how many cycles a Need has been short; zero if it is not.
    pub(crate) fn age(&self, key: &NeedKey) -> u32 {
        self.entries.get(key).map_or(0, |entry| entry.age)
    }

    pub(crate) fn get(&self, key: &NeedKey) -> Option<&Shortfall> {
        self.entries.get(key)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Shortfall> {
        self.entries.values()
    }

    /// Merged by fingerprint (SF-1), those that another shard's machines cannot help apart; highest priority and age first, the first
    /// 100 (SF-2). `has_free` says whether a free machine of this shard could serve some of a shortfall, and does not.
    pub(crate) fn report(
        &self,
        mut has_free: impl FnMut(&Shortfall) -> bool,
    ) -> Vec<ReportedShortfall> {
        let mut merged: BTreeMap<(&Fingerprint, bool), ReportedShortfall> = BTreeMap::new();
        for entry in self.entries.values() {
            let profile = &entry.need.row.profile;
            let is_same = profile.same_key().is_some();
            let constrained = is_same || entry.withheld.is_some() || has_free(entry);
            let line = merged
                .entry((profile.fingerprint(), constrained))
                .or_insert_with(|| ReportedShortfall {
                    need: entry.need.clone(),
                    deficit: Amounts::default(),
                    age: 0,
                    constrained,
                });
            line.deficit = line.deficit.add(&entry.deficit);
            line.age = line.age.max(entry.age);
        }
        let mut lines: Vec<_> = merged.into_values().collect();
        lines.sort_by_cached_key(|line| {
            let profile = &line.need.row.profile;
            (
                Reverse(profile.priority()),
                Reverse(line.age),
                profile.fingerprint().clone(),
                line.constrained,
            )
        });
        lines.truncate(REPORTED);
        lines
    }

    /// How many there are, by class; a fingerprint counts once, as the worst of its Needs.
    pub(crate) fn split(&self) -> Split {
        *self.split.get_or_init(|| {
            let mut worst: BTreeMap<&Fingerprint, usize> = BTreeMap::new();
            for entry in self.entries.values() {
                let profile = &entry.need.row.profile;
                let known = worst.entry(profile.fingerprint()).or_default();
                *known = (*known).max(class(profile.priority()));
            }
            let mut split = Split::default();
            for class in worst.into_values() {
                split.by_class[class] += 1;
            }
            split
        })
    }
}

fn class(priority: i32) -> usize {
    match priority {
        1_000_000.. => 3,
        1000.. => 2,
        100.. => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bigfleet_testkit::fleet;

    fn short(groups: &[(&str, u32)]) -> Vec<Shortfall> {
        let lines: String = groups
            .iter()
            .map(|(group, gpu)| format!("need a gpu={gpu} prio=1000 group={group} rack=Same\n"))
            .collect();
        let fleet = fleet(&lines);
        let needs = fleet.clusters.values().flat_map(|cluster| cluster.needs());
        needs
            .map(|need| Shortfall {
                need: need.clone(),
                deficit: need.row.aggregate.clone(),
                age: 0,
                reason: UnmetReason::NoMatchingSupply,
                withheld: None,
            })
            .collect()
    }

    /// EX-SF.
    #[test]
    fn ex_sf_deficits_of_a_profile_add_up_and_age() {
        let mut ledger = Shortfalls::default();
        let mut cycle = |groups: &[(&str, u32)]| -> Vec<(i128, u32)> {
            ledger.review(short(groups));
            let report = ledger.report(|_| false);
            report
                .iter()
                .map(|line| (line.deficit.get("gpu") / 1000, line.age))
                .collect()
        };
        assert_eq!(cycle(&[("g1", 8), ("g2", 16)]), [(24, 1)]);
        assert_eq!(cycle(&[("g2", 16)]), [(16, 2)]);
        assert_eq!(cycle(&[]), []);
        assert_eq!(cycle(&[("g1", 8)]), [(8, 1)]);
    }

    /// CO-41: what could be served here, and is not, is no demand on others; of one profile there may be both.
    #[test]
    fn a_line_is_constrained_if_no_other_shard_can_help() {
        let fleet = fleet(
            "need a gpu=8 prio=1000
             need b gpu=16 prio=1000
             need c gpu=32 prio=1000
             need d gpu=64 prio=5 rack=Same",
        );
        let needs = fleet.clusters.values().flat_map(|cluster| cluster.needs());
        let mut ledger = Shortfalls::default();
        ledger.review(needs.map(|need| Shortfall {
            need: need.clone(),
            deficit: need.row.aggregate.clone(),
            age: 0,
            reason: UnmetReason::NoMatchingSupply,
            withheld: (need.cluster.as_str() == "b").then_some(Withheld::NoOperatorSession),
        }));
        let report = ledger.report(|entry| entry.need.cluster.as_str() == "c");
        let lines: Vec<_> = report
            .iter()
            .map(|line| (line.deficit.get("gpu") / 1000, line.constrained))
            .collect();
        assert_eq!(lines, [(8, false), (48, true), (64, true)]);
    }

    #[test]
    fn gauges_count_fingerprints_once() {
        let mut ledger = Shortfalls::default();
        for _ in 0..10 {
            ledger.review(short(&[("g1", 8), ("g2", 16)]));
        }
        let split = ledger.split();
        assert_eq!(split.by_class, [0, 0, 1, 0]);
        ledger.review([]);
        assert_eq!(ledger.split(), Split::default(), "made anew after a cycle");
    }
}
