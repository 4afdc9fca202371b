//! A demonstration cluster: what its operator would say, as a value.
//!
//! ```text
//! orders (ask for more, go silent) ──┐
//! frames from the shard ─────────────┼─▶ Cluster ─▶ frames to the shard
//! the moment it asked for ───────────┘
//! ```
//!
//! It has no clock and no connection: time and frames are arguments, so every habit of it can be tested
//! without waiting. It speaks the session as a real operator would: roll-ups are its whole demand every time,
//! drains are reported as they go, and after a reconnect it believes the shard about which nodes it has.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bigfleet_model::ClusterId;
use bigfleet_scripted_operator::hello;
use bigfleet_wire::Feature;
use bigfleet_wire::v1alpha1::drain_report::Phase;
use bigfleet_wire::v1alpha1::operator_message::Payload;
use bigfleet_wire::v1alpha1::shard_message::Payload as FromShard;
use bigfleet_wire::v1alpha1::{
    Acknowledgement, BootstrapBlobResponse, CapacityNeed, ClusterCapacityNeeds, DrainReport,
    MachineState, NodeReport, NodeStateUpdate, ReclaimAck, ReclaimInstruction, ReportedNode,
};

/// How often a cluster says what it needs.
pub(crate) const ROLL_UP_EVERY: Duration = Duration::from_secs(10);
/// How many Pods it pretends to run on a node, and how long one takes to leave. Together less than the
/// shortest grace a preemption gives.
const PODS_PER_NODE: u32 = 3;
const EVICTION: Duration = Duration::from_secs(2);
/// For so long nobody is evicted from a node that nobody waits for: a dip of a minute costs nothing.
const SETTLE: Duration = Duration::from_secs(90);
/// How long the credentials in a blob live.
const BLOB_LIFETIME: Duration = Duration::from_secs(600);

/// What somebody decides about a cluster.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Order {
    /// From now on it asks for this under a name, or for nothing more under it.
    Ask(String, Option<CapacityNeed>),
    /// Its operator goes away.
    Silence,
    /// Its operator comes back.
    Return,
}

#[derive(Clone, Debug, PartialEq)]
struct Node {
    host: String,
    /// It joined and is Ready.
    joined: bool,
    pods: u32,
    drain: Option<Drain>,
}

#[derive(Clone, Debug, PartialEq)]
struct Drain {
    instruction: String,
    /// When the next Pod has left.
    next: Duration,
}

/// A cluster and its operator.
#[derive(Clone, Debug)]
pub(crate) struct Cluster {
    id: ClusterId,
    asks: BTreeMap<String, CapacityNeed>,
    silent: bool,
    /// What the shard of the open session understands; `None` without a session.
    session: Option<BTreeSet<Feature>>,
    nodes: BTreeMap<String, Node>,
    roll_up_at: Duration,
    roll_ups: u64,
    /// The machines named since a resync began.
    resync: Option<BTreeSet<String>>,
    /// What it was last told could be had, by profile.
    hints: BTreeMap<String, i32>,
}

impl Cluster {
    pub(crate) fn new(id: ClusterId, asks: Vec<CapacityNeed>) -> Self {
        let named = asks.into_iter().enumerate();
        let asks = named
            .map(|(at, need)| (format!("row {at:06}"), need))
            .collect();
        Self {
            id,
            asks,
            silent: false,
            session: None,
            nodes: BTreeMap::new(),
            roll_up_at: Duration::ZERO,
            roll_ups: 0,
            resync: None,
            hints: BTreeMap::new(),
        }
    }

    pub(crate) fn id(&self) -> &ClusterId {
        &self.id
    }

    /// Whether its operator is there to speak for it.
    pub(crate) fn wants_session(&self) -> bool {
        !self.silent
    }

    pub(crate) fn order(&mut self, order: Order) {
        match order {
            Order::Ask(name, Some(need)) => drop(self.asks.insert(name, need)),
            Order::Ask(name, None) => drop(self.asks.remove(&name)),
            Order::Silence => self.silent = true,
            Order::Return => self.silent = false,
        }
    }

