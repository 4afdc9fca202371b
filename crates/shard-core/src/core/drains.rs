//! Drains: instruct, wait for the operator's word, then drain; or give up (SH-14).
//!
//! ```text
//! commit ─▶ Reclaim instruction ─▶ DRAINED ───────────────▶ Drain(max(30 s, remaining))
//!                │                 deadline, Preempt, now ▶ Drain(0)
//!                │                 deadline, Reclaim ─────▶ cancel, Configured again, back off
//!                └─ operator does not report, or is gone ─▶ Drain(remaining)
//! Restore, before a Drain has left ───────────────────────▶ withdrawn, Configured again (SH-18)
//! ```
//!
//! A voluntary reclaim never forces its way past a disruption budget, and costs nobody anything who wants the
//! machine again before it is gone.

use super::{ShardCore, gate::whole_seconds, incident::LateAnswer};
use crate::{
    audit::Outcome,
    defect::Defect,
    effect::{Effect, Frame, OperationId},
    event::{DrainPhase, SessionId},
    schedule::Timer,
    work::{Operation, WorkStage},
};
use bigfleet_model::{Action, ActionKind, ClusterId, Machine, MachineId, Time, Via};

impl ShardCore {
    /// Tells the operator to drain; true if the operation now waits for something.
    pub(super) fn instruct(
        &mut self,
        now: Time,
        machine: &MachineId,
        effects: &mut Vec<Effect>,
    ) -> bool {
        let Some(operation) = self.work.get(machine) else {
            return true;
        };
        let cluster = operation.cluster.as_ref();
        let session = cluster.and_then(|cluster| self.sessions.of(cluster));
        // SH-15: one that has not been told of its machines hears of this after them, once.
        if session.is_some_and(|one| !one.is_synced) {
            return true;
        }
        let Some((session, reports)) = session.map(|one| (one.id, one.features.drain_report))
        else {
            // AD-1: a person has spoken for the cluster, and there is nobody to ask. SH-20: what leaves now
            // leaves without.
            let is_released = cluster.is_some_and(|cluster| self.rails.is_released(cluster));
            if is_released || self.leaves_now(machine) {
                return false;
            }
            // SH-3: a Reclaim needs an operator. If nothing has left it is taken back; one an earlier
            // process began waits for the operator until its grace is over.
            match operation.action {
                ActionKind::Reclaim if !operation.touched => {
                    self.roll_back(now, machine, Outcome::NoSession, effects);
                }
                ActionKind::Reclaim if operation.deadline <= now => {
                    self.cancel(now, machine, effects);
                }
                ActionKind::Reclaim => self.back_off(now, machine),
                _ => return false,
            }
            return true;
        };
        let (deadline, id) = (operation.deadline, operation.id);
        self.send_instruction(now, machine, session, effects);
        self.note_reclaim_left(now, machine);
        self.work.instructed(machine, reports, now);
        self.mark_reversible(machine);
        if reports {
            self.schedule.set(deadline, Timer::Drain(id));
        }
        reports
    }

    /// SH-30: something of a machine's operation leaves. If it is a reclaim, rail 1 counts it from now.
    pub(super) fn note_reclaim_left(&mut self, now: Time, machine: &MachineId) {
        let operation = self.work.get(machine);
        let reclaim = operation.filter(|one| one.action == ActionKind::Reclaim);
        if let Some(cluster) = reclaim.and_then(|one| one.cluster.as_ref()) {
            self.rails.reclaim_left(cluster, machine, now);
        }
    }

    pub(super) fn send_instruction(
        &mut self,
        now: Time,
        machine: &MachineId,
        session: SessionId,
        effects: &mut Vec<Effect>,
    ) {
        let Some(operation) = self.work.get(machine) else {
            return;
        };
        let known = self.supply.get(machine);
        let remaining = operation.deadline.duration_since(now);
        effects.push(Effect::Send {
            session,
            frame: Frame::Reclaim {
                instruction: operation.id,
                machine: machine.clone(),
                node_name: self.supply.node_name(machine).to_owned(),
                host: known.and_then(|known| known.host()).cloned(),
                grace_seconds: whole_seconds(remaining).max(1),
                deadline: operation.deadline,
                preemptor_priority: operation.preemptor_priority,
                voluntary: operation.action == ActionKind::Reclaim && !self.leaves_now(machine),
            },
        });
    }

    /// SH-15: every open instruction of a cluster again, same id, what is left of its grace. Those
    /// the gate holds back are sent when it opens.
    pub(super) fn instruct_again(
        &mut self,
        now: Time,
        cluster: &ClusterId,
        effects: &mut Vec<Effect>,
    ) {
        let session = self.sessions.of(cluster);
        let Some((session, reports)) = session.map(|one| (one.id, one.features.drain_report))
        else {
            return;
        };
        let is_open = |machine: &&MachineId| {
            let operation = self.work.get(machine);
            operation.is_some_and(|one| one.is_drain() && one.instructed && !one.drained)
        };
        let open = self.supply.bound_to(cluster).filter(is_open).cloned();
        for machine in open.collect::<Vec<_>>() {
            if self.is_closed(&machine) {
                self.work.instruct_later(&machine, now);
                continue;
            }
            self.send_instruction(now, &machine, session, effects);
            let stage = self.work.get(&machine).map(|known| known.stage);
            if !reports && stage == Some(WorkStage::DrainReport) {
                self.work.make_ready(&machine, now); // nobody will report: the call follows at once
                self.mark_reversible(&machine);
            }
        }
    }

