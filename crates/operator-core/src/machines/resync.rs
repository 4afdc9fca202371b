//! Resync: what the shard no longer names is gone, if its word is whole (OP-25, OP-41, OP-42).
//!
//! ```text
//! begin, frames, end with the number of ids between ── equal ──▶ not named: UpcomingNode deleted
//!                                                   └─ else ──▶ nothing
//! more than 10 and more than half not named ──▶ after 10 min in which none of them was named
//! their Nodes ──▶ once not Ready for 15 min, and only if at most half were not named
//! ```
//!
//! Left behind, a Node would keep a machine that returns under its name cordoned. Deleted by mistake, it would take its
//! Pods with it. So a Node has to be silent for itself as well.

use crate::session::Resync;
use bigfleet_model::{MachineId, Time};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// As many absent at once are deleted without waiting.
const FEW: usize = 10;
/// So long a mass of absent machines waits, and roll-ups to a strange shard rest.
const SECOND_THOUGHTS: Duration = Duration::from_secs(600);
/// A Node that was not named must have been silent for so long.
const ORPHAN_SILENT_FOR: Duration = Duration::from_secs(900);
/// A Node whose machine left must have been silent for so long (OP-41).
const LEFT_SILENT_FOR: Duration = Duration::from_secs(60);
/// So many Ready machines make a shard that names none a strange one (OP-25).
const STRANGE_FROM: usize = 10;

/// What a counted resync says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Absent {
    /// Machines whose UpcomingNode goes now.
    pub(crate) delete: Vec<MachineId>,
    /// The shard knows none of many machines.
    pub(crate) is_strange: bool,
}

/// Nodes to delete once they are silent, UpcomingNodes to delete later, and how long roll-ups rest.
#[derive(Clone, Debug, Default)]
pub(crate) struct Departures {
    doomed: BTreeSet<MachineId>,
    doom: Option<Time>,
    rest_until: Option<Time>,
    /// Nodes of machines that left, and how long each must have been silent.
    leaving: BTreeMap<String, (MachineId, Duration)>,
}

impl Departures {
    /// A machine is named: it is there.
    pub(crate) fn named(&mut self, now: Time, machine: &MachineId) {
        self.rest_until = None;
        if self.doomed.remove(machine) {
            self.doom = Some(now + SECOND_THOUGHTS).filter(|_| !self.doomed.is_empty());
        }
        self.leaving.retain(|_, (leaving, _)| leaving != machine);
    }

    /// A machine left, and this was its Node (OP-41).
    pub(crate) fn left(&mut self, machine: &MachineId, node: String) {
        self.doomed.remove(machine);
        self.leaving
            .insert(node, (machine.clone(), LEFT_SILENT_FOR));
    }

    /// A resync is over. `upcoming`: machines with an UpcomingNode; `labelled`: Nodes with a machine's label.
    pub(crate) fn resynced(
        &mut self,
        now: Time,
        resync: &Resync,
        upcoming: &BTreeSet<MachineId>,
        ready: usize,
        labelled: &BTreeMap<String, MachineId>,
    ) -> Absent {
        self.doomed.clear();
        self.doom = None;
        if !resync.is_counted {
            return Absent::default();
        }
        let is_strange = STRANGE_FROM <= ready && resync.named.is_empty();
        if is_strange {
            self.rest_until = Some(now + SECOND_THOUGHTS);
        }
        let absent: BTreeSet<MachineId> = upcoming.difference(&resync.named).cloned().collect();
        let orphans: Vec<_> = labelled
            .iter()
            .filter(|(_, machine)| !resync.named.contains(*machine))
            .collect();
        if 2 * orphans.len() <= labelled.len() {
            let silent = |(node, machine): (&String, &MachineId)| {
                (node.clone(), (machine.clone(), ORPHAN_SILENT_FOR))
            };
            for (node, terms) in orphans.into_iter().map(silent) {
                self.leaving.entry(node).or_insert(terms);
            }
        }
        if FEW < absent.len() && upcoming.len() < 2 * absent.len() {
            self.doomed = absent;
            self.doom = Some(now + SECOND_THOUGHTS);
            return Absent {
                delete: Vec::new(),
                is_strange,
            };
        }
        Absent {
            delete: absent.into_iter().collect(),
            is_strange,
        }
    }

    /// The session is over: what was not named may be named in the next.
    pub(crate) fn session_ends(&mut self) {
        self.doomed.clear();
        self.doom = None;
        self.rest_until = None;
    }

