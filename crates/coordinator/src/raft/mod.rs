//! Raft: one replica of the group, on the library. The only module that knows it (docs/decisions/0012).
//!
//! ```text
//! propose ─▶ log, on disk at a majority ─▶ machine ─▶ tables ─▶ results
//! ```

mod log;
mod machine;
mod members;
mod messages;
mod peers;
mod replaced;
mod store;
mod types;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bigfleet_coordinator_core::{Command, CoordinatorCore, Refused, Tables};
use bigfleet_net::Tls;
use bigfleet_wire::v1alpha1::coordinator_peer_server::CoordinatorPeerServer;
use openraft::{ChangeMembers, Config, ServerState, SnapshotPolicy};
use tokio::time::{Instant, timeout};

pub(crate) use machine::SharedCore;
pub(crate) use peers::PeerService;
pub(crate) use replaced::{Held, NewStore, hold, write_new};
pub(crate) use store::drawn;
pub use store::{Belonging, StoreRefused};
pub use types::Member;

use crate::consensus::{AGREED_WITHIN, Consensus, MemberRefused, Results, View};
use crate::write_entry;
use log::Log;
use machine::{Machine, tables_of};
use peers::Own;
use store::Store;
use types::{Payload, Raft};

/// How fast the group notices.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Between two signs of life of the leader.
    pub heartbeat: Duration,
    /// How long a follower waits, at least and at most.
    pub election: (Duration, Duration),
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            heartbeat: Duration::from_millis(100),
            election: (Duration::from_millis(300), Duration::from_millis(600)),
        }
    }
}

/// A new member has this long to catch up before it votes.
const CAUGHT_UP_WITHIN: Duration = Duration::from_secs(10);
/// Entries between two snapshots, how far behind one is sent instead of entries, and how many are kept after one.
const SNAPSHOT_EVERY: u64 = 1024;
const SNAPSHOT_BEHIND: u64 = 4096;
const KEPT_AFTER_SNAPSHOT: u64 = 10_240;

/// One replica.
#[derive(Clone)]
pub(crate) struct Replica {
    raft: Raft,
    own: Own,
    store: Store,
    pace: Pace,
}

impl std::fmt::Debug for Replica {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Replica({:016x})", self.own.directory)
    }
}

/// Why a replica did not start.
#[derive(Debug, thiserror::Error)]
pub enum ReplicaRefused {
    /// Its data directory.
    #[error("store: {0}")]
    Store(#[from] StoreRefused),
    /// What is in it.
    #[error("store: the snapshot does not read: {0}")]
    Snapshot(String),
    /// The library.
    #[error("consensus: {0}")]
    Library(String),
}

impl Replica {
    /// Opens a data directory and takes part in its group, if it has one. `core` makes the core around the tables.
    pub(crate) async fn open(
        data_dir: &std::path::Path,
        tls: Option<Arc<Tls>>,
        pace: Pace,
        core: impl FnOnce(Tables) -> CoordinatorCore,
    ) -> Result<(Self, SharedCore), ReplicaRefused> {
        let (opened, disk) = store::open(data_dir)?;
        let tables = match &opened.snapshot {
            Some(kept) => tables_of(&kept.data).map_err(ReplicaRefused::Snapshot)?,
            None => Tables::default(),
        };
        let core = SharedCore::new(core(tables));
        let library = |why: &dyn std::fmt::Display| ReplicaRefused::Library(why.to_string());
        let store = disk.start().map_err(|why| library(&why))?;
        let own = Own::new(opened.directory, opened.belonging, tls);
        let log = Log::new(opened.vote, opened.purged, opened.log, store.clone());
        let machine = Machine::new(core.clone(), opened.snapshot, store.clone());
        let config = config(pace)?;
        let raft = Raft::new(
            opened.directory,
            Arc::new(config),
            own.clone(),
            log,
            machine,
        );
        let raft = raft.await.map_err(|why| library(&why))?;
        let replica = Self {
            raft,
            own,
            store,
            pace,
        };
        Ok((replica, core))
    }

