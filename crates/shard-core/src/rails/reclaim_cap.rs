//! Rail 1: how many machines may be reclaimed from a cluster in any stretch of one interval (SR-2, SH-30).
//!
//! ```text
//! committed ─▶ waiting ─▶ told to its operator or provider ─▶ counts for one interval more ─▶ forgotten
//!                 └─ on record with its operation                └─ on record by itself
//! taken back ─▶ forgotten at once, wherever it is (SH-18)
//! ```
//!
//! The engine's answer is never altered. What is over the cap is not committed and derives again.
//!
//! A reclaim counts from its commit until an interval after it left. That is what somebody outside sees, and
//! a crash between the two cannot stretch it: the next process finds it waiting, or finds when it left.

use crate::{reads::CappedView, record::Record, settings::Rails};
use bigfleet_model::{Action, ActionKind, ClusterId, MachineId, Time};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// So many moments are put on record for a cluster, however many machines left.
const MOST_MOMENTS: usize = 64;

/// What may still be reclaimed.
#[derive(Clone, Debug)]
pub(crate) struct ReclaimCap {
    /// The cap, in millionths of a cluster's Configured machines; zero is none.
    per_million: u32,
    /// How long a reclaim counts after it left.
    interval: Duration,
    windows: BTreeMap<ClusterId, Window>,
    /// Clusters whose departures are not on record yet.
    unwritten: BTreeSet<ClusterId>,
    /// How many reclaims of which cluster it held back in the last cycle, and since when it does.
    capped: BTreeMap<ClusterId, (u64, Time)>,
}

/// The reclaims of a cluster that count.
#[derive(Clone, Debug, Default)]
struct Window {
    /// Machines whose reclaim is committed and has not left. They count for as long as that takes.
    waiting: BTreeSet<MachineId>,
    /// When the others left, and how many then; oldest first.
    left: Vec<(Time, u32)>,
    /// When each of them left whose reclaim may yet be taken back.
    told: BTreeMap<MachineId, Time>,
}

/// What rail 1 held back in one cycle.
#[derive(Debug, Default)]
pub(crate) struct Capped {
    /// The clusters it would have been reclaimed from, once for each machine.
    pub(crate) clusters: Vec<ClusterId>,
    /// When the next of them may go, if that is known.
    pub(crate) next: Option<Time>,
}

const MILLION: u32 = 1_000_000;

impl Rails {
    /// A fraction as a cap. However small, it is one: only zero or less is none (SR-2).
    pub fn cap(fraction: f64) -> u32 {
        let millionths = (fraction.min(1.0) * f64::from(MILLION)).round() as u32;
        if 0.0 < fraction { millionths.max(1) } else { 0 }
    }
}

/// Reclaims allowed of so many Configured machines: at least one, so that a cluster of five still
/// drains.
fn allowed(configured: u32, per_million: u32) -> u32 {
    let share = u64::from(configured) * u64::from(per_million) / u64::from(MILLION);
    u32::try_from(share).unwrap_or(u32::MAX).max(1)
}

impl ReclaimCap {
    pub(crate) fn new(per_million: u32, interval: Duration) -> Self {
        Self {
            per_million,
            interval: interval.max(Duration::from_nanos(1)),
            windows: BTreeMap::new(),
            unwritten: BTreeSet::new(),
            capped: BTreeMap::new(),
        }
    }

    /// How many reclaims it held back in the last cycle.
    pub(crate) fn capped(&self) -> u64 {
        self.capped.values().map(|(machines, _)| machines).sum()
    }

    /// The clusters it held them back of.
    pub(crate) fn capped_clusters(&self) -> impl Iterator<Item = CappedView> {
        let capped = self.capped.iter();
        capped.map(|(cluster, (machines, since))| CappedView {
            cluster: cluster.clone(),
            machines: *machines,
            since: *since,
        })
    }

