//! The subject: the provider under test, and the words a check speaks about it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use bigfleet_wire::v1alpha1 as wire;
use tonic::transport::Channel;
use tonic::{Request, Status};
use wire::MachineState as State;
use wire::capacity_provider_client::CapacityProviderClient;

use crate::boot::{Binary, Running};
use crate::check::Unmet;

/// The deadline of every call.
const CALL: Duration = Duration::from_secs(30);
/// How long a transition of a healthy provider may take.
pub(crate) const SETTLE: Duration = Duration::from_secs(15);
const POLL: Duration = Duration::from_millis(1);
/// The label of slots that cannot be created; a check that needs a healthy machine avoids them.
const CREATE_FAULT: &str = "conformance.fault/create";

pub(crate) type Client = CapacityProviderClient<Channel>;
pub(crate) type Ack = wire::TransitionAck;
pub(crate) type Map = BTreeMap<String, String>;

/// A fencing token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Token {
    /// Who; empty is unfenced.
    pub shard: String,
    /// The epoch: higher for every start of that shard.
    pub epoch: i64,
    /// Higher for every call within an epoch.
    pub sequence: i64,
}

pub(crate) fn token(shard: &str, epoch: i64, sequence: i64) -> Token {
    Token {
        shard: shard.to_owned(),
        epoch,
        sequence,
    }
}

/// One mutation, apart from whom it concerns.
#[derive(Clone, Debug)]
pub(crate) enum Call {
    Create,
    Configure(String, Map),
    Drain(i64),
    Delete,
}

pub(crate) fn configure(cluster: &str) -> Call {
    Call::Configure(cluster.to_owned(), Map::new())
}

