//! Scenarios: what the clusters live through, as a list of steps.
//!
//! ```text
//! tour    services ─ crawler ─ batch wave ─ gang ─ burst ─ wave over ─ a rack out ─ spot loss ─ the rack back
//!         ─ silence ─ dip ─ return
//! steady  services, crawler; then nothing changes
//! none    clusters that ask for nothing
//! ```
//!
//! A scenario is data: who asks for what, when, and the line that announces it. Times are those of the fleet;
//! at the usual speed one of its minutes takes a second, and the tour is over within a minute.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use bigfleet_model::{ClusterId, INSTANCE_TYPE_KEY, ZONE_KEY};

use crate::cluster::Order;
use crate::demand::Workload;

/// What happens while the demonstration runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scenario {
    /// Everything a shard does, within an hour of the fleet.
    #[default]
    Tour,
    /// Demand arrives and stays as it is.
    Steady,
    /// Nobody asks for anything.
    None,
}

impl Scenario {
    /// Every scenario.
    pub const ALL: [Self; 3] = [Self::Tour, Self::Steady, Self::None];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tour => "tour",
            Self::Steady => "steady",
            Self::None => "none",
        }
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// There is no scenario of that name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no such scenario; there are tour, steady and none")]
pub struct ScenarioUnknown;

impl FromStr for Scenario {
    type Err = ScenarioUnknown;

    fn from_str(text: &str) -> Result<Self, ScenarioUnknown> {
        let mut all = Self::ALL.into_iter();
        all.find(|scenario| scenario.name() == text)
            .ok_or(ScenarioUnknown)
    }
}

/// One thing that happens.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ScenarioStep {
    /// When, in time of the fleet since the start.
    pub(crate) at: Duration,
    /// The line that announces it.
    pub(crate) says: String,
    pub(crate) does: StepAction,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum StepAction {
    /// Gives an order to a cluster, by its position.
    Orders(usize, Order),
    /// Has the cloud interrupt this many spot machines that serve.
    Interrupts(usize),
    /// Takes a rack out of service, or gives it back.
    Services(&'static str, Rack),
}

/// What becomes of a rack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rack {
    Out,
    Back,
}

/// Clusters and what happens to them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Script {
    pub(crate) clusters: Vec<ClusterId>,
    /// In order of time.
    pub(crate) steps: Vec<ScenarioStep>,
}

/// The parts; with fewer clusters, one cluster plays several of them.
const NAMES: [&str; 5] = ["web-eu", "batch-eu", "train-eu", "pay-eu", "edge-eu"];
const WEB: usize = 0;
const BATCH: usize = 1;
const TRAIN: usize = 2;
const PAY: usize = 3;
const EDGE: usize = 4;

