//! `bigfleet sim`, as people and programs call it.

mod failures;
mod refused;
mod traces;

use serde_json::Value;
use std::{
    path::PathBuf,
    process::{Command, Output},
};

/// Runs `bigfleet sim` with words that are separated by blanks.
fn sim(line: &str) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_bigfleet"))
        .arg("sim")
        .args(line.split_whitespace())
        .output();
    output.unwrap_or_else(|error| panic!("the binary runs: {error}"))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What it said on stdout, having ended well.
fn said(line: &str) -> String {
    let output = sim(line);
    let code = output.status.code();
    assert_eq!(code, Some(0), "{line}: {}", text(&output.stderr));
    text(&output.stdout)
}

fn object(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        let said = text(&output.stdout);
        panic!("{error}: {said}{}", text(&output.stderr))
    })
}

/// A folder of its own, gone afterwards.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("bigfleet-sim-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let made = std::fs::create_dir_all(&path);
        made.unwrap_or_else(|error| panic!("{} is made: {error}", path.display()));
        Self(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).to_string_lossy().into_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_sweep_is_one_object_with_each_scenario_in_it() {
    let output = sim("sweep steady-state twins steady-state --seeds 3 --jobs 2 -o json");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let swept = object(&output);
    // Named twice, run once.
    assert_eq!(swept["scenario"], "steady-state,twins");
    assert_eq!(swept["seeds"], 6);
    assert_eq!(swept["failures"], Value::Array(Vec::new()));
    assert!(swept["events"].as_u64() > Some(1000));
    assert!(swept["simulated_seconds"].as_f64() > Some(1000.0));
    assert!(swept["wall_seconds"].is_number());
    assert_eq!(swept["scenarios"][1]["scenario"], "twins");
    assert_eq!(swept["scenarios"][1]["seeds"], 3);
}

#[test]
fn a_sweep_for_people_ends_in_its_sum_and_says_that_all_held() {
    let table = said("sweep steady-state twins --seeds 2 -o table");
    let row = |name: &str| -> Vec<String> {
        let row = table.lines().find(|line| line.trim().starts_with(name));
        let row = row.unwrap_or_else(|| panic!("no row {name} in\n{table}"));
        row.split_whitespace().map(str::to_owned).collect()
    };
    let number = |name: &str, at: usize| row(name)[at].parse::<u64>().unwrap();
    assert_eq!(row("total")[1..3], ["4", "0"], "{table}");
    assert_eq!(number("total", 3), number("steady", 3) + number("twins", 3));
    assert!(table.contains("every rule held in all 4 runs"), "{table}");
}

/// The last seed there is can be run, and how many threads cannot be seen: all but the time is the same.
#[test]
fn the_number_of_jobs_cannot_be_seen_in_the_answer() {
    let swept = |jobs: &str| {
        let line = format!("sweep random-faults twins --seeds 4 --jobs {jobs} -o json");
        let mut swept = object(&sim(&line));
        for one in ["wall_seconds", "core_seconds"] {
            swept[one] = Value::Null;
        }
        for scenario in swept["scenarios"].as_array_mut().unwrap() {
            scenario["core_seconds"] = Value::Null;
        }
        swept
    };
    assert_eq!(swept("1"), swept("2"));
    said("sweep twins --from 18446744073709551615 --seeds 1");
}

#[test]
fn a_run_says_what_struck_and_how_long_rest_took() {
    let table = said("run random-faults --seed 5 -o table");
    assert!(table.contains("every rule held"), "{table}");
    assert!(table.contains("s after the faults"), "{table}");
    let struck = table
        .lines()
        .skip_while(|line| !line.contains("WHAT STRUCK"));
    let struck: Vec<&str> = struck.skip(1).map(str::trim).collect();
    assert!(
        struck.iter().any(|line| line.starts_with("crash ")),
        "{table}"
    );
    let ran = object(&sim("run random-faults --seed 5 -o json"));
    assert_eq!(ran["struck"].as_object().unwrap().len(), struck.len());
    assert!(ran["rested_after_seconds"].as_f64() > Some(0.0));
}

#[test]
fn the_list_names_scenarios_and_defects() {
    let listed = object(&sim("list -o json"));
    let (scenarios, defects) = (&listed["scenarios"], &listed["defects"]);
    let named = |all: &Value, name: &str| -> Value {
        let mut all = all.as_array().unwrap().iter();
        all.find(|one| one["name"] == name).unwrap().clone()
    };
    assert_eq!(named(scenarios, "soak")["size"], "large");
    assert_eq!(named(scenarios, "twins")["size"], "small");
    assert_eq!(named(defects, "fencing-not-checked")["guards"][0], "twins");
    assert!(named(defects, "bare-pods")["about"].as_str() > Some(""));
    let table = said("list -o table");
    for one in scenarios
        .as_array()
        .unwrap()
        .iter()
        .chain(defects.as_array().unwrap())
    {
        for field in ["name", "about"] {
            let words = one[field].as_str().unwrap();
            assert!(table.contains(words), "{words} is not in\n{table}");
        }
    }
}
