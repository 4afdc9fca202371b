//! Each flag of `bigfleet shard`, by what it changes: the same scene with and without it, seen from the
//! provider, the operator and the log.

use crate::shard_scene::ledger::{CallKind, Gone};
use crate::shard_scene::operator::{Heard, Manner, Operator, cpus, row};
use crate::shard_scene::scene::Scene;
use crate::shard_scene::{Folder, provider, shard, until};
use bigfleet_wire::v1alpha1 as wire;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use wire::acknowledgement::Disposition;

async fn scene(name: &str, metal: usize, flags: &[&str]) -> Scene {
    Scene::with(name, metal, 0, &json!({}), flags).await
}

/// A cluster has three machines; then the next process has these flags.
async fn three_machines_and_then(name: &str, flags: &[&str]) -> (Scene, Operator) {
    let mut scene = Scene::new(name, 6, 0).await;
    let a = scene.operator("a", Manner::Reports).await;
    a.needs(vec![cpus(3)]).await;
    a.has(3).await;
    scene.next_shard(flags);
    let a = scene.operator("a", Manner::Reports).await;
    (scene, a)
}

/// Nothing has left for the provider or for the operator since the three machines were bound.
fn nothing_left(scene: &Scene, a: &Operator) {
    let seen = scene.ledger.ledger.seen();
    assert_eq!(seen.len(), 3, "{:?}", &seen[3..]);
    let heard = a.heard();
    assert_eq!((heard.blobs, heard.instructions.len()), (0, 0));
}

/// Waits until so many actions of a kind have been counted by this metric.
async fn counted(scene: &Scene, metric: &str, kind: &str, least: f64) {
    let name = format!("{metric}{{kind=\"{kind}\"}}");
    let count = || scene.shard.metric(&name);
    until(&name, async || (least <= count(), count())).await;
}

#[tokio::test]
async fn a_shard_that_starts_paused_decides_and_never_acts() {
    let (mut scene, a) = three_machines_and_then("paused", &["--actuation-paused"]).await;
    let suppressed = "bigfleet_shard_actions_suppressed_total";
    a.needs(vec![cpus(5)]).await;
    counted(&scene, suppressed, "Bootstrap", 2.0).await;
    a.needs(vec![cpus(1)]).await;
    counted(&scene, suppressed, "Reclaim", 2.0).await;
    scene.cycles(5).await;
    nothing_left(&scene, &a);
    assert_eq!(scene.shard.metric("bigfleet_shard_actuation_paused"), 1.0);
    assert!(scene.shard.http("/readyz").contains("200 OK"));
    assert_eq!(
        scene.shard.logged("actuation paused")["fields"]["flag"],
        true
    );
    let said = scene.shard.all_logged("actions suppressed by pause");
    let each = said
        .iter()
        .map(|line| (&line["level"], &line["fields"]["suppressed"]));
    let once = (&json!("WARN"), &json!(2));
    assert_eq!(
        each.collect::<Vec<_>>(),
        [once; 2],
        "two, then two others, and not with every cycle"
    );
    scene.audited("Bootstrap", "suppressed", 2).await;
    // Without the flag the next one does what is wanted then.
    scene.next_shard(&["--actuation-paused=false"]);
    let a = scene.operator("a", Manner::Reports).await;
    a.needs(vec![cpus(1)]).await;
    a.has(1).await;
    scene.is_quiet().await;
}

