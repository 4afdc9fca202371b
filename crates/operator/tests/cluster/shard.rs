//! A shard from a script: a real gRPC server that records what it hears and says what it is told to say.

use bigfleet_wire::v1alpha1 as wire;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio_stream::wrappers::{TcpListenerStream, UnboundedReceiverStream};
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status, Streaming};
use wire::operator_message::Payload;
use wire::shard_message::Payload as Said;
use wire::shard_server::{Shard, ShardServer};

/// A loaded machine is no reason to fail.
pub(crate) const WITHIN: Duration = Duration::from_secs(60);

#[derive(Default)]
struct State {
    heard: Vec<Payload>,
    sessions: usize,
    voice: Option<mpsc::UnboundedSender<Result<wire::ShardMessage, Status>>>,
    /// What every resync names.
    machines: Vec<wire::NodeStateUpdate>,
}

#[derive(Clone)]
pub(crate) struct ScriptedShard {
    pub(crate) addr: SocketAddr,
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
                let count = i32::try_from(machines.len()).unwrap();
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
            let mut state = self.0.lock().unwrap();
            state.voice = Some(voice);
            state.sessions += 1;
        }
        let state = Arc::clone(&self.0);
        let mut incoming = request.into_inner();
        tokio::spawn(async move {
            while let Some(Ok(message)) = incoming.next().await {
                if let Some(payload) = message.payload {
                    let mut state = state.lock().unwrap();
                    state.answer(&payload);
                    state.heard.push(payload);
                }
            }
        });
        Ok(Response::new(Box::pin(UnboundedReceiverStream::new(said))))
    }
}

impl ScriptedShard {
    pub(crate) async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let state: Arc<Mutex<State>> = Arc::default();
        let server = ShardServer::new(Server(Arc::clone(&state)));
        tokio::spawn(
            tonic::transport::Server::builder()
                .add_service(server)
                .serve_with_incoming(TcpListenerStream::new(listener)),
        );
        Self { addr, state }
    }

    /// Says this in the session there is.
    pub(crate) fn say(&self, said: Said) {
        self.state.lock().unwrap().say(said);
    }

    /// A machine as it is from now on; said now, and by every resync until it is gone.
    pub(crate) fn machine(&self, update: wire::NodeStateUpdate) {
        let mut state = self.state.lock().unwrap();
        state
            .machines
            .retain(|it| it.machine_id != update.machine_id);
        let is_bound = update.state() != wire::MachineState::Idle;
        if is_bound {
            state.machines.push(update.clone());
        }
        state.say(Said::NodeStateUpdate(update));
    }

    pub(crate) fn sessions(&self) -> usize {
        self.state.lock().unwrap().sessions
    }

    pub(crate) fn heard(&self) -> Vec<Payload> {
        self.state.lock().unwrap().heard.clone()
    }

    /// Forgets what it heard so far.
    pub(crate) fn forget(&self) {
        self.state.lock().unwrap().heard.clear();
    }

    /// Waits for a frame like this.
    pub(crate) async fn hears<T>(&self, what: &str, find: impl Fn(&Payload) -> Option<T>) -> T {
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

    /// Waits for a report of this phase on this machine.
    pub(crate) async fn hears_drain(
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
