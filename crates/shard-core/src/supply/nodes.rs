//! Nodes: what operators said of them, and which of it is believed (NS-1, SH-17).
//!
//! ```text
//! node report ─▶ not Ready for 10 min ─▶ not_ready ─▶ no credit, demand re-driven
//! ```
//!
//! If more than a tenth of a cluster would stop being ready at once, or more than half of it is not ready
//! already, the report is doubted, not the machines.

use crate::{effect::NodeState, settings::NODE_DEADLINE};
use bigfleet_model::{ClusterId, INSTANCE_TYPE_KEY, Machine, MachineId, Time, ZONE_KEY};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// What operators said of nodes.
#[derive(Clone, Debug, Default)]
pub(super) struct Nodes {
    by_machine: BTreeMap<MachineId, Node>,
    /// Machines that are known not to have a ready node, where nodes are reported at all.
    unready: BTreeSet<MachineId>,
    /// Whether those are others than when it was last asked.
    has_moved: bool,
    /// Marked not ready since, for the freeze.
    flips: BTreeMap<ClusterId, (Time, BTreeSet<MachineId>)>,
    /// Whether a cluster looked partitioned when that was last counted.
    partitioned: BTreeMap<ClusterId, (Time, bool)>,
}

/// So many nodes that are not ready may be a partition; fewer never are.
const FEWEST_PARTITIONED: usize = 3;
/// For so long a count of a cluster's nodes is good: each of thousands of nodes asks for it.
const COUNT_HOLDS: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, Default)]
struct Node {
    name: String,
    is_ready: bool,
    /// An operator has named it since it is expected: one that never was a node is not cut off.
    is_reported: bool,
    /// Since when it should be ready and is not.
    waiting: Option<Time>,
    /// Its machine became Configured since this process began, and it was not ready since.
    is_new: bool,
}

impl Nodes {
    pub(super) fn name(&self, machine: &MachineId) -> &str {
        let node = self.by_machine.get(machine);
        node.map_or("", |node| node.name.as_str())
    }

    pub(super) fn forget_cluster(&mut self, cluster: &ClusterId) {
        self.flips.remove(cluster);
        self.partitioned.remove(cluster);
    }

    pub(super) fn forget(&mut self, machine: &MachineId) {
        self.by_machine.remove(machine);
        self.set_unready(machine, false);
    }

    /// Machines known not to have a ready node, by id.
    pub(super) fn unready(&self) -> impl Iterator<Item = &MachineId> {
        self.unready.iter()
    }

    /// Since when a machine's node is known not to be ready, and whether it never was: nothing where nodes
    /// are not reported.
    pub(super) fn unready_since(&self, machine: &MachineId) -> Option<(Option<Time>, bool)> {
        if !self.unready.contains(machine) {
            return None;
        }
        let node = self.by_machine.get(machine)?;
        Some((node.waiting, node.is_new))
    }

    /// Whether nodes became ready or stopped being so since this was last asked.
    pub(super) fn take_moved(&mut self) -> bool {
        std::mem::take(&mut self.has_moved)
    }

    fn set_unready(&mut self, machine: &MachineId, is_unready: bool) {
        let has_moved = match is_unready {
            true if self.unready.contains(machine) => false,
            true => self.unready.insert(machine.clone()),
            false => self.unready.remove(machine),
        };
        self.has_moved |= has_moved;
    }

    /// A machine became Configured: its node has a deadline, unless it is known to be ready. Where nodes are
    /// reported, it does not serve before.
    pub(super) fn expect(
        &mut self,
        machine: &MachineId,
        is_reported: bool,
        now: Time,
    ) -> Option<Time> {
        let node = self.by_machine.entry(machine.clone()).or_default();
        if node.is_ready {
            return None;
        }
        node.waiting = Some(now);
        node.is_new = true;
        if is_reported {
            self.set_unready(machine, true);
        }
        Some(now + NODE_DEADLINE)
    }

    /// Whether a node was never ready since its machine became Configured.
    pub(super) fn is_new(&self, machine: &MachineId) -> bool {
        let node = self.by_machine.get(machine);
        node.is_some_and(|node| node.is_new)
    }

    /// An operator speaks of a node; returns when it must be ready, if it serves and is not.
    pub(super) fn report(
        &mut self,
        machine: &MachineId,
        name: Option<String>,
        is_ready: bool,
        serves: bool,
        now: Time,
    ) -> Option<Time> {
        let node = self.by_machine.entry(machine.clone()).or_default();
        if let Some(name) = name {
            node.name = name;
            node.is_reported = true;
        }
        node.is_ready = is_ready;
        let deadline = if is_ready {
            node.waiting = None;
            node.is_new = false;
            None
        } else if !serves || node.waiting.is_some() {
            None
        } else {
            node.waiting = Some(now);
            Some(now + NODE_DEADLINE)
        };
        self.set_unready(machine, !is_ready && serves);
        deadline
    }

