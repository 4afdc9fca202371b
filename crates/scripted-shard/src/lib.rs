//! A shard from a script: a real gRPC server that records what it hears, and when, and says what it is told to say.
//!
//! ```text
//! operator ══ Session ══▶ ScriptedShard      Hello: a counted resync      roll-up: accepted      all else: what a test says
//! ```
//!
//! A shard needs a provider and decides for itself; whatever measures or tries an operator takes one from here that does neither.

use bigfleet_wire::v1alpha1 as wire;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio_stream::wrappers::{TcpListenerStream, UnboundedReceiverStream};
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status, Streaming};
use wire::operator_message::Payload;
use wire::shard_message::Payload as Said;
use wire::shard_server::{Shard, ShardServer};

/// A loaded machine is no reason to fail.
pub const WITHIN: Duration = Duration::from_secs(60);

#[derive(Default)]
struct State {
    heard: Vec<(Instant, Payload)>,
    sessions: usize,
    voice: Option<mpsc::UnboundedSender<Result<wire::ShardMessage, Status>>>,
    /// What every resync names.
    machines: Vec<wire::NodeStateUpdate>,
}

/// A shard that has no will of its own.
#[derive(Clone)]
pub struct ScriptedShard {
    /// Where it listens.
    pub addr: SocketAddr,
    state: Arc<Mutex<State>>,
}

struct Server(Arc<Mutex<State>>);

fn ack(echo: &str) -> wire::Acknowledgement {
    wire::Acknowledgement {
        echo: echo.to_owned(),
        ..wire::Acknowledgement::default()
    }
}

impl State {
    fn say(&mut self, said: Said) {
        if let Some(voice) = &self.voice {
            drop(voice.send(Ok(said.into())));
        }
    }

    /// Hello is answered with a counted resync, a roll-up with a word of acceptance.
    fn answer(&mut self, payload: &Payload) {
        match payload {
            Payload::Hello(hello) => {
                self.say(Said::Ack(wire::Acknowledgement {
                    features: hello.features.clone(),
                    ..ack("hello")
                }));
                self.say(Said::Ack(ack("node-state-resync-begin")));
                let machines = self.machines.clone();
                let count = i32::try_from(machines.len()).unwrap_or(i32::MAX);
                for machine in machines {
                    self.say(Said::NodeStateUpdate(machine));
                }
                self.say(Said::Ack(wire::Acknowledgement {
                    resync_count: count,
                    ..ack("node-state-resync")
                }));
            }
            Payload::Rollup(rollup) => self.say(Said::Ack(wire::Acknowledgement {
                rollup_id: rollup.rollup_id.clone(),
                disposition: wire::acknowledgement::Disposition::Accepted.into(),
                ..ack("rollup")
            })),
            _ => {}
        }
    }
}

#[tonic::async_trait]
impl Shard for Server {
    type SessionStream = Pin<Box<dyn Stream<Item = Result<wire::ShardMessage, Status>> + Send>>;

    async fn session(
        &self,
        request: Request<Streaming<wire::OperatorMessage>>,
    ) -> Result<Response<Self::SessionStream>, Status> {
        let (voice, said) = mpsc::unbounded_channel();
        {
            let mut state = lock(&self.0);
            state.voice = Some(voice);
            state.sessions += 1;
        }
        let state = Arc::clone(&self.0);
        let mut incoming = request.into_inner();
        tokio::spawn(async move {
            while let Some(Ok(message)) = incoming.next().await {
                if let Some(payload) = message.payload {
                    let mut state = lock(&state);
                    state.answer(&payload);
                    state.heard.push((Instant::now(), payload));
                }
            }
        });
        Ok(Response::new(Box::pin(UnboundedReceiverStream::new(said))))
    }
}

impl ScriptedShard {
    /// One that listens on a free port of this host.
    pub async fn start() -> std::io::Result<Self> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let addr = listener.local_addr()?;
        let state: Arc<Mutex<State>> = Arc::default();
        let server = ShardServer::new(Server(Arc::clone(&state)));
        tokio::spawn(
            tonic::transport::Server::builder()
                .add_service(server)
                .serve_with_incoming(TcpListenerStream::new(listener)),
        );
        Ok(Self { addr, state })
    }

    /// Says this in the session there is.
    pub fn say(&self, said: Said) {
        lock(&self.state).say(said);
    }

    /// A machine as it is from now on; said now, and by every resync until it is gone.
    pub fn machine(&self, update: wire::NodeStateUpdate) {
        let mut state = lock(&self.state);
        state
            .machines
            .retain(|it| it.machine_id != update.machine_id);
        let is_bound = update.state() != wire::MachineState::Idle;
        if is_bound {
            state.machines.push(update.clone());
        }
        state.say(Said::NodeStateUpdate(update));
    }

    /// How many sessions were opened so far.
    pub fn sessions(&self) -> usize {
        lock(&self.state).sessions
    }

    /// Everything it heard.
    pub fn heard(&self) -> Vec<Payload> {
        let state = lock(&self.state);
        state.heard.iter().map(|(_, heard)| heard.clone()).collect()
    }

    /// The first thing it heard that is like this, and when; `None` if there was none yet.
    pub fn first<T>(&self, find: impl Fn(&Payload) -> Option<T>) -> Option<(Instant, T)> {
        let state = lock(&self.state);
        let mut heard = state.heard.iter();
        heard.find_map(|(at, heard)| Some((*at, find(heard)?)))
    }

    /// Forgets what it heard so far.
    pub fn forget(&self) {
        lock(&self.state).heard.clear();
    }

    /// Waits for a frame like this.
    ///
    /// # Panics
    ///
    /// If none comes: whoever tries an operator has nothing to go on with.
    pub async fn hears<T>(&self, what: &str, find: impl Fn(&Payload) -> Option<T>) -> T {
        let until = Instant::now() + WITHIN;
        loop {
            let heard = self.heard();
            if let Some(found) = heard.iter().find_map(&find) {
                return found;
            }
            assert!(
                Instant::now() < until,
                "never heard: {what}; but {heard:#?}"
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits for a report of this phase on this machine; panics as [`Self::hears`] does.
    pub async fn hears_drain(
        &self,
        machine: &str,
        phase: wire::drain_report::Phase,
    ) -> wire::DrainReport {
        let what = format!("{phase:?} of {machine}");
        let find = |payload: &Payload| match payload {
            Payload::DrainReport(report)
                if report.machine_id == machine && report.phase() == phase =>
            {
                Some(report.clone())
            }
            _ => None,
        };
        self.hears(&what, find).await
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
