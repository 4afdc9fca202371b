//! A cluster and a shard around a core: writes are applied and shown, Pods that are evicted leave, roll-ups are answered.
//!
//! Nothing here decides anything an operator decides. What goes wrong is up to the test.

use bigfleet_model::{Amounts, ClusterId, Dimension, Row, Time, quantity::parse_demand};
use bigfleet_operator_core::{
    Alert, ClosedBy, Disposition, Echo, Effect, EffectId, Event, EvictionOutcome, Frame, Heard,
    Kind, MachineState, NodeFacts, NodeState, Note, Object, ObjectKey, OperatorConfig,
    OperatorCore, Owner, OwnerState, OwnersFound, PodBrief, PodPhase, Reclaim, RequestFacts,
    RequestSpec, RequestStatus, SessionId, Target, UpcomingFacts, Write, WriteOutcome,
};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

pub(crate) const ALL_FEATURES: &[&str] = &[
    "drain-report.v1",
    "node-report.v1",
    "reclaim-target.v1",
    "resync.v1",
    "whole-units.v1",
    "disruption.v1",
    "need-status.v1",
];

pub(crate) fn at(seconds: u64) -> Time {
    Time::ZERO + Duration::from_secs(seconds)
}

pub(crate) fn amounts(entries: &[(&str, &str)]) -> Amounts {
    let entry =
        |(name, text): &(&str, &str)| (Dimension::new(name).unwrap(), parse_demand(text).unwrap());
    Amounts::from_entries(entries.iter().map(entry))
}

pub(crate) fn config() -> OperatorConfig {
    OperatorConfig {
        qps: 1_000_000,
        burst: 1_000_000,
        jitter_seed: 7,
        ..OperatorConfig::new(ClusterId::new("c1").unwrap())
    }
}

pub(crate) fn request(name: &str, cpu: &str) -> RequestFacts {
    RequestFacts {
        key: ObjectKey::namespaced("ns", name),
        uid: format!("uid-{name}"),
        generation: 1,
        created: Time::ZERO,
        owner: Some(Owner {
            key: ObjectKey::namespaced("ns", name),
            uid: format!("pod-{name}"),
        }),
        spec: RequestSpec {
            resources: [("cpu".to_owned(), cpu.to_owned())].into(),
            ..RequestSpec::default()
        },
        status: Some(RequestStatus::default()),
    }
}

pub(crate) fn node(name: &str, machine: &str) -> NodeFacts {
    NodeFacts {
        name: name.to_owned(),
        uid: format!("uid-{name}"),
        version: "1".to_owned(),
        created: Time::ZERO,
        labels: [("bigfleet.lucy.sh/machine-id".to_owned(), machine.to_owned())].into(),
        provider_id: String::new(),
        is_ready: true,
        ready_since: Time::ZERO,
        is_cordoned: false,
        allocatable: amounts(&[("cpu", "4"), ("memory", "16Gi")]),
        drain: None,
        disruption: None,
        empty_since: None,
        removable_since: None,
    }
}

pub(crate) fn pod(name: &str) -> PodBrief {
    PodBrief {
        key: ObjectKey::namespaced("ns", name),
        uid: format!("uid-{name}"),
        phase: PodPhase::Running,
        annotations: BTreeMap::new(),
        controller: None,
        is_terminating: false,
    }
}

pub(crate) fn frame(machine: &str, state: MachineState) -> NodeState {
    NodeState {
        machine: machine.to_owned(),
        cluster: String::new(),
        state,
        node_name: String::new(),
        provider_id: String::new(),
        last_error: String::new(),
        labels: BTreeMap::new(),
        resources: Amounts::NONE,
        taints: Vec::new(),
        is_removed: false,
    }
}

pub(crate) struct World {
    pub(crate) core: OperatorCore,
    pub(crate) now: Time,
    wake: Option<Time>,
    events: VecDeque<Event>,
    version: u64,

