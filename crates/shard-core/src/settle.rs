//! Settle: how calls end, and what that means for the machine (SH-11, DC-7).
//!
//! ```text
//! acked, target ─▶ done            unknown ─▶ again, fresh sequence     never sent ─▶ taken back
//! acked, on its way ─▶ wait        odd ack, INTERNAL ─▶ Get             fenced ─▶ everything stops
//! ```
//!
//! Failed is only ever the provider's word.

use crate::{
    ShardCore,
    audit::{AuditRecord, Outcome},
    breaker::Pool,
    defect::Defect,
    effect::{Alert, Effect, OperationId, RequestId},
    event::{BlobAnswer, CallOutcome, Code, SessionId, Sighting},
    gate::ASSIGNED_INTENT,
    operation::{Blob, Operation, Step, walk},
    settings::{BLOB_TIMEOUT, RETRY},
    timers::{Timer, after},
};
use bigfleet_model::{ActionKind, MachineId, State, Time, Via, shown};

/// Where a sighting puts a machine on its operation's walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Source,
    Transitional,
    Target,
    Elsewhere,
    /// Bound, but to somebody else or by somebody else.
    Conflict,
}

impl ShardCore {
    pub(crate) fn call_ended(
        &mut self,
        now: Time,
        operation: OperationId,
        sequence: u64,
        outcome: CallOutcome,
        effects: &mut Vec<Effect>,
    ) {
        self.on_wire.remove(&sequence);
        let Some(machine) = self.by_operation.get(&operation).cloned() else {
            return;
        };
        let Some(known) = self.operations.get_mut(&machine) else {
            return;
        };
        if known.step != Step::Wire(sequence) {
            return;
        }
        match &outcome {
            CallOutcome::Acked { operation, .. } => known.name.clone_from(operation),
            CallOutcome::Refused { code, text } => {
                known.trouble = code.said(text);
                known.refused = Some((*code, text.clone()));
            }
            CallOutcome::NeverSent => {}
        }
        let overtaken = std::mem::take(&mut known.overtaken);
        if let Some(late) = known.late.take() {
            self.change(now, *late, Via::Step, effects);
        }
        match outcome {
            CallOutcome::Acked { seen, .. } => self.acked(now, &machine, *seen, effects),
            CallOutcome::NeverSent => self.never_sent(now, &machine, effects),
            CallOutcome::Refused { code, .. } => self.refused(now, &machine, code, effects),
        }
        if overtaken {
            self.doubt(&machine);
        }
    }

    fn acked(
        &mut self,
        now: Time,
        machine: &MachineId,
        sighting: Sighting,
        effects: &mut Vec<Effect>,
    ) {
        let place = match sighting.machine.id() == machine {
            true => self.place(machine, &sighting),
            false => Place::Elsewhere,
        };
        match place {
            Place::Target => {
                self.arrive(now, &sighting, Via::Step, effects);
                self.finish(now, machine, Outcome::Success, effects);
            }
            Place::Transitional => {
                if let Some(operation) = self.operations.get_mut(machine) {
                    operation.acked = true;
                    operation.enter(Step::Provider, now);
                }
                self.arrive(now, &sighting, Via::Step, effects);
            }
            // SH-12: such an ack changes nothing; a Get shows what is.
            Place::Source | Place::Elsewhere | Place::Conflict => self.confirm(machine),
        }
    }

    /// Where a sighting is on the walk of the machine's operation.
    pub(crate) fn place(&self, machine: &MachineId, sighting: &Sighting) -> Place {
        let (Some(operation), Some(known)) =
            (self.operations.get(machine), self.ledger.get(machine))
        else {
            return Place::Elsewhere;
        };
        let walk = walk(operation.action);
        let seen = &sighting.machine;
        let place = match seen.state() {
            state if state == walk.target => Place::Target,
            state if state == walk.transitional => Place::Transitional,
            state if state == walk.source => Place::Source,
            _ => return Place::Elsewhere,
        };
        let bound = matches!(
            seen.state(),
            State::Configuring | State::Configured | State::Draining
        );
        if bound && seen.cluster() != known.cluster() {
            return match operation.action {
                ActionKind::Bootstrap => Place::Conflict,
                _ => Place::Elsewhere,
            };
        }
        // An absent key is an older provider's or an older shard's; another intent is not ours.
        let intent = sighting.echoed.get(ASSIGNED_INTENT);
        let ours = intent.is_none_or(|intent| OperationId::parse(intent) == Some(operation.id));
        match operation.action {
            ActionKind::Bootstrap if bound && !ours => Place::Conflict,
            // SH-6: it was bound anew since: the drain was for what it was before.
            ActionKind::Preempt | ActionKind::Reclaim if bound && self.is_rebound(sighting) => {
                Place::Elsewhere
            }
            _ => place,
        }
    }

