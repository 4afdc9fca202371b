//! A shard with one Need that is covered and one that nothing can cover.

use bigfleet_wire::v1alpha1 as wire;

use crate::called::{Called, call};
use crate::shard_scene::operator::{Manner, Operator, only_in, row};
use crate::shard_scene::{Folder, Process, provider, shard, until};

pub(crate) struct Scene {
    pub(crate) folder: Folder,
    pub(crate) provider: Process,
    pub(crate) shard: Process,
    pub(crate) operator: Operator,
}

/// A row that nothing can cover. Its name is meant to do harm.
pub(crate) fn nowhere() -> wire::CapacityNeed {
    only_in("no\u{1b}[2Jwhere")
}

impl Scene {
    /// Cluster `a`, settled.
    pub(crate) async fn new(name: &str) -> Self {
        let folder = Folder::new(name);
        let provider = provider(&["--seed-count=8"]);
        let shard = shard(&folder.file("data"), provider.addr, &[]);
        let operator = Operator::connect(shard.addr, "a", Manner::Reports).await;
        operator.needs(vec![row(4, 100, ""), nowhere()]).await;
        operator.has(1).await;
        let scene = Self {
            folder,
            provider,
            shard,
            operator,
        };
        until("one Need served and one not", async || {
            let needs = scene.call(&["get", "needs", "--no-headers"]).done();
            let verdicts = ["served", "missing"];
            (verdicts.iter().all(|word| needs.contains(word)), needs)
        })
        .await;
        // Ages are taken down by cycles, and the next one knows.
        until("one Need lacks something", async || {
            let clusters = scene.call(&["get", "clusters", "-o", "json"]).done();
            (clusters.contains("\"needs_lacking\": 1"), clusters)
        })
        .await;
        scene
    }

    /// Runs a verb against this shard.
    pub(crate) fn call(&self, args: &[&str]) -> Called {
        let shard = format!("--shard={}", self.shard.addr);
        call(&[args, &[&shard]].concat())
    }

    /// The id of the machine that serves.
    pub(crate) fn serving(&self) -> String {
        let listed = self.call(&["get", "machines", "-l", "state=configured", "--no-headers"]);
        let listed = listed.done();
        listed.split_whitespace().next().unwrap().to_owned()
    }

    /// The short name of a Need.
    pub(crate) fn need(&self, status: &str) -> String {
        let selector = format!("status={status}");
        let listed = self.call(&["get", "needs", "-l", &selector, "--no-headers"]);
        let listed = listed.done();
        listed.split_whitespace().nth(1).unwrap().to_owned()
    }
}
