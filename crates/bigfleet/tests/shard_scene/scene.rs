//! A whole scene: a fake cloud of equal machines, a ledger in front of it, and a shard on both.

use std::net::SocketAddr;

use bigfleet_wire::v1alpha1::MachineState;

use super::ledger::{CallKind, Ledgered};
use super::operator::{Manner, Operator};
use super::{Folder, Process, provider, shard, until};

/// The flag that offers so many machines of four cpus in each of these tiers.
pub(crate) fn offerings(folder: &Folder, tiers: &[(&str, usize)]) -> String {
    let entry = |(tier, count): &(&str, usize)| {
        serde_json::json!({
            "instance_type": "m4", "zone": "zone-a", "capacity_type": tier, "count": count,
            "resources": { "cpu": "4" }, "allocatable": { "cpu": "4" }, "price_per_hour": 0.5,
        })
    };
    let all: Vec<_> = tiers.iter().map(entry).collect();
    written(folder, "offerings", &all.into())
}

/// The flag that turns knobs of the cloud.
pub(crate) fn knobs(folder: &Folder, knobs: &serde_json::Value) -> String {
    written(folder, "knobs", knobs)
}

fn written(folder: &Folder, flag: &str, value: &serde_json::Value) -> String {
    let path = folder.file(&format!("{flag}.json"));
    std::fs::write(&path, value.to_string()).unwrap();
    format!("--{flag}={}", path.display())
}

/// A cloud with metal that is there and slots that would have to be bought, and a shard on it.
pub(crate) struct Scene {
    pub(crate) folder: Folder,
    pub(crate) ledger: Ledgered,
    pub(crate) shard: Process,
    cloud: Option<Process>,
    cloud_addr: SocketAddr,
    cloud_flags: [String; 3],
}

impl Scene {
    /// A prompt cloud and a usual shard.
    pub(crate) async fn new(name: &str, metal: usize, slots: usize) -> Self {
        Self::with(name, metal, slots, &serde_json::json!({}), &[]).await
    }

    /// A cloud in a mood, and a shard with these flags as well.
    pub(crate) async fn with(
        name: &str,
        metal: usize,
        slots: usize,
        mood: &serde_json::Value,
        flags: &[&str],
    ) -> Self {
        let folder = Folder::new(name);
        let cloud_flags = [
            offerings(&folder, &[("bare_metal", metal), ("on_demand", slots)]),
            format!("--state={}", folder.file("cloud.state").display()),
            // What could not be made is a slot again soon.
            "--clean-up-after=200ms".to_owned(),
        ];
        let turned = knobs(&folder, mood);
        let [offered, state, clean_up] = &cloud_flags;
        let cloud = provider(&[offered, state, clean_up, &turned]);
        let cloud_addr = cloud.addr;
        let ledger = Ledgered::start(cloud_addr).await;
        let shard = shard(&folder.file("data"), ledger.addr, flags);
        Self {
            folder,
            ledger,
            shard,
            cloud: Some(cloud),
            cloud_addr,
            cloud_flags,
        }
    }

    /// The cloud's API is gone without a word; its machines are not.
    pub(crate) fn cloud_dies(&mut self) {
        self.cloud.take().unwrap().kill();
    }

    /// It is back where it was, with everything it had, in this mood.
    pub(crate) fn cloud_returns(&mut self, mood: &serde_json::Value) {
        let mut flags = self.cloud_flags.to_vec();
        flags.push(knobs(&self.folder, mood));
        flags.push(format!("--addr={}", self.cloud_addr));
        flags.push("--metrics-addr=127.0.0.1:0".to_owned());
        self.cloud = Some(Process::start(&["provider", "fake"], &flags));
    }

    /// Ends the shard without a word, and starts another on the same data.
    pub(crate) fn next_shard(&mut self, flags: &[&str]) {
        self.shard.end();
        self.shard = shard(&self.folder.file("data"), self.ledger.addr, flags);
    }

    pub(crate) async fn operator(&self, cluster: &str, manner: Manner) -> Operator {
        Operator::connect(self.shard.addr, cluster, manner).await
    }

    pub(crate) fn operations(&self, kind: CallKind) -> usize {
        self.ledger.ledger.operations(kind).len()
    }

    /// How many machines the cloud has in each of these states.
    pub(crate) async fn count<const N: usize>(&self, states: [MachineState; N]) -> [usize; N] {
        let there = self.ledger.ledger.machines().await;
        states.map(|state| there.get(&state).map_or(0, Vec::len))
    }

    pub(crate) async fn cycles(&self, more: u32) {
        let cycle = || self.shard.metric("bigfleet_shard_cycle");
        let later = cycle() + f64::from(more);
        until("more cycles", async || (later <= cycle(), cycle())).await;
    }

    /// At static demand nothing more is decided: ten cycles, and no call.
    pub(crate) async fn is_quiet(&self) {
        let seen = self.ledger.ledger.seen().len();
        self.cycles(10).await;
        let later = self.ledger.ledger.seen();
        assert_eq!(later.len(), seen, "{:?}", &later[seen..]);
        self.ledger.ledger.check();
    }

    /// How often the audit log says this, once it does so many times: it is written beside the work.
    pub(crate) async fn audited(&self, kind: &str, outcome: &str, at_least: usize) -> usize {
        until("audited", async || {
            let lines = self.folder.audit();
            let says =
                |line: &&serde_json::Value| line["kind"] == kind && line["outcome"] == outcome;
            let count = lines.iter().filter(says).count();
            (at_least <= count, count)
        })
        .await
    }
}
