//! Uplink: what is heard from above, and what is to be answered (shard.md §10).
//!
//! ```text
//! ReportWanted ─▶ on disk ─▶ whoever carries it ─▶ Reported { acks }    the acks it carried are done with
//!                                               └▶ Answered(…) ─▶ one ack each, kept until carried
//! ```
//!
//! The shard never needs any of this: no cycle reads it, nothing here is waited for, and with nobody
//! to carry a report the acks wait. What the shard believes of the other side is its term, which
//! never goes back, and which instructions it has carried out, both durable.
//!
//! **Invariant:** the term never goes back, and an instruction is carried out once.

use crate::{
    holdings::{Stamp, ToldScope},
    record::Record,
};
use bigfleet_model::MachineId;
use std::{collections::VecDeque, fmt};

/// Instructions that are remembered as carried out.
const REMEMBERED: usize = 1024;
/// Acks that wait to be carried; a lost one is asked for again.
const MOST_ACKS: usize = 4096;

/// A label and its value that a shard owns machines by.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Domain {
    /// The label.
    pub key: String,
    /// Its value.
    pub value: String,
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.key, self.value)
    }
}

/// What an instruction asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Machines of this domain are this shard's.
    AssignDomain(Domain),
    /// They are no longer; none is drained because of it.
    UnassignDomain(Domain),
    /// A step of a move of machines between shards, which this shard cannot do.
    Move,
    /// Something this shard does not know.
    Unknown,
}

/// One instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Stable across resends; one without is ignored.
    pub id: String,
    /// The term of whoever gave it.
    pub term: u64,
    /// Its number within the term.
    pub sequence: u64,
    /// What to do.
    pub order: Order,
}

impl Instruction {
    /// What a record made by it is stamped with.
    pub fn stamp(&self) -> Stamp {
        Stamp {
            term: self.term,
            sequence: self.sequence,
        }
    }
}

/// The answer to a report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The term of whoever answered; zero if none was given.
    pub term: u64,
    /// Which unbound machines this shard may act on.
    pub scope: ToldScope,
    /// Transfers whose records may be closed.
    pub confirmed: Vec<String>,
    /// Machines of this shard's domains that are somebody else's.
    pub foreign: Vec<MachineId>,
    /// Shards of which no process will ever run again.
    pub gone: Vec<String>,
    /// What is asked for.
    pub instructions: Vec<Instruction>,
}

/// What became of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// Done, now or before.
    Accepted,
    /// Given in an earlier term than the highest heard.
    RejectedStale,
    /// Not understood.
    RejectedInvalid,
    /// Not done.
    Failed,
}

/// The answer to one instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstructionAck {
    /// The id of the instruction it answers.
    pub id: String,
    /// What became of it.
    pub disposition: Disposition,
    /// Why, where that is a question.
    pub reason: String,
}

/// What a shard knows of the other side.
#[derive(Clone, Debug, Default)]
pub(crate) struct Uplink {
    /// The highest term heard.
    term: u64,
    /// Carried out, oldest first.
    done: VecDeque<String>,
    acks: VecDeque<InstructionAck>,
}

impl Uplink {
    /// The highest term heard.
    pub(crate) fn term(&self) -> u64 {
        self.term
    }

    /// Answers that wait to be carried, oldest first.
    pub(crate) fn acks(&self) -> impl Iterator<Item = &InstructionAck> {
        self.acks.iter()
    }

    /// A term was heard; returns what to remember, if it is higher than any before.
    pub(crate) fn hear_term(&mut self, term: u64) -> Option<Record> {
        let is_higher = self.term < term;
        self.term = self.term.max(term);
        is_higher.then_some(Record::Term(term))
    }

    /// Whether an answer of this term is heard. A whole answer of an earlier one is from somebody who does not lead any more.
    pub(crate) fn hears(&self, term: u64) -> bool {
        term == 0 || self.term <= term
    }