    /// OP-25: whether roll-ups rest.
    pub(crate) fn rests(&self, now: Time) -> bool {
        self.rest_until.is_some_and(|until| now < until)
    }

    /// UpcomingNodes whose time has come.
    pub(crate) fn due(&mut self, now: Time) -> Vec<MachineId> {
        if self.doom.is_none_or(|doom| now < doom) {
            return Vec::new();
        }
        self.doom = None;
        std::mem::take(&mut self.doomed).into_iter().collect()
    }

    /// Whether the Node is to go, and from which moment on if it stays as it is: not Ready since then.
    pub(crate) fn node_goes(&self, node: &str, not_ready_since: Option<Time>) -> Option<Time> {
        let (_, silent_for) = self.leaving.get(node)?;
        not_ready_since.map(|since| since + *silent_for)
    }

    pub(crate) fn leaving(&self) -> impl Iterator<Item = &String> {
        self.leaving.keys()
    }

    /// The Node is gone.
    pub(crate) fn node_gone(&mut self, node: &str) {
        self.leaving.remove(node);
    }

    pub(crate) fn next(&self) -> Option<Time> {
        Time::earliest(self.doom, self.rest_until)
    }

    pub(crate) fn rest_ends(&mut self, now: Time) {
        self.rest_until = self.rest_until.filter(|until| now < *until);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(numbers: std::ops::Range<usize>) -> BTreeSet<MachineId> {
        numbers
            .map(|n| MachineId::new(&format!("m{n:02}")).unwrap())
            .collect()
    }

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    fn resync(named: std::ops::Range<usize>, is_counted: bool) -> Resync {
        Resync {
            named: ids(named),
            is_counted,
        }
    }

    fn labelled(numbers: std::ops::Range<usize>) -> BTreeMap<String, MachineId> {
        ids(numbers)
            .into_iter()
            .map(|id| (format!("n-{id}"), id))
            .collect()
    }

    /// EX-OP8: one that left is cleaned up, a number that does not agree changes nothing, and a shard that knows none
    /// of many machines is given ten minutes.
    #[test]
    fn ex_op8_only_a_counted_resync_removes_and_a_mass_waits() {
        let mut departures = Departures::default();
        let absent = departures.resynced(
            at(0),
            &resync(0..39, true),
            &ids(0..40),
            40,
            &labelled(0..40),
        );
        assert_eq!(absent.delete, ids(39..40).into_iter().collect::<Vec<_>>());
        assert_eq!(departures.node_goes("n-m39", Some(at(5))), Some(at(905)));
        assert_eq!(departures.node_goes("n-m39", None), None, "it is Ready");
        assert_eq!(departures.node_goes("n-m38", Some(at(5))), None);

        let mut departures = Departures::default();
        let absent = departures.resynced(
            at(0),
            &resync(0..39, false),
            &ids(0..40),
            40,
            &labelled(0..40),
        );
        assert_eq!(absent, Absent::default());
        assert_eq!(departures.node_goes("n-m39", Some(at(5))), None);

        let mut departures = Departures::default();
        let absent = departures.resynced(
            at(0),
            &resync(0..0, true),
            &ids(0..30),
            30,
            &labelled(0..30),
        );
        assert!(absent.is_strange && absent.delete.is_empty());
        assert!(departures.rests(at(599)) && !departures.rests(at(600)));
        assert_eq!(departures.due(at(599)), []);
        assert_eq!(departures.due(at(600)).len(), 30);
        assert_eq!(
            departures.node_goes("n-m01", Some(at(0))),
            None,
            "more than half were not named"
        );
    }

    #[test]
    fn one_that_is_named_after_all_gives_the_others_time() {
        let mut departures = Departures::default();
        departures.resynced(
            at(0),
            &resync(0..0, true),
            &ids(0..30),
            30,
            &labelled(0..30),
        );
        departures.named(at(500), ids(3..4).first().unwrap());
        assert!(!departures.rests(at(501)));
        assert_eq!(departures.due(at(600)), []);
        assert_eq!(departures.due(at(1100)).len(), 29);
    }

    /// OP-41.
    #[test]
    fn a_machine_that_left_takes_its_silent_node_along_unless_it_returns() {
        let mut departures = Departures::default();
        let machine = ids(1..2).first().unwrap().clone();
        departures.left(&machine, "n1".to_owned());
        assert_eq!(departures.node_goes("n1", Some(at(10))), Some(at(70)));
        departures.named(at(20), &machine);
        assert_eq!(departures.node_goes("n1", Some(at(10))), None);
    }
}
