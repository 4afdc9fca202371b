//! Frames: what the core says and hears, as messages of the wire.

use bigfleet_model::quantity::parse_supply;
use bigfleet_model::{Amounts, Dimension, Operator, Requirement};
use bigfleet_operator_core::{
    Availability, BootstrapRequest, Disposition, DrainPhase, Echo, Frame, Heard, Hint,
    MachineState, NodeLine, NodeState, Reclaim, RowStatus, Taint, Target,
};
use bigfleet_wire::v1alpha1 as wire;
use bigfleet_wire::{PROTOCOL_VERSION, unix_nanos};
use std::collections::BTreeMap;
use wire::operator_message::Payload;
use wire::shard_message::Payload as FromShard;

/// A frame to the shard.
pub(crate) fn said(cluster: &str, frame: Frame) -> Payload {
    match frame {
        Frame::Hello { features } => Payload::Hello(wire::Hello {
            cluster_id: cluster.to_owned(),
            protocol_version: PROTOCOL_VERSION.to_owned(),
            features: features.iter().map(|name| (*name).to_owned()).collect(),
        }),
        Frame::RollUp { id, at, rows } => Payload::Rollup(wire::ClusterCapacityNeeds {
            cluster_id: cluster.to_owned(),
            timestamp_unix_nanos: unix_nanos(at),
            needs: rows.iter().map(wire::CapacityNeed::from).collect(),
            rollup_id: id,
        }),
        Frame::BootstrapResponse { request, answer } => {
            let (user_data, ttl, error) = match answer {
                Ok((blob, ttl)) => (blob, i64::from(ttl), String::new()),
                Err(why) => (Vec::new(), 0, why),
            };
            Payload::BootstrapResponse(wire::BootstrapBlobResponse {
                request_id: request,
                user_data,
                ttl_seconds: ttl,
                error,
            })
        }
        Frame::ReclaimAck {
            instruction,
            nodes_started,
        } => Payload::ReclaimAck(wire::ReclaimAck {
            instruction_id: instruction,
            nodes_started: i32::try_from(nodes_started).unwrap_or(i32::MAX),
        }),
        Frame::DrainReport {
            instruction,
            machine,
            node_name,
            phase,
            pods_remaining,
        } => Payload::DrainReport(wire::DrainReport {
            instruction_id: instruction,
            machine_id: machine.as_str().to_owned(),
            node_name,
            phase: drain_phase(phase).into(),
            pods_remaining: i32::try_from(pods_remaining).unwrap_or(i32::MAX),
        }),
        Frame::NodeReport { complete, nodes } => Payload::NodeReport(wire::NodeReport {
            complete,
            nodes: nodes.into_iter().map(reported).collect(),
        }),
    }
}

fn drain_phase(phase: DrainPhase) -> wire::drain_report::Phase {
    match phase {
        DrainPhase::Started => wire::drain_report::Phase::Started,
        DrainPhase::Blocked => wire::drain_report::Phase::Blocked,
        DrainPhase::Drained => wire::drain_report::Phase::Drained,
        DrainPhase::Unresolved => wire::drain_report::Phase::Unresolved,
    }
}

fn reported(line: NodeLine) -> wire::ReportedNode {
    wire::ReportedNode {
        machine_id: line.machine.as_str().to_owned(),
        node_name: line.node_name,
        provider_id: line.provider_id,
        ready: line.ready,
        disruption: line.disruption.map(u32::from),
    }
}

/// A frame of the shard; what is not known here is `Unknown`, and changes nothing.
pub(crate) fn heard(frame: wire::ShardMessage) -> Heard {
    match frame.payload {
        Some(FromShard::Ack(ack)) => acknowledged(ack),
        Some(FromShard::BootstrapRequest(asked)) => Heard::Bootstrap(BootstrapRequest {
            request: asked.request_id,
            cluster: asked.cluster_id,
            machine: asked.machine_id,
            provider_id: asked.provider_id,
            requirements: requirements(asked.requirements),
        }),
        Some(FromShard::ReclaimInstruction(asked)) => Heard::Reclaim(Reclaim {
            instruction: asked.instruction_id,
            nodes: asked.nodes,
            targets: asked.targets.into_iter().map(target).collect(),
            grace_seconds: asked.grace_period_seconds,
            preemptor_priority: asked.preemptor_priority,
            voluntary: asked.voluntary,
        }),
        Some(FromShard::ReclaimCancel(cancel)) => Heard::ReclaimCancel {
            instruction: cancel.instruction_id,
        },
        Some(FromShard::NodeStateUpdate(update)) => Heard::NodeState(Box::new(state(update))),
        Some(FromShard::AvailableCapacity(update)) => Heard::Available(hint(update)),
        Some(FromShard::NeedStatus(status)) => Heard::NeedStatus {
            rows: status.rows.into_iter().map(row_status).collect(),
            is_complete: status.complete,
        },
        #[allow(unreachable_patterns, reason = "frames of a later version of the wire")]
        Some(_) | None => Heard::Unknown,
    }
}

