//! `docs/tour-kubernetes.md` is true: what a cluster's owner types there, typed in order, runs fifty Pods.

use crate::fleet::Daemons;
use crate::shard_scene::{Folder, Process, until};
use bigfleet_hollow_kubelet::HollowKubelet;
use bigfleet_k8s::Cluster;
use bigfleet_kube_world::{Parts, World};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

const PAGE: &str = "docs/tour-kubernetes.md";
const EXAMPLE: &str = "examples/providers/kubernetes-nodes";

/// What stays in the foreground of its terminal; the page's own ports, so that tests can run side by side; and what a test says
/// beside what the page does, for the same reason.
const TERMINALS: [(&str, &str, &str); 4] = [
    ("bigfleet provider exec", "127.0.0.1:9000", ""),
    ("bigfleet shard", "127.0.0.1:7780", "--listen=127.0.0.1:0"),
    ("bigfleet pod-controller", "", "--health-addr=127.0.0.1:0"),
    ("bigfleet operator", "", "--health-addr=127.0.0.1:0"),
];

/// The commands of a section, in order.
fn typed(section: &str) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join(PAGE)).unwrap();
    let text = page.split("\n## ").find(|text| text.starts_with(section));
    let blocks = text.unwrap().split("```sh\n").skip(1);
    let lines = blocks.flat_map(|block| block.split("```").next().unwrap().lines());
    let lines = lines.map(|line| line.trim().to_owned());
    lines.filter(|line| !line.is_empty()).collect()
}

/// A command of the page in a shell, in a folder of its own, with our binary and kubectl in the path.
fn shell(command: &str, folder: &Folder, world: &World) -> Command {
    let binary = Path::new(env!("CARGO_BIN_EXE_bigfleet")).parent().unwrap();
    let kubectl = World::kubectl_program().unwrap();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = vec![binary.to_owned(), kubectl.parent().unwrap().to_owned()];
    places.extend(std::env::split_paths(&path));
    let mut shell = Command::new("sh");
    shell
        .args(["-c", command])
        .current_dir(&folder.0)
        .env("PATH", std::env::join_paths(places).unwrap())
        .env("HOME", &folder.0)
        .env("KUBECONFIG", world.kubeconfig());
    shell
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_page_says_joins_a_cluster() {
    let parts = Parts {
        controllers: true,
        scheduler: true,
        ..Parts::default()
    };
    let world = World::start(&parts).unwrap();
    let cluster = Cluster::connect(Some(&world.kubeconfig()), None).unwrap();
    let _kubelet = HollowKubelet::start(&cluster);
    let folder = Folder::new("page");
    let _daemons = Daemons(folder.0.clone());
    std::fs::create_dir_all(folder.file(EXAMPLE)).unwrap();
    for file in ["node.py", "provider.yaml"] {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let name = Path::new(EXAMPLE).join(file);
        std::fs::copy(root.join(&name), folder.0.join(&name)).unwrap();
    }

    let mut terminals: Vec<Process> = Vec::new();
    let mut addresses: Vec<(&str, String)> = Vec::new();
    for mut command in typed("Type this") {
        let terminal = TERMINALS
            .iter()
            .find(|(begins, ..)| command.starts_with(begins));
        for (said, is) in &addresses {
            command = command.replace(said, is);
        }
        let Some((_, port, more)) = terminal else {
            let output = shell(&command, &folder, &world).output().unwrap();
            let error = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{command}: {error}");
            continue;
        };
        if !port.is_empty() {
            command = command.replace(port, "127.0.0.1:0");
        }
        let command = format!("exec {command} {more} --metrics-addr=127.0.0.1:0 --log-format=json");
        let process = Process::spawn(shell(&command, &folder, &world));
        if !port.is_empty() {
            addresses.push((port, process.addr.to_string()));
        }
        terminals.push(process);
    }
    assert_eq!(terminals.len(), TERMINALS.len(), "each has a terminal");

    until("fifty Pods run", async || {
        let said = world.kubectl(&["get", "pods", "-o", "json"]).unwrap();
        let list: Value = serde_json::from_slice(&said.stdout).unwrap();
        let pods = list["items"].as_array().unwrap();
        let runs = |pod: &&Value| pod["status"]["phase"] == "Running";
        let running = pods.iter().filter(runs).count();
        (running == 50, running)
    })
    .await;
}
