//! The score of a victim (V-4) and the grace it gets (V-7).

use crate::world::Unit;
use bigfleet_model::Need;
use std::cmp::Ordering;

/// Higher is the better victim.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Score(pub(crate) f64);

impl PartialEq for Score {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Score {}

impl PartialOrd for Score {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Score {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// V-4: `gap×wp + wd/max(1, drain_s) + wi/max(0.01, interruption$) + wr/max(0.01, reclamation$)`,
/// added left to right (engine.md §22.3 no. 9). Infinite dollars contribute 0.
pub(crate) fn score(preemptor: &Need, victim: &Unit<'_>, victim_priority: i32) -> Score {
    const WEIGHT_PRIORITY: f64 = 1.0;
    const WEIGHT_DRAIN: f64 = 0.1;
    const WEIGHT_INTERRUPTION: f64 = 0.1;
    const WEIGHT_RECLAMATION: f64 = 0.1;
    const DRAIN_SECONDS: f64 = 30.0;
    let gap = gap(preemptor, victim_priority).max(0) as f64;
    let terms = victim.machine().assignment().terms;
    Score(
        gap * WEIGHT_PRIORITY
            + WEIGHT_DRAIN / DRAIN_SECONDS.max(1.0)
            + WEIGHT_INTERRUPTION / terms.interruption.dollars().max(0.01)
            + WEIGHT_RECLAMATION / terms.reclamation.dollars().max(0.01),
    )
}

/// V-7.
pub(crate) fn grace_seconds(preemptor: &Need, victim_priority: i32) -> u32 {
    match gap(preemptor, victim_priority) {
        900_001.. => 10,
        500_001.. => 30,
        100_001.. => 120,
        _ => 600,
    }
}

fn gap(preemptor: &Need, victim_priority: i32) -> i64 {
    i64::from(preemptor.row.profile.priority()) - i64::from(victim_priority)
}
