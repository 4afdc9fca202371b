//! The gate: the one place where effects that act on machines leave (SH-16).
//!
//! ```text
//! ready operations ─▶ fenced? dry-run? paused? ─▶ a slot, an operator ─▶ Call, Reclaim, BootstrapRequest
//! ```
//!
//! Whatever was committed when, retries included: if its scope is closed now, it stays where it is,
//! and its deadline with it.

use super::{ShardCore, machines::ASSIGNED_INTENT};
use crate::{
    audit::Outcome,
    defect::Defect,
    effect::{Alert, Effect, Frame, ProviderCall, Token},
    event::PausedBy,
    rails::Scope,
    record::Kept,
    schedule::Timer,
    settings::{BLOB_TIMEOUT, LEAST_DRAIN},
    supply::ASSIGNED_SHARD,
};
use bigfleet_model::{ActionKind, Assignment, ClusterId, Group, MachineId, Time};
use std::time::Duration;

/// A span in whole seconds, rounded up.
pub(super) fn whole_seconds(span: Duration) -> u32 {
    let seconds = span.as_secs() + u64::from(span.subsec_nanos() != 0);
    u32::try_from(seconds).unwrap_or(u32::MAX)
}

impl ShardCore {
    /// Whether nothing may leave that concerns this machine: the cluster it is bound to or meant
    /// for is paused, or everything is.
    pub(super) fn is_closed(&self, machine: &MachineId) -> bool {
        self.rails.is_closed_for(self.supply.clusters_of(machine))
    }

    /// A pause was set or lifted. An admin's is on disk before whoever asked is answered, in one write
    /// with what it holds back.
    pub(super) fn pause_changed(
        &mut self,
        now: Time,
        by: PausedBy,
        scope: &Scope,
        effects: &mut Vec<Effect>,
    ) {
        self.gate_moved(now);
        if by == PausedBy::Admin {
            let record = self.rails.pause_record(scope);
            self.remember_record(record);
            self.persist(effects);
        }
    }

    /// Ends the pauses that have run out; says whether there were any.
    pub(super) fn expire_pauses(&mut self, now: Time) -> bool {
        let (are_any, records) = self.rails.expire_pauses(now);
        self.remember_records(records);
        are_any
    }

    /// What may leave has changed: deadlines of held operations stand still, others run on.
    pub(super) fn gate_moved(&mut self, now: Time) {
        let machines = self.work.after(None).map(|one| one.machine.clone());
        for machine in machines.collect::<Vec<_>>() {
            let is_closed = self.is_closed(&machine);
            if !self.work.hold(&machine, is_closed, now) {
                continue;
            }
            let drain = self.work.get(&machine).filter(|one| one.is_drain());
            if let Some(drain) = drain.filter(|_| !is_closed) {
                self.schedule.set(drain.deadline, Timer::Drain(drain.id));
            }
            self.remember(&machine);
        }
        self.hold_remembered(now);
        if let Some(expiry) = self.rails.next_expiry() {
            self.schedule.set(expiry, Timer::Pause);
        }
        let clusters = self.demand.clusters().map(|(cluster, _)| cluster.clone());
        for cluster in clusters.collect::<Vec<ClusterId>>() {
            self.review_cluster(now, &cluster);
        }
        self.schedule.want_cycle();
    }

    /// The same for operations of an earlier process whose machines were not seen yet.
    pub(super) fn hold_remembered(&mut self, now: Time) {
        let rails = &self.rails;
        let is_closed = |kept: &Kept| rails.is_closed_for(kept.clusters());
        for machine in self.supply.hold_remembered(is_closed, now) {
            self.remember(&machine);
        }
    }

    /// Lets leave what may.
    pub(super) fn pump(&mut self, now: Time, effects: &mut Vec<Effect>) {
        if self.rails.is_closed() {
            return;
        }
        let rails = &self.rails;
        self.work.ease(|cluster| rails.is_cluster_paused(cluster));
        let mut last = None;
        while let Some((position, machine)) = self.work.next_ready(last) {
            last = Some(position);
            if !self.is_closed(machine) {
                let machine = machine.clone();
                self.advance(now, &machine, effects);
            }
        }
    }

