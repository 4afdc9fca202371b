//! Core: the value itself, and its one way in.

use crate::{
    breaker::{Backoffs, Breakers},
    churn::Gangs,
    counters::Counters,
    defect::Defect,
    demand::Demand,
    effect::{Barrier, Effect, OperationId},
    event::Event,
    gate::Place,
    hints::Hints,
    histogram::{Latencies, Phase},
    ledger::Ledger,
    node::Nodes,
    operation::Operation,
    parking::Parking,
    pause::{KeptPause, Pauses},
    rails::ReclaimCap,
    read::Decided,
    record::{Kept, Record},
    report::Upward,
    session::Sessions,
    settings::{CANCEL_BACKOFF, CYCLE_SPACING, FLUSH_WITHIN, ShardConfig},
    shortfall::{ShortCounts, Shortfalls},
    timers::{Timer, Timers, after},
    truth::Truth,
};
use bigfleet_model::{ClusterId, MachineId, Time};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// A shard, as a value: told events, it answers with effects.
///
/// It never blocks, fails, logs, or reads a clock, a file or a random number. The same events at the
/// same moments give the same effects, byte for byte.
#[derive(Clone, Debug)]
pub struct ShardCore {
    pub(crate) config: ShardConfig,
    pub(crate) epoch: u64,
    pub(crate) now: Time,

    pub(crate) ledger: Ledger,
    pub(crate) demand: Demand,
    pub(crate) parking: Parking,
    pub(crate) shortfalls: Shortfalls,
    /// The Needs the last decision left short.
    pub(crate) short: Vec<bigfleet_model::Verdict>,
    /// How many those are, by what readers ask for.
    pub(crate) short_counts: ShortCounts,
    pub(crate) hints: Hints,
    /// When hints were last counted.
    pub(crate) hinted: Option<Time>,
    pub(crate) sessions: Sessions,
    pub(crate) nodes: Nodes,
    pub(crate) truth: Truth,

    pub(crate) operations: BTreeMap<MachineId, Operation>,
    pub(crate) by_operation: BTreeMap<OperationId, MachineId>,
    /// Committed, but their commit is not known to be on disk.
    pub(crate) awaiting_disk: Vec<(Barrier, MachineId)>,
    /// Waiting to leave, most urgent first.
    pub(crate) ready: BTreeSet<Place>,
    /// Likewise, but all they lack is a slot: not looked at while there is none.
    pub(crate) queued: BTreeSet<Place>,
    /// Likewise, but all they lack is a slot of their cluster's: not looked at while it has none.
    pub(crate) crowded: BTreeMap<ClusterId, BTreeSet<Place>>,
    /// Sequence numbers of calls on the wire.
    pub(crate) on_wire: BTreeMap<u64, Option<ClusterId>>,

    pub(crate) pauses: Pauses,
    pub(crate) fenced: bool,
    pub(crate) reclaim_cap: ReclaimCap,
    pub(crate) breakers: Breakers,
    pub(crate) bootstraps: Backoffs<ClusterId>,
    pub(crate) cancelled: Backoffs<MachineId>,
    /// Clusters an admin has released (AD-1).
    pub(crate) released: BTreeSet<ClusterId>,
    pub(crate) gangs: Gangs,
    /// Events heard so far: the place of each in the history (AU-3).
    pub(crate) heard: u64,

    pub(crate) journal: Journal,
    pub(crate) timers: Timers,
    pub(crate) woken_at: Option<Time>,
    pub(crate) wants_cycle: bool,
    next_cycle: Option<Time>,
    pub(crate) last_cycle: Option<Time>,
    /// Machines the last decision would have reclaimed but for what replaces them (RF-11), by id.
    pub(crate) held: Vec<MachineId>,
    /// How long the last one took, as far as whoever drives the core says so.
    pub(crate) cycle_seconds: f64,
    pub(crate) cycle: u64,
    /// The verdicts last taken down for readers, and whether somebody asked for newer ones.
    pub(crate) decided: Option<Arc<Decided>>,
    pub(crate) verdicts_wanted: bool,
    /// Reclaims rail 1 held back in the last cycle.
    pub(crate) capped: u64,