    /// A session is open: the first words of it.
    pub(crate) fn opened(&mut self, now: Duration) -> Vec<Payload> {
        self.session = Some(BTreeSet::new());
        self.resync = None;
        let hello = hello(self.id.as_str(), &Feature::ALL);
        vec![hello, self.roll_up(now)]
    }

    /// The session is over. What the cluster runs goes on running.
    pub(crate) fn closed(&mut self) {
        self.session = None;
        self.hints.clear();
    }

    /// When it wants to be woken.
    pub(crate) fn due(&self) -> Duration {
        let drains = self.nodes.values().filter_map(|node| node.drain.as_ref());
        let drains = drains.map(|drain| drain.next).min();
        drains.map_or(self.roll_up_at, |next| next.min(self.roll_up_at))
    }

    /// The moment has come: evictions, and the next roll-up.
    pub(crate) fn woken(&mut self, now: Duration) -> Vec<Payload> {
        let mut said = Vec::new();
        for (machine, node) in &mut self.nodes {
            while let Some(drain) = node.drain.as_mut().filter(|drain| drain.next <= now) {
                node.pods = node.pods.saturating_sub(1);
                drain.next += EVICTION;
                let instruction = drain.instruction.clone();
                let phase = match node.pods {
                    0 => Phase::Drained,
                    _ => Phase::Started,
                };
                if phase == Phase::Drained {
                    node.drain = None;
                }
                said.push(report(&instruction, machine, phase, node.pods));
            }
        }
        if self.roll_up_at <= now {
            said.push(self.roll_up(now));
            said.push(self.nodes_seen());
        }
        said.retain(|payload| self.is_understood(payload));
        said
    }

    /// A frame came from the shard: what is answered.
    pub(crate) fn heard(&mut self, now: Duration, frame: FromShard) -> Vec<Payload> {
        let mut said = match frame {
            FromShard::Ack(ack) => {
                self.acknowledged(&ack);
                Vec::new()
            }
            FromShard::BootstrapRequest(asked) => {
                let blob = format!("#cloud-config\n# {} joins {}\n", asked.machine_id, self.id);
                vec![Payload::BootstrapResponse(BootstrapBlobResponse {
                    request_id: asked.request_id,
                    user_data: blob.into_bytes(),
                    ttl_seconds: BLOB_LIFETIME.as_secs() as i64,
                    error: String::new(),
                })]
            }
            FromShard::NodeStateUpdate(update) => {
                self.node_changed(update);
                Vec::new()
            }
            FromShard::ReclaimInstruction(instruction) => self.drain(now, &instruction),
            FromShard::ReclaimCancel(cancel) => {
                self.uncordon(&cancel.instruction_id);
                Vec::new()
            }
            FromShard::AvailableCapacity(hint) => {
                self.hints.insert(hint.supersedes_key, hint.available_count);
                Vec::new()
            }
            FromShard::NeedStatus(_) => Vec::new(), // nobody waits in a played cluster
        };
        said.retain(|payload| self.is_understood(payload));
        said
    }

    /// New frames go only to a peer that listed their feature.
    fn is_understood(&self, payload: &Payload) -> bool {
        let needed = match payload {
            Payload::DrainReport(_) => Feature::DrainReport,
            Payload::NodeReport(_) => Feature::NodeReport,
            Payload::Hello(_)
            | Payload::Rollup(_)
            | Payload::BootstrapResponse(_)
            | Payload::ReclaimAck(_) => return true,
        };
        let session = self.session.as_ref();
        session.is_some_and(|understood| understood.contains(&needed))
    }

    fn roll_up(&mut self, now: Duration) -> Payload {
        self.roll_ups += 1;
        self.roll_up_at = now + ROLL_UP_EVERY;
        Payload::Rollup(ClusterCapacityNeeds {
            cluster_id: self.id.to_string(),
            needs: self.asks.values().cloned().collect(),
            rollup_id: format!("{}-{}", self.id, self.roll_ups),
            ..ClusterCapacityNeeds::default()
        })
    }

