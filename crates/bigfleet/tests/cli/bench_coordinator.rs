//! `bigfleet bench coordinator`, at a size that only shows that it works: never a time.

use crate::bench::check_names;
use crate::process::{refusal, run, stderr, stdout};

#[test]
fn every_part_is_there_and_its_counts_add_up() {
    let small = ["--kills=2", "--shards=5", "--callers=4"];
    let brief = ["--every=500ms", "--watched=1s"];
    let few = ["--domains=300", "--clusters=50", "-o", "json"];
    let words = [&["bench", "coordinator"], &small[..], &brief[..], &few[..]].concat();
    let output = run(&words, "");
    assert_eq!(stderr(&output), "", "no bar where nobody looks");
    let text = stdout(&output);
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        check_names(&report),
        [
            "failover_ms_p99_at_most",
            "reporting_leader_cores_at_most",
            "writes_per_second_at_least",
            "snapshot_seconds_at_most",
            "restart_seconds_at_most",
            "rss_mb_at_most",
        ]
    );
    assert_eq!(report["failover_ms"]["count"], 2, "{report}");
    let reports = report["reports"].as_u64().unwrap();
    assert_eq!(report["report_ms"]["count"], reports);
    assert!(0 < reports, "{report}");
    assert!(
        0 < report["write_ms"]["count"].as_u64().unwrap(),
        "{report}"
    );
    // What was there before the restart was counted after it.
    assert_eq!(report["domains"], 300);
    assert!(
        10_000 < report["snapshot_bytes"].as_u64().unwrap(),
        "{report}"
    );
}

#[test]
fn nothing_is_refused() {
    let refused = refusal(&run(&["bench", "coordinator", "--kills", "0"], ""));
    assert!(refused.contains("--kills"), "{refused}");
}
