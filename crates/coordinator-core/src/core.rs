//! Core: the tables of one replica, and what it does while it leads.
//!
//! ```text
//! every replica   log ──▶ apply ──▶ tables
//! the leader      report ─▶ checks ─▶ Propose(commands) ─▶ log … applied ─▶ proceed ─▶ … ─▶ Answer
//!                 admin ──▶ checks ─▶ commands ──────────▶ log … applied ─▶ its result is the answer
//! ```
//!
//! A step that needs agreement hands out commands and a ticket, and goes on with the ticket once they are applied here. An answer
//! rests on applied tables only (CO-24). A ticket that was overtaken by a newer report ends with WAIT.

use std::{collections::BTreeMap, time::Duration};

use bigfleet_model::Time;

use crate::{
    Answer, Applied, Caller, Command, Counters, Defect, Domain, Facts, Holdings, Refused,
    ReportEnd, ReportFacts, Scope, ShardId, Stamp, Tables,
    answer::{expected, told},
    leading::{Leading, Session},
    limits::{MOST_ABOVE_REIGN, MOST_COMMANDS, SILENT_FOR, SOON},
    report::Report,
    tables::Standing,
};

/// What the core is told about its surroundings.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// SHA-256, which the core does not bring itself.
    pub sha256: fn(&[u8]) -> [u8; 32],
    /// How often shards report.
    pub report_interval: Duration,
    /// A mistake that is switched on, in tests.
    pub defect: Option<Defect>,
}

/// A report that waits for commands to be applied.
#[derive(Clone, Debug)]
pub struct Ticket {
    report: Box<Report>,
    stage: Stage,
}

#[derive(Clone, Debug)]
enum Stage {
    /// For a reign above the mark of its shard.
    Reign,
    /// For its process to be on record.
    Identity,
    /// For its words to be, and the clusters it names. `facts` is `None` if it was not heard.
    Words {
        facts: Option<Facts>,
        is_heard_proposed: bool,
        send_lists: bool,
    },
}

/// What happens next with a report.
#[derive(Clone, Debug)]
pub enum Step {
    /// It is answered.
    Answer(Answer),
    /// It is refused.
    Refuse(Refused),
    /// These commands are to be agreed on, in one entry. Once they are applied here, [`CoordinatorCore::proceed`] goes on; if that is
    /// not known in time, the answer is [`Refused::NotCommitted`] and the ticket is dropped.
    Propose(Vec<Command>, Ticket),
}

/// What an admin asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdminRequest {
    /// Give a domain to a shard.
    AssignDomain {
        /// The label.
        key: String,
        /// Its value.
        value: String,
        /// The shard.
        shard: String,
    },
    /// Take a domain from its shard.
    UnassignDomain {
        /// The label.
        key: String,
        /// Its value.
        value: String,
    },
    /// Give a domain of one shard to another.
    MoveDomain {
        /// The label.
        key: String,
        /// Its value.
        value: String,
        /// The shard that shall have it.
        to: String,
    },
    /// Forget a shard.
    RemoveShard {
        /// The shard.
        shard: String,
        /// No process of it will run again.
        gone: bool,
    },
    /// Pause rebalancing, or go on with it.
    PauseRebalancing(bool),
    /// Make the tables what shards say they are.
    FinishRestore,
}

/// One replica's tables, and what it knows while it leads.
#[derive(Clone, Debug)]
pub struct CoordinatorCore {
    settings: Settings,
    tables: Tables,
    leading: Option<Leading>,
    counters: Counters,
}

impl CoordinatorCore {
    /// A replica with these tables, which does not lead.
    pub fn new(settings: Settings, tables: Tables) -> Self {
        Self {
            settings,
            tables,
            leading: None,
            counters: Counters::default(),
        }
    }

    /// What the replicas agree on, as far as it was applied here.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// What was counted.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Replaces the tables by those of a snapshot that another replica sent.
    pub fn install(&mut self, tables: Tables) {
        self.tables = tables;
    }

