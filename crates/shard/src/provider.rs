//! The provider's client: calls with deadlines, Lists, answers as events (SH-9, SH-11).
//!
//! ```text
//! Call, Get ─▶ a task each, 30 s ──▶ CallEnded, GotMachine
//! List ─▶ a task, page by page ────▶ ListPage… ─▶ ListEnded        one List at a time
//! ```
//!
//! How many calls there are at once is the core's word, and so is when one is sent again: a task here
//! makes one attempt and reports it.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bigfleet_model::{MachineId, shown};
use bigfleet_net::TurnChannel;
use bigfleet_shard_core::{
    CallOutcome, Code, Event, GetId, Got, ListId, Listed, OperationId, ProviderCall, Sighting,
    Token,
};
use bigfleet_wire::v1alpha1::capacity_provider_client::CapacityProviderClient;
use bigfleet_wire::v1alpha1::{
    ConfigureRequest, CreateRequest, DeleteRequest, DrainRequest, MachineRef, TransitionAck,
};
use bigfleet_wire::{Ack, Record, check_metadata};
use prost::Message;
use tokio::runtime::Handle;
use tokio::task::{AbortHandle, JoinHandle};
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;
use tracing::Instrument;

use crate::departure::{Departure, Leaving};
use crate::hub::Hub;
use crate::list_problem::ListProblem;
use crate::listing::{Broken, Lister};
use crate::panics::Task;
use crate::rpcs::Rpcs;
use crate::settings::Settings;
use crate::timing::{TIMING, milliseconds};
use crate::trouble::{self, Trouble};

/// A call that changes a machine, by its name and where it is served.
struct Method {
    name: &'static str,
    path: &'static str,
}

const CREATE: Method = Method {
    name: "Create",
    path: "/bigfleet.v1alpha1.CapacityProvider/Create",
};
const CONFIGURE: Method = Method {
    name: "Configure",
    path: "/bigfleet.v1alpha1.CapacityProvider/Configure",
};
const DRAIN: Method = Method {
    name: "Drain",
    path: "/bigfleet.v1alpha1.CapacityProvider/Drain",
};
const DELETE: Method = Method {
    name: "Delete",
    path: "/bigfleet.v1alpha1.CapacityProvider/Delete",
};

/// The provider, as the driver's effects reach it.
#[derive(Clone, Debug)]
pub(crate) struct Provider {
    client: CapacityProviderClient<TurnChannel>,
    /// For calls that change a machine: their messages are written at the last moment.
    calls: Grpc<TurnChannel>,
    lister: Lister,
    hub: Hub,
    runtime: Handle,
    times: Arc<ListTimes>,
    rpcs: Arc<Rpcs>,
    trouble: Trouble,
    /// Whose lines these are.
    span: tracing::Span,
    listing: Arc<Mutex<Option<AbortHandle>>>,
}

/// How Lists went.
#[derive(Debug, Default)]
pub(crate) struct ListTimes {
    complete: Mutex<(u64, Duration)>,
    /// Ones that did not come to their end.
    pub(crate) failed: AtomicU64,
    /// What the last one failed with; `None` if it did not.
    problem: Mutex<Option<ListProblem>>,
}

impl ListTimes {
    /// How many were complete, and how long they took together.
    pub(crate) fn so_far(&self) -> (u64, Duration) {
        *self.complete.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is wrong with the provider, as the end of a sentence that begins with it.
    pub(crate) fn problem_words(&self) -> String {
        let problem = self.problem.lock().unwrap_or_else(PoisonError::into_inner);
        let words = problem.as_ref().map(ListProblem::words);
        // One that is lost while no List failed has a List under way that shows nothing.
        words.unwrap_or_else(|| "does not answer".to_owned())
    }

    /// Notes how a List ended; says whether that is news: it fails otherwise than the last one, or no more.
    fn note(&self, problem: Option<&ListProblem>) -> bool {
        let mut last = self.problem.lock().unwrap_or_else(PoisonError::into_inner);
        let is_news = last.as_ref() != problem;
        *last = problem.cloned();
        is_news
    }

    fn add(&self, took: Duration) {
        let mut times = self.complete.lock().unwrap_or_else(PoisonError::into_inner);
        times.0 += 1;
        times.1 += took;
    }
}

impl Provider {
    pub(crate) fn new(
        channel: TurnChannel,
        hub: Hub,
        times: Arc<ListTimes>,
        rpcs: Arc<Rpcs>,
        trouble: Trouble,
        span: tracing::Span,
    ) -> Self {
        let lister = Lister::new(channel.clone(), (hub.clone(), Arc::clone(&rpcs)));
        let calls = Grpc::new(channel.clone())
            .max_decoding_message_size(bigfleet_net::MAX_MESSAGE_BYTES)
            .max_encoding_message_size(bigfleet_net::MAX_MESSAGE_BYTES);
        let client = CapacityProviderClient::new(channel)
            .max_decoding_message_size(bigfleet_net::MAX_MESSAGE_BYTES)
            .max_encoding_message_size(bigfleet_net::MAX_MESSAGE_BYTES);
        Self {
            client,
            calls,
            lister,
            hub,
            runtime: Handle::current(),
            times,
            rpcs,
            trouble,
            span,
            listing: Arc::default(),
        }
    }

    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        self.runtime.spawn(work.instrument(self.span.clone()))
    }

