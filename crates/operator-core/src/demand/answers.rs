//! Answers: which roll-up the shard has answered, and when its silence means that it is gone.
//!
//! Numbers count up for the life of the process, so a request knows by one number which roll-ups held it. An answer
//! stands for all earlier ones (OP-27).

use bigfleet_model::{Amounts, Time};
use std::{collections::VecDeque, time::Duration};

/// Unanswered roll-ups and time after which a shard is dialled anew (OP-14).
const PATIENCE: (usize, Duration) = (3, Duration::from_secs(30));
/// The same towards a shard that listed no features.
const OLD_SHARD_PATIENCE: usize = 6;
/// No more unanswered ones are remembered.
const MOST_UNANSWERED: usize = 64;

/// A roll-up that was sent.
#[derive(Clone, Debug)]
pub(crate) struct SentRollUp {
    pub(crate) number: u64,
    pub(crate) at: Time,
    pub(crate) requests: u64,
    pub(crate) sum: Amounts,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Answers {
    sent: u64,
    unanswered: VecDeque<SentRollUp>,
    /// Whether the shard of this session ever answered one.
    answered_any: bool,
}

impl Answers {
    /// The number the next roll-up will have.
    pub(crate) fn next_number(&self) -> u64 {
        self.sent + 1
    }

    /// A session begins: nobody will answer what was sent before.
    pub(crate) fn begin(&mut self) {
        self.unanswered.clear();
        self.answered_any = false;
    }

    pub(crate) fn sent(&mut self, roll_up: SentRollUp) {
        self.sent = roll_up.number;
        if self.unanswered.len() == MOST_UNANSWERED {
            self.unanswered.pop_front();
        }
        self.unanswered.push_back(roll_up);
    }

    /// Whether the roll-up with this id is the newest.
    pub(crate) fn is_newest(&self, number: u64) -> bool {
        number == self.sent
    }

    /// The roll-up an answer is about: by its id, or the first unanswered one (OP-27). Earlier ones are answered too.
    pub(crate) fn answered(&mut self, id: &str) -> Option<SentRollUp> {
        let at = match id {
            "" => 0,
            id => {
                let is_it = |sent: &SentRollUp| sent.number.to_string() == id;
                self.unanswered.iter().position(is_it)?
            }
        };
        let mut answered = self
            .unanswered
            .drain(..=at.min(self.unanswered.len().checked_sub(1)?));
        self.answered_any = true;
        answered.next_back()
    }

    /// OP-14: no answer to so many for so long. A shard without features counts only once it has answered one.
    pub(crate) fn is_silent(&self, now: Time, has_features: bool) -> bool {
        let (least, span) = PATIENCE;
        let is_old = |sent: &SentRollUp| span <= now.duration_since(sent.at);
        let least = if has_features {
            least
        } else {
            OLD_SHARD_PATIENCE
        };
        let counts = has_features || self.answered_any;
        counts && least <= self.unanswered.len() && self.unanswered.front().is_some_and(is_old)
    }

    /// A shard that never answers: what was sent counts as accepted (OP-27).
    pub(crate) fn never_answers(&self, now: Time, has_features: bool) -> bool {
        let (_, span) = PATIENCE;
        let is_old = |sent: &SentRollUp| span <= now.duration_since(sent.at);
        !has_features
            && !self.answered_any
            && OLD_SHARD_PATIENCE <= self.unanswered.len()
            && self.unanswered.front().is_some_and(is_old)
    }

    /// When silence may first mean something.
    pub(crate) fn next_look(&self) -> Option<Time> {
        self.unanswered.front().map(|sent| sent.at + PATIENCE.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    fn send(answers: &mut Answers, seconds: u64) {
        let number = answers.next_number();
        answers.sent(SentRollUp {
            number,
            at: at(seconds),
            requests: 0,
            sum: Amounts::NONE,
        });
    }

    fn number(answered: Option<SentRollUp>) -> Option<u64> {
        answered.map(|sent| sent.number)
    }

    /// OP-27.
    #[test]
    fn an_answer_stands_for_all_earlier_ones() {
        let mut answers = Answers::default();
        (0..4).for_each(|second| send(&mut answers, second));
        assert_eq!(number(answers.answered("2")), Some(2));
        assert_eq!(number(answers.answered("1")), None);
        assert_eq!(number(answers.answered("")), Some(3), "in the order sent");
        assert_eq!(number(answers.answered("nonsense")), None);
        assert_eq!(number(answers.answered("4")), Some(4));
        assert_eq!(number(answers.answered("")), None);
        assert!(answers.is_newest(4));
        answers.begin();
        assert_eq!(answers.next_number(), 5, "a number is never used twice");
    }

    /// OP-14.
    #[test]
    fn silence_after_three_roll_ups_and_half_a_minute_is_death() {
        let mut answers = Answers::default();
        [0, 10, 20]
            .iter()
            .for_each(|second| send(&mut answers, *second));
        assert!(!answers.is_silent(at(29), true));
        assert!(answers.is_silent(at(30), true));
        assert!(!answers.is_silent(at(30), false));
        [30, 40, 50]
            .iter()
            .for_each(|second| send(&mut answers, *second));
        assert!(!answers.is_silent(at(60), false), "it may never answer any");
        assert!(answers.never_answers(at(60), false));
        assert!(!answers.never_answers(at(60), true));
        answers.answered("1");
        send(&mut answers, 60);
        assert!(answers.is_silent(at(60), false));
        assert!(!answers.never_answers(at(60), false));
    }

    #[test]
    fn what_is_remembered_has_a_bound() {
        let mut answers = Answers::default();
        (0..1000).for_each(|second| send(&mut answers, second));
        assert_eq!(answers.unanswered.len(), MOST_UNANSWERED);
    }
}
