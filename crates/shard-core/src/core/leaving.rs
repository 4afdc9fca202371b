//! Leaving: what follows when a machine is marked to leave, by a person or by its provider (SH-20).
//!
//! ```text
//! DrainMachines, a deadline ─┐                    ┌─ Idle and free again: its idle clock starts
//! List, Get: a notice ───────┼─▶ the word changes ┼─ draining and now: instructed again, not voluntary
//! UndrainMachines, withdrawn ┘                    └─ a cycle
//! ```
//!
//! Nobody is drained here: the engine decides it like any other reclaim, and a mark only says what it is to
//! decide on.

use super::ShardCore;
use crate::{
    audit::Outcome,
    defect::Defect,
    effect::{Alert, Effect},
    leaving::{DrainMark, Heard, LeavingPhase},
    record::Record,
    schedule::Timer,
    supply::Ledger,
    work::WorkStage,
};
use bigfleet_model::{Leaving, Machine, MachineId, Reason, State, Time};
use std::{collections::BTreeSet, time::Duration};

/// So long before a provider takes a machine away, its drain has to have begun there.
const DRAINED_BEFORE: Duration = Duration::from_secs(10);

impl ShardCore {
    /// Why a machine cannot be marked, and what applies instead; `None` if it can.
    pub fn may_drain(&self, machine: &MachineId) -> Option<String> {
        match self.supply.get(machine).map(Machine::state) {
            None => Some(format!("machine {machine} is not known to this shard")),
            Some(State::Failed) => Some(format!(
                "machine {machine} is Failed: it serves nobody and its provider has to mend it; \
                 `bigfleet retire machine/{machine}` forgets it"
            )),
            Some(State::Deleting) => Some(format!(
                "machine {machine} is Deleting: it is being given back to its provider already"
            )),
            Some(
                State::Speculative
                | State::Creating
                | State::Idle
                | State::Configuring
                | State::Configured
                | State::Draining,
            ) => None,
        }
    }

    /// Whether an admin has marked a machine.
    pub fn is_drained_by_admin(&self, machine: &MachineId) -> bool {
        self.leaving.mark_of(machine).is_some()
    }

    /// How a machine is to leave, if it is.
    pub fn leaving(&self, machine: &MachineId) -> Option<Leaving> {
        self.supply.beside(machine).leaving
    }

    /// Machines that are to leave, by id.
    pub fn leaving_machines(&self) -> impl Iterator<Item = &MachineId> {
        self.leaving.ids()
    }

    /// Marks machines. Those that cannot be marked any more are passed over: whoever asked has judged them.
    pub(super) fn drain_machines(
        &mut self,
        now: Time,
        machines: BTreeSet<MachineId>,
        mark: &DrainMark,
        effects: &mut Vec<Effect>,
    ) {
        for machine in machines {
            if self.may_drain(&machine).is_some() {
                continue;
            }
            let said = said_by(mark);
            self.leaving.mark(machine.clone(), mark.clone());
            self.remember_record(Record::Drained {
                machine: machine.clone(),
                mark: Some(mark.clone()),
            });
            self.audit_leaving(&machine, Outcome::DrainMarked, said, effects);
            self.tell_leaving(now, &machine, effects);
        }
        self.set_leaving_timer(now);
    }

    /// Lifts the admin's marks; a provider's notice stays.
    pub(super) fn undrain_machines(
        &mut self,
        now: Time,
        machines: BTreeSet<MachineId>,
        (by, reason): (&str, &str),
        effects: &mut Vec<Effect>,
    ) {
        for machine in machines {
            if self.leaving.lift(&machine).is_none() {
                continue;
            }
            self.remember_record(Record::Drained {
                machine: machine.clone(),
                mark: None,
            });
            let said = format!("by {by}: {reason}");
            self.audit_leaving(&machine, Outcome::DrainLifted, said, effects);
            if !self.has(Defect::UndrainForgotten) {
                self.tell_leaving(now, &machine, effects);
            }
        }
    }

