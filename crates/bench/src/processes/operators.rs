//! Operators: all of them in this process, each with a connection, a session and answers of its own.
//!
//! ```text
//! BootstrapRequest ─▶ a blob       ReclaimInstruction ─▶ drained       NodeStateUpdate, Ack ─▶ counted
//! ```

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use bigfleet_net::{Dial, MAX_MESSAGE_BYTES};
use bigfleet_wire::v1alpha1 as wire;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};
use wire::acknowledgement::Disposition;
use wire::operator_message::Payload;
use wire::shard_client::ShardClient;
use wire::shard_message::Payload as FromShard;

use super::demand::cluster;
use super::report::NotMeasured;

/// Bytes of a blob: a join command with its certificates.
pub(crate) const BLOB_BYTES: usize = 4096;
/// Operators that connect at once.
const CONNECTING: usize = 64;
/// Frames of one operator on their way to its connection.
const FRAMES: usize = 256;

/// What all operators together were told.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// Machines that are Configured now.
    pub(crate) configured: watch::Sender<usize>,
    /// Roll-ups acknowledged as accepted.
    pub(crate) accepted: watch::Sender<usize>,
    /// Roll-ups held or rejected.
    pub(crate) refused: AtomicUsize,
    /// Blobs asked for.
    pub(crate) blobs: AtomicUsize,
    /// Sessions that are over.
    pub(crate) ended: AtomicUsize,
    ack_ms: Mutex<Vec<f64>>,
}

