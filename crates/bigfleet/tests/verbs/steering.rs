//! `bigfleet pause` and `bigfleet resume` really do.

use crate::called::page;
use crate::scene::{Scene, nowhere};
use crate::shard_scene::operator::row;
use crate::shard_scene::until;

#[tokio::test(flavor = "multi_thread")]
async fn nothing_leaves_while_it_is_paused_and_everything_afterwards() {
    let scene = Scene::new("verbs-pause").await;
    let call = |args: &[&str]| scene.call(args);
    let would = call(&["pause", "--reason=a try", "--dry-run", "--for=90s"]).done();
    assert_eq!(
        page(&would),
        "would pause all for *, until *; no operation was in progress"
    );
    let pauses = call(&["get", "pauses"]);
    assert_eq!(
        (pauses.out.as_str(), pauses.err.as_str()),
        ("", "no pauses found\n")
    );

    let paused = call(&["pause", "--reason=looking round"]).done();
    assert_eq!(
        page(&paused),
        "paused all for *, until *; no operation was in progress"
    );
    let pauses = call(&["get", "pauses"]).done();
    assert!(
        pauses.contains("looking round") && pauses.contains("admin:all"),
        "{pauses}"
    );
    scene.operator.needs(vec![row(8, 100, ""), nowhere()]).await;
    until("a decision that is not let out", async || {
        let actions = call(&["get", "actions", "-l", "outcome=suppressed"]).done();
        (actions.contains("Provision"), actions)
    })
    .await;
    let unsold = ["get", "machines", "-l", "state=Speculative", "--no-headers"];
    assert_eq!(
        call(&unsold).done().lines().count(),
        7,
        "nothing was bought"
    );

    let would = call(&["resume", "--reason=a try", "--dry-run"]).done();
    assert_eq!(would, "would resume all\n");
    let pauses = call(&["get", "pauses", "--no-headers"]).done();
    assert_eq!(pauses.lines().count(), 1, "still paused: {pauses}");
    assert_eq!(
        call(&["resume", "--reason=seen enough"]).done(),
        "resumed all\n"
    );
    scene.operator.has(2).await;
    let again = call(&["resume", "--reason=once more"]).done();
    assert_eq!(
        again,
        "all was not paused with `bigfleet pause`; nothing to resume\n"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn one_cluster_or_one_provider_can_be_paused_alone() {
    let scene = Scene::new("verbs-scopes").await;
    let call = |args: &[&str]| scene.call(args);
    call(&["pause", "--cluster=a", "--reason=one", "--for=1h"]).done();
    let provider = format!("--provider={}", scene.provider.addr);
    call(&["pause", &provider, "--reason=two"]).done();
    let pauses = call(&["get", "pauses", "-l", "origin=admin", "--no-headers"]).done();
    assert_eq!(pauses.lines().count(), 2, "{pauses}");
    let resumed = call(&["resume", "--cluster=a", "--reason=enough"]);
    let still = format!(
        "still paused: provider {} (two); `bigfleet resume` it too\non shard s1 at {}\n",
        scene.provider.addr, scene.shard.addr
    );
    assert_eq!(
        (resumed.err.as_str(), resumed.out.as_str()),
        (still.as_str(), "resumed cluster a\n")
    );
    std::fs::write(scene.folder.file("data").join("pause"), "").unwrap();
    let resumed = until("a pause file that is read", async || {
        let resumed = call(&["resume", &provider, "--reason=enough"]);
        (resumed.err.contains("remove its pause file"), resumed)
    })
    .await;
    assert_eq!(resumed.status, Some(0));

    let unknown = call(&["pause", "--cluster=b", "--reason=x"]).undone();
    assert!(unknown.contains("not known to this shard"), "{unknown}");
    call(&["pause", "--cluster=a", "--provider=p", "--reason=x"]).refused();
    assert!(call(&["pause"]).refused().contains("--reason"));
    let refused = call(&["pause", "--for=0s", "--reason=x"]).refused();
    assert!(
        refused.contains("to end one, use `bigfleet resume`"),
        "{refused}"
    );
    call(&["pause", "--for=soon", "--reason=x"]).refused();
}
