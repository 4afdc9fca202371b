//! A shard as the coordinator meets it: what it has on disk, what it reports, what it makes of an answer.
//!
//! It keeps the shard's side of the rules (CO-22 to CO-24) with the smallest machinery: whatever it hears is on disk at
//! once, and letting go takes until somebody says so.

use std::collections::{BTreeMap, BTreeSet};

use bigfleet_coordinator_core::{
    Ack, AckOutcome, Answer, Domain, Exception, ExceptionFacts, ExceptionKind, Holdings, Order,
    RecordState, ReportFacts, Scope, ShardId, Stamp, TransferFacts, TransferId, TransferRecord,
    TransferStep,
};
use bigfleet_model::MachineId;

use crate::support::sha256;

#[derive(Clone, Debug)]
pub(crate) struct Shard {
    pub(crate) id: ShardId,
    pub(crate) provider: String,
    pub(crate) epoch: u64,
    pub(crate) directory: u64,
    pub(crate) process: u64,
    pub(crate) cycle: u64,
    pub(crate) mark: u64,
    pub(crate) holdings: Option<Holdings>,
    pub(crate) leaving: BTreeSet<Domain>,
    pub(crate) is_leaving_everything: bool,
    pub(crate) records: BTreeMap<TransferId, TransferRecord>,
    pub(crate) clusters: Vec<String>,
    pub(crate) acks: Vec<Ack>,
    pub(crate) done: BTreeSet<String>,
    send_lists: bool,
    /// It claims nothing it is offered.
    pub(crate) refuses: bool,
    /// It fails whatever it is asked.
    pub(crate) outcome: AckOutcome,
}

impl Shard {
    pub(crate) fn new(id: &str, provider: &str) -> Self {
        Self {
            id: ShardId::new(id).unwrap(),
            provider: provider.to_owned(),
            epoch: 1,
            directory: 1,
            process: 1,
            cycle: 0,
            mark: 0,
            holdings: None,
            leaving: BTreeSet::new(),
            is_leaving_everything: false,
            records: BTreeMap::new(),
            clusters: Vec::new(),
            acks: Vec::new(),
            done: BTreeSet::new(),
            send_lists: false,
            refuses: false,
            outcome: AckOutcome::Accepted,
        }
    }

    /// Started again in its directory.
    pub(crate) fn restart(&mut self) {
        self.epoch += 1;
        self.process += 1;
        self.cycle = 0;
        self.acks.clear();
        self.send_lists = false;
    }

    /// Started again with an empty directory, and a floor for its epoch.
    pub(crate) fn lose_disk(&mut self) {
        self.restart();
        self.directory += 1000;
        self.mark = 0;
        self.holdings = None;
        self.leaving.clear();
        self.is_leaving_everything = false;
        self.records.clear();
        self.done.clear();
    }

    /// The next report. It names everything when it was asked to, or if `names` says so.
    pub(crate) fn report(&mut self) -> ReportFacts {
        self.cycle += 1;
        let mut report = ReportFacts {
            shard: self.id.to_string(),
            epoch: self.epoch as i64,
            cycle: self.cycle as i64,
            directory: self.directory,
            process: format!("{:016x}", self.process),
            address: format!("{}:7780", self.id),
            provider: self.provider.clone(),
            term_seen: self.mark as i64,
            clusters: self.clusters.clone(),
            acks: self.acks.clone(),
            ..ReportFacts::default()
        };
        if let Some(held) = &self.holdings {
            report.scope = Some(if held.everything {
                Scope::Everything
            } else {
                Scope::Assigned
            });
            report.digest = sha256(&held.lines()).to_vec();
            if self.send_lists {
                report.domains = held.domains.iter().map(ToString::to_string).collect();
                report.exceptions = held.exceptions.iter().map(exception).collect();
            }
        }
        report.transfers = self.records.iter().map(transfer).collect();
        report
    }

