//! Machine: a model's machine as its provider would say it.

use std::collections::BTreeMap;

use bigfleet_model::{Amounts, CapacityType, Machine, Shape, State};

use crate::amounts::{stated, texts};
use crate::v1alpha1::{self, FailureClass, HostRef, MachineState, Resources};

impl From<&Machine> for v1alpha1::Machine {
    /// The record as a provider would say it; a bound machine's commitment as its metadata.
    fn from(machine: &Machine) -> Self {
        let shape = machine.shape();
        let metadata = |_| machine.assignment().to_metadata();
        Self {
            id: machine.id().to_string(),
            state: MachineState::from(machine.state()).into(),
            host: machine.host().map(|host| HostRef {
                provider: host.provider.clone(),
                r#ref: host.reference.clone(),
            }),
            instance_type: shape.instance_type.clone(),
            zone: shape.zone.clone(),
            capacity_type: v1alpha1::CapacityType::from(shape.capacity_type).into(),
            price_per_hour: machine.price().dollars_per_hour(),
            interruption_probability: machine.interruption().per_hour(),
            resources: stated(&shape.resources),
            labels: shape.labels.clone(),
            last_error: machine.last_error().to_owned(),
            allocatable: shape
                .allocatable
                .as_ref()
                .and_then(|given| allocatable(shape, given)),
            cluster: machine
                .cluster()
                .map(ToString::to_string)
                .unwrap_or_default(),
            shard_metadata: machine.cluster().map(metadata).unwrap_or_default(),
            owner_shard_id: String::new(),
            failure_class: FailureClass::Unspecified.into(),
            leaving_unix_nanos: 0,
        }
    }
}

/// An empty map would read as "not stated", and `resources` would count in its place. So a vector
/// that is stated to be worth nothing names its dimensions.
fn allocatable(shape: &Shape, given: &Amounts) -> Option<Resources> {
    if !given.is_zero() {
        return Some(given.into());
    }
    let nothing = |name: String| (name, "0".to_owned());
    let resources: BTreeMap<_, _> = texts(&shape.resources).into_keys().map(nothing).collect();
    (!resources.is_empty()).then_some(Resources { resources })
}

impl From<State> for MachineState {
    fn from(state: State) -> Self {
        match state {
            State::Speculative => Self::Speculative,
            State::Creating => Self::Creating,
            State::Idle => Self::Idle,
            State::Configuring => Self::Configuring,
            State::Configured => Self::Configured,
            State::Draining => Self::Draining,
            State::Deleting => Self::Deleting,
            State::Failed => Self::Failed,
        }
    }
}

impl From<CapacityType> for v1alpha1::CapacityType {
    fn from(tier: CapacityType) -> Self {
        match tier {
            CapacityType::Unspecified => Self::Unspecified,
            CapacityType::BareMetal => Self::BareMetal,
            CapacityType::Reserved => Self::Reserved,
            CapacityType::OnDemand => Self::OnDemand,
            CapacityType::Spot => Self::Spot,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bigfleet_model::{Assignment, Host, MachineFacts, Terms};

    #[test]
    fn numbers_agree_between_model_and_wire() {
        for state in State::ALL {
            assert_eq!(MachineState::from(state) as i32, state.number());
        }
        for tier in CapacityType::ALL {
            assert_eq!(v1alpha1::CapacityType::from(tier) as i32, tier.number());
        }
    }

    #[test]
    fn a_bound_machine_carries_its_commitment_and_an_unbound_one_none() {
        let part = || "h".to_owned();
        let facts = MachineFacts {
            host: Host {
                provider: part(),
                reference: part(),
            },
            cluster: "a".to_owned(),
            assignment: Assignment {
                terms: Terms {
                    priority: 7,
                    ..Terms::default()
                },
                ..Assignment::default()
            },
            ..MachineFacts::new("m1", State::Configured)
        };
        let bound = v1alpha1::Machine::from(&Machine::new(facts.clone()).unwrap());
        assert_eq!(
            bound.shard_metadata["bigfleet.lucy.sh/assigned-priority"],
            "7"
        );
        let idle = MachineFacts {
            state: State::Idle.into(),
            ..facts
        };
        let idle = v1alpha1::Machine::from(&Machine::new(idle).unwrap());
        assert_eq!((idle.shard_metadata.len(), idle.cluster.as_str()), (0, ""));
    }
}
