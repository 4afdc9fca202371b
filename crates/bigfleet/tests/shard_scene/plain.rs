//! A provider that is not ours: a server of the public contract and of nothing else.
//!
//! ```text
//! Speculative ─ Create ─▶ Creating ─▶ Idle ─ Configure ─▶ Configuring ─▶ Configured
//!      ▲                                ├─── Delete ◀───────── Drain ─┐       │
//!      └──────────── Deleting ◀─────────┘  Idle ◀──── Draining ◀──────┴───────┘
//! ```
//!
//! Written from the contract alone (wire 6.9, 6.10, 6.12, 6.13). It sets no field of our own numbers and
//! reads none: every answer to a List is everything there is, whatever page was asked for, and has no
//! revision. It answers when it is done, or at once and is done two reads later.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bigfleet_net::{Limits, Serving, listen, serve};
use bigfleet_wire::v1alpha1 as wire;
use tonic::{Request, Response, Status};
use wire::MachineState::{
    self, Configured, Configuring, Creating, Deleting, Draining, Idle, Speculative,
};
use wire::capacity_provider_server::{CapacityProvider, CapacityProviderServer};

use super::ledger::{Answer, CallKind};

/// When a mutation is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answers {
    /// When it is done.
    Done,
    /// At once; it is done two reads later.
    Accepted,
}

/// The machines, which outlive the server.
#[derive(Clone)]
pub(crate) struct Plain {
    answers: Answers,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    machines: BTreeMap<String, Slot>,
    operations: u64,
    /// Every operation that was begun, in order.
    begun: Vec<(CallKind, String)>,
}

struct Slot {
    machine: wire::Machine,
    fences: BTreeMap<String, (i64, i64)>,
    recorded: BTreeMap<CallKind, String>,
    /// Reads until it is done, and what it is then.
    due: Option<(u32, MachineState)>,
}

/// The server at work.
pub(crate) struct Served {
    pub(crate) addr: SocketAddr,
    server: Serving,
}

impl Served {
    /// Hangs up on everybody.
    pub(crate) async fn stop(self) {
        self.server.stop(Duration::from_millis(100)).await;
    }
}

