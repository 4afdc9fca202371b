//! SIGKILL in the middle of things, fifty times and more: the ledger of what the provider saw must be
//! what was decided, nothing doubled and nothing lost.
//!
//! A kill comes as a drawn number of calls have reached the provider or been answered by it, so that a
//! slow machine is killed in as many different places as a fast one.

use crate::shard_scene::ledger::{CallKind, Ledgered};
use crate::shard_scene::operator::{Manner, Operator, cpus};
use crate::shard_scene::scene::offerings;
use crate::shard_scene::{Folder, Process, provider, shard, until};
use bigfleet_seeded::Prng;
use bigfleet_wire::v1alpha1 as wire;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// A kill comes before so many calls were made or answered: most of a step of four machines, each
/// created and configured.
const KILLED_WITHIN: usize = 14;

/// A cluster whose demand goes in steps, and the processes that serve it one after another.
struct Steps {
    data: PathBuf,
    ledger: Ledgered,
    manner: Manner,
    draws: Prng,
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
            let (process, a) = self.begin(machines).await;
            let moments = self.draws.below(KILLED_WITHIN);
            tokio::select! {
                () = self.ledger.ledger.moments(moments) => {}
                // Fewer were left to happen in this step.
                () = a.has(machines) => {}
            }
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
        draws: Prng::new(seed),
    };
    let ledger = steps.ledger.ledger.clone();
    let count = |kind| ledger.operations(kind).len();

    let up = (1..=STEPS).map(|step| step * PER_STEP);
    let (process, a) = steps.killed_in_each(up, MOST).await;
    assert_eq!(
        count(CallKind::Configure),
        MOST,
        "seed {seed}: bound once each"
    );
    assert_eq!(
        count(CallKind::Create),
        MOST - 20,
        "seed {seed}: bought once each"
    );
    assert_eq!((count(CallKind::Drain), count(CallKind::Delete)), (0, 0));
    process.kill();
    drop(a);

    let down = (1..STEPS).rev().map(|step| step * PER_STEP);
    let (process, _a) = steps.killed_in_each(down, PER_STEP).await;
    // The operator knows of a drain once it is decided; the call comes after.
    until("every drain at the provider", async || {
        let drains = count(CallKind::Drain);
        (MOST - PER_STEP <= drains, drains)
    })
    .await;
    assert_eq!(
        count(CallKind::Drain),
        MOST - PER_STEP,
        "seed {seed}: drained once each"
    );
    assert_eq!(
        count(CallKind::Configure),
        MOST,
        "seed {seed}: and none bound again"
    );

    // Every binding the provider took on carries the id of one decision, and no decision two.
    let mut decisions: BTreeMap<String, (String, String)> = BTreeMap::new();
    for seen in ledger.seen() {
        let Ok(operation) = seen.answer else { continue };
        if seen.kind == CallKind::Configure {
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
