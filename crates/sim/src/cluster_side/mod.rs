//! The cluster side: a Kubernetes with the real operator and the real pod controller in it.
//!
//! ```text
//! workloads ─▶ Pods ─▶ pod controller ─▶ requests ─▶ operator ◀──── frames, delayed ────▶ shard
//!                ▲                                     │ cordons, evictions, UpcomingNodes
//! scheduler ─────┘       Nodes ◀── kubelets ◀── machines of the provider
//! ```
//!
//! A value like the cores it holds: told what happens and when, it answers with what is to happen later. What it sends to
//! the shard, and what it finds wrong, is in [`Out`]; the world puts it into the one queue. Its draws are its own, so a
//! cluster without an operator of this kind lives as if there were none.
//!
//! | File | Idea |
//! |---|---|
//! | `store`, `streams`, `api` | what is kept, who is told of it, and what becomes of writes |
//! | `operators`, `controller` | processes around the two cores |
//! | `workloads`, `kubelets` | Pods and Nodes, and what makes and ends them |
//! | `frames` | the words of one core as the other has them |
//! | `ledger`, `rest` | what must hold, after every event and in the end |

mod api;
mod controller;
mod frames;
mod kubelets;
mod ledger;
mod operators;
mod rest;
pub(crate) mod settings;
mod store;
pub(crate) mod streams;
mod workloads;
mod world;

pub(crate) use world::STAYS;

use crate::{
    clock::{Moment, seconds},
    dice::{Dice, Latency},
    plan::ClusterPlan,
    watch::Rule,
};
use api::Fate;
use bigfleet_model::{ClusterId, MachineId};
use bigfleet_operator_core::{
    EffectId, Event, Eviction, Frame, ObjectKey, OperatorConfig, Owner, PodEffect, SessionId, Write,
};
use bigfleet_shard_core as shard;
use controller::ControllerProcess;
use kubelets::Kubelet;
use ledger::Ledger;
use operators::{LeaseEvent, OperatorProcess};
use settings::{ClusterChange, KubernetesPlan, OperatorStrike};
use std::{collections::BTreeMap, time::Duration};
use store::{Resource, Store};
use streams::{Follower, News, Planned, StreamEvent, Streams};
use workloads::Workload;

/// One way of a call to the API server.
const CALL: Latency = Latency::Stragglers((1, 30), 20, (50, 800));
/// How often what must always hold is looked at, and what the shard knows is told.
const LOOK_EVERY: u64 = seconds(5);

/// Something that is going to happen in a cluster.
pub(crate) enum SideEvent {
    /// A stream does something, in this life.
    Stream(u64, u64, StreamEvent),
    /// An event reaches a process of the operator.
    Told(u64, Box<Event>),
    Wake(u64, u64),
    Lease(u64, LeaseEvent),
    Write(u64, EffectId, Box<Write>),
    Evict(u64, EffectId, Eviction),
    ReadSpare(u64),
    CountRequests(u64),
    ReadOwners(u64, EffectId, Vec<Owner>),
    ControllerWake(u64, u64),
    PodWrite(Box<PodEffect>),
    StartOperator,
    StartController,
    /// A kill that was meant for a certain point of its work.
    KillOperator(u64, u64),
    Reconcile,
    Schedule,
    Collect,
    /// A Pod's time to end is over.
    Ended(ObjectKey),
    /// A Pod that was placed runs.
    Runs(ObjectKey),
    Registers(MachineId, u64),
    Silent(MachineId),
    Tainted(String),
    /// Nodes that were cut off are heard again.
    Heard,
    /// The definition of requests is installed again.
    CrdBack,
    Look,
}

/// Something for the shard.
pub(crate) enum ToShard {
    Dial(u64, SessionId),
    Say(u64, SessionId, Box<Frame>),
    HangUp(u64, SessionId),
    /// The session breaks; half open, its operator does not notice.
    Break {
        half_open: bool,
    },
    /// Tell the operator what the shard knows of its rows.
    TellNeeds,
}

