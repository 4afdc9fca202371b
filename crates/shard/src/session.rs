//! Sessions: one stream per operator, from its Hello to its end (shard.md §6, wire 6.1).
//!
//! ```text
//! stream ─▶ Hello, in time ─▶ whose certificate? ─▶ opened ─┬─ roll-ups ─▶ lane: one at work, one waits
//!                                                           └─ the rest ─▶ driver, at once
//! ```
//!
//! Reading and checking happen in the session's own tasks: an operator can be slow, wrong or malicious
//! at its own cost only. A frame that cannot be used is said in the log and skipped; nothing but a
//! missing Hello ends a stream.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bigfleet_model::ClusterId;
use bigfleet_net::{Caller, Identity};
use bigfleet_shard_core::{
    BlobAnswer, Event, NodeFact, OperationId, RequestId, RollUpLane, SessionId,
};
use bigfleet_wire::v1alpha1::{
    BootstrapBlobResponse, ClusterCapacityNeeds, DrainReport, NodeReport, operator_message::Payload,
};
use bigfleet_wire::{DrainProgress, Greeting, NodeSightings, Rollup, unix_nanos};
use prost::Message;
use prost::bytes::Bytes;
use tokio::sync::oneshot;
use tokio_stream::Stream;
use tonic::{Request, Response, Status, Streaming};

use crate::clock::Clock;
use crate::digest::{Digest, Sent};
use crate::hub::{Hub, Told};
use crate::incoming::{Frames, Incoming};
use crate::outbox::{Link, Outgoing};
use crate::panics::{Task, joined};
use crate::wording;

/// How long a stream may take to say Hello.
const HELLO_WITHIN: Duration = Duration::from_secs(10);
/// Rows from which on reading a roll-up is too much for a thread that serves others.
const MANY_ROWS: usize = 500;

/// The service operators call.
#[derive(Clone, Debug)]
pub(crate) struct Sessions {
    hub: Hub,
    counts: Arc<SessionCounts>,
    clock: Clock,
}

/// What became of streams before the core heard of them.
#[derive(Debug, Default)]
pub(crate) struct SessionCounts {
    next: AtomicU64,
    /// Streams whose certificate is not that of the cluster they named.
    pub(crate) identity_rejected: AtomicU64,
    /// The connections of those that are open.
    open: Mutex<BTreeMap<SessionId, Arc<Link>>>,
    /// The operator's clock when it built the roll-up in force, by cluster; for readers.
    built: Mutex<BTreeMap<ClusterId, i64>>,
}

impl SessionCounts {
    /// When a session's operator was last heard, and how many frames wait for it.
    pub(crate) fn seen(&self, session: SessionId) -> Option<(i64, usize)> {
        self.open().get(&session).map(|link| link.seen())
    }

    /// When the roll-up in force of a cluster was built, by its operator's clock; 0 if none is.
    pub(crate) fn built(&self, cluster: &ClusterId) -> i64 {
        let built = self.built.lock().unwrap_or_else(PoisonError::into_inner);
        built.get(cluster).copied().unwrap_or_default()
    }

