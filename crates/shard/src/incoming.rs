//! Incoming: an operator's frames, read no further than needed.
//!
//! ```text
//! frame ─▶ a roll-up and nothing else? ──▶ its bytes: most say what is in force already
//!                └─ no ─▶ large? ─▶ its bytes, to be decoded on a blocking thread
//!                           └─ no ─▶ the message
//! ```
//!
//! The generated server makes a message of every frame. Of a roll-up of a hundred rows that is a
//! thousand small allocations, and of most roll-ups nothing is needed but to know that they repeat the
//! last. So the one method of the service is served here, with a reader of its own.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bigfleet_net::MAX_MESSAGE_BYTES;
use bigfleet_wire::v1alpha1::shard_server::SERVICE_NAME;
use bigfleet_wire::v1alpha1::{
    ClusterCapacityNeeds, OperatorMessage, ShardMessage, operator_message::Payload,
};
use prost::bytes::{Buf, Bytes};
use prost::encoding::decode_varint;
use prost::{DecodeError, Message};
use tokio_stream::Stream;
use tonic::body::Body;
use tonic::codec::{BufferSettings, Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::{BoxFuture, Service as TowerService, http};
use tonic::server::{Grpc, NamedService, StreamingService};
use tonic::{Request, Response, Status, Streaming};

use crate::intake::{Charge, Intake};
use crate::session::Sessions;
use crate::weight;

const SESSION: &str = "/bigfleet.v1alpha1.Shard/Session";
/// The field of a roll-up in an operator's message, as bytes: number 2, with a length.
const ROLL_UP: u8 = 2 << 3 | 2;

/// From this size on, decoding and checking what an operator sent takes too long for an async worker:
/// of 16 KiB, about a hundred rows, it takes some tenths of a millisecond.
pub(crate) const LARGE_BYTES: usize = 16 << 10;

/// A frame.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Incoming {
    /// A roll-up, as it was sent.
    RollUp(Bytes),
    /// Anything else that is large, as it was sent.
    Large(Bytes),
    /// Anything else. Never a roll-up.
    Said(OperatorMessage),
}

impl Incoming {
    /// The frame as a message, for whoever does not expect a roll-up. Takes time in proportion to its
    /// size.
    pub(crate) fn message(self) -> Result<OperatorMessage, DecodeError> {
        match self {
            Self::RollUp(_) => Ok(Payload::Rollup(ClusterCapacityNeeds::default()).into()),
            Self::Large(frame) => OperatorMessage::decode(frame),
            Self::Said(message) => Ok(message),
        }
    }

    /// Decodes a frame whatever its size, unless that would take too much memory. Takes time in proportion to
    /// its size.
    pub(crate) fn decode_large(frame: Bytes) -> Result<Self, Status> {
        weight::check(weight::of_frame(&frame)).map_err(Status::resource_exhausted)?;
        Self::decode(frame).map_err(|why| undecodable(&why))
    }

    fn decode(frame: Bytes) -> Result<Self, DecodeError> {
        let message = OperatorMessage::decode(frame)?;
        Ok(match message.payload {
            // In a frame with more than one payload.
            Some(Payload::Rollup(roll_up)) => Self::RollUp(roll_up.encode_to_vec().into()),
            _ => Self::Said(message),
        })
    }

    fn read(frame: Bytes) -> Result<Self, DecodeError> {
        match roll_up(&frame) {
            Some(roll_up) => Ok(Self::RollUp(roll_up)),
            None if LARGE_BYTES <= frame.len() => Ok(Self::Large(frame)),
            None => Self::decode(frame),
        }
    }
}

/// How a session ends whose operator sent something that is no frame (wire 6.1).
pub(crate) fn undecodable(why: &DecodeError) -> Status {
    Status::invalid_argument(format!("a frame cannot be decoded: {why}"))
}

/// The roll-up in a frame that holds one and nothing else.
fn roll_up(frame: &Bytes) -> Option<Bytes> {
    let mut rest = frame.clone();
    if !rest.has_remaining() || rest.get_u8() != ROLL_UP {
        return None;
    }
    let length = decode_varint(&mut rest).ok()?;
    (length == rest.len() as u64).then_some(rest)
}

/// What the shard says to one operator.
pub(crate) type Frames = Pin<Box<dyn Stream<Item = Result<ShardMessage, Status>> + Send>>;

/// The service operators call.
#[derive(Clone, Debug)]
pub(crate) struct SessionServer(pub(crate) Sessions);

impl NamedService for SessionServer {
    const NAME: &'static str = SERVICE_NAME;
}

impl TowerService<http::Request<Body>> for SessionServer {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let sessions = self.0.clone();
        Box::pin(async move {
            if request.uri().path() != SESSION {
                return Ok(Status::unimplemented("the service has no such method").into_http());
            }
            let most = Some(MAX_MESSAGE_BYTES);
            let intake = sessions.intake(&request);
            let request = request.map(|body| intake.meter(body));
            let mut grpc = Grpc::new(Reading(intake)).apply_max_message_size_config(most, most);
            Ok(grpc.streaming(Session(sessions), request).await)
        })
    }
}

