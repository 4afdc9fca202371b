//! Controller: the pod controller as a value: Pods and requests in, writes out (OP-47, OP-60).
//!
//! ```text
//! Pod, request, Node ─▶ what should be ── differs from what is ──▶ create, patch, delete, condition, annotation
//! ```
//!
//! Nothing is written before Pods and requests are whole: a Pod that was not listed yet would look like a request too
//! many. A request is a function of its Pod, so a write that was lost is made again by comparing.

use super::{
    brief::PodBrief,
    request::{PodConfig, PodFacts, request_name, request_of},
    seen::{disruption_of, stuck_of},
};
use crate::objects::{ObjectKey, RequestSpec, Served, Stuck};
use bigfleet_model::Time;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// Conditions and annotations are at least so far apart: ten a second in all.
const WORD_SPACING: Duration = Duration::from_millis(100);
/// A write that shows no effect is made again.
const TRY_AGAIN: Duration = Duration::from_secs(10);

/// A request as the pod controller sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownRequest {
    /// Where it is.
    pub key: ObjectKey,
    /// The uid of the Pod it is for, by its label.
    pub pod_uid: String,
    /// When it was made.
    pub created: Time,
    /// What it asks for.
    pub spec: RequestSpec,
    /// Whether it has a status.
    pub has_status: bool,
    /// The condition `Stuck`, while it is True.
    pub stuck: Option<Stuck>,
    /// The condition `Served`, if it is True or False.
    pub served: Option<Served>,
}

/// A Node as the pod controller sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShownNode {
    /// Its annotation `disruption`.
    pub disruption: Option<u8>,
    /// Its annotation `empty-since`.
    pub empty_since: Option<Time>,
    /// Whether it is none of ours.
    pub is_unmanaged: bool,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum PodEvent {
    /// A moment asked for by [`PodEffect::WakeAt`] has come.
    Woken,
    /// A Pod as it is now.
    Pod(Box<PodFacts>),
    /// A Pod is gone.
    PodGone(ObjectKey),
    /// A request as it is now.
    Request(Box<ShownRequest>),
    /// A request is gone.
    RequestGone(ObjectKey),
    /// A Node as it is now; `None` if it is gone.
    Node(String, Option<ShownNode>),
    /// Pods, requests and Nodes were listed completely.
    Whole,
}

/// Something to do.
#[derive(Clone, Debug, PartialEq)]
pub enum PodEffect {
    /// Wake the controller at this moment; replaces the moment asked for before.
    WakeAt(Time),
    /// Create a request owned by its Pod, and write `Pending` to its status.
    Create {
        /// Where.
        key: ObjectKey,
        /// The Pod that owns it: its name and uid.
        pod: (String, String),
        /// What it asks for.
        spec: Box<RequestSpec>,
    },
    /// Write `Pending` to the status of a request that has none.
    Pend(ObjectKey),
    /// Make a request say this.
    Patch(ObjectKey, Box<RequestSpec>),
    /// Delete a request.
    Delete(ObjectKey),
    /// Write the condition `Stuck`: True with this, or False.
    Stick(ObjectKey, Option<Stuck>),
    /// Tell a Pod, by an Event, how it is served.
    Tell {
        /// The Pod.
        pod: ObjectKey,
        /// Which one of that name.
        uid: String,
        /// What its request says.
        served: Served,
    },
    /// Write the annotations of a Node.
    Annotate {
        /// Which Node.
        node: String,
        /// What a drain would disturb.
        disruption: u8,
        /// Since when it is empty.
        empty_since: Option<Time>,
    },
}

