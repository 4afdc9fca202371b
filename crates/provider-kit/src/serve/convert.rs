//! Conversion: between the messages of the contract and the kit's own types, in one place.

use std::sync::Arc;

use bigfleet_model::{CapacityType, Host, MachineId, State, Time};
use bigfleet_wire::v1alpha1 as wire;

use crate::call::{Ack, Ask, Mutation, Refusal, Token};
use crate::list::{ListPage, Query};
use crate::machine::{FailureClass, Machine, Offer, TextMap};

/// What this kit adds to the shared contract, as `MachineList.features` tells it.
pub(crate) const FEATURES: [&str; 7] = [
    "continuation.v1",
    "create-metadata.v1",
    "failure-class.v1",
    "leaving.v1",
    "paging.v1",
    "removed-ids.v1",
    "replayed.v1",
];

/// What a machine's record says of its offer.
pub(crate) fn offered(offer: &Offer) -> wire::Machine {
    wire::Machine {
        instance_type: offer.instance_type.clone(),
        zone: offer.zone.clone(),
        capacity_type: offer.capacity_type.number(),
        price_per_hour: offer.price_per_hour,
        interruption_probability: offer.interruption_probability,
        resources: resources(&offer.resources),
        labels: offer.labels.clone(),
        allocatable: resources(&offer.allocatable),
        ..wire::Machine::default()
    }
}

pub(crate) fn machine(machine: &Machine) -> wire::Machine {
    wire::Machine {
        id: machine.id.to_string(),
        state: machine.state.number(),
        host: machine.host.as_ref().map(|host| wire::HostRef {
            provider: host.provider.clone(),
            r#ref: host.reference.clone(),
        }),
        last_error: machine.last_error.clone(),
        cluster: machine.cluster.clone(),
        shard_metadata: (*machine.metadata).clone(),
        owner_shard_id: machine.owner.to_string(),
        failure_class: failure_class(machine.failure).into(),
        leaving_unix_nanos: machine.leaving.map_or(0, Time::nanos),
        ..offered(&machine.offer)
    }
}

pub(crate) fn failure_class(class: FailureClass) -> wire::FailureClass {
    match class {
        FailureClass::Unspecified => wire::FailureClass::Unspecified,
        FailureClass::Retryable | FailureClass::Passing | FailureClass::NoStock => {
            wire::FailureClass::Retryable
        }
        FailureClass::Permanent => wire::FailureClass::Permanent,
    }
}

fn resources(amounts: &TextMap) -> Option<wire::Resources> {
    (!amounts.is_empty()).then(|| wire::Resources {
        resources: amounts.clone(),
    })
}

/// A machine as our own store keeps it.
pub(crate) fn stored_machine(stored: wire::Machine) -> Result<Machine, String> {
    let capacity = |tier: &CapacityType| tier.number() == stored.capacity_type;
    let failure = match stored.failure_class() {
        wire::FailureClass::Unspecified => FailureClass::Unspecified,
        wire::FailureClass::Retryable => FailureClass::Retryable,
        wire::FailureClass::Permanent => FailureClass::Permanent,
    };
    let amounts = |stated: Option<wire::Resources>| stated.unwrap_or_default().resources;
    let state = State::from_number(stored.state);
    let tier = CapacityType::ALL.into_iter().find(capacity);
    let offer = Offer {
        instance_type: stored.instance_type,
        zone: stored.zone,
        capacity_type: tier
            .ok_or_else(|| format!("{} is no capacity type", stored.capacity_type))?,
        price_per_hour: stored.price_per_hour,
        interruption_probability: stored.interruption_probability,
        resources: amounts(stored.resources),
        allocatable: amounts(stored.allocatable),
        labels: stored.labels,
    };
    let host = |host: wire::HostRef| Host {
        provider: host.provider,
        reference: host.r#ref,
    };
    Ok(Machine {
        id: MachineId::new(&stored.id).map_err(|why| why.to_string())?,
        state: state.ok_or_else(|| format!("{} is no state", stored.state))?,
        host: stored.host.map(host),
        offer: Arc::new(offer),
        refined: false,
        cluster: stored.cluster,
        metadata: Arc::new(stored.shard_metadata),
        owner: stored.owner_shard_id.into(),
        last_error: stored.last_error,
        failure,
        leaving: (stored.leaving_unix_nanos != 0)
            .then(|| Time::from_nanos(stored.leaving_unix_nanos)),
    })
}