    /// Takes a ready operation as far as it gets now.
    fn advance(&mut self, now: Time, machine: &MachineId, effects: &mut Vec<Effect>) {
        let Some(operation) = self.work.get(machine) else {
            return;
        };
        let is_drain = operation.is_drain();
        let has_moved = if operation.action == ActionKind::Bootstrap && !operation.has_blob(now) {
            self.ask_for_blob(now, machine, effects);
            true
        } else if is_drain && !operation.instructed && !operation.drained {
            self.instruct(now, machine, effects)
        } else {
            false
        };
        // An instruction to an operator that does not report is followed by the call at once.
        if !has_moved {
            self.call(now, machine, effects);
            self.work.put_aside(machine);
        }
    }

    /// Sends the call of an operation, if there is a slot.
    fn call(&mut self, now: Time, machine: &MachineId, effects: &mut Vec<Effect>) {
        if !self.work.may_send(machine) {
            return;
        }
        // Whoever has its domain now may have bound it anew since.
        if self.awaits_mark(machine) {
            return self.confirm(now, machine);
        }
        let Some(call) = self.provider_call(now, machine) else {
            return;
        };
        self.warn_of_fallback(machine, &call, effects);
        let Some(sent) = self.work.send(machine, now) else {
            return;
        };
        self.counters.retries += u64::from(sent.again);
        self.mark_reversible(machine);
        self.note_reclaim_left(now, machine);
        effects.push(Effect::Call {
            operation: sent.operation,
            machine: machine.clone(),
            token: Token {
                shard: self.config.shard.clone(),
                epoch: self.epoch,
                sequence: sent.sequence,
            },
            call,
        });
    }

    /// A machine is drained for the first time, and no operator is there to evict what runs on it.
    fn warn_of_fallback(
        &mut self,
        machine: &MachineId,
        call: &ProviderCall,
        effects: &mut Vec<Effect>,
    ) {
        let (Some(operation), ProviderCall::Drain { grace_seconds }) =
            (self.work.get(machine), call)
        else {
            return;
        };
        let is_evicted = operation.drained || operation.attempts != 0;
        if let Some(cluster) = &operation.cluster
            && !is_evicted
            && !self.sessions.is_connected(cluster)
        {
            self.counters.drain_fallbacks += 1;
            effects.push(Effect::Alert(Alert::DrainFallback {
                machine: machine.clone(),
                cluster: cluster.clone(),
                grace_seconds: *grace_seconds,
            }));
        }
    }

    fn provider_call(&self, now: Time, machine: &MachineId) -> Option<ProviderCall> {
        let operation = self.work.get(machine)?;
        match operation.action {
            ActionKind::Provision => Some(ProviderCall::Create),
            ActionKind::Delete => Some(ProviderCall::Delete),
            ActionKind::Restore => None,
            ActionKind::Bootstrap => {
                let known = operation.late.as_deref().or(self.supply.get(machine))?;
                let mut metadata = if self.has(Defect::NoGroupOnMetadata) {
                    let group = Group::default();
                    let assignment = known.assignment().clone();
                    Assignment {
                        group,
                        ..assignment
                    }
                    .to_metadata()
                } else {
                    known.assignment().to_metadata()
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
                let mut grace = operation.deadline.duration_since(now);
                // SH-14: once drained, time to shut down; past the deadline, a Preempt does not wait.
                if operation.drained {
                    grace = grace.max(LEAST_DRAIN);
                }
                let grace_seconds = whole_seconds(grace);
                Some(ProviderCall::Drain { grace_seconds })
            }
        }
    }

    /// Asks the operator for a blob. If there is nobody to ask the machine goes back to Idle while the
    /// provider was not touched (W-4), else it is tried later.
    fn ask_for_blob(&mut self, now: Time, machine: &MachineId, effects: &mut Vec<Effect>) {
        let Some(operation) = self.work.get(machine) else {
            return;
        };
        let cluster = operation.cluster.as_ref();
        let session = cluster.and_then(|cluster| self.sessions.of(cluster));
        let Some(session) = session.map(|session| session.id) else {
            if operation.touched {
                self.back_off(now, machine);
            } else {
                self.roll_back(now, machine, Outcome::NoSession, effects);
            }
            return;
        };
        let need = operation.need.as_ref();
        let requirements = need.map(|need| self.demand.requirements(need));
        if !self.work.has_blob_room(machine) {
            return;
        }
        let Some(request) = self.work.ask_for_blob(machine, now) else {
            return;
        };
        self.schedule.set(now + BLOB_TIMEOUT, Timer::Blob(request));
        let known = self.supply.get(machine);
        effects.push(Effect::Send {
            session,
            frame: Frame::BootstrapRequest {
                request,
                machine: machine.clone(),
                host: known.and_then(|known| known.host()).cloned(),
                requirements: requirements.unwrap_or_default(),
            },
        });
    }
}
