//! Updates: the shard tells of many machines at once, and each becomes an UpcomingNode; then of all of them again, as they are now.

use super::cluster::{BenchCluster, until, wrong};
use super::report::UpdatesReport;
use super::{OperatorSettings, ServerMeter};
use crate::Progress;
use crate::percentiles::rounded;
use crate::processes::meter::Meter;
use crate::processes::process::Process;
use crate::processes::report::NotMeasured;
use bigfleet_k8s::{Call, ResourceKind};
use bigfleet_wire::v1alpha1 as wire;
use serde_json::Value;
use std::time::{Duration, Instant};

/// As long as nothing has changed for so long, nothing more is coming.
const QUIET: Duration = Duration::from_secs(15);

pub(super) async fn run(
    settings: &OperatorSettings,
    cluster: &BenchCluster,
    operator: &Process,
    progress: Progress<'_>,
) -> Result<UpdatesReport, NotMeasured> {
    let count = settings.updates;
    let (server, own) = (
        ServerMeter::start(&cluster.world),
        Meter::start(operator.pid()),
    );
    let began = Instant::now();
    // Two frames for each, one behind the other: the second is what counts in the end.
    for state in [
        wire::MachineState::Configuring,
        wire::MachineState::Configured,
    ] {
        for number in 0..count {
            cluster.shard.machine(machine(number, state));
        }
    }
    progress("machines", 0, count);
    let (mut best, mut since) = (0, Instant::now());
    let ready = until("every machine is an UpcomingNode", async || {
        let ready = ready(cluster).await?;
        progress("machines", ready, count);
        if best < ready {
            (best, since) = (ready, Instant::now());
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        Ok((count <= ready || QUIET < since.elapsed()).then_some(ready))
    })
    .await?;
    let took = since.saturating_duration_since(began);
    let (api_server, etcd) = server.read();
    Ok(UpdatesReport {
        updates: 2 * count,
        machines: count,
        lost: count.saturating_sub(ready),
        seconds: rounded(took.as_secs_f64()),
        operator: own.read(),
        api_server,
        etcd,
    })
}

/// UpcomingNodes that say what was said last.
async fn ready(cluster: &BenchCluster) -> Result<usize, NotMeasured> {
    let path = ResourceKind::UpcomingNode.path();
    let list: Value = cluster.admin.call(Call::get(&path)).await.map_err(wrong)?;
    let items = list["items"].as_array().into_iter().flatten();
    Ok(items
        .filter(|item| item["status"]["phase"] == "Ready")
        .count())
}

fn machine(number: usize, state: wire::MachineState) -> wire::NodeStateUpdate {
    let amounts = [("cpu", "4"), ("memory", "16Gi")];
    let texts = |pairs: &[(&str, &str)]| {
        let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        pairs.iter().map(owned).collect()
    };
    wire::NodeStateUpdate {
        cluster_id: "bench".to_owned(),
        machine_id: format!("m-{number}"),
        state: state.into(),
        resources: Some(wire::Resources {
            resources: texts(&amounts),
        }),
        labels: texts(&[
            ("kubernetes.io/arch", "amd64"),
            ("topology.kubernetes.io/zone", "zone-a"),
        ]),
        ..wire::NodeStateUpdate::default()
    }
}