    /// What other replicas call.
    pub(crate) fn service(&self) -> CoordinatorPeerServer<PeerService> {
        let service = PeerService {
            own: self.own.clone(),
            raft: self.raft.clone(),
            store: self.store.clone(),
        };
        CoordinatorPeerServer::new(service)
            .max_decoding_message_size(bigfleet_net::MAX_MESSAGE_BYTES)
            .max_encoding_message_size(bigfleet_net::MAX_MESSAGE_BYTES)
    }

    /// Begins a group with this replica as its only member.
    pub(crate) async fn begin_group(&self, cluster: &str, member: Member) -> Result<(), String> {
        let belonging = Belonging {
            cluster: Some(cluster.to_owned()),
            generation: 0,
        };
        let kept = self.own.belong(belonging, &self.store).await;
        kept.map_err(|why| why.to_string())?;
        let members = BTreeMap::from([(self.own.directory, member)]);
        let begun = self.raft.initialize(members).await;
        begun.map_err(|why| why.to_string())
    }

    /// Ends if the library has ended, with the reason.
    pub(crate) async fn ended(&self) -> String {
        let mut metrics = self.raft.metrics();
        let ended = metrics.wait_for(|now| now.running_state.is_err()).await;
        let why = ended
            .ok()
            .and_then(|now| Some(now.running_state.as_ref().err()?.to_string()));
        why.unwrap_or_else(|| "it ended by itself".to_owned())
    }

    /// Stops taking part.
    pub(crate) async fn stop(&self) {
        drop(self.raft.shutdown().await);
    }

    async fn change(&self, change: ChangeMembers<u64, Member>) -> Result<(), String> {
        let changed = timeout(AGREED_WITHIN, self.raft.change_membership(change, false));
        let changed = changed
            .await
            .map_err(|_| "the replicas did not agree in time")?;
        changed.map(drop).map_err(|why| why.to_string())
    }

    /// Waits until a new member has what all have.
    async fn caught_up(&self, directory: u64) -> Result<(), String> {
        let until = Instant::now() + CAUGHT_UP_WITHIN;
        let mut metrics = self.raft.metrics();
        loop {
            let is_there = {
                let now = metrics.borrow_and_update();
                let last = now.last_log_index.unwrap_or_default();
                let replication = now.replication.as_ref();
                let matching = replication.and_then(|all| all.get(&directory).copied());
                matching
                    .flatten()
                    .is_some_and(|id| last <= id.index.saturating_add(SNAPSHOT_EVERY))
            };
            if is_there {
                return Ok(());
            }
            let changed = tokio::time::timeout_at(until, metrics.changed()).await;
            if !matches!(changed, Ok(Ok(()))) {
                return Err("the new replica did not catch up in time".to_owned());
            }
        }
    }
}

fn config(pace: Pace) -> Result<Config, ReplicaRefused> {
    let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    Config {
        cluster_name: "coordinator".to_owned(),
        heartbeat_interval: millis(pace.heartbeat),
        election_timeout_min: millis(pace.election.0),
        election_timeout_max: millis(pace.election.1),
        install_snapshot_timeout: millis(peers::SNAPSHOT_WITHIN),
        snapshot_policy: SnapshotPolicy::LogsSinceLast(SNAPSHOT_EVERY),
        replication_lag_threshold: SNAPSHOT_BEHIND,
        max_in_snapshot_log_to_keep: KEPT_AFTER_SNAPSHOT,
        ..Config::default()
    }
    .validate()
    .map_err(|why| ReplicaRefused::Library(why.to_string()))
}

impl Consensus for Replica {
    async fn propose(&self, commands: &[Command]) -> Result<Results, Refused> {
        let payload = Payload(write_entry(commands));
        let written = timeout(AGREED_WITHIN, self.raft.client_write(payload)).await;
        match written {
            Ok(Ok(written)) => Ok(written.data.0),
            Ok(Err(why)) if why.forward_to_leader::<Member>().is_some() => Err(Refused::NotLeader),
            Ok(Err(_)) | Err(_) => Err(Refused::NotCommitted),
        }
    }

