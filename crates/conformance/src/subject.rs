//! The subject: the provider under test, and the words a check speaks about it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use bigfleet_wire::v1alpha1 as wire;
use tonic::{Request, Status};
use wire::MachineState as State;

use crate::behaviour::Capability;
use crate::boot::{BootFailed, Launcher, Running};
use crate::check::Unmet;
pub(crate) use crate::exchange::Client;

/// The deadline of every call.
pub(crate) const CALL: Duration = Duration::from_secs(30);
/// How long a transition of a healthy provider may take.
pub(crate) const SETTLE: Duration = Duration::from_secs(15);
/// The same for each of many that were asked for together.
const SETTLE_MANY: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(1);
/// Between two looks at a machine that takes its time.
const SLOWEST_POLL: Duration = Duration::from_millis(20);
/// The label of slots that cannot be created; a check that needs a healthy machine avoids them.
pub(crate) const CREATE_FAULT: &str = "conformance.fault/create";

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

/// Which machines checks have had.
#[derive(Debug, Default)]
struct Taken {
    ever: BTreeSet<String>,
    /// By the behaviour that is being checked.
    now: BTreeSet<String>,
    /// Seen, healthy, and not had by any.
    spare: Vec<String>,
}

/// The provider under test.
#[derive(Debug)]
pub struct Subject {
    running: Running,
    launcher: Arc<Launcher>,
    pub(crate) seeds: usize,
    pub(crate) rng_seed: u64,
    pub(crate) soak: Duration,
    /// How long a transition may take where faults are injected.
    pub(crate) fault_timeout: Duration,
    /// What the provider can do; everything until it was asked.
    has: Vec<Capability>,
    /// The same in every name this run makes up, and in no other run.
    run: u128,
    taken: Mutex<Taken>,
    counter: AtomicU64,
}

impl Subject {
    /// A provider that answers, and the way to start others.
    pub(crate) fn new(running: Running, launcher: Arc<Launcher>, seeds: usize) -> Self {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Self {
            running,
            launcher,
            seeds,
            rng_seed: 1,
            soak: Duration::from_secs(3),
            fault_timeout: Duration::from_secs(2),
            has: vec![
                Capability::Create,
                Capability::Delete,
                Capability::SinceRevision,
                Capability::Transitions,
            ],
            run: now.unwrap_or_default().as_micros(),
            taken: Mutex::default(),
            counter: AtomicU64::new(0),
        }
    }

    /// Ends the process without a warning.
    pub(crate) fn kill(&mut self) {
        self.running.kill();
    }

    /// Ends the process, for behaviours that start their own.
    pub(crate) fn make_room(&mut self) {
        self.running.make_room();
    }

    /// Why nothing more can be learned from this provider: it ended, or it no longer answers.
    pub(crate) async fn gone(&mut self) -> Option<String> {
        self.running.gone().await
    }

    pub(crate) fn running(&self) -> &Running {
        &self.running
    }

    pub(crate) fn can(&self, what: Capability) -> bool {
        self.has.contains(&what)
    }

    pub(crate) fn can_only(&mut self, has: Vec<Capability>) {
        self.has = has;
    }

    /// Another process, looked at in the same words.
    pub(crate) fn of(&self, running: Running) -> Self {
        Self {
            has: self.has.clone(),
            rng_seed: self.rng_seed,
            soak: self.soak,
            counter: AtomicU64::new(1_000_000 + self.count()),
            ..Self::new(running, Arc::clone(&self.launcher), self.seeds)
        }
    }

    /// Another process of the same provider.
    pub(crate) async fn boot(
        &self,
        seeds: usize,
        state: Option<&Path>,
        flags: &[&str],
    ) -> Result<Self, BootFailed> {
        let running = self.launcher.boot(seeds, state, flags).await?;
        Ok(Self {
            seeds,
            ..self.of(running)
        })
    }

    fn count(&self) -> u64 {
        self.counter.fetch_add(1, Ordering::Relaxed)
    }

    /// A shard nobody has heard of, in this run or any other.
    pub(crate) fn shard(&self) -> String {
        format!("shard-{}-{}", self.run, self.count())
    }

