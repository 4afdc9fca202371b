//! Sessions: one per cluster, what was asked on it, and what follows when it comes or goes (shard.md §6).
//!
//! A returning operator is told what it missed: a begin marker, every bound machine, an end marker
//! with the count, then every open instruction again (SH-15).

use crate::{
    ShardCore,
    audit::Outcome,
    defect::Defect,
    effect::{CloseReason, Echo, Effect, Frame, RequestId},
    event::{Features, SessionId},
    operation::Step,
    settings::{ABANDONED_INTENT, UNREPORTED_INTENT},
    shortfall::Withheld,
    timers::{Timer, after},
};
use bigfleet_model::{ActionKind, ClusterId, MachineId, State, Time};
use std::collections::BTreeMap;

/// A connected operator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) features: Features,
    pub(crate) opened: Time,
    /// It was told of every machine.
    pub(crate) synced: bool,
    /// It has reported nodes: from then on their readiness counts (SH-17).
    pub(crate) reports_nodes: bool,
    /// Roll-ups accepted on it.
    pub(crate) accepted: u64,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Sessions {
    by_cluster: BTreeMap<ClusterId, Session>,
    clusters: BTreeMap<SessionId, ClusterId>,
    /// Since when a cluster that had or should have a session has none.
    pub(crate) gone_since: BTreeMap<ClusterId, Time>,
    /// Blobs asked for.
    pub(crate) asked: BTreeMap<RequestId, MachineId>,
}

impl Sessions {
    pub(crate) fn of(&self, cluster: &ClusterId) -> Option<&Session> {
        self.by_cluster.get(cluster)
    }

    pub(crate) fn reports_nodes(&mut self, cluster: &ClusterId) {
        if let Some(session) = self.by_cluster.get_mut(cluster) {
            session.reports_nodes = session.features.node_report;
        }
    }

    /// A roll-up that came on a cluster's session was accepted.
    pub(crate) fn accepted(&mut self, cluster: &ClusterId) {
        if let Some(session) = self.by_cluster.get_mut(cluster) {
            session.accepted += 1;
        }
    }

    pub(crate) fn cluster(&self, session: SessionId) -> Option<ClusterId> {
        self.clusters.get(&session).cloned()
    }

    pub(crate) fn len(&self) -> usize {
        self.by_cluster.len()
    }

    pub(crate) fn connected(&self) -> impl Iterator<Item = (&ClusterId, &Session)> {
        self.by_cluster.iter()
    }
}

impl ShardCore {
    pub(crate) fn open_session(
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
        if let Some(old) = self.sessions.by_cluster.remove(&cluster) {
            self.counters.sessions_replaced += 1;
            self.sessions.clusters.remove(&old.id);
            effects.push(Effect::Close {
                session: old.id,
                reason: CloseReason::Replaced,
            });
            self.fail_waiters(now, &cluster, effects);
        } else {
            self.counters.sessions_installed += 1;
        }
        self.hints.forget(&cluster);
        self.sessions.gone_since.remove(&cluster);
        self.sessions.clusters.insert(session, cluster.clone());
        let opened = Session {
            id: session,
            features,
            opened: now,
            synced: false,
            reports_nodes: false,
            accepted: 0,
        };
        self.sessions.by_cluster.insert(cluster.clone(), opened);
        self.ack(session, Echo::Hello, "", "", effects);
        if self.truth.lists > 0 {
            self.resync(now, &cluster, effects);
        }
        if self.has(Defect::FirstRollUpGateOff) {
            self.ledger.engine.ready(&cluster);
        }
        self.review_cluster(now, &cluster);
        self.wants_cycle = true;
    }

    pub(crate) fn hello_again(&mut self, session: SessionId, effects: &mut Vec<Effect>) {
        if self.sessions.clusters.contains_key(&session) {
            self.ack(session, Echo::Hello, "", "", effects);
        }
    }

    pub(crate) fn close_session(&mut self, now: Time, session: SessionId) {
        // A session that was replaced is known no longer, and unregisters nobody.
        let Some(cluster) = self.sessions.clusters.remove(&session) else {
            return;
        };
        self.counters.sessions_removed += 1;
        self.sessions.by_cluster.remove(&cluster);
        self.hints.forget(&cluster);
        self.note_absence(now, &cluster);
        self.waiters_lost(&cluster);
        self.review_cluster(now, &cluster);
        self.wants_cycle = true;
    }

    /// A cluster has no operator from now on.
    pub(crate) fn note_absence(&mut self, now: Time, cluster: &ClusterId) {
        self.sessions.gone_since.insert(cluster.clone(), now);
        self.timers.set(
            after(now, ABANDONED_INTENT),
            Timer::Abandoned(cluster.clone()),
        );
    }