    /// Makes a call. It can be withdrawn until it is written.
    pub(crate) fn call(
        &self,
        operation: OperationId,
        machine: MachineId,
        token: Token,
        call: ProviderCall,
        departure: Arc<Departure>,
    ) {
        let provider = self.clone();
        self.spawn(async move {
            let sequence = token.sequence;
            let moments = trouble::Call::from(&call);
            let attempt = async {
                provider.trouble.leaves(moments);
                let attempt = provider.attempt(&machine, token, call, &departure);
                let outcome = tokio::select! {
                    outcome = attempt => outcome,
                    () = departure.withdrawn() => CallOutcome::NeverSent,
                };
                provider.trouble.answered(moments);
                outcome
            };
            let outcome = provider.hub.survive(Task::Call, attempt).await;
            // Nobody knows how far it got; a Get will show (SH-12).
            let outcome = outcome.unwrap_or_else(|panicked| CallOutcome::Refused {
                code: Code::Internal,
                text: panicked.to_string(),
            });
            drop(
                provider
                    .hub
                    .tell(Event::CallEnded {
                        operation,
                        sequence,
                        outcome,
                    })
                    .await,
            );
        });
    }

    async fn attempt(
        &self,
        machine: &MachineId,
        token: Token,
        call: ProviderCall,
        departure: &Arc<Departure>,
    ) -> CallOutcome {
        let machine_id = machine.to_string();
        let (shard_id, shard_epoch) = (token.shard, number(token.epoch));
        let sequence_number = number(token.sequence);
        let answer = match call {
            ProviderCall::Create => {
                let request = CreateRequest {
                    machine_id,
                    shard_id,
                    shard_epoch,
                    sequence_number,
                    shard_metadata: Default::default(),
                };
                self.write(&CREATE, request, departure).await
            }
            ProviderCall::Configure {
                cluster,
                blob,
                metadata,
            } => {
                if let Err(over) = check_metadata(&metadata) {
                    tracing::error!(%machine, %over, "a Configure no provider could take");
                    return CallOutcome::Refused {
                        code: Code::InvalidArgument,
                        text: over.to_string(),
                    };
                }
                let request = ConfigureRequest {
                    machine_id,
                    cluster_id: cluster.to_string(),
                    bootstrap_blob: blob,
                    shard_id,
                    shard_epoch,
                    sequence_number,
                    shard_metadata: metadata,
                };
                self.write(&CONFIGURE, request, departure).await
            }
            ProviderCall::Drain { grace_seconds } => {
                let request = DrainRequest {
                    machine_id,
                    grace_period_seconds: grace_seconds.into(),
                    shard_id,
                    shard_epoch,
                    sequence_number,
                };
                self.write(&DRAIN, request, departure).await
            }
            ProviderCall::Delete => {
                let request = DeleteRequest {
                    machine_id,
                    shard_id,
                    shard_epoch,
                    sequence_number,
                };
                self.write(&DELETE, request, departure).await
            }
        };
        self.outcome(machine, answer)
    }

