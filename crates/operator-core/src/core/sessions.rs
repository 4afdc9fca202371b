//! Sessions: what the shard says (OP-13 to OP-16).

use super::OperatorCore;
use crate::{
    effect::{Alert, Effect, Frame},
    event::{ClosedBy, Disposition, Echo, Heard, SessionId},
    session::FEATURES,
};
use bigfleet_model::Time;

impl OperatorCore {
    pub(super) fn opened(&mut self, now: Time, session: SessionId, effects: &mut Vec<Effect>) {
        if !self.session.opened(now, session) {
            effects.push(Effect::HangUp(session));
            return;
        }
        self.registry.session_begins();
        self.reports.session_begins();
        self.served.session_begins();
        self.hints.session_begins();
        self.answers.begin();
        self.pace.begin(now);
        self.send(Frame::Hello { features: FEATURES }, effects);
    }

    pub(super) fn closed(
        &mut self,
        now: Time,
        session: SessionId,
        by: ClosedBy,
        effects: &mut Vec<Effect>,
    ) {
        let was_speaking = self.session.is_current(session);
        let (is_refused, why) = match by {
            ClosedBy::Transport(why) => (false, why),
            ClosedBy::Refused(why) => (true, why),
        };
        if self
            .session
            .closed(now, session, is_refused, &mut self.jitter)
        {
            effects.push(Effect::Alert(Alert::SessionRefused(why)));
        }
        if was_speaking {
            self.session_over();
        }
    }

    fn session_over(&mut self) {
        self.counters.reconnects += 1;
        self.departures.session_ends();
        self.bootstraps.clear();
        self.guard.forget_question();
        self.pace.end();
        // Drains go on: a lost session stops none before its deadline (OP-34).
    }

    /// OP-14: a shard that does not answer is dialled anew.
    pub(super) fn watch_the_shard(&mut self, now: Time, effects: &mut Vec<Effect>) {
        let has_features = self.session.features().any;
        let Some(session) = self.session.speaks() else {
            return;
        };
        if self.answers.is_silent(now, has_features) {
            effects.push(Effect::HangUp(session));
            self.session.closed(now, session, false, &mut self.jitter);
            self.session_over();
        }
    }

    pub(super) fn answers_next(&self) -> Option<Time> {
        let next = self
            .answers
            .next_look()
            .filter(|_| self.session.speaks().is_some());
        next.filter(|next| self.now < *next)
    }

    pub(super) fn heard(
        &mut self,
        now: Time,
        session: SessionId,
        heard: Heard,
        effects: &mut Vec<Effect>,
    ) {
        if !self.session.is_current(session) {
            return;
        }
        match heard {
            Heard::Ack {
                echo,
                features,
                rollup_id,
                disposition,
                reason,
                resync_count,
            } => match echo {
                Echo::Hello => {
                    self.session.hello_answered(now, session, &features);
                    self.name_rows_anew();
                    self.pace.changed(now);
                }
                Echo::RollUp => {
                    let disposition = disposition.unwrap_or(Disposition::Accepted);
                    self.roll_up_answered(now, &rollup_id, disposition, reason, effects);
                }
                Echo::RollUpRejected => {
                    self.roll_up_answered(now, &rollup_id, Disposition::Rejected, reason, effects);
                }
                Echo::ResyncBegin => self.session.resync_begins(session),
                Echo::ResyncEnd => {
                    if let Some(resync) = self.session.resync_ends(session, resync_count) {
                        self.resynced(now, &resync, effects);
                    }
                }
                Echo::Unknown => {}
            },
            Heard::Bootstrap(request) => {
                let is_ours =
                    request.cluster.is_empty() || request.cluster == self.config.cluster.as_str();
                if is_ours {
                    let step = self.bootstraps.asked(request);
                    self.bootstrap_step(step, effects);
                } else {
                    self.counters.frames_dropped += 1;
                }
            }
            Heard::Reclaim(reclaim) => self.reclaim(now, reclaim, effects),
            Heard::ReclaimCancel { instruction } => self.reclaim_cancelled(&instruction, effects),
            Heard::NodeState(frame) => self.node_state(now, session, *frame, effects),
            Heard::Available(hint) => self.hints.heard(hint),
            Heard::NeedStatus { rows, is_complete } => self.served.heard(rows, is_complete),
            Heard::Unknown => self.counters.frames_dropped += 1,
        }
    }
}
