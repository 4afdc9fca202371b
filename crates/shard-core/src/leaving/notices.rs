//! Notices: when a provider says it will take machines away (SH-20).
//!
//! ```text
//! T ─▶ clamped ─▶ soon until a quarter of an hour before T ─▶ now
//!                   └─ more than half of a cluster, and at least three: the latest of them stay soon
//! ```
//!
//! Not durable: the next List says it again. A provider that errs does not empty a cluster past rail 1,
//! neither at once nor half by half: a machine that has left because of its notice goes on counting for its
//! cluster while the notice stands.

use bigfleet_model::{ClusterId, Leaving, MachineId, Time};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// So long before a machine is taken away, waiting for its replacement ends.
const TURNS_BEFORE: Duration = Duration::from_secs(15 * 60);
/// A notice longer ago than this is a mistake, and counts as one of now.
const FAR_PAST: Duration = Duration::from_secs(24 * 3600);
/// A notice further ahead than this is a mistake, and counts as one of then.
const FAR_AHEAD: Duration = Duration::from_secs(365 * 24 * 3600);
/// So many notices of one cluster may be a mistake; fewer never are.
const FEWEST: usize = 3;

/// One machine's notice.
#[derive(Clone, Debug)]
struct Notice {
    /// As the provider says it.
    told: Time,
    /// The same, within reason.
    at: Time,
    /// When it was first heard.
    since: Time,
    /// The cluster the machine was last seen bound to since then.
    cluster: Option<ClusterId>,
    word: Leaving,
}

/// What a provider's word comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// What it said before, or still nothing.
    Same,
    /// Another moment, or one for the first time; and what is odd about it.
    New(Option<OddNotice>),
    /// It will not be taken away after all.
    Withdrawn,
}

/// What is odd about a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum OddNotice {
    Past,
    Ahead,
    /// The machine serves nobody.
    Unbound,
}

impl OddNotice {
    pub(crate) const ALL: [Self; 3] = [Self::Past, Self::Ahead, Self::Unbound];

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Past => "past",
            Self::Ahead => "ahead",
            Self::Unbound => "unbound",
        }
    }
}

/// What a provider has announced.
#[derive(Clone, Debug, Default)]
pub(super) struct Notices {
    by_machine: BTreeMap<MachineId, Notice>,
    /// How many notices of each cluster count for less than they say.
    beyond: BTreeMap<ClusterId, usize>,
}

