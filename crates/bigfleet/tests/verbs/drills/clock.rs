//! Clocks: the host's clock is set while a shard runs, and between two processes of it.
//!
//! A shard keeps its own time from its start on. So a clock that is set makes no Need older, ends no pause, and is
//! said; the next process begins with what the host says.

use serde_json::{Value, json};

use super::{Drill, need, until_need, verb};
use crate::shard_scene::Folder;
use crate::shard_scene::operator::{Manner, Operator, cpus};
use crate::shard_scene::scene::Scene;
use crate::shard_scene::until;

const HOUR: i64 = 3600;

/// A shard on a host whose clock can be set.
struct Host {
    scene: Scene,
    clock: Folder,
}

impl Host {
    async fn new(name: &str) -> (Self, Operator) {
        let clock = Folder::new(name);
        let scene = Scene::with(name, 1, 0, &json!({}), &[&flag(&clock)]).await;
        let a = scene.operator("a", Manner::Plain).await;
        a.needs(vec![cpus(2)]).await;
        a.has(1).await;
        let host = Self { scene, clock };
        until_need(&host.scene, "a Need that lacks", |need| {
            need["missing"] == json!({"cpu": "4"}) && need["lacking_since"].is_string()
        })
        .await;
        (host, a)
    }

    /// Sets the clock so many seconds forward, or back.
    fn set(&self, seconds: i64) {
        let file = self.clock.file("set");
        let next = self.clock.file("next");
        std::fs::write(&next, seconds.to_string()).unwrap();
        std::fs::rename(next, file).unwrap();
    }

    fn status(&self) -> Vec<Value> {
        let said = verb(&self.scene, &["status", "-o=json"]).out;
        let said: Value = serde_json::from_str(&said).unwrap();
        said["problems"].as_array().unwrap().clone()
    }

    /// For how long something has been lacking, at most.
    fn oldest(&self) -> f64 {
        self.scene
            .shard
            .metric("bigfleet_shard_need_lacking_oldest_seconds")
    }
}

fn flag(clock: &Folder) -> String {
    format!("--trouble=clock-set-by={}", clock.file("set").display())
}

/// The clock is set while the shard runs: said, and nothing else changes.
async fn set_while_it_runs(name: &'static str, seconds: i64, said: &str) {
    let (host, a) = Host::new(name).await;
    let scene = &host.scene;
    verb(scene, &["pause", "--reason=storage work", "--for=30m"]).done();
    let since = need(scene)["lacking_since"].clone();
    let drill = Drill::begins(name);
    host.set(seconds);
    drill.status(scene, "clock", said).await;
    let off = |behind: f64| (behind - seconds as f64).abs() < 60.0;
    drill
        .metric(scene, "bigfleet_shard_clock_behind_seconds", off)
        .await;
    drill.verb(scene, &["get", "events"], said).await;
    drill.audit(scene, &["--kind=clock-set"], said).await;
    scene.cycles(5).await;
    // No age jumps, no alert fires, no pause ends.
    assert!(host.oldest() < 120.0, "{}", host.oldest());
    assert_eq!(need(scene)["lacking_since"], since);
    let problems = host.status();
    assert!(
        problems.iter().all(|one| one["kind"] != "need"),
        "{problems:?}"
    );
    drill.verb(scene, &["explain", "a"], "PAUSED for ").await;
    drill
        .verb(scene, &["get", "pauses", "--no-headers"], "storage work")
        .await;
    drill.is_told_by_all();
    // Its log goes on in its own time.
    a.needs(Vec::new()).await;
    verb(scene, &["resume", "--reason=done"]).done();
    drill
        .audit(
            scene,
            &["--kind=Reclaim", "--cluster=a", "--output=json"],
            "Reclaim",
        )
        .await;
    let times: Vec<String> = scene
        .folder
        .audit()
        .iter()
        .map(|line| line["time"].as_str().unwrap()[..13].to_owned())
        .collect();
    let hours: std::collections::BTreeSet<&String> = times.iter().collect();
    assert!(hours.len() <= 2, "the hour may be over: {hours:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_set_forward_while_it_runs() {
    let said = "the host's clock was set 2 h forward since this process began";
    set_while_it_runs("clock set forward", 2 * HOUR + 300, said).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_set_back_while_it_runs() {
    let said = "the host's clock was set 2 h back since this process began";
    set_while_it_runs("clock set back", -2 * HOUR - 300, said).await;
}

/// SV-3: an age outlives SIGKILL. If the clock was set meanwhile it is what the host's clock says, and never
/// from the future.
#[tokio::test(flavor = "multi_thread")]
async fn ages_over_a_kill_and_over_a_clock_that_was_set_meanwhile() {
    let (mut host, a) = Host::new("clock set between").await;
    let since = need(&host.scene)["lacking_since"].clone();
    // It rides along with what is written next, which is soon.
    until("the age is on disk", async || {
        let commits = host
            .scene
            .shard
            .metric("bigfleet_shard_store_commits_total");
        (2.0 <= commits, commits)
    })
    .await;
    drop(a);
    let seen = async |host: &mut Host| {
        host.scene.next_shard(&[&flag(&host.clock)]);
        let a = host.scene.operator("a", Manner::Plain).await;
        a.needs(vec![cpus(2)]).await;
        let lacks = |need: &Value| need["lacking_since"].is_string();
        let need = until_need(&host.scene, "a Need that lacks", lacks).await;
        (a, need["lacking_since"].clone())
    };
    let (_a, after) = seen(&mut host).await;
    assert_eq!(after, since, "it goes on where it was");
    host.set(HOUR);
    let drill = Drill::begins("clock set forward, then restarted");
    let (_a, after) = seen(&mut host).await;
    assert_eq!(after, since);
    drill
        .status(
            &host.scene,
            "need",
            "1 Need is not served in full for more than 5 minutes",
        )
        .await;
    host.set(-HOUR);
    let drill = Drill::begins("clock set back, then restarted");
    let (_a, after) = seen(&mut host).await;
    assert!(
        after.as_str() < since.as_str(),
        "{after}: not from the future"
    );
    drill
        .metric(
            &host.scene,
            "bigfleet_shard_need_lacking_oldest_seconds",
            |age| age < 60.0,
        )
        .await;
    assert!(host.status().iter().all(|one| one["kind"] != "need"));
}
