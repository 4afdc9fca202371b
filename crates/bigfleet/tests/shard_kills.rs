//! SIGKILL at random moments, fifty times and more: the ledger of what the provider saw must be what
//! was decided, nothing doubled and nothing lost.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod shard_scene;

use bigfleet_wire::v1alpha1 as wire;
use shard_scene::ledger::{Kind, Ledgered};
use shard_scene::operator::{Manner, Operator, cpus};
use shard_scene::{Folder, provider, shard};
use std::collections::{BTreeMap, BTreeSet};
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

/// Demand goes up and then down in steps, with a kill somewhere in each.
async fn killed_all_the_way(seed: u64, manner: Manner) {
    const STEPS: usize = 14;
    const PER_STEP: usize = 4;
    const MOST: usize = STEPS * PER_STEP;
    let folder = Folder::new(&format!("kills-{seed}"));
    let offerings = serde_json::json!([
        { "instance_type": "m4", "zone": "a", "capacity_type": "bare_metal", "count": 20,
          "resources": { "cpu": "4" }, "allocatable": { "cpu": "4" } },
        { "instance_type": "m4", "zone": "a", "capacity_type": "on_demand", "count": 80,
          "resources": { "cpu": "4" }, "allocatable": { "cpu": "4" }, "price_per_hour": 0.5 },
    ]);
    let path = folder.file("offerings.json");
    std::fs::write(&path, offerings.to_string()).unwrap();
    let offerings = format!("--offerings={}", path.display());
    let cloud = provider(&[&offerings, "--latency=1ms..120ms"]);
    let ledger = Ledgered::start(cloud.addr).await;
    let data = folder.file("data");
    let mut moments = Moments(seed);

    // Up, a kill per step; at the top nothing was bought or bound twice.
    for step in 1..=STEPS {
        let process = shard(&data, ledger.addr, &[]);
        let a = Operator::connect(process.addr, "a", manner).await;
        a.needs(vec![cpus(step * PER_STEP)]).await;
        // Not to wait for anything: the moment of the kill is what is drawn.
        tokio::time::sleep(Duration::from_millis(moments.next(500))).await;
        process.kill();
    }
    let process = shard(&data, ledger.addr, &[]);
    let a = Operator::connect(process.addr, "a", manner).await;
    a.needs(vec![cpus(MOST)]).await;
    a.has(MOST).await;
    ledger.ledger.check();
    let count = |kind| ledger.ledger.operations(kind).len();
    assert_eq!(count(Kind::Configure), MOST, "seed {seed}: bound once each");
    assert_eq!(
        count(Kind::Create),
        MOST - 20,
        "seed {seed}: bought once each"
    );
    assert_eq!((count(Kind::Drain), count(Kind::Delete)), (0, 0));
    process.kill();
    drop(a);

    // Down, a kill per step; at the bottom nothing was drained that was wanted.
    for step in (1..STEPS).rev() {
        let process = shard(&data, ledger.addr, &[]);
        let a = Operator::connect(process.addr, "a", manner).await;
        a.needs(vec![cpus(step * PER_STEP)]).await;
        tokio::time::sleep(Duration::from_millis(moments.next(500))).await;
        process.kill();
    }
    let process = shard(&data, ledger.addr, &[]);
    let a = Operator::connect(process.addr, "a", manner).await;
    a.needs(vec![cpus(PER_STEP)]).await;
    a.has(PER_STEP).await;
    ledger.ledger.check();
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
    for seen in ledger.ledger.seen() {
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
    let acted = ledger.ledger.seen().into_iter().map(|seen| seen.token.0);
    let acted: BTreeSet<i64> = acted.collect();
    assert!(STEPS < acted.len(), "only {acted:?} ever called");

    let held = ledger.ledger.machines().await;
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
