//! Draft: tables as they would be, without touching them.
//!
//! Rules that build on each other read through a draft and write into it; what is left at its end is what differs. So a leader can
//! ask what a report would change without a copy of the tables, and applying takes the same path.

use std::collections::{BTreeMap, BTreeSet};

use bigfleet_model::MachineId;

use super::{DomainRow, MachineRow, Tables, Transfer, TransferState};
use crate::{
    Domain, Provider, ShardId, TransferId,
    limits::{MOST_DOMAINS, MOST_ROWS, MOST_TRANSFERS},
};

/// What a draft differs in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    pub(super) domains: BTreeMap<Domain, DomainRow>,
    pub(super) everything: BTreeMap<Provider, Option<ShardId>>,
    pub(super) rows: BTreeMap<MachineId, Option<MachineRow>>,
    pub(super) transfers: BTreeMap<TransferId, Option<Transfer>>,
    pub(super) minted: u64,
}

impl Changes {
    pub(crate) fn is_empty(&self) -> bool {
        let Self {
            domains,
            everything,
            rows,
            transfers,
            minted: _,
        } = self;
        domains.is_empty() && everything.is_empty() && rows.is_empty() && transfers.is_empty()
    }
}

pub(crate) struct Draft<'a> {
    base: &'a Tables,
    changes: Changes,
}

impl<'a> Draft<'a> {
    pub(crate) fn new(base: &'a Tables) -> Self {
        let changes = Changes {
            minted: base.scalars.minted,
            ..Changes::default()
        };
        Self { base, changes }
    }

