//! Calls: how many a caller has at once (SE-9).
//!
//! ```text
//! call ─▶ a place, of 256 for an identity and 16,384 for all ──┬─ service ─▶ answer, to its last byte ─▶ free
//!                                                              └─ none: RESOURCE_EXHAUSTED
//! ```
//!
//! A call that says nothing takes some kilobytes, and a caller may have hundreds of connections with a hundred calls
//! each. Whatever is called counts: sessions that never say Hello, a watch of the health, an answer that is not
//! read. Without a certificate a caller is its connection.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bigfleet_net::Caller;
use http_body::{Frame, SizeHint};
use prost::bytes::Bytes;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service, http};
use tonic::server::NamedService;

/// Of one identity, or of one connection without.
const MOST_EACH: usize = 256;
/// Of all callers.
const MOST_IN_ALL: usize = 16_384;

/// Who makes a call.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum CallerKey {
    Identity(String),
    Connection(Option<SocketAddr>),
}

impl CallerKey {
    fn of(caller: &Caller) -> Self {
        match caller.identity() {
            Some(identity) => Self::Identity(identity.to_string()),
            None => Self::Connection(caller.addr()),
        }
    }
}

/// The calls there are.
#[derive(Clone, Debug)]
pub(crate) struct Calls {
    most_each: usize,
    under_way: Arc<Mutex<UnderWay>>,
}

#[derive(Debug, Default)]
struct UnderWay {
    in_all: usize,
    by_caller: BTreeMap<CallerKey, usize>,
}

impl Default for Calls {
    fn default() -> Self {
        Self::of(MOST_EACH)
    }
}

impl Calls {
    fn of(most_each: usize) -> Self {
        Self {
            most_each,
            under_way: Arc::default(),
        }
    }

    fn under_way(&self) -> MutexGuard<'_, UnderWay> {
        self.under_way
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// A service whose calls count.
    pub(crate) fn count<S>(&self, service: S) -> Counted<S> {
        let calls = self.clone();
        Counted { calls, service }
    }

    fn begin(&self, caller: &Caller) -> Result<Call, Status> {
        let key = CallerKey::of(caller);
        let mut under_way = self.under_way();
        let own = under_way.by_caller.get(&key).copied().unwrap_or(0);
        for (most, now, whose) in [
            (self.most_each, own, "this caller"),
            (MOST_IN_ALL, under_way.in_all, "all callers"),
        ] {
            if most <= now {
                return Err(Status::resource_exhausted(format!(
                    "{now} calls of {whose} are under way, of {most} at once (SE-9)"
                )));
            }
        }
        under_way.in_all += 1;
        under_way.by_caller.insert(key.clone(), own + 1);
        let calls = self.clone();
        Ok(Call { calls, key })
    }
}

/// One call, until it is dropped.
#[derive(Debug)]
struct Call {
    calls: Calls,
    key: CallerKey,
}

impl Drop for Call {
    fn drop(&mut self) {
        let mut under_way = self.calls.under_way();
        under_way.in_all -= 1;
        if let Some(own) = under_way.by_caller.get_mut(&self.key) {
            *own -= 1;
            if *own == 0 {
                under_way.by_caller.remove(&self.key);
            }
        }
    }
}

/// A service whose calls count.
#[derive(Clone, Debug)]
pub(crate) struct Counted<S> {
    calls: Calls,
    service: S,
}

impl<S: NamedService> NamedService for Counted<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<http::Request<Body>> for Counted<S>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.service.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let caller = request.extensions().get::<Caller>();
        let call = self.calls.begin(&caller.cloned().unwrap_or_default());
        match call {
            Ok(call) => {
                let answered = self.service.call(request);
                Box::pin(async move {
                    let answer = answered.await?;
                    Ok(answer.map(|body| Body::new(CountedBody { body, _call: call })))
                })
            }
            Err(refused) => Box::pin(async move { Ok(refused.into_http()) }),
        }
    }
}

/// The body of an answer: its call counts until it was written, or is dropped.
struct CountedBody {
    body: Body,
    _call: Call,
}

impl http_body::Body for CountedBody {
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

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bigfleet_net::Identity;

    fn reader() -> Caller {
        Caller::verified(None, Ok(Identity::ReadOnly))
    }

    fn connection(port: u16) -> Caller {
        Caller::plaintext(Some(([127, 0, 0, 1], port).into()))
    }

    /// One identity has so many, however many connections it makes them on; without a bound it has all it wants.
    #[test]
    fn a_caller_has_so_many_calls_at_once() {
        let begun = [MOST_EACH, usize::MAX].map(|most| {
            let calls = Calls::of(most);
            let begun: Vec<Call> = (0..1000)
                .map_while(|_| calls.begin(&reader()).ok())
                .collect();
            begun.len()
        });
        assert_eq!(begun, [256, 1000]);
        let calls = Calls::default();
        let mut held: Vec<Call> = (0..MOST_EACH)
            .map(|_| calls.begin(&reader()).unwrap())
            .collect();
        let refused = calls.begin(&reader()).unwrap_err();
        assert_eq!(refused.code(), tonic::Code::ResourceExhausted, "{refused}");
        calls.begin(&connection(1)).unwrap();
        held.pop();
        drop(calls.begin(&reader()).unwrap());
        held.clear();
        let under_way = calls.under_way();
        assert!(under_way.in_all == 0 && under_way.by_caller.is_empty());
    }

    #[test]
    fn all_callers_together_have_so_many() {
        let calls = Calls::default();
        let callers = (0..u16::MAX).flat_map(|port| (0..100).map(move |_| connection(port)));
        let held: Vec<Call> = callers.map_while(|one| calls.begin(&one).ok()).collect();
        assert_eq!(held.len(), MOST_IN_ALL);
    }

    /// A body that never comes to its end.
    struct Endless;

    impl http_body::Body for Endless {
        type Data = Bytes;
        type Error = Status;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
            Poll::Pending
        }
    }

    /// Answers at once, and never to the end.
    struct Watched;

    impl Service<http::Request<Body>> for Watched {
        type Response = http::Response<Body>;
        type Error = Infallible;
        type Future = std::future::Ready<Result<Self::Response, Infallible>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, _: http::Request<Body>) -> Self::Future {
            std::future::ready(Ok(http::Response::new(Body::new(Endless))))
        }
    }

    /// It counts until its answer was written or is given up, and not only until there is one.
    #[tokio::test]
    async fn a_call_counts_until_its_answer_is_gone() {
        let calls = Calls::default();
        let mut counted = calls.count(Watched);
        let mut request = http::Request::new(Body::empty());
        request.extensions_mut().insert(reader());
        let answer = counted.call(request).await.unwrap();
        assert_eq!(calls.under_way().in_all, 1);
        drop(answer);
        assert_eq!(calls.under_way().in_all, 0);
    }
}
