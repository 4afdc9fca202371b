//! A drain that is taken back while the shard is killed in between (SH-18): whichever process hears that the
//! machine is wanted again, nobody is evicted, and nothing is bought for it.
//!
//! ```text
//! needs 2, then 1 ─▶ instruction ─▶ KILL ─▶ the same again, STARTED, needs 2 ─▶ Configured
//! needs 2, then 1 ─▶ instruction, needs 2 ─▶ Restore ─▶ KILL ─▶ the resync says Configured
//! ```
//!
//! The judge is the ledger in front of the provider: a Drain that left would be there.

use crate::shard_scene::ledger::CallKind;
use crate::shard_scene::operator::{Manner, Operator, cpus};
use crate::shard_scene::scene::Scene;
use bigfleet_scripted_operator::Session;
use bigfleet_wire::v1alpha1 as wire;
use wire::drain_report::Phase;
use wire::operator_message::Payload;

const RESTORES: &str = "bigfleet_shard_actions_total{kind=\"Restore\"}";

/// Two of three machines serve, one is no longer wanted, and its operator was told.
async fn dip(name: &str) -> (Scene, Operator, wire::ReclaimInstruction) {
    let scene = Scene::new(name, 3, 0).await;
    let a = scene.operator("a", Manner::Stalls).await;
    a.needs(vec![cpus(2)]).await;
    a.has(2).await;
    a.needs(vec![cpus(1)]).await;
    let heard = a.sees("an instruction", |heard| !heard.instructions.is_empty());
    let instruction = heard.await.instructions.remove(0);
    assert!(instruction.voluntary);
    (scene, a, instruction)
}

async fn report(operator: &Operator, of: &wire::ReclaimInstruction, phase: Phase) {
    let report = wire::DrainReport {
        instruction_id: of.instruction_id.clone(),
        machine_id: of.targets[0].machine_id.clone(),
        phase: phase.into(),
        ..wire::DrainReport::default()
    };
    operator.send(Payload::DrainReport(report)).await;
}

/// Both serve on, by what the operator hears and by what the provider was asked.
async fn nothing_happened(scene: &Scene, operator: &Operator) {
    operator.has(2).await;
    scene.is_quiet().await;
    operator.has(2).await;
    assert_eq!(scene.operations(CallKind::Drain), 0);
    assert_eq!(scene.operations(CallKind::Configure), 2);
}

/// The next process does not know whether the last one called the provider, until the operator says that it
/// is still at it.
#[tokio::test]
async fn demand_that_returns_after_a_kill_takes_the_drain_back() {
    let (mut scene, _killed, sent) = dip("taken-back-after").await;
    scene.next_shard(&[]);
    let a = scene.operator("a", Manner::Stalls).await;
    let heard = a.sees("the instruction again", |heard| {
        !heard.instructions.is_empty()
    });
    let again = heard.await.instructions.remove(0);
    assert_eq!(again.instruction_id, sent.instruction_id);
    report(&a, &again, Phase::Started).await;
    a.needs(vec![cpus(2)]).await;
    nothing_happened(&scene, &a).await;
    scene.shard.shows(RESTORES, 1.0).await;
    scene.audited("Restore", "success", 1).await;
}

/// The process that took it back is killed before its cancel is heard: the resync is the cancel.
#[tokio::test]
async fn what_was_taken_back_before_a_kill_is_heard_in_the_resync() {
    let (mut scene, _replaced, sent) = dip("taken-back-before").await;
    // The session that takes its place never reads: no cancel reaches anybody.
    let needs = wire::ClusterCapacityNeeds {
        cluster_id: "a".to_owned(),
        needs: vec![cpus(2)],
        ..wire::ClusterCapacityNeeds::default()
    };
    let words = [Manner::Stalls.hello("a"), Payload::Rollup(needs)];
    let deaf = Session::open(scene.shard.addr, words).await.unwrap();
    scene.shard.shows(RESTORES, 1.0).await;
    scene.next_shard(&[]);
    drop(deaf);

    let a = scene.operator("a", Manner::Stalls).await;
    a.has(2).await;
    assert!(a.heard().instructions.is_empty(), "nothing drains");
    // What is said of it now comes too late, and is only counted.
    report(&a, &sent, Phase::Drained).await;
    a.needs(vec![cpus(2)]).await;
    nothing_happened(&scene, &a).await;
    let late = "bigfleet_shard_late_answers_total{answer=\"drain\"}";
    scene.shard.shows(late, 1.0).await;
}
