//! Settle: how calls end, and what that means for the machine (SH-11, DC-7).
//!
//! ```text
//! acked, target ─▶ done            unknown ─▶ again, fresh sequence     never sent ─▶ taken back
//! acked, on its way ─▶ wait        odd ack, INTERNAL ─▶ Get             fenced ─▶ everything stops
//! ```
//!
//! Failed is only ever the provider's word.

use super::{ShardCore, incident::LateAnswer};
use crate::{
    audit::{AuditRecord, Outcome},
    defect::Defect,
    effect::{Alert, Effect, OperationId, RequestId},
    event::{BlobAnswer, CallOutcome, Code, SessionId, Sighting},
    histogram::seconds,
    rails::{BreakerKey, JoinStep},
    schedule::Timer,
    settings::{BLOB_TIMEOUT, DELETE_PATIENCE},
    work::{Blob, Operation, WalkPosition},
};
use bigfleet_model::{ActionKind, Machine, MachineId, Time, Via, shown};
use std::time::Duration;

impl ShardCore {
    pub(super) fn call_ended(
        &mut self,
        now: Time,
        operation: OperationId,
        sequence: u64,
        outcome: CallOutcome,
        effects: &mut Vec<Effect>,
    ) {
        let Some(ended) = self.work.call_ended(operation, sequence, &outcome) else {
            return self.late(LateAnswer::Call);
        };
        if let Some(late) = ended.late {
            self.change(now, *late, Via::Step, effects);
        }
        let machine = &ended.machine;
        match outcome {
            CallOutcome::Acked { seen, .. } => self.acked(now, machine, *seen, effects),
            CallOutcome::NeverSent => self.never_sent(now, machine, effects),
            CallOutcome::Refused { code, .. } => self.refused(now, machine, code, effects),
        }
        if ended.overtaken {
            self.supply.doubt(machine);
        }
    }

    fn acked(
        &mut self,
        now: Time,
        machine: &MachineId,
        sighting: Sighting,
        effects: &mut Vec<Effect>,
    ) {
        let position = if sighting.machine.id() == machine {
            self.position(machine, &sighting)
        } else {
            WalkPosition::Elsewhere
        };
        match position {
            WalkPosition::Target => self.done(now, &sighting, effects),
            WalkPosition::Transitional => {
                self.work.taken_on(machine, now);
                self.arrive(now, &sighting, Via::Step, effects);
            }
            // SH-12: such an ack changes nothing; a Get shows what is.
            WalkPosition::Source | WalkPosition::Elsewhere | WalkPosition::Conflict => {
                self.confirm(now, machine);
            }
        }
    }

    /// Reads what became of a call from the machine, by name.
    pub(super) fn confirm(&mut self, now: Time, machine: &MachineId) {
        self.work.confirm(machine, now);
        self.supply.doubt(machine);
    }

    fn never_sent(&mut self, now: Time, machine: &MachineId, effects: &mut Vec<Effect>) {
        // SH-16: the gate closed before it was written. It keeps its intent, and leaves when it may.
        if self.is_closed(machine) {
            self.work.make_ready(machine, now);
            return;
        }
        // An earlier attempt, or the operator, may have been reached: then it is not unsent.
        if self.work.get(machine).is_some_and(Operation::is_unsent) {
            self.roll_back(now, machine, Outcome::NeverSent, effects);
        } else {
            self.back_off(now, machine);
        }
    }

    fn refused(&mut self, now: Time, machine: &MachineId, code: Code, effects: &mut Vec<Effect>) {
        let Some(action) = self.work.get(machine).map(|one| one.action) else {
            return;
        };
        match (code, action) {
            (Code::FailedPrecondition, _) if self.has(Defect::FencingNotChecked) => {
                self.back_off(now, machine);
            }
            (Code::FailedPrecondition, _) => self.fence(now, machine, effects),
            (_, ActionKind::Provision) if self.has(Defect::CreateErrorBurnsSlot) => {
                self.supply.set_unconfirmed(machine, true);
                self.roll_back(now, machine, Outcome::ProviderError, effects);
            }
            (Code::NotFound, _) => self.gone(now, machine, effects),
            (Code::Internal | Code::AlreadyExists, _) => self.confirm(now, machine),
            (Code::ResourceExhausted, ActionKind::Provision) => {
                self.roll_back(now, machine, Outcome::ProviderError, effects);
            }
            (Code::Unimplemented, ActionKind::Delete) => {
                self.supply.note_undeletable(machine);
                self.roll_back(now, machine, Outcome::ProviderError, effects);
            }
            (Code::InvalidArgument | Code::Unimplemented, _) => {
                effects.push(Effect::Alert(Alert::CallRefused {
                    machine: machine.clone(),
                }));
                self.call_refused(now, machine, effects);
            }
            (
                Code::Transport
                | Code::Unavailable
                | Code::DeadlineExceeded
                | Code::Cancelled
                | Code::Unknown
                | Code::ResourceExhausted,
                _,
            ) => {
                if self.is_delete_overdue(now, machine) {
                    self.confirm(now, machine);
                } else {
                    self.back_off(now, machine);
                }
            }
        }
    }

