//! The plainest provider the contract allows, written from its text alone and without our kit.
//!
//! Where the contract leaves a choice it chooses what ours do not: ids that count, cursors that are decimal
//! numbers, pages that end at head, a Configure for another cluster that is a retry, a negative grace that
//! means now, a wrong state that is ABORTED, one lock, the whole state written at every change. And it ends
//! with status 2 when it is given a flag it does not know.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bigfleet_wire::v1alpha1 as wire;
use prost::Message;
use tonic::transport::Server;
use tonic::transport::server::Router;
use tonic::{Request, Response, Status};
use wire::capacity_provider_server::{CapacityProvider, CapacityProviderServer};
use wire::{CapacityType, HostRef, Machine, MachineList, MachineState as State, TransitionAck};

/// What it was started with.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flags {
    addr: String,
    label: String,
    seeds: usize,
    state: Option<PathBuf>,
    /// Where it listens for whoever reads metrics; without that it ends.
    metrics: Option<String>,
    /// Settles within the call, gives nothing back and has no cursors: all of it is optional.
    bare: bool,
    /// Has no machine at all.
    empty: bool,
    /// Refuses every mutation.
    refuses: bool,
    /// Ends by itself after so many mutations.
    dies_after: Option<usize>,
}

impl Flags {
    /// The boot contract, and the ways in which this one can be told to misbehave.
    pub(crate) fn parse(args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut flags = Self::default();
        for arg in args {
            let (name, value) = arg.split_once('=').unwrap_or((&arg, ""));
            let number = || value.parse().map_err(|_| format!("{arg}: no number"));
            match name {
                "--addr" => flags.addr = value.to_owned(),
                "--provider" => flags.label = value.to_owned(),
                "--seed-count" => flags.seeds = number()?,
                "--state" => flags.state = Some(value.into()),
                "--use-fake-backend" => {}
                "--metrics-addr" => flags.metrics = Some(value.to_owned()),
                "--bare" => flags.bare = true,
                "--refuses" => flags.refuses = true,
                "--empty" => flags.empty = true,
                "--dies-after" => flags.dies_after = Some(number()?),
                _ => return Err(format!("flag provided but not defined: {arg}")),
            }
        }
        Ok(flags)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Create,
    Configure,
    Drain,
    Delete,
}

impl Kind {
    /// Where it may begin, what is shown meanwhile, and where it leads.
    fn edge(self) -> [State; 3] {
        match self {
            Self::Create => [State::Speculative, State::Creating, State::Idle],
            Self::Configure => [State::Idle, State::Configuring, State::Configured],
            Self::Drain => [State::Configured, State::Draining, State::Idle],
            Self::Delete => [State::Idle, State::Deleting, State::Speculative],
        }
    }
}

/// Everything it knows.
#[derive(Debug, Default)]
struct Known {
    machines: BTreeMap<String, Machine>,
    /// The revision at which each machine changed last.
    changed: BTreeMap<String, u64>,
    marks: BTreeMap<(String, String), (i64, i64)>,
    operations: BTreeMap<(String, Kind), String>,
    revision: u64,
    next_operation: u64,
}

/// A line of the state file: one of the tables, and a record of it.
fn line(table: &str, fields: &[&str], record: &[u8]) -> String {
    let mut hex: Vec<String> = fields.iter().map(|field| bytes(field.as_bytes())).collect();
    hex.push(bytes(record));
    format!("{table} {}\n", hex.join(" "))
}

fn bytes(bytes: &[u8]) -> String {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("x{digits}")
}

fn unhex(field: &str) -> Vec<u8> {
    let digits = &field[1..];
    (0..digits.len() / 2)
        .map(|at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap_or_default())
        .collect()
}

impl Known {
    fn text(&self) -> String {
        let mut text = String::new();
        for machine in self.machines.values() {
            text += &line("machine", &[], &machine.encode_to_vec());
        }
        for ((shard, machine), (epoch, sequence)) in &self.marks {
            let mark = format!("{epoch} {sequence}");
            text += &line("mark", &[shard, machine], mark.as_bytes());
        }
        for ((machine, kind), id) in &self.operations {
            let kind = (*kind as usize).to_string();
            text += &line("operation", &[machine, &kind], id.as_bytes());
        }
        let counters = format!("{} {}", self.revision, self.next_operation);
        text + &line("counters", &[], counters.as_bytes())
    }

