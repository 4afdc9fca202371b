//! `bigfleet bench`.

use crate::process::{refusal, run, stderr, stdout};

const FIELDS: [&str; 20] = [
    "profile",
    "seed",
    "machines",
    "shapes",
    "profiles",
    "rows",
    "rows_after_fold",
    "load_ms",
    "full_ms",
    "steady_ms",
    "quiet_us",
    "changed_rows_per_cycle",
    "changed_machines_per_cycle",
    "hot_bytes_per_machine",
    "peak_rss_mb",
    "digest",
    "oracle_ms",
    "growth",
    "told",
    "checks",
];

/// The names of the checks a report ends in, each seen to judge what it says.
pub(crate) fn check_names(object: &serde_json::Value) -> Vec<&str> {
    let checks = object["checks"].as_array().into_iter().flatten();
    checks
        .map(|check| {
            let fields = check.as_object().into_iter().flatten();
            let fields: Vec<&str> = fields.map(|(name, _)| name.as_str()).collect();
            assert_eq!(fields, ["bound", "holds", "name", "value"], "{check}");
            let name = check["name"].as_str().unwrap_or_default();
            let (value, bound) = (check["value"].as_f64(), check["bound"].as_f64());
            assert!(value.is_some() && bound.is_some(), "{check}");
            let holds = if name.ends_with("_at_most") {
                value <= bound
            } else {
                assert!(name.ends_with("_at_least"), "{check}");
                bound <= value
            };
            assert_eq!(check["holds"], holds, "{check}");
            name
        })
        .collect()
}

fn bench(args: &[&str]) -> std::process::Output {
    run(&[&["bench", "decide"], args].concat(), "")
}

#[test]
fn json_is_one_object_with_these_fields_in_this_order() {
    let output = bench(&[
        "--profile",
        "dev-50",
        "--cycles",
        "2",
        "--seed",
        "7",
        "-o",
        "json",
    ]);
    let text = stdout(&output);
    assert_eq!(stderr(&output), "", "no bar where nobody looks");
    let object: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        object.as_object().map(|object| object.len()),
        Some(FIELDS.len()),
        "{text}"
    );
    let places: Vec<_> = FIELDS
        .iter()
        .map(|name| text.find(&format!("\"{name}\":")))
        .collect();
    assert!(
        places.iter().all(Option::is_some) && places.is_sorted(),
        "{text}"
    );
    assert_eq!(
        (object["profile"].as_str(), object["seed"].as_u64()),
        (Some("dev-50"), Some(7))
    );
    let checks = check_names(&object);
    assert!(checks.contains(&"quiet_us_p99_at_most"), "{text}");
    assert!(checks.contains(&"peak_rss_mb_at_most"), "{text}");
    assert!(checks.contains(&"disruption_us_at_most"), "{text}");
    assert!(
        checks.contains(&"whole_steady_time_ratio_at_most"),
        "{text}"
    );
    for field in ["full_ms", "steady_ms", "quiet_us"] {
        let [p50, p99] = ["p50", "p99"].map(|name| object[field][name].as_f64());
        assert!(p50.is_some() && p50 <= p99, "{text}");
    }
}

#[test]
fn people_get_a_table() {
    let table = stdout(&bench(&[
        "--profile",
        "dev-50",
        "--cycles",
        "1",
        "-o",
        "table",
    ]));
    for words in [
        "DEV-50 SEED 1",
        "full cycle",
        "times a full cycle",
        "digest",
        "CHECK",
        "hot_bytes_per_machine_at_most",
        "a word on disruption",
    ] {
        assert!(table.contains(words), "{table}");
    }
}

#[test]
fn the_core_and_a_provider_are_judged_too() {
    let core = ["bench", "core", "--profile", "dev-50", "--cycles", "2"];
    let core: serde_json::Value = serde_json::from_str(&stdout(&run(&core, ""))).unwrap();
    assert_eq!(check_names(&core), ["cycle_ms_p99_at_most"]);

    let provider = ["bench", "provider", "--slots", "400"];
    let provider: serde_json::Value = serde_json::from_str(&stdout(&run(&provider, ""))).unwrap();
    assert_eq!(
        check_names(&provider),
        [
            "list_ms_p99_at_most",
            "mutation_ms_p99_at_most",
            "durable_mutations_per_second_at_least",
            "peak_rss_mb_at_most",
            "mutation_over_mutation_at_few_at_most",
            "exec_operations_per_second_at_least",
            "exec_list_ms_p99_at_most",
            "exec_threads_left_at_most",
            "exec_processes_left_at_most",
        ]
    );
    let exec = &provider["exec"];
    assert_eq!(
        (&exec["slots"], &exec["operations"]),
        (&400.into(), &200.into())
    );
    assert_eq!(exec["processes_left"], 0.0);
    assert_eq!(provider["list_ms"]["count"], 10, "of the quietest round");
    assert_ne!(provider["mutation_ms"]["count"], 0);
}

/// With a gate the exit status is what the checks say, and nothing else changes.
#[test]
fn a_gate_ends_as_its_checks_say() {
    let args = [
        "--profile",
        "dev-50",
        "--cycles",
        "1",
        "-o",
        "json",
        "--gate",
    ];
    let output = bench(&args);
    let object: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let names = check_names(&object);
    let broken: Vec<&str> = std::iter::zip(&names, object["checks"].as_array().unwrap())
        .filter(|(_, check)| check["holds"] == false)
        .map(|(name, _)| *name)
        .collect();
    let status = if broken.is_empty() { 0 } else { 1 };
    assert_eq!(output.status.code(), Some(status), "{broken:?}");
    let said = stderr(&output);
    assert_eq!(said.lines().count(), broken.len(), "{said}");
}

#[test]
fn churn_can_be_kept_to_some_clusters() {
    let args = [
        "--profile",
        "dev-50",
        "--cycles",
        "2",
        "--churning-clusters",
        "0",
        "-o",
        "json",
    ];
    let text = stdout(&bench(&args));
    assert!(text.contains("\"changed_rows_per_cycle\":0.0"), "{text}");
}

#[test]
fn what_cannot_be_measured_is_refused() {
    refusal(&bench(&[]));
    refusal(&bench(&["--profile", "6k"]));
    refusal(&bench(&["--profile", "5k", "--cycles", "0"]));
    refusal(&bench(&["--profile", "5k", "-o", "yaml"]));
    refusal(&run(&["bench"], ""));
}
