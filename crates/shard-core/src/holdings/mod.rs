//! Holdings: which unbound machines this shard may act on, as its disk has it (CO-16, CO-25, CO-26).
//!
//! ```text
//! answer ─▶ scope, domains, exceptions ─▶ records ─▶ disk ─▶ report
//!                └─▶ covers: is an unbound machine ours? ─▶ letting go of what is not
//! ```
//!
//! *Nothing on disk*, *everything* and *these domains, maybe none* are three different things. A shard that lost its disk is told
//! by the coordinator what it may have, and takes in no unbound machine before. A shard without a coordinator has no scope, and is
//! judged by SH-13 alone.
//!
//! **Invariant:** a domain is reported held until none of its machines can still be acquired here (CO-30).

mod kept;
mod letting_go;
mod watch;

pub use kept::{
    Exception, ExceptionKind, Held, HeldDomain, HeldScope, Stamp, ToldScope, TransferRecord,
    TransferRole, TransferState,
};

use crate::{
    defect::{AboveDefect, Defect},
    record::Record,
    settings::ShardConfig,
    uplink::{Disposition, Domain},
};
use bigfleet_model::{Machine, MachineId, Shape};
use letting_go::LettingGo;
use std::collections::{BTreeMap, BTreeSet};
use watch::Watch;

/// Why an order is not carried out.
pub(crate) type Undone = (Disposition, String);

/// What this shard may act on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Holdings {
    /// `None` for a shard that runs without a coordinator and never heard one.
    scope: Option<HeldScope>,
    /// Domains that are this shard's by its own settings (CO-29).
    own: BTreeSet<Domain>,
    domains: BTreeMap<Domain, HeldDomain>,
    exceptions: BTreeMap<MachineId, Exception>,
    transfers: BTreeMap<String, TransferRecord>,
    /// Shards of which no process will ever run again: their marks count as none.
    gone: BTreeSet<String>,
    directory: Option<u64>,
    letting_go: LettingGo,
    watch: Watch,
    defect: Option<Defect>,
}

/// Recalling.
impl Holdings {
    pub(crate) fn new(config: &ShardConfig) -> Self {
        let own = config.own_domains.iter().cloned();
        Self {
            own: own.map(|(key, value)| Domain { key, value }).collect(),
            defect: config.defect,
            ..Self::default()
        }
    }

    pub(crate) fn recall_scope(&mut self, scope: HeldScope) {
        self.scope = Some(scope);
    }

    pub(crate) fn recall_domain(&mut self, domain: Domain, held: Option<HeldDomain>) {
        match held {
            Some(held) => drop(self.domains.insert(domain, held)),
            None => drop(self.domains.remove(&domain)),
        }
    }

    pub(crate) fn recall_exception(&mut self, machine: MachineId, exception: Option<Exception>) {
        match exception {
            Some(exception) => drop(self.exceptions.insert(machine, exception)),
            None => drop(self.exceptions.remove(&machine)),
        }
    }

    pub(crate) fn recall_transfer(&mut self, id: String, record: Option<TransferRecord>) {
        match record {
            Some(record) => drop(self.transfers.insert(id, record)),
            None => drop(self.transfers.remove(&id)),
        }
    }

    pub(crate) fn recall_gone(&mut self, shard: String) {
        self.gone.insert(shard);
    }

    pub(crate) fn recall_directory(&mut self, directory: u64) {
        self.directory = Some(directory);
    }

    /// Everything was recalled, by a process that has a coordinator: what it holds before it has heard anything. A directory that an
    /// earlier version wrote, or a shard without a coordinator, holds everything, unless it was limited by other means. A new
    /// one holds nothing (CO-26). Returns what to remember.
    pub(crate) fn begin(&mut self, has_past: bool, is_limited: bool) -> Option<Record> {
        if self.scope.is_some() {
            return None;
        }
        let is_limited = is_limited || !self.own.is_empty();
        let scope = match (has_past, is_limited) {
            (false, _) => HeldScope::Unsaid,
            (true, false) => HeldScope::Everything,
            (true, true) => HeldScope::Assigned,
        };
        Some(self.set_scope(scope))
    }

