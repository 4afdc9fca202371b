//! List on its way out: machines become bytes one at a time.
//!
//! The generated server wants the whole answer as messages first: for twenty thousand machines a
//! hundred thousand small maps, built and thrown away. Here machines are written as bytes at once, so a
//! full List costs its bytes and little more. Every other call goes to the generated server.

use std::convert::Infallible;
use std::task::{Context, Poll};

use bigfleet_wire::v1alpha1 as wire;
use prost::Message;
use tonic::body::Body;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::{BoxFuture, Service as TowerService, http};
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic::{Request, Response, Status};
use wire::capacity_provider_server::CapacityProviderServer;

use super::convert;
use super::machine_encoding::MachineWriter;
use super::service::Service;
use crate::list::ListPage;

type Generated = CapacityProviderServer<Service>;

const LIST: &str = "/bigfleet.v1alpha1.CapacityProvider/List";

/// The generated server, with a List of its own.
#[derive(Clone)]
pub(super) struct Listing {
    pub(super) generated: Generated,
    pub(super) service: Service,
    pub(super) most_request_bytes: usize,
}

impl NamedService for Listing {
    const NAME: &'static str = <Generated as NamedService>::NAME;
}

impl TowerService<http::Request<Body>> for Listing {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        if request.uri().path() != LIST {
            return self.generated.call(request);
        }
        let (service, most) = (self.service.clone(), self.most_request_bytes);
        Box::pin(async move {
            let mut grpc = Grpc::new(Pages).apply_max_message_size_config(Some(most), None);
            Ok(grpc.unary(List(service), request).await)
        })
    }
}

struct List(Service);

impl UnaryService<wire::ListFilter> for List {
    type Response = ListPage;
    type Future = BoxFuture<Response<ListPage>, Status>;

    fn call(&mut self, request: Request<wire::ListFilter>) -> Self::Future {
        let service = self.0.clone();
        Box::pin(async move { service.page(request.into_inner()).await })
    }
}

/// Filters in, pages out.
#[derive(Clone, Copy, Debug, Default)]
struct Pages;

impl Codec for Pages {
    type Encode = ListPage;
    type Decode = wire::ListFilter;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Decoder for Pages {
    type Item = wire::ListFilter;
    type Error = Status;

    fn decode(&mut self, bytes: &mut DecodeBuf<'_>) -> Result<Option<Self::Item>, Status> {
        let filter = wire::ListFilter::decode(bytes);
        filter
            .map(Some)
            .map_err(|why| Status::internal(why.to_string()))
    }
}

impl Encoder for Pages {
    type Item = ListPage;
    type Error = Status;

    fn encode(&mut self, page: ListPage, into: &mut EncodeBuf<'_>) -> Result<(), Status> {
        let mut first = Vec::new();
        if let Some(machine) = page.machines.first() {
            MachineWriter::default().put(1, machine, &mut first);
        }
        into.reserve(page.machines.len() * (first.len() + 16)); // the others are like it
        write(&page, into).map_err(|why| Status::internal(why.to_string()))
    }
}

/// The same bytes as the message would give: its repeated field first, then all the others.
fn write(page: &ListPage, into: &mut impl prost::bytes::BufMut) -> Result<(), prost::EncodeError> {
    let mut writer = MachineWriter::default();
    for machine in &page.machines {
        writer.put(1, machine, into);
    }
    convert::page_without_machines(page).encode(into)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::list::Query;
    use crate::seed::tests::slot;
    use crate::{Kit, Options, Tables};

    #[test]
    fn the_bytes_are_those_of_the_message() {
        let mut kit = Kit::new(Tables::new(1), Options::default());
        kit.seed(&[slot("m1"), slot("m2"), slot("m3")]).unwrap();
        let query = Query {
            page_size: 2,
            ..Query::default()
        };
        let page = kit.tables().list(&query).unwrap();
        let mut bytes = Vec::new();
        write(&page, &mut bytes).unwrap();
        assert_eq!(bytes, convert::page(&page).encode_to_vec());
    }
}
