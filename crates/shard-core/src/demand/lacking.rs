//! Lacking: since when Needs have not been served in full (SV-3).
//!
//! ```text
//! disk ─▶ recalled ─▶ the cluster is heard: still lacks ─▶ since ─▶ unwritten ─▶ disk
//!                                └─ does not ─▶ forgotten ──────────────┘
//! ```
//!
//! A Need that is covered on paper and waits for machines lacks them all the same, and one that is covered now
//! and not a moment later, because a pool runs out and is tried again, was never served in between: what
//! counts is what serves.
//!
//! An age outlives the process, and decides nothing. So it is no record of the core's: it rides along with
//! whatever is written next, and what was not written when the process ended begins anew.
//!
//! **Invariant:** what is unwritten or on disk is about Needs that lack, are recalled, or did and their end is
//! not on disk yet.

use bigfleet_model::{ClusterId, Fingerprint, NeedKey, Time};
use std::collections::{BTreeMap, BTreeSet};

/// Needs that are not served in full.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lacking {
    since: BTreeMap<NeedKey, Time>,
    by_cluster: BTreeMap<ClusterId, u32>,
    /// What an earlier process knew of Needs whose cluster was not heard since.
    recalled: BTreeMap<NeedKey, Time>,
    /// Needs of which a moment is on disk, or about to be.
    on_disk: BTreeSet<NeedKey>,
    /// What is not on disk yet; `None` where a moment on disk is over.
    unwritten: BTreeMap<NeedKey, Option<Time>>,
}

impl Lacking {
    /// Takes in which Needs lack something now. Those that did before go on doing so, and those that did in an
    /// earlier process once their cluster was heard again.
    pub(crate) fn review(
        &mut self,
        lacking: impl IntoIterator<Item = NeedKey>,
        is_heard: impl Fn(&ClusterId) -> bool,
        now: Time,
    ) {
        let mut before = std::mem::take(&mut self.since);
        self.by_cluster.clear();
        for key in lacking {
            let since = match (before.remove(&key), self.recalled.remove(&key)) {
                (Some(since), _) => since,
                // The host's clock may have been set back since.
                (None, Some(since)) => since.min(now),
                (None, None) => {
                    self.unwritten.insert(key.clone(), Some(now));
                    now
                }
            };
            if self.since.insert(key.clone(), since).is_none() {
                *self.by_cluster.entry(key.cluster).or_default() += 1;
            }
        }
        let served = before
            .into_keys()
            .filter(|key| !self.since.contains_key(key));
        let served: Vec<NeedKey> = served.collect();
        for key in served {
            self.forget(key);
        }
        self.forget_recalled(is_heard);
    }

    /// An earlier process knew since when a Need lacks something.
    pub(crate) fn recall(&mut self, need: NeedKey, since: Time) {
        self.on_disk.insert(need.clone());
        self.recalled.insert(need, since);
    }

    /// Forgets what an earlier process knew of these clusters.
    pub(crate) fn forget_recalled(&mut self, is_of: impl Fn(&ClusterId) -> bool) {
        for (need, since) in std::mem::take(&mut self.recalled) {
            if is_of(&need.cluster) {
                self.forget(need);
            } else {
                self.recalled.insert(need, since);
            }
        }
    }

    /// What is on disk of it is over; what was never written need not be.
    fn forget(&mut self, need: NeedKey) {
        if self.on_disk.contains(&need) {
            self.unwritten.insert(need, None);
        } else {
            self.unwritten.remove(&need);
        }
    }

    /// What is to be written now: since when Needs lack something, `None` for those that no longer do.
    pub(crate) fn take_unwritten(&mut self) -> Vec<(NeedKey, Option<Time>)> {
        let unwritten: Vec<_> = std::mem::take(&mut self.unwritten).into_iter().collect();
        for (need, since) in &unwritten {
            match since {
                Some(_) => drop(self.on_disk.insert(need.clone())),
                None => drop(self.on_disk.remove(need)),
            }
        }
        unwritten
    }

    /// Since when a Need has not been served in full; `None` if it is.
    pub(crate) fn since(&self, need: &NeedKey) -> Option<Time> {
        self.since.get(need).copied()
    }

    /// How many of a cluster's Needs are not served in full.
    pub(crate) fn of_cluster(&self, cluster: &ClusterId) -> u32 {
        self.by_cluster.get(cluster).copied().unwrap_or(0)
    }

