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

use super::{ShardCore, incident::LateAnswer};
use crate::{
    defect::Defect,
    demand::{Proposal, Replaced},
    effect::{Alert, Echo, Effect},
    event::SessionId,
    rails::{Baseline, Circumstances, Judgement},
    record::Record,
};
use bigfleet_model::{
    Amounts, ClusterId, Dimension, NeedKey, Row, RowRefused, State, Time, quantity::format_short,
};

/// A row that asks for so many times of what there is in all is not meant (SH-32).
const EXCESS: i128 = 100;

impl ShardCore {
    pub(super) fn roll_up(
        &mut self,
        now: Time,
        session: SessionId,
        cluster: ClusterId,
        rollup_id: String,
        rows: Result<Vec<Row>, String>,
        effects: &mut Vec<Effect>,
    ) {
        let Some(own) = self.sessions.cluster(session).cloned() else {
            return self.late(LateAnswer::Session);
        };
        let checked = match rows {
            _ if own != cluster => Err(format!(
                "a session of cluster \"{own}\" cannot speak for \"{cluster}\" (RI-5)"
            )),
            Ok(mut rows) => {
                let baseline = Baseline::of(&rows);
                if self.has(Defect::MergedWholeIfAny) {
                    merge_whole_if_any(&mut rows);
                }
                let parts = self.has(Defect::PartsOfUnits).then(|| rows.clone());
                let mut proposal = self.demand.propose(&cluster, rows);
                if let (Ok(proposal), Some(parts)) = (&mut proposal, parts) {
                    proposal.ask_for_parts(parts);
                }
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
        let baseline = self.without_excess(baseline);
        let circumstances = Circumstances {
            excess: self.excess(&proposal),
            ..self.serving(&cluster)
        };
        let judgement = self
            .rails
            .judge_roll_up(&cluster, &baseline, &circumstances, now);
        self.demand.note_cluster(cluster.clone());
        self.note_judgement(&cluster, &baseline, &judgement, effects);
        if !judgement.is_believed {
            self.demand.discard(proposal);
            let why = judgement.suspicion.unwrap_or_default();
            let reason = format!("held by rail 2: {why}");
            self.ack(session, Echo::RollUpHeld, &rollup_id, &reason, effects);
            return;
        }
        if judgement.before.as_ref() != Some(&baseline) {
            let replaced = self.rails.quarantine().replaced(&cluster, now);
            self.remember_record(Record::Cluster {
                cluster: cluster.clone(),
                baseline,
                replaced,
            });
        }
        let mut engine = self.supply.rows();
        let replaced = self.demand.accept(&cluster, proposal, now, &mut engine);
        self.accepted(now, session, cluster, rollup_id, replaced, effects);
    }

    /// Says what rail 2 makes of a roll-up.
    fn note_judgement(
        &mut self,
        cluster: &ClusterId,
        baseline: &Baseline,
        judgement: &Judgement,
        effects: &mut Vec<Effect>,
    ) {
        if let Some(why) = &judgement.suspicion {
            effects.push(Effect::Alert(Alert::RollUpSuspicious {
                cluster: cluster.clone(),
                rows_before: judgement.before.as_ref().map_or(0, |before| before.rows),
                rows_now: baseline.rows,
                held: judgement.held,
                why: why.clone(),
            }));
        }
        if self.rails.quarantine().is_on() {
            let held = &mut self.counters.rollups_held;
            held.insert(cluster.clone(), judgement.held);
        }
    }

    /// The last roll-up accepted on this session, row for row.
    pub(super) fn repeat_roll_up(
        &mut self,
        now: Time,
        session: SessionId,
        rollup_id: String,
        effects: &mut Vec<Effect>,
    ) {
        let Some(cluster) = self.sessions.cluster(session).cloned() else {
            return self.late(LateAnswer::Session);
        };
        if self.sessions.accepted(session) == 0 {
            let reason = "no roll-up was accepted on this session that could be repeated (RI-1)";
            let reason = reason.to_owned();
            return self.refuse(now, session, cluster, &rollup_id, reason, effects);
        }
        if self.rails.believe_again(&cluster, now) {
            self.counters.rollups_held.insert(cluster.clone(), 0);
        }
        let mut engine = self.supply.rows();
        let replaced = self.demand.accept_again(&cluster, now, &mut engine);
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
        self.demand.note_refused(&cluster, now, reason);
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
        self.sessions.note_accepted(&cluster);
        self.remember_arrivals(&cluster, replaced);
        if self.rails.set_released(&cluster, false) {
            self.remember_record(Record::Released {
                cluster: cluster.clone(),
                released: false,
            });
        }
        self.review_cluster(now, &cluster);
        self.ack(session, Echo::RollUpAccepted, &rollup_id, "", effects);
        self.demand.note_accepted(&cluster, now, rollup_id);
        self.schedule.want_cycle();
    }

    /// A row keeps its place in the queue across a restart (NT-4).
    pub(super) fn remember_arrivals(&mut self, cluster: &ClusterId, replaced: Replaced) {
        let Replaced {
            new,
            gone,
            forgotten,
        } = replaced;
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

    /// SH-32: so much of a dimension is more than anybody means; `None` before the first complete List, and
    /// for a dimension that no machine has.
    fn most(&self, dimension: &Dimension) -> Option<i128> {
        let offered = self.supply.ledger().stock().offered(dimension.as_str());
        let is_known = 0 < self.supply.lists() && 0 < offered;
        let is_judged = is_known && !self.has(Defect::UnitMistakeBelieved);
        is_judged.then(|| offered.saturating_mul(EXCESS))
    }

    /// SH-32: what a roll-up asks for that has the shape of a mistake.
    fn excess(&self, proposal: &Proposal) -> Option<String> {
        let (dimension, milli) = proposal.beyond(|dimension| self.most(dimension))?;
        let offered = self.supply.ledger().stock().offered(dimension.as_str());
        let (asked, offered) = (format_short(milli), format_short(offered));
        Some(format!(
            "a row asks for {asked} {dimension}, and all machines of the shard together have {offered}"
        ))
    }

    /// A mistake that was believed is mended at once: what nobody means is nothing to withdraw.
    fn without_excess(&self, baseline: Baseline) -> Baseline {
        let is_meant = |(dimension, milli): &(&Dimension, i128)| {
            self.most(dimension).is_none_or(|most| *milli <= most)
        };
        if baseline.totals.iter().all(|total| is_meant(&total)) {
            return baseline;
        }
        let totals = baseline.totals.iter().filter(is_meant);
        let totals = totals.map(|(dimension, milli)| (dimension.clone(), milli));
        Baseline {
            totals: Amounts::from_entries(totals),
            ..baseline
        }
    }

    /// What serves a cluster now.
    fn serving(&self, cluster: &ClusterId) -> Circumstances {
        Circumstances {
            machines: self.supply.ledger().configured(cluster),
            offered: (!self.demand.is_ready(cluster)).then(|| self.offered(cluster)),
            excess: None,
        }
    }

    /// How many machines serve a cluster and what they offer, for the judgement of its first roll-up.
    fn offered(&self, cluster: &ClusterId) -> (usize, Amounts) {
        let bound = self.supply.bound_to(cluster);
        let known = bound.filter_map(|id| self.supply.get(id));
        let serving = known.filter(|known| known.state() == State::Configured);
        let (mut machines, mut offered) = (0, Amounts::default());
        for machine in serving {
            machines += 1;
            let sum = offered.checked_add(machine.shape().effective());
            offered = sum.unwrap_or(offered);
        }
        (machines, offered)
    }
}

/// [`Defect::MergedWholeIfAny`].
fn merge_whole_if_any(rows: &mut [Row]) {
    let wholes: Vec<Row> = rows.iter().filter(|row| row.whole_units).cloned().collect();
    for whole in &wholes {
        let is_part = |row: &&mut Row| (&row.profile, &row.group) == (&whole.profile, &whole.group);
        for row in rows.iter_mut().filter(is_part) {
            row.whole_units = true;
            row.min_unit = row.min_unit.larger(&whole.min_unit);
        }
    }
}
