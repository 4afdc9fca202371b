//! Rail 1 by the clock on the wall, while the shard is killed again and again (SH-30).
//!
//! The judge is the ledger in front of the provider: it knows when each Drain came, and nothing of what the
//! shard believes.

use crate::shard_scene::ledger::{CallKind, Ledger, Ledgered};
use crate::shard_scene::operator::{Manner, Operator, cpus};
use crate::shard_scene::scene::offerings;
use crate::shard_scene::{Folder, WITHIN, provider, shard};
use bigfleet_seeded::Prng;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

const MACHINES: usize = 400;
/// So few that there is something to drain until the last kill.
const WANTED: usize = MACHINES / 4;
const KILLS: usize = 60;
/// The interval of the cap.
const INTERVAL: Duration = Duration::from_secs(2);
/// A call takes so much longer than another to reach the ledger on a busy machine, at most.
const LATE: Duration = Duration::from_millis(500);
const FLAGS: [&str; 2] = ["--cycle-interval=2s", "--reclaim-cap-fraction=0.02"];
/// What that fraction is one in.
const ONE_IN: usize = 50;

/// When each machine was first drained, in that order.
fn drained(ledger: &Ledger) -> Vec<Instant> {
    let mut seen = BTreeSet::new();
    let calls = ledger.seen().into_iter();
    let drains = calls.filter(|one| one.kind == CallKind::Drain && one.answer.is_ok());
    let mut first: Vec<Instant> = drains
        .filter_map(|one| seen.insert(one.machine).then_some(one.at))
        .collect();
    first.sort();
    first
}

/// The most that were drained within one interval, with what was allowed then.
fn most_at_once(drained: &[Instant]) -> (usize, usize) {
    let within = |first: usize| {
        let end = drained[first] + INTERVAL - LATE;
        let count = drained[first..].iter().filter(|at| **at < end).count();
        (count, ((MACHINES - first) / ONE_IN).max(1))
    };
    let all = (0..drained.len()).map(within);
    all.max_by_key(|(count, allowed)| count.saturating_sub(*allowed))
        .unwrap()
}

/// 60 kills, each after a few calls at most.
#[tokio::test]
async fn sixty_kills_in_a_reclaim_drain_no_faster_than_the_cap() {
    let folder = Folder::new("capped-kills");
    let cloud = provider(&[&offerings(&folder, &[("bare_metal", MACHINES)])]);
    let ledgered = Ledgered::start(cloud.addr).await;
    let (ledger, data) = (&ledgered.ledger, folder.file("data"));
    let mut draws = Prng::new(0x5eed_0003);

    let process = shard(&data, ledgered.addr, &FLAGS);
    let a = Operator::connect(process.addr, "a", Manner::Plain).await;
    a.needs(vec![cpus(MACHINES)]).await;
    a.has(MACHINES).await;
    process.kill();

    for _ in 0..KILLS {
        let process = shard(&data, ledgered.addr, &FLAGS);
        let a = Operator::connect(process.addr, "a", Manner::Plain).await;
        a.needs(vec![cpus(WANTED)]).await;
        // A call that came and its answer are a moment each.
        let few = ledger.moments(1 + draws.below(2));
        tokio::time::timeout(WITHIN, few).await.unwrap();
        process.kill();
    }
    let drained = drained(ledger);
    let (most, allowed) = most_at_once(&drained);
    assert!(
        most <= allowed,
        "{most} were drained within {INTERVAL:?}, and {allowed} may be"
    );
    assert!(KILLS / 2 < drained.len(), "only {} drained", drained.len());
    ledger.check();
}