#[tokio::test]
async fn a_dry_run_says_what_it_would_do_and_does_nothing() {
    let (mut scene, a) = three_machines_and_then("dry", &["--dry-run"]).await;
    scene.shard.logged("started in shadow mode");
    let dry = "bigfleet_shard_actions_dryrun_total";
    a.needs(vec![cpus(4)]).await;
    counted(&scene, dry, "Bootstrap", 1.0).await;
    a.needs(vec![cpus(1)]).await;
    counted(&scene, dry, "Reclaim", 2.0).await;
    scene.cycles(5).await;
    nothing_left(&scene, &a);
    let said = scene.shard.all_logged("shadow action");
    assert_eq!(said.len(), 3, "once each, however many cycles: {said:?}");
    let field = |line: &serde_json::Value, name: &str| line["fields"][name].clone();
    let kinds: BTreeSet<String> = said
        .iter()
        .map(|line| field(line, "kind").to_string())
        .collect();
    assert_eq!(
        kinds,
        ["\"Bootstrap\"", "\"Reclaim\""].map(str::to_owned).into()
    );
    for line in &said {
        assert_eq!(
            (&line["level"], field(line, "cluster")),
            (&json!("INFO"), json!("a"))
        );
        assert!(
            field(line, "machine")
                .as_str()
                .unwrap()
                .starts_with("fake-"),
            "{line}"
        );
        assert!(
            field(line, "reason").as_str().unwrap().starts_with("phase"),
            "{line}"
        );
        let drains = field(line, "kind") == "Reclaim";
        assert_eq!(0 < field(line, "grace").as_u64().unwrap(), drains, "{line}");
    }
    scene.audited("Bootstrap", "dryrun", 1).await;
}

/// Rail 1: a quarter of eight is two, of what is left then one.
#[tokio::test]
async fn a_cap_on_reclaims_lets_few_go_at_once_and_says_so() {
    let mut scene = scene("cap", 8, &["--reclaim-cap-fraction=0.25"]).await;
    let a = scene.operator("a", Manner::Reports).await;
    a.needs(vec![cpus(8)]).await;
    a.has(8).await;
    a.needs(vec![cpus(2)]).await;
    a.has(2).await;
    scene.is_quiet().await;
    scene.audited("Reclaim", "success", 6).await;
    let mut per_cycle: BTreeMap<u64, usize> = BTreeMap::new();
    for line in scene.folder.audit() {
        if line["kind"] == "Reclaim" && line["outcome"] == "success" {
            *per_cycle
                .entry(line["decided_cycle"].as_u64().unwrap())
                .or_default() += 1;
        }
    }
    let reclaims: Vec<usize> = per_cycle.into_values().collect();
    assert_eq!(reclaims.iter().sum::<usize>(), 6);
    assert_eq!(reclaims[0], 2, "a quarter of eight: {reclaims:?}");
    assert!(
        reclaims[1..].iter().all(|count| *count == 1),
        "{reclaims:?}"
    );
    let said = scene.shard.all_logged("blast-radius cap engaged");
    let said: Vec<_> = said.iter().map(|line| &line["fields"]).collect();
    assert_eq!(said.len(), 1, "once, and not in every cycle: {said:?}");
    assert_eq!(
        (&said[0]["deferred_reclaims"], &said[0]["cap_fraction"]),
        (&json!(4), &json!(0.25))
    );
    assert_eq!(said[0]["cluster"], "a");
    scene.shard.logged("blast-radius cap released");
    assert!(4.0 <= scene.shard.metric("bigfleet_shard_reclaims_capped_total"));
}

/// A cluster with twelve rows that says it needs nothing, and what came of it: `held` or `accepted`.
async fn says_nothing_is_needed(a: &Operator, answers: usize) -> Disposition {
    a.needs(Vec::new()).await;
    let answered = |heard: &Heard| roll_ups(heard).len() == answers;
    let heard = a.sees("an answer to the roll-up", answered).await;
    roll_ups(&heard)[answers - 1].disposition()
}

fn roll_ups(heard: &Heard) -> Vec<wire::Acknowledgement> {
    let of_roll_ups = heard.acks.iter().filter(|ack| ack.echo == "rollup");
    of_roll_ups.cloned().collect()
}

async fn twelve_rows(scene: &Scene) -> Operator {
    let a = scene.operator("a", Manner::Reports).await;
    let rows = (0..12).map(|n| row(4, 100, &format!("row-{n}")));
    a.needs(rows.collect()).await;
    a.has(12).await;
    a
}

