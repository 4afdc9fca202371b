//! Heard: what a shard's own words make of the tables (CO-20).
//!
//! ```text
//! it holds what nobody holds ─▶ noted       it let go of what it shall not have ─▶ free      free and wanted here ─▶ its own
//! RELEASED ─▶ MOVING ─▶ CLAIMED ─▶ DONE     REFUSED ─▶ RETURNING     no record left ─▶ closed, deleted
//! ```
//!
//! The rules run in their order over one draft. A loss counts because the shard itself said so, from its disk, in this
//! reign; a gain is on record here before anybody is told of it.

use bigfleet_model::MachineId;
use std::collections::BTreeMap;

use super::{Changes, Draft, MachineRow, Tables, Transfer, TransferState};
use crate::{
    Domain, ExceptionKind, Facts, Provider, RecordState, ShardId, TransferId, limits::MOST_MOVED,
};

/// What these words change.
pub(super) fn plan(
    tables: &Tables,
    shard: &ShardId,
    provider: &Provider,
    facts: &Facts,
) -> Changes {
    let mut heard = Heard {
        draft: Draft::new(tables),
        shard,
        provider,
        facts,
    };
    heard.note_held();
    heard.free_what_it_let_go();
    heard.note_released();
    heard.note_claimed();
    heard.note_refused();
    heard.close();
    heard.note_guests();
    heard.find_lost();
    heard.grant();
    heard.grant_everything();
    heard.draft.finish()
}

struct Heard<'a> {
    draft: Draft<'a>,
    shard: &'a ShardId,
    provider: &'a Provider,
    facts: &'a Facts,
}