pub(crate) fn ack(ack: &Ack) -> wire::TransitionAck {
    wire::TransitionAck {
        operation_id: ack.operation.to_string(),
        machine: Some(machine(&ack.machine)),
        replayed: ack.replayed,
    }
}

/// Everything about an answer but its machines, which become bytes one at a time.
pub(crate) fn page_without_machines(page: &ListPage) -> wire::MachineList {
    wire::MachineList {
        machines: Vec::new(),
        revision: page.revision.clone(),
        removed_ids: page.removed.iter().map(MachineId::to_string).collect(),
        is_full: page.is_full,
        total_machines: i32::try_from(page.total).unwrap_or(i32::MAX),
        features: FEATURES.map(str::to_owned).to_vec(),
        next_page_token: page.next_page.clone(),
    }
}

pub(crate) fn page(page: &ListPage) -> wire::MachineList {
    wire::MachineList {
        machines: page.machines.iter().map(|listed| machine(listed)).collect(),
        ..page_without_machines(page)
    }
}

/// A negative limit is none, as the contract has it; a state nobody knows is refused.
pub(crate) fn query(filter: wire::ListFilter, rotation: usize) -> Result<Query, Refusal> {
    let mut states = Vec::new();
    for number in &filter.states {
        match (number, State::from_number(*number)) {
            (_, Some(state)) => states.push(state),
            // No machine is ever in it, so asking for it alone matches nothing.
            (0, None) => {}
            (other, None) => {
                return Err(Refusal::Invalid(format!(
                    "states: {other} is not a machine state"
                )));
            }
        }
    }
    Ok(Query {
        states: (!filter.states.is_empty()).then_some(states),
        max_results: usize::try_from(filter.max_results).unwrap_or(0),
        since: filter.since_revision,
        page_token: filter.page_token,
        page_size: usize::try_from(filter.page_size).unwrap_or(0),
        removed: filter.accept_removed,
        rotation,
    })
}

pub(crate) fn create(request: wire::CreateRequest) -> Mutation {
    Mutation {
        machine: request.machine_id,
        token: Token {
            shard: request.shard_id,
            epoch: request.shard_epoch,
            sequence: request.sequence_number,
        },
        ask: Ask::Create {
            metadata: Arc::new(request.shard_metadata),
        },
    }
}

pub(crate) fn configure(request: wire::ConfigureRequest) -> Mutation {
    Mutation {
        machine: request.machine_id,
        token: Token {
            shard: request.shard_id,
            epoch: request.shard_epoch,
            sequence: request.sequence_number,
        },
        ask: Ask::Configure {
            cluster: request.cluster_id,
            blob: request.bootstrap_blob.into(),
            metadata: Arc::new(request.shard_metadata),
        },
    }
}

pub(crate) fn drain(request: wire::DrainRequest) -> Mutation {
    Mutation {
        machine: request.machine_id,
        token: Token {
            shard: request.shard_id,
            epoch: request.shard_epoch,
            sequence: request.sequence_number,
        },
        ask: Ask::Drain {
            grace_seconds: request.grace_period_seconds,
        },
    }
}

pub(crate) fn delete(request: wire::DeleteRequest) -> Mutation {
    Mutation {
        machine: request.machine_id,
        token: Token {
            shard: request.shard_id,
            epoch: request.shard_epoch,
            sequence: request.sequence_number,
        },
        ask: Ask::Delete,
    }
}

/// One code per reason. FAILED_PRECONDITION is the fence and nothing else.
pub(crate) fn status(refusal: &Refusal) -> tonic::Status {
    let text = refusal.to_string();
    match refusal {
        Refusal::Invalid(_) => tonic::Status::invalid_argument(text),
        Refusal::Unsupported(_) => tonic::Status::unimplemented(text),
        Refusal::Fenced { .. } => tonic::Status::failed_precondition(text),
        Refusal::NotFound(_) => tonic::Status::not_found(text),
        Refusal::Position { .. } | Refusal::Defect => tonic::Status::internal(text),
        Refusal::Bound { .. } => tonic::Status::already_exists(text),
        Refusal::Unavailable => tonic::Status::unavailable(text),
    }
}
