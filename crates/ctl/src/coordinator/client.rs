//! Client: finds the replica that leads, and asks it.

use std::error::Error;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bigfleet_net::{Dial, MAX_MESSAGE_BYTES, Tls, answered};
use bigfleet_wire::v1alpha1 as wire;
use tokio::time::timeout;
use tonic::transport::Channel;
use tonic::{Code, Response, Status};
use wire::coordinator_admin_client::CoordinatorAdminClient;
use wire::coordinator_client::CoordinatorClient as ContractClient;

use crate::error::CtlError;
use crate::text::printable;

/// Where a coordinator on this host usually is.
pub const USUAL_COORDINATOR: &str = "127.0.0.1:7790";
/// One replica has this long to answer.
const ATTEMPT_WITHIN: Duration = Duration::from_secs(5);
/// An election takes less than this.
const ELECTED_WITHIN: Duration = Duration::from_secs(5);
/// Between two rounds while nobody leads.
const PAUSE: Duration = Duration::from_millis(100);

/// The replicas of a coordinator. Connects when it is first used.
#[derive(Clone, Debug)]
pub struct CoordinatorClient {
    addresses: Vec<String>,
    tls: Option<Arc<Tls>>,
    within: Duration,
    /// Who answered last.
    leader: Arc<Mutex<Option<String>>>,
}

/// Whether asking twice does no harm.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Repeated {
    Harmless,
    Never,
}

/// A part of a backup on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SnapshotPiece {
    /// What is said of it; comes first, once.
    Meta(Vec<u8>),
    /// The next bytes of it.
    Data(Vec<u8>),
}

/// What a replica said instead of an answer.
enum Turn {
    /// Not the one to ask; who is, if it knows.
    Elsewhere(Option<String>),
    /// It cannot be reached, or not now.
    Lost(CtlError, String),
    /// It says no, and so would every other.
    Final(CtlError),
}

impl CoordinatorClient {
    /// A client for the replicas at these addresses.
    pub fn new(
        addresses: &[String],
        tls: Option<Arc<Tls>>,
        within: Duration,
    ) -> Result<Self, CtlError> {
        for address in addresses {
            Dial::check(address).map_err(|why| CtlError::Usage(format!("--coordinator {why}")))?;
        }
        Ok(Self {
            addresses: addresses.to_vec(),
            tls,
            within,
            leader: Arc::default(),
        })
    }

    /// The replica that answered last, or the first one that was named.
    pub fn target(&self) -> String {
        let leader = self.leader.lock().unwrap_or_else(PoisonError::into_inner);
        let first = || self.addresses.first().cloned().unwrap_or_default();
        leader.clone().unwrap_or_else(first)
    }

    /// Registered shards, by id.
    pub async fn shards(&self) -> Result<Vec<wire::ShardRegistryEntry>, CtlError> {
        let ask = async |channel| {
            contract(channel)
                .list_shards(wire::ListShardsRequest {})
                .await
        };
        Ok(self.read("list shards", ask).await?.shards)
    }

    /// The newest report of each shard, by id.
    pub async fn reports(&self) -> Result<Vec<wire::ShardReportSnapshot>, CtlError> {
        let ask = async |channel| {
            let request = wire::ListShardReportsRequest::default();
            contract(channel).list_shard_reports(request).await
        };
        Ok(self.read("list reports", ask).await?.reports)
    }

    /// Every domain on record, with who shall have it and who has it.
    pub async fn domains(&self) -> Result<Vec<wire::DomainState>, CtlError> {
        let ask = async |channel| {
            admin(channel)
                .list_domains(wire::ListDomainsRequest {})
                .await
        };
        Ok(self.read("list domains", ask).await?.domains)
    }

    /// Clusters and who serves them.
    pub async fn clusters(&self) -> Result<Vec<wire::ServedCluster>, CtlError> {
        let ask = async |channel| {
            admin(channel)
                .list_clusters(wire::ListClustersRequest {})
                .await
        };
        Ok(self.read("list clusters", ask).await?.clusters)
    }

    /// The members of the group, by name.
    pub async fn replicas(&self) -> Result<Vec<wire::Replica>, CtlError> {
        let ask = async |channel| {
            admin(channel)
                .list_replicas(wire::ListReplicasRequest {})
                .await
        };
        Ok(self.read("list replicas", ask).await?.replicas)
    }

