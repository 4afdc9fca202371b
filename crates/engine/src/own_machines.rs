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

    /// The Need's own machines that no other Need claims, in keep order; those that leave come last, and those
    /// given back for others in this cycle are not among them (RF-21).
    pub(crate) fn own(&mut self, need: NeedIndex) -> Vec<MachineIndex> {
        let mut own = self.attributed(self.need(need).slot);
        let usage = &self.catalog.uses[self.need(need).usage];
        own.retain(|machine| {
            let record = self.record(*machine);
            let claimant = self.claimant(*machine);
            !record.is_unfit()
                && claimant.is_none_or(|claimant| claimant == need)
                && usage.serves(record.shape)
        });
        if 0 < self.leave_soon {
            own.retain(|machine| !self.replaced.contains_key(machine));
            own.sort_by_key(|machine| self.record(*machine).leaves_soon());
        }
        self.work.machines += own.len() as u64;
        own
    }
}
