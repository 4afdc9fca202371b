//! Reports upward and instructions from there, as plain values (shard.md §10).
//!
//! ```text
//! core.report() ─▶ whoever carries it ─▶ Reported { acks }      the acks it carried are done with
//!                                     └▶ Instructed { … } ─▶ one ack each, kept until carried
//! ```
//!
//! The shard never needs any of this: no cycle reads it, nothing here is waited for, and with nobody
//! to carry a report the acks wait. What the shard believes of the other side is its term, which
//! never goes back, and which instructions it has carried out, both durable.

use crate::{ShardCore, record::Record, shortfall::ReportedShortfall};
use bigfleet_model::{Amounts, ClusterId, Dimension, State};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Instructions that are remembered as carried out.
const REMEMBERED: usize = 1024;
/// Acks that wait to be carried; a lost one is asked for again.
const MOST_ACKS: usize = 4096;
/// Pools a summary names.
const MOST_POOLS: usize = 64;

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
    /// Which.
    pub id: String,
    /// What became of it.
    pub disposition: Disposition,
    /// Why, where that is a question.
    pub reason: String,
}

/// Machines alike in type and zone.
#[derive(Clone, Debug, PartialEq)]
pub struct CapacityPool {
    /// Instance type.
    pub instance_type: String,
    /// Zone.
    pub zone: String,
    /// Idle ones.
    pub idle: u32,
    /// Speculative ones.
    pub speculative: u32,
    /// Configured ones.
    pub configured: u32,
    /// What one machine offers; the least, where they differ.
    pub allocatable: Amounts,
}

/// A shard's machines and demand in a few numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// All machines.
    pub machines: u32,
    /// Idle and Speculative ones.
    pub free: u32,
    /// By instance type.
    pub by_instance_type: BTreeMap<String, u32>,
    /// By zone.
    pub by_zone: BTreeMap<String, u32>,
    /// Demand as a part of what bound machines offer, by dimension (shard.md §8): above one where demand is
    /// not served. Dimensions no bound machine offers are left out.
    pub utilisation: BTreeMap<Dimension, f64>,
    /// The pools with most to give, largest first.
    pub pools: Vec<CapacityPool>,
}

/// What a shard says of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The shard.
    pub shard: String,
    /// Its epoch.
    pub epoch: u64,
    /// The highest term it has heard.
    pub term_seen: u64,
    /// Its machines and demand.
    pub summary: Summary,
    /// What is short, merged by fingerprint, at most 100 (SF-2).
    pub shortfalls: Vec<ReportedShortfall>,
    /// Answers to earlier instructions, oldest first.
    pub acks: Vec<InstructionAck>,
    /// The domains it holds; `None` if none was ever assigned: then it owns everything.
    pub domains: Option<BTreeSet<Domain>>,
    /// The clusters whose operators are connected (CO-3).
    pub clusters: Vec<ClusterId>,
    /// It may act: neither paused, nor fenced, nor in dry-run.
    pub acts: bool,
}

/// What a shard knows of the other side.
#[derive(Clone, Debug, Default)]
pub(crate) struct Upward {
    /// The highest term heard.
    pub(crate) term: u64,
    /// Carried out, oldest first.
    pub(crate) done: VecDeque<String>,
    acks: VecDeque<InstructionAck>,
    /// `None` while none was ever assigned; an empty set owns nothing new.
    pub(crate) domains: Option<BTreeSet<Domain>>,
}

impl Upward {
    /// Remembers an instruction as carried out; the oldest makes room.
    pub(crate) fn remember(&mut self, id: String) {
        if self.done.len() == REMEMBERED {
            self.done.pop_front();
        }
        self.done.push_back(id);
    }

    /// Assigns a domain, or takes it away.
    pub(crate) fn set_domain(&mut self, domain: Domain, assigned: bool) {
        let domains = self.domains.get_or_insert_default();
        match assigned {
            true => domains.insert(domain),
            false => domains.remove(&domain),
        };
    }
}

impl ShardCore {
    /// What to report now. Reading it changes nothing; the acks in it stay until
    /// [`crate::Event::Reported`].
    pub fn report(&self) -> Report {
        Report {
            shard: self.config.shard.clone(),
            epoch: self.epoch,
            term_seen: self.upward.term,
            summary: self.summary(),
            shortfalls: self.shortfalls.report(),
            acks: self.upward.acks.iter().cloned().collect(),
            domains: self.upward.domains.clone(),
            clusters: self
                .sessions
                .connected()
                .map(|(id, _)| id.clone())
                .collect(),
            acts: !self.all_closed(),
        }
    }