/// The pod controller.
#[derive(Clone, Debug, Default)]
pub struct PodController {
    config: PodConfig,
    is_whole: bool,
    now: Option<Time>,
    pods: BTreeMap<ObjectKey, PodFacts>,
    /// Requests by the uid of their Pod.
    requests: BTreeMap<String, BTreeMap<ObjectKey, ShownRequest>>,
    pod_uid_of: BTreeMap<ObjectKey, String>,
    nodes: BTreeMap<String, ShownNode>,
    on_node: BTreeMap<String, BTreeSet<ObjectKey>>,
    /// Pods whose requests are to be compared, and from when on.
    dirty: BTreeSet<(Time, ObjectKey)>,
    /// Words to say: Nodes first, since emptiness goes first, then requests.
    nodes_to_say: BTreeSet<String>,
    requests_to_say: BTreeSet<ObjectKey>,
    next_word: Option<Time>,
    /// Words that left, to be looked at again: one that shows no effect was lost.
    nodes_said: BTreeSet<(Time, String)>,
    requests_said: BTreeSet<(Time, ObjectKey)>,
    /// Writes on their way, until their effect is seen or it is time to try again.
    waiting: BTreeMap<ObjectKey, Time>,
    woken_at: Option<Time>,
}

impl PodController {
    /// A controller that knows nothing yet.
    pub fn new(config: PodConfig) -> Self {
        Self {
            config,
            ..Self::default()
        }
    }

    /// Takes in what happened and says what to do about it.
    pub fn handle(&mut self, now: Time, event: PodEvent, effects: &mut Vec<PodEffect>) {
        let now = self.now.map_or(now, |last| last.max(now));
        self.now = Some(now);
        match event {
            PodEvent::Woken => self.woken_at = None,
            PodEvent::Pod(pod) => self.pod(now, *pod),
            PodEvent::PodGone(key) => self.pod_gone(now, &key),
            PodEvent::Request(request) => {
                effects.extend(self.telling(&request));
                self.request(now, *request);
            }
            PodEvent::RequestGone(key) => self.request_gone(now, &key),
            PodEvent::Node(name, shown) => {
                match shown {
                    Some(shown) => self.nodes.insert(name.clone(), shown),
                    None => self.nodes.remove(&name),
                };
                self.nodes_to_say.insert(name);
            }
            PodEvent::Whole => {
                self.is_whole = true;
                self.look_at_all(now);
            }
        }
        if self.is_whole {
            self.compare(now, effects);
            self.look_at_words(now);
            self.say(now, effects);
        }
        let next = Time::earliest(self.dirty.first().map(|(at, _)| *at), self.next_say(now));
        let next = Time::earliest(next, self.next_look_at_words());
        let next = next.filter(|next| self.is_whole && now < *next);
        if next != self.woken_at {
            effects.extend(next.map(PodEffect::WakeAt));
            self.woken_at = next;
        }
    }

    fn look_at_all(&mut self, now: Time) {
        self.dirty
            .extend(self.pods.keys().map(|key| (now, key.clone())));
        // Requests whose Pods are not there are collected by Kubernetes, which knows their owner.
    }

    fn pod(&mut self, now: Time, pod: PodFacts) {
        let key = pod.brief.key.clone();
        self.dirty.insert((now, key.clone()));
        let node = pod.node_name.clone();
        let before = self.pods.insert(key.clone(), pod);
        if let Some(before) = before.filter(|before| before.node_name != node) {
            self.leave_node(&before.node_name, &key);
        }
        if !node.is_empty() {
            self.on_node.entry(node.clone()).or_default().insert(key);
            self.nodes_to_say.insert(node);
        }
    }

    fn leave_node(&mut self, node: &str, key: &ObjectKey) {
        if let Some(pods) = self.on_node.get_mut(node) {
            pods.remove(key);
            if pods.is_empty() {
                self.on_node.remove(node);
            }
            self.nodes_to_say.insert(node.to_owned());
        }
    }

    fn pod_gone(&mut self, now: Time, key: &ObjectKey) {
        if let Some(pod) = self.pods.remove(key) {
            self.leave_node(&pod.node_name, key);
            self.dirty.insert((now, key.clone()));
        }
    }

