//! The watch: what must be true after every event, and who broke it.
//!
//! ```text
//! effects of one event ─▶ commits: durable before it leaves, audited when it ends
//!                      ─▶ owners: one cluster per machine
//!                      ─▶ cover: nothing drained that still serves; nothing short beside free supply
//!                      ─▶ rails: no faster than the cap
//! at rest ─────────────▶ ledger = truth, nothing leaks
//! ```
//!
//! Each check costs what the event touched. The first rule that breaks ends the run, so a report
//! names a cause and not its consequences.

mod commits;
mod cover;
mod demand;
mod rest;

pub(crate) use commits::Commits;
pub(crate) use demand::Demand;

use crate::{clock::Moment, cloud, log::Committed, world::World};
use bigfleet_model::{ActionKind, Machine, MachineId, State};
use bigfleet_provider_kit::Offer;
use bigfleet_shard_core::{Alert, Echo, Effect, Frame};
use std::{collections::BTreeMap, fmt};

/// What must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// A machine serves one cluster, and only that one is told so.
    OneOwner,
    /// Nothing leaves before its commit is on disk (SH-5).
    DurableFirst,
    /// No action without an audit record (AU-1).
    Audited,
    /// Nothing is drained that still serves a Need that would be uncovered (RF-11).
    MakeBeforeBreak,
    /// Nothing is reclaimed from a cluster that has not reported (SH-8).
    ReportedFirst,
    /// No more reclaims than rail 1 allows (SR-2).
    ReclaimCap,
    /// No older life of the shard acts after a newer one (FE-2, FE-4).
    Fenced,
    /// No Need stays short while a machine it may take is free.
    ServedInTime,
    /// What the provider still has is not believed gone (SH-10).
    NotBelievedGone,
    /// No cycle acquires for a Need and reclaims what that Need could use (§10.4).
    NoRoundTrip,
    /// A call the provider finds malformed, or a machine bound by somebody else.
    Contract,
    /// At rest the ledger says what the provider says.
    LedgerIsTruth,
    /// At rest nothing is left over: operations, intents, records of either.
    NothingLeaks,
    /// Once the faults stop, the fleet comes to rest and stays there.
    ComesToRest,
    /// What the scenario demands.
    Gate,
}

impl Rule {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::OneOwner => "one-owner",
            Self::DurableFirst => "durable-first",
            Self::Audited => "audited",
            Self::MakeBeforeBreak => "make-before-break",
            Self::ReportedFirst => "reported-first",
            Self::ReclaimCap => "reclaim-cap",
            Self::Fenced => "fenced",
            Self::ServedInTime => "served-in-time",
            Self::NotBelievedGone => "not-believed-gone",
            Self::NoRoundTrip => "no-round-trip",
            Self::Contract => "contract",
            Self::LedgerIsTruth => "ledger-is-truth",
            Self::NothingLeaks => "nothing-leaks",
            Self::ComesToRest => "comes-to-rest",
            Self::Gate => "gate",
        }
    }
}

/// A rule that broke.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Which.
    pub rule: Rule,
    /// When.
    pub at: Moment,
    /// How.
    pub text: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {} s: {}", self.rule.name(), self.at, self.text)
    }
}

/// What the watch remembers between events.
pub(crate) struct Watch {
    pub(crate) broken: Option<Broken>,
    pub(crate) commits: Commits,
    pub(crate) demand: Demand,
    /// Which cluster was last told that a machine is its own.
    told: BTreeMap<MachineId, usize>,
    /// The newest life of the shard that changed a machine.
    pub(crate) newest: BTreeMap<MachineId, u64>,
    pub(crate) losses: u64,
    /// Two processes ran at once.
    pub(crate) twins: bool,
    pub(crate) paused_until: Moment,
    /// When the last fault or change of demand was.
    pub(crate) disturbed_at: Moment,
    /// When the last action was committed.
    pub(crate) acted_at: Moment,
    /// When a machine last changed at the provider.
    pub(crate) moved_at: Moment,
    /// Slots that are going to be mended.
    pub(crate) repairs: u32,
    /// When a full List last told the truth, and when one last did not.
    pub(crate) truthful_at: Moment,
    pub(crate) lied_at: Moment,
    /// When a machine that had vanished was there again.
    pub(crate) back_at: BTreeMap<MachineId, Moment>,
    short: BTreeMap<bigfleet_model::NeedKey, Moment>,
    /// When a Create of a pool, by type and zone, last failed.
    failed_pools: BTreeMap<(String, String), Moment>,
}

