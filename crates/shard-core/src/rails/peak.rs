//! Peak: the largest demands a cluster was believed to have lately, so that a withdrawal in steps is seen whole
//! (SH-31).
//!
//! ```text
//! in force 40 ──▶ 5 ──▶ 1        1 is a fifth of 5, and a fortieth of what was in force minutes ago
//! ```
//!
//! A demand is kept for ten minutes after another took its place, unless a later one was as large in
//! everything. Most demands hardly change, so most clusters have nothing here.

use super::quarantine::Baseline;
use bigfleet_model::Time;
use std::time::Duration;

/// How long a demand is looked back at.
const LOOK_BACK: Duration = Duration::from_secs(600);
/// So many are kept; of more, the two oldest become one that is as large as both.
const MOST: usize = 16;

/// Demands that were in force, and until when; oldest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Peak(Vec<(Time, Baseline)>);

impl Peak {
    /// One demand takes the place of another.
    pub(crate) fn replaced(&mut self, old: Baseline, new: &Baseline, now: Time) {
        self.forget(now);
        if new.is_as_large_as(&old) {
            return; // it is looked at for as long as the new one is in force, and after
        }
        self.0.retain(|(_, earlier)| !old.is_as_large_as(earlier));
        self.0.push((now, old));
        if MOST < self.0.len() {
            let (_, oldest) = self.0.remove(0);
            if let Some((_, next)) = self.0.first_mut() {
                *next = next.larger(&oldest);
            }
        }
    }

    /// Those of the last ten minutes.
    pub(crate) fn lately(&self, now: Time) -> impl Iterator<Item = &Baseline> {
        let lately = self.0.iter().filter(move |(until, _)| is_late(*until, now));
        lately.map(|(_, demand)| demand)
    }

    /// Forgets what is older than ten minutes.
    pub(crate) fn forget(&mut self, now: Time) {
        self.0.retain(|(until, _)| is_late(*until, now));
    }

    /// A withdrawal was believed: what was before it says nothing any more.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// What an earlier process remembered. A clock that was set back since does not make it last.
    pub(crate) fn recalled(mut kept: Vec<(Time, Baseline)>, now: Time) -> Self {
        for (until, _) in &mut kept {
            *until = (*until).min(now);
        }
        let mut peak = Self(kept);
        peak.forget(now);
        peak
    }

    /// What is to be remembered.
    pub(crate) fn kept(&self, now: Time) -> Vec<(Time, Baseline)> {
        let lately = self.0.iter().filter(|(until, _)| is_late(*until, now));
        lately.cloned().collect()
    }
}

fn is_late(until: Time, now: Time) -> bool {
    now.duration_since(until) < LOOK_BACK
}

#[cfg(test)]
mod tests {
    use super::*;
    use bigfleet_model::{Amounts, Dimension};

    fn size(rows: usize) -> Baseline {
        let cpu = Dimension::new("cpu").unwrap();
        let totals = Amounts::from_entries([(cpu, rows as i128 * 1000)]);
        Baseline { rows, totals }
    }

    fn at(seconds: u32) -> Time {
        Time::from_seconds(f64::from(seconds)).unwrap()
    }

    /// The rows of what is looked back at after a history of (second, rows), ten seconds after its end.
    fn lately(history: &[(u32, usize)]) -> Vec<usize> {
        let mut peak = Peak::default();
        for pair in history.windows(2) {
            peak.replaced(size(pair[0].1), &size(pair[1].1), at(pair[1].0));
        }
        let end = history.last().map_or(0, |(second, _)| second + 10);
        peak.lately(at(end)).map(|one| one.rows).collect()
    }

    #[test]
    fn what_was_larger_is_looked_back_at_for_ten_minutes() {
        assert_eq!(lately(&[(0, 40), (10, 5), (20, 1)]), [40, 5]);
        assert_eq!(lately(&[(0, 40), (10, 5), (599, 1)]), [40, 5]);
        assert_eq!(lately(&[(0, 40), (10, 5), (600, 1)]), [5]);
        assert_eq!(lately(&[(0, 5), (10, 40)]), Vec::<usize>::new());
        assert_eq!(lately(&[(0, 5), (10, 3), (20, 40), (30, 1)]), [40]);
    }

    #[test]
    fn it_is_bounded_and_forgets_no_size() {
        let falling: Vec<(u32, usize)> = (0..40).map(|n| (n, 100 - n as usize)).collect();
        let kept = lately(&falling);
        assert_eq!((kept.len(), kept[0]), (MOST, 100));
    }

    /// SH-31: a clock that was set back holds nothing for longer than ten minutes.
    #[test]
    fn moments_in_the_future_count_from_now() {
        let peak = Peak::recalled(vec![(at(9_000), size(40))], at(0));
        assert_eq!(peak.lately(at(599)).count(), 1);
        assert_eq!(peak.lately(at(600)).count(), 0);
    }
}