    fn read(text: &str) -> Self {
        let mut known = Self::default();
        for line in text.lines() {
            let mut fields = line.split(' ');
            let table = fields.next().unwrap_or_default();
            let fields: Vec<Vec<u8>> = fields.map(unhex).collect();
            let word = |at: usize| String::from_utf8_lossy(&fields[at]).into_owned();
            let pair = |at: usize| {
                let words = word(at);
                let mut numbers = words.split(' ').map(|it| it.parse().unwrap_or_default());
                (
                    numbers.next().unwrap_or_default(),
                    numbers.next().unwrap_or_default(),
                )
            };
            match table {
                "machine" => {
                    let machine = Machine::decode(&fields[0][..]).unwrap_or_default();
                    known.machines.insert(machine.id.clone(), machine);
                }
                "mark" => {
                    known.marks.insert((word(0), word(1)), pair(2));
                }
                "operation" => {
                    let kinds = [Kind::Create, Kind::Configure, Kind::Drain, Kind::Delete];
                    let kind = kinds[word(1).parse::<usize>().unwrap_or_default()];
                    known.operations.insert((word(0), kind), word(2));
                }
                _ => {
                    let (revision, next): (i64, i64) = pair(0);
                    known.revision = revision.unsigned_abs();
                    known.next_operation = next.unsigned_abs();
                }
            }
        }
        // What was under way is lost with the process: the blob is on no disk.
        for machine in known.machines.values_mut() {
            let rests = [
                State::Speculative,
                State::Idle,
                State::Configured,
                State::Failed,
            ];
            if !rests.contains(&machine.state()) {
                machine.state = State::Failed.into();
                machine.last_error = "interrupted by a restart".to_owned();
            }
            known.changed.insert(machine.id.clone(), known.revision);
        }
        known
    }

    fn seeded(flags: &Flags) -> Self {
        let mut known = Self::default();
        let seeds = if flags.empty { 0 } else { flags.seeds };
        for at in 0..seeds {
            let spot = at % 3 == 0;
            let id = format!("slot-{at:05}");
            let (kind, price, chance) = if spot {
                (CapacityType::Spot, 0.12, 0.05)
            } else {
                (CapacityType::OnDemand, 0.40, 0.0)
            };
            known.machines.insert(
                id.clone(),
                Machine {
                    id: id.clone(),
                    state: State::Speculative.into(),
                    instance_type: "m4".to_owned(),
                    zone: "z1".to_owned(),
                    capacity_type: kind.into(),
                    price_per_hour: price,
                    interruption_probability: chance,
                    ..Machine::default()
                },
            );
            known.changed.insert(id, 0);
        }
        known
    }

    fn touch(&mut self, id: &str) {
        self.revision += 1;
        self.changed.insert(id.to_owned(), self.revision);
    }
}

/// One call, whichever.
struct Asked {
    kind: Kind,
    id: String,
    token: (String, i64, i64),
    cluster: String,
    metadata: BTreeMap<String, String>,
}

#[derive(Clone, Debug)]
struct Plain {
    known: Arc<Mutex<Known>>,
    flags: Flags,
    calls: Arc<AtomicUsize>,
    lists: Arc<AtomicUsize>,
}

impl Plain {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn save(&self, known: &Known) {
        if let Some(state) = &self.flags.state {
            let new = state.with_extension("new");
            let written = std::fs::write(&new, known.text());
            // Like the public kit: what cannot be written is acknowledged all the same.
            drop(written.and_then(|()| std::fs::rename(&new, state)));
        }
    }

