//! Requests: from a start beside many of them to a roll-up of all, what a change takes to reach the shard, and how fast they are
//! acknowledged meanwhile.

use super::cluster::{BenchCluster, capacity_request, request, until, wrong};
use super::report::RequestsReport;
use super::{OperatorSettings, ServerMeter};
use crate::Progress;
use crate::percentiles::{Percentiles, rounded};
use crate::processes::meter::{Meter, cpu_seconds};
use crate::processes::process::Process;
use crate::processes::report::NotMeasured;
use bigfleet_k8s::{Call, ResourceKind};
use bigfleet_wire::v1alpha1 as wire;
use std::time::{Duration, Instant};
use wire::operator_message::Payload;

/// They do not come at the same moment of an interval.
const APART: Duration = Duration::from_millis(370);
const ACKNOWLEDGED: &str = "bigfleet_operator_acknowledged_total";
/// What the changes have as priority and nobody else has.
const FIRST_PRIORITY: usize = 1000;

/// Measures, and hands on the operator.
pub(super) async fn run(
    settings: &OperatorSettings,
    cluster: &BenchCluster,
    progress: Progress<'_>,
) -> Result<(RequestsReport, Process), NotMeasured> {
    let count = settings.requests;
    let path = ResourceKind::CapacityRequest.path_in("default");
    let tell = |done| progress("making requests", done, count);
    cluster
        .make_all(&path, count, capacity_request, tell)
        .await?;

    progress("listing requests", 0, 1);
    let began = Instant::now();
    let mut operator = cluster.operator(&settings.program).await?;
    let rows = until("a roll-up of all requests", async || {
        operator.is_alive()?;
        Ok(cluster.shard.first(all_rows))
    })
    .await?;
    let (at, rows) = rows;
    let cpu_until_whole = cpu_seconds(operator.pid());

    let (server, own) = (
        ServerMeter::start(&cluster.world),
        Meter::start(operator.pid()),
    );
    let acknowledging = Instant::now();
    let mut changes = Changes::new(cluster);
    progress("changes while acknowledging", 0, settings.changes);
    let during = changes.timed(&operator, settings.changes).await?;
    let all = count + settings.changes;
    until("all requests are acknowledged", async || {
        let done = operator.metric(ACKNOWLEDGED)? as usize;
        progress("acknowledging", done, all);
        tokio::time::sleep(Duration::from_millis(100)).await;
        Ok((all <= done).then_some(()))
    })
    .await?;
    let took = acknowledging.elapsed();
    let (api_server, etcd) = server.read();
    let operator_cost = own.read();
    progress("changes at rest", 0, settings.changes);
    let at_rest = changes.timed(&operator, settings.changes).await?;
    let acknowledged = until("the last changes are acknowledged", async || {
        let done = operator.metric(ACKNOWLEDGED)? as usize;
        Ok((all + settings.changes <= done).then_some(done))
    })
    .await?;
    let report = RequestsReport {
        requests: count,
        rows,
        whole_seconds: rounded(at.saturating_duration_since(began).as_secs_f64()),
        cpu_until_whole_seconds: cpu_until_whole,
        roll_up_ms: operator.roll_ups_ms(),
        change_to_roll_up_ms: during,
        change_to_roll_up_at_rest_ms: at_rest,
        acknowledged,
        acknowledging_seconds: rounded(took.as_secs_f64()),
        acknowledged_per_second: rounded(all as f64 / took.as_secs_f64()),
        operator: operator_cost,
        api_server,
        etcd,
    };
    Ok((report, operator))
}

/// How many rows the first roll-up with any has: nothing is sent before all requests are known.
fn all_rows(payload: &Payload) -> Option<usize> {
    match payload {
        Payload::Rollup(roll_up) => Some(roll_up.needs.len()),
        _ => None,
    }
}

/// Requests that are like no other, and when the shard heard of each.
struct Changes<'a> {
    cluster: &'a BenchCluster,
    made: usize,
}

impl<'a> Changes<'a> {
    fn new(cluster: &'a BenchCluster) -> Self {
        Self { cluster, made: 0 }
    }

    async fn timed(
        &mut self,
        operator: &Process,
        count: usize,
    ) -> Result<Percentiles, NotMeasured> {
        let mut times = Vec::with_capacity(count);
        for _ in 0..count {
            let priority = FIRST_PRIORITY + self.made;
            let body = request(&format!("change-{}", self.made), self.made, priority);
            self.made += 1;
            let path = ResourceKind::CapacityRequest.path_in("default");
            let admin = &self.cluster.admin;
            admin
                .done(Call::create(&path, &body))
                .await
                .map_err(wrong)?;
            let made = Instant::now();
            let has_it = |payload: &Payload| match payload {
                Payload::Rollup(roll_up) => {
                    let is_it = |need: &wire::CapacityNeed| need.priority == priority as i32;
                    roll_up.needs.iter().any(is_it).then_some(())
                }
                _ => None,
            };
            let (heard, ()) = until("a change reaches the shard", async || {
                Ok(self.cluster.shard.first(has_it))
            })
            .await
            .map_err(|why| operator.failed(&why.to_string()))?;
            times.push(heard.saturating_duration_since(made));
            self.cluster.shard.forget();
            tokio::time::sleep(APART).await;
        }
        Ok(Percentiles::of(&times, Duration::from_millis(1)))
    }
}