    /// Makes one call whose message the connection takes when it can write it.
    async fn write<M: Message + Unpin + 'static>(
        &self,
        method: &Method,
        message: M,
        departure: &Arc<Departure>,
    ) -> Result<TransitionAck, Status> {
        let mut calls = self.calls.clone();
        let message = Leaving::new(message, departure);
        let call = async {
            let ready = calls.ready().await;
            ready.map_err(bigfleet_net::unready)?;
            let path = PathAndQuery::from_static(method.path);
            let codec = ProstCodec::<M, TransitionAck>::default();
            calls
                .client_streaming(Request::new(message), path, codec)
                .await
        };
        self.timed(method.name, Settings::CALL_WITHIN, call).await
    }

    async fn timed<T>(
        &self,
        method: &'static str,
        within: Duration,
        call: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Result<T, Status> {
        timed(&self.rpcs, method, within, call).await
    }

    fn outcome(&self, machine: &MachineId, answer: Result<TransitionAck, Status>) -> CallOutcome {
        match answer {
            Ok(ack) => match Ack::read(ack) {
                Ok(ack) => {
                    self.rpcs.heed([&ack.record]);
                    CallOutcome::Acked {
                        seen: Box::new(sighting(ack.record)),
                        operation: shown(&ack.operation),
                    }
                }
                Err(refused) => {
                    tracing::warn!(%machine, err = %refused, "an acknowledgement that cannot be used");
                    // Something was done; a Get will show what (SH-12).
                    CallOutcome::Refused {
                        code: Code::Internal,
                        text: refused.to_string(),
                    }
                }
            },
            Err(status) => {
                tracing::debug!(%machine, %status, "call refused");
                CallOutcome::Refused {
                    code: code(status.code()),
                    text: bigfleet_net::answered(&status),
                }
            }
        }
    }

    /// Reads one machine.
    pub(crate) fn get(&self, get: GetId, machine: MachineId) {
        let provider = self.clone();
        self.spawn(async move {
            let reading = provider.read(&machine);
            let answer = provider.hub.survive(Task::Get, reading).await;
            let answer = answer.unwrap_or(Got::Failed);
            drop(provider.hub.tell(Event::GotMachine { get, answer }).await);
        });
    }

    async fn read(&self, machine: &MachineId) -> Got {
        let mut client = self.client.clone();
        let id = machine.to_string();
        let call = client.get(MachineRef { id });
        match self.timed("Get", Settings::CALL_WITHIN, call).await {
            Ok(found) => match Record::read(found) {
                Ok(record) => {
                    self.rpcs.heed([&record]);
                    Got::Found(Box::new(sighting(record)))
                }
                Err(refused) => {
                    tracing::warn!(%machine, err = %refused, "provider record rejected");
                    Got::Failed
                }
            },
            Err(status) if status.code() == tonic::Code::NotFound => Got::NotFound,
            Err(status) => {
                tracing::debug!(%machine, %status, "Get failed");
                Got::Failed
            }
        }
    }

    /// Lists all machines, or what changed since the cursor. A List that is still under way is given
    /// up: the core has begun this one and would not hear it.
    pub(crate) fn list(&self, list: ListId, cursor: Vec<u8>) {
        let provider = self.clone();
        let task = self.spawn(async move {
            let began = Instant::now();
            let listed = provider.lister.list(list, cursor);
            let listed = provider.hub.survive(Task::List, listed).await;
            let listed = listed.unwrap_or_else(|why| {
                Err(Broken::Provider(ListProblem::Unusable(why.to_string())))
            });
            let outcome = match listed {
                Ok(complete) => {
                    let took = began.elapsed();
                    provider.times.add(took);
                    provider.rpcs.listed(true);
                    if provider.times.note(None) {
                        tracing::info!("the provider answers again");
                    }
                    tracing::debug!(target: TIMING, ms = milliseconds(took), "list took");
                    complete
                }
                Err(Broken::Stopping) => return,
                Err(Broken::Provider(problem)) => {
                    provider.times.failed.fetch_add(1, Ordering::Relaxed);
                    provider.rpcs.listed(false);
                    if provider.times.note(Some(&problem)) {
                        let err = problem.words();
                        tracing::warn!(err, "reconcile failed");
                    }
                    Listed::Failed
                }
            };
            drop(provider.hub.tell(Event::ListEnded { list, outcome }).await);
        });
        let before = self
            .listing
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .replace(task.abort_handle());
        if let Some(before) = before.filter(|before| !before.is_finished()) {
            tracing::warn!("reconcile failed: the List before is still under way and is given up");
            self.times.failed.fetch_add(1, Ordering::Relaxed);
            self.rpcs.listed(false);
            before.abort();
        }
    }
}

/// One attempt within its time, and how it went.
pub(crate) async fn timed<T>(
    rpcs: &Rpcs,
    method: &'static str,
    within: Duration,
    call: impl Future<Output = Result<Response<T>, Status>>,
) -> Result<T, Status> {
    let began = Instant::now();
    let answer = in_time(within, call).await;
    let code = answer.as_ref().err().map_or(tonic::Code::Ok, Status::code);
    rpcs.ended(method, code, began.elapsed());
    answer
}

async fn in_time<T>(
    within: Duration,
    call: impl Future<Output = Result<Response<T>, Status>>,
) -> Result<T, Status> {
    match tokio::time::timeout(within, call).await {
        Ok(answer) => answer.map(Response::into_inner),
        Err(_) => Err(Status::deadline_exceeded("no answer in time")),
    }
}

fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

pub(crate) fn sighting(record: Record) -> Sighting {
    Sighting {
        machine: record.machine,
        echoed: record.echoed,
        leaving: record.leaving,
    }
}

/// SH-11. A code that says nothing about what was done is like a connection that broke.
fn code(code: tonic::Code) -> Code {
    match code {
        tonic::Code::Unavailable => Code::Unavailable,
        tonic::Code::DeadlineExceeded => Code::DeadlineExceeded,
        tonic::Code::Cancelled => Code::Cancelled,
        tonic::Code::Unknown => Code::Unknown,
        tonic::Code::ResourceExhausted => Code::ResourceExhausted,
        tonic::Code::NotFound => Code::NotFound,
        tonic::Code::Internal => Code::Internal,
        tonic::Code::AlreadyExists => Code::AlreadyExists,
        tonic::Code::InvalidArgument => Code::InvalidArgument,
        tonic::Code::Unimplemented => Code::Unimplemented,
        tonic::Code::FailedPrecondition => Code::FailedPrecondition,
        tonic::Code::Ok
        | tonic::Code::PermissionDenied
        | tonic::Code::Aborted
        | tonic::Code::OutOfRange
        | tonic::Code::DataLoss
        | tonic::Code::Unauthenticated => Code::Transport,
    }
}