    /// The id of a machine that does not exist.
    pub(crate) fn ghost(&self) -> String {
        format!("ghost-{}-{}", self.run, self.count())
    }

    /// A file nobody uses.
    pub(crate) fn state_file(&self) -> PathBuf {
        self.launcher.state_file()
    }

    pub(crate) fn client(&self) -> Client {
        self.running.client()
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next behaviour begins: what others have left behind may be used again.
    pub(crate) fn begin(&self) {
        self.taken().now.clear();
    }

    /// A healthy Speculative machine nobody has taken; if there is none left, one that an earlier
    /// behaviour gave back.
    pub(crate) async fn fresh(&self) -> Result<String, Unmet> {
        if !self.can(Capability::Create) {
            return Err(Unmet::Lacks(Capability::Create));
        }
        if let Some(id) = self.spare() {
            return Ok(id);
        }
        let found = self.list(&[State::Speculative]).await?;
        let healthy = found.into_iter().filter(healthy).map(|machine| machine.id);
        let healthy: Vec<String> = healthy.collect();
        let mut taken = self.taken();
        let new = healthy.iter().filter(|id| !taken.ever.contains(*id));
        taken.spare = new.cloned().collect();
        taken.spare.sort_unstable_by(|a, b| b.cmp(a));
        taken.spare.dedup();
        let again = healthy.iter().find(|id| !taken.now.contains(*id));
        let again = again.filter(|_| taken.spare.is_empty()).cloned();
        if let Some(id) = &again {
            taken.now.insert(id.clone());
        }
        drop(taken);
        let found = again.or_else(|| self.spare());
        found.ok_or_else(|| {
            Unmet::NotTried("no SPECULATIVE machine is left; offer more slots".to_owned())
        })
    }

    fn spare(&self) -> Option<String> {
        let mut taken = self.taken();
        let id = taken.spare.pop()?;
        taken.ever.insert(id.clone());
        taken.now.insert(id.clone());
        Some(id)
    }

    pub(crate) async fn fresh_many(&self, count: usize) -> Result<Vec<String>, Unmet> {
        let mut ids = Vec::new();
        for _ in 0..count {
            ids.push(self.fresh().await?);
        }
        Ok(ids)
    }

    /// A machine that was just created; in a pool without slots, or with none left, an Idle one that
    /// this behaviour has not had.
    pub(crate) async fn idle(&self) -> Result<String, Unmet> {
        match self.fresh().await {
            Ok(id) => {
                self.call(&id, Call::Create).await?;
                self.settled(&id, State::Idle).await?;
                Ok(id)
            }
            Err(Unmet::Lacks(_) | Unmet::NotTried(_)) => {
                let found = self.list(&[State::Idle]).await?;
                let mut taken = self.taken();
                let free = found.into_iter().filter(healthy).map(|machine| machine.id);
                let free = free.filter(|id| !taken.now.contains(id)).min();
                let id = free.ok_or_else(|| {
                    Unmet::NotTried("no IDLE machine is left; offer more machines".to_owned())
                })?;
                taken.now.insert(id.clone());
                Ok(id)
            }
            Err(unmet) => Err(unmet),
        }
    }

    /// A machine at the beginning of its life, and the way to where it can be configured: none in a pool
    /// of hosts that are already there.
    pub(crate) async fn newcomer(&self) -> Result<(String, Vec<(Call, State)>), Unmet> {
        if self.can(Capability::Create) {
            return Ok((self.fresh().await?, vec![(Call::Create, State::Idle)]));
        }
        Ok((self.idle().await?, Vec::new()))
    }

    /// A machine, and a call that every state it is in from now on accepts or replays: only the fence
    /// can refuse it.
    pub(crate) async fn probe(&self) -> Result<(String, Call), Unmet> {
        if self.can(Capability::Create) {
            return Ok((self.fresh().await?, Call::Create));
        }
        Ok((self.idle().await?, configure("probe")))
    }

    /// A machine that serves this cluster.
    pub(crate) async fn configured(&self, cluster: &str) -> Result<String, Unmet> {
        let id = self.idle().await?;
        self.call(&id, configure(cluster)).await?;
        self.settled(&id, State::Configured).await?;
        Ok(id)
    }

    /// Waits until no machine is on its way anywhere; earlier behaviours may have left some.
    pub(crate) async fn quiet(&self) -> Result<(), Status> {
        let moving = [
            State::Creating,
            State::Configuring,
            State::Draining,
            State::Deleting,
        ];
        let started = Instant::now();
        while !self.list(&moving).await?.is_empty() && started.elapsed() < SETTLE_MANY {
            tokio::time::sleep(10 * POLL).await;
        }
        Ok(())
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

    /// Whether it can be told to fail, which a slot that cannot be created shows. Flags alone do not: a
    /// provider may ignore those it does not know.
    pub(crate) async fn has_fault_hooks(&self) -> bool {
        let slots = self.list(&[State::Speculative]).await;
        slots.is_ok_and(|slots| !slots.iter().all(healthy))
    }

    /// Every machine there is; without any, nothing can be said about them.
    pub(crate) async fn inventory(&self) -> Result<Vec<wire::Machine>, Unmet> {
        let all = self.list(&[]).await?;
        if all.is_empty() {
            return Err(Unmet::NotTried("the provider lists no machine".to_owned()));
        }
        Ok(all)
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
        let mut seen = Vec::new();
        let note = |machine: &wire::Machine| seen.push(machine.clone());
        self.arrives(id, state, SETTLE, POLL, note).await?;
        Ok(seen)
    }

    /// The machine, once it is there. It is looked at less and less often: nobody asks for what is seen on
    /// the way, and polls take time from a provider that works on the same computer.
    pub(crate) async fn settled(&self, id: &str, state: State) -> Result<wire::Machine, Unmet> {
        self.arrives(id, state, SETTLE, SLOWEST_POLL, |_| {}).await
    }

    /// One of many machines that were sent on their way together.
    pub(crate) async fn settled_with_others(
        &self,
        id: &str,
        state: State,
    ) -> Result<wire::Machine, Unmet> {
        self.arrives(id, state, SETTLE_MANY, SLOWEST_POLL, |_| {})
            .await
    }

    /// Looks until the machine is there, with pauses that grow up to `slowest`.
    async fn arrives(
        &self,
        id: &str,
        state: State,
        within: Duration,
        slowest: Duration,
        mut look: impl FnMut(&wire::Machine),
    ) -> Result<wire::Machine, Unmet> {
        let (started, mut pause) = (Instant::now(), POLL);
        loop {
            let machine = self.get(id).await?;
            look(&machine);
            let now = machine.state();
            if now == state {
                return Ok(machine);
            }
            ensure!(
                now != State::Failed,
                "{id} failed on its way to {state:?}: {}",
                machine.last_error
            );
            ensure!(
                started.elapsed() < within,
                "{id} is {now:?}, not {state:?}, after {within:?}"
            );
            tokio::time::sleep(pause).await;
            pause = (2 * pause).min(slowest);
        }
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
        .ok_or_else(|| Unmet::Broken("the ack carries no machine".to_owned()))
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
    first.ok_or_else(|| Unmet::Broken(format!("not one operation id: also {ids:?}")))
}

/// A machine that was not set up to fail.
fn healthy(machine: &wire::Machine) -> bool {
    !machine.labels.contains_key(CREATE_FAULT)
}

/// What calls alone may change of a machine. Its price, what it may be interrupted by and what it has to offer
/// are refreshed as the substrate tells, also of a machine that rests.
pub(crate) fn standing(machine: &wire::Machine) -> impl PartialEq + use<> {
    let host = machine.host.clone().unwrap_or_default();
    (
        (machine.id.clone(), machine.state()),
        (host.provider, host.r#ref),
        machine.cluster.clone(),
        machine.shard_metadata.clone(),
        machine.last_error.clone(),
    )
}

/// Whether there is a host; one without any name is none.
pub(crate) fn has_host(machine: &wire::Machine) -> bool {
    let host = machine.host.as_ref();
    host.is_some_and(|host| !host.provider.is_empty() || !host.r#ref.is_empty())
}

/// Host, cluster and error as each state demands.
pub(crate) fn grid(machine: &wire::Machine) -> Result<(), Unmet> {
    let host = machine.host.as_ref();
    let has_host = has_host(machine);
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
