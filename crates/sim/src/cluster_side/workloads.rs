//! Workloads: controllers that make Pods, the scheduler that places them, and what collects what is left of them.
//!
//! ```text
//! replicas ─▶ Pods ─▶ scheduler ─▶ Node ─▶ running        evicted, deleted ─▶ terminating ─▶ gone ─▶ another Pod
//!                        └─ no room: unschedulable, and why
//! ```
//!
//! The scheduler sees the store as it is and preempts nobody.

use super::{
    Side, SideEvent,
    settings::{Placement, PodRules},
    store::{NAMESPACE, Pod, Resource, in_seconds},
};
use crate::{
    clock::{Moment, seconds},
    plan::{Load, Work},
    size::Size,
};
use bigfleet_model::Profile;
use bigfleet_operator_core::{NodeFacts, ObjectKey};
use std::{collections::BTreeMap, sync::Arc};

/// A controller of Pods, all alike.
#[derive(Clone, Debug)]
pub(crate) struct Workload {
    pub(super) profile: Arc<Profile>,
    pub(super) each: Size,
    pub(super) target: u32,
    began_with: u32,
    /// The version of its template.
    template: u32,
}

impl Workload {
    pub(super) fn of(work: &Work) -> Self {
        let (each, count) = match &work.load {
            Load::Pods { each, count } => (*each, *count),
            Load::Row { .. } => panic!("a cluster with a real operator has Pods, not rows"),
        };
        Self {
            profile: Arc::clone(&work.profile),
            each,
            target: count,
            began_with: count,
            template: 0,
        }
    }
}

impl Side {
    pub(super) fn rules_of(&self, work: usize) -> PodRules {
        self.plan.pods.get(work).copied().unwrap_or_default()
    }

    pub(crate) fn scale(&mut self, work: usize, pods: u32) {
        if let Some(known) = self.works.get_mut(work) {
            known.target = pods;
            self.is_to_reconcile = true;
        }
    }

    pub(crate) fn scale_all(&mut self, per_mille: u32) {
        for known in &mut self.works {
            let pods = u64::from(known.began_with) * u64::from(per_mille) / 1000;
            known.target = pods as u32;
        }
        self.is_to_reconcile = true;
    }

    pub(super) fn roll_over(&mut self, work: usize) {
        if let Some(known) = self.works.get_mut(work) {
            known.template += 1;
            self.is_to_reconcile = true;
        }
    }

    pub(crate) fn resize(&mut self, work: usize, each: Size) {
        if let Some(known) = self.works.get_mut(work) {
            known.each = each;
            known.template += 1;
            self.is_to_reconcile = true;
        }
    }

    /// Every workload gets as many Pods as it is to have.
    pub(super) fn reconcile(&mut self, now: Moment) {
        for number in 0..self.works.len() {
            self.reconcile_one(now, number);
        }
    }

    fn reconcile_one(&mut self, now: Moment, number: usize) {
        let work = self.works[number].clone();
        let there = self.store.pods();
        let there = there.filter(|pod| pod.work == number && !pod.is_terminating);
        let mut there: Vec<Pod> = there.cloned().collect();
        // Whoever waits goes first, then whoever shares its Node with most others, then the youngest.
        there.sort_by_key(|pod| (pod.node.is_empty(), pod.created, pod.key.clone()));
        let mut ranks: BTreeMap<String, u32> = BTreeMap::new();
        there.sort_by_cached_key(|pod| {
            let rank = ranks.entry(pod.node.clone()).or_default();
            *rank += 1;
            (pod.node.is_empty(), *rank)
        });
        let (new, old): (Vec<Pod>, Vec<Pod>) = there
            .into_iter()
            .partition(|pod| pod.template == work.template);
        let target = work.target as usize;
        let surge = if old.is_empty() {
            0
        } else {
            (target / 4).max(1)
        };
        let room = (target + surge).saturating_sub(new.len() + old.len());
        let missing = target.saturating_sub(new.len()).min(room);
        for _ in 0..missing {
            self.create_pod(now, number, &work);
        }
        let running = new.iter().filter(|pod| self.is_healthy(pod)).count();
        // Old Pods give way one for one to new ones that run; those that do not run give way at once.
        let (run, wait): (Vec<Pod>, Vec<Pod>) =
            old.into_iter().partition(|pod| self.is_healthy(pod));
        let spare = (running + run.len()).saturating_sub(target).min(run.len());
        let over = new.len().saturating_sub(target);
        let leaving = wait
            .iter()
            .chain(run.iter().rev().take(spare))
            .chain(new.iter().rev().take(over));
        let leaving: Vec<ObjectKey> = leaving.map(|pod| pod.key.clone()).collect();
        for key in leaving {
            self.end_pod(now, &key);
        }
    }

