//! Machines: how a known one changes, and what follows from it (XP-7, RC-6, ST-7).
//!
//! ```text
//! same state ─▶ refresh     expected next ─▶ arrive     anything else, confirmed ─▶ adopt
//!                               └── change: written, remembered, notified, measured ──┘
//! ```
//!
//! State, host, shape and price are the provider's word; commitments of a known machine stay ours.

use super::{ShardCore, breakers::is_supply};
use crate::{
    audit::Outcome,
    defect::Defect,
    effect::{Alert, Effect, Frame, NodeState, OperationId},
    event::Sighting,
    histogram::seconds,
    record::Record,
    schedule::Timer,
    work::Operation,
};
use bigfleet_model::{
    ClusterId, Machine, MachineId, MachineRefused, State, StepRefused, Time, Via,
};
use std::sync::Arc;

/// Metadata that names the operation a machine is bound by.
pub(super) const ASSIGNED_INTENT: &str = "bigfleet.lucy.sh/assigned-intent";

/// The operation a machine was bound by, as its provider echoes it.
pub(super) fn bound_by(sighting: &Sighting) -> Option<OperationId> {
    let intent = sighting.echoed.get(ASSIGNED_INTENT)?;
    sighting.machine.cluster()?;
    OperationId::parse(intent)
}

/// Whether two pictures of a machine show it in the same place of its life.
pub(super) fn stand_alike(seen: &Machine, known: &Machine) -> bool {
    (seen.state(), seen.cluster(), seen.host()) == (known.state(), known.cluster(), known.host())
}

/// What a machine does by itself once it was told to.
pub(super) fn is_natural(from: State, to: State) -> bool {
    matches!(
        (from, to),
        (State::Creating, State::Idle | State::Failed)
            | (State::Configuring, State::Configured | State::Failed)
            | (State::Draining, State::Idle | State::Failed)
            | (State::Deleting, State::Speculative | State::Failed)
    )
}

impl ShardCore {
    /// Inserts a machine with its commitments.
    pub(super) fn admit_machine(
        &mut self,
        now: Time,
        id: &MachineId,
        machine: Result<Machine, MachineRefused>,
        effects: &mut Vec<Effect>,
    ) {
        let machine = match machine {
            Ok(machine) => machine,
            Err(refused) => return self.impossible(id, refused.to_string(), effects),
        };
        if let Err(refused) = self.supply.insert(machine, now) {
            return self.impossible(id, refused.to_string(), effects);
        }
        self.holdings.note(id);
        let word = self.leaving_word(id);
        self.supply.set_leaving(id, word);
        if self.supply.is_trusted() {
            self.schedule.want_cycle();
        }
        self.notify(id, None, effects);
    }

    /// Takes a known machine a step further. One that cannot be taken is a defect here, never in the
    /// provider's data; some of the old mistakes lead there.
    pub(super) fn step(
        &mut self,
        now: Time,
        id: &MachineId,
        via: Via,
        step: impl FnOnce(&Machine) -> Result<Machine, StepRefused>,
        effects: &mut Vec<Effect>,
    ) {
        match self.supply.get(id).map(step) {
            Some(Ok(machine)) => self.change(now, machine, via, effects),
            Some(Err(refused)) if self.config.defect.is_none() => {
                self.impossible(id, refused.to_string(), effects);
            }
            Some(Err(_)) | None => {} // or it is gone in the same event
        }
    }

    /// The one way a known machine changes: written, remembered, notified, measured.
    pub(super) fn change(
        &mut self,
        now: Time,
        machine: Machine,
        via: Via,
        effects: &mut Vec<Effect>,
    ) {
        let id = machine.id().clone();
        let former = match self.supply.apply(machine, via, now) {
            Ok(former) => former,
            Err(refused) => return self.impossible(&id, refused.to_string(), effects),
        };
        let Some(known) = self.supply.get(&id) else {
            return;
        };
        let left = former.cluster();
        let has_moved = former.state() != known.state() || left != known.cluster();
        let state = known.state();
        let is_committed = |one: &Machine| one.cluster().is_some() || one.intent().is_some();
        let is_to_be_remembered =
            is_committed(&former) || is_committed(known) || self.work.is_at(&id);
        let (was_for, is_for) = (former.attribution(), known.attribution());
        if was_for != is_for {
            let shape = Arc::clone(known.shape());
            let churn = self.demand.count_churn(was_for, is_for, &shape);
            self.counters.gangs_moved(churn);
        }
        if is_to_be_remembered {
            self.remember(&id);
        }
        if !has_moved {
            return;
        }
        self.holdings.note(&id);
        if is_supply(state) {
            self.give_back(now, &id);
        }
        if let Some(left) = left.filter(|_| former.state() == State::Configured) {
            self.node_left(now, left);
        }
        self.notify(&id, left, effects);
        if state == State::Configured {
            self.serves(now, &id);
        } else if state != State::Draining {
            self.supply.forget_node(&id); // while it drains, its node is still to be named
        }
    }

    /// A machine became Configured: measured once (PL-2), and its node has a deadline (SH-17).
    fn serves(&mut self, now: Time, id: &MachineId) {
        let Some(known) = self.supply.get(id) else {
            return;
        };
        let fingerprint = &known.assignment().fingerprint;
        let Some(cluster) = known.cluster() else {
            return;
        };
        if let Some(took) = self.demand.served(cluster, fingerprint, now) {
            self.latencies.provisioning.observe(seconds(took));
        }
        let session = self.sessions.of(cluster);
        let is_reported = session.is_some_and(|session| session.reports_nodes);
        if let Some(deadline) = self.supply.expect_node(id, is_reported, now) {
            self.schedule.set(deadline, Timer::Node(id.clone()));
        }
    }