    pub(crate) sequence: u64,
    pub(crate) numbers: u64,
    pub(crate) upward: Upward,

    pub(crate) counters: Counters,
    pub(crate) latencies: Latencies,
}

/// What is not on disk yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Journal {
    issued: u64,
    pub(crate) durable: u64,
    dirty: BTreeSet<MachineId>,
    others: Vec<Record>,
    armed: bool,
}

impl ShardCore {
    pub(crate) fn empty(config: ShardConfig, epoch: u64, now: Time) -> Self {
        let mut core = Self {
            epoch,
            now,
            ledger: Ledger::default(),
            demand: Demand::default(),
            parking: Parking::default(),
            shortfalls: Shortfalls::default(),
            short: Vec::new(),
            short_counts: ShortCounts::default(),
            hints: Hints::default(),
            hinted: None,
            sessions: Sessions::default(),
            nodes: Nodes::default(),
            truth: Truth::default(),
            operations: BTreeMap::new(),
            by_operation: BTreeMap::new(),
            awaiting_disk: Vec::new(),
            ready: BTreeSet::new(),
            queued: BTreeSet::new(),
            crowded: BTreeMap::new(),
            on_wire: BTreeMap::new(),
            pauses: Pauses::default(),
            fenced: false,
            reclaim_cap: ReclaimCap::default(),
            breakers: Breakers::default(),
            bootstraps: Backoffs::new(crate::settings::BACKOFF),
            cancelled: Backoffs::new(CANCEL_BACKOFF),
            released: BTreeSet::new(),
            gangs: Gangs::new(),
            heard: 0,
            journal: Journal::default(),
            timers: Timers::default(),
            woken_at: None,
            wants_cycle: false,
            next_cycle: None,
            last_cycle: None,
            held: Vec::new(),
            cycle_seconds: 0.0,
            cycle: 0,
            decided: None,
            verdicts_wanted: false,
            capped: 0,
            sequence: 0,
            numbers: 0,
            upward: Upward::default(),
            counters: Counters::default(),
            latencies: Latencies::default(),
            config,
        };
        core.ledger.engine.set_holds(core.config.holds);
        core.ledger.defect = core.config.defect;
        if let Some(mistake) = core.config.defect.and_then(Defect::of_the_engine) {
            core.ledger.engine.make(mistake);
        }
        core.timers.set(now, Timer::List);
        core.cycle_by(now);
        core.journal.others.push(Record::Epoch(epoch));
        core
    }

    /// Takes in what happened and says what to do about it. A moment earlier than the last one heard
    /// counts as the last one.
    pub fn handle(&mut self, now: Time, event: Event, effects: &mut Vec<Effect>) {
        self.handle_in_phases(now, event, effects, &mut |_| {});
    }

    /// As [`Self::handle`], and says when each phase of a cycle begins, if the event brought one on: for
    /// whoever has a clock. The last one lasts until the effects are started.
    pub fn handle_in_phases(
        &mut self,
        now: Time,
        event: Event,
        effects: &mut Vec<Effect>,
        begins: &mut dyn FnMut(Phase),
    ) {
        let now = now.max(self.now);
        self.now = now;
        self.heard += 1;
        self.take(now, event, effects, begins);
        while let Some(timer) = self.timers.due(now) {
            self.remind(now, timer, effects);
        }
        if self.wants_cycle {
            self.cycle_if_spaced(now, effects, begins);
        }
        self.pump(now, effects);
        self.ask(effects);
        self.ask_to_be_woken(effects);
    }

