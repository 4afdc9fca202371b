//! A cluster with everything of BigFleet beside it.

use crate::shard_scene::{Folder, Process, WITHIN, shard, until};
use bigfleet_hollow_kubelet::HollowKubelet;
use bigfleet_k8s::Cluster;
use bigfleet_kube_world::{Parts, World};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

const ZONE: &str = "topology.kubernetes.io/zone";

pub(crate) struct Fleet {
    operator: Option<Process>,
    pod_controller: Option<Process>,
    shard: Option<Process>,
    provider: Option<Process>,
    _daemons: Daemons,
    _kubelet: HollowKubelet,
    world: World,
    folder: Folder,
}

/// The example leaves a process per Node behind, which ends with the Node; these are ended with the test.
struct Daemons(std::path::PathBuf);

impl Drop for Daemons {
    fn drop(&mut self) {
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let works_in = std::fs::read_link(entry.path().join("cwd"));
            if works_in.is_ok_and(|folder| folder.starts_with(&self.0)) {
                let pid = entry.file_name();
                drop(Command::new("kill").arg("-9").arg(pid).status());
            }
        }
    }
}

pub(crate) fn deployment(name: &str, replicas: u32, cpu: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": name },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": { "app": name } },
            "template": {
                "metadata": { "labels": { "app": name } },
                "spec": { "containers": [{
                    "name": "c", "image": "none", "resources": { "requests": { "cpu": cpu, "memory": "64Mi" } },
                }] },
            },
        },
    })
}

pub(crate) fn budget(name: &str) -> Value {
    json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": { "name": name },
        "spec": { "maxUnavailable": 1, "selector": { "matchLabels": { "app": name } } },
    })
}

/// The same, two domains of a zone never more than one apart.
pub(crate) fn spread(name: &str, replicas: u32, cpu: &str) -> Value {
    let mut spread = deployment(name, replicas, cpu);
    spread["spec"]["template"]["spec"]["topologySpreadConstraints"] = json!([{
        "topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": { "matchLabels": { "app": name } },
    }]);
    spread
}

/// The same, all in one zone.
pub(crate) fn gang(name: &str, replicas: u32, cpu: &str) -> Value {
    let mut gang = deployment(name, replicas, cpu);
    gang["spec"]["template"]["spec"]["affinity"] = json!({ "podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [{
            "topologyKey": ZONE, "labelSelector": { "matchLabels": { "app": name } },
        }],
    } });
    gang
}

impl Fleet {
    /// With so many machines to be had in each of these zones.
    pub(crate) async fn start(zones: &[(&str, u32)]) -> Self {
        let parts = Parts {
            controllers: true,
            scheduler: true,
            ..Parts::default()
        };
        let world = World::start(&parts).unwrap();
        let cluster = Cluster::connect(Some(&world.kubeconfig()), None).unwrap();
        let folder = Folder::new("kubernetes");
        let provider = provider(&folder, zones);
        let shard = shard(
            &folder.file("data"),
            provider.addr,
            &["--cycle-interval=500ms"],
        );
        let mut fleet = Self {
            operator: None,
            pod_controller: None,
            shard: Some(shard),
            provider: Some(provider),
            _daemons: Daemons(folder.0.clone()),
            _kubelet: HollowKubelet::start(&cluster),
            world,
            folder,
        };
        let crds = Command::new(env!("CARGO_BIN_EXE_bigfleet"))
            .arg("crds")
            .output()
            .unwrap();
        let crds = String::from_utf8(crds.stdout).unwrap();
        fleet.kubectl_with(&["apply", "--server-side", "-f", "-"], &crds);
        fleet.kubectl(&[
            "wait",
            "--for=condition=Established",
            "crd",
            "--all",
            "--timeout=60s",
        ]);
        let kubeconfig = std::fs::read(fleet.world.kubeconfig()).unwrap();
        std::fs::write(fleet.folder.file("join.tmpl"), kubeconfig).unwrap();
        fleet.start_pod_controller();
        fleet.operator = Some(fleet.start_operator());
        fleet
    }

    fn start_operator(&self) -> Process {
        let shard = self.shard.as_ref().unwrap();
        let flags = [
            format!("--kubeconfig={}", self.world.kubeconfig().display()),
            any("metrics"),
            any("health"),
            "--cluster-id=e2e".to_owned(),
            format!("--shard-addr={}", shard.addr),
            "--reclaim-settle=5s".to_owned(),
            format!(
                "--bootstrap-template-file={}",
                self.folder.file("join.tmpl").display()
            ),
        ];
        Process::start(&["operator"], &flags)
    }

