//! Drills: what goes wrong around a shard, and what each surface says about it within how many seconds.
//!
//! ```text
//! something goes wrong ─▶ status · get · explain · metrics · audit, each asked until it says so, in time
//! ```
//!
//! A drill is over when each of the five has told the truth (`is_told_by_all`).
//! Each prints a line of the table `drill | surface | seconds | sentence`: `cargo test --test verbs drills -- --nocapture`.

mod certificate;
mod clock;
mod cluster;
mod disk;
mod lies;
mod provider;
mod twin;
mod wipes;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::called::{Called, call};
use crate::shard_scene::scene::Scene;
use crate::shard_scene::{Process, until};

/// What a surface may take; the specification allows so much for a provider's death.
const IN_TIME: Duration = Duration::from_secs(30);

/// Where somebody may look.
const SURFACES: [&str; 5] = ["status", "get", "explain", "metrics", "audit"];

/// Something has gone wrong.
pub(crate) struct Drill {
    name: &'static str,
    began: Instant,
    within: Duration,
    /// The surfaces that have told the truth.
    told: Mutex<BTreeSet<String>>,
}

impl Drill {
    pub(crate) fn begins(name: &'static str) -> Self {
        Self {
            name,
            began: Instant::now(),
            within: IN_TIME,
            told: Mutex::default(),
        }
    }

    /// Every surface has told the truth.
    #[track_caller]
    pub(crate) fn is_told_by_all(&self) {
        let told = self.told.lock().unwrap();
        let silent = SURFACES.iter().filter(|one| !told.contains(**one));
        let silent: Vec<_> = silent.collect();
        assert!(silent.is_empty(), "{}: {silent:?} say nothing", self.name);
    }

    /// One of which some surfaces speak later, since once is no trouble yet.
    pub(crate) fn within(self, within: Duration) -> Self {
        Self { within, ..self }
    }

    /// A surface tells the truth.
    fn told(&self, surface: &str, sentence: &str) {
        let verb = surface.split(' ').next().unwrap_or(surface);
        self.told.lock().unwrap().insert(verb.to_owned());
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
    pub(crate) async fn status(&self, at: &impl Watched, kind: &str, what: &str) -> Value {
        let said = until(&format!("status says {kind}: {what}"), async || {
            let called = verb(at, &["status", "-o", "json"]);
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
    pub(crate) async fn verb(&self, at: &impl Watched, args: &[&str], what: &str) -> String {
        let said = until(&format!("{args:?} says {what}"), async || {
            let called = verb(at, args);
            // What could not be asked is said where errors are.
            let said = if called.out.is_empty() {
                called.err
            } else {
                called.out
            };
            (said.contains(what), said)
        })
        .await;
        let line = said.lines().find(|line| line.contains(what));
        self.told(&args.join(" "), line.unwrap_or(what));
        said
    }

    /// A metric is so.
    pub(crate) async fn metric(&self, at: &impl Watched, name: &str, is_so: impl Fn(f64) -> bool) {
        let value = until(name, async || {
            let value = at.shard().metric(name);
            (is_so(value), value)
        })
        .await;
        self.told("metrics", &format!("{name} {value}"));
    }

    /// `bigfleet audit` says this of the shard's log.
    pub(crate) async fn audit(&self, at: &impl Watched, args: &[&str], what: &str) {
        let file = at.audit().display().to_string();
        let said = until(&format!("audit {args:?} says {what}"), async || {
            let said = call(&[&["audit", &file], args].concat()).out;
            (said.contains(what), said)
        })
        .await;
        let line = said.lines().find(|line| line.contains(what));
        self.told("audit", line.unwrap_or(what));
    }
}

/// A shard that somebody looks at.
pub(crate) trait Watched {
    fn shard(&self) -> &Process;
    fn audit(&self) -> PathBuf;
    /// The certificates of whoever looks.
    fn flags(&self) -> Vec<&str> {
        Vec::new()
    }
}

impl Watched for Scene {
    fn shard(&self) -> &Process {
        &self.shard
    }

    fn audit(&self) -> PathBuf {
        self.folder.file("data.audit")
    }
}

/// Runs a verb against a shard.
pub(crate) fn verb(at: &impl Watched, args: &[&str]) -> Called {
    let shard = format!("--shard={}", at.shard().addr);
    call(&[args, &at.flags(), &[&shard]].concat())
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
pub(crate) async fn is_well(at: &impl Watched) {
    until("all is well", async || {
        let called = verb(at, &["status"]);
        (called.status == Some(0), called)
    })
    .await;
}