/// What follows from one event.
#[derive(Default)]
pub(crate) struct Out {
    pub(crate) later: Vec<(Moment, bool, SideEvent)>,
    streams: Vec<Planned>,
    pub(crate) to_shard: Vec<ToShard>,
    pub(crate) broken: Option<(Rule, String)>,
    pub(crate) lines: Vec<String>,
    pub(crate) struck: Vec<&'static str>,
    /// Whether anything but a heartbeat happened.
    pub(crate) changes: Vec<String>,
}

impl Out {
    fn at(&mut self, moment: Moment, what: SideEvent) {
        self.later.push((moment, false, what));
    }

    fn in_order(&mut self, moment: Moment, what: SideEvent) {
        self.later.push((moment, true, what));
    }

    fn line(&mut self, text: impl FnOnce() -> String) {
        self.lines.push(text());
    }

    fn struck(&mut self, fault: &'static str) {
        self.struck.push(fault);
    }

    fn broke(&mut self, rule: Rule, text: String) {
        self.broken.get_or_insert((rule, text));
    }
}

/// A cluster with a real operator.
pub(crate) struct Side {
    plan: KubernetesPlan,
    config: OperatorConfig,
    works: Vec<Workload>,
    store: Store,
    streams: Streams,
    operators: BTreeMap<u64, OperatorProcess>,
    controller: Option<ControllerProcess>,
    processes: u64,
    kubelets: BTreeMap<MachineId, Kubelet>,
    boots: u64,
    partitioned_until: Moment,
    ledger: Ledger,
    dice: Dice,
    is_calm: bool,
    /// A kill that strikes at the next moment of its kind.
    armed: Option<(OperatorStrike, u64)>,
    api_away_until: Moment,
    pub(crate) shard_away_until: Moment,
    /// The hands act as if every process had the lease: a planted mistake.
    leases_are_ignored: bool,
    /// Open sessions: which process has which of the shard's.
    links: BTreeMap<(u64, SessionId), Link>,
    /// What was last told of rows, and on which session.
    needs_told: Option<(shard::SessionId, Vec<bigfleet_operator_core::RowStatus>)>,
    planned: Vec<(Moment, SideEvent)>,
    is_to_reconcile: bool,
    is_to_schedule: bool,
    is_to_collect: bool,
    is_planned: [bool; 3],
    /// When something last changed that matters to anybody.
    pub(crate) stirred_at: Moment,
    /// Writes of operators and the pod controller.
    pub(crate) writes: u64,
    pub(crate) evicted: u64,
}

/// One session.
#[derive(Clone, Copy, Debug)]
struct Link {
    epoch: u64,
    session: shard::SessionId,
}

impl Side {
    pub(crate) fn new(
        id: &ClusterId,
        cluster: &ClusterPlan,
        plan: &KubernetesPlan,
        dice: Dice,
        defect: Option<bigfleet_operator_core::Defect>,
        leases_are_ignored: bool,
    ) -> Self {
        let config = OperatorConfig {
            rollup_interval: Duration::from_millis(cluster.roll_up_every),
            reclaim_settle: Duration::from_millis(plan.settle),
            defect,
            ..OperatorConfig::new(id.clone())
        };
        Self {
            plan: plan.clone(),
            config,
            works: cluster.works.iter().map(Workload::of).collect(),
            store: Store::new(),
            streams: Streams::default(),
            operators: BTreeMap::new(),
            controller: None,
            processes: 0,
            kubelets: BTreeMap::new(),
            boots: 0,
            partitioned_until: Moment::START,
            ledger: Ledger::default(),
            dice,
            is_calm: false,
            armed: None,
            api_away_until: Moment::START,
            shard_away_until: Moment::START,
            leases_are_ignored,
            links: BTreeMap::new(),
            needs_told: None,
            planned: Vec::new(),
            is_to_reconcile: true,
            is_to_schedule: false,
            is_to_collect: false,
            is_planned: [false; 3],
            stirred_at: Moment::START,
            writes: 0,
            evicted: 0,
        }
    }

