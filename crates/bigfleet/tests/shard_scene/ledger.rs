//! The ledger: a provider in front of the provider, which writes down every mutation and its answer, and
//! lies about Lists, forgets machines or keeps calls waiting when it is told to.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Instant;

use bigfleet_net::{Dial, Limits, MAX_MESSAGE_BYTES, Serving, listen, serve};
use bigfleet_wire::v1alpha1 as wire;
use tokio::sync::watch;
use tonic::body::Body;
use tonic::codegen::{Service, http};
use tonic::server::NamedService;
use tonic::transport::Channel;
use tonic::{Request, Response, Status};
use wire::capacity_provider_client::CapacityProviderClient;
use wire::capacity_provider_server::{CapacityProvider, CapacityProviderServer};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CallKind {
    Create,
    Configure,
    Drain,
    Delete,
}

/// One mutation as the provider saw it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// When it came.
    pub(crate) at: Instant,
    pub(crate) kind: CallKind,
    pub(crate) machine: String,
    /// Epoch and sequence.
    pub(crate) token: (i64, i64),
    /// The shard's own id of what it decided, where the call carries it.
    pub(crate) intent: String,
    pub(crate) cluster: String,
    /// The provider's operation, or why it refused.
    pub(crate) answer: Result<String, tonic::Code>,
}

/// What the provider says to a mutation.
pub(crate) type Answer = Result<Response<wire::TransitionAck>, Status>;

/// What is answered to a List instead of the truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lie {
    /// The first half of the machines, and how many there are.
    Half,
    /// The first half, as a provider answers that knows the public contract only.
    HalfUncounted,
    /// What was remembered.
    Stale,
    /// All of it, but every machine says it has "lots" of cpus.
    Garbled,
    /// The truth, for once.
    None,
    /// The truth, once whatever is held is let go.
    Late,
}

#[derive(Clone)]
pub(crate) struct Ledger {
    client: CapacityProviderClient<Channel>,
    seen: Arc<Mutex<Vec<Seen>>>,
    lies: Arc<Mutex<VecDeque<Lie>>>,
    remembered: Arc<Mutex<wire::MachineList>>,
    gone: Arc<Mutex<BTreeMap<String, Gone>>>,
    refusals: Arc<Mutex<BTreeMap<CallKind, Status>>>,
    cursed: Arc<Mutex<Cursed>>,
    held: watch::Sender<bool>,
    waiting: Arc<AtomicUsize>,
    deltas: Arc<AtomicUsize>,
    /// How many mutations came and how many were answered, together.
    moments: watch::Sender<usize>,
    /// Streams opened for mutations, whether or not a message came on them.
    opened: Arc<AtomicUsize>,
}

/// How a machine is no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gone {
    /// Whoever asks what changed is told.
    Told,
    /// It is in no answer any more; only who asks for everything can miss it.
    Untold,
}

/// Clusters no machine ever starts for, and the machines that were tried.
#[derive(Debug, Default)]
struct Cursed {
    clusters: BTreeSet<String>,
    machines: BTreeSet<String>,
}

/// What a machine that did not start is said to have died of.
pub(crate) const CURSE: &str = "kubelet never joined";

/// The ledger at work, and where.
pub(crate) struct Ledgered {
    pub(crate) ledger: Ledger,
    pub(crate) addr: SocketAddr,
    _server: Serving,
}

impl Ledgered {
    pub(crate) async fn start(provider: SocketAddr) -> Self {
        Self::start_within(provider, Limits::PROVIDER).await
    }

