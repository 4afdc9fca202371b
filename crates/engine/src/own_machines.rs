//! Own machines: which machines a Need has a right to (RF-1).

use crate::{
    fleet_tables::FleetTables,
    index::{MachineIndex, NeedIndex},
};

impl FleetTables {
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
