//! Rail 2: a roll-up that withdraws nearly everything, or asks for more than anybody means, is held until it has
//! been said three times, over twenty seconds at least (SR-3, SH-31, SH-32).
//!
//! ```text
//! rows, totals ── a tenth of the largest demand of the last ten minutes, or more ──▶ believed
//!      └── less, and there is something to lose ──▶ held ── three in a row, 20 s ──▶ believed
//! ```
//!
//! Judged on rows and on the total of every dimension, so zeroed quantities are seen too. Baselines and
//! what was larger before them survive restarts, so the first roll-up is judged like any other (SH-8). How
//! often one was held does not: after a restart it is counted anew, which holds it for longer.

use super::peak::Peak;
use bigfleet_model::{Amounts, ClusterId, Row, Time, counted, quantity::format_short};
use std::{collections::BTreeMap, time::Duration};

/// The third suspicious roll-up in a row is believed.
const BELIEVED_AT: u32 = 3;
/// If the first of them is this old: however fast they come, a person has time to look.
const BELIEVED_AFTER: Duration = Duration::from_secs(20);
/// Smaller demands are believed at once,
const LEAST_ROWS: usize = 10;
/// unless so many machines serve them.
const LEAST_MACHINES: u32 = 20;
/// As many machines that serve a cluster are a baseline where there is no other.
const LEAST_SERVING: usize = 10;

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

    /// Whether it is as large as another, in rows and in every dimension.
    pub(super) fn is_as_large_as(&self, other: &Self) -> bool {
        other.rows <= self.rows && self.totals.covers(&other.totals)
    }

    /// The larger of both, in rows and in every dimension.
    pub(super) fn larger(&self, other: &Self) -> Self {
        Self {
            rows: self.rows.max(other.rows),
            totals: self.totals.larger(&other.totals),
        }
    }
}

/// The demand last believed of every cluster, and the roll-ups that are held.
#[derive(Clone, Debug, Default)]
pub(crate) struct Quarantine {
    is_on: bool,
    /// See [`crate::Defect::HastyRollUpGuard`].
    is_hasty: bool,
    guards: BTreeMap<ClusterId, Guard>,
}

/// What a roll-up is judged by, beside what was said before.
#[derive(Clone, Debug, Default)]
pub(crate) struct Circumstances {
    /// Its Configured machines.
    pub(crate) machines: u32,
    /// How many those are and what they offer, for a cluster this process has not heard yet.
    pub(crate) offered: Option<(usize, Amounts)>,
    /// Why it asks for more than anybody means, if it does (SH-32).
    pub(crate) excess: Option<String>,
}

/// What becomes of a roll-up.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Judgement {
    /// Whether it is believed, and the new baseline.
    pub(crate) is_believed: bool,
    /// Why it is held, or was until now; `None` if nobody doubts it.
    pub(crate) suspicion: Option<String>,
    /// How many are held in a row, this one included.
    pub(crate) held: u32,
    /// The baseline before it.
    pub(crate) before: Option<Baseline>,
}

/// A cluster whose roll-ups are held.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Held {
    /// How many in a row.
    pub(crate) reports: u32,
    /// When the first of them came.
    pub(crate) since: Time,
    /// Why the last of them is held.
    pub(crate) why: String,
    /// Whether they ask for too much, or too little. One that says the contrary does not confirm them.
    is_excess: bool,
}

impl Quarantine {
    pub(crate) fn new(is_on: bool, is_hasty: bool) -> Self {
        Self {
            is_on,
            is_hasty,
            guards: BTreeMap::new(),
        }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.is_on
    }

    /// Judges a roll-up of this size.
    pub(crate) fn judge(
        &mut self,
        cluster: &ClusterId,
        new: &Baseline,
        circumstances: &Circumstances,
        now: Time,
    ) -> Judgement {
        let guard = self.guards.entry(cluster.clone()).or_default();
        let before = guard.baseline.clone();
        let mut circumstances = circumstances.clone();
        let mut patience = BELIEVED_AFTER;
        if self.is_hasty {
            guard.peak.clear();
            (guard.serving_at_start, circumstances.machines) = (0, 0);
            patience = Duration::ZERO;
        }
        let withdrawal = guard.suspects(new, &circumstances, now);
        let excess = circumstances.excess.map(|why| (why, true));
        let suspicion = excess.or(withdrawal.map(|why| (why, false)));
        let suspicion = suspicion.filter(|_| self.is_on);
        let is_believed = guard.judge(new, suspicion.as_ref(), patience, now);
        Judgement {
            is_believed,
            suspicion: suspicion.map(|(why, _)| why),
            held: guard.reports(),
            before,
        }
    }

