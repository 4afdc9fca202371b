//! `bigfleet sim`, as people and programs call it.

use serde_json::Value;
use std::process::{Command, Output};

fn sim(args: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_bigfleet"))
        .arg("sim")
        .args(args)
        .output();
    output.unwrap_or_else(|error| panic!("the binary runs: {error}"))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn object(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        let said = text(&output.stdout);
        panic!("{error}: {said}{}", text(&output.stderr))
    })
}

#[test]
fn a_sweep_is_one_object_with_each_scenario_in_it() {
    let output = sim(&[
        "sweep",
        "steady-state",
        "twins",
        "--seeds",
        "3",
        "--jobs",
        "2",
        "-o",
        "json",
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let swept = object(&output);
    assert_eq!(swept["scenario"], "steady-state,twins");
    assert_eq!(swept["seeds"], 6);
    assert_eq!(swept["failures"], Value::Array(Vec::new()));
    assert!(swept["events"].as_u64() > Some(1000));
    assert!(swept["simulated_seconds"].as_f64() > Some(1000.0));
    assert!(swept["wall_seconds"].is_number());
    assert_eq!(swept["scenarios"][1]["scenario"], "twins");
}

/// However many threads, the same bytes: all but the time it took.
#[test]
fn the_number_of_jobs_cannot_be_seen_in_the_answer() {
    let events = |jobs: &str| {
        let output = sim(&[
            "sweep",
            "random-faults",
            "--seeds",
            "4",
            "--jobs",
            jobs,
            "-o",
            "json",
        ]);
        object(&output)["events"].clone()
    };
    assert_eq!(events("1"), events("2"));
}

#[test]
fn a_failing_seed_says_what_it_takes_and_how_to_see_it_again() {
    let defect = ["--defect", "draining-not-promised"];
    let output = sim(&[
        &["run", "long-drain", "--seed", "1", "-o", "json"],
        &defect[..],
    ]
    .concat());
    assert_eq!(output.status.code(), Some(1));
    let ran = object(&output);
    assert_eq!(ran["failures"][0]["seed"], 1);
    assert_eq!(ran["failures"][0]["rule"], "nothing-too-much");
    let said = text(&output.stderr);
    let again = "bigfleet sim run long-drain --seed 1 --defect draining-not-promised";
    assert!(said.contains(&format!("again: {again}")), "{said}");
    assert!(said.contains("what led to it"), "{said}");
    assert!(said.contains("Preempt"), "{said}");
}

#[test]
fn a_trace_is_replayed_to_the_line_and_drawn() {
    let folder = std::env::temp_dir().join(format!("bigfleet-sim-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (trace, picture) = (folder.join("t.txt"), folder.join("t.svg"));
    let path = trace.to_string_lossy().into_owned();
    let ran = sim(&["run", "priority-inversion", "--seed", "5", "--trace", &path]);
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
    let again = sim(&["replay", &path]);
    assert!(
        text(&again.stdout).starts_with("the same "),
        "{}",
        text(&again.stderr)
    );
    let drawn = sim(&["view", &path]);
    assert!(
        text(&drawn.stdout).contains("Configured"),
        "{}",
        text(&drawn.stderr)
    );
    let svg = std::fs::read_to_string(&picture).unwrap();
    assert!(svg.starts_with("<svg"));
    let changed = std::fs::read_to_string(&trace).unwrap();
    std::fs::write(&trace, changed.replacen("Preempt", "Reclaim", 1)).unwrap();
    let differs = sim(&["replay", &path]);
    assert_eq!(differs.status.code(), Some(1));
    assert!(
        text(&differs.stderr).contains("it was"),
        "{}",
        text(&differs.stderr)
    );
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn what_does_not_exist_is_refused_by_name() {
    for args in [["run", "nothing"], ["replay", "/nowhere"]] {
        let output = sim(&args);
        assert_ne!(output.status.code(), Some(0));
        assert!(
            text(&output.stderr).contains(args[1]),
            "{}",
            text(&output.stderr)
        );
    }
    let output = sim(&["run", "twins", "--defect", "none-such"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("reclaim-cap-off"));
}
