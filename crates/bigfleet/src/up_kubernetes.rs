//! `bigfleet up --kubernetes`: a real Kubernetes with everything of BigFleet beside it, for a person to watch.
//!
//! ```text
//! etcd, API server, controllers, scheduler ─▶ CRDs ─▶ provider exec ─▶ shard ─▶ pod controller, operator
//! a Deployment of 20 Pods ─▶ machines, Nodes ─▶ made smaller ─▶ drained, given back        stop: all of it in reverse
//! ```
//!
//! The parts are processes of this very program, started with the flags a person would type. Kubelets are hollow: no Pod runs
//! anything. Everything is in one folder, which is removed at the end.

use crate::failure::Failure;
use bigfleet_hollow_kubelet::HollowKubelet;
use bigfleet_k8s::Cluster;
use bigfleet_kube_world::{Parts, World};
use serde_json::{Value, json};
use std::future::Future;
use std::io::{BufRead, BufReader, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const LOOK_EVERY: Duration = Duration::from_secs(3);
/// The Deployment is made smaller after it has run for so long.
const SMALLER_AFTER: Duration = Duration::from_secs(30);
const MANY: u32 = 20;
const FEW: u32 = 4;
/// The program behind the machines, and what it offers.
const NODES: &str = include_str!("../../../examples/providers/kubernetes-nodes/node.py");
const OFFERS: &str = include_str!("../../../examples/providers/kubernetes-nodes/provider.yaml");

fn undone(why: &dyn std::fmt::Display) -> Failure {
    Failure::Undone(format!("bigfleet up: {why}"))
}

/// A process of ours. Ended when dropped.
struct Part(Child);

impl Drop for Part {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Everything, running. Ended in the order of the fields.
struct Everything {
    operator: Part,
    pod_controller: Part,
    shard: Part,
    provider: Part,
    _kubelet: HollowKubelet,
    world: World,
    shard_addr: SocketAddr,
}

/// Starts a verb of this program, and waits until it says where it listens.
fn part(folder: &Path, verb: &[&str], flags: &[String]) -> Result<(Part, SocketAddr), Failure> {
    let program = std::env::current_exe().map_err(|why| undone(&why))?;
    let mut command = Command::new(program);
    command
        .args(verb)
        .args(flags)
        .args(["--log-format=json", "--metrics-addr=127.0.0.1:0"])
        .env_remove("RUST_LOG")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    // Ctrl-C is for us: the parts are ended in order.
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = command.spawn().map_err(|why| undone(&why))?;
    let log = folder.join(format!("{}.log", verb[0]));
    let mut log = std::fs::File::create(log).map_err(|why| undone(&why))?;
    let lines = child
        .stderr
        .take()
        .map(|stderr| BufReader::new(stderr).lines());
    let mut lines = lines.into_iter().flatten().map_while(Result::ok);
    let part = Part(child);
    let mut last = String::new();
    for line in lines.by_ref() {
        drop(writeln!(log, "{line}"));
        let said: Value = serde_json::from_str(&line).unwrap_or_default();
        if said["fields"]["message"] == "listening" {
            let addr = said["fields"]["addr"]
                .as_str()
                .and_then(|text| text.parse().ok());
            std::thread::spawn(move || lines.for_each(|line| drop(writeln!(log, "{line}"))));
            return addr.map(|addr| (part, addr)).ok_or_else(|| undone(&line));
        }
        last = line;
    }
    Err(undone(&format!("{} did not start: {last}", verb.join(" "))))
}

impl Everything {
    fn start() -> Result<Self, Failure> {
        let parts = Parts {
            controllers: true,
            scheduler: true,
            ..Parts::default()
        };
        let world = World::start(&parts).map_err(|why| undone(&why))?;
        let cluster =
            Cluster::connect(Some(&world.kubeconfig()), None).map_err(|why| undone(&why))?;
        kubectl(
            &world,
            &["apply", "--server-side", "-f", "-"],
            &bigfleet_k8s::crds_yaml(),
        )?;
        kubectl(
            &world,
            &[
                "wait",
                "--for=condition=Established",
                "crd",
                "--all",
                "--timeout=60s",
            ],
            "",
        )?;
        let folder = world.folder().to_owned();
        let file = |name: &str| folder.join(name).display().to_string();
        machines(&folder).map_err(|why| undone(&why))?;
        let kubeconfig = format!("--kubeconfig={}", world.kubeconfig().display());
        let health = "--health-addr=127.0.0.1:0".to_owned();
        let flags = [
            format!("--config={}", file("provider.yaml")),
            format!("--state={}", file("provider.state")),
            "--addr=127.0.0.1:0".to_owned(),
        ];
        let (provider, provider_addr) = part(&folder, &["provider", "exec"], &flags)?;
        let flags = [
            "--listen=127.0.0.1:0".to_owned(),
            format!("--data-dir={}", file("shard")),
            format!("--provider-addr={provider_addr}"),
            "--cycle-interval=1s".to_owned(),
            "--reclaim-cap-fraction=0".to_owned(),
        ];
        let (shard, shard_addr) = part(&folder, &["shard"], &flags)?;
        let flags = [kubeconfig.clone(), health.clone()];
        let (pod_controller, _) = part(&folder, &["pod-controller"], &flags)?;
        let flags = [
            kubeconfig,
            health,
            "--cluster-id=home".to_owned(),
            format!("--shard-addr={shard_addr}"),
            "--reclaim-settle=5s".to_owned(),
            format!("--bootstrap-template-file={}", file("join.tmpl")),
        ];
        let (operator, _) = part(&folder, &["operator"], &flags)?;
        Ok(Self {
            operator,
            pod_controller,
            shard,
            provider,
            _kubelet: HollowKubelet::start(&cluster),
            world,
            shard_addr,
        })
    }

    /// A part that ended by itself.
    fn lost(&mut self) -> Option<&'static str> {
        let parts = [
            ("operator", &mut self.operator),
            ("pod-controller", &mut self.pod_controller),
            ("shard", &mut self.shard),
            ("provider", &mut self.provider),
        ];
        let mut parts = parts.into_iter();
        parts.find_map(|(name, part)| {
            part.0
                .try_wait()
                .is_ok_and(|ended| ended.is_some())
                .then_some(name)
        })
    }

    /// How many Pods run, how many there are, and how many Nodes.
    fn counts(&self) -> Result<(usize, usize, usize), Failure> {
        let items = |kind: &str| -> Result<Vec<Value>, Failure> {
            let text = kubectl(&self.world, &["get", kind, "-o", "json"], "")?;
            let list: Value = serde_json::from_str(&text).map_err(|why| undone(&why))?;
            Ok(list["items"].as_array().cloned().unwrap_or_default())
        };
        let pods = items("pods")?;
        let running = pods
            .iter()
            .filter(|pod| pod["status"]["phase"] == "Running")
            .count();
        Ok((running, pods.len(), items("nodes")?.len()))
    }
}

/// What machines are made with: the example, as Spot, so that they are given back within a minute; and what they join with.
fn machines(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let program: PathBuf = folder.join("node.py");
    std::fs::write(&program, NODES)?;
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755))?;
    let spot = OFFERS.replace("on_demand", "spot\n    interruption_probability: 0.01");
    std::fs::write(folder.join("provider.yaml"), spot)?;
    std::fs::copy(folder.join("admin.kubeconfig"), folder.join("join.tmpl")).map(|_| ())
}

