//! Reads: what a shard shows of itself to people and tools (RD-1, RD-2).
//!
//! ```text
//! reader ─▶ runtime ─▶ core's own thread, between events: one page, bounded ─▶ reader
//! ```
//!
//! Nothing is prepared for readers that nobody asked for, save verdicts. A page is built when it is asked
//! for, from what stands, and copies what it shows; pages look at a bounded number of entries.
//!
//! **Invariant:** reading changes nothing: all a reader gets of the parts is shared references.

mod export;
mod leaving;
mod numbers;
mod pages;
mod progress;
mod report;
mod verdicts;
mod views;

pub use export::{Export, explain};
pub use numbers::{Number, Value};
pub use progress::{NeedStage, Progress};
pub use report::{CapacityPool, Report, Summary};
pub use verdicts::{Decided, NeedView};
pub use views::{
    BackoffView, BreakerView, CappedView, ClusterView, HeldView, MachineFilter, MachineView, PAGE,
    Page, RailsView, Stage, Trouble, Unavailable, WorkView,
};

pub(crate) use verdicts::Verdicts;

use crate::{
    counters::Counters,
    demand::Demand,
    histogram::Latencies,
    holdings::Holdings,
    leaving::LeavingMachines,
    rails::{Baseline, RailSet},
    schedule::Schedule,
    sessions::Sessions,
    settings::ShardConfig,
    supply::Supply,
    uplink::Uplink,
    work::Work,
};
use bigfleet_model::Time;

/// The parts of a shard, to look at.
#[derive(Clone, Copy)]
pub(crate) struct Reads<'c> {
    pub(crate) config: &'c ShardConfig,
    pub(crate) epoch: u64,
    pub(crate) now: Time,
    pub(crate) supply: &'c Supply,
    pub(crate) demand: &'c Demand,
    pub(crate) work: &'c Work,
    pub(crate) sessions: &'c Sessions,
    pub(crate) leaving: &'c LeavingMachines,
    pub(crate) rails: &'c RailSet,
    pub(crate) schedule: &'c Schedule,
    pub(crate) uplink: &'c Uplink,
    pub(crate) holdings: &'c Holdings,
    /// Since when the provider cannot be reached.
    pub(crate) provider_lost: Option<Time>,
    pub(crate) counters: &'c Counters,
    pub(crate) latencies: &'c Latencies,
}

/// Gauges of one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gauges {
    /// The cycle counter.
    pub cycle: u64,
    /// Operations committed and not ended.
    pub in_flight: usize,
    /// Of those, waiting to leave.
    pub waiting: usize,
    /// Calls on the wire.
    pub on_wire: usize,
    /// Connected operators.
    pub sessions: usize,
    /// Whether everything is paused.
    pub paused: bool,
    /// Distinct fingerprints that are short, by priority class: other, batch, service, critical.
    pub shortfalls_by_class: [u32; 4],
    /// Distinct fingerprints that are not served in full, by age: below 10 s, 60 s, 300 s, and beyond.
    pub shortfalls_by_age: [u32; 4],
}

/// How far the provider has been seen since the start (SH-10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Awaits {
    /// Complete Lists so far.
    pub lists: u32,
    /// Machines an earlier process was committed to.
    pub remembered: usize,
    /// Of those, not in any List yet.
    pub unseen: usize,
}

impl Reads<'_> {
    /// Gauges of now.
    pub(crate) fn gauges(&self) -> Gauges {
        let split = self.demand.split();
        Gauges {
            cycle: self.schedule.cycle(),
            in_flight: self.work.len(),
            waiting: self.work.waiting(),
            on_wire: self.work.on_wire(),
            sessions: self.sessions.len(),
            paused: self.rails.is_closed(),
            shortfalls_by_class: split.by_class,
            shortfalls_by_age: self.demand.lacking().by_age(self.now),
        }
    }

    /// What is still to be seen before anything is decided (SH-10); `None` once it was.
    pub(crate) fn awaits(&self) -> Option<Awaits> {
        (!self.supply.is_trusted()).then(|| Awaits {
            lists: self.supply.lists(),
            remembered: self.supply.remembered_at_start(),
            unseen: self.supply.remembered().len(),
        })
    }

    /// The demand last believed of every cluster that this process has heard.
    fn baselines(&self) -> impl Iterator<Item = &Baseline> {
        let ready = self.demand.clusters().filter(|(_, known)| known.is_ready());
        ready.filter_map(|(cluster, _)| self.rails.quarantine().baseline(cluster))
    }
}