    /// Instructions that were given and not answered.
    pub async fn instructions(&self) -> Result<Vec<wire::PendingInstruction>, CtlError> {
        let ask = async |channel| {
            let request = wire::ListInstructionsRequest {};
            admin(channel).list_instructions(request).await
        };
        Ok(self.read("list instructions", ask).await?.instructions)
    }

    /// Changes who shall have domains, or says what that would do. Changing them twice is changing them once.
    pub async fn change_domains(
        &self,
        request: &wire::ChangeDomainsRequest,
    ) -> Result<Vec<wire::ChangedDomain>, CtlError> {
        let ask = async |channel| admin(channel).change_domains(request.clone()).await;
        Ok(self.change("change domains", ask).await?.changes)
    }

    /// Forgets a shard.
    pub async fn remove_shard(&self, shard: &str, gone: bool) -> Result<(), CtlError> {
        let request = &wire::RemoveShardRequest {
            shard_id: shard.to_owned(),
            gone,
        };
        let ask = async |channel| contract(channel).remove_shard(request.clone()).await;
        self.change("remove a shard", ask).await.map(drop)
    }

    /// Takes a replica out of the group.
    pub async fn remove_peer(&self, name: &str) -> Result<(), CtlError> {
        let request = &wire::RemovePeerRequest {
            name: name.to_owned(),
        };
        let ask = async |channel| admin(channel).remove_peer(request.clone()).await;
        self.change("remove a replica", ask).await.map(drop)
    }

    /// Lets another replica lead; says which.
    pub async fn transfer_leader(&self, to: &str) -> Result<String, CtlError> {
        let request = &wire::TransferLeaderRequest { to: to.to_owned() };
        let ask = async |channel| admin(channel).transfer_leader(request.clone()).await;
        Ok(self.change("let another replica lead", ask).await?.leader)
    }

    /// Ends a restore, or says whether it could be ended.
    pub async fn finish_restore(&self, dry_run: bool) -> Result<(), CtlError> {
        let request = &wire::FinishRestoreRequest { dry_run };
        let ask = async |channel| admin(channel).finish_restore(*request).await;
        self.change("finish the restore", ask).await.map(drop)
    }

    /// A backup of what is agreed on now: what is said of it first, then its bytes, piece by piece.
    pub async fn snapshot(
        &self,
        mut take: impl FnMut(SnapshotPiece) -> Result<(), String>,
    ) -> Result<(), CtlError> {
        let doing = "save a snapshot";
        let ask = async |channel| {
            let request = wire::SnapshotSaveRequest {};
            contract(channel).snapshot_save(request).await
        };
        let mut frames = self.read(doing, ask).await?;
        let mut is_begun = false;
        loop {
            let target = self.target();
            let frame = timeout(self.within, frames.message()).await;
            let frame = frame.map_err(|_| CtlError::NoAnswer {
                target: target.clone(),
                within: self.within,
            })?;
            let frame = frame.map_err(|status| CtlError::Interrupted {
                target: target.clone(),
                why: printable(&answered(&status)),
            })?;
            let Some(frame) = frame else {
                break;
            };
            use wire::snapshot_save_chunk::Payload;
            let piece = match frame.payload {
                Some(Payload::MetaJson(meta)) if !is_begun => SnapshotPiece::Meta(meta),
                Some(Payload::Data(data)) if is_begun => SnapshotPiece::Data(data),
                Some(_) | None => {
                    return Err(CtlError::Malformed {
                        target,
                        doing,
                        what: "the parts of the snapshot are not in order".to_owned(),
                    });
                }
            };
            is_begun = true;
            take(piece).map_err(CtlError::Local)?;
        }
        if is_begun {
            return Ok(());
        }
        Err(CtlError::Interrupted {
            target: self.target(),
            why: "nothing came".to_owned(),
        })
    }

    async fn read<T>(
        &self,
        doing: &'static str,
        ask: impl AsyncFn(Channel) -> Result<Response<T>, Status>,
    ) -> Result<T, CtlError> {
        self.call(doing, Repeated::Harmless, ask).await
    }

    async fn change<T>(
        &self,
        doing: &'static str,
        ask: impl AsyncFn(Channel) -> Result<Response<T>, Status>,
    ) -> Result<T, CtlError> {
        self.call(doing, Repeated::Never, ask).await
    }

