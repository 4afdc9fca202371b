//! Report: the object that is printed about a cluster's side, and what was promised about each part.

use crate::checks::{Check, Promises};
use crate::percentiles::Percentiles;
use crate::processes::meter::ProcessCost;
use serde::Serialize;

/// Everything measured.
#[derive(Clone, Debug, Serialize)]
pub struct OperatorReport {
    /// Cores for all processes together, the API server and its store among them.
    pub cores: usize,
    /// Writes a second that each process was given.
    pub qps: usize,
    /// Many CapacityRequests.
    pub requests: RequestsReport,
    /// Many machines at once.
    pub updates: UpdatesReport,
    /// Many Pods.
    pub pods: PodsReport,
}

/// Many CapacityRequests.
#[derive(Clone, Debug, Serialize)]
pub struct RequestsReport {
    /// How many.
    pub requests: usize,
    /// Rows of the first roll-up.
    pub rows: usize,
    /// From the start of the process to the roll-up of all of them.
    pub whole_seconds: f64,
    /// Seconds of a core until then.
    pub cpu_until_whole_seconds: Option<f64>,
    /// Building a roll-up, with the event it followed, as the operator says.
    pub roll_up_ms: Percentiles,
    /// From the answer of the API server to a change until the shard hears of it, while acknowledgements are written.
    pub change_to_roll_up_ms: Percentiles,
    /// The same once there is nothing more to write.
    pub change_to_roll_up_at_rest_ms: Percentiles,
    /// Requests that were told that the shard has them.
    pub acknowledged: usize,
    /// How long that took.
    pub acknowledging_seconds: f64,
    /// How many a second.
    pub acknowledged_per_second: f64,
    /// What the operator used meanwhile; its most since it was started.
    pub operator: Option<ProcessCost>,
    /// What the API server used meanwhile.
    pub api_server: Option<ProcessCost>,
    /// What its store used.
    pub etcd: Option<ProcessCost>,
}

/// Many machines at once.
#[derive(Clone, Debug, Serialize)]
pub struct UpdatesReport {
    /// Frames said, one behind the other.
    pub updates: usize,
    /// Machines they are about.
    pub machines: usize,
    /// Machines whose UpcomingNode does not say what was said last.
    pub lost: usize,
    /// From the first frame to the last UpcomingNode.
    pub seconds: f64,
    /// What the operator used meanwhile.
    pub operator: Option<ProcessCost>,
    /// What the API server used meanwhile.
    pub api_server: Option<ProcessCost>,
    /// What its store used.
    pub etcd: Option<ProcessCost>,
}

/// Many Pods.
#[derive(Clone, Debug, Serialize)]
pub struct PodsReport {
    /// How many, none of them placed.
    pub pods: usize,
    /// From the start of the process until each has its CapacityRequest.
    pub requests_seconds: f64,
    /// How many a second.
    pub requests_per_second: f64,
    /// What the pod controller used meanwhile.
    pub pod_controller: Option<ProcessCost>,
    /// What the API server used meanwhile.
    pub api_server: Option<ProcessCost>,
    /// What its store used.
    pub etcd: Option<ProcessCost>,
    /// From the start of another one, with nothing to write, to its first answer that it is ready.
    pub ready_seconds: f64,
    /// Seconds of a core until then.
    pub cpu_until_whole_seconds: Option<f64>,
    /// The most memory that one ever had.
    pub restarted_peak_rss_mb: Option<f64>,
    /// New Pods beside them.
    pub burst: BurstReport,
}

/// New Pods.
#[derive(Clone, Debug, Serialize)]
pub struct BurstReport {
    /// How many.
    pub pods: usize,
    /// How many a second.
    pub per_second: usize,
    /// Those whose request never came.
    pub lost: usize,
    /// From the answer of the API server to the Pod until its request is seen by a watch.
    pub to_request_ms: Percentiles,
    /// What the API server used meanwhile.
    pub api_server: Option<ProcessCost>,
    /// What its store used.
    pub etcd: Option<ProcessCost>,
}

/// What the bounds were made for.
const REQUESTS: f64 = 100_000.0;
const PODS: f64 = 150_000.0;
/// A process that does nothing has begun by then.
const BEGUN_SECONDS: f64 = 0.5;
/// Below so many the rate is that of the burst, not of `--qps`.
const RATED_FROM: usize = 1_000;

impl Promises for OperatorReport {
    fn checks(&self) -> Vec<Check> {
        let mut checks = self.requests.checks(self.qps);
        let updates = &self.updates;
        checks.push(Check::at_most("updates_lost", updates.lost as f64, 0.0));
        checks.extend(self.pods.checks());
        checks
    }
}

/// A cost that grows with what there is, for less of it.
fn part(bound: f64, of: usize, whole: f64) -> f64 {
    BEGUN_SECONDS + bound * of as f64 / whole
}

impl RequestsReport {
    fn checks(&self, qps: usize) -> Vec<Check> {
        let peak = self.operator.map(|cost| cost.peak_rss_mb);
        let cpu = part(8.0, self.requests, REQUESTS);
        let (during, at_rest) = (
            self.change_to_roll_up_ms.max,
            self.change_to_roll_up_at_rest_ms.max,
        );
        let acknowledged = self.acknowledged as f64;
        let mut checks = vec![
            Check::at_most("operator_peak_rss_mb", peak, 150.0),
            Check::at_most(
                "operator_cpu_until_whole_seconds",
                self.cpu_until_whole_seconds,
                cpu,
            ),
            Check::at_most("roll_up_ms_p99", self.roll_up_ms.p99, 5.0),
            Check::at_most("change_to_roll_up_ms", during, 1_200.0),
            Check::at_most("change_to_roll_up_at_rest_ms", at_rest, 1_200.0),
            Check::at_least("acknowledged", acknowledged, self.requests as f64),
        ];
        if RATED_FROM <= self.requests {
            let rate = self.acknowledged_per_second;
            // Less would mean that something but the API server held them up.
            let bound = 0.75 * qps as f64;
            checks.push(Check::at_least("acknowledged_per_second", rate, bound));
        }
        checks
    }
}

impl PodsReport {
    fn checks(&self) -> Vec<Check> {
        let peak = self.pod_controller.map(|cost| cost.peak_rss_mb);
        let cpu = part(5.0, self.pods, PODS);
        vec![
            Check::at_most("pod_controller_peak_rss_mb", peak, 300.0),
            Check::at_most(
                "pod_controller_restarted_peak_rss_mb",
                self.restarted_peak_rss_mb,
                300.0,
            ),
            Check::at_most(
                "pod_controller_cpu_until_whole_seconds",
                self.cpu_until_whole_seconds,
                cpu,
            ),
            Check::at_most("pod_to_request_lost", self.burst.lost as f64, 0.0),
            Check::at_most(
                "pod_to_request_ms_p99",
                self.burst.to_request_ms.p99,
                1_000.0,
            ),
        ]
    }
}