    fn take(
        &mut self,
        now: Time,
        event: Event,
        effects: &mut Vec<Effect>,
        begins: &mut dyn FnMut(Phase),
    ) {
        match event {
            // A clock may be early by its resolution: then the same moment is asked for again.
            Event::Woken => self.woken_at = None,
            Event::CycleDue => self.run_cycle(now, effects, begins),
            Event::Persisted { barrier } => self.persisted(barrier),
            Event::ListPage {
                list,
                machines,
                refused,
            } => self.list_page(now, list, machines, refused, effects),
            Event::ListEnded { list, outcome } => self.list_ended(now, list, outcome, effects),
            Event::GotMachine { get, answer } => self.got(now, get, answer, effects),
            Event::CallEnded {
                operation,
                sequence,
                outcome,
            } => self.call_ended(now, operation, sequence, outcome, effects),
            Event::SessionOpened {
                session,
                cluster,
                features,
                identity,
            } => self.open_session(now, session, cluster, features, identity, effects),
            Event::HelloAgain { session } => self.hello_again(session, effects),
            Event::SessionClosed { session } => self.close_session(now, session),
            Event::RolledUp {
                session,
                cluster,
                rollup_id,
                rows,
            } => self.roll_up(now, session, cluster, rollup_id, rows, effects),
            Event::RollUpRepeated { session, rollup_id } => {
                self.repeat_roll_up(now, session, rollup_id, effects);
            }
            Event::BlobAnswered {
                session,
                request,
                answer,
            } => self.blob_answered(now, session, request, answer, effects),
            Event::DrainReported {
                session,
                instruction,
                machine,
                phase,
            } => self.drain_reported(session, instruction, &machine, phase),
            Event::NodesReported {
                session,
                complete,
                nodes,
            } => self.nodes_reported(now, session, complete, nodes),
            Event::Pause {
                by,
                scope,
                since,
                until,
                note,
            } => {
                let since = since.map_or(now, |since| since.min(now));
                let kept = KeptPause { since, until, note };
                self.pauses.pause(by, scope.clone(), kept);
                self.pause_changed(now, by, &scope, effects);
            }
            Event::Resume { by, scope } => {
                self.pauses.resume(by, scope.clone());
                self.pause_changed(now, by, &scope, effects);
            }
            Event::Owned { add, remove } => self.own(now, add, remove),
            Event::CoordinatorTerm(term) => self.hear_term(term),
            Event::Instructed { term, instructions } => self.instructed(term, instructions),
            Event::Reported { acks } => self.reported(acks),
            Event::ReleaseCluster { cluster, machines } => {
                self.release_cluster(now, &cluster, machines);
                self.persist(effects); // a person waits for it to be on disk
            }
            Event::RetireMachine { machine } => {
                self.retire(now, &machine, effects);
                self.persist(effects);
            }
            Event::CycleTook { seconds, phases } => self.cycle_took(seconds, phases),
        }
    }

    fn remind(&mut self, now: Time, timer: Timer, effects: &mut Vec<Effect>) {
        match timer {
            Timer::Cycle => self.wants_cycle |= self.next_cycle.is_some_and(|next| next <= now),
            Timer::List => self.start_list(now, effects),
            Timer::Flush => {
                self.journal.armed = false;
                self.persist(effects);
            }
            Timer::Pause => {
                if self.expire_pauses(now) {
                    self.gate_moved(now);
                }
            }
            Timer::Retry(operation) => self.retry(now, operation),
            Timer::Blob(request) => self.blob_late(now, request, effects),
            Timer::Drain(operation) => self.drain_due(now, operation, effects),
            Timer::Pool(pool) => {
                if !self.breakers.waits(&pool, now) {
                    self.ledger.set_closed(&pool, false);
                    self.wants_cycle = true;
                }
            }
            Timer::Cluster(cluster) => self.review_cluster(now, &cluster),
            Timer::Unreported(cluster) => self.end_unreported(now, &cluster, effects),
            Timer::Abandoned(cluster) => self.end_abandoned(now, &cluster, effects),
            Timer::Node(machine) => self.judge_node(now, &machine, effects),
            Timer::Confirm(machine) => self.doubt(&machine),
        }
    }

    /// SH-1: between two cycles at least 100 ms, and twice what the last one took: events have half of
    /// the time, however long it takes to decide.
    fn spacing(&self) -> f64 {
        f64::max(CYCLE_SPACING, 2.0 * self.cycle_seconds)
    }

    /// Wake-ups within the spacing are one.
    fn cycle_if_spaced(
        &mut self,
        now: Time,
        effects: &mut Vec<Effect>,
        begins: &mut dyn FnMut(Phase),
    ) {
        let earliest = self.last_cycle.map(|last| after(last, self.spacing()));
        match earliest.filter(|earliest| now < *earliest) {
            Some(earliest) => self.cycle_by(earliest),
            None => self.run_cycle(now, effects, begins),
        }
        self.wants_cycle = false;
    }