    /// Tells the cluster a machine is bound to, and the one it has just left (NS-4).
    fn notify(&self, id: &MachineId, left: Option<&ClusterId>, effects: &mut Vec<Effect>) {
        let Some(known) = self.supply.get(id) else {
            return;
        };
        let bound = known.cluster();
        if left != bound {
            let state = match bound {
                // Another's by now. To whom it left it is one that serves nobody.
                Some(_) => State::Idle,
                None => known.state(),
            };
            let left_it = || NodeState {
                state,
                ..self.supply.node_state(known)
            };
            self.send_node(left, left_it, effects);
        }
        self.send_node(bound, || self.supply.node_state(known), effects);
    }

    fn send_node(
        &self,
        cluster: Option<&ClusterId>,
        state: impl FnOnce() -> NodeState,
        effects: &mut Vec<Effect>,
    ) {
        let session = cluster.and_then(|cluster| self.sessions.of(cluster));
        if let Some(session) = session.filter(|session| session.is_synced) {
            effects.push(Effect::Send {
                session: session.id,
                frame: Frame::Node(Box::new(state())),
            });
        }
    }

    /// A machine the provider no longer has: its intent and its operation end with it.
    pub(super) fn gone(&mut self, now: Time, machine: &MachineId, effects: &mut Vec<Effect>) {
        self.rails.forget_given_up(machine);
        if self.leaving.forget(machine) {
            self.remember_record(Record::Drained {
                machine: machine.clone(),
                mark: None,
            });
        }
        let journalled = self.supply.remembered().get(machine);
        let journalled = journalled.and_then(|kept| kept.operation.as_deref().cloned());
        if let Some(journalled) = journalled {
            self.work
                .insert(Operation::remembered(journalled, machine.clone(), now));
        }
        self.finish(now, machine, Outcome::InventoryMiss, effects);
        self.give_back(now, machine);
        let (last, remembered) = self.supply.remove(machine);
        if last.is_none() && remembered.is_none() {
            return;
        }
        if let Some(last) = last {
            self.counters.removed += 1;
            self.supply.forget_node(machine);
            let removed = || NodeState {
                removed: true,
                ..self.supply.node_state(&last)
            };
            self.send_node(last.cluster(), removed, effects);
            if let Some(cluster) = last.cluster() {
                self.node_left(now, cluster);
            }
        }
        self.remember(machine);
        self.schedule.want_cycle();
    }

    /// Same state: what describes the machine follows the provider (RC-4); what it is kept at does not.
    pub(super) fn refresh(&mut self, now: Time, sighting: &Sighting, effects: &mut Vec<Effect>) {
        let seen = &sighting.machine;
        let Some(known) = self.supply.get(seen.id()) else {
            return;
        };
        let is_same = known.shape() == seen.shape()
            && known.price() == seen.price()
            && known.interruption() == seen.interruption()
            && known.last_error() == seen.last_error()
            && known.host() == seen.host();
        if !is_same {
            self.arrive(now, sighting, Via::Step, effects);
        }
    }

    /// Takes over a sighting that is where it should be. Commitments stay ours (RC-6).
    pub(super) fn arrive(
        &mut self,
        now: Time,
        sighting: &Sighting,
        via: Via,
        effects: &mut Vec<Effect>,
    ) {
        let seen = &sighting.machine;
        let Some(known) = self.supply.get(seen.id()) else {
            return;
        };
        let is_bound_alike = seen.cluster() == known.cluster() && !self.is_rebound(sighting);
        let rebound = (!is_bound_alike).then(|| sighting.recalled());
        let mut machine = match known.follow(seen, via, rebound) {
            Ok(machine) => machine,
            Err(refused) => return self.impossible(seen.id(), refused.to_string(), effects),
        };
        if self.has(Defect::AttributionLostAtMaturing) && seen.state() == State::Idle {
            machine = machine.release_intent().unwrap_or(machine);
        }
        self.supply.share_shape(&mut machine);
        self.change(now, machine, via, effects);
        if let Some(operation) = bound_by(sighting) {
            self.supply.note_bound_by(seen.id(), operation);
        }
    }

    /// ST-7: the provider's word where it is not one of our steps; audited, counted, notified.
    pub(super) fn adopt(&mut self, now: Time, sighting: &Sighting, effects: &mut Vec<Effect>) {
        let seen = &sighting.machine;
        let Some(known) = self.supply.get(seen.id()) else {
            return;
        };
        if self.is_foreign(sighting) {
            self.conflict(seen.id(), effects);
            self.gone(now, seen.id(), effects);
            return;
        }
        if stand_alike(seen, known) {
            self.refresh(now, sighting, effects);
            return;
        }
        let via = if known.state() == seen.state() {
            Via::Step
        } else {
            Via::Adoption
        };
        let mut record = self.audit(seen.id().clone(), Outcome::Adopted);
        record.cluster = seen.cluster().or(known.cluster()).cloned();
        record.need = known.attribution();
        record.price = Some(seen.price().dollars_per_hour());
        self.counters.adoptions += 1;
        effects.push(Effect::Audit(record));
        self.arrive(now, sighting, via, effects);
    }

    /// Whether a sighting shows a machine bound by another operation than the one we know of.
    pub(super) fn is_rebound(&self, sighting: &Sighting) -> bool {
        let known = self.supply.bound_by(sighting.machine.id());
        known.is_some_and(|known| bound_by(sighting).is_some_and(|seen| seen != known))
    }

    /// A machine is bound to somebody else than asked.
    pub(super) fn conflict(&mut self, machine: &MachineId, effects: &mut Vec<Effect>) {
        self.counters.conflicts += 1;
        effects.push(Effect::Alert(Alert::Conflict {
            machine: machine.clone(),
        }));
    }
}
