//! Report: what a shard says, read with every bound checked, or refused whole.
//!
//! ```text
//! ReportFacts, as it came ─▶ check ─▶ Report, usable as it is
//!                                └──▶ ReportRefused, and nothing was changed
//! ```
//!
//! One thing is left out instead of refused: a cluster whose id does not fit here. Which shard serves it is a view, and the name one
//! cluster gave itself must not silence its shard.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use bigfleet_model::{Amounts, Bucket, ClusterId, IdRefused, MachineId, Operator, Time};

use crate::{
    Domain, Exception, ExceptionKind, Holdings, Identity, NameRefused, Provider, RecordState,
    ShardId, Stamp, TransferId, TransferRecord,
    limits::{
        MOST_ACKS, MOST_CAPABILITIES, MOST_COUNTED, MOST_EXCEPTIONS, MOST_HELD, MOST_MOVED,
        MOST_POOLS, MOST_RECORDS, MOST_REQUIREMENTS, MOST_SERVED, MOST_SHORTFALLS, MOST_TEXT_BYTES,
        MOST_VALUES,
    },
    names::is_id,
};

/// Which unbound machines a shard may act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// In an answer: nothing is decided yet, everything stays as it is.
    Wait,
    /// All of its provider's.
    Everything,
    /// Those of its domains.
    Assigned,
}

/// Machines alike in type and zone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pool {
    /// Instance type.
    pub instance_type: String,
    /// Zone.
    pub zone: String,
    /// Idle machines that nothing is planned for.
    pub idle: u32,
    /// Speculative slots.
    pub speculative: u32,
    /// Configured machines.
    pub configured: u32,
    /// What one machine offers.
    pub allocatable: Amounts,
}

/// What a shard has, in counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// Machines in any state.
    pub machines: u32,
    /// Idle and speculative ones.
    pub free: u32,
    /// By instance type.
    pub by_instance_type: BTreeMap<String, u32>,
    /// By zone.
    pub by_zone: BTreeMap<String, u32>,
    /// The largest pools.
    pub pools: Vec<Pool>,
}

/// A condition of a shortfall.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShortfallRequirement {
    /// The attribute.
    pub key: String,
    /// The operator; `None` for one that is not known here.
    pub operator: Option<Operator>,
    /// The values.
    pub values: Vec<String>,
}

/// Demand a shard could not meet.
#[derive(Clone, Debug, PartialEq)]
pub struct Shortfall {
    /// What machines must be like. Kept for rebalancing; readers get them empty.
    pub requirements: Vec<ShortfallRequirement>,
    /// What is missing.
    pub deficit: Amounts,
    /// The row's priority.
    pub priority: i32,
    /// Consecutive cycles it was short.
    pub age_cycles: u32,
    /// What an interruption costs.
    pub bucket: Bucket,
    /// No machine of another shard can help: its shard says so, or a requirement is Same.
    pub constrained: bool,
    /// The row's profile.
    pub fingerprint: String,
    /// The smallest machine that is useful.
    pub min_unit: Amounts,
    /// Every unit equals the smallest.
    pub whole_units: bool,
}

/// What became of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AckOutcome {
    /// Done, now or before.
    Accepted,
    /// Given in an earlier reign than the highest heard.
    RejectedStale,
    /// Not understood.
    RejectedInvalid,
    /// Not done.
    Failed,
}

/// The answer to one instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ack {
    /// The instruction.
    pub instruction: String,
    /// What became of it.
    pub outcome: AckOutcome,
}

/// An exception as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExceptionFacts {
    /// The machine.
    pub machine: String,
    /// Which way.
    pub kind: ExceptionKind,
    /// The transfer that made it so; may be empty.
    pub transfer: String,
    /// The other side; may be empty.
    pub peer: String,
    /// `key=value`; may be empty.
    pub domain: String,
    /// What made it so.
    pub stamp: Stamp,
}

