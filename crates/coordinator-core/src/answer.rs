//! Answer: what a shard is told, from tables and its own words alone (CO-22).
//!
//! ```text
//! tables ──┐
//!          ├─▶ told ─▶ scope, confirmed, foreign, orders, gone
//! facts ───┘
//! ```
//!
//! Nothing waits in a queue: an order is derived again with every report for as long as it is wanted, and is gone when it is
//! not. So a new leader wants what the old one wanted, and what was lost on the way is said again.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use bigfleet_model::MachineId;

use crate::{
    Defect, Domain, Exception, ExceptionKind, Facts, Holdings, Provider, RecordState, Scope,
    ShardId, Stamp, Tables, Transfer, TransferId, TransferState, limits::MOST_INSTRUCTIONS,
};

/// The machines of a transfer, and who is on either side.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TransferStep {
    /// The transfer; `None` for machines that were only ever named as foreign.
    pub transfer: Option<TransferId>,
    /// The machines.
    pub machines: Vec<MachineId>,
    /// The donor; `None` where the tables began it.
    pub from: Option<ShardId>,
    /// The recipient.
    pub to: ShardId,
    /// The machines' domain.
    pub domain: Option<Domain>,
}

/// What a shard is to do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Order {
    /// Have a domain.
    AssignDomain(Domain),
    /// Let go of a domain.
    UnassignDomain(Domain),
    /// Take machines.
    Claim(TransferStep),
    /// Take machines back.
    Return(TransferStep),
}

/// One instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// 16 hexadecimal digits, the same while the same thing is wanted in this reign (CO-23).
    pub id: String,
    /// Its reign and number.
    pub stamp: Stamp,
    /// What to do.
    pub order: Order,
}

/// The answer to a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The reign that gives it.
    pub reign: u64,
    /// Which unbound machines the shard may act on.
    pub scope: Scope,
    /// The next report shall name domains and exceptions.
    pub send_lists: bool,
    /// Transfers whose records may be closed.
    pub confirmed: Vec<TransferId>,
    /// Machines of its domains that are somebody else's.
    pub foreign: Vec<MachineId>,
    /// What to do, by number.
    pub instructions: Vec<Instruction>,
    /// Shards that are gone for good.
    pub gone: Vec<ShardId>,
    /// When the next report is wanted, if that is sooner than usual.
    pub next_report: Option<Duration>,
}

impl Answer {
    /// An answer that changes nothing.
    pub(crate) fn wait(reign: u64, send_lists: bool) -> Self {
        Self {
            reign,
            scope: Scope::Wait,
            send_lists,
            confirmed: Vec::new(),
            foreign: Vec::new(),
            instructions: Vec::new(),
            gone: Vec::new(),
            next_report: None,
        }
    }
}

/// What a shard is told, before its orders have numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) scope: Scope,
    pub(crate) confirmed: Vec<TransferId>,
    pub(crate) foreign: Vec<MachineId>,
    pub(crate) orders: Vec<Order>,
    pub(crate) is_busy: bool,
}

/// CO-22. `is_held_back` says which orders failed lately and are not to be given.
pub(crate) fn told(
    tables: &Tables,
    shard: &ShardId,
    facts: &Facts,
    is_held_back: impl Fn(&Order) -> bool,
    defect: Option<Defect>,
) -> Told {
    let Some(provider) = tables.registry().provider(shard) else {
        // Removed since it was heard: it registers again with its next report.
        return Told {
            scope: Scope::Wait,
            confirmed: Vec::new(),
            foreign: Vec::new(),
            orders: Vec::new(),
            is_busy: false,
        };
    };
    let view = View {
        tables,
        shard,
        provider,
        facts,
        defect,
    };
    let assigned = view.assigned().map(Order::AssignDomain);
    let unassigned = view.unassigned().into_iter().map(Order::UnassignDomain);
    let claims = view.claims().map(Order::Claim);
    let returns = view.returns().into_iter().map(Order::Return);
    let orders = assigned.chain(unassigned).chain(claims).chain(returns);
    let orders = orders.filter(|order| !is_held_back(order));
    let orders: Vec<Order> = orders.take(MOST_INSTRUCTIONS).collect();
    let has_everything = tables.domains().everything(provider) == Some(shard);
    Told {
        scope: if has_everything {
            Scope::Everything
        } else {
            Scope::Assigned
        },
        confirmed: view.confirmed(),
        foreign: view.foreign(&orders),
        is_busy: !facts.records.is_empty(),
        orders,
    }
}

