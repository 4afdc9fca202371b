//! Forming: how replicas that know one another's addresses become one group, and stay in it.
//!
//! ```text
//! alone, empty                 ─▶ begins a group
//! ordinal 0, empty             ─▶ asks all others ─▶ all of them are empty ─▶ begins a group
//!                                                 └▶ one has a group ─▶ asks to be let in
//!                                                 └▶ one is silent ─▶ waits, and says for whom (CO-49)
//! any other, or with a group   ─▶ asks to be let in, until it votes at its own addresses
//! ```
//!
//! Silence is no answer: a group may be behind it, and a second one must never begin.

use std::sync::Arc;
use std::time::Duration;

use bigfleet_net::{Dial, Tls, answered};
use bigfleet_wire::v1alpha1::coordinator_admin_client::CoordinatorAdminClient;
use bigfleet_wire::v1alpha1::coordinator_client::CoordinatorClient;
use bigfleet_wire::v1alpha1::{
    InspectReplicaRequest, InspectReplicaResponse, JoinRaftClusterRequest,
};
use tokio::time::timeout;
use tonic::{Code, Status};

use crate::consensus::Consensus;
use crate::raft::{Member, Replica, drawn};

/// One replica may take this long to say who it is.
const SAID_WITHIN: Duration = Duration::from_secs(2);
/// Being let in takes a snapshot and two changes of the members.
const LET_IN_WITHIN: Duration = Duration::from_secs(20);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(250);

/// How a group begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Forming {
    /// This replica alone is the group.
    Alone,
    /// Of so many replicas, at these addresses.
    Among {
        /// Replicas of the group.
        replicas: usize,
        /// Where each can be asked, this one included.
        addresses: Vec<String>,
        /// This is the one that begins it.
        is_first: bool,
    },
    /// Nothing: the disk says which group it is.
    Resumed,
}

/// The part of a name that numbers replicas: the digits after its last `-`.
pub fn ordinal(name: &str) -> Option<u64> {
    let (_, digits) = name.rsplit_once('-')?;
    digits.parse().ok()
}

