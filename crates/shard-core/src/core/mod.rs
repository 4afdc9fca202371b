//! Core: the value itself, its one way in, and the order in which its parts are asked.
//!
//! The fields are private to this folder, and those of every part to its own. What happens to several
//! parts at once is written here, one file per kind of event; each of them asks parts and hands on what
//! they answer.

mod above;
mod admin;
mod breakers;
mod cycle;
mod drains;
mod gate;
mod incident;
mod leaving;
mod lists;
mod machines;
mod nodes;
mod persistence;
mod reads;
mod restart;
mod roll_ups;
mod sessions;
mod settle;

pub use incident::LateAnswer;
pub use restart::{StartRefused, next_epoch};

use crate::{
    counters::Counters,
    defect::Defect,
    demand::Demand,
    effect::{Barrier, Effect},
    event::{Event, PausedBy},
    histogram::{Latencies, Phase},
    holdings::Holdings,
    journal::Journal,
    leaving::LeavingMachines,
    list_pace::ListPace,
    rails::{KeptPause, RailSet, Scope},
    reads::{Report, Verdicts},
    schedule::{Schedule, Timer},
    sessions::Sessions,
    settings::ShardConfig,
    supply::Supply,
    uplink::Uplink,
    work::Work,
};
use bigfleet_model::Time;
use std::time::Duration;

/// A shard, as a value: told events, it answers with effects.
///
/// It never blocks, fails, logs, or reads a clock, a file or a random number. The same events at the
/// same moments give the same effects, byte for byte.
#[derive(Clone, Debug)]
pub struct ShardCore {
    config: ShardConfig,
    epoch: u64,
    now: Time,
    /// Events heard so far: the place of each in the history (AU-3).
    heard: u64,

    /// What clusters ask for, and how much of it is missing.
    demand: Demand,
    /// Machines, what the provider last said of them, what they are committed to.
    supply: Supply,
    /// Operations under way.
    work: Work,
    /// What may leave, and how much of it.
    rails: RailSet,
    /// Which machines are to leave.
    leaving: LeavingMachines,
    /// Connected operators.
    sessions: Sessions,
    /// What is to reach the disk.
    journal: Journal,
    /// When to decide, and what else to look at when.
    schedule: Schedule,
    /// When to List.
    list_pace: ListPace,
    /// What is heard from above, and what is to be answered.
    uplink: Uplink,
    /// Which unbound machines this shard may act on.
    holdings: Holdings,
    /// The report that was wanted last, and the write that has the last of what it speaks of.
    drawn_up: Option<(Barrier, Box<Report>)>,

    verdicts: Verdicts,
    counters: Counters,
    latencies: Latencies,
}

impl ShardCore {
    fn empty(config: ShardConfig, epoch: u64, now: Time) -> Self {
        let mut schedule = Schedule::new(config.cycle_interval);
        schedule.set(now, Timer::List);
        schedule.cycle_by(now);
        Self {
            epoch,
            now,
            heard: 0,
            demand: Demand::new(&config),
            supply: Supply::new(&config),
            work: Work::new(&config, epoch),
            rails: RailSet::new(&config),
            leaving: LeavingMachines::default(),
            sessions: Sessions::default(),
            journal: Journal::new(epoch),
            schedule,
            list_pace: ListPace::new(config.cycle_interval),
            uplink: Uplink::default(),
            holdings: Holdings::new(&config),
            drawn_up: None,
            verdicts: Verdicts::default(),
            counters: Counters::default(),
            latencies: Latencies::default(),
            config,
        }
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
        while let Some(timer) = self.schedule.due(now) {
            self.remind(now, timer, effects);
        }
        self.let_go(now, effects);
        if self.schedule.is_cycle_due(now) {
            self.run_cycle(now, effects, begins);
            self.schedule.cycle_done();
        }
        self.pump(now, effects);
        while let Some((get, machine)) = self.supply.next_get() {
            effects.push(Effect::Get { get, machine });
        }
        if let Some(next) = self.list_pace.next_reminder(self.is_list_awaited()) {
            self.schedule.set(next, Timer::List);
        }
        if let Some(next) = self.schedule.next_wake(now) {
            effects.push(Effect::WakeAt(next));
        }
    }

