//! Breakers: what keeps ending badly is tried once in a while, by one machine at a time (SH-22).
//!
//! ```text
//! closed ── bad end ─▶ nothing for 10 s ── third in a row ─▶ open: one probe, 10 s, 20 s … 10 min apart
//!    ▲                                                         │
//!    └────────────────────── a good end ───────────────────────┘
//! ```
//!
//! Creates fail by machine type and zone; what follows a Create fails by cluster and step. An open breaker
//! bounds how fast a pool is used up; [`Spent`] bounds how far, since a machine that failed for a cluster
//! stays failed whoever asks next.

use crate::record::Record;
use bigfleet_model::{ClusterId, MachineId, Shape, Time};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// Bad ends in a row that open a breaker.
const OPENS: u32 = 3;
/// The first wait after a bad end; each next one is twice as long.
const FIRST_WAIT: Duration = Duration::from_secs(10);
/// The longest wait.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(600);
/// A breaker nobody has tried for so long is forgotten, and a machine that was spent so long ago counts no
/// more.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(24 * 3600);
/// What is kept of an error text, in characters.
const ERROR_CHARACTERS: usize = 240;
/// A cluster in trouble may spend this many machines, however few it misses.
const LEAST_BUDGET: usize = 3;
/// A cluster in trouble may spend so many machines for each that it misses, and a machine that serves it after
/// all makes up for as many.
const SPENT_FOR_ONE: usize = 2;

/// Machines that run out together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pool {
    /// The instance type.
    pub instance_type: String,
    /// The zone.
    pub zone: String,
}

impl Pool {
    pub(crate) fn of(shape: &Shape) -> Self {
        Self {
            instance_type: shape.instance_type.clone(),
            zone: shape.zone.clone(),
        }
    }
}

/// A step between Create and a node that serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum JoinStep {
    /// The operator makes a bootstrap blob.
    Blob,
    /// The provider configures the machine for its cluster.
    Configure,
    /// The machine becomes a node that is Ready.
    Node,
}

impl JoinStep {
    /// All of them, in order.
    pub const ALL: [Self; 3] = [Self::Blob, Self::Configure, Self::Node];

    /// Its name for people and files.
    pub fn word(self) -> &'static str {
        match self {
            Self::Blob => "blob",
            Self::Configure => "configure",
            Self::Node => "node",
        }
    }
}

/// What a breaker is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BreakerKey {
    /// Creates of one machine type in one zone.
    Create(Pool),
    /// One step of the machines that join one cluster.
    Join(ClusterId, JoinStep),
}

/// A breaker with at least one bad end behind it, as it outlives a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptBreaker {
    /// Bad ends in a row.
    pub failures: u32,
    /// Waits in a row; bad ends during a wait do not make it longer.
    pub waits: u32,
    /// When the first of them was.
    pub since: Time,
    /// Until when nothing is tried.
    pub until: Time,
    /// What the last one was, in the words of whoever said so.
    pub last_error: String,
}

impl KeptBreaker {
    /// Whether only one machine at a time is tried.
    pub fn is_open(&self) -> bool {
        OPENS <= self.failures
    }
}

/// Every breaker with a bad end behind it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Breakers {
    by_key: BTreeMap<BreakerKey, KeptBreaker>,
}

impl Breakers {
    /// Notes a bad end; returns until when nothing is tried, and whether the breaker has opened.
    pub(crate) fn fail(&mut self, key: &BreakerKey, now: Time, why: &str) -> (Time, bool) {
        let known = self.by_key.entry(key.clone()).or_insert(KeptBreaker {
            failures: 0,
            waits: 0,
            since: now,
            until: now,
            last_error: String::new(),
        });
        let was_open = known.is_open();
        known.failures = known.failures.saturating_add(1);
        known.last_error = why.chars().take(ERROR_CHARACTERS).collect();
        if known.until <= now {
            let doubled = FIRST_WAIT.saturating_mul(1 << known.waits.min(20));
            known.waits = known.waits.saturating_add(1);
            known.until = now + doubled.min(LONGEST_WAIT);
        }
        (known.until, !was_open && known.is_open())
    }

