//! The proxy: a provider that passes everything on, and does one thing wrong.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bigfleet_net::{Caller, Limits, Serving};
use bigfleet_wire::v1alpha1 as wire;
use tonic::transport::Channel;
use tonic::{Request, Response, Status};
use wire::capacity_provider_client::CapacityProviderClient;
use wire::capacity_provider_server::{CapacityProvider, CapacityProviderServer};
use wire::{Machine, MachineList, MachineState as State, TransitionAck};

use super::defects::{Defect, Plant};

const MOST_BYTES: usize = 256 << 20;

/// Which of the four mutations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Create,
    Configure,
    Drain,
    Delete,
}

impl Kind {
    pub(super) fn source(self) -> State {
        match self {
            Self::Create => State::Speculative,
            Self::Configure | Self::Delete => State::Idle,
            Self::Drain => State::Configured,
        }
    }

    pub(super) fn target(self) -> State {
        match self {
            Self::Create | Self::Drain => State::Idle,
            Self::Configure => State::Configured,
            Self::Delete => State::Speculative,
        }
    }
}

/// A mutation on its way to the provider.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    pub(super) kind: Kind,
    pub(super) machine: String,
    pub(super) shard: String,
    pub(super) epoch: i64,
    pub(super) sequence: i64,
    pub(super) cluster: String,
    pub(super) blob: Vec<u8>,
    pub(super) metadata: BTreeMap<String, String>,
    pub(super) grace: i64,
    /// The connection it came on.
    pub(super) port: u16,
    /// The machine before, if there is one.
    pub(super) before: Option<Machine>,
}

impl Ask {
    /// A mutation that carries nothing but its machine, its token and the connection it came on.
    fn bare(kind: Kind, machine: String, token: (String, i64, i64), port: u16) -> Self {
        let (shard, epoch, sequence) = token;
        Self {
            kind,
            machine,
            shard,
            epoch,
            sequence,
            cluster: String::new(),
            blob: Vec::new(),
            metadata: BTreeMap::new(),
            grace: 0,
            port,
            before: None,
        }
    }

    /// As if the caller had sent no token: the provider does not look at it.
    pub(super) fn without_token(&mut self) {
        self.shard = String::new();
        self.epoch = 0;
        self.sequence = 0;
    }

    pub(super) fn token(&self) -> (i64, i64) {
        (self.epoch, self.sequence)
    }

    pub(super) fn is_at(&self, state: State) -> bool {
        self.before.as_ref().is_some_and(|m| m.state() == state)
    }
}

/// What a defect remembers.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// The provider was started on a state that was there before.
    pub(super) reborn: bool,
    pub(super) count: u64,
    pub(super) marks: BTreeMap<String, (i64, i64)>,
    pub(super) names: BTreeMap<String, String>,
    pub(super) machines: BTreeMap<String, Machine>,
    pub(super) since: BTreeMap<String, Instant>,
}

impl Memory {
    pub(super) fn next(&mut self) -> u64 {
        self.count += 1;
        self.count
    }
}

/// A proxy that answers. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Proxy {
    server: Serving,
    state: Option<PathBuf>,
    defect: &'static Defect,
}

impl Proxy {
    pub(crate) async fn start(
        defect: &'static Defect,
        provider: Channel,
        state: Option<&Path>,
        reborn: bool,
    ) -> std::io::Result<Self> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let client = CapacityProviderClient::new(provider).max_decoding_message_size(MOST_BYTES);
        let memory = Memory {
            reborn,
            ..Memory::default()
        };
        let relay = Relay {
            client,
            defect,
            state: state.map(Path::to_owned),
            memory: Arc::new(Mutex::new(memory)),
        };
        let service = CapacityProviderServer::new(relay).max_decoding_message_size(MOST_BYTES);
        let router = Limits::PROVIDER.server().add_service(service);
        Ok(Self {
            server: bigfleet_net::serve(listener, None, router)?,
            state: state.map(Path::to_owned),
            defect,
        })
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.server.addr()
    }

    /// The provider was killed: a disk that had not written yet loses what was written last.
    pub(crate) fn killed(&self) {
        let loses = |plant: &Plant| matches!(plant, Plant::LosesLastWrite);
        if let Some(state) = self
            .state
            .as_ref()
            .filter(|_| self.defect.plants.iter().any(loses))
        {
            // Without a copy nothing was written yet.
            drop(std::fs::copy(copy_of(state), state));
        }
    }
}

fn copy_of(state: &Path) -> PathBuf {
    state.with_extension("before")
}

#[derive(Clone)]
struct Relay {
    client: CapacityProviderClient<Channel>,
    defect: &'static Defect,
    state: Option<PathBuf>,
    memory: Arc<Mutex<Memory>>,
}

impl Relay {
    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn show(&self, machine: &mut Machine) {
        for plant in self.defect.plants {
            if let Plant::Record(change) = plant {
                change(machine, &mut self.memory());
            }
        }
    }

    async fn mutate(&self, mut ask: Ask) -> Result<Response<TransitionAck>, Status> {
        let id = ask.machine.clone();
        let before = self.client.clone().get(wire::MachineRef { id }).await;
        ask.before = before.ok().map(Response::into_inner);
        for plant in self.defect.plants {
            match plant {
                Plant::Asked(change) => {
                    if let Some(refused) = change(&mut ask, &mut self.memory()) {
                        return Err(refused);
                    }
                }
                Plant::DeletesBound if ask.kind == Kind::Delete && ask.is_at(State::Configured) => {
                    self.unbind(&ask).await?;
                }
                Plant::LosesLastWrite => {
                    if let Some(state) = &self.state {
                        drop(std::fs::copy(state, copy_of(state)));
                    }
                }
                _ => {}
            }
        }
        let mut answer = self.forward(ask.clone()).await;
        for plant in self.defect.plants {
            if let Plant::Ack(change) = plant {
                answer = change(&ask, answer, &mut self.memory());
            }
        }
        let mut ack = answer?;
        if let Some(machine) = &mut ack.machine {
            self.show(machine);
        }
        Ok(Response::new(ack))
    }

