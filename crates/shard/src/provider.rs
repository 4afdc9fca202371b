//! The provider's client: calls with deadlines, Lists page by page, answers as events (provider §15).
//!
//! ```text
//! Call, Get ─▶ a task each, 30 s ──▶ CallEnded, GotMachine
//! List ─▶ page, page, page, 2 min each ─▶ ListPage… ─▶ ListEnded        one List at a time
//! ```
//!
//! How many calls there are at once is the core's word, and so is when one is sent again: a task here
//! makes one attempt and reports it. Nothing beyond the public contract is assumed: a provider that
//! does not page answers with one page, one that does not count is not counted.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bigfleet_model::{Breach, IdRefused, MachineId, MachineRefused, shown};
use bigfleet_shard_core::{
    CallOutcome, Code, Event, GetId, Got, ListId, Listed, OperationId, ProviderCall, Sighting,
    Token,
};
use bigfleet_wire::v1alpha1::capacity_provider_client::CapacityProviderClient;
use bigfleet_wire::v1alpha1::{
    ConfigureRequest, CreateRequest, DeleteRequest, DrainRequest, ListFilter, MachineList,
    MachineRef, TransitionAck,
};
use bigfleet_wire::{Ack, Listing, Record, RecordProblem, RefusedRecord, check_metadata};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinHandle};
use tonic::transport::Channel;
use tonic::{Response, Status};
use tracing::Instrument;

use crate::hub::{Hub, Stopping};
use crate::rpcs::Rpcs;
use crate::settings::Settings;
use crate::timing::{TIMING, milliseconds};
use crate::trouble::{self, Trouble};

/// Machines asked for per page, of a provider that pages.
const PAGE: i32 = 5_000;
/// Machines the core takes in at once; between two such pieces it can decide.
const PIECE: usize = 250;
/// Refused records named in the log, per List.
const NAMED: usize = 10;

/// The provider, as the driver's effects reach it.
#[derive(Clone, Debug)]
pub(crate) struct Provider {
    client: CapacityProviderClient<Channel>,
    incremental: bool,
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
}

impl ListTimes {
    /// How many were complete, and how long they took together.
    pub(crate) fn so_far(&self) -> (u64, Duration) {
        *self.complete.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, took: Duration) {
        let mut times = self.complete.lock().unwrap_or_else(PoisonError::into_inner);
        times.0 += 1;
        times.1 += took;
    }
}