/// Rail 2.
#[tokio::test]
async fn a_roll_up_that_withdraws_everything_is_believed_the_third_time() {
    let scene = scene("guard", 12, &["--trouble=clock-speed=10"]).await;
    let a = twelve_rows(&scene).await;
    let calls = scene.ledger.ledger.seen().len();
    let quarantined = "bigfleet_shard_rollup_quarantined{cluster=\"a\"}";
    for held in 1..=2 {
        let answer = says_nothing_is_needed(&a, 1 + held).await;
        assert_eq!(answer, Disposition::Held);
        let shown = || scene.shard.metric(quarantined);
        until("it is shown", async || (shown() == held as f64, shown())).await;
        scene.cycles(3).await;
        assert_eq!(
            scene.ledger.ledger.seen().len(),
            calls,
            "the demand before stays"
        );
        let said = scene
            .shard
            .all_logged("roll-up quarantined: the demand before stays");
        assert_eq!(said.len(), held);
        assert_eq!(said[held - 1]["fields"]["held"], held);
        assert_eq!(said[held - 1]["fields"]["cluster"], "a");
    }
    // However often it is said, twenty seconds pass (SH-31).
    assert_eq!(says_nothing_is_needed(&a, 4).await, Disposition::Held);
    let held_for = "bigfleet_shard_rollup_quarantine_seconds{cluster=\"a\"}";
    let held_for = || scene.shard.metric(held_for);
    until("20 s", async || (20.0 <= held_for(), held_for())).await;
    assert_eq!(says_nothing_is_needed(&a, 5).await, Disposition::Accepted);
    a.has(0).await;
    assert_eq!(scene.operations(CallKind::Drain), 12);
}

#[tokio::test]
async fn without_the_guard_it_is_believed_at_once() {
    let scene = scene("unguarded", 12, &["--empty-rollup-guard=false"]).await;
    let a = twelve_rows(&scene).await;
    assert_eq!(says_nothing_is_needed(&a, 2).await, Disposition::Accepted);
    a.has(0).await;
}

/// A serving machine is deleted past the shard, which asks for changes only (RC-3).
async fn one_is_deleted(name: &str, how: Gone) {
    // A clock that runs: everything is asked for every sixtieth time.
    let flags = [
        "--incremental-reconcile",
        "--cycle-interval=2s",
        "--trouble=clock-speed=40",
    ];
    let scene = scene(name, 6, &flags).await;
    let a = scene.operator("a", Manner::Plain).await;
    a.needs(vec![cpus(3)]).await;
    a.has(3).await;
    let serving: Vec<String> = a.heard().nodes.into_keys().collect();
    let deltas = || scene.ledger.ledger.deltas();
    until("changes only are asked for", async || {
        (3 <= deltas(), deltas())
    })
    .await;
    scene.ledger.ledger.vanish(&serving[0], how);
    a.sees("its end", |heard| !heard.nodes.contains_key(&serving[0]))
        .await;
    a.has(3).await;
    assert_eq!(
        scene.operations(CallKind::Configure),
        4,
        "replaced, and once"
    );
    let removed = || scene.shard.metric("bigfleet_shard_machines_removed_total");
    until("one removed", async || (removed() == 1.0, removed())).await;
    scene.is_quiet().await;
}

#[tokio::test]
async fn who_asks_for_changes_only_hears_that_a_machine_is_gone() {
    one_is_deleted("told", Gone::Told).await;
}

#[tokio::test]
async fn and_misses_one_nobody_spoke_of_with_the_next_full_list() {
    one_is_deleted("untold", Gone::Untold).await;
}

#[tokio::test]
async fn only_so_many_actions_are_decided_per_cycle() {
    let scene = scene("actions", 4, &["--max-actions-per-cycle=1"]).await;
    let a = scene.operator("a", Manner::Plain).await;
    a.needs(vec![cpus(4)]).await;
    a.has(4).await;
    scene.audited("Bootstrap", "success", 4).await;
    let decided = scene.folder.audit();
    let decided: BTreeSet<u64> = decided
        .iter()
        .filter_map(|line| line["decided_cycle"].as_u64())
        .collect();
    assert_eq!(decided.len(), 4, "a cycle each");
    assert!(3.0 <= scene.shard.metric("bigfleet_shard_actions_deferred_total"));
}

#[tokio::test]
async fn only_so_many_calls_are_on_the_wire_at_once() {
    for (flag, calls) in [
        ("--execute-concurrency=1", 1),
        ("--execute-concurrency=3", 3),
    ] {
        let scene = scene(&format!("calls-{calls}"), 5, &[flag]).await;
        let ledger = &scene.ledger.ledger;
        let a = scene.operator("a", Manner::Plain).await;
        ledger.hold();
        a.needs(vec![cpus(5)]).await;
        let waiting = || ledger.waiting();
        until("calls on the wire", async || {
            (calls <= waiting(), waiting())
        })
        .await;
        scene.cycles(5).await;
        assert_eq!(waiting(), calls, "and no more, however many cycles pass");
        ledger.let_go();
        a.has(5).await;
    }
}