/// The holdings a shard would name if it had heard everything, as far as tables know. If its digest is that of these, it need not
/// name them.
pub(crate) fn expected(tables: &Tables, shard: &ShardId) -> Holdings {
    let Some(provider) = tables.registry().provider(shard) else {
        return Holdings::default();
    };
    let (domains, ledger) = (tables.domains(), tables.ledger());
    let everything = domains.everything(provider) == Some(shard);
    let held = domains.held_by(shard).clone();
    let exception = |kind, machine: &MachineId| {
        let row = ledger.row(machine)?;
        let exception = Exception {
            kind,
            transfer: Some(row.transfer.clone()),
            peer: None,
            domain: row.domain.clone(),
            stamp: Stamp::default(),
        };
        Some((machine.clone(), exception))
    };
    let in_domains = held
        .iter()
        .flat_map(|domain| ledger.rows_in(provider, domain));
    let at_provider = ledger.rows_at(provider).filter(|_| everything);
    let is_anothers = |machine: &&MachineId| {
        let row = ledger.row(machine);
        row.is_some_and(|row| row.owner != *shard)
    };
    let away = in_domains.chain(at_provider).filter(is_anothers);
    let away = away.filter_map(|machine| exception(ExceptionKind::Away, machine));
    let is_guest = |machine: &&MachineId| {
        let row = ledger.row(machine);
        row.is_some_and(|row| {
            let transfer = ledger.transfer(&row.transfer);
            let is_here = transfer.is_none_or(|one| one.state == TransferState::Done);
            let is_covered = row
                .domain
                .as_ref()
                .is_some_and(|domain| held.contains(domain));
            is_here && !is_covered && !everything
        })
    };
    let guests = ledger.rows_of(shard).filter(is_guest);
    let guests = guests.filter_map(|machine| exception(ExceptionKind::Guest, machine));
    let exceptions = away.chain(guests).collect();
    Holdings {
        everything,
        domains: held,
        exceptions,
    }
}

struct View<'a> {
    tables: &'a Tables,
    shard: &'a ShardId,
    provider: &'a Provider,
    facts: &'a Facts,
    defect: Option<Defect>,
}

