//! A world around a core: a provider, operators and a disk, all in memory and all on one clock.
//!
//! Every answer is an event at a moment; the world is driven by `run`. What was handed in and what
//! came out is kept, so a history can be replayed and cut.

use bigfleet_model::{
    ClusterId, Fleet, Host, Machine, MachineFacts, MachineId, MachineRefused, Row, State, Time,
};
use bigfleet_shard_core::{
    Alert, AuditRecord, CallOutcome, Code, Effect, Event, Features, Frame, Got, Listed, Outcome,
    ProviderCall, Record, SessionId, ShardConfig, ShardCore, Sighting,
};
use bigfleet_shard_world::{Disk, bare, call_ended, found, listed, obey};
use bigfleet_testkit::fleet;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) fn at(seconds: f64) -> Time {
    Time::from_seconds(seconds).unwrap()
}

pub(crate) fn id(text: &str) -> MachineId {
    MachineId::new(text).unwrap()
}

pub(crate) fn cluster(text: &str) -> ClusterId {
    ClusterId::new(text).unwrap()
}

pub(crate) const FULL: Features = Features {
    drain_report: true,
    node_report: true,
    resync: true,
};

/// A machine at the provider.
#[derive(Clone, Debug)]
pub(crate) struct There {
    pub(crate) machine: Machine,
    pub(crate) metadata: BTreeMap<String, String>,
    /// When its transition ends.
    pub(crate) due: Option<f64>,
    /// The highest token seen.
    pub(crate) mark: (u64, u64),
    pub(crate) creates: u32,
    /// Its transition ends in Failed.
    pub(crate) doomed: bool,
    /// When the provider says it takes it away.
    pub(crate) leaving: Option<Time>,
}

/// How the provider behaves.
#[derive(Clone, Debug)]
pub(crate) struct Provider {
    pub(crate) machines: BTreeMap<MachineId, There>,
    /// Seconds a transition takes; zero acks the target.
    pub(crate) latency: f64,
    /// If not zero: the seed of latencies up to that.
    pub(crate) jitter: u64,
    /// Seconds until a call is answered.
    pub(crate) answer_after: f64,
    /// Refusals to give, by machine, first to last.
    pub(crate) refuse: BTreeMap<MachineId, Vec<Refusal>>,
    /// Machines left out of Lists.
    pub(crate) hidden: BTreeSet<MachineId>,
    /// Those are there all the same, and a Get finds them.
    pub(crate) lists_lie: bool,
    pub(crate) list_fails: bool,
    /// Every Get fails.
    pub(crate) gets_fail: bool,
    /// Seconds until a List is answered; it shows what was when it began.
    pub(crate) list_after: f64,
    /// Records in Lists that nobody can believe.
    pub(crate) unbelievable: Vec<(String, MachineRefused)>,
    /// What Lists answer to be asked for changes since; a List since then is not full.
    pub(crate) cursor: Vec<u8>,
    /// Machines Lists say are gone; such a List is not full.
    pub(crate) tombstones: Vec<MachineId>,
    pub(crate) drains: Vec<(MachineId, u32)>,
    /// Clusters whose machines fail in Configure.
    pub(crate) fails_for: BTreeSet<ClusterId>,
    /// One in so many of those machines is configured all the same; none if zero.
    pub(crate) one_joins_in: u32,
    /// How many of those there were so far.
    pub(crate) configures_to_fail: u32,
}

impl Provider {
    fn draw_latency(&mut self) -> f64 {
        if self.jitter == 0 {
            return self.latency;
        }
        let next = self.jitter.wrapping_mul(6_364_136_223_846_793_005);
        self.jitter = next.wrapping_add(1_442_695_040_888_963_407) | 1;
        self.latency * (self.jitter >> 40) as f64 / f64::from(1 << 24)
    }

    pub(crate) fn creates(&self) -> u32 {
        self.machines.values().map(|there| there.creates).sum()
    }

    /// Machines serving each cluster.
    pub(crate) fn serving(&self) -> BTreeMap<String, u32> {
        let mut serving = BTreeMap::new();
        for there in self.machines.values() {
            if let (State::Configured, Some(cluster)) =
                (there.machine.state(), there.machine.cluster())
            {
                *serving.entry(cluster.to_string()).or_default() += 1;
            }
        }
        serving
    }
}

