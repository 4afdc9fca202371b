//! Operators: processes with the real core, their leases, and the hands that do what it says.
//!
//! ```text
//! streams, lease, session, answers ─▶ OperatorCore::handle ─▶ effects ─▶ ledger ─▶ calls on their way
//! ```
//!
//! The hands are those of the runtime with the network taken out: before a dial and an eviction they look at the lease
//! themselves, and what they are told of a stream is what it brought.

use super::{
    Out, Side, SideEvent, ToShard,
    api::{self, Fate},
    settings::OperatorStrike,
    store::{Pod, Stored},
    streams::{Follower, News},
};
use crate::clock::{Moment, seconds};
use bigfleet_model::Time;
use bigfleet_operator_core::{
    ClosedBy, Controller, Count, Effect, EffectId, Event, Eviction, EvictionOutcome, Frame, Kind,
    LeaseStep, LeaseWatch, Object, ObjectKey, OperatorCore, Owner, OwnerState, OwnersFound,
    PodBrief, PodPhase, RENEW_EVERY, RENEW_WITHIN, SessionId, Write,
};
use std::collections::BTreeMap;

/// Whoever calls waits no longer.
pub(super) const CALL_WITHIN: u64 = seconds(10);
const TRY_AGAIN: u64 = seconds(1);

/// A process.
pub(crate) struct OperatorProcess {
    pub(super) core: OperatorCore,
    lease: LeaseWatch,
    pub(super) holder: String,
    led: bool,
    /// When the lease was last renewed, as its hands know it.
    renewed: Option<Time>,
    wake: u64,
    node_pods: BTreeMap<EffectId, NodePods>,
    pub(super) session: Option<SessionId>,
    pub(super) stopped_until: Moment,
}

/// The Pods of one Node, as a stream shows them.
#[derive(Default)]
struct NodePods {
    current: BTreeMap<ObjectKey, PodBrief>,
    filling: Option<BTreeMap<ObjectKey, PodBrief>>,
}

impl NodePods {
    fn take(&mut self, side: &Side, news: &News) -> Option<Vec<PodBrief>> {
        match news {
            News::Began => self.filling = Some(BTreeMap::new()),
            News::Listed(object, _) => self.put(side, object, false),
            News::Changed(change) => self.put(side, &change.object, change.is_gone),
            News::Whole(_) => {
                if let Some(filled) = self.filling.take() {
                    self.current = filled;
                }
            }
            News::Fresh(_) | News::Broken => return None,
        }
        let is_whole = self.filling.is_none();
        is_whole.then(|| self.current.values().cloned().collect())
    }

    fn put(&mut self, side: &Side, object: &Stored, is_gone: bool) {
        let Stored::Pod(pod) = object else { return };
        let pods = self.filling.as_mut().unwrap_or(&mut self.current);
        if is_gone {
            pods.remove(&pod.key);
        } else {
            pods.insert(pod.key.clone(), side.brief(pod));
        }
    }
}

/// A step of the lease.
#[derive(Clone, Debug)]
pub(crate) enum LeaseEvent {
    /// The process looks.
    Look,
    /// It has seen this, and looked from then on; `None` if there was no answer.
    Looked(Option<Option<(u64, String)>>),
    /// Its write arrives: begun then, replacing that version.
    Writes(Time, Option<u64>),
    /// The write was carried out and answered, with the new version.
    Wrote(Time, Option<u64>),
}

impl Side {
    /// A process of the operator starts.
    pub(super) fn start_operator(&mut self, now: Moment, out: &mut Out) {
        self.processes += 1;
        let number = self.processes;
        let holder = format!("operator-{number}");
        let mut config = self.config.clone();
        config.jitter_seed = self.dice.between(0, u64::from(u32::MAX));
        let process = OperatorProcess {
            core: OperatorCore::new(config),
            lease: LeaseWatch::new(&holder),
            holder,
            led: false,
            renewed: None,
            wake: 0,
            node_pods: BTreeMap::new(),
            session: None,
            stopped_until: Moment::START,
        };
        self.operators.insert(number, process);
        out.line(|| format!("operator {number} starts"));
        let soon = now.after(self.dice.between(1, 500));
        out.at(soon, SideEvent::Lease(number, LeaseEvent::Look));
    }

