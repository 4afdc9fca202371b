//! Rail 2: a roll-up that withdraws nearly everything is held until it has been said three times
//! (SR-3).
//!
//! Judged on rows and on the total of every dimension, so zeroed quantities are seen too. Baselines
//! survive restarts, so the first roll-up is judged like any other (SH-8).

use bigfleet_model::{Amounts, Row};

/// The third suspicious roll-up in a row is believed.
const BELIEVED_AT: u32 = 3;
/// Smaller demands are believed at once.
const LEAST_ROWS: usize = 10;

/// The size of a demand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Baseline {
    /// Its rows.
    pub rows: usize,
    /// What they add up to.
    pub totals: Amounts,
}

impl Baseline {
    /// The size of these rows.
    pub fn of(rows: &[Row]) -> Self {
        let mut totals = Amounts::default();
        for row in rows {
            // One that is too much to count is left out.
            let _ = totals.try_add(&row.aggregate);
        }
        Self {
            rows: rows.len(),
            totals,
        }
    }
}

/// The last demand believed of a cluster, and how often a suspicious one was held since.
#[derive(Clone, Debug, Default)]
pub(crate) struct Guard {
    pub(crate) baseline: Option<Baseline>,
    pub(crate) held: u32,
}

impl Guard {
    /// Whether to believe this demand; if so it is the new baseline. `serving` is what the cluster's
    /// machines offer, for a cluster without a baseline.
    pub(crate) fn judge(&mut self, new: Baseline, serving: Option<(usize, Amounts)>) -> bool {
        if self.suspects(&new, serving.as_ref()) && self.held + 1 < BELIEVED_AT {
            self.held += 1;
            return false;
        }
        self.held = 0;
        self.baseline = Some(new);
        true
    }

    /// Whether this demand withdraws nearly everything.
    pub(crate) fn suspects(&self, new: &Baseline, serving: Option<&(usize, Amounts)>) -> bool {
        match (&self.baseline, serving) {
            (Some(baseline), _) => withdraws(baseline, new),
            (None, Some((machines, offered))) => {
                let dwarfed = |(name, total): (&bigfleet_model::Dimension, i128)| {
                    new.totals.get(name.as_str()).saturating_mul(10) < total
                };
                LEAST_ROWS <= *machines && offered.iter().all(dwarfed)
            }
            (None, None) => false,
        }
    }

    /// The demand last believed is said again, which nobody doubts.
    pub(crate) fn believe_again(&mut self) {
        self.held = 0;
    }
}

fn withdraws(baseline: &Baseline, new: &Baseline) -> bool {
    let mut totals = baseline.totals.iter();
    let dwarfed =
        totals.any(|(name, total)| new.totals.get(name.as_str()).saturating_mul(10) < total);
    LEAST_ROWS <= baseline.rows && (new.rows * 10 < baseline.rows || dwarfed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bigfleet_model::Dimension;

    fn size(rows: usize) -> Baseline {
        let cpu = Dimension::new("cpu").unwrap();
        let totals = Amounts::from_entries([(cpu, rows as i128 * 1000)]);
        Baseline { rows, totals }
    }

    /// What becomes of roll-ups of these sizes, after a first one that is believed.
    fn judged(first: usize, then: &[usize]) -> Vec<(bool, u32)> {
        let mut guard = Guard::default();
        assert!(guard.judge(size(first), None));
        let judge = |rows: &usize| (guard.judge(size(*rows), None), guard.held);
        then.iter().map(judge).collect()
    }

    /// EX-SR2.
    #[test]
    fn ex_sr2_the_third_in_a_row_is_believed() {
        assert_eq!(judged(20, &[1, 1, 1]), [(false, 1), (false, 2), (true, 0)]);
    }

    /// EX-SR3.
    #[test]
    fn ex_sr3_a_tenth_is_not_less_than_a_tenth() {
        assert_eq!(judged(20, &[2]), [(true, 0)]);
    }

    /// EX-SR4.
    #[test]
    fn ex_sr4_small_demands_are_believed() {
        assert_eq!(judged(9, &[0]), [(true, 0)]);
    }

    /// EX-SR5.
    #[test]
    fn ex_sr5_a_sane_one_in_between_starts_the_count_anew() {
        assert_eq!(judged(20, &[0, 18, 0]), [(false, 1), (true, 0), (false, 1)]);
    }

    /// SR-3, without a baseline.
    #[test]
    fn zeroed_quantities_are_seen() {
        let mut guard = Guard::default();
        assert!(guard.judge(size(20), None));
        let zeroed = Baseline {
            rows: 20,
            totals: Amounts::default(),
        };
        assert!(!guard.judge(zeroed, None));
    }

    /// SR-3: without a baseline the machines that serve are one.
    #[test]
    fn nothing_wanted_by_a_cluster_that_is_served_is_suspicious() {
        let serving = || Some((10, size(10).totals));
        assert!(!Guard::default().judge(Baseline::default(), serving()));
        assert!(Guard::default().judge(size(2), serving()));
        assert!(Guard::default().judge(Baseline::default(), None));
    }
}