    /// What a read of the provider says of when a machine will be taken away.
    pub(super) fn hear_notice(
        &mut self,
        now: Time,
        machine: &MachineId,
        told: Option<Time>,
        effects: &mut Vec<Effect>,
    ) {
        let is_nothing = !self.leaving.is_noticed(machine) || self.has(Defect::NoticeForEver);
        if told.is_none() && is_nothing {
            return;
        }
        let Some(known) = self.supply.get(machine) else {
            return;
        };
        let bound = known.cluster().cloned();
        match self.leaving.hear(machine, told, bound.as_ref(), now) {
            Heard::Same => return,
            Heard::New(odd) => {
                if let Some(odd) = odd {
                    *self.counters.odd_notices.entry(odd.label()).or_default() += 1;
                }
                let at = self.leaving.taken_at(machine).unwrap_or(now);
                let seconds = at.duration_since(now).as_secs();
                let said = format!("its provider takes it away in {seconds} s");
                self.audit_leaving(machine, Outcome::LeavingAnnounced, said, effects);
            }
            Heard::Withdrawn => {
                let said = "its provider does not take it away after all".to_owned();
                self.audit_leaving(machine, Outcome::LeavingWithdrawn, said, effects);
            }
        }
        self.tell_leaving(now, machine, effects);
        self.schedule.want_cycle();
    }

    /// Before a cycle: time has passed, and clusters have grown and shrunk.
    pub(super) fn review_leaving(&mut self, now: Time, effects: &mut Vec<Effect>) {
        if !self.leaving.has_notices() {
            return;
        }
        let ledger = self.supply.ledger();
        let is_gullible = self.has(Defect::NoticesAllBelieved);
        let bound = |cluster: &_| match ledger.bound_to(cluster).count() {
            _ if is_gullible => usize::MAX / 2,
            bound => bound,
        };
        let is_bound = |machine: &_, cluster: &_| {
            let known = ledger.get(machine);
            known.is_some_and(|known| known.cluster() == Some(cluster))
        };
        let began = self.leaving.review_notices(now, bound, is_bound);
        for (cluster, machines) in began {
            effects.push(Effect::Alert(Alert::NoticesHeld { cluster, machines }));
        }
        let noticed: Vec<MachineId> = self.leaving.noticed().cloned().collect();
        for machine in &noticed {
            self.tell_leaving(now, machine, effects);
        }
        self.set_leaving_timer(now);
    }

    /// A deadline may have passed, or a notice come near.
    pub(super) fn leaving_due(&mut self, now: Time, effects: &mut Vec<Effect>) {
        if self.has(Defect::DeadlineIgnored) {
            return;
        }
        for (machine, mark) in self.leaving.pass_deadlines(now) {
            let said = said_by(&mark);
            self.remember_record(Record::Drained {
                machine: machine.clone(),
                mark: Some(mark),
            });
            self.audit_leaving(&machine, Outcome::DrainDeadlinePassed, said, effects);
            self.tell_leaving(now, &machine, effects);
        }
        self.set_leaving_timer(now);
        self.schedule.want_cycle();
    }

    pub(super) fn set_leaving_timer(&mut self, now: Time) {
        let deadline = self.leaving.next_deadline();
        if let Some(next) = Time::earliest(deadline, self.leaving.next_turn(now)) {
            self.schedule.set(next, Timer::Leaving);
        }
    }

    /// Tells the ledger, and so the engine, what counts for a machine now, and what follows if that is new.
    pub(super) fn tell_leaving(
        &mut self,
        now: Time,
        machine: &MachineId,
        effects: &mut Vec<Effect>,
    ) {
        let word = self.leaving_word(machine);
        if self.leaves_now(machine) && word == Some(Leaving::Now) {
            self.hasten(now, machine, false, effects); // it may be taken away sooner than it was said
        }
        if !self.supply.set_leaving(machine, word) {
            return;
        }
        let state = self.supply.get(machine).map(Machine::state);
        if word.is_none() && state == Some(State::Idle) {
            self.supply.restart_idle_clock(machine, now);
        }
        if word == Some(Leaving::Now) {
            self.rails.forget_given_up(machine); // its drain was given up for what is not waited for now
            self.remember(machine);
            self.hasten(now, machine, true, effects);
        }
        self.mark_reversible(machine);
        self.schedule.want_cycle();
    }

