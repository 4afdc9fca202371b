//! Report: what an operator says about its nodes and about drains.
//!
//! A report decides whether a machine is credited and when it is drained for good, so an unusable
//! one is refused whole and what was known before stays.

use std::collections::BTreeSet;

use bigfleet_model::{Disruption, IdRefused, MachineId, shown};

use crate::limits::{MAX_NODES, OverLimit, check_count, check_text};
use crate::v1alpha1::{DrainReport, NodeReport, ReportedNode, drain_report::Phase};

/// How one machine's drain goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrainProgress {
    /// The instruction it is about.
    pub instruction: String,
    /// The machine it is about.
    pub machine: MachineId,
    /// The node it was resolved to; may be empty.
    pub node_name: String,
    /// How far the drain is; never unspecified.
    pub phase: Phase,
    /// Pods still to be evicted.
    pub pods_remaining: u32,
}

/// The nodes a cluster sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSightings {
    /// Every node of the cluster is among them; otherwise only those that changed.
    pub complete: bool,
    /// The nodes. No machine appears twice.
    pub nodes: Vec<NodeSighting>,
}

/// One node a cluster sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSighting {
    /// The machine, if the operator can tell.
    pub machine: Option<MachineId>,
    /// Its Kubernetes name.
    pub node_name: String,
    /// Its provider id; may be empty.
    pub provider_id: String,
    /// Whether it is ready.
    pub ready: bool,
    /// What draining it would disturb, if the operator tells.
    pub disruption: Option<Disruption>,
}

/// Why a report is unusable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReportRefused {
    /// A drain report names no instruction.
    #[error("instruction_id is empty (wire 12)")]
    NoInstruction,
    /// The machine is not an id.
    #[error("machine_id: {0} (wire 12)")]
    Machine(IdRefused),
    /// The phase is unspecified or unknown.
    #[error("phase {0} is not a phase of a drain (wire 12)")]
    Phase(i32),
    /// A count below zero.
    #[error("pods_remaining {0} is negative (wire 12)")]
    Pods(i32),
    /// A node without a name.
    #[error("nodes[{0}].node_name is empty (wire 12)")]
    NoNode(usize),
    /// Two nodes claim to be one machine.
    #[error("nodes[{position}]: machine \"{machine}\" is named more than once (wire 12)")]
    Repeated {
        /// The position of the second.
        position: usize,
        /// The machine, made fit to print.
        machine: String,
    },
    /// It holds more than it may.
    #[error(transparent)]
    Limit(#[from] OverLimit),
}

impl DrainProgress {
    /// Checks a drain report.
    pub fn read(message: DrainReport) -> Result<Self, ReportRefused> {
        if message.instruction_id.is_empty() {
            return Err(ReportRefused::NoInstruction);
        }
        check_text("instruction_id", &message.instruction_id)?;
        check_text("node_name", &message.node_name)?;
        let machine = MachineId::new(&message.machine_id).map_err(ReportRefused::Machine)?;
        let phase = match Phase::try_from(message.phase) {
            Ok(phase) if phase != Phase::Unspecified => phase,
            _ => return Err(ReportRefused::Phase(message.phase)),
        };
        let pods = message.pods_remaining;
        Ok(Self {
            instruction: message.instruction_id,
            machine,
            node_name: message.node_name,
            phase,
            pods_remaining: u32::try_from(pods).map_err(|_| ReportRefused::Pods(pods))?,
        })
    }
}

impl NodeSightings {
    /// Checks a node report.
    pub fn read(message: NodeReport) -> Result<Self, ReportRefused> {
        check_count("nodes", message.nodes.len(), MAX_NODES)?;
        let mut nodes = Vec::with_capacity(message.nodes.len());
        let mut seen = BTreeSet::new();
        for (position, node) in message.nodes.into_iter().enumerate() {
            let node = read_node(position, node)?;
            if let Some(machine) = &node.machine
                && !seen.insert(machine.clone())
            {
                let machine = shown(machine.as_str());
                return Err(ReportRefused::Repeated { position, machine });
            }
            nodes.push(node);
        }
        let complete = message.complete;
        Ok(Self { complete, nodes })
    }
}

fn read_node(position: usize, node: ReportedNode) -> Result<NodeSighting, ReportRefused> {
    if node.node_name.is_empty() {
        return Err(ReportRefused::NoNode(position));
    }
    check_text("nodes.node_name", &node.node_name)?;
    check_text("nodes.provider_id", &node.provider_id)?;
    let machine = match node.machine_id.as_str() {
        "" => None,
        id => Some(MachineId::new(id).map_err(ReportRefused::Machine)?),
    };
    Ok(NodeSighting {
        machine,
        node_name: node.node_name,
        provider_id: node.provider_id,
        ready: node.ready,
        disruption: node.disruption.map(Disruption::at_most),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(machine_id: &str, phase: i32, pods_remaining: i32) -> Result<DrainProgress, String> {
        let message = DrainReport {
            instruction_id: "i1".to_owned(),
            machine_id: machine_id.to_owned(),
            node_name: String::new(),
            phase,
            pods_remaining,
        };
        DrainProgress::read(message).map_err(|refused| refused.to_string())
    }

    #[test]
    fn a_drain_report_is_whole_or_refused() {
        assert_eq!(drain("m1", 3, 0).unwrap().phase, Phase::Drained);
        for (report, expected) in [
            (
                drain("", 3, 0),
                "machine_id: an id must not be empty (wire 12)",
            ),
            (
                drain("m1", 0, 0),
                "phase 0 is not a phase of a drain (wire 12)",
            ),
            (
                drain("m1", 9, 0),
                "phase 9 is not a phase of a drain (wire 12)",
            ),
            (
                drain("m1", 1, -1),
                "pods_remaining -1 is negative (wire 12)",
            ),
        ] {
            assert_eq!(report, Err(expected.to_owned()));
        }
        let nameless = DrainProgress::read(DrainReport::default());
        assert_eq!(nameless, Err(ReportRefused::NoInstruction));
    }

    #[test]
    fn a_node_report_names_each_machine_once() {
        let node = |machine_id: &str, node_name: &str| ReportedNode {
            machine_id: machine_id.to_owned(),
            node_name: node_name.to_owned(),
            ..ReportedNode::default()
        };
        let read = |nodes| {
            NodeSightings::read(NodeReport {
                complete: true,
                nodes,
            })
        };
        let telling = |disruption| ReportedNode {
            disruption,
            ..node("", "n1")
        };
        let levels = [None, Some(0), Some(15), Some(16), Some(u32::MAX)];
        let told = read(levels.map(telling).into()).unwrap();
        let told = told.nodes.iter().map(|node| node.disruption);
        let told: Vec<_> = told.map(|told| told.map(Disruption::level)).collect();
        assert_eq!(told, [None, Some(0), Some(15), Some(15), Some(15)]);
        let unknown = read(vec![node("", "n1"), node("", "n2"), node("m1", "n3")]).unwrap();
        assert_eq!(unknown.nodes[0].machine, None);
        let twice = read(vec![node("m\n", "n1"), node("m\n", "n2")]).unwrap_err();
        assert_eq!(
            twice.to_string(),
            "nodes[1]: machine \"m\\n\" is named more than once (wire 12)"
        );
        assert_eq!(read(vec![node("m1", "")]), Err(ReportRefused::NoNode(0)));
    }
}
