//! `bigfleet bench operator`, at a size that only shows that it works: never a time.

use crate::bench::check_names;
use crate::process::{refusal, run, stderr, stdout};

#[test]
fn every_part_is_there_and_its_counts_add_up() {
    let small = ["--requests=60", "--updates=20", "--pods=40", "--changes=2"];
    let brief = ["--burst-rate=20", "--burst=1s", "-o", "json"];
    let output = run(
        &[&["bench", "operator"], &small[..], &brief[..]].concat(),
        "",
    );
    assert_eq!(stderr(&output), "", "no bar where nobody looks");
    let report: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(
        check_names(&report),
        [
            "operator_peak_rss_mb_at_most",
            "operator_cpu_until_whole_seconds_at_most",
            "roll_up_ms_p99_at_most",
            "change_to_roll_up_ms_at_most",
            "change_to_roll_up_at_rest_ms_at_most",
            "acknowledged_at_least",
            "updates_lost_at_most",
            "pod_controller_peak_rss_mb_at_most",
            "pod_controller_restarted_peak_rss_mb_at_most",
            "pod_controller_cpu_until_whole_seconds_at_most",
            "pod_to_request_lost_at_most",
            "pod_to_request_ms_p99_at_most",
        ]
    );
    let (requests, updates, pods) = (&report["requests"], &report["updates"], &report["pods"]);
    assert_eq!(
        requests["acknowledged"], 64,
        "and two changes twice: {requests}"
    );
    assert_eq!(requests["change_to_roll_up_ms"]["count"], 2, "{requests}");
    assert_ne!(requests["roll_up_ms"]["count"], 0, "{requests}");
    assert_eq!(
        (&updates["machines"], &updates["lost"]),
        (&20.into(), &0.into())
    );
    assert_eq!(pods["burst"]["to_request_ms"]["count"], 20, "{pods}");
    for part in [requests, updates, pods, &pods["burst"]] {
        for server in ["api_server", "etcd"] {
            assert!(part[server]["cores"].is_f64(), "its own share: {part}");
        }
    }
}

#[test]
fn what_cannot_be_measured_is_refused() {
    refusal(&run(&["bench", "operator", "--requests", "0"], ""));
    refusal(&run(&["bench", "operator", "--full", "--pods", "5"], ""));
}
