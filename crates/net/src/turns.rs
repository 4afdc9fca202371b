//! Turns: calls wait for a stream here, not in the HTTP/2 client.
//!
//! ```text
//! call ─▶ a place, of as many as the peer said it takes ─▶ HTTP/2 client ─▶ headers, message, answer ─▶ free
//!            └─ none is free: it waits, and if it is given up meanwhile nothing of it was ever written
//! peer's SETTINGS ─▶ how many places there are; until they have come, one
//! ```
//!
//! A client queues what its peer does not take yet, and what it has queued it writes, even if whoever called
//! has given up: a stream that was numbered must be opened, if only to be reset. For a caller that must be able
//! to take back what is not written yet, that is too late.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use http_body::Frame;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Semaphore;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::{Bytes, http};
use tonic::transport::{Channel, Error};
use tower::Service;

/// Streams on one connection, however many the peer would take.
const MOST_STREAMS: usize = 1024;

/// How many calls a peer takes at once, and how many there are.
#[derive(Debug)]
pub(crate) struct Places {
    free: Semaphore,
    count: Mutex<Count>,
}

#[derive(Debug)]
struct Count {
    /// How many there are, free or not.
    places: usize,
    /// Of those in use, how many go when they are given back.
    too_many: usize,
}

impl Places {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            free: Semaphore::new(1),
            count: Mutex::new(Count {
                places: 1,
                too_many: 0,
            }),
        })
    }

    fn count(&self) -> MutexGuard<'_, Count> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection begins: one stream, until the peer has said how many it takes.
    fn begin(&self) {
        self.set(1);
    }

    /// The peer takes so many.
    fn set(&self, most: usize) {
        let most = most.min(MOST_STREAMS);
        let mut count = self.count();
        if let Some(more) = most.checked_sub(count.places) {
            let kept = more.min(count.too_many);
            count.too_many -= kept;
            self.free.add_permits(more - kept);
        } else {
            let fewer = count.places - most;
            count.too_many += fewer - self.free.forget_permits(fewer);
        }
        count.places = most;
    }

    /// Waits for a place; those who wait have their turns in the order they came.
    async fn take(self: &Arc<Self>) -> Place {
        if let Ok(permit) = self.free.acquire().await {
            permit.forget(); // it is given back by hand, or not at all
        }
        Place(Arc::clone(self))
    }
}

/// A place in use.
#[derive(Debug)]
struct Place(Arc<Places>);

impl Drop for Place {
    fn drop(&mut self) {
        let mut count = self.0.count();
        match count.too_many.checked_sub(1) {
            Some(fewer) => count.too_many = fewer,
            None => self.0.free.add_permits(1),
        }
    }
}

/// A channel whose calls wait for their turn before anything of them is written.
#[derive(Clone, Debug)]
pub struct TurnChannel {
    pub(crate) channel: Channel,
    /// Without: calls do not wait here.
    pub(crate) places: Option<Arc<Places>>,
}

impl TurnChannel {
    /// The same, with calls that wait in the HTTP/2 client: for tests that want to see what is wrong with that.
    pub fn without_turns(self) -> Self {
        Self {
            places: None,
            ..self
        }
    }
}

impl Service<http::Request<Body>> for TurnChannel {
    type Response = http::Response<Body>;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Error>> + Send>>;

    /// Always: a call waits in its own future, which can be dropped.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let Self {
            mut channel,
            places,
        } = self.clone();
        Box::pin(async move {
            let place = match &places {
                Some(places) => Some(places.take().await),
                None => None,
            };
            std::future::poll_fn(|context| channel.poll_ready(context)).await?;
            let answer = channel.call(request).await?;
            Ok(answer.map(|body| {
                Body::new(PlacedBody {
                    body,
                    _place: place,
                })
            }))
        })
    }
}

/// The body of an answer: its stream is in use until it was read, or is dropped.
struct PlacedBody {
    body: Body,
    _place: Option<Place>,
}

impl http_body::Body for PlacedBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
}

/// A connection on which the peer's SETTINGS are overheard.
pub(crate) struct Overheard<S> {
    stream: S,
    frames: Frames,
    places: Arc<Places>,
}

