//! Edit: one thing an engine is told or asked, and the fleet it then knows.

use crate::{Stop, Then};
use bigfleet_engine::Engine;
use bigfleet_model::{
    Cluster, ClusterId, Disruption, Fleet, FleetMachine, Holds, MachineId, Need, Time,
};

/// One thing an engine is told or asked.
#[derive(Clone, Debug)]
pub(crate) enum Edit {
    PutMachine(Box<FleetMachine>),
    RemoveMachine(MachineId),
    SetDisruption(MachineId, Option<Disruption>),
    PutCluster(ClusterId, Cluster),
    RemoveCluster(ClusterId),
    Ready(ClusterId),
    PutRow(Need),
    RemoveRow(Need),
    SetHolds(Holds),
    Decide(Time),
    DecideFull(Time),
}

impl Edit {
    pub(crate) fn tell(&self, engine: &mut Engine) {
        match self {
            Self::PutMachine(machine) => engine.put_machine(machine),
            Self::RemoveMachine(id) => engine.remove_machine(id),
            Self::SetDisruption(id, told) => engine.set_disruption(id, *told),
            Self::PutCluster(id, cluster) => engine.put_cluster(id, cluster),
            Self::RemoveCluster(id) => engine.remove_cluster(id),
            Self::Ready(id) => engine.ready(id),
            Self::PutRow(need) => {
                engine.put_row(need);
            }
            Self::RemoveRow(need) => engine.remove_row(need),
            Self::SetHolds(holds) => engine.set_holds(*holds),
            Self::Decide(now) => engine.decide(*now),
            Self::DecideFull(now) => engine.decide_full(*now),
        }
    }

    /// What the fleet is afterwards; `None` where there is nothing to edit.
    pub(crate) fn apply(&self, fleet: &mut Fleet) -> Option<Then> {
        match self {
            Self::PutMachine(machine) => fleet.put((**machine).clone()),
            Self::RemoveMachine(id) => drop(fleet.machines.remove(id)?),
            Self::SetDisruption(id, told) => fleet.machines.get_mut(id)?.disruption = *told,
            Self::PutCluster(id, cluster) => {
                fleet.clusters.insert(id.clone(), cluster.clone());
            }
            Self::RemoveCluster(id) => drop(fleet.clusters.remove(id)?),
            Self::Ready(id) => {
                let cluster = fleet.clusters.entry(id.clone()).or_default();
                (cluster.ready, cluster.acquire) = (true, true);
            }
            Self::PutRow(need) => change_row(fleet, need, true)?,
            Self::RemoveRow(need) => change_row(fleet, need, false)?,
            Self::SetHolds(holds) => fleet.holds = *holds,
            Self::Decide(now) => {
                fleet.now = *now;
                return Some(Then::Decide);
            }
            Self::DecideFull(now) => {
                fleet.now = *now;
                return Some(Then::Full);
            }
        }
        Some(Then::Pass)
    }
}

/// Puts a row in the place of the one equal in profile and group, or takes that out.
fn change_row(fleet: &mut Fleet, changed: &Need, stays: bool) -> Option<()> {
    let cluster = fleet.clusters.get_mut(&changed.cluster)?;
    let is_it = |need: &Need| {
        (&need.row.profile, &need.row.group) == (&changed.row.profile, &changed.row.group)
    };
    let mut needs = cluster.needs().to_vec();
    match needs.iter().position(is_it) {
        Some(at) if stays => needs[at] = changed.clone(),
        Some(at) => drop(needs.remove(at)),
        None if stays => needs.push(changed.clone()),
        None => return None,
    }
    let rows = needs
        .into_iter()
        .map(|need| (need.row, need.arrival, need.parked));
    let flags = (cluster.ready, cluster.acquire);
    *cluster = Cluster::new(&changed.cluster, rows).ok()?;
    (cluster.ready, cluster.acquire) = flags;
    Some(())
}

/// The fleets a script goes through; what there is nothing to edit for is left out.
pub(crate) fn stops(script: &[Edit]) -> Vec<Stop> {
    let mut fleet = Fleet {
        holds: Holds::default(),
        ..Fleet::default()
    };
    let mut stops: Vec<Stop> = Vec::new();
    for edit in script {
        if let Some(then) = edit.apply(&mut fleet) {
            stops.push(Stop {
                fleet: fleet.clone(),
                then,
            });
        }
    }
    stops
}

/// Tells an engine a whole script. Returns the engine and the fleet it then knows.
pub(crate) fn play(script: &[Edit]) -> (Engine, Fleet) {
    let mut engine = Engine::new();
    let mut fleet = Fleet {
        holds: Holds::default(),
        ..Fleet::default()
    };
    for edit in script {
        if edit.apply(&mut fleet).is_some() {
            edit.tell(&mut engine);
        }
    }
    (engine, fleet)
}