    /// The provider shows a machine where its operation does not lead: that is what went wrong with it.
    pub(crate) fn note_elsewhere(&mut self, sighting: &Sighting) {
        let seen = &sighting.machine;
        let bound = seen.cluster();
        let bound = bound.map_or_else(String::new, |cluster| format!(" for {cluster}"));
        let said = shown(seen.last_error());
        let said = Some(said).filter(|said| !said.is_empty());
        let said = said.map_or_else(String::new, |said| format!(": {said}"));
        if let Some(operation) = self.operations.get_mut(seen.id()) {
            operation.trouble = format!("the provider shows it {}{bound}{said}", seen.state());
        }
    }

    /// Whether a sighting shows a machine bound by another operation than the one we know of.
    pub(crate) fn is_rebound(&self, sighting: &Sighting) -> bool {
        let known = self.ledger.bound_by(sighting.machine.id());
        known.is_some_and(|known| bound_by(sighting).is_some_and(|seen| seen != known))
    }

    fn never_sent(&mut self, now: Time, machine: &MachineId, effects: &mut Vec<Effect>) {
        let Some(operation) = self.operations.get_mut(machine) else {
            return;
        };
        operation.attempts -= 1;
        // An earlier attempt, or the operator, may have been reached: then it is not unsent.
        if operation.attempts == 0 && !operation.acked && !operation.instructed {
            self.roll_back(now, machine, Outcome::NeverSent, effects);
        } else {
            self.back_off(now, machine);
        }
    }

    fn refused(&mut self, now: Time, machine: &MachineId, code: Code, effects: &mut Vec<Effect>) {
        let Some(action) = self.operations.get(machine).map(|one| one.action) else {
            return;
        };
        match (code, action) {
            (Code::FailedPrecondition, _) if self.has(Defect::FencingNotChecked) => {
                self.back_off(now, machine);
            }
            (Code::FailedPrecondition, _) => self.fence(now, machine, effects),
            (_, ActionKind::Provision) if self.has(Defect::CreateErrorBurnsSlot) => {
                self.ledger
                    .note(machine, |beside| beside.unconfirmed = true);
                self.roll_back(now, machine, Outcome::ProviderError, effects);
            }
            (Code::NotFound, _) => self.gone(now, machine, effects),
            (Code::Internal | Code::AlreadyExists, _) => self.confirm(machine),
            (Code::ResourceExhausted, ActionKind::Provision) => {
                let known = self.operations.get(machine);
                let why = known.map(|known| known.trouble.clone());
                self.pool_failed(now, machine, why.unwrap_or_default());
                self.roll_back(now, machine, Outcome::ProviderError, effects);
            }
            (Code::Unimplemented, ActionKind::Delete) => {
                self.ledger
                    .note(machine, |beside| beside.undeletable = true);
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
            ) => self.back_off(now, machine),
        }
    }

    /// INVALID_ARGUMENT: the same call would be refused again, so it is not made for a while.
    fn call_refused(&mut self, now: Time, machine: &MachineId, effects: &mut Vec<Effect>) {
        let Some(operation) = self.operations.get(machine) else {
            return;
        };
        if operation.is_drain() {
            self.cancel(now, machine, effects);
            return;
        }
        let why = operation.trouble.clone();
        match operation.cluster.clone() {
            Some(cluster) => self.cluster_failed(now, &cluster, why),
            None => self
                .ledger
                .note(machine, |beside| beside.undeletable = true),
        }
        self.roll_back(now, machine, Outcome::ProviderError, effects);
    }

    /// FE-4: another process runs this shard. Nothing leaves any more.
    fn fence(&mut self, now: Time, machine: &MachineId, effects: &mut Vec<Effect>) {
        effects.push(Effect::Alert(Alert::Fenced {
            machine: machine.clone(),
        }));
        if let Some(operation) = self.operations.get_mut(machine) {
            operation.enter(Step::Confirm(None), now);
            let operation = operation.clone();
            self.counters.ended(operation.action, Outcome::Fenced);
            let record = self.audited(now, &operation, Outcome::Fenced);
            effects.push(Effect::Audit(record));
        }
        self.fenced = true;
        self.gate_moved(now);
    }

