//! Effects: everything an operator wants done, as plain data.
//!
//! There is no channel, callback or future: the answer to an effect arrives as an event with its id.

use crate::{
    bootstrap::RenderJob,
    event::{EffectId, SessionId},
    objects::{AvailableCapacity, Kind, ObjectKey, Owner, Served, UpcomingNode},
};
use bigfleet_model::{MachineId, Row, Time};

/// Something to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Wake the core at this moment; replaces the moment asked for before.
    WakeAt(Time),
    /// Begin a complete list of a kind, then watch it, and say `Began` first.
    Follow(Kind),
    /// Stop following every kind: another process leads.
    Unfollow,
    /// Read the record of spares (OP-67).
    ReadSpareRecord,
    /// Count the requests in the store (OP-5).
    Count,
    /// Open a stream to the shard. The lease must have been renewed within 10 s when the call leaves (OP-11).
    Dial(SessionId),
    /// Say this to the shard.
    Send(SessionId, Frame),
    /// End the stream.
    HangUp(SessionId),
    /// Write to the API server.
    Write(EffectId, Write),
    /// List the Pods of a Node, then watch them, and say `Pods` with all of them each time.
    FollowPods(EffectId, String),
    /// Stop that.
    ForgetPods(EffectId),
    /// Evict a Pod. The lease must have been renewed within 10 s when the call leaves.
    Evict(EffectId, Eviction),
    /// Read these owners, and whether the CRD of requests is there.
    ReadOwners(EffectId, Vec<Owner>),
    /// Render a template, within its bounds.
    Render(EffectId, Box<RenderJob>),
    /// Make a join token: a Secret of this name that lasts until then (OP-46).
    MakeToken {
        /// The public half of the token, and of the Secret's name.
        id: String,
        /// When it ends.
        expires: Time,
    },
    /// Write a Kubernetes Event.
    Tell(Note),
    /// Say something a human must hear.
    Alert(Alert),
}

/// A Kubernetes Event.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Note {
    /// About which kind.
    pub kind: Kind,
    /// About which object.
    pub about: ObjectKey,
    /// In one word.
    pub reason: &'static str,
    /// In one sentence.
    pub message: String,
}

/// Something a human must hear about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Alert {
    /// A roll-up did not pass the check; nothing is sent (OP-23).
    RollUpDefect(String),
    /// The shard refused a roll-up, in its words (OP-26).
    RollUpRejected(String),
    /// Half of the demand is gone while its Pods are there; it is not withdrawn (OP-24).
    WithdrawalHeld,
    /// The shard knows none of this cluster's machines: a wrong address? (OP-25)
    StrangeShard,
    /// The record of spares cannot be read; no roll-up leaves (OP-67).
    SpareRecordUnreadable(String),
    /// The template file cannot be used; the one before stays (OP-45).
    TemplateRefused(String),
    /// The shard refuses this operator, in its words (OP-13).
    SessionRefused(String),
    /// The API server refused bytes of ours: a defect (OP-9).
    WriteRefused(String),
    /// No join token could be made.
    TokenRefused(String),
}

/// How far the operator is with draining a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DrainPhase {
    /// Cordoned; evicting or about to.
    Started,
    /// Something stands in the way.
    Blocked,
    /// No Pod that counts is left.
    Drained,
    /// No Node can be the machine.
    Unresolved,
}

/// A machine's Node as the operator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeLine {
    /// The machine.
    pub machine: MachineId,
    /// Its Node's name; empty if there is none.
    pub node_name: String,
    /// The cloud's name for it.
    pub provider_id: String,
    /// Whether it is Ready.
    pub ready: bool,
    /// What a drain would disturb: 0 to 15.
    pub disruption: Option<u8>,
}

/// A frame to the shard.
#[derive(Clone, Debug, PartialEq)]
pub enum Frame {
    /// The first one.
    Hello {
        /// What this operator can do.
        features: &'static [&'static str],
    },
    /// The whole demand.
    RollUp {
        /// Its id.
        id: String,
        /// When it was made.
        at: Time,
        /// The rows, in canonical order.
        rows: Vec<Row>,
    },
    /// What a machine needs to join, or why there is none.
    BootstrapResponse {
        /// The request's id.
        request: String,
        /// The blob and for how many seconds it may be used, zero for ever.
        answer: Result<(Vec<u8>, u32), String>,
    },
    /// So many machines of an instruction are cordoned.
    ReclaimAck {
        /// Which instruction.
        instruction: String,
        /// How many.
        nodes_started: u32,
    },
    /// How far a drain is.
    DrainReport {
        /// Which instruction.
        instruction: String,
        /// Which machine.
        machine: MachineId,
        /// Its Node; empty if unknown.
        node_name: String,
        /// How far.
        phase: DrainPhase,
        /// Pods that count and are still there.
        pods_remaining: u32,
    },
    /// What the Nodes are like.
    NodeReport {
        /// Whether a machine that is not named has no Node that is Ready.
        complete: bool,
        /// The machines.
        nodes: Vec<NodeLine>,
    },
}

/// A Pod to evict.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Eviction {
    /// Where it is.
    pub pod: ObjectKey,
    /// Which one of that name; another is left alone.
    pub uid: String,
    /// How long it has to end; `None` for what it asks for itself.
    pub grace_seconds: Option<u32>,
}

/// A write to the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// A JSON patch on a request's status that tests its uid (OP-28).
    Acknowledge {
        /// Which request.
        request: ObjectKey,
        /// Which one of that name.
        uid: String,
        /// When it was acknowledged.
        at: Time,
        /// Whether there is a status to add to; otherwise it is added whole.
        has_status: bool,
    },
    /// The condition `Served` of a request, by a JSON patch that tests its uid (OP-53).
    Serve {
        /// Which request.
        request: ObjectKey,
        /// Which one of that name.
        uid: String,
        /// The condition.
        served: Served,
        /// Whether there is a status to add to.
        has_status: bool,
    },
    /// One merge patch: the drain's record, `unschedulable: true`, and the Node's uid.
    CordonNode {
        /// Which Node.
        node: String,
        /// Which one of that name.
        uid: String,
        /// The annotation's text.
        record: String,
    },
    /// One merge patch, version checked: the record off, and uncordoned unless somebody else had cordoned it.
    ReleaseNode {
        /// Which Node.
        node: String,
        /// Which one of that name.
        uid: String,
        /// The version it must have.
        version: String,
        /// Whether to uncordon.
        uncordon: bool,
    },
    /// A label that says which machine a Node is (OP-30).
    LabelNode {
        /// Which Node.
        node: String,
        /// Which one of that name.
        uid: String,
        /// The label.
        key: &'static str,
        /// Its value.
        value: String,
    },
    /// Delete a Node whose machine has left, by uid.
    DeleteNode {
        /// Which Node.
        node: String,
        /// Which one of that name.
        uid: String,
    },
    /// Server-side apply of an UpcomingNode and its status.
    ApplyUpcoming {
        /// Its name.
        name: String,
        /// The machine, for the annotation.
        machine: MachineId,
        /// What it says.
        content: Box<UpcomingNode>,
    },
    /// Delete an UpcomingNode.
    DeleteUpcoming {
        /// Its name.
        name: String,
    },
    /// Server-side apply of an AvailableCapacity.
    ApplyAvailable {
        /// Its name.
        name: String,
        /// What it says.
        content: Box<AvailableCapacity>,
    },
    /// Delete an AvailableCapacity.
    DeleteAvailable {
        /// Its name.
        name: String,
    },
    /// The record of spares (OP-67).
    SpareRecord {
        /// Its text.
        text: String,
    },
}