    pub(crate) fn base(&self) -> &'a Tables {
        self.base
    }

    pub(crate) fn domain(&self, domain: &Domain) -> DomainRow {
        let drafted = self.changes.domains.get(domain);
        let row = drafted.or_else(|| self.base.domains.row(domain));
        row.cloned().unwrap_or_default()
    }

    /// Says who has a domain. A table that is full takes no new row.
    pub(crate) fn set_holder(&mut self, domain: &Domain, holder: Option<ShardId>) {
        let is_new = self.base.domains.row(domain).is_none();
        let rows = self.base.domains.rows().len() + self.changes.domains.len();
        if is_new && MOST_DOMAINS <= rows {
            return;
        }
        let row = DomainRow {
            holder,
            ..self.domain(domain)
        };
        self.changes.domains.insert(domain.clone(), row);
    }

    pub(crate) fn everything(&self, provider: &Provider) -> Option<ShardId> {
        let drafted = self.changes.everything.get(provider).cloned();
        drafted.unwrap_or_else(|| self.base.domains.everything(provider).cloned())
    }

    pub(crate) fn set_everything(&mut self, provider: &Provider, holder: Option<ShardId>) {
        self.changes.everything.insert(provider.clone(), holder);
    }

    /// Whether somebody shall have, or has, a domain of this provider.
    pub(crate) fn has_domains(&self, provider: &Provider) -> bool {
        let domains = &self.base.domains;
        let before = self.base.registry.on(provider).flat_map(|shard| {
            let (desired, held) = (domains.desired_by(shard), domains.held_by(shard));
            desired.iter().chain(held)
        });
        let drafted = self.changes.domains.keys();
        let is_there = |domain: &Domain| self.domain(domain) != DomainRow::default();
        before.chain(drafted).any(is_there)
    }

    /// Whether a shard has a domain, by itself or with everything.
    pub(crate) fn covers(
        &self,
        shard: &ShardId,
        provider: &Provider,
        domain: Option<&Domain>,
    ) -> bool {
        let holder = domain.and_then(|domain| self.domain(domain).holder);
        holder.as_ref() == Some(shard) || self.everything(provider).as_ref() == Some(shard)
    }

    pub(crate) fn row(&self, machine: &MachineId) -> Option<MachineRow> {
        let drafted = self.changes.rows.get(machine).cloned();
        drafted.unwrap_or_else(|| self.base.ledger.row(machine).cloned())
    }

    /// Writes a row. A table that is full takes no new one.
    pub(crate) fn set_row(&mut self, machine: &MachineId, row: Option<MachineRow>) {
        let is_new = row.is_some() && self.base.ledger.row(machine).is_none();
        if is_new && MOST_ROWS <= self.base.ledger.rows().len() + self.changes.rows.len() {
            return;
        }
        self.changes.rows.insert(machine.clone(), row);
    }

    /// The machines on record as a shard's.
    pub(crate) fn rows_of(&self, shard: &ShardId) -> Vec<(MachineId, MachineRow)> {
        let before = self.base.ledger.rows_of(shard);
        let known: BTreeSet<&MachineId> = before.chain(self.changes.rows.keys()).collect();
        let rows = known.into_iter();
        let rows = rows.filter_map(|machine| Some((machine.clone(), self.row(machine)?)));
        rows.filter(|(_, row)| row.owner == *shard).collect()
    }

    /// Hands the machines of a transfer to a shard.
    pub(crate) fn give_rows(
        &mut self,
        id: &TransferId,
        transfer: &Transfer,
        provider: &Provider,
        owner: &ShardId,
    ) {
        for machine in &transfer.machines {
            let row = MachineRow {
                transfer: id.clone(),
                domain: transfer.domain.clone(),
                provider: provider.clone(),
                owner: owner.clone(),
            };
            self.set_row(machine, Some(row));
        }
    }

    pub(crate) fn transfer(&self, id: &TransferId) -> Option<Transfer> {
        let drafted = self.changes.transfers.get(id).cloned();
        drafted.unwrap_or_else(|| self.base.ledger.transfer(id).cloned())
    }

    pub(crate) fn set_transfer(&mut self, id: &TransferId, transfer: Option<Transfer>) {
        self.changes.transfers.insert(id.clone(), transfer);
    }

    /// Whether there is room for another transfer.
    pub(crate) fn has_room(&self) -> bool {
        self.base.ledger.transfers().len() + self.changes.transfers.len() < MOST_TRANSFERS
    }

    /// The transfers a shard is a side of.
    pub(crate) fn transfers_of(&self, shard: &ShardId) -> Vec<(TransferId, Transfer)> {
        let before = self.base.ledger.transfers_of(shard);
        let known: BTreeSet<&TransferId> = before.chain(self.changes.transfers.keys()).collect();
        let all = known.into_iter();
        let all = all.filter_map(|id| Some((id.clone(), self.transfer(id)?)));
        let is_side = |one: &Transfer| one.to == *shard || one.from.as_ref() == Some(shard);
        all.filter(|(_, transfer)| is_side(transfer)).collect()
    }

    /// Closes a transfer's sides that are gone, and deletes it once it is over.
    pub(crate) fn settle(&mut self, id: &TransferId, mut transfer: Transfer) {
        let registry = &self.base.registry;
        if transfer.state != TransferState::Moving {
            let is_gone = |side: &ShardId| registry.is_gone(side);
            transfer.from_closed |= transfer.from.as_ref().is_none_or(is_gone);
            transfer.to_closed |= is_gone(&transfer.to);
        }
        let is_over = transfer.state != TransferState::Moving && transfer.is_over();
        self.set_transfer(id, (!is_over).then_some(transfer));
    }

    /// The id of a transfer the tables begin.
    pub(crate) fn mint(&mut self) -> TransferId {
        self.changes.minted += 1;
        TransferId::minted(self.base.scalars.reign, self.changes.minted)
    }

    /// What differs.
    pub(crate) fn finish(self) -> Changes {
        let Self { base, mut changes } = self;
        let (domains, ledger) = (&base.domains, &base.ledger);
        let nobody = DomainRow::default();
        let is_new =
            |domain: &Domain, row: &mut DomainRow| domains.row(domain).unwrap_or(&nobody) != row;
        changes.domains.retain(is_new);
        let everything = &mut changes.everything;
        everything.retain(|at, holder| domains.everything(at) != holder.as_ref());
        let rows = &mut changes.rows;
        rows.retain(|machine, row| ledger.row(machine) != row.as_ref());
        let transfers = &mut changes.transfers;
        transfers.retain(|id, transfer| ledger.transfer(id) != transfer.as_ref());
        changes
    }
}
