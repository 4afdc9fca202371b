//! SIGKILL at random moments, fifty times and more: the ledger of what the provider saw must be what
//! was decided, nothing doubled and nothing lost.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod shard_scene;

use bigfleet_wire::v1alpha1 as wire;
use shard_scene::ledger::{Kind, Ledgered};
use shard_scene::operator::{Manner, Operator, cpus};
use shard_scene::scene::offerings;
use shard_scene::{Folder, Process, provider, shard};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

/// Moments from a seed: xorshift, enough to be arbitrary.
struct Moments(u64);

impl Moments {
    fn next(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }
}

/// A cluster whose demand goes in steps, and the processes that serve it one after another.
struct Steps {
    data: PathBuf,
    ledger: Ledgered,
    manner: Manner,
    moments: Moments,
}

impl Steps {
    async fn begin(&self, machines: usize) -> (Process, Operator) {
        let process = shard(&self.data, self.ledger.addr, &[]);
        let a = Operator::connect(process.addr, "a", self.manner).await;
        a.needs(vec![cpus(machines)]).await;
        (process, a)
    }

    /// A process per step, each killed somewhere in it; then one that gets to the end.
    async fn killed_in_each(
        &mut self,
        steps: impl Iterator<Item = usize>,
        end: usize,
    ) -> (Process, Operator) {
        for machines in steps {
            let (process, _a) = self.begin(machines).await;
            // Not to wait for anything: the moment of the kill is what is drawn.
            tokio::time::sleep(Duration::from_millis(self.moments.next(500))).await;
            process.kill();
        }
        let (process, a) = self.begin(end).await;
        a.has(end).await;
        self.ledger.ledger.check();
        (process, a)
    }
}

/// Demand goes up and then down, with a kill somewhere in each step.
async fn killed_all_the_way(seed: u64, manner: Manner) {
    const STEPS: usize = 14;
    const PER_STEP: usize = 4;
    const MOST: usize = STEPS * PER_STEP;
    let folder = Folder::new(&format!("kills-{seed}"));
    let offerings = offerings(&folder, &[("bare_metal", 20), ("on_demand", 80)]);
    let cloud = provider(&[&offerings, "--latency=1ms..120ms"]);
    let mut steps = Steps {
        data: folder.file("data"),
        ledger: Ledgered::start(cloud.addr).await,
        manner,
        moments: Moments(seed),
    };
    let ledger = steps.ledger.ledger.clone();
    let count = |kind| ledger.operations(kind).len();

    let up = (1..=STEPS).map(|step| step * PER_STEP);
    let (process, a) = steps.killed_in_each(up, MOST).await;
    assert_eq!(count(Kind::Configure), MOST, "seed {seed}: bound once each");
    assert_eq!(
        count(Kind::Create),
        MOST - 20,
        "seed {seed}: bought once each"
    );
    assert_eq!((count(Kind::Drain), count(Kind::Delete)), (0, 0));
    process.kill();
    drop(a);

    let down = (1..STEPS).rev().map(|step| step * PER_STEP);
    let (process, _a) = steps.killed_in_each(down, PER_STEP).await;
    assert_eq!(
        count(Kind::Drain),
        MOST - PER_STEP,
        "seed {seed}: drained once each"
    );
    assert_eq!(
        count(Kind::Configure),
        MOST,
        "seed {seed}: and none bound again"
    );

    // Every binding the provider took on carries the id of one decision, and no decision two.
    let mut decisions: BTreeMap<String, (String, String)> = BTreeMap::new();
    for seen in ledger.seen() {
        let Ok(operation) = seen.answer else { continue };
        if seen.kind == Kind::Configure {
            assert_eq!(seen.cluster, "a");
            let made = (seen.machine, operation);
            let before = decisions.insert(seen.intent, made.clone());
            assert!(
                before.is_none_or(|before| before == made),
                "one decision, two bindings"
            );
        }
    }
    // The kills came in the middle of things: most processes had begun to act, and few to be done.
    let acted = ledger.seen().into_iter().map(|seen| seen.token.0);
    let acted: BTreeSet<i64> = acted.collect();
    assert!(STEPS < acted.len(), "only {acted:?} ever called");

    let held = ledger.machines().await;
    assert_eq!(held[&wire::MachineState::Configured].len(), PER_STEP);
    assert_eq!(process.metric("bigfleet_shard_fenced"), 0.0);
}

/// 28 kills.
#[tokio::test]
async fn killed_under_an_operator_that_reports_drains() {
    killed_all_the_way(0x5eed_0001, Manner::Reports).await;
}

/// 28 more.
#[tokio::test]
async fn killed_under_an_operator_that_does_not() {
    killed_all_the_way(0x5eed_0002, Manner::Plain).await;
}
