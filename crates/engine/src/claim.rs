//! Own machines: which machines a Need has a right to, and how pools count those that are claimed.

use crate::{
    book::Book,
    index::{MachineIndex, NeedIndex},
};
use bigfleet_model::State;

impl Book {
    /// Changes how many free machines of a shape are claimed, by one machine that is or was.
    pub(crate) fn count_free(&mut self, machine: MachineIndex, change: i32) {
        let record = self.records[machine];
        let kind = self.pool_of(machine);
        let Self { stocks, ids, .. } = self;
        let stock = &mut stocks[record.shape];
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
    pub(crate) fn is_own(&self, need: NeedIndex, machine: MachineIndex) -> bool {
        let record = self.record(machine);
        self.attribution(machine) == Some(self.need(need).slot)
            && !record.is_unfit()
            && self.serves(need, record.shape)
    }

    /// The Need's own machines nobody else claims, in keep order.
    pub(crate) fn own(&mut self, need: NeedIndex) -> Vec<MachineIndex> {
        let slot = &self.slots[self.need(need).slot];
        let usage = &self.catalog.uses[self.need(need).usage];
        let is_own = |machine: &MachineIndex| {
            let record = self.record(*machine);
            !record.is_unfit()
                && self
                    .claimant(*machine)
                    .is_none_or(|claimant| claimant == need)
                && usage.serves(record.shape)
        };
        let own: Vec<MachineIndex> = if slot.bequests.is_empty() && slot.heir.is_none() {
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