    pub(crate) requests: BTreeMap<ObjectKey, RequestFacts>,
    pub(crate) nodes: BTreeMap<String, NodeFacts>,
    pub(crate) upcoming: BTreeMap<String, UpcomingFacts>,
    pub(crate) pods: BTreeMap<String, Vec<PodBrief>>,
    follows: BTreeMap<EffectId, String>,
    /// Owners that are there.
    pub(crate) owners: BTreeSet<String>,
    pub(crate) is_crd_there: bool,
    pub(crate) spare_record: Option<String>,
    /// Pods a budget protects.
    pub(crate) protected: BTreeSet<String>,
    /// Writes are kept and not applied.
    pub(crate) holds_writes: bool,
    pub(crate) held_writes: Vec<(EffectId, Write)>,

    pub(crate) features: Vec<String>,
    /// Machines bound to the cluster, as the shard knows them.
    pub(crate) machines: BTreeMap<String, MachineState>,
    /// What the shard says it named, if not the truth.
    pub(crate) resync_count: Option<u64>,
    pub(crate) is_shard_up: bool,
    /// What roll-ups are answered with; `None` for silence.
    pub(crate) answer: Option<Disposition>,
    pub(crate) session: Option<SessionId>,

    pub(crate) frames: Vec<(Time, Frame)>,
    pub(crate) writes: Vec<Write>,
    pub(crate) evicted: Vec<(Time, String)>,
    pub(crate) alerts: Vec<Alert>,
    pub(crate) notes: Vec<Note>,
    pub(crate) dialled: u64,
}

impl World {
    pub(crate) fn new(config: OperatorConfig) -> Self {
        Self {
            core: OperatorCore::new(config),
            now: Time::ZERO,
            wake: None,
            events: VecDeque::new(),
            version: 100,
            requests: BTreeMap::new(),
            nodes: BTreeMap::new(),
            upcoming: BTreeMap::new(),
            pods: BTreeMap::new(),
            follows: BTreeMap::new(),
            owners: BTreeSet::new(),
            is_crd_there: true,
            spare_record: None,
            protected: BTreeSet::new(),
            holds_writes: false,
            held_writes: Vec::new(),
            features: ALL_FEATURES.iter().map(|name| (*name).to_owned()).collect(),
            machines: BTreeMap::new(),
            resync_count: None,
            is_shard_up: true,
            answer: Some(Disposition::Accepted),
            session: None,
            frames: Vec::new(),
            writes: Vec::new(),
            evicted: Vec::new(),
            alerts: Vec::new(),
            notes: Vec::new(),
            dialled: 0,
        }
    }

    /// The same world with the process that leads.
    pub(crate) fn started(config: OperatorConfig) -> Self {
        let mut world = Self::new(config);
        world.lead();
        world
    }

    pub(crate) fn lead(&mut self) {
        self.tell(Event::Leads(Some(self.now)));
    }

    /// The process dies and another one takes its place.
    pub(crate) fn restart(&mut self, config: OperatorConfig) {
        self.core = OperatorCore::new(config);
        self.events.clear();
        self.follows.clear();
        self.held_writes.clear();
        self.wake = None;
        self.session = None;
        self.lead();
    }

    pub(crate) fn tell(&mut self, event: Event) {
        self.events.push_back(event);
        self.settle();
    }

    fn settle(&mut self) {
        while let Some(event) = self.events.pop_front() {
            let mut effects = Vec::new();
            self.core.handle(self.now, event, &mut effects);
            for effect in effects {
                self.carry_out(effect);
            }
        }
    }

    /// Lets time pass, with the lease renewed all along.
    pub(crate) fn run_until(&mut self, end: Time) {
        while self.now < end {
            let renewal = self.now + Duration::from_secs(2);
            let next = self.wake.map_or(renewal, |wake| wake.min(renewal)).min(end);
            let next = next.max(self.now + Duration::from_millis(1));
            self.now = next;
            let woken = self.wake.take_if(|wake| *wake <= next);
            for kind in Kind::ALL {
                self.events.push_back(Event::Fresh(kind, self.version));
            }
            self.events.push_back(Event::Leads(Some(self.now)));
            if woken.is_some() {
                self.events.push_back(Event::Woken);
            }
            self.settle();
        }
    }

