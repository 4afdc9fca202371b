//! A fleet: a shard and a provider whose machines become Nodes of whichever cluster they are configured for.

use crate::cluster_site::ClusterSite;
use crate::shard_scene::{Folder, Process, shard, until};
use serde_json::Value;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

pub(crate) struct Fleet {
    /// The cluster that every fleet here has.
    pub(crate) home: ClusterSite,
    shard: Option<Process>,
    provider: Option<Process>,
    _daemons: Daemons,
    folder: Folder,
}

/// The example leaves a process per Node behind, which ends with the Node; these are ended with the test.
pub(crate) struct Daemons(pub(crate) std::path::PathBuf);

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

impl Fleet {
    /// With so many machines to be had in each of these zones.
    pub(crate) fn start(zones: &[(&str, u32)]) -> Self {
        let folder = Folder::new("kubernetes");
        write_provider(&folder, zones);
        let provider = start_provider(&folder, "127.0.0.1:0");
        let shard = start_shard(&folder, provider.addr, "127.0.0.1:0");
        Self {
            home: ClusterSite::start("home", shard.addr),
            shard: Some(shard),
            provider: Some(provider),
            _daemons: Daemons(folder.0.clone()),
            folder,
        }
    }

    /// Another cluster, served by the same shard.
    pub(crate) fn join(&self, id: &str) -> ClusterSite {
        ClusterSite::start(id, self.shard.as_ref().unwrap().addr)
    }

    /// Kills the shard and starts it again where it was.
    pub(crate) fn restart_shard(&mut self) {
        let old = self.shard.take().unwrap();
        let listen = old.addr.to_string();
        old.kill();
        let provider = self.provider.as_ref().unwrap().addr;
        self.shard = Some(start_shard(&self.folder, provider, &listen));
    }

    /// Kills the provider and starts it again where it was.
    pub(crate) fn restart_provider(&mut self) {
        let old = self.provider.take().unwrap();
        let addr = old.addr.to_string();
        old.kill();
        self.provider = Some(start_provider(&self.folder, &addr));
    }

    /// What `bigfleet why` says of a Pod at home, with what the shard knows.
    pub(crate) fn why(&self, pod: &str) -> Value {
        let mut why = Command::new(env!("CARGO_BIN_EXE_bigfleet"));
        why.args(["why", pod, "-o", "json", "--kubeconfig"])
            .arg(self.home.kubeconfig())
            .arg(format!("--shard={}", self.shard.as_ref().unwrap().addr));
        let said = why.output().unwrap();
        let error = String::from_utf8_lossy(&said.stderr);
        serde_json::from_slice(&said.stdout).unwrap_or_else(|why| panic!("{why}: {error}"))
    }

    /// Waits until the one Pod of a Deployment at home is told to be stuck at its Need.
    pub(crate) async fn is_stuck(&self, name: &str) -> Value {
        let mut told = Value::Null;
        let what = format!("{name} is told to be stuck at its Need");
        self.home
            .until(&what, async |site| {
                let pods = site.items(&["get", "pods", "-l", &format!("app={name}")]);
                let Some(pod) = pods.first() else {
                    return false;
                };
                told = self.why(pod["metadata"]["name"].as_str().unwrap());
                let words = (&told["verdict"], &told["waits_at"], &told["shard_asked"]);
                words == (&"stuck".into(), &"need".into(), &true.into())
            })
            .await;
        told
    }

    /// Ends everything of BigFleet without a word.
    pub(crate) fn stop_all(&mut self) {
        self.home.stop_all();
        for part in [&mut self.shard, &mut self.provider] {
            part.take().unwrap().kill();
        }
    }

    /// Waits until so many machines have a host: the others were given back.
    pub(crate) async fn hosts_are(&self, count: usize) {
        until("machines are given back", async || {
            let hosts = self.hosts();
            (hosts == count, hosts)
        })
        .await;
    }

    /// How many machines have a host.
    pub(crate) fn hosts(&self) -> usize {
        std::fs::read_dir(self.folder.file("machines")).map_or(0, Iterator::count)
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        drop((self.shard.take(), self.provider.take()));
    }
}

fn start_shard(folder: &Folder, provider: SocketAddr, listen: &str) -> Process {
    let listen = format!("--listen={listen}");
    shard(
        &folder.file("data"),
        provider,
        &["--cycle-interval=500ms", &listen],
    )
}

fn start_provider(folder: &Folder, addr: &str) -> Process {
    let flags = [
        format!("--config={}", folder.file("provider.yaml").display()),
        format!("--state={}", folder.file("state").display()),
        format!("--addr={addr}"),
        "--metrics-addr=127.0.0.1:0".to_owned(),
        "--reconcile-interval=5s".to_owned(),
    ];
    Process::start(&["provider", "exec"], &flags)
}

/// The example whose machines become Nodes, as Spot, so that nobody waits long for them to be given back.
fn write_provider(folder: &Folder, zones: &[(&str, u32)]) {
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
}
