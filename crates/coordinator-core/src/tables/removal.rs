//! Removal: a shard is forgotten, or gone for good.
//!
//! ```text
//! removed   row, bindings and what it shall have go; what it holds stays, since it may still run (CO-51)
//! gone      an admin's word that it does not: what it holds is free, machines on the way to it go back (CO-52)
//! ```

use super::{Applied, Draft, MachineRow, Tables, TransferState, heard::give_back};
use crate::{Defect, Refused, ShardId};

impl Tables {
    pub(super) fn remove_shard(
        &mut self,
        shard: &ShardId,
        gone: bool,
        defect: Option<Defect>,
    ) -> Result<Applied, Refused> {
        if gone && self.registry.is_gone(shard) {
            return Ok(Applied::Nothing);
        }
        let is_there = self.registry.shard(shard).is_some();
        let is_there = is_there || (gone && self.registry.is_known(shard));
        if !is_there {
            return Err(Refused::UnknownShard(shard.clone()));
        }
        if gone {
            self.registry.set_gone(shard)?;
        }
        self.registry.remove(shard);
        self.clusters.forget(shard);
        for domain in self.domains.desired_by(shard).clone() {
            self.domains.set_desired(&domain, None);
        }
        if gone || defect == Some(Defect::HolderLostOnRemoval) {
            self.free_all(shard);
        }
        Ok(Applied::Changed)
    }

    fn free_all(&mut self, shard: &ShardId) {
        let mut draft = Draft::new(self);
        for domain in self.domains.held_by(shard) {
            draft.set_holder(domain, None);
        }
        for (provider, holder) in self.domains.all_everything() {
            if holder == shard {
                draft.set_everything(provider, None);
            }
        }
        for (id, transfer) in draft.transfers_of(shard) {
            if transfer.state == TransferState::Moving && transfer.to == *shard {
                give_back(&mut draft, &id, transfer);
            } else {
                draft.settle(&id, transfer);
            }
        }
        for (machine, MachineRow { .. }) in draft.rows_of(shard) {
            draft.set_row(&machine, None);
        }
        let changes = draft.finish();
        self.commit(changes);
    }
}