    /// Machines and demand in a few numbers: counted by shape and by cluster, never by machine.
    pub fn summary(&self) -> Summary {
        let mut summary = Summary::default();
        let mut pools: BTreeMap<(&str, &str), CapacityPool> = BTreeMap::new();
        let mut offered: BTreeMap<&Dimension, f64> = BTreeMap::new();
        for (_, shape, held) in self.ledger.stock.iter() {
            let count = |state| held.in_state(state);
            let (idle, speculative) = (count(State::Idle), count(State::Speculative));
            let bound = count(State::Configured) + count(State::Configuring);
            summary.machines += held.total();
            summary.free += idle + speculative;
            for (counts, name) in [
                (&mut summary.by_instance_type, &shape.instance_type),
                (&mut summary.by_zone, &shape.zone),
            ] {
                *counts.entry(name.clone()).or_default() += held.total();
            }
            for (dimension, amount) in shape.effective().iter() {
                *offered.entry(dimension).or_default() += amount as f64 * f64::from(bound);
            }
            let key = (shape.instance_type.as_str(), shape.zone.as_str());
            let pool = pools.entry(key).or_insert_with(|| CapacityPool {
                instance_type: shape.instance_type.clone(),
                zone: shape.zone.clone(),
                idle: 0,
                speculative: 0,
                configured: 0,
                allocatable: shape.effective().clone(),
            });
            pool.idle += idle;
            pool.speculative += speculative;
            pool.configured += count(State::Configured);
            if pool.allocatable.covers(shape.effective()) {
                pool.allocatable.clone_from(shape.effective());
            }
        }
        summary.pools = pools.into_values().collect();
        // Stable: equals stay in the order of their names.
        summary
            .pools
            .sort_by_key(|pool| std::cmp::Reverse(pool.idle + pool.speculative));
        summary.pools.truncate(MOST_POOLS);
        summary.utilisation = offered
            .into_iter()
            .filter(|(_, offered)| 0.0 < *offered)
            .map(|(dimension, offered)| (dimension.clone(), self.demanded(dimension) / offered))
            .collect();
        summary
    }

    /// What all clusters that have reported ask for of one dimension.
    fn demanded(&self, dimension: &Dimension) -> f64 {
        let ready = self.demand.clusters.values().filter(|known| known.ready);
        let baselines = ready.filter_map(|known| known.guard.baseline.as_ref());
        baselines
            .map(|baseline| baseline.totals.get(dimension.as_str()) as f64)
            .sum()
    }

    /// A higher term was heard.
    pub(crate) fn hear_term(&mut self, term: u64) {
        if self.upward.term < term {
            self.upward.term = term;
            self.remember_record(Record::Term(term));
        }
    }

    /// The answer to a report: its term, then its instructions (CO-5, wire 6.16).
    pub(crate) fn instructed(&mut self, term: u64, instructions: Vec<Instruction>) {
        // A whole answer of an earlier term is from somebody who does not lead any more.
        if 0 < term && term < self.upward.term {
            return;
        }
        self.hear_term(term);
        for instruction in instructions {
            if instruction.id.is_empty() {
                continue;
            }
            let id = instruction.id.clone();
            let (disposition, reason) = self.obey(instruction);
            if self.upward.acks.len() == MOST_ACKS {
                self.upward.acks.pop_front();
            }
            self.upward.acks.push_back(InstructionAck {
                id,
                disposition,
                reason,
            });
        }
    }

    fn obey(&mut self, instruction: Instruction) -> (Disposition, String) {
        let Instruction { id, term, order } = instruction;
        if self.upward.done.contains(&id) {
            return (Disposition::Accepted, "duplicate-redelivery".to_owned());
        }
        if term < self.upward.term {
            let mark = self.upward.term;
            let reason = format!("term {term} is lower than {mark}, which was heard (FE-5)");
            return (Disposition::RejectedStale, reason);
        }
        self.hear_term(term);
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
        self.upward.set_domain(domain.clone(), assigned);
        self.remember_record(Record::Domain { domain, assigned });
        self.upward.remember(id.clone());
        self.remember_record(Record::Instruction(id));
        (Disposition::Accepted, String::new())
    }

    /// A report arrived: the first so many acks were in it.
    pub(crate) fn reported(&mut self, acks: usize) {
        let carried = acks.min(self.upward.acks.len());
        self.upward.acks.drain(..carried);
    }
}