    /// The same, for callers within these limits.
    pub(crate) async fn start_within(provider: SocketAddr, limits: Limits) -> Self {
        let channel = Dial::provider(None).channel(&provider.to_string()).unwrap();
        let client =
            CapacityProviderClient::new(channel).max_decoding_message_size(MAX_MESSAGE_BYTES);
        let ledger = Ledger {
            client,
            seen: Arc::default(),
            lies: Arc::default(),
            remembered: Arc::default(),
            gone: Arc::default(),
            refusals: Arc::default(),
            cursed: Arc::default(),
            held: watch::Sender::new(false),
            waiting: Arc::default(),
            deltas: Arc::default(),
            moments: watch::Sender::new(0),
            opened: Arc::default(),
        };
        let service = Opened {
            service: CapacityProviderServer::new(ledger.clone()),
            opened: Arc::clone(&ledger.opened),
        };
        let router = limits.server().add_service(service);
        let server = serve(listen("127.0.0.1:0").await.unwrap(), None, router).unwrap();
        Self {
            ledger,
            addr: server.addr(),
            _server: server,
        }
    }
}

/// A service that counts the streams that are opened for mutations, as soon as their headers are there.
#[derive(Clone)]
struct Opened {
    service: CapacityProviderServer<Ledger>,
    opened: Arc<AtomicUsize>,
}

impl NamedService for Opened {
    const NAME: &'static str = CapacityProviderServer::<Ledger>::NAME;
}

type Served = CapacityProviderServer<Ledger>;

impl Service<http::Request<Body>> for Opened {
    type Response = <Served as Service<http::Request<Body>>>::Response;
    type Error = <Served as Service<http::Request<Body>>>::Error;
    type Future = <Served as Service<http::Request<Body>>>::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Service::<http::Request<Body>>::poll_ready(&mut self.service, context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let method = request.uri().path().rsplit('/').next();
        let mutations = ["Create", "Configure", "Drain", "Delete"];
        if method.is_some_and(|method| mutations.contains(&method)) {
            self.opened.fetch_add(1, Ordering::Relaxed);
        }
        self.service.call(request)
    }
}

