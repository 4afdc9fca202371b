//! A Configure that a kill interrupts, where the backend lets it be asked for again.

use crate::processes::{Folder, Process, provider, until};
use bigfleet_net::Dial;
use bigfleet_wire::v1alpha1 as wire;
use tonic::transport::Channel;
use wire::MachineState as State;
use wire::capacity_provider_client::CapacityProviderClient;

const SECRET: &[u8] = b"a token that must be on no disk";

fn client(process: &Process) -> CapacityProviderClient<Channel> {
    let channel = Dial::provider(None).channel(&process.addr.to_string());
    CapacityProviderClient::new(channel.unwrap())
}

fn configure(machine: &str, cluster: &str) -> wire::ConfigureRequest {
    wire::ConfigureRequest {
        machine_id: machine.to_owned(),
        cluster_id: cluster.to_owned(),
        bootstrap_blob: SECRET.to_vec(),
        shard_metadata: [("k".to_owned(), "v".to_owned())].into(),
        ..Default::default()
    }
}

/// The machine, once it is there.
async fn reaches(process: &Process, id: &str, state: State) -> wire::Machine {
    until("the machine has arrived", async || {
        let reference = wire::MachineRef { id: id.to_owned() };
        let machine = client(process).get(reference).await.unwrap().into_inner();
        (machine.state() == state, machine)
    })
    .await
}

/// What a machine is after its provider was killed in the middle of its Configure.
async fn interrupted(name: &str, flag: Option<&str>) -> (Folder, Process, wire::Machine, String) {
    let folder = Folder::new(name);
    let state = format!("--state={}", folder.file("state").display());
    let mut flags = vec!["--seed-count=2", "--fault-hooks", &state];
    flags.extend(flag);
    let process = provider(&flags);
    let list = client(&process).list(wire::ListFilter::default()).await;
    let id = list.unwrap().into_inner().machines[0].id.clone();
    let create = wire::CreateRequest {
        machine_id: id.clone(),
        ..Default::default()
    };
    client(&process).create(create).await.unwrap();
    reaches(&process, &id, State::Idle).await;
    let ack = client(&process)
        .configure(configure(&id, "fault-dwell-600000"))
        .await;
    let operation = ack.unwrap().into_inner().operation_id;
    process.kill();
    let process = provider(&flags);
    let reference = wire::MachineRef { id };
    let machine = client(&process).get(reference).await.unwrap().into_inner();
    (folder, process, machine, operation)
}

#[tokio::test]
async fn it_is_idle_again_and_takes_the_same_configure_anew() {
    let (folder, process, machine, first) = interrupted("again", Some("--reconfigure")).await;
    assert_eq!(machine.state(), State::Idle);
    assert!(
        machine.cluster.is_empty() && machine.shard_metadata.is_empty(),
        "{machine:?}"
    );
    assert!(
        machine.host.is_some() && machine.last_error.is_empty(),
        "{machine:?}"
    );
    let ack = client(&process)
        .configure(configure(&machine.id, "a"))
        .await;
    assert_ne!(ack.unwrap().into_inner().operation_id, first);
    let machine = reaches(&process, &machine.id, State::Configured).await;
    assert_eq!(
        (machine.cluster.as_str(), machine.shard_metadata.len()),
        ("a", 1)
    );
    let stored = std::fs::read(folder.file("state")).unwrap();
    let secret = stored.windows(SECRET.len()).any(|bytes| bytes == SECRET);
    assert!(!secret, "the user data is in the state file");
}

#[tokio::test]
async fn without_being_told_so_it_is_failed() {
    let (_folder, _process, machine, _) = interrupted("failed", None).await;
    assert_eq!(machine.state(), State::Failed);
    assert!(
        machine.last_error.contains("interrupted"),
        "{}",
        machine.last_error
    );
}
