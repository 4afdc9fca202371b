//! Adoption: taking over what the provider shows, in turn or out of turn (RC-6, ST-7, SH-9).
//!
//! ```text
//! same state ─▶ refresh     expected next ─▶ arrive     a Get's word ─▶ resolve the operation, or adopt
//! ```
//!
//! State, host, shape and price are the provider's word; commitments of a known machine stay ours.

use crate::{
    ShardCore,
    audit::{AuditRecord, Outcome},
    defect::Defect,
    effect::{Alert, Effect},
    event::Sighting,
    operation::Step,
    settle::{Place, bound_by},
};
use bigfleet_model::{Machine, State, Time, Via};

impl ShardCore {
    /// A Get's word, which is final.
    pub(crate) fn believe(&mut self, now: Time, sighting: &Sighting, effects: &mut Vec<Effect>) {
        let id = sighting.machine.id();
        if !self.operations.contains_key(id) {
            self.adopt(now, sighting, effects);
            return;
        }
        match self.place(id, sighting) {
            Place::Target => self.done(now, sighting, effects),
            Place::Transitional => self.follow(now, sighting, effects),
            Place::Source => {
                if let Some(operation) = self.operations.get_mut(id) {
                    operation.acked = false;
                }
                self.back_off(now, id);
            }
            Place::Conflict => {
                self.note_elsewhere(sighting);
                self.counters.conflicts += 1;
                effects.push(Effect::Alert(Alert::Conflict {
                    machine: id.clone(),
                }));
                self.finish(now, id, Outcome::Conflict, effects);
                self.adopt(now, sighting, effects);
            }
            Place::Elsewhere => {
                self.note_elsewhere(sighting);
                self.finish(now, id, Outcome::ProviderError, effects);
                self.adopt(now, sighting, effects);
            }
        }
    }

    pub(crate) fn done(&mut self, now: Time, sighting: &Sighting, effects: &mut Vec<Effect>) {
        self.arrive(now, sighting, Via::Step, effects);
        self.finish(now, sighting.machine.id(), Outcome::Success, effects);
    }

    /// The provider is at it.
    pub(crate) fn follow(&mut self, now: Time, sighting: &Sighting, effects: &mut Vec<Effect>) {
        if let Some(operation) = self.operations.get_mut(sighting.machine.id()) {
            operation.acked = true;
            operation.enter(Step::Provider, now);
        }
        self.refresh(now, sighting, effects);
    }

    /// Same state: what describes the machine follows the provider (RC-4); what it is kept at does not.
    pub(crate) fn refresh(&mut self, now: Time, sighting: &Sighting, effects: &mut Vec<Effect>) {
        let seen = &sighting.machine;
        let Some(known) = self.ledger.get(seen.id()) else {
            return;
        };
        let same = known.shape() == seen.shape()
            && known.price() == seen.price()
            && known.interruption() == seen.interruption()
            && known.last_error() == seen.last_error()
            && known.host() == seen.host();
        if !same {
            self.arrive(now, sighting, Via::Step, effects);
        }
    }

    /// Takes over a sighting that is where it should be. Commitments stay ours (RC-6).
    pub(crate) fn arrive(
        &mut self,
        now: Time,
        sighting: &Sighting,
        via: Via,
        effects: &mut Vec<Effect>,
    ) {
        let seen = &sighting.machine;
        let Some(known) = self.ledger.get(seen.id()) else {
            return;
        };
        let from = known.state();
        let mut facts = seen.clone().into_facts();
        if seen.cluster() == known.cluster() && !self.is_rebound(sighting) {
            facts.assignment = known.assignment().clone();
        } else {
            facts.recall(None, &sighting.echoed);
        }
        let intent = known.intent().cloned();
        facts.intent = intent.filter(|_| seen.state().may_hold_intent());
        if self.has(Defect::AttributionLostAtMaturing) && seen.state() == State::Idle {
            facts.intent = None;
        }
        self.ledger.stock.share(&mut facts.shape);
        let Ok(machine) = Machine::new(facts) else {
            return;
        };
        if (from, seen.state()) == (State::Creating, State::Failed) {
            self.pool_failed(now, seen.id(), seen.last_error().to_owned());
        }
        self.change(now, machine, via, effects);
        if let Some(operation) = bound_by(sighting) {
            self.ledger.note_bound_by(sighting.machine.id(), operation);
        }
    }

    /// ST-7: the provider's word where it is not one of our steps; audited, counted, notified.
    fn adopt(&mut self, now: Time, sighting: &Sighting, effects: &mut Vec<Effect>) {
        let seen = &sighting.machine;
        let Some(known) = self.ledger.get(seen.id()) else {
            return;
        };
        if self.is_foreign(sighting) {
            self.counters.conflicts += 1;
            effects.push(Effect::Alert(Alert::Conflict {
                machine: seen.id().clone(),
            }));
            self.gone(now, &seen.id().clone(), effects);
            return;
        }
        if stand_alike(seen, known) {
            self.refresh(now, sighting, effects);
            return;
        }
        self.counters.adoptions += 1;
        effects.push(Effect::Audit(AuditRecord {
            time: now,
            cycle: self.cycle,
            decided_cycle: self.cycle,
            kind: None,
            operation: None,
            machine: seen.id().clone(),
            cluster: seen.cluster().or(known.cluster()).cloned(),
            need: known.attribution(),
            priority: None,
            reason: None,
            grace_seconds: 0,
            outcome: Outcome::Adopted,
            error: String::new(),
            provider_operation: String::new(),
            took_seconds: None,
            price: Some(seen.price().dollars_per_hour()),
            epoch: self.epoch,
            event: self.heard,
        }));
        let via = match known.state() == seen.state() {
            true => Via::Step,
            false => Via::Adoption,
        };
        self.arrive(now, sighting, via, effects);
    }
}

/// Whether two pictures of a machine show it in the same place of its life.
pub(crate) fn stand_alike(seen: &Machine, known: &Machine) -> bool {
    (seen.state(), seen.cluster(), seen.host()) == (known.state(), known.cluster(), known.host())
}

/// What a machine does by itself once it was told to.
pub(crate) fn natural(from: State, to: State) -> bool {
    matches!(
        (from, to),
        (State::Creating, State::Idle | State::Failed)
            | (State::Configuring, State::Configured | State::Failed)
            | (State::Draining, State::Idle | State::Failed)
            | (State::Deleting, State::Speculative | State::Failed)
    )
}