/// A transfer record as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransferFacts {
    /// The transfer.
    pub id: String,
    /// How far it is.
    pub state: RecordState,
    /// The machines it moves.
    pub machines: Vec<String>,
    /// The other side; may be empty.
    pub peer: String,
    /// `key=value`; may be empty.
    pub domain: String,
    /// What made it so.
    pub stamp: Stamp,
    /// When a reservation ends.
    pub expires: Option<Time>,
}

/// A report as it came.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReportFacts {
    /// The shard.
    pub shard: String,
    /// Counts the starts of its data directory.
    pub epoch: i64,
    /// Counts the reports of its process.
    pub cycle: i64,
    /// Drawn with its data directory; 0 for none.
    pub directory: u64,
    /// Drawn at its start: 16 hexadecimal digits, or nothing.
    pub process: String,
    /// Where it can be reached; may be empty.
    pub address: String,
    /// Its provider's address; empty for one inside of it.
    pub provider: String,
    /// The highest reign it has heard of.
    pub term_seen: i64,
    /// What it may act on; `None` if nothing is on its disk.
    pub scope: Option<Scope>,
    /// SHA-256 of its holdings (CO-31).
    pub digest: Vec<u8>,
    /// The domains it holds, if it was asked.
    pub domains: Vec<String>,
    /// The machines that do not follow their domain, if it was asked.
    pub exceptions: Vec<ExceptionFacts>,
    /// Every transfer it has open.
    pub transfers: Vec<TransferFacts>,
    /// The clusters it serves.
    pub clusters: Vec<String>,
    /// What it takes part in.
    pub capabilities: Vec<String>,
    /// Answers to instructions.
    pub acks: Vec<Ack>,
    /// What it has, in counts.
    pub summary: Summary,
    /// What is short.
    pub shortfalls: Vec<Shortfall>,
}

/// Why a report cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReportRefused {
    /// There is too much of something.
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many there are.
        count: usize,
        /// How many there may be.
        most: usize,
    },
    /// A text is too long.
    TooLong {
        /// The field that has it.
        what: &'static str,
        /// Its bytes.
        bytes: usize,
    },
    /// A text is no name.
    Name(NameRefused),
    /// A machine's id is none.
    Machine(IdRefused),
    /// A number is out of its range.
    Number {
        /// The field that has it.
        what: &'static str,
        /// Its value.
        value: i64,
    },
    /// It contradicts itself.
    Contradiction(&'static str),
}

