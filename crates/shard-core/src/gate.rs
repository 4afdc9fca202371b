//! The gate: the one place where effects that act on machines leave (SH-16).
//!
//! ```text
//! ready operations ─▶ fenced? dry-run? paused? ─▶ a slot, an operator ─▶ Call, Reclaim, BootstrapRequest
//!          queued ◀── all it lacks is a slot ─────────┤
//!         crowded ◀── its cluster has its share ──────┘
//! ```
//!
//! Whatever was committed when, retries included: if its scope is closed now, it stays where it is,
//! and its deadline with it.

use crate::{
    ShardCore,
    audit::Outcome,
    defect::Defect,
    effect::{Alert, Barrier, Effect, Frame, OperationId, ProviderCall, RequestId, Token},
    event::PausedBy,
    operation::{Operation, Step},
    pause::Scope,
    settings::{BLOB_TIMEOUT, LEAST_DRAIN},
    timers::{Timer, after},
};
use bigfleet_model::{ActionKind, Assignment, ClusterId, Group, MachineId, Time};
use std::collections::BTreeSet;

/// Where an operation stands among those that wait: how urgent its kind is, then the oldest.
pub(crate) type Place = (u8, OperationId);

/// Metadata that names the shard a machine is bound by.
pub(crate) const ASSIGNED_SHARD: &str = "bigfleet.lucy.sh/assigned-shard";
/// Metadata that names the operation a machine is bound by.
pub(crate) const ASSIGNED_INTENT: &str = "bigfleet.lucy.sh/assigned-intent";

impl ShardCore {
    /// Whether everything is paused: by configuration, by an admin, or since another process runs this
    /// shard.
    pub fn is_paused(&self) -> bool {
        self.fenced || self.pauses.all(&self.config.provider)
    }

    /// Whether nothing at all may leave.
    pub(crate) fn all_closed(&self) -> bool {
        self.config.dry_run || self.is_paused()
    }

    /// Whether nothing may leave that concerns this machine: the cluster it is bound to or meant
    /// for is paused, or everything is.
    pub(crate) fn is_closed(&self, machine: &MachineId) -> bool {
        let known = self.ledger.get(machine);
        let bound = known.and_then(|known| known.cluster());
        let meant = known.and_then(|known| known.intent());
        let meant = meant.map(|intent| &intent.need.cluster);
        self.is_closed_for(bound.into_iter().chain(meant))
    }