impl Ledger {
    /// Streams opened for mutations so far.
    pub(crate) fn opened(&self) -> usize {
        self.opened.load(Ordering::Relaxed)
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// The next so many Lists are answered with this.
    pub(crate) fn lie(&self, lie: Lie, lists: usize) {
        self.lies.lock().unwrap().extend(vec![lie; lists]);
    }

    pub(crate) fn lies_left(&self) -> usize {
        self.lies.lock().unwrap().len()
    }

    /// Remembers the List of this moment, for [`Lie::Stale`].
    pub(crate) async fn remember(&self) {
        let listed = self.client.clone().list(wire::ListFilter::default()).await;
        *self.remembered.lock().unwrap() = listed.unwrap().into_inner();
    }

    /// From now on this machine does not exist.
    pub(crate) fn vanish(&self, machine: &str, how: Gone) {
        self.gone.lock().unwrap().insert(machine.to_owned(), how);
    }

    fn exists(&self, machine: &str) -> bool {
        !self.gone.lock().unwrap().contains_key(machine)
    }

    /// Every call of this kind is answered with this from now on, and reaches nobody.
    pub(crate) fn refuse(&self, kind: CallKind, status: Status) {
        self.refusals.lock().unwrap().insert(kind, status);
    }

    /// Calls of this kind are handed on again.
    pub(crate) fn relent(&self, kind: CallKind) {
        self.refusals.lock().unwrap().remove(&kind);
    }

    /// From now on a machine that is configured for this cluster is shown as Failed.
    pub(crate) fn curse(&self, cluster: &str) {
        let clusters = &mut self.cursed.lock().unwrap().clusters;
        clusters.insert(cluster.to_owned());
    }

    /// What is configured for it from now on starts; what was tried before stays Failed.
    pub(crate) fn lift_curse(&self, cluster: &str) {
        self.cursed.lock().unwrap().clusters.remove(cluster);
    }

    fn as_cursed(&self, machine: &mut wire::Machine) {
        if self.cursed.lock().unwrap().machines.contains(&machine.id) {
            machine.set_state(wire::MachineState::Failed);
            machine.last_error = CURSE.to_owned();
        }
    }

    /// Every mutation from now on waits, on its way to the provider, until they are let go.
    pub(crate) fn hold(&self) {
        self.held.send_replace(true);
    }

    pub(crate) fn let_go(&self) {
        self.held.send_replace(false);
    }

    /// How many wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// How many Lists asked for changes only.
    pub(crate) fn deltas(&self) -> usize {
        self.deltas.load(Ordering::Relaxed)
    }

    /// Waits until so many more mutations have come or been answered.
    pub(crate) async fn moments(&self, more: usize) {
        let mut moments = self.moments.subscribe();
        let enough = *moments.borrow() + more;
        moments.wait_for(|now| enough <= *now).await.unwrap();
    }

    /// An answer without the machines that are no more.
    fn without_the_gone(&self, mut list: wire::MachineList, delta: bool) -> wire::MachineList {
        let gone = self.gone.lock().unwrap();
        let before = list.machines.len();
        list.machines
            .retain(|machine| !gone.contains_key(&machine.id));
        list.total_machines -= i32::try_from(before - list.machines.len()).unwrap();
        if delta {
            let told = gone.iter().filter(|(_, how)| **how == Gone::Told);
            list.removed_ids.extend(told.map(|(id, _)| id.clone()));
        }
        list
    }

    fn told(&self, lie: Lie, mut truth: wire::MachineList) -> wire::MachineList {
        let half = truth.machines.len() / 2;
        match lie {
            Lie::None | Lie::Late => truth,
            Lie::Half => {
                truth.machines.truncate(half);
                truth
            }
            Lie::HalfUncounted => {
                truth.machines.truncate(half);
                wire::MachineList {
                    machines: truth.machines,
                    revision: truth.revision,
                    ..wire::MachineList::default()
                }
            }
            Lie::Garbled => {
                for machine in &mut truth.machines {
                    let offered = [&mut machine.resources, &mut machine.allocatable];
                    for held in offered.into_iter().flatten() {
                        held.resources.insert("cpu".to_owned(), "lots".to_owned());
                    }
                }
                truth
            }
            Lie::Stale => self.remembered.lock().unwrap().clone(),
        }
    }

    /// The provider's operations of a kind: a call answered twice with one operation is one.
    pub(crate) fn operations(&self, kind: CallKind) -> BTreeSet<String> {
        let seen = self.seen();
        let of_kind = seen.into_iter().filter(|one| one.kind == kind);
        of_kind.filter_map(|one| one.answer.ok()).collect()
    }

    /// What the provider has, by state.
    pub(crate) async fn machines(&self) -> BTreeMap<wire::MachineState, Vec<wire::Machine>> {
        let listed = self.client.clone().list(wire::ListFilter::default()).await;
        let mut by_state: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for machine in listed.unwrap().into_inner().machines {
            by_state.entry(machine.state()).or_default().push(machine);
        }
        by_state
    }

    /// No token of a machine was ever used twice or went back, and no call of ours was out of place.
    pub(crate) fn check(&self) {
        let mut last: BTreeMap<String, (i64, i64)> = BTreeMap::new();
        for seen in self.seen() {
            let refused = seen.answer.as_ref().err();
            assert!(
                !matches!(refused, Some(tonic::Code::FailedPrecondition)),
                "fenced: {seen:?}"
            );
            if let Some(before) = last.insert(seen.machine.clone(), seen.token) {
                assert!(before < seen.token, "{before:?} then {seen:?}");
            }
        }
    }

    /// Hands a mutation on and writes its answer down, also if whoever asked is killed meanwhile: what
    /// reached the provider is on the ledger.
    async fn hand_on(
        &self,
        call: impl Future<Output = Answer> + Send + 'static,
        kind: CallKind,
        machine: String,
        token: (i64, i64),
        (cluster, intent): (String, String),
    ) -> Answer {
        let (seen, waiting) = (Arc::clone(&self.seen), Arc::clone(&self.waiting));
        let (mut held, moments) = (self.held.subscribe(), self.moments.clone());
        let at = Instant::now();
        let refusal = self.refusals.lock().unwrap().get(&kind).cloned();
        let handed_on = tokio::spawn(async move {
            moments.send_modify(|count| *count += 1);
            waiting.fetch_add(1, Ordering::Relaxed);
            drop(held.wait_for(|held| !held).await);
            waiting.fetch_sub(1, Ordering::Relaxed);
            let answer = match refusal {
                Some(status) => Err(status),
                None => call.await,
            };
            seen.lock().unwrap().push(Seen {
                at,
                kind,
                machine,
                token,
                intent,
                cluster,
                answer: match &answer {
                    Ok(ack) => Ok(ack.get_ref().operation_id.clone()),
                    Err(status) => Err(status.code()),
                },
            });
            moments.send_modify(|count| *count += 1);
            answer
        });
        handed_on.await.unwrap()
    }
}

#[tonic::async_trait]
impl CapacityProvider for Ledger {
    async fn create(&self, request: Request<wire::CreateRequest>) -> Answer {
        let (mut client, asked) = (self.client.clone(), request.into_inner());
        let token = (asked.shard_epoch, asked.sequence_number);
        let machine = asked.machine_id.clone();
        let call = async move { client.create(asked).await };
        self.hand_on(call, CallKind::Create, machine, token, Default::default())
            .await
    }

