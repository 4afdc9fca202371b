//! Marks: machines that are to leave (RF-21).
//!
//! They are drawn from a stream of their own, so that all else of a seed's fleets is what it is without them.

use bigfleet_model::{Fleet, Leaving, MachineId};
use bigfleet_seeded::Prng;

/// What [`Marks::edit`] says it did.
pub(super) const STEPS: [&str; 2] = ["mark to leave", "rack to leave"];

const WORDS: [Leaving; 3] = [Leaving::Soon, Leaving::Soon, Leaving::Now];

#[derive(Clone, Debug)]
pub(super) struct Marks {
    prng: Prng,
    /// How many machines in a hundred have one.
    share: usize,
}

impl Marks {
    pub(super) fn new(seed: u64) -> Self {
        let mut prng = Prng::new(seed).fork();
        let share = *prng.pick(&[0, 0, 10, 30, 80]);
        Self { prng, share }
    }

    /// How a machine is to leave, if it is.
    pub(super) fn draw(&mut self) -> Option<Leaving> {
        let word = *self.prng.pick(&WORDS);
        self.prng.percent(self.share).then_some(word)
    }

    /// Now and then a mark comes, changes its word or goes; or that of a whole rack does.
    pub(super) fn edit(&mut self, fleet: &mut Fleet) -> Option<&'static str> {
        if self.share == 0 || !self.prng.percent(10) || fleet.machines.is_empty() {
            return None;
        }
        if self.prng.percent(10) {
            self.mark_rack(fleet);
            return Some(STEPS[1]);
        }
        let only_bound = self.prng.percent(70);
        let machines = fleet.machines.iter();
        let fit = machines.filter(|(_, found)| found.machine.state().is_bound() || !only_bound);
        let ids: Vec<MachineId> = fit.map(|(id, _)| id.clone()).collect();
        if !ids.is_empty()
            && let Some(machine) = fleet.machines.get_mut(self.prng.pick(&ids))
        {
            machine.leaving = match machine.leaving {
                None => Some(*self.prng.pick(&WORDS)),
                Some(Leaving::Soon) if self.prng.percent(30) => Some(Leaving::Now),
                Some(_) => None,
            };
        }
        Some(STEPS[0])
    }

    /// All machines of the rack of one of them leave, or none any more.
    fn mark_rack(&mut self, fleet: &mut Fleet) {
        let racks = fleet.machines.values();
        let racks = racks.filter_map(|found| found.machine.shape().attribute("rack"));
        let racks: Vec<String> = racks.map(str::to_owned).collect();
        if racks.is_empty() {
            return;
        }
        let rack = self.prng.pick(&racks).clone();
        let word = self.prng.percent(60).then_some(Leaving::Soon);
        for machine in fleet.machines.values_mut() {
            if machine.machine.shape().attribute("rack") == Some(rack.as_str()) {
                machine.leaving = word;
            }
        }
    }
}