    /// The next cycle is at this moment or before: wake-ups coalesce, and the interval counts from
    /// the last cycle, whatever woke it.
    pub(crate) fn cycle_by(&mut self, at: Time) {
        if self.next_cycle.is_none_or(|next| at < next) {
            self.next_cycle = Some(at);
            self.timers.set(at, Timer::Cycle);
        }
    }

    /// A cycle begins: the next one is due an interval later.
    pub(crate) fn begin_cycle(&mut self, now: Time) {
        self.cycle += 1;
        self.last_cycle = Some(now);
        self.next_cycle = None;
        self.cycle_by(after(now, self.config.cycle_interval.as_secs_f64()));
    }

    fn ask_to_be_woken(&mut self, effects: &mut Vec<Effect>) {
        // Something that came up after this event's cycle: in a cycle of its own, as soon as may be.
        if std::mem::take(&mut self.wants_cycle) {
            let earliest = self.last_cycle.map(|last| after(last, self.spacing()));
            self.cycle_by(earliest.map_or(self.now, |earliest| earliest.max(self.now)));
        }
        let next = self.timers.next();
        if next != self.woken_at
            && let Some(next) = next
        {
            effects.push(Effect::WakeAt(next));
        }
        self.woken_at = next;
    }

    /// Something about a machine must reach the disk, soon (SH-5).
    pub(crate) fn remember(&mut self, machine: &MachineId) {
        self.journal.dirty.insert(machine.clone());
        self.arm_flush();
    }

    /// The same where it may be on disk already, as this: a fleet that is as it was is not written
    /// again at every start.
    pub(crate) fn remember_if_other(&mut self, machine: &MachineId, on_disk: &Kept) {
        match self.kept(machine).as_deref() == Some(on_disk) {
            true => self.arm_flush(), // the epoch is not
            false => self.remember(machine),
        }
    }

    /// A record that replaces nothing yet written.
    pub(crate) fn remember_record(&mut self, record: Record) {
        self.journal.others.push(record);
        self.arm_flush();
    }

    fn arm_flush(&mut self) {
        if !self.journal.armed {
            self.journal.armed = true;
            self.timers.set(after(self.now, FLUSH_WITHIN), Timer::Flush);
        }
    }

    /// The barrier the next write will have.
    pub(crate) fn next_barrier(&self) -> Barrier {
        Barrier(self.journal.issued + 1)
    }

    /// Hands out everything that is not on disk, as one write.
    pub(crate) fn persist(&mut self, effects: &mut Vec<Effect>) {
        let mut records = std::mem::take(&mut self.journal.others);
        for machine in std::mem::take(&mut self.journal.dirty) {
            let kept = self.kept(&machine);
            records.push(Record::Machine { machine, kept });
        }
        if records.is_empty() {
            return;
        }
        self.journal.issued += 1;
        self.counters.records += records.len() as u64;
        effects.push(Effect::Persist {
            barrier: Barrier(self.journal.issued),
            records,
        });
    }

    /// Whether an old mistake is switched on.
    pub(crate) fn has(&self, defect: Defect) -> bool {
        self.config.defect == Some(defect)
    }

    pub(crate) fn kept(&self, machine: &MachineId) -> Option<Box<Kept>> {
        let known = self.ledger.get(machine);
        // Not seen since the start: what was remembered still is all there is.
        let Some(known) = known else {
            return self.truth.remembered.get(machine).cloned();
        };
        let beside = self.ledger.beside(machine);
        let operation = self.operations.get(machine);
        let mut kept = Kept {
            cluster: known.cluster().cloned(),
            bound_by: self.ledger.bound_by(machine),
            assignment: known.assignment().clone(),
            intent: known.intent().cloned(),
            not_ready: beside.not_ready,
            undeletable: beside.undeletable,
            given_up: self.cancelled.get(machine),
            operation: operation.map(|operation| Box::new(operation.kept())),
        };
        if self.has(Defect::IntentNotDurable) {
            (kept.intent, kept.operation) = (None, None);
        }
        kept.is_worth_it().then(|| Box::new(kept))
    }
}
