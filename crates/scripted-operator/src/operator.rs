//! An operator that answers in a manner and remembers what it was told.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use bigfleet_wire::v1alpha1 as wire;
use tokio::sync::watch;
use tonic::{Code, Status};
use wire::operator_message::Payload;
use wire::shard_message::Payload as FromShard;

use crate::manner::Manner;
use crate::session::{Running, Script, Session};

/// What an operator has been told so far.
#[derive(Clone, Debug, Default)]
pub struct Heard {
    /// The last word on every machine.
    pub nodes: BTreeMap<String, wire::MachineState>,
    /// Every acknowledgement, the oldest first.
    pub acks: Vec<wire::Acknowledgement>,
    /// How many blobs it was asked for.
    pub blobs: usize,
    /// Every instruction to drain, the oldest first.
    pub instructions: Vec<wire::ReclaimInstruction>,
    /// How many hints of what could be had.
    pub hints: usize,
    /// Every frame that says where rows stand, the oldest first.
    pub need_status: Vec<wire::NeedStatus>,
    /// How the session ended, once it has.
    pub ended: Option<Result<(), (Code, String)>>,
}

impl Heard {
    /// How many machines are in a state, by the last word on each.
    pub fn count(&self, state: wire::MachineState) -> usize {
        self.nodes.values().filter(|last| **last == state).count()
    }

    /// Whether a resync has begun and not ended: not every machine has been named yet.
    pub fn is_resyncing(&self) -> bool {
        let echoed = |echo: &str| self.acks.iter().filter(|ack| ack.echo == echo).count();
        echoed("node-state-resync") < echoed("node-state-resync-begin")
    }

    fn take(&mut self, frame: FromShard) {
        match frame {
            FromShard::Ack(ack) => self.acks.push(ack),
            FromShard::NodeStateUpdate(node) if node.removed => {
                self.nodes.remove(&node.machine_id);
            }
            FromShard::NodeStateUpdate(node) => {
                let state = node.state();
                self.nodes.insert(node.machine_id, state);
            }
            FromShard::BootstrapRequest(_) => self.blobs += 1,
            FromShard::ReclaimInstruction(instruction) => self.instructions.push(instruction),
            FromShard::AvailableCapacity(_) => self.hints += 1,
            FromShard::ReclaimCancel(_) => {}
            FromShard::NeedStatus(status) => self.need_status.push(status),
        }
    }

    fn end(&mut self, how: Result<(), Status>) {
        self.ended = Some(how.map_err(|status| (status.code(), status.message().to_owned())));
    }
}

/// What was waited for did not come in time: what had been heard instead.
#[derive(Clone, Debug)]
pub struct NotHeard(pub Box<Heard>);

/// An operator of a cluster, with a session of its own.
#[derive(Debug)]
pub struct Operator {
    /// The cluster it speaks for.
    pub cluster: String,
    heard: watch::Receiver<Heard>,
    /// `None` if the shard did not take the session on; how that went is in what was heard.
    session: Option<Running>,
}

impl Operator {
    /// Connects and says Hello. The session may be over already: [`Heard::ended`] says so.
    pub async fn dial(shard: SocketAddr, cluster: &str, manner: Manner) -> Self {
        let (sender, heard) = watch::channel(Heard::default());
        let session = match Session::open(shard, [manner.hello(cluster)]).await {
            Ok(session) => Some(session.run(Recorder {
                manner,
                heard: sender,
            })),
            Err(status) => {
                sender.send_modify(|heard| heard.end(Err(status)));
                None
            }
        };
        Self {
            cluster: cluster.to_owned(),
            heard,
            session,
        }
    }

    /// What it has heard so far.
    pub fn heard(&self) -> Heard {
        self.heard.borrow().clone()
    }

    /// Sends a frame.
    pub async fn send(&self, payload: Payload) {
        if let Some(session) = &self.session {
            session.send(payload).await;
        }
    }

    /// Says what the cluster needs, all of it.
    pub async fn needs(&self, needs: Vec<wire::CapacityNeed>) {
        self.send(Payload::Rollup(wire::ClusterCapacityNeeds {
            cluster_id: self.cluster.clone(),
            needs,
            ..wire::ClusterCapacityNeeds::default()
        }))
        .await;
    }

    /// Waits for something to be so of what it has heard: looks with every frame, not by the clock.
    pub async fn hears(
        &self,
        holds: impl FnMut(&Heard) -> bool,
        within: Duration,
    ) -> Result<Heard, NotHeard> {
        let mut heard = self.heard.clone();
        let found = tokio::time::timeout(within, heard.wait_for(holds)).await;
        match found {
            Ok(Ok(heard)) => Ok(heard.clone()),
            // Too late, or over without it.
            Ok(Err(_)) | Err(_) => Err(NotHeard(Box::new(self.heard()))),
        }
    }
}

/// Writes down every frame, and answers in a manner.
struct Recorder {
    manner: Manner,
    heard: watch::Sender<Heard>,
}

impl Script for Recorder {
    fn hear(&mut self, frame: FromShard) -> Option<Payload> {
        let answer = self.manner.answer(&frame);
        self.heard.send_modify(|heard| heard.take(frame));
        answer
    }

    fn ended(&mut self, how: Result<(), Status>) {
        self.heard.send_modify(|heard| heard.end(how));
    }
}