    fn accepted(&self, cluster: &ClusterId, built_unix_nanos: i64) {
        let mut built = self.built.lock().unwrap_or_else(PoisonError::into_inner);
        built.insert(cluster.clone(), built_unix_nanos);
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<SessionId, Arc<Link>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sessions {
    pub(crate) fn new(hub: Hub, counts: Arc<SessionCounts>, clock: Clock) -> Self {
        Self { hub, counts, clock }
    }
}

impl Sessions {
    /// Begins a session. Answered at once, so that an operator that waits for the answer before its
    /// Hello gets one.
    pub(crate) fn session(self, request: Request<Streaming<Incoming>>) -> Response<Frames> {
        let caller = Caller::of(&request);
        let (opened, open) = oneshot::channel();
        tokio::spawn(async move {
            let incoming = request.into_inner();
            self.serve(caller, incoming, opened).await;
        });
        Response::new(Box::pin(Waiting::Opening(open)))
    }
}

/// The frames of a session, which only exist once the operator has said who it is.
enum Waiting {
    Opening(oneshot::Receiver<Result<Outgoing, Status>>),
    Open(Outgoing),
    Over,
}

impl Stream for Waiting {
    type Item = Result<bigfleet_wire::v1alpha1::ShardMessage, Status>;

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        use std::task::Poll::{Pending, Ready};
        loop {
            match &mut *self {
                Self::Over => return Ready(None),
                Self::Open(outgoing) => return Pin::new(outgoing).poll_next(context),
                Self::Opening(open) => match Pin::new(open).poll(context) {
                    Pending => return Pending,
                    Ready(Ok(Ok(outgoing))) => *self = Self::Open(outgoing),
                    Ready(Ok(Err(status))) => {
                        *self = Self::Over;
                        return Ready(Some(Err(status)));
                    }
                    Ready(Err(_)) => *self = Self::Over,
                },
            }
        }
    }
}

impl Sessions {
    async fn serve(
        &self,
        caller: Caller,
        mut incoming: Streaming<Incoming>,
        opened: oneshot::Sender<Result<Outgoing, Status>>,
    ) {
        let greeting = match self.greet(&caller, &mut incoming).await {
            Ok(greeting) => greeting,
            Err(status) => {
                tracing::warn!(caller = ?caller.addr(), reason = status.message(), "session refused");
                drop(opened.send(Err(status)));
                return;
            }
        };
        let session = SessionId(self.counts.next.fetch_add(1, Ordering::Relaxed) + 1);
        let link = Link::new(greeting.cluster.clone());
        link.hear(unix_nanos(self.clock.now()));
        let told = Told::Opened {
            session,
            link: Arc::clone(&link),
            features: wording::features(&greeting),
            identity: named(&caller),
        };
        if self.hub.events.send(told).await.is_err() {
            drop(opened.send(Err(Status::unavailable("the shard is stopping"))));
            return;
        }
        self.counts.open().insert(session, Arc::clone(&link));
        // If nobody is there to take it, dropping it ends the link.
        drop(opened.send(Ok(Outgoing::new(Arc::clone(&link)))));
        let reader = Reader {
            hub: self.hub.clone(),
            session,
            cluster: greeting.cluster,
            lane: Arc::default(),
            counts: Arc::clone(&self.counts),
            accepted: Arc::default(),
            in_force: Arc::default(),
        };
        let reading = reader.read(&mut incoming, &link, self.clock);
        let read = self.hub.survive(Task::Session, reading).await;
        self.counts.open().remove(&session);
        link.end(read.map_err(|panicked| Status::internal(panicked.to_string())));
        drop(self.hub.tell(Event::SessionClosed { session }).await);
    }

