//! Sessions: what follows when an operator comes or goes (shard.md §6).
//!
//! A returning operator is told what it missed: a begin marker, every bound machine, an end marker
//! with the count, then every open instruction again (SH-15).

use super::{ShardCore, incident::LateAnswer};
use crate::{
    audit::Outcome,
    defect::Defect,
    demand::Withheld,
    effect::{CloseReason, Echo, Effect, Frame},
    event::{Features, SessionId},
    record::Record,
    schedule::Timer,
    settings::{ABANDONED_INTENT, CLUSTER_FORGOTTEN, UNREPORTED_INTENT},
    work::{Operation, WorkStage},
};
use bigfleet_model::{ActionKind, ClusterId, Machine, MachineId, State, Time};

impl ShardCore {
    pub(super) fn open_session(
        &mut self,
        now: Time,
        session: SessionId,
        cluster: ClusterId,
        features: Features,
        identity: Option<ClusterId>,
        effects: &mut Vec<Effect>,
    ) {
        if identity.is_some_and(|identity| identity != cluster) {
            self.counters.identity_rejected += 1;
            effects.push(Effect::Close {
                session,
                reason: CloseReason::Identity,
            });
            return;
        }
        if let Some(replaced) = self.sessions.open(session, &cluster, features, now) {
            self.counters.sessions_replaced += 1;
            effects.push(Effect::Close {
                session: replaced,
                reason: CloseReason::Replaced,
            });
            // SE-4: waiters of a replaced session fail at once.
            for machine in self.work.waiting_for_blob(&cluster) {
                self.no_blob(now, &machine, Outcome::NoSession, effects);
            }
        } else {
            self.counters.sessions_installed += 1;
        }
        self.demand.forget_hints(&cluster);
        self.supply.forget_disruption(&cluster);
        self.ack(session, Echo::Hello, "", "", effects);
        if 0 < self.supply.lists() {
            self.resync(now, &cluster, effects);
        }
        if self.has(Defect::FirstRollUpGateOff) {
            self.supply.take_as_heard(&cluster);
        }
        self.review_cluster(now, &cluster);
        self.schedule.want_cycle();
    }

    pub(super) fn hello_again(&mut self, session: SessionId, effects: &mut Vec<Effect>) {
        if self.sessions.cluster(session).is_none() {
            return self.late(LateAnswer::Session);
        }
        self.ack(session, Echo::Hello, "", "", effects);
    }

    pub(super) fn close_session(&mut self, now: Time, session: SessionId) {
        let Some(cluster) = self.sessions.close(session) else {
            return self.late(LateAnswer::Session);
        };
        self.counters.sessions_removed += 1;
        self.demand.forget_hints(&cluster);
        self.note_absence(now, &cluster);
        // Whoever waited for a blob on it is ready to notice.
        for machine in self.work.waiting_for_blob(&cluster) {
            self.work.make_ready(&machine, now);
        }
        self.review_cluster(now, &cluster);
        self.schedule.want_cycle();
    }

    /// A cluster has no operator from now on.
    fn note_absence(&mut self, now: Time, cluster: &ClusterId) {
        self.sessions.note_absence(cluster, now);
        let until = now + ABANDONED_INTENT;
        self.schedule.set(until, Timer::Abandoned(cluster.clone()));
        self.look_whether_forgotten(now, cluster);
    }

    fn look_whether_forgotten(&mut self, now: Time, cluster: &ClusterId) {
        let later = now + CLUSTER_FORGOTTEN;
        self.schedule.set(later, Timer::Forgotten(cluster.clone()));
    }

    /// SH-24: forgets a cluster that has had no session for an hour, and has neither demand nor machines. One
    /// that has some is looked at again; one that has a session when it has ended.
    pub(super) fn forget_cluster(&mut self, now: Time, cluster: &ClusterId) {
        let Some(gone_since) = self.sessions.gone_since(cluster) else {
            return;
        };
        if now < gone_since + CLUSTER_FORGOTTEN {
            return; // it was there again, and its end has a reminder of its own
        }
        let ledger = self.supply.ledger();
        let holds = self.demand.of(cluster).is_some_and(|known| 0 < known.len())
            || ledger.bound_to(cluster).next().is_some()
            || !ledger.promised_to(cluster).is_empty()
            || self
                .supply
                .remembered()
                .values()
                .any(|kept| kept.clusters().any(|one| one == cluster))
            || self.rails.is_cluster_paused(cluster);
        if holds {
            self.look_whether_forgotten(now, cluster);
            return;
        }
        self.try_afresh(now, cluster);
        self.drop_cluster(cluster);
        self.remember_record(Record::ClusterForgotten(cluster.clone()));
    }