    pub(crate) fn run_for(&mut self, seconds: u64) {
        self.run_until(self.now + Duration::from_secs(seconds));
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::WakeAt(moment) => self.wake = Some(moment),
            Effect::Follow(kind) => self.list(kind),
            Effect::Unfollow => {}
            Effect::ReadSpareRecord => {
                let record = self.spare_record.clone();
                self.events.push_back(Event::SpareRecord(record));
            }
            Effect::Count => {
                let items = self.requests.len() as u64;
                let version = self.version;
                let count = bigfleet_operator_core::Count { version, items };
                self.events.push_back(Event::Counted(Some(count)));
            }
            Effect::Dial(session) => {
                self.dialled += 1;
                if self.is_shard_up {
                    self.session = Some(session);
                    self.events.push_back(Event::Opened(session));
                } else {
                    let by = ClosedBy::Transport("refused".to_owned());
                    self.events.push_back(Event::Closed(session, by));
                }
            }
            Effect::HangUp(session) => {
                self.session = self.session.filter(|current| *current != session);
            }
            Effect::Send(session, frame) => self.answer_frame(session, frame),
            Effect::Write(id, write) => {
                self.writes.push(write.clone());
                if self.holds_writes {
                    self.held_writes.push((id, write));
                } else {
                    self.apply(id, write);
                }
            }
            Effect::FollowPods(id, node) => {
                self.follows.insert(id, node.clone());
                let pods = self.pods.get(&node).cloned().unwrap_or_default();
                self.events.push_back(Event::Pods(id, Some(pods)));
            }
            Effect::ForgetPods(id) => {
                self.follows.remove(&id);
            }
            Effect::Evict(id, eviction) => {
                let outcome = self.evict(&eviction.uid);
                self.events.push_back(Event::Evicted(id, outcome));
            }
            Effect::ReadOwners(id, owners) => {
                let state = |owner: &Owner| {
                    if self.owners.contains(&owner.uid) {
                        OwnerState::Live { is_bound: false }
                    } else {
                        OwnerState::Over
                    }
                };
                let found = OwnersFound {
                    owners: owners
                        .iter()
                        .map(|owner| (owner.clone(), state(owner)))
                        .collect(),
                    is_crd_there: self.is_crd_there,
                };
                self.events.push_back(Event::Owners(id, Some(found)));
            }
            Effect::Render(id, job) => {
                let result = job.render().map_err(|refused| refused.to_string());
                self.events.push_back(Event::Rendered(id, result));
            }
            Effect::MakeToken { .. } => {}
            Effect::Tell(note) => self.notes.push(note),
            Effect::Alert(alert) => self.alerts.push(alert),
        }
    }

    fn list(&mut self, kind: Kind) {
        self.events.push_back(Event::Began(kind));
        let version = self.version;
        let objects: Vec<Object> = match kind {
            Kind::Request => {
                let all = self.requests.values().cloned();
                all.map(|facts| Object::Request(Box::new(facts))).collect()
            }
            Kind::Node => {
                let all = self.nodes.values().cloned();
                all.map(|facts| Object::Node(Box::new(facts))).collect()
            }
            Kind::Upcoming => {
                let all = self.upcoming.values().cloned();
                all.map(|facts| Object::Upcoming(Box::new(facts))).collect()
            }
            Kind::Available => Vec::new(),
        };
        self.events.extend(
            objects
                .into_iter()
                .map(|object| Event::Seen(object, version)),
        );
        self.events.push_back(Event::Whole(kind, version));
    }

    fn evict(&mut self, uid: &str) -> EvictionOutcome {
        if self.protected.contains(uid) {
            return EvictionOutcome::Budget;
        }
        let mut found = None;
        for (node, pods) in &mut self.pods {
            let before = pods.len();
            pods.retain(|pod| pod.uid != uid);
            if pods.len() < before {
                found = Some(node.clone());
            }
        }
        let Some(node) = found else {
            return EvictionOutcome::Gone;
        };
        self.evicted.push((self.now, uid.to_owned()));
        self.show_pods(&node);
        EvictionOutcome::Sent
    }

    /// Whoever follows the Pods of a Node sees them.
    pub(crate) fn show_pods(&mut self, node: &str) {
        let pods = self.pods.get(node).cloned().unwrap_or_default();
        let ids = self
            .follows
            .iter()
            .filter(|(_, followed)| *followed == node);
        let ids: Vec<_> = ids.map(|(id, _)| *id).collect();
        for id in ids {
            self.events.push_back(Event::Pods(id, Some(pods.clone())));
        }
    }

    pub(crate) fn apply_held(&mut self) {
        self.holds_writes = false;
        for (id, write) in std::mem::take(&mut self.held_writes) {
            self.apply(id, write);
        }
        self.settle();
    }

    fn apply(&mut self, id: EffectId, write: Write) {
        self.version += 1;
        let outcome = self.outcome(write);
        self.events.push_back(Event::Wrote(id, outcome));
    }

    /// What an API server makes of a write.
    pub(crate) fn outcome(&mut self, write: Write) -> WriteOutcome {
        match write {
            Write::Acknowledge {
                request, uid, at, ..
            } => {
                let Some(facts) = self.requests.get_mut(&request) else {
                    return WriteOutcome::Gone;
                };
                if facts.uid != uid {
                    return WriteOutcome::Refused("test failed".to_owned());
                }
                facts.status.get_or_insert_default().acknowledged_at = Some(at);
                let facts = facts.clone();
                self.show_request(&facts);
                WriteOutcome::Done
            }
            Write::Serve {
                request, served, ..
            } => {
                let Some(facts) = self.requests.get_mut(&request) else {
                    return WriteOutcome::Gone;
                };
                facts.status.get_or_insert_default().served = Some(served);
                let facts = facts.clone();
                self.show_request(&facts);
                WriteOutcome::Done
            }
            Write::CordonNode { node, uid, record } => self.patch_node(&node, &uid, None, |node| {
                node.is_cordoned = true;
                node.drain = Some(record).filter(|record| !record.is_empty());
            }),
            Write::ReleaseNode {
                node,
                uid,
                version,
                uncordon,
            } => self.patch_node(&node, &uid, Some(&version), |node| {
                node.drain = None;
                node.is_cordoned &= !uncordon;
            }),
            Write::LabelNode {
                node,
                uid,
                key,
                value,
            } => self.patch_node(&node, &uid, None, |node| {
                node.labels.insert(key.to_owned(), value);
            }),
            Write::DeleteNode { node, uid } => {
                if self.nodes.get(&node).is_none_or(|known| known.uid != uid) {
                    return WriteOutcome::Gone;
                }
                self.nodes.remove(&node);
                self.show_gone(Kind::Node, &node);
                WriteOutcome::Done
            }
            Write::ApplyUpcoming {
                name,
                machine,
                content,
            } => {
                let facts = UpcomingFacts {
                    name: name.clone(),
                    machine: Some(machine.to_string()),
                    content: *content,
                };
                self.upcoming.insert(name, facts.clone());
                self.show(Object::Upcoming(Box::new(facts)));
                WriteOutcome::Done
            }
            Write::DeleteUpcoming { name } => {
                if self.upcoming.remove(&name).is_none() {
                    return WriteOutcome::Gone;
                }
                self.show_gone(Kind::Upcoming, &name);
                WriteOutcome::Done
            }
            Write::ApplyAvailable { .. } | Write::DeleteAvailable { .. } => WriteOutcome::Done,
            Write::SpareRecord { text } => {
                self.spare_record = Some(text);
                WriteOutcome::Done
            }
        }
    }

    fn patch_node(
        &mut self,
        name: &str,
        uid: &str,
        version: Option<&str>,
        patch: impl FnOnce(&mut NodeFacts),
    ) -> WriteOutcome {
        let Some(node) = self.nodes.get_mut(name) else {
            return WriteOutcome::Gone;
        };
        if node.uid != uid || version.is_some_and(|version| version != node.version) {
            return WriteOutcome::Conflict;
        }
        patch(node);
        node.version = self.version.to_string();
        let node = node.clone();
        self.show(Object::Node(Box::new(node)));
        WriteOutcome::Done
    }

    fn show(&mut self, object: Object) {
        self.events.push_back(Event::Seen(object, self.version));
    }

    fn show_gone(&mut self, kind: Kind, name: &str) {
        let (key, version) = (ObjectKey::cluster(name), self.version);
        self.events.push_back(Event::Gone { kind, key, version });
    }

    fn show_request(&mut self, facts: &RequestFacts) {
        self.show(Object::Request(Box::new(facts.clone())));
    }

    pub(crate) fn add_request(&mut self, facts: RequestFacts) {
        self.version += 1;
        self.owners
            .extend(facts.owner.iter().map(|owner| owner.uid.clone()));
        self.requests.insert(facts.key.clone(), facts.clone());
        self.show_request(&facts);
        self.settle();
    }

    pub(crate) fn remove_request(&mut self, name: &str) {
        self.version += 1;
        let (key, version) = (ObjectKey::namespaced("ns", name), self.version);
        self.requests.remove(&key);
        let kind = Kind::Request;
        self.tell(Event::Gone { kind, key, version });
    }

    pub(crate) fn put_node(&mut self, mut facts: NodeFacts) {
        self.version += 1;
        facts.version = self.version.to_string();
        self.nodes.insert(facts.name.clone(), facts.clone());
        self.show(Object::Node(Box::new(facts)));
        self.settle();
    }

    pub(crate) fn change_node(&mut self, name: &str, change: impl FnOnce(&mut NodeFacts)) {
        let mut facts = self.nodes[name].clone();
        change(&mut facts);
        self.put_node(facts);
    }

    pub(crate) fn lose_node(&mut self, name: &str) {
        self.version += 1;
        self.nodes.remove(name);
        self.show_gone(Kind::Node, name);
        self.settle();
    }

    /// A machine that serves, its Node, and Pods on it.
    pub(crate) fn serve(&mut self, number: usize, pods: &[&str]) {
        let (machine, name) = (format!("m{number}"), format!("n{number}"));
        self.put_node(node(&name, &machine));
        self.pods
            .insert(name, pods.iter().map(|name| pod(name)).collect());
        self.machine_is(&machine, MachineState::Configured);
    }

    pub(crate) fn machine_is(&mut self, machine: &str, state: MachineState) {
        match state {
            MachineState::Idle => self.machines.remove(machine),
            state => self.machines.insert(machine.to_owned(), state),
        };
        self.hear(Heard::NodeState(Box::new(frame(machine, state))));
    }

    pub(crate) fn hear(&mut self, heard: Heard) {
        if let Some(session) = self.session {
            self.tell(Event::Heard(session, heard));
        }
    }

    pub(crate) fn reclaim(
        &mut self,
        instruction: &str,
        machine: &str,
        voluntary: bool,
        grace: i64,
    ) {
        self.machines
            .insert(machine.to_owned(), MachineState::Draining);
        self.hear(Heard::Reclaim(Reclaim {
            instruction: instruction.to_owned(),
            targets: vec![Target {
                machine: machine.to_owned(),
                ..Target::default()
            }],
            grace_seconds: grace,
            voluntary,
            ..Reclaim::default()
        }));
    }

    pub(crate) fn cancel(&mut self, instruction: &str) {
        let instruction = instruction.to_owned();
        self.hear(Heard::ReclaimCancel { instruction });
    }

    pub(crate) fn lose_session(&mut self) {
        if let Some(session) = self.session.take() {
            let by = ClosedBy::Transport("broke".to_owned());
            self.tell(Event::Closed(session, by));
        }
    }

    fn answer_frame(&mut self, session: SessionId, frame: Frame) {
        self.frames.push((self.now, frame.clone()));
        let ack = |echo| Heard::Ack {
            echo,
            features: Vec::new(),
            rollup_id: String::new(),
            disposition: None,
            reason: String::new(),
            resync_count: None,
        };
        let mut say = |heard| self.events.push_back(Event::Heard(session, heard));
        match frame {
            Frame::Hello { .. } => {
                say(Heard::Ack {
                    echo: Echo::Hello,
                    features: self.features.clone(),
                    rollup_id: String::new(),
                    disposition: None,
                    reason: String::new(),
                    resync_count: None,
                });
                if self.features.iter().any(|name| name == "resync.v1") {
                    say(ack(Echo::ResyncBegin));
                    let count = self.resync_count.unwrap_or(self.machines.len() as u64);
                    for (machine, state) in &self.machines {
                        say(Heard::NodeState(Box::new(self::frame(machine, *state))));
                    }
                    say(Heard::Ack {
                        echo: Echo::ResyncEnd,
                        features: Vec::new(),
                        rollup_id: String::new(),
                        disposition: None,
                        reason: String::new(),
                        resync_count: Some(count),
                    });
                }
            }
            Frame::RollUp { id, .. } => {
                if let Some(disposition) = self.answer {
                    say(answer(&id, disposition));
                }
            }
            Frame::BootstrapResponse { .. }
            | Frame::ReclaimAck { .. }
            | Frame::DrainReport { .. }
            | Frame::NodeReport { .. } => {}
        }
    }

    pub(crate) fn roll_ups(&self) -> Vec<Vec<Row>> {
        let rows = |(_, frame): &(Time, Frame)| match frame {
            Frame::RollUp { rows, .. } => Some(rows.clone()),
            _ => None,
        };
        self.frames.iter().filter_map(rows).collect()
    }

    pub(crate) fn last_rows(&self) -> &[Row] {
        let rows = |(_, frame): &'_ (Time, Frame)| matches!(frame, Frame::RollUp { .. });
        match self.frames.iter().rfind(|said| rows(said)) {
            Some((_, Frame::RollUp { rows, .. })) => rows,
            _ => &[],
        }
    }

    /// The last roll-up as text: group, aggregate and smallest unit of each row.
    pub(crate) fn last_roll_up(&self) -> Vec<String> {
        let rows = self.last_rows();
        let short = |row: &Row| {
            let whole = if row.whole_units { " whole" } else { "" };
            format!(
                "{}: {:?} of {:?}{whole}",
                row.group, row.aggregate, row.min_unit
            )
        };
        rows.iter().map(short).collect()
    }

    /// Drain reports so far, as words.
    pub(crate) fn reports(&self) -> Vec<String> {
        let word = |(_, frame): &(Time, Frame)| match frame {
            Frame::DrainReport {
                phase,
                pods_remaining,
                ..
            } => Some(format!("{phase:?} {pods_remaining}")),
            _ => None,
        };
        self.frames.iter().filter_map(word).collect()
    }

    pub(crate) fn forget_said(&mut self) {
        self.frames.clear();
        self.writes.clear();
        self.evicted.clear();
    }
}

pub(crate) fn answer(id: &str, disposition: Disposition) -> Heard {
    Heard::Ack {
        echo: Echo::RollUp,
        features: Vec::new(),
        rollup_id: id.to_owned(),
        disposition: Some(disposition),
        reason: String::new(),
        resync_count: None,
    }
}