    async fn confirm(&self) -> Result<(), Refused> {
        let confirmed = timeout(AGREED_WITHIN, self.raft.ensure_linearizable()).await;
        match confirmed {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(Refused::NotLeader),
        }
    }

    fn view(&self) -> View {
        let metrics = self.raft.metrics();
        let now = metrics.borrow();
        let is_elected = now.state == ServerState::Leader && now.current_leader == Some(now.id);
        let membership = now.membership_config.membership();
        let voters: BTreeSet<u64> = membership.voter_ids().collect();
        let lapse = self.pace.election.1.saturating_mul(2);
        let acked = now.millis_since_quorum_ack.map(Duration::from_millis);
        let is_alone = voters.len() == 1;
        let members = membership.nodes().map(|(directory, member)| {
            let is_voter = voters.contains(directory);
            (*directory, member.clone(), is_voter)
        });
        let last = now.last_log_index.unwrap_or_default();
        let lags = now.replication.iter().flatten().map(|(directory, id)| {
            let matching = id.map_or(0, |id| id.index);
            (*directory, last.saturating_sub(matching))
        });
        View {
            term: now.current_term,
            is_elected,
            has_quorum: is_elected && (is_alone || acked.is_some_and(|acked| acked <= lapse)),
            leader: now.current_leader,
            last,
            applied: now.last_applied.map_or(0, |id| id.index),
            members: members.collect(),
            lags: lags.filter(|(one, _)| *one != now.id).collect(),
        }
    }

    async fn changed(&self) {
        let mut metrics = self.raft.metrics();
        // Something may have happened between two calls: looked at anyway, now and then.
        drop(timeout(Duration::from_millis(100), metrics.changed()).await);
    }

    async fn admit(&self, directory: u64, member: Member) -> Result<(), String> {
        let view = self.view();
        let known = view.members.iter().find(|(one, _, _)| *one == directory);
        match known {
            Some((_, present, true)) if *present == member => return Ok(()),
            Some((_, present, _)) if *present != member => {
                let nodes = BTreeMap::from([(directory, member.clone())]);
                self.change(ChangeMembers::SetNodes(nodes)).await?;
            }
            Some(_) => {}
            None => {
                let added = self.raft.add_learner(directory, member.clone(), false);
                let added = timeout(AGREED_WITHIN, added).await;
                let added = added.map_err(|_| "the replicas did not agree in time")?;
                added.map_err(|why| why.to_string())?;
            }
        }
        self.caught_up(directory).await?;
        let view = self.view();
        // The one of the same name with another directory has lost its disk, and its votes with it.
        let kept = view.members.iter();
        let kept = kept.filter(|(_, one, is_voter)| *is_voter && one.name != member.name);
        let voters = kept.map(|(one, _, _)| *one).chain([directory]);
        let voters: BTreeSet<u64> = voters.collect();
        self.change(ChangeMembers::ReplaceAllVoters(voters)).await
    }

    async fn snapshot(&self) -> Result<(u64, u64, Vec<u8>), String> {
        let applied = self.view().applied;
        let triggered = self.raft.trigger().snapshot().await;
        triggered.map_err(|why| why.to_string())?;
        let wait = self.raft.wait(Some(AGREED_WITHIN));
        let made = wait.metrics(
            |now| now.snapshot.is_some_and(|last| applied <= last.index),
            "a snapshot of what is applied",
        );
        made.await.map_err(|why| why.to_string())?;
        let snapshot = self.raft.get_snapshot().await;
        let snapshot = snapshot.map_err(|why| why.to_string())?;
        let snapshot = snapshot.ok_or("there is no snapshot")?;
        let last = snapshot.meta.last_log_id.unwrap_or_default();
        Ok((last.index, last.leader_id.term, *snapshot.snapshot))
    }

    fn identity(&self) -> (u64, Belonging) {
        (self.own.directory, self.own.belonging())
    }

    async fn remove(&self, name: &str) -> Result<(), MemberRefused> {
        members::remove(self, name).await
    }

    async fn hand_over(&self, to: Option<&str>) -> Result<String, MemberRefused> {
        members::hand_over(self, to).await
    }
}
