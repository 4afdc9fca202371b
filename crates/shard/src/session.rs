//! Sessions: one stream per operator, from its Hello to its end (shard.md §6, wire 6.1).
//!
//! ```text
//! stream ─▶ Hello, in time ─▶ whose certificate? ─▶ opened ─┬─ roll-ups ─▶ lane: one at work, one waits
//!                                                           └─ the rest ─▶ driver, a few at a time
//! ```
//!
//! Reading and checking happen in the session's own tasks, and what is large on a bounded number of
//! blocking threads: an operator can be slow, wrong or malicious at its own cost only.

mod pace;
mod reader;
mod roll_up;
mod telling;

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bigfleet_model::ClusterId;
use bigfleet_net::{Caller, Identity, LogBudget};
use bigfleet_shard_core::{Event, SessionId};
use bigfleet_wire::{Feature, Greeting, unix_nanos};
use tokio::sync::oneshot;
use tokio_stream::Stream;
use tonic::codegen::http;
use tonic::{Request, Response, Status, Streaming};

use pace::SessionPace;
use reader::Reader;
use roll_up::RollUps;
use telling::Telling;

use crate::clock::Clock;
use crate::hub::{Hub, Told};
use crate::incoming::{self, Frames, Incoming, Received};
use crate::intake::{Budget, Intake};
use crate::offload::Offload;
use crate::outbox::{Link, Outgoing};
use crate::panics::Task;
use crate::session_messages;

/// How long a stream may take to say Hello.
const HELLO_WITHIN: Duration = Duration::from_secs(10);

/// The service operators call.
#[derive(Clone, Debug)]
pub(crate) struct Sessions {
    hub: Hub,
    counts: Arc<SessionCounts>,
    clock: Clock,
    /// Where large frames are decoded and checked, for all sessions together.
    offload: Offload,
    /// How much of what they send may be in memory.
    budget: Budget,
    pace: SessionPace,
    /// What is said of streams that never became sessions.
    said: Arc<LogBudget>,
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

    /// The open sessions whose operators want to know where their rows stand.
    pub(crate) fn told_of_needs(&self) -> BTreeMap<SessionId, Arc<Link>> {
        let open = self.open();
        let told = open.iter().filter(|(_, link)| link.told_of_needs);
        told.map(|(session, link)| (*session, Arc::clone(link)))
            .collect()
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
    pub(crate) fn new(
        hub: Hub,
        counts: Arc<SessionCounts>,
        clock: Clock,
        largest_frame: usize,
    ) -> Self {
        Self {
            hub,
            counts,
            clock,
            offload: Offload::per_processor(),
            budget: Budget::new(largest_frame),
            pace: SessionPace::default(),
            said: Arc::default(),
        }
    }

    /// Who pays for the frames of a stream.
    pub(crate) fn intake<T>(&self, request: &http::Request<T>) -> Arc<Intake> {
        let caller = request.extensions().get::<Caller>();
        self.budget.intake(&caller.cloned().unwrap_or_default())
    }

    /// Begins a session. Answered at once, so that an operator that waits for the answer before its
    /// Hello gets one.
    pub(crate) fn session(self, request: Request<Streaming<Received>>) -> Response<Frames> {
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
        mut incoming: Streaming<Received>,
        opened: oneshot::Sender<Result<Outgoing, Status>>,
    ) {
        let greeting = match self.greet(&caller, &mut incoming).await {
            Ok(greeting) => greeting,
            Err(status) => {
                if let Some(left_out) = self.said.take() {
                    let (caller, reason) = (caller.addr(), status.message());
                    tracing::warn!(?caller, reason, left_out, "session refused");
                }
                drop(opened.send(Err(status)));
                return;
            }
        };
        let session = SessionId(self.counts.next.fetch_add(1, Ordering::Relaxed) + 1);
        let told_of_needs = greeting.features.contains(&Feature::NeedStatus);
        let link = Link::new(greeting.cluster.clone(), told_of_needs);
        link.hear(unix_nanos(self.clock.now()));
        let told = Told::Opened {
            session,
            link: Arc::clone(&link),
            features: session_messages::features(&greeting),
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
            session,
            cluster: greeting.cluster.clone(),
            offload: self.offload.clone(),
            roll_ups: RollUps {
                hub: self.hub.clone(),
                session,
                cluster: greeting.cluster,
                counts: Arc::clone(&self.counts),
                offload: self.offload.clone(),
                progress: Arc::default(),
            },
            telling: Telling::new(self.hub.clone()),
            said: Arc::default(),
        };
        let reading = reader.read(&mut incoming, &link, self.clock);
        let read = self.hub.survive(Task::Session, reading).await;
        self.counts.open().remove(&session);
        let end = read.unwrap_or_else(|panicked| Err(Status::internal(panicked.to_string())));
        link.end(end);
        drop(self.hub.tell(Event::SessionClosed { session }).await);
        link.written().await;
    }

    async fn greet(
        &self,
        caller: &Caller,
        incoming: &mut Streaming<Received>,
    ) -> Result<Greeting, Status> {
        let first = tokio::time::timeout(HELLO_WITHIN, incoming.message()).await;
        let first = first.map_err(|_| Status::deadline_exceeded("no Hello came in time"))??;
        let first = match first.map(|first| first.frame) {
            Some(first @ Incoming::Large(_)) => Some(self.offload.run(|| first.message()).await?),
            first => first.map(Incoming::message),
        };
        let first = first
            .transpose()
            .map_err(|why| incoming::undecodable(&why))?;
        let greeting =
            Greeting::open(first).map_err(|why| Status::invalid_argument(why.to_string()))?;
        let wanted = Identity::Cluster(greeting.cluster.to_string());
        caller.must_be(&wanted, "Session").inspect_err(|_| {
            self.counts
                .identity_rejected
                .fetch_add(1, Ordering::Relaxed);
        })?;
        self.pace.turn(&greeting.cluster).await?;
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