/// How a call goes wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Refusal {
    /// Not done, and said so.
    Code(Code),
    /// Done, but the answer is lost.
    Lost(Code),
    NeverSent,
}

#[derive(Clone)]
pub(crate) struct World {
    pub(crate) core: ShardCore,
    pub(crate) now: f64,
    pub(crate) provider: Provider,
    pub(crate) sessions: BTreeMap<ClusterId, (SessionId, Features)>,
    pub(crate) next_session: u64,
    queue: BTreeMap<(u64, u64), Event>,
    order: u64,
    wake: Option<f64>,
    /// What came out, with its moment.
    pub(crate) effects: Vec<(f64, Effect)>,
    /// All of it, never cleared.
    pub(crate) every: Vec<Effect>,
    /// What went in.
    pub(crate) history: Vec<(Time, Event)>,
    pub(crate) disk: Disk,
    /// What each cluster last asked for.
    pub(crate) demand: BTreeMap<String, String>,
    /// The world after every event, where wanted.
    pub(crate) moments: Option<Vec<World>>,
    /// Seconds until a write is on disk; `None` for never.
    pub(crate) disk_delay: Option<f64>,
    /// Operators answer requests for blobs.
    pub(crate) blobs: bool,
    /// Operators report drains done.
    pub(crate) drains: bool,
}

fn key(seconds: f64) -> u64 {
    (seconds * 1e6).round() as u64
}

/// A world whose shard damps nothing, so that one cycle shows what is decided.
pub(crate) fn world(machines: &str) -> World {
    World::new(ShardConfig::undamped("s", "p"), machines)
}

/// A world of two clusters with so many calls between them, of which one cluster may have three.
pub(crate) fn crowded(calls: usize, machines: &str, answer_after: f64) -> World {
    let config = ShardConfig {
        execute_concurrency: calls,
        calls_per_cluster: 3,
        ..ShardConfig::undamped("s", "p")
    };
    let mut world = World::new(config, machines);
    world.provider.answer_after = answer_after;
    world.connect("a", FULL);
    world.connect("b", FULL);
    world.run(1.0);
    world
}

impl World {
    /// A world whose provider has the machines of this fleet. Demand is what roll-ups bring.
    pub(crate) fn new(config: ShardConfig, machines: &str) -> Self {
        let Fleet { machines, .. } = fleet(machines);
        let there = |found: bigfleet_model::FleetMachine| There {
            metadata: match found.machine.cluster() {
                Some(_) => found.machine.assignment().to_metadata(),
                None => BTreeMap::new(),
            },
            machine: bare(found.machine),
            due: None,
            mark: (0, 0),
            creates: 0,
            doomed: false,
            leaving: None,
        };
        let machines = machines
            .into_iter()
            .map(|(id, found)| (id, there(found)))
            .collect();
        let provider = Provider {
            machines,
            latency: 0.0,
            jitter: 0,
            answer_after: 0.1,
            refuse: BTreeMap::new(),
            hidden: BTreeSet::new(),
            lists_lie: false,
            list_fails: false,
            gets_fail: false,
            list_after: 0.05,
            unbelievable: Vec::new(),
            cursor: Vec::new(),
            tombstones: Vec::new(),
            drains: Vec::new(),
            fails_for: BTreeSet::new(),
            one_joins_in: 0,
            configures_to_fail: 0,
        };
        Self::around(config, provider, 1, Vec::new(), 0.0)
    }

    /// A new process in front of the same provider.
    pub(crate) fn around(
        config: ShardConfig,
        provider: Provider,
        epoch: u64,
        disk: Vec<Record>,
        now: f64,
    ) -> Self {
        let core = ShardCore::rebuild(config, epoch, at(now), disk.iter().cloned());
        let mut world = Self {
            core: core.unwrap(),
            now,
            provider,
            sessions: BTreeMap::new(),
            next_session: epoch * 1000,
            queue: BTreeMap::new(),
            order: 0,
            wake: None,
            effects: Vec::new(),
            every: Vec::new(),
            history: Vec::new(),
            demand: BTreeMap::new(),
            moments: None,
            disk: Disk::holding(disk),
            disk_delay: Some(0.0),
            blobs: true,
            drains: true,
        };
        world.wake = Some(now);
        world
    }