    async fn greet(
        &self,
        caller: &Caller,
        incoming: &mut Streaming<Incoming>,
    ) -> Result<Greeting, Status> {
        let first = tokio::time::timeout(HELLO_WITHIN, incoming.message()).await;
        let first = first.map_err(|_| Status::deadline_exceeded("no Hello came in time"))??;
        let first = first.map(Incoming::message);
        let greeting =
            Greeting::open(first).map_err(|why| Status::invalid_argument(why.to_string()))?;
        let wanted = Identity::Cluster(greeting.cluster.to_string());
        caller.must_be(&wanted, "Session").inspect_err(|_| {
            self.counts
                .identity_rejected
                .fetch_add(1, Ordering::Relaxed);
        })?;
        Ok(greeting)
    }
}

/// The cluster a caller's certificate names.
fn named(caller: &Caller) -> Option<ClusterId> {
    match caller.identity() {
        Some(Identity::Cluster(id)) => ClusterId::new(id).ok(),
        Some(Identity::Shard(_) | Identity::Admin | Identity::ReadOnly) | None => None,
    }
}

/// The receiving side of one session.
#[derive(Clone)]
struct Reader {
    hub: Hub,
    session: SessionId,
    cluster: ClusterId,
    lane: Arc<Mutex<RollUpLane<Bytes>>>,
    counts: Arc<SessionCounts>,
    /// Roll-ups accepted on this session so far.
    accepted: Arc<AtomicU64>,
    /// The roll-up in force, to recognise it when it is said again.
    in_force: Arc<Mutex<Option<InForce>>>,
}

/// A roll-up the core accepted.
#[derive(Clone, Copy, Debug)]
struct InForce {
    sent: Option<Digest>,
    said: Digest,
}

impl Reader {
    async fn read(&self, incoming: &mut Streaming<Incoming>, link: &Link, clock: Clock) {
        loop {
            let message = tokio::select! {
                message = incoming.message() => message,
                () = link.over.notified() => return,
            };
            let payload = match message {
                Ok(Some(Incoming::RollUp(roll_up))) => {
                    link.hear(unix_nanos(clock.now()));
                    self.roll_up(roll_up);
                    continue;
                }
                Ok(Some(Incoming::Said(message))) => message.payload,
                Ok(None) => return,
                Err(status) => {
                    tracing::debug!(cluster = %self.cluster, %status, "session broke off");
                    return;
                }
            };
            link.hear(unix_nanos(clock.now()));
            let told = match payload {
                // In a frame with more than one payload.
                Some(Payload::Rollup(roll_up)) => {
                    self.roll_up(roll_up.encode_to_vec().into());
                    continue;
                }
                Some(Payload::Hello(_)) => Some(Event::HelloAgain {
                    session: self.session,
                }),
                Some(Payload::BootstrapResponse(answer)) => self.blob(answer),
                Some(Payload::DrainReport(report)) => self.drain(report),
                Some(Payload::NodeReport(report)) => self.nodes(report),
                Some(Payload::ReclaimAck(ack)) => {
                    tracing::debug!(cluster = %self.cluster, instruction = ack.instruction_id,
                        nodes = ack.nodes_started, "drain begun by the operator");
                    None
                }
                None => {
                    tracing::warn!(cluster = %self.cluster, "a frame of no known kind is skipped");
                    None
                }
            };
            if let Some(event) = told
                && self.hub.tell(event).await.is_err()
            {
                return;
            }
        }
    }

    /// One at work, one waiting: a task exists only while there is work.
    fn roll_up(&self, roll_up: Bytes) {
        let next = self.lane().arrived(roll_up);
        if let Some(first) = next {
            let reader = self.clone();
            tokio::spawn(async move {
                let mut at_work = Some(first);
                while let Some(roll_up) = at_work {
                    let taken = reader.hub.survive(Task::RollUp, reader.take_in(roll_up));
                    if let Err(panicked) = taken.await {
                        reader.unreadable(String::new(), &panicked).await;
                    }
                    at_work = reader.lane().done();
                }
            });
        }
    }

    fn lane(&self) -> MutexGuard<'_, RollUpLane<Bytes>> {
        self.lane.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn take_in(&self, bytes: Bytes) {
        let before = *self.in_force();
        let sent = Sent::read(&bytes);
        if let Some((before, sent)) = before.zip(sent.as_ref())
            && before.sent == Some(sent.digest)
        {
            let rollup_id = sent.rollup_id.clone();
            return self.repeated(rollup_id, sent.built_unix_nanos).await;
        }
        let sent = sent.map(|sent| sent.digest);
        let roll_up = match ClusterCapacityNeeds::decode(bytes) {
            Ok(roll_up) => roll_up,
            Err(why) => return self.unreadable(String::new(), &why).await,
        };
        let (rollup_id, said) = (roll_up.rollup_id.clone(), Digest::of(&roll_up));
        if before.is_some_and(|before| before.said == said)
            && rollup_id.len() <= bigfleet_model::MAX_ID_BYTES
        {
            let built = roll_up.timestamp_unix_nanos;
            *self.in_force() = Some(InForce { sent, said });
            return self.repeated(rollup_id, built).await;
        }
        let cluster = self.cluster.clone();
        let read = match roll_up.needs.len() < MANY_ROWS {
            true => Rollup::read(roll_up, &cluster),
            false => {
                let task = tokio::task::spawn_blocking(move || Rollup::read(roll_up, &cluster));
                match joined(task.await) {
                    Some(read) => read,
                    None => return, // the runtime is going down
                }
            }
        };
        match read {
            Ok(read) => {
                let built = read.built_unix_nanos;
                let event = Event::RolledUp {
                    session: self.session,
                    cluster: read.cluster,
                    rollup_id: read.id,
                    rows: Ok(read.rows),
                };
                // One that was held leaves the one before it in force.
                if self.applied(event, built).await {
                    *self.in_force() = Some(InForce { sent, said });
                }
            }
            Err(refused) => self.unreadable(rollup_id, &refused).await,
        }
    }