    /// Tries the same again later.
    pub(crate) fn back_off(&mut self, now: Time, machine: &MachineId) {
        let Some(operation) = self.operations.get_mut(machine) else {
            return;
        };
        let doubled = RETRY.0 * f64::from(1_u32 << operation.attempts.min(16));
        operation.enter(Step::Backoff, now);
        self.timers
            .set(after(now, doubled.min(RETRY.1)), Timer::Retry(operation.id));
    }

    pub(crate) fn retry(&mut self, _now: Time, operation: OperationId) {
        let Some(machine) = self.by_operation.get(&operation).cloned() else {
            return;
        };
        let step = self.operations.get(&machine).map(|known| known.step);
        if step == Some(Step::Backoff) {
            self.make_ready(&machine);
        }
    }

    /// Takes a commit back: nothing of it left, or the provider says nothing was done.
    pub(crate) fn roll_back(
        &mut self,
        now: Time,
        machine: &MachineId,
        outcome: Outcome,
        effects: &mut Vec<Effect>,
    ) {
        let Some(action) = self.operations.get(machine).map(|known| known.action) else {
            return;
        };
        self.counters.rollbacks += 1;
        self.finish(now, machine, outcome, effects);
        let via = match action {
            ActionKind::Bootstrap => Via::Step,
            ActionKind::Provision
            | ActionKind::Delete
            | ActionKind::Preempt
            | ActionKind::Reclaim => Via::Rollback,
        };
        let back = self.ledger.revise(machine, |facts| {
            facts.state = walk(action).source.into();
            facts.intent = None;
        });
        if let Some(back) = back {
            self.change(now, back, via, effects);
        }
    }

    /// Ends an operation: counted, audited, and a reason to decide again.
    pub(crate) fn finish(
        &mut self,
        now: Time,
        machine: &MachineId,
        outcome: Outcome,
        effects: &mut Vec<Effect>,
    ) {
        let Some(operation) = self.operations.remove(machine) else {
            return;
        };
        self.by_operation.remove(&operation.id);
        self.not_ready((operation.rank(), operation.id));
        if let Step::Blob(request) = operation.step {
            self.sessions.asked.remove(&request);
        }
        self.counters.ended(operation.action, outcome);
        let took = now.since(operation.committed);
        self.latencies.ended(operation.action, outcome, took);
        effects.push(Effect::Audit(self.audited(now, &operation, outcome)));
        if outcome == Outcome::Success {
            self.succeeded(now, &operation);
        }
        self.remember(machine);
        self.wants_cycle = true;
    }

    fn succeeded(&mut self, now: Time, operation: &Operation) {
        let took = now.since(operation.committed);
        match operation.action {
            ActionKind::Bootstrap => {
                self.ledger.note_bound_by(&operation.machine, operation.id);
                self.latencies.configure.observe(took);
                if let Some(cluster) = &operation.cluster {
                    self.bootstraps.succeed(cluster);
                }
            }
            ActionKind::Preempt | ActionKind::Reclaim => {
                self.latencies.drain.observe(took);
                self.cancelled.succeed(&operation.machine);
            }
            ActionKind::Provision => {
                let shape = self.ledger.get(&operation.machine);
                if let Some(pool) = shape.map(|known| Pool::of(known.shape()))
                    && self.breakers.succeed(&pool)
                {
                    self.ledger.set_closed(&pool, false);
                }
            }
            ActionKind::Delete => self.counters.idle_releases += 1,
        }
    }

    /// A Create of this machine's pool failed: the pool is left alone (SH-11).
    pub(crate) fn pool_failed(&mut self, now: Time, machine: &MachineId, why: String) {
        let Some(pool) = self
            .ledger
            .get(machine)
            .map(|known| Pool::of(known.shape()))
        else {
            return;
        };
        let (until, opened) = self.breakers.fail(&pool, now, why);
        self.counters.breakers_opened += u64::from(opened);
        self.ledger.set_closed(&pool, true);
        self.timers.set(until, Timer::Pool(pool));
    }

