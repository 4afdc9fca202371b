//! What it shows, and how it ends.

use crate::process::{Home, Running, count, root, says};
use serde_json::Value;

/// Waits for a cycle in which so many machines serve and none is on its way.
fn settled(running: &mut Running, serve: u64) -> Value {
    running.until("it settles", |line| {
        let moving = ["Creating", "Configuring", "Draining", "Deleting"];
        let moving: u64 = moving
            .map(|state| count(line, "machines", state))
            .iter()
            .sum();
        moving == 0 && count(line, "machines", "Configured") == serve
    })
}

fn decided(line: &Value) -> u64 {
    let kinds = line["decided"].as_object();
    let counts = kinds
        .into_iter()
        .flatten()
        .filter_map(|(_, count)| count.as_u64());
    counts.sum()
}

#[test]
fn it_ends_by_itself_and_leaves_nothing() {
    let home = Home::new("ends");
    let output = home.ends(&["up", "--scenario", "none", "--for", "300ms"]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.ends_with("left running: nothing\n"), "{text}");
    home.is_empty();
}

#[test]
fn signals_end_it_cleanly_and_static_demand_is_quiet() {
    let home = Home::new("signals");
    let mut running = home.up(&["--scenario", "steady", "--speed", "120"]);
    settled(&mut running, 20);
    for _ in 0..12 {
        let cycle = running.until("a cycle", |line| line["type"] == "cycle");
        assert_eq!(decided(&cycle), 0, "{cycle}");
    }
    let (code, last) = running.end("-INT");
    assert_eq!(
        (code, last["left_running"].as_array().map(Vec::len)),
        (Some(0), Some(0))
    );
    home.is_empty();
}

#[test]
fn a_data_directory_is_taken_up_where_it_was_left() {
    let home = Home::new("kept");
    let kept = home.file("kept").display().to_string();
    let flags = [
        "--scenario",
        "steady",
        "--speed",
        "120",
        "--data-dir",
        &kept,
    ];
    let mut running = home.up(&flags);
    settled(&mut running, 20);
    running.end("-TERM");
    home.is_empty();

    // What web-eu asks for is in its first roll-up; edge-eu comes at minute 1, the crawler at minute 3.
    let mut running = home.up(&flags);
    running.until("all operators, and the machines they had", |line| {
        line["sessions"] == 5 && 11 <= count(line, "machines", "Configured")
    });
    running.until("edge-eu", |line| {
        says(line).is_some_and(|says| says.starts_with("edge-eu"))
    });
    for kind in ["Bootstrap", "Provision", "Preempt", "Delete"] {
        let newly: u64 = running
            .seen
            .iter()
            .map(|line| count(line, "decided", kind))
            .sum();
        assert_eq!(newly, 0, "{kind}");
    }
    running.end("-TERM");
}

#[test]
fn a_fleet_file_is_played_from_where_it_stands() {
    let home = Home::new("fleet");
    let file = root().join("examples/fleet.json").display().to_string();
    let mut running = home.up(&["--fleet", &file, "--speed", "120"]);
    assert_eq!(
        running.seen[0]["clusters"],
        serde_json::json!(["batch", "web"])
    );
    // As `decide` says of the same file: i1 and g2 bootstrap, g3 is provisioned, and web gets b3 of batch, which is
    // preempted if web is heard first and reclaimed if batch is.
    settled(&mut running, 6);
    let (code, last) = running.end("-TERM");
    assert_eq!(code, Some(0));
    let did = |kind: &str| count(&last, "actions", kind);
    assert_eq!(did("Preempt") + did("Reclaim"), 1, "{last}");
    assert_eq!(
        (did("Bootstrap"), did("Provision"), did("Delete")),
        (4, 1, 0),
        "{last}"
    );
    home.is_empty();
}

#[test]
fn another_provider_will_do() {
    let home = Home::new("provider");
    let offerings = home.file("offerings.json");
    // Of types and in zones that the simulated cloud has never heard of.
    let small = r#"[{"instance_type": "rack-2u", "zone": "row-1", "capacity_type": "on_demand", "count": 20,
        "price_per_hour": 0.4, "resources": {"cpu": "8", "memory": "32Gi"}},
        {"instance_type": "rack-2u", "zone": "row-2", "capacity_type": "on_demand", "count": 20,
        "price_per_hour": 0.4, "resources": {"cpu": "8", "memory": "32Gi"}}]"#;
    std::fs::write(&offerings, small).unwrap();
    let provider = Provider::start(&home, &offerings.display().to_string());
    let mut running = home.up(&["--scenario", "steady", "--provider-addr", &provider.addr]);
    assert_eq!(running.addr("provider"), provider.addr);
    running.until("its machines serve", |line| {
        15 <= count(line, "machines", "Configured")
    });
    drop(provider); // the end of ours must not depend on theirs
    let (code, last) = running.end("-TERM");
    assert_eq!(
        (code, last["left_running"].as_array().map(Vec::len)),
        (Some(0), Some(0))
    );
    home.is_empty();
}

/// `bigfleet provider fake` as a process of its own.
struct Provider {
    child: std::process::Child,
    addr: String,
}

impl Provider {
    fn start(home: &Home, offerings: &str) -> Self {
        use std::io::{BufRead, BufReader};
        let flags = [
            "--addr=127.0.0.1:0",
            "--metrics-addr=0",
            "--log-format=json",
        ];
        let mut command = home.bigfleet(&["provider", "fake", "--offerings", offerings]);
        command.args(flags).stderr(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let addr = lines.map_while(Result::ok).find_map(|line| {
            let line: Value = serde_json::from_str(&line).ok()?;
            let listening = line["fields"]["message"] == "listening";
            listening.then(|| line["fields"]["addr"].as_str().unwrap().to_owned())
        });
        Self {
            child,
            addr: addr.expect("it says where it listens"),
        }
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
