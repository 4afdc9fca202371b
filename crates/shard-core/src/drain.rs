//! Drains: instruct, wait for the operator's word, then drain; or give up (SH-14).
//!
//! ```text
//! commit ─▶ Reclaim instruction ─▶ DRAINED ───────────────▶ Drain(max(30 s, remaining))
//!                │                 deadline, Preempt ─────▶ Drain(0)
//!                │                 deadline, Reclaim ─────▶ cancel, Configured again, back off
//!                └─ operator does not report, or is gone ─▶ Drain(remaining)
//! ```
//!
//! A voluntary reclaim never forces its way past a disruption budget.

use crate::{
    ShardCore,
    audit::Outcome,
    effect::{Effect, Frame, OperationId},
    event::{DrainPhase, SessionId},
    operation::Step,
    timers::Timer,
};
use bigfleet_model::{ActionKind, MachineId, State, Time, Via};

impl ShardCore {
    /// Tells the operator to drain; true if the operation now waits for something.
    pub(crate) fn instruct(
        &mut self,
        now: Time,
        machine: &MachineId,
        effects: &mut Vec<Effect>,
    ) -> bool {
        let Some(operation) = self.operations.get(machine) else {
            return true;
        };
        let session = operation
            .cluster
            .as_ref()
            .and_then(|cluster| self.sessions.of(cluster));
        // SH-15: one that has not been told of its machines hears of this after them, once.
        if session.is_some_and(|one| !one.synced) {
            return true;
        }
        let Some((session, reports)) = session.map(|one| (one.id, one.features.drain_report))
        else {
            // AD-1: a person has spoken for the cluster, and there is nobody to ask.
            let cluster = operation.cluster.as_ref();
            if cluster.is_some_and(|cluster| self.released.contains(cluster)) {
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
        self.send_instruction(now, machine, session, effects);
        let Some(operation) = self.operations.get_mut(machine) else {
            return true;
        };
        operation.instructed = true;
        if reports {
            operation.enter(Step::Report, now);
            let (deadline, id) = (operation.deadline, operation.id);
            self.timers.set(deadline, Timer::Drain(id));
        }
        reports
    }

    fn send_instruction(
        &mut self,
        now: Time,
        machine: &MachineId,
        session: SessionId,
        effects: &mut Vec<Effect>,
    ) {
        let Some(operation) = self.operations.get(machine) else {
            return;
        };
        let known = self.ledger.get(machine);
        let remaining = operation.deadline.since(now).ceil().max(1.0);
        effects.push(Effect::Send {
            session,
            frame: Frame::Reclaim {
                instruction: operation.id,
                machine: machine.clone(),
                node_name: self.nodes.name(machine),
                host: known.and_then(|known| known.host()).cloned(),
                grace_seconds: remaining as u32,
                deadline: operation.deadline,
                preemptor_priority: operation.preemptor_priority,
            },
        });
    }

    /// SH-15: every open instruction of a cluster again, same id, what is left of its grace. Those
    /// the gate holds back are sent when it opens.
    pub(crate) fn instruct_again(
        &mut self,
        now: Time,
        cluster: &bigfleet_model::ClusterId,
        effects: &mut Vec<Effect>,
    ) {
        let session = self.sessions.of(cluster);
        let Some((session, reports)) = session.map(|one| (one.id, one.features.drain_report))
        else {
            return;
        };
        let open: Vec<MachineId> = self
            .ledger
            .bound_to(cluster)
            .filter(|id| {
                let operation = self.operations.get(*id);
                operation.is_some_and(|operation| {
                    operation.is_drain() && operation.instructed && !operation.drained
                })
            })
            .cloned()
            .collect();
        for machine in open {
            if !self.is_closed(&machine) {
                self.send_instruction(now, &machine, session, effects);
                let waits = self.operations.get(&machine).map(|known| known.step);
                if !reports && waits == Some(Step::Report) {
                    self.make_ready(&machine); // nobody will report: the call follows at once
                }
            } else if let Some(operation) = self.operations.get_mut(&machine)
                && operation.step == Step::Report
            {
                operation.instructed = false;
                self.make_ready(&machine);
            }
        }
    }

    pub(crate) fn drain_reported(
        &mut self,
        session: SessionId,
        instruction: OperationId,
        machine: &MachineId,
        phase: DrainPhase,
    ) {
        let cluster = self.sessions.cluster(session);
        let Some(operation) = self.operations.get_mut(machine) else {
            return;
        };
        let is_it = operation.id == instruction && operation.cluster == cluster;
        if !is_it || operation.step != Step::Report {
            return;
        }
        match phase {
            // An operator that knows no such node has nothing to wait for.
            DrainPhase::Drained | DrainPhase::Unresolved => {
                operation.drained = true;
                self.make_ready(machine);
            }
            DrainPhase::Started | DrainPhase::Blocked => {}
        }
    }

    /// A drain's grace is over.
    pub(crate) fn drain_due(
        &mut self,
        now: Time,
        operation: OperationId,
        effects: &mut Vec<Effect>,
    ) {
        let Some(machine) = self.by_operation.get(&operation).cloned() else {
            return;
        };
        if self.is_closed(&machine) {
            return; // the deadline stands still, and is set anew when the gate opens
        }
        let Some(known) = self.operations.get(&machine) else {
            return;
        };
        if known.step != Step::Report || now < known.deadline {
            return;
        }
        match known.action {
            ActionKind::Reclaim => self.cancel(now, &machine, effects),
            _ => self.make_ready(&machine),
        }
    }

    /// Gives a reclaim up: uncordon, Configured again, and not so soon again.
    pub(crate) fn cancel(&mut self, now: Time, machine: &MachineId, effects: &mut Vec<Effect>) {
        let Some(operation) = self.operations.get(machine) else {
            return;
        };
        let (instruction, instructed) = (operation.id, operation.instructed);
        let session = operation
            .cluster
            .as_ref()
            .and_then(|cluster| self.sessions.of(cluster));
        // An operator that does not report drains does not know the frame either (wire 12).
        if let Some(session) = session.filter(|one| instructed && one.features.drain_report) {
            effects.push(Effect::Send {
                session: session.id,
                frame: Frame::ReclaimCancel { instruction },
            });
        }
        self.counters.drains_blocked += 1;
        self.cancelled.fail(machine, now, String::new());
        self.finish(now, machine, Outcome::DrainBlocked, effects);
        let again = self.ledger.revise(machine, |facts| {
            facts.state = State::Configured.into();
            facts.intent = None;
        });
        if let Some(again) = again {
            self.change(now, again, Via::Rollback, effects);
        }
    }
}