    /// A cluster's operator or blob failed: nothing is acquired for it for a while.
    fn cluster_failed(&mut self, now: Time, cluster: &bigfleet_model::ClusterId, why: String) {
        let until = self.bootstraps.fail(cluster, now, why);
        self.timers.set(until, Timer::Cluster(cluster.clone()));
        self.review_cluster(now, cluster);
    }

    pub(crate) fn blob_answered(
        &mut self,
        now: Time,
        session: SessionId,
        request: RequestId,
        answer: BlobAnswer,
        effects: &mut Vec<Effect>,
    ) {
        let cluster = self.sessions.cluster(session);
        let Some(machine) = self.sessions.asked.get(&request).cloned() else {
            return;
        };
        let Some(operation) = self.operations.get_mut(&machine) else {
            return;
        };
        if operation.step != Step::Blob(request) || operation.cluster != cluster {
            return;
        }
        self.sessions.asked.remove(&request);
        self.latencies.bootstrap.observe(now.since(operation.asked));
        match answer {
            BlobAnswer::Blob {
                user_data,
                ttl_seconds,
            } => {
                let ttl = (ttl_seconds != 0).then(|| after(now, f64::from(ttl_seconds)));
                operation.blob = Some(Blob {
                    user_data,
                    until: ttl,
                });
                self.make_ready(&machine);
            }
            BlobAnswer::Error(text) => {
                operation.trouble = shown(&text);
                self.no_blob(now, &machine, Outcome::BlobError, effects);
            }
        }
    }

    pub(crate) fn blob_late(&mut self, now: Time, request: RequestId, effects: &mut Vec<Effect>) {
        let Some(machine) = self.sessions.asked.get(&request).cloned() else {
            return;
        };
        if self.is_closed(&machine) {
            self.timers
                .set(after(now, BLOB_TIMEOUT), Timer::Blob(request));
            return;
        }
        self.sessions.asked.remove(&request);
        if let Some(operation) = self.operations.get_mut(&machine) {
            operation.trouble = format!("no answer to a request for a blob in {BLOB_TIMEOUT} s");
        }
        self.no_blob(now, &machine, Outcome::Timeout, effects);
    }

    /// W-5: an operator that cannot bootstrap costs time, never a machine.
    pub(crate) fn no_blob(
        &mut self,
        now: Time,
        machine: &MachineId,
        outcome: Outcome,
        effects: &mut Vec<Effect>,
    ) {
        let Some(operation) = self.operations.get(machine) else {
            return;
        };
        let (cluster, touched) = (operation.cluster.clone(), operation.touched);
        let why = operation.trouble.clone();
        match touched {
            true => self.back_off(now, machine),
            false => self.roll_back(now, machine, outcome, effects),
        }
        if let Some(cluster) = cluster.filter(|_| outcome != Outcome::NoSession) {
            self.cluster_failed(now, &cluster, why);
        }
    }
}

impl ShardCore {
    /// The line of the audit log for an operation that ended so.
    /// What a machine costs, in dollars per hour.
    pub(crate) fn price_of(&self, machine: &MachineId) -> Option<f64> {
        let known = self.ledger.get(machine)?;
        Some(known.price().dollars_per_hour())
    }

    pub(crate) fn audited(
        &self,
        now: Time,
        operation: &Operation,
        outcome: Outcome,
    ) -> AuditRecord {
        AuditRecord {
            time: now,
            cycle: self.cycle,
            decided_cycle: operation.decided_cycle,
            kind: Some(operation.action),
            operation: Some(operation.id),
            machine: operation.machine.clone(),
            cluster: operation.cluster.clone(),
            need: operation.need.clone(),
            priority: operation.priority,
            reason: Some(operation.reason),
            grace_seconds: operation.grace_seconds,
            outcome,
            error: match outcome {
                Outcome::Success => String::new(),
                _ => operation.trouble.clone(),
            },
            provider_operation: operation.name.clone(),
            took_seconds: Some(now.since(operation.committed)),
            price: self.price_of(&operation.machine),
            epoch: self.epoch,
            event: self.heard,
        }
    }
}

/// The operation a machine was bound by, as its provider echoes it.
pub(crate) fn bound_by(sighting: &Sighting) -> Option<OperationId> {
    let intent = sighting.echoed.get(ASSIGNED_INTENT)?;
    sighting.machine.cluster()?;
    OperationId::parse(intent)
}