    /// What is said of a Pod whose request says something new of how it is served. What it said before this process
    /// saw it was told then; the operator writes few of them.
    fn telling(&self, request: &ShownRequest) -> Option<PodEffect> {
        let before = self.requests.get(&request.pod_uid)?.get(&request.key)?;
        let served = request.served.clone().filter(|_| self.is_whole)?;
        if before.served.as_ref() == Some(&served) {
            return None;
        }
        Some(PodEffect::Tell {
            pod: self.pod_of(&request.pod_uid, &request.key.namespace)?,
            uid: request.pod_uid.clone(),
            served,
        })
    }

    fn request(&mut self, now: Time, request: ShownRequest) {
        self.waiting.remove(&request.key);
        self.pod_uid_of
            .insert(request.key.clone(), request.pod_uid.clone());
        self.requests_to_say.insert(request.key.clone());
        let pod_key = self.pod_of(&request.pod_uid, &request.key.namespace);
        self.dirty.extend(pod_key.map(|key| (now, key)));
        let of_pod = self.requests.entry(request.pod_uid.clone()).or_default();
        of_pod.insert(request.key.clone(), request);
    }

    fn request_gone(&mut self, now: Time, key: &ObjectKey) {
        self.waiting.remove(key);
        let Some(uid) = self.pod_uid_of.remove(key) else {
            return;
        };
        if let Some(of_pod) = self.requests.get_mut(&uid) {
            of_pod.remove(key);
            if of_pod.is_empty() {
                self.requests.remove(&uid);
            }
        }
        let pod_key = self.pod_of(&uid, &key.namespace);
        self.dirty.extend(pod_key.map(|key| (now, key)));
    }

    fn pod_of(&self, uid: &str, namespace: &str) -> Option<ObjectKey> {
        let first = ObjectKey::namespaced(namespace, "");
        let of_namespace = self
            .pods
            .range(first..)
            .take_while(|(key, _)| key.namespace == namespace);
        of_namespace
            .filter(|(_, pod)| pod.brief.uid == uid)
            .map(|(key, _)| key.clone())
            .next()
    }

    /// Compares what should be with what is, for Pods that may differ.
    fn compare(&mut self, now: Time, effects: &mut Vec<PodEffect>) {
        while let Some((at, key)) = self.dirty.pop_first() {
            if now < at {
                self.dirty.insert((at, key));
                break;
            }
            self.compare_pod(now, &key, effects);
        }
    }

    fn compare_pod(&mut self, now: Time, key: &ObjectKey, effects: &mut Vec<PodEffect>) {
        let Some(pod) = self.pods.get(key) else {
            return;
        };
        let is_unmanaged = self
            .nodes
            .get(&pod.node_name)
            .is_some_and(|node| node.is_unmanaged);
        let wanted = request_of(pod, &self.config, is_unmanaged);
        let shown = self.requests.get(&pod.brief.uid);
        let mut shown: Vec<&ShownRequest> = shown.into_iter().flat_map(BTreeMap::values).collect();
        shown.sort_by_key(|request| (request.created, request.key.clone()));
        let mut writes = Vec::new();
        let (kept, further) = match (&wanted, shown.split_first()) {
            (Some(_), Some((first, further))) => (Some(*first), further),
            (_, _) => (None, shown.as_slice()),
        };
        writes.extend(
            further
                .iter()
                .map(|request| PodEffect::Delete(request.key.clone())),
        );
        match (wanted, kept) {
            (None, _) => {}
            (Some(spec), None) => writes.push(PodEffect::Create {
                key: ObjectKey::namespaced(&key.namespace, &request_name(pod)),
                pod: (key.name.clone(), pod.brief.uid.clone()),
                spec: Box::new(spec),
            }),
            (Some(spec), Some(kept)) => {
                if kept.spec != spec {
                    writes.push(PodEffect::Patch(kept.key.clone(), Box::new(spec)));
                }
                if !kept.has_status {
                    writes.push(PodEffect::Pend(kept.key.clone()));
                }
                self.requests_to_say.insert(kept.key.clone());
            }
        }
        if let Err(Some(due)) = stuck_of(pod, now) {
            self.dirty.insert((due, key.clone()));
        }
        for write in writes {
            self.write(now, key, write, effects);
        }
    }

