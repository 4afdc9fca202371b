//! Network: what is between the replicas. Each is told the address of a relay, which knows who calls whom.
//!
//! ```text
//! replica a ── PeerCall{from a, to b} ──▶ relay of b ─┬─ lost ─▶ a hears nothing
//!                                                     ├─ later, after others ─▶ b ─▶ the answer is lost
//!                                                     └─ twice ─▶ b
//! ```
//!
//! Each direction is its own: a may reach b while b does not reach a. A call that its caller has given up arrives all the same.

use crate::group::{channel, own};
use bigfleet_net::{Limits, Serving, listen, serve};
use bigfleet_seeded::Prng;
use bigfleet_wire::v1alpha1::coordinator_peer_client::CoordinatorPeerClient;
use bigfleet_wire::v1alpha1::coordinator_peer_server::{CoordinatorPeer, CoordinatorPeerServer};
use bigfleet_wire::v1alpha1::{PeerAnswer, PeerCall};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tonic::{Request, Response, Status};

/// What is wrong between replicas, by their directories.
#[derive(Debug, Default)]
struct Weather {
    /// Calls from the one to the other do not arrive.
    lost: BTreeSet<(u64, u64)>,
    /// They arrive, and the answer does not.
    unanswered: BTreeSet<(u64, u64)>,
    /// Every call takes up to this long, so that later ones overtake it.
    delay: Duration,
    /// So many in a hundred arrive twice.
    repeated_percent: usize,
    calls: u64,
    overtaken: u64,
}

/// All links.
#[derive(Clone, Debug)]
pub(crate) struct Network {
    weather: Arc<Mutex<Weather>>,
    draws: Arc<Mutex<Prng>>,
}

impl Network {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            weather: Arc::default(),
            draws: Arc::new(Mutex::new(Prng::new(seed))),
        }
    }

    /// A relay before a replica: where others are told it is.
    pub(crate) async fn relay(&self, to: SocketAddr) -> Relay {
        let addr = own();
        let service = RelayService {
            network: self.clone(),
            to,
            arrived: Arc::default(),
        };
        let most = bigfleet_net::MAX_MESSAGE_BYTES;
        let server = CoordinatorPeerServer::new(service).max_decoding_message_size(most);
        let router = Limits::PROVIDER.server().add_service(server);
        let listener = listen(&addr.to_string()).await.unwrap();
        Relay {
            addr,
            _serving: serve(listener, None, router).unwrap(),
        }
    }

    /// Nothing from the ones reaches the others.
    pub(crate) fn lose(&self, from: &[u64], to: &[u64]) {
        let pairs = from
            .iter()
            .flat_map(|one| to.iter().map(|other| (*one, *other)));
        self.weather.lock().unwrap().lost.extend(pairs);
    }

    /// No answer to the ones comes back from the others.
    pub(crate) fn silence(&self, from: &[u64], to: &[u64]) {
        let pairs = from
            .iter()
            .flat_map(|one| to.iter().map(|other| (*one, *other)));
        self.weather.lock().unwrap().unanswered.extend(pairs);
    }

    /// Calls overtake one another, and some come twice.
    pub(crate) fn shake(&self, delay: Duration, repeated_percent: usize) {
        let mut weather = self.weather.lock().unwrap();
        weather.delay = delay;
        weather.repeated_percent = repeated_percent;
    }

    /// All is well.
    pub(crate) fn heal(&self) {
        let mut weather = self.weather.lock().unwrap();
        let (calls, overtaken) = (weather.calls, weather.overtaken);
        *weather = Weather {
            calls,
            overtaken,
            ..Weather::default()
        };
    }

    /// Calls so far, and how many arrived after one that was sent later.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let weather = self.weather.lock().unwrap();
        (weather.calls, weather.overtaken)
    }
}

pub(crate) struct Relay {
    pub(crate) addr: SocketAddr,
    _serving: Serving,
}

/// What has a caller's later call arrived already?
type Arrived = Arc<Mutex<BTreeMap<u64, u64>>>;

#[derive(Clone)]
struct RelayService {
    network: Network,
    to: SocketAddr,
    arrived: Arrived,
}

impl RelayService {
    /// Delivers a call; its caller may have given up by then.
    async fn deliver(
        self,
        call: PeerCall,
        sent: u64,
        delay: Duration,
    ) -> Result<PeerAnswer, Status> {
        tokio::time::sleep(delay).await;
        {
            let mut arrived = self.arrived.lock().unwrap();
            let last = arrived.entry(call.from).or_default();
            if sent < *last {
                self.network.weather.lock().unwrap().overtaken += 1;
            }
            *last = sent.max(*last);
        }
        let most = bigfleet_net::MAX_MESSAGE_BYTES;
        let mut client = CoordinatorPeerClient::new(channel(self.to));
        client = client
            .max_decoding_message_size(most)
            .max_encoding_message_size(most);
        client.exchange(call).await.map(Response::into_inner)
    }
}

#[tonic::async_trait]
impl CoordinatorPeer for RelayService {
    async fn exchange(&self, request: Request<PeerCall>) -> Result<Response<PeerAnswer>, Status> {
        let call = request.into_inner();
        let link = (call.from, call.to);
        let (is_lost, sent, delay, is_repeated) = {
            let mut weather = self.network.weather.lock().unwrap();
            let mut draws = self.network.draws.lock().unwrap();
            weather.calls += 1;
            let delay = weather.delay.mul_f64(draws.unit());
            let is_repeated = draws.percent(weather.repeated_percent);
            (
                weather.lost.contains(&link),
                weather.calls,
                delay,
                is_repeated,
            )
        };
        if is_lost {
            // No word of it: its caller waits until it gives up.
            return std::future::pending().await;
        }
        if is_repeated {
            let again = self.clone().deliver(call.clone(), sent, delay * 3);
            drop(tokio::spawn(again));
        }
        // In a task of its own: a caller that gives up ends its call here, and not on the other side.
        let delivered = tokio::spawn(self.clone().deliver(call, sent, delay));
        let answer = delivered
            .await
            .map_err(|why| Status::internal(why.to_string()))?;
        if self
            .network
            .weather
            .lock()
            .unwrap()
            .unanswered
            .contains(&link)
        {
            return std::future::pending().await;
        }
        answer.map(Response::new)
    }
}
