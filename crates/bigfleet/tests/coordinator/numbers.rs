//! What a replica shows to whoever scrapes and probes it: every series of the page, and no other.

use crate::group::Group;
use crate::processes::until;
use crate::reporter::Reporter;
use std::collections::BTreeSet;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/coordinator.md");

/// The names in the first column of the tables of "Numbers".
fn documented() -> BTreeSet<String> {
    let text = std::fs::read_to_string(PAGE).unwrap();
    let (_, numbers) = text.split_once("## Numbers").unwrap();
    let rows = numbers.lines().filter(|line| line.starts_with("| `"));
    let cells = rows.map(|line| line.split('|').nth(1).unwrap());
    let names = cells.flat_map(|cell| cell.split(','));
    names
        .map(|name| name.trim().trim_matches('`').to_owned())
        .collect()
}

/// The families of a page, counters by the name of their series.
fn shown(text: &str) -> BTreeSet<String> {
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let name = |line: &str| {
        let (name, kind) = line.split_once(' ').unwrap();
        let name = name.strip_prefix("bigfleet_coordinator_").unwrap();
        let suffix = if kind == "counter" { "_total" } else { "" };
        format!("{name}{suffix}")
    };
    types.map(name).collect()
}

#[tokio::test]
async fn every_number_of_the_page_is_shown_and_no_other() {
    let group = Group::with("coordinator-numbers", 3, |folder| {
        vec![
            format!("--snapshot-export-dir={}", folder.file("exports").display()),
            "--snapshot-export-interval=1s".to_owned(),
        ]
    })
    .await;
    let mut shard = Reporter::new("shard-a");
    group.hears(&mut shard).await;
    group.assign("r1", "shard-a").await;
    // Told, done, and answered.
    until("a domain that is held", async || {
        group.hears(&mut shard).await;
        (!shard.domains.is_empty(), shard.clone())
    })
    .await;
    group.hears(&mut shard).await;
    let leader = group.leader().await;
    let leads = group.running[leader].as_ref().unwrap();
    until("every number", async || {
        let page = leads.page("/metrics");
        assert!(page.ends_with("# EOF\n"), "{page}");
        let (shown, documented) = (shown(&page), documented());
        let differing: Vec<String> = shown.symmetric_difference(&documented).cloned().collect();
        (differing.is_empty(), differing)
    })
    .await;
    for (series, least) in [
        ("is_leader", 1.0),
        ("raft_term", 1.0),
        ("domains{state=\"held\"}", 1.0),
        (
            "instruction_acks_total{kind=\"assign_domain\",outcome=\"accepted\"}",
            1.0,
        ),
        ("reports_total{outcome=\"heard\"}", 1.0),
        ("apply_duration_seconds_count", 1.0),
        ("apply_total{outcome=\"success\"}", 1.0),
        ("state_bytes", 20.0),
    ] {
        let value = leads.metric(&format!("bigfleet_coordinator_{series}"));
        assert!(least <= value, "{series}: {value}");
    }
    let others = (0..3).filter(|nth| *nth != leader);
    for nth in others {
        let other = group.running[nth].as_ref().unwrap();
        assert_eq!(other.metric("bigfleet_coordinator_is_leader"), 0.0);
        let reign = leads.metric("bigfleet_coordinator_raft_term");
        other.shows("bigfleet_coordinator_raft_term", reign).await;
    }
}

/// Quorum is lost: not ready, and alive, since a restart would not help; ready again when another one is back. That
/// holds for one that follows, and for the leader, which knows only of itself.
#[tokio::test]
async fn a_group_without_majority_is_alive_and_not_ready() {
    let mut group = Group::of("coordinator-probes", 3).await;
    group.shard_reports("shard-a").await;
    for is_leader in [true, false] {
        let leader = group.leader().await;
        let left = if is_leader { leader } else { (leader + 1) % 3 };
        let others: Vec<usize> = (0..3).filter(|nth| *nth != left).collect();
        until("a replica that is ready", async || {
            let answer = group.running[left].as_ref().unwrap().http("/readyz");
            (answer.contains("200 OK"), answer)
        })
        .await;
        for nth in &others {
            group.kill(*nth);
        }
        let process = group.running[left].as_ref().unwrap();
        until("a replica that knows of no leader", async || {
            let answer = process.http("/readyz");
            let is_unready = answer.contains(" 503 ") && answer.contains("no raft leader observed");
            (is_unready, answer)
        })
        .await;
        assert!(process.http("/healthz").contains("200 OK"));
        let request = bigfleet_wire::v1alpha1::ListShardsRequest {};
        let refused = group.client(left).list_shards(request).await.unwrap_err();
        assert_eq!(
            refused.code(),
            tonic::Code::FailedPrecondition,
            "{refused:?}"
        );
        for nth in &others {
            group.start(*nth);
        }
        group.is_whole().await;
    }
}
