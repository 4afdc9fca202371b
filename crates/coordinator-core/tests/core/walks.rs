//! Random walks: whatever dies, gets lost, is repeated or comes late, no machine has two owners, and in the end each has one.

use std::collections::BTreeMap;

use bigfleet_coordinator_core::Defect;

use crate::world::{World, machines};

/// Events of one walk.
const EVENTS: usize = 3_000;

/// A walk; where it went wrong, if it did.
pub(crate) fn walk(
    seed: u64,
    defect: Option<Defect>,
) -> Result<BTreeMap<&'static str, u64>, String> {
    let mut world = World::new(seed, defect);
    for event in 0..EVENTS {
        if let Err(why) = world.step() {
            let trace = world.trace();
            return Err(format!("seed {seed}, event {event}: {why}\n{trace}"));
        }
    }
    if let Err(why) = world.calm_down() {
        let trace = world.trace();
        return Err(format!("seed {seed}, in the end: {why}\n{trace}"));
    }
    world.check_replicas();
    world.counts.insert("floors raised", world.floors());
    Ok(world.counts)
}

#[test]
fn one_owner_whatever_happens() {
    let mut counts: BTreeMap<&'static str, u64> = BTreeMap::new();
    for seed in 1..=200 {
        let walked = walk(seed, None).unwrap_or_else(|why| panic!("{why}"));
        for (what, count) in walked {
            *counts.entry(what).or_default() += count;
        }
    }
    // A walk that meets nothing shows nothing.
    for what in [
        "answers heard",
        "proposals timed out",
        "leaders deposed",
        "reigns",
        "disks lost",
        "released",
        "restores",
        "restores finished",
        "shards dead",
        "declared gone",
        "replicas restarted",
        "floors raised",
    ] {
        assert!(
            20 < counts.get(what).copied().unwrap_or_default(),
            "{what}: {counts:?}"
        );
    }
    assert_eq!(machines().len(), 2 * World::shard_ids().len());
}
