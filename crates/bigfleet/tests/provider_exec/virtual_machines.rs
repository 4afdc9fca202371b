//! The example of virtual machines: real guests under qemu, their bootstrap data over a serial line.
//!
//! `BIGFLEET_GUESTS=10 cargo test -p bigfleet --test provider_exec virtual_machines -- --nocapture` drives ten of them up and,
//! a minute after they were last needed, down again, and tells when what happened. Otherwise there is one.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bigfleet_wire::v1alpha1 as wire;
use wire::MachineState;

use crate::scene::{Exec, example, pids};
use crate::secrets::Secret;
use crate::shard_scene::operator::{Manner, Operator};
use crate::shard_scene::{Folder, shard, until};

fn guests() -> usize {
    let asked = std::env::var("BIGFLEET_GUESTS").ok();
    asked.map_or(1, |count| count.parse().unwrap())
}

/// So many machines of one cpu.
fn machines(count: usize) -> wire::CapacityNeed {
    let cpu = |count: usize| BTreeMap::from([("cpu".to_owned(), count.to_string())]);
    wire::CapacityNeed {
        aggregate_resources: cpu(count),
        min_unit: cpu(1),
        priority: 100,
        ..wire::CapacityNeed::default()
    }
}

/// Tells whenever the machines are in other states than before, until it is dropped.
async fn watch(exec: &Exec) {
    let (began, mut before) = (Instant::now(), BTreeMap::new());
    loop {
        let mut states = BTreeMap::<&str, usize>::new();
        for machine in exec.list().await {
            *states.entry(machine.state().as_str_name()).or_default() += 1;
        }
        if states != before {
            eprintln!("{:6.1} s  {states:?}", began.elapsed().as_secs_f64());
            before = states;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn guests_are_made_configured_drained_and_gone() {
    let folder = Folder::new("virtual-machines");
    let config = example(&folder, "virtual-machines");
    let exec = Exec::start(folder, &config, &["--reconcile-interval=1s"]);
    tokio::select! {
        () = watch(&exec) => {}
        () = a_shard_drives(&exec) => {}
    }
    bootstrap_data_is_on_the_line_only(&exec).await;
    until("the end of qemu", async || {
        let left = pids(&exec.folder.file("machines"));
        (left.is_empty(), left)
    })
    .await;
}

async fn a_shard_drives(exec: &Exec) {
    let shard = shard(&exec.folder.file("data"), exec.provider.addr, &[]);
    let operator = Operator::connect(shard.addr, "a", Manner::Reports).await;
    operator.needs(vec![machines(guests())]).await;
    operator.has(guests()).await;
    let listed = exec.list().await;
    let serving = listed
        .iter()
        .filter(|it| it.state() == MachineState::Configured);
    for machine in serving {
        let reference = &machine.host.as_ref().unwrap().r#ref;
        assert_eq!(*reference, format!("qemu:///{}", machine.id));
    }
    assert_eq!(
        pids(&exec.folder.file("machines")).len(),
        guests(),
        "a qemu each"
    );
    operator.needs(vec![]).await;
    operator.has(0).await;
    if guests() != 1 {
        until("every guest given back", async || {
            let listed = exec.list().await;
            let gone = listed
                .iter()
                .filter(|it| it.state() == MachineState::Speculative);
            (gone.count() == listed.len(), ())
        })
        .await;
    }
}

/// One guest once more, by hand, to see where its bootstrap data is.
async fn bootstrap_data_is_on_the_line_only(exec: &Exec) {
    let listed = exec.list().await;
    let idle = listed.iter().find(|it| it.state() == MachineState::Idle);
    let id = idle.unwrap_or(&listed[0]).id.clone();
    if idle.is_none() {
        exec.create(&id).await;
        exec.reaches(&id, MachineState::Idle).await;
    }
    let secret = Secret::new();
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
}
