//! A run: from a scenario and a seed to a report.
//!
//! ```text
//! plan(seed) ─▶ World ─▶ until calm ─▶ faults stop ─▶ comes to rest ─▶ gates ─▶ Report
//! ```

use crate::{
    clock::Moment,
    defect::Defect,
    dice::Dice,
    plan::Plan,
    scenarios::Scenario,
    shorten::Without,
    trace::Trace,
    watch::{Broken, Rule},
    world::World,
};
use bigfleet_model::ActionKind;
use std::{
    any::Any,
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Report {
    /// The scenario.
    pub scenario: &'static str,
    /// The seed.
    pub seed: u64,
    /// The rule that broke, if one did.
    pub broken: Option<Broken>,
    /// Events that happened.
    pub events: u64,
    /// Milliseconds of fleet life.
    pub simulated_millis: u64,
    /// Machines of the fleet.
    pub machines: usize,
    /// Actions committed: Bootstrap, Provision, Preempt, Reclaim, Delete.
    pub actions: [u64; 6],
    /// Creates the provider took on.
    pub creates: u64,
    /// How often a gang changed its rack, as counted by the shard's last process.
    pub flips: u64,
    /// How often each fault struck.
    pub struck: BTreeMap<&'static str, u64>,
    /// How long after the faults stopped the fleet was at rest, in milliseconds; `None` if it never was.
    pub rested_after: Option<u64>,
    /// A digest of everything that happened.
    pub digest: u64,
    /// The trace, if it was kept.
    pub lines: Vec<String>,
}

/// Runs a scenario with a seed, as it is or with a defect; `traced` keeps what happened.
pub fn run(scenario: &Scenario, seed: u64, defect: Option<Defect>, traced: bool) -> Report {
    let plan = scenario.plan(&mut Dice::stream(seed, 0));
    run_plan(scenario.name, plan, seed, defect, traced)
}

/// Runs a scenario as [`run`] does, without some entries of its timeline and, if asked, without random
/// faults.
pub fn run_without(
    scenario: &Scenario,
    seed: u64,
    defect: Option<Defect>,
    without: &Without,
    traced: bool,
) -> Report {
    let mut plan = scenario.plan(&mut Dice::stream(seed, 0));
    without.take_from(&mut plan);
    run_plan(scenario.name, plan, seed, defect, traced)
}

/// The message of a panic.
fn message(thrown: &(dyn Any + Send)) -> String {
    let text = thrown.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| thrown.downcast_ref::<&str>().copied());
    text.unwrap_or("it did not say why").to_owned()
}

impl World {
    fn live(&mut self, calm: Moment) {
        if self.run_until(calm) {
            self.calm_down();
            self.come_to_rest();
            if self.watch.broken.is_none() {
                self.judge();
            }
        }
    }
}

/// Runs a plan.
pub(crate) fn run_plan(
    scenario: &'static str,
    plan: Plan,
    seed: u64,
    defect: Option<Defect>,
    traced: bool,
) -> Report {
    let (calm, machines) = (plan.calm, plan.machines.len());
    let mut world = World::new(plan, seed, defect, Trace::new(traced));
    let lived = catch_unwind(AssertUnwindSafe(|| world.live(calm)));
    if let Err(thrown) = lived {
        world
            .watch
            .broke(Rule::Panicked, world.now, message(thrown.as_ref()));
    }
    if let Some(broken) = &world.watch.broken {
        // A panic's message may have several lines; a trace has one line per event.
        let text = broken.text.replace(char::is_control, " ");
        let line = || format!("broke {}: {text}", broken.rule.name());
        world.trace.line(world.now, line);
    }
    let count = |kind| world.log.count(kind, Moment::START, Moment::NEVER);
    Report {
        scenario,
        seed,
        events: world.events,
        simulated_millis: world.now.0,
        machines,
        actions: ActionKind::ALL.map(count),
        creates: world.log.creates.len() as u64,
        flips: world
            .process()
            .map_or(0, |one| one.core.counters().gang_flips),
        struck: world.struck,
        rested_after: world.rested_after,
        digest: world.trace.digest(),
        broken: world.watch.broken,
        lines: world.trace.into_lines(),
    }
}
