//! Providers one did not write oneself: one whose Lists lack machines or are old, and one that knows the
//! public contract and nothing more.

use crate::shard_scene::ledger::{CallKind, Ledgered, Lie};
use crate::shard_scene::operator::{Manner, Operator, cpus};
use crate::shard_scene::plain::{Answers, Plain};
use crate::shard_scene::scene::offerings;
use crate::shard_scene::{Folder, Process, provider, shard, until};
use std::net::SocketAddr;

/// Ten machines of metal behind a ledger, and an operator that has six of them.
struct Lied {
    _folder: Folder,
    _provider: Process,
    ledger: Ledgered,
    shard: Process,
    operator: Operator,
}

async fn lied(name: &str) -> Lied {
    let folder = Folder::new(name);
    let provider = provider(&[&offerings(&folder, &[("bare_metal", 10)])]);
    let ledger = Ledgered::start(provider.addr).await;
    let shard = shard(&folder.file("data"), ledger.addr, &[]);
    let operator = Operator::connect(shard.addr, "a", Manner::Reports).await;
    operator.needs(vec![cpus(6)]).await;
    operator.has(6).await;
    Lied {
        _folder: folder,
        _provider: provider,
        ledger,
        shard,
        operator,
    }
}

impl Lied {
    /// Lies like this for so many Lists, and then tells the truth again.
    async fn lie(&self, lie: Lie, lists: usize) {
        self.ledger.ledger.lie(lie, lists);
        until("every lie told, and the truth after it", async || {
            let left = self.ledger.ledger.lies_left();
            (left == 0, left)
        })
        .await;
        self.lists(2).await;
    }

    /// Waits for so many more Lists that came to their end.
    async fn lists(&self, more: usize) {
        let lists = || self.shard.metric("bigfleet_shard_lists_total");
        let wanted = lists() + more as f64;
        until("more Lists", async || (wanted <= lists(), lists())).await;
    }

    /// Nothing was lost, moved or bought because of what was said.
    fn stands(&self, calls: usize, machines: usize) {
        let seen = self.ledger.ledger.seen();
        assert_eq!(seen.len(), calls, "{:?}", &seen[calls.min(seen.len())..]);
        let configured = bigfleet_wire::v1alpha1::MachineState::Configured;
        assert_eq!(self.operator.count(configured), machines);
        assert_eq!(
            self.shard.metric("bigfleet_shard_machines_removed_total"),
            0.0
        );
        assert_eq!(self.shard.metric("bigfleet_shard_adoptions_total"), 0.0);
        self.ledger.ledger.check();
    }
}

/// A List that says how many there are is not believed when it has fewer, and that is counted.
#[tokio::test]
async fn a_list_that_lacks_what_it_counts_is_refused() {
    let scene = lied("counted").await;
    let calls = scene.ledger.ledger.seen().len();
    let failed = || scene.shard.metric("bigfleet_shard_lists_failed_total");
    let before = failed();
    scene.lie(Lie::Half, 5).await;
    assert_eq!(failed(), before + 5.0);
    scene.stands(calls, 6);
}

/// One that does not count is believed only when three in a row agree; until then what is missing is kept,
/// and shown.
#[tokio::test]
async fn machines_missing_from_a_list_are_kept() {
    let mut scene = lied("truncated").await;
    let calls = scene.ledger.ledger.seen().len();
    for _ in 0..3 {
        scene.lie(Lie::HalfUncounted, 2).await;
        scene.stands(calls, 6);
    }
    let said = "machines are missing from the List; they are kept until more Lists agree";
    assert_eq!(scene.shard.logged(said)["fields"]["missing"], 5);
    let held = || scene.shard.metric("bigfleet_shard_removals_held");
    until("all are back", async || (held() == 0.0, held())).await;
    for _ in 0..30 {
        scene.ledger.ledger.lie(Lie::HalfUncounted, 2);
        scene.ledger.ledger.lie(Lie::None, 1);
    }
    until("what is kept is shown", async || (held() == 5.0, held())).await;
}