    /// A process dies; what it sent is on its way all the same.
    pub(super) fn kill_operator(&mut self, number: u64, out: &mut Out) -> bool {
        let Some(process) = self.operators.remove(&number) else {
            return false;
        };
        self.streams.end(|follower| {
            matches!(follower, Follower::Operator(of, _) | Follower::NodePods(of, ..) if *of == number)
        });
        self.ledger.process_ended(number);
        if let Some(session) = process.session {
            out.to_shard.push(ToShard::HangUp(number, session));
        }
        out.line(|| format!("operator {number} dies"));
        true
    }

    /// The process that leads, if one does.
    pub(super) fn leader(&self) -> Option<u64> {
        let mut leading = self.operators.iter();
        let leading = leading.find(|(_, process)| process.core.is_leading());
        leading.map(|(number, _)| *number)
    }

    /// Gives an event to a process.
    pub(super) fn tell(&mut self, now: Moment, number: u64, event: Event, out: &mut Out) {
        let Some(process) = self.operators.get_mut(&number) else {
            return;
        };
        if now < process.stopped_until {
            let until = process.stopped_until;
            out.in_order(until, SideEvent::Told(number, Box::new(event)));
            return;
        }
        if let Event::Closed(session, _) = &event {
            process.session = process.session.filter(|current| current != session);
        }
        let mut effects = Vec::new();
        self.ledger.told(number, now, &event);
        process.core.handle(now.time(), event, &mut effects);
        for effect in effects {
            self.perform(now, number, effect, out);
        }
    }

    /// A moment a process asked for has come.
    pub(super) fn wake(&mut self, now: Moment, number: u64, wake: u64, out: &mut Out) {
        let current = self.operators.get(&number).map(|process| process.wake);
        if current == Some(wake) {
            self.tell(now, number, Event::Woken, out);
        }
    }

    fn is_held(&self, now: Moment, number: u64) -> bool {
        let renewed = self.operators.get(&number).and_then(|one| one.renewed);
        renewed.is_some_and(|at| now.time().duration_since(at) < RENEW_WITHIN)
    }