    /// Applies one entry of the log: each command by itself, in order. The same on every replica.
    pub fn apply(&mut self, entry: &[Command]) -> Vec<Result<Applied, Refused>> {
        let defect = self.settings.defect;
        let mut results = Vec::with_capacity(entry.len());
        for command in entry {
            let result = self.tables.apply(command, defect);
            if let (Command::RemoveShard { shard, .. }, Ok(_)) = (command, &result)
                && let Some(leading) = &mut self.leading
            {
                leading.forget(shard);
            }
            results.push(result);
        }
        results
    }

    /// This replica was elected. It serves nothing before this is applied and [`CoordinatorCore::begin`] was called (CO-11).
    pub fn elected(&mut self) -> Vec<Command> {
        self.leading = None;
        vec![Command::BeginReign { floor: 0 }]
    }

    /// Its reign has begun. `seed` is drawn anew each time, for ids that no earlier reign used (CO-23).
    pub fn begin(&mut self, now: Time, reign: u64, seed: u64) {
        self.leading = Some(Leading::new(reign, now, seed));
    }

    /// This replica leads no more: everything nobody agreed on is forgotten.
    pub fn deposed(&mut self) {
        self.leading = None;
    }

    /// Whether this replica serves: its reign began, and none after it.
    pub fn is_leading(&self) -> bool {
        let reign = self.tables.reign();
        self.leading
            .as_ref()
            .is_some_and(|leading| leading.reign == reign)
    }

    pub(crate) fn leading(&self) -> Result<&Leading, Refused> {
        let reign = self.tables.reign();
        let leading = self.leading.as_ref();
        let leading = leading.filter(|leading| leading.reign == reign);
        leading.ok_or(Refused::NotLeader)
    }

    fn leading_mut(&mut self) -> Result<&mut Leading, Refused> {
        let reign = self.tables.reign();
        let leading = self.leading.as_mut();
        let leading = leading.filter(|leading| leading.reign == reign);
        leading.ok_or(Refused::NotLeader)
    }

    /// A number in this reign for a step of a transfer that a leader begins.
    pub fn stamp(&mut self) -> Result<Stamp, Refused> {
        Ok(self.leading_mut()?.stamp())
    }

    /// Takes a report in (CO-18): leader, arguments, certificate, identity, floor, order, and then its words.
    pub fn report(&mut self, now: Time, caller: &Caller, facts: ReportFacts) -> Step {
        if let Err(refused) = self.leading() {
            return Step::Refuse(refused);
        }
        let read = Report::check(facts).map_err(Refused::from);
        let checked = read.and_then(|report| {
            caller.check_shard(&report.shard)?;
            Ok(report)
        });
        match checked {
            Ok(report) => stepped(self.identify(now, Box::new(report))),
            Err(refused) => {
                self.counters.report(ReportEnd::Refused);
                Step::Refuse(refused)
            }
        }
    }

    /// The commands of a ticket were applied here, with these results.
    pub fn proceed(
        &mut self,
        now: Time,
        ticket: Ticket,
        results: &[Result<Applied, Refused>],
    ) -> Step {
        stepped(self.go_on(now, ticket, results))
    }

    fn go_on(
        &mut self,
        now: Time,
        ticket: Ticket,
        results: &[Result<Applied, Refused>],
    ) -> Result<Step, Refused> {
        let Ticket { report, stage } = ticket;
        match stage {
            Stage::Reign => {
                let Some(Ok(Applied::Reign(reign))) = results.first() else {
                    return Err(Refused::NotCommitted);
                };
                let leading = self.leading.as_mut().ok_or(Refused::NotLeader)?;
                leading.begin_anew(*reign, now);
                self.identify(now, report)
            }
            Stage::Identity => {
                if let Some(Err(refused)) = results.first() {
                    return Err(self.refuse_identity(refused.clone()));
                }
                self.take(now, report)
            }
            Stage::Words {
                facts,
                is_heard_proposed,
                send_lists,
            } => {
                let leading = self.leading_mut()?;
                let reign = leading.reign;
                let session = leading.session_mut(&report.shard);
                let session = session.filter(|session| session.is_newest(&report));
                let Some(session) = session else {
                    return Ok(Step::Answer(Answer::wait(reign, false)));
                };
                let mut is_agreed = true;
                if is_heard_proposed {
                    session.is_unsettled = false;
                    is_agreed = results.first().is_some_and(Result::is_ok);
                }
                match facts {
                    Some(facts) if is_agreed => self.answer(&report.shard, &facts),
                    Some(_) | None => Ok(Step::Answer(Answer::wait(reign, send_lists))),
                }
            }
        }
    }