    async fn call<T>(
        &self,
        doing: &'static str,
        repeated: Repeated,
        ask: impl AsyncFn(Channel) -> Result<Response<T>, Status>,
    ) -> Result<T, CtlError> {
        let until = Instant::now() + self.within.min(ELECTED_WITHIN);
        loop {
            let mut tried: Vec<(String, String)> = Vec::new();
            let mut is_electing = false;
            let mut insecure = None;
            let mut left: Vec<String> = self.addresses.iter().rev().cloned().collect();
            left.push(self.target());
            while let Some(address) = left.pop() {
                if tried.iter().any(|(one, _)| *one == address) {
                    continue;
                }
                let turn = match self.attempt(doing, repeated, &address, &ask).await {
                    Ok(answer) => {
                        let mut leader = self.leader.lock().unwrap_or_else(PoisonError::into_inner);
                        *leader = Some(address);
                        return Ok(answer);
                    }
                    Err(turn) => turn,
                };
                let why = match turn {
                    Turn::Final(error) => return Err(error),
                    Turn::Elsewhere(leader) => {
                        is_electing = true;
                        left.extend(leader);
                        "it does not lead".to_owned()
                    }
                    Turn::Lost(error, why) => {
                        let is_insecure = matches!(error, CtlError::Certificates { .. });
                        insecure = insecure.or(is_insecure.then_some(error));
                        why
                    }
                };
                tried.push((address, why));
            }
            if let Some(error) = insecure.filter(|_| !is_electing) {
                return Err(error);
            }
            if !is_electing || until <= Instant::now() {
                let tried = tried.into_iter();
                let tried = tried.map(|(address, why)| format!("{address}: {}", printable(&why)));
                return Err(CtlError::NoCoordinator {
                    tried: tried.collect::<Vec<_>>().join("; "),
                    is_electing,
                });
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn attempt<T>(
        &self,
        doing: &'static str,
        repeated: Repeated,
        address: &str,
        ask: &impl AsyncFn(Channel) -> Result<Response<T>, Status>,
    ) -> Result<T, Turn> {
        let within = self.within.min(ATTEMPT_WITHIN);
        let dial = Dial {
            connect_within: within,
            ..Dial::unknown(self.tls.clone())
        };
        let channel = dial.channel(address).map_err(|why| {
            let why = why.to_string();
            Turn::Lost(CtlError::Usage(why.clone()), why)
        })?;
        let target = address.to_owned();
        let status = match timeout(within, ask(channel)).await {
            Ok(Ok(answer)) => return Ok(answer.into_inner()),
            Ok(Err(status)) => status,
            Err(_) => {
                let error = CtlError::NoAnswer { target, within };
                return Err(match repeated {
                    Repeated::Harmless => Turn::Lost(error, "no answer in time".to_owned()),
                    Repeated::Never => Turn::Final(CtlError::Unknown {
                        target: address.to_owned(),
                        why: "there was no answer in time".to_owned(),
                    }),
                });
            }
        };
        if status.code() == Code::FailedPrecondition {
            let named = status.metadata().get("bigfleet-leader-addr");
            let named = named.and_then(|value| value.to_str().ok());
            return Err(Turn::Elsewhere(named.map(str::to_owned)));
        }
        if status.code() == Code::Unimplemented {
            return Err(Turn::Final(CtlError::NotACoordinator { target, doing }));
        }
        let error = CtlError::of(&status, address, doing, within);
        if status.source().is_none() {
            return Err(Turn::Final(match error {
                CtlError::Interrupted { why, .. } => CtlError::Refused { doing, why },
                other => other,
            }));
        }
        let is_safe = repeated == Repeated::Harmless || is_unsent(&status);
        let is_insecure = matches!(error, CtlError::Certificates { .. });
        let why = answered(&status);
        if is_safe || is_insecure {
            return Err(Turn::Lost(error, why));
        }
        Err(Turn::Final(CtlError::Unknown { target, why }))
    }
}

/// Whether no connection was ever made, so that nothing can have been sent.
fn is_unsent(status: &Status) -> bool {
    let mut cause = status.source();
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref::<io::Error>() {
            use io::ErrorKind as Kind;
            let is_lookup = found.to_string().contains("failed to lookup address");
            return is_lookup
                || matches!(
                    found.kind(),
                    Kind::ConnectionRefused | Kind::HostUnreachable | Kind::NetworkUnreachable
                );
        }
        cause = error.source();
    }
    false
}

fn contract(channel: Channel) -> ContractClient<Channel> {
    ContractClient::new(channel).max_decoding_message_size(MAX_MESSAGE_BYTES)
}

fn admin(channel: Channel) -> CoordinatorAdminClient<Channel> {
    CoordinatorAdminClient::new(channel).max_decoding_message_size(MAX_MESSAGE_BYTES)
}