/// An old List shows serving machines as free: each is asked for by name before anything is believed.
#[tokio::test]
async fn an_old_list_moves_nothing() {
    let scene = lied("stale").await;
    scene.ledger.ledger.remember().await;
    scene.operator.needs(vec![cpus(8)]).await;
    scene.operator.has(8).await;
    let calls = scene.ledger.ledger.seen().len();
    scene.lie(Lie::Stale, 4).await;
    scene.stands(calls, 8);
    // And while machines are on their way: two more, each bound once.
    scene.ledger.ledger.lie(Lie::Stale, 8);
    scene.operator.needs(vec![cpus(10)]).await;
    scene.operator.has(10).await;
    scene.lie(Lie::Stale, 1).await;
    scene.stands(calls + 2, 10);
    assert_eq!(
        scene.ledger.ledger.operations(CallKind::Configure).len(),
        10
    );
}

/// Ramp, shrink, a provider that goes away and comes back, on the public contract alone.
async fn works_with(name: &str, answers: Answers) {
    let folder = Folder::new(name);
    let cloud = Plain::new(answers, 12);
    let served = cloud.serve(SocketAddr::from(([127, 0, 0, 1], 0))).await;
    let addr = served.addr;
    let shard = shard(&folder.file("data"), addr, &[]);
    let a = Operator::connect(shard.addr, "a", Manner::Plain).await;
    a.needs(vec![cpus(8)]).await;
    a.has(8).await;
    let counts = || {
        [
            CallKind::Create,
            CallKind::Configure,
            CallKind::Drain,
            CallKind::Delete,
        ]
        .map(|kind| cloud.begun(kind))
    };
    assert_eq!(counts(), [8, 8, 0, 0], "each bought once and bound once");
    a.needs(vec![cpus(5)]).await;
    a.has(5).await;
    until("three machines given up by their cluster", async || {
        (counts() == [8, 8, 3, 0], counts())
    })
    .await;

    served.stop().await;
    let failed = || shard.metric("bigfleet_shard_lists_failed_total");
    until("Lists that fail", async || (2.0 <= failed(), failed())).await;
    a.needs(vec![cpus(9)]).await;
    let taken = |heard: &crate::shard_scene::operator::Heard| {
        heard.acks.iter().filter(|ack| ack.echo == "rollup").count() == 3
    };
    a.sees("the third roll-up taken", taken).await;
    let _again = cloud.serve(addr).await;
    a.has(9).await;
    assert_eq!(
        counts(),
        [9, 12, 3, 0],
        "three that were idle, and one more"
    );
    // A shard that comes back finds what it had, from what such a provider echoes and its own store.
    drop(a);
    shard.kill();
    let again = crate::shard_scene::shard(&folder.file("data"), addr, &[]);
    let a = Operator::connect(again.addr, "a", Manner::Plain).await;
    a.needs(vec![cpus(9)]).await;
    a.has(9).await;
    let cycle = || again.metric("bigfleet_shard_cycle");
    let later = cycle() + 10.0;
    until("ten quiet cycles", async || (later <= cycle(), cycle())).await;
    assert_eq!(counts(), [9, 12, 3, 0]);
    for (metric, why) in [
        ("bigfleet_shard_conflicts_total", "nobody else was there"),
        (
            "bigfleet_shard_machines_removed_total",
            "no machine was ever missing",
        ),
        ("bigfleet_shard_fenced", "tokens only grow"),
    ] {
        assert_eq!(again.metric(metric), 0.0, "{why}");
    }
}

#[tokio::test]
async fn a_provider_that_is_not_ours_and_answers_when_it_is_done() {
    works_with("plain-done", Answers::Done).await;
}

#[tokio::test]
async fn a_provider_that_is_not_ours_and_answers_at_once() {
    works_with("plain-accepted", Answers::Accepted).await;
}
