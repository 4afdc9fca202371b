//! `bigfleet status` on bad days: each drill against processes, and what it says within how many seconds.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bigfleet_net::TlsFiles;
use bigfleet_net::testing::Authority;
use serde_json::Value;

use crate::called::{Called, call};
use crate::scene::Scene;
use crate::shard_scene::operator::{Manner, Operator, row};
use crate::shard_scene::{Folder, provider, shard, until};

/// What the specification allows from a provider's death until it is said.
const SAID_WITHIN: Duration = Duration::from_secs(30);

fn status(shard: &str, more: &[&str]) -> (Called, Value) {
    let called = call(&[&["status", "-o=json", "--shard", shard], more].concat());
    let said = serde_json::from_str(&called.out).unwrap_or(Value::Null);
    (called, said)
}

fn kinds(said: &Value) -> Vec<&str> {
    let problems = said["problems"].as_array().map(Vec::as_slice);
    let problems = problems.unwrap_or_default().iter();
    problems
        .map(|problem| problem["kind"].as_str().unwrap())
        .collect()
}

/// Asks until it says so; the problem, and how long that took.
async fn says(shard: &str, kind: &str, more: &[&str]) -> (Value, Duration) {
    let began = Instant::now();
    let found = until(&format!("status says {kind}"), async || {
        let (called, said) = status(shard, more);
        let found = kinds(&said).contains(&kind);
        if found {
            assert_eq!(called.status, Some(1), "{called:?}");
            assert_eq!(said["ok"], false);
        }
        (found, said)
    })
    .await;
    let problems = found["problems"].as_array().unwrap().clone();
    let problem = problems.into_iter().find(|problem| problem["kind"] == kind);
    let took = began.elapsed();
    let problem = problem.unwrap();
    println!("{kind}: {:.1}s: {}", took.as_secs_f64(), problem["what"]);
    (problem, took)
}

