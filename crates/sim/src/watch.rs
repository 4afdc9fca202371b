//! The watch: what must be true after every event, and who broke it.
//!
//! ```text
//! effects of one event ─▶ commits: one operation per machine, in the ledger, audited when it ends
//!                      ─▶ leaving: durable first, not while paused or fenced, no more than allowed
//!                      ─▶ owners: one cluster per machine
//!                      ─▶ cover: nothing drained that still serves
//!                      ─▶ bought: nothing acquired that is not missing
//!                      ─▶ rails: no faster than the cap
//!                      ─▶ taken back: only what is being let go, and only for whom it serves
//!                      ─▶ disruption: which of equals leaves, and nothing else
//!                      ─▶ marks: what is to leave is given to nobody, and not forgotten
//! every ten seconds ───▶ waiting: nobody short beside free supply; progress: nothing under way stands still
//! at rest ─────────────▶ ledger = truth, nothing leaks, nothing moves, nothing is claimed anew
//! ```
//!
//! Each check costs what the event touched. The first rule that breaks ends the run, so a report
//! names a cause and not its consequences.

#[cfg(test)]
mod arms;
mod bought;
mod commits;
mod cover;
mod demand;
mod disruption;
mod leaving;
mod marks;
mod progress;
mod reclaims;
mod rest;
mod taken_back;
mod waiting;

pub(crate) use commits::{Commits, Decided};
pub(crate) use demand::Demand;

use crate::{
    clock::{Moment, seconds},
    cloud,
    gate::Missed,
    log::Committed,
    world::World,
};
use bigfleet_model::{ActionKind, Machine, MachineId, State};
use bigfleet_provider_kit::Offer;
use bigfleet_shard_core::{Alert, Echo, Effect, Frame, Record};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

/// What must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// A machine serves one cluster, and only that one is told so.
    OneOwner,
    /// Nothing leaves before its commit is on disk (SH-5).
    DurableFirst,
    /// What was decided is in the ledger before anything leaves (DC-1).
    Committed,
    /// No action without an audit record (AU-1).
    Audited,
    /// Nothing is drained that still serves a Need that would be uncovered (RF-11).
    MakeBeforeBreak,
    /// Nothing is reclaimed from a cluster that has not reported (SH-8).
    ReportedFirst,
    /// No more reclaims than rail 1 allows, restarts or not (SR-2, SH-30).
    ReclaimCap,
    /// No older life of the shard acts after a newer one (FE-2, FE-4).
    Fenced,
    /// No Need stays short while a machine it may take is free.
    ServedInTime,
    /// No operation stands still with nothing under way that it waits for.
    MovesOn,
    /// What the provider still has is not believed gone (SH-10).
    NotBelievedGone,
    /// No cycle acquires for a Need and reclaims what that Need could use.
    NoRoundTrip,
    /// A machine has one open operation at a time.
    OneOperation,
    /// No Need acquires more than it lacks (RF-8).
    NothingTooMuch,
    /// Nothing acts on a machine while all is paused (SH-16).
    Paused,
    /// No more calls are out than there are workers (SH-2).
    Workers,
    /// A call the provider finds malformed, or a machine bound by somebody else.
    Contract,
    /// At rest the ledger says what the provider says.
    LedgerIsTruth,
    /// At rest nothing is left over: operations, intents, records of either.
    NothingLeaks,
    /// Once the faults stop, the fleet comes to rest and stays there.
    ComesToRest,
    /// At rest no Need is short while one of lower priority has what it could use.
    HighestFirst,
    /// At rest no Need claims another machine, and no gang looks at another rack.
    ClaimsStand,
    /// No drain is taken back for another cluster, of a machine that was preempted or had no node, or too late
    /// (SH-18).
    TakenBack,
    /// What operators tell of disruption causes no action and keeps none from being done (RF-2).
    Disruption,
    /// Of equals the one leaves that disturbs least (RF-18).
    EmptiestFirst,
    /// What is marked to leave is given to nobody, and not given back either (RF-21).
    LeftAlone,
    /// The shard knows what was marked, and which deadlines have passed, restarts or not (SH-20).
    MarksKept,
    /// At rest what is marked is out, or nothing free can take its place (RF-21).
    GetsOut,
    /// Of the operators of a cluster only the one with the lease dials and writes (OP-11).
    OneActs,
    /// No Pod is evicted but for an instruction this process heard, in its time (OP-34).
    Instructed,
    /// What can wait evicts nobody before its time to settle is over.
    Settled,
    /// What can wait evicts nobody beside a Pod that must not be disturbed (OP-52).
    Undisturbed,
    /// A roll-up asks for what a whole list of requests does, row by row of the shape it has (OP-2, OP-22).
    WholeDemand,
    /// No spare is asked for that is not on record (OP-67).
    SparesRecorded,
    /// A network that broke is not told as many Nodes lost (OP-33).
    MassFlip,
    /// A request is acknowledged only if the shard has it (OP-27).
    AcknowledgedTruly,
    /// Nobody who runs is told that he waits (OP-53).
    ToldTruly,
    /// No Node goes while its machine runs.
    NodeKept,
    /// No machine that nobody waits for is taken away under a Pod that runs.
    BudgetsKept,
    /// What a person cordoned stays cordoned.
    PersonsCordon,
    /// At rest no Node and no UpcomingNode is left of a machine that is not the cluster's.
    NoNodeLeaks,
    /// At rest no Node is cordoned that nobody drains.
    Uncordoned,
    /// At rest every Pod that some machine could host runs.
    EveryPodRuns,
    /// At rest operators write nothing and evict nobody.
    Quiet,
    /// What the scenario demands.
    Gate,
    /// No assertion of the shard or of this crate failed.
    Panicked,
}

