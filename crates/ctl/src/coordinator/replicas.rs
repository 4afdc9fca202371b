//! Replicas: one leaves the group for good, or another one leads.

use super::{CoordinatorClient, CoordinatorSource};
use crate::error::CtlError;
use crate::get::not_found;
use crate::output::Answer;
use crate::record::ReplicaRecord;
use crate::text::printable;

async fn known(client: &CoordinatorClient, name: &str) -> Result<ReplicaRecord, CtlError> {
    let replicas = client.replicas().await?.into_iter();
    let mut replicas = replicas.map(ReplicaRecord::from);
    let found = replicas.find(|one| one.name == name);
    found.ok_or_else(|| not_found::<ReplicaRecord>(name, &CoordinatorSource::of(client)))
}

/// Takes a replica out of the group, or says whether there is one of that name.
pub async fn remove_replica(
    client: &CoordinatorClient,
    name: &str,
    dry_run: bool,
) -> Result<Answer, CtlError> {
    let replica = known(client, name).await?;
    if !dry_run {
        client.remove_peer(name).await?;
    }
    let verb = if dry_run { "would remove" } else { "removed" };
    let text = format!("{verb} replica {name}, which is at {}", replica.address);
    let note = "a process of it that runs asks to be let in again: stop it first";
    Ok(Answer {
        text: printable(&text) + "\n",
        notes: vec![note.to_owned()],
        failed: None,
    })
}

/// Lets another replica lead: the one of that name, or the one that is furthest.
pub async fn transfer_leader(
    client: &CoordinatorClient,
    to: Option<&str>,
    dry_run: bool,
) -> Result<Answer, CtlError> {
    if let Some(name) = to {
        let replica = known(client, name).await?;
        if replica.leader {
            let text = format!("replica {name} leads already\n");
            return Ok(Answer::of(printable(text.trim_end()) + "\n"));
        }
    }
    let text = if dry_run {
        match to {
            Some(name) => format!("would let replica {name} lead"),
            None => "would let the replica lead that is furthest".to_owned(),
        }
    } else {
        let leader = client.transfer_leader(to.unwrap_or_default()).await?;
        format!("replica {leader} leads")
    };
    Ok(Answer::of(printable(&text) + "\n"))
}
