//! `bigfleet bench`.

use crate::process::{refusal, run, stderr, stdout};

const FIELDS: [&str; 17] = [
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
];

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
    ] {
        assert!(table.contains(words), "{table}");
    }
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