impl Notices {
    pub(super) fn is_empty(&self) -> bool {
        self.by_machine.is_empty()
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = &MachineId> {
        self.by_machine.keys()
    }

    pub(super) fn word(&self, machine: &MachineId) -> Option<Leaving> {
        self.by_machine.get(machine).map(|notice| notice.word)
    }

    pub(super) fn at(&self, machine: &MachineId) -> Option<Time> {
        self.by_machine.get(machine).map(|notice| notice.at)
    }

    /// Since when a notice is known, and when it takes its machine away.
    pub(super) fn heard(&self, machine: &MachineId) -> Option<(Time, Time)> {
        let notice = self.by_machine.get(machine)?;
        Some((notice.since, notice.at))
    }

    pub(super) fn forget(&mut self, machine: &MachineId) {
        self.by_machine.remove(machine);
    }

    pub(super) fn hear(
        &mut self,
        machine: &MachineId,
        told: Option<Time>,
        bound: Option<&ClusterId>,
        now: Time,
    ) -> Heard {
        let Some(told) = told else {
            let was_known = self.by_machine.remove(machine).is_some();
            return if was_known {
                Heard::Withdrawn
            } else {
                Heard::Same
            };
        };
        if let Some(known) = self.by_machine.get_mut(machine) {
            if let Some(bound) = bound {
                known.cluster = Some(bound.clone());
            }
            if known.told == told {
                return Heard::Same;
            }
        }
        let (at, odd) = if told < now - FAR_PAST {
            (now, Some(OddNotice::Past))
        } else if now + FAR_AHEAD < told {
            (now + FAR_AHEAD, Some(OddNotice::Ahead))
        } else {
            (told, bound.is_none().then_some(OddNotice::Unbound))
        };
        let before = self.by_machine.get(machine);
        let notice = Notice {
            told,
            at,
            since: before.map_or(now, |before| before.since),
            cluster: bound
                .or(before.and_then(|one| one.cluster.as_ref()))
                .cloned(),
            // Until the notices of its cluster have been counted: a provider that moves the moment of a machine
            // that leaves now has nobody wait for it again.
            word: before.map_or(Leaving::Soon, |before| before.word),
        };
        self.by_machine.insert(machine.clone(), notice);
        Heard::New(odd)
    }

    /// Takes every word anew; returns the clusters of which notices begin to count for less, with how many.
    pub(super) fn review(
        &mut self,
        now: Time,
        bound: impl Fn(&ClusterId) -> usize,
        is_bound: impl Fn(&MachineId, &ClusterId) -> bool,
    ) -> Vec<(ClusterId, usize)> {
        let mut by_cluster: BTreeMap<ClusterId, Vec<(Time, MachineId)>> = BTreeMap::new();
        for (machine, notice) in &self.by_machine {
            if let Some(cluster) = &notice.cluster {
                let named = by_cluster.entry(cluster.clone()).or_default();
                named.push((notice.at, machine.clone()));
            }
        }
        let mut held: BTreeSet<MachineId> = BTreeSet::new();
        let mut beyond = BTreeMap::new();
        for (cluster, mut named) in by_cluster {
            let has_left = |machine: &MachineId| !is_bound(machine, &cluster);
            let left = named
                .iter()
                .filter(|(_, machine)| has_left(machine))
                .count();
            let all = bound(&cluster) + left;
            if named.len() < FEWEST || 2 * named.len() <= all {
                continue;
            }
            named.sort();
            let late = named.split_off(all / 2);
            beyond.insert(cluster, late.len());
            held.extend(late.into_iter().map(|(_, machine)| machine));
        }
        for (machine, notice) in &mut self.by_machine {
            let is_near = notice.at - TURNS_BEFORE <= now;
            notice.word = if is_near && !held.contains(machine) {
                Leaving::Now
            } else {
                Leaving::Soon
            };
        }
        let before = std::mem::replace(&mut self.beyond, beyond);
        let began = self.beyond.iter();
        let began = began.filter(|(cluster, _)| !before.contains_key(*cluster));
        began
            .map(|(cluster, count)| (cluster.clone(), *count))
            .collect()
    }

    /// When the next notice comes so near that its machine leaves now.
    pub(super) fn next_turn(&self, now: Time) -> Option<Time> {
        let turns = self.by_machine.values().map(|one| one.at - TURNS_BEFORE);
        turns.filter(|turn| now < *turn).min()
    }

    pub(super) fn beyond(&self) -> usize {
        self.beyond.values().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Time {
        Time::from_nanos(seconds * 1_000_000_000)
    }

    fn machine(number: usize) -> MachineId {
        MachineId::new(&format!("m{number:02}")).unwrap()
    }

    fn a() -> ClusterId {
        ClusterId::new("a").unwrap()
    }

    /// The machines that leave now, by number, of so many bound to a.
    fn leave_now(notices: &mut Notices, now: Time, bound: usize, left: &[usize]) -> Vec<usize> {
        let has_left = |id: &MachineId| left.iter().any(|number| machine(*number) == *id);
        notices.review(now, |_| bound - left.len(), |id, _| !has_left(id));
        let now = |number: &usize| notices.word(&machine(*number)) == Some(Leaving::Now);
        (0..100).filter(now).collect()
    }

    #[test]
    fn a_quarter_of_an_hour_before_it_is_now() {
        let mut notices = Notices::default();
        let taken = at(10_000);
        assert_eq!(
            notices.hear(&machine(1), Some(taken), Some(&a()), at(0)),
            Heard::New(None)
        );
        assert_eq!(
            notices.hear(&machine(1), Some(taken), Some(&a()), at(1)),
            Heard::Same
        );
        assert_eq!(notices.next_turn(at(1)), Some(at(9_100)));
        assert!(leave_now(&mut notices, at(9_099), 10, &[]).is_empty());
        assert_eq!(leave_now(&mut notices, at(9_100), 10, &[]), [1]);
        assert_eq!(notices.next_turn(at(9_100)), None);
        let again = notices.hear(&machine(1), Some(at(9_990)), Some(&a()), at(9_100));
        let word = notices.word(&machine(1));
        assert_eq!((again, word), (Heard::New(None), Some(Leaving::Now)));
        let later = at(99_990);
        notices.hear(&machine(1), Some(later), Some(&a()), at(9_100));
        assert!(leave_now(&mut notices, at(9_100), 10, &[]).is_empty());
        assert_eq!(
            notices.hear(&machine(1), None, Some(&a()), at(9_101)),
            Heard::Withdrawn
        );
        assert_eq!(
            notices.hear(&machine(1), None, None, at(9_102)),
            Heard::Same
        );
    }

    /// Seconds taken for nanoseconds, a wrong century: a moment within reason, and somebody hears of it.
    #[test]
    fn an_odd_moment_is_clamped_and_said() {
        let now = at(1_000_000_000);
        let mut notices = Notices::default();
        let mut hear = |number: usize, told| {
            let heard = notices.hear(&machine(number), Some(told), Some(&a()), now);
            (heard, notices.at(&machine(number)).unwrap())
        };
        let odd = |odd| Heard::New(Some(odd));
        assert_eq!(hear(1, at(1)), (odd(OddNotice::Past), now));
        assert_eq!(hear(2, Time::from_nanos(-1)), (odd(OddNotice::Past), now));
        let far = Time::from_nanos(i64::MAX);
        assert_eq!(hear(3, far), (odd(OddNotice::Ahead), now + FAR_AHEAD));
        let lately = now - Duration::from_secs(60);
        assert_eq!(hear(4, lately), (Heard::New(None), lately));
        assert_eq!(hear(4, lately).0, Heard::Same, "said once");
        assert_eq!(
            notices.hear(&machine(5), Some(now), None, now),
            odd(OddNotice::Unbound)
        );
    }

    /// SH-20: half a cluster at most, the soonest first, and not the next half when that has left.
    #[test]
    fn more_than_half_a_cluster_is_not_believed() {
        let mut notices = Notices::default();
        for number in 0..10 {
            let taken = at(100 + i64::from(number < 3));
            notices.hear(&machine(number), Some(taken), Some(&a()), at(0));
        }
        assert_eq!(leave_now(&mut notices, at(0), 20, &[]).len(), 10, "half");
        let soonest = [3, 4, 5, 6, 7];
        assert_eq!(leave_now(&mut notices, at(0), 10, &[]), soonest);
        assert_eq!(notices.beyond(), 5);
        assert_eq!(leave_now(&mut notices, at(9), 10, &[3, 4, 5]), soonest);
        assert_eq!(leave_now(&mut notices, at(9), 14, &soonest).len(), 7);
        notices.hear(&machine(9), None, Some(&a()), at(10));
        assert_eq!(leave_now(&mut notices, at(10), 18, &soonest).len(), 9);
        assert_eq!(notices.beyond(), 0, "nine of eighteen are half");
    }

    #[test]
    fn two_of_two_are_believed() {
        let mut notices = Notices::default();
        for number in 0..2 {
            notices.hear(&machine(number), Some(at(1)), Some(&a()), at(0));
        }
        assert_eq!(leave_now(&mut notices, at(0), 2, &[]).len(), 2);
    }
}