    /// Drops everything that is known of a cluster, its series included.
    pub(super) fn drop_cluster(&mut self, cluster: &ClusterId) {
        self.demand.forget_cluster(cluster);
        self.sessions.forget(cluster);
        self.rails.forget_cluster(cluster);
        self.supply.forget_cluster(cluster);
        self.counters.forget_cluster(cluster);
    }

    pub(super) fn ack(
        &self,
        session: SessionId,
        echo: Echo,
        rollup_id: &str,
        reason: &str,
        effects: &mut Vec<Effect>,
    ) {
        effects.push(Effect::Send {
            session,
            frame: Frame::Ack {
                echo,
                rollup_id: rollup_id.to_owned(),
                reason: reason.to_owned(),
                term: self.uplink.term(),
                epoch: self.epoch,
            },
        });
    }

    /// SH-15.
    pub(super) fn resync(&mut self, now: Time, cluster: &ClusterId, effects: &mut Vec<Effect>) {
        let Some(session) = self.sessions.sync(cluster) else {
            return;
        };
        if session.features.resync {
            self.ack(session.id, Echo::ResyncBegin, "", "", effects);
        }
        let mut count = 0;
        for machine in self.supply.bound_to(cluster) {
            if let Some(known) = self.supply.get(machine) {
                count += 1;
                effects.push(Effect::Send {
                    session: session.id,
                    frame: Frame::Node(Box::new(self.supply.node_state(known))),
                });
            }
        }
        if session.features.resync {
            self.ack(session.id, Echo::ResyncEnd(count), "", "", effects);
        }
        self.instruct_again(now, cluster, effects);
    }

    /// Whether machines are acquired for a cluster, and the engine told so (SH-3).
    pub(super) fn review_cluster(&mut self, now: Time, cluster: &ClusterId) {
        let withheld = if !self.sessions.is_connected(cluster) {
            Some(Withheld::NoOperatorSession)
        } else if self.is_join_held(now, cluster) {
            Some(Withheld::BootstrapBackoff)
        } else if self.rails.is_cluster_paused(cluster) {
            Some(Withheld::ActuationPaused)
        } else {
            None
        };
        let mut engine = self.supply.rows();
        if self.demand.withhold(cluster, withheld, &mut engine) {
            self.schedule.want_cycle();
        }
    }

    /// SH-7: intents of a cluster that has not reported for an hour end.
    pub(super) fn end_unreported(
        &mut self,
        now: Time,
        cluster: &ClusterId,
        effects: &mut Vec<Effect>,
    ) {
        if self.demand.is_ready(cluster) {
            return;
        }
        for machine in self.supply.ledger().promised_to(cluster) {
            self.end_intent(now, &machine, effects);
        }
        self.schedule.want_cycle();
    }

    /// SH-7: intents of Idle machines end when their cluster had no operator for ten minutes, and
    /// with them bootstraps the provider never took on.
    pub(super) fn end_abandoned(
        &mut self,
        now: Time,
        cluster: &ClusterId,
        effects: &mut Vec<Effect>,
    ) {
        let gone_since = self.sessions.gone_since(cluster);
        if gone_since.is_none_or(|since| now < since + ABANDONED_INTENT) {
            return;
        }
        for machine in self.supply.ledger().promised_to(cluster) {
            let state = self.supply.get(&machine).map(Machine::state);
            if state == Some(State::Idle) {
                self.end_intent(now, &machine, effects);
            }
        }
        let is_waiting = |operation: &Operation| {
            operation.action == ActionKind::Bootstrap
                && !operation.acked
                && matches!(operation.stage, WorkStage::Backoff | WorkStage::Ready)
        };
        let bound: Vec<MachineId> = self.supply.bound_to(cluster).cloned().collect();
        for machine in bound {
            if self.work.get(&machine).is_some_and(is_waiting) {
                self.roll_back(now, &machine, Outcome::NoSession, effects);
            }
        }
        self.schedule.want_cycle();
    }

    /// Arms the reminders of SH-7 for a cluster that only records speak of.
    pub(super) fn expect_cluster(&mut self, now: Time, cluster: &ClusterId) {
        self.note_absence(now, cluster);
        let until = now + UNREPORTED_INTENT;
        self.schedule.set(until, Timer::Unreported(cluster.clone()));
    }
}
