//! One cluster of a fleet: a Kubernetes of its own, with our two processes beside it.

use crate::ledger::{Ledger, OPERATOR};
use crate::objects::ZONE;
use crate::shard_scene::{Process, WITHIN};
use bigfleet_hollow_kubelet::HollowKubelet;
use bigfleet_k8s::Cluster;
use bigfleet_kube_world::{Parts, World};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// How long a drain that nobody needs waits before it evicts.
pub(crate) const SETTLE: Duration = Duration::from_secs(5);

/// Which Pods a ReplicaSet that is made smaller ends last.
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

pub(crate) struct ClusterSite {
    id: String,
    shard: SocketAddr,
    operator: Option<Process>,
    pod_controller: Option<Process>,
    _kubelet: HollowKubelet,
    world: World,
}

impl ClusterSite {
    pub(crate) fn start(id: &str, shard: SocketAddr) -> Self {
        let parts = Parts {
            controllers: true,
            scheduler: true,
            users: vec![OPERATOR.to_owned()],
            audited: true,
        };
        let world = World::start(&parts).unwrap();
        let cluster = Cluster::connect(Some(&world.kubeconfig()), None).unwrap();
        let mut site = Self {
            id: id.to_owned(),
            shard,
            operator: None,
            pod_controller: None,
            _kubelet: HollowKubelet::start(&cluster),
            world,
        };
        let crds = Command::new(env!("CARGO_BIN_EXE_bigfleet"))
            .arg("crds")
            .output()
            .unwrap();
        let crds = String::from_utf8(crds.stdout).unwrap();
        site.kubectl_with(&["apply", "--server-side", "-f", "-"], &crds);
        site.kubectl(&[
            "wait",
            "--for=condition=Established",
            "crd",
            "--all",
            "--timeout=60s",
        ]);
        // What it may do is the matter of another test; here it has a name in the log.
        let user = format!("--user={OPERATOR}");
        let binding = ["create", "clusterrolebinding", OPERATOR, &user];
        site.kubectl(&[&binding[..], &["--clusterrole=cluster-admin"]].concat());
        std::fs::copy(site.world.kubeconfig(), site.template()).unwrap();
        site.start_pod_controller();
        site.start_operator();
        site
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.world.kubeconfig()
    }

    /// What machines join with.
    fn template(&self) -> PathBuf {
        self.world.folder().join("join.tmpl")
    }

    fn start_operator(&mut self) {
        let kubeconfig = self.world.kubeconfig_of(OPERATOR);
        let flags = [
            format!("--kubeconfig={}", kubeconfig.display()),
            "--metrics-addr=127.0.0.1:0".to_owned(),
            "--health-addr=127.0.0.1:0".to_owned(),
            format!("--cluster-id={}", self.id),
            format!("--shard-addr={}", self.shard),
            format!("--reclaim-settle={}s", SETTLE.as_secs()),
            format!("--bootstrap-template-file={}", self.template().display()),
        ];
        self.operator = Some(Process::start(&["operator"], &flags));
    }

    /// Starts a pod controller, unless there is one.
    pub(crate) fn start_pod_controller(&mut self) {
        let flags = [
            format!("--kubeconfig={}", self.world.kubeconfig().display()),
            "--metrics-addr=127.0.0.1:0".to_owned(),
            "--health-addr=127.0.0.1:0".to_owned(),
            "--qps=200".to_owned(),
        ];
        self.pod_controller = Some(Process::start(&["pod-controller"], &flags));
    }

    /// Kills the operator and starts another, which waits until the lease is old.
    pub(crate) fn restart_operator(&mut self) {
        self.operator.take().unwrap().kill();
        self.start_operator();
    }

    pub(crate) fn restart_pod_controller(&mut self) {
        self.pod_controller.take().unwrap().kill();
        self.start_pod_controller();
    }

    /// Ends everything of BigFleet here, without a word.
    pub(crate) fn stop_all(&mut self) {
        for part in [&mut self.operator, &mut self.pod_controller] {
            part.take().unwrap().kill();
        }
    }

    /// Ends the pod controller, and deletes every request there is.
    pub(crate) fn wipe_requests(&mut self) {
        self.pod_controller.take().unwrap().kill();
        self.kubectl(&["delete", "capacityrequests", "--all", "--wait=true"]);
    }