fn kubectl(world: &World, words: &[&str], input: &str) -> Result<String, Failure> {
    let said = world
        .kubectl_with(words, input)
        .map_err(|why| undone(&why))?;
    if said.status.success() {
        return Ok(String::from_utf8_lossy(&said.stdout).into_owned());
    }
    let why = String::from_utf8_lossy(&said.stderr).trim().to_owned();
    Err(undone(&format!("kubectl {}: {why}", words.join(" "))))
}

fn deployment() -> String {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" },
        "spec": {
            "replicas": MANY,
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{
                    "name": "web", "image": "none", "resources": { "requests": { "cpu": "500m", "memory": "256Mi" } },
                }] },
            },
        },
    })
    .to_string()
}

/// Says a line whole and at once.
fn say(is_json: bool, text: &str, line: &Value) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    if is_json {
        writeln!(stdout, "{line}")?;
    } else {
        writeln!(stdout, "{text}")?;
    }
    stdout.flush()?;
    Ok(())
}

/// Runs it until somebody has seen enough.
pub(crate) async fn run(is_json: bool, ended: impl Future<Output = ()>) -> Result<(), Failure> {
    let mut all = Everything::start()?;
    let kubeconfig = all.world.kubeconfig().display().to_string();
    let shard = all.shard_addr.to_string();
    let first = format!("export KUBECONFIG={kubeconfig} BIGFLEET_SHARD={shard}");
    say(
        is_json,
        &first,
        &json!({ "kubeconfig": kubeconfig, "shard": shard }),
    )?;
    kubectl(&all.world, &["apply", "-f", "-"], &deployment())?;
    let (began, mut full, mut is_smaller, mut last) = (Instant::now(), None, false, (0, 0, 0));
    tokio::pin!(ended);
    loop {
        tokio::select! {
            () = &mut ended => break,
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        if let Some(lost) = all.lost() {
            return Err(undone(&format!("{lost} ended by itself")));
        }
        let counts = all.counts()?;
        if counts != last {
            last = counts;
            tell(is_json, began, counts, false)?;
        }
        let (running, _, _) = counts;
        if running == MANY as usize {
            full.get_or_insert_with(Instant::now);
        }
        if !is_smaller && full.is_some_and(|at: Instant| SMALLER_AFTER <= at.elapsed()) {
            is_smaller = true;
            kubectl(
                &all.world,
                &["scale", "deployment", "web", &format!("--replicas={FEW}")],
                "",
            )?;
        }
    }
    let counts = all.counts()?;
    tell(is_json, began, counts, true)
}

fn tell(
    is_json: bool,
    began: Instant,
    counts: (usize, usize, usize),
    is_last: bool,
) -> Result<(), Failure> {
    let (running, pods, nodes) = counts;
    let at = began.elapsed().as_secs();
    let text = format!("t+{at}s  {running} of {pods} Pods run, {nodes} Nodes");
    let mut line = json!({ "seconds": at, "pods_running": running, "pods": pods, "nodes": nodes });
    if is_last {
        line["last"] = json!(true);
    }
    say(is_json, &text, &line)
}
