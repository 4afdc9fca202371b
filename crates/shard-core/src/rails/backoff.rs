//! Backoff: which machine is left alone for a while, and how long (SH-14, SH-23).
//!
//! ```text
//! given up ─▶ wait, twice as long each time up to the longest        success ─▶ forgotten
//! ```

use bigfleet_model::{MachineId, Time};
use std::{collections::BTreeMap, time::Duration};

/// Doubling waits per machine, between a first and a longest.
#[derive(Clone, Debug)]
pub(crate) struct Backoffs {
    first: Duration,
    longest: Duration,
    /// How often in a row, and until when it waits.
    waits: BTreeMap<MachineId, (u32, Time)>,
}

impl Backoffs {
    pub(crate) fn new(first: Duration, longest: Duration) -> Self {
        Self {
            first,
            longest,
            waits: BTreeMap::new(),
        }
    }

    /// Notes a failure; returns until when to wait. Failures while waiting already count once.
    pub(crate) fn fail(&mut self, machine: &MachineId, now: Time) -> Time {
        let failures = match self.waits.get(machine) {
            Some((_, until)) if now < *until => return *until,
            Some((failures, _)) => failures + 1,
            None => 1,
        };
        let doubled = self.first.saturating_mul(1 << (failures - 1).min(20));
        let until = now + doubled.min(self.longest);
        self.waits.insert(machine.clone(), (failures, until));
        until
    }

    /// How often it failed in a row, and until when it waits.
    pub(crate) fn get(&self, machine: &MachineId) -> Option<(u32, Time)> {
        self.waits.get(machine).copied()
    }

    /// What an earlier process knew of it.
    pub(crate) fn recall(&mut self, machine: MachineId, wait: (u32, Time)) {
        self.waits.insert(machine, wait);
    }

    pub(crate) fn waits(&self, machine: &MachineId, now: Time) -> bool {
        self.get(machine).is_some_and(|(_, until)| now < until)
    }

    pub(crate) fn succeed(&mut self, machine: &MachineId) {
        self.waits.remove(machine);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: f64) -> Time {
        Time::from_seconds(seconds).unwrap()
    }

    #[test]
    fn waits_double_up_to_the_longest_and_are_forgotten_on_success() {
        let m1 = MachineId::new("m1").unwrap();
        let mut backoffs = Backoffs::new(Duration::from_secs(10), Duration::from_secs(35));
        assert_eq!(backoffs.fail(&m1, at(0.0)), at(10.0));
        assert_eq!(backoffs.fail(&m1, at(3.0)), at(10.0), "still waiting");
        assert_eq!(backoffs.fail(&m1, at(10.0)), at(30.0));
        assert_eq!(backoffs.fail(&m1, at(30.0)), at(65.0));
        assert!(backoffs.waits(&m1, at(64.0)) && !backoffs.waits(&m1, at(65.0)));
        assert_eq!(backoffs.get(&m1), Some((3, at(65.0))));
        backoffs.succeed(&m1);
        assert_eq!(backoffs.get(&m1), None);
    }
}