    async fn configure(&self, request: Request<wire::ConfigureRequest>) -> Answer {
        let (mut client, asked) = (self.client.clone(), request.into_inner());
        let token = (asked.shard_epoch, asked.sequence_number);
        let machine = asked.machine_id.clone();
        let intent = asked.shard_metadata.get("bigfleet.lucy.sh/assigned-intent");
        let with = (
            asked.cluster_id.clone(),
            intent.cloned().unwrap_or_default(),
        );
        let cursed = Arc::clone(&self.cursed);
        let call = async move {
            let (cluster, id) = (asked.cluster_id.clone(), asked.machine_id.clone());
            let answer = client.configure(asked).await;
            let mut cursed = cursed.lock().unwrap();
            if answer.is_ok() && cursed.clusters.contains(&cluster) {
                cursed.machines.insert(id);
            }
            answer
        };
        self.hand_on(call, CallKind::Configure, machine, token, with)
            .await
    }

    async fn drain(&self, request: Request<wire::DrainRequest>) -> Answer {
        let (mut client, asked) = (self.client.clone(), request.into_inner());
        let token = (asked.shard_epoch, asked.sequence_number);
        let machine = asked.machine_id.clone();
        let call = async move { client.drain(asked).await };
        self.hand_on(call, CallKind::Drain, machine, token, Default::default())
            .await
    }

    async fn delete(&self, request: Request<wire::DeleteRequest>) -> Answer {
        let (mut client, asked) = (self.client.clone(), request.into_inner());
        let token = (asked.shard_epoch, asked.sequence_number);
        let machine = asked.machine_id.clone();
        let call = async move { client.delete(asked).await };
        self.hand_on(call, CallKind::Delete, machine, token, Default::default())
            .await
    }

    async fn get(
        &self,
        request: Request<wire::MachineRef>,
    ) -> Result<Response<wire::Machine>, Status> {
        let asked = request.into_inner();
        if self.exists(&asked.id) {
            let mut machine = self.client.clone().get(asked).await?;
            self.as_cursed(machine.get_mut());
            Ok(machine)
        } else {
            Err(Status::not_found(asked.id))
        }
    }

    async fn list(
        &self,
        request: Request<wire::ListFilter>,
    ) -> Result<Response<wire::MachineList>, Status> {
        let asked = request.into_inner();
        let delta = !asked.since_revision.is_empty();
        self.deltas.fetch_add(usize::from(delta), Ordering::Relaxed);
        let mut truth = self.client.clone().list(asked).await?.into_inner();
        for machine in &mut truth.machines {
            self.as_cursed(machine);
        }
        let truth = self.without_the_gone(truth, delta);
        let lie = self.lies.lock().unwrap().pop_front();
        let lie = lie.unwrap_or(Lie::None);
        if lie == Lie::Late {
            drop(self.held.subscribe().wait_for(|held| !held).await);
        }
        Ok(Response::new(self.told(lie, truth)))
    }
}