    fn waiting_for_blob(&self, cluster: &ClusterId) -> Vec<(RequestId, MachineId)> {
        let asked = self.sessions.asked.iter();
        let of_cluster = asked.filter(|(request, machine)| {
            let operation = self.operations.get(*machine);
            operation.is_some_and(|operation| {
                operation.step == Step::Blob(**request)
                    && operation.cluster.as_ref() == Some(cluster)
            })
        });
        of_cluster
            .map(|(request, machine)| (*request, machine.clone()))
            .collect()
    }

    /// SE-4: waiters of a replaced session fail at once.
    fn fail_waiters(&mut self, now: Time, cluster: &ClusterId, effects: &mut Vec<Effect>) {
        for (request, machine) in self.waiting_for_blob(cluster) {
            self.sessions.asked.remove(&request);
            self.no_blob(now, &machine, Outcome::NoSession, effects);
        }
    }

    /// The session ended: whoever waited for a blob on it is ready to notice.
    fn waiters_lost(&mut self, cluster: &ClusterId) {
        for (request, machine) in self.waiting_for_blob(cluster) {
            self.sessions.asked.remove(&request);
            self.make_ready(&machine);
        }
    }

    pub(crate) fn ack(
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
                term: self.upward.term,
                epoch: self.epoch,
            },
        });
    }

    /// SH-15.
    pub(crate) fn resync(&mut self, now: Time, cluster: &ClusterId, effects: &mut Vec<Effect>) {
        let Some(session) = self.sessions.by_cluster.get_mut(cluster) else {
            return;
        };
        session.synced = true;
        let (id, markers) = (session.id, session.features.resync);
        if markers {
            self.ack(id, Echo::ResyncBegin, "", "", effects);
        }
        let mut count = 0;
        for machine in self.ledger.bound_to(cluster) {
            if let Some(known) = self.ledger.get(machine) {
                count += 1;
                effects.push(Effect::Send {
                    session: id,
                    frame: Frame::Node(Box::new(crate::node::node_state(known, &self.nodes))),
                });
            }
        }
        if markers {
            self.ack(id, Echo::ResyncEnd(count), "", "", effects);
        }
        self.instruct_again(now, cluster, effects);
    }

    /// Whether machines are acquired for a cluster, and the engine told so (SH-3).
    pub(crate) fn review_cluster(&mut self, now: Time, cluster: &ClusterId) {
        let withheld = if self.sessions.of(cluster).is_none() {
            Some(Withheld::NoOperatorSession)
        } else if self.bootstraps.waits(cluster, now) {
            Some(Withheld::BootstrapBackoff)
        } else if self.pauses.cluster(cluster) {
            Some(Withheld::ActuationPaused)
        } else {
            None
        };
        let before = self.demand.clusters.get(cluster).map(|one| one.withheld);
        self.demand.withhold(cluster, withheld, &mut self.ledger);
        self.wants_cycle |= before != Some(withheld);
    }

    /// SH-7: intents of a cluster that has not reported for an hour end.
    pub(crate) fn end_unreported(
        &mut self,
        now: Time,
        cluster: &ClusterId,
        effects: &mut Vec<Effect>,
    ) {
        if self.demand.is_ready(cluster) {
            return;
        }
        for machine in self.ledger.promised_to(cluster) {
            self.end_intent(now, &machine, effects);
        }
        self.wants_cycle = true;
    }

    /// SH-7: intents of Idle machines end when their cluster had no operator for ten minutes, and
    /// with them bootstraps the provider never took on.
    pub(crate) fn end_abandoned(
        &mut self,
        now: Time,
        cluster: &ClusterId,
        effects: &mut Vec<Effect>,
    ) {
        let gone = self.sessions.gone_since.get(cluster);
        if gone.is_none_or(|since| now < after(*since, ABANDONED_INTENT)) {
            return;
        }
        for machine in self.ledger.promised_to(cluster) {
            let idle = self.ledger.get(&machine);
            if idle.is_some_and(|known| known.state() == State::Idle) {
                self.end_intent(now, &machine, effects);
            }
        }
        let bound: Vec<MachineId> = self.ledger.bound_to(cluster).cloned().collect();
        for machine in bound {
            let waits = self.operations.get(&machine).is_some_and(|operation| {
                operation.action == ActionKind::Bootstrap
                    && !operation.acked
                    && matches!(operation.step, Step::Backoff | Step::Ready)
            });
            if waits {
                self.roll_back(now, &machine, Outcome::NoSession, effects);
            }
        }
        self.wants_cycle = true;
    }

    /// Arms the reminders of SH-7 for a cluster that only records speak of.
    pub(crate) fn expect_cluster(&mut self, now: Time, cluster: &ClusterId) {
        self.note_absence(now, cluster);
        self.timers.set(
            after(now, UNREPORTED_INTENT),
            Timer::Unreported(cluster.clone()),
        );
    }
}