/// Keeps this replica in its group: begins it, joins it, and tells it where it is.
pub(crate) async fn keep(
    replica: Arc<Replica>,
    forming: Forming,
    member: Member,
    tls: Option<Arc<Tls>>,
) {
    let mut shaping = Shaping {
        replica,
        member,
        dial: Dial {
            connect_within: Duration::from_secs(1),
            ..Dial::unknown(tls)
        },
        said: String::new(),
    };
    let mut votes = false;
    loop {
        let is_member = shaping.is_member();
        if is_member && !votes {
            tracing::info!("this replica votes");
        }
        votes = is_member;
        if !is_member {
            let problem = shaping.step(&forming).await.err().unwrap_or_default();
            // Once per problem, not once per try.
            if problem != shaping.said && !problem.is_empty() {
                tracing::info!(problem, "not a member of a group yet");
            }
            shaping.said = problem;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

struct Shaping {
    replica: Arc<Replica>,
    member: Member,
    dial: Dial,
    said: String,
}

impl Shaping {
    /// Whether the group has this replica as a voter at its own addresses.
    fn is_member(&self) -> bool {
        let (own, _) = self.replica.identity();
        let view = self.replica.view();
        let listed = view.members.iter();
        let mut listed = listed.filter(|(directory, _, is_voter)| *directory == own && *is_voter);
        listed.any(|(_, member, _)| *member == self.member)
    }

    async fn step(&self, forming: &Forming) -> Result<(), String> {
        let (_, belonging) = self.replica.identity();
        let is_empty = belonging.cluster.is_none();
        match forming {
            Forming::Alone if is_empty => self.begin().await,
            Forming::Alone | Forming::Resumed => self.tell_own().await,
            Forming::Among {
                replicas,
                addresses,
                is_first,
            } => {
                if is_empty && *is_first && self.are_all_empty(*replicas, addresses).await? {
                    return self.begin().await;
                }
                if self.replica.view().is_elected {
                    return self.tell_own().await;
                }
                self.ask_in(addresses).await
            }
        }
    }

    async fn begin(&self) -> Result<(), String> {
        let halves = (drawn(), drawn());
        let (Ok(one), Ok(other)) = halves else {
            return Err("the system gives no random numbers".to_owned());
        };
        let cluster = format!("{one:016x}{other:016x}");
        let begun = self.replica.begin_group(&cluster, self.member.clone());
        begun.await?;
        tracing::info!(cluster, "a new group begins");
        Ok(())
    }

    /// A leader that is listed elsewhere corrects its own entry.
    async fn tell_own(&self) -> Result<(), String> {
        if !self.replica.view().is_elected {
            return Err("no leader yet".to_owned());
        }
        let (own, _) = self.replica.identity();
        self.replica.admit(own, self.member.clone()).await
    }

    async fn who(&self, address: &str) -> Result<InspectReplicaResponse, String> {
        let channel = self.dial.channel(address).map_err(|why| why.to_string())?;
        let mut client = CoordinatorAdminClient::new(channel);
        let asked = client.inspect_replica(InspectReplicaRequest {});
        match timeout(SAID_WITHIN, asked).await {
            Ok(Ok(said)) => Ok(said.into_inner()),
            Ok(Err(status)) => Err(answered(&status)),
            Err(_) => Err(format!("no answer in {SAID_WITHIN:?}")),
        }
    }

    /// Whether all others say that their disks are empty. One that has a group says no; one that is silent stops everything.
    async fn are_all_empty(&self, replicas: usize, addresses: &[String]) -> Result<bool, String> {
        let (own, _) = self.replica.identity();
        let mut others = std::collections::BTreeSet::new();
        let mut silent = Vec::new();
        for address in addresses {
            match self.who(address).await {
                Ok(said) if said.directory == own => {}
                Ok(said) if !said.cluster_id.is_empty() => return Ok(false),
                Ok(said) => {
                    others.insert(said.directory);
                }
                Err(why) => silent.push(format!("{address}: {why}")),
            }
        }
        if others.len() + 1 < replicas {
            let silent = silent.join("; ");
            return Err(format!(
                "{} of {} other replicas say that they are new, waiting for the rest: {silent}",
                others.len(),
                replicas.saturating_sub(1)
            ));
        }
        Ok(true)
    }

    /// Asks whoever leads to be let in.
    async fn ask_in(&self, addresses: &[String]) -> Result<(), String> {
        let mut left: Vec<String> = addresses.iter().rev().cloned().collect();
        let mut asked = Vec::new();
        let mut problem = "no replica could be asked".to_owned();
        while let Some(address) = left.pop() {
            if asked.contains(&address) {
                continue;
            }
            match self.join(&address).await {
                Ok(()) => return Ok(()),
                Err(status) => {
                    let named = status.metadata().get("bigfleet-leader-addr");
                    let named = named.and_then(|value| value.to_str().ok());
                    left.extend(named.map(str::to_owned));
                    if status.code() != Code::FailedPrecondition {
                        problem = format!("{address}: {}", answered(&status));
                    }
                }
            }
            asked.push(address);
        }
        Err(problem)
    }

    async fn join(&self, address: &str) -> Result<(), Status> {
        let channel = self.dial.channel(address);
        let channel = channel.map_err(|why| Status::invalid_argument(why.to_string()))?;
        let (directory, belonging) = self.replica.identity();
        let request = JoinRaftClusterRequest {
            node_id: self.member.name.clone(),
            raft_address: self.member.raft_address.clone(),
            directory,
            grpc_address: self.member.grpc_address.clone(),
            cluster_id: belonging.cluster.unwrap_or_default(),
            generation: belonging.generation,
        };
        let mut client = CoordinatorClient::new(channel);
        match timeout(LET_IN_WITHIN, client.join_raft_cluster(request)).await {
            Ok(joined) => joined.map(drop),
            Err(_) => Err(Status::deadline_exceeded("no answer in time")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ordinal_is_what_follows_the_last_dash() {
        assert_eq!(ordinal("coordinator-0"), Some(0));
        assert_eq!(ordinal("a-1-12"), Some(12));
        for none in ["coordinator", "coordinator-", "coordinator-x", "7"] {
            assert_eq!(ordinal(none), None, "{none}");
        }
    }
}