    fn perform(&mut self, now: Moment, number: u64, effect: Effect, out: &mut Out) {
        self.look_at_effect(now, number, &effect, out);
        let soon = now.after(self.call_takes());
        match effect {
            Effect::WakeAt(time) => {
                if let Some(process) = self.operators.get_mut(&number) {
                    process.wake += 1;
                    let at = Moment::not_before(time).max(now);
                    out.at(at, SideEvent::Wake(number, process.wake));
                }
            }
            Effect::Follow(kind) => {
                let follower = Follower::Operator(number, kind);
                self.streams.follow(now, follower, &mut out.streams);
            }
            Effect::Unfollow => self
                .streams
                .end(|one| matches!(one, Follower::Operator(of, _) if *of == number)),
            Effect::ReadSpareRecord => out.at(soon, SideEvent::ReadSpare(number)),
            Effect::Count => out.at(soon, SideEvent::CountRequests(number)),
            Effect::Dial(session) => {
                if self.is_held(now, number) {
                    if let Some(process) = self.operators.get_mut(&number) {
                        process.session = Some(session);
                    }
                    out.to_shard.push(ToShard::Dial(number, session));
                } else {
                    let by = ClosedBy::Transport("this process no longer leads".to_owned());
                    let event = Event::Closed(session, by);
                    out.in_order(now, SideEvent::Told(number, Box::new(event)));
                }
            }
            Effect::Send(session, frame) => {
                if matches!(frame, Frame::RollUp { .. }) {
                    self.exposed(now, OperatorStrike::RollingUp, out);
                }
                out.to_shard
                    .push(ToShard::Say(number, session, Box::new(frame)));
            }
            Effect::HangUp(session) => {
                if let Some(process) = self.operators.get_mut(&number) {
                    process.session = process.session.filter(|current| *current != session);
                }
                out.to_shard.push(ToShard::HangUp(number, session));
            }
            Effect::Write(id, write) => {
                self.writes += 1;
                if matches!(write, Write::CordonNode { .. }) {
                    self.exposed(now, OperatorStrike::Cordoning, out);
                }
                out.at(soon, SideEvent::Write(number, id, Box::new(write)));
            }
            Effect::FollowPods(id, node) => {
                if let Some(process) = self.operators.get_mut(&number) {
                    process.node_pods.insert(id, NodePods::default());
                }
                let follower = Follower::NodePods(number, id, node);
                self.streams.follow(now, follower, &mut out.streams);
            }
            Effect::ForgetPods(id) => {
                if let Some(process) = self.operators.get_mut(&number) {
                    process.node_pods.remove(&id);
                }
                self.streams.end(
                    |one| matches!(one, Follower::NodePods(of, followed, _) if (*of, *followed) == (number, id)),
                );
            }
            Effect::Evict(id, eviction) => {
                if self.is_held(now, number) {
                    self.exposed(now, OperatorStrike::Evicting, out);
                    out.at(soon, SideEvent::Evict(number, id, eviction));
                } else {
                    let why = "this process no longer leads".to_owned();
                    let event = Event::Evicted(id, EvictionOutcome::Failed(why));
                    out.in_order(now, SideEvent::Told(number, Box::new(event)));
                }
            }
            Effect::ReadOwners(id, owners) => {
                out.at(soon, SideEvent::ReadOwners(number, id, owners));
            }
            Effect::Render(id, job) => {
                let rendered = job.render().map_err(|refused| refused.to_string());
                let event = Event::Rendered(id, rendered);
                out.at(soon, SideEvent::Told(number, Box::new(event)));
            }
            // Tokens are not asked for, and nobody here reads Events.
            Effect::MakeToken { .. } | Effect::Tell(_) => {}
            Effect::Alert(alert) => out.line(|| format!("operator {number} alert {alert:?}")),
        }
    }

    /// Something a stream of an operator brought.
    pub(super) fn bring_kind(
        &mut self,
        now: Moment,
        number: u64,
        kind: Kind,
        news: &News,
        out: &mut Out,
    ) {
        self.ledger.brought(number, kind, news);
        let event = match news {
            News::Began => Event::Began(kind),
            News::Listed(object, version) => match object.as_ref() {
                Stored::Other(object) => Event::Seen(object.clone(), *version),
                Stored::Pod(_) => return,
            },
            News::Changed(change) => match &change.object {
                Stored::Other(_) if change.is_gone => Event::Gone {
                    kind,
                    key: change.key.clone(),
                    version: change.version,
                },
                Stored::Other(object) => Event::Seen(object.clone(), change.version),
                Stored::Pod(_) => return,
            },
            News::Whole(version) => Event::Whole(kind, *version),
            News::Fresh(version) => Event::Fresh(kind, *version),
            News::Broken => Event::Broken(kind),
        };
        self.tell(now, number, event, out);
    }

    /// Something a stream of the Pods of a Node brought.
    pub(super) fn bring_pods(
        &mut self,
        now: Moment,
        number: u64,
        id: EffectId,
        news: &News,
        out: &mut Out,
    ) {
        let process = self.operators.get_mut(&number);
        let Some(mut pods) = process.and_then(|process| process.node_pods.remove(&id)) else {
            return;
        };
        let told = pods.take(self, news);
        if let Some(process) = self.operators.get_mut(&number) {
            process.node_pods.insert(id, pods);
        }
        if let Some(told) = told {
            self.tell(now, number, Event::Pods(id, Some(told)), out);
        }
    }

