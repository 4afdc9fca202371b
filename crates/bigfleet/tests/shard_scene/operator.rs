//! An operator from a script: says Hello, rolls up, hands out blobs, drains as told.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bigfleet_net::Dial;
use bigfleet_wire::v1alpha1 as wire;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tonic::Status;
use wire::operator_message::Payload;
use wire::shard_client::ShardClient;
use wire::shard_message::Payload as FromShard;

use super::until;

/// What an operator has been told so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heard {
    /// The last word on every machine.
    pub(crate) nodes: BTreeMap<String, wire::MachineState>,
    pub(crate) acks: Vec<wire::Acknowledgement>,
    pub(crate) blobs: usize,
    pub(crate) instructions: Vec<wire::ReclaimInstruction>,
    pub(crate) hints: usize,
    /// How the session ended.
    pub(crate) ended: Option<Result<(), (tonic::Code, String)>>,
}

/// Why an operator that has no blobs has none.
pub(crate) const NO_BLOB: &str = "the join token has expired";

/// How it answers a request for a blob, and an instruction to drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// At once, and without reporting drains.
    Plain,
    /// It reports drains, and says at once that a node is drained.
    Reports,
    /// It reports drains, and never gets done.
    Stalls,
    /// It has no blobs to give, and says why.
    Penniless,
}

pub(crate) struct Operator {
    pub(crate) cluster: String,
    heard: Arc<Mutex<Heard>>,
    send: mpsc::Sender<wire::OperatorMessage>,
    task: JoinHandle<()>,
}

impl Drop for Operator {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// So much cpu in whole machines of four.
pub(crate) fn cpus(machines: usize) -> wire::CapacityNeed {
    row(machines * 4, 100, "")
}

pub(crate) fn row(cpu: usize, priority: i32, label: &str) -> wire::CapacityNeed {
    let amount = |cpu: usize| BTreeMap::from([("cpu".to_owned(), cpu.to_string())]);
    let requirement = |value: &str| wire::NodeSelectorRequirement {
        key: "row".to_owned(),
        operator: 2,
        values: vec![value.to_owned()],
    };
    wire::CapacityNeed {
        aggregate_resources: amount(cpu),
        min_unit: amount(4.min(cpu)),
        priority,
        // A label no machine has, and which must not be had: it only tells rows apart.
        requirements: Some(label)
            .filter(|label| !label.is_empty())
            .map(requirement)
            .into_iter()
            .collect(),
        ..wire::CapacityNeed::default()
    }
}

/// A row that only one zone can serve.
pub(crate) fn only_in(zone: &str) -> wire::CapacityNeed {
    let zone = wire::NodeSelectorRequirement {
        key: "topology.kubernetes.io/zone".to_owned(),
        operator: wire::node_selector_requirement::Operator::In.into(),
        values: vec![zone.to_owned()],
    };
    wire::CapacityNeed {
        requirements: vec![zone],
        ..row(4, 50, "")
    }
}

impl Operator {
    /// Connects and says Hello; answers once the shard has answered.
    pub(crate) async fn connect(shard: SocketAddr, cluster: &str, manner: Manner) -> Self {
        let operator = Self::dial(shard, cluster, cluster, manner).await;
        operator
            .sees("an answer to Hello", |heard| {
                !heard.acks.is_empty() || heard.ended.is_some()
            })
            .await;
        operator
    }

    pub(crate) async fn dial(
        shard: SocketAddr,
        cluster: &str,
        claimed: &str,
        manner: Manner,
    ) -> Self {
        let channel = Dial::unknown(None).channel(&shard.to_string()).unwrap();
        let mut client = ShardClient::new(channel)
            .max_decoding_message_size(bigfleet_net::MAX_MESSAGE_BYTES)
            .max_encoding_message_size(bigfleet_net::MAX_MESSAGE_BYTES);
        let (send, frames) = mpsc::channel(1024);
        let features = match manner {
            Manner::Plain | Manner::Penniless => Vec::new(),
            Manner::Reports | Manner::Stalls => {
                vec!["drain-report.v1".to_owned(), "resync.v1".to_owned()]
            }
        };
        let hello = Payload::Hello(wire::Hello {
            cluster_id: claimed.to_owned(),
            protocol_version: "v1alpha1".to_owned(),
            features,
        });
        send.send(hello.into()).await.unwrap();
        let heard: Arc<Mutex<Heard>> = Arc::default();
        let (ears, mouth) = (Arc::clone(&heard), send.clone());
        let (opened, open) = oneshot::channel();
        let task = tokio::spawn(async move {
            let stream = tokio_stream::wrappers::ReceiverStream::new(frames);
            let answer = client.session(stream).await;
            let _ = opened.send(());
            let how = match answer {
                Ok(answer) => listen(answer.into_inner(), &ears, &mouth, manner).await,
                Err(status) => Err(status),
            };
            let how = how.map_err(|status| (status.code(), status.message().to_owned()));
            ears.lock().unwrap().ended = Some(how);
        });
        drop(open.await);
        Self {
            cluster: cluster.to_owned(),
            heard,
            send,
            task,
        }
    }