    /// Whether a node should have become ready by now.
    pub(super) fn is_overdue(&self, machine: &MachineId, now: Time) -> bool {
        let node = self.by_machine.get(machine);
        let since = node.and_then(|node| node.waiting);
        since.is_some_and(|since| since + NODE_DEADLINE <= now)
    }

    /// Whether more than half of a cluster's reported nodes, and at least three, are not ready: then it is
    /// the cluster, or the way to it, that fails. `serving` are its Configured machines.
    pub(super) fn is_partitioned<'m>(
        &mut self,
        cluster: &ClusterId,
        serving: impl Iterator<Item = &'m MachineId>,
        now: Time,
    ) -> bool {
        if let Some((at, is_partitioned)) = self.partitioned.get(cluster)
            && now < *at + COUNT_HOLDS
        {
            return *is_partitioned;
        }
        let nodes = serving.filter_map(|machine| self.by_machine.get(machine));
        let (mut reported, mut not_ready) = (0, 0);
        for node in nodes.filter(|node| node.is_reported) {
            reported += 1;
            not_ready += usize::from(!node.is_ready);
        }
        let is_partitioned = FEWEST_PARTITIONED <= not_ready && reported < 2 * not_ready;
        self.partitioned
            .insert(cluster.clone(), (now, is_partitioned));
        is_partitioned
    }

    /// Whether one more machine of a cluster may stop being ready: at most so many do within a window.
    pub(super) fn flip(
        &mut self,
        machine: &MachineId,
        cluster: &ClusterId,
        most: usize,
        window: Duration,
        now: Time,
    ) -> bool {
        let flips = self.flips.entry(cluster.clone());
        let (began, flipped) = flips.or_insert_with(|| (now, BTreeSet::new()));
        if window <= now.duration_since(*began) {
            *began = now;
            flipped.clear();
        }
        if most <= flipped.len() {
            return false;
        }
        flipped.insert(machine.clone());
        true
    }
}

/// What an operator is told of a machine (NS-2, NS-3).
pub(super) fn node_state(machine: &Machine, node_name: &str) -> NodeState {
    let shape = machine.shape();
    let mut labels = shape.labels.clone();
    for (key, value) in [
        (INSTANCE_TYPE_KEY, &shape.instance_type),
        (ZONE_KEY, &shape.zone),
    ] {
        if !value.is_empty() {
            labels.insert(key.to_owned(), value.clone());
        }
    }
    NodeState {
        machine: machine.id().clone(),
        state: machine.state(),
        host: machine.host().cloned(),
        node_name: node_name.to_owned(),
        last_error: machine.last_error().to_owned(),
        labels,
        resources: shape.effective().clone(),
        removed: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Time {
        Time::from_nanos(seconds * 1_000_000_000)
    }

    /// SH-17: ten minutes from when it should be ready, and not from when it was last said not to be.
    #[test]
    fn a_node_has_ten_minutes_from_when_it_first_was_not_ready() {
        let m1 = MachineId::new("m1").unwrap();
        let mut nodes = Nodes::default();
        assert_eq!(nodes.expect(&m1, false, at(0)), Some(at(600)));
        let name = || Some("n1".to_owned());
        assert_eq!(nodes.report(&m1, name(), false, true, at(100)), None);
        assert!(!nodes.is_overdue(&m1, at(599)));
        assert!(nodes.is_overdue(&m1, at(600)));
        assert_eq!(nodes.report(&m1, None, true, true, at(601)), None);
        assert!(!nodes.is_overdue(&m1, at(9000)));
        assert_eq!(nodes.name(&m1), "n1", "nobody said another");
        assert_eq!(nodes.expect(&m1, false, at(700)), None, "it is ready");
        assert_eq!(nodes.report(&m1, None, false, false, at(800)), None);
        assert!(!nodes.is_overdue(&m1, at(9000)), "it serves nobody");
        let again = nodes.report(&m1, None, false, true, at(900));
        assert_eq!(again, Some(at(1500)));
        nodes.forget(&m1);
        assert_eq!(nodes.name(&m1), "");
    }

    #[test]
    fn only_so_many_stop_being_ready_within_a_window() {
        let [m1, m2, m3] = ["m1", "m2", "m3"].map(|id| MachineId::new(id).unwrap());
        let (a, b) = (ClusterId::new("a").unwrap(), ClusterId::new("b").unwrap());
        let window = Duration::from_secs(10);
        let mut nodes = Nodes::default();
        assert!(nodes.flip(&m1, &a, 2, window, at(0)));
        assert!(nodes.flip(&m2, &a, 2, window, at(9)));
        assert!(!nodes.flip(&m3, &a, 2, window, at(9)));
        assert!(nodes.flip(&m3, &b, 2, window, at(9)), "another cluster's");
        assert!(nodes.flip(&m3, &a, 2, window, at(10)), "a new window");
    }
}
