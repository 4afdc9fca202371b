//! Peers: the consensus port, both ends of it.
//!
//! ```text
//! library ─▶ Peer ── PeerCall { group, generation, from, to, body } ──▶ PeerService ─▶ library
//! ```
//!
//! A call of another group, another generation or for another directory is refused before the library sees it (CO-45). A replica whose disk is
//! empty belongs to the group of whoever calls it by its number, which it told only to those it asked to be let in.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bigfleet_net::{Caller, Dial, Identity, Tls};
use bigfleet_wire::v1alpha1::coordinator_peer_client::CoordinatorPeerClient;
use bigfleet_wire::v1alpha1::coordinator_peer_server::CoordinatorPeer;
use bigfleet_wire::v1alpha1::{PeerAnswer, PeerCall, peer_call::Kind};
use openraft::error::{Fatal, RPCError, RaftError, ReplicationClosed, StreamingError, Unreachable};
use openraft::network::{Backoff, RPCOption, RaftNetwork, RaftNetworkFactory};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, VoteRequest, VoteResponse,
};
use openraft::{OptionalSend, Snapshot};
use tonic::transport::Channel;
use tonic::{Request, Response, Status};

use super::messages::{SentSnapshot, Stored};
use super::store::{Belonging, Store};
use super::types::{Group, Member, Raft, Vote};

/// Between two tries to reach a replica that is not there.
const PAUSE: Duration = Duration::from_millis(100);
/// A whole snapshot has this long.
pub(super) const SNAPSHOT_WITHIN: Duration = Duration::from_secs(30);

/// Who this replica is to others.
#[derive(Clone, Debug)]
pub(crate) struct Own {
    pub(crate) directory: u64,
    belonging: Arc<Mutex<Belonging>>,
    tls: Option<Arc<Tls>>,
}