    /// The demand last believed is said again, which nobody doubts. Says whether the rail is on.
    pub(crate) fn believe_again(&mut self, cluster: &ClusterId, now: Time) -> bool {
        if let Some(guard) = self.guards.get_mut(cluster) {
            guard.held = None;
            guard.peak.forget(now);
        }
        self.is_on
    }

    /// A cluster is forgotten, and what it was believed to want.
    pub(crate) fn forget(&mut self, cluster: &ClusterId) {
        self.guards.remove(cluster);
    }

    /// What an earlier process believed, and what it believed before that in the last ten minutes.
    pub(crate) fn recall(
        &mut self,
        cluster: ClusterId,
        baseline: Baseline,
        replaced: Vec<(Time, Baseline)>,
        now: Time,
    ) {
        let guard = self.guards.entry(cluster).or_default();
        guard.baseline = Some(baseline);
        guard.peak = Peak::recalled(replaced, now);
    }

    /// So many machines serve a cluster, as an earlier process remembered them.
    pub(crate) fn recall_serving(&mut self, cluster: ClusterId, machines: u32) {
        self.guards.entry(cluster).or_default().serving_at_start = machines;
    }

    /// The provider has shown its machines: what was remembered of them is of no use any more.
    pub(crate) fn forget_serving_at_start(&mut self) {
        for guard in self.guards.values_mut() {
            guard.serving_at_start = 0;
        }
    }

    /// The demand last believed of a cluster.
    pub(crate) fn baseline(&self, cluster: &ClusterId) -> Option<&Baseline> {
        self.guards.get(cluster)?.baseline.as_ref()
    }

    /// Demands of a cluster that were believed in the last ten minutes and are not any more, with the moments
    /// they ended.
    pub(crate) fn replaced(&self, cluster: &ClusterId, now: Time) -> Vec<(Time, Baseline)> {
        let guard = self.guards.get(cluster);
        guard.map_or_else(Vec::new, |guard| guard.peak.kept(now))
    }

    /// How many roll-ups of a cluster are held in a row.
    pub(crate) fn held(&self, cluster: &ClusterId) -> u32 {
        self.guards.get(cluster).map_or(0, Guard::reports)
    }

    /// Since when a cluster's roll-ups are held.
    pub(crate) fn held_since(&self, cluster: &ClusterId) -> Option<Time> {
        let held = self.guards.get(cluster)?.held.as_ref()?;
        Some(held.since)
    }

    /// Clusters with a held roll-up.
    pub(crate) fn all_held(&self) -> impl Iterator<Item = (&ClusterId, &Held)> {
        let guards = self.guards.iter();
        guards.filter_map(|(id, guard)| Some((id, guard.held.as_ref()?)))
    }
}

/// What was last believed of a cluster, and what of it is doubted.
#[derive(Clone, Debug, Default)]
struct Guard {
    baseline: Option<Baseline>,
    peak: Peak,
    held: Option<Held>,
    /// Machines that served it when an earlier process ended, until the provider has shown them.
    serving_at_start: u32,
}

impl Guard {
    fn reports(&self) -> u32 {
        self.held.as_ref().map_or(0, |held| held.reports)
    }

    /// Whether to believe this demand; if so it is the new baseline.
    fn judge(
        &mut self,
        new: &Baseline,
        suspicion: Option<&(String, bool)>,
        patience: Duration,
        now: Time,
    ) -> bool {
        if let Some((why, is_excess)) = suspicion {
            self.held.take_if(|held| held.is_excess != *is_excess);
            let held = self.held.get_or_insert_with(|| Held {
                reports: 0,
                since: now,
                why: String::new(),
                is_excess: *is_excess,
            });
            held.reports = held.reports.saturating_add(1);
            held.why.clone_from(why);
            let passed = now.duration_since(held.since);
            if held.reports < BELIEVED_AT || passed < patience {
                return false;
            }
            self.peak.clear();
        } else if let Some(old) = self.baseline.take() {
            self.peak.replaced(old, new, now);
        }
        self.held = None;
        self.baseline = Some(new.clone());
        true
    }

