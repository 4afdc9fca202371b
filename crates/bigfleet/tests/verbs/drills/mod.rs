//! Drills: what goes wrong around a shard, and what each surface says about it within how many seconds.
//!
//! ```text
//! something goes wrong ─▶ status · get · explain · metrics · audit, each asked until it says so, in time
//! ```
//!
//! Each prints a line of the table `drill | surface | seconds | sentence`: `cargo test --test verbs drills -- --nocapture`.

mod clock;
mod cluster;
mod disk;
mod lies;
mod provider;
mod wipes;

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::called::{Called, call};
use crate::shard_scene::scene::Scene;
use crate::shard_scene::until;

/// What a surface may take; the specification allows so much for a provider's death.
const IN_TIME: Duration = Duration::from_secs(30);

/// Something has gone wrong.
pub(crate) struct Drill {
    name: &'static str,
    began: Instant,
    within: Duration,
}

impl Drill {
    pub(crate) fn begins(name: &'static str) -> Self {
        Self {
            name,
            began: Instant::now(),
            within: IN_TIME,
        }
    }

    /// One of which some surfaces speak later, since once is no trouble yet.
    pub(crate) fn within(self, within: Duration) -> Self {
        Self { within, ..self }
    }

    /// A surface tells the truth.
    fn told(&self, surface: &str, sentence: &str) {
        let took = self.began.elapsed();
        let seconds = took.as_secs_f64();
        println!(
            "| {} | {surface} | {seconds:.1} | {} |",
            self.name,
            sentence.trim()
        );
        assert!(
            took < self.within,
            "{}: {surface} only after {took:?}",
            self.name
        );
    }

    /// `status` lists a problem of this kind that says this, and is no success.
    pub(crate) async fn status(&self, scene: &Scene, kind: &str, what: &str) -> Value {
        let said = until(&format!("status says {kind}: {what}"), async || {
            let called = verb(scene, &["status", "-o", "json"]);
            let said: Value = serde_json::from_str(&called.out).unwrap_or_default();
            let problems = said["problems"].as_array().cloned().unwrap_or_default();
            let found = problems.into_iter().find(|problem| {
                let text = problem["what"].as_str().unwrap_or_default();
                problem["kind"] == kind && text.contains(what)
            });
            if found.is_some() {
                assert_eq!((called.status, &said["ok"]), (Some(1), &Value::Bool(false)));
            }
            (found.is_some(), found.unwrap_or(said))
        })
        .await;
        self.told("status", said["what"].as_str().unwrap());
        said
    }

    /// A verb says this; everything that it printed.
    pub(crate) async fn verb(&self, scene: &Scene, args: &[&str], what: &str) -> String {
        let said = until(&format!("{args:?} says {what}"), async || {
            let said = verb(scene, args).out;
            (said.contains(what), said)
        })
        .await;
        let line = said.lines().find(|line| line.contains(what));
        self.told(&args.join(" "), line.unwrap_or(what));
        said
    }

    /// A metric is so.
    pub(crate) async fn metric(&self, scene: &Scene, name: &str, is_so: impl Fn(f64) -> bool) {
        let value = until(name, async || {
            let value = scene.shard.metric(name);
            (is_so(value), value)
        })
        .await;
        self.told("metrics", &format!("{name} {value}"));
    }

    /// `bigfleet audit` says this of the shard's log.
    pub(crate) async fn audit(&self, scene: &Scene, args: &[&str], what: &str) {
        let file = scene.folder.file("data.audit").display().to_string();
        let said = until(&format!("audit {args:?} says {what}"), async || {
            let said = call(&[&["audit", &file], args].concat()).out;
            (said.contains(what), said)
        })
        .await;
        let line = said.lines().find(|line| line.contains(what));
        self.told("audit", line.unwrap_or(what));
    }
}

/// Runs a verb against the shard of a scene.
pub(crate) fn verb(scene: &Scene, args: &[&str]) -> Called {
    let shard = format!("--shard={}", scene.shard.addr);
    call(&[args, &[&shard]].concat())
}

/// The first Need of cluster a.
pub(crate) fn need(scene: &Scene) -> Value {
    let listed = verb(scene, &["get", "needs", "--cluster=a", "-o", "json"]).done();
    let listed: Value = serde_json::from_str(&listed).unwrap();
    listed["items"][0].clone()
}

pub(crate) async fn until_need(scene: &Scene, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
    until(what, async || {
        let need = need(scene);
        (holds(&need), need)
    })
    .await
}

/// Waits until nothing is wrong.
pub(crate) async fn is_well(scene: &Scene) {
    until("all is well", async || {
        let called = verb(scene, &["status"]);
        (called.status == Some(0), called)
    })
    .await;
}
