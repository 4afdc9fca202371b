//! Roll-ups: when the demand is sent, what holds it back, and what an answer means (OP-17 to OP-28).

use super::OperatorCore;
use crate::{
    counters::Held,
    defect::Defect,
    demand::{answers::SentRollUp, guard::Verdict, ledger::Shaping},
    effect::{Alert, Effect, Frame},
    event::{Disposition, EffectId, OwnersFound},
};
use bigfleet_model::Time;
use std::time::Duration;

/// How soon is looked again where something is missing that may come any moment.
const SOON: Duration = Duration::from_secs(1);

impl OperatorCore {
    pub(super) fn shaping(&self) -> Shaping {
        Shaping {
            by_class: self.config.unit_classes,
            whole_units: self.session.features().whole_units,
            overhead: self.overhead.in_force(),
            defect: self.config.defect,
        }
    }

    pub(super) fn roll_up_next(&self, now: Time) -> Option<Time> {
        let next = self.pace.next()?;
        // A session that may not send yet says itself when it may.
        (self.session.may_roll_up(next.max(now))).then_some(next)
    }

    pub(super) fn roll_up(&mut self, now: Time, effects: &mut Vec<Effect>) {
        if !self.pace.is_due(now) || !self.session.may_roll_up(now) {
            return;
        }
        if let Some((held, look_again)) = self.held_back(now) {
            *self.counters.held.entry(held).or_default() += 1;
            return self.pace.postpone(now, look_again);
        }
        let spares = self.spares.rows(&self.wants());
        let rows = match self.ledger.rows(self.shaping(), &spares) {
            Ok(rows) => rows,
            Err(why) => {
                *self.counters.held.entry(Held::Defect).or_default() += 1;
                effects.push(Effect::Alert(Alert::RollUpDefect(why)));
                return self.pace.postpone(now, self.pace.interval());
            }
        };
        if self.pace.is_refused(now, &rows) {
            *self.counters.held.entry(Held::Rejected).or_default() += 1;
            return self.pace.postpone(now, SOON);
        }
        let (requests, sum) = (self.ledger.requests(), self.ledger.sum());
        let was_holding = self.guard.is_holding();
        match self.guard.look(now, requests, &sum, self.config.defect) {
            Verdict::Send => {}
            Verdict::Hold => {
                *self.counters.held.entry(Held::Withdrawal).or_default() += 1;
                if !was_holding && self.guard.is_holding() {
                    effects.push(Effect::Alert(Alert::WithdrawalHeld));
                }
                return self.pace.postpone(now, self.pace.interval());
            }
            Verdict::Ask(owners) => {
                let id = self.next_id();
                self.owners_asked = Some(id);
                effects.push(Effect::ReadOwners(id, owners));
                return self.pace.postpone(now, self.pace.interval());
            }
        }
        let number = self.answers.next_number();
        self.answers.sent(SentRollUp {
            number,
            at: now,
            requests,
            sum,
        });
        self.counters.roll_ups += 1;
        self.pace.done(now, &mut self.jitter);
        self.served.asked_for(&rows);
        self.last_rows = rows.clone();
        let id = number.to_string();
        self.send(Frame::RollUp { id, at: now, rows }, effects);
        let has_features = self.session.features().any;
        let is_enough = self.answers.never_answers(now, has_features);
        if is_enough || self.has(Defect::AcknowledgedWhenSent) {
            self.acknowledgements.accepted(number);
        }
    }

    /// Why nothing may be said now, and when to look again.
    fn held_back(&mut self, now: Time) -> Option<(Held, Duration)> {
        if !self.requests.is_fresh(now) {
            return Some((Held::NotFresh, SOON));
        }
        let is_waiting = self.unread_until.is_some_and(|until| now < until);
        if 0 < self.requests.unread() && is_waiting {
            return Some((Held::Unreadable, SOON));
        }
        if self.requests.unread() == 0 {
            self.unread_until = None;
        }
        if self.departures.rests(now) {
            return Some((Held::StrangeShard, self.pace.interval()));
        }
        if !self.spares.is_on_record(self.config.defect) {
            return Some((Held::SpareRecord, SOON));
        }
        None
    }

    pub(super) fn owners_found(&mut self, now: Time, id: EffectId, found: Option<OwnersFound>) {
        if self.spare_owners(now, id, found.as_ref()) || self.owners_asked != Some(id) {
            return;
        }
        self.owners_asked = None;
        if self.guard.answered(found) {
            self.pace.begin_now(now);
        }
    }

    /// OP-27.
    pub(super) fn roll_up_answered(
        &mut self,
        now: Time,
        id: &str,
        disposition: Disposition,
        reason: String,
        effects: &mut Vec<Effect>,
    ) {
        let Some(sent) = self.answers.answered(id) else {
            return;
        };
        match disposition {
            Disposition::Accepted => {
                self.counters.answers[0] += 1;
                self.acknowledgements.accepted(sent.number);
                self.guard.accepted(sent.requests, sent.sum);
                self.hints.roll_up_accepted(now);
            }
            Disposition::Held => self.counters.answers[1] += 1,
            Disposition::Rejected => {
                self.counters.answers[2] += 1;
                effects.push(Effect::Alert(Alert::RollUpRejected(reason)));
                if self.answers.is_newest(sent.number) {
                    self.pace.rejected(now, self.last_rows.clone());
                }
            }
        }
    }
}