    /// What happens first.
    pub(crate) fn begin(&mut self, out: &mut Out) {
        let now = Moment::START;
        for _ in 0..self.plan.operators {
            let at = now.after(self.dice.between(100, 3_000));
            out.at(at, SideEvent::StartOperator);
        }
        let at = now.after(self.dice.between(100, 3_000));
        out.at(at, SideEvent::StartController);
        out.at(now.after(LOOK_EVERY), SideEvent::Look);
        self.flush(now, out);
    }

    /// How long one way of a call takes.
    fn call_takes(&mut self) -> u64 {
        self.dice.latency(CALL)
    }

    /// What becomes of a call that arrives now.
    fn fate(&mut self, now: Moment, out: &mut Out) -> Fate {
        let fate = if now < self.api_away_until {
            Fate::Away
        } else if self.is_calm {
            Fate::Done
        } else {
            Fate::drawn(self.plan.api, &mut self.dice)
        };
        out.struck.extend(fate.name());
        fate
    }

    /// Something happens.
    pub(crate) fn step(&mut self, now: Moment, event: SideEvent, out: &mut Out) {
        match event {
            SideEvent::Stream(id, life, event) => self.stream(now, id, life, event, out),
            SideEvent::Told(number, event) => self.tell(now, number, *event, out),
            SideEvent::Wake(number, wake) => self.wake(now, number, wake, out),
            SideEvent::Lease(number, event) => self.lease(now, number, event, out),
            SideEvent::Write(number, id, write) => self.write_arrives(now, number, id, *write, out),
            SideEvent::Evict(number, id, eviction) => {
                self.eviction_arrives(now, number, id, &eviction, out);
            }
            SideEvent::ReadSpare(number) => self.spare_is_read(now, number, out),
            SideEvent::CountRequests(number) => self.requests_are_counted(now, number, out),
            SideEvent::ReadOwners(number, id, owners) => {
                self.owners_are_read(now, number, id, owners, out);
            }
            SideEvent::ControllerWake(number, wake) => self.wake_controller(now, number, wake, out),
            SideEvent::PodWrite(effect) => self.pod_write_arrives(now, *effect, out),
            SideEvent::StartOperator => self.start_operator(now, out),
            SideEvent::StartController => self.start_controller(now, out),
            SideEvent::KillOperator(number, millis) => {
                if !self.is_calm {
                    self.kill_and_replace(now, number, millis, out);
                }
            }
            SideEvent::Reconcile => {
                self.is_planned[0] = false;
                self.reconcile(now);
            }
            SideEvent::Schedule => {
                self.is_planned[1] = false;
                self.schedule(now);
            }
            SideEvent::Collect => {
                self.is_planned[2] = false;
                self.collect(now);
            }
            SideEvent::Ended(key) => self.pod_ended(now, &key),
            SideEvent::Runs(key) => self.runs_now(now, &key),
            SideEvent::Registers(machine, boot) => self.register(now, &machine, boot),
            SideEvent::Silent(machine) => self.silent(now, &machine),
            SideEvent::Tainted(name) => self.tainted(now, &name),
            SideEvent::Heard => self.heard_again(now),
            SideEvent::CrdBack => self.store.is_crd_there = true,
            SideEvent::Look => {
                out.at(now.after(LOOK_EVERY), SideEvent::Look);
                self.check_persons(out);
                out.to_shard.push(ToShard::TellNeeds);
            }
        }
        self.flush(now, out);
    }

