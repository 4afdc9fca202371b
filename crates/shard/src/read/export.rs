//! ExportFleet: the live state as a fleet file, for `decide` and for keeping.
//!
//! ```text
//! copy in steps ─▶ one cluster of it, or all ─▶ text ─▶ header, 1 MiB, 1 MiB, …, size and checksum
//! ```
//!
//! Only a few files exist at once, so a reader that stops taking its own loses it after a while.

use std::time::Duration;

use bigfleet_model::{ClusterId, Fleet, Machine, Need};
use bigfleet_wire::v1alpha1::export_fleet_response::Frame;
use bigfleet_wire::v1alpha1::{ExportFleetEnd, ExportFleetResponse};
use tonic::Status;

use super::Reads;
use super::copy::copy;
use super::stream::{Cut, Out, count};
use crate::offload::offload;

/// Bytes of the file in one frame.
const CHUNK: usize = 1 << 20;
/// How long a frame may wait for its reader.
const TAKEN_WITHIN: Duration = Duration::from_secs(60);

pub(super) async fn send(
    reads: &Reads,
    wanted: Option<ClusterId>,
    out: &Out<ExportFleetResponse>,
) -> Result<(), Cut> {
    let frame = |frame| ExportFleetResponse { frame: Some(frame) };
    // Held until the last byte has left: the file is as large as the copy.
    let _turn = reads.exports.turn().await?;
    let (fleet, mut header) = copy(&reads.hub, &reads.info).await?;
    let written = offload(move || {
        let fleet = match wanted {
            None => fleet,
            Some(cluster) => only(fleet, &cluster)?,
        };
        let text = bigfleet_fleet_file::write(&fleet);
        Ok::<_, Status>((fleet.machines.len(), text.into_bytes()))
    });
    let (machines, file) = written.await??;
    header.total = count(machines);
    out.send(frame(Frame::Header(header))).await?;
    for chunk in file.chunks(CHUNK) {
        let sent = out.send(frame(Frame::Data(chunk.to_vec())));
        let late = || Status::deadline_exceeded("the reader takes no more of the file");
        let sent = tokio::time::timeout(TAKEN_WITHIN, sent).await;
        sent.map_err(|_| late())??;
    }
    let end = ExportFleetEnd {
        size_bytes: i64::try_from(file.len()).unwrap_or(i64::MAX),
        crc32: crc32fast::hash(&file),
    };
    out.send(frame(Frame::End(end))).await
}

/// One cluster, and the machines it has, is promised or could use.
fn only(mut fleet: Fleet, cluster: &ClusterId) -> Result<Fleet, Status> {
    fleet.clusters.retain(|id, _| id == cluster);
    let needs = fleet.clusters.values().flat_map(|one| one.needs());
    let needs: Vec<_> = needs.collect();
    let of_use = |machine: &Machine| {
        let meant = machine.intent().map(|intent| &intent.need.cluster);
        let fits = |need: &&Need| {
            machine
                .shape()
                .serves(&need.row.profile, &need.row.min_unit)
        };
        machine.cluster() == Some(cluster) || meant == Some(cluster) || needs.iter().any(fits)
    };
    let keep: Vec<bool> = fleet
        .machines
        .values()
        .map(|one| of_use(&one.machine))
        .collect();
    drop(needs);
    let mut keep = keep.into_iter();
    fleet.machines.retain(|_, _| keep.next().unwrap_or(false));
    if fleet.clusters.is_empty() && fleet.machines.is_empty() {
        Err(Status::not_found(format!(
            "cluster {cluster} has no demand and no machines here"
        )))
    } else {
        Ok(fleet)
    }
}
