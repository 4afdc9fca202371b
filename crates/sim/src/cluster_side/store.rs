//! Store: what Kubernetes keeps: objects with uids and versions, and every change in order.
//!
//! ```text
//! put, remove ─▶ one version higher ─▶ log ─▶ streams          compact ─▶ "410 Gone" for whoever is behind
//! ```
//!
//! Nothing here decides anything. An object is as the operator's core reads it, so that no fact is made up on the way.

use crate::size::Size;
use bigfleet_model::Time;
use bigfleet_operator_core::{
    AvailableFacts, NodeFacts, Object, ObjectKey, RequestFacts, UpcomingFacts,
};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

/// The namespace of all Pods.
pub(super) const NAMESPACE: &str = "ns";
/// Changes that a watch can still be answered from.
const LONGEST_LOG: usize = 4_096;

/// What is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Resource {
    Pods,
    Requests,
    Upcoming,
    Available,
    Nodes,
}

/// A Pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pod {
    pub(crate) key: ObjectKey,
    pub(crate) uid: String,
    /// The workload it is of, and which version of its template.
    pub(crate) work: usize,
    pub(crate) template: u32,
    pub(crate) each: Size,
    pub(crate) created: Time,
    /// Its Node; empty while it has none.
    pub(crate) node: String,
    /// Since when, in milliseconds.
    pub(crate) bound_at: u64,
    pub(crate) is_running: bool,
    pub(crate) is_terminating: bool,
    /// Since when the scheduler finds no Node, and its words.
    pub(crate) unschedulable: Option<(Time, String)>,
}

/// An object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Stored {
    Pod(Box<Pod>),
    Other(Object),
}

impl Stored {
    fn resource(&self) -> Resource {
        match self {
            Self::Pod(_) => Resource::Pods,
            Self::Other(Object::Request(_)) => Resource::Requests,
            Self::Other(Object::Upcoming(_)) => Resource::Upcoming,
            Self::Other(Object::Available(_)) => Resource::Available,
            Self::Other(Object::Node(_)) => Resource::Nodes,
        }
    }

    fn key(&self) -> ObjectKey {
        match self {
            Self::Pod(pod) => pod.key.clone(),
            Self::Other(Object::Request(facts)) => facts.key.clone(),
            Self::Other(Object::Upcoming(facts)) => ObjectKey::cluster(&facts.name),
            Self::Other(Object::Available(facts)) => ObjectKey::cluster(&facts.name),
            Self::Other(Object::Node(facts)) => ObjectKey::cluster(&facts.name),
        }
    }
}

/// One change: the object as it is from then on, or as it was when it was removed.
#[derive(Clone, Debug)]
pub(crate) struct StoreChange {
    pub(crate) version: u64,
    pub(crate) resource: Resource,
    pub(crate) key: ObjectKey,
    pub(crate) object: Stored,
    pub(crate) is_gone: bool,
}

/// Everything an API server has.
#[derive(Clone, Debug, Default)]
pub(crate) struct Store {
    version: u64,
    uids: u64,
    pods: BTreeMap<ObjectKey, Pod>,
    requests: BTreeMap<ObjectKey, RequestFacts>,
    upcoming: BTreeMap<String, UpcomingFacts>,
    available: BTreeMap<String, AvailableFacts>,
    nodes: BTreeMap<String, NodeFacts>,
    /// The record of spares.
    pub(crate) spare_record: Option<String>,
    /// Whether the definition of requests is installed.
    pub(crate) is_crd_there: bool,
    /// The lease: its version and its holder.
    pub(crate) lease: Option<(u64, String)>,
    log: VecDeque<Arc<StoreChange>>,
    /// The last version that a watch cannot begin after any more.
    compacted: u64,
    news: Vec<Arc<StoreChange>>,
}

/// Kubernetes keeps whole seconds.
pub(super) fn in_seconds(time: Time) -> Time {
    let seconds = time.duration_since(Time::ZERO).as_secs();
    Time::ZERO + Duration::from_secs(seconds)
}

impl Store {
    pub(crate) fn new() -> Self {
        Self {
            is_crd_there: true,
            ..Self::default()
        }
    }

    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn next_version(&mut self) -> u64 {
        self.version += 1;
        self.version
    }

    pub(crate) fn next_uid(&mut self) -> String {
        self.uids += 1;
        format!("u{}", self.uids)
    }

    pub(crate) fn pods(&self) -> impl Iterator<Item = &Pod> {
        self.pods.values()
    }

    pub(crate) fn pod(&self, key: &ObjectKey) -> Option<&Pod> {
        self.pods.get(key)
    }

    pub(crate) fn pods_on<'a>(&'a self, node: &'a str) -> impl Iterator<Item = &'a Pod> {
        self.pods.values().filter(move |pod| pod.node == node)
    }

    pub(crate) fn requests(&self) -> impl Iterator<Item = &RequestFacts> {
        self.requests.values()
    }

    pub(crate) fn request(&self, key: &ObjectKey) -> Option<&RequestFacts> {
        self.requests.get(key)
    }

    pub(crate) fn upcoming(&self) -> impl Iterator<Item = &UpcomingFacts> {
        self.upcoming.values()
    }