    pub(crate) fn heard(&self) -> Heard {
        self.heard.lock().unwrap().clone()
    }

    pub(crate) async fn send(&self, payload: Payload) {
        drop(self.send.send(payload.into()).await);
    }

    /// Says what the cluster needs, all of it.
    pub(crate) async fn needs(&self, needs: Vec<wire::CapacityNeed>) {
        self.send(Payload::Rollup(wire::ClusterCapacityNeeds {
            cluster_id: self.cluster.clone(),
            needs,
            ..wire::ClusterCapacityNeeds::default()
        }))
        .await;
    }

    pub(crate) async fn sees(&self, what: &str, holds: impl Fn(&Heard) -> bool) -> Heard {
        until(what, async || {
            let heard = self.heard();
            (holds(&heard), heard)
        })
        .await
    }

    /// How many machines it was last told to be in a state.
    pub(crate) fn count(&self, state: wire::MachineState) -> usize {
        let heard = self.heard.lock().unwrap();
        heard.nodes.values().filter(|last| **last == state).count()
    }

    /// Waits until exactly so many machines are Configured, and none is on its way.
    pub(crate) async fn has(&self, machines: usize) {
        let text = format!("{machines} machines of {}", self.cluster);
        until(&text, async || {
            let count = self.count(wire::MachineState::Configured);
            let moving = self.count(wire::MachineState::Configuring)
                + self.count(wire::MachineState::Draining);
            ((count, moving) == (machines, 0), self.heard().nodes)
        })
        .await;
    }
}

async fn listen(
    mut frames: tonic::Streaming<wire::ShardMessage>,
    heard: &Mutex<Heard>,
    mouth: &mpsc::Sender<wire::OperatorMessage>,
    manner: Manner,
) -> Result<(), Status> {
    while let Some(frame) = frames.message().await? {
        let answer = take(frame, &mut heard.lock().unwrap(), manner);
        if let Some(answer) = answer {
            drop(mouth.send(answer.into()).await);
        }
    }
    Ok(())
}

fn take(frame: wire::ShardMessage, heard: &mut Heard, manner: Manner) -> Option<Payload> {
    match frame.payload? {
        FromShard::Ack(ack) => {
            heard.acks.push(ack);
            None
        }
        FromShard::NodeStateUpdate(node) => {
            let state = node.state();
            match node.removed {
                true => drop(heard.nodes.remove(&node.machine_id)),
                false => drop(heard.nodes.insert(node.machine_id, state)),
            }
            None
        }
        FromShard::BootstrapRequest(request) => {
            heard.blobs += 1;
            let mut answer = wire::BootstrapBlobResponse {
                request_id: request.request_id,
                ..wire::BootstrapBlobResponse::default()
            };
            match manner {
                Manner::Penniless => answer.error = NO_BLOB.to_owned(),
                Manner::Plain | Manner::Reports | Manner::Stalls => {
                    answer.user_data = format!("join {}", request.cluster_id).into_bytes();
                }
            }
            Some(Payload::BootstrapResponse(answer))
        }
        FromShard::ReclaimInstruction(instruction) => {
            let report = wire::DrainReport {
                instruction_id: instruction.instruction_id.clone(),
                machine_id: instruction.targets[0].machine_id.clone(),
                phase: wire::drain_report::Phase::Drained.into(),
                ..wire::DrainReport::default()
            };
            heard.instructions.push(instruction);
            (manner == Manner::Reports).then_some(Payload::DrainReport(report))
        }
        FromShard::AvailableCapacity(_) => {
            heard.hints += 1;
            None
        }
        FromShard::ReclaimCancel(_) => None,
    }
}