    fn take(
        &mut self,
        now: Time,
        event: Event,
        effects: &mut Vec<Effect>,
        begins: &mut dyn FnMut(Phase),
    ) {
        match event {
            Event::Woken => self.schedule.woken(),
            Event::CycleDue => self.run_cycle(now, effects, begins),
            Event::Persisted { barrier } => {
                self.journal.persisted(barrier);
                self.work.persisted(barrier, now);
            }
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
            } => self.drain_reported(now, session, instruction, &machine, phase),
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
                self.rails.pause(by, scope.clone(), kept);
                self.pause_changed(now, by, &scope, effects);
            }
            Event::Resume { by, scope } => {
                if let (PausedBy::Admin, Scope::Cluster(cluster)) = (by, &scope) {
                    self.try_afresh(now, cluster);
                }
                self.rails.resume(by, scope.clone());
                self.pause_changed(now, by, &scope, effects);
            }
            Event::Owned { add, remove } => self.own(add, remove),
            Event::CoordinatorTerm(term) => {
                let record = self.uplink.hear_term(term);
                self.remember_records(record);
            }
            Event::ReportWanted => self.report_wanted(effects),
            Event::Answered(answer) => self.answered(now, *answer, effects),
            Event::Superseded => self.superseded(now, effects),
            Event::Reported { acks } => self.uplink.reported(acks),
            Event::ReleaseCluster { cluster, machines } => {
                self.release_cluster(now, &cluster, machines);
                self.persist(effects); // a person waits for it to be on disk
            }
            Event::RetireMachine { machine } => {
                self.retire(now, &machine, effects);
                self.persist(effects);
            }
            Event::DrainMachines { machines, mark } => {
                self.drain_machines(now, machines, &mark, effects);
                self.persist(effects);
            }
            Event::UndrainMachines {
                machines,
                by,
                reason,
            } => {
                self.undrain_machines(now, machines, (&by, &reason), effects);
                self.persist(effects);
            }
            Event::CycleTook { seconds, phases } => {
                let took = Duration::try_from_secs_f64(seconds).unwrap_or_default();
                self.schedule.cycle_took(took);
                if self.config.metrics_warmup_cycles < self.schedule.cycle() {
                    self.latencies.cycle_took(seconds, phases);
                }
            }
        }
    }

    fn remind(&mut self, now: Time, timer: Timer, effects: &mut Vec<Effect>) {
        match timer {
            Timer::Cycle => self.schedule.reminded_of_cycle(now),
            Timer::List => self.start_list(now, effects),
            Timer::Flush => {
                self.journal.disarm();
                self.persist(effects);
            }
            Timer::Pause => {
                if self.expire_pauses(now) {
                    self.gate_moved(now);
                }
            }
            Timer::Retry(operation) => self.work.retry(operation, now),
            Timer::Blob(request) => self.blob_late(now, request, effects),
            Timer::Drain(operation) => self.drain_due(now, operation, effects),
            Timer::Pool(pool) => self.review_pool(now, &pool),
            Timer::Cluster(cluster) => {
                self.forget_old_spending(now, &cluster);
                self.review_cluster(now, &cluster);
            }
            Timer::Unreported(cluster) => self.end_unreported(now, &cluster, effects),
            Timer::Abandoned(cluster) => self.end_abandoned(now, &cluster, effects),
            Timer::Forgotten(cluster) => self.forget_cluster(now, &cluster),
            Timer::Node(machine) => self.judge_node(now, &machine, effects),
            Timer::Confirm(machine) => self.supply.ask_again(&machine),
            Timer::Leaving => self.leaving_due(now, effects),
        }
    }

    /// Says what is wrong, if an operation is not in exactly one place: for whoever tests a shard.
    pub fn check(&self) -> Result<(), String> {
        self.work.check()
    }

    /// Whether an old mistake is switched on.
    fn has(&self, defect: Defect) -> bool {
        self.config.defect == Some(defect)
    }
}
