//! Restore: after a backup was put back, the tables become what shards say they are (CO-46).
//!
//! ```text
//! backup ─▶ restored: reports are taken, nothing is told ─▶ every shard heard ─▶ FinishRestore ─▶ as usual
//! ```
//!
//! A backup is older than what happened after it. Who holds what is the shards' to say: they have it on disk, and they went
//! on acting on it. Of contradicting words about a machine the one with the greatest stamp came last.

use std::collections::{BTreeMap, BTreeSet};

use bigfleet_model::MachineId;

use super::{Changes, Draft, MachineRow, Tables, Transfer, TransferState};
use crate::{
    Defect, ExceptionKind, Facts, RecordState, Refused, ShardId, Stamp, TransferId, TransferRecord,
};

/// What these words make of the tables.
pub(super) fn plan(
    tables: &Tables,
    facts: &BTreeMap<ShardId, Facts>,
    defect: Option<Defect>,
) -> Result<Changes, Refused> {
    if !tables.scalars.restored {
        return Err(Refused::NotRestored);
    }
    // A shard that was removed may run all the same, and hold what the backup does not know.
    let known = tables.registry.known().into_iter();
    let missing = known.filter(|shard| !facts.contains_key(shard));
    let missing: Vec<ShardId> = missing.cloned().collect();
    if !missing.is_empty() && defect != Some(Defect::RestoreDoesNotWait) {
        return Err(Refused::NotHeard(missing));
    }
    let mut rebuilt = Rebuilt {
        draft: Draft::new(tables),
        facts,
        stamps: stamps(facts),
    };
    if defect != Some(Defect::RestoreNotRebuilt) {
        rebuilt.holders();
        rebuilt.rows();
        rebuilt.transfers();
    }
    Ok(rebuilt.draft.finish())
}

struct Rebuilt<'a> {
    draft: Draft<'a>,
    facts: &'a BTreeMap<ShardId, Facts>,
    /// The greatest stamp on each machine.
    stamps: BTreeMap<&'a MachineId, Stamp>,
}

fn stamps(facts: &BTreeMap<ShardId, Facts>) -> BTreeMap<&MachineId, Stamp> {
    let mut greatest: BTreeMap<&MachineId, Stamp> = BTreeMap::new();
    let mut note = |machine, stamp: Stamp| {
        let known = greatest.entry(machine).or_default();
        *known = stamp.max(*known);
    };
    for facts in facts.values() {
        let held = facts.holdings.iter();
        for (machine, exception) in held.flat_map(|held| &held.exceptions) {
            note(machine, exception.stamp);
        }
        for record in facts.records.values() {
            record
                .machines
                .iter()
                .for_each(|machine| note(machine, record.stamp));
        }
    }
    greatest
}

impl Rebuilt<'_> {
    /// Who holds a domain, or everything, says so; of two the first by id.
    fn holders(&mut self) {
        let base = self.draft.base();
        for (domain, row) in base.domains.rows() {
            if row.holder.is_some() {
                self.draft.set_holder(domain, None);
            }
        }
        for (provider, _) in base.domains.all_everything() {
            self.draft.set_everything(provider, None);
        }
        for (shard, facts) in self.facts {
            let Some(provider) = base.registry.reporting(shard) else {
                continue;
            };
            for domain in facts.domains() {
                if self.draft.domain(domain).holder.is_none() {
                    self.draft.set_holder(domain, Some(shard.clone()));
                }
            }
            if facts.holds_everything() && self.draft.everything(provider).is_none() {
                self.draft.set_everything(provider, Some(shard.clone()));
            }
        }
    }

    fn rows(&mut self) {
        let base = self.draft.base();
        let away = self.facts.values().flat_map(|facts| {
            let away = facts.exceptions(ExceptionKind::Away);
            away.map(|(machine, _)| machine)
        });
        let away: BTreeSet<&MachineId> = away.collect();
        for (machine, row) in base.ledger.rows() {
            let owner = self.facts.get(&row.owner);
            let is_forgetful = owner.is_some_and(|facts| facts.holdings.is_none());
            if !(is_forgetful && away.contains(machine)) {
                self.draft.set_row(machine, None);
            }
        }
        for (shard, facts) in self.facts {
            let Some(provider) = base.registry.reporting(shard) else {
                continue;
            };
            for (machine, guest) in facts.exceptions(ExceptionKind::Guest) {
                let is_last = self.stamps.get(machine) == Some(&guest.stamp);
                if let Some(transfer) = guest.transfer.as_ref().filter(|_| is_last) {
                    let row = MachineRow {
                        transfer: transfer.clone(),
                        domain: guest.domain.clone(),
                        provider: provider.clone(),
                        owner: shard.clone(),
                    };
                    self.draft.set_row(machine, Some(row));
                }
            }
        }
    }

    fn transfers(&mut self) {
        for (id, transfer) in self.draft.base().ledger.transfers() {
            // One with records has claimed them, or says nothing of them and they go home.
            let is_awaited = transfer.from.is_none() && transfer.state == TransferState::Moving;
            let to = self.facts.get(&transfer.to);
            let is_awaited = is_awaited && to.is_some_and(|facts| facts.holdings.is_none());
            let is_still_its = |machine| {
                let row = self.draft.row(machine);
                row.is_some_and(|row| row.owner == transfer.to && row.transfer == *id)
            };
            if !(is_awaited && transfer.machines.iter().all(is_still_its)) {
                self.draft.set_transfer(id, None);
            }
        }
        for (donor, facts) in self.facts {
            for (id, record) in &facts.records {
                if record.state == RecordState::Released {
                    self.released(donor, id, record);
                }
            }
        }
    }

    fn released(&mut self, donor: &ShardId, id: &TransferId, record: &TransferRecord) {
        let base = self.draft.base();
        let provider = base.registry.reporting(donor);
        let (Some(provider), Some(to)) = (provider, &record.peer) else {
            return;
        };
        let mut machines = record.machines.iter();
        let is_done = machines.any(|machine| {
            let is_later = self
                .stamps
                .get(machine)
                .is_some_and(|stamp| record.stamp < *stamp);
            is_later || self.is_home(donor, record, machine)
        });
        let refused = self.facts.get(to).and_then(|facts| facts.state(id));
        let is_back = refused == Some(RecordState::Refused) || base.registry.is_gone(to);
        let (state, owner) = match (is_done, is_back) {
            (true, _) => (TransferState::Done, None),
            (false, true) => (TransferState::Returning, Some(donor)),
            (false, false) => (TransferState::Moving, Some(to)),
        };
        let transfer = Transfer {
            from: Some(donor.clone()),
            to: to.clone(),
            machines: record.machines.clone(),
            domain: record.domain.clone(),
            state,
            from_closed: false,
            to_closed: false,
        };
        if let Some(owner) = owner {
            self.draft.give_rows(id, &transfer, provider, owner);
        }
        self.draft.set_transfer(id, Some(transfer));
    }

    /// Whether another shard has a machine by its domain, without exception: then it came home.
    fn is_home(&self, donor: &ShardId, record: &TransferRecord, machine: &MachineId) -> bool {
        let registry = &self.draft.base().registry;
        self.facts.iter().any(|(shard, facts)| {
            let is_there = registry.provider(shard) == registry.provider(donor);
            let is_held = record
                .domain
                .as_ref()
                .is_some_and(|domain| facts.holds(domain));
            let has_it = is_held || (is_there && facts.holds_everything());
            shard != donor && has_it && facts.exception(machine).is_none()
        })
    }
}