    /// Everything to remember of it.
    pub(crate) fn records(&self) -> Vec<Record> {
        let mut records = Vec::new();
        records.extend(self.scope.map(Record::Scope));
        records.extend(self.domains.iter().map(|(domain, held)| Record::Domain {
            domain: domain.clone(),
            held: Some(*held),
        }));
        records.extend(self.exceptions.iter().map(|(machine, one)| {
            let (machine, exception) = (machine.clone(), Some(Box::new(one.clone())));
            Record::Exception { machine, exception }
        }));
        records.extend(self.transfers.iter().map(|(id, one)| Record::Transfer {
            id: id.clone(),
            transfer: Some(Box::new(one.clone())),
        }));
        records.extend(self.gone.iter().cloned().map(Record::GoneShard));
        records
    }
}

/// Looking.
impl Holdings {
    /// Drawn with the data directory; `None` for a shard that has none.
    pub(crate) fn directory(&self) -> Option<u64> {
        self.directory
    }

    /// Whether SH-13 alone says what is whose: there is no coordinator, and there never was.
    pub(crate) fn is_alone(&self) -> bool {
        self.scope.is_none()
    }

    /// Whether a scope was ever told, or inherited: CO-25 says what is whose.
    pub(crate) fn is_told(&self) -> bool {
        !matches!(self.scope, None | Some(HeldScope::Unsaid))
    }

    /// Whether a coordinator is configured and nothing is on disk.
    pub(crate) fn is_unsaid(&self) -> bool {
        self.scope == Some(HeldScope::Unsaid)
    }

    /// What is held, as a report says it; `None` if nothing is on disk.
    pub(crate) fn held(&self) -> Option<Held> {
        let everything = match self.scope {
            None | Some(HeldScope::Unsaid) => return None,
            Some(HeldScope::Everything | HeldScope::EverythingLeaving) => true,
            Some(HeldScope::Assigned) => false,
        };
        Some(Held {
            everything,
            domains: self.domains.keys().chain(&self.own).cloned().collect(),
            exceptions: self.exceptions.clone(),
        })
    }

    pub(crate) fn transfers(&self) -> impl Iterator<Item = (&String, &TransferRecord)> {
        self.transfers.iter()
    }

    pub(crate) fn exceptions(&self) -> impl Iterator<Item = (&MachineId, &Exception)> {
        self.exceptions.iter()
    }

    /// Whether a machine is somebody else's although its domain is ours.
    pub(crate) fn is_away(&self, machine: &MachineId) -> bool {
        let exception = self.exceptions.get(machine);
        exception.is_some_and(|one| one.kind == ExceptionKind::Away)
    }

    /// Whether no process of this shard will ever run again.
    pub(crate) fn is_gone(&self, shard: &str) -> bool {
        self.gone.contains(shard)
    }

    /// Whether an unbound machine is ours (CO-25, last line).
    pub(crate) fn covers(&self, machine: &Machine) -> bool {
        match self.exceptions.get(machine.id()).map(|one| one.kind) {
            Some(ExceptionKind::Away) => return false,
            Some(ExceptionKind::Guest) => return true,
            None => {}
        }
        self.scope == Some(HeldScope::Everything) || self.covers_shape(machine.shape())
    }

    fn covers_shape(&self, shape: &Shape) -> bool {
        let mut own = self.own.iter();
        let mut staying = self.domains.iter().filter(|(_, held)| !held.leaving);
        own.any(|domain| is_inside(shape, domain))
            || staying.any(|(domain, _)| is_inside(shape, domain))
    }

    /// The held domain a machine lies in, if it lies in one.
    fn domain_of(&self, shape: &Shape) -> Option<&Domain> {
        let mut domains = self.domains.keys().chain(&self.own);
        domains.find(|domain| is_inside(shape, domain))
    }
}

/// Hearing.
impl Holdings {
    fn set_scope(&mut self, scope: HeldScope) -> Record {
        self.scope = Some(scope);
        self.letting_go.begin();
        self.watch.look_again();
        Record::Scope(scope)
    }

