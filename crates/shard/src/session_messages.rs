//! Messages of a session: the core's frames as an operator reads them, and an operator's words back as
//! the core has them.

use bigfleet_model::{ClusterId, Host};
use bigfleet_shard_core::{Confidence, DrainPhase, Echo, Features, Frame, NodeState};
use bigfleet_wire::v1alpha1::{
    Acknowledgement, AvailableCapacityUpdate, BootstrapRequest, MachineState, NodeStateUpdate,
    ReclaimCancel, ReclaimInstruction, ReclaimTarget, ShardMessage, acknowledgement::Disposition,
    available_capacity_update, drain_report::Phase, shard_message::Payload,
};
use bigfleet_wire::{Feature, Greeting, unix_nanos};

/// A frame as the operator of this cluster reads it.
pub(crate) fn message(frame: Frame, cluster: &ClusterId) -> ShardMessage {
    match frame {
        Frame::Ack {
            echo,
            rollup_id,
            reason,
            term,
            epoch,
        } => Payload::Ack(ack(echo, rollup_id, reason, term, epoch)),
        Frame::Node(node) => Payload::NodeStateUpdate(node_state(*node, cluster)),
        Frame::BootstrapRequest {
            request,
            machine,
            host,
            requirements,
        } => Payload::BootstrapRequest(BootstrapRequest {
            request_id: request.to_string(),
            requirements: requirements.iter().map(Into::into).collect(),
            cluster_id: cluster.to_string(),
            machine_id: machine.to_string(),
            provider_id: provider_id(host),
        }),
        Frame::Reclaim {
            instruction,
            machine,
            node_name,
            host,
            grace_seconds,
            deadline,
            preemptor_priority,
            voluntary,
        } => {
            let named = if node_name.is_empty() {
                machine.to_string()
            } else {
                node_name.clone()
            };
            Payload::ReclaimInstruction(ReclaimInstruction {
                instruction_id: instruction.to_string(),
                nodes: vec![named],
                grace_period_seconds: grace_seconds.into(),
                preemptor_priority,
                targets: vec![ReclaimTarget {
                    machine_id: machine.to_string(),
                    node_name,
                    provider_id: provider_id(host),
                }],
                deadline_unix_nanos: unix_nanos(deadline),
                voluntary,
            })
        }
        Frame::ReclaimCancel { instruction } => Payload::ReclaimCancel(ReclaimCancel {
            instruction_id: instruction.to_string(),
        }),
        Frame::Available {
            fingerprint,
            requirements,
            count,
            confidence,
            cost_per_hour,
        } => Payload::AvailableCapacity(AvailableCapacityUpdate {
            supersedes_key: format!("available:{fingerprint}"),
            requirements: requirements.iter().map(Into::into).collect(),
            resources: None,
            available_count: count.try_into().unwrap_or(i32::MAX),
            confidence: sure(confidence).into(),
            cost_per_hour,
        }),
    }
    .into()
}

fn provider_id(host: Option<Host>) -> String {
    host.map(|host| host.reference).unwrap_or_default()
}

fn sure(confidence: Confidence) -> available_capacity_update::Confidence {
    match confidence {
        Confidence::None => available_capacity_update::Confidence::None,
        Confidence::Medium => available_capacity_update::Confidence::Medium,
        Confidence::High => available_capacity_update::Confidence::High,
    }
}

fn ack(echo: Echo, rollup_id: String, reason: String, term: u64, epoch: u64) -> Acknowledgement {
    let (word, disposition) = match echo {
        Echo::Hello => ("hello", Disposition::Unspecified),
        Echo::RollUpAccepted => ("rollup", Disposition::Accepted),
        Echo::RollUpHeld => ("rollup", Disposition::Held),
        Echo::RollUpRejected => ("rollup-rejected", Disposition::Rejected),
        Echo::ResyncBegin => ("node-state-resync-begin", Disposition::Unspecified),
        Echo::ResyncEnd(_) => ("node-state-resync", Disposition::Unspecified),
    };
    let features = match echo {
        Echo::Hello => Feature::ALL.map(|feature| feature.name().to_owned()).into(),
        Echo::RollUpAccepted
        | Echo::RollUpHeld
        | Echo::RollUpRejected
        | Echo::ResyncBegin
        | Echo::ResyncEnd(_) => Vec::new(),
    };
    let resync_count = match echo {
        Echo::ResyncEnd(count) => count.try_into().unwrap_or(i32::MAX),
        _ => 0,
    };
    Acknowledgement {
        echo: word.to_owned(),
        coordinator_term: term.try_into().unwrap_or(i64::MAX),
        shard_epoch: epoch.try_into().unwrap_or(i64::MAX),
        features,
        disposition: disposition.into(),
        reason,
        rollup_id,
        resync_count,
    }
}

fn node_state(node: NodeState, cluster: &ClusterId) -> NodeStateUpdate {
    NodeStateUpdate {
        supersedes_key: format!("node:{}", node.machine),
        machine_id: node.machine.to_string(),
        cluster_id: cluster.to_string(),
        state: MachineState::from(node.state).into(),
        provider_id: provider_id(node.host),
        node_name: node.node_name,
        last_error: node.last_error,
        labels: node.labels,
        resources: (!node.resources.is_zero()).then(|| (&node.resources).into()),
        removed: node.removed,
        ..NodeStateUpdate::default()
    }
}

/// What an operator that said this Hello can do.
pub(crate) fn features(greeting: &Greeting) -> Features {
    let has = |feature| greeting.features.contains(&feature);
    Features {
        drain_report: has(Feature::DrainReport),
        node_report: has(Feature::NodeReport),
        resync: has(Feature::Resync),
    }
}

/// How far a drain is, as the core has it; `None` is not said.
pub(crate) fn phase(phase: Phase) -> Option<DrainPhase> {
    match phase {
        Phase::Unspecified => None,
        Phase::Started => Some(DrainPhase::Started),
        Phase::Blocked => Some(DrainPhase::Blocked),
        Phase::Drained => Some(DrainPhase::Drained),
        Phase::Unresolved => Some(DrainPhase::Unresolved),
    }
}
