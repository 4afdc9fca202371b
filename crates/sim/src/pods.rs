//! Pods of one cluster: bound to nodes, evicted from them, and back again, counted per workload.
//!
//! ```text
//! node joins ─▶ bind ─▶ bound ── node gone, drained ──▶ evicted ── controller ──▶ pending ─▶ bind
//!                                                          └─ no controller ──▶ lost
//! ```
//!
//! Pods of a workload are alike, so they are counted, not named: so many on each node, so many
//! pending. A gang's Pods bind only in the domain of the first one bound.

use crate::{
    plan::{ClusterPlan, Load, Work},
    size::Size,
};
use bigfleet_model::{Amounts, MachineId, Profile, Row, Shape};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
    sync::Arc,
};

/// A node that takes Pods.
#[derive(Clone, Debug)]
struct Node {
    shape: Arc<Shape>,
    free: Size,
    cordoned: bool,
}

/// One workload.
#[derive(Clone, Debug)]
struct Running {
    work: Work,
    /// Pods there should be.
    target: u32,
    /// Pods there are.
    live: u32,
    bound: BTreeMap<MachineId, u32>,
    /// A row that is not made of Pods: how much of it there is, in thousandths.
    per_mille: u32,
}

/// All Pods of a cluster.
#[derive(Clone, Debug)]
pub(crate) struct Pods {
    works: Vec<Running>,
    nodes: BTreeMap<MachineId, Node>,
    managed: bool,
    pending_only: bool,
    pub(crate) evicted: u64,
}

impl Running {
    fn on_nodes(&self) -> u32 {
        self.bound.values().sum()
    }

    fn each(&self) -> Option<Size> {
        match &self.work.load {
            Load::Pods { each, .. } => Some(*each),
            Load::Row { .. } => None,
        }
    }

    /// The domain the gang has begun to bind in.
    fn anchor(&self, nodes: &BTreeMap<MachineId, Node>) -> Option<String> {
        let key = self.work.profile.same_key()?;
        let first = self.bound.keys().next()?;
        let value = nodes.get(first)?.shape.attribute(key)?;
        Some(value.to_owned())
    }

    fn row(&self, pending_only: bool) -> Option<Row> {
        let (aggregate, min_unit) = match &self.work.load {
            Load::Pods { each, .. } => {
                let counted = if pending_only {
                    self.live - self.on_nodes()
                } else {
                    self.live
                };
                let unit = each.amounts();
                (unit.scale(counted.into()), unit)
            }
            Load::Row { aggregate, unit } => (scaled(aggregate, self.per_mille), unit.clone()),
        };
        (!aggregate.is_zero()).then(|| Row {
            profile: Arc::clone(&self.work.profile),
            aggregate,
            min_unit,
            group: self.work.group.clone(),
            whole_units: self.work.whole,
        })
    }
}

fn scaled(amounts: &Amounts, per_mille: u32) -> Amounts {
    let entry = |(name, milli): (&bigfleet_model::Dimension, i128)| {
        (name.clone(), milli * i128::from(per_mille) / 1000)
    };
    match per_mille {
        1000 => amounts.clone(),
        _ => Amounts::from_entries(amounts.iter().map(entry)),
    }
}

impl Pods {
    pub(crate) fn new(plan: &ClusterPlan) -> Self {
        let running = |work: &Work| {
            let target = match work.load {
                Load::Pods { count, .. } => count,
                Load::Row { .. } => 0,
            };
            Running {
                work: work.clone(),
                target,
                live: target,
                bound: BTreeMap::new(),
                per_mille: 1000,
            }
        };
        Self {
            works: plan.works.iter().map(running).collect(),
            nodes: BTreeMap::new(),
            managed: plan.managed,
            pending_only: plan.pending_only,
            evicted: 0,
        }
    }

    /// The cluster's whole demand.
    pub(crate) fn rows(&self) -> Vec<Row> {
        let rows = self.works.iter().map(|work| work.row(self.pending_only));
        rows.flatten().collect()
    }

    pub(crate) fn pending(&self) -> u32 {
        let pending = self.works.iter().map(|work| work.live - work.on_nodes());
        pending.sum()
    }

    pub(crate) fn live(&self) -> u32 {
        self.works.iter().map(|work| work.live).sum()
    }

    pub(crate) fn has_node(&self, machine: &MachineId) -> bool {
        self.nodes.contains_key(machine)
    }

