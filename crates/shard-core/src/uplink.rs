//! Uplink: what is heard from above, and what is to be answered (shard.md §10).
//!
//! ```text
//! core.report() ─▶ whoever carries it ─▶ Reported { acks }      the acks it carried are done with
//!                                     └▶ Instructed { … } ─▶ one ack each, kept until carried
//! ```
//!
//! The shard never needs any of this: no cycle reads it, nothing here is waited for, and with nobody
//! to carry a report the acks wait. What the shard believes of the other side is its term, which
//! never goes back, and which instructions it has carried out, both durable.
//!
//! **Invariant:** the term never goes back, and an instruction is carried out once.

use crate::record::Record;
use std::collections::{BTreeSet, VecDeque};

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

/// What an instruction asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Machines of this domain are this shard's.
    AssignDomain(Domain),
    /// They are no longer; none is drained because of it.
    UnassignDomain(Domain),
    /// A move of machines between shards, which this shard cannot do.
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
    /// What to do.
    pub order: Order,
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
    /// `None` while none was ever assigned; an empty set owns nothing new.
    domains: Option<BTreeSet<Domain>>,
}

impl Uplink {
    /// The highest term heard.
    pub(crate) fn term(&self) -> u64 {
        self.term
    }

    /// The domains assigned to this shard; `None` while none ever was.
    pub(crate) fn domains(&self) -> Option<&BTreeSet<Domain>> {
        self.domains.as_ref()
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

    /// The answer to a report: its term, then its instructions (CO-5, wire 6.16). Returns what to remember.
    pub(crate) fn instructed(&mut self, term: u64, instructions: Vec<Instruction>) -> Vec<Record> {
        // A whole answer of an earlier term is from somebody who does not lead any more.
        if 0 < term && term < self.term {
            return Vec::new();
        }
        let mut records: Vec<Record> = self.hear_term(term).into_iter().collect();
        for instruction in instructions {
            if instruction.id.is_empty() {
                continue;
            }
            let id = instruction.id.clone();
            let (disposition, reason) = self.obey(instruction, &mut records);
            if self.acks.len() == MOST_ACKS {
                self.acks.pop_front();
            }
            self.acks.push_back(InstructionAck {
                id,
                disposition,
                reason,
            });
        }
        records
    }

    fn obey(
        &mut self,
        instruction: Instruction,
        records: &mut Vec<Record>,
    ) -> (Disposition, String) {
        let Instruction { id, term, order } = instruction;
        if self.done.contains(&id) {
            return (Disposition::Accepted, "duplicate-redelivery".to_owned());
        }
        if term < self.term {
            let mark = self.term;
            let reason = format!("term {term} is lower than {mark}, which was heard (FE-5)");
            return (Disposition::RejectedStale, reason);
        }
        records.extend(self.hear_term(term));
        let (domain, assigned) = match order {
            Order::AssignDomain(domain) => (domain, true),
            Order::UnassignDomain(domain) => (domain, false),
            Order::Move => {
                let reason = "this shard does not move machines between shards";
                return (Disposition::Failed, reason.to_owned());
            }
            Order::Unknown => {
                return (Disposition::RejectedInvalid, "unknown payload".to_owned());
            }
        };
        self.set_domain(domain.clone(), assigned);
        records.push(Record::Domain { domain, assigned });
        self.note_done(id.clone());
        records.push(Record::Instruction(id));
        (Disposition::Accepted, String::new())
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

    /// Assigns a domain, or takes it away.
    pub(crate) fn set_domain(&mut self, domain: Domain, assigned: bool) {
        let domains = self.domains.get_or_insert_default();
        if assigned {
            domains.insert(domain);
        } else {
            domains.remove(&domain);
        }
    }

    /// What of this outlives the process.
    pub(crate) fn records(&self) -> Vec<Record> {
        let mut records = Vec::new();
        records.extend((0 < self.term).then_some(Record::Term(self.term)));
        records.extend(self.done.iter().cloned().map(Record::Instruction));
        let record = |domain: &Domain, assigned| Record::Domain {
            domain: domain.clone(),
            assigned,
        };
        if let Some(domains) = &self.domains {
            // An empty set is one that was taken away.
            if domains.is_empty() {
                records.push(record(&Domain::default(), false));
            }
            records.extend(domains.iter().map(|domain| record(domain, true)));
        }
        records
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assign(id: usize, term: u64) -> Instruction {
        Instruction {
            id: format!("i{id}"),
            term,
            order: Order::AssignDomain(Domain::default()),
        }
    }

    /// What is remembered of instructions and kept of answers is bounded; the oldest makes room.
    #[test]
    fn the_oldest_answers_and_instructions_make_room() {
        let mut uplink = Uplink::default();
        let many = (0..=MOST_ACKS).map(|id| assign(id, 1));
        uplink.instructed(1, many.collect());
        assert_eq!(uplink.acks().count(), MOST_ACKS);
        assert_eq!(uplink.acks().next().unwrap().id, "i1", "i0 is lost");
        assert_eq!(uplink.done.len(), REMEMBERED);
        uplink.reported(MOST_ACKS - 1);
        assert_eq!(uplink.acks().count(), 1);
        uplink.reported(9);
        assert_eq!(uplink.acks().count(), 0, "no more than there are");
        let last = assign(MOST_ACKS, 1);
        assert_eq!(uplink.instructed(1, vec![last]), [], "done already");
        assert_eq!(
            uplink.instructed(1, vec![assign(0, 1)]).len(),
            2,
            "forgotten"
        );
    }

    #[test]
    fn a_term_never_goes_back() {
        let mut uplink = Uplink::default();
        assert_eq!(uplink.records(), []);
        assert_eq!(uplink.hear_term(5), Some(Record::Term(5)));
        assert_eq!(uplink.hear_term(5), None);
        assert_eq!(uplink.hear_term(4), None);
        assert_eq!(uplink.term(), 5);
        assert_eq!(uplink.instructed(4, vec![assign(0, 6)]), [], "not heard");
        assert_eq!(uplink.acks().count(), 0);
        let records = uplink.instructed(0, vec![assign(0, 5)]);
        assert_eq!(records.len(), 2, "an answer without a term is heard");
        assert_eq!(uplink.records()[0], Record::Term(5));
    }
}