#[tokio::test]
async fn a_pause_file_elsewhere_can_name_the_provider() {
    let folder = Folder::new("pause-elsewhere");
    let pause = folder.file("stop-here");
    std::fs::write(&pause, "provider another\n").unwrap();
    let flag = format!("--pause-file={}", pause.display());
    let scene = scene("pause-file", 4, &[&flag, "--provider-name=metal"]).await;
    let a = scene.operator("a", Manner::Plain).await;
    a.needs(vec![cpus(1)]).await;
    a.has(1).await;
    std::fs::write(&pause, "provider metal\n").unwrap();
    let paused = || scene.shard.metric("bigfleet_shard_actuation_paused");
    until("the pause", async || (paused() == 1.0, paused())).await;
    a.needs(vec![cpus(2)]).await;
    let suppressed = "bigfleet_shard_actions_suppressed_total";
    counted(&scene, suppressed, "Bootstrap", 1.0).await;
    assert_eq!(scene.ledger.ledger.seen().len(), 1);
    std::fs::remove_file(&pause).unwrap();
    a.has(2).await;
}

/// A data directory that was lost: what the provider has seen of this shard is older than the floor.
#[tokio::test]
async fn an_epoch_floor_is_where_tokens_begin() {
    let mut scene = scene("floor", 4, &["--epoch-floor=41"]).await;
    let a = scene.operator("a", Manner::Plain).await;
    a.needs(vec![cpus(1)]).await;
    a.has(1).await;
    let first = scene.shard.logged("listening")["fields"]["epoch"]
        .as_i64()
        .unwrap();
    assert!((41..=42).contains(&first), "{first}");
    assert_eq!(scene.ledger.ledger.seen()[0].token, (first, 1));
    scene.next_shard(&[]);
    let second = scene.shard.logged("listening")["fields"]["epoch"].as_i64();
    assert_eq!(second, Some(first + 1), "remembered without the flag");
}

/// Machines elsewhere are not ours, however much is short.
#[tokio::test]
async fn a_domain_of_its_own_is_all_a_shard_takes() {
    let folder = Folder::new("domain");
    let cloud = provider(&["--bare-metal", "--seed-count=12"]);
    let domain = "--own-domain=topology.kubernetes.io/zone=zone-b";
    let shard = shard(&folder.file("data"), cloud.addr, &[domain]);
    let a = Operator::connect(shard.addr, "a", Manner::Plain).await;
    a.needs(vec![cpus(12)]).await;
    a.has(3).await;
    let short = || shard.metric("bigfleet_shard_shortfalls");
    until("the rest is short", async || (short() == 1.0, short())).await;
    let nodes = a.heard().nodes;
    assert!(nodes.keys().all(|id| id.contains("-zone-b-")), "{nodes:?}");
}

#[tokio::test]
async fn a_shard_can_do_without_probes() {
    let mut scene = scene("unprobed", 2, &["--metrics-addr=0"]).await;
    assert_eq!(scene.shard.logged("listening")["fields"]["probes"], "");
    let a = scene.operator("a", Manner::Plain).await;
    a.needs(vec![cpus(2)]).await;
    a.has(2).await;
    assert_eq!(scene.shard.terminate(), Some(0));
}

/// What is free for a row changes with every machine it takes.
#[tokio::test]
async fn hints_come_no_more_often_than_asked_for() {
    for interval in ["100ms", "1h"] {
        let flag = format!("--available-capacity-interval={interval}");
        let scene = scene(&format!("hints-{interval}"), 4, &[&flag]).await;
        let a = scene.operator("a", Manner::Plain).await;
        for machines in 1..=3 {
            a.needs(vec![cpus(machines)]).await;
            a.has(machines).await;
            scene.cycles(2).await;
        }
        if interval == "100ms" {
            a.sees("more than one hint", |heard| 1 < heard.hints).await;
        } else {
            assert_eq!(a.heard().hints, 1, "within the hour");
        }
    }
}

