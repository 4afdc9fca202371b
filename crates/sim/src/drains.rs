//! Drains and notices: who is to leave, told to the shard by a person or by the provider (SH-20).

use crate::{
    clock::Moment,
    plan::Pick,
    world::{Happening, World},
};
use bigfleet_model::{MachineId, State};
use bigfleet_provider_kit as kit;
use bigfleet_shard_core::{DrainMark, Event};
use std::collections::BTreeSet;

/// Whoever found no process to tell, or one that does not know the machines yet, asks again after so long.
const ASKS_AGAIN: u64 = 5_000;

impl World {
    /// The machines that are meant, by id.
    fn picked(&mut self, pick: &Pick) -> BTreeSet<MachineId> {
        let label = |machine: &kit::Machine, key: &str, value: &str| match key {
            "zone" => machine.offer.zone == value,
            key => machine.offer.labels.get(key).is_some_and(|is| is == value),
        };
        let mut ids: Vec<MachineId> = self
            .cloud
            .machines()
            .filter(|one| match pick {
                Pick::All => true,
                Pick::Labelled(key, value) => label(one, key, value),
                Pick::Serving { .. } => one.state == State::Configured,
                Pick::Named(id) => one.id.as_str() == id,
            })
            .map(|one| one.id.clone())
            .collect();
        if let Pick::Serving { count } = pick {
            self.dice.shuffle(&mut ids);
            ids.truncate(*count as usize);
        }
        // What has failed cannot be drained.
        let failed = |id: &MachineId| {
            let there = self.cloud.machine(id);
            there.is_some_and(|one| matches!(one.state, State::Failed | State::Deleting))
        };
        ids.into_iter().filter(|id| !failed(id)).collect()
    }

    /// A person marks machines; where no process listens, or it has not heard of them since its start, again a
    /// little later: such a drain is refused.
    pub(crate) fn drain(&mut self, pick: &Pick, within: Option<u64>, at: usize) {
        let epoch = self.current;
        if !self.processes.contains_key(&epoch) {
            let again = self.now.after(ASKS_AGAIN);
            return self.queue.at(again, Happening::Change(at));
        }
        let mut machines = self.picked(pick);
        if machines.is_empty() {
            return;
        }
        if let Some(process) = self.process() {
            machines.retain(|id| process.core.may_drain(id).is_none());
        }
        if machines.is_empty() {
            let again = self.now.after(ASKS_AGAIN);
            return self.queue.at(again, Happening::Change(at));
        }
        self.struck("drain");
        let deadline = within.map(|millis| self.now.after(millis).time());
        let mark = DrainMark::new("sim", "maintenance", self.now.time(), deadline);
        self.tell(epoch, Event::DrainMachines { machines, mark });
    }

    /// A person lifts the marks.
    pub(crate) fn undrain(&mut self, pick: &Pick, at: usize) {
        let epoch = self.current;
        if !self.processes.contains_key(&epoch) {
            let again = self.now.after(ASKS_AGAIN);
            return self.queue.at(again, Happening::Change(at));
        }
        let machines = self.picked(pick);
        self.struck("undrain");
        let (by, reason) = ("sim".to_owned(), "done".to_owned());
        self.tell(
            epoch,
            Event::UndrainMachines {
                machines,
                by,
                reason,
            },
        );
    }

    /// The provider announces to take machines away, and does so if it means it.
    pub(crate) fn announce(&mut self, pick: &Pick, lead: u64, is_meant: bool) {
        let machines = self.picked(pick);
        let at = self.now.after(lead);
        for machine in machines {
            self.struck("notice");
            self.leaves(&machine, Some(at));
            if is_meant {
                self.queue.at(at, Happening::TakenBack(machine));
            }
        }
    }

    /// It takes back what it said.
    pub(crate) fn withdraw(&mut self) {
        let noticed = self.cloud.machines().filter(|one| one.leaving.is_some());
        let noticed: Vec<MachineId> = noticed.map(|one| one.id.clone()).collect();
        for machine in noticed {
            self.struck("notice withdrawn");
            self.leaves(&machine, None);
        }
    }

    fn leaves(&mut self, machine: &MachineId, at: Option<Moment>) {
        let event = kit::Event::Leaves {
            machine: machine.clone(),
            at: at.map(Moment::time),
        };
        let changed = self.cloud.tell(event).0;
        self.cloud_changed(changed);
    }
}
