//! The cluster that is measured in: an API server, a shard from a script, and many hands to make objects.

use super::QPS;
use crate::processes::process::Process;
use crate::processes::report::NotMeasured;
use bigfleet_k8s::{Call, Cluster, Refused, ResourceKind, crds};
use bigfleet_kube_world::{Parts, World};
use bigfleet_scripted_shard::ScriptedShard;
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Objects made at once.
const HANDS: usize = 16;
/// Whatever takes longer than this is not coming.
const GIVEN_UP_AFTER: Duration = Duration::from_secs(1800);
/// How often to look at what says nothing by itself.
const LOOK: Duration = Duration::from_millis(10);

pub(super) struct BenchCluster {
    pub(super) world: World,
    pub(super) admin: Cluster,
    pub(super) shard: ScriptedShard,
}

impl BenchCluster {
    /// One that knows our resources.
    pub(super) async fn start() -> Result<Self, NotMeasured> {
        let world = tokio::task::spawn_blocking(|| World::start(&Parts::default())).await;
        let world = world.map_err(wrong)?.map_err(wrong)?;
        let admin = Cluster::connect(Some(&world.kubeconfig()), None).map_err(wrong)?;
        let shard = ScriptedShard::start().await;
        let shard = shard.map_err(NotMeasured::system("a port for a shard"))?;
        let cluster = Self {
            world,
            admin,
            shard,
        };
        for crd in crds() {
            let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
            cluster.make(path, &crd).await.map_err(wrong)?;
        }
        for kind in ResourceKind::ALL {
            until("the API server serves our resources", async || {
                let asked = cluster.admin.done(Call::get(&kind.path())).await;
                Ok(asked.ok())
            })
            .await?;
        }
        Ok(cluster)
    }

    async fn make(&self, path: &str, body: &Value) -> Result<(), Refused> {
        self.admin.done(Call::create(path, body)).await
    }

    /// Makes objects, many at once; the next one is asked for when a hand is free.
    pub(super) async fn make_all(
        &self,
        path: &str,
        count: usize,
        object: impl Fn(usize) -> Value,
        mut tell: impl FnMut(usize),
    ) -> Result<(), NotMeasured> {
        let mut making = JoinSet::new();
        for number in 0..count {
            if making.len() == HANDS {
                finished(making.join_next().await)?;
                tell(number);
            }
            let (admin, call) = (self.admin.clone(), Call::create(path, &object(number)));
            making.spawn(async move { admin.done(call).await });
        }
        while let Some(ended) = making.join_next().await {
            finished(Some(ended))?;
        }
        Ok(())
    }

    pub(super) async fn operator(&self, program: &Path) -> Result<Process, NotMeasured> {
        let flags = [
            "--cluster-id=bench".to_owned(),
            format!("--shard-addr={}", self.shard.addr),
        ];
        self.start_process(program, "operator", &flags).await
    }

    pub(super) async fn pod_controller(&self, program: &Path) -> Result<Process, NotMeasured> {
        self.start_process(program, "pod-controller", &[]).await
    }

    async fn start_process(
        &self,
        program: &Path,
        verb: &'static str,
        flags: &[String],
    ) -> Result<Process, NotMeasured> {
        let mut all = vec![
            format!("--kubeconfig={}", self.world.kubeconfig().display()),
            "--metrics-addr=127.0.0.1:0".to_owned(),
            "--health-addr=127.0.0.1:0".to_owned(),
            format!("--qps={QPS}"),
            format!("--burst={QPS}"),
            // Each is alone, and a lease of the one before it would have to run out.
            "--leader-elect=false".to_owned(),
        ];
        all.extend(flags.iter().cloned());
        Process::start(program, verb, &[verb], all).await
    }
}

fn finished(
    ended: Option<Result<Result<(), Refused>, tokio::task::JoinError>>,
) -> Result<(), NotMeasured> {
    match ended {
        None => Ok(()),
        Some(ended) => ended.map_err(wrong)?.map_err(wrong),
    }
}

pub(super) fn wrong(why: impl std::fmt::Display) -> NotMeasured {
    NotMeasured::Wrong(why.to_string())
}

/// Looks until there is something.
pub(super) async fn until<T>(
    what: &str,
    mut look: impl AsyncFnMut() -> Result<Option<T>, NotMeasured>,
) -> Result<T, NotMeasured> {
    let began = Instant::now();
    loop {
        if let Some(found) = look().await? {
            return Ok(found);
        }
        if GIVEN_UP_AFTER < began.elapsed() {
            return Err(NotMeasured::Wrong(format!(
                "it does not come to this: {what}"
            )));
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// The CapacityRequest of this number. One in a thousand has conditions of its own, as the workloads of a large cluster do.
pub(super) fn capacity_request(number: usize) -> Value {
    request(&format!("cr-{number}"), number % 100, 0)
}

/// A CapacityRequest of about the size that the pod controller writes.
pub(super) fn request(name: &str, kind: usize, priority: usize) -> Value {
    let cpu = ["250m", "500m", "1", "2"][kind % 4];
    json!({
        "apiVersion": "bigfleet.lucy.sh/v1alpha1", "kind": "CapacityRequest",
        "metadata": {
            "name": name,
            "labels": { "bigfleet.lucy.sh/owned-by-pod": format!("00000000-0000-4000-8000-{kind:012}") },
            "annotations": { "example.com/team": "a team with a rather long name and a cost centre 4711" },
        },
        "spec": {
            "requirements": [
                { "key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"] },
                { "key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-a", "zone-b", "zone-c"] },
                { "key": "example.com/pool", "operator": "In", "values": [format!("pool-{kind}")] },
            ],
            "resources": { "cpu": cpu, "memory": "1Gi" },
            "priority": priority,
            "topologySpread": [
                { "topologyKey": "topology.kubernetes.io/zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule" },
            ],
        },
    })
}

/// A Pod as a Deployment makes them, with what nobody here reads.
pub(super) fn pod(name: &str, kind: usize) -> Value {
    let environment: Vec<Value> = (0..8)
        .map(|nth| json!({ "name": format!("SETTING_{nth}"), "value": "something that an application reads" }))
        .collect();
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "labels": { "app": format!("app-{kind}"), "pod-template-hash": "5d4f8c7b9" } },
        "spec": {
            "nodeSelector": { "example.com/pool": format!("pool-{kind}") },
            "containers": [{
                "name": "main", "image": "registry.example.com/app:1.2.3", "env": environment,
                "resources": { "requests": { "cpu": "250m", "memory": "1Gi" }, "limits": { "memory": "1Gi" } },
            }],
        },
    })
}