    /// A Pod as a drain sees it.
    pub(super) fn brief(&self, pod: &Pod) -> PodBrief {
        let precious = self.rules_of(pod.work).are_precious;
        let marks = precious.then(|| {
            (
                "bigfleet.lucy.sh/do-not-disrupt".to_owned(),
                "true".to_owned(),
            )
        });
        PodBrief {
            key: pod.key.clone(),
            uid: pod.uid.clone(),
            phase: if pod.is_running {
                PodPhase::Running
            } else {
                PodPhase::Pending
            },
            annotations: marks.into_iter().collect(),
            controller: Some(Controller {
                group: "apps".to_owned(),
                kind: "ReplicaSet".to_owned(),
            }),
            is_terminating: pod.is_terminating,
        }
    }

    /// Answers a call, later or when the caller has stopped waiting.
    pub(super) fn answer(
        &mut self,
        now: Moment,
        number: u64,
        event: Event,
        fate: Fate,
        out: &mut Out,
    ) {
        let after = if fate.is_silent() {
            CALL_WITHIN
        } else {
            self.call_takes()
        };
        out.at(now.after(after), SideEvent::Told(number, Box::new(event)));
    }

    pub(super) fn write_arrives(
        &mut self,
        now: Moment,
        number: u64,
        id: EffectId,
        write: Write,
        out: &mut Out,
    ) {
        let fate = self.fate(now, out);
        let mut outcome = fate.outcome();
        if fate.is_done() {
            self.look_at_write(now, &write, out);
            let done = api::write(&mut self.store, write);
            outcome.get_or_insert(done);
        }
        if let Some(outcome) = outcome {
            self.answer(now, number, Event::Wrote(id, outcome), fate, out);
        }
    }

    pub(super) fn eviction_arrives(
        &mut self,
        now: Moment,
        number: u64,
        id: EffectId,
        eviction: &Eviction,
        out: &mut Out,
    ) {
        let fate = self.fate(now, out);
        let mut outcome = fate.eviction();
        if fate.is_done() {
            let done = self.carry_out_eviction(now, eviction);
            if done == EvictionOutcome::Budget {
                out.struck("budget refuses");
            }
            out.line(|| format!("evict {} {done:?}", eviction.pod));
            outcome.get_or_insert(done);
        }
        if let Some(outcome) = outcome {
            self.answer(now, number, Event::Evicted(id, outcome), fate, out);
        }
    }

    pub(super) fn spare_is_read(&mut self, now: Moment, number: u64, out: &mut Out) {
        let fate = self.fate(now, out);
        if fate == Fate::Done {
            let event = Event::SpareRecord(self.store.spare_record.clone());
            self.answer(now, number, event, fate, out);
        } else {
            out.at(now.after(TRY_AGAIN), SideEvent::ReadSpare(number));
        }
    }

    pub(super) fn requests_are_counted(&mut self, now: Moment, number: u64, out: &mut Out) {
        let fate = self.fate(now, out);
        let count = (fate == Fate::Done).then(|| Count {
            version: self.store.version(),
            items: self.store.requests().count() as u64,
        });
        self.answer(now, number, Event::Counted(count), fate, out);
    }

    pub(super) fn owners_are_read(
        &mut self,
        now: Moment,
        number: u64,
        id: EffectId,
        owners: Vec<Owner>,
        out: &mut Out,
    ) {
        let fate = self.fate(now, out);
        let state = |owner: &Owner| match self.store.pod(&owner.key) {
            Some(pod) if pod.uid == owner.uid => OwnerState::Live {
                is_bound: !pod.node.is_empty(),
            },
            _ => OwnerState::Over,
        };
        let found = (fate == Fate::Done).then(|| OwnersFound {
            owners: owners
                .iter()
                .map(|owner| (owner.clone(), state(owner)))
                .collect(),
            is_crd_there: self.store.is_crd_there,
        });
        self.answer(now, number, Event::Owners(id, found), fate, out);
    }

