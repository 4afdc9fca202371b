//! `retire` and `release`: a person tells the shard that a machine or a cluster will not come back.
//!
//! ```text
//! retire   a Failed machine that its provider keeps listing ─▶ out of the shard's records
//! release  a cluster whose operator is gone ─▶ its Needs are dropped ─▶ its machines are given back
//! ```
//!
//! Neither touches a machine itself; giving back happens cycle by cycle, as the rails allow. A release
//! has to name how many machines the cluster has, so that a mistyped name releases nothing; a dry run
//! prints the number.

use bigfleet_model::counted;
use bigfleet_wire::v1alpha1 as wire;

use crate::client::Client;
use crate::error::CtlError;
use crate::output::Answer;
use crate::record::MachineRecord;
use crate::text::printable;

/// Removes a Failed machine from the shard's records.
pub async fn retire(
    client: &Client,
    machine: &str,
    reason: &str,
    dry_run: bool,
) -> Result<Answer, CtlError> {
    let request = wire::RetireMachineRequest {
        machine_id: machine.to_owned(),
        reason: reason.to_owned(),
        dry_run,
    };
    let answered = client.retire_machine(request).await?;
    let last = MachineRecord::from(&answered.machine.unwrap_or_default());
    let verb = if dry_run { "would retire" } else { "retired" };
    let (id, kind, zone) = (&last.id, &last.instance_type, &last.zone);
    let text = format!("{verb} machine {id}, a {kind} in {zone} that has failed");
    Ok(Answer::of(printable(&text) + "\n"))
}

/// Drops the Needs of a cluster without an operator, if it has exactly this many machines.
pub async fn release(
    client: &Client,
    cluster: &str,
    machines: usize,
    reason: &str,
    dry_run: bool,
) -> Result<Answer, CtlError> {
    let request = wire::ReleaseClusterRequest {
        cluster_id: cluster.to_owned(),
        reason: reason.to_owned(),
        confirm_machines: i32::try_from(machines).unwrap_or(i32::MAX),
        dry_run,
    };
    let answered = client.release_cluster(request).await?;
    let (machines, needs) = (answered.machines, answered.needs);
    let verb = if dry_run { "would release" } else { "released" };
    let text = format!(
        "{verb} cluster {cluster}: {} dropped, {} to give back",
        counted(needs, "Need", "Needs"),
        counted(machines, "machine", "machines")
    );
    let confirm = || {
        let command = format!("bigfleet release {cluster} --machines {machines}");
        printable(&format!("to do it: `{command} --reason …`"))
    };
    Ok(Answer {
        text: printable(&text) + "\n",
        notes: Vec::from_iter(dry_run.then(confirm)),
        failed: None,
    })
}