    /// Starts a pod controller, unless there is one.
    pub(crate) fn start_pod_controller(&mut self) {
        let flags = [
            format!("--kubeconfig={}", self.world.kubeconfig().display()),
            any("metrics"),
            any("health"),
            "--qps=200".to_owned(),
        ];
        self.pod_controller = Some(Process::start(&["pod-controller"], &flags));
    }

    /// Kills the shard and starts it again where it was.
    pub(crate) fn restart_shard(&mut self) {
        let old = self.shard.take().unwrap();
        let listen = format!("--listen={}", old.addr);
        old.kill();
        let provider = self.provider.as_ref().unwrap().addr;
        self.shard = Some(shard(
            &self.folder.file("data"),
            provider,
            &["--cycle-interval=500ms", &listen],
        ));
    }

    /// Ends the pod controller, and deletes every request there is.
    pub(crate) async fn wipe_requests(&mut self) {
        self.pod_controller.take().unwrap().kill();
        self.kubectl(&["delete", "capacityrequests", "--all", "--wait=true"]);
    }

    pub(crate) async fn requests_are(&self, count: usize) {
        let what = format!("{count} requests");
        self.until(&what, async |fleet| {
            fleet.items(&["get", "capacityrequests"]).len() == count
        })
        .await;
    }

    /// Waits until the operator has said that a human must hear of this.
    pub(crate) async fn alarms(&self, alert: &str) {
        let metric = format!("bigfleet_operator_alerts_total{{cluster=\"e2e\",alert=\"{alert}\"}}");
        let operator = self.operator.as_ref().unwrap();
        self.until(&metric, async |_| 0.0 < operator.metric(&metric))
            .await;
    }

    /// Takes the API server away for so long, and waits until it is back.
    pub(crate) async fn without_api_server(&mut self, away: std::time::Duration) {
        self.world.stop_api_server();
        tokio::time::sleep(away).await;
        self.world.start_api_server().unwrap();
    }

    /// Kills the operator and starts another, which waits until the lease is old.
    pub(crate) fn restart_operator(&mut self) {
        self.operator.take().unwrap().kill();
        self.operator = Some(self.start_operator());
    }

    /// Ends everything of BigFleet without a word.
    pub(crate) fn stop_all(&mut self) {
        let parts = [
            &mut self.operator,
            &mut self.pod_controller,
            &mut self.shard,
            &mut self.provider,
        ];
        for part in parts {
            part.take().unwrap().kill();
        }
    }

    fn kubectl(&self, words: &[&str]) -> String {
        self.kubectl_with(words, "")
    }

    fn kubectl_with(&self, words: &[&str], input: &str) -> String {
        let said = self.world.kubectl_with(words, input).unwrap();
        let error = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(
            said.status.success(),
            "kubectl {words:?}: {error}\n{}",
            self.world.logs()
        );
        String::from_utf8(said.stdout).unwrap()
    }

    pub(crate) fn apply(&self, object: &Value) {
        self.kubectl_with(&["apply", "-f", "-"], &object.to_string());
    }

    pub(crate) fn scale(&self, name: &str, replicas: u32) {
        self.kubectl(&[
            "scale",
            "deployment",
            name,
            &format!("--replicas={replicas}"),
        ]);
    }

    fn items(&self, words: &[&str]) -> Vec<Value> {
        let list = self.kubectl(&[words, &["-o", "json"]].concat());
        let list: Value = serde_json::from_str(&list).unwrap();
        list["items"].as_array().unwrap().clone()
    }

    /// The Nodes, by name.
    pub(crate) fn nodes(&self) -> Vec<String> {
        let items = self.items(&["get", "nodes"]);
        let name = |item: &Value| item["metadata"]["name"].as_str().unwrap().to_owned();
        items.iter().map(name).collect()
    }

    /// The Pods of a Deployment that run, by name.
    pub(crate) fn pods(&self, name: &str) -> Vec<String> {
        let items = self.items(&["get", "pods", "-l", &format!("app={name}")]);
        let runs = |item: &&Value| {
            item["status"]["phase"] == "Running" && item["metadata"]["deletionTimestamp"].is_null()
        };
        let name = |item: &Value| item["metadata"]["name"].as_str().unwrap().to_owned();
        items.iter().filter(runs).map(name).collect()
    }