    pub(crate) fn nodes(&self) -> impl Iterator<Item = &NodeFacts> {
        self.nodes.values()
    }

    pub(crate) fn node(&self, name: &str) -> Option<&NodeFacts> {
        self.nodes.get(name)
    }

    pub(crate) fn put_pod(&mut self, pod: Pod) {
        self.pods.insert(pod.key.clone(), pod.clone());
        self.note(Stored::Pod(Box::new(pod)), false);
    }

    pub(crate) fn put(&mut self, mut object: Object) {
        match &mut object {
            Object::Request(facts) => {
                self.requests
                    .insert(facts.key.clone(), facts.as_ref().clone());
            }
            Object::Upcoming(facts) => {
                self.upcoming
                    .insert(facts.name.clone(), facts.as_ref().clone());
            }
            Object::Available(facts) => {
                self.available
                    .insert(facts.name.clone(), facts.as_ref().clone());
            }
            Object::Node(facts) => {
                facts.version = (self.version + 1).to_string();
                self.nodes
                    .insert(facts.name.clone(), facts.as_ref().clone());
            }
        }
        self.note(Stored::Other(object), false);
    }

    /// Changes a Node that is there.
    pub(crate) fn change_node(&mut self, name: &str, change: impl FnOnce(&mut NodeFacts)) {
        if let Some(mut facts) = self.nodes.get(name).cloned() {
            change(&mut facts);
            if self.nodes.get(name) != Some(&facts) {
                self.put(Object::Node(Box::new(facts)));
            }
        }
    }

    /// Changes a Pod that is there.
    pub(crate) fn change_pod(&mut self, key: &ObjectKey, change: impl FnOnce(&mut Pod)) {
        if let Some(mut pod) = self.pods.get(key).cloned() {
            change(&mut pod);
            if self.pods.get(key) != Some(&pod) {
                self.put_pod(pod);
            }
        }
    }

    /// Removes an object; whether it was there.
    pub(crate) fn remove(&mut self, resource: Resource, key: &ObjectKey) -> bool {
        let removed = match resource {
            Resource::Pods => self.pods.remove(key).map(|pod| Stored::Pod(Box::new(pod))),
            Resource::Requests => {
                let request = self.requests.remove(key);
                request.map(|facts| Stored::Other(Object::Request(Box::new(facts))))
            }
            Resource::Upcoming => {
                let upcoming = self.upcoming.remove(&key.name);
                upcoming.map(|facts| Stored::Other(Object::Upcoming(Box::new(facts))))
            }
            Resource::Available => {
                let available = self.available.remove(&key.name);
                available.map(|facts| Stored::Other(Object::Available(Box::new(facts))))
            }
            Resource::Nodes => {
                let node = self.nodes.remove(&key.name);
                node.map(|facts| Stored::Other(Object::Node(Box::new(facts))))
            }
        };
        let was_there = removed.is_some();
        if let Some(object) = removed {
            self.note(object, true);
        }
        was_there
    }

    fn note(&mut self, object: Stored, is_gone: bool) {
        let change = Arc::new(StoreChange {
            version: self.next_version(),
            resource: object.resource(),
            key: object.key(),
            object,
            is_gone,
        });
        self.news.push(Arc::clone(&change));
        self.log.push_back(change);
        if LONGEST_LOG < self.log.len() {
            self.compacted = self.log.pop_front().map_or(0, |oldest| oldest.version);
        }
    }

    /// Changes nobody was told of yet.
    pub(crate) fn take_news(&mut self) -> Vec<Arc<StoreChange>> {
        std::mem::take(&mut self.news)
    }

    /// What changed after a version; `None` if that is no longer known.
    pub(crate) fn since(&self, version: u64) -> Option<Vec<Arc<StoreChange>>> {
        (self.compacted <= version).then(|| {
            let after = self.log.iter().filter(|change| version < change.version);
            after.cloned().collect()
        })
    }

    /// Forgets what changed so far.
    pub(crate) fn compact(&mut self) {
        self.log.clear();
        self.compacted = self.version;
    }

    /// All objects of a kind, in the order of their keys.
    pub(crate) fn list(&self, resource: Resource) -> Vec<Stored> {
        match resource {
            Resource::Pods => {
                let pods = self.pods.values().cloned();
                pods.map(|pod| Stored::Pod(Box::new(pod))).collect()
            }
            Resource::Requests => {
                let all = self.requests.values().cloned();
                all.map(|facts| Stored::Other(Object::Request(Box::new(facts))))
                    .collect()
            }
            Resource::Upcoming => {
                let all = self.upcoming.values().cloned();
                all.map(|facts| Stored::Other(Object::Upcoming(Box::new(facts))))
                    .collect()
            }
            Resource::Available => {
                let all = self.available.values().cloned();
                all.map(|facts| Stored::Other(Object::Available(Box::new(facts))))
                    .collect()
            }
            Resource::Nodes => {
                let all = self.nodes.values().cloned();
                all.map(|facts| Stored::Other(Object::Node(Box::new(facts))))
                    .collect()
            }
        }
    }
}