    /// The demand in force, said again: nothing to check and nothing to compare.
    async fn repeated(&self, rollup_id: String, built: i64) {
        let session = self.session;
        let event = Event::RollUpRepeated { session, rollup_id };
        self.applied(event, built).await;
    }

    /// Waits until it is applied, so that the next one is judged after it; whether it was accepted.
    async fn applied(&self, event: Event, built: i64) -> bool {
        let reader = self.clone();
        let applied = self.hub.submit(event, move |core| {
            let accepted = core.roll_ups_accepted(reader.session);
            let is_new = reader.accepted.swap(accepted, Ordering::Relaxed) < accepted;
            if is_new {
                reader.counts.accepted(&reader.cluster, built);
            }
            is_new
        });
        applied.await.unwrap_or(false) // nobody is there to hear it any more
    }

    fn in_force(&self) -> MutexGuard<'_, Option<InForce>> {
        self.in_force.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn unreadable(&self, mut rollup_id: String, refused: &(dyn std::fmt::Display + Sync)) {
        // An id too long to be one is not worth echoing.
        if bigfleet_model::MAX_ID_BYTES < rollup_id.len() {
            rollup_id = String::new();
        }
        let event = Event::RolledUp {
            session: self.session,
            cluster: self.cluster.clone(),
            rollup_id,
            rows: Err(refused.to_string()),
        };
        drop(self.hub.tell(event).await);
    }

    fn blob(&self, answer: BootstrapBlobResponse) -> Option<Event> {
        let raw = answer.request_id.clone();
        let answer = match bigfleet_wire::BlobAnswer::read(answer) {
            Ok(read) => match read.blob {
                Ok(blob) => BlobAnswer::Blob {
                    user_data: blob.user_data,
                    ttl_seconds: blob.lifetime.map_or(0, |lifetime| {
                        u32::try_from(lifetime.as_secs()).unwrap_or(u32::MAX)
                    }),
                },
                Err(error) => BlobAnswer::Error(error),
            },
            Err(refused) => {
                tracing::warn!(cluster = %self.cluster, %refused, "bootstrap blob refused");
                BlobAnswer::Error(refused.to_string())
            }
        };
        // Unknown ids are dropped silently: an answer may outlive the question.
        let request = RequestId::parse(&raw)?;
        Some(Event::BlobAnswered {
            session: self.session,
            request,
            answer,
        })
    }

    fn drain(&self, report: DrainReport) -> Option<Event> {
        let progress = DrainProgress::read(report)
            .inspect_err(|refused| {
                tracing::warn!(cluster = %self.cluster, %refused, "drain report refused");
            })
            .ok()?;
        Some(Event::DrainReported {
            session: self.session,
            instruction: OperationId::parse(&progress.instruction)?,
            machine: progress.machine,
            phase: wording::phase(progress.phase)?,
        })
    }

    fn nodes(&self, report: NodeReport) -> Option<Event> {
        let sightings = NodeSightings::read(report)
            .inspect_err(|refused| {
                tracing::warn!(cluster = %self.cluster, %refused, "node report refused");
            })
            .ok()?;
        let nodes = sightings.nodes.into_iter().map(|node| NodeFact {
            machine: node.machine,
            provider_id: node.provider_id,
            node_name: node.node_name,
            ready: node.ready,
        });
        Some(Event::NodesReported {
            session: self.session,
            complete: sightings.complete,
            nodes: nodes.collect(),
        })
    }
}