    /// What everybody says, for a test that fails.
    fn told(&self) -> String {
        let parts = [
            &self.operator,
            &self.pod_controller,
            &self.shard,
            &self.provider,
        ];
        let texts = parts.map(|part| part.as_ref().map(Process::text).unwrap_or_default());
        let cluster = self.kubectl(&["get", "pods,nodes,cr,upn", "-o", "wide"]);
        format!("{}\n{cluster}", texts.join("\n\n"))
    }

    async fn until(&self, what: &str, mut look: impl AsyncFnMut(&Self) -> bool) {
        let end = Instant::now() + 3 * WITHIN;
        while !look(self).await {
            assert!(Instant::now() < end, "never: {what}\n{}", self.told());
            tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        }
    }

    /// Waits until exactly so many Pods of a Deployment run.
    pub(crate) async fn runs(&self, name: &str, count: usize) {
        let what = format!("{count} Pods of {name} run");
        self.until(&what, async |fleet| fleet.pods(name).len() == count)
            .await;
    }

    /// Waits for a Node that is like this.
    pub(crate) async fn some_node(&self, what: &str, is: impl Fn(&Value) -> bool) {
        let what = format!("a Node {what}");
        self.until(&what, async |fleet| {
            fleet.items(&["get", "nodes"]).iter().any(&is)
        })
        .await;
    }

    /// The zones in which the Pods of a Deployment are.
    pub(crate) fn zones(&self, name: &str) -> BTreeSet<String> {
        let nodes = self.items(&["get", "nodes"]);
        let zone_of = |pod: &Value| {
            let node = nodes
                .iter()
                .find(|node| node["metadata"]["name"] == pod["spec"]["nodeName"]);
            node.map(|node| {
                node["metadata"]["labels"][ZONE]
                    .as_str()
                    .unwrap()
                    .to_owned()
            })
        };
        let pods = self.items(&["get", "pods", "-l", &format!("app={name}")]);
        pods.iter().filter_map(zone_of).collect()
    }

    /// Waits for something while so many Pods of a Deployment run at every moment that is looked at.
    pub(crate) async fn keeps(
        &self,
        name: &str,
        least: usize,
        mut look: impl AsyncFnMut(&Self) -> bool,
    ) {
        self.until("what is waited for", async |fleet| {
            let budget = fleet.kubectl(&[
                "get",
                "pdb",
                name,
                "-o",
                "jsonpath={.status.currentHealthy}",
            ]);
            let healthy: usize = budget.parse().unwrap_or(least);
            assert!(
                least <= healthy,
                "{healthy} Pods of {name} are left\n{}",
                fleet.told()
            );
            look(fleet).await
        })
        .await;
    }

    /// Waits until so many machines have a host: the others were given back.
    pub(crate) async fn hosts_are(&self, count: usize) {
        let machines = self.folder.file("machines");
        until("machines are given back", async || {
            let hosts = std::fs::read_dir(&machines).map_or(0, Iterator::count);
            (hosts == count, hosts)
        })
        .await;
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        // Processes first: they would only complain about a cluster that goes.
        for part in [
            &mut self.operator,
            &mut self.pod_controller,
            &mut self.shard,
            &mut self.provider,
        ] {
            drop(part.take());
        }
    }
}

fn any(what: &str) -> String {
    format!("--{what}-addr=127.0.0.1:0")
}

/// The example whose machines become Nodes, as Spot, so that nobody waits long for them to be given back.
fn provider(folder: &Folder, zones: &[(&str, u32)]) -> Process {
    let example =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/providers/kubernetes-nodes");
    std::fs::copy(example.join("node.py"), folder.file("node.py")).unwrap();
    let config = std::fs::read_to_string(example.join("provider.yaml")).unwrap();
    let (head, offering) = config.split_once("offerings:\n").unwrap();
    let offering = offering.replace("on_demand", "spot\n    interruption_probability: 0.01");
    let in_zone = |(zone, count): &(&str, u32)| {
        let offering = offering.replace("zone-a", zone);
        offering.replace("count: 10", &format!("count: {count}"))
    };
    let offerings: String = zones.iter().map(in_zone).collect();
    let config = format!("{head}offerings:\n{offerings}");
    std::fs::write(folder.file("provider.yaml"), config).unwrap();
    let flags = [
        format!("--config={}", folder.file("provider.yaml").display()),
        format!("--state={}", folder.file("state").display()),
        "--addr=127.0.0.1:0".to_owned(),
        "--metrics-addr=127.0.0.1:0".to_owned(),
        "--reconcile-interval=5s".to_owned(),
    ];
    Process::start(&["provider", "exec"], &flags)
}