    /// The word that counts for a machine now.
    pub(super) fn leaving_word(&self, machine: &MachineId) -> Option<Leaving> {
        if self.has(Defect::WeakerWordCounts)
            && let Some(mark) = self.leaving.mark_of(machine)
        {
            return Some(mark.word());
        }
        self.leaving.word(machine).map(|(word, _)| word)
    }

    /// Whether nothing is waited for before a machine leaves.
    pub(super) fn leaves_now(&self, machine: &MachineId) -> bool {
        leaves_now(self.supply.ledger(), machine)
    }

    /// SH-20: a drain that is under way ends before the machine is taken away. One that begins to be `now` is
    /// instructed again, same id, so that its operator does not wait any longer than it has to.
    pub(super) fn hasten(
        &mut self,
        now: Time,
        machine: &MachineId,
        is_new: bool,
        effects: &mut Vec<Effect>,
    ) {
        let Some(operation) = self.work.get(machine).filter(|one| one.is_drain()) else {
            return;
        };
        let id = operation.id;
        let waits = operation.stage == WorkStage::DrainReport;
        let taken = self.leaving.taken_at(machine);
        let has_moved = taken.is_some_and(|taken| {
            self.work
                .end_drain_by(machine, (taken - DRAINED_BEFORE).max(now))
        });
        if !has_moved && !is_new {
            return;
        }
        self.remember(machine);
        if !waits {
            return;
        }
        if let Some(deadline) = self.work.get(machine).map(|one| one.deadline) {
            self.schedule.set(deadline, Timer::Drain(id));
        }
        if self.is_closed(machine) {
            return; // it is instructed when the gate opens
        }
        let cluster = self.work.get(machine).and_then(|one| one.cluster.clone());
        let session = cluster.and_then(|cluster| Some(self.sessions.of(&cluster)?.id));
        if let Some(session) = session {
            self.send_instruction(now, machine, session, effects);
        }
    }

    /// What the cycle that just decided means for each: the reclaims it decided, and where everybody is.
    pub(super) fn note_leaving(&mut self, now: Time, due: BTreeSet<MachineId>) {
        if self.leaving.is_empty() {
            return;
        }
        self.leaving.set_due(due);
        let ids: Vec<MachineId> = self.leaving.ids().cloned().collect();
        for machine in &ids {
            if let Some(phase) = self.leaving_phase(machine) {
                self.leaving.note_phase(machine, phase, now);
            }
        }
    }

    /// How far a machine that is to leave has come.
    fn leaving_phase(&self, machine: &MachineId) -> Option<LeavingPhase> {
        let state = self.supply.get(machine)?.state();
        let is_replaced =
            self.supply.is_kept_for_replacement(machine) || self.leaving.is_due(machine);
        Some(LeavingPhase::of(state, is_replaced))
    }

    fn audit_leaving(
        &mut self,
        machine: &MachineId,
        outcome: Outcome,
        said: String,
        effects: &mut Vec<Effect>,
    ) {
        let mut record = self.audit(machine.clone(), outcome);
        let known = self.supply.get(machine);
        record.cluster = known.and_then(Machine::cluster).cloned();
        record.need = known.and_then(Machine::attribution);
        record.said = said;
        effects.push(Effect::Audit(record));
    }

    /// Marks of an earlier process whose deadlines are ahead, or passed while none ran.
    pub(super) fn resume_leaving(&mut self, now: Time) {
        self.set_leaving_timer(now);
    }

    /// The machines among these actions that leave because they are marked.
    pub(super) fn due_to_leave(actions: &[bigfleet_model::Action]) -> BTreeSet<MachineId> {
        let leaving = actions.iter().filter(|one| one.reason == Reason::Leaving);
        leaving.map(|one| one.machine.clone()).collect()
    }

    /// Whether a reclaim is outside rail 1: what leaves now does not wait for others (SH-20).
    pub(super) fn is_outside_rail(&self, machine: &MachineId) -> bool {
        self.leaves_now(machine) && !self.has(Defect::LeavingNowCapped)
    }
}

/// Whether nothing is waited for before a machine leaves.
pub(super) fn leaves_now(ledger: &Ledger, machine: &MachineId) -> bool {
    ledger.beside(machine).leaving == Some(Leaving::Now)
}

fn said_by(mark: &DrainMark) -> String {
    let DrainMark { by, reason, .. } = mark;
    format!("by {by}: {reason}")
}
