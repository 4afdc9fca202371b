//! `bigfleet bench shard`, at a size that only shows that it works: never a time.

use crate::bench::check_names;
use crate::process::{refusal, run, stderr, stdout};

fn bench(args: &[&str]) -> serde_json::Value {
    let small = ["--machines", "500", "--sessions", "20", "--records", "500"];
    let brief = ["--watched", "1s", "--every", "500ms", "-o", "json"];
    let output = run(
        &[&["bench", "shard"], args, &small[..], &brief[..]].concat(),
        "",
    );
    let text = stdout(&output);
    assert_eq!(stderr(&output), "", "no bar where nobody looks");
    serde_json::from_str(&text).unwrap_or_else(|why| panic!("{why}: {text}"))
}

fn names(object: &serde_json::Value) -> Vec<&str> {
    let fields = object.as_object().into_iter().flatten();
    fields.map(|(name, _)| name.as_str()).collect()
}

#[test]
fn every_part_is_there_and_its_counts_add_up() {
    let report = bench(&[]);
    assert_eq!(
        names(&report),
        [
            "checks",
            "cores",
            "default_walk",
            "flags",
            "open_files",
            "restart",
            "sessions",
            "walk"
        ]
    );

    assert_eq!(
        check_names(&report),
        [
            "walk_configured_at_least",
            "default_walk_configured_at_least",
            "sessions_held_at_least",
            "sessions_rollups_accepted_at_least",
            "sessions_shard_cores_at_most",
            "sessions_cycle_ms_p99_at_most",
            "restart_known_at_least",
            "restart_ready_seconds_at_most",
            "restart_peak_rss_mb_at_most",
        ]
    );
    assert_eq!(report["default_walk"]["configured"], 500);

    let walk = &report["walk"];
    assert_eq!(
        (&walk["machines"], &walk["clusters"]),
        (&500.into(), &1.into())
    );
    assert_eq!(walk["configured"], 500, "all of them: {walk}");
    assert_eq!(walk["blobs"], 500, "each with a blob of its own: {walk}");

    let sessions = &report["sessions"];
    assert_eq!(
        (&sessions["sessions"], &sessions["held"]),
        (&20.into(), &20.into())
    );
    assert_eq!(sessions["rollups"], 40, "two rounds: {sessions}");
    assert_eq!(
        sessions["accepted"], 40,
        "and an answer to each: {sessions}"
    );
    assert_eq!(
        sessions["changed"], 2,
        "one in fifty, at least one: {sessions}"
    );
    assert_eq!(sessions["ack_ms"]["count"], 40, "{sessions}");

    let restart = &report["restart"];
    assert_eq!(
        (&restart["records"], &restart["known"]),
        (&500.into(), &500.into())
    );

    for part in [walk, sessions] {
        for process in ["shard", "provider", "operators"] {
            assert_eq!(names(&part[process]), ["cores", "peak_rss_mb", "rss_mb"]);
        }
        for timing in ["cycle_ms", "commit_ms", "list_ms"] {
            let timing = &part["timings"][timing];
            assert_eq!(names(timing), ["count", "max", "p50", "p99"]);
        }
        assert_ne!(part["timings"]["cycle_ms"]["count"], 0, "{part}");
    }
    assert_ne!(walk["timings"]["commit_ms"]["count"], 0, "{walk}");
}

#[test]
fn a_part_can_be_run_by_itself() {
    let report = bench(&["--part", "restart"]);
    assert!(report["walk"].is_null() && report["sessions"].is_null());
    assert_eq!(report["restart"]["known"], 500);
}

#[test]
fn what_cannot_be_measured_is_refused() {
    refusal(&run(&["bench", "shard", "--machines", "0"], ""));
    refusal(&run(&["bench", "shard", "--part", "run"], ""));
    refusal(&run(&["bench", "shard", "--every", "soon"], ""));
}