    /// Hands the core an event now, and starts what it asks for.
    pub(crate) fn tell(&mut self, event: Event) {
        if let Event::Persisted { barrier } = &event {
            self.disk.written(*barrier);
        }
        let mut effects = Vec::new();
        self.history.push((at(self.now), event.clone()));
        self.core.handle(at(self.now), event, &mut effects);
        assert_eq!(self.core.check(), Ok(()), "an operation is in one place");
        for effect in effects {
            if let Effect::Alert(incident @ Alert::Impossible { .. }) = &effect {
                panic!("{incident:?}");
            }
            self.effects.push((self.now, effect.clone()));
            self.every.push(effect.clone());
            self.start(effect);
        }
        if let Some(mut moments) = self.moments.take() {
            moments.push(self.clone());
            self.moments = Some(moments);
        }
    }

    pub(crate) fn later(&mut self, after: f64, event: Event) {
        self.order += 1;
        self.queue
            .insert((key(self.now + after), self.order), event);
    }

    /// Lets so many seconds pass.
    pub(crate) fn run(&mut self, seconds: f64) {
        let end = self.now + seconds;
        loop {
            let queued = self.queue.keys().next().map(|(when, _)| *when as f64 / 1e6);
            let next = [queued, self.wake]
                .into_iter()
                .flatten()
                .fold(f64::MAX, f64::min);
            if end < next {
                break;
            }
            self.now = self.now.max(next);
            self.settle_provider();
            match queued.filter(|queued| *queued <= next) {
                Some(_) => {
                    let (_, event) = self.queue.pop_first().unwrap();
                    self.tell(event);
                }
                None => {
                    self.wake = None;
                    self.tell(Event::Woken);
                }
            }
        }
        self.now = end;
        self.settle_provider();
    }

    fn start(&mut self, effect: Effect) {
        match effect {
            Effect::Persist { barrier, records } => {
                self.disk.write(barrier, records);
                if let Some(delay) = self.disk_delay {
                    self.later(delay, Event::Persisted { barrier });
                }
            }
            Effect::Call {
                operation,
                machine,
                token,
                call,
            } => {
                let outcome = self.call(&machine, (token.epoch, token.sequence), call);
                let event = call_ended(operation, &token, outcome);
                self.later(self.provider.answer_after, event);
            }
            Effect::Get { get, machine } => {
                if self.provider.gets_fail {
                    let answer = Got::Failed;
                    self.later(0.05, Event::GotMachine { get, answer });
                    return;
                }
                let is_hidden = self.provider.hidden.contains(&machine);
                let is_found = self.provider.lists_lie || !is_hidden;
                let there = self.provider.machines.get(&machine).filter(|_| is_found);
                let answer = found(there.map(sighting));
                self.later(0.05, Event::GotMachine { get, answer });
            }
            Effect::List { list, cursor } => {
                if self.provider.list_fails {
                    let outcome = Listed::Failed;
                    self.later(0.05, Event::ListEnded { list, outcome });
                    return;
                }
                let shown = self.provider.machines.iter();
                let shown = shown.filter(|(id, _)| !self.provider.hidden.contains(*id));
                let machines = shown.map(|(_, there)| sighting(there)).collect();
                let refused = self.provider.unbelievable.clone();
                let removed = self.provider.tombstones.clone();
                let outcome = Listed::Complete {
                    full: removed.is_empty() && cursor.is_empty(),
                    removed,
                    cursor: self.provider.cursor.clone(),
                };
                for event in listed(list, machines, refused, outcome) {
                    self.later(self.provider.list_after, event);
                }
            }
            Effect::Send { session, frame } => self.operator(session, frame),
            Effect::WakeAt(when) => self.wake = Some(when.seconds()),
            Effect::Close { .. } | Effect::Audit(_) | Effect::Alert(_) => {}
        }
    }

    fn operator(&mut self, session: SessionId, frame: Frame) {
        let after = match frame {
            Frame::BootstrapRequest { .. } if self.blobs => 0.05,
            Frame::Reclaim { .. } if self.drains => 1.0,
            _ => return,
        };
        if let Some(answer) = obey(session, frame) {
            self.later(after, answer);
        }
    }