async fn is_well(shard: &str) {
    until("all is well", async || {
        let (called, said) = status(shard, &[]);
        (called.status == Some(0) && said["ok"] == true, called)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_is_well_until_the_provider_dies_and_then_it_is_said_in_time() {
    let scene = Scene::new("status-provider").await;
    let target = scene.shard.addr.to_string();
    is_well(&target).await;
    let page = scene.call(&["status"]).done();
    assert_eq!(page, format!("shard s1 at {target}: all is well\n"));
    let Scene {
        folder: _folder,
        provider,
        shard: _shard,
        operator: _operator,
    } = scene;
    provider.kill();
    let (problem, took) = says(&target, "provider", &[]).await;
    assert!(took < SAID_WITHIN, "{took:?}");
    let keys: Vec<&String> = problem.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["kind", "severity", "since", "verb", "what"]);
    assert_eq!(problem["severity"], "critical");
    let what = problem["what"].as_str().unwrap();
    assert!(what.contains("does not answer"), "{what}");
    assert!(problem["since"].is_string(), "{problem}");
    let verb: Vec<&str> = problem["verb"].as_str().unwrap().split(' ').collect();
    call(&[&verb[1..], &["--shard", &target]].concat()).done();
    let page = call(&["status", "--shard", &target]);
    assert_eq!(page.status, Some(1));
    assert!(page.out.contains("critical provider (for "), "{}", page.out);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_and_an_operator_that_is_gone_are_said_and_end() {
    let scene = Scene::new("status-pause").await;
    let target = scene.shard.addr.to_string();
    scene.call(&["pause", "--reason=odd reclaims"]).done();
    let (problem, _) = says(&target, "pause", &[]).await;
    let what = problem["what"].as_str().unwrap();
    assert!(what.contains("everything is paused"), "{what}");
    assert!(what.ends_with("odd reclaims"), "{what}");
    scene.call(&["resume", "--reason=found it"]).done();
    is_well(&target).await;
    let Scene {
        folder: _folder,
        provider: _provider,
        shard: _shard,
        operator,
    } = scene;
    drop(operator);
    let (problem, _) = says(&target, "session", &[]).await;
    assert_eq!(problem["severity"], "warning");
    assert_eq!(problem["verb"], "bigfleet describe cluster a");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_twin_says_that_it_does_not_act() {
    let folder = Folder::new("status-twin");
    let provider = provider(&["--seed-count=4"]);
    let mut first = shard(&folder.file("data"), provider.addr, &[]);
    let operator = Operator::connect(first.addr, "a", Manner::Plain).await;
    operator.needs(vec![row(4, 100, "")]).await;
    operator.has(1).await;
    drop(operator);
    first.end();
    let twin = shard(&folder.file("elsewhere"), provider.addr, &[]);
    let (problem, _) = says(&twin.addr.to_string(), "fence", &[]).await;
    let what = problem["what"].as_str().unwrap();
    assert!(what.contains("--epoch-floor"), "{what}");
    // Every other surface says so too, first.
    for list in [&["get", "clusters"][..], &["get", "machines"]] {
        let said = call(&[list, &["--shard", &twin.addr.to_string()]].concat()).out;
        assert!(said.starts_with("STOPPED: "), "{list:?}: {said}");
    }
    assert!(twin.http("/readyz").contains("--epoch-floor"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_is_named_before_and_after_its_end() {
    let folder = Folder::new("status-certificate");
    let authority = Authority::new("fleet").unwrap();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let flags = |files: &TlsFiles| {
        [
            format!("--tls-cert={}", files.cert.display()),
            format!("--tls-key={}", files.key.display()),
            format!("--tls-ca={}", files.ca.display()),
        ]
    };
    let ending = now + Duration::from_secs(36 * 60 * 60);
    let leaf = authority.ending(&["bigfleet://shard/s1"], ending).unwrap();
    let of_shard = leaf.write(&folder.file("shard"), &authority.pem).unwrap();
    let leaf = authority.leaf(&["bigfleet://readonly"]).unwrap();
    let of_reader = leaf.write(&folder.file("reader"), &authority.pem).unwrap();
    let (of_shard, reader) = (flags(&of_shard), flags(&of_reader));
    let of_shard: Vec<&str> = of_shard.iter().map(String::as_str).collect();
    let reader: Vec<&str> = reader.iter().map(String::as_str).collect();
    let provider = provider(&of_shard);
    let shard = shard(&folder.file("data"), provider.addr, &of_shard);
    let target = shard.addr.to_string();
    let (problem, _) = says(&target, "certificate", &reader).await;
    assert_eq!(problem["severity"], "critical");
    assert_eq!(problem["verb"], "bigfleet certs issue shard s1");
    assert!(problem["what"].as_str().unwrap().contains("1 day "));
    // Over: whoever asks is told why nobody answers.
    let expired = authority.expired(&["bigfleet://shard/s1"]).unwrap();
    expired
        .write(&folder.file("shard"), &authority.pem)
        .unwrap();
    let (problem, _) = says(&target, "shard", &reader).await;
    let what = problem["what"].as_str().unwrap();
    assert!(what.contains("its certificate has expired"), "{what}");
    for verb in [&["get", "machines"][..], &["explain", "a"]] {
        let said = call(&[verb, &reader, &["--shard", &target]].concat()).undone();
        assert!(
            said.contains("its certificate has expired"),
            "{verb:?}: {said}"
        );
    }
    let ends = shard.metric("bigfleet_shard_tls_expires_timestamp_seconds");
    assert!(ends < now.as_secs_f64(), "{ends}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shard_that_is_gone_is_the_worst_news() {
    let folder = Folder::new("status-gone");
    let provider = provider(&[]);
    let shard = shard(&folder.file("data"), provider.addr, &[]);
    let target = shard.addr.to_string();
    shard.kill();
    let (problem, _) = says(&target, "shard", &[]).await;
    let what = problem["what"].as_str().unwrap();
    assert!(what.contains("nothing answers"), "{what}");
    let (_, said) = status(&target, &[]);
    assert_eq!(said["shard"], Value::Null);
}
