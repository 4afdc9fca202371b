//! Parking: a gang no domain can hold stops trying for a while (K-1..K-5).
//!
//! An age counts cycles without progress. From 8 on the gang is parked, but for one cycle in 32.

use bigfleet_model::NeedKey;
use std::collections::BTreeMap;

const PARKED_FROM: u32 = 8;
const TRIES_EVERY: u32 = 32;

/// Ages of gangs that made no progress.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parking(BTreeMap<NeedKey, u32>);

impl Parking {
    /// Whether a gang of this age waits (K-3).
    fn waits(age: u32) -> bool {
        PARKED_FROM <= age && !age.is_multiple_of(TRIES_EVERY)
    }

    /// How many gangs wait.
    pub(crate) fn waiting(&self) -> usize {
        self.0.values().filter(|age| Self::waits(**age)).count()
    }

    /// For how many cycles a gang has made no progress.
    pub(crate) fn age(&self, key: &NeedKey) -> u32 {
        self.0.get(key).copied().unwrap_or(0)
    }

    /// Takes in the gangs a cycle left short, with whether each made progress (K-2). Returns those
    /// whose stamp changes: parked or not, from the next cycle on.
    pub(crate) fn review(
        &mut self,
        short: impl IntoIterator<Item = (NeedKey, bool)>,
    ) -> Vec<(NeedKey, bool)> {
        let before = std::mem::take(&mut self.0);
        for (key, progressed) in short {
            if !progressed {
                let age = before.get(&key).map_or(1, |age| age + 1);
                self.0.insert(key, age);
            }
        }
        let parked =
            |ages: &BTreeMap<NeedKey, u32>, key| ages.get(key).copied().is_some_and(Self::waits);
        let keys = before.keys().chain(self.0.keys());
        let changed = keys.filter(|key| parked(&before, key) != parked(&self.0, key));
        let mut changed: Vec<(NeedKey, bool)> = changed
            .map(|key| (key.clone(), parked(&self.0, key)))
            .collect();
        changed.sort();
        changed.dedup();
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bigfleet_model::{ClusterId, Fingerprint, Group};

    fn gang() -> NeedKey {
        NeedKey {
            cluster: ClusterId::new("a").unwrap(),
            fingerprint: Fingerprint::new("f"),
            group: Group::new("g1"),
        }
    }

    impl Parking {
        fn is_parked(&self, key: &NeedKey) -> bool {
            self.0.get(key).copied().is_some_and(Self::waits)
        }
    }

    /// Cycles, from 1, in which the gang may try, of so many without progress.
    fn attempts(parking: &mut Parking, cycles: u32) -> Vec<u32> {
        let mut attempts = Vec::new();
        for cycle in 1..=cycles {
            if !parking.is_parked(&gang()) {
                attempts.push(cycle);
            }
            parking.review([(gang(), false)]);
        }
        attempts
    }

    /// EX-K1.
    #[test]
    fn ex_k1_eight_attempts_then_one_in_32() {
        let expected: Vec<u32> = (1..=8).chain([33, 65]).collect();
        assert_eq!(attempts(&mut Parking::default(), 90), expected);
    }

    /// EX-K2.
    #[test]
    fn ex_k2_progress_is_a_fresh_start() {
        let mut parking = Parking::default();
        attempts(&mut parking, 32);
        assert!(!parking.is_parked(&gang()), "cycle 33 tries");
        assert_eq!(parking.review([(gang(), true)]), []);
        assert_eq!(attempts(&mut parking, 12), (1..=8).collect::<Vec<_>>());
    }

    /// EX-K3.
    #[test]
    fn ex_k3_a_satisfiable_gang_never_parks() {
        let mut parking = Parking::default();
        for _ in 0..100 {
            parking.review([(gang(), true)]);
            assert!(!parking.is_parked(&gang()));
        }
    }

    /// EX-K4.
    #[test]
    fn ex_k4_a_cycle_without_the_gang_starts_over() {
        let mut parking = Parking::default();
        attempts(&mut parking, 7);
        parking.review([]);
        assert_eq!(attempts(&mut parking, 12), (1..=8).collect::<Vec<_>>());
    }
}