impl Provider {
    pub(crate) fn new(
        channel: Channel,
        incremental: bool,
        hub: Hub,
        times: Arc<ListTimes>,
        rpcs: Arc<Rpcs>,
        trouble: Trouble,
        span: tracing::Span,
    ) -> Self {
        let client = CapacityProviderClient::new(channel)
            .max_decoding_message_size(bigfleet_net::MAX_MESSAGE_BYTES)
            .max_encoding_message_size(bigfleet_net::MAX_MESSAGE_BYTES);
        Self {
            client,
            incremental,
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

    /// Makes a call.
    pub(crate) fn call(
        &self,
        operation: OperationId,
        machine: MachineId,
        token: Token,
        call: ProviderCall,
    ) {
        let provider = self.clone();
        self.spawn(async move {
            let sequence = token.sequence;
            let moments = trouble::Call::from(&call);
            provider.trouble.leaves(moments);
            let outcome = provider.attempt(&machine, token, call).await;
            provider.trouble.answered(moments);
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

    async fn attempt(&self, machine: &MachineId, token: Token, call: ProviderCall) -> CallOutcome {
        let mut client = self.client.clone();
        let machine_id = machine.to_string();
        let (shard_id, shard_epoch) = (token.shard, number(token.epoch));
        let sequence_number = number(token.sequence);
        let within = Settings::CALL_WITHIN;
        let answer = match call {
            ProviderCall::Create => {
                let request = CreateRequest {
                    machine_id,
                    shard_id,
                    shard_epoch,
                    sequence_number,
                    shard_metadata: Default::default(),
                };
                self.timed("Create", within, client.create(request)).await
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
                self.timed("Configure", within, client.configure(request))
                    .await
            }
            ProviderCall::Drain { grace_seconds } => {
                let request = DrainRequest {
                    machine_id,
                    grace_period_seconds: grace_seconds.into(),
                    shard_id,
                    shard_epoch,
                    sequence_number,
                };
                self.timed("Drain", within, client.drain(request)).await
            }
            ProviderCall::Delete => {
                let request = DeleteRequest {
                    machine_id,
                    shard_id,
                    shard_epoch,
                    sequence_number,
                };
                self.timed("Delete", within, client.delete(request)).await
            }
        };
        self.outcome(machine, answer)
    }

    /// One attempt within its time, and how it went.
    async fn timed<T>(
        &self,
        method: &'static str,
        within: Duration,
        call: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Result<T, Status> {
        let began = Instant::now();
        let answer = in_time(within, call).await;
        let code = answer.as_ref().err().map_or(tonic::Code::Ok, Status::code);
        self.rpcs.ended(method, code, began.elapsed());
        answer
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
                    text: shown(status.message()),
                }
            }
        }
    }

    /// Reads one machine.
    pub(crate) fn get(&self, get: GetId, machine: MachineId) {
        let provider = self.clone();
        self.spawn(async move {
            let mut client = provider.client.clone();
            let id = machine.to_string();
            let call = client.get(MachineRef { id });
            let answer = provider.timed("Get", Settings::CALL_WITHIN, call).await;
            let answer = match answer {
                Ok(found) => match Record::read(found) {
                    Ok(record) => {
                        provider.rpcs.heed([&record]);
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
            };
            drop(provider.hub.tell(Event::GotMachine { get, answer }).await);
        });
    }

    /// Lists all machines, or what changed since the cursor. A List that is still under way is given
    /// up: the core has begun this one and would not hear it.
    pub(crate) fn list(&self, list: ListId, cursor: Vec<u8>) {
        let provider = self.clone();
        let task = self.spawn(async move {
            let began = Instant::now();
            let outcome = match provider.pages(list, cursor).await {
                Ok(complete) => {
                    let took = began.elapsed();
                    provider.times.add(took);
                    provider.rpcs.listed(true);
                    tracing::debug!(target: TIMING, ms = milliseconds(took), "list took");
                    complete
                }
                Err(Broken::Stopping) => return,
                Err(Broken::Provider(err)) => {
                    provider.times.failed.fetch_add(1, Ordering::Relaxed);
                    provider.rpcs.listed(false);
                    tracing::warn!(err, "reconcile failed");
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

    async fn pages(&self, list: ListId, cursor: Vec<u8>) -> Result<Listed, Broken> {
        let since_revision = match self.incremental {
            true => cursor,
            false => Vec::new(),
        };
        let everything = since_revision.is_empty();
        let filter = ListFilter {
            since_revision,
            page_size: PAGE,
            accept_removed: true,
            ..ListFilter::default()
        };
        // While the core takes in one page the next is read, and the one after that is on its way.
        let (read, mut pages) = mpsc::channel(1);
        let reading = self.read_pages(filter, read);
        let telling = async move {
            while let Some((records, refused)) = pages.recv().await {
                self.pieces(list, records, refused).await?;
            }
            Ok::<(), Broken>(())
        };
        let (end, told) = tokio::join!(reading, telling);
        told?;
        let End {
            last,
            removed,
            seen,
        } = end?;
        let full = everything || last.is_full;
        if let Some(total) = last.total.filter(|_| full)
            && seen < total as usize
        {
            let text = format!("the List has {seen} of {total} machines");
            return Err(Broken::Provider(text));
        }
        let cursor = match self.incremental {
            true => last.revision,
            false => Vec::new(),
        };
        Ok(Listed::Complete {
            full,
            removed,
            cursor,
        })
    }

    async fn read_pages(
        &self,
        mut filter: ListFilter,
        read: mpsc::Sender<Screened>,
    ) -> Result<End, Broken> {
        let (mut removed, mut seen, mut named) = (Vec::new(), 0_usize, 0_usize);
        let mut answer = self.page(filter.clone()).await?;
        loop {
            let token = std::mem::take(&mut answer.next_page_token);
            if !token.is_empty() && filter.page_token == token {
                let text = "the same page was offered twice".to_owned();
                return Err(Broken::Provider(text));
            }
            filter.page_token = token;
            let next = async {
                match filter.page_token.is_empty() {
                    true => None,
                    false => Some(self.page(filter.clone()).await),
                }
            };
            let (listing, next) = tokio::join!(off_thread(move || Listing::read(answer)), next);
            let mut listing = listing?;
            let records = std::mem::take(&mut listing.records);
            let refused = std::mem::take(&mut listing.refused);
            seen += records.len() + refused.len();
            self.screened(&refused, &mut named);
            self.rpcs.heed(&records);
            removed.extend(std::mem::take(&mut listing.removed));
            let sent = read.send((records, refused)).await;
            sent.map_err(|_| Broken::Stopping)?;
            match next {
                Some(next) => answer = next?,
                None => {
                    return Ok(End {
                        last: listing,
                        removed,
                        seen,
                    });
                }
            }
        }
    }

    async fn page(&self, filter: ListFilter) -> Result<MachineList, Status> {
        let mut client = self.client.clone();
        let call = client.list(filter);
        self.timed("List", Settings::LIST_WITHIN, call).await
    }

    async fn pieces(
        &self,
        list: ListId,
        records: Vec<Record>,
        refused: Vec<RefusedRecord>,
    ) -> Result<(), Stopping> {
        let refused = refused.into_iter().map(breach).collect();
        let first = Event::ListPage {
            list,
            machines: Vec::new(),
            refused,
        };
        self.hub.tell(first).await?;
        let mut records = records.into_iter().map(sighting);
        loop {
            let machines: Vec<Sighting> = records.by_ref().take(PIECE).collect();
            if machines.is_empty() {
                return Ok(());
            }
            let refused = Vec::new();
            let page = Event::ListPage {
                list,
                machines,
                refused,
            };
            // Waits until it is taken in: a List of any length takes the memory of a few pages.
            self.hub.submit(page, |_| ()).await?;
        }
    }

    fn screened(&self, refused: &[RefusedRecord], named: &mut usize) {
        for record in refused.iter().take(NAMED.saturating_sub(*named)) {
            *named += 1;
            let machine = record.id.as_ref().map_or("", MachineId::as_str);
            tracing::warn!(machine, err = %record.problem, "provider record rejected");
        }
    }
}

/// A page's records: those that can be used, and those that cannot.
type Screened = (Vec<Record>, Vec<RefusedRecord>);

/// What the pages of a List say together.
struct End {
    /// The last page, without its records.
    last: Listing,
    removed: Vec<MachineId>,
    seen: usize,
}

/// Why a List did not come to its end.
enum Broken {
    Stopping,
    Provider(String),
}

impl From<Stopping> for Broken {
    fn from(_: Stopping) -> Self {
        Self::Stopping
    }
}

impl From<Status> for Broken {
    fn from(status: Status) -> Self {
        Self::Provider(bigfleet_net::chain(&status))
    }
}

/// Reading thousands of records is too much for a thread that serves others.
async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Stopping> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| Stopping)
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

fn sighting(record: Record) -> Sighting {
    Sighting {
        machine: record.machine,
        echoed: record.echoed,
    }
}

/// A refused record as the core counts it. What breaks a rule of the wire rather than of the grid
/// counts as structural, which an id that cannot be one is too.
fn breach(refused: RefusedRecord) -> (String, MachineRefused) {
    let id = refused.id.map(|id| id.to_string()).unwrap_or_default();
    let problem = match refused.problem {
        RecordProblem::Grid(problem) => problem,
        RecordProblem::Limit { .. }
        | RecordProblem::Duplicate(_)
        | RecordProblem::ListedAndRemoved(_)
        | RecordProblem::RemovedId(..) => MachineRefused {
            id: shown(&id),
            breach: Breach::Id(IdRefused::Empty),
        },
    };
    (id, problem)
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