    /// An answer to the newest report.
    pub(crate) fn hear(&mut self, answer: &Answer) {
        if answer.reign < self.mark {
            return;
        }
        self.mark = answer.reign;
        self.acks.clear();
        self.send_lists = answer.send_lists;
        match (answer.scope, &self.holdings) {
            (Scope::Everything, None) => {
                self.holdings = Some(Holdings {
                    everything: true,
                    ..Holdings::default()
                });
            }
            (Scope::Assigned, None) => self.holdings = Some(Holdings::default()),
            (Scope::Wait | Scope::Everything | Scope::Assigned, _) => {}
        }
        if self.holdings.is_none() {
            return;
        }
        for id in &answer.confirmed {
            self.confirm(id);
        }
        for machine in &answer.foreign {
            self.keep_away(machine);
        }
        for instruction in &answer.instructions {
            self.obey(&instruction.id, instruction.stamp, &instruction.order);
        }
    }

    fn held(&mut self) -> &mut Holdings {
        self.holdings.as_mut().unwrap()
    }

    fn confirm(&mut self, id: &TransferId) {
        let Some(record) = self.records.remove(id) else {
            return;
        };
        if record.state == RecordState::Released {
            let is_held = self.covers(record.domain.as_ref());
            for machine in record.machines.iter().filter(|_| !is_held) {
                self.held().exceptions.remove(machine);
            }
        }
    }

    /// Whether a machine of this domain is its own for as long as nothing else is said of it.
    pub(crate) fn covers(&self, domain: Option<&Domain>) -> bool {
        let Some(held) = &self.holdings else {
            return false;
        };
        held.everything || domain.is_some_and(|domain| held.domains.contains(domain))
    }

    fn keep_away(&mut self, machine: &MachineId) {
        // Also one that it refused, and still has a record of.
        let known = self.held().exceptions.get(machine);
        if known.is_some_and(|one| one.kind == ExceptionKind::Guest) {
            return;
        }
        let away = Exception {
            kind: ExceptionKind::Away,
            transfer: None,
            peer: None,
            domain: Some(domain_of(machine)),
            stamp: Stamp::default(),
        };
        self.held()
            .exceptions
            .entry(machine.clone())
            .or_insert(away);
    }

    fn obey(&mut self, id: &str, stamp: Stamp, order: &Order) {
        let is_step = matches!(order, Order::Claim(_) | Order::Return(_));
        let mut outcome = self.outcome;
        if outcome == AckOutcome::Accepted && (is_step || !self.done.contains(id)) {
            outcome = self.carry_out(stamp, order);
        }
        if outcome == AckOutcome::Accepted {
            self.done.insert(id.to_owned());
        }
        let instruction = id.to_owned();
        self.acks.push(Ack {
            instruction,
            outcome,
        });
    }

    fn carry_out(&mut self, stamp: Stamp, order: &Order) -> AckOutcome {
        match order {
            Order::AssignDomain(domain) => {
                self.is_leaving_everything = self.held().everything;
                self.held().domains.insert(domain.clone());
                self.leaving.remove(domain);
            }
            Order::UnassignDomain(domain) => {
                self.is_leaving_everything = self.held().everything;
                if self.held().domains.contains(domain) {
                    self.leaving.insert(domain.clone());
                }
            }
            Order::Claim(step) => return self.claim(stamp, step),
            Order::Return(step) => {
                if let Some(id) = &step.transfer {
                    self.records.remove(id);
                }
                for machine in &step.machines {
                    let is_away = |one: &Exception| one.kind == ExceptionKind::Away;
                    if self.held().exceptions.get(machine).is_some_and(is_away) {
                        self.held().exceptions.remove(machine);
                    }
                }
            }
        }
        AckOutcome::Accepted
    }