    /// One step of a process's lease.
    pub(super) fn lease(&mut self, now: Moment, number: u64, event: LeaseEvent, out: &mut Out) {
        let takes = now.after(self.call_takes());
        let Some(process) = self.operators.get(&number) else {
            // What a process that died had sent arrives all the same.
            if let LeaseEvent::Writes(_, version) = event {
                let holder = format!("operator-{number}");
                self.write_lease(&holder, version);
            }
            return;
        };
        if now < process.stopped_until && !matches!(event, LeaseEvent::Writes(..)) {
            out.in_order(process.stopped_until, SideEvent::Lease(number, event));
            return;
        }
        match event {
            LeaseEvent::Look => {
                let fate = self.fate(now, out);
                let looked = (fate == Fate::Done).then(|| self.store.lease.clone());
                out.at(takes, SideEvent::Lease(number, LeaseEvent::Looked(looked)));
            }
            LeaseEvent::Looked(looked) => self.lease_looked(now, number, looked, out),
            LeaseEvent::Writes(began, version) => {
                let holder = process.holder.clone();
                let fate = self.fate(now, out);
                let mut wrote = None;
                if fate.is_done() {
                    wrote = self.write_lease(&holder, version);
                }
                let wrote = wrote.filter(|_| fate == Fate::Done);
                let after = if fate.is_silent() {
                    now.after(CALL_WITHIN)
                } else {
                    takes
                };
                let answer = LeaseEvent::Wrote(began, wrote);
                out.at(after, SideEvent::Lease(number, answer));
            }
            LeaseEvent::Wrote(began, version) => {
                if let Some(process) = self.operators.get_mut(&number)
                    && let Some(version) = version
                {
                    process.lease.wrote(began, &version.to_string());
                }
                self.lease_known(now, number, version.is_none(), out);
            }
        }
    }

    fn write_lease(&mut self, holder: &str, version: Option<u64>) -> Option<u64> {
        let current = self.store.lease.as_ref().map(|(version, _)| *version);
        if current != version {
            return None;
        }
        let version = self.store.next_version();
        self.store.lease = Some((version, holder.to_owned()));
        Some(version)
    }

    fn lease_looked(
        &mut self,
        now: Moment,
        number: u64,
        looked: Option<Option<(u64, String)>>,
        out: &mut Out,
    ) {
        let takes = now.after(self.call_takes());
        let Some(process) = self.operators.get_mut(&number) else {
            return;
        };
        let Some(seen) = looked else {
            return self.lease_known(now, number, true, out);
        };
        let version = seen.as_ref().map(|(version, _)| *version);
        let text = seen.map(|(version, holder)| (version.to_string(), holder));
        let text = text.as_ref();
        process.lease.saw(
            now.time(),
            text.map(|(version, holder)| (version.as_str(), holder.as_str())),
        );
        match process.lease.step(now.time()) {
            LeaseStep::Write => {
                let write = LeaseEvent::Writes(now.time(), version);
                out.at(takes, SideEvent::Lease(number, write));
            }
            LeaseStep::WaitUntil(_) => self.lease_known(now, number, false, out),
        }
    }

    /// The core is told, and the next look is planned.
    fn lease_known(&mut self, now: Moment, number: u64, failed: bool, out: &mut Out) {
        let blind = self.leases_are_ignored;
        let Some(process) = self.operators.get_mut(&number) else {
            return;
        };
        let mut renewed = process.lease.renewed(now.time());
        if blind {
            renewed = Some(now.time());
        }
        process.renewed = renewed;
        let pause = match process.lease.step(now.time()) {
            _ if failed => TRY_AGAIN,
            LeaseStep::Write => TRY_AGAIN,
            LeaseStep::WaitUntil(at) => {
                let wait = at.duration_since(now.time()).min(RENEW_EVERY);
                wait.as_millis() as u64
            }
        };
        out.at(
            now.after(pause.max(1)),
            SideEvent::Lease(number, LeaseEvent::Look),
        );
        if process.led || renewed.is_some() {
            process.led = renewed.is_some();
            self.tell(now, number, Event::Leads(renewed), out);
        }
    }
}

/// The request of an object, if it is one.
pub(super) fn request_in(object: &Stored) -> Option<&bigfleet_operator_core::RequestFacts> {
    match object {
        Stored::Other(Object::Request(facts)) => Some(facts),
        _ => None,
    }
}
