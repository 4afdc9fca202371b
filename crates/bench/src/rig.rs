//! Rig: an engine on a workload that goes on living.
//!
//! ```text
//! workload ── load ──▶ engine ── decide ──▶ actions ── closed loop ──┐
//!                        ▲                                           │
//!                        └── changed rows, machines that moved ◀─────┴── churn
//! ```
//!
//! What the world sends is made before it is taken in, so that a clock around the latter measures the
//! engine and nothing else.

use crate::closed_loop::{ClosedLoop, Moved};
use bigfleet_engine::{Engine, KnownRow};
use bigfleet_model::{ClusterId, Disruption, MachineId, Need, Row, Time};
use bigfleet_workloads::{CYCLE, ChangedRow, Churn, ToldDisruption, Workload};

/// The moment of the first decision.
const START: Time = Time::from_nanos(3_600_000_000_000);
/// When every row arrived.
const ARRIVAL: Time = Time::from_nanos(1_000_000_000);

/// An engine on a workload.
pub struct Rig<'a> {
    workload: &'a Workload,
    engine: Engine,
    closed_loop: ClosedLoop,
    /// The engine's handle of every row, by cluster and number.
    known: Vec<Vec<Option<KnownRow>>>,
    units: Units,
    now: Time,
}

/// What rows ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Units {
    /// What the workload says.
    AsTold,
    /// Whole units, every row (RF-19).
    Whole,
}

/// What the world sends before a cycle.
pub struct Facts {
    rows: Vec<Changed>,
    machines: Vec<Moved>,
    disruptions: Vec<(MachineId, Option<Disruption>)>,
}

/// A row that differs from the cycle before.
struct Changed {
    at: ChangedRow,
    need: Need,
    is_gone: bool,
}

impl Facts {
    /// How many rows differ.
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// How many machines differ.
    pub fn machines(&self) -> usize {
        self.machines.len()
    }
}

impl<'a> Rig<'a> {
    /// Everything there is, record by record; nothing is decided yet.
    pub fn load(workload: &'a Workload) -> Self {
        Self::load_with(workload, Units::AsTold)
    }

    /// The same, with rows that ask for this.
    pub fn load_with(workload: &'a Workload, units: Units) -> Self {
        let mut engine = Engine::new();
        let mut known = Vec::new();
        for cluster in workload.clusters() {
            engine.ready(cluster.id());
            let put = |row| Some(engine.put_row(&need(cluster.id(), row, units)));
            known.push(cluster.rows().map(put).collect());
        }
        let mut closed_loop = ClosedLoop::default();
        closed_loop.load(workload, &mut engine);
        Self {
            workload,
            engine,
            closed_loop,
            known,
            units,
            now: START,
        }
    }

    /// The engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The workload.
    pub fn workload(&self) -> &'a Workload {
        self.workload
    }

    /// Needs, machines and classes the engine has looked at so far.
    pub fn touched(&self) -> u64 {
        let work = self.engine.work();
        work.needs + work.machines + work.classes
    }

    /// Decides on everything.
    pub fn decide_full(&mut self) {
        self.engine.decide_full(self.now);
    }

    /// Decides on what changed.
    pub fn decide(&mut self) {
        self.engine.decide(self.now);
    }

    /// Decides on what changed; says whether there was anything to decide.
    pub(crate) fn decides(&mut self) -> bool {
        let mut parts = 0;
        self.engine.decide_in_parts(self.now, &mut |_| parts += 1);
        0 < parts
    }

    /// Hears what draining machines would disturb.
    pub(crate) fn hear(&mut self, disruptions: &[(MachineId, Option<Disruption>)]) {
        for (machine, level) in disruptions {
            self.engine.set_disruption(machine, *level);
        }
    }

    /// Lets a cycle's time pass.
    pub fn wait(&mut self) {
        self.now = self.now + CYCLE;
    }

    /// What the world sends next: changed demand, machines on their way as decided, and lost ones.
    pub fn next_facts(&mut self, churn: &mut Churn<'_>) -> Facts {
        let changes = churn.next_cycle().clone();
        let mut rows = Vec::new();
        for at in changes.rows {
            let cluster = self.workload.cluster(at.cluster as usize);
            let present = churn.row(at);
            let is_gone = present.is_none();
            let row = present.or_else(|| cluster.rows().nth(at.row as usize));
            rows.extend(row.map(|row| Changed {
                at,
                need: need(cluster.id(), row, self.units),
                is_gone,
            }));
        }
        let mut machines = self.closed_loop.happen(&self.engine, self.now);
        for lost in &changes.lost {
            machines.extend(self.closed_loop.lost(&self.engine, lost));
        }
        let disruptions = changes.disruptions.iter().filter_map(told).collect();
        Facts {
            rows,
            machines,
            disruptions,
        }
    }

    /// Tells the engine.
    pub fn take_in(&mut self, facts: &Facts) {
        for changed in &facts.rows {
            let ChangedRow { cluster, row } = changed.at;
            let held = &mut self.known[cluster as usize][row as usize];
            match (changed.is_gone, *held) {
                (true, _) => {
                    self.engine.remove_row(&changed.need);
                    *held = None;
                }
                (false, Some(row)) => self.engine.update_row(row, &changed.need),
                (false, None) => *held = Some(self.engine.put_row(&changed.need)),
            }
        }
        for moved in &facts.machines {
            moved.put(&mut self.engine);
        }
        self.hear(&facts.disruptions);
    }
}

/// What an operator tells, by the machine's id.
pub(crate) fn told(told: &ToldDisruption) -> Option<(MachineId, Option<Disruption>)> {
    let id = MachineId::new(&told.machine.to_string()).ok()?;
    Some((id, told.level))
}

fn need(cluster: &ClusterId, mut row: Row, units: Units) -> Need {
    row.whole_units |= units == Units::Whole;
    Need {
        cluster: cluster.clone(),
        row,
        arrival: Some(ARRIVAL),
        parked: false,
    }
}