impl Told {
    /// How long acknowledgements took; forgotten then.
    pub(crate) fn take_ack_ms(&self) -> Vec<f64> {
        std::mem::take(&mut self.ack_ms.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// One operator.
#[derive(Clone, Debug)]
pub(crate) struct Operator {
    /// Its cluster.
    pub(crate) number: usize,
    frames: mpsc::Sender<wire::OperatorMessage>,
    /// When the roll-up under way was sent.
    sent: Arc<Mutex<Option<Instant>>>,
}

impl Operator {
    /// Sends the whole demand of its cluster.
    pub(crate) async fn roll_up(&self, roll_up: wire::ClusterCapacityNeeds) {
        *self.sent.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        // A session that is over is counted by whoever listened to it.
        drop(self.frames.send(Payload::Rollup(roll_up).into()).await);
    }
}

/// All of them.
pub(crate) struct Operators {
    pub(crate) each: Vec<Operator>,
    pub(crate) told: Arc<Told>,
    listening: Vec<JoinHandle<()>>,
}

impl Drop for Operators {
    fn drop(&mut self) {
        self.listening.iter().for_each(JoinHandle::abort);
    }
}

impl Operators {
    /// Connects so many, each having said Hello and heard the answer.
    pub(crate) async fn connect(
        shard: SocketAddr,
        count: usize,
        mut progress: impl FnMut(usize),
    ) -> Result<Self, NotMeasured> {
        let told: Arc<Told> = Arc::default();
        let mut operators = Self {
            each: Vec::with_capacity(count),
            told,
            listening: Vec::with_capacity(count),
        };
        let mut connecting = JoinSet::new();
        for number in 0..count {
            if CONNECTING <= connecting.len() {
                operators.connected(connecting.join_next().await)?;
                progress(operators.each.len());
            }
            connecting.spawn(connect(shard, number, Arc::clone(&operators.told)));
        }
        while let Some(ended) = connecting.join_next().await {
            operators.connected(Some(ended))?;
        }
        operators.each.sort_by_key(|operator| operator.number);
        Ok(operators)
    }

    fn connected(
        &mut self,
        ended: Option<Result<Connected, tokio::task::JoinError>>,
    ) -> Result<(), NotMeasured> {
        let wrong = |why: String| NotMeasured::Wrong(format!("an operator cannot connect: {why}"));
        match ended {
            Some(Ok(Ok((operator, listening)))) => {
                self.each.push(operator);
                self.listening.push(listening);
                Ok(())
            }
            Some(Ok(Err(status))) => Err(wrong(status.to_string())),
            Some(Err(why)) => Err(wrong(why.to_string())),
            None => Ok(()),
        }
    }
}

type Connected = Result<(Operator, JoinHandle<()>), Status>;

async fn connect(shard: SocketAddr, number: usize, told: Arc<Told>) -> Connected {
    let channel = Dial::unknown(None).channel(&shard.to_string());
    let channel = channel.map_err(|why| Status::internal(why.to_string()))?;
    let mut client = ShardClient::new(channel).max_decoding_message_size(MAX_MESSAGE_BYTES);
    let (frames, outgoing) = mpsc::channel(FRAMES);
    let hello = Payload::Hello(wire::Hello {
        cluster_id: cluster(number),
        protocol_version: "v1alpha1".to_owned(),
        features: vec!["drain-report.v1".to_owned(), "resync.v1".to_owned()],
    });
    drop(frames.send(hello.into()).await);
    let incoming = client.session(ReceiverStream::new(outgoing)).await?;
    let (greeted, greeting) = oneshot::channel();
    let operator = Operator {
        number,
        frames,
        sent: Arc::default(),
    };
    let mut listener = Listener {
        operator: operator.clone(),
        told,
        nodes: HashMap::new(),
        greeted: Some(greeted),
    };
    let listening = tokio::spawn(async move {
        // However it ended, it is over; the report says how many are.
        drop(listener.listen(incoming.into_inner()).await);
        listener.told.ended.fetch_add(1, Ordering::Relaxed);
    });
    let answered = greeting.await;
    answered.map_err(|_| Status::aborted("the session ended before its Hello was answered"))?;
    Ok((operator, listening))
}

struct Listener {
    operator: Operator,
    told: Arc<Told>,
    /// Whether each machine is Configured, by the last word on it.
    nodes: HashMap<String, bool>,
    greeted: Option<oneshot::Sender<()>>,
}

impl Listener {
    async fn listen(&mut self, mut frames: Streaming<wire::ShardMessage>) -> Result<(), Status> {
        while let Some(frame) = frames.message().await? {
            let answer = frame.payload.and_then(|payload| self.take(payload));
            if let Some(answer) = answer {
                drop(self.operator.frames.send(answer.into()).await);
            }
        }
        Ok(())
    }

    fn take(&mut self, payload: FromShard) -> Option<Payload> {
        match payload {
            FromShard::Ack(ack) => {
                self.acknowledged(&ack);
                None
            }
            FromShard::NodeStateUpdate(node) => {
                self.node(node);
                None
            }
            FromShard::BootstrapRequest(request) => {
                self.told.blobs.fetch_add(1, Ordering::Relaxed);
                Some(Payload::BootstrapResponse(wire::BootstrapBlobResponse {
                    request_id: request.request_id,
                    user_data: vec![b'x'; BLOB_BYTES],
                    ..wire::BootstrapBlobResponse::default()
                }))
            }
            FromShard::ReclaimInstruction(instruction) => {
                let target = instruction.targets.into_iter().next()?;
                Some(Payload::DrainReport(wire::DrainReport {
                    instruction_id: instruction.instruction_id,
                    machine_id: target.machine_id,
                    phase: wire::drain_report::Phase::Drained.into(),
                    ..wire::DrainReport::default()
                }))
            }
            FromShard::AvailableCapacity(_) | FromShard::ReclaimCancel(_) => None,
        }
    }

    fn acknowledged(&mut self, ack: &wire::Acknowledgement) {
        match ack.disposition() {
            Disposition::Accepted => {
                let sent = self.operator.sent.lock();
                let sent = sent.unwrap_or_else(PoisonError::into_inner).take();
                if let Some(sent) = sent {
                    let ms = sent.elapsed().as_secs_f64() * 1e3;
                    let times = self.told.ack_ms.lock();
                    times.unwrap_or_else(PoisonError::into_inner).push(ms);
                }
                self.told.accepted.send_modify(|count| *count += 1);
            }
            Disposition::Held | Disposition::Rejected => {
                self.told.refused.fetch_add(1, Ordering::Relaxed);
            }
            Disposition::Unspecified => {
                if ack.echo == "hello"
                    && let Some(greeted) = self.greeted.take()
                {
                    // Whoever connected may have given up meanwhile.
                    let _ = greeted.send(());
                }
            }
        }
    }

    fn node(&mut self, node: wire::NodeStateUpdate) {
        let is = node.state() == wire::MachineState::Configured && !node.removed;
        let was = match node.removed {
            true => self.nodes.remove(&node.machine_id),
            false => self.nodes.insert(node.machine_id, is),
        };
        match (was.unwrap_or(false), is) {
            (false, true) => self.told.configured.send_modify(|count| *count += 1),
            (true, false) => self.told.configured.send_modify(|count| *count -= 1),
            (true, true) | (false, false) => {}
        }
    }
}