    fn create_pod(&mut self, now: Moment, number: usize, work: &Workload) {
        let uid = self.store.next_uid();
        self.ledger.pods_made += 1;
        let name = format!("w{number}-{:05}", self.ledger.pods_made);
        self.store.put_pod(Pod {
            key: ObjectKey::namespaced(NAMESPACE, &name),
            uid,
            work: number,
            template: work.template,
            each: work.each,
            created: in_seconds(now.time()),
            node: String::new(),
            bound_at: 0,
            is_running: false,
            is_terminating: false,
            unschedulable: None,
        });
    }

    /// A Pod is told to end; where nobody runs it, it is gone at once.
    pub(super) fn end_pod(&mut self, now: Moment, key: &ObjectKey) {
        let Some(pod) = self.store.pod(key) else {
            return;
        };
        if pod.node.is_empty() {
            self.remove_pod(key);
            return;
        }
        let takes = self.dice.between(500, 30_000);
        self.store.change_pod(key, |pod| pod.is_terminating = true);
        self.planned
            .push((now.after(takes), SideEvent::Ended(key.clone())));
    }

    /// The time of a Pod is over: its kubelet removes it, if there is one.
    pub(super) fn pod_ended(&mut self, now: Moment, key: &ObjectKey) {
        let Some(pod) = self.store.pod(key).filter(|pod| pod.is_terminating) else {
            return;
        };
        let node = pod.node.clone();
        let is_there = self.store.node(&node).is_some();
        if self.runs_node(&node) || !is_there {
            self.remove_pod(key);
        } else {
            let again = now.after(seconds(20));
            self.planned.push((again, SideEvent::Ended(key.clone())));
        }
    }

    pub(super) fn remove_pod(&mut self, key: &ObjectKey) {
        self.store.remove(Resource::Pods, key);
        self.is_to_collect = true;
    }

    /// Requests whose Pods are gone are collected, and Pods whose Nodes are.
    pub(super) fn collect(&mut self, now: Moment) {
        let is_orphan = |owner: &bigfleet_operator_core::Owner| {
            let pod = self.store.pod(&owner.key);
            pod.is_none_or(|pod| pod.uid != owner.uid)
        };
        let requests = self.store.requests();
        let orphans = requests.filter(|one| one.owner.as_ref().is_some_and(is_orphan));
        let orphans: Vec<ObjectKey> = orphans.map(|one| one.key.clone()).collect();
        for key in orphans {
            self.store.remove(Resource::Requests, &key);
        }
        let lost = self
            .store
            .pods()
            .filter(|pod| !pod.node.is_empty() && self.store.node(&pod.node).is_none());
        let lost: Vec<ObjectKey> = lost.map(|pod| pod.key.clone()).collect();
        for key in lost {
            self.store.change_pod(&key, |pod| pod.is_terminating = true);
            self.pod_ended(now, &key);
        }
    }