impl Rule {
    /// Every rule a plan can be exempt from: all but a panic.
    #[cfg(test)]
    pub(crate) const ALL_BUT_PANIC: [Self; 45] = [
        Self::OneOwner,
        Self::DurableFirst,
        Self::Committed,
        Self::Audited,
        Self::MakeBeforeBreak,
        Self::ReportedFirst,
        Self::ReclaimCap,
        Self::Fenced,
        Self::ServedInTime,
        Self::MovesOn,
        Self::NotBelievedGone,
        Self::NoRoundTrip,
        Self::OneOperation,
        Self::NothingTooMuch,
        Self::Paused,
        Self::Workers,
        Self::Contract,
        Self::LedgerIsTruth,
        Self::NothingLeaks,
        Self::ComesToRest,
        Self::HighestFirst,
        Self::ClaimsStand,
        Self::TakenBack,
        Self::Disruption,
        Self::EmptiestFirst,
        Self::LeftAlone,
        Self::MarksKept,
        Self::GetsOut,
        Self::OneActs,
        Self::Instructed,
        Self::Settled,
        Self::Undisturbed,
        Self::WholeDemand,
        Self::SparesRecorded,
        Self::MassFlip,
        Self::AcknowledgedTruly,
        Self::ToldTruly,
        Self::NodeKept,
        Self::BudgetsKept,
        Self::PersonsCordon,
        Self::NoNodeLeaks,
        Self::Uncordoned,
        Self::EveryPodRuns,
        Self::Quiet,
        Self::Gate,
    ];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::OneOwner => "one-owner",
            Self::DurableFirst => "durable-first",
            Self::Committed => "committed",
            Self::Audited => "audited",
            Self::MakeBeforeBreak => "make-before-break",
            Self::ReportedFirst => "reported-first",
            Self::ReclaimCap => "reclaim-cap",
            Self::Fenced => "fenced",
            Self::ServedInTime => "served-in-time",
            Self::MovesOn => "moves-on",
            Self::NotBelievedGone => "not-believed-gone",
            Self::NoRoundTrip => "no-round-trip",
            Self::OneOperation => "one-operation",
            Self::NothingTooMuch => "nothing-too-much",
            Self::Paused => "paused",
            Self::Workers => "workers",
            Self::Contract => "contract",
            Self::LedgerIsTruth => "ledger-is-truth",
            Self::NothingLeaks => "nothing-leaks",
            Self::ComesToRest => "comes-to-rest",
            Self::HighestFirst => "highest-first",
            Self::ClaimsStand => "claims-stand",
            Self::TakenBack => "taken-back",
            Self::Disruption => "disruption",
            Self::EmptiestFirst => "emptiest-first",
            Self::LeftAlone => "left-alone",
            Self::MarksKept => "marks-kept",
            Self::GetsOut => "gets-out",
            Self::OneActs => "one-acts",
            Self::Instructed => "instructed",
            Self::Settled => "settled",
            Self::Undisturbed => "undisturbed",
            Self::WholeDemand => "whole-demand",
            Self::SparesRecorded => "spares-recorded",
            Self::MassFlip => "mass-flip",
            Self::AcknowledgedTruly => "acknowledged-truly",
            Self::ToldTruly => "told-truly",
            Self::NodeKept => "node-kept",
            Self::BudgetsKept => "budgets-kept",
            Self::PersonsCordon => "persons-cordon",
            Self::NoNodeLeaks => "no-node-leaks",
            Self::Uncordoned => "uncordoned",
            Self::EveryPodRuns => "every-pod-runs",
            Self::Quiet => "quiet",
            Self::Gate => "gate",
            Self::Panicked => "panic",
        }
    }
}

