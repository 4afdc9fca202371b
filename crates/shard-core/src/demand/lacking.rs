//! Lacking: since when Needs have not been served in full (SV-3).
//!
//! A Need that is covered on paper and waits for machines lacks them all the same, and one that is covered now
//! and not a moment later, because a pool runs out and is tried again, was never served in between: what
//! counts is what serves.

use bigfleet_model::{ClusterId, Fingerprint, NeedKey, Time};
use std::collections::BTreeMap;

/// Needs that are not served in full.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lacking {
    since: BTreeMap<NeedKey, Time>,
    by_cluster: BTreeMap<ClusterId, u32>,
}

impl Lacking {
    /// Takes in which Needs lack something now. Those that did before go on doing so.
    pub(crate) fn review(&mut self, lacking: impl IntoIterator<Item = NeedKey>, now: Time) {
        let mut before = std::mem::take(&mut self.since);
        self.by_cluster.clear();
        for key in lacking {
            let since = before.remove(&key).unwrap_or(now);
            if self.since.insert(key.clone(), since).is_none() {
                *self.by_cluster.entry(key.cluster).or_default() += 1;
            }
        }
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

    #[test]
    fn a_need_lacks_from_when_it_began_to_until_it_is_served() {
        let need = |name: &str| NeedKey {
            cluster: ClusterId::new("a").unwrap(),
            fingerprint: Fingerprint::new(name),
            group: Group::default(),
        };
        let mut lacking = Lacking::default();
        lacking.review([need("f"), need("g")], at(1));
        lacking.review([need("f")], at(2));
        lacking.review([need("f"), need("g")], at(3));
        assert_eq!(lacking.since(&need("f")), Some(at(1)));
        assert_eq!(lacking.since(&need("g")), Some(at(3)));
        assert_eq!(lacking.of_cluster(&need("f").cluster), 2);
        assert_eq!(lacking.by_age(at(12)), [1, 1, 0, 0]);
        assert_eq!(lacking.by_age(at(301)), [0, 0, 1, 1]);
        assert_eq!(lacking.oldest(), Some(at(1)));
        lacking.review([], at(4));
        assert_eq!(lacking.since(&need("f")), None);
        assert_eq!(lacking.of_cluster(&need("f").cluster), 0);
    }
}