    fn refuse_identity(&mut self, refused: Refused) -> Refused {
        let end = match refused {
            Refused::OtherProcess { .. } | Refused::ShardGone(_) => ReportEnd::OtherProcess,
            _ => ReportEnd::Refused,
        };
        self.counters.report(end);
        refused
    }

    /// CO-13, CO-12 and the order of reports.
    fn identify(&mut self, now: Time, report: Box<Report>) -> Result<Step, Refused> {
        let defect = self.settings.defect;
        let has_records = report.has_records();
        let tables = &self.tables;
        let standing = tables.judge(&report.shard, report.identity, has_records, defect);
        let standing = standing.map_err(|refused| self.refuse_identity(refused))?;
        let reign = self.leading()?.reign;
        if reign < report.term_seen {
            let is_near = report.term_seen - reign <= MOST_ABOVE_REIGN;
            if is_near && self.leading_mut()?.may_raise(&report) {
                self.counters.floor_raised += 1;
                let floor = report.term_seen;
                let stage = Stage::Reign;
                let commands = vec![Command::BeginReign { floor }];
                return Ok(Step::Propose(commands, Ticket { report, stage }));
            }
            self.counters.floor_refused += 1;
        }
        if self.leading()?.is_old(&report, defect) {
            self.counters.report(ReportEnd::Old);
            return Ok(Step::Answer(Answer::wait(reign, false)));
        }
        let row = self.tables.registry().shard(&report.shard);
        let is_moved = |row: &crate::ShardRow| {
            let is_elsewhere = !report.address.is_empty() && row.address != report.address;
            is_elsewhere || row.provider != report.provider
        };
        if standing == Standing::Same && row.is_some_and(|row| !is_moved(row)) {
            return self.take(now, report);
        }
        let command = Command::SetIdentity {
            shard: report.shard.clone(),
            identity: report.identity,
            has_records,
            address: report.address.clone(),
            provider: report.provider.clone(),
            registered_at: now,
        };
        let stage = Stage::Identity;
        Ok(Step::Propose(vec![command], Ticket { report, stage }))
    }

