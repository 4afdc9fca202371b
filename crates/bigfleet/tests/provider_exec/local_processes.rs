//! The example of local processes: a machine is a process, and one that is killed is replaced.

use bigfleet_wire::v1alpha1::MachineState;

use crate::scene::{Exec, example, pids};
use crate::shard_scene::operator::{Manner, Operator, cpus};
use crate::shard_scene::{Folder, shard, until};

#[tokio::test]
async fn a_machine_that_is_killed_is_replaced() {
    let folder = Folder::new("local-processes");
    let config = example(&folder, "local-processes");
    let exec = Exec::start(folder, &config, &["--reconcile-interval=200ms"]);
    let shard = shard(&exec.folder.file("data"), exec.provider.addr, &[]);
    let operator = Operator::connect(shard.addr, "a", Manner::Reports).await;
    // Two machines of sixteen cpus.
    operator.needs(vec![cpus(8)]).await;
    operator.has(2).await;

    let configured = |machines: Vec<bigfleet_wire::v1alpha1::Machine>| -> Vec<(String, String)> {
        let serve = machines
            .into_iter()
            .filter(|it| it.state() == MachineState::Configured);
        serve.map(|it| (it.id, it.host.unwrap().r#ref)).collect()
    };
    let serving = configured(exec.list().await);
    assert_eq!(serving.len(), 2, "{serving:?}");
    let (lost, pid) = &serving[0];
    let beats = exec.folder.file("machines").join(lost).join("heartbeat");
    let beat: serde_json::Value = serde_json::from_slice(&std::fs::read(&beats).unwrap()).unwrap();
    assert_eq!(
        &beat["pid"].to_string(),
        pid,
        "the host is the number to kill"
    );

    std::process::Command::new("kill")
        .args(["-9", pid])
        .status()
        .unwrap();
    let failed = exec.reaches(lost, MachineState::Failed).await;
    assert!(
        failed.last_error.starts_with("host lost"),
        "{}",
        failed.last_error
    );
    until(
        "two machines again, without the one that was killed",
        async || {
            let serving = configured(exec.list().await);
            let healed = serving.len() == 2 && serving.iter().all(|(id, _)| id != lost);
            (healed, serving)
        },
    )
    .await;
    operator.has(2).await;

    operator.needs(vec![]).await;
    operator.has(0).await;
    let idle = exec.list().await;
    let idle: Vec<_> = idle
        .iter()
        .filter(|it| it.state() == MachineState::Idle)
        .collect();
    assert_eq!(idle.len(), 2);
    drop(shard);
    for machine in idle {
        exec.delete(&machine.id).await;
        exec.reaches(&machine.id, MachineState::Speculative).await;
        assert!(!exec.folder.file("machines").join(&machine.id).exists());
    }
    until("the end of every process of theirs", async || {
        let left = pids(&exec.folder.file("machines"));
        (left.is_empty(), left)
    })
    .await;
}