/// A rule that did not hold in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The rule.
    pub rule: Rule,
    /// The simulated moment at which it was noticed.
    pub at: Moment,
    /// What was seen, in a sentence.
    pub text: String,
    /// For [`Rule::Gate`]: which gate was missed, and on which side.
    pub missed: Option<Missed>,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {} s: {}", self.rule.name(), self.at, self.text)
    }
}

/// What the watch remembers between events.
pub(crate) struct Watch {
    pub(crate) broken: Option<Broken>,
    blind_to: Vec<Rule>,
    pub(crate) commits: Commits,
    pub(crate) demand: Demand,
    reclaims: reclaims::Reclaims,
    taken_back: taken_back::TakenBack,
    marks: marks::Marks,
    /// Which cluster was last told that a machine is its own.
    told: BTreeMap<MachineId, usize>,
    /// The newest life of the shard that changed a machine.
    pub(crate) newest: BTreeMap<MachineId, u64>,
    pub(crate) losses: u64,
    /// Until when two processes run at once, or what they did to each other may still be found.
    pub(crate) twins_until: Moment,
    /// Until when somebody wanted everything paused, and until when the shard knows of it.
    pub(crate) paused_until: Moment,
    pub(crate) held_until: Moment,
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
    progress: progress::Progress,
    /// When a Create of a pool, by type and zone, last failed, and how often in a row.
    failed_pools: BTreeMap<(String, String), (Moment, u32)>,
}

/// How long the shard backs off from a pool after its first failure, and at most (SH-11).
const BACKOFF: (u64, u64) = (seconds(10), seconds(600));
/// Longer than it takes the shard to hear of a failure and run its next cycle.
const NOTICED: u64 = seconds(45);

impl Watch {
    pub(crate) fn new(clusters: usize, blind_to: Vec<Rule>) -> Self {
        Self {
            broken: None,
            blind_to,
            commits: Commits::default(),
            demand: Demand::new(clusters),
            reclaims: reclaims::Reclaims::default(),
            taken_back: taken_back::TakenBack::default(),
            marks: marks::Marks::default(),
            told: BTreeMap::new(),
            newest: BTreeMap::new(),
            losses: 0,
            twins_until: Moment::START,
            paused_until: Moment::START,
            held_until: Moment::START,
            disturbed_at: Moment::START,
            acted_at: Moment::START,
            moved_at: Moment::START,
            repairs: 0,
            truthful_at: Moment::START,
            lied_at: Moment::START,
            back_at: BTreeMap::new(),
            short: BTreeMap::new(),
            progress: progress::Progress::default(),
            failed_pools: BTreeMap::new(),
        }
    }

    /// A Create failed, so the shard may back off from its pool for a while.
    pub(crate) fn pool_failed(&mut self, offer: &Offer, now: Moment) {
        let pool = (offer.instance_type.clone(), offer.zone.clone());
        let (at, times) = self.failed_pools.entry(pool).or_insert((now, 0));
        (*at, *times) = (now, *times + 1);
    }

    /// A Create succeeded, so its pool is not backed off from any more.
    pub(crate) fn pool_delivered(&mut self, offer: &Offer) {
        let pool = (offer.instance_type.clone(), offer.zone.clone());
        self.failed_pools.remove(&pool);
    }

    /// Whether the shard may still back off from some pool, which keeps Needs short a while longer.
    fn some_pool_is_backed_off(&self, now: Moment, create: u64) -> bool {
        let mut failed = self.failed_pools.values();
        failed.any(|failed| is_backed_off(*failed, now, create))
    }

    fn is_backing_off(&self, machine: &Machine, now: Moment, create: u64) -> bool {
        let shape = machine.shape();
        let pool = (shape.instance_type.clone(), shape.zone.clone());
        let failed = self.failed_pools.get(&pool);
        machine.state() == State::Speculative
            && failed.is_some_and(|failed| is_backed_off(*failed, now, create))
    }

    /// Notes that a rule broke; the first one counts.
    pub(crate) fn broke(&mut self, rule: Rule, at: Moment, text: String) {
        if !self.blind_to.contains(&rule) {
            let missed = None;
            let broken = Broken {
                rule,
                at,
                text,
                missed,
            };
            self.broken.get_or_insert(broken);
        }
    }

    pub(crate) fn disturbed(&mut self, now: Moment) {
        self.disturbed_at = now;
    }

    /// An operator disconnected: the shard will tell it again which machines are its own.
    pub(crate) fn disconnected(&mut self, cluster: usize) {
        self.told.retain(|_, owner| *owner != cluster);
    }

    /// A process died, and with it whatever it had been told and had accepted.
    pub(crate) fn process_lost(&mut self, now: Moment) {
        self.disturbed_at = now;
        self.demand.forget();
        self.told.clear();
        self.short.clear();
        self.progress = progress::Progress::default();
    }
}