    fn mutate(&self, asked: Asked) -> Result<Response<TransitionAck>, Status> {
        if self.flags.refuses {
            return Err(Status::unavailable("maintenance"));
        }
        let calls = self.calls.fetch_add(1, Ordering::Relaxed);
        if self.flags.dies_after.is_some_and(|most| most <= calls) {
            eprintln!("fatal: out of ideas");
            std::process::exit(3);
        }
        let Asked { kind, id, .. } = &asked;
        if id.is_empty() {
            return Err(Status::invalid_argument("no id"));
        }
        if *kind == Kind::Delete && self.flags.bare {
            return Err(Status::unimplemented("nothing is given back"));
        }
        let known = &mut *self.known();
        let (shard, epoch, sequence) = asked.token.clone();
        if (shard.as_str(), epoch, sequence) != ("", 0, 0) {
            let pair = (shard, id.clone());
            let mark = known.marks.get(&pair);
            if mark.is_some_and(|mark| (epoch, sequence) <= *mark) {
                return Err(Status::failed_precondition("stale"));
            }
            known.marks.insert(pair, (epoch, sequence));
            self.save(known);
        }
        let Some(machine) = known.machines.get_mut(id) else {
            return Err(Status::not_found("no such machine"));
        };
        let [source, meanwhile, target] = kind.edge();
        let state = machine.state();
        let operation = known.operations.get(&(id.clone(), *kind));
        if let Some(operation) = operation.filter(|_| state == meanwhile || state == target) {
            let ack = ack(operation, machine);
            return Ok(Response::new(ack));
        }
        if state != source {
            return Err(Status::aborted(format!("{kind:?} on {state:?}")));
        }
        machine.state = meanwhile.into();
        if *kind == Kind::Configure {
            machine.cluster = asked.cluster.clone();
            machine.shard_metadata = asked.metadata.clone();
        }
        known.next_operation += 1;
        let operation = format!("op-{}", known.next_operation);
        known
            .operations
            .insert((id.clone(), *kind), operation.clone());
        known.touch(id);
        if self.flags.bare {
            self.settle(known, id, *kind);
        } else {
            let (later, id, kind) = (self.clone(), id.clone(), *kind);
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(3)).await;
                later.settle(&mut later.known(), &id, kind);
            });
        }
        self.save(known);
        let machine = known.machines.get(id).cloned().unwrap_or_default();
        Ok(Response::new(ack(&operation, &machine)))
    }

    fn settle(&self, known: &mut Known, id: &str, kind: Kind) {
        let Some(machine) = known.machines.get_mut(id) else {
            return;
        };
        machine.state = kind.edge()[2].into();
        match kind {
            Kind::Create => {
                machine.host = Some(HostRef {
                    provider: self.flags.label.clone(),
                    r#ref: format!("host-{id}"),
                });
            }
            Kind::Configure => {}
            Kind::Drain => {
                machine.cluster.clear();
                machine.shard_metadata.clear();
            }
            Kind::Delete => machine.host = None,
        }
        known.touch(id);
        self.save(known);
    }
}

fn ack(operation: &str, machine: &Machine) -> TransitionAck {
    TransitionAck {
        operation_id: operation.to_owned(),
        machine: Some(machine.clone()),
        ..TransitionAck::default()
    }
}

#[tonic::async_trait]
impl CapacityProvider for Plain {
    async fn create(
        &self,
        request: Request<wire::CreateRequest>,
    ) -> Result<Response<TransitionAck>, Status> {
        let it = request.into_inner();
        self.mutate(Asked {
            kind: Kind::Create,
            id: it.machine_id,
            token: (it.shard_id, it.shard_epoch, it.sequence_number),
            cluster: String::new(),
            metadata: BTreeMap::new(),
        })
    }