pub(crate) fn map(pairs: &[(&str, &str)]) -> Map {
    pairs
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

/// The provider under test.
#[derive(Debug)]
pub struct Subject {
    running: Running,
    pub(crate) binary: Binary,
    pub(crate) folder: PathBuf,
    pub(crate) seeds: usize,
    pub(crate) rng_seed: u64,
    pub(crate) soak: Duration,
    /// How long a transition may take where faults are injected.
    pub(crate) fault_timeout: Duration,
    taken: Mutex<BTreeSet<String>>,
    spare: Mutex<Vec<String>>,
    counter: AtomicU64,
}

impl Subject {
    /// A provider that runs, the way to boot another, and a folder for state files.
    pub fn new(running: Running, binary: Binary, folder: PathBuf, seeds: usize) -> Self {
        Self {
            running,
            binary,
            folder,
            seeds,
            rng_seed: 1,
            soak: Duration::from_secs(3),
            fault_timeout: Duration::from_secs(2),
            taken: Mutex::default(),
            spare: Mutex::default(),
            counter: AtomicU64::new(0),
        }
    }

    /// Ends the process without a warning.
    pub(crate) fn kill(&mut self) {
        self.running.kill();
    }

    pub(crate) fn running(&self) -> &Running {
        &self.running
    }

    /// Another process, looked at in the same words.
    pub(crate) fn of(&self, running: Running) -> Self {
        let (binary, folder) = (self.binary.clone(), self.folder.clone());
        let counter = AtomicU64::new(1_000_000 + self.count());
        Self {
            counter,
            ..Self::new(running, binary, folder, self.seeds)
        }
    }

    fn count(&self) -> u64 {
        self.counter.fetch_add(1, Ordering::Relaxed)
    }

    /// A shard nobody has heard of.
    pub(crate) fn shard(&self) -> String {
        format!("shard-{}-{}", std::process::id(), self.count())
    }

    /// A file nobody uses.
    pub(crate) fn state_file(&self) -> PathBuf {
        self.folder.join(format!("state-{}", self.count()))
    }

    pub(crate) fn client(&self) -> Client {
        self.running.client()
    }

    /// A healthy Speculative machine nobody has taken.
    pub(crate) async fn fresh(&self) -> Result<String, Unmet> {
        let locked = || self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(id) = locked().pop() {
            return Ok(id);
        }
        let found = self.list(&[State::Speculative]).await?;
        let healthy = found
            .into_iter()
            .filter(|machine| !machine.labels.contains_key(CREATE_FAULT));
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let new = healthy
            .map(|machine| machine.id)
            .filter(|id| taken.insert(id.clone()));
        locked().extend(new);
        locked()
            .pop()
            .ok_or_else(|| Unmet("no machine is left to test with".to_owned()))
    }

    pub(crate) async fn fresh_many(&self, count: usize) -> Result<Vec<String>, Unmet> {
        let mut ids = Vec::new();
        for _ in 0..count {
            ids.push(self.fresh().await?);
        }
        Ok(ids)
    }

    /// A machine that was just created.
    pub(crate) async fn idle(&self) -> Result<String, Unmet> {
        let id = self.fresh().await?;
        self.call(&id, Call::Create).await?;
        self.settled(&id, State::Idle).await?;
        Ok(id)
    }

    /// A machine that serves this cluster.
    pub(crate) async fn configured(&self, cluster: &str) -> Result<String, Unmet> {
        let id = self.idle().await?;
        self.call(&id, configure(cluster)).await?;
        self.settled(&id, State::Configured).await?;
        Ok(id)
    }

    /// A call without a token.
    pub(crate) async fn call(&self, id: &str, call: Call) -> Result<Ack, Status> {
        self.fenced(id, &Token::default(), call).await
    }

    pub(crate) async fn fenced(&self, id: &str, token: &Token, call: Call) -> Result<Ack, Status> {
        send(self.client(), id, token, call).await
    }

    pub(crate) async fn get(&self, id: &str) -> Result<wire::Machine, Status> {
        let mut request = Request::new(wire::MachineRef { id: id.to_owned() });
        request.set_timeout(CALL);
        Ok(self.client().get(request).await?.into_inner())
    }

    pub(crate) async fn filter(
        &self,
        filter: wire::ListFilter,
    ) -> Result<wire::MachineList, Status> {
        let mut request = Request::new(filter);
        request.set_timeout(4 * CALL);
        Ok(self.client().list(request).await?.into_inner())
    }

    pub(crate) async fn list(&self, states: &[State]) -> Result<Vec<wire::Machine>, Status> {
        let states = states.iter().map(|state| *state as i32).collect();
        Ok(self
            .filter(wire::ListFilter {
                states,
                ..Default::default()
            })
            .await?
            .machines)
    }

    /// What changed since a cursor.
    pub(crate) async fn since(&self, revision: &[u8]) -> Result<wire::MachineList, Status> {
        let since_revision = revision.to_vec();
        self.filter(wire::ListFilter {
            since_revision,
            ..Default::default()
        })
        .await
    }

    pub(crate) async fn head(&self) -> Result<Vec<u8>, Status> {
        Ok(self.filter(wire::ListFilter::default()).await?.revision)
    }

    /// Every state seen on the way, up to `state`; failing on the way is not getting there.
    pub(crate) async fn trace(&self, id: &str, state: State) -> Result<Vec<wire::Machine>, Unmet> {
        self.trace_within(id, state, SETTLE).await
    }

    pub(crate) async fn trace_within(
        &self,
        id: &str,
        state: State,
        within: Duration,
    ) -> Result<Vec<wire::Machine>, Unmet> {
        let started = Instant::now();
        let mut seen = Vec::new();
        loop {
            let machine = self.get(id).await?;
            let (now, error) = (machine.state(), machine.last_error.clone());
            seen.push(machine);
            if now == state {
                return Ok(seen);
            }
            ensure!(
                now != State::Failed,
                "{id} failed on its way to {state:?}: {error}"
            );
            ensure!(
                started.elapsed() < within,
                "{id} is {now:?}, not {state:?}, after {within:?}"
            );
            tokio::time::sleep(POLL).await;
        }
    }

    /// The machine, once it is there.
    pub(crate) async fn settled(&self, id: &str, state: State) -> Result<wire::Machine, Unmet> {
        let mut seen = self.trace(id, state).await?;
        seen.pop()
            .ok_or_else(|| Unmet("nothing was seen".to_owned()))
    }

    /// Polls for a while; every look must satisfy.
    pub(crate) async fn stays(
        &self,
        id: &str,
        window: Duration,
        holds: impl Fn(&wire::Machine) -> bool,
    ) -> Result<(), Unmet> {
        let started = Instant::now();
        while started.elapsed() < window {
            let machine = self.get(id).await?;
            ensure!(holds(&machine), "{id} moved: {machine:?}");
            tokio::time::sleep(10 * POLL).await;
        }
        Ok(())
    }
}

/// One mutation over one client.
pub(crate) async fn send(
    mut client: Client,
    id: &str,
    token: &Token,
    call: Call,
) -> Result<Ack, Status> {
    fn timed<T>(message: T) -> Request<T> {
        let mut request = Request::new(message);
        request.set_timeout(CALL);
        request
    }
    let machine_id = id.to_owned();
    let Token {
        shard: shard_id,
        epoch: shard_epoch,
        sequence: sequence_number,
    } = token.clone();
    let answer = match call {
        Call::Create => {
            let shard_metadata = Map::new();
            let request = wire::CreateRequest {
                machine_id,
                shard_id,
                shard_epoch,
                sequence_number,
                shard_metadata,
            };
            client.create(timed(request)).await
        }
        Call::Configure(cluster_id, shard_metadata) => {
            let bootstrap_blob = b"#cloud-config".to_vec();
            let request = wire::ConfigureRequest {
                machine_id,
                cluster_id,
                bootstrap_blob,
                shard_id,
                shard_epoch,
                sequence_number,
                shard_metadata,
            };
            client.configure(timed(request)).await
        }
        Call::Drain(grace_period_seconds) => {
            let request = wire::DrainRequest {
                machine_id,
                grace_period_seconds,
                shard_id,
                shard_epoch,
                sequence_number,
            };
            client.drain(timed(request)).await
        }
        Call::Delete => {
            let request = wire::DeleteRequest {
                machine_id,
                shard_id,
                shard_epoch,
                sequence_number,
            };
            client.delete(timed(request)).await
        }
    };
    Ok(answer?.into_inner())
}

/// The machine of an ack, which must carry one.
pub(crate) fn machine(ack: &Ack) -> Result<&wire::Machine, Unmet> {
    ack.machine
        .as_ref()
        .ok_or_else(|| Unmet("the ack carries no machine".to_owned()))
}

/// The same call many times at once.
pub(crate) async fn burst(
    client: &Client,
    count: usize,
    id: &str,
    call: &Call,
) -> Vec<Result<Ack, Status>> {
    let mut tasks = Vec::new();
    for _ in 0..count {
        let (client, id, call) = (client.clone(), id.to_owned(), call.clone());
        tasks.push(tokio::spawn(async move {
            send(client, &id, &Token::default(), call).await
        }));
    }
    let mut answers = Vec::new();
    for task in tasks {
        answers.push(
            task.await
                .unwrap_or_else(|why| Err(Status::internal(why.to_string()))),
        );
    }
    answers
}

/// The one operation id a burst must have collapsed to.
pub(crate) fn one_operation(answers: Vec<Result<Ack, Status>>) -> Result<String, Unmet> {
    let mut ids = BTreeSet::new();
    for answer in answers {
        ids.insert(answer?.operation_id);
    }
    let first = ids
        .pop_first()
        .filter(|id| !id.is_empty() && ids.is_empty());
    first.ok_or_else(|| Unmet(format!("not one operation id: also {ids:?}")))
}

/// Host, cluster and error as each state demands.
pub(crate) fn grid(machine: &wire::Machine) -> Result<(), Unmet> {
    let host = machine.host.as_ref();
    let has_host = host.is_some_and(|host| !host.provider.is_empty() || !host.r#ref.is_empty());
    let bound = !machine.cluster.is_empty();
    let (state, id) = (machine.state(), &machine.id);
    let holds = match state {
        State::Unspecified => false,
        State::Speculative | State::Creating => !has_host && !bound,
        State::Idle | State::Deleting => has_host && !bound,
        State::Configuring | State::Configured | State::Draining => has_host && bound,
        State::Failed => !machine.last_error.is_empty(),
    };
    ensure!(
        holds,
        "{id}: {state:?} with host {host:?}, cluster \"{}\"",
        machine.cluster
    );
    Ok(())
}