    /// Leaves the head of each cluster's reclaims among the actions, and says what it held back. Machines that
    /// leave now are outside of it.
    pub(crate) fn cap(
        &mut self,
        actions: &mut Vec<Action>,
        configured: impl Fn(&ClusterId) -> u32,
        is_outside: impl Fn(&MachineId) -> bool,
        now: Time,
    ) -> Capped {
        let mut capped = Capped::default();
        let before = std::mem::take(&mut self.capped);
        if 0 < self.per_million {
            let mut left: BTreeMap<ClusterId, u32> = BTreeMap::new();
            actions.retain(|action| {
                let (ActionKind::Reclaim, Some(cluster)) = (action.kind, &action.cluster) else {
                    return true;
                };
                if is_outside(&action.machine) {
                    return true;
                }
                let left = left
                    .entry(cluster.clone())
                    .or_insert_with(|| self.grant(cluster, configured(cluster), now));
                if *left == 0 {
                    capped.clusters.push(cluster.clone());
                    return false;
                }
                *left -= 1;
                true
            });
            for cluster in &capped.clusters {
                let since = before.get(cluster).map_or(now, |(_, since)| *since);
                let machines = self.capped.entry(cluster.clone()).or_insert((0, since));
                machines.0 += 1;
            }
            let windows = self.capped.keys().filter_map(|one| self.windows.get(one));
            let oldest = windows.filter_map(|window| window.left.first());
            capped.next = oldest.map(|(at, _)| *at + self.interval).min();
        }
        capped
    }

    /// How many reclaims this cycle may commit for a cluster.
    fn grant(&mut self, cluster: &ClusterId, configured: u32, now: Time) -> u32 {
        let allowed = allowed(configured, self.per_million);
        let Some(window) = self.windows.get_mut(cluster) else {
            return allowed;
        };
        window.forget_older(self.interval, now);
        let count = window.count();
        if window.is_empty() {
            self.windows.remove(cluster);
        }
        allowed.saturating_sub(count)
    }

    /// A reclaim was committed, here or by an earlier process that did not finish it.
    pub(crate) fn committed(&mut self, cluster: &ClusterId, machine: &MachineId) {
        if 0 < self.per_million {
            let window = self.windows.entry(cluster.clone()).or_default();
            window.waiting.insert(machine.clone());
        }
    }

    /// A reclaim left, or ended without: from now on it counts for one interval. A second time changes
    /// nothing.
    pub(crate) fn left(&mut self, cluster: &ClusterId, machine: &MachineId, now: Time) {
        let Some(window) = self.windows.get_mut(cluster) else {
            return;
        };
        if window.waiting.remove(machine) {
            window.note_left(now, 1);
            window.told.insert(machine.clone(), now);
            self.unwritten.insert(cluster.clone());
        }
    }

    /// A reclaim was taken back, whether it had left or not: it counts no more.
    pub(crate) fn taken_back(&mut self, cluster: &ClusterId, machine: &MachineId) {
        let Some(window) = self.windows.get_mut(cluster) else {
            return;
        };
        window.waiting.remove(machine);
        if let Some(left_at) = window.told.remove(machine) {
            window.forget_one(left_at);
            self.unwritten.insert(cluster.clone());
        }
    }

    /// When reclaims of an earlier process left. A clock that was set back since does not make them last.
    pub(crate) fn recall(&mut self, cluster: ClusterId, left: &[(Time, u32)], now: Time) {
        let window = self.windows.entry(cluster).or_default();
        window.left.clear();
        for (at, count) in left {
            window.note_left((*at).min(now), *count);
        }
        window.forget_older(self.interval, now);
    }

    /// The departures that are not on record yet, as records; they count as written from then on.
    pub(crate) fn take_unwritten(&mut self, now: Time) -> Vec<Record> {
        let unwritten = std::mem::take(&mut self.unwritten);
        let records = unwritten.into_iter();
        records.map(|cluster| self.record(cluster, now)).collect()
    }

    /// Every departure that counts, as records.
    pub(crate) fn records(&self, now: Time) -> impl Iterator<Item = Record> {
        let clusters = self.windows.keys().cloned();
        let records = clusters.map(move |cluster| self.record(cluster, now));
        records.filter(|record| !matches!(record, Record::Reclaims { left, .. } if left.is_empty()))
    }

    fn record(&self, cluster: ClusterId, now: Time) -> Record {
        let window = self.windows.get(&cluster);
        let left = window.map(|window| window.to_record(self.interval, now));
        let left = left.unwrap_or_default();
        Record::Reclaims { cluster, left }
    }
}

