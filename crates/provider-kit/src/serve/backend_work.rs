//! Backend work: run in the background, each against its deadline.
//!
//! ```text
//! Work ─▶ perform ──┬─ done, failed, panicked ──▶ Settled
//!           ▲       ├─ asks to come back ──▶ a pause ─┐
//!           └───────┼─────────────────────────────────┘
//!                   └─ out of time ──▶ TimedOut, told so ──▶ Settled if it still ends, else dropped
//! ```
//!
//! The end is reported even if it comes too late: the kit decides what is too late.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc, watch};

use super::backend::{Backend, Cancelled, Job, Readiness};
use super::driver::{Request, Shared};
use crate::event::{Created, Event, Outcome, Task, Work};
use crate::machine::{Failure, FailureClass, Machine};
use crate::options::Retry;

/// How long work may go on after it was given up, before it is dropped.
const LINGER: Duration = Duration::from_secs(30);
/// Clean-ups at the same time. None is urgent, and the substrate has other things to do.
const CLEAN_UPS: usize = 16;
/// How often to try to give back a host that nobody knows, and how long each time.
const GIVE_BACK_TRIES: u32 = 5;
const GIVE_BACK_WITHIN: Duration = Duration::from_secs(5 * 60);

/// Runs the work of the backend.
pub(super) struct BackendWork<B> {
    backend: Arc<B>,
    /// Where the end of work is reported; weak, so that it does not keep the driver alive.
    pub(super) outbox: mpsc::WeakSender<Request>,
    shared: Arc<Shared>,
    retry: Retry,
    clean_ups: Arc<Semaphore>,
}

impl<B> Clone for BackendWork<B> {
    fn clone(&self) -> Self {
        Self {
            backend: Arc::clone(&self.backend),
            outbox: self.outbox.clone(),
            shared: Arc::clone(&self.shared),
            retry: self.retry,
            clean_ups: Arc::clone(&self.clean_ups),
        }
    }
}

impl<B: Backend> BackendWork<B> {
    pub(super) fn new(
        backend: Arc<B>,
        outbox: mpsc::WeakSender<Request>,
        shared: Arc<Shared>,
        retry: Retry,
    ) -> Self {
        let clean_ups = Arc::new(Semaphore::new(CLEAN_UPS));
        Self {
            backend,
            outbox,
            shared,
            retry,
            clean_ups,
        }
    }

    async fn say(&self, event: Event) {
        if let Some(outbox) = self.outbox.upgrade() {
            // The driver is gone with everything it could have recorded.
            drop(outbox.send(Request::Event(event)).await);
        }
    }

    /// Runs one piece of work against its deadline.
    pub(super) async fn supervise(self, work: Work) {
        let cleaning = matches!(work.task, Task::CleanUp);
        let _place = if cleaning {
            Arc::clone(&self.clean_ups).acquire_owned().await.ok()
        } else {
            None
        };
        let (machine, operation) = (work.machine.id.clone(), Arc::clone(&work.operation));
        let timeout = work.timeout;
        let (cancel, cancelled) = watch::channel(false);
        let (turned_away, refused) = watch::channel(None);
        let attempts = self
            .clone()
            .attempts(work, Cancelled::when(cancelled), turned_away);
        let mut task = tokio::spawn(attempts);
        let ended = match tokio::time::timeout(timeout, &mut task).await {
            Ok(ended) => Some(ended),
            Err(_) => {
                let (machine, operation) = (machine.clone(), Arc::clone(&operation));
                let refused = refused.borrow().clone();
                let late = Event::TimedOut {
                    machine,
                    operation,
                    refused,
                };
                self.say(late).await;
                cancel.send_replace(true);
                tokio::time::timeout(LINGER, &mut task).await.ok()
            }
        };
        let Some(ended) = ended else {
            return task.abort();
        };
        let outcome = ended.unwrap_or_else(|panic| Err(panicked(panic)));
        if cleaning {
            let word = if outcome.is_ok() { "ok" } else { "error" };
            self.shared.metrics.cleaned_up(word);
        }
        let settled = Event::Settled {
            machine,
            operation,
            outcome,
        };
        self.say(settled).await;
    }

    /// Tries until the substrate does more than ask to come back.
    async fn attempts(
        self,
        work: Work,
        mut cancelled: Cancelled,
        turned_away: watch::Sender<Option<Failure>>,
    ) -> Outcome {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let outcome = perform(&*self.backend, work.clone(), cancelled.clone()).await;
            match outcome {
                Err(failure) if failure.class == FailureClass::Passing => {
                    self.shared.metrics.retries.inc();
                    turned_away.send_replace(Some(failure));
                }
                other => return other,
            }
            let pause = self.retry.pause(&work.operation, attempts);
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = cancelled.wait() => return Err(Failure::new("given up")),
            }
        }
    }

    /// Gives back a host that a Create made after it had been given up.
    pub(super) async fn give_back(self, machine: Arc<Machine>, operation: Arc<str>) {
        let host = machine.host.clone().unwrap_or_default().reference;
        for attempt in 1..=GIVE_BACK_TRIES {
            let (_cancel, cancelled) = watch::channel(false);
            let job = Job {
                machine: Arc::clone(&machine),
                operation: Arc::clone(&operation),
                cancelled: Cancelled::when(cancelled),
            };
            let backend = Arc::clone(&self.backend);
            let mut task = tokio::spawn(async move { backend.delete(job).await });
            match tokio::time::timeout(GIVE_BACK_WITHIN, &mut task).await {
                Ok(Ok(Ok(()))) => {
                    self.shared.metrics.given_back("ok");
                    return tracing::warn!(%operation, host, "a host made too late was given back");
                }
                Ok(Ok(Err(error))) => tracing::warn!(host, %error, "a host was not given back"),
                Ok(Err(_)) => tracing::warn!(host, "the backend panicked giving back a host"),
                Err(_) => task.abort(),
            }
            tokio::time::sleep(self.retry.pause(&operation, attempt)).await;
        }
        self.shared.metrics.given_back("error");
        tracing::error!(%operation, host, "a host belongs to nobody and could not be given back");
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

async fn perform<B: Backend>(backend: &B, work: Work, cancelled: Cancelled) -> Outcome {
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
        Task::CleanUp => backend.clean_up(job).await.map(nothing),
    }
}
