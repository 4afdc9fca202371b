//! Trail: the fleets an engine went through, and what it did at each.

use bigfleet_model::Fleet;

/// A fleet an engine came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Stop {
    /// The fleet.
    pub fleet: Fleet,
    /// What the engine did there.
    pub then: Then,
}

/// What an engine does at a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// Takes in the facts and goes on.
    Pass,
    /// Decides on what changed.
    Decide,
    /// Decides on everything.
    Full,
}

impl Then {
    /// The word for it on a command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Decide => "decide",
            Self::Full => "full",
        }
    }

    /// What the word stands for.
    pub fn named(word: &str) -> Option<Self> {
        let all = [Self::Pass, Self::Decide, Self::Full];
        all.into_iter().find(|then| then.word() == word)
    }
}