/// No pool is left alone for longer than this after a failure (SH-11), and some.
const LONGEST_BACKOFF: u64 = crate::clock::seconds(660);

impl Watch {
    pub(crate) fn new(clusters: usize) -> Self {
        Self {
            broken: None,
            commits: Commits::default(),
            demand: Demand::new(clusters),
            told: BTreeMap::new(),
            newest: BTreeMap::new(),
            losses: 0,
            twins: false,
            paused_until: Moment::START,
            disturbed_at: Moment::START,
            acted_at: Moment::START,
            moved_at: Moment::START,
            repairs: 0,
            truthful_at: Moment::START,
            lied_at: Moment::START,
            back_at: BTreeMap::new(),
            short: BTreeMap::new(),
            failed_pools: BTreeMap::new(),
        }
    }

    /// A Create failed: its pool may be left alone for a while.
    pub(crate) fn pool_failed(&mut self, offer: &Offer, now: Moment) {
        let pool = (offer.instance_type.clone(), offer.zone.clone());
        self.failed_pools.insert(pool, now);
    }

    /// Whether some pool may still be left alone, so that a Need is short for a while longer.
    fn some_pool_waits(&self, now: Moment) -> bool {
        let mut failed = self.failed_pools.values();
        failed.any(|at| now.since(*at) < LONGEST_BACKOFF)
    }

    fn is_backing_off(&self, machine: &Machine, now: Moment) -> bool {
        let shape = machine.shape();
        let pool = (shape.instance_type.clone(), shape.zone.clone());
        let failed = self.failed_pools.get(&pool);
        machine.state() == State::Speculative
            && failed.is_some_and(|at| now.since(*at) < LONGEST_BACKOFF)
    }

    /// Notes that a rule broke; the first one counts.
    pub(crate) fn broke(&mut self, rule: Rule, at: Moment, text: String) {
        self.broken.get_or_insert(Broken { rule, at, text });
    }

    pub(crate) fn disturbed(&mut self, now: Moment) {
        self.disturbed_at = now;
    }

    /// An operator is gone: it will be told anew what is its own.
    pub(crate) fn disconnected(&mut self, cluster: usize) {
        self.told.retain(|_, owner| *owner != cluster);
    }

    /// A process is gone: what it was told and what it had accepted is gone with it.
    pub(crate) fn process_lost(&mut self, now: Moment) {
        self.disturbed_at = now;
        self.demand.forget();
        self.told.clear();
        self.short.clear();
    }
}

impl World {
    /// Looks at what one event made a process do.
    pub(crate) fn look(&mut self, epoch: u64, effects: &[Effect]) {
        let mut decided = Vec::new();
        for effect in effects {
            match effect {
                Effect::Persist { barrier, records } => {
                    decided.extend(self.watch.commits.written(epoch, *barrier, records));
                }
                Effect::Call {
                    operation, machine, ..
                } => self.look_at_call(epoch, *operation, machine),
                Effect::Send { session, frame } => self.look_at_frame(epoch, *session, frame),
                Effect::Audit(record) => {
                    if let Some(operation) = record.operation {
                        self.watch.commits.audited(operation);
                    }
                    self.trace.audit(self.now, record);
                }
                Effect::Alert(alert) => self.look_at_alert(alert),
                _ => {}
            }
        }
        for (operation, machine, kind, cluster) in &decided {
            self.watch.acted_at = self.now;
            let committed = Committed {
                at: self.now,
                kind: *kind,
                machine: machine.clone(),
                cluster: cluster.clone(),
            };
            self.trace.committed(self.now, *operation, &committed);
            self.log.actions.push(committed);
        }
        if epoch == self.current {
            self.look_at_decision(&decided);
        }
    }

    fn look_at_call(
        &mut self,
        epoch: u64,
        operation: bigfleet_shard_core::OperationId,
        machine: &MachineId,
    ) {
        let fenced = self.processes.get(&epoch).is_some_and(|one| one.fenced);
        if fenced {
            let text = format!("process {epoch} was fenced, and still calls about {machine}");
            self.watch.broke(Rule::Fenced, self.now, text);
        }
        if let Err(why) = self.watch.commits.leaves(operation) {
            let text = format!("a call about {machine} left, but {operation} {why}");
            self.watch.broke(Rule::DurableFirst, self.now, text);
        }
    }