    /// Closes a breaker; says whether there was one.
    pub(crate) fn succeed(&mut self, key: &BreakerKey) -> bool {
        self.by_key.remove(key).is_some()
    }

    pub(crate) fn get(&self, key: &BreakerKey) -> Option<&KeptBreaker> {
        self.by_key.get(key)
    }

    pub(crate) fn waits(&self, key: &BreakerKey, now: Time) -> bool {
        self.get(key).is_some_and(|known| now < known.until)
    }

    pub(crate) fn is_open(&self, key: &BreakerKey) -> bool {
        self.get(key).is_some_and(KeptBreaker::is_open)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&BreakerKey, &KeptBreaker)> {
        self.by_key.iter()
    }

    /// The breakers of a cluster, by step.
    pub(crate) fn joins<'b>(
        &'b self,
        cluster: &'b ClusterId,
    ) -> impl Iterator<Item = (JoinStep, &'b KeptBreaker)> {
        let steps = JoinStep::ALL.into_iter().filter(|_| !self.is_empty());
        steps.filter_map(|step| {
            let known = self.get(&BreakerKey::Join(cluster.clone(), step))?;
            Some((step, known))
        })
    }

    /// Drops those nobody has tried for a day; returns them.
    pub(crate) fn forget_old(&mut self, now: Time) -> Vec<BreakerKey> {
        let is_old = |known: &KeptBreaker| known.until + FORGOTTEN_AFTER <= now;
        let old = self.by_key.iter().filter(|(_, known)| is_old(known));
        let old: Vec<BreakerKey> = old.map(|(key, _)| key.clone()).collect();
        for key in &old {
            self.by_key.remove(key);
        }
        old
    }

    /// What an earlier process knew; `None` if it was closed.
    pub(crate) fn recall(&mut self, key: BreakerKey, kept: Option<KeptBreaker>) {
        match kept {
            Some(kept) => drop(self.by_key.insert(key, kept)),
            None => drop(self.by_key.remove(&key)),
        }
    }

    /// What is to be remembered of a breaker now.
    pub(crate) fn record(&self, key: &BreakerKey) -> Record {
        Record::Breaker {
            key: key.clone(),
            kept: self.get(key).cloned(),
        }
    }
}

/// Machines that ended badly for a cluster and are no supply since, and that no success has made up for.
///
/// Whatever a cluster misses, gets and loses again, it never spends more than its budget and two machines for
/// each that came to serve it: one success now and then does not buy it the whole budget once more.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spent {
    machines: BTreeMap<MachineId, (ClusterId, Time)>,
    counts: BTreeMap<ClusterId, usize>,
    /// Clusters that asked for more than their budget leaves.
    exhausted: BTreeSet<ClusterId>,
}

impl Spent {
    pub(crate) fn spend(&mut self, machine: &MachineId, cluster: &ClusterId, now: Time) {
        self.give_back(machine);
        self.machines
            .insert(machine.clone(), (cluster.clone(), now));
        *self.counts.entry(cluster.clone()).or_default() += 1;
    }