impl Window {
    /// How many reclaims count.
    fn count(&self) -> u32 {
        let waiting = u32::try_from(self.waiting.len()).unwrap_or(u32::MAX);
        let left = self.left.iter().map(|(_, count)| *count);
        left.fold(waiting, u32::saturating_add)
    }

    fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.left.is_empty()
    }

    fn note_left(&mut self, at: Time, count: u32) {
        match self.left.last_mut().filter(|(last, _)| at <= *last) {
            Some((_, there)) => *there = there.saturating_add(count),
            None => self.left.push((at, count)),
        }
    }

    fn forget_older(&mut self, interval: Duration, now: Time) {
        let counts = |at: Time| now.duration_since(at) < interval;
        self.left.retain(|(at, _)| counts(*at));
        self.told.retain(|_, at| counts(*at));
    }

    /// One that left then did not leave after all.
    fn forget_one(&mut self, left_at: Time) {
        for (_, count) in self.left.iter_mut().filter(|(at, _)| *at == left_at) {
            *count -= 1;
        }
        self.left.retain(|(_, count)| 0 < *count);
    }

    /// What left within the interval. Where there are many moments, several become the last of them: they
    /// count a little longer, never shorter.
    fn to_record(&self, interval: Duration, now: Time) -> Vec<(Time, u32)> {
        let recent = self.left.iter();
        let recent = recent.filter(|(at, _)| now.duration_since(*at) < interval);
        let recent: Vec<(Time, u32)> = recent.copied().collect();
        let together = recent.len().div_ceil(MOST_MOMENTS).max(1);
        let chunks = recent.chunks(together);
        let last = |chunk: &[(Time, u32)]| {
            let count = chunk.iter().map(|(_, count)| *count);
            let count = count.fold(0, u32::saturating_add);
            chunk.last().map(|(at, _)| (*at, count))
        };
        chunks.filter_map(last).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const INTERVAL: Duration = Duration::from_secs(10);

    fn at(seconds: f64) -> Time {
        Time::from_seconds(seconds).unwrap()
    }

    fn a() -> ClusterId {
        ClusterId::new("a").unwrap()
    }

    fn machine(number: usize) -> MachineId {
        MachineId::new(&format!("m{number}")).unwrap()
    }

    /// A rail, and how many machines it has let go.
    struct Rail {
        cap: ReclaimCap,
        gone: usize,
    }

    impl Rail {
        fn new() -> Self {
            let cap = ReclaimCap::new(50_000, INTERVAL);
            Self { cap, gone: 0 }
        }

        /// Commits what may be reclaimed of so many Configured machines; they leave at once.
        fn reclaim(&mut self, configured: u32, now: Time) -> u32 {
            let granted = self.cap.grant(&a(), configured, now);
            for _ in 0..granted {
                self.gone += 1;
                self.cap.committed(&a(), &machine(self.gone));
                self.cap.left(&a(), &machine(self.gone), now);
            }
            granted
        }

        /// The rail of the next process, from what is on record.
        fn restart(&mut self, now: Time) {
            let records: Vec<Record> = self.cap.records(now).collect();
            self.cap = ReclaimCap::new(50_000, INTERVAL);
            for record in records {
                let Record::Reclaims { cluster, left } = record else {
                    panic!("{record:?}");
                };
                assert!(left.len() <= MOST_MOMENTS);
                self.cap.recall(cluster, &left, now);
            }
        }
    }

    /// EX-SR1.
    #[test]
    fn ex_sr1_a_twentieth_but_at_least_one() {
        let caps = [40, 5, 19, 20, 100].map(|configured| allowed(configured, 50_000));
        assert_eq!(caps, [2, 1, 1, 1, 5]);
    }

    /// SR-2: the smallest cap still is one, and what is asked for is not rounded away.
    #[test]
    fn only_zero_is_no_cap() {
        let caps = [0.05, 0.0004, 1e-9, 1.0, 0.0, -0.5, f64::NAN].map(Rails::cap);
        assert_eq!(caps, [50_000, 400, 1, 1_000_000, 0, 0, 0]);
        assert_eq!(allowed(100_000, Rails::cap(0.0335)), 3350);
        assert_eq!(allowed(100_000, Rails::cap(1e-9)), 1);
    }

    #[test]
    fn woken_cycles_do_not_drain_faster() {
        let mut rail = Rail::new();
        let moments = [0.0, 1.0, 4.999, 9.999, 10.0, 15.0, 20.0];
        let granted = moments.map(|now| rail.reclaim(40, at(now)));
        assert_eq!(granted, [2, 0, 0, 0, 2, 0, 2]);
    }

    /// SH-30: what was committed and has not left counts until it has, and an interval longer.
    #[test]
    fn a_reclaim_counts_from_its_commit_until_an_interval_after_it_left() {
        let mut cap = ReclaimCap::new(50_000, INTERVAL);
        for number in 0..2 {
            cap.committed(&a(), &machine(number));
        }
        assert_eq!(cap.grant(&a(), 40, at(60.0)), 0, "held up for a minute");
        cap.left(&a(), &machine(0), at(60.0));
        cap.left(&a(), &machine(0), at(65.0));
        assert_eq!(cap.grant(&a(), 40, at(69.9)), 0);
        assert_eq!(
            cap.grant(&a(), 40, at(70.0)),
            1,
            "the other one still waits"
        );
    }

    /// SH-18: a place is given back, before and after its reclaim has left, and once.
    #[test]
    fn a_reclaim_that_is_taken_back_counts_no_more() {
        let mut cap = ReclaimCap::new(50_000, INTERVAL);
        for number in 0..3 {
            cap.committed(&a(), &machine(number));
        }
        cap.left(&a(), &machine(0), at(1.0));
        cap.left(&a(), &machine(1), at(1.0));
        cap.take_unwritten(at(1.0));
        assert_eq!(cap.grant(&a(), 60, at(2.0)), 0);
        for (number, granted) in [(2, 1), (1, 2), (1, 2), (0, 3)] {
            cap.taken_back(&a(), &machine(number));
            assert_eq!(cap.grant(&a(), 60, at(2.0)), granted, "m{number}");
        }
        let records = cap.take_unwritten(at(2.0));
        assert!(matches!(&records[..], [Record::Reclaims { left, .. }] if left.is_empty()));
        cap.committed(&a(), &machine(0));
        cap.left(&a(), &machine(0), at(3.0));
        assert_eq!(cap.grant(&a(), 60, at(14.0)), 3, "it was long ago");
        cap.taken_back(&a(), &machine(0));
        assert_eq!(cap.grant(&a(), 60, at(14.0)), 3);
    }

    /// SH-30: a clock that was set back while no process ran holds nothing up for longer than an interval.
    #[test]
    fn departures_in_the_future_count_from_now() {
        let mut cap = ReclaimCap::new(50_000, INTERVAL);
        cap.recall(a(), &[(at(3600.0), 2)], at(0.0));
        assert_eq!(cap.grant(&a(), 40, at(9.9)), 0);
        assert_eq!(cap.grant(&a(), 40, at(10.0)), 2);
    }

    proptest! {
        /// EX-SR6, SH-30: no stretch of one interval has more than the cap of its last reclaim, however
        /// often the process starts anew; nor do k cycles have more than the sum of what each allows.
        #[test]
        fn ex_sr6_no_stretch_of_an_interval_has_more_than_the_cap(
            steps in prop::collection::vec((0_u32..2000, 0.01_f64..12.0, any::<bool>()), 1..60),
        ) {
            let mut rail = Rail::new();
            let (mut now, mut sum, mut executed) = (0.0, 0, 0);
            let mut left: Vec<(f64, u32)> = Vec::new();
            for (configured, step, restarts) in steps {
                now += step;
                if restarts {
                    rail.restart(at(now));
                }
                let granted = rail.reclaim(configured, at(now));
                left.push((now, granted));
                let within = left.iter().filter(|(at, _)| now - at < 10.0 - 1e-6);
                let within: u32 = within.map(|(_, count)| count).sum();
                let allowed = allowed(configured, 50_000);
                prop_assert!(granted == 0 || within <= allowed, "{within} of {allowed}");
                executed += granted;
                sum += allowed;
                prop_assert!(executed <= sum);
            }
        }
    }
}