    /// The machines that are nodes.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = &MachineId> {
        self.nodes.keys()
    }

    /// A node joined, and takes Pods.
    pub(crate) fn join(&mut self, machine: MachineId, shape: Arc<Shape>) {
        self.add_node(machine, shape);
        self.bind();
    }

    /// A node that is there from the start; whoever adds several binds once.
    pub(crate) fn add_node(&mut self, machine: MachineId, shape: Arc<Shape>) {
        let free = Size::of(&shape);
        let node = Node {
            shape,
            free,
            cordoned: false,
        };
        self.nodes.insert(machine, node);
    }

    pub(crate) fn cordon(&mut self, machine: &MachineId, cordoned: bool) {
        if let Some(node) = self.nodes.get_mut(machine) {
            node.cordoned = cordoned;
        }
        if !cordoned {
            self.bind();
        }
    }

    /// Pods of a node are evicted; it stays, cordoned.
    pub(crate) fn evict(&mut self, machine: &MachineId) {
        for work in &mut self.works {
            let Some(count) = work.bound.remove(machine) else {
                continue;
            };
            self.evicted += u64::from(count);
            if !self.managed {
                work.live -= count;
                work.target = work.target.min(work.live);
            }
        }
        if let Some(node) = self.nodes.get_mut(machine) {
            node.free = Size::of(&node.shape);
            node.cordoned = true;
        }
        self.bind();
    }

    /// A node is gone, with whatever was on it.
    pub(crate) fn lose(&mut self, machine: &MachineId) {
        if self.nodes.contains_key(machine) {
            self.evict(machine);
            self.nodes.remove(machine);
        }
    }

    /// A workload now has so many Pods: new ones are pending, pending ones go first.
    pub(crate) fn scale(&mut self, work: usize, pods: u32) {
        let Some(work) = self.works.get_mut(work) else {
            return;
        };
        (work.target, work.live) = (pods, pods);
        let Some(each) = work.each() else {
            return;
        };
        let mut over = work.on_nodes().saturating_sub(pods);
        let nodes: Vec<MachineId> = work.bound.keys().rev().cloned().collect();
        for machine in nodes {
            let Some(count) = work.bound.get_mut(&machine) else {
                continue;
            };
            let gone = over.min(*count);
            *count -= gone;
            over -= gone;
            if *count == 0 {
                work.bound.remove(&machine);
            }
            if let Some(node) = self.nodes.get_mut(&machine) {
                node.free = node.free.minus(each.times(-i64::from(gone)));
            }
        }
        self.bind();
    }

    /// Every workload has so many thousandths of what it began with.
    pub(crate) fn scale_all(&mut self, per_mille: u32) {
        for number in 0..self.works.len() {
            match self.works[number].work.load {
                Load::Pods { count, .. } => {
                    let pods = u64::from(count) * u64::from(per_mille) / 1000;
                    self.scale(number, pods as u32);
                }
                Load::Row { .. } => self.works[number].per_mille = per_mille,
            }
        }
    }

    /// A workload that is a row has so many thousandths of what it began with.
    pub(crate) fn scale_row(&mut self, work: usize, per_mille: u32) {
        if let Some(running) = self.works.get_mut(work) {
            running.per_mille = per_mille;
        }
    }

    /// A workload's row asks for whole units from now on, or no longer.
    pub(crate) fn set_whole(&mut self, work: usize, whole: bool) {
        if let Some(running) = self.works.get_mut(work) {
            running.work.whole = whole;
        }
    }

    /// A workload's Pods are replaced by as many of another size, which wait for room.
    pub(crate) fn resize(&mut self, work: usize, each: Size) {
        let pods = self.works.get(work).map_or(0, |running| running.live);
        self.scale(work, 0);
        if let Some(running) = self.works.get_mut(work) {
            running.work.load = Load::Pods { each, count: pods };
        }
        self.scale(work, pods);
    }

    /// How many Pods are on a node.
    pub(crate) fn on(&self, machine: &MachineId) -> u32 {
        let bound = self.works.iter().filter_map(|work| work.bound.get(machine));
        bound.sum()
    }

    /// Whether a node takes no Pods, though it may have some.
    pub(crate) fn is_cordoned(&self, machine: &MachineId) -> bool {
        self.nodes.get(machine).is_some_and(|node| node.cordoned)
    }

    /// A workload's priority is edited.
    pub(crate) fn set_priority(&mut self, work: usize, priority: i32) {
        if let Some(running) = self.works.get_mut(work) {
            let old = &running.work.profile;
            running.work.profile = Arc::new(Profile::new(
                old.requirements().to_vec(),
                old.spread().to_vec(),
                priority,
                old.interruption(),
                old.reclamation(),
            ));
        }
    }

    /// Binds what is pending: gangs, then others; on the node with the most room, then the least id.
    pub(crate) fn bind(&mut self) {
        let mut order: Vec<usize> = (0..self.works.len()).collect();
        order.sort_by_key(|number| (self.works[*number].work.group.is_empty(), *number));
        for number in order {
            self.bind_work(number);
        }
    }

    /// Where a gang is to begin: the fullest domain that still holds all of it, else the emptiest.
    fn domain_for(
        &self,
        key: &str,
        pods: u32,
        usable: &[(u32, Reverse<MachineId>)],
    ) -> Option<String> {
        let mut rooms: BTreeMap<&str, u32> = BTreeMap::new();
        for (room, Reverse(machine)) in usable {
            let node = self.nodes.get(machine)?;
            *rooms.entry(node.shape.attribute(key)?).or_default() += room;
        }
        let whole = rooms.iter().filter(|(_, room)| pods <= **room);
        let fullest = whole.min_by_key(|(value, room)| (**room, **value));
        let emptiest = || {
            rooms
                .iter()
                .max_by_key(|(value, room)| (**room, Reverse(**value)))
        };
        let chosen = fullest.or_else(emptiest);
        chosen.map(|(value, _)| (*value).to_owned())
    }

    fn bind_work(&mut self, number: usize) {
        let work = &self.works[number];
        let Some(each) = work.each() else {
            return;
        };
        let mut pending = work.live - work.on_nodes();
        if pending == 0 {
            return;
        }
        let mut anchor = work.anchor(&self.nodes);
        let profile = Arc::clone(&work.work.profile);
        let key = profile.same_key();
        let usable = self.nodes.iter().filter_map(|(machine, node)| {
            let room = node.free.holds(each);
            let fits = !node.cordoned && 0 < room && node.shape.matches(&profile);
            fits.then(|| (room, Reverse(machine.clone())))
        });
        let usable: Vec<_> = usable.collect();
        if let Some(key) = key.filter(|_| anchor.is_none()) {
            anchor = self.domain_for(key, pending, &usable);
        }
        let work = &mut self.works[number];
        // One Pod at a time on the node with the most room, as a scheduler that spreads does.
        let mut usable = BinaryHeap::from(usable);
        while 0 < pending
            && let Some((room, Reverse(machine))) = usable.pop()
        {
            let Some(node) = self.nodes.get_mut(&machine) else {
                continue;
            };
            if let Some(key) = key {
                let here = node.shape.attribute(key).map(str::to_owned);
                if anchor != here {
                    continue;
                }
            }
            pending -= 1;
            node.free = node.free.minus(each);
            *work.bound.entry(machine.clone()).or_default() += 1;
            if 1 < room {
                usable.push((room - 1, Reverse(machine)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::{pool, work};

    fn pods(managed: bool) -> Pods {
        let works = vec![work(Size::plain(1, 1), 6).build()];
        let plan = ClusterPlan {
            managed,
            ..ClusterPlan::new("a", works)
        };
        Pods::new(&plan)
    }

    fn join(pods: &mut Pods, name: &str) -> MachineId {
        let offer = &pool("m", Size::plain(4, 4), 1).build()[0].offer;
        let mut cloud = crate::cloud::Cloud::new(1, &[], |_| None);
        let machine = MachineId::new(name).unwrap();
        pods.join(machine.clone(), cloud.shape(offer));
        machine
    }

    #[test]
    fn evicted_pods_come_back_and_bind_elsewhere() {
        let mut pods = pods(true);
        let first = join(&mut pods, "m1");
        assert_eq!((pods.live(), pods.pending()), (6, 2));
        join(&mut pods, "m2");
        assert_eq!(pods.pending(), 0);
        pods.lose(&first);
        assert_eq!((pods.live(), pods.pending()), (6, 2));
        assert_eq!(pods.evicted, 4);
        pods.scale(0, 3);
        assert_eq!((pods.live(), pods.pending()), (3, 0));
    }

    #[test]
    fn without_a_controller_an_evicted_pod_is_demand_that_is_gone() {
        let mut pods = pods(false);
        let first = join(&mut pods, "m1");
        pods.lose(&first);
        assert_eq!((pods.live(), pods.rows().len()), (2, 1));
    }
}