    /// The report is of the process on record: it replaces what was known, and its words are taken if they are heard.
    fn take(&mut self, now: Time, report: Box<Report>) -> Result<Step, Refused> {
        let defect = self.settings.defect;
        let sha256 = self.settings.sha256;
        let (reign, is_restored) = (self.leading()?.reign, self.tables.is_restored());
        if self.leading()?.is_old(&report, defect) {
            self.counters.report(ReportEnd::Old);
            return Ok(Step::Answer(Answer::wait(reign, false)));
        }
        let tables = &self.tables;
        let leading = self.leading.as_mut().ok_or(Refused::NotLeader)?;
        let (session, acks) = leading.enter(now, &report);
        for (order, outcome) in acks {
            self.counters.ack(&order, outcome);
        }
        let words = words(&report, session, tables, sha256);
        let is_known = report.identity.directory.is_some();
        let is_of_reign = !session.is_first() && report.term_seen == reign;
        let is_heard = is_of_reign || defect == Some(Defect::UnheardBelieved);
        let is_heard = is_known && is_heard && words.is_some();
        session.is_heard |= is_heard;
        session.holds_everything = report.scope == Some(Scope::Everything);
        // A restore is finished with what shards named themselves: only that has stamps.
        let is_named = report.scope.is_none() || session.named(&report.digest).is_some();
        let send_lists = is_known && (words.is_none() || (is_restored && !is_named));
        let is_complete = is_restored && is_heard && is_named;
        session.words = words.clone().filter(|_| is_complete);
        let tells = is_heard && (!is_restored || defect == Some(Defect::RestoredTells));
        let facts = words.filter(|_| tells);
        let must_settle = session.is_unsettled && defect != Some(Defect::UnsettledIgnored);
        let mut commands = Vec::new();
        if let Some(facts) = facts.as_ref().filter(|_| !is_restored) {
            let (shard, identity) = (report.shard.clone(), report.identity);
            let planned = tables.plan_heard(reign, &shard, identity, facts)?;
            if must_settle || !planned.is_empty() {
                session.is_unsettled = true;
                let facts = facts.clone();
                commands.push(Command::Heard {
                    reign,
                    shard,
                    identity,
                    facts,
                });
            }
        }
        let is_heard_proposed = !commands.is_empty();
        commands.extend(bindings(tables, &report));
        commands.truncate(MOST_COMMANDS);
        let end = if facts.is_some() {
            ReportEnd::Heard
        } else {
            ReportEnd::Unheard
        };
        self.counters.report(end);
        let stage = Stage::Words {
            facts,
            is_heard_proposed,
            send_lists,
        };
        let ticket = Ticket { report, stage };
        if commands.is_empty() {
            return self.go_on(now, ticket, &[]);
        }
        Ok(Step::Propose(commands, ticket))
    }

    /// The answer to a report that was heard, from tables and its words (CO-22).
    fn answer(&mut self, shard: &ShardId, facts: &Facts) -> Result<Step, Refused> {
        let defect = self.settings.defect;
        let tables = &self.tables;
        let leading = self.leading.as_mut().ok_or(Refused::NotLeader)?;
        let session = leading.session(shard).ok_or(Refused::NotLeader)?;
        let told = told(
            tables,
            shard,
            facts,
            |order| session.is_held_back(order),
            defect,
        );
        let gone = tables.registry().gone().iter().cloned().collect();
        Ok(Step::Answer(Answer {
            reign: leading.reign,
            scope: told.scope,
            send_lists: false,
            confirmed: told.confirmed,
            foreign: told.foreign,
            instructions: leading.number(shard, told.orders),
            gone,
            next_report: told.is_busy.then_some(SOON),
        }))
    }

    /// Checks what an admin asks for: leader, certificate, arguments. The commands are to be agreed on in one entry, and the
    /// first refusal among their results is the answer.
    pub fn admin(
        &mut self,
        now: Time,
        caller: &Caller,
        request: &AdminRequest,
    ) -> Result<Vec<Command>, Refused> {
        self.leading()?;
        caller.check_admin()?;
        Ok(vec![self.command(now, request)?])
    }

    /// The same for several at once: the first that is wrong refuses all.
    pub fn admin_all(
        &mut self,
        now: Time,
        caller: &Caller,
        requests: &[AdminRequest],
    ) -> Result<Vec<Command>, Refused> {
        self.leading()?;
        caller.check_admin()?;
        if MOST_COMMANDS < requests.len() {
            let most = MOST_COMMANDS;
            return Err(Refused::TooMany { most });
        }
        let commands = requests.iter().map(|request| self.command(now, request));
        commands.collect()
    }

    /// What commands would answer, without applying them.
    pub fn rehearse(&self, commands: &[Command]) -> Vec<Result<Applied, Refused>> {
        let mut tables = self.tables.clone();
        let results = commands.iter();
        let defect = self.settings.defect;
        results
            .map(|command| tables.apply(command, defect))
            .collect()
    }