    /// Takes the machine from its cluster, so that the Delete that follows is legal.
    async fn unbind(&self, ask: &Ask) -> Result<(), Status> {
        let drain = Ask {
            kind: Kind::Drain,
            shard: String::new(),
            ..ask.clone()
        };
        self.forward(drain).await?;
        let reference = wire::MachineRef {
            id: ask.machine.clone(),
        };
        for _ in 0..1000 {
            let machine = self.client.clone().get(reference.clone()).await?;
            if machine.into_inner().state() == State::Idle {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        Ok(())
    }

    async fn forward(&self, ask: Ask) -> Result<TransitionAck, Status> {
        let mut client = self.client.clone();
        let Ask {
            machine: machine_id,
            shard: shard_id,
            epoch: shard_epoch,
            sequence: sequence_number,
            ..
        } = ask;
        let answer = match ask.kind {
            Kind::Create => {
                client
                    .create(wire::CreateRequest {
                        machine_id,
                        shard_id,
                        shard_epoch,
                        sequence_number,
                        shard_metadata: ask.metadata,
                    })
                    .await
            }
            Kind::Configure => {
                client
                    .configure(wire::ConfigureRequest {
                        machine_id,
                        cluster_id: ask.cluster,
                        bootstrap_blob: ask.blob,
                        shard_id,
                        shard_epoch,
                        sequence_number,
                        shard_metadata: ask.metadata,
                    })
                    .await
            }
            Kind::Drain => {
                client
                    .drain(wire::DrainRequest {
                        machine_id,
                        grace_period_seconds: ask.grace,
                        shard_id,
                        shard_epoch,
                        sequence_number,
                    })
                    .await
            }
            Kind::Delete => {
                client
                    .delete(wire::DeleteRequest {
                        machine_id,
                        shard_id,
                        shard_epoch,
                        sequence_number,
                    })
                    .await
            }
        };
        answer.map(Response::into_inner)
    }
}

fn port<T>(request: &Request<T>) -> u16 {
    Caller::of(request).addr().map_or(0, |addr| addr.port())
}

#[tonic::async_trait]
impl CapacityProvider for Relay {
    async fn create(
        &self,
        request: Request<wire::CreateRequest>,
    ) -> Result<Response<TransitionAck>, Status> {
        let port = port(&request);
        let request = request.into_inner();
        let token = (
            request.shard_id,
            request.shard_epoch,
            request.sequence_number,
        );
        let bare = Ask::bare(Kind::Create, request.machine_id, token, port);
        self.mutate(Ask {
            metadata: request.shard_metadata,
            ..bare
        })
        .await
    }

    async fn configure(
        &self,
        request: Request<wire::ConfigureRequest>,
    ) -> Result<Response<TransitionAck>, Status> {
        let port = port(&request);
        let request = request.into_inner();
        let token = (
            request.shard_id,
            request.shard_epoch,
            request.sequence_number,
        );
        let bare = Ask::bare(Kind::Configure, request.machine_id, token, port);
        self.mutate(Ask {
            cluster: request.cluster_id,
            blob: request.bootstrap_blob,
            metadata: request.shard_metadata,
            ..bare
        })
        .await
    }

    async fn drain(
        &self,
        request: Request<wire::DrainRequest>,
    ) -> Result<Response<TransitionAck>, Status> {
        let port = port(&request);
        let request = request.into_inner();
        let token = (
            request.shard_id,
            request.shard_epoch,
            request.sequence_number,
        );
        let bare = Ask::bare(Kind::Drain, request.machine_id, token, port);
        self.mutate(Ask {
            grace: request.grace_period_seconds,
            ..bare
        })
        .await
    }

    async fn delete(
        &self,
        request: Request<wire::DeleteRequest>,
    ) -> Result<Response<TransitionAck>, Status> {
        let port = port(&request);
        let request = request.into_inner();
        let token = (
            request.shard_id,
            request.shard_epoch,
            request.sequence_number,
        );
        let bare = Ask::bare(Kind::Delete, request.machine_id, token, port);
        self.mutate(bare).await
    }

    async fn get(&self, request: Request<wire::MachineRef>) -> Result<Response<Machine>, Status> {
        let reference = request.into_inner();
        let id = reference.id.clone();
        let answer = self.client.clone().get(reference).await;
        let mut answer = answer.map(Response::into_inner);
        for plant in self.defect.plants {
            if let Plant::Got(change) = plant {
                answer = change(&id, answer, &mut self.memory());
            }
        }
        let mut machine = answer?;
        self.show(&mut machine);
        Ok(Response::new(machine))
    }

    async fn list(
        &self,
        request: Request<wire::ListFilter>,
    ) -> Result<Response<MachineList>, Status> {
        let asked = request.into_inner();
        let mut filter = asked.clone();
        for plant in self.defect.plants {
            if let Plant::Filter(change) = plant {
                change(&mut filter);
            }
        }
        let mut list = self.client.clone().list(filter).await?.into_inner();
        for machine in &mut list.machines {
            self.show(machine);
        }
        for plant in self.defect.plants {
            if let Plant::Listed(change) = plant {
                list = change(&asked, list, &mut self.memory())?;
            }
        }
        Ok(Response::new(list))
    }
}
