//! Frames: what the shard's core and the operator's core say to each other, in each other's words.
//!
//! The two runtimes put the wire between them; it is tried there. Here a frame is translated as the wire would carry it,
//! and delayed.

use bigfleet_model::{Amounts, ClusterId, Host};
use bigfleet_operator_core as operator;
use bigfleet_operator_core::{Disposition, Heard, Hint, MachineState, Reclaim, Target};
use bigfleet_shard_core as shard;
use bigfleet_shard_core::{
    BlobAnswer, Confidence, DrainPhase, Event, Features, NodeFact, OperationId, RequestId,
    SessionId,
};

/// What this shard can do.
const FEATURES: [&str; 7] = [
    "drain-report.v1",
    "node-report.v1",
    "reclaim-target.v1",
    "resync.v1",
    "whole-units.v1",
    "disruption.v1",
    "need-status.v1",
];

/// What an operator says, as the shard hears it. Roll-ups are named so that no two of a run have one name.
pub(super) fn said(
    session: SessionId,
    cluster: &ClusterId,
    process: u64,
    frame: operator::Frame,
) -> Option<Event> {
    Some(match frame {
        operator::Frame::Hello { features } => Event::SessionOpened {
            session,
            cluster: cluster.clone(),
            features: Features {
                drain_report: features.contains(&FEATURES[0]),
                node_report: features.contains(&FEATURES[1]),
                resync: features.contains(&FEATURES[3]),
            },
            identity: None,
        },
        operator::Frame::RollUp { id, rows, .. } => Event::RolledUp {
            session,
            cluster: cluster.clone(),
            rollup_id: format!("{cluster}-{process}-{}-{id}", session.0),
            rows: Ok(rows),
        },
        operator::Frame::BootstrapResponse { request, answer } => Event::BlobAnswered {
            session,
            request: RequestId::parse(&request)?,
            answer: match answer {
                Ok((user_data, ttl_seconds)) => BlobAnswer::Blob {
                    user_data,
                    ttl_seconds,
                },
                Err(why) => BlobAnswer::Error(why),
            },
        },
        operator::Frame::ReclaimAck { .. } => return None,
        operator::Frame::DrainReport {
            instruction,
            machine,
            phase,
            ..
        } => Event::DrainReported {
            session,
            instruction: OperationId::parse(&instruction)?,
            machine,
            phase: match phase {
                operator::DrainPhase::Started => DrainPhase::Started,
                operator::DrainPhase::Blocked => DrainPhase::Blocked,
                operator::DrainPhase::Drained => DrainPhase::Drained,
                operator::DrainPhase::Unresolved => DrainPhase::Unresolved,
            },
        },
        operator::Frame::NodeReport { complete, nodes } => Event::NodesReported {
            session,
            complete,
            nodes: nodes.into_iter().map(reported).collect(),
        },
    })
}

fn reported(line: operator::NodeLine) -> NodeFact {
    NodeFact {
        machine: Some(line.machine),
        provider_id: line.provider_id,
        node_name: line.node_name,
        ready: line.ready,
        disruption: line
            .disruption
            .and_then(|level| bigfleet_model::Disruption::new(level.into())),
    }
}

/// What the shard says, as an operator hears it.
pub(super) fn heard(frame: shard::Frame) -> Heard {
    match frame {
        shard::Frame::Ack {
            echo,
            rollup_id,
            reason,
            ..
        } => acknowledged(echo, &rollup_id, reason),
        shard::Frame::Node(node) => Heard::NodeState(Box::new(operator::NodeState {
            machine: node.machine.to_string(),
            cluster: String::new(),
            state: state(node.state),
            node_name: node.node_name,
            provider_id: provider_id(node.host),
            last_error: node.last_error,
            labels: node.labels,
            resources: node.resources,
            taints: Vec::new(),
            is_removed: node.removed,
        })),
        shard::Frame::BootstrapRequest {
            request,
            machine,
            host,
            requirements,
        } => Heard::Bootstrap(operator::BootstrapRequest {
            request: request.to_string(),
            cluster: String::new(),
            machine: machine.to_string(),
            provider_id: provider_id(host),
            requirements,
        }),
        shard::Frame::Reclaim {
            instruction,
            machine,
            node_name,
            host,
            grace_seconds,
            preemptor_priority,
            voluntary,
            ..
        } => Heard::Reclaim(Reclaim {
            instruction: instruction.to_string(),
            nodes: vec![machine.to_string()],
            targets: vec![Target {
                machine: machine.to_string(),
                node_name,
                provider_id: provider_id(host),
            }],
            grace_seconds: grace_seconds.into(),
            preemptor_priority,
            voluntary,
        }),
        shard::Frame::ReclaimCancel { instruction } => Heard::ReclaimCancel {
            instruction: instruction.to_string(),
        },
        shard::Frame::Available {
            fingerprint,
            requirements,
            count,
            confidence,
            cost_per_hour,
        } => Heard::Available(Hint {
            key: format!("available:{fingerprint}"),
            requirements,
            resources: Amounts::NONE,
            count,
            availability: match confidence {
                Confidence::None => operator::Availability::None,
                Confidence::Medium => operator::Availability::Medium,
                Confidence::High => operator::Availability::High,
            },
            cost_per_hour,
        }),
    }
}

fn acknowledged(echo: shard::Echo, rollup_id: &str, reason: String) -> Heard {
    let (of, disposition) = match echo {
        shard::Echo::Hello => (operator::Echo::Hello, None),
        shard::Echo::RollUpAccepted => (operator::Echo::RollUp, Some(Disposition::Accepted)),
        shard::Echo::RollUpHeld => (operator::Echo::RollUp, Some(Disposition::Held)),
        shard::Echo::RollUpRejected => {
            (operator::Echo::RollUpRejected, Some(Disposition::Rejected))
        }
        shard::Echo::ResyncBegin => (operator::Echo::ResyncBegin, None),
        shard::Echo::ResyncEnd(_) => (operator::Echo::ResyncEnd, None),
    };
    let features = match echo {
        shard::Echo::Hello => FEATURES.map(str::to_owned).into(),
        _ => Vec::new(),
    };
    let resync_count = match echo {
        shard::Echo::ResyncEnd(count) => Some(count.into()),
        _ => None,
    };
    let own = rollup_id.rsplit('-').next().unwrap_or_default();
    Heard::Ack {
        echo: of,
        features,
        rollup_id: own.to_owned(),
        disposition,
        reason,
        resync_count,
    }
}

fn provider_id(host: Option<Host>) -> String {
    host.map(|host| host.reference).unwrap_or_default()
}

fn state(state: bigfleet_model::State) -> MachineState {
    use bigfleet_model::State;
    match state {
        State::Speculative => MachineState::Speculative,
        State::Creating => MachineState::Creating,
        State::Idle => MachineState::Idle,
        State::Configuring => MachineState::Configuring,
        State::Configured => MachineState::Configured,
        State::Draining => MachineState::Draining,
        State::Deleting => MachineState::Deleting,
        State::Failed => MachineState::Failed,
    }
}
