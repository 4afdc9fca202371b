//! A shard to look at: a cluster with a row that is covered and one that nothing can cover.

use bigfleet_net::Dial;
use bigfleet_wire::v1alpha1 as wire;
use tonic::Streaming;
use tonic::transport::Channel;
use wire::shard_read_client::ShardReadClient;
use wire::{InspectMachinesRequest, InspectNeedsRequest};

use crate::shard_scene::operator::{Manner, Operator, only_in, row};
use crate::shard_scene::{Folder, Process, provider, shard, until};

pub(crate) type Reader = ShardReadClient<Channel>;

pub(crate) fn reader(shard: &Process) -> Reader {
    let channel = Dial::unknown(None).channel(&shard.addr.to_string());
    ShardReadClient::new(channel.unwrap())
}

pub(crate) async fn all<T>(mut stream: Streaming<T>) -> Vec<T> {
    let mut frames = Vec::new();
    while let Some(frame) = stream.message().await.unwrap() {
        frames.push(frame);
    }
    frames
}

pub(crate) async fn needs(
    reader: &mut Reader,
    request: InspectNeedsRequest,
) -> (wire::InspectNeedsHeader, Vec<wire::NeedView>) {
    read!(reader, inspect_needs(request), inspect_needs_response::Need)
}

pub(crate) async fn machines(
    reader: &mut Reader,
    request: InspectMachinesRequest,
) -> (wire::InspectHeader, Vec<wire::MachineView>) {
    read!(
        reader,
        inspect_machines(request),
        inspect_machines_response::Machine
    )
}

pub(crate) fn ids(views: &[wire::MachineView]) -> Vec<String> {
    let id = |view: &wire::MachineView| view.machine.as_ref().unwrap().id.clone();
    views.iter().map(id).collect()
}

pub(crate) fn unix_nanos() -> i64 {
    let now = std::time::SystemTime::now();
    let now = now.duration_since(std::time::UNIX_EPOCH).unwrap();
    now.as_nanos() as i64
}

/// Whether a moment was in the last minute.
pub(crate) fn recent(moment: i64, now: i64) -> bool {
    (now - 60_000_000_000..=now + 1_000_000_000).contains(&moment)
}

pub(crate) fn of_new_reader(cluster: &str) -> InspectNeedsRequest {
    InspectNeedsRequest {
        cluster_id: cluster.to_owned(),
        accept_new_reasons: true,
        ..InspectNeedsRequest::default()
    }
}

/// A row that nothing can cover.
pub(crate) fn nowhere() -> wire::CapacityNeed {
    only_in("nowhere")
}

/// A fleet that is more than one page and more than one chunk.
pub(crate) const MANY: usize = 12_000;

pub(crate) struct Scene {
    _folder: Folder,
    _provider: Process,
    pub(crate) shard: Process,
    pub(crate) operator: Operator,
    pub(crate) reader: Reader,
}

/// Cluster `a` has a row that one machine covers, and one that nothing can.
pub(crate) async fn scene(name: &str, slots: usize) -> Scene {
    let folder = Folder::new(name);
    let provider = provider(&[&format!("--seed-count={slots}")]);
    // A List of many takes longer than the cycle of a small fleet.
    let slower: &[&str] = if slots < MANY {
        &[]
    } else {
        &["--cycle-interval=1s"]
    };
    let shard = shard(&folder.file("data"), provider.addr, slower);
    let operator = Operator::connect(shard.addr, "a", Manner::Stalls).await;
    operator.needs(vec![row(4, 100, ""), nowhere()]).await;
    operator.has(1).await;
    let reader = reader(&shard);
    Scene {
        _folder: folder,
        _provider: provider,
        shard,
        operator,
        reader,
    }
}

/// The rows of `a` once the first is served.
pub(crate) async fn settled(
    reader: &mut Reader,
) -> (wire::InspectNeedsHeader, Vec<wire::NeedView>) {
    until("one row served and one not", async || {
        let (header, rows) = needs(&mut reader.clone(), of_new_reader("a")).await;
        let is_served = |row: &wire::NeedView| row.satisfied && row.lacking_since_unix_nanos == 0;
        let served: Vec<bool> = rows.iter().map(is_served).collect();
        (served == [true, false], (header, rows))
    })
    .await
}
