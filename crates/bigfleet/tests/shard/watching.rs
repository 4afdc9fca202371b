//! What whoever watches a shard sees: its end, its metrics, its configuration, its log.

use std::collections::{BTreeMap, BTreeSet};

use crate::shard_scene::ledger::{Ledgered, Lie};
use crate::shard_scene::operator::{Heard, Manner, Operator, row};
use crate::shard_scene::{Folder, Process, provider, shard, until};
use bigfleet_net::testing::Authority;
use bigfleet_wire::v1alpha1 as wire;

async fn names(shard: Process, part: &str) {
    let (code, text) = shard.ended().await;
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains(&format!("bigfleet shard: {part}: ")),
        "{text}"
    );
    assert!(text.contains("component exited"), "{text}");
}

/// A shard that goes on without one of its parts looks healthy and is not: it ends, and says which.
#[tokio::test]
async fn a_shard_that_loses_any_part_ends_and_names_it() {
    let folder = Folder::new("part");
    let cloud = provider(&["--seed-count=1"]);
    let without = |name: &str, part: &str| {
        let flag = format!("--trouble=panic-in={part}");
        shard(&folder.file(name), cloud.addr, &[&flag])
    };
    names(without("paused", "pause file"), "pause file").await;
    let storing = without("stored", "store");
    let a = Operator::connect(storing.addr, "a", Manner::Plain).await;
    a.needs(vec![row(1, 100, "")]).await;
    names(storing, "store").await;
}

/// what reads as nothing is not passed over in silence, nor said again with every List.
#[tokio::test(flavor = "multi_thread")]
async fn a_quantity_that_cannot_be_read_is_said_once_and_counted_each_time() {
    let folder = Folder::new("garbled");
    let cloud = provider(&["--seed-count=3"]);
    let ledger = Ledgered::start(cloud.addr).await;
    ledger.ledger.lie(Lie::Garbled, 4);
    let mut shard = shard(&folder.file("data"), ledger.addr, &[]);
    let said = shard.logged("provider record read as less than it says");
    let fields = &said["fields"];
    assert!(fields["machine"].is_string(), "{said}");
    let text = fields["err"].as_str().unwrap();
    assert!(text.contains("\"lots\" is malformed and reads 0"), "{text}");
    let counted = until("a List that is true again", async || {
        let lists = shard.metric("bigfleet_shard_lists_total");
        let counted = shard.metric("bigfleet_shard_record_warnings_total");
        (5.0 <= lists, counted)
    })
    .await;
    assert!(
        4.0 * 3.0 <= counted,
        "three machines, four Lists: {counted}"
    );
    let times = shard.text().matches("read as less than it says").count();
    assert!(times <= 2, "resources and allocatable: {}", shard.text());
}

/// Readiness stays; these are what shows that the provider has gone.
#[tokio::test]
async fn a_provider_that_goes_away_is_seen_in_the_numbers() {
    let folder = Folder::new("away");
    let cloud = provider(&["--seed-count=3"]);
    let shard = shard(&folder.file("data"), cloud.addr, &[]);
    let number = |name: &str| shard.metric(&format!("bigfleet_shard_{name}"));
    until("a List", async || {
        let lists = number("lists_total");
        (0.0 < lists, lists)
    })
    .await;
    assert_eq!(number("provider_reachable"), 1.0);
    assert_eq!(number("consecutive_reconcile_failures"), 0.0);
    let listed = "provider_rpc_duration_seconds_count{method=\"List\",code=\"OK\"}";
    assert!(0.0 < number(listed), "{}", shard.http("/metrics"));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let ago = now.unwrap().as_secs_f64() - number("last_reconcile_success_timestamp_seconds");
    assert!((0.0..30.0).contains(&ago), "{ago}");
    cloud.kill();
    until("two Lists in a row that fail", async || {
        let failed = number("consecutive_reconcile_failures");
        (2.0 <= failed, failed)
    })
    .await;
    assert_eq!(number("provider_reachable"), 0.0);
    let unavailable = "provider_rpc_duration_seconds_count{method=\"List\",code=\"Unavailable\"}";
    assert!(0.0 < number(unavailable), "{}", shard.http("/metrics"));
    assert!(shard.http("/readyz").contains("200 OK"), "the latch holds");
}

