//! `bigfleet retire` and `bigfleet release` really do, and only what was meant.

use crate::called::{Called, call};
use crate::shard_scene::operator::{Manner, Operator, fails_to_be_created, row};
use crate::shard_scene::{Folder, Process, provider, shard, until};

fn asked(shard: &Process, args: &[&str]) -> Called {
    call(&[args, &[&format!("--shard={}", shard.addr)]].concat())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_machine_is_forgotten_and_no_other() {
    let folder = Folder::new("verbs-retire");
    let cloud = provider(&["--seed-count=2", "--fault-hooks"]);
    let shard = shard(&folder.file("data"), cloud.addr, &[]);
    let a = Operator::connect(shard.addr, "a", Manner::Plain).await;
    a.needs(vec![fails_to_be_created()]).await;
    let in_state = |state: &str| {
        let selector = format!("state={state}");
        let listed = asked(
            &shard,
            &["get", "machines", "-l", &selector, "--no-headers"],
        );
        let first = listed.out.split_whitespace().next().map(str::to_owned);
        first.unwrap_or_default()
    };
    let failed = until("a machine that failed", async || {
        let failed = in_state("Failed");
        (!failed.is_empty(), failed)
    })
    .await;
    a.needs(Vec::new()).await;

    let would = asked(&shard, &["retire", &failed, "--reason=x", "--dry-run"]).done();
    assert!(
        would.starts_with(&format!("would retire machine {failed}, a ")),
        "{would}"
    );
    assert_eq!(in_state("Failed"), failed, "it was only asked");
    let other = in_state("Speculative");
    let kept = asked(&shard, &["retire", &other, "--reason=x"]).undone();
    assert!(kept.contains("is Speculative, not Failed"), "{kept}");
    let done = asked(&shard, &["retire", &failed, "--reason=scrap"]).done();
    assert!(
        done.starts_with(&format!("retired machine {failed}")),
        "{done}"
    );
    let gone = asked(&shard, &["retire", &failed, "--reason=again"]).undone();
    assert!(gone.contains("not known to this shard"), "{gone}");
    let no_reason = asked(&shard, &["retire", &failed]).refused();
    assert!(no_reason.contains("--reason"), "{no_reason}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_is_released_by_whoever_knows_how_much_it_holds() {
    let folder = Folder::new("verbs-release");
    let cloud = provider(&["--seed-count=12"]);
    let shard = shard(&folder.file("data"), cloud.addr, &[]);
    let a = Operator::connect(shard.addr, "a", Manner::Plain).await;
    a.needs(vec![row(12, 100, "")]).await;
    a.has(2).await;
    let unsaid = asked(&shard, &["release", "a", "--reason=x"]).refused();
    assert!(unsaid.contains("--machines"), "{unsaid}");
    let spoken_for = asked(&shard, &["release", "a", "--reason=x", "--machines=2"]).undone();
    assert!(spoken_for.contains("operator connected"), "{spoken_for}");
    drop(a);
    let would = until("nobody speaks for a", async || {
        let would = asked(&shard, &["release", "a", "--reason=x", "--dry-run"]);
        (would.status == Some(0), would)
    })
    .await;
    let advice = "to do it: `bigfleet release a --machines 2 --reason …`";
    let on = format!("{advice}\non shard s1 at {}\n", shard.addr);
    assert_eq!(
        (would.out.as_str(), would.err.as_str()),
        (
            "would release cluster a: 1 Need dropped, 2 machines to give back\n",
            on.as_str()
        )
    );
    let wrong = asked(&shard, &["release", "a", "--reason=x", "--machines=3"]).undone();
    assert!(wrong.contains("has 2 machines, not 3"), "{wrong}");
    let done = asked(&shard, &["release", "a", "--reason=x", "--machines=2"]).done();
    assert_eq!(
        done,
        "released cluster a: 1 Need dropped, 2 machines to give back\n"
    );
    until("its machines given back", async || {
        let bound = asked(&shard, &["get", "machines", "--cluster=a", "--no-headers"]);
        (bound.out.is_empty(), bound)
    })
    .await;
}
