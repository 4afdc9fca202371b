//! InspectWork: operations in flight, oldest first.
//!
//! There are never more than a few thousand (SH-2), so they are collected first and sorted here.

use std::sync::Arc;
use std::time::Duration;

use bigfleet_model::{ClusterId, MachineId};
use bigfleet_shard_core::{Scope, Stage, WorkView};
use bigfleet_wire::unix_nanos;
use bigfleet_wire::v1alpha1::inspect_work_response::Frame;
use bigfleet_wire::v1alpha1::{
    self as wire, Attribution, InspectWorkRequest, InspectWorkResponse, WorkKind, WorkStage,
};
use tonic::Status;

use super::machines::{kind, purpose};
use super::stream::{Cut, Out, count, limited};
use super::{Reads, cluster_filter};
use crate::hub::{Hub, Stopping};

/// What is asked for, checked.
pub(super) struct WorkFilter {
    cluster: Option<ClusterId>,
    kinds: Vec<WorkKind>,
    min_age_seconds: i64,
    limit: i32,
}

impl WorkFilter {
    pub(super) fn read(request: &InspectWorkRequest) -> Result<Self, Status> {
        let kinds = request.kinds.iter().map(|number| {
            let known = WorkKind::try_from(*number).ok();
            let known = known.filter(|kind| *kind != WorkKind::Unspecified);
            known.ok_or_else(|| Status::invalid_argument(format!("kinds {number} is no kind")))
        });
        Ok(Self {
            cluster: cluster_filter(&request.cluster_id)?,
            kinds: kinds.collect::<Result<_, _>>()?,
            min_age_seconds: request.min_age_seconds,
            limit: request.limit,
        })
    }

    fn admits(&self, work: &WorkView, now: bigfleet_model::Time) -> bool {
        let of_cluster = |wanted: &ClusterId| work.cluster.as_ref() == Some(wanted);
        // A negative or absent least age is none.
        let least = Duration::from_secs(u64::try_from(self.min_age_seconds).unwrap_or(0));
        self.cluster.as_ref().is_none_or(of_cluster)
            && (self.kinds.is_empty() || self.kinds.contains(&kind(work.action)))
            && least <= now.duration_since(work.committed)
    }
}

/// Everything in flight, by machine, each with the Need it is for.
pub(crate) async fn all(hub: &Hub) -> Result<Vec<(WorkView, Option<Attribution>)>, Stopping> {
    let (mut work, mut after) = (Vec::new(), None::<MachineId>);
    loop {
        let page = hub.ask(move |core| {
            let page = core.work_page(after.as_ref());
            let entries = page.entries.into_iter();
            let entries: Vec<_> = entries
                .map(|one| {
                    let purpose = purpose(&one, core.machine(&one.machine));
                    (one, purpose)
                })
                .collect();
            (entries, page.next)
        });
        let (entries, next) = page.await?;
        work.extend(entries);
        if next.is_none() {
            return Ok(work);
        }
        after = next;
    }
}

/// Whether an operation is inside a scope.
pub(crate) fn concerns(scope: &Scope, work: &WorkView) -> bool {
    match scope {
        Scope::All | Scope::Provider(_) => true,
        Scope::Cluster(cluster) => {
            let meant = work.need.as_ref().map(|need| &need.cluster);
            work.cluster.as_ref() == Some(cluster) || meant == Some(cluster)
        }
    }
}

pub(super) async fn send(
    reads: &Reads,
    wanted: &WorkFilter,
    out: &Out<InspectWorkResponse>,
) -> Result<(), Cut> {
    let frame = |frame| InspectWorkResponse { frame: Some(frame) };
    let now = reads.info.now();
    let mut work = all(&reads.hub).await?;
    work.retain(|(one, _)| wanted.admits(one, now));
    // Found by machine id, and the sort is stable.
    work.sort_by_key(|(one, _)| one.committed);
    let (info, total) = (Arc::clone(&reads.info), work.len());
    let header = reads.hub.ask(move |core| info.header(core, total));
    out.send(frame(Frame::Header(header.await?))).await?;
    for (one, purpose) in work.drain(..limited(wanted.limit, total)) {
        out.send(frame(Frame::Work(message(one, purpose)))).await?;
    }
    Ok(())
}

fn message(work: WorkView, intent: Option<Attribution>) -> wire::WorkView {
    let kind = kind(work.action);
    let (is_drain, name) = (kind == WorkKind::Drain, work.id.to_string());
    wire::WorkView {
        machine_id: work.machine.to_string(),
        kind: kind.into(),
        stage: stage(work.stage).into(),
        reason: work.reason.text().to_owned(),
        cluster_id: work.cluster.map(|id| id.to_string()).unwrap_or_default(),
        intent,
        committed_unix_nanos: unix_nanos(work.committed),
        stage_since_unix_nanos: unix_nanos(work.since),
        deadline_unix_nanos: work.deadline.map_or(0, unix_nanos),
        attempts: count(work.attempts as usize),
        operation_id: work.name,
        instruction_id: if is_drain {
            name.clone()
        } else {
            String::new()
        },
        last_error: work
            .refused
            .map(|(code, text)| code.said(&text))
            .unwrap_or_default(),
        decided_cycle: work.decided_cycle.try_into().unwrap_or(i64::MAX),
        own_operation_id: name,
    }
}

fn stage(stage: Stage) -> WorkStage {
    match stage {
        // It leaves once its commit is on disk and a slot is free: both are waiting to leave.
        Stage::Disk | Stage::Queued => WorkStage::Queued,
        Stage::Blob(_) => WorkStage::AwaitingBlob,
        Stage::Drain => WorkStage::AwaitingDrain,
        Stage::Call => WorkStage::Calling,
        // A confirming read is how completion is seen.
        Stage::Provider | Stage::Confirm => WorkStage::AwaitingProvider,
        Stage::Backoff => WorkStage::BackingOff,
        Stage::Paused => WorkStage::Paused,
    }
}
