//! Leading: what a leader knows and nobody agreed on. It begins empty with every reign and ends with it.
//!
//! ```text
//! Leading ── one Session per shard: who reports, the last report, what it holds, what it was asked
//! ```
//!
//! Everything here is told again by the shards within two reports, so losing it costs seconds. An empty list of reports after an
//! election means "not heard yet", never "no demand".

use std::collections::{BTreeMap, BTreeSet};

use bigfleet_model::{ClusterId, Time};
use bigfleet_seeded::Prng;

use crate::{
    Ack, AckOutcome, Defect, Facts, Holdings, Identity, Instruction, Order, ShardId, Shortfall,
    Stamp, Summary, limits::REPORTS_AFTER_FAILURE, report::Report,
};

/// What a leader knows of one shard.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    identity: Identity,
    cycle: u64,
    /// Reports of this process in this reign.
    reports: u64,
    pub(crate) received: Time,
    pub(crate) summary: Summary,
    pub(crate) shortfalls: Vec<Shortfall>,
    pub(crate) clusters: BTreeSet<ClusterId>,
    pub(crate) capabilities: BTreeSet<String>,
    /// What it named last, and its digest.
    lists: Option<(Vec<u8>, Holdings)>,
    /// Its words, complete and heard, for a restore to be finished with.
    pub(crate) words: Option<Facts>,
    pub(crate) is_heard: bool,
    /// It said that everything of its provider is its own.
    pub(crate) holds_everything: bool,
    /// Words of it were proposed and nobody knows yet whether they were agreed on.
    pub(crate) is_unsettled: bool,
    asked: BTreeMap<Order, (String, Stamp)>,
    /// Orders that were not carried out, and for how many reports they are not given again; `None` is for good.
    held_back: BTreeMap<Order, Option<u32>>,
}

impl Session {
    fn new(report: &Report, now: Time) -> Self {
        Self {
            identity: report.identity,
            cycle: report.cycle,
            reports: 0,
            received: now,
            summary: Summary::default(),
            shortfalls: Vec::new(),
            clusters: BTreeSet::new(),
            capabilities: BTreeSet::new(),
            lists: None,
            words: None,
            is_heard: false,
            holds_everything: false,
            is_unsettled: false,
            asked: BTreeMap::new(),
            held_back: BTreeMap::new(),
        }
    }

    pub(crate) fn cycle(&self) -> u64 {
        self.cycle
    }

    /// Whether this is the first report of its process in this reign (CO-19).
    pub(crate) fn is_first(&self) -> bool {
        self.reports == 1
    }

    /// Whether this report is still the newest one of its process.
    pub(crate) fn is_newest(&self, report: &Report) -> bool {
        self.identity == report.identity && self.cycle == report.cycle
    }

    /// The holdings of this digest, if the shard named them before in this reign.
    pub(crate) fn named(&self, digest: &[u8]) -> Option<&Holdings> {
        let (known, holdings) = self.lists.as_ref()?;
        (known == digest).then_some(holdings)
    }

    pub(crate) fn remember(&mut self, digest: &[u8], holdings: &Holdings) {
        self.lists = Some((digest.to_vec(), holdings.clone()));
    }

    pub(crate) fn is_held_back(&self, order: &Order) -> bool {
        self.held_back.contains_key(order)
    }

    /// Any ack ends its instruction (CO-23). What failed is not given again for three reports, what was not understood not
    /// in this reign.
    fn take_acks(&mut self, acks: &[Ack]) -> Vec<(Order, AckOutcome)> {
        let mut taken = Vec::new();
        for ack in acks {
            let mut asked = self.asked.iter();
            let found = asked.find(|(_, (id, _))| *id == ack.instruction);
            let Some(order) = found.map(|(order, _)| order.clone()) else {
                continue;
            };
            self.asked.remove(&order);
            match ack.outcome {
                AckOutcome::Accepted | AckOutcome::RejectedStale => {}
                AckOutcome::RejectedInvalid => {
                    self.held_back.insert(order.clone(), None);
                }
                AckOutcome::Failed => {
                    // The report that brings the ack is the first of them.
                    let reports = Some(REPORTS_AFTER_FAILURE - 1);
                    self.held_back.insert(order.clone(), reports);
                }
            }
            taken.push((order, ack.outcome));
        }
        taken
    }

    fn wait_a_report_less(&mut self) {
        self.held_back.retain(|_, reports| match reports {
            None => true,
            Some(0) => false,
            Some(reports) => {
                *reports -= 1;
                true
            }
        });
    }