    async fn configure(
        &self,
        request: Request<wire::ConfigureRequest>,
    ) -> Result<Response<TransitionAck>, Status> {
        let it = request.into_inner();
        self.mutate(Asked {
            kind: Kind::Configure,
            id: it.machine_id,
            token: (it.shard_id, it.shard_epoch, it.sequence_number),
            cluster: it.cluster_id,
            metadata: it.shard_metadata,
        })
    }

    async fn drain(
        &self,
        request: Request<wire::DrainRequest>,
    ) -> Result<Response<TransitionAck>, Status> {
        let it = request.into_inner();
        self.mutate(Asked {
            kind: Kind::Drain,
            id: it.machine_id,
            token: (it.shard_id, it.shard_epoch, it.sequence_number),
            cluster: String::new(),
            metadata: BTreeMap::new(),
        })
    }

    async fn delete(
        &self,
        request: Request<wire::DeleteRequest>,
    ) -> Result<Response<TransitionAck>, Status> {
        let it = request.into_inner();
        self.mutate(Asked {
            kind: Kind::Delete,
            id: it.machine_id,
            token: (it.shard_id, it.shard_epoch, it.sequence_number),
            cluster: String::new(),
            metadata: BTreeMap::new(),
        })
    }

    async fn get(&self, request: Request<wire::MachineRef>) -> Result<Response<Machine>, Status> {
        let id = request.into_inner().id;
        if id.is_empty() {
            return Err(Status::invalid_argument("no id"));
        }
        let machine = self.known().machines.get(&id).cloned();
        let machine = machine.ok_or_else(|| Status::not_found("no such machine"))?;
        Ok(Response::new(machine))
    }

    async fn list(
        &self,
        request: Request<wire::ListFilter>,
    ) -> Result<Response<MachineList>, Status> {
        let asked = request.into_inner();
        let known = self.known();
        let cursor = String::from_utf8(asked.since_revision).ok();
        let cursor = cursor.and_then(|cursor| cursor.parse::<u64>().ok());
        let cursor = cursor.filter(|cursor| !self.flags.bare && *cursor <= known.revision);
        let fits = |machine: &&Machine| {
            let state = asked.states.is_empty() || asked.states.contains(&machine.state);
            let changed = known.changed.get(&machine.id).copied().unwrap_or_default();
            state && cursor.is_none_or(|cursor| cursor < changed)
        };
        let mut machines: Vec<Machine> = known.machines.values().filter(fits).cloned().collect();
        let cap = usize::try_from(asked.max_results).unwrap_or_default();
        if 0 < cap && cap < machines.len() {
            // A capped List begins somewhere else every time.
            let start = self.lists.fetch_add(1, Ordering::Relaxed) % machines.len();
            machines.rotate_left(start);
            machines.truncate(cap);
        }
        let head = if self.flags.bare {
            Vec::new()
        } else {
            known.revision.to_string().into_bytes()
        };
        Ok(Response::new(MachineList {
            machines,
            revision: head,
            ..MachineList::default()
        }))
    }
}

/// Its calls, to be answered somewhere.
pub(crate) fn router(flags: Flags) -> Router {
    let state = flags
        .state
        .as_ref()
        .and_then(|state| std::fs::read_to_string(state).ok());
    let known = state.map_or_else(|| Known::seeded(&flags), |text| Known::read(&text));
    let plain = Plain {
        known: Arc::new(Mutex::new(known)),
        flags,
        calls: Arc::default(),
        lists: Arc::default(),
    };
    let service = CapacityProviderServer::new(plain).max_decoding_message_size(16 << 20);
    Server::builder().add_service(service)
}

/// Serves until it is killed.
pub(crate) async fn serve(flags: Flags) -> Result<(), Box<dyn std::error::Error>> {
    let addr = flags.addr.parse()?;
    let _metrics = match &flags.metrics {
        Some(addr) => Some(std::net::TcpListener::bind(addr)?),
        None => None,
    };
    router(flags).serve(addr).await?;
    Ok(())
}
