//! ReleaseCluster: the demand of a cluster whose operator is gone is dropped (AD-1).

use bigfleet_model::{ClusterId, MachineId};
use bigfleet_shard_core::{Event, MachineFilter};
use bigfleet_wire::v1alpha1::{ReleaseClusterRequest, ReleaseClusterResponse};
use tonic::Status;

use super::{Admin, checks};
use crate::hub::{Hub, Stopping};
use crate::read::cluster_id;

pub(super) async fn release(
    admin: &Admin,
    request: &ReleaseClusterRequest,
) -> Result<ReleaseClusterResponse, Status> {
    let cluster = cluster_id(&request.cluster_id)?;
    checks::reason(&request.reason)?;
    let confirmed = usize::try_from(request.confirm_machines).map_err(|_| {
        let given = request.confirm_machines;
        Status::invalid_argument(format!(
            "confirm_machines is {given}; it cannot be negative"
        ))
    })?;
    let id = cluster.clone();
    let view = admin.hub.ask(move |core| core.cluster_view(&id)).await?;
    let Some(view) = view else {
        let why = format!("cluster {cluster} is not known to this shard");
        return Err(Status::not_found(why));
    };
    if view.session.is_some() {
        return Err(Status::failed_precondition(format!(
            "cluster {cluster} has an operator connected, which speaks for it (AD-1)"
        )));
    }
    let machines = bound(&admin.hub, &cluster).await?;
    let answer = ReleaseClusterResponse {
        machines: i32::try_from(machines).unwrap_or(i32::MAX),
        needs: i32::try_from(view.rows).unwrap_or(i32::MAX),
    };
    if request.dry_run {
        return Ok(answer);
    }
    let id = cluster.clone();
    let against = admin.hub.ask(move |core| core.may_release(&id, confirmed));
    if let Some(why) = against.await? {
        return Err(Status::aborted(why));
    }
    let event = Event::ReleaseCluster {
        cluster: cluster.clone(),
        machines: confirmed,
    };
    // The core has judged again; what stands against it now stood against it then.
    let done = admin.hub.submit_durably(event, move |core| {
        let rows = core.cluster_view(&cluster).map_or(0, |view| view.rows);
        (rows, core.may_release(&cluster, confirmed))
    });
    match done.await? {
        (0, None) => Ok(answer),
        (_, against) => Err(Status::aborted(against.unwrap_or_else(|| {
            "the cluster changed while it was asked for; ask again".to_owned()
        }))),
    }
}

/// Machines bound to a cluster, counted a page at a time.
async fn bound(hub: &Hub, cluster: &ClusterId) -> Result<usize, Stopping> {
    let (mut count, mut after) = (0, None::<MachineId>);
    loop {
        let of = cluster.clone();
        let page = hub.ask(move |core| {
            let filter = MachineFilter {
                cluster: Some(of.clone()),
                ..MachineFilter::default()
            };
            let page = core.machines_page(&filter, after.as_ref());
            let bound = page.entries.iter();
            let bound = bound.filter(|view| view.machine.cluster() == Some(&of));
            (bound.count(), page.next)
        });
        let (bound, next) = page.await?;
        count += bound;
        if next.is_none() {
            return Ok(count);
        }
        after = next;
    }
}
