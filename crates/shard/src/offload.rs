//! Offload: work that takes too long for an async worker runs on a blocking thread.
//!
//! An async worker serves many connections; a megabyte of demand that is hashed, decoded and checked on
//! one of them holds up all the others. Whoever offloads work waits for its result, so the order of its
//! own work stays what it was.

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::hub::Stopping;
use crate::panics::joined;

/// A bounded number of blocking threads. Whoever finds them all busy waits for its turn, first come,
/// first served.
#[derive(Clone, Debug)]
pub(crate) struct Offload(Arc<Semaphore>);

impl Offload {
    pub(crate) fn new(threads: usize) -> Self {
        Self(Arc::new(Semaphore::new(threads)))
    }

    /// As many threads as there are processors: more would only take turns.
    pub(crate) fn per_processor() -> Self {
        let processors = std::thread::available_parallelism();
        Self::new(processors.map_or(1, usize::from))
    }

    /// Runs the work on one of the threads. A panic in it is a panic here.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Stopping> {
        let turn = Arc::clone(&self.0).acquire_owned();
        let turn = turn.await.map_err(|_| Stopping)?;
        // The thread keeps its turn until it is done, even if whoever asked goes away meanwhile.
        offload(move || {
            let _turn = turn;
            work()
        })
        .await
    }
}

/// Runs work on a blocking thread, for callers whose number is bounded already.
pub(crate) async fn offload<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Stopping> {
    let span = tracing::Span::current(); // so that its log lines name the shard, too
    let done = tokio::task::spawn_blocking(move || span.in_scope(work)).await;
    joined(done).ok_or(Stopping)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[tokio::test]
    async fn no_more_threads_work_than_there_are_turns() {
        let offload = Offload::new(1);
        let ((started, has_started), (finish, may_finish)) = (channel(), channel::<()>());
        let busy = offload.clone();
        let first = tokio::spawn(async move {
            let work = move || {
                started.send(std::thread::current().id()).unwrap();
                may_finish.recv().unwrap();
            };
            busy.run(work).await
        });
        let here = std::thread::current().id();
        let there = tokio::task::spawn_blocking(move || has_started.recv().unwrap());
        assert_ne!(there.await.unwrap(), here);
        assert_eq!(offload.0.available_permits(), 0);
        // Nobody waits for it any more, and it works all the same.
        first.abort();
        assert!(first.await.unwrap_err().is_cancelled());
        assert_eq!(offload.0.available_permits(), 0);
        finish.send(()).unwrap();
        assert_eq!(offload.run(|| 7).await, Ok(7));
    }
}