    fn command(&self, now: Time, request: &AdminRequest) -> Result<Command, Refused> {
        Ok(match request {
            AdminRequest::AssignDomain { key, value, shard } => {
                let (domain, shard) = (Domain::new(key, value)?, ShardId::new(shard)?);
                Command::AssignDomain { domain, shard }
            }
            AdminRequest::UnassignDomain { key, value } => {
                let domain = Domain::new(key, value)?;
                Command::UnassignDomain { domain }
            }
            AdminRequest::MoveDomain { key, value, to } => {
                let (domain, to) = (Domain::new(key, value)?, ShardId::new(to)?);
                Command::MoveDomain { domain, to }
            }
            AdminRequest::RemoveShard { shard, gone } => {
                let (shard, gone) = (ShardId::new(shard)?, *gone);
                if gone {
                    self.check_silent(now, &shard)?;
                }
                Command::RemoveShard { shard, gone }
            }
            AdminRequest::PauseRebalancing(paused) => Command::SetRebalancePaused(*paused),
            AdminRequest::FinishRestore => self.finish_restore()?,
        })
    }

    /// CO-52: a shard that reported lately is not gone.
    fn check_silent(&self, now: Time, shard: &ShardId) -> Result<(), Refused> {
        let Some(session) = self.leading()?.session(shard) else {
            return Ok(());
        };
        let ago = now.duration_since(session.received);
        if ago < SILENT_FOR {
            let shard = shard.clone();
            return Err(Refused::ShardAlive { shard, ago });
        }
        Ok(())
    }

    /// CO-46: the words of every shard that was ever heard of and is not gone.
    fn finish_restore(&self) -> Result<Command, Refused> {
        if !self.tables.is_restored() {
            return Err(Refused::NotRestored);
        }
        let leading = self.leading()?;
        let sessions = leading.sessions();
        let facts = sessions.filter_map(|(shard, session)| {
            let words = session.words.as_ref()?;
            Some((shard.clone(), words.clone()))
        });
        let facts: BTreeMap<ShardId, Facts> = facts.collect();
        let known = self.tables.registry().known().into_iter();
        let missing = known.filter(|shard| !facts.contains_key(shard));
        let missing: Vec<ShardId> = missing.cloned().collect();
        let is_awaited = self.settings.defect != Some(Defect::RestoreDoesNotWait);
        if !missing.is_empty() && is_awaited {
            return Err(Refused::NotHeard(missing));
        }
        Ok(Command::FinishRestore { facts })
    }
}

fn stepped(step: Result<Step, Refused>) -> Step {
    step.unwrap_or_else(Step::Refuse)
}

/// What a shard holds and has open, if that is known: it named it, named it before, or has what the tables expect. The
/// digest tells, since equal digests are equal holdings.
fn words(
    report: &Report,
    session: &mut Session,
    tables: &Tables,
    sha256: fn(&[u8]) -> [u8; 32],
) -> Option<Facts> {
    let records = report.records.clone();
    let Some(scope) = report.scope else {
        let holdings = None;
        return Some(Facts { holdings, records });
    };
    let is_of = |holdings: &Holdings| sha256(&holdings.lines()).as_slice() == report.digest;
    if is_of(&report.named) {
        session.remember(&report.digest, &report.named);
    }
    let named = session.named(&report.digest).cloned();
    let holdings = named.or_else(|| Some(expected(tables, &report.shard)).filter(is_of))?;
    let is_consistent = holdings.everything == (scope == Scope::Everything);
    let holdings = Some(holdings);
    is_consistent.then_some(Facts { holdings, records })
}

/// Clusters nobody serves yet, as far as is known: first contact wins.
fn bindings(tables: &Tables, report: &Report) -> impl Iterator<Item = Command> {
    let unbound = report.clusters.iter();
    let unbound = unbound.filter(|cluster| tables.clusters().shard(cluster).is_none());
    unbound.map(|cluster| Command::BindCluster {
        cluster: cluster.clone(),
        shard: report.shard.clone(),
    })
}