    /// A machine is supply again, or nobody's; returns the cluster it was spent on.
    pub(crate) fn give_back(&mut self, machine: &MachineId) -> Option<ClusterId> {
        let (cluster, _) = self.machines.remove(machine)?;
        if let Some(count) = self.counts.get_mut(&cluster) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&cluster);
            }
        }
        self.exhausted.remove(&cluster);
        Some(cluster)
    }

    /// A machine serves a cluster: the two that were spent on it first count no more; returns them.
    pub(crate) fn make_up(&mut self, cluster: &ClusterId) -> Vec<MachineId> {
        if !self.counts.contains_key(cluster) {
            return Vec::new();
        }
        let spent = self.machines.iter().filter(|(_, (of, _))| of == cluster);
        let mut first: Vec<(Time, MachineId)> = spent
            .map(|(machine, (_, at))| (*at, machine.clone()))
            .collect();
        first.sort();
        first.truncate(SPENT_FOR_ONE);
        let first = first.into_iter().map(|(_, machine)| machine);
        first
            .inspect(|machine| drop(self.give_back(machine)))
            .collect()
    }

    /// A person wants a cluster tried afresh; returns the machines that count no more.
    pub(crate) fn clear(&mut self, cluster: &ClusterId) -> Vec<MachineId> {
        self.exhausted.remove(cluster);
        self.give_back_if(cluster, |_| true)
    }

    /// Machines of a cluster that were spent so long ago that they count no more.
    pub(crate) fn forget_old(&mut self, cluster: &ClusterId, now: Time) -> Vec<MachineId> {
        self.give_back_if(cluster, |at| at + FORGOTTEN_AFTER <= now)
    }

    fn give_back_if(
        &mut self,
        cluster: &ClusterId,
        is_over: impl Fn(Time) -> bool,
    ) -> Vec<MachineId> {
        if !self.counts.contains_key(cluster) {
            return Vec::new();
        }
        let spent = self.machines.iter();
        let over = spent.filter(|(_, (of, at))| of == cluster && is_over(*at));
        let over: Vec<MachineId> = over.map(|(machine, _)| machine.clone()).collect();
        for machine in &over {
            self.give_back(machine);
        }
        over
    }

    /// When a machine that is spent now counts no more.
    pub(crate) fn counts_until(now: Time) -> Time {
        now + FORGOTTEN_AFTER
    }

    pub(crate) fn get(&self, machine: &MachineId) -> Option<&(ClusterId, Time)> {
        self.machines.get(machine)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.machines.is_empty()
    }

    pub(crate) fn count(&self, cluster: &ClusterId) -> usize {
        self.counts.get(cluster).copied().unwrap_or(0)
    }

    /// How many more machines may be tried for a cluster that misses so many.
    pub(crate) fn left(&self, cluster: &ClusterId, missing: usize, in_flight: usize) -> usize {
        let budget = missing.saturating_mul(SPENT_FOR_ONE).max(LEAST_BUDGET);
        budget.saturating_sub(self.count(cluster) + in_flight)
    }

    pub(crate) fn exhaust(&mut self, cluster: &ClusterId) {
        self.exhausted.insert(cluster.clone());
    }

    pub(crate) fn is_exhausted(&self, cluster: &ClusterId) -> bool {
        self.exhausted.contains(cluster)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bigfleet_seeded::Prng;

    fn at(seconds: f64) -> Time {
        Time::from_seconds(seconds).unwrap()
    }

    fn cluster(name: &str) -> ClusterId {
        ClusterId::new(name).unwrap()
    }

    fn machine(number: usize) -> MachineId {
        MachineId::new(&format!("m{number}")).unwrap()
    }

    #[test]
    fn the_third_bad_end_opens_once_and_waits_double_up_to_ten_minutes() {
        let mut breakers = Breakers::default();
        let key = BreakerKey::Join(cluster("a"), JoinStep::Configure);
        let mut now = at(0.0);
        let mut waits = Vec::new();
        let mut opened = Vec::new();
        for _ in 0..9 {
            let (until, is_opened) = breakers.fail(&key, now, "no");
            waits.push(until.duration_since(now).as_secs());
            opened.push(is_opened);
            now = until;
        }
        assert_eq!(waits, [10, 20, 40, 80, 160, 320, 600, 600, 600]);
        assert_eq!(opened.iter().position(|opened| *opened), Some(2));
        assert_eq!(opened.iter().filter(|opened| **opened).count(), 1);
        assert!(breakers.succeed(&key) && !breakers.succeed(&key));
        assert!(!breakers.is_open(&key));
    }

    /// A burst is one wait, but each of its machines is a bad end.
    #[test]
    fn bad_ends_during_a_wait_open_the_breaker_and_do_not_prolong_it() {
        let mut breakers = Breakers::default();
        let key = BreakerKey::Join(cluster("a"), JoinStep::Configure);
        let ends = [0.0, 1.0, 2.0].map(|now| breakers.fail(&key, at(now), ""));
        assert_eq!(
            ends,
            [(at(10.0), false), (at(10.0), false), (at(10.0), true)]
        );
        assert!(breakers.waits(&key, at(9.0)) && !breakers.waits(&key, at(10.0)));
        assert_eq!(breakers.fail(&key, at(10.0), ""), (at(30.0), false));
    }

    #[test]
    fn an_error_text_has_a_bound_and_a_breaker_nobody_tries_is_forgotten() {
        let mut breakers = Breakers::default();
        let key = BreakerKey::Create(Pool {
            instance_type: "m5".to_owned(),
            zone: "a".to_owned(),
        });
        breakers.fail(&key, at(0.0), &"x".repeat(10_000));
        let kept = breakers.get(&key).cloned();
        assert_eq!(kept.unwrap().last_error.len(), ERROR_CHARACTERS);
        assert_eq!(breakers.forget_old(at(86_409.0)), []);
        assert_eq!(breakers.forget_old(at(86_410.0)), [key]);
        assert!(breakers.is_empty());
    }

    #[test]
    fn a_budget_is_three_or_twice_what_is_missing() {
        let mut spent = Spent::default();
        let a = cluster("a");
        assert_eq!(spent.left(&a, 1, 0), 3);
        assert_eq!(spent.left(&a, 5, 2), 8);
        for number in 0..4 {
            spent.spend(&machine(number), &a, at(0.0));
        }
        spent.spend(&machine(0), &a, at(1.0));
        assert_eq!(spent.count(&a), 4, "a machine counts once");
        assert_eq!(spent.left(&a, 5, 2), 4);
        assert_eq!(spent.left(&a, 1, 0), 0);
        spent.exhaust(&a);
        assert_eq!(spent.give_back(&machine(3)), Some(a.clone()));
        assert!(!spent.is_exhausted(&a), "there is something left again");
        assert_eq!(spent.forget_old(&a, at(86_400.0)).len(), 2);
        assert_eq!(spent.clear(&a), [machine(0)]);
        assert_eq!(spent.count(&a), 0);
    }

    /// Whatever a cluster misses and however its machines end: its budget, and two for each that served it.
    /// If a success forgave everything, as it once did, the bound would not hold.
    #[test]
    fn what_is_spent_is_bounded_by_what_came_to_serve() {
        let succeed: [fn(&mut Spent, &ClusterId) -> Vec<MachineId>; 2] =
            [Spent::make_up, Spent::clear];
        let is_bounded = succeed.map(|succeed| {
            (0..200).all(|seed| {
                let mut random = Prng::new(seed);
                let most = 1 + random.below(8);
                let chance = random.below(10) as f64 / 10.0;
                let budget = (SPENT_FOR_ONE * most).max(LEAST_BUDGET);
                let (mut spent, a, b) = (Spent::default(), cluster("a"), cluster("b"));
                spent.spend(&machine(1_000), &b, at(0.0));
                let (mut burnt, mut served, mut missing) = (0, 0, most);
                for number in 0..400 {
                    if missing == 0 {
                        // They went, and are wanted again.
                        missing = most;
                    }
                    if spent.left(&a, missing, 0) == 0 {
                        break;
                    }
                    if random.chance(chance) {
                        let before = spent.count(&a);
                        let made_up = succeed(&mut spent, &a).len();
                        assert_eq!(spent.count(&a), before - made_up);
                        (served, missing) = (served + 1, missing - 1);
                    } else {
                        spent.spend(&machine(number), &a, at(number as f64));
                        burnt += 1;
                    }
                }
                assert_eq!(spent.count(&b), 1, "another cluster's stay its own");
                burnt <= budget + SPENT_FOR_ONE * served
            })
        });
        assert_eq!(is_bounded, [true, false]);
    }

    #[test]
    fn a_success_makes_up_for_the_two_that_were_spent_first() {
        let (mut spent, a) = (Spent::default(), cluster("a"));
        for (number, moment) in [(7, 3.0), (8, 1.0), (9, 2.0)] {
            spent.spend(&machine(number), &a, at(moment));
        }
        spent.exhaust(&a);
        assert_eq!(spent.make_up(&a), [machine(8), machine(9)]);
        assert!(!spent.is_exhausted(&a));
        assert_eq!(spent.make_up(&a), [machine(7)]);
        assert_eq!(spent.make_up(&a), [], "there is no credit for later");
    }
}