    fn set_domain(&mut self, domain: Domain, held: Option<HeldDomain>) -> Record {
        self.recall_domain(domain.clone(), held);
        self.letting_go.begin();
        self.watch.look_again();
        Record::Domain { domain, held }
    }

    /// An answer's scope. It decides once: for a shard that has nothing on disk (CO-26). An answer of an older coordinator says none,
    /// and means everything.
    pub(crate) fn hear_scope(&mut self, told: ToldScope) -> Option<Record> {
        if self.is_told() {
            return None;
        }
        let scope = match told {
            ToldScope::Wait => return None,
            ToldScope::Unsaid | ToldScope::Everything => HeldScope::Everything,
            ToldScope::Assigned => HeldScope::Assigned,
        };
        Some(self.set_scope(scope))
    }

    /// Shards that are gone for good.
    pub(crate) fn hear_gone(&mut self, shards: Vec<String>) -> Vec<Record> {
        let known = &mut self.gone;
        let new = shards
            .into_iter()
            .filter(|shard| known.insert(shard.clone()));
        let mut records: Vec<Record> = new.map(Record::GoneShard).collect();
        if !records.is_empty() {
            // What it sent last may still arrive.
            let held: Vec<(Domain, HeldDomain)> = self
                .domains
                .iter()
                .map(|(domain, held)| (domain.clone(), *held))
                .collect();
            for (domain, held) in held {
                self.watch.begin_anew(&domain);
                let shared = true;
                records.push(self.set_domain(domain, Some(HeldDomain { shared, ..held })));
            }
        }
        records
    }

    /// A machine of a domain of ours is somebody else's; `None` if that is known. A guest is ours by a later word.
    pub(crate) fn hear_foreign(
        &mut self,
        machine: &MachineId,
        known: Option<&Machine>,
    ) -> Option<Record> {
        let is_taken_in = Some(Defect::Above(AboveDefect::ForeignTakenIn)) == self.defect;
        if self.exceptions.contains_key(machine) || is_taken_in {
            return None;
        }
        let domain = known.and_then(|known| self.domain_of(known.shape()));
        let away = Exception {
            kind: ExceptionKind::Away,
            transfer: String::new(),
            peer: String::new(),
            domain: domain.cloned(),
            stamp: Stamp::default(),
        };
        self.exceptions.insert(machine.clone(), away.clone());
        Some(Record::Exception {
            machine: machine.clone(),
            exception: Some(Box::new(away)),
        })
    }

    /// A domain is ours from here on. Whoever held everything lets the rest go.
    pub(crate) fn assign(&mut self, domain: Domain) -> Vec<Record> {
        let mut records = self.end_everything();
        let known = self.domains.get(&domain).copied();
        let held = HeldDomain {
            leaving: false,
            shared: known.is_none_or(|known| known.shared),
        };
        if known != Some(held) {
            records.push(self.set_domain(domain, Some(held)));
        }
        records
    }

    /// A domain is to be let go of. A holder of everything that is told so has to let everything go.
    pub(crate) fn unassign(&mut self, domain: Domain) -> Result<Vec<Record>, Undone> {
        if self.own.contains(&domain) {
            let reason = "configured here: --own-domain";
            return Err((Disposition::Failed, reason.to_owned()));
        }
        let mut records = self.end_everything();
        if let Some(known) = self.domains.get(&domain).copied() {
            let leaving = true;
            records.push(self.set_domain(domain, Some(HeldDomain { leaving, ..known })));
        }
        Ok(records)
    }

    fn end_everything(&mut self) -> Vec<Record> {
        let scope = match self.scope {
            Some(HeldScope::Everything) => HeldScope::EverythingLeaving,
            // Told by an older coordinator before any scope, or without one at all.
            None | Some(HeldScope::Unsaid) => HeldScope::Assigned,
            Some(HeldScope::EverythingLeaving | HeldScope::Assigned) => return Vec::new(),
        };
        vec![self.set_scope(scope)]
    }
}

/// Whether a machine of this shape lies in a domain.
pub(crate) fn is_inside(shape: &Shape, domain: &Domain) -> bool {
    shape.attribute(&domain.key) == Some(domain.value.as_str())
}
