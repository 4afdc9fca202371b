//! Wording: the core's frames as messages, and an operator's ids back to the core's.

use bigfleet_model::{ClusterId, Host};
use bigfleet_shard_core::{
    Confidence, DrainPhase, Echo, Features, Frame, NodeState, OperationId, RequestId,
};
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
            request_id: request_id(request),
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
        } => {
            let named = match node_name.is_empty() {
                true => machine.to_string(),
                false => node_name.clone(),
            };
            Payload::ReclaimInstruction(ReclaimInstruction {
                instruction_id: instruction_id(instruction),
                nodes: vec![named],
                grace_period_seconds: grace_seconds.into(),
                preemptor_priority,
                targets: vec![ReclaimTarget {
                    machine_id: machine.to_string(),
                    node_name,
                    provider_id: provider_id(host),
                }],
                deadline_unix_nanos: unix_nanos(deadline),
            })
        }
        Frame::ReclaimCancel { instruction } => Payload::ReclaimCancel(ReclaimCancel {
            instruction_id: instruction_id(instruction),
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

/// An id as operators know it: 16 lowercase hex digits, the epoch and then the number (wire 3.3).
/// `None` if it is too large for that, after four thousand million starts or operations.
fn wire_id(epoch: u64, number: u64) -> Option<String> {
    let fits = |part: u64| u32::try_from(part).ok();
    Some(format!("{:08x}{:08x}", fits(epoch)?, fits(number)?))
}

/// An operation as the operator knows it, by the instruction to drain.
pub(crate) fn instruction_id(id: OperationId) -> String {
    wire_id(id.epoch, id.number).unwrap_or_else(|| id.to_string())
}

fn request_id(id: RequestId) -> String {
    wire_id(id.epoch, id.number).unwrap_or_else(|| id.to_string())
}

/// Reads back the id of a request; `None` is an id we never gave out.
pub(crate) fn request(text: &str) -> Option<RequestId> {
    let (epoch, number) = halves(text).or_else(|| parts(text, "blob-"))?;
    Some(RequestId { epoch, number })
}

/// Reads back the id of an instruction, also as an earlier version wrote it.
pub(crate) fn instruction(text: &str) -> Option<OperationId> {
    let (epoch, number) = halves(text).or_else(|| parts(text, "op-"))?;
    Some(OperationId { epoch, number })
}

fn halves(text: &str) -> Option<(u64, u64)> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let is_id = text.len() == 16 && text.bytes().all(is_digit);
    let (epoch, number) = text.split_at_checked(8).filter(|_| is_id)?;
    let read = |half| u64::from_str_radix(half, 16).ok();
    Some((read(epoch)?, read(number)?))
}

fn parts(text: &str, prefix: &str) -> Option<(u64, u64)> {
    let (epoch, number) = text.strip_prefix(prefix)?.split_once('-')?;
    Some((epoch.parse().ok()?, number.parse().ok()?))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// wire 3.3, and what an operator may still have from before an update.
    #[test]
    fn ids_are_sixteen_hex_digits_and_come_back_as_they_were_given_out() {
        let ids = [(3, 41), (1, 1), (u64::from(u32::MAX), 7), (1 << 40, 2)];
        for (epoch, number) in ids {
            let id = RequestId { epoch, number };
            assert_eq!(request(&request_id(id)), Some(id));
            assert_eq!(request(&id.to_string()), Some(id));
            let id = OperationId { epoch, number };
            assert_eq!(instruction(&instruction_id(id)), Some(id));
            assert_eq!(instruction(&id.to_string()), Some(id));
        }
        let id = OperationId {
            epoch: 3,
            number: 41,
        };
        assert_eq!(instruction_id(id), "0000000300000029");
        for hostile in [
            "",
            "blob-",
            "blob-1",
            "blob-x-1",
            "op-1--1",
            "16hexcharacters!",
            "000000030000002A",
            "+000000300000029",
            "000000030000002\u{e9}",
        ] {
            assert_eq!(request(hostile), None);
            assert_eq!(instruction(hostile), None);
        }
    }
}