    /// Why this demand is doubted, if it withdraws nearly everything and there is something to lose.
    fn suspects(&self, new: &Baseline, circumstances: &Circumstances, now: Time) -> Option<String> {
        let Some(baseline) = &self.baseline else {
            let (machines, offered) = circumstances.offered.as_ref()?;
            let mut offers = offered.iter();
            let is_dwarfed = LEAST_SERVING <= *machines
                && offers.all(|(name, total)| is_dwarfed(new.totals.get(name.as_str()), total));
            let why = format!("it wants less than a tenth of what its {machines} machines offer");
            return is_dwarfed.then_some(why);
        };
        // What is in force is not withdrawn by asking for it again, whatever serves it by now.
        if new.is_as_large_as(baseline) {
            return None;
        }
        let lately = || self.peak.lately(now).chain([baseline]);
        let serving = circumstances.machines.max(self.serving_at_start);
        let is_armed = LEAST_MACHINES <= serving || lately().any(|one| LEAST_ROWS <= one.rows);
        is_armed.then(|| lately().find_map(|before| withdrawn(before, new)))?
    }
}

fn is_dwarfed(now: i128, before: i128) -> bool {
    now.saturating_mul(10) < before
}

/// What one demand withdraws nearly all of, if it does.
fn withdrawn(before: &Baseline, new: &Baseline) -> Option<String> {
    let (rows, were) = (new.rows, before.rows);
    if rows * 10 < were {
        let rows = counted(rows, "row", "rows");
        return Some(format!("it has {rows}, and {were} were asked for"));
    }
    before.totals.iter().find_map(|(name, total)| {
        let is = new.totals.get(name.as_str());
        let (less, was) = (format_short(is), format_short(total));
        is_dwarfed(is, total)
            .then(|| format!("it asks for {less} {name}, and {was} were asked for"))
    })
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

    fn a() -> ClusterId {
        ClusterId::new("a").unwrap()
    }

    fn at(seconds: f64) -> Time {
        Time::from_seconds(seconds).unwrap()
    }

    fn served_by(machines: u32) -> Circumstances {
        Circumstances {
            machines,
            ..Circumstances::default()
        }
    }

    fn judge(rail: &mut Quarantine, new: &Baseline, serving: &Circumstances, now: f64) -> bool {
        rail.judge(&a(), new, serving, at(now)).is_believed
    }

    /// What becomes of roll-ups of these sizes at these moments, after a first one that is believed.
    fn judged_at(first: usize, machines: u32, then: &[(f64, usize)]) -> Vec<(bool, u32)> {
        let mut rail = Quarantine::new(true, false);
        assert!(judge(&mut rail, &size(first), &served_by(machines), 0.0));
        let judge = |(now, rows): &(f64, usize)| {
            let is_believed = judge(&mut rail, &size(*rows), &served_by(machines), *now);
            (is_believed, rail.held(&a()))
        };
        then.iter().map(judge).collect()
    }

    /// The same, ten seconds apart.
    fn judged(first: usize, then: &[usize]) -> Vec<(bool, u32)> {
        let moments = (1..).map(|count| f64::from(count) * 10.0);
        let then: Vec<(f64, usize)> = moments.zip(then.iter().copied()).collect();
        judged_at(first, 0, &then)
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

    /// EX-SR7.
    #[test]
    fn ex_sr7_however_fast_they_come_twenty_seconds_pass() {
        let then = [(1.0, 0), (1.001, 0), (1.002, 0), (20.9, 0), (21.0, 0)];
        let held = [(false, 1), (false, 2), (false, 3), (false, 4), (true, 0)];
        assert_eq!(judged_at(20, 0, &then), held);
    }

    /// EX-SR8: and what was believed so is the end of it.
    #[test]
    fn ex_sr8_a_withdrawal_in_steps_is_one() {
        let then = [5, 1, 1, 1, 0, 0];
        let held = [(true, 0), (false, 1), (false, 2), (true, 0), (true, 0)];
        assert_eq!(judged(40, &then)[..5], held);
        let slow = [(10.0, 5), (609.0, 1), (610.0, 1)];
        assert_eq!(
            judged_at(40, 0, &slow),
            [(true, 0), (false, 1), (true, 0)],
            "the 40 are ten minutes old, and a demand of 5 rows is small"
        );
    }

    /// EX-SR9.
    #[test]
    fn ex_sr9_twenty_machines_arm_it_for_any_demand() {
        let nine = |machines| judged_at(9, machines, &[(10.0, 0)]);
        assert_eq!(nine(19), [(true, 0)]);
        assert_eq!(nine(20), [(false, 1)]);
    }

    /// SH-31: machines that came since do not make a withdrawal of what is asked for again.
    #[test]
    fn what_is_in_force_may_be_said_again() {
        let mut rail = Quarantine::new(true, false);
        for (rows, machines) in [(9, 0), (0, 19), (0, 20), (1, 20)] {
            assert!(judge(&mut rail, &size(rows), &served_by(machines), 0.0));
        }
    }

    /// SH-31: before the first List the machines that are remembered are those that serve.
    #[test]
    fn remembered_machines_arm_it_until_the_provider_has_shown_its_own() {
        let mut rail = Quarantine::new(true, false);
        rail.recall(a(), size(9), Vec::new(), at(0.0));
        rail.recall_serving(a(), 500);
        assert!(!judge(&mut rail, &size(0), &served_by(0), 1.0));
        rail.forget_serving_at_start();
        assert!(judge(&mut rail, &size(0), &served_by(0), 2.0));
    }

    /// SH-31: a step before a restart and a step after it are two steps.
    #[test]
    fn what_was_larger_is_remembered() {
        let mut rail = Quarantine::new(true, false);
        assert!(judge(&mut rail, &size(40), &served_by(0), 0.0));
        assert!(judge(&mut rail, &size(5), &served_by(0), 10.0));
        let (baseline, replaced) = (rail.baseline(&a()).cloned(), rail.replaced(&a(), at(20.0)));
        let mut again = Quarantine::new(true, false);
        again.recall(a(), baseline.unwrap(), replaced, at(20.0));
        assert!(!judge(&mut again, &size(1), &served_by(0), 20.0));
    }

    /// SR-3.
    #[test]
    fn zeroed_quantities_are_seen() {
        let mut rail = Quarantine::new(true, false);
        assert!(judge(&mut rail, &size(20), &served_by(0), 0.0));
        let zeroed = Baseline {
            rows: 20,
            totals: Amounts::default(),
        };
        let judged = rail.judge(&a(), &zeroed, &served_by(0), at(1.0));
        assert_eq!(
            judged.suspicion.as_deref(),
            Some("it asks for 0 cpu, and 20 were asked for")
        );
    }

    /// SR-3: without a baseline the machines that serve are one.
    #[test]
    fn nothing_wanted_by_a_cluster_that_is_served_is_suspicious() {
        let first = |new: &Baseline, offered| {
            let serving = Circumstances {
                offered,
                ..Circumstances::default()
            };
            judge(&mut Quarantine::new(true, false), new, &serving, 0.0)
        };
        let serving = |machines| Some((machines, size(10).totals));
        assert!(!first(&Baseline::default(), serving(10)));
        assert!(first(&Baseline::default(), serving(9)), "a small cluster");
        assert!(first(&size(1), serving(10)), "a tenth of what serves");
        assert!(first(&Baseline::default(), None));
    }

    /// SH-32: a withdrawal does not confirm that too much was meant, nor the other way round.
    #[test]
    fn too_much_and_too_little_are_counted_apart() {
        let mut rail = Quarantine::new(true, false);
        assert!(judge(&mut rail, &size(20), &served_by(0), 0.0));
        let excess = Circumstances {
            excess: Some("a row asks for 9".to_owned()),
            ..Circumstances::default()
        };
        let mut held = |new: &Baseline, circumstances: &Circumstances, now: f64| {
            rail.judge(&a(), new, circumstances, at(now)).held
        };
        assert_eq!(held(&size(0), &served_by(0), 1.0), 1);
        assert_eq!(held(&size(0), &served_by(0), 11.0), 2);
        assert_eq!(held(&size(20), &excess, 22.0), 1);
        assert_eq!(held(&size(20), &excess, 32.0), 2);
        assert_eq!(held(&size(20), &excess, 42.0), 0, "and believed");
        assert_eq!(rail.baseline(&a()), Some(&size(20)));
    }

    /// A rail that is off believes everything, and still knows the last demand.
    #[test]
    fn switched_off_it_holds_nothing() {
        let mut rail = Quarantine::new(false, false);
        for rows in [20, 0] {
            assert!(judge(&mut rail, &size(rows), &served_by(50), 0.0));
        }
        assert_eq!(rail.baseline(&a()), Some(&size(0)));
        assert!(!rail.believe_again(&a(), at(0.0)));
    }
}