    fn is_closed_for<'c>(&self, mut clusters: impl Iterator<Item = &'c ClusterId>) -> bool {
        self.all_closed()
            || (!self.pauses.is_empty() && clusters.any(|cluster| self.pauses.cluster(cluster)))
    }

    /// A pause was set or lifted. An admin's is on disk before whoever asked is answered, in one write
    /// with what it holds back.
    pub(crate) fn pause_changed(
        &mut self,
        now: Time,
        by: PausedBy,
        scope: &Scope,
        effects: &mut Vec<Effect>,
    ) {
        self.gate_moved(now);
        if by == PausedBy::Admin {
            self.remember_record(self.pauses.record(scope));
            self.persist(effects);
        }
    }

    /// Ends the pauses that have run out; says whether there were any.
    pub(crate) fn expire_pauses(&mut self, now: Time) -> bool {
        let over = self.pauses.expire(now);
        for (scope, by) in &over {
            if *by == PausedBy::Admin {
                self.remember_record(self.pauses.record(scope));
            }
        }
        !over.is_empty()
    }

    /// Pauses or the fence changed: deadlines of held operations stand still, others run on.
    pub(crate) fn gate_moved(&mut self, now: Time) {
        let machines: Vec<MachineId> = self.operations.keys().cloned().collect();
        for machine in machines {
            let closed = self.is_closed(&machine);
            let Some(operation) = self.operations.get_mut(&machine) else {
                continue;
            };
            let (held_since, deadline) = (&mut operation.held_since, &mut operation.deadline);
            if !held(held_since, deadline, closed, now) {
                continue;
            }
            if operation.is_drain() && !closed {
                let (deadline, id) = (operation.deadline, operation.id);
                self.timers.set(deadline, Timer::Drain(id));
            }
            self.remember(&machine);
        }
        self.hold_remembered(now);
        if let Some(expiry) = self.pauses.next_expiry() {
            self.timers.set(expiry, Timer::Pause);
        }
        let clusters: Vec<ClusterId> = self.demand.clusters.keys().cloned().collect();
        for cluster in clusters {
            self.review_cluster(now, &cluster);
        }
        self.wants_cycle = true;
    }

    /// The same for operations of an earlier process whose machines were not seen yet: a pause may
    /// begin or end while the provider does not answer, or while no process runs.
    pub(crate) fn hold_remembered(&mut self, now: Time) {
        let remembered = self.truth.remembered.iter();
        let under_way = remembered.filter(|(_, kept)| kept.operation.is_some());
        let under_way: Vec<(MachineId, bool)> = under_way
            .map(|(machine, kept)| (machine.clone(), self.is_closed_for(kept.clusters())))
            .collect();
        for (machine, closed) in under_way {
            let kept = self.truth.remembered.get_mut(&machine);
            let Some(operation) = kept.and_then(|kept| kept.operation.as_mut()) else {
                continue;
            };
            let (held_since, deadline) = (&mut operation.held_since, &mut operation.deadline);
            if held(held_since, deadline, closed, now) {
                self.remember(&machine);
            }
        }
    }

    /// Everything written up to here is on disk: what waited for it may leave.
    pub(crate) fn persisted(&mut self, barrier: Barrier) {
        self.journal.durable = self.journal.durable.max(barrier.0);
        let durable = Barrier(self.journal.durable);
        let waiting = std::mem::take(&mut self.awaiting_disk);
        for (wanted, machine) in waiting {
            if wanted <= durable {
                self.make_ready(&machine);
            } else {
                self.awaiting_disk.push((wanted, machine));
            }
        }
    }

    pub(crate) fn make_ready(&mut self, machine: &MachineId) {
        if let Some(operation) = self.operations.get_mut(machine) {
            operation.enter(Step::Ready, self.now);
            let place = (operation.rank(), operation.id);
            self.not_ready(place);
            self.ready.insert(place);
        }
    }

    /// An operation waits for something else now, or is over.
    pub(crate) fn not_ready(&mut self, place: Place) {
        self.ready.remove(&place);
        self.queued.remove(&place);
        self.crowded.retain(|_, places| {
            places.remove(&place);
            !places.is_empty()
        });
    }

    /// How many operations could leave but for a pause, a slot or an operator.
    pub(crate) fn waiting(&self) -> usize {
        let crowded: usize = self.crowded.values().map(BTreeSet::len).sum();
        self.ready.len() + self.queued.len() + crowded
    }

    fn has_slot(&self) -> bool {
        self.on_wire.len() < self.config.execute_concurrency
    }

    /// How many more calls of a cluster may be on the wire: one cluster, or one slow way of configuring,
    /// does not take every slot (SH-2).
    fn share_left(&self, cluster: &ClusterId) -> usize {
        let on_wire = self.on_wire.values().flatten();
        let of_cluster = on_wire.filter(|one| *one == cluster).count();
        match self.config.calls_per_cluster {
            0 => usize::MAX,
            most => most.saturating_sub(of_cluster),
        }
    }

    /// Of each cluster that has part of its share left, as many of those that wait for it as that is.
    fn ease(&mut self) {
        let mut crowded = std::mem::take(&mut self.crowded);
        if self.has_slot() {
            for (cluster, places) in &mut crowded {
                let left = match self.pauses.cluster(cluster) {
                    true => 0,
                    false => self.share_left(cluster),
                };
                let eased = std::iter::from_fn(|| places.pop_first()).take(left);
                self.ready.extend(eased);
            }
            crowded.retain(|_, places| !places.is_empty());
        }
        self.crowded = crowded;
    }

    /// Lets leave what may.
    pub(crate) fn pump(&mut self, now: Time, effects: &mut Vec<Effect>) {
        if self.all_closed() {
            return;
        }
        self.ease();
        let mut from = None;
        while let Some(next) = self.next_ready(from) {
            from = Some(next);
            let Some(machine) = self.by_operation.get(&next.1).cloned() else {
                self.not_ready(next);
                continue;
            };
            if self.is_closed(&machine) {
                continue;
            }
            self.advance(now, &machine, effects);
        }
    }

    fn next_ready(&self, after: Option<Place>) -> Option<Place> {
        use std::ops::Bound::{Excluded, Unbounded};
        let next = |places: &BTreeSet<Place>| {
            let lower = after.map_or(Unbounded, Excluded);
            places.range((lower, Unbounded)).next().copied()
        };
        let queued = || next(&self.queued);
        let queued = self.has_slot().then(queued).flatten();
        let ready = next(&self.ready);
        ready.into_iter().chain(queued).min()
    }

    /// Takes a ready operation as far as it gets now.
    fn advance(&mut self, now: Time, machine: &MachineId, effects: &mut Vec<Effect>) {
        let Some(operation) = self.operations.get(machine) else {
            return;
        };
        let place = (operation.rank(), operation.id);
        let moved = match operation.action {
            ActionKind::Bootstrap if !has_blob(operation, now) => {
                self.ask_for_blob(now, machine, effects)
            }
            ActionKind::Preempt | ActionKind::Reclaim
                if !operation.instructed && !operation.drained =>
            {
                self.instruct(now, machine, effects)
            }
            _ => false,
        };
        // An instruction to an operator that does not report is followed by the call at once.
        let still_ready = |core: &Self| {
            let operation = core.operations.get(machine);
            operation.is_some_and(|operation| operation.step == Step::Ready)
        };
        if !moved && still_ready(self) {
            self.call(now, machine, effects);
        }
        if !still_ready(self) {
            self.not_ready(place);
        } else if !moved && !self.may_expire(machine) {
            self.put_aside(machine, place);
        }
    }

    /// What only lacks a slot, of all or of its cluster's, is not looked at until there may be one.
    fn put_aside(&mut self, machine: &MachineId, place: Place) {
        let operation = self.operations.get(machine);
        let cluster = operation.and_then(|operation| operation.cluster.clone());
        if !self.has_slot() {
            self.ready.remove(&place);
            self.queued.insert(place);
        } else if let Some(cluster) = cluster.filter(|cluster| self.share_left(cluster) == 0) {
            self.not_ready(place);
            self.crowded.entry(cluster).or_default().insert(place);
        }
    }

    /// Whether an operation may have to ask for its blob again before it gets a slot.
    fn may_expire(&self, machine: &MachineId) -> bool {
        let operation = self.operations.get(machine);
        let blob = operation.and_then(|operation| operation.blob.as_ref());
        blob.is_some_and(|blob| blob.until.is_some())
    }

    /// Sends the call of an operation, if there is a slot.
    fn call(&mut self, now: Time, machine: &MachineId, effects: &mut Vec<Effect>) {
        if !self.has_slot() {
            return;
        }
        let operation = self.operations.get(machine);
        let cluster = operation.and_then(|operation| operation.cluster.clone());
        if cluster
            .as_ref()
            .is_some_and(|cluster| self.share_left(cluster) == 0)
        {
            return;
        }
        let Some(call) = self.provider_call(now, machine) else {
            return;
        };
        let Some(operation) = self.operations.get_mut(machine) else {
            return;
        };
        let evicted = operation.drained || operation.attempts != 0;
        if let (ProviderCall::Drain { grace_seconds }, false, Some(cluster)) =
            (&call, evicted, &cluster)
            && self.sessions.of(cluster).is_none()
        {
            self.counters.drain_fallbacks += 1;
            effects.push(Effect::Alert(Alert::DrainFallback {
                machine: machine.clone(),
                cluster: cluster.clone(),
                grace_seconds: *grace_seconds,
            }));
        }
        self.sequence += 1;
        self.on_wire.insert(self.sequence, cluster);
        operation.enter(Step::Wire(self.sequence), now);
        operation.attempts += 1;
        operation.touched = true;
        if 1 < operation.attempts {
            self.counters.retries += 1;
        }
        effects.push(Effect::Call {
            operation: operation.id,
            machine: machine.clone(),
            token: Token {
                shard: self.config.shard.clone(),
                epoch: self.epoch,
                sequence: self.sequence,
            },
            call,
        });
    }

    fn provider_call(&self, now: Time, machine: &MachineId) -> Option<ProviderCall> {
        let operation = self.operations.get(machine)?;
        match operation.action {
            ActionKind::Provision => Some(ProviderCall::Create),
            ActionKind::Delete => Some(ProviderCall::Delete),
            ActionKind::Bootstrap => {
                let known = operation.late.as_deref().or(self.ledger.get(machine))?;
                let mut metadata = match self.has(Defect::NoGroupOnMetadata) {
                    true => Assignment {
                        group: Group::default(),
                        ..known.assignment().clone()
                    }
                    .to_metadata(),
                    false => known.assignment().to_metadata(),
                };
                metadata.insert(ASSIGNED_SHARD.to_owned(), self.config.shard.clone());
                metadata.insert(ASSIGNED_INTENT.to_owned(), operation.id.to_string());
                Some(ProviderCall::Configure {
                    cluster: known.cluster()?.clone(),
                    blob: operation.blob.as_ref()?.user_data.clone(),
                    metadata,
                })
            }
            ActionKind::Preempt | ActionKind::Reclaim => {
                let remaining = operation.deadline.since(now).max(0.0);
                // SH-14: once drained, time to shut down; past the deadline, a Preempt does not wait.
                let seconds = match operation.drained {
                    true => remaining.max(LEAST_DRAIN),
                    false => remaining,
                };
                let grace_seconds = seconds.ceil() as u32;
                Some(ProviderCall::Drain { grace_seconds })
            }
        }
    }

    /// Asks the operator for a blob; true if the operation now waits for something.
    fn ask_for_blob(&mut self, now: Time, machine: &MachineId, effects: &mut Vec<Effect>) -> bool {
        let known = self.ledger.get(machine);
        let operation = self.operations.get(machine);
        let cluster = operation.and_then(|operation| operation.cluster.clone());
        let session = cluster.and_then(|cluster| self.sessions.of(&cluster));
        let Some(session) = session.map(|session| session.id) else {
            self.without_operator(now, machine, effects);
            return true;
        };
        self.numbers += 1;
        let request = RequestId {
            epoch: self.epoch,
            number: self.numbers,
        };
        let host = known.and_then(|known| known.host()).cloned();
        let Some(operation) = self.operations.get_mut(machine) else {
            return true;
        };
        operation.enter(Step::Blob(request), now);
        operation.asked = now;
        let requirements = operation
            .need
            .as_ref()
            .map(|need| self.demand.requirements(need))
            .unwrap_or_default();
        self.sessions.asked.insert(request, machine.clone());
        self.timers
            .set(after(now, BLOB_TIMEOUT), Timer::Blob(request));
        effects.push(Effect::Send {
            session,
            frame: Frame::BootstrapRequest {
                request,
                machine: machine.clone(),
                host,
                requirements,
            },
        });
        true
    }

    /// Nobody to ask: back to Idle while the provider was not touched (W-4), else later.
    fn without_operator(&mut self, now: Time, machine: &MachineId, effects: &mut Vec<Effect>) {
        let touched = self
            .operations
            .get(machine)
            .is_some_and(|operation| operation.touched);
        if touched {
            self.back_off(now, machine);
        } else {
            self.roll_back(now, machine, Outcome::NoSession, effects);
        }
    }
}

/// Stops a deadline where it is, or lets it run on with the time given back; says whether that
/// changed anything.
fn held(held_since: &mut Option<Time>, deadline: &mut Time, closed: bool, now: Time) -> bool {
    match (closed, *held_since) {
        (true, None) => *held_since = Some(now),
        (false, Some(since)) => {
            *held_since = None;
            *deadline = after(*deadline, now.since(since));
        }
        (true, Some(_)) | (false, None) => return false,
    }
    true
}

fn has_blob(operation: &Operation, now: Time) -> bool {
    let blob = operation.blob.as_ref();
    blob.is_some_and(|blob| blob.until.is_none_or(|until| now < until))
}