    /// What is said to an instruction without carrying it out, if anything (CO-5, wire 6.16).
    pub(crate) fn refusal(&self, instruction: &Instruction) -> Option<(Disposition, String)> {
        if self.done.contains(&instruction.id) {
            return Some((Disposition::Accepted, "duplicate-redelivery".to_owned()));
        }
        let (term, mark) = (instruction.term, self.term);
        if term < mark {
            let reason = format!("term {term} is lower than {mark}, which was heard (FE-5)");
            return Some((Disposition::RejectedStale, reason));
        }
        match instruction.order {
            Order::AssignDomain(_) | Order::UnassignDomain(_) => None,
            // Nothing is resent, and nobody takes it for done.
            Order::Move => {
                let reason = "this shard does not move machines between shards";
                Some((Disposition::RejectedInvalid, reason.to_owned()))
            }
            Order::Unknown => Some((Disposition::RejectedInvalid, "unknown payload".to_owned())),
        }
    }

    /// What became of an instruction is to be told.
    pub(crate) fn acknowledge(&mut self, id: String, disposition: Disposition, reason: String) {
        if self.acks.len() == MOST_ACKS {
            self.acks.pop_front();
        }
        self.acks.push_back(InstructionAck {
            id,
            disposition,
            reason,
        });
    }

    /// A report arrived: the first so many acks were in it.
    pub(crate) fn reported(&mut self, acks: usize) {
        let carried = acks.min(self.acks.len());
        self.acks.drain(..carried);
    }

    /// Remembers an instruction as carried out; the oldest makes room.
    pub(crate) fn note_done(&mut self, id: String) {
        if self.done.len() == REMEMBERED {
            self.done.pop_front();
        }
        self.done.push_back(id);
    }

    /// What of this outlives the process.
    pub(crate) fn records(&self) -> Vec<Record> {
        let mut records = Vec::new();
        records.extend((0 < self.term).then_some(Record::Term(self.term)));
        records.extend(self.done.iter().cloned().map(Record::Instruction));
        records
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(id: usize, term: u64) -> Instruction {
        Instruction {
            id: format!("i{id}"),
            term,
            sequence: 1,
            order: Order::AssignDomain(Domain::default()),
        }
    }

    /// What is remembered of instructions and kept of answers is bounded; the oldest makes room.
    #[test]
    fn the_oldest_answers_and_instructions_make_room() {
        let mut uplink = Uplink::default();
        for id in 0..=MOST_ACKS {
            assert_eq!(uplink.refusal(&order(id, 1)), None);
            uplink.note_done(format!("i{id}"));
            uplink.acknowledge(format!("i{id}"), Disposition::Accepted, String::new());
        }
        assert_eq!(uplink.acks().count(), MOST_ACKS);
        assert_eq!(uplink.acks().next().unwrap().id, "i1", "i0 is lost");
        assert_eq!(uplink.done.len(), REMEMBERED);
        uplink.reported(MOST_ACKS - 1);
        assert_eq!(uplink.acks().count(), 1);
        uplink.reported(9);
        assert_eq!(uplink.acks().count(), 0, "no more than there are");
        let again = uplink.refusal(&order(MOST_ACKS, 1)).unwrap();
        assert_eq!(again.0, Disposition::Accepted, "done already");
        assert_eq!(uplink.refusal(&order(0, 1)), None, "forgotten");
    }

    #[test]
    fn a_term_never_goes_back() {
        let mut uplink = Uplink::default();
        assert_eq!(uplink.records(), []);
        assert_eq!(uplink.hear_term(5), Some(Record::Term(5)));
        assert_eq!(uplink.hear_term(5), None);
        assert_eq!(uplink.hear_term(4), None);
        assert_eq!(uplink.term(), 5);
        assert!(!uplink.hears(4) && uplink.hears(5) && uplink.hears(6));
        assert!(uplink.hears(0), "an answer without a term is heard");
        let stale = uplink.refusal(&order(0, 4)).unwrap();
        assert_eq!(stale.0, Disposition::RejectedStale);
        assert_eq!(uplink.records(), [Record::Term(5)]);
    }
}