#[tokio::test]
async fn the_first_cycles_can_be_left_out_of_the_histograms() {
    let scene = scene("warm-up", 1, &["--metrics-warmup-cycles=8"]).await;
    until("eight cycles", async || {
        let cycle = scene.shard.metric("bigfleet_shard_cycle");
        (8.0 <= cycle, cycle)
    })
    .await;
    scene.cycles(3).await;
    let text = scene.shard.http("/metrics");
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("no {name} in\n{text}"))
            .trim()
            .parse::<f64>()
            .unwrap()
    };
    let (cycle, observed) = (
        value("bigfleet_shard_cycle "),
        value("bigfleet_shard_cycle_duration_seconds_count "),
    );
    assert_eq!(observed, cycle - 8.0);
}

/// Who is believed without a certificate is said at the start.
#[tokio::test]
async fn plaintext_is_warned_of() {
    let mut scene = scene("warned", 1, &[]).await;
    let said = "plaintext: anyone who can reach this address is believed; see --tls-cert";
    assert_eq!(scene.shard.logged(said)["level"], "WARN");
}

/// A flag that makes no sense ends the start, and the message names it; nothing is made on disk.
#[test]
fn flags_that_make_no_sense_are_named() {
    let folder = Folder::new("refused");
    let data = folder.file("data");
    let data_dir = format!("--data-dir={}", data.display());
    for (flags, said) in [
        (&["--id=two words"][..], "--id has to be letters, digits"),
        (&["--id="], "--id has to be letters, digits"),
        (&["--listen="], "--listen is empty"),
        (
            &["--reclaim-cap-fraction=1.5"],
            "--reclaim-cap-fraction is not between 0 and 1",
        ),
        (
            &["--reclaim-cap-fraction=NaN"],
            "--reclaim-cap-fraction is not between 0 and 1",
        ),
        (
            &["--cycle-interval=10ms"],
            "--cycle-interval is below 100ms",
        ),
        (&["--cycle-interval=soon"], "--cycle-interval"),
        (&["--own-domain=zone"], "it is not key=value"),
        (&["--own-domain==a"], "its key is empty"),
        (&["--tls-cert=a.pem"], "--tls-cert without"),
        (&["--epoch-floor=-1"], "--epoch-floor"),
        (&["--id=a b", "--listen="], "--listen is empty"),
        (&["--log-format=xml"], "--log-format"),
        (&["--no-such-flag"], "--no-such-flag"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bigfleet"));
        command.args([
            "shard",
            "--provider-addr=127.0.0.1:1",
            "--metrics-addr=0",
            &data_dir,
        ]);
        let output = command.args(flags).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success(), "{flags:?}: {text}");
        assert!(output.status.code().is_some(), "{flags:?}: {text}");
        assert!(text.contains(said), "{flags:?}: {text}");
        assert!(!data.exists(), "{flags:?} left something behind");
    }
}

/// AU-2: files of the audit log are set aside before they are too long, and only so many are kept.
#[tokio::test]
async fn the_audit_log_is_set_aside_and_ends() {
    let flags = ["--audit-max-bytes=4000", "--audit-files=3"];
    let scene = scene("rotation", 8, &flags).await;
    let a = scene.operator("a", Manner::Plain).await;
    for machines in [8, 0, 8, 0, 8] {
        a.needs(
            (machines != 0)
                .then(|| cpus(machines))
                .into_iter()
                .collect(),
        )
        .await;
        a.has(machines).await;
    }
    let there = || {
        let names = ["data.audit", "data.audit.1", "data.audit.2", "data.audit.3"];
        let length = |name: &str| std::fs::metadata(scene.folder.file(name)).ok();
        names.map(|name| length(name).map(|file| file.len()))
    };
    // 40 actions of some 400 bytes each.
    until("three files, none too long", async || {
        let there = there();
        let kept = there[..3].iter().flatten();
        let are_short = kept.clone().all(|length| *length <= 4000);
        (kept.count() == 3 && are_short && there[3].is_none(), there)
    })
    .await;
    assert_eq!(
        scene.shard.metric("bigfleet_shard_audit_lines_lost_total"),
        0.0
    );
}
