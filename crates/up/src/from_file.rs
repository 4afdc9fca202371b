//! From a file: turns a fleet file into a simulated cloud, and clusters that ask for what the file says.
//!
//! ```text
//! Fleet ─┬─ machines ─▶ the cloud's slots, and a state file that says who serves whom
//!        └─ clusters ─▶ what each operator rolls up
//! ```
//!
//! A machine that is in the middle of a transition in the file starts in the state before it: that work was
//! never begun here, and the shard will decide again.

use std::sync::Arc;

use bigfleet_model::quantity::format_milli;
use bigfleet_model::{CapacityType, ClusterId, Fleet, Host, Machine, State};
use bigfleet_provider_kit::{Instance, Offer, TextMap, check_instance};
use bigfleet_wire::v1alpha1::CapacityNeed;
use serde_json::{Value, json};

use crate::hardware::PROVIDER;

/// The largest fleet a demonstration runs; larger ones are for `bigfleet shard`.
pub const MOST_MACHINES: usize = 5000;

/// Why a fleet cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FleetRefused {
    /// Too many machines to look at.
    #[error(
        "it has {0} machines, and a demonstration at most {MOST_MACHINES}: run `bigfleet shard` for more"
    )]
    TooLarge(usize),
    /// A machine that no cloud can have.
    #[error("machine {id}: {problem}; a cloud needs to know that of every machine")]
    Machine {
        /// The id of the machine.
        id: String,
        /// What is missing or wrong.
        problem: String,
    },
}

/// A fleet, ready to be run.
#[derive(Clone, Debug)]
pub(crate) struct FleetPlan {
    pub(crate) slots: Vec<Instance>,
    /// The cloud's state file: who serves whom.
    pub(crate) state: String,
    pub(crate) clusters: Vec<(ClusterId, Vec<CapacityNeed>)>,
}

/// The cloud and the clusters of a fleet.
pub(crate) fn play(fleet: &Fleet) -> Result<FleetPlan, FleetRefused> {
    if MOST_MACHINES < fleet.machines.len() {
        return Err(FleetRefused::TooLarge(fleet.machines.len()));
    }
    let machines = fleet.machines.values().map(|known| &known.machine);
    let mut slots = Vec::with_capacity(fleet.machines.len());
    let mut records = Vec::with_capacity(fleet.machines.len());
    for machine in machines {
        let slot = slot(machine);
        check_instance(&slot, false).map_err(|refused| FleetRefused::Machine {
            id: machine.id().to_string(),
            problem: refused.problem,
        })?;
        records.push(record(machine, &slot));
        slots.push(slot);
    }
    let rows = |cluster: &bigfleet_model::Cluster| {
        let needs = cluster.needs().iter();
        needs.map(|need| CapacityNeed::from(&need.row)).collect()
    };
    let clusters = fleet.clusters.iter();
    Ok(FleetPlan {
        slots,
        state: json!({ "machines": records }).to_string(),
        clusters: clusters
            .map(|(id, cluster)| (id.clone(), rows(cluster)))
            .collect(),
    })
}

/// The resting state before a transition; a resting state itself.
fn rests(state: State) -> State {
    match state {
        State::Speculative | State::Creating => State::Speculative,
        State::Idle | State::Configuring | State::Deleting => State::Idle,
        State::Configured | State::Draining => State::Configured,
        State::Failed => State::Failed,
    }
}

fn slot(machine: &Machine) -> Instance {
    let shape = machine.shape();
    let texts = |amounts: &bigfleet_model::Amounts| -> TextMap {
        let text = |(name, milli): (&bigfleet_model::Dimension, i128)| {
            (name.to_string(), format_milli(milli))
        };
        amounts.iter().map(text).collect()
    };
    let hosted = match rests(machine.state()) {
        State::Speculative => false,
        State::Failed => machine.host().is_some(),
        _ => true,
    };
    let made_up = || Host {
        provider: PROVIDER.to_owned(),
        reference: format!("host-{}", machine.id()),
    };
    Instance {
        id: machine.id().to_string(),
        host: hosted.then(|| machine.host().cloned().unwrap_or_else(made_up)),
        hint: None,
        leaving: None,
        offer: Arc::new(Offer {
            instance_type: shape.instance_type.clone(),
            zone: shape.zone.clone(),
            capacity_type: shape.capacity_type,
            price_per_hour: machine.price().dollars_per_hour(),
            interruption_probability: machine.interruption().per_hour(),
            resources: texts(&shape.resources),
            allocatable: shape.allocatable.as_ref().map(texts).unwrap_or_default(),
            labels: shape.labels.clone(),
        }),
    }
}

/// A record of the JSON state file that the provider kit can import.
fn record(machine: &Machine, slot: &Instance) -> Value {
    let state = rests(machine.state());
    let cluster = machine.cluster().filter(|_| state == State::Configured);
    let metadata = cluster.map(|_| machine.assignment().to_metadata());
    let host = slot.host.as_ref();
    let host = host.map(|host| json!({ "Provider": host.provider, "Ref": host.reference }));
    json!({
        "ID": slot.id,
        "State": state.word(),
        "Host": host,
        "InstanceType": slot.offer.instance_type,
        "Zone": slot.offer.zone,
        "CapacityType": CapacityType::word(slot.offer.capacity_type),
        "PricePerHour": slot.offer.price_per_hour,
        "InterruptionProbability": slot.offer.interruption_probability,
        "Resources": slot.offer.resources,
        "Allocatable": slot.offer.allocatable,
        "Labels": slot.offer.labels,
        "Cluster": cluster.map(ClusterId::as_str).unwrap_or_default(),
        "ShardMetadata": metadata,
        "LastError": machine.last_error(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bigfleet_model::{FleetMachine, MachineFacts, Shape};

    fn machine(id: &str, state: State, shape: Shape) -> FleetMachine {
        let mut facts = MachineFacts::new(id, state);
        facts.shape = Arc::new(shape);
        if !matches!(state, State::Speculative | State::Creating) {
            facts.host = Host {
                provider: "metal".to_owned(),
                reference: format!("h-{id}"),
            };
        }
        if matches!(state, State::Configured | State::Draining) {
            facts.cluster = "web".to_owned();
        }
        Machine::new(facts).unwrap().into()
    }

    fn metal() -> Shape {
        Shape {
            instance_type: "m5".to_owned(),
            capacity_type: CapacityType::BareMetal,
            ..Shape::default()
        }
    }

    #[test]
    fn what_is_on_its_way_is_put_back_where_it_last_rested() {
        let mut fleet = Fleet::default();
        for (at, state) in State::ALL.into_iter().take(7).enumerate() {
            fleet.put(machine(&format!("m{at}"), state, metal()));
        }
        let played = play(&fleet).unwrap();
        let state: Value = serde_json::from_str(&played.state).unwrap();
        let records = state["machines"].as_array().unwrap().iter();
        let word = |record: &Value| record["State"].as_str().unwrap().to_owned();
        let words: Vec<String> = records.map(word).collect();
        let [free, idle, serves] = ["Speculative", "Idle", "Configured"];
        assert_eq!(words, [free, free, idle, idle, serves, serves, idle]);
        assert_eq!(
            played
                .slots
                .iter()
                .filter(|slot| slot.host.is_none())
                .count(),
            2
        );
    }

    #[test]
    fn a_machine_no_cloud_can_have_is_refused_by_name() {
        let mut fleet = Fleet::default();
        fleet.put(machine("m1", State::Idle, Shape::default()));
        let refused = play(&fleet).unwrap_err().to_string();
        assert!(
            refused.starts_with("machine m1: instance_type is required"),
            "{refused}"
        );
    }
}
