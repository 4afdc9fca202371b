//! A cluster, somebody who may do anything in it, a shard from a script, and operators that can be killed.

use crate::roles::{self, NOBODY, OPERATOR, POD_CONTROLLER, READER};
use bigfleet_hollow_kubelet::{HollowKubelet, HollowNode, register};
use bigfleet_k8s::{Call, Cluster, ResourceKind, crds};
use bigfleet_kube_world::{Parts, World};
use bigfleet_model::ClusterId;
use bigfleet_operator::{Leading, Operator, OperatorSettings, read_template, start};
use bigfleet_operator_core::OperatorConfig;
use bigfleet_scripted_shard::{ScriptedShard, WITHIN};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

pub(crate) struct Scene {
    pub(crate) shard: ScriptedShard,
    pub(crate) admin: Cluster,
    _kubelet: HollowKubelet,
    pub(crate) world: World,
}

/// An operator in a runtime of its own, so that it can be ended without a word.
pub(crate) struct Running {
    pub(crate) operator: Option<Operator>,
    runtime: Option<Runtime>,
}

impl Running {
    /// Ends it as SIGKILL would: nothing is finished, nothing is said.
    pub(crate) fn kill(mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }

    /// Ends it in order.
    pub(crate) async fn stop(mut self) {
        if let Some(operator) = self.operator.take() {
            operator.stop().await;
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Scene {
    pub(crate) async fn start() -> Self {
        let parts = Parts {
            users: [NOBODY, READER, OPERATOR, POD_CONTROLLER]
                .map(str::to_owned)
                .to_vec(),
            ..Parts::default()
        };
        let world = World::start(&parts).unwrap();
        let admin = Cluster::connect(Some(&world.kubeconfig()), None).unwrap();
        let scene = Self {
            shard: ScriptedShard::start().await.unwrap(),
            _kubelet: HollowKubelet::start(&admin),
            admin,
            world,
        };
        roles::give(&scene).await;
        for crd in crds() {
            let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
            scene.admin.done(Call::create(path, &crd)).await.unwrap();
        }
        for kind in ResourceKind::ALL {
            let path = kind.path();
            until("the CRDs are served", async || {
                scene.admin.done(Call::get(&path)).await.ok()
            })
            .await;
        }
        scene
    }

    pub(crate) fn begins(&self, what: &str) {
        eprintln!("== {what}");
        self.shard.forget();
    }

    pub(crate) fn settings(&self) -> OperatorSettings {
        OperatorSettings {
            core: OperatorConfig {
                reclaim_settle: Duration::from_millis(100),
                ..OperatorConfig::new(ClusterId::new("c1").unwrap())
            },
            shard_addr: self.shard.addr.to_string(),
            tls: None,
            leading: Leading {
                elect: false,
                namespace: "default".to_owned(),
                lease: "bigfleet-operator".to_owned(),
                holder: "test".to_owned(),
            },
            template_file: None,
        }
    }

    /// An operator that has spoken to the shard.
    pub(crate) async fn operator(&self) -> Running {
        self.operator_with(self.settings()).await
    }

    pub(crate) async fn operator_with(&self, settings: OperatorSettings) -> Running {
        let before = self.shard.sessions();
        let kubeconfig = self.world.kubeconfig_of(OPERATOR);
        let running = Self::begin(settings, &kubeconfig).await;
        until("a session", async || {
            (before < self.shard.sessions()).then_some(())
        })
        .await;
        running
    }

    pub(crate) async fn begin(settings: OperatorSettings, kubeconfig: &Path) -> Running {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let kubeconfig = kubeconfig.to_owned();
        let operator = runtime.spawn(async move {
            let cluster = Cluster::connect(Some(&kubeconfig), None).unwrap();
            start(cluster, settings)
        });
        Running {
            operator: Some(operator.await.unwrap()),
            runtime: Some(runtime),
        }
    }

    /// A template in a file of the world's.
    pub(crate) fn template(&self, text: &str) -> PathBuf {
        let file = self.world.folder().join("template");
        std::fs::write(&file, text).unwrap();
        drop(read_template(&file).unwrap());
        file
    }

    pub(crate) async fn get(&self, path: &str) -> Option<Value> {
        match self.admin.call(Call::get(path)).await {
            Ok(found) => Some(found),
            Err(refused) if refused.code() == Some(404) => None,
            Err(refused) => panic!("{path}: {refused}"),
        }
    }

    pub(crate) async fn create(&self, path: &str, body: &Value) -> Value {
        self.admin.call(Call::create(path, body)).await.unwrap()
    }

    pub(crate) async fn patch(&self, path: &str, body: &Value) -> Value {
        self.admin
            .call(Call::merge_patch(path, body))
            .await
            .unwrap()
    }

    /// Waits for an object to be like this; `None` if it is not there.
    pub(crate) async fn becomes<T>(
        &self,
        path: &str,
        is: impl Fn(Option<&Value>) -> Option<T>,
    ) -> T {
        until(path, async || is(self.get(path).await.as_ref())).await
    }

    pub(crate) async fn node(&self, name: &str, provider_id: &str) -> HollowNode {
        let node = HollowNode {
            name: name.to_owned(),
            provider_id: provider_id.to_owned(),
            offers: [("cpu", "4"), ("memory", "16Gi")]
                .map(|(name, amount)| (name.to_owned(), amount.to_owned()))
                .into(),
            ..HollowNode::default()
        };
        register(&self.admin, &node).await.unwrap();
        node
    }

    /// A Pod on a Node, running.
    pub(crate) async fn pod(&self, name: &str, node: &str, annotations: Value) {
        let body = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": name, "labels": { "app": name.split('-').next() }, "annotations": annotations },
            "spec": {
                "nodeName": node,
                "containers": [{ "name": "c", "image": "none", "resources": { "requests": { "cpu": "1" } } }],
                "tolerations": [{ "operator": "Exists" }],
            },
        });
        self.create("/api/v1/namespaces/default/pods", &body).await;
        let path = pod_path(name);
        self.becomes(&path, |pod| {
            (pod?["status"]["phase"] == "Running").then_some(())
        })
        .await;
    }

    /// Deletes what a scenario made of the cluster's own.
    pub(crate) async fn clear(&self, paths: &[&str]) {
        for path in paths {
            drop(self.admin.done(Call::delete(path, None)).await);
        }
    }
}

pub(crate) fn pod_path(name: &str) -> String {
    format!("/api/v1/namespaces/default/pods/{name}")
}

pub(crate) fn node_path(name: &str) -> String {
    format!("/api/v1/nodes/{name}")
}

/// Looks until there is something.
pub(crate) async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let end = Instant::now() + WITHIN;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < end, "never: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
