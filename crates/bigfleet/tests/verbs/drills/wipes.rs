//! Wipes: an operator that suddenly asks for nothing, or nearly so. Its machines stay, and everybody is told.

use bigfleet_wire::v1alpha1 as wire;

use super::{Drill, is_well};
use crate::shard_scene::ledger::CallKind;
use crate::shard_scene::operator::{Manner, Operator, row};
use crate::shard_scene::scene::Scene;

/// So many rows of one machine each.
fn rows(count: usize) -> Vec<wire::CapacityNeed> {
    (0..count)
        .map(|at| row(4, 100, &format!("r{at}")))
        .collect()
}

/// Twelve rows, each with its machine.
async fn twelve(name: &str) -> (Scene, Operator) {
    let scene = Scene::new(name, 12, 0).await;
    let a = scene.operator("a", Manner::Reports).await;
    a.needs(rows(12)).await;
    a.has(12).await;
    is_well(&scene).await;
    (scene, a)
}

/// Every surface says that the roll-ups of cluster a are held.
async fn is_held(drill: &Drill, scene: &Scene) {
    drill.status(scene, "quarantine", "cluster a: ").await;
    drill.verb(scene, &["get", "rails"], "rollup-guard").await;
    drill.verb(scene, &["get", "events"], "roll-up-held").await;
    drill
        .verb(
            scene,
            &["describe", "cluster", "a"],
            "in a row not believed yet",
        )
        .await;
    drill
        .verb(scene, &["explain", "a"], "its last roll-up is held")
        .await;
    let metric = "bigfleet_shard_rollup_quarantined{cluster=\"a\"}";
    drill.metric(scene, metric, |held| 1.0 <= held).await;
    drill
        .audit(scene, &["--kind=rail", "--cluster=a"], "roll-up-guard")
        .await;
    drill.is_told_by_all();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wipe_in_one_step_is_held_and_said() {
    let (scene, a) = twelve("drill-wipe").await;
    let drill = Drill::begins("wipe in one step");
    a.needs(Vec::new()).await;
    is_held(&drill, &scene).await;
    scene.cycles(10).await;
    assert_eq!(scene.operations(CallKind::Drain), 0, "nothing left");
    a.needs(rows(12)).await;
    is_well(&scene).await;
    drill
        .verb(&scene, &["get", "events"], "roll-up-released")
        .await;
}

/// Half of it is believed at once; the rest is judged against what there was in the last ten minutes.
#[tokio::test(flavor = "multi_thread")]
async fn a_wipe_in_steps_is_held_where_it_becomes_one() {
    let (scene, a) = twelve("drill-steps").await;
    a.needs(rows(6)).await;
    a.has(6).await;
    let drill = Drill::begins("wipe in steps");
    a.needs(rows(1)).await;
    is_held(&drill, &scene).await;
    scene.cycles(10).await;
    assert_eq!(
        scene.operations(CallKind::Drain),
        6,
        "only those of the first step"
    );
    a.has(6).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wipe_at_high_cadence_is_held_however_often_it_is_said() {
    let (scene, a) = twelve("drill-cadence").await;
    let drill = Drill::begins("wipe at high cadence");
    for _ in 0..100 {
        a.needs(Vec::new()).await;
    }
    is_held(&drill, &scene).await;
    scene.cycles(10).await;
    assert_eq!(scene.operations(CallKind::Drain), 0, "nothing left");
    a.has(12).await;
}