/// Whether the shard may still back off from a pool whose Creates failed: twice as long each time, and from
/// the third on until the next one, which is alone, has taken as long as a Create may.
fn is_backed_off((at, times): (Moment, u32), now: Moment, create: u64) -> bool {
    let (first, longest) = BACKOFF;
    let backoff = first << times.saturating_sub(1).min(10);
    let probe = if times < 3 { 0 } else { create };
    now.since(at) < backoff.min(longest) + probe + NOTICED
}

impl World {
    /// Looks at what one event made a process do.
    pub(crate) fn look(&mut self, epoch: u64, effects: &[Effect]) {
        let (mut decided, mut touched) = (Vec::new(), BTreeSet::new());
        for effect in effects {
            match effect {
                Effect::Persist { barrier, records } => {
                    if epoch == self.current {
                        self.look_at_ends(records);
                    }
                    decided.extend(self.watch.commits.written(epoch, *barrier, records));
                    touched.extend(records.iter().filter_map(|record| match record {
                        Record::Machine { machine, .. } => Some(machine),
                        _ => None,
                    }));
                }
                Effect::Send { session, frame } => self.look_at_frame(epoch, *session, frame),
                Effect::Audit(record) => {
                    if let Some(operation) = record.operation {
                        self.watch.commits.audited(operation);
                    }
                    self.trace.audit(self.now, record);
                    if taken_back::is_restore(record) {
                        self.look_at_restore(epoch, record);
                    }
                }
                Effect::Alert(alert) => self.look_at_alert(alert),
                _ => {}
            }
            self.look_at_leaving(epoch, effect);
        }
        for one in &decided {
            self.watch.acted_at = self.now;
            if !self.is_hurried(epoch, one) {
                self.watch.reclaims.decided(one);
            }
            self.watch.taken_back.decided(one);
            let committed = Committed {
                at: self.now,
                kind: one.kind,
                machine: one.machine.clone(),
                cluster: one.cluster.clone(),
                priorities: self.priorities(epoch, one),
            };
            self.trace.committed(self.now, one.operation, &committed);
            self.log.actions.push(committed);
        }
        if epoch == self.current {
            self.look_at_decision(&decided, &touched);
        }
    }

    /// Whether a decision drains what leaves now, which is outside rail 1 (SH-20).
    fn is_hurried(&self, epoch: u64, one: &Decided) -> bool {
        let process = self.processes.get(&epoch);
        process.is_some_and(|process| marks::is_hurried(&process.core, one))
    }

    /// An operation that a machine's record no longer mentions has ended, so it must have been audited.
    fn look_at_ends(&mut self, records: &[Record]) {
        if let Some((operation, machine)) = self.watch.commits.ended_unaudited(records) {
            let text = format!("{operation} on {machine} is over, and no audit record says so");
            self.watch.broke(Rule::Audited, self.now, text);
        }
    }

    /// Whose machine a Preempt takes, and for whom, by priority.
    fn priorities(&self, epoch: u64, one: &Decided) -> Option<(i32, i32)> {
        let core = &self.processes.get(&epoch)?.core;
        let machine = core.machine(&one.machine)?;
        let preempts = one.kind == ActionKind::Preempt;
        let taker = machine.intent().filter(|_| preempts)?.terms.priority;
        Some((machine.assignment().terms.priority, taker))
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
            Frame::Node(node) => {
                let id = &self.clusters[cluster].id;
                let gone = if node.removed { " removed" } else { "" };
                self.trace.line(self.now, || {
                    format!("told {id} {} {}{gone}", node.machine, node.state)
                });
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
            Alert::Conflict { machine } if self.watch.twins_until < self.now => {
                format!("{machine} is bound by somebody else, and there is nobody else")
            }
            Alert::Impossible { machine, what } => format!("cannot happen to {machine}: {what}"),
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
    pub(crate) fn check_cap(&mut self, drained: &BTreeMap<usize, (u32, u32)>) {
        let Some(process) = self.process().filter(|_| self.plan.shard.rails) else {
            return;
        };
        for (cluster, (reclaims, preempts)) in drained {
            let id = &self.clusters[*cluster].id;
            let serving = process
                .core
                .machines()
                .filter(|one| one.state() == State::Configured && one.cluster() == Some(id));
            // What is drained now was Configured when the cycle looked.
            let configured = serving.count() as u32 + reclaims + preempts;
            let allowed = (configured / 20).max(1);
            if allowed < *reclaims {
                let text =
                    format!("{reclaims} of {configured} machines are reclaimed from {id} at once");
                self.watch.broke(Rule::ReclaimCap, self.now, text);
                return;
            }
        }
    }
}
