//! Ledger: machines that do not follow their domain, and the transfers that move them.
//!
//! ```text
//! row(machine)   transfer, domain, provider, owner     written before its owner is told to claim it
//! transfer       MOVING ─▶ DONE ────────▶ deleted      once both sides have closed it
//!                   └────▶ RETURNING ───▶ deleted      once the donor has
//! ```

use std::collections::{BTreeMap, BTreeSet};

use bigfleet_model::MachineId;

use crate::{Domain, Provider, ShardId, TransferId};

/// A machine whose owner is not the holder of its domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineRow {
    /// The transfer that made it so.
    pub transfer: TransferId,
    /// The machine's domain, where one was said.
    pub domain: Option<Domain>,
    /// Its provider.
    pub provider: Provider,
    /// Whose it is.
    pub owner: ShardId,
}

/// How far a transfer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TransferState {
    /// Given up by the donor; the recipient is to claim the machines.
    Moving,
    /// Claimed.
    Done,
    /// Refused; the donor is to take the machines back.
    Returning,
}

/// Machines on their way from one shard to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The donor; `None` for machines that their owner lost sight of.
    pub from: Option<ShardId>,
    /// The recipient.
    pub to: ShardId,
    /// The machines: at most 50.
    pub machines: Vec<MachineId>,
    /// Their domain.
    pub domain: Option<Domain>,
    /// How far it is.
    pub state: TransferState,
    /// The donor has no record of it any more.
    pub from_closed: bool,
    /// The recipient has no record of it any more.
    pub to_closed: bool,
}

impl Transfer {
    pub(crate) fn is_over(&self) -> bool {
        let is_returned = self.state == TransferState::Returning;
        self.from_closed && (self.to_closed || is_returned)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ledger {
    rows: BTreeMap<MachineId, MachineRow>,
    rows_of: BTreeMap<ShardId, BTreeSet<MachineId>>,
    rows_in: BTreeMap<(Provider, Option<Domain>), BTreeSet<MachineId>>,
    transfers: BTreeMap<TransferId, Transfer>,
    transfers_of: BTreeMap<ShardId, BTreeSet<TransferId>>,
}

impl Ledger {
    pub(crate) fn row(&self, machine: &MachineId) -> Option<&MachineRow> {
        self.rows.get(machine)
    }

    pub(crate) fn rows(&self) -> impl ExactSizeIterator<Item = (&MachineId, &MachineRow)> {
        self.rows.iter()
    }

    pub(crate) fn transfer(&self, id: &TransferId) -> Option<&Transfer> {
        self.transfers.get(id)
    }

    pub(crate) fn transfers(&self) -> impl ExactSizeIterator<Item = (&TransferId, &Transfer)> {
        self.transfers.iter()
    }

    /// The machines on record as a shard's.
    pub(crate) fn rows_of(&self, shard: &ShardId) -> impl Iterator<Item = &MachineId> {
        self.rows_of.get(shard).into_iter().flatten()
    }

    /// The machines on record in a domain.
    pub(crate) fn rows_in(
        &self,
        provider: &Provider,
        domain: &Domain,
    ) -> impl Iterator<Item = &MachineId> {
        let key = (provider.clone(), Some(domain.clone()));
        self.rows_in.get(&key).into_iter().flatten()
    }

    /// The machines on record at a provider.
    pub(crate) fn rows_at<'a>(
        &'a self,
        provider: &'a Provider,
    ) -> impl Iterator<Item = &'a MachineId> {
        let from = self.rows_in.range((provider.clone(), None)..);
        let here = from.take_while(move |((at, _), _)| at == provider);
        here.flat_map(|(_, machines)| machines)
    }

    /// The transfers a shard is a side of.
    pub(crate) fn transfers_of(&self, shard: &ShardId) -> impl Iterator<Item = &TransferId> {
        self.transfers_of.get(shard).into_iter().flatten()
    }

    pub(crate) fn set_row(&mut self, machine: &MachineId, row: Option<MachineRow>) {
        if let Some(before) = self.rows.remove(machine) {
            drop_from(&mut self.rows_of, &before.owner, machine);
            let place = (before.provider, before.domain);
            drop_from(&mut self.rows_in, &place, machine);
        }
        let Some(row) = row else { return };
        let place = (row.provider.clone(), row.domain.clone());
        let owned = self.rows_of.entry(row.owner.clone()).or_default();
        owned.insert(machine.clone());
        let placed = self.rows_in.entry(place).or_default();
        placed.insert(machine.clone());
        self.rows.insert(machine.clone(), row);
    }

    pub(crate) fn set_transfer(&mut self, id: &TransferId, transfer: Option<Transfer>) {
        if let Some(before) = self.transfers.remove(id) {
            for side in before.from.iter().chain([&before.to]) {
                drop_from(&mut self.transfers_of, side, id);
            }
        }
        let Some(transfer) = transfer else { return };
        for side in transfer.from.iter().chain([&transfer.to]) {
            let of_side = self.transfers_of.entry(side.clone()).or_default();
            of_side.insert(id.clone());
        }
        self.transfers.insert(id.clone(), transfer);
    }
}

fn drop_from<K: Ord + Clone, V: Ord>(index: &mut BTreeMap<K, BTreeSet<V>>, key: &K, value: &V) {
    if let Some(values) = index.get_mut(key) {
        values.remove(value);
        if values.is_empty() {
            index.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_follow_rows_and_transfers() {
        let shard = |id| ShardId::new(id).unwrap();
        let machine = |id| MachineId::new(id).unwrap();
        let (id, m1) = (TransferId::new("7-1").unwrap(), machine("m1"));
        let (here, there) = (Provider::At("a:1".into()), Provider::At("b:1".into()));
        let domain = Domain::parse("z=a").unwrap();
        let row = |owner, provider: &Provider| {
            Some(MachineRow {
                transfer: id.clone(),
                domain: Some(domain.clone()),
                provider: provider.clone(),
                owner: shard(owner),
            })
        };
        let mut ledger = Ledger::default();
        ledger.set_row(&m1, row("s1", &here));
        ledger.set_row(&machine("m2"), row("s1", &there));
        assert_eq!(ledger.rows_of(&shard("s1")).count(), 2);
        assert_eq!(ledger.rows_at(&here).collect::<Vec<_>>(), [&m1]);
        assert_eq!(ledger.rows_in(&here, &domain).count(), 1);
        ledger.set_row(&m1, row("s2", &here));
        assert_eq!(ledger.rows_of(&shard("s1")).count(), 1);
        let transfer = Transfer {
            from: Some(shard("s1")),
            to: shard("s2"),
            machines: vec![m1.clone()],
            domain: None,
            state: TransferState::Moving,
            from_closed: false,
            to_closed: false,
        };
        ledger.set_transfer(&id, Some(transfer));
        assert_eq!(ledger.transfers_of(&shard("s2")).count(), 1);
        ledger.set_transfer(&id, None);
        ledger.set_row(&m1, None);
        ledger.set_row(&machine("m2"), None);
        assert_eq!(ledger, Ledger::default(), "nothing is left behind");
    }
}