    fn nodes_seen(&self) -> Payload {
        let joined = self.nodes.iter().filter(|(_, node)| node.joined);
        let reported = joined.map(|(machine, node)| ReportedNode {
            machine_id: machine.clone(),
            node_name: node_name(machine),
            provider_id: node.host.clone(),
            ready: true,
            disruption: Some(node.pods),
        });
        Payload::NodeReport(NodeReport {
            complete: true,
            nodes: reported.collect(),
        })
    }

    fn acknowledged(&mut self, ack: &Acknowledgement) {
        match ack.echo.as_str() {
            "hello" => self.session = Some(Feature::known(&ack.features)),
            "node-state-resync-begin" => self.resync = Some(BTreeSet::new()),
            "node-state-resync" => {
                let named = self.resync.take().unwrap_or_default();
                // Only a count that agrees may delete what was not named (wire 12).
                if usize::try_from(ack.resync_count) == Ok(named.len()) {
                    self.nodes.retain(|machine, _| named.contains(machine));
                }
            }
            _ => {}
        }
    }

    fn node_changed(&mut self, update: NodeStateUpdate) {
        if let Some(named) = &mut self.resync {
            named.insert(update.machine_id.clone());
        }
        let state = update.state();
        if update.removed {
            self.nodes.remove(&update.machine_id);
            return;
        }
        match state {
            MachineState::Configuring | MachineState::Configured | MachineState::Draining => {
                let host = update.provider_id;
                let node = self.nodes.entry(update.machine_id).or_insert(Node {
                    host,
                    joined: false,
                    pods: 0,
                    drain: None,
                });
                if state == MachineState::Configured && (!node.joined || node.drain.is_some()) {
                    // That it serves is as good as a cancel, which may have been lost.
                    (node.joined, node.pods, node.drain) = (true, PODS_PER_NODE, None);
                }
            }
            MachineState::Unspecified
            | MachineState::Speculative
            | MachineState::Creating
            | MachineState::Idle
            | MachineState::Deleting
            | MachineState::Failed => drop(self.nodes.remove(&update.machine_id)),
        }
    }

    fn drain(&mut self, now: Duration, instruction: &ReclaimInstruction) -> Vec<Payload> {
        let id = &instruction.instruction_id;
        let settle = if instruction.voluntary {
            SETTLE
        } else {
            Duration::ZERO
        };
        let mut reports = Vec::new();
        let mut started = 0;
        for target in &instruction.targets {
            let machine = &target.machine_id;
            let Some(node) = self.nodes.get_mut(machine).filter(|node| node.joined) else {
                reports.push(report(id, machine, Phase::Unresolved, 0));
                continue;
            };
            started += 1;
            let phase = match node.pods {
                0 => Phase::Drained, // said before, perhaps on a session that broke
                _ => Phase::Started,
            };
            if phase == Phase::Started {
                node.drain = Some(Drain {
                    instruction: id.clone(),
                    next: now + settle + EVICTION,
                });
            }
            reports.push(report(id, machine, phase, node.pods));
        }
        let ack = Payload::ReclaimAck(ReclaimAck {
            instruction_id: id.clone(),
            nodes_started: started,
        });
        std::iter::once(ack).chain(reports).collect()
    }

    fn uncordon(&mut self, instruction: &str) {
        for node in self.nodes.values_mut() {
            let drained = node.drain.take_if(|drain| drain.instruction == instruction);
            if drained.is_some() {
                node.pods = PODS_PER_NODE;
            }
        }
    }
}

fn node_name(machine: &str) -> String {
    format!("node-{machine}")
}

fn report(instruction: &str, machine: &str, phase: Phase, pods: u32) -> Payload {
    Payload::DrainReport(DrainReport {
        instruction_id: instruction.to_owned(),
        machine_id: machine.to_owned(),
        node_name: match phase {
            Phase::Unresolved => String::new(),
            _ => node_name(machine),
        },
        phase: phase.into(),
        pods_remaining: pods as i32,
    })
}

#[cfg(test)]
mod tests;
