//! Claims: which machine counts for which Need, and what that leaves wanted.

use crate::{
    NONE,
    book::{Book, MachineIx, NeedIx},
};
use bigfleet_model::State;

impl Book {
    /// Counts a free machine for a Need.
    pub(crate) fn claim(&mut self, need: NeedIx, machine: MachineIx) {
        let record = self.records[machine as usize];
        assert_eq!(record.claimant, NONE, "{} is claimed once", self.ids.get(machine));
        self.records[machine as usize].claimant = need;
        let entry = &mut self.needs[need as usize];
        entry.claims.push(machine);
        entry.arriving += u32::from(record.state != Some(State::Configured));
        let shape = &self.tables.shapes[record.shape as usize];
        for ((dimension, _), left) in entry.wanted.iter().zip(&mut entry.left) {
            *left -= i128::from(shape.amount(*dimension));
        }
        if record.slot != entry.slot {
            self.mismatched.insert(machine);
        }
        if record.cluster != NONE {
            self.remove_loose(record.cluster);
        }
        let is_free = matches!(record.state, Some(State::Idle | State::Speculative));
        self.stocks[record.shape as usize].claimed += u32::from(is_free);
        if let Some(kind) = self.pool_of(machine) {
            self.stocks[record.shape as usize].pool_mut(kind).claimed += 1;
        }
    }

    /// Takes a claim back.
    pub(crate) fn unclaim(&mut self, need: NeedIx, machine: MachineIx) {
        let entry = &mut self.needs[need as usize];
        let place = entry.claims.iter().rposition(|held| *held == machine);
        assert!(place.is_some(), "{} is claimed by its claimant", self.ids.get(machine));
        entry.claims.remove(place.unwrap_or_default());
        self.uncount(need, machine);
    }

    /// Takes all claims of a Need back, and what was decided about it.
    pub(crate) fn release(&mut self, need: NeedIx) {
        let mut claims = std::mem::take(&mut self.needs[need as usize].claims);
        for machine in claims.drain(..) {
            self.uncount(need, machine);
        }
        let entry = &mut self.needs[need as usize];
        entry.claims = claims;
        let wanted = entry.wanted.iter().map(|(_, milli)| *milli);
        entry.left.clear();
        entry.left.extend(wanted);
        entry.arriving = 0;
        (entry.domain, entry.satisfiable) = (NONE, false);
        (entry.bootstraps, entry.provisions) = (0, 0);
        entry.victims.clear();
    }

    fn uncount(&mut self, need: NeedIx, machine: MachineIx) {
        let record = self.records[machine as usize];
        self.records[machine as usize].claimant = NONE;
        let entry = &mut self.needs[need as usize];
        entry.arriving -= u32::from(record.state != Some(State::Configured));
        let shape = &self.tables.shapes[record.shape as usize];
        for ((dimension, _), left) in entry.wanted.iter().zip(&mut entry.left) {
            *left += i128::from(shape.amount(*dimension));
        }
        self.mismatched.remove(&machine);
        if record.cluster != NONE {
            self.add_loose(record.cluster);
        }
        let is_free = matches!(record.state, Some(State::Idle | State::Speculative));
        self.stocks[record.shape as usize].claimed -= u32::from(is_free);
        if let Some(kind) = self.pool_of(machine) {
            let Self { stocks, ids, .. } = self;
            let pool = stocks[record.shape as usize].pool_mut(kind);
            pool.claimed -= 1;
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
        let mut machines = self.attributed(self.need(need).slot);
        self.work.machines += machines.len() as u64;
        machines.retain(|machine| {
            let claimant = self.record(*machine).claimant;
            (claimant == NONE || claimant == need) && self.is_own(need, *machine)
        });
        machines
    }
}
