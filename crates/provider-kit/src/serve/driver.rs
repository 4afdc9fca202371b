//! The driver: one thread that owns the kit and its store.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bigfleet_model::{MachineId, State};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};

use super::backend::Backend;
use super::backend_work::BackendWork;
use super::metrics::Metrics;
use super::process::Clock;
use crate::call::{Ack, Mutation, Refusal};
use crate::event::{Effect, Event, Work};
use crate::kit::Kit;
use crate::list::{ListPage, Query};
use crate::machine::Machine;
use crate::store::Store;

/// Requests waiting for the driver; more callers wait in their own connection.
pub(super) const INBOX: usize = 4096;
/// The most requests that share one trip to the disk.
const BATCH: usize = 512;
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
        reply: oneshot::Sender<Result<ListPage, Refusal>>,
    },
    Head {
        reply: oneshot::Sender<u64>,
    },
    Census {
        reply: oneshot::Sender<Census>,
    },
    Event(Event),
    Stop,
}

/// How the inventory stands.
#[derive(Debug, Default)]
pub(super) struct Census {
    pub(super) counts: Vec<(State, usize)>,
    /// For how long this process has known the machine that has been failed longest.
    pub(super) oldest_failed: Duration,
}

/// How the process itself stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Condition {
    #[default]
    Booting,
    Ready,
    NotStoring,
    Stopping,
}

impl Condition {
    /// Why it is not ready, if it is not.
    pub(super) fn problem(self) -> Option<&'static str> {
        match self {
            Self::Ready => None,
            Self::Booting => Some("not started yet"),
            Self::NotStoring => Some("the store fails"),
            Self::Stopping => Some("stopping"),
        }
    }
}

/// What the driver shares with the rest of the process.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// Pieces of work under way.
    pub(super) working: AtomicUsize,
    pub(super) condition: watch::Sender<Condition>,
    pub(super) metrics: Metrics,
}

impl Shared {
    /// Notes how the process stands. Once it stops, it stops.
    pub(super) fn is(&self, now: Condition) {
        self.condition.send_if_modified(|condition| {
            let news = *condition != now && *condition != Condition::Stopping;
            if news {
                *condition = now;
            }
            news
        });
    }
}

pub(super) struct Driver<B> {
    pub(super) kit: Kit,
    pub(super) store: Box<dyn Store>,
    pub(super) backend_work: BackendWork<B>,
    pub(super) runtime: Handle,
    pub(super) inbox: mpsc::Receiver<Request>,
    pub(super) shared: Arc<Shared>,
    pub(super) failures: usize,
    pub(super) clock: Option<Clock>,
    /// When this process learned that a machine is failed.
    pub(super) failed_since: BTreeMap<MachineId, Duration>,
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

    /// Goes on with what the last process left behind.
    pub(super) fn take_up(&mut self, unfinished: Vec<Work>) {
        for work in unfinished {
            self.shared.metrics.resumed.inc();
            self.start(work);
        }
        let entries = self.kit.tables().machines().values();
        let failed = entries.filter(|entry| entry.machine.state == State::Failed);
        let failed: Vec<MachineId> = failed.map(|entry| entry.machine.id.clone()).collect();
        failed.iter().for_each(|id| self.noticed_failed(id));
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
                Request::Census { reply } => drop(reply.send(self.census())),
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
            // What the backend did is a fact: it is recorded as soon as the store works again.
            return unlost
                .into_iter()
                .for_each(|event| self.later(RETRY, event));
        }
        self.kit.commit();
        for effect in effects {
            match effect {
                Effect::Answer { call, answer } => {
                    let caller = callers.get_mut(call as usize).and_then(Option::take);
                    drop(caller.map(|caller| caller.send(answer)));
                }
                Effect::Start(work) => self.start(work),
                Effect::Discarded { operation, left } => {
                    self.shared.metrics.discarded.inc();
                    tracing::warn!(%operation, "a completion came too late and was discarded");
                    if let Some(machine) = left {
                        let backend_work = self.backend_work.clone();
                        self.runtime
                            .spawn(backend_work.give_back(machine, operation));
                    }
                }
                Effect::Skipped(refused) => tracing::warn!(%refused, "an instance was skipped"),
                Effect::Failed(machine) => {
                    let (id, error) = (&machine.id, &machine.last_error);
                    tracing::warn!(machine = %id, %error, "a machine is failed");
                    self.noticed_failed(id);
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
        self.shared.is(if self.failures < UNREADY_AFTER {
            Condition::Ready
        } else {
            Condition::NotStoring
        });
        stored.map_err(|error| tracing::error!(%error, "a change could not be stored"))
    }

    fn later(&self, after: Duration, event: Event) {
        let outbox = self.backend_work.outbox.clone();
        self.runtime.spawn(async move {
            tokio::time::sleep(after).await;
            if let Some(outbox) = outbox.upgrade() {
                drop(outbox.send(Request::Event(event)).await);
            }
        });
    }

    pub(super) fn start(&self, work: Work) {
        let (backend_work, shared) = (self.backend_work.clone(), Arc::clone(&self.shared));
        shared.working.fetch_add(1, Ordering::Relaxed);
        self.runtime.spawn(async move {
            backend_work.supervise(work).await;
            shared.working.fetch_sub(1, Ordering::Relaxed);
        });
    }

    /// Notes that a machine is failed, and has it cleaned up in time if that is wanted.
    pub(super) fn noticed_failed(&mut self, machine: &MachineId) {
        let now = self.clock.as_ref().map(|clock| clock());
        let since = self.failed_since.entry(machine.clone());
        since.or_insert(now.unwrap_or_default());
        let entry = self.kit.tables().machines().get(machine);
        let after = entry.and_then(|entry| self.kit.options.cool_down(&entry.machine));
        if let Some(after) = after {
            let machine = machine.clone();
            self.later(after, Event::CleanUp { machine });
        }
    }

    fn census(&mut self) -> Census {
        let tables = self.kit.tables();
        let failed = |id: &MachineId| {
            let entry = tables.machines().get(id);
            entry.is_some_and(|entry| entry.machine.state == State::Failed)
        };
        self.failed_since.retain(|id, _| failed(id));
        let oldest = self.failed_since.values().min();
        let now = self.clock.as_ref().map(|clock| clock());
        let age = now
            .zip(oldest)
            .map(|(now, since)| now.saturating_sub(*since));
        let count = |state: State| (state, tables.count(state));
        Census {
            counts: State::ALL.into_iter().map(count).collect(),
            oldest_failed: age.unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests;