    /// INVALID_ARGUMENT: the same call would be refused again, so it is not made for a while.
    fn call_refused(&mut self, now: Time, machine: &MachineId, effects: &mut Vec<Effect>) {
        let Some(operation) = self.work.get(machine) else {
            return;
        };
        if operation.is_drain() {
            self.cancel(now, machine, effects);
            return;
        }
        if operation.action == ActionKind::Delete {
            self.supply.note_undeletable(machine);
        }
        self.roll_back(now, machine, Outcome::ProviderError, effects);
    }

    /// SH-23: whether a Delete was tried for so long that it is given up, should its machine be Idle.
    pub(super) fn is_delete_overdue(&self, now: Time, machine: &MachineId) -> bool {
        let known = self.work.get(machine);
        let delete = known.filter(|known| known.action == ActionKind::Delete);
        delete.is_some_and(|delete| DELETE_PATIENCE <= now.duration_since(delete.committed))
            && !self.has(Defect::DeleteTriedForEver)
    }

    /// A provider that does not delete a machine: it stays, and is supply, and is not deleted so soon again.
    pub(super) fn give_up_delete(
        &mut self,
        now: Time,
        machine: &MachineId,
        effects: &mut Vec<Effect>,
    ) {
        effects.push(Effect::Alert(Alert::DeleteGivenUp {
            machine: machine.clone(),
        }));
        self.rails.give_up(machine, now);
        self.roll_back(now, machine, Outcome::ProviderError, effects);
    }

    /// FE-4: another process runs this shard. Nothing leaves any more.
    fn fence(&mut self, now: Time, machine: &MachineId, effects: &mut Vec<Effect>) {
        effects.push(Effect::Alert(Alert::Fenced {
            machine: machine.clone(),
        }));
        self.work.confirm(machine, now);
        if let Some(operation) = self.work.get(machine) {
            self.counters.ended(operation.action, Outcome::Fenced);
            let record = self.audit_operation(now, operation, Outcome::Fenced);
            effects.push(Effect::Audit(record));
        }
        self.rails.fence();
        self.gate_moved(now);
    }

    /// Tries the same again later.
    pub(super) fn back_off(&mut self, now: Time, machine: &MachineId) {
        if let Some((again, operation)) = self.work.back_off(machine, now) {
            self.schedule.set(again, Timer::Retry(operation));
        }
    }

    /// Takes a commit back: nothing of it left, or the provider says nothing was done.
    pub(super) fn roll_back(
        &mut self,
        now: Time,
        machine: &MachineId,
        outcome: Outcome,
        effects: &mut Vec<Effect>,
    ) {
        let Some(action) = self.work.get(machine).map(|known| known.action) else {
            return;
        };
        self.counters.rollbacks += 1;
        self.finish(now, machine, outcome, effects);
        let via = match action {
            ActionKind::Bootstrap => Via::Step,
            ActionKind::Provision
            | ActionKind::Delete
            | ActionKind::Preempt
            | ActionKind::Reclaim
            | ActionKind::Restore => Via::Rollback,
        };
        self.back_to_source(now, machine, action, via, effects);
    }

    /// The machine is where its action found it, and promised to nobody.
    pub(super) fn back_to_source(
        &mut self,
        now: Time,
        machine: &MachineId,
        action: ActionKind,
        via: Via,
        effects: &mut Vec<Effect>,
    ) {
        let back = |known: &Machine| known.roll_back(action);
        self.step(now, machine, via, back, effects);
    }

    /// Ends an operation: counted, audited, and a reason to decide again.
    pub(super) fn finish(
        &mut self,
        now: Time,
        machine: &MachineId,
        outcome: Outcome,
        effects: &mut Vec<Effect>,
    ) {
        self.note_reclaim_left(now, machine);
        let Some(operation) = self.work.end(machine) else {
            return;
        };
        self.mark_reversible(machine);
        self.holdings.note(machine);
        let took = now.duration_since(operation.committed);
        self.counters.ended(operation.action, outcome);
        self.latencies.ended(operation.action, outcome, took);
        let record = self.audit_operation(now, &operation, outcome);
        effects.push(Effect::Audit(record));
        if outcome == Outcome::Success {
            self.succeeded(now, &operation, took);
        } else {
            self.failed(now, &operation, outcome);
        }
        self.acquisition_over(now, &operation);
        self.remember(machine);
        self.schedule.want_cycle();
    }

