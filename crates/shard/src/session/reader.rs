//! The receiving side of one session: what an operator says, as events for the core.
//!
//! Everything but roll-ups goes to the core in order, as fast as the core takes it in. A frame that cannot be used is logged
//! and skipped. One that cannot be read, or is too large to be, ends the session with the reason: what
//! comes after it may not be what it seems. Whatever came before an operator's last word is taken in.

use std::sync::Arc;

use bigfleet_model::ClusterId;
use bigfleet_net::LogBudget;
use bigfleet_shard_core::{BlobAnswer, Event, NodeFact, OperationId, RequestId, SessionId};
use bigfleet_wire::v1alpha1::{
    BootstrapBlobResponse, DrainReport, NodeReport, OperatorMessage, operator_message::Payload,
};
use bigfleet_wire::{DrainProgress, NodeSightings, unix_nanos};
use prost::bytes::Bytes;
use tonic::{Code, Status, Streaming};

use super::roll_up::RollUps;
use super::telling::Telling;
use crate::clock::Clock;
use crate::incoming::{Incoming, Received};
use crate::offload::Offload;
use crate::outbox::{self, Link, READ_WITHIN};
use crate::session_messages;

/// The receiving side of one session.
#[derive(Clone)]
pub(super) struct Reader {
    pub(super) session: SessionId,
    pub(super) cluster: ClusterId,
    pub(super) offload: Offload,
    pub(super) roll_ups: RollUps,
    pub(super) telling: Telling,
    /// What is said of frames that cannot be used.
    pub(super) said: Arc<LogBudget>,
}

/// What a frame says.
enum Heard {
    RollUp(Bytes),
    Event(Event),
    /// Nothing the core needs to know.
    Skipped,
}

/// Whether the operator, or the way to it, is gone: nobody said anything wrong.
fn is_gone(code: Code) -> bool {
    [Code::Cancelled, Code::Unknown, Code::Unavailable].contains(&code)
}

impl Reader {
    /// Reads until the operator has said its last word, or cannot be understood any more; answers with how
    /// the session is to end.
    pub(super) async fn read(
        &self,
        incoming: &mut Streaming<Received>,
        link: &Link,
        clock: Clock,
    ) -> Result<(), Status> {
        let mut looks = tokio::time::interval(READ_WITHIN / 2);
        loop {
            let message = tokio::select! {
                message = incoming.message() => message,
                () = link.over.notified() => return Ok(()),
                _ = looks.tick() => {
                    if link.is_stuck() {
                        tracing::warn!(cluster = %self.cluster, "session ended: the operator does not read");
                        return Err(outbox::stuck());
                    }
                    continue;
                }
            };
            let Received { frame, charge } = match message {
                Ok(Some(received)) => received,
                Ok(None) => {
                    self.roll_ups.finished().await;
                    return Ok(());
                }
                Err(status) if is_gone(status.code()) => {
                    tracing::debug!(cluster = %self.cluster, %status, "session broke off");
                    return Ok(()); // there is nobody to tell
                }
                Err(status) => return Err(self.unreadable(status)),
            };
            link.hear(unix_nanos(clock.now()));
            let heard = if matches!(frame, Incoming::Large(_)) {
                let reader = self.clone();
                self.offload.run(move || reader.heard(frame)).await?
            } else {
                self.heard(frame)
            };
            match heard {
                Ok(Heard::RollUp(bytes)) => self.roll_ups.arrived(bytes, charge),
                Ok(Heard::Event(event)) => tokio::select! {
                    told = self.telling.tell(event, charge) => told?,
                    () = link.over.notified() => return Ok(()),
                },
                Ok(Heard::Skipped) => {}
                Err(status) => return Err(self.unreadable(status)),
            }
        }
    }

    fn unreadable(&self, status: Status) -> Status {
        tracing::warn!(
            cluster = %self.cluster,
            code = ?status.code(),
            reason = status.message(),
            "session ended: a frame cannot be read"
        );
        status
    }

    /// A frame cannot be used, and the session goes on.
    fn skipped(&self, why: &str) {
        if let Some(left_out) = self.said.take() {
            tracing::warn!(cluster = %self.cluster, why, left_out, "a frame is skipped");
        }
    }

    fn heard(&self, frame: Incoming) -> Result<Heard, Status> {
        match frame {
            Incoming::RollUp(bytes) => Ok(Heard::RollUp(bytes)),
            Incoming::Large(bytes) => self.heard(Incoming::decode_large(bytes)?),
            Incoming::Said(message) => Ok(self.event(message).map_or(Heard::Skipped, Heard::Event)),
        }
    }

    fn event(&self, message: OperatorMessage) -> Option<Event> {
        match message.payload {
            Some(Payload::Hello(_)) => Some(Event::HelloAgain {
                session: self.session,
            }),
            Some(Payload::BootstrapResponse(answer)) => self.blob(answer),
            Some(Payload::DrainReport(report)) => self.drain(report),
            Some(Payload::NodeReport(report)) => self.nodes(report),
            Some(Payload::ReclaimAck(ack)) => {
                tracing::debug!(cluster = %self.cluster, instruction = ack.instruction_id,
                    nodes = ack.nodes_started, "drain begun by the operator");
                None
            }
            // `Incoming` hands out every roll-up as bytes.
            Some(Payload::Rollup(_)) | None => {
                self.skipped("a frame of no known kind");
                None
            }
        }
    }

    fn blob(&self, answer: BootstrapBlobResponse) -> Option<Event> {
        let raw = answer.request_id.clone();
        let answer = match bigfleet_wire::BlobAnswer::read(answer) {
            Ok(read) => match read.blob {
                Ok(blob) => BlobAnswer::Blob {
                    user_data: blob.user_data,
                    ttl_seconds: blob.lifetime.map_or(0, |lifetime| {
                        u32::try_from(lifetime.as_secs()).unwrap_or(u32::MAX)
                    }),
                },
                Err(error) => BlobAnswer::Error(error),
            },
            Err(refused) => {
                self.skipped(&format!("bootstrap blob refused: {refused}"));
                BlobAnswer::Error(refused.to_string())
            }
        };
        // Unknown ids are dropped silently: an answer may outlive the question.
        let request = RequestId::parse(&raw)?;
        Some(Event::BlobAnswered {
            session: self.session,
            request,
            answer,
        })
    }

    fn drain(&self, report: DrainReport) -> Option<Event> {
        let progress = DrainProgress::read(report)
            .inspect_err(|refused| {
                self.skipped(&format!("drain report refused: {refused}"));
            })
            .ok()?;
        Some(Event::DrainReported {
            session: self.session,
            instruction: OperationId::parse(&progress.instruction)?,
            machine: progress.machine,
            phase: session_messages::phase(progress.phase)?,
        })
    }

    fn nodes(&self, report: NodeReport) -> Option<Event> {
        let sightings = NodeSightings::read(report)
            .inspect_err(|refused| {
                self.skipped(&format!("node report refused: {refused}"));
            })
            .ok()?;
        let nodes = sightings.nodes.into_iter().map(|node| NodeFact {
            machine: node.machine,
            provider_id: node.provider_id,
            node_name: node.node_name,
            ready: node.ready,
            disruption: node.disruption,
        });
        Some(Event::NodesReported {
            session: self.session,
            complete: sightings.complete,
            nodes: nodes.collect(),
        })
    }
}