impl<'a> View<'a> {
    fn transfer(&self, id: &TransferId) -> Option<&'a Transfer> {
        self.tables.ledger().transfer(id)
    }

    /// Domains it shall have, has on record, and does not hold.
    fn assigned(&self) -> impl Iterator<Item = Domain> {
        let domains = self.tables.domains();
        let is_unrecorded = self.defect == Some(Defect::GrantedUnrecorded);
        let has =
            move |domain: &&Domain| is_unrecorded || domains.holder(domain) == Some(self.shard);
        let shall = domains.desired_by(self.shard).iter();
        let missing = shall.filter(has).filter(|domain| !self.facts.holds(domain));
        missing.cloned()
    }

    /// Domains it holds and shall not have. One that holds everything, without having it on record, is told by any domain of its
    /// provider that it shall not.
    fn unassigned(&self) -> BTreeSet<Domain> {
        let domains = self.tables.domains();
        let shall_not = |domain: &&Domain| domains.desired(domain) != Some(self.shard);
        let mut unassigned: BTreeSet<Domain> =
            self.facts.domains().filter(shall_not).cloned().collect();
        let has_everything = domains.everything(self.provider) == Some(self.shard);
        if self.facts.holds_everything() && !has_everything {
            let on_provider = self.tables.registry().on(self.provider);
            let ends = domains.ends(on_provider);
            unassigned.extend(ends.map(|(first, _)| first.clone()));
        }
        unassigned
    }

    fn claims(&self) -> impl Iterator<Item = TransferStep> {
        let ids = self.tables.ledger().transfers_of(self.shard);
        ids.filter_map(|id| {
            let transfer = self.transfer(id)?;
            let is_due = transfer.state == TransferState::Moving && transfer.to == *self.shard;
            let is_open = self.facts.records.contains_key(id);
            (is_due && !is_open).then(|| step(id, transfer))
        })
    }

    fn returns(&self) -> Vec<TransferStep> {
        let mut returns = Vec::new();
        for (id, record) in &self.facts.records {
            if record.state != RecordState::Released {
                continue;
            }
            if let Some(transfer) = self.transfer(id)
                && transfer.state == TransferState::Returning
            {
                returns.push(step(id, transfer));
            }
        }
        returns.extend(self.strays());
        returns
    }

    /// Machines it has away that are nobody else's any more.
    fn strays(&self) -> Vec<TransferStep> {
        let open = self.facts.open_machines();
        let ledger = self.tables.ledger();
        let ids = ledger.transfers_of(self.shard);
        let under_way = ids.filter_map(|id| self.transfer(id));
        let under_way = under_way.filter(|one| one.state != TransferState::Done);
        let under_way: BTreeSet<&MachineId> = under_way.flat_map(|one| &one.machines).collect();
        let mut strays: BTreeMap<Option<&TransferId>, TransferStep> = BTreeMap::new();
        for (machine, away) in self.facts.exceptions(ExceptionKind::Away) {
            let row = ledger.row(machine);
            let is_anothers = row.is_some_and(|row| row.owner != *self.shard);
            if is_anothers || open.contains(machine) || under_way.contains(machine) {
                continue;
            }
            let stray = strays
                .entry(away.transfer.as_ref())
                .or_insert_with(|| TransferStep {
                    transfer: away.transfer.clone(),
                    machines: Vec::new(),
                    from: Some(self.shard.clone()),
                    to: away.peer.clone().unwrap_or_else(|| self.shard.clone()),
                    domain: away.domain.clone(),
                });
            stray.machines.push(machine.clone());
        }
        strays.into_values().collect()
    }

    fn confirmed(&self) -> Vec<TransferId> {
        let is_over = |(id, record): &(&TransferId, &crate::TransferRecord)| {
            let state = self.transfer(id).map(|transfer| transfer.state);
            let is_done = state == Some(TransferState::Done);
            match record.state {
                RecordState::Reserved => false,
                RecordState::Released => is_done,
                RecordState::Claimed | RecordState::Refused => is_done || state.is_none(),
            }
        };
        let over = self.facts.records.iter().filter(is_over);
        over.map(|(id, _)| id.clone()).collect()
    }

    /// Machines of its domains that are somebody else's and that it does not have away. With a domain it is given now come all of
    /// them, and those on their way to it, which it gets by claiming them.
    fn foreign(&self, orders: &[Order]) -> Vec<MachineId> {
        if self.defect == Some(Defect::ForeignLeftOut) {
            return Vec::new();
        }
        let (domains, ledger) = (self.tables.domains(), self.tables.ledger());
        let given = orders.iter().filter_map(|order| match order {
            Order::AssignDomain(domain) => Some(domain),
            Order::UnassignDomain(_) | Order::Claim(_) | Order::Return(_) => None,
        });
        let given: BTreeSet<&Domain> = given.collect();
        let mut foreign = BTreeSet::new();
        let has_everything = domains.everything(self.provider) == Some(self.shard);
        let at_provider = ledger.rows_at(self.provider).filter(|_| has_everything);
        let held = domains.held_by(self.shard).iter();
        let in_domains = held.flat_map(|domain| ledger.rows_in(self.provider, domain));
        let in_given = given
            .iter()
            .flat_map(|domain| ledger.rows_in(self.provider, domain));
        for machine in at_provider.chain(in_domains).chain(in_given) {
            let Some(row) = ledger.row(machine) else {
                continue;
            };
            let is_given = row
                .domain
                .as_ref()
                .is_some_and(|domain| given.contains(domain));
            let is_new = is_given || self.facts.holdings.is_none();
            let exception = self.facts.exception(machine);
            let is_away = exception.is_some_and(|one| one.kind == ExceptionKind::Away);
            let is_anothers = row.owner != *self.shard;
            let transfer = self.transfer(&row.transfer);
            let is_moving = transfer.is_some_and(|one| one.state == TransferState::Moving);
            let is_foreign = if is_anothers {
                is_new || !is_away
            } else {
                is_new && is_moving
            };
            if is_foreign {
                foreign.insert(machine.clone());
            }
        }
        foreign.into_iter().collect()
    }
}

fn step(id: &TransferId, transfer: &Transfer) -> TransferStep {
    TransferStep {
        transfer: Some(id.clone()),
        machines: transfer.machines.clone(),
        from: transfer.from.clone(),
        to: transfer.to.clone(),
        domain: transfer.domain.clone(),
    }
}