    fn succeeded(&mut self, now: Time, operation: &Operation, took: Duration) {
        let machine = &operation.machine;
        match operation.action {
            ActionKind::Bootstrap => {
                self.supply.note_bound_by(machine, operation.id);
                self.rails.forget_given_up(machine); // what was given up was its Delete
                self.latencies.configure.observe(seconds(took));
                if let Some(cluster) = &operation.cluster {
                    self.configured(now, cluster);
                }
            }
            ActionKind::Preempt | ActionKind::Reclaim => {
                self.latencies.drain.observe(seconds(took));
                self.rails.forget_given_up(machine);
            }
            ActionKind::Provision => {
                if let Some(pool) = self.supply.pool_of(machine) {
                    self.ended_well(now, &BreakerKey::Create(pool));
                }
            }
            ActionKind::Restore => {}
            ActionKind::Delete => {
                self.counters.idle_releases += 1;
                self.rails.forget_given_up(machine);
            }
        }
    }

    /// The line of the audit log for an operation that ended so.
    fn audit_operation(&self, now: Time, operation: &Operation, outcome: Outcome) -> AuditRecord {
        let mut record = self.audit(operation.machine.clone(), outcome);
        record.decided_cycle = operation.decided_cycle;
        record.kind = Some(operation.action);
        record.operation = Some(operation.id);
        record.cluster.clone_from(&operation.cluster);
        record.need.clone_from(&operation.need);
        record.priority = operation.priority;
        record.reason = Some(operation.reason);
        record.grace_seconds = operation.grace_seconds;
        if outcome != Outcome::Success {
            record.error.clone_from(&operation.trouble);
        }
        record.provider_operation.clone_from(&operation.name);
        record.took_seconds = Some(seconds(now.duration_since(operation.committed)));
        record
    }

    pub(super) fn blob_answered(
        &mut self,
        now: Time,
        session: SessionId,
        request: RequestId,
        answer: BlobAnswer,
        effects: &mut Vec<Effect>,
    ) {
        let cluster = self.sessions.cluster(session);
        let asked = self.work.asked(request);
        let asked = asked.filter(|operation| operation.cluster.as_ref() == cluster);
        let Some(operation) = asked else {
            return self.late(LateAnswer::Blob);
        };
        let machine = operation.machine.clone();
        let took = now.duration_since(operation.since);
        self.latencies.bootstrap.observe(seconds(took));
        match answer {
            BlobAnswer::Blob {
                user_data,
                ttl_seconds,
            } => {
                let ttl = Duration::from_secs(ttl_seconds.into());
                let until = (ttl_seconds != 0).then(|| now + ttl);
                let blob = Blob { user_data, until };
                let cluster = operation.cluster.clone();
                let is_kept = self.work.blob_came(&machine, blob, now);
                if let Some(cluster) = cluster.filter(|_| is_kept) {
                    self.ended_well(now, &BreakerKey::Join(cluster, JoinStep::Blob));
                }
            }
            BlobAnswer::Error(text) => {
                self.work.note_trouble(&machine, shown(&text));
                self.no_blob(now, &machine, Outcome::BlobError, effects);
            }
        }
    }

    /// A blob should have come by now.
    pub(super) fn blob_late(&mut self, now: Time, request: RequestId, effects: &mut Vec<Effect>) {
        let Some(operation) = self.work.asked(request) else {
            return;
        };
        let machine = operation.machine.clone();
        if self.is_closed(&machine) {
            self.schedule.set(now + BLOB_TIMEOUT, Timer::Blob(request));
            return;
        }
        let patience = BLOB_TIMEOUT.as_secs();
        let trouble = format!("no answer to a request for a blob in {patience} s");
        self.work.note_trouble(&machine, trouble);
        self.no_blob(now, &machine, Outcome::Timeout, effects);
    }

    /// W-5: an operator that cannot bootstrap costs time, never a machine.
    pub(super) fn no_blob(
        &mut self,
        now: Time,
        machine: &MachineId,
        outcome: Outcome,
        effects: &mut Vec<Effect>,
    ) {
        let Some(operation) = self.work.get(machine) else {
            return;
        };
        if !operation.touched {
            self.roll_back(now, machine, outcome, effects);
            return;
        }
        // It goes on: the provider may have begun. The blob did not come all the same.
        let (cluster, why) = (operation.cluster.clone(), operation.trouble.clone());
        self.back_off(now, machine);
        if let Some(cluster) = cluster.filter(|_| outcome != Outcome::NoSession) {
            self.ended_badly(now, BreakerKey::Join(cluster, JoinStep::Blob), &why);
        }
    }
}