    /// The orders that were given and not answered, by number.
    pub(crate) fn pending(&self) -> Vec<Instruction> {
        let instruction = |(order, (id, stamp)): (&Order, &(String, Stamp))| Instruction {
            id: id.clone(),
            stamp: *stamp,
            order: order.clone(),
        };
        let mut pending: Vec<Instruction> = self.asked.iter().map(instruction).collect();
        pending.sort_by_key(|one| one.stamp);
        pending
    }
}

/// What a leader knows.
#[derive(Clone, Debug)]
pub(crate) struct Leading {
    pub(crate) reign: u64,
    pub(crate) began: Time,
    ids: Prng,
    sequence: u64,
    sessions: BTreeMap<ShardId, Session>,
    /// Processes whose mark has raised the reign.
    raised: BTreeMap<ShardId, u64>,
}

impl Leading {
    pub(crate) fn new(reign: u64, now: Time, seed: u64) -> Self {
        Self {
            reign,
            began: now,
            ids: Prng::new(seed),
            sequence: 0,
            sessions: BTreeMap::new(),
            raised: BTreeMap::new(),
        }
    }

    /// The same process leads on, in a new reign.
    pub(crate) fn begin_anew(&mut self, reign: u64, now: Time) {
        self.reign = reign;
        self.began = now;
        self.sequence = 0;
        self.sessions.clear();
    }

    /// A process may raise the reign once: one that finds a higher mark with every report would keep all others from being
    /// heard.
    pub(crate) fn may_raise(&mut self, report: &Report) -> bool {
        let process = report.identity.process;
        let before = self.raised.insert(report.shard.clone(), process);
        before != Some(process)
    }

    /// Whether a report is no newer than the last of its process (CO-18).
    pub(crate) fn is_old(&self, report: &Report, defect: Option<Defect>) -> bool {
        let session = self.sessions.get(&report.shard);
        session.is_some_and(|session| {
            let is_same = session.identity == report.identity;
            let is_older = report.cycle <= session.cycle;
            is_same && is_older && defect != Some(Defect::OldReportBelieved)
        })
    }

    /// Takes a report in: everything it says replaces what was said before, empty or not.
    pub(crate) fn enter(
        &mut self,
        now: Time,
        report: &Report,
    ) -> (&mut Session, Vec<(Order, AckOutcome)>) {
        let known = self.sessions.get(&report.shard);
        if known.is_none_or(|session| session.identity != report.identity) {
            let session = Session::new(report, now);
            self.sessions.insert(report.shard.clone(), session);
        }
        let session = self.sessions.entry(report.shard.clone());
        let session = session.or_insert_with(|| Session::new(report, now));
        session.cycle = report.cycle;
        session.reports += 1;
        session.received = now;
        session.summary.clone_from(&report.summary);
        session.shortfalls.clone_from(&report.shortfalls);
        session.clusters.clone_from(&report.clusters);
        session.capabilities.clone_from(&report.capabilities);
        session.wait_a_report_less();
        let acks = session.take_acks(&report.acks);
        (session, acks)
    }

    pub(crate) fn session(&self, shard: &ShardId) -> Option<&Session> {
        self.sessions.get(shard)
    }

    pub(crate) fn session_mut(&mut self, shard: &ShardId) -> Option<&mut Session> {
        self.sessions.get_mut(shard)
    }

    pub(crate) fn sessions(&self) -> impl Iterator<Item = (&ShardId, &Session)> {
        self.sessions.iter()
    }

    pub(crate) fn forget(&mut self, shard: &ShardId) {
        self.sessions.remove(shard);
        self.raised.remove(shard);
    }

    /// The next number in this reign.
    pub(crate) fn stamp(&mut self) -> Stamp {
        self.sequence += 1;
        Stamp {
            reign: self.reign,
            sequence: self.sequence,
        }
    }

    /// Orders with their ids and numbers. What is wanted still keeps them, what is not wanted any more is forgotten.
    pub(crate) fn number(&mut self, shard: &ShardId, orders: Vec<Order>) -> Vec<Instruction> {
        let session = self.sessions.get_mut(shard);
        let mut before =
            session.map_or_else(BTreeMap::new, |session| std::mem::take(&mut session.asked));
        let mut asked = BTreeMap::new();
        for order in orders {
            let known = before.remove(&order);
            let named = known.unwrap_or_else(|| {
                let id = format!("{:016x}", self.ids.next_u64());
                (id, self.stamp())
            });
            asked.insert(order, named);
        }
        match self.sessions.get_mut(shard) {
            Some(session) => {
                session.asked = asked;
                session.pending()
            }
            None => Vec::new(),
        }
    }
}