/// Minute of the fleet, part, workload, number of Pods from then on, and why that is interesting.
type ScriptedDemand = (u64, usize, Workload, u32, &'static str);

/// Lasting demand.
#[rustfmt::skip] // a table
const LASTING: [ScriptedDemand; 3] = [
    ( 0, WEB,   Workload::Service,  36, "owned machines serve first"),
    ( 1, EDGE,  Workload::Service,  12, "then those with a commitment"),
    ( 3, BATCH, Workload::Crawl,     8, "it minds no interruption, so spot will do"),
];
/// What comes and goes.
#[rustfmt::skip] // a table
const PASSING: [ScriptedDemand; 9] = [
    ( 8, BATCH, Workload::Batch,    64, "a wave that takes every large machine"),
    (14, TRAIN, Workload::Training,  4, "a gang, all in one rack"),
    (19, PAY,   Workload::Critical, 12, "nothing is free, so batch is preempted"),
    (27, PAY,   Workload::Critical,  0, "batch gets its machines back"),
    (32, BATCH, Workload::Batch,     0, "reclaimed one by one, released after a hold"),
    (46, WEB,   Workload::Service,  24, "a dip: drains begin, and nobody is evicted at once"),
    (47, WEB,   Workload::Service,  36, "back within a minute: the drains are taken back"),
    (51, EDGE,  Workload::Service,   6, "now that it can say so, half of them go"),
    (54, TRAIN, Workload::Training,  0, "owned machines stay, idle"),
];
/// The rack of accelerators that is owned, where the gang stands.
const SERVICED: &str = "zone-a-rack-1";
/// How many service Pods each cluster beyond the named ones runs.
const EXTRA_PODS: u32 = 3;

impl Script {
    /// This scenario with this many clusters.
    pub(crate) fn new(scenario: Scenario, clusters: usize) -> Self {
        let name = |at: usize| match NAMES.get(at) {
            Some(name) => (*name).to_owned(),
            None => format!("team-{:02}", at + 1),
        };
        let ids = (0..clusters).filter_map(|at| ClusterId::new(&name(at)).ok());
        let mut script = Self {
            clusters: ids.collect(),
            steps: Vec::new(),
        };
        if script.clusters.is_empty() {
            return script;
        }
        match scenario {
            Scenario::Tour => script.tour(),
            Scenario::Steady => script.steady(),
            Scenario::None => {}
        }
        script
    }

    fn steady(&mut self) {
        for extra in NAMES.len()..self.clusters.len() {
            self.ask((0, extra, Workload::Service, EXTRA_PODS, "one team of many"));
        }
        LASTING.into_iter().for_each(|ask| self.ask(ask));
    }

    fn tour(&mut self) {
        self.steady();
        PASSING.into_iter().for_each(|ask| self.ask(ask));
        let taken = "the cloud takes spot machines back: they are replaced";
        self.step(38, taken, StepAction::Interrupts(2));
        let out = "the gang's rack is to be serviced: it is served in another one before the first machine leaves";
        self.step(33, out, StepAction::Services(SERVICED, Rack::Out));
        let back = "the rack is back: its machines can be used again";
        self.step(42, back, StepAction::Services(SERVICED, Rack::Back));
        let silent = "goes silent, its operator is gone: it keeps every machine it has";
        self.order(43, EDGE, silent, Order::Silence);
        self.order(50, EDGE, "is back", Order::Return);
        self.steps.sort_by_key(|step| step.at);
    }

    fn ask(&mut self, (minute, part, workload, pods, why): ScriptedDemand) {
        let word = workload.word();
        let asks = match pods {
            0 => format!("asks for no {word} Pods any more"),
            _ => format!("asks for {pods} {word} Pods of {}", workload.each()),
        };
        let name = format!("{word} of part {part}"); // two parts may fall to one cluster
        let order = Order::Ask(name, workload.row(pods));
        self.order(minute, part, &format!("{asks}: {why}"), order);
    }

    fn order(&mut self, minute: u64, part: usize, says: &str, order: Order) {
        let cluster = part % self.clusters.len();
        let says = format!("{} {says}", self.clusters[cluster]);
        self.step(minute, &says, StepAction::Orders(cluster, order));
    }

    fn step(&mut self, minute: u64, says: &str, does: StepAction) {
        self.steps.push(ScenarioStep {
            at: Duration::from_secs(60 * minute),
            says: says.to_owned(),
            does,
        });
    }

    /// Leaves out which types and zones will do: they are those of the simulated cloud, and a provider of
    /// somebody else has others.
    pub(crate) fn take_any_type(&mut self) {
        for step in &mut self.steps {
            if let StepAction::Orders(_, Order::Ask(_, Some(row))) = &mut step.does {
                let placed = [INSTANCE_TYPE_KEY, ZONE_KEY];
                row.requirements
                    .retain(|one| !placed.contains(&one.key.as_str()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenarios_are_found_by_name_and_a_stranger_hears_which_there_are() {
        for scenario in Scenario::ALL {
            assert_eq!(scenario.name().parse(), Ok(scenario));
        }
        let refused = "chaos".parse::<Scenario>().unwrap_err().to_string();
        for scenario in Scenario::ALL {
            assert!(refused.contains(scenario.name()), "{refused}");
        }
    }

    #[test]
    fn steps_come_in_order_and_the_tour_is_over_within_the_first_hour() {
        for scenario in Scenario::ALL {
            for clusters in [1, 2, 5, 8] {
                let steps = Script::new(scenario, clusters).steps;
                assert!(
                    steps.is_sorted_by_key(|step| step.at),
                    "{scenario} {clusters}"
                );
                let last = steps.last().map(|step| step.at).unwrap_or_default();
                assert!(last < Duration::from_secs(56 * 60), "{scenario}");
            }
        }
    }

    #[test]
    fn what_is_asked_for_is_withdrawn_under_the_same_name() {
        let steps = Script::new(Scenario::Tour, 5).steps;
        let asks = |withdrawn: bool| {
            let named = steps.iter().filter_map(move |step| match &step.does {
                StepAction::Orders(cluster, Order::Ask(name, need))
                    if need.is_none() == withdrawn =>
                {
                    Some((*cluster, name.clone()))
                }
                _ => None,
            });
            named.collect::<Vec<_>>()
        };
        assert_eq!(asks(true).len(), 3);
        assert!(
            asks(true)
                .iter()
                .all(|withdrawn| asks(false).contains(withdrawn))
        );
    }

    #[test]
    fn with_fewer_clusters_one_plays_several_parts() {
        let script = Script::new(Scenario::Tour, 2);
        let names: Vec<&str> = script.clusters.iter().map(|id| id.as_str()).collect();
        assert_eq!(names, ["web-eu", "batch-eu"]);
        let many = Script::new(Scenario::Tour, 7);
        assert_eq!(many.clusters[6].as_str(), "team-07");
        assert_eq!(Script::new(Scenario::Tour, 0), Script::default());
    }
}