    /// A write leaves unless the same object waits for one; what shows no effect is looked at again.
    fn write(
        &mut self,
        now: Time,
        pod: &ObjectKey,
        write: PodEffect,
        effects: &mut Vec<PodEffect>,
    ) {
        let target = match &write {
            PodEffect::Create { key, .. }
            | PodEffect::Patch(key, _)
            | PodEffect::Pend(key)
            | PodEffect::Delete(key)
            | PodEffect::Stick(key, _) => key.clone(),
            PodEffect::WakeAt(_) | PodEffect::Annotate { .. } | PodEffect::Tell { .. } => return,
        };
        if self.waiting.get(&target).is_some_and(|until| now < *until) {
            return;
        }
        self.waiting.insert(target, now + TRY_AGAIN);
        self.dirty.insert((now + TRY_AGAIN, pod.clone()));
        effects.push(write);
    }

    fn next_say(&self, now: Time) -> Option<Time> {
        let has_words = !self.nodes_to_say.is_empty() || !self.requests_to_say.is_empty();
        has_words.then(|| self.next_word.unwrap_or(now))
    }

    /// Words whose time to show an effect is over are compared anew.
    fn look_at_words(&mut self, now: Time) {
        while let Some((at, node)) = self.nodes_said.pop_first() {
            if now < at {
                self.nodes_said.insert((at, node));
                break;
            }
            self.nodes_to_say.insert(node);
        }
        while let Some((at, key)) = self.requests_said.pop_first() {
            if now < at {
                self.requests_said.insert((at, key));
                break;
            }
            self.requests_to_say.insert(key);
        }
    }

    fn next_look_at_words(&self) -> Option<Time> {
        let node = self.nodes_said.first().map(|(at, _)| *at);
        Time::earliest(node, self.requests_said.first().map(|(at, _)| *at))
    }

    /// Conditions and annotations: on change, emptiness first, at most ten a second.
    fn say(&mut self, now: Time, effects: &mut Vec<PodEffect>) {
        loop {
            if self.next_word.is_some_and(|at| now < at) {
                return;
            }
            let word = match self.nodes_to_say.pop_first() {
                Some(node) => self.node_word(now, node),
                None => match self.requests_to_say.pop_first() {
                    Some(key) => self.request_word(now, &key),
                    None => return,
                },
            };
            if let Some(word) = word {
                self.next_word = Some(now + WORD_SPACING);
                let again = now + TRY_AGAIN;
                match &word {
                    PodEffect::Annotate { node, .. } => {
                        self.nodes_said.insert((again, node.clone()));
                    }
                    PodEffect::Stick(key, _) => {
                        self.requests_said.insert((again, key.clone()));
                    }
                    _ => {}
                }
                effects.push(word);
            }
        }
    }

    fn node_word(&self, now: Time, node: String) -> Option<PodEffect> {
        let shown = self.nodes.get(&node)?;
        let keys = self.on_node.get(&node).into_iter().flatten();
        let pods: Vec<&PodBrief> = keys
            .filter_map(|key| self.pods.get(key))
            .map(|pod| &pod.brief)
            .collect();
        let disruption = disruption_of(pods.into_iter());
        let empty_since = (disruption == 0).then(|| shown.empty_since.unwrap_or(now));
        let differs = shown.disruption != Some(disruption)
            || shown.empty_since.is_some() != empty_since.is_some();
        differs.then_some(PodEffect::Annotate {
            node,
            disruption,
            empty_since,
        })
    }

    fn request_word(&self, now: Time, key: &ObjectKey) -> Option<PodEffect> {
        let uid = self.pod_uid_of.get(key)?;
        let shown = self.requests.get(uid)?.get(key)?;
        let pod = self.pods.get(&self.pod_of(uid, &key.namespace)?)?;
        let stuck = stuck_of(pod, now).ok();
        let reason = |stuck: Option<Stuck>| stuck.map(|stuck| stuck.reason);
        (reason(shown.stuck) != reason(stuck)).then(|| PodEffect::Stick(key.clone(), stuck))
    }
}