/// What is in force can be read without the command line that asked for it.
#[tokio::test(flavor = "multi_thread")]
async fn the_configuration_in_force_is_said_at_the_start_and_shown_for_ever() {
    let folder = Folder::new("config");
    let cloud = provider(&["--seed-count=1"]);
    let nobody = "127.0.0.1:9";
    let flags = [
        "--coordinator-addr=127.0.0.1:9",
        "--advertise-addr=s1.example:7780",
        "--coordinator-heartbeat-interval=7s",
        "--phase-attribution-log",
        "--reflection=false",
        "--log-level=info,h2=warn",
    ];
    let mut shard = shard(&folder.file("data"), cloud.addr, &flags);
    let said = shard.logged("effective configuration");
    let said: serde_json::Value =
        serde_json::from_str(said["fields"]["config"].as_str().unwrap()).unwrap();
    let page = shard.http("/config");
    let shown: serde_json::Value =
        serde_json::from_str(page.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(said, shown);
    assert_eq!(shown["coordinator"]["addr"], nobody);
    assert_eq!(shown["coordinator"]["advertise_addr"], "s1.example:7780");
    assert_eq!(shown["coordinator"]["heartbeat_interval_seconds"], 7.0);
    assert_eq!(shown["phase_attribution_log"], true);
    assert_eq!(shown["reflection"], false);
    assert_eq!(shown["log"]["level"], "info,h2=warn");
    assert_eq!(shown["tls"], serde_json::Value::Null);
    let metrics = shard.http("/metrics");
    let has = |start: &str, part: &str| {
        let line = metrics.lines().find(|line| line.starts_with(start));
        let line = line.unwrap_or_else(|| panic!("no {start} in {metrics}"));
        assert!(line.contains(part) && line.ends_with(" 1.0"), "{line}");
    };
    has(
        "bigfleet_build_info{",
        concat!("version=\"", env!("CARGO_PKG_VERSION"), "\""),
    );
    has(
        "bigfleet_shard_config_info{",
        "coordinator_addr=\"127.0.0.1:9\"",
    );
    assert_eq!(shard.metric("bigfleet_shard_epoch"), 1.0);
}

/// Rail 2 as the log tells it: what was there, what is asked for, and that the third was believed.
#[tokio::test(flavor = "multi_thread")]
async fn a_quarantine_is_told_with_its_rows_and_so_is_its_end() {
    let folder = Folder::new("quarantine");
    let cloud = provider(&["--seed-count=2"]);
    let fast = ["--trouble=clock-speed=40"];
    let mut shard = shard(&folder.file("data"), cloud.addr, &fast);
    let a = Operator::connect(shard.addr, "a", Manner::Plain).await;
    let rows = (0..12).map(|at| row(1, 100 + at, "")).collect();
    a.needs(rows).await;
    for held in 0..=2 {
        let so_many = |heard: &Heard| {
            let of_guard = |ack: &&wire::Acknowledgement| ack.reason.starts_with("held by rail 2");
            let answered = heard.acks.iter().filter(|ack| ack.echo == "rollup").count();
            heard.acks.iter().filter(of_guard).count() == held && answered == 1 + held
        };
        a.sees("a roll-up answered", so_many).await;
        if held < 2 {
            a.needs(Vec::new()).await;
        }
    }
    let held = shard.logged("roll-up quarantined: the demand before stays");
    assert_eq!(held["fields"]["cluster"], "a");
    assert_eq!(held["fields"]["rows_before"], 12);
    assert_eq!(held["fields"]["rows_now"], 0);
    assert_eq!(held["fields"]["held"], 1);
    assert_eq!(held["span"]["shard_id"], "s1", "{held}");
    assert_eq!(held["span"]["epoch"], 1, "{held}");
    let held_for = "bigfleet_shard_rollup_quarantine_seconds{cluster=\"a\"}";
    let held_for = || shard.metric(held_for);
    until("20 s", async || (20.0 <= held_for(), held_for())).await;
    a.needs(Vec::new()).await;
    let believed = shard.logged("roll-up confirmed and accepted: it was said often enough");
    assert_eq!(believed["fields"]["rows_before"], 12);
    let audited = until("both in the audit log", async || {
        let mut rails = folder.audit();
        rails.retain(|line| line["msg"] == "rail");
        (rails.len() == 3, rails)
    })
    .await;
    let held = audited.iter().map(|line| line["detail"]["held"].as_u64());
    assert_eq!(Vec::from_iter(held), [Some(1), Some(2), Some(0)]);
    let first = &audited[0];
    assert_eq!(
        (&first["rail"], &first["cluster"]),
        (&"roll-up-guard".into(), &"a".into())
    );
    assert_eq!(first["shard"], "s1");
}

/// One line of the audit log is enough to find the rest: whose, which, how long and for how much.
#[tokio::test]
async fn an_audited_action_names_its_shard_its_operation_its_time_and_its_price() {
    let folder = Folder::new("audited");
    let cloud = provider(&["--seed-count=4"]);
    let shard = shard(&folder.file("data"), cloud.addr, &[]);
    let a = Operator::connect(shard.addr, "a", Manner::Reports).await;
    a.needs(vec![row(4, 100, "")]).await;
    a.has(1).await;
    let bound = until("the Bootstrap in the audit log", async || {
        let mut lines = folder.audit().into_iter();
        let bound = lines.find(|line| line["kind"] == "Bootstrap");
        (bound.is_some(), bound)
    })
    .await
    .unwrap();
    assert_eq!(
        (&bound["shard"], &bound["epoch"]),
        (&"s1".into(), &1.into())
    );
    let text = |key: &str| bound[key].as_str().unwrap_or_default().to_owned();
    assert!(!text("operation").is_empty(), "{bound}");
    assert!(!text("provider_operation").is_empty(), "{bound}");
    assert!(0.0 < bound["duration_seconds"].as_f64().unwrap(), "{bound}");
    assert!(0.0 <= bound["price_per_hour"].as_f64().unwrap(), "{bound}");
}

const METRICS: &str = include_str!("../../../../docs/metrics.md");

/// The names in the tables of the document, and whether they are there only on a condition.
fn documented() -> BTreeMap<String, bool> {
    let rows = METRICS.lines().filter(|line| line.starts_with("| `"));
    let metrics = rows.filter(|row| {
        ["counter", "gauge", "histogram"].iter().any(|kind| {
            row.split('|')
                .nth(2)
                .is_some_and(|cell| cell.trim().starts_with(kind))
        })
    });
    let names = |row: &str| {
        let cell = row.split('|').nth(1).unwrap_or_default().to_owned();
        let conditional = ["with certificates only", "with a coordinator only"]
            .iter()
            .any(|condition| row.contains(condition));
        let names: Vec<String> = cell
            .split('`')
            .skip(1)
            .step_by(2)
            .map(str::to_owned)
            .collect();
        names
            .into_iter()
            .map(move |name| (full(&name), conditional))
    };
    metrics.flat_map(names).collect()
}

fn full(name: &str) -> String {
    if name.starts_with("bigfleet_") {
        name.to_owned()
    } else {
        format!("bigfleet_shard_{name}")
    }
}

/// The names on the page: counters with the ending their samples have.
fn published(page: &str) -> BTreeSet<String> {
    let types = page.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let name = |line: &str| match line.split_once(' ') {
        Some((name, "counter")) => format!("{name}_total"),
        Some((name, _)) => name.to_owned(),
        None => line.to_owned(),
    };
    types.map(name).collect()
}

/// Whoever is paged looks a name up and finds it; whoever reads of one can graph it.
#[tokio::test]
async fn every_metric_is_in_the_document_and_every_one_there_is_published() {
    let folder = Folder::new("names");
    let cloud = provider(&["--seed-count=4"]);
    let shard = shard(&folder.file("data"), cloud.addr, &[]);
    let a = Operator::connect(shard.addr, "a", Manner::Reports).await;
    a.needs(vec![row(4, 100, "")]).await;
    a.has(1).await;
    let documented = documented();
    assert!(60 < documented.len(), "{documented:?}");
    let plain = documented.iter().filter(|(_, conditional)| !**conditional);
    let plain: BTreeSet<String> = plain.map(|(name, _)| name.clone()).collect();
    let seen = until("every documented name", async || {
        let seen = published(&shard.http("/metrics"));
        (
            plain.is_subset(&seen),
            Vec::from_iter(plain.difference(&seen).cloned()),
        )
    })
    .await;
    assert_eq!(seen, Vec::<String>::new());
    let all_known = |seen: &BTreeSet<String>| {
        let unheard = seen.iter().filter(|name| !documented.contains_key(*name));
        let unheard: Vec<&String> = unheard.collect();
        assert!(unheard.is_empty(), "not in docs/metrics.md: {unheard:?}");
    };
    all_known(&published(&shard.http("/metrics")));

    let ca = Authority::new("ca").unwrap();
    let leaf = ca.leaf(&["bigfleet://shard/s1"]).unwrap();
    let files = leaf.write(&folder.file("certificates"), &ca.pem).unwrap();
    let flags = [
        format!("--tls-cert={}", files.cert.display()),
        format!("--tls-key={}", files.key.display()),
        format!("--tls-ca={}", files.ca.display()),
        "--coordinator-addr=127.0.0.1:9".to_owned(),
        "--advertise-addr=s1.example:7780".to_owned(),
    ];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let secure = crate::shard_scene::shard(&folder.file("secure"), cloud.addr, &flags);
    let conditional = documented.iter().filter(|(_, conditional)| **conditional);
    let conditional: BTreeSet<String> = conditional.map(|(name, _)| name.clone()).collect();
    let missing = until("every conditional name", async || {
        let seen = published(&secure.http("/metrics"));
        all_known(&seen);
        let missing = Vec::from_iter(conditional.difference(&seen).cloned());
        (missing.is_empty(), missing)
    })
    .await;
    assert_eq!(missing, Vec::<String>::new());
}