impl Own {
    pub(crate) fn new(directory: u64, belonging: Belonging, tls: Option<Arc<Tls>>) -> Self {
        let belonging = Arc::new(Mutex::new(belonging));
        Self {
            directory,
            belonging,
            tls,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Belonging> {
        self.belonging
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn belonging(&self) -> Belonging {
        self.lock().clone()
    }

    /// Belongs to this group from now on, on disk first.
    pub(crate) async fn belong(&self, belonging: Belonging, store: &Store) -> std::io::Result<()> {
        store.belong(belonging.clone()).await?;
        *self.lock() = belonging;
        Ok(())
    }

    /// A connection to the replica at an address, made when it is first used.
    pub(super) fn peer(&self, to: u64, address: &str) -> Peer {
        let dial = Dial {
            connect_within: Duration::from_secs(1),
            ping_after: Duration::from_secs(2),
            ..Dial::unknown(self.tls.clone())
        };
        let channel = dial.channel(address).map_err(|why| why.to_string());
        let (own, to) = (self.clone(), to);
        Peer { own, to, channel }
    }
}

impl RaftNetworkFactory<Group> for Own {
    type Network = Peer;

    async fn new_client(&mut self, target: u64, node: &Member) -> Peer {
        self.peer(target, &node.raft_address)
    }
}

/// Another replica.
#[derive(Debug)]
pub(crate) struct Peer {
    own: Own,
    to: u64,
    channel: Result<Channel, String>,
}

fn unreachable(why: String) -> Unreachable {
    Unreachable::new(&std::io::Error::other(why))
}

impl Peer {
    pub(super) async fn exchange(
        &self,
        kind: Kind,
        body: Vec<u8>,
        within: Duration,
    ) -> Result<Vec<u8>, Unreachable> {
        let channel = self.channel.clone().map_err(unreachable)?;
        let belonging = self.own.belonging();
        let call = PeerCall {
            cluster_id: belonging.cluster.unwrap_or_default(),
            generation: belonging.generation,
            from: self.own.directory,
            to: self.to,
            kind: kind.into(),
            body,
        };
        let mut client = CoordinatorPeerClient::new(channel)
            .max_decoding_message_size(bigfleet_net::MAX_MESSAGE_BYTES)
            .max_encoding_message_size(bigfleet_net::MAX_MESSAGE_BYTES);
        let answered = tokio::time::timeout(within, client.exchange(call)).await;
        let answered = answered.map_err(|_| unreachable(format!("no answer in {within:?}")))?;
        let answer = answered.map_err(|status| unreachable(bigfleet_net::answered(&status)))?;
        Ok(answer.into_inner().body)
    }

    async fn ask<A: Stored>(
        &self,
        kind: Kind,
        asked: &impl Stored,
        within: Duration,
    ) -> Result<A, Unreachable> {
        let body = self.exchange(kind, asked.write(), within).await?;
        A::read(&body).map_err(|why| unreachable(why.to_string()))
    }
}

type Failed = RPCError<u64, Member, RaftError<u64>>;

impl RaftNetwork<Group> for Peer {
    async fn append_entries(
        &mut self,
        rpc: AppendEntriesRequest<Group>,
        option: RPCOption,
    ) -> Result<AppendEntriesResponse<u64>, Failed> {
        Ok(self.ask(Kind::Append, &rpc, option.hard_ttl()).await?)
    }

    async fn vote(
        &mut self,
        rpc: VoteRequest<u64>,
        option: RPCOption,
    ) -> Result<VoteResponse<u64>, Failed> {
        Ok(self.ask(Kind::Vote, &rpc, option.hard_ttl()).await?)
    }

    async fn full_snapshot(
        &mut self,
        vote: Vote,
        snapshot: Snapshot<Group>,
        cancel: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        _option: RPCOption,
    ) -> Result<SnapshotResponse<u64>, StreamingError<Group, Fatal<u64>>> {
        let sent = SentSnapshot {
            vote,
            meta: snapshot.meta,
            data: *snapshot.snapshot,
        };
        tokio::select! {
            closed = cancel => Err(closed.into()),
            answered = self.ask(Kind::Snapshot, &sent, SNAPSHOT_WITHIN) => Ok(answered?),
        }
    }

    fn backoff(&self) -> Backoff {
        Backoff::new(std::iter::repeat(PAUSE))
    }
}

/// What other replicas call.
#[derive(Clone)]
pub(crate) struct PeerService {
    pub(crate) own: Own,
    pub(crate) raft: Raft,
    pub(crate) store: Store,
}

impl PeerService {
    /// CO-45. Whoever belongs to another group, or to this one before it was restored, hears that before it hears that it has the
    /// wrong replica: after a restore both are so, and only the first says what to do.
    async fn check(&self, call: &PeerCall) -> Result<(), Status> {
        let own = self.own.belonging();
        if let Some(cluster) = &own.cluster
            && (*cluster != call.cluster_id || own.generation != call.generation)
        {
            let (generation, other) = (own.generation, call.generation);
            return Err(Status::aborted(format!(
                "to let it join here, empty its data directory: this is group {cluster} after {generation} restores, not {} after {other}",
                call.cluster_id
            )));
        }
        if call.to != self.own.directory {
            let (own, asked) = (self.own.directory, call.to);
            let why = format!("this is replica {own:016x}, not {asked:016x}");
            return Err(Status::aborted(why));
        }
        match &own.cluster {
            Some(_) => Ok(()),
            None if call.cluster_id.is_empty() => {
                Err(Status::aborted("neither side belongs to a group"))
            }
            None => {
                let belonging = Belonging {
                    cluster: Some(call.cluster_id.clone()),
                    generation: call.generation,
                };
                let kept = self.own.belong(belonging, &self.store).await;
                kept.map_err(|why| Status::internal(why.to_string()))
            }
        }
    }

    async fn answer(&self, call: PeerCall) -> Result<Vec<u8>, Status> {
        let gone = |why: &dyn std::fmt::Display| Status::unavailable(why.to_string());
        match call.kind() {
            Kind::Append => {
                let asked = read(&call.body)?;
                let answered = self.raft.append_entries(asked).await;
                Ok(answered.map_err(|why| gone(&why))?.write())
            }
            Kind::Vote => {
                let asked = read(&call.body)?;
                let answered = self.raft.vote(asked).await;
                Ok(answered.map_err(|why| gone(&why))?.write())
            }
            Kind::Snapshot => {
                let sent: SentSnapshot = read(&call.body)?;
                let snapshot = Snapshot {
                    meta: sent.meta,
                    snapshot: Box::new(sent.data),
                };
                let answered = self.raft.install_full_snapshot(sent.vote, snapshot).await;
                Ok(answered.map_err(|why| gone(&why))?.write())
            }
            Kind::Handover => {
                let elected = self.raft.trigger().elect().await;
                elected.map_err(|why| gone(&why))?;
                Ok(Vec::new())
            }
            Kind::Ping => Ok(Vec::new()),
            Kind::Unspecified => Err(Status::invalid_argument("the kind of call is not known")),
        }
    }
}

fn read<T: Stored>(body: &[u8]) -> Result<T, Status> {
    T::read(body).map_err(|why| Status::invalid_argument(why.to_string()))
}

#[tonic::async_trait]
impl CoordinatorPeer for PeerService {
    async fn exchange(&self, request: Request<PeerCall>) -> Result<Response<PeerAnswer>, Status> {
        Caller::of(&request).must_be(&Identity::Admin, "a call between replicas")?;
        let call = request.into_inner();
        self.check(&call).await?;
        let body = self.answer(call).await?;
        Ok(Response::new(PeerAnswer { body }))
    }
}