struct Session(Sessions);

impl StreamingService<Received> for Session {
    type Response = ShardMessage;
    type ResponseStream = Frames;
    type Future = BoxFuture<Response<Frames>, Status>;

    fn call(&mut self, request: Request<Streaming<Received>>) -> Self::Future {
        let sessions = self.0.clone();
        Box::pin(async move { Ok(sessions.session(request)) })
    }
}

/// A frame, and what it costs until it is taken in.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) frame: Incoming,
    pub(crate) charge: Charge,
}

/// A session is mostly silent, and there are thousands: it has room for what is said most often, and more when
/// more is said.
fn small_buffers() -> BufferSettings {
    BufferSettings::new(512, 32 << 10)
}

/// Operators' frames in, ours out.
#[derive(Clone, Debug)]
struct Reading(Arc<Intake>);

impl Codec for Reading {
    type Encode = ShardMessage;
    type Decode = Received;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        self.clone()
    }

    fn decoder(&mut self) -> Self {
        self.clone()
    }
}

impl Decoder for Reading {
    type Item = Received;
    type Error = Status;

    fn buffer_settings(&self) -> BufferSettings {
        small_buffers()
    }

    fn decode(&mut self, bytes: &mut DecodeBuf<'_>) -> Result<Option<Received>, Status> {
        let frame = bytes.copy_to_bytes(bytes.remaining());
        let charge = self.0.decoded();
        let read = Incoming::read(frame).map_err(|why| undecodable(&why));
        read.map(|frame| Some(Received { frame, charge }))
    }
}

impl Encoder for Reading {
    type Item = ShardMessage;
    type Error = Status;

    fn buffer_settings(&self) -> BufferSettings {
        small_buffers()
    }

    fn encode(&mut self, message: ShardMessage, into: &mut EncodeBuf<'_>) -> Result<(), Status> {
        let written = message.encode(into);
        written.map_err(|why| Status::internal(why.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bigfleet_wire::v1alpha1::{CapacityNeed, Hello};
    use prost::encoding::{WireType, encode_key, encode_varint};

    fn read(frame: Vec<u8>) -> Incoming {
        Incoming::read(frame.into()).unwrap()
    }

    #[test]
    fn a_roll_up_is_left_as_it_was_sent() {
        let roll_up = ClusterCapacityNeeds {
            cluster_id: "a".to_owned(),
            needs: vec![CapacityNeed::default(); 100],
            ..ClusterCapacityNeeds::default()
        };
        let sent: OperatorMessage = Payload::Rollup(roll_up.clone()).into();
        let bytes = roll_up.encode_to_vec().into();
        assert_eq!(read(sent.encode_to_vec()), Incoming::RollUp(bytes));
    }

    #[test]
    fn everything_else_is_read() {
        let hello: OperatorMessage = Payload::Hello(Hello::default()).into();
        assert_eq!(read(hello.encode_to_vec()), Incoming::Said(hello.clone()));
        assert_eq!(read(Vec::new()), Incoming::Said(OperatorMessage::default()));
        // Of several payloads the last one counts, whatever the first was.
        let roll_up: OperatorMessage = Payload::Rollup(ClusterCapacityNeeds::default()).into();
        let both = [roll_up.encode_to_vec(), hello.encode_to_vec()].concat();
        assert_eq!(read(both), Incoming::Said(hello));
    }

    /// Also one with a roll-up and something else in it, which nobody sends in good faith.
    #[test]
    fn a_large_frame_is_not_decoded_here() {
        let roll_up = ClusterCapacityNeeds {
            needs: vec![CapacityNeed::default(); LARGE_BYTES],
            ..ClusterCapacityNeeds::default()
        };
        let hello: OperatorMessage = Payload::Hello(Hello::default()).into();
        let sent: OperatorMessage = Payload::Rollup(roll_up.clone()).into();
        let both = [hello.encode_to_vec(), sent.encode_to_vec()].concat();
        assert_eq!(read(both.clone()), Incoming::Large(both.clone().into()));
        let bytes = roll_up.encode_to_vec().into();
        assert_eq!(
            Incoming::decode_large(both.into()).unwrap(),
            Incoming::RollUp(bytes)
        );
    }

    /// SE-9: nodes without content, two bytes each, that would be gigabytes.
    #[test]
    fn a_frame_that_would_be_too_much_is_not_decoded() {
        let nodes = [0x12, 0].repeat(4 << 20);
        let mut frame = Vec::new();
        encode_key(1001, WireType::LengthDelimited, &mut frame);
        encode_varint(nodes.len() as u64, &mut frame);
        frame.extend(nodes);
        let refused = Incoming::decode_large(frame.into()).unwrap_err();
        assert_eq!(refused.code(), tonic::Code::ResourceExhausted, "{refused}");
    }

    #[test]
    fn a_frame_that_is_cut_off_is_no_frame() {
        let cut = vec![ROLL_UP, 5, 0];
        assert!(Incoming::read(cut.into()).is_err());
    }
}
