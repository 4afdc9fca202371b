//! Stream: the frames of one answer, made as fast as their reader takes them.
//!
//! A task makes the frames and waits when a few of them are not taken; nobody else waits. When the
//! reader is gone the next frame finds nobody, and the task ends. One that takes nothing for half a minute is
//! told so. A caller has so many answers at once: each may lie in the buffers of a connection that is not
//! read (SE-9).

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bigfleet_net::Caller;
use tokio::sync::mpsc;
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Response, Status};

use crate::hub::{Hub, Stopping};
use crate::panics::Task;

/// Frames that wait for their reader.
const WAITING: usize = 64;
/// How long a reader may take nothing.
const READ_WITHIN: Duration = Duration::from_secs(30);
/// Answers to one caller at once.
const MOST_EACH: usize = 16;

/// Who has how many answers at once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places(Arc<Mutex<BTreeMap<String, usize>>>);

/// The place of one answer, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    places: Places,
    whose: String,
}

impl Places {
    fn taken(&self) -> MutexGuard<'_, BTreeMap<String, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for one more answer to this caller. Without a certificate a caller is its connection.
    pub(super) fn take(&self, caller: &Caller) -> Result<Place, Status> {
        let whose = match caller.identity() {
            Some(identity) => identity.to_string(),
            None => caller
                .addr()
                .map_or_else(String::new, |addr| addr.to_string()),
        };
        let mut taken = self.taken();
        let own = taken.entry(whose.clone()).or_default();
        if MOST_EACH <= *own {
            return Err(Status::resource_exhausted(format!(
                "{own} answers to this caller are under way, of {MOST_EACH} at once (SE-9)"
            )));
        }
        *own += 1;
        let places = self.clone();
        Ok(Place { places, whose })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken();
        if let Some(own) = taken.get_mut(&self.whose) {
            *own -= 1;
            if *own == 0 {
                taken.remove(&self.whose);
            }
        }
    }
}

/// What the connection writes.
#[derive(Debug)]
pub(crate) struct Frames<T> {
    receiver: ReceiverStream<Result<T, Status>>,
    _place: Place,
}

impl<T> Stream for Frames<T> {
    type Item = Result<T, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut self.receiver).poll_next(context)
    }
}

/// Why a stream ended before its end.
#[derive(Debug)]
pub(super) enum Cut {
    /// Nobody reads it any more.
    Gone,
    /// It cannot be gone on with; the reader is told why.
    Failed(Status),
}

impl From<Stopping> for Cut {
    fn from(stopping: Stopping) -> Self {
        Self::Failed(stopping.into())
    }
}

impl From<Status> for Cut {
    fn from(status: Status) -> Self {
        Self::Failed(status)
    }
}

/// Where the frames of an answer go.
#[derive(Debug)]
pub(super) struct Out<T>(mpsc::Sender<Result<T, Status>>);

impl<T> Out<T> {
    /// Sends a frame, once there is room for it.
    pub(super) async fn send(&self, frame: T) -> Result<(), Cut> {
        let sent = tokio::time::timeout(READ_WITHIN, self.0.send(Ok(frame)));
        let slow = |_| Cut::Failed(Status::deadline_exceeded("the reader takes nothing"));
        sent.await.map_err(slow)?.map_err(|_| Cut::Gone)
    }
}

/// Starts an answer.
pub(super) fn frames<T, M, A>(hub: &Hub, place: Place, make: M) -> Response<Frames<T>>
where
    T: Send + 'static,
    M: FnOnce(Out<T>) -> A + Send + 'static,
    A: Future<Output = Result<(), Cut>> + Send + 'static,
{
    let (sender, receiver) = mpsc::channel(WAITING);
    let (hub, last_word) = (hub.clone(), sender.clone());
    tokio::spawn(async move {
        tokio::select! {
            // Also while the answer waits for something else than room.
            () = last_word.closed() => {}
            made = hub.survive(Task::Read, make(Out(sender))) => {
                let failed = match made {
                    Ok(Err(Cut::Failed(status))) => status,
                    // Without a word it would look whole.
                    Err(panicked) => Status::internal(panicked.to_string()),
                    // A reader that is gone needs no reason.
                    Ok(Ok(()) | Err(Cut::Gone)) => return,
                };
                drop(last_word.send(Err(failed)).await);
            }
        }
    });
    Response::new(Frames {
        receiver: ReceiverStream::new(receiver),
        _place: place,
    })
}