impl fmt::Display for ReportRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("report refused: ")?;
        match self {
            Self::TooMany { what, count, most } => {
                write!(f, "{count} {what}, and there may be {most}")
            }
            Self::TooLong { what, bytes } => write!(
                f,
                "{what} has {bytes} bytes, and may have {MOST_TEXT_BYTES}"
            ),
            Self::Name(why) => fmt::Display::fmt(why, f),
            Self::Machine(why) => write!(f, "machine: {why}"),
            Self::Number { what, value } => write!(f, "{what} {value} is not a number from 0 on"),
            Self::Contradiction(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for ReportRefused {}

impl From<NameRefused> for ReportRefused {
    fn from(why: NameRefused) -> Self {
        Self::Name(why)
    }
}

/// A report that can be used as it is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Report {
    pub(crate) shard: ShardId,
    pub(crate) identity: Identity,
    pub(crate) cycle: u64,
    pub(crate) address: String,
    pub(crate) provider: Provider,
    pub(crate) term_seen: u64,
    pub(crate) scope: Option<Scope>,
    pub(crate) digest: Vec<u8>,
    /// What it named; whether that is all of it is for the digest to say.
    pub(crate) named: Holdings,
    pub(crate) records: BTreeMap<TransferId, TransferRecord>,
    pub(crate) clusters: BTreeSet<ClusterId>,
    pub(crate) capabilities: BTreeSet<String>,
    pub(crate) acks: Vec<Ack>,
    pub(crate) summary: Summary,
    pub(crate) shortfalls: Vec<Shortfall>,
}

impl Report {
    pub(crate) fn check(facts: ReportFacts) -> Result<Self, ReportRefused> {
        let shard = ShardId::new(&facts.shard)?;
        bound("shortfalls", facts.shortfalls.len(), MOST_SHORTFALLS)?;
        bound("acks", facts.acks.len(), MOST_ACKS)?;
        bound("clusters", facts.clusters.len(), MOST_SERVED)?;
        bound("capabilities", facts.capabilities.len(), MOST_CAPABILITIES)?;
        bound("domains", facts.domains.len(), MOST_HELD)?;
        bound("exceptions", facts.exceptions.len(), MOST_EXCEPTIONS)?;
        bound("transfers", facts.transfers.len(), MOST_RECORDS)?;
        short("shard_address", &facts.address)?;
        short("provider_address", &facts.provider)?;
        for text in &facts.capabilities {
            short("a capability", text)?;
        }
        check_summary(&facts.summary)?;
        let identity = Identity {
            epoch: number("shard_epoch", facts.epoch)?,
            directory: (facts.directory != 0).then_some(facts.directory),
            process: process(&facts.process)?,
        };
        let named = holdings(facts.scope, &facts.domains, &facts.exceptions)?;
        let records = records(&shard, &facts.transfers)?;
        check_scope(
            facts.scope,
            identity.directory,
            &facts.digest,
            &named,
            &records,
        )?;
        let fitting = facts.clusters.iter().filter(|id| is_id(id));
        let shortfalls = facts.shortfalls.into_iter().map(shortfall);
        Ok(Self {
            identity,
            cycle: number("cycle", facts.cycle)?,
            provider: Provider::of(&shard, &facts.provider),
            shard,
            address: facts.address,
            term_seen: number("coordinator_term_seen", facts.term_seen)?,
            scope: facts.scope,
            digest: facts.digest,
            named,
            records,
            clusters: fitting.filter_map(|id| ClusterId::new(id).ok()).collect(),
            capabilities: facts.capabilities.into_iter().collect(),
            acks: facts.acks,
            summary: facts.summary,
            shortfalls: shortfalls.collect::<Result<_, _>>()?,
        })
    }

    /// Whether anything is on the shard's disk.
    pub(crate) fn has_records(&self) -> bool {
        self.scope.is_some()
    }
}

fn bound(what: &'static str, count: usize, most: usize) -> Result<(), ReportRefused> {
    if most < count {
        return Err(ReportRefused::TooMany { what, count, most });
    }
    Ok(())
}

fn short(what: &'static str, text: &str) -> Result<(), ReportRefused> {
    let bytes = text.len();
    if MOST_TEXT_BYTES < bytes {
        return Err(ReportRefused::TooLong { what, bytes });
    }
    Ok(())
}

fn number(what: &'static str, value: i64) -> Result<u64, ReportRefused> {
    u64::try_from(value).map_err(|_| ReportRefused::Number { what, value })
}

fn process(text: &str) -> Result<u64, ReportRefused> {
    let digits = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    match u64::from_str_radix(text, 16) {
        Ok(process) if text.len() == 16 && digits => Ok(process),
        // A shard of an earlier version does not say it.
        Err(_) if text.is_empty() => Ok(0),
        Ok(_) | Err(_) => Err(ReportRefused::Contradiction(
            "process is not 16 hexadecimal digits",
        )),
    }
}

fn machine(text: &str) -> Result<MachineId, ReportRefused> {
    MachineId::new(text).map_err(ReportRefused::Machine)
}

fn optional<T>(
    text: &str,
    read: impl Fn(&str) -> Result<T, NameRefused>,
) -> Result<Option<T>, NameRefused> {
    if text.is_empty() {
        return Ok(None);
    }
    read(text).map(Some)
}

fn holdings(
    scope: Option<Scope>,
    domains: &[String],
    exceptions: &[ExceptionFacts],
) -> Result<Holdings, ReportRefused> {
    let domains = domains.iter().map(|text| Domain::parse(text));
    let mut named = Holdings {
        everything: scope == Some(Scope::Everything),
        domains: domains.collect::<Result<_, _>>()?,
        exceptions: BTreeMap::new(),
    };
    for facts in exceptions {
        let exception = Exception {
            kind: facts.kind,
            transfer: optional(&facts.transfer, TransferId::new)?,
            peer: optional(&facts.peer, ShardId::new)?,
            domain: optional(&facts.domain, Domain::parse)?,
            stamp: facts.stamp,
        };
        let machine = machine(&facts.machine)?;
        if named.exceptions.insert(machine, exception).is_some() {
            let why = "a machine has two exceptions";
            return Err(ReportRefused::Contradiction(why));
        }
    }
    Ok(named)
}

fn records(
    shard: &ShardId,
    transfers: &[TransferFacts],
) -> Result<BTreeMap<TransferId, TransferRecord>, ReportRefused> {
    let mut records = BTreeMap::new();
    for facts in transfers {
        bound("machines in a transfer", facts.machines.len(), MOST_MOVED)?;
        let machines = facts.machines.iter().map(|id| machine(id));
        let record = TransferRecord {
            state: facts.state,
            machines: machines.collect::<Result<_, _>>()?,
            peer: optional(&facts.peer, ShardId::new)?,
            domain: optional(&facts.domain, Domain::parse)?,
            stamp: facts.stamp,
            expires: facts.expires,
        };
        let is_donor = matches!(facts.state, RecordState::Reserved | RecordState::Released);
        if record.peer.as_ref() == Some(shard) || (is_donor && record.peer.is_none()) {
            let why = "a transfer has no other side";
            return Err(ReportRefused::Contradiction(why));
        }
        let id = TransferId::new(&facts.id)?;
        if records.insert(id, record).is_some() {
            let why = "a transfer has two records";
            return Err(ReportRefused::Contradiction(why));
        }
    }
    Ok(records)
}

/// A shard says the same of its disk in every field that speaks of it.
fn check_scope(
    scope: Option<Scope>,
    directory: Option<u64>,
    digest: &[u8],
    named: &Holdings,
    records: &BTreeMap<TransferId, TransferRecord>,
) -> Result<(), ReportRefused> {
    let refuse = |why| Err(ReportRefused::Contradiction(why));
    match scope {
        Some(Scope::Wait) => refuse("scope WAIT is an answer, not something a shard has"),
        Some(Scope::Everything | Scope::Assigned) if digest.len() != 32 => {
            refuse("domains_digest is not a SHA-256")
        }
        Some(Scope::Everything | Scope::Assigned) => Ok(()),
        // A shard of an earlier version says neither directory nor scope, and is never told anything.
        None if directory.is_none() => Ok(()),
        None if !digest.is_empty() => refuse("there is a domains_digest, and no scope"),
        None => {
            let is_empty = named.domains.is_empty() && named.exceptions.is_empty();
            if is_empty && records.is_empty() {
                return Ok(());
            }
            refuse("something is on its disk, and there is no scope")
        }
    }
}

fn check_summary(summary: &Summary) -> Result<(), ReportRefused> {
    bound("pools", summary.pools.len(), MOST_POOLS)?;
    bound(
        "instance types",
        summary.by_instance_type.len(),
        MOST_COUNTED,
    )?;
    bound("zones", summary.by_zone.len(), MOST_COUNTED)?;
    let counted = summary
        .by_instance_type
        .keys()
        .chain(summary.by_zone.keys());
    let pools = summary.pools.iter();
    let pooled = pools.flat_map(|pool| [&pool.instance_type, &pool.zone]);
    for text in counted.chain(pooled) {
        short("an instance type or zone", text)?;
    }
    Ok(())
}

fn shortfall(mut line: Shortfall) -> Result<Shortfall, ReportRefused> {
    bound("requirements", line.requirements.len(), MOST_REQUIREMENTS)?;
    short("profile_fingerprint", &line.fingerprint)?;
    for requirement in &line.requirements {
        bound(
            "values of a requirement",
            requirement.values.len(),
            MOST_VALUES,
        )?;
        short("a requirement's key", &requirement.key)?;
        for value in &requirement.values {
            short("a requirement's value", value)?;
        }
    }
    let mut operators = line.requirements.iter().map(|one| one.operator);
    line.constrained |= operators.any(|operator| operator == Some(Operator::Same));
    Ok(line)
}
