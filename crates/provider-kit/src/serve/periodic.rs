//! Periodic work: what a provider asks its substrate at fixed intervals, whether or not anybody calls.
//!
//! ```text
//! every reconcile interval ─▶ describe ─▶ Described: added, refreshed, lost
//! every price refresh      ─▶ prices ───▶ Quoted: prices and interruptions, nothing else
//! ```
//!
//! A List answers from what is known and never waits for a substrate. A round that fails, panics or
//! takes too long changes nothing; the next one tries again.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::backend::Backend;
use super::driver::{Request, Shared};
use crate::event::Event;
use crate::machine::Failure;

/// How long one round may take.
pub(super) const WITHIN: Duration = Duration::from_secs(30);

/// Takes the inventory, first after `wait` and then at every interval.
pub(super) async fn inventories<B: Backend>(
    backend: Arc<B>,
    driver: mpsc::Sender<Request>,
    shared: Arc<Shared>,
    mut wait: Duration,
    interval: Duration,
) {
    loop {
        tokio::time::sleep(wait).await;
        wait = interval;
        let (reply, head) = oneshot::channel();
        if driver.send(Request::Head { reply }).await.is_err() {
            return;
        }
        let Ok(as_of) = head.await else { return };
        let backend = Arc::clone(&backend);
        let outcome = match ask(async move { backend.describe().await }).await {
            Err(outcome) => outcome,
            Ok(instances) => {
                let described = Event::Described { instances, as_of };
                drop(driver.send(Request::Event(described)).await);
                "ok"
            }
        };
        shared.metrics.reconciled(outcome);
        if outcome != "ok" {
            tracing::warn!(outcome, "no inventory this time");
        }
    }
}

/// Asks for prices, now and at every interval. `now` tells unix time, for those who watch how old
/// prices are.
pub(super) async fn prices<B: Backend>(
    backend: Arc<B>,
    driver: mpsc::Sender<Request>,
    shared: Arc<Shared>,
    interval: Duration,
    now: impl Fn() -> Option<Duration> + Send,
) {
    loop {
        let backend = Arc::clone(&backend);
        let outcome = match ask(async move { backend.prices().await }).await {
            Err(outcome) => outcome,
            Ok(quotes) => {
                let quoted = Event::Quoted { quotes };
                if driver.send(Request::Event(quoted)).await.is_err() {
                    return;
                }
                "ok"
            }
        };
        shared.metrics.priced(outcome, now());
        if outcome != "ok" {
            tracing::warn!(outcome, "no prices this time; the last known ones stay");
        }
        tokio::time::sleep(interval).await;
    }
}

/// The answer, or the word for why there is none.
async fn ask<T: Send + 'static>(
    question: impl Future<Output = Result<T, Failure>> + Send + 'static,
) -> Result<T, &'static str> {
    let mut task = tokio::spawn(question);
    match tokio::time::timeout(WITHIN, &mut task).await {
        Ok(Ok(Ok(answer))) => Ok(answer),
        Ok(Ok(Err(_))) => Err("error"),
        Ok(Err(_)) => Err("panic"),
        Err(_) => {
            task.abort();
            Err("timeout")
        }
    }
}