    pub(super) fn drain_reported(
        &mut self,
        now: Time,
        session: SessionId,
        instruction: OperationId,
        machine: &MachineId,
        phase: DrainPhase,
    ) {
        let cluster = self.sessions.cluster(session);
        let awaited = self.work.get(machine).filter(|operation| {
            let is_it = operation.id == instruction && operation.cluster.as_ref() == cluster;
            is_it && operation.stage == WorkStage::DrainReport
        });
        if awaited.is_none() {
            return self.late(LateAnswer::Drain);
        }
        match phase {
            // An operator that knows no such node has nothing to wait for.
            DrainPhase::Drained | DrainPhase::Unresolved => self.work.drained(machine, now),
            DrainPhase::Started | DrainPhase::Blocked => {
                self.work.still_evicting(machine);
                self.mark_reversible(machine);
            }
        }
    }

    /// A drain's grace is over.
    pub(super) fn drain_due(
        &mut self,
        now: Time,
        operation: OperationId,
        effects: &mut Vec<Effect>,
    ) {
        let Some(machine) = self.work.machine(operation).cloned() else {
            return;
        };
        if self.is_closed(&machine) {
            return; // the deadline stands still, and is set anew when the gate opens
        }
        let Some(known) = self.work.get(&machine) else {
            return;
        };
        if known.stage != WorkStage::DrainReport || now < known.deadline {
            return;
        }
        match known.action {
            ActionKind::Reclaim if !self.leaves_now(&machine) && !self.has(Defect::SoonForced) => {
                self.cancel(now, &machine, effects);
            }
            _ => self.work.make_ready(&machine, now),
        }
    }

    /// Tells the engine whether the drain of a machine can still be taken back (SH-18).
    pub(super) fn mark_reversible(&mut self, machine: &MachineId) {
        let operation = self.work.get(machine);
        let is_reversible = operation.is_some_and(|one| self.may_take_back(one));
        self.supply.set_reversible(machine, is_reversible);
    }

    /// Whether a drain can still be taken back.
    pub(super) fn may_take_back(&self, operation: &Operation) -> bool {
        // SH-20: nobody wants back what is to leave.
        if self.supply.beside(&operation.machine).leaving.is_some() {
            return false;
        }
        match self.config.defect {
            Some(Defect::RestoredTooLate) => operation.action == ActionKind::Reclaim,
            Some(Defect::RestoredThoughPreempted) => operation.is_drain() && !operation.touched,
            _ => operation.is_reversible(),
        }
    }

    /// SH-18: a Need wants a machine again that a reclaim drains. It is as if that had not been: the machine
    /// serves, rail 1 has its place back, and nothing holds the next reclaim off. `restored` is the machine
    /// as the decision has it.
    pub(super) fn take_back(
        &mut self,
        now: Time,
        action: Action,
        restored: Machine,
        effects: &mut Vec<Effect>,
    ) {
        let machine = &action.machine;
        let Some(operation) = self.work.get(machine).map(|operation| operation.id) else {
            return;
        };
        self.send_cancel(machine, effects);
        if let Some(cluster) = &action.cluster {
            self.rails.reclaim_taken_back(cluster, machine);
        }
        self.finish(now, machine, Outcome::TakenBack, effects);
        self.counters.acted(action.kind);
        self.counters.ended(action.kind, Outcome::Success);
        let mut record = self.audit(machine.clone(), Outcome::Success);
        record.operation = Some(operation);
        effects.push(Effect::Audit(record.decided(action)));
        self.change(now, restored, Via::Rollback, effects);
    }

    /// Withdraws the instruction of a machine, if its operator has it.
    fn send_cancel(&self, machine: &MachineId, effects: &mut Vec<Effect>) {
        let operation = self.work.get(machine).filter(|one| one.instructed);
        let Some(operation) = operation else {
            return;
        };
        let cluster = operation.cluster.as_ref();
        let session = cluster.and_then(|cluster| self.sessions.of(cluster));
        // An operator that does not report drains does not know the frame either (wire 12).
        if let Some(session) = session.filter(|one| one.features.drain_report) {
            effects.push(Effect::Send {
                session: session.id,
                frame: Frame::ReclaimCancel {
                    instruction: operation.id,
                },
            });
        }
    }

    /// Gives a reclaim up: uncordon, Configured again, and not so soon again.
    pub(super) fn cancel(&mut self, now: Time, machine: &MachineId, effects: &mut Vec<Effect>) {
        let Some(action) = self.work.get(machine).map(|operation| operation.action) else {
            return;
        };
        self.send_cancel(machine, effects);
        self.counters.drains_blocked += 1;
        self.rails.give_up(machine, now);
        self.finish(now, machine, Outcome::DrainBlocked, effects);
        self.back_to_source(now, machine, action, Via::Rollback, effects);
    }
}
