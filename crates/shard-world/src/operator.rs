//! What an operator answers.

use bigfleet_shard_core::{BlobAnswer, DrainPhase, Event, Frame, SessionId};

/// The blob that makes a machine join its cluster.
pub fn blob() -> BlobAnswer {
    BlobAnswer::Blob {
        user_data: b"join".to_vec(),
        ttl_seconds: 0,
    }
}

/// The answer of an operator that does whatever it is asked: it has a blob, and drains the node.
pub fn obey(session: SessionId, frame: Frame) -> Option<Event> {
    match frame {
        Frame::BootstrapRequest { request, .. } => Some(Event::BlobAnswered {
            session,
            request,
            answer: blob(),
        }),
        Frame::Reclaim {
            instruction,
            machine,
            ..
        } => Some(Event::DrainReported {
            session,
            instruction,
            machine,
            phase: DrainPhase::Drained,
        }),
        Frame::Ack { .. }
        | Frame::Node(_)
        | Frame::ReclaimCancel { .. }
        | Frame::Available { .. } => None,
    }
}