    fn claim(&mut self, stamp: Stamp, step: &TransferStep) -> AckOutcome {
        let id = step.transfer.clone().unwrap();
        if let Some(record) = self.records.get(&id) {
            return if record.state == RecordState::Refused {
                AckOutcome::Failed
            } else {
                AckOutcome::Accepted
            };
        }
        let record = |state| TransferRecord {
            state,
            machines: step.machines.clone(),
            peer: step.from.clone(),
            domain: step.domain.clone(),
            stamp,
            expires: None,
        };
        if self.refuses {
            self.records.insert(id, record(RecordState::Refused));
            return AckOutcome::Failed;
        }
        self.records
            .insert(id.clone(), record(RecordState::Claimed));
        let is_leaving = self.is_leaving_everything
            || step
                .domain
                .as_ref()
                .is_some_and(|domain| self.leaving.contains(domain));
        let is_home = self.covers(step.domain.as_ref()) && !is_leaving;
        for machine in &step.machines {
            if is_home {
                self.held().exceptions.remove(machine);
            } else {
                let guest = Exception {
                    kind: ExceptionKind::Guest,
                    transfer: Some(id.clone()),
                    peer: step.from.clone(),
                    domain: step.domain.clone(),
                    stamp,
                };
                self.held().exceptions.insert(machine.clone(), guest);
            }
        }
        AckOutcome::Accepted
    }

    /// Everything it was to let go of is let go.
    pub(crate) fn let_go(&mut self) {
        let Some(held) = &mut self.holdings else {
            return;
        };
        let leaving = std::mem::take(&mut self.leaving);
        held.domains.retain(|domain| !leaving.contains(domain));
        if std::mem::take(&mut self.is_leaving_everything) {
            held.everything = false;
        }
        let open: BTreeSet<&MachineId> = self
            .records
            .values()
            .flat_map(|record| &record.machines)
            .collect();
        let (everything, domains) = (held.everything, held.domains.clone());
        held.exceptions.retain(|machine, one| {
            let domain = one.domain.as_ref();
            let is_held = everything || domain.is_some_and(|domain| domains.contains(domain));
            one.kind == ExceptionKind::Guest || is_held || open.contains(machine)
        });
    }

    /// Gives a machine up, as a donor that was told to.
    pub(crate) fn release(&mut self, id: &str, machine: &MachineId, to: &ShardId, stamp: Stamp) {
        let (transfer, domain) = (TransferId::new(id).unwrap(), domain_of(machine));
        let record = TransferRecord {
            state: RecordState::Released,
            machines: vec![machine.clone()],
            peer: Some(to.clone()),
            domain: Some(domain.clone()),
            stamp,
            expires: None,
        };
        let away = Exception {
            kind: ExceptionKind::Away,
            transfer: Some(transfer.clone()),
            peer: Some(to.clone()),
            domain: Some(domain),
            stamp,
        };
        self.records.insert(transfer, record);
        self.held().exceptions.insert(machine.clone(), away);
    }

    /// Whether it may act on an unbound machine.
    pub(crate) fn acts_on(&self, machine: &MachineId) -> bool {
        let Some(held) = &self.holdings else {
            return false;
        };
        match held.exceptions.get(machine).map(|one| one.kind) {
            Some(ExceptionKind::Away) => false,
            Some(ExceptionKind::Guest) => true,
            None => self.covers(Some(&domain_of(machine))),
        }
    }
}

/// Machine `a1` is in domain `zone=a`.
pub(crate) fn domain_of(machine: &MachineId) -> Domain {
    Domain::new("zone", &machine.as_str()[..1]).unwrap()
}

fn text(domain: Option<&Domain>) -> String {
    domain.map(ToString::to_string).unwrap_or_default()
}

fn exception((machine, one): (&MachineId, &Exception)) -> ExceptionFacts {
    ExceptionFacts {
        machine: machine.to_string(),
        kind: one.kind,
        transfer: one
            .transfer
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        peer: one
            .peer
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        domain: text(one.domain.as_ref()),
        stamp: one.stamp,
    }
}

fn transfer((id, record): (&TransferId, &TransferRecord)) -> TransferFacts {
    TransferFacts {
        id: id.to_string(),
        state: record.state,
        machines: record.machines.iter().map(ToString::to_string).collect(),
        peer: record
            .peer
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        domain: text(record.domain.as_ref()),
        stamp: record.stamp,
        expires: record.expires,
    }
}