    fn stream(&mut self, now: Moment, id: u64, life: u64, event: StreamEvent, out: &mut Out) {
        let Some(follower) = self.streams.follower(id, life).cloned() else {
            return;
        };
        match event {
            StreamEvent::Opens if now < self.api_away_until => {
                self.streams.cut(now, id, &mut self.dice, &mut out.streams);
            }
            StreamEvent::Opens => {
                let weather = if self.is_calm {
                    streams::StreamWeather::default()
                } else {
                    self.plan.streams
                };
                let (store, dice) = (&self.store, &mut self.dice);
                let streams = &mut out.streams;
                let struck = self.streams.opens(now, id, store, weather, dice, streams);
                out.struck.extend(struck);
            }
            StreamEvent::Bookmark => {
                let version = self.store.version();
                self.streams
                    .bookmark(now, id, version, &mut self.dice, &mut out.streams);
            }
            StreamEvent::Breaks => {
                out.struck("watch breaks");
                self.cut(now, id, &follower, out);
            }
            StreamEvent::Brings(news) if now < self.stands_until(&follower) => {
                let until = self.stands_until(&follower);
                let again = SideEvent::Stream(id, life, StreamEvent::Brings(news));
                out.in_order(until, again);
            }
            StreamEvent::Brings(news) => {
                self.streams.arrived(id, &news);
                self.bring(now, &follower, &news, out);
            }
        }
    }

    /// Until when whoever follows stands still.
    fn stands_until(&self, follower: &Follower) -> Moment {
        let (Follower::Operator(number, _) | Follower::NodePods(number, ..)) = follower else {
            return Moment::START;
        };
        let process = self.operators.get(number);
        process.map_or(Moment::START, |process| process.stopped_until)
    }

    fn cut(&mut self, now: Moment, id: u64, follower: &Follower, out: &mut Out) {
        if self.streams.cut(now, id, &mut self.dice, &mut out.streams) {
            self.bring(now, follower, &News::Broken, out);
        }
    }

    fn bring(&mut self, now: Moment, follower: &Follower, news: &News, out: &mut Out) {
        match follower {
            Follower::Operator(number, kind) => self.bring_kind(now, *number, *kind, news, out),
            Follower::NodePods(number, id, _) => self.bring_pods(now, *number, *id, news, out),
            Follower::Controller(number, resource) => {
                self.bring_controller(now, *number, *resource, news, out);
            }
        }
    }

    /// Hands changes of the store to whoever follows, and plans what they cause.
    pub(crate) fn flush(&mut self, now: Moment, out: &mut Out) {
        for change in self.store.take_news() {
            let gone = if change.is_gone { " gone" } else { "" };
            let text = format!("{:?} {}{gone}", change.resource, change.key);
            out.changes.push(text);
            self.streams
                .changed(now, &change, &mut self.dice, &mut out.streams);
            if let Some(facts) = operators::request_in(&change.object) {
                self.ledger.request_made(facts, now);
            }
            match change.resource {
                Resource::Pods => {
                    (self.is_to_reconcile, self.is_to_schedule) = (true, true);
                    self.is_to_collect |= change.is_gone;
                    self.stirred_at = now;
                }
                Resource::Nodes => {
                    (self.is_to_reconcile, self.is_to_schedule) = (true, true);
                    self.stirred_at = now;
                    if change.is_gone {
                        self.node_object_gone(now, &change.key.name, out);
                    }
                }
                Resource::Requests | Resource::Upcoming => {
                    self.is_to_collect |= change.resource == Resource::Requests;
                    self.stirred_at = now;
                }
                Resource::Available => {}
            }
        }
        let planned = [
            (self.is_to_reconcile, (100, 1_000)),
            (self.is_to_schedule, (20, 300)),
            (self.is_to_collect, (100, 4_000)),
        ];
        for (at, (is_due, (least, most))) in planned.into_iter().enumerate() {
            if is_due && !self.is_planned[at] {
                self.is_planned[at] = true;
                let moment = now.after(self.dice.between(least, most));
                let what = match at {
                    0 => SideEvent::Reconcile,
                    1 => SideEvent::Schedule,
                    _ => SideEvent::Collect,
                };
                out.at(moment, what);
            }
        }
        (
            self.is_to_reconcile,
            self.is_to_schedule,
            self.is_to_collect,
        ) = (false, false, false);
        for (at, what) in std::mem::take(&mut self.planned) {
            out.at(at, what);
        }
        for (at, id, life, event) in std::mem::take(&mut out.streams) {
            out.in_order(at, SideEvent::Stream(id, life, event));
        }
    }

