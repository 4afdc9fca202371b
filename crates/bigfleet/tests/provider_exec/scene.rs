//! A provider of programs in a folder of its own, a caller of it, and the end of whatever its machines are.

use std::path::{Path, PathBuf};
use std::process::Command;

use bigfleet_net::Dial;
use bigfleet_wire::v1alpha1 as wire;
use tonic::transport::Channel;
use wire::MachineState;
use wire::capacity_provider_client::CapacityProviderClient;

use crate::shard_scene::{Folder, Process, until};

pub(crate) struct Exec {
    /// First of all, so that it is gone before its machines are ended.
    pub(crate) provider: Process,
    pub(crate) client: CapacityProviderClient<Channel>,
    _machines: Machines,
    pub(crate) folder: Folder,
}

/// Ends the processes that a test's machines are, whatever became of the test.
struct Machines(PathBuf);

impl Drop for Machines {
    fn drop(&mut self) {
        for pid in pids(&self.0) {
            drop(Command::new("kill").args(["-9", &pid.to_string()]).status());
        }
    }
}

/// The processes that work in this folder or below, or name it on their command line.
pub(crate) fn pids(folder: &Path) -> Vec<u32> {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid: &u32| {
        let works_in = std::fs::read_link(format!("/proc/{pid}/cwd"));
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let named = String::from_utf8_lossy(&command).contains(&*folder.to_string_lossy());
        let program = command.split(|byte| *byte == 0).next().unwrap_or_default();
        let is_provider = program.ends_with(b"/bigfleet");
        works_in.is_ok_and(|it| it.starts_with(folder)) || named && !is_provider
    })
    .collect()
}

/// A copy of an example, so that its machines are not in the repository.
pub(crate) fn example(folder: &Folder, name: &str) -> PathBuf {
    let from = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples/providers")
        .join(name);
    for entry in std::fs::read_dir(&from).unwrap().flatten() {
        if entry.file_type().unwrap().is_file() {
            std::fs::copy(
                entry.path(),
                folder.file(entry.file_name().to_str().unwrap()),
            )
            .unwrap();
        }
    }
    folder.file("provider.yaml")
}

impl Exec {
    /// A provider with this config file and these flags.
    pub(crate) fn start(folder: Folder, config: &Path, flags: &[&str]) -> Self {
        let provider = provider(&folder, config, flags);
        let channel = Dial::provider(None).channel(&provider.addr.to_string());
        Self {
            client: CapacityProviderClient::new(channel.unwrap()),
            provider,
            _machines: Machines(folder.0.clone()),
            folder,
        }
    }

    /// Ends the provider without a word, and starts it again on what it stored.
    pub(crate) fn again(&mut self, config: &Path, flags: &[&str]) {
        self.provider.end();
        self.provider = provider(&self.folder, config, flags);
        let channel = Dial::provider(None).channel(&self.provider.addr.to_string());
        self.client = CapacityProviderClient::new(channel.unwrap());
    }

    pub(crate) async fn list(&self) -> Vec<wire::Machine> {
        let list = self.client.clone().list(wire::ListFilter::default()).await;
        list.unwrap().into_inner().machines
    }

    pub(crate) async fn get(&self, id: &str) -> wire::Machine {
        let machine = wire::MachineRef { id: id.to_owned() };
        self.client.clone().get(machine).await.unwrap().into_inner()
    }

    /// The machine, once it is in this state.
    pub(crate) async fn reaches(&self, id: &str, state: MachineState) -> wire::Machine {
        until(&format!("{id} in {state:?}"), async || {
            let machine = self.get(id).await;
            (machine.state() == state, machine)
        })
        .await
    }

    pub(crate) async fn create(&self, id: &str) -> String {
        let request = wire::CreateRequest {
            machine_id: id.to_owned(),
            ..Default::default()
        };
        let ack = self.client.clone().create(request).await.unwrap();
        ack.into_inner().operation_id
    }

    pub(crate) async fn configure(&self, id: &str, cluster: &str, blob: &[u8]) {
        let request = wire::ConfigureRequest {
            machine_id: id.to_owned(),
            cluster_id: cluster.to_owned(),
            bootstrap_blob: blob.to_vec(),
            ..Default::default()
        };
        self.client.clone().configure(request).await.unwrap();
    }

    pub(crate) async fn drain(&self, id: &str) {
        let request = wire::DrainRequest {
            machine_id: id.to_owned(),
            grace_period_seconds: 5,
            ..Default::default()
        };
        self.client.clone().drain(request).await.unwrap();
    }

    pub(crate) async fn delete(&self, id: &str) {
        let request = wire::DeleteRequest {
            machine_id: id.to_owned(),
            ..Default::default()
        };
        self.client.clone().delete(request).await.unwrap();
    }
}

fn provider(folder: &Folder, config: &Path, flags: &[&str]) -> Process {
    let mut all = vec![
        format!("--config={}", config.display()),
        format!("--state={}", folder.file("state").display()),
        "--addr=127.0.0.1:0".to_owned(),
        "--metrics-addr=127.0.0.1:0".to_owned(),
    ];
    all.extend(flags.iter().map(|flag| (*flag).to_owned()));
    Process::start(&["provider", "exec"], &all)
}

/// A config whose programs are one shell script, called with what it is to do.
pub(crate) fn scripted(folder: &Folder, script: &str) -> PathBuf {
    std::fs::write(folder.file("script"), script).unwrap();
    let program = |kind: &str| serde_json::json!({"run": ["/bin/sh", "./script", kind]});
    let config = serde_json::json!({
        "environment": ["PATH"],
        "programs": {
            "create": program("create"), "configure": program("configure"),
            "drain": program("drain"), "delete": program("delete"),
        },
        "offerings": [{
            "name": "s", "instance_type": "s", "zone": "z", "capacity_type": "on_demand",
            "price_per_hour": 1, "count": 4, "resources": {"cpu": 4},
        }],
    });
    let path = folder.file("config.json");
    std::fs::write(&path, config.to_string()).unwrap();
    path
}
