//! Settings: checked once at the edge; inside, every value is usable as it is.

use crate::{bootstrap::Template, defect::Defect};
use bigfleet_model::{ClusterId, Operator, Requirement};
use std::{sync::Arc, time::Duration};

/// How an operator is set up.
#[derive(Clone, Debug)]
pub struct OperatorConfig {
    /// The cluster it speaks for.
    pub cluster: ClusterId,
    /// How often a roll-up is sent though nothing changed.
    pub rollup_interval: Duration,
    /// Writes to the API server per second.
    pub qps: u32,
    /// Writes at once after a pause.
    pub burst: u32,
    /// Acknowledgements at once.
    pub ack_concurrency: usize,
    /// Plain rows are split by unit class (OP-22).
    pub unit_classes: bool,
    /// Nodes whose Pods fit elsewhere count as empty (OP-69).
    pub consolidate: bool,
    /// How long a drain that can wait does so after its cordon.
    pub reclaim_settle: Duration,
    /// Nodes of machines that left are deleted; otherwise they are uncordoned.
    pub node_cleanup: bool,
    /// Nodes that are no machines of ours; empty for none.
    pub unmanaged_nodes: Vec<Requirement>,
    /// How long a withdrawal that looks like a loss is held (OP-24).
    pub max_withdrawal_hold: Duration,
    /// How long a join token lasts; `None` for no tokens.
    pub token_ttl: Option<Duration>,
    /// Whether aggregates grow by what DaemonSets take (OP-51).
    pub daemonset_overhead: bool,
    /// The bootstrap template; `None` for the stub.
    pub template: Option<Arc<Template>>,
    /// What moments are spread with; a process draws it when it starts.
    pub jitter_seed: u64,
    /// An old mistake switched back on; only for failing arms, and no flag sets it.
    pub defect: Option<Defect>,
}

impl OperatorConfig {
    /// The defaults of the process.
    pub fn new(cluster: ClusterId) -> Self {
        let control_plane = "node-role.kubernetes.io/control-plane".to_owned();
        Self {
            cluster,
            rollup_interval: Duration::from_secs(10),
            qps: 50,
            burst: 100,
            ack_concurrency: 16,
            unit_classes: true,
            consolidate: false,
            reclaim_settle: Duration::from_secs(60),
            node_cleanup: true,
            unmanaged_nodes: Requirement::new(control_plane, Operator::Exists, Vec::new())
                .into_iter()
                .collect(),
            max_withdrawal_hold: Duration::from_secs(1800),
            token_ttl: None,
            daemonset_overhead: true,
            template: None,
            jitter_seed: 0,
            defect: None,
        }
    }
}
