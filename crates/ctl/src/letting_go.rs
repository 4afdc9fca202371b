//! `retire` and `release`: what will not come back is let go, by the word of a person (AD-1, AD-2).
//!
//! ```text
//! retire   a Failed machine its provider keeps showing ─▶ forgotten, until it is something else again
//! release  a cluster whose operator is gone ─▶ it wants nothing ─▶ its machines go back, as rails allow
//! ```
//!
//! Neither touches a machine by itself. A release names how many machines the cluster has, so that a
//! mistaken name releases nothing; a dry run says the number.

use bigfleet_wire::v1alpha1 as wire;

use crate::client::Client;
use crate::output::Answer;
use crate::record::MachineRecord;
use crate::text::printable;
use crate::trouble::Trouble;

/// Forgets a Failed machine.
pub async fn retire(
    client: &Client,
    machine: &str,
    reason: &str,
    dry_run: bool,
) -> Result<Answer, Trouble> {
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
    Ok(Answer {
        text: printable(&text) + "\n",
        notes: Vec::new(),
    })
}

/// Drops the demand of a cluster without an operator, if it has so many machines.
pub async fn release(
    client: &Client,
    cluster: &str,
    machines: usize,
    reason: &str,
    dry_run: bool,
) -> Result<Answer, Trouble> {
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
        counted(needs, "Need"),
        counted(machines, "machine")
    );
    let confirm = || {
        let command = format!("bigfleet release {cluster} --machines {machines}");
        printable(&format!("to do it: `{command} --reason …`"))
    };
    Ok(Answer {
        text: printable(&text) + "\n",
        notes: Vec::from_iter(dry_run.then(confirm)),
    })
}

fn counted(count: i32, thing: &str) -> String {
    match count {
        1 => format!("1 {thing}"),
        count => format!("{count} {thing}s"),
    }
}
