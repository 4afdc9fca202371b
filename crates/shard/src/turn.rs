//! Turn: what the driver does next, of what waits for it (RD-2).
//!
//! ```text
//! event ─▶ first      due moment ─▶ before any question      question ─▶ when nothing else waits, and one in nine
//! ```
//!
//! Events go first; taking one in also does what is due. Readers who never stop asking must not keep a cycle from
//! its turn, nor events that never stop a reader.

/// Turns between two questions, while something else waits too.
const TURNS_PER_QUESTION: u32 = 8;

/// Whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    Event,
    Question,
    /// What is due by the clock.
    Moment,
    /// Nothing waits.
    Sleep,
}

/// What waits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Waiting {
    pub(crate) event: bool,
    pub(crate) question: bool,
    pub(crate) is_due: bool,
}

/// Whose turn it was.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    since_question: u32,
}

impl Turns {
    pub(crate) fn next(&mut self, waiting: Waiting) -> Turn {
        self.since_question += 1;
        if waiting.question && TURNS_PER_QUESTION < self.since_question {
            self.since_question = 0;
            Turn::Question
        } else if waiting.event {
            Turn::Event
        } else if waiting.is_due {
            Turn::Moment
        } else if waiting.question {
            self.since_question = 0;
            Turn::Question
        } else {
            Turn::Sleep
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(waiting: Waiting, turns: usize) -> Vec<Turn> {
        let mut order = Turns::default();
        (0..turns).map(|_| order.next(waiting)).collect()
    }

    fn count(turns: &[Turn], of: Turn) -> usize {
        turns.iter().filter(|turn| **turn == of).count()
    }

    /// A question always waited when the last was answered, and the moment was only looked for when none did: no
    /// cycle, and no List, until somebody else said something.
    #[test]
    fn readers_who_never_stop_asking_hold_up_no_cycle() {
        let waiting = Waiting {
            question: true,
            is_due: true,
            event: false,
        };
        let turns = taken(waiting, 90);
        assert_eq!(turns[0], Turn::Moment);
        assert_eq!(count(&turns, Turn::Moment), 80);
        assert_eq!(count(&turns, Turn::Question), 10);
    }

    #[test]
    fn events_that_never_stop_hold_up_no_reader() {
        let waiting = Waiting {
            event: true,
            question: true,
            is_due: false,
        };
        let turns = taken(waiting, 90);
        assert_eq!(count(&turns, Turn::Event), 80);
        assert_eq!(count(&turns, Turn::Question), 10);
    }

    #[test]
    fn what_waits_alone_has_every_turn_and_without_anything_the_driver_sleeps() {
        let question = Waiting {
            question: true,
            ..Waiting::default()
        };
        assert_eq!(count(&taken(question, 20), Turn::Question), 20);
        assert_eq!(count(&taken(Waiting::default(), 20), Turn::Sleep), 20);
    }
}