impl Plain {
    /// So many slots of four cpus.
    pub(crate) fn new(answers: Answers, slots: usize) -> Self {
        let machine = |number: usize| wire::Machine {
            id: format!("plain-{number}"),
            state: Speculative.into(),
            instance_type: "m4".to_owned(),
            zone: "z".to_owned(),
            capacity_type: wire::CapacityType::OnDemand.into(),
            price_per_hour: 0.25,
            resources: Some(wire::Resources {
                resources: BTreeMap::from([("cpu".to_owned(), "4".to_owned())]),
            }),
            ..wire::Machine::default()
        };
        let slot = |machine: wire::Machine| Slot {
            machine,
            fences: BTreeMap::new(),
            recorded: BTreeMap::new(),
            due: None,
        };
        let machines = (0..slots).map(machine);
        let machines = machines.map(|machine| (machine.id.clone(), slot(machine)));
        let state = State {
            machines: machines.collect(),
            ..State::default()
        };
        Self {
            answers,
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Serves at an address; port 0 for any.
    pub(crate) async fn serve(&self, addr: SocketAddr) -> Served {
        let service = CapacityProviderServer::new(self.clone());
        let router = Limits::PROVIDER.server().add_service(service);
        let listener = listen(&addr.to_string()).await.unwrap();
        let server = serve(listener, None, router).unwrap();
        let addr = server.addr();
        Served { addr, server }
    }

    /// How many operations of a kind were begun.
    pub(crate) fn begun(&self, kind: CallKind) -> usize {
        let state = self.state.lock().unwrap();
        state.begun.iter().filter(|(one, _)| *one == kind).count()
    }

    fn mutate(
        &self,
        kind: CallKind,
        id: &str,
        (shard, epoch, sequence): (&str, i64, i64),
        change: impl FnOnce(&mut wire::Machine),
    ) -> Answer {
        let mut state = self.state.lock().unwrap();
        let state = &mut *state;
        if id.is_empty() {
            return Err(Status::invalid_argument("machine_id is empty"));
        }
        let unknown = || Status::not_found(format!("no machine {id}"));
        let slot = state.machines.get_mut(id).ok_or_else(unknown)?;
        let token = (epoch, sequence);
        let fence = slot.fences.entry(shard.to_owned()).or_insert((0, 0));
        if token <= *fence {
            return Err(Status::failed_precondition("an older token"));
        }
        *fence = token;
        let (source, transitional, target) = match kind {
            CallKind::Create => (Speculative, Creating, Idle),
            CallKind::Configure => (Idle, Configuring, Configured),
            CallKind::Drain => (Configured, Draining, Idle),
            CallKind::Delete => (Idle, Deleting, Speculative),
        };
        let there = slot.machine.state();
        let again = slot
            .recorded
            .get(&kind)
            .filter(|_| [transitional, target].contains(&there));
        if let Some(operation) = again {
            return Ok(ack(operation, &slot.machine));
        }
        if there != source {
            let text = format!("{kind:?} of a machine in {}", there.as_str_name());
            return Err(Status::internal(text));
        }
        state.operations += 1;
        let operation = format!("operation-{}", state.operations);
        state.begun.push((kind, id.to_owned()));
        slot.recorded.remove(&opposite(kind));
        slot.recorded.insert(kind, operation.clone());
        change(&mut slot.machine);
        become_state(&mut slot.machine, transitional);
        match self.answers {
            Answers::Done => become_state(&mut slot.machine, target),
            Answers::Accepted => slot.due = Some((2, target)),
        }
        Ok(ack(&operation, &slot.machine))
    }
}

/// What an operation of this kind makes possible anew.
fn opposite(kind: CallKind) -> CallKind {
    match kind {
        CallKind::Create => CallKind::Delete,
        CallKind::Configure => CallKind::Drain,
        CallKind::Drain => CallKind::Configure,
        CallKind::Delete => CallKind::Create,
    }
}

fn ack(operation: &str, machine: &wire::Machine) -> Response<wire::TransitionAck> {
    Response::new(wire::TransitionAck {
        operation_id: operation.to_owned(),
        machine: Some(machine.clone()),
        ..wire::TransitionAck::default()
    })
}

fn become_state(machine: &mut wire::Machine, state: MachineState) {
    machine.set_state(state);
    match state {
        Idle => {
            machine.host = Some(wire::HostRef {
                provider: "plain".to_owned(),
                r#ref: format!("host-of-{}", machine.id),
            });
            machine.cluster.clear();
            machine.shard_metadata.clear();
        }
        Speculative => machine.host = None,
        _ => {}
    }
}

/// A read brings what is under way a step further.
fn read(slot: &mut Slot) -> wire::Machine {
    slot.due = match slot.due.take() {
        Some((1, target)) => {
            become_state(&mut slot.machine, target);
            None
        }
        Some((reads, target)) => Some((reads - 1, target)),
        None => None,
    };
    slot.machine.clone()
}

/// Who calls, and how far they have come: every mutation carries it.
macro_rules! token {
    ($asked:ident) => {
        (
            $asked.shard_id.as_str(),
            $asked.shard_epoch,
            $asked.sequence_number,
        )
    };
}

#[tonic::async_trait]
impl CapacityProvider for Plain {
    async fn create(&self, request: Request<wire::CreateRequest>) -> Answer {
        let asked = request.into_inner();
        self.mutate(CallKind::Create, &asked.machine_id, token!(asked), |_| ())
    }

    async fn configure(&self, request: Request<wire::ConfigureRequest>) -> Answer {
        let asked = request.into_inner();
        if asked.bootstrap_blob.is_empty() {
            return Err(Status::invalid_argument("bootstrap_blob is empty"));
        }
        self.mutate(
            CallKind::Configure,
            &asked.machine_id,
            token!(asked),
            |machine| {
                machine.cluster = asked.cluster_id;
                machine.shard_metadata = asked.shard_metadata;
            },
        )
    }

    async fn drain(&self, request: Request<wire::DrainRequest>) -> Answer {
        let asked = request.into_inner();
        self.mutate(CallKind::Drain, &asked.machine_id, token!(asked), |_| ())
    }

    async fn delete(&self, request: Request<wire::DeleteRequest>) -> Answer {
        let asked = request.into_inner();
        self.mutate(CallKind::Delete, &asked.machine_id, token!(asked), |_| ())
    }

    async fn get(
        &self,
        request: Request<wire::MachineRef>,
    ) -> Result<Response<wire::Machine>, Status> {
        let id = request.into_inner().id;
        let mut state = self.state.lock().unwrap();
        let slot = state.machines.get_mut(&id);
        let slot = slot.ok_or_else(|| Status::not_found(format!("no machine {id}")))?;
        Ok(Response::new(read(slot)))
    }

    async fn list(
        &self,
        _: Request<wire::ListFilter>,
    ) -> Result<Response<wire::MachineList>, Status> {
        let mut state = self.state.lock().unwrap();
        let machines = state.machines.values_mut().map(read).collect();
        Ok(Response::new(wire::MachineList {
            machines,
            ..wire::MachineList::default()
        }))
    }
}
