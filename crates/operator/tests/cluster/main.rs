//! The operator and the pod controller on a real API server, with a shard that says what a test wants it to say.
//!
//! ```text
//! etcd, kube-apiserver ◀─▶ operator, pod controller ◀─▶ a shard from a script        hollow kubelet: Pods end
//! ```
//!
//! One cluster for all: starting one costs more than everything else here. What they do is told apart by names, and an operator
//! sees the whole cluster, so they go one after another.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "test code: whatever is not as it should be fails the test"
)]

mod draining;
mod operating;
mod pods;
mod roles;
mod scene;
mod serving;

use scene::Scene;

#[test]
fn on_a_real_api_server() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut scene = runtime.block_on(Scene::start());
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        runtime.block_on(async {
            scene.begins("requests are counted, told to the shard and acknowledged");
            operating::requests_are_acknowledged(&mut scene).await;
            scene.begins("a machine becomes a Node, and the Node is reported");
            operating::a_machine_becomes_a_node(&mut scene).await;
            scene.begins("EX-OP14: a template is rendered, and one that cannot be is an error");
            operating::ex_op14_bootstrap(&mut scene).await;
            scene.begins("EX-OP13: a machine that leaves takes its UpcomingNode along");
            operating::ex_op13_a_machine_leaves(&mut scene).await;
            scene.begins("EX-OP11: a budget is respected, and the drain ends when it gives way");
            draining::ex_op11_a_budget_is_respected(&mut scene).await;
            scene
                .begins("EX-OP6: an operator killed in the middle of a drain goes on where it was");
            draining::ex_op6_killed_in_the_middle(&mut scene).await;
            scene.begins(
                "EX-OP7, EX-OP23: a drain taken back touches no Pod, and no cordon of a person's",
            );
            draining::ex_op7_ex_op23_taken_back(&mut scene).await;
            scene.begins("a permission that is missing is named");
            operating::a_missing_permission_is_named(&mut scene).await;
            scene.begins("Pods have requests");
            pods::pods_have_requests(&mut scene).await;
            scene.begins("a Pod that waits is told why, and once more when it no longer does");
            serving::who_waits_is_told_why(&mut scene).await;
            scene.begins("what cannot be read of a Pod that waits is said");
            serving::what_cannot_be_read_is_said(&mut scene).await;
        });
    }));
    if let Err(why) = outcome {
        eprintln!("{}", scene.world.logs());
        std::panic::resume_unwind(why);
    }
}
