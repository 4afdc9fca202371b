//! The driver: one thread that owns the kit and its store.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bigfleet_model::State;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};

use super::backend::{Backend, Cancelled, Job, Readiness};
use super::metrics::Metrics;
use crate::call::{Ack, Mutation, Refusal};
use crate::kit::{Created, Effect, Event, Kit, Outcome, Task, Work};
use crate::list::{Page, Query};
use crate::machine::{Failure, Machine};
use crate::store::Store;

/// Requests waiting for the driver; more callers wait in their own connection.
pub(super) const INBOX: usize = 4096;
/// The most requests that share one trip to the disk.
const BATCH: usize = 512;
/// How long work may go on after it was given up, before it is dropped.
const LINGER: Duration = Duration::from_secs(30);
/// When to try again to record a completion the store refused.
const RETRY: Duration = Duration::from_millis(500);
/// Failed trips to the disk in a row until the provider calls itself not ready.
const UNREADY_AFTER: usize = 3;

/// Something for the driver to do.
pub(super) enum Request {
    Mutate {
        mutation: Mutation,
        reply: oneshot::Sender<Result<Ack, Refusal>>,
    },
    Get {
        id: String,
        reply: oneshot::Sender<Result<Arc<Machine>, Refusal>>,
    },
    List {
        query: Query,
        reply: oneshot::Sender<Result<Page, Refusal>>,
    },
    Head {
        reply: oneshot::Sender<u64>,
    },
    Counts {
        reply: oneshot::Sender<Vec<(State, usize)>>,
    },
    Event(Event),
    Stop,
}

/// What the driver shares with the rest of the process.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// Pieces of work under way.
    pub(super) working: AtomicUsize,
    /// Whether the store has been taking changes.
    pub(super) storing: AtomicBool,
    pub(super) metrics: Metrics,
}

pub(super) struct Driver<B> {
    pub(super) kit: Kit,
    pub(super) store: Box<dyn Store>,
    pub(super) backend: Arc<B>,
    pub(super) runtime: Handle,
    pub(super) inbox: mpsc::Receiver<Request>,
    /// For what background work has to say; weak, so that it does not keep the driver alive.
    pub(super) outbox: mpsc::WeakSender<Request>,
    pub(super) shared: Arc<Shared>,
    pub(super) failures: usize,
}

impl<B: Backend> Driver<B> {
    /// Runs until told to stop or until nobody is left to ask.
    pub(super) fn run(mut self) {
        while let Some(first) = self.inbox.blocking_recv() {
            let mut batch = vec![first];
            while batch.len() < BATCH
                && let Ok(next) = self.inbox.try_recv()
            {
                batch.push(next);
            }
            if !self.step(batch) {
                return;
            }
        }
    }

    /// Handles a batch; false when it was the last.
    fn step(&mut self, batch: Vec<Request>) -> bool {
        let mut events = Vec::new();
        let mut callers = Vec::new();
        let mut go_on = true;
        for request in batch {
            // Nobody is left to hear an answer that cannot be sent: a caller may hang up.
            match request {
                Request::Get { id, reply } => drop(reply.send(self.kit.tables().get(&id))),
                Request::List { query, reply } => drop(reply.send(self.kit.tables().list(&query))),
                Request::Head { reply } => drop(reply.send(self.kit.tables().head())),
                Request::Counts { reply } => {
                    let count = |state: State| (state, self.kit.tables().count(state));
                    drop(reply.send(State::ALL.into_iter().map(count).collect()));
                }
                Request::Mutate { mutation, reply } => {
                    events.push(Event::Mutate {
                        call: callers.len() as u64,
                        mutation,
                    });
                    callers.push(Some(reply));
                }
                Request::Event(event) => events.push(event),
                Request::Stop => go_on = false,
            }
        }
        if !events.is_empty() {
            self.apply(events, callers);
        }
        go_on
    }