    fn look_at_frame(
        &mut self,
        epoch: u64,
        session: bigfleet_shard_core::SessionId,
        frame: &Frame,
    ) {
        let process = self.processes.get_mut(&epoch);
        let Some(process) = process.filter(|_| epoch == self.current) else {
            return;
        };
        let Some(cluster) = process.sessions.get(&session).copied() else {
            return;
        };
        match frame {
            Frame::Ack {
                echo: Echo::RollUpAccepted,
                rollup_id,
                ..
            } => {
                process.heard.insert(cluster);
                self.watch.demand.accepted(cluster, rollup_id);
            }
            Frame::Reclaim {
                instruction,
                machine,
                ..
            } => {
                if let Err(why) = self.watch.commits.leaves(*instruction) {
                    let text =
                        format!("an instruction for {machine} left, but {instruction} {why}");
                    self.watch.broke(Rule::DurableFirst, self.now, text);
                }
            }
            Frame::Node(node) => {
                let mine = node.state.is_bound() && !node.removed;
                let owner = self.watch.told.get(&node.machine).copied();
                match (mine, owner) {
                    (true, Some(other)) if other != cluster => {
                        let text = format!(
                            "{} is told to be {}'s while {} has it",
                            node.machine, self.clusters[cluster].id, self.clusters[other].id
                        );
                        self.watch.broke(Rule::OneOwner, self.now, text);
                    }
                    (true, _) => {
                        self.watch.told.insert(node.machine.clone(), cluster);
                    }
                    (false, Some(owner)) if owner == cluster => {
                        self.watch.told.remove(&node.machine);
                    }
                    (false, _) => {}
                }
            }
            _ => {}
        }
    }

    fn look_at_alert(&mut self, alert: &Alert) {
        self.trace.line(self.now, || format!("alert {alert:?}"));
        // With two processes at once, conflicts are what must be said, not what must not be.
        let text = match alert {
            Alert::Conflict { machine } if !self.watch.twins => {
                format!("{machine} is bound by somebody else, and there is nobody else")
            }
            Alert::CallRefused { machine } => {
                format!("the provider finds a call about {machine} malformed")
            }
            _ => return,
        };
        self.watch.broke(Rule::Contract, self.now, text);
    }

    /// Machines the provider has and a process does not know, but should.
    pub(crate) fn unknown_to(&self, epoch: u64) -> usize {
        let Some(core) = self.processes.get(&epoch).map(|process| &process.core) else {
            return 0;
        };
        let there = self.cloud.machines();
        let unknown = there.filter(|one| core.machine(&one.id).is_none());
        unknown.filter(|one| !self.is_just_back(&one.id)).count()
    }

    /// Whether a machine that had vanished is back since the List now heard was made, which so
    /// tells the truth in not having it.
    fn is_just_back(&self, machine: &MachineId) -> bool {
        let stages = &self.plan.stages;
        let oldest = cloud::LAG + stages.list.most() + stages.cycle.most();
        let back_at = self.watch.back_at.get(machine);
        back_at.is_some_and(|at| self.now.since(*at) <= oldest)
    }

    /// SH-10: one List may take max(1, 1 %) of the inventory, and no more.
    pub(crate) fn look_at_list(&mut self, epoch: u64, unknown_before: usize) {
        let most = (self.cloud.len() / 100).max(1);
        let unknown = self.unknown_to(epoch);
        if unknown_before + most < unknown {
            let forgotten = unknown - unknown_before;
            let text = format!("{forgotten} machines the provider has were believed gone at once");
            self.watch.broke(Rule::NotBelievedGone, self.now, text);
        }
    }

    /// SR-2: no cluster loses more machines in a cycle than rail 1 allows.
    pub(crate) fn check_cap(&mut self, reclaims: &BTreeMap<usize, u32>, preempts: u32) {
        let Some(process) = self.process().filter(|_| self.plan.shard.rails) else {
            return;
        };
        for (cluster, count) in reclaims {
            let id = &self.clusters[*cluster].id;
            let serving = process
                .core
                .machines()
                .filter(|one| one.state() == State::Configured && one.cluster() == Some(id));
            // What is drained now was Configured when the cycle looked.
            let configured = serving.count() as u32 + count + preempts;
            let allowed = (configured / 20).max(1);
            if allowed < *count {
                let text =
                    format!("{count} of {configured} machines are reclaimed from {id} at once");
                self.watch.broke(Rule::ReclaimCap, self.now, text);
                return;
            }
        }
    }
}

/// A decision as the records show it: operation, machine, kind, cluster.
pub(crate) type Decided = (
    bigfleet_shard_core::OperationId,
    MachineId,
    ActionKind,
    Option<bigfleet_model::ClusterId>,
);