/// A number as the wire has it.
pub(super) fn count(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// How many of these to send: `limit` entries, or all if there is no limit.
pub(super) fn limited(limit: i32, entries: usize) -> usize {
    match usize::try_from(limit) {
        Ok(0) | Err(_) => entries,
        Ok(limit) => limit.min(entries),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::sync::oneshot;
    use tokio_stream::StreamExt;

    fn hub() -> Hub {
        Hub::new(crate::trouble::Trouble::default()).0
    }

    fn place() -> Place {
        Places::default().take(&Caller::default()).unwrap()
    }

    /// SE-9.
    #[tokio::test]
    async fn a_caller_has_so_many_answers_at_once() {
        let caller = |port| Caller::plaintext(Some(([127, 0, 0, 1], port).into()));
        let places = Places::default();
        let take = || places.take(&caller(1));
        let mut answers: Vec<_> = (0..MOST_EACH)
            .map(|_| frames::<(), _, _>(&hub(), take().unwrap(), async |_| Ok(())))
            .collect();
        let refused = take().unwrap_err();
        assert_eq!(refused.code(), tonic::Code::ResourceExhausted);
        places.take(&caller(2)).unwrap();
        // Until it is read to its end or given up, and not only until it is made.
        everybody_waits().await;
        assert!(take().is_err());
        answers.pop();
        take().unwrap();
        answers.clear();
        assert!(places.taken().is_empty());
    }

    /// On one thread: whoever is not waiting has had its turn.
    async fn everybody_waits() {
        for _ in 0..10 * WAITING {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn frames_are_made_as_they_are_taken() {
        let made = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&made);
        let mut stream = frames(&hub(), place(), async move |out| {
            loop {
                out.send(counted.fetch_add(1, Ordering::Relaxed)).await?;
            }
        })
        .into_inner();
        everybody_waits().await;
        let ahead = made.load(Ordering::Relaxed);
        assert!(ahead <= WAITING + 1, "{ahead} frames and no reader");
        for expected in 0..1000 {
            assert_eq!(stream.next().await.unwrap().unwrap(), expected);
        }
        everybody_waits().await;
        assert!(made.load(Ordering::Relaxed) <= 1000 + WAITING + 1);
    }

    /// Also an answer that has nothing to send yet, such as one that waits for a cycle.
    #[tokio::test]
    async fn an_answer_ends_when_its_reader_goes() {
        let (alive, ended) = oneshot::channel::<()>();
        let stream = frames::<(), _, _>(&hub(), place(), async move |_out| {
            let _alive = alive;
            std::future::pending().await
        });
        drop(stream);
        assert!(ended.await.is_err(), "what the answer held is dropped");
    }

    #[tokio::test]
    async fn a_failure_is_the_last_word() {
        let mut stream = frames(&hub(), place(), async move |out| {
            out.send(1).await?;
            Err(Stopping.into())
        })
        .into_inner();
        assert_eq!(stream.next().await.unwrap().unwrap(), 1);
        let last = stream.next().await.unwrap().unwrap_err();
        assert_eq!(last.code(), tonic::Code::Unavailable);
        assert!(stream.next().await.is_none());
    }

    /// What was sent before it would pass for the whole answer.
    #[tokio::test]
    async fn so_is_a_panic() {
        let mut stream = frames(&hub(), place(), async move |out| {
            out.send(1).await?;
            panic!("on purpose")
        })
        .into_inner();
        assert_eq!(stream.next().await.unwrap().unwrap(), 1);
        let last = stream.next().await.unwrap().unwrap_err();
        assert_eq!(last.code(), tonic::Code::Internal);
        assert_eq!(last.message(), "it panicked here: on purpose");
    }
}