impl<S> Overheard<S> {
    pub(crate) fn new(stream: S, places: Arc<Places>) -> Self {
        places.begin();
        Self {
            stream,
            frames: Frames::default(),
            places,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Overheard<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, into);
        if let Some(most) = self.frames.read(&into.filled()[before..]) {
            self.places.set(most);
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Overheard<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// Frames as they arrive, of which only SETTINGS are looked at (RFC 9113, 4.1 and 6.5).
#[derive(Debug, Default)]
struct Frames {
    head: [u8; HEAD],
    /// Bytes of the head that have arrived.
    heard: usize,
    /// Bytes of the payload that have not.
    missing: usize,
    is_settings: bool,
    setting: [u8; SETTING],
    heard_of_setting: usize,
}

/// Length, type, flags, stream.
const HEAD: usize = 9;
const SETTINGS: u8 = 4;
/// The flag of SETTINGS that answers ours and says nothing itself.
const ACK: u8 = 1;
/// An identifier and a value.
const SETTING: usize = 6;
const MAX_CONCURRENT_STREAMS: u16 = 3;

impl Frames {
    /// More bytes; answers with how many streams the peer takes, if they say so. Of several words the last
    /// counts. SETTINGS without that number leave it as large as may be.
    fn read(&mut self, mut bytes: &[u8]) -> Option<usize> {
        let mut said = None;
        while !bytes.is_empty() {
            if self.missing == 0 {
                let (part, rest) = bytes.split_at((HEAD - self.heard).min(bytes.len()));
                self.head[self.heard..][..part.len()].copy_from_slice(part);
                (self.heard, bytes) = (self.heard + part.len(), rest);
                if self.heard < HEAD {
                    break;
                }
                let [high, middle, low, kind, flags, ..] = self.head;
                self.missing = u32::from_be_bytes([0, high, middle, low]) as usize;
                self.is_settings = kind == SETTINGS && flags & ACK == 0;
                (self.heard, self.heard_of_setting) = (0, 0);
                if self.is_settings {
                    said = said.or(Some(MOST_STREAMS));
                }
                continue;
            }
            let (part, rest) = bytes.split_at(self.missing.min(bytes.len()));
            (self.missing, bytes) = (self.missing - part.len(), rest);
            if self.is_settings {
                said = self.settings(part).or(said);
            }
        }
        said
    }

    fn settings(&mut self, payload: &[u8]) -> Option<usize> {
        let mut said = None;
        for byte in payload {
            self.setting[self.heard_of_setting] = *byte;
            self.heard_of_setting = (self.heard_of_setting + 1) % SETTING;
            let [id @ .., a, b, c, d] = self.setting;
            if self.heard_of_setting == 0 && u16::from_be_bytes(id) == MAX_CONCURRENT_STREAMS {
                let most = u32::from_be_bytes([a, b, c, d]);
                said = Some(usize::try_from(most).unwrap_or(MOST_STREAMS));
            }
        }
        said
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        [&length[1..], &[kind, flags, 0, 0, 0, 0], payload].concat()
    }

    fn setting(id: u16, value: u32) -> Vec<u8> {
        [&id.to_be_bytes()[..], &value.to_be_bytes()[..]].concat()
    }

    /// However the bytes are cut, and whatever else is said.
    #[test]
    fn the_peers_number_is_overheard() {
        let settings = [setting(1, 4096), setting(3, 7), setting(4, 3)].concat();
        let bytes = [
            frame(SETTINGS, 0, &settings),
            frame(SETTINGS, ACK, &[]),
            frame(0, 0, &setting(3, 99)),
            frame(6, 0, &[0; 8]),
        ]
        .concat();
        for cut in 1..bytes.len() {
            let mut frames = Frames::default();
            let said = bytes.chunks(cut).filter_map(|part| frames.read(part));
            assert_eq!(said.last(), Some(7), "pieces of {cut}");
        }
        let mut frames = Frames::default();
        assert_eq!(frames.read(&frame(SETTINGS, 0, &[])), Some(MOST_STREAMS));
        assert_eq!(frames.read(&frame(0, 0, &setting(3, 99))), None);
        let later = frame(SETTINGS, 0, &setting(3, u32::MAX));
        assert_eq!(frames.read(&later), Some(u32::MAX as usize));
    }

    fn free(places: &Places) -> usize {
        places.free.available_permits()
    }

    #[tokio::test]
    async fn there_are_as_many_places_as_the_peer_takes() {
        let places = Places::new();
        assert_eq!(free(&places), 1, "before it has said anything");
        places.set(3);
        let mut taken = vec![
            places.take().await,
            places.take().await,
            places.take().await,
        ];
        assert_eq!(free(&places), 0);
        places.set(1);
        taken.pop();
        taken.pop();
        assert_eq!(free(&places), 0, "one is in use, and one is all there is");
        places.set(2);
        assert_eq!(free(&places), 1);
        places.set(0);
        taken.pop();
        assert_eq!(free(&places), 0);
        places.set(usize::MAX);
        assert_eq!(free(&places), MOST_STREAMS);
    }

    /// Fewer and then more again, while all are in use: what was to go stays.
    #[tokio::test]
    async fn places_that_were_to_go_stay_if_the_peer_takes_more_again() {
        let places = Places::new();
        places.set(4);
        let taken = [
            places.take().await,
            places.take().await,
            places.take().await,
        ];
        places.begin();
        places.set(4);
        assert_eq!(free(&places), 1);
        drop(taken);
        assert_eq!(free(&places), 4);
    }

    #[tokio::test]
    async fn who_gives_up_waiting_leaves_no_place_taken() {
        let places = Places::new();
        let first = places.take().await;
        let waiting = tokio::time::timeout(std::time::Duration::from_millis(5), places.take());
        assert!(waiting.await.is_err());
        drop(first);
        assert_eq!(free(&places), 1);
    }
}
