//! Claims: which machines a Need has a right to, and how the pools count those that are claimed.

use crate::{
    NONE,
    book::{Book, MachineIx, NeedIx},
};
use bigfleet_model::State;

impl Book {
    /// Counts a machine that is not bound in or out of what is claimed of its shape.
    pub(crate) fn count_free(&mut self, machine: MachineIx, change: i32) {
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
            !record.is_unfit()
                && [NONE, need].contains(&self.claimant(*machine))
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