    fn call(&mut self, id: &MachineId, token: (u64, u64), call: ProviderCall) -> CallOutcome {
        let refusals = self.provider.refuse.get_mut(id);
        let refusal = refusals
            .filter(|list| !list.is_empty())
            .map(|list| list.remove(0));
        match refusal {
            Some(Refusal::Code(code)) => return CallOutcome::refused(code),
            Some(Refusal::NeverSent) => return CallOutcome::NeverSent,
            Some(Refusal::Lost(_)) | None => {}
        }
        if let ProviderCall::Drain { grace_seconds } = &call {
            self.provider.drains.push((id.clone(), *grace_seconds));
        }
        let latency = self.provider.draw_latency();
        let now = self.now;
        let Some(there) = self.provider.machines.get_mut(id) else {
            return CallOutcome::refused(Code::NotFound);
        };
        if token <= there.mark {
            return CallOutcome::refused(Code::FailedPrecondition);
        }
        there.mark = token;
        let (source, transitional, target) = match call {
            ProviderCall::Create => (State::Speculative, State::Creating, State::Idle),
            ProviderCall::Configure { .. } => (State::Idle, State::Configuring, State::Configured),
            ProviderCall::Drain { .. } => (State::Configured, State::Draining, State::Idle),
            ProviderCall::Delete => (State::Idle, State::Deleting, State::Speculative),
        };
        let state = there.machine.state();
        if state == source {
            if let ProviderCall::Create = call {
                there.creates += 1;
            }
            if let ProviderCall::Configure {
                cluster, metadata, ..
            } = &call
            {
                there.doomed = self.provider.fails_for.contains(cluster);
                if there.doomed {
                    self.provider.configures_to_fail += 1;
                    let (count, every) =
                        (self.provider.configures_to_fail, self.provider.one_joins_in);
                    there.doomed = every == 0 || !count.is_multiple_of(every);
                }
                there.metadata = metadata.clone();
                there.set(|facts| facts.cluster = cluster.to_string());
            }
            there.become_state(transitional);
            there.due = Some(now + latency);
            if latency == 0.0 {
                there.settle(now);
            }
        } else if state != transitional && state != target {
            return CallOutcome::refused(Code::Internal);
        }
        let acked = CallOutcome::acked(sighting(there));
        match refusal {
            Some(Refusal::Lost(code)) => CallOutcome::refused(code),
            _ => acked,
        }
    }

    fn settle_provider(&mut self) {
        let now = self.now;
        for there in self.provider.machines.values_mut() {
            there.settle(now);
        }
    }

    /// Connects an operator.
    pub(crate) fn connect(&mut self, name: &str, features: Features) -> SessionId {
        self.next_session += 1;
        let session = SessionId(self.next_session);
        self.sessions.insert(cluster(name), (session, features));
        self.tell(Event::SessionOpened {
            session,
            cluster: cluster(name),
            features,
            identity: None,
        });
        session
    }

    /// Connects an operator that asks for this a second later, and lets so many seconds pass after that.
    pub(crate) fn ask(&mut self, name: &str, needs: &str, seconds: f64) -> SessionId {
        let session = self.connect(name, FULL);
        self.run(1.0);
        self.roll_up(name, needs);
        self.run(seconds);
        session
    }

    pub(crate) fn disconnect(&mut self, name: &str) {
        let (session, _) = self.sessions.remove(&cluster(name)).unwrap();
        self.tell(Event::SessionClosed { session });
    }

    /// Sends a cluster's whole demand, written as `need` lines.
    pub(crate) fn roll_up(&mut self, name: &str, needs: &str) {
        let (session, _) = self.sessions[&cluster(name)];
        self.demand.insert(name.to_owned(), needs.to_owned());
        self.tell(Event::RolledUp {
            session,
            cluster: cluster(name),
            rollup_id: String::new(),
            rows: Ok(rows(name, needs)),
        });
    }

    /// A machine at the provider, to be changed behind the shard's back.
    pub(crate) fn there(&mut self, name: &str) -> &mut There {
        self.provider.machines.get_mut(&id(name)).unwrap()
    }

    // What the tests look at.

    pub(crate) fn state(&self, name: &str) -> State {
        self.core.machine(&id(name)).map(Machine::state).unwrap()
    }

