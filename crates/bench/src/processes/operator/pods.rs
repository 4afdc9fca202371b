//! Pods: a pod controller beside many of them, started again when all have their requests, and then a burst of new ones.

use super::cluster::{BenchCluster, pod, until, wrong};
use super::report::{BurstReport, PodsReport};
use super::{OperatorSettings, ServerMeter};
use crate::Progress;
use crate::percentiles::{Percentiles, rounded};
use crate::processes::meter::{Meter, cpu_seconds};
use crate::processes::report::NotMeasured;
use bigfleet_k8s::{Call, Cluster, Follow, Followed, Followers, ResourceKind};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::task::{JoinHandle, JoinSet};

const PODS: &str = "/api/v1/namespaces/default/pods";
/// Requests of a Pod are named after its uid.
const NAMED: &str = "cr-pod-";
/// Requests that are not there so long after the last Pod are not coming.
const LOST_AFTER: Duration = Duration::from_secs(30);

pub(super) async fn run(
    settings: &OperatorSettings,
    cluster: &BenchCluster,
    progress: Progress<'_>,
) -> Result<PodsReport, NotMeasured> {
    let count = settings.pods;
    let object = |number: usize| pod(&format!("pod-{number}"), number % 100);
    let tell = |done| progress("making Pods", done, count);
    cluster.make_all(PODS, count, object, tell).await?;

    let watch = RequestWatch::start(&cluster.admin);
    until("the bench sees all requests", async || {
        Ok(watch.is_whole().then_some(()))
    })
    .await?;
    let server = ServerMeter::start(&cluster.world);
    let mut controller = cluster.pod_controller(&settings.program).await?;
    let meter = Meter::start(controller.pid());
    let began = Instant::now();
    until("every Pod has its request", async || {
        controller.is_alive()?;
        let made = watch.count();
        progress("requests of Pods", made, count);
        Ok((count <= made).then_some(()))
    })
    .await?;
    let took = began.elapsed();
    let (api_server, etcd) = server.read();
    let making = meter.read();
    drop(controller);

    progress("starting again", 0, 1);
    let mut controller = cluster.pod_controller(&settings.program).await?;
    let ready = controller.ready().await?;
    let cpu_until_whole_seconds = cpu_seconds(controller.pid());
    let burst = burst(settings, cluster, &watch, progress).await?;
    let again = Meter::start(controller.pid()).read();
    Ok(PodsReport {
        pods: count,
        requests_seconds: rounded(took.as_secs_f64()),
        requests_per_second: rounded(count as f64 / took.as_secs_f64()),
        pod_controller: making,
        api_server,
        etcd,
        ready_seconds: rounded(ready.as_secs_f64()),
        cpu_until_whole_seconds,
        restarted_peak_rss_mb: again.map(|cost| cost.peak_rss_mb),
        burst,
    })
}

async fn burst(
    settings: &OperatorSettings,
    cluster: &BenchCluster,
    watch: &RequestWatch,
    progress: Progress<'_>,
) -> Result<BurstReport, NotMeasured> {
    let count = settings.burst_rate * settings.burst.as_secs() as usize;
    let every = Duration::from_secs(1) / settings.burst_rate as u32;
    let server = ServerMeter::start(&cluster.world);
    let mut making = JoinSet::new();
    let mut tick = tokio::time::interval(every);
    for number in 0..count {
        tick.tick().await;
        progress("a burst of Pods", number, count);
        let admin = cluster.admin.clone();
        let call = Call::create(PODS, &pod(&format!("burst-{number}"), number % 100));
        making.spawn(async move {
            let made: Result<Value, _> = admin.call(call).await;
            made.map(|made| {
                (
                    made["metadata"]["uid"].as_str().map(str::to_owned),
                    Instant::now(),
                )
            })
        });
    }
    let mut made = Vec::with_capacity(count);
    while let Some(ended) = making.join_next().await {
        let (uid, at) = ended.map_err(wrong)?.map_err(wrong)?;
        made.extend(uid.map(|uid| (uid, at)));
    }
    let last = Instant::now();
    until("the requests of the burst", async || {
        let is_seen = |(uid, _): &(String, Instant)| watch.seen_at(uid).is_some();
        let is_over = made.iter().all(is_seen) || LOST_AFTER < last.elapsed();
        Ok(is_over.then_some(()))
    })
    .await?;
    let times: Vec<Duration> = made
        .iter()
        .filter_map(|(uid, at)| Some(watch.seen_at(uid)?.saturating_duration_since(*at)))
        .collect();
    let (api_server, etcd) = server.read();
    Ok(BurstReport {
        pods: count,
        per_second: settings.burst_rate,
        lost: count - times.len(),
        to_request_ms: Percentiles::of(&times, Duration::from_millis(1)),
        api_server,
        etcd,
    })
}

/// A request, of which only the name matters, and that is known without reading it.
#[derive(Deserialize)]
struct Anything {}

/// When each request of a Pod was first seen, by the Pod's uid.
struct RequestWatch {
    seen: Arc<Mutex<Seen>>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Seen {
    is_whole: bool,
    requests: BTreeMap<String, Instant>,
}

impl RequestWatch {
    fn start(admin: &Cluster) -> Self {
        let seen: Arc<Mutex<Seen>> = Arc::default();
        let what = Follow {
            path: ResourceKind::CapacityRequest.path(),
            fields: String::new(),
        };
        let noted = Arc::clone(&seen);
        let tell = move |told: Followed<Anything>| {
            let mut seen = lock(&noted);
            match told {
                Followed::Seen(one) => {
                    if let Some(uid) = one.place.name.strip_prefix(NAMED) {
                        let known = seen.requests.entry(uid.to_owned());
                        known.or_insert_with(Instant::now);
                    }
                }
                Followed::Whole(_) => seen.is_whole = true,
                _ => {}
            }
            std::future::ready(true)
        };
        let task = Followers::default().follow(admin, what, tell);
        Self { seen, task }
    }

    fn is_whole(&self) -> bool {
        lock(&self.seen).is_whole
    }

    fn count(&self) -> usize {
        lock(&self.seen).requests.len()
    }

    fn seen_at(&self, uid: &str) -> Option<Instant> {
        lock(&self.seen).requests.get(uid).copied()
    }
}

impl Drop for RequestWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}
