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

use bigfleet_scripted_operator::{Manner, Running, Script, Session, blob};
use bigfleet_wire::v1alpha1 as wire;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tonic::Status;
use wire::acknowledgement::Disposition;
use wire::operator_message::Payload;
use wire::shard_message::Payload as FromShard;

use super::demand::cluster;
use super::report::NotMeasured;

/// Bytes of a blob: a join command with its certificates.
pub(crate) const BLOB_BYTES: usize = 4096;
/// Operators that connect at once.
const CONNECTING: usize = 64;

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
    session: Arc<Running>,
    /// When the roll-up under way was sent.
    sent: Arc<Mutex<Option<Instant>>>,
}

impl Operator {
    /// Sends the whole demand of its cluster.
    pub(crate) async fn roll_up(&self, roll_up: wire::ClusterCapacityNeeds) {
        *self.sent.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        self.session.send(Payload::Rollup(roll_up)).await;
    }
}

/// All of them.
pub(crate) struct Operators {
    pub(crate) each: Vec<Operator>,
    pub(crate) told: Arc<Told>,
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
            Some(Ok(Ok(operator))) => {
                self.each.push(operator);
                Ok(())
            }
            Some(Ok(Err(status))) => Err(wrong(status.to_string())),
            Some(Err(why)) => Err(wrong(why.to_string())),
            None => Ok(()),
        }
    }
}

type Connected = Result<Operator, Status>;

async fn connect(shard: SocketAddr, number: usize, told: Arc<Told>) -> Connected {
    let hello = Manner::Reports.hello(&cluster(number));
    let session = Session::open(shard, [hello]).await?;
    let (greeted, greeting) = oneshot::channel();
    let sent: Arc<Mutex<Option<Instant>>> = Arc::default();
    let session = session.run(Listener {
        sent: Arc::clone(&sent),
        told,
        nodes: HashMap::new(),
        greeted: Some(greeted),
    });
    let answered = greeting.await;
    answered.map_err(|_| Status::aborted("the session ended before its Hello was answered"))?;
    Ok(Operator {
        number,
        session: Arc::new(session),
        sent,
    })
}

struct Listener {
    /// When the roll-up under way was sent.
    sent: Arc<Mutex<Option<Instant>>>,
    told: Arc<Told>,
    /// Whether each machine is Configured, by the last word on it.
    nodes: HashMap<String, bool>,
    greeted: Option<oneshot::Sender<()>>,
}

impl Script for Listener {
    fn hear(&mut self, frame: FromShard) -> Option<Payload> {
        let answer = match &frame {
            FromShard::BootstrapRequest(request) => Some(blob(request, vec![b'x'; BLOB_BYTES])),
            other => Manner::Reports.answer(other),
        };
        match frame {
            FromShard::Ack(ack) => self.acknowledged(&ack),
            FromShard::NodeStateUpdate(node) => self.node(node),
            FromShard::BootstrapRequest(_) => {
                self.told.blobs.fetch_add(1, Ordering::Relaxed);
            }
            FromShard::ReclaimInstruction(_)
            | FromShard::AvailableCapacity(_)
            | FromShard::ReclaimCancel(_)
            | FromShard::NeedStatus(_) => {}
        }
        answer
    }

    /// However it ended, it is over; the report says how many are.
    fn ended(&mut self, _how: Result<(), Status>) {
        self.told.ended.fetch_add(1, Ordering::Relaxed);
    }
}

impl Listener {
    fn acknowledged(&mut self, ack: &wire::Acknowledgement) {
        match ack.disposition() {
            Disposition::Accepted => {
                let sent = self.sent.lock();
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
        let was = if node.removed {
            self.nodes.remove(&node.machine_id)
        } else {
            self.nodes.insert(node.machine_id, is)
        };
        match (was.unwrap_or(false), is) {
            (false, true) => self.told.configured.send_modify(|count| *count += 1),
            (true, false) => self.told.configured.send_modify(|count| *count -= 1),
            (true, true) | (false, false) => {}
        }
    }
}
