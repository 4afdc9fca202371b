//! Claims: which machine counts for which Need, and what that leaves wanted.

use crate::{
    NONE,
    book::{Book, MachineIx, NeedEntry, NeedIx},
};
use bigfleet_model::State;

impl Book {
    /// Counts a free machine for a Need.
    pub(crate) fn claim(&mut self, need: NeedIx, machine: MachineIx) {
        self.bind(need, machine);
        let entry = &mut self.needs[need];
        let shape = &self.tables.shapes[self.records[machine as usize].shape as usize];
        for ((dimension, _), left) in entry.wanted.iter().zip(&mut entry.left) {
            *left -= i128::from(shape.amount(*dimension));
        }
    }

    /// As [`Self::claim`], where what is left was counted already.
    fn bind(&mut self, need: NeedIx, machine: MachineIx) {
        let record = self.records[machine as usize];
        assert_eq!(
            record.claimant,
            NONE,
            "{} is claimed once",
            self.ids.get(machine)
        );
        self.records[machine as usize].claimant = need;
        let entry = &mut self.needs[need];
        entry.claims.push(machine);
        entry.arriving += u32::from(record.state != Some(State::Configured));
        if record.slot != entry.slot {
            self.mismatched.insert(machine);
        }
        if record.cluster != NONE {
            self.remove_loose(record.cluster);
        } else {
            self.count_free(machine, 1);
        }
    }

    /// Takes a claim back.
    pub(crate) fn unclaim(&mut self, need: NeedIx, machine: MachineIx) {
        let entry = &mut self.needs[need];
        let place = entry.claims.iter().rposition(|held| *held == machine);
        assert!(
            place.is_some(),
            "{} is claimed by its claimant",
            self.ids.get(machine)
        );
        entry.claims.remove(place.unwrap_or_default());
        let shape = &self.tables.shapes[self.records[machine as usize].shape as usize];
        for ((dimension, _), left) in entry.wanted.iter().zip(&mut entry.left) {
            *left += i128::from(shape.amount(*dimension));
        }
        self.unbind(need, machine);
    }

    /// Takes all claims of a Need back, and what was decided about it.
    pub(crate) fn release(&mut self, need: NeedIx) {
        let mut claims = std::mem::take(&mut self.needs[need].claims);
        for machine in claims.drain(..) {
            self.unbind(need, machine);
        }
        let entry = &mut self.needs[need];
        entry.claims = claims;
        entry.forget();
    }

    fn unbind(&mut self, need: NeedIx, machine: MachineIx) {
        let record = self.records[machine as usize];
        self.records[machine as usize].claimant = NONE;
        let entry = &mut self.needs[need];
        entry.arriving -= u32::from(record.state != Some(State::Configured));
        if record.slot != entry.slot {
            self.mismatched.remove(&machine);
        }
        if record.cluster != NONE {
            self.add_loose(record.cluster);
        } else {
            self.count_free(machine, -1);
        }
    }

    /// Counts a machine that is not bound in or out of what is claimed of its shape.
    fn count_free(&mut self, machine: MachineIx, change: i32) {
        let record = self.records[machine as usize];
        let kind = self.pool_of(machine);
        let Self { stocks, ids, .. } = self;
        let stock = &mut stocks[record.shape as usize];
        if matches!(record.state, Some(State::Idle | State::Speculative)) {
            stock.claimed = stock.claimed.saturating_add_signed(change);
        }
        let Some(kind) = kind else { return };
        let pool = stock.pool_mut(kind);
        pool.claimed = pool.claimed.saturating_add_signed(change);
        if change < 0 {
            pool.sort(ids);
            pool.next = pool.next.min(pool.place(machine, ids));
        }
    }

    /// Takes all claims back at once, from everyone who may have any.
    pub(crate) fn release_all(&mut self, standing: &[NeedIx]) {
        for need in standing {
            let need = &mut self.needs[*need];
            for machine in need.claims.drain(..) {
                self.records[machine as usize].claimant = NONE;
            }
            need.forget();
        }
        self.mismatched.clear();
        for (number, cluster) in self.clusters.iter_mut().enumerate() {
            cluster.loose = cluster.bound.len() as u32;
            if 0 < cluster.loose {
                self.loose_clusters.insert(number as u32);
            }
        }
        for stock in &mut self.stocks {
            stock.claimed = 0;
            for pool in &mut stock.pools {
                (pool.claimed, pool.next) = (0, 0);
            }
        }
    }

    /// Makes these the claims of a Need, in this order, with this much left.
    pub(crate) fn settle(&mut self, need: NeedIx, claims: &[MachineIx], left: &[i128]) {
        let is_same = self.need(need).claims == claims;
        if !is_same {
            self.release(need);
            for machine in claims {
                self.bind(need, *machine);
            }
        }
        let entry = &mut self.needs[need];
        entry.left.clear();
        entry.left.extend(left);
    }

    /// Whether a machine is the Need's own: attributed to it, fit and usable (RF-1).
    pub(crate) fn is_own(&self, need: NeedIx, machine: MachineIx) -> bool {
        let record = self.record(machine);
        self.attribution(machine) == self.need(need).slot
            && !record.is_unfit()
            && self.serves(need, record.shape)
    }

    /// The Need's own machines nobody else claims, in keep order.
    pub(crate) fn own(&mut self, need: NeedIx) -> Vec<MachineIx> {
        let slot = &self.slots[self.need(need).slot];
        let usage = &self.tables.uses[self.need(need).usage as usize];
        let is_own = |machine: &MachineIx| {
            let record = self.record(*machine);
            (record.claimant == NONE || record.claimant == need)
                && !record.is_unfit()
                && usage.serves(record.shape)
        };
        let own: Vec<MachineIx> = if slot.bequests.is_empty() && slot.heir == NONE {
            slot.machines.iter().copied().filter(is_own).collect()
        } else {
            self.attributed(self.need(need).slot)
                .into_iter()
                .filter(is_own)
                .collect()
        };
        self.work.machines += own.len() as u64;
        own
    }
}

impl NeedEntry {
    /// Forgets what became of it; its claims must be gone.
    fn forget(&mut self) {
        self.left.clear();
        self.left
            .extend(self.wanted.iter().map(|(_, milli)| *milli));
        self.arriving = 0;
        (self.domain, self.satisfiable) = (NONE, false);
        (self.bootstraps, self.provisions) = (0, 0);
        self.victims.clear();
    }
}