    /// The scheduler looks at every Pod that waits: the highest priority first, then the oldest.
    pub(super) fn schedule(&mut self, now: Moment) {
        let waiting = self.store.pods();
        let waiting = waiting.filter(|pod| pod.node.is_empty() && !pod.is_terminating);
        let mut waiting: Vec<Pod> = waiting.cloned().collect();
        if waiting.is_empty() {
            return;
        }
        waiting.sort_by_key(|pod| {
            let priority = self.works[pod.work].profile.priority();
            (std::cmp::Reverse(priority), pod.created, pod.key.clone())
        });
        let mut free = self.room();
        for pod in waiting {
            match self.place_for(&pod, &free) {
                Ok(name) => {
                    if let Some(room) = free.get_mut(&name) {
                        *room = room.minus(pod.each);
                    }
                    self.store.change_pod(&pod.key, |pod| {
                        pod.node = name;
                        pod.bound_at = now.0;
                        pod.unschedulable = None;
                    });
                    let runs = now.after(self.dice.between(200, 5_000));
                    self.planned.push((runs, SideEvent::Runs(pod.key)));
                }
                Err(why) => {
                    let since = pod.unschedulable.as_ref().map(|(since, _)| *since);
                    let since = since.unwrap_or(in_seconds(now.time()));
                    self.store
                        .change_pod(&pod.key, |pod| pod.unschedulable = Some((since, why)));
                }
            }
        }
    }

    /// What is left on each Node that takes Pods.
    fn room(&self) -> BTreeMap<String, Size> {
        let open = self.store.nodes();
        let open = open.filter(|node| node.is_ready && !node.is_cordoned);
        let mut free: BTreeMap<String, Size> = open
            .map(|node| (node.name.clone(), Size::offered(&node.allocatable)))
            .collect();
        for pod in self.store.pods() {
            if let Some(room) = free.get_mut(&pod.node) {
                *room = room.minus(pod.each);
            }
        }
        free
    }

    fn place_for(&self, pod: &Pod, free: &BTreeMap<String, Size>) -> Result<String, String> {
        let rules = self.rules_of(pod.work);
        let nodes = self.store.nodes().count();
        let said = |why: &str| format!("0/{nodes} nodes are available: {nodes} {why}.");
        if rules.are_hopeless {
            return Err(said("Insufficient cpu"));
        }
        let matching = free.iter().filter(|(name, _)| {
            let node = self.store.node(name);
            node.is_some_and(|node| matches(&self.works[pod.work].profile, node))
        });
        let roomy = matching.filter(|(_, room)| 0 < room.holds(pod.each));
        let roomy: Vec<(&String, &Size)> = roomy.collect();
        if roomy.is_empty() {
            return Err(said("Insufficient cpu"));
        }
        let is_taken = |name: &str| {
            let mut others = self.store.pods_on(name);
            rules.are_apart && others.any(|other| other.work == pod.work)
        };
        let mut fits = roomy.into_iter().filter(|(name, _)| !is_taken(name));
        let chosen = match self.plan.placement {
            Placement::FirstFit => fits.next(),
            Placement::LeastAllocated => {
                fits.max_by_key(|(name, room)| (room.cpu_milli, std::cmp::Reverse((*name).clone())))
            }
        };
        let chosen = chosen.map(|(name, _)| name.clone());
        chosen.ok_or_else(|| said("node(s) didn't match pod anti-affinity rules"))
    }

    /// Pods that wait and that some machine of the fleet could host.
    pub(crate) fn pending(&self) -> u32 {
        let waiting = self.store.pods().filter(|pod| {
            pod.node.is_empty() && !pod.is_terminating && !self.rules_of(pod.work).are_hopeless
        });
        let made = waiting.count();
        let there = self.store.pods().filter(|pod| !pod.is_terminating).count();
        let wanted: usize = self.works.iter().map(|work| work.target as usize).sum();
        (made + wanted.saturating_sub(there)) as u32
    }

    pub(crate) fn live(&self) -> u32 {
        let there = self.store.pods().filter(|pod| !pod.is_terminating);
        there.count() as u32
    }
}

/// Whether a Node has the labels a Pod asks for.
pub(super) fn matches(profile: &Profile, node: &NodeFacts) -> bool {
    let mut rules = profile.requirements().iter();
    rules.all(|rule| rule.accepts(node.labels.get(rule.key()).map(String::as_str)))
}
