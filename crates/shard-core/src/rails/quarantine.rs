//! Rail 2: a roll-up that withdraws nearly everything is held until it has been said three times
//! (SR-3).
//!
//! Judged on rows and on the total of every dimension, so zeroed quantities are seen too. Baselines
//! survive restarts, so the first roll-up is judged like any other (SH-8).

use bigfleet_model::{Amounts, ClusterId, Row, Time};
use std::collections::BTreeMap;

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

/// The demand last believed of every cluster, and the roll-ups that are held.
#[derive(Clone, Debug, Default)]
pub(crate) struct Quarantine {
    is_on: bool,
    guards: BTreeMap<ClusterId, Guard>,
}

/// What becomes of a roll-up.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Judgement {
    /// Whether it is believed, and the new baseline.
    pub(crate) is_believed: bool,
    /// Whether it withdraws nearly everything.
    pub(crate) is_suspicious: bool,
    /// How many are held in a row, this one included.
    pub(crate) held: u32,
    /// The baseline it was judged by.
    pub(crate) before: Option<Baseline>,
}

impl Quarantine {
    pub(crate) fn new(is_on: bool) -> Self {
        Self {
            is_on,
            guards: BTreeMap::new(),
        }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.is_on
    }

    /// Judges a roll-up. `serving` is what the cluster's machines offer, for one without a baseline.
    pub(crate) fn judge(
        &mut self,
        cluster: &ClusterId,
        new: &Baseline,
        serving: Option<(usize, Amounts)>,
        now: Time,
    ) -> Judgement {
        let guard = self.guards.entry(cluster.clone()).or_default();
        let before = guard.baseline.clone();
        let is_suspicious = self.is_on && guard.suspects(new, serving.as_ref());
        let is_believed = !self.is_on || guard.judge(new, is_suspicious, now);
        if !self.is_on {
            guard.baseline = Some(new.clone());
        }
        Judgement {
            is_believed,
            is_suspicious,
            held: guard.held,
            before,
        }
    }

    /// The demand last believed is said again, which nobody doubts. Says whether the rail is on.
    pub(crate) fn believe_again(&mut self, cluster: &ClusterId) -> bool {
        if self.is_on
            && let Some(guard) = self.guards.get_mut(cluster)
        {
            guard.believe();
        }
        self.is_on
    }

    /// What an earlier process believed.
    pub(crate) fn recall(&mut self, cluster: ClusterId, baseline: Baseline) {
        self.guards.entry(cluster).or_default().baseline = Some(baseline);
    }

    /// The demand last believed of a cluster.
    pub(crate) fn baseline(&self, cluster: &ClusterId) -> Option<&Baseline> {
        self.guards.get(cluster)?.baseline.as_ref()
    }

    /// How many roll-ups of a cluster are held in a row.
    pub(crate) fn held(&self, cluster: &ClusterId) -> u32 {
        self.guards.get(cluster).map_or(0, |guard| guard.held)
    }

    /// Since when a cluster's roll-ups are held.
    pub(crate) fn held_since(&self, cluster: &ClusterId) -> Option<Time> {
        self.guards.get(cluster)?.held_since
    }

    /// Clusters with a held roll-up, and how many in a row.
    pub(crate) fn all_held(&self) -> impl Iterator<Item = (&ClusterId, u32)> {
        let guards = self.guards.iter().map(|(id, guard)| (id, guard.held));
        guards.filter(|(_, held)| 0 < *held)
    }
}

/// The last demand believed of a cluster, and how often a suspicious one was held since.
#[derive(Clone, Debug, Default)]
struct Guard {
    baseline: Option<Baseline>,
    held: u32,
    held_since: Option<Time>,
}

impl Guard {
    /// Whether to believe this demand; if so it is the new baseline.
    fn judge(&mut self, new: &Baseline, is_suspicious: bool, now: Time) -> bool {
        if is_suspicious && self.held + 1 < BELIEVED_AT {
            self.held += 1;
            self.held_since.get_or_insert(now);
            return false;
        }
        self.believe();
        self.baseline = Some(new.clone());
        true
    }

    /// Whether this demand withdraws nearly everything.
    fn suspects(&self, new: &Baseline, serving: Option<&(usize, Amounts)>) -> bool {
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

    fn believe(&mut self) {
        self.held = 0;
        self.held_since = None;
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

    fn judge(rail: &mut Quarantine, new: &Baseline, serving: Option<(usize, Amounts)>) -> bool {
        let a = ClusterId::new("a").unwrap();
        rail.judge(&a, new, serving, Time::ZERO).is_believed
    }

    /// What becomes of roll-ups of these sizes, after a first one that is believed.
    fn judged(first: usize, then: &[usize]) -> Vec<(bool, u32)> {
        let a = ClusterId::new("a").unwrap();
        let mut rail = Quarantine::new(true);
        assert!(judge(&mut rail, &size(first), None));
        let judge = |rows: &usize| {
            let is_believed = judge(&mut rail, &size(*rows), None);
            (is_believed, rail.held(&a))
        };
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

    /// SR-3.
    #[test]
    fn zeroed_quantities_are_seen() {
        let mut rail = Quarantine::new(true);
        assert!(judge(&mut rail, &size(20), None));
        let zeroed = Baseline {
            rows: 20,
            totals: Amounts::default(),
        };
        assert!(!judge(&mut rail, &zeroed, None));
    }

    /// SR-3: without a baseline the machines that serve are one.
    #[test]
    fn nothing_wanted_by_a_cluster_that_is_served_is_suspicious() {
        let first = |new: &Baseline, serving| judge(&mut Quarantine::new(true), new, serving);
        let serving = |machines| Some((machines, size(10).totals));
        assert!(!first(&Baseline::default(), serving(10)));
        assert!(first(&Baseline::default(), serving(9)), "a small cluster");
        assert!(first(&size(1), serving(10)), "a tenth of what serves");
        assert!(first(&Baseline::default(), None));
    }

    /// A rail that is off believes everything, and still knows the last demand.
    #[test]
    fn switched_off_it_holds_nothing() {
        let mut rail = Quarantine::new(false);
        let a = ClusterId::new("a").unwrap();
        assert!(judge(&mut rail, &size(20), None) && judge(&mut rail, &size(0), None));
        assert_eq!(rail.baseline(&a), Some(&size(0)));
        assert!(!rail.believe_again(&a));
    }
}
