//! Roll-ups: a cluster's whole demand, refused whole, held or believed whole (RI-1, SR-3).
//!
//! ```text
//! rows ─▶ whose? summable? ─▶ rail 2 ─▶ accepted ─▶ demand, records ─▶ ack
//!             └─▶ refused, ack    └─▶ held, ack │
//! the same again ───────────────────────────────┘
//! ```
//!
//! Most roll-ups say what the last one said, and there are thousands of operators. Whoever receives
//! one sees that its bytes are those of the last one accepted on the session, and hands in only that
//! it was repeated. What follows is the same in every effect as if the rows had come again: a session's
//! rows change by its own roll-ups alone, since a cluster with an operator cannot be released (AD-1).

use crate::{
    ShardCore,
    demand::{Accepted, Replaced},
    effect::{Alert, Echo, Effect},
    event::SessionId,
    guard::Baseline,
    record::Record,
};
use bigfleet_model::{Amounts, ClusterId, NeedKey, Row, RowRefused, State, Time};

impl ShardCore {
    /// How many roll-ups were accepted on a session. One handed in was accepted if this grew, and may
    /// be repeated from then on; zero for a session that is over.
    pub fn roll_ups_accepted(&self, session: SessionId) -> u64 {
        let cluster = self.sessions.cluster(session);
        let session = cluster.and_then(|cluster| self.sessions.of(&cluster));
        session.map_or(0, |session| session.accepted)
    }

    pub(crate) fn roll_up(
        &mut self,
        now: Time,
        session: SessionId,
        cluster: ClusterId,
        rollup_id: String,
        rows: Result<Vec<Row>, String>,
        effects: &mut Vec<Effect>,
    ) {
        let Some(own) = self.sessions.cluster(session) else {
            return;
        };
        let checked = match rows {
            _ if own != cluster => Err(format!(
                "a session of cluster \"{own}\" cannot speak for \"{cluster}\" (RI-5)"
            )),
            Ok(rows) => {
                let baseline = Baseline::of(&rows);
                let proposal = self.demand.propose(&cluster, rows);
                proposal
                    .map(|proposal| (baseline, proposal))
                    .map_err(|at| format!("row {at}: {}", RowRefused::Sum))
            }
            Err(problem) => Err(problem),
        };
        let (baseline, proposal) = match checked {
            Ok(checked) => checked,
            Err(reason) => return self.refuse(now, session, own, &rollup_id, reason, effects),
        };
        let serving = self.serving(&cluster);
        let guarded = self.config.rails.roll_up_guard;
        let known = self.demand.clusters.entry(cluster.clone()).or_default();
        let before = known.guard.baseline.clone();
        let suspicious = guarded && known.guard.suspects(&baseline, serving.as_ref());
        let believed = match guarded {
            true => known.guard.judge(baseline.clone(), serving),
            false => true,
        };
        let held = known.guard.held;
        known.held_since = match held {
            0 => None,
            _ => known.held_since.or(Some(now)),
        };
        if suspicious {
            effects.push(Effect::Alert(Alert::RollUpSuspicious {
                cluster: cluster.clone(),
                rows_before: before.as_ref().map_or(0, |before| before.rows),
                rows_now: baseline.rows,
                held,
            }));
        }
        if guarded || 0 < held {
            self.counters.rollups_held.insert(cluster.clone(), held);
        }
        if !believed {
            self.demand.discard(proposal);
            let reason = "held by rail 2";
            self.ack(session, Echo::RollUpHeld, &rollup_id, reason, effects);
            return;
        }
        let fresh = before.as_ref() != Some(&baseline);
        known.guard.baseline = Some(baseline.clone());
        if fresh {
            self.remember_record(Record::Cluster {
                cluster: cluster.clone(),
                baseline,
            });
        }
        let replaced = self
            .demand
            .accept(&cluster, proposal, now, &mut self.ledger);
        self.accepted(now, session, cluster, rollup_id, replaced, effects);
    }

    /// The last roll-up accepted on this session, row for row.
    pub(crate) fn repeat_roll_up(
        &mut self,
        now: Time,
        session: SessionId,
        rollup_id: String,
        effects: &mut Vec<Effect>,
    ) {
        let Some(cluster) = self.sessions.cluster(session) else {
            return;
        };
        if self.roll_ups_accepted(session) == 0 {
            let reason = "no roll-up was accepted on this session that could be repeated (RI-1)";
            let reason = reason.to_owned();
            return self.refuse(now, session, cluster, &rollup_id, reason, effects);
        }
        if let Some(known) = self.demand.clusters.get_mut(&cluster)
            && self.config.rails.roll_up_guard
        {
            known.guard.believe_again();
            known.held_since = None;
            self.counters.rollups_held.insert(cluster.clone(), 0);
        }
        let replaced = self.demand.accept_again(&cluster, now, &mut self.ledger);
        self.accepted(now, session, cluster, rollup_id, replaced, effects);
    }

    fn refuse(
        &mut self,
        now: Time,
        session: SessionId,
        cluster: ClusterId,
        rollup_id: &str,
        reason: String,
        effects: &mut Vec<Effect>,
    ) {
        self.ack(session, Echo::RollUpRejected, rollup_id, &reason, effects);
        let known = self.demand.clusters.entry(cluster.clone()).or_default();
        known.refused = Some((now, reason));
        *self.counters.rollups_rejected.entry(cluster).or_default() += 1;
    }

    /// What follows from a roll-up that demand has taken over.
    fn accepted(
        &mut self,
        now: Time,
        session: SessionId,
        cluster: ClusterId,
        rollup_id: String,
        replaced: Replaced,
        effects: &mut Vec<Effect>,
    ) {
        self.sessions.accepted(&cluster);
        self.remember_arrivals(&cluster, replaced);
        if self.released.remove(&cluster) {
            self.remember_record(Record::Released {
                cluster: cluster.clone(),
                released: false,
            });
        }
        self.review_cluster(now, &cluster);
        self.ack(session, Echo::RollUpAccepted, &rollup_id, "", effects);
        if let Some(known) = self.demand.clusters.get_mut(&cluster) {
            known.accepted = Some(Accepted { at: now, rollup_id });
        }
        self.wants_cycle = true;
    }

    /// A row keeps its place in the queue across a restart (NT-4).
    pub(crate) fn remember_arrivals(&mut self, cluster: &ClusterId, replaced: Replaced) {
        let Replaced {
            new,
            gone,
            forgotten,
        } = replaced;
        self.forget_gangs(&gone);
        for need in &gone {
            let need = need.key();
            self.remember_record(Record::Arrival { need, at: None });
        }
        for (fingerprint, group) in forgotten.into_keys() {
            let need = NeedKey {
                cluster: cluster.clone(),
                fingerprint,
                group,
            };
            self.remember_record(Record::Arrival { need, at: None });
        }
        for need in &new {
            let at = need.arrival;
            let need = need.key();
            self.remember_record(Record::Arrival { need, at });
        }
    }

    /// What serves a cluster now, for the judgement of its first roll-up.
    fn serving(&self, cluster: &ClusterId) -> Option<(usize, Amounts)> {
        if self.demand.is_ready(cluster) {
            return None;
        }
        let bound = self.ledger.bound_to(cluster);
        let known = bound.filter_map(|id| self.ledger.get(id));
        let serving = known.filter(|known| known.state() == State::Configured);
        let (mut machines, mut offered) = (0, Amounts::default());
        for machine in serving {
            machines += 1;
            let sum = offered.checked_add(machine.shape().effective());
            offered = sum.unwrap_or(offered);
        }
        Some((machines, offered))
    }
}