    /// An entry of the timeline.
    pub(crate) fn change(&mut self, now: Moment, change: &ClusterChange, out: &mut Out) {
        self.stirred_at = now;
        match *change {
            ClusterChange::Rollover { work } => {
                out.struck("rollover");
                self.roll_over(work);
            }
            ClusterChange::KillOperator {
                strike: OperatorStrike::Now,
                millis,
            } => {
                let leader = self.leader().or(self.operators.keys().next().copied());
                if let Some(number) = leader {
                    self.kill_and_replace(now, number, millis, out);
                }
            }
            ClusterChange::KillOperator { strike, millis } => self.armed = Some((strike, millis)),
            ClusterChange::StopOperator { millis } => {
                let leader = self.leader();
                let leader = leader.and_then(|number| self.operators.get_mut(&number));
                if let Some(process) = leader {
                    out.struck("operator stands still");
                    process.stopped_until = now.after(millis);
                }
            }
            ClusterChange::KillController { millis } => {
                out.struck("pod controller dies");
                self.kill_controller();
                out.at(now.after(millis), SideEvent::StartController);
            }
            ClusterChange::WatchesGone => {
                out.struck("watches gone");
                self.store.compact();
                self.cut_all(now, out);
            }
            ClusterChange::StaleWatches { millis } => {
                out.struck("watches stale");
                self.streams.held_until = now.after(millis);
            }
            ClusterChange::ApiAway { millis } => {
                out.struck("api server away");
                self.api_away_until = now.after(millis);
                self.cut_all(now, out);
            }
            ClusterChange::WipeRequests { millis } => {
                out.struck("requests wiped");
                self.wipe_requests();
                out.at(now.after(millis), SideEvent::CrdBack);
            }
            ClusterChange::PersonCordons { count } => self.person_cordons(count, out),
            ClusterChange::PersonUncordons => self.person_uncordons(),
            ClusterChange::SessionBreaks { half_open } => {
                out.struck(if half_open {
                    "session half open"
                } else {
                    "session breaks"
                });
                out.to_shard.push(ToShard::Break { half_open });
            }
            ClusterChange::ShardUnreachable { millis } => {
                out.struck("shard unreachable");
                self.shard_away_until = now.after(millis);
                out.to_shard.push(ToShard::Break { half_open: true });
            }
        }
        self.flush(now, out);
    }

    fn cut_all(&mut self, now: Moment, out: &mut Out) {
        for id in self.streams.ids() {
            let life = self.streams.life(id);
            if let Some(follower) = self.streams.follower(id, life).cloned() {
                self.cut(now, id, &follower, out);
            }
        }
    }

    fn kill_and_replace(&mut self, now: Moment, number: u64, millis: u64, out: &mut Out) {
        if self.kill_operator(number, out) {
            out.struck("operator dies");
            self.stirred_at = now;
            out.at(now.after(millis), SideEvent::StartOperator);
        }
    }

    /// The operator reached a point of its work at which a kill may have been planned.
    fn exposed(&mut self, now: Moment, strike: OperatorStrike, out: &mut Out) {
        let armed = self.armed.filter(|(meant, _)| *meant == strike);
        if let Some((_, millis)) = armed
            && let Some(number) = self.leader()
        {
            self.armed = None;
            let at = now.after(self.dice.between(0, 1_500));
            out.at(at, SideEvent::KillOperator(number, millis));
        }
    }

    /// The faults stop.
    pub(crate) fn calm_down(&mut self, now: Moment, out: &mut Out) {
        self.is_calm = true;
        self.armed = None;
        self.stirred_at = now;
        self.api_away_until = now;
        self.shard_away_until = now;
        self.streams.held_until = now;
        self.store.is_crd_there = true;
        self.partitioned_until = self.partitioned_until.min(now);
        self.heard_again(now);
        let stopped = self.operators.values_mut();
        stopped.for_each(|process| process.stopped_until = process.stopped_until.min(now));
        self.flush(now, out);
    }
}