impl Heard<'_> {
    /// 1: what it holds and nobody else does is its own.
    fn note_held(&mut self) {
        for domain in self.facts.domains() {
            if self.draft.domain(domain).holder.is_none() {
                self.draft.set_holder(domain, Some(self.shard.clone()));
            }
        }
        if self.facts.holds_everything() && self.draft.everything(self.provider).is_none() {
            let holder = Some(self.shard.clone());
            self.draft.set_everything(self.provider, holder);
        }
    }

    /// 2: what it shall not have and does not hold any more is free.
    fn free_what_it_let_go(&mut self) {
        let base = self.draft.base();
        for domain in base.domains.held_by(self.shard) {
            let is_wanted = self.draft.domain(domain).desired.as_ref() == Some(self.shard);
            if !is_wanted && !self.facts.holds(domain) {
                self.draft.set_holder(domain, None);
            }
        }
        // One without records may have lost them before it heard that everything is its own.
        let is_told = self.facts.holdings.is_some() || self.draft.has_domains(self.provider);
        for (provider, holder) in base.domains.all_everything() {
            let is_here = provider == self.provider;
            let is_kept = is_here && (self.facts.holds_everything() || !is_told);
            if holder == self.shard && !is_kept {
                self.draft.set_everything(provider, None);
            }
        }
    }

    /// 3: machines it gave up are the recipient's to claim.
    fn note_released(&mut self) {
        for (id, record) in &self.facts.records {
            if record.state != RecordState::Released || self.draft.transfer(id).is_some() {
                continue;
            }
            let Some(to) = record.peer.clone() else {
                continue;
            };
            if !self.draft.has_room() {
                continue;
            }
            let rows = record.machines.iter();
            let mut owners = rows.filter_map(|machine| Some(self.draft.row(machine)?.owner));
            let is_elsewhere = owners.any(|owner| owner != *self.shard);
            let is_to_gone = self.draft.base().registry.is_gone(&to);
            let (state, owner) = match (is_elsewhere, is_to_gone) {
                (true, _) => (TransferState::Done, None),
                (false, true) => (TransferState::Returning, Some(self.shard.clone())),
                (false, false) => (TransferState::Moving, Some(to.clone())),
            };
            let transfer = Transfer {
                from: Some(self.shard.clone()),
                to,
                machines: record.machines.clone(),
                domain: record.domain.clone(),
                state,
                from_closed: false,
                to_closed: false,
            };
            if let Some(owner) = owner {
                self.draft.give_rows(id, &transfer, self.provider, &owner);
            }
            self.draft.set_transfer(id, Some(transfer));
        }
    }

    /// 4: what it claimed has arrived.
    fn note_claimed(&mut self) {
        for (id, record) in &self.facts.records {
            if record.state != RecordState::Claimed {
                continue;
            }
            match self.draft.transfer(id) {
                Some(transfer) => {
                    // Somebody else's: no word of this shard changes it.
                    let is_ours = transfer.to == *self.shard;
                    if is_ours && transfer.state == TransferState::Moving {
                        let state = TransferState::Done;
                        let done = Transfer { state, ..transfer };
                        self.draft.set_transfer(id, Some(done));
                    }
                }
                None if self.draft.has_room() => self.note_claim_unheard_of(id),
                None => {}
            }
        }
    }

    fn note_claim_unheard_of(&mut self, id: &TransferId) {
        let Some(record) = self.facts.records.get(id) else {
            return;
        };
        let is_guest = |machine: &&MachineId| {
            let exception = self.facts.exception(machine);
            exception.is_some_and(|one| one.kind == ExceptionKind::Guest)
        };
        let guests = record.machines.iter().filter(is_guest).cloned();
        let mut transfer = Transfer {
            from: record.peer.clone(),
            to: self.shard.clone(),
            machines: guests.collect(),
            domain: record.domain.clone(),
            state: TransferState::Done,
            from_closed: record.peer.is_none(),
            to_closed: false,
        };
        self.draft
            .give_rows(id, &transfer, self.provider, self.shard);
        transfer.machines.clone_from(&record.machines);
        self.draft.set_transfer(id, Some(transfer));
    }

    /// 5: what it refused goes back.
    fn note_refused(&mut self) {
        for (id, record) in &self.facts.records {
            let Some(transfer) = self.draft.transfer(id) else {
                continue;
            };
            let is_ours = transfer.to == *self.shard && transfer.state == TransferState::Moving;
            if record.state == RecordState::Refused && is_ours {
                give_back(&mut self.draft, id, transfer);
            }
        }
    }

    /// 6: a side without a record has closed the transfer.
    fn close(&mut self) {
        for (id, mut transfer) in self.draft.transfers_of(self.shard) {
            if transfer.state == TransferState::Moving {
                continue;
            }
            if !self.facts.records.contains_key(&id) {
                transfer.from_closed |= transfer.from.as_ref() == Some(self.shard);
                transfer.to_closed |= transfer.to == *self.shard;
            }
            self.draft.settle(&id, transfer);
        }
    }

    /// 7: a guest nobody has on record is its own.
    fn note_guests(&mut self) {
        for (machine, guest) in self.facts.exceptions(ExceptionKind::Guest) {
            if let (None, Some(transfer)) = (self.draft.row(machine), &guest.transfer) {
                let row = MachineRow {
                    transfer: transfer.clone(),
                    domain: guest.domain.clone(),
                    provider: self.provider.clone(),
                    owner: self.shard.clone(),
                };
                self.draft.set_row(machine, Some(row));
            }
        }
    }

    /// 8: a machine on record as its own, of which it says nothing, is home or to be claimed anew.
    fn find_lost(&mut self) {
        let open = self.facts.open_machines();
        let mut lost: BTreeMap<(Provider, Option<Domain>), Vec<MachineId>> = BTreeMap::new();
        for (machine, row) in self.draft.rows_of(self.shard) {
            let is_known = self.facts.exception(&machine).is_some() || open.contains(&machine);
            if is_known || self.draft.transfer(&row.transfer).is_some() {
                continue;
            }
            let domain = row.domain.as_ref();
            if self.draft.covers(self.shard, &row.provider, domain) {
                self.draft.set_row(&machine, None);
            } else {
                let place = (row.provider, row.domain);
                lost.entry(place).or_default().push(machine);
            }
        }
        for ((provider, domain), machines) in lost {
            for machines in machines.chunks(MOST_MOVED) {
                self.claim_anew(&provider, domain.as_ref(), machines);
            }
        }
    }

    fn claim_anew(&mut self, provider: &Provider, domain: Option<&Domain>, machines: &[MachineId]) {
        if !self.draft.has_room() {
            return;
        }
        let id = self.draft.mint();
        let transfer = Transfer {
            from: None,
            to: self.shard.clone(),
            machines: machines.to_vec(),
            domain: domain.cloned(),
            state: TransferState::Moving,
            from_closed: true,
            to_closed: false,
        };
        self.draft.give_rows(&id, &transfer, provider, self.shard);
        self.draft.set_transfer(&id, Some(transfer));
    }

    /// 9: what it shall have and nobody has is its own.
    fn grant(&mut self) {
        let everything = self.draft.everything(self.provider);
        if everything.is_some_and(|holder| holder != *self.shard) {
            return;
        }
        for domain in self.draft.base().domains.desired_by(self.shard) {
            if self.draft.domain(domain).holder.is_none() {
                self.draft.set_holder(domain, Some(self.shard.clone()));
            }
        }
    }

    /// 10: a new shard that is alone has everything.
    fn grant_everything(&mut self) {
        let mut on_provider = self.draft.base().registry.on(self.provider);
        let is_alone = on_provider.all(|shard| shard == self.shard);
        let is_new = self.facts.holdings.is_none();
        let is_free = self.draft.everything(self.provider).is_none();
        if is_new && is_alone && is_free && !self.draft.has_domains(self.provider) {
            let holder = Some(self.shard.clone());
            self.draft.set_everything(self.provider, holder);
        }
    }
}

/// Hands the machines of a transfer back to its donor; with no donor left, nothing is on record of them any more.
pub(super) fn give_back(draft: &mut Draft<'_>, id: &TransferId, transfer: Transfer) {
    let registry = &draft.base().registry;
    let donor = transfer.from.clone();
    let donor = donor.filter(|donor| !registry.is_gone(donor));
    let Some(donor) = donor else {
        for machine in &transfer.machines {
            draft.set_row(machine, None);
        }
        draft.set_transfer(id, None);
        return;
    };
    for machine in &transfer.machines {
        if let Some(row) = draft.row(machine) {
            let owner = donor.clone();
            draft.set_row(machine, Some(MachineRow { owner, ..row }));
        }
    }
    let state = TransferState::Returning;
    draft.set_transfer(id, Some(Transfer { state, ..transfer }));
}
