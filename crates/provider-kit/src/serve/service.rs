//! The six calls: a message in, a request to the driver, a message out.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bigfleet_net::{Caller, Identity};
use bigfleet_wire::v1alpha1 as wire;
use tokio::sync::{mpsc, oneshot};
use tonic::{Request as Rpc, Response, Status};
use wire::capacity_provider_server::CapacityProvider;

use super::convert;
use super::driver::{Request, Shared};
use super::process::Clock;
use crate::call::{Mutation, Refusal};
use crate::list::{ListPage, Query};

/// What stands between the truth and those who ask for it. Only a fake has a use for it.
pub trait Reads: Send + Sync + 'static {
    /// The page to answer instead of the true one.
    fn list(&self, query: &Query, page: ListPage) -> ListPage {
        let _ = query;
        page
    }
}

/// Tells the truth.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faithful;

impl Reads for Faithful {}

#[derive(Clone)]
pub(super) struct Service {
    pub(super) driver: mpsc::Sender<Request>,
    pub(super) reads: Arc<dyn Reads>,
    pub(super) rotation: Arc<AtomicUsize>,
    pub(super) shared: Arc<Shared>,
    pub(super) clock: Option<Clock>,
}

impl Service {
    /// Asks the driver; an answer that never comes means that it is stopping.
    async fn ask<T>(
        &self,
        request: impl FnOnce(oneshot::Sender<Result<T, Refusal>>) -> Request,
    ) -> Result<T, Status> {
        let stopping = || Status::unavailable("the provider is stopping");
        let (reply, answer) = oneshot::channel();
        self.driver
            .send(request(reply))
            .await
            .map_err(|_| stopping())?;
        let answer = answer.await.map_err(|_| stopping())?;
        answer.map_err(|refusal| convert::status(&refusal))
    }

    /// A shard may speak for itself only. Where nobody shows a certificate, anyone may speak.
    async fn mutate(
        &self,
        caller: Caller,
        mutation: Mutation,
    ) -> Result<wire::TransitionAck, Status> {
        let claimed = Identity::Shard(mutation.token.shard.clone());
        caller.must_be(&claimed, "a mutation with this shard_id")?;
        let ack = self
            .ask(|reply| Request::Mutate { mutation, reply })
            .await?;
        Ok(convert::ack(&ack))
    }

    /// An answer to List, before it is put into messages or bytes.
    pub(super) async fn page(
        &self,
        filter: wire::ListFilter,
    ) -> Result<Response<ListPage>, Status> {
        let call = async {
            let rotation = self.rotation.fetch_add(1, Ordering::Relaxed);
            let query =
                convert::query(filter, rotation).map_err(|refusal| convert::status(&refusal))?;
            let asked = query.clone();
            let page = self.ask(|reply| Request::List { query, reply }).await?;
            Ok(self.reads.list(&asked, page))
        };
        self.observe("List", call).await
    }

    async fn observe<T>(
        &self,
        method: &'static str,
        call: impl Future<Output = Result<T, Status>>,
    ) -> Result<Response<T>, Status> {
        let now = || self.clock.as_ref().map(|clock| clock());
        let started = now();
        let answer = call.await;
        let took = started
            .zip(now())
            .map(|(start, end)| end.saturating_sub(start));
        let code = answer.as_ref().err().map_or(tonic::Code::Ok, Status::code);
        self.shared.metrics.called(method, code, took);
        answer.map(Response::new)
    }
}

#[tonic::async_trait]
impl CapacityProvider for Service {
    async fn create(
        &self,
        request: Rpc<wire::CreateRequest>,
    ) -> Result<Response<wire::TransitionAck>, Status> {
        let caller = Caller::of(&request);
        let mutation = convert::create(request.into_inner());
        self.observe("Create", self.mutate(caller, mutation)).await
    }

    async fn configure(
        &self,
        request: Rpc<wire::ConfigureRequest>,
    ) -> Result<Response<wire::TransitionAck>, Status> {
        let caller = Caller::of(&request);
        let mutation = convert::configure(request.into_inner());
        self.observe("Configure", self.mutate(caller, mutation))
            .await
    }

    async fn drain(
        &self,
        request: Rpc<wire::DrainRequest>,
    ) -> Result<Response<wire::TransitionAck>, Status> {
        let caller = Caller::of(&request);
        let mutation = convert::drain(request.into_inner());
        self.observe("Drain", self.mutate(caller, mutation)).await
    }

    async fn delete(
        &self,
        request: Rpc<wire::DeleteRequest>,
    ) -> Result<Response<wire::TransitionAck>, Status> {
        let caller = Caller::of(&request);
        let mutation = convert::delete(request.into_inner());
        self.observe("Delete", self.mutate(caller, mutation)).await
    }

    async fn get(&self, request: Rpc<wire::MachineRef>) -> Result<Response<wire::Machine>, Status> {
        let id = request.into_inner().id;
        let call = async {
            let machine = self.ask(|reply| Request::Get { id, reply }).await?;
            Ok(convert::machine(&machine))
        };
        self.observe("Get", call).await
    }

    async fn list(
        &self,
        request: Rpc<wire::ListFilter>,
    ) -> Result<Response<wire::MachineList>, Status> {
        let page = self.page(request.into_inner()).await?;
        Ok(page.map(|page| convert::page(&page)))
    }
}
