//! Persistence: what of a machine is remembered, and when it is written (SH-5).

use super::ShardCore;
use crate::{
    defect::Defect,
    effect::Effect,
    journal::Arm,
    rails::RailSet,
    record::{Kept, Record},
    schedule::Timer,
    settings::FLUSH_WITHIN,
    supply::Supply,
    work::Work,
};
use bigfleet_model::MachineId;

impl ShardCore {
    /// Something about a machine must reach the disk, soon.
    pub(super) fn remember(&mut self, machine: &MachineId) {
        let arm = self.journal.note_machine(machine);
        self.set_flush(arm);
    }

    /// The same where it may be on disk already, as this: a fleet that is as it was is not written
    /// again at every start.
    pub(super) fn remember_if_other(&mut self, machine: &MachineId, on_disk: &Kept) {
        if self.kept(machine).as_deref() == Some(on_disk) {
            let arm = self.journal.arm(); // the epoch is not
            self.set_flush(arm);
        } else {
            self.remember(machine);
        }
    }

    /// A record that replaces nothing yet written.
    pub(super) fn remember_record(&mut self, record: Record) {
        let arm = self.journal.note(record);
        self.set_flush(arm);
    }

    pub(super) fn remember_records(&mut self, records: impl IntoIterator<Item = Record>) {
        for record in records {
            self.remember_record(record);
        }
    }

    pub(super) fn set_flush(&mut self, Arm(is_new): Arm) {
        if is_new {
            self.schedule.set(self.now + FLUSH_WITHIN, Timer::Flush);
        }
    }

    /// Hands out everything that is not on disk, as one write.
    pub(super) fn persist(&mut self, effects: &mut Vec<Effect>) {
        // They ride along: until a reclaim has ended, its operation is on record too.
        let left = self.rails.unwritten_reclaims(self.now);
        self.remember_records(left);
        let is_durable = !self.has(Defect::IntentNotDurable);
        let (supply, work, rails) = (&self.supply, &self.work, &self.rails);
        let write = self
            .journal
            .write(|machine| kept(supply, work, rails, machine, is_durable));
        if let Some((barrier, records)) = write {
            self.counters.records += records.len() as u64;
            effects.push(Effect::Persist { barrier, records });
        }
    }

    /// What is to be remembered of a machine now.
    pub(super) fn kept(&self, machine: &MachineId) -> Option<Box<Kept>> {
        let is_durable = !self.has(Defect::IntentNotDurable);
        kept(&self.supply, &self.work, &self.rails, machine, is_durable)
    }
}

fn kept(
    supply: &Supply,
    work: &Work,
    rails: &RailSet,
    machine: &MachineId,
    is_durable: bool,
) -> Option<Box<Kept>> {
    // Not seen since the start: what was remembered still is all there is.
    let Some(known) = supply.get(machine) else {
        return supply.remembered().get(machine).cloned();
    };
    let beside = supply.beside(machine);
    let operation = work.get(machine).filter(|_| is_durable);
    let kept = Kept {
        cluster: known.cluster().cloned(),
        bound_by: supply.bound_by(machine),
        assignment: known.assignment().clone(),
        intent: known.intent().filter(|_| is_durable).cloned(),
        not_ready: beside.not_ready,
        undeletable: beside.undeletable,
        given_up: rails.given_up(machine),
        spent: rails.spent().get(machine).cloned(),
        operation: operation.map(|operation| Box::new(operation.kept())),
    };
    kept.is_worth_it().then(|| Box::new(kept))
}