    /// Distinct fingerprints among them, by the age of the oldest: up to 10 s, up to a minute, up to five,
    /// and beyond (SF-4).
    pub(crate) fn by_age(&self, now: Time) -> [u32; 4] {
        let mut oldest: BTreeMap<&Fingerprint, Time> = BTreeMap::new();
        for (need, since) in &self.since {
            let known = oldest.entry(&need.fingerprint).or_insert(*since);
            *known = (*known).min(*since);
        }
        let mut counts = [0; 4];
        for since in oldest.into_values() {
            let bucket = match now.duration_since(since).as_secs() {
                0..10 => 0,
                10..60 => 1,
                60..300 => 2,
                300.. => 3,
            };
            counts[bucket] += 1;
        }
        counts
    }

    /// Since when the one lacks something that has for longest.
    pub(crate) fn oldest(&self) -> Option<Time> {
        self.since.values().min().copied()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.since.len()
    }

    /// All of them, by identity.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&NeedKey, Time)> {
        self.since.iter().map(|(need, since)| (need, *since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bigfleet_model::Group;

    fn at(seconds: i64) -> Time {
        Time::from_nanos(seconds * 1_000_000_000)
    }

    fn need(name: &str) -> NeedKey {
        NeedKey {
            cluster: ClusterId::new("a").unwrap(),
            fingerprint: Fingerprint::new(name),
            group: Group::default(),
        }
    }

    /// A cluster that was heard.
    fn heard(_: &ClusterId) -> bool {
        true
    }

    /// What is on disk after everything that was handed out.
    fn write(disk: &mut BTreeMap<NeedKey, Time>, lacking: &mut Lacking) {
        for (need, since) in lacking.take_unwritten() {
            match since {
                Some(since) => drop(disk.insert(need, since)),
                None => drop(disk.remove(&need)),
            }
        }
    }

    #[test]
    fn a_need_lacks_from_when_it_began_to_until_it_is_served() {
        let mut lacking = Lacking::default();
        lacking.review([need("f"), need("g")], heard, at(1));
        lacking.review([need("f")], heard, at(2));
        lacking.review([need("f"), need("g")], heard, at(3));
        assert_eq!(lacking.since(&need("f")), Some(at(1)));
        assert_eq!(lacking.since(&need("g")), Some(at(3)));
        assert_eq!(lacking.of_cluster(&need("f").cluster), 2);
        assert_eq!(lacking.by_age(at(12)), [1, 1, 0, 0]);
        assert_eq!(lacking.by_age(at(301)), [0, 0, 1, 1]);
        assert_eq!(lacking.oldest(), Some(at(1)));
        lacking.review([], heard, at(4));
        assert_eq!(lacking.since(&need("f")), None);
        assert_eq!(lacking.of_cluster(&need("f").cluster), 0);
    }

    #[test]
    fn an_age_outlives_the_process_until_its_cluster_says_otherwise() {
        let (mut disk, mut lacking) = (BTreeMap::new(), Lacking::default());
        lacking.review([need("f"), need("g"), need("h")], heard, at(1));
        write(&mut disk, &mut lacking);
        let mut next = Lacking::default();
        for (need, since) in &disk {
            next.recall(need.clone(), *since);
        }
        // Nothing is known of its rows before the cluster was heard.
        next.review([], |_| false, at(100));
        assert_eq!(next.len(), 0);
        assert_eq!(next.take_unwritten(), []);
        next.review([need("f"), need("new")], heard, at(101));
        assert_eq!(next.since(&need("f")), Some(at(1)));
        assert_eq!(next.since(&need("new")), Some(at(101)));
        write(&mut disk, &mut next);
        let kept = BTreeMap::from([(need("f"), at(1)), (need("new"), at(101))]);
        assert_eq!(disk, kept, "those that are served are forgotten");
        // Served for a moment is served: the age begins anew, on disk too.
        next.review([need("new")], heard, at(102));
        next.review([need("new"), need("f")], heard, at(103));
        write(&mut disk, &mut next);
        assert_eq!(disk[&need("f")], at(103));
    }

    #[test]
    fn a_clock_that_was_set_back_makes_no_age_from_the_future() {
        let mut lacking = Lacking::default();
        lacking.recall(need("f"), at(5000));
        lacking.review([need("f")], heard, at(1000));
        assert_eq!(lacking.since(&need("f")), Some(at(1000)));
    }

    #[test]
    fn what_was_never_written_leaves_nothing_to_write() {
        let mut lacking = Lacking::default();
        for second in 0..100 {
            lacking.review([need(&second.to_string())], heard, at(second));
        }
        assert_eq!(lacking.take_unwritten(), [(need("99"), Some(at(99)))]);
        lacking.review([], heard, at(100));
        lacking.review([need("99")], heard, at(101));
        lacking.review([], heard, at(102));
        assert_eq!(lacking.take_unwritten(), [(need("99"), None)]);
        lacking.recall(need("z"), at(1));
        lacking.forget_recalled(heard);
        assert_eq!(lacking.take_unwritten(), [(need("z"), None)]);
        assert_eq!(lacking.take_unwritten(), []);
    }
}