    /// Takes the API server away for so long, and waits until it is back.
    pub(crate) async fn without_api_server(&mut self, away: Duration) {
        self.world.stop_api_server();
        tokio::time::sleep(away).await;
        self.world.start_api_server().unwrap();
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

    pub(crate) fn delete(&self, kind: &str, name: &str) {
        self.kubectl(&["delete", kind, name, "--wait=false"]);
    }

    pub(crate) fn scale(&self, name: &str, replicas: u32) {
        let replicas = format!("--replicas={replicas}");
        self.kubectl(&["scale", "deployment", name, &replicas]);
    }

    pub(crate) fn items(&self, words: &[&str]) -> Vec<Value> {
        let list = self.kubectl(&[words, &["-o", "json"]].concat());
        let list: Value = serde_json::from_str(&list).unwrap();
        list["items"].as_array().unwrap().clone()
    }

    /// The Nodes, by name.
    pub(crate) fn nodes(&self) -> Vec<String> {
        names(&self.items(&["get", "nodes"]))
    }

    /// The Pods of a Deployment that run, by name.
    pub(crate) fn pods(&self, name: &str) -> Vec<String> {
        let mut items = self.items(&["get", "pods", "-l", &format!("app={name}")]);
        items.retain(|item| {
            item["status"]["phase"] == "Running" && item["metadata"]["deletionTimestamp"].is_null()
        });
        names(&items)
    }

    /// Of the Pods of a Deployment, those that stay when it is made smaller by the controllers: one on each of so many Nodes.
    pub(crate) fn keep_one_each(&self, name: &str, nodes: usize) {
        let items = self.items(&["get", "pods", "-l", &format!("app={name}")]);
        let cost = |pod: &Value| pod["metadata"]["annotations"][DELETION_COST].is_string();
        let mut kept: BTreeMap<&str, &Value> = BTreeMap::new();
        for pod in &items {
            let one = kept.entry(pod["spec"]["nodeName"].as_str().unwrap());
            let one = one.or_insert(pod);
            if cost(pod) {
                *one = pod; // it costs more than others already
            }
        }
        assert!(nodes <= kept.len(), "{} Nodes have Pods", kept.len());
        let pods = kept.values().take(nodes);
        let pods = pods.map(|pod| pod["metadata"]["name"].as_str().unwrap());
        let cost = format!("{DELETION_COST}=100");
        let words: Vec<&str> = ["annotate", "--overwrite", "pods"]
            .into_iter()
            .chain(pods)
            .chain([&*cost])
            .collect();
        self.kubectl(&words);
    }

    /// The zones in which the Pods of a Deployment are.
    pub(crate) fn zones(&self, name: &str) -> BTreeSet<String> {
        let nodes = self.items(&["get", "nodes"]);
        let zone_of = |pod: &Value| {
            let is_its = |node: &&Value| node["metadata"]["name"] == pod["spec"]["nodeName"];
            let node = nodes.iter().find(is_its)?;
            node["metadata"]["labels"][ZONE].as_str().map(str::to_owned)
        };
        let pods = self.items(&["get", "pods", "-l", &format!("app={name}")]);
        pods.iter().filter_map(zone_of).collect()
    }

    /// What reached the API server so far.
    pub(crate) fn ledger(&self) -> Ledger {
        Ledger::of(&self.world.audit_log(), SETTLE)
    }

    /// What everybody here says, for a test that fails.
    pub(crate) fn told(&self) -> String {
        let parts = [&self.operator, &self.pod_controller];
        let texts = parts.map(|part| part.as_ref().map(Process::text).unwrap_or_default());
        let cluster = self.kubectl(&["get", "pods,nodes,cr,upn", "-o", "wide"]);
        format!("{}\n{cluster}", texts.join("\n\n"))
    }

    /// Waits until it holds; what must never happen is looked for with every look.
    pub(crate) async fn until(&self, what: &str, mut look: impl AsyncFnMut(&Self) -> bool) {
        let end = Instant::now() + 3 * WITHIN;
        while !look(self).await {
            assert!(
                Instant::now() < end,
                "never in {}: {what}\n{}",
                self.id,
                self.told()
            );
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    }

    /// Waits until exactly so many Pods of a Deployment run.
    pub(crate) async fn runs(&self, name: &str, count: usize) {
        let what = format!("{count} Pods of {name} run");
        self.until(&what, async |site| site.pods(name).len() == count)
            .await;
    }

    pub(crate) async fn requests_are(&self, count: usize) {
        let what = format!("{count} requests");
        self.until(&what, async |site| {
            site.items(&["get", "capacityrequests"]).len() == count
        })
        .await;
    }

    /// Waits until the operator has said that a human must hear of this.
    pub(crate) async fn alarms(&self, alert: &str) {
        let labels = format!("cluster=\"{}\",alert=\"{alert}\"", self.id);
        let metric = format!("bigfleet_operator_alerts_total{{{labels}}}");
        let operator = self.operator.as_ref().unwrap();
        self.until(&metric, async |_| 0.0 < operator.metric(&metric))
            .await;
    }

    /// Waits for a Node that is like this.
    pub(crate) async fn some_node(&self, what: &str, is: impl Fn(&Value) -> bool) {
        let what = format!("a Node {what}");
        self.until(&what, async |site| {
            site.items(&["get", "nodes"]).iter().any(&is)
        })
        .await;
    }

    /// Waits for something while so many Pods of a Deployment run at every moment that is looked at.
    pub(crate) async fn keeps(
        &self,
        name: &str,
        least: usize,
        mut look: impl AsyncFnMut(&Self) -> bool,
    ) {
        let path = "jsonpath={.status.currentHealthy}";
        self.until("what is waited for", async |site| {
            let budget = site.kubectl(&["get", "pdb", name, "-o", path]);
            let healthy: usize = budget.parse().unwrap_or(least);
            assert!(
                least <= healthy,
                "{healthy} Pods of {name} are left\n{}",
                site.told()
            );
            look(site).await
        })
        .await;
    }
}

impl Drop for ClusterSite {
    fn drop(&mut self) {
        // Processes first: they would only complain about a cluster that goes.
        drop((self.operator.take(), self.pod_controller.take()));
    }
}

fn names(items: &[Value]) -> Vec<String> {
    let name = |item: &Value| item["metadata"]["name"].as_str().unwrap().to_owned();
    items.iter().map(name).collect()
}
