//! What whoever watches a shard sees: its end, its metrics, its configuration, its log.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod shard_scene;

use shard_scene::operator::{Manner, Operator, row};
use shard_scene::{Folder, Process, provider, shard};

async fn names(shard: Process, part: &str) {
    let (code, text) = shard.ended().await;
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains(&format!("bigfleet shard: {part}: ")),
        "{text}"
    );
    assert!(text.contains("component exited"), "{text}");
}

/// A shard that goes on without one of its parts looks healthy and is not: it ends, and says which.
#[tokio::test]
async fn a_shard_that_loses_any_part_ends_and_names_it() {
    let folder = Folder::new("part");
    let cloud = provider(&["--seed-count=1"]);
    let without = |name: &str, part: &str| {
        let flag = format!("--trouble=panic-in={part}");
        shard(&folder.file(name), cloud.addr, &[&flag])
    };
    names(without("paused", "pause file"), "pause file").await;
    let storing = without("stored", "store");
    let a = Operator::connect(storing.addr, "a", Manner::Plain).await;
    a.needs(vec![row(1, 100, "")]).await;
    names(storing, "store").await;
}
