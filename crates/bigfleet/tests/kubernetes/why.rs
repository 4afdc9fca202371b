//! `kubectl bigfleet why POD`: the plugin as kubectl runs it.

use bigfleet_kube_world::{Parts, World};
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// kubectl with a PATH on which the plugin and its completion are.
struct Kubectl<'a> {
    world: &'a World,
    path: String,
}

impl<'a> Kubectl<'a> {
    fn with_plugin(world: &'a World) -> Self {
        let folder = world.folder().join("plugins");
        std::fs::create_dir(&folder).unwrap();
        for name in ["kubectl-bigfleet", "kubectl_complete-bigfleet"] {
            std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_bigfleet"), folder.join(name)).unwrap();
        }
        let path = std::env::var("PATH").unwrap();
        Self {
            world,
            path: format!("{}:{path}", folder.display()),
        }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.world.kubectl_command().unwrap();
        command.args(words).env("PATH", &self.path);
        command
    }

    fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    fn apply(&self, object: &Value) {
        let mut command = self.command(&["apply", "--server-side", "-f", "-"]);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(object.to_string().as_bytes()).unwrap();
        drop(stdin);
        assert!(child.wait().unwrap().success(), "{object}");
    }
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn pod(name: &str, spec: Value) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name, "namespace": "shop" },
        "spec": { "containers": [{ "name": "c", "image": "none" }] },
    });
    for (key, value) in spec.as_object().unwrap() {
        pod["spec"][key] = value.clone();
    }
    pod
}

/// A kubeconfig in two files, of which the first one says nothing but who is who.
fn split(world: &World) -> [PathBuf; 2] {
    let whole: Value = serde_json::from_slice(&std::fs::read(world.kubeconfig()).unwrap()).unwrap();
    let parts = [
        json!({ "users": whole["users"] }),
        json!({
            "clusters": whole["clusters"],
            "contexts": [{ "name": "elsewhere", "context": {
                "cluster": whole["clusters"][0]["name"],
                "user": whole["users"][0]["name"], "namespace": "shop",
            } }],
        }),
    ];
    let files = ["one", "two"].map(|name| world.folder().join(name));
    for (file, part) in std::iter::zip(&files, parts) {
        std::fs::write(file, part.to_string()).unwrap();
    }
    files
}

#[test]
fn kubectl_says_where_a_pod_waits() {
    let world = World::start(&Parts::default()).unwrap();
    let kubectl = Kubectl::with_plugin(&world);
    kubectl
        .apply(&json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "shop" } }));
    kubectl.apply(&pod("web", json!({})));
    let gates = json!({ "schedulingGates": [{ "name": "example.com/quota" }] });
    kubectl.apply(&pod("held", gates));
    let listed = out(&kubectl.run(&["plugin", "list"]));
    assert!(listed.contains("kubectl-bigfleet"), "{listed}");

    let held = kubectl.run(&["bigfleet", "why", "held", "-n", "shop"]);
    assert_eq!(held.status.code(), Some(1), "it is stuck: {}", err(&held));
    let page = out(&held);
    let first = "Pod shop/held is stuck: it is held back by example.com/quota: nobody looks for a Node before that is gone\n";
    assert!(page.starts_with(first), "{page}");
    assert!(page.contains("\n HOP "), "{page}");
    assert!(
        page.contains("What would change it:\n  - whoever set it takes"),
        "{page}"
    );

    // No scheduler has looked at it, and BigFleet is not there: the first of the two is where it waits.
    let web = kubectl.run(&[
        "bigfleet",
        "why",
        "pod/web",
        "--namespace=shop",
        "-o",
        "json",
    ]);
    let told: Value = serde_json::from_slice(&web.stdout).unwrap();
    assert_eq!(told["waits_at"], "pod", "{told}");
    let hops = told["hops"].as_array().unwrap();
    let names: Vec<&str> = hops
        .iter()
        .map(|hop| hop["hop"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["pod", "request", "need", "machine", "node"]);
    assert_eq!(hops[0]["state"], "here");
    assert!(
        hops[0]["since"].is_string() && hops[0]["seconds"].is_u64(),
        "{told}"
    );
    let verdict = out(&kubectl.run(&[
        "bigfleet",
        "why",
        "web",
        "-n",
        "shop",
        "-o",
        "jsonpath={.verdict}",
    ]));
    assert_eq!(verdict.trim_end(), told["verdict"].as_str().unwrap());

    // Other ways to say which cluster, context and namespace.
    let files = split(&world);
    let merged = std::env::join_paths(&files).unwrap();
    let mut elsewhere = kubectl.command(&["bigfleet", "why", "held", "--context", "elsewhere"]);
    let elsewhere = elsewhere.env("KUBECONFIG", merged).output().unwrap();
    assert_eq!(words(&elsewhere), words(&held), "{}", err(&elsewhere));
    let kubeconfig = world.kubeconfig().display().to_string();
    let mut plain = Command::new(env!("CARGO_BIN_EXE_bigfleet"));
    plain.args(["why", "held", "-n", "shop", "--kubeconfig", &kubeconfig]);
    assert_eq!(plain.output().unwrap().status.code(), Some(1));

    // What cannot be told ends with 1 and says why; what is no question ends with 2.
    let missing = kubectl.run(&["bigfleet", "why", "web"]);
    assert_eq!(missing.status.code(), Some(1));
    let said = err(&missing);
    assert!(
        said.contains("there is one in namespace shop: -n shop"),
        "{said}"
    );
    for wrong in [&["a/b/c"][..], &["web", "-n", "A b"], &[]] {
        let refused = kubectl.run(&[&["bigfleet", "why"], wrong].concat());
        assert_eq!(
            refused.status.code(),
            Some(2),
            "{wrong:?}: {}",
            err(&refused)
        );
        assert_eq!(out(&refused), "");
    }
    let nowhere = nowhere(&world);
    assert_eq!(nowhere.status.code(), Some(1), "{}", err(&nowhere));
    assert!(
        err(&nowhere).contains("cannot be reached"),
        "{}",
        err(&nowhere)
    );

    let completed = kubectl.run(&["__complete", "bigfleet", "why", "-n", "shop", "he"]);
    assert!(out(&completed).starts_with("held\n"), "{}", out(&completed));
}

/// What was printed, but for how long ago things were.
fn words(output: &Output) -> Vec<String> {
    let is_age =
        |word: &&str| word.ends_with('s') && word.starts_with(|it: char| it.is_ascii_digit());
    let text = out(output);
    let words = text.split_whitespace().filter(|word| !is_age(word));
    words.map(str::to_owned).collect()
}

/// Asks an API server that is not there.
fn nowhere(world: &World) -> Output {
    let mut config: Value =
        serde_json::from_slice(&std::fs::read(world.kubeconfig()).unwrap()).unwrap();
    config["clusters"][0]["cluster"]["server"] = json!("https://127.0.0.1:1");
    let file = world.folder().join("nowhere");
    std::fs::write(&file, config.to_string()).unwrap();
    let mut why = Command::new(env!("CARGO_BIN_EXE_bigfleet"));
    why.args(["why", "web", "--kubeconfig"])
        .arg(Path::new(&file));
    why.output().unwrap()
}
