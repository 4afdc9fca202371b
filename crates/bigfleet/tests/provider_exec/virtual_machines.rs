//! The example of virtual machines: real guests under qemu, their bootstrap data over a serial line.

use bigfleet_wire::v1alpha1::MachineState;

use crate::scene::{Exec, example, pids};
use crate::secrets::Secret;
use crate::shard_scene::operator::{Manner, Operator, row};
use crate::shard_scene::{Folder, shard, until};

#[tokio::test]
async fn a_guest_is_made_configured_drained_and_gone() {
    let folder = Folder::new("virtual-machines");
    let config = example(&folder, "virtual-machines");
    let exec = Exec::start(folder, &config, &["--reconcile-interval=1s"]);
    let shard = shard(&exec.folder.file("data"), exec.provider.addr, &[]);
    let operator = Operator::connect(shard.addr, "a", Manner::Reports).await;
    operator.needs(vec![row(1, 100, "")]).await;
    operator.has(1).await;
    let machines = exec.list().await;
    let serving = machines
        .iter()
        .find(|it| it.state() == MachineState::Configured)
        .unwrap();
    let reference = serving.host.clone().unwrap().r#ref;
    assert_eq!(reference, format!("qemu:///{}", serving.id));
    assert_eq!(pids(&exec.folder.file("machines")).len(), 1, "one qemu");
    operator.needs(vec![]).await;
    operator.has(0).await;
    drop(shard);

    // The same guest once more, by hand, to see where its bootstrap data is.
    let (secret, id) = (Secret::new(), serving.id.clone());
    let plain = secret.plain.clone();
    let life = async {
        exec.configure(&id, "b c", plain.as_bytes()).await;
        exec.reaches(&id, MachineState::Configured).await;
        exec.drain(&id).await;
        exec.reaches(&id, MachineState::Idle).await;
        exec.delete(&id).await;
        exec.reaches(&id, MachineState::Speculative).await;
    };
    let ((), found) = secret.looked_for(&exec.folder.0, life).await;
    assert_eq!(found, Vec::<String>::new());
    until("the end of qemu", async || {
        let left = pids(&exec.folder.file("machines"));
        (left.is_empty(), left)
    })
    .await;
}