    pub(crate) fn calls(&self) -> Vec<String> {
        let word = |call: &ProviderCall| match call {
            ProviderCall::Create => "Create",
            ProviderCall::Configure { .. } => "Configure",
            ProviderCall::Drain { .. } => "Drain",
            ProviderCall::Delete => "Delete",
        };
        let name = |effect: &Effect| match effect {
            Effect::Call { machine, call, .. } => Some(format!("{} {machine}", word(call))),
            _ => None,
        };
        self.effects
            .iter()
            .filter_map(|(_, one)| name(one))
            .collect()
    }

    pub(crate) fn audits(&self) -> Vec<&AuditRecord> {
        let effects = self.effects.iter().map(|(_, effect)| effect);
        let audits = effects.filter_map(|effect| match effect {
            Effect::Audit(record) => Some(record),
            _ => None,
        });
        audits.collect()
    }

    pub(crate) fn outcomes(&self) -> Vec<(String, Outcome)> {
        let audits = self.audits().into_iter();
        audits
            .map(|record| (record.machine.to_string(), record.outcome))
            .collect()
    }

    pub(crate) fn frames(&self, session: SessionId) -> Vec<&Frame> {
        let effects = self.effects.iter().map(|(_, effect)| effect);
        let frames = effects.filter_map(|effect| match effect {
            Effect::Send { session: to, frame } if *to == session => Some(frame),
            _ => None,
        });
        frames.collect()
    }

    /// Node states sent on a session, as `m1 Idle`.
    pub(crate) fn nodes(&self, session: SessionId) -> Vec<String> {
        let node = |frame: &&Frame| match frame {
            Frame::Node(node) => Some(format!("{} {}", node.machine, node.state)),
            _ => None,
        };
        self.frames(session).iter().filter_map(node).collect()
    }

    pub(crate) fn clear(&mut self) {
        self.effects.clear();
    }
}

/// The rows of `need` lines; each line lacks the cluster.
pub(crate) fn rows(name: &str, needs: &str) -> Vec<Row> {
    let lines = needs.lines().map(str::trim).filter(|line| !line.is_empty());
    let lines: String = lines.map(|line| format!("need {name} {line}\n")).collect();
    let demand = fleet(&lines);
    let clusters = demand.clusters.values();
    clusters
        .flat_map(|cluster| cluster.needs().iter().map(|need| need.row.clone()))
        .collect()
}

pub(crate) fn sighting(there: &There) -> Sighting {
    Sighting {
        machine: there.machine.clone(),
        echoed: (&there.metadata).into(),
        leaving: there.leaving,
    }
}

impl There {
    pub(crate) fn set(&mut self, change: impl FnOnce(&mut MachineFacts)) {
        let mut facts = self.machine.clone().into_facts();
        change(&mut facts);
        // Idle may carry a cluster for a moment: it is about to be Configuring.
        if let Ok(machine) = Machine::new(facts.clone()) {
            self.machine = machine;
        }
        if !facts.cluster.is_empty() && self.machine.cluster().is_none() {
            facts.state = State::Configuring.into();
            self.machine = Machine::new(facts).unwrap();
        }
    }

    pub(crate) fn become_state(&mut self, state: State) {
        let host = Host {
            provider: "p".to_owned(),
            reference: format!("h-{}", self.machine.id()),
        };
        self.set(|facts| {
            facts.state = state.into();
            match state {
                State::Speculative | State::Creating => {
                    facts.host = Host::default();
                    facts.cluster.clear();
                }
                State::Idle => {
                    facts.host = host;
                    facts.cluster.clear();
                }
                State::Failed => facts.last_error = "broken".to_owned(),
                State::Configuring | State::Configured | State::Draining | State::Deleting => {}
            }
        });
        if matches!(state, State::Idle | State::Speculative) {
            self.metadata.clear();
        }
    }

    fn settle(&mut self, now: f64) {
        if self.due.is_some_and(|due| due <= now) {
            self.due = None;
            if std::mem::take(&mut self.doomed) {
                self.become_state(State::Failed);
                return;
            }
            let to = match self.machine.state() {
                State::Creating | State::Draining => State::Idle,
                State::Configuring => State::Configured,
                State::Deleting => State::Speculative,
                rests => rests,
            };
            self.become_state(to);
        }
    }
}