    fn apply(
        &mut self,
        events: Vec<Event>,
        mut callers: Vec<Option<oneshot::Sender<Result<Ack, Refusal>>>>,
    ) {
        let mut effects = Vec::new();
        let background = |event: &&Event| !matches!(event, Event::Mutate { .. });
        let unlost: Vec<Event> = events.iter().filter(background).cloned().collect();
        let kit = &mut self.kit;
        let handled = catch_unwind(AssertUnwindSafe(|| {
            events
                .into_iter()
                .for_each(|event| kit.handle(event, &mut effects));
        }));
        let outcome = match handled {
            Ok(()) => self.store_pending().map_err(|()| Refusal::Unavailable),
            Err(_) => {
                self.shared.metrics.panics.inc();
                Err(Refusal::Defect)
            }
        };
        if let Err(refusal) = outcome {
            self.kit.rollback();
            for caller in callers.into_iter().flatten() {
                drop(caller.send(Err(refusal.clone())));
            }
            return unlost.into_iter().for_each(|event| self.again_later(event));
        }
        self.kit.commit();
        for effect in effects {
            match effect {
                Effect::Answer { call, answer } => {
                    let caller = callers.get_mut(call as usize).and_then(Option::take);
                    drop(caller.map(|caller| caller.send(answer)));
                }
                Effect::Start(work) => self.start(work),
                Effect::Discarded { operation } => {
                    self.shared.metrics.discarded.inc();
                    tracing::warn!(%operation, "a completion came too late and was discarded");
                }
                Effect::Skipped(refused) => tracing::warn!(%refused, "an instance was skipped"),
                Effect::Failed(machine) => {
                    let (id, error) = (&machine.id, &machine.last_error);
                    tracing::warn!(machine = %id, %error, "a machine failed");
                }
            }
        }
        if let Err(error) = self.store.compact(self.kit.tables()) {
            tracing::error!(%error, "the state file could not be compacted");
        }
    }

    fn store_pending(&mut self) -> Result<(), ()> {
        let pending = self.kit.tables().pending();
        if pending.is_empty() {
            return Ok(());
        }
        let stored = self.store.commit(pending);
        self.failures = if stored.is_ok() { 0 } else { self.failures + 1 };
        self.shared
            .storing
            .store(self.failures < UNREADY_AFTER, Ordering::Relaxed);
        stored.map_err(|error| tracing::error!(%error, "a change could not be stored"))
    }

    /// What the backend did is a fact: it is recorded as soon as the store works again.
    fn again_later(&self, event: Event) {
        let outbox = self.outbox.clone();
        self.runtime.spawn(async move {
            tokio::time::sleep(RETRY).await;
            if let Some(outbox) = outbox.upgrade() {
                drop(outbox.send(Request::Event(event)).await);
            }
        });
    }

    fn start(&self, work: Work) {
        let (backend, outbox) = (Arc::clone(&self.backend), self.outbox.clone());
        let shared = Arc::clone(&self.shared);
        shared.working.fetch_add(1, Ordering::Relaxed);
        self.runtime.spawn(async move {
            supervise(backend, work, outbox).await;
            shared.working.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

/// Runs one piece of work against its deadline. Its end is reported even if it comes too late: the
/// kit decides what is too late.
async fn supervise<B: Backend>(backend: Arc<B>, work: Work, outbox: mpsc::WeakSender<Request>) {
    let (machine, operation) = (work.machine.id.clone(), Arc::clone(&work.operation));
    let timeout = work.timeout;
    let (cancel, cancelled) = watch::channel(false);
    let mut task = tokio::spawn(perform(backend, work, Cancelled(cancelled)));
    let say = async |event: Event| {
        if let Some(outbox) = outbox.upgrade() {
            drop(outbox.send(Request::Event(event)).await);
        }
    };
    let ended = match tokio::time::timeout(timeout, &mut task).await {
        Ok(ended) => Some(ended),
        Err(_) => {
            let (machine, operation) = (machine.clone(), Arc::clone(&operation));
            say(Event::TimedOut { machine, operation }).await;
            cancel.send_replace(true);
            tokio::time::timeout(LINGER, &mut task).await.ok()
        }
    };
    match ended {
        Some(ended) => {
            let outcome = ended.unwrap_or_else(|panic| Err(panicked(panic)));
            say(Event::Settled {
                machine,
                operation,
                outcome,
            })
            .await;
        }
        None => task.abort(),
    }
}

fn panicked(error: tokio::task::JoinError) -> Failure {
    let Ok(panic) = error.try_into_panic() else {
        return Failure::new("the backend work was dropped");
    };
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    Failure::new(format!(
        "the backend panicked: {}",
        text.unwrap_or_default()
    ))
}

async fn perform<B: Backend>(backend: Arc<B>, work: Work, cancelled: Cancelled) -> Outcome {
    let Work {
        machine,
        operation,
        task,
        ..
    } = work;
    let job = Job {
        machine,
        operation,
        cancelled,
    };
    let nothing = |()| None::<Created>;
    match task {
        Task::Create => backend.create(job).await.map(Some),
        Task::Configure { blob } => {
            backend.configure(job.clone(), blob).await?;
            match backend.readiness() {
                Readiness::Confirmed => backend.confirm_node_ready(job).await.map(nothing),
                Readiness::BackendWaits | Readiness::NotEnforced => Ok(None),
            }
        }
        Task::Drain { grace } => backend.drain(job, grace).await.map(nothing),
        Task::Delete => backend.delete(job).await.map(nothing),
    }
}

#[cfg(test)]
mod tests;