fn acknowledged(ack: wire::Acknowledgement) -> Heard {
    use wire::acknowledgement::Disposition as Said;
    let disposition = match ack.disposition() {
        Said::Unspecified => None,
        Said::Accepted => Some(Disposition::Accepted),
        Said::Held => Some(Disposition::Held),
        Said::Rejected => Some(Disposition::Rejected),
    };
    let echo = match ack.echo.as_str() {
        "hello" => Echo::Hello,
        "rollup" => Echo::RollUp,
        "rollup-rejected" => Echo::RollUpRejected,
        "node-state-resync-begin" => Echo::ResyncBegin,
        "node-state-resync" => Echo::ResyncEnd,
        _ => Echo::Unknown,
    };
    let is_end = echo == Echo::ResyncEnd;
    let count = u64::try_from(ack.resync_count).ok();
    Heard::Ack {
        echo,
        features: ack.features,
        rollup_id: ack.rollup_id,
        disposition,
        reason: ack.reason,
        resync_count: count.filter(|_| is_end),
    }
}

fn requirements(from: Vec<wire::NodeSelectorRequirement>) -> Vec<Requirement> {
    let read = |from: wire::NodeSelectorRequirement| {
        Requirement::new(from.key, Operator::from_number(from.operator)?, from.values)
    };
    from.into_iter().filter_map(read).collect()
}

fn target(from: wire::ReclaimTarget) -> Target {
    Target {
        machine: from.machine_id,
        node_name: from.node_name,
        provider_id: from.provider_id,
    }
}

/// What can be read of it: a resource that cannot be is left out.
fn resources(from: Option<wire::Resources>) -> Amounts {
    let texts: BTreeMap<String, String> = from.map(|from| from.resources).unwrap_or_default();
    let entry = |(name, text): (String, String)| {
        let milli = parse_supply(&text).ok()?;
        Some((Dimension::new(&name).ok()?, i128::from(milli)))
    };
    Amounts::from_entries(texts.into_iter().filter_map(entry))
}

fn state(update: wire::NodeStateUpdate) -> NodeState {
    use wire::MachineState as Said;
    let state = match Said::try_from(update.state) {
        Ok(Said::Speculative) => MachineState::Speculative,
        Ok(Said::Creating) => MachineState::Creating,
        Ok(Said::Idle) => MachineState::Idle,
        Ok(Said::Configuring) => MachineState::Configuring,
        Ok(Said::Configured) => MachineState::Configured,
        Ok(Said::Draining) => MachineState::Draining,
        Ok(Said::Deleting) => MachineState::Deleting,
        Ok(Said::Failed) => MachineState::Failed,
        Ok(Said::Unspecified) | Err(_) => MachineState::Unknown,
    };
    let taint = |taint: wire::Taint| Taint {
        key: taint.key,
        value: taint.value,
        effect: taint.effect,
    };
    NodeState {
        machine: update.machine_id,
        cluster: update.cluster_id,
        state,
        node_name: update.node_name,
        provider_id: update.provider_id,
        last_error: update.last_error,
        labels: update.labels.into_iter().collect(),
        resources: resources(update.resources),
        taints: update.taints.into_iter().map(taint).collect(),
        is_removed: update.removed,
    }
}

fn row_status(row: wire::NeedStatusRow) -> RowStatus {
    RowStatus {
        fingerprint: row.profile_fingerprint,
        group: row.group,
        serving: resources(row.serving),
        coming: resources(row.coming),
        stuck: resources(row.stuck),
        missing: resources(row.missing),
        reason: row.reason,
        sentence: row.sentence,
    }
}

fn hint(update: wire::AvailableCapacityUpdate) -> Hint {
    use wire::available_capacity_update::Confidence;
    let availability = match update.confidence() {
        Confidence::Low => Availability::Low,
        Confidence::Medium => Availability::Medium,
        Confidence::High => Availability::High,
        Confidence::None | Confidence::Unspecified => Availability::None,
    };
    Hint {
        key: update.supersedes_key,
        requirements: requirements(update.requirements),
        resources: resources(update.resources),
        count: u32::try_from(update.available_count).unwrap_or_default(),
        availability,
        cost_per_hour: update.cost_per_hour,
    }
}
