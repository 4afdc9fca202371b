//! Events: everything an operator is told, as plain data.
//!
//! An answer names the effect it ends by its id. Answers may come late or never; an id nobody waits for is ignored.

use crate::{
    bootstrap::Template,
    follow::Count,
    objects::{Kind, Object, ObjectKey, Owner, Taint},
    pods::PodBrief,
};
use bigfleet_model::{Amounts, Requirement, Time};
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// An effect that has an answer; a number is never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EffectId(pub u64);

/// One attempt to talk to the shard; a number is never used twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionId(pub u64);

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A moment asked for by [`crate::Effect::WakeAt`] has come.
    Woken,
    /// The lease was renewed at this moment, or is lost (OP-11).
    Leads(Option<Time>),
    /// A complete list of a kind begins.
    Began(Kind),
    /// An object as it is now, and the version of the store that shows it.
    Seen(Object, u64),
    /// An object is there and cannot be read.
    Unreadable {
        /// Its kind.
        kind: Kind,
        /// Where it is.
        key: ObjectKey,
        /// What is wrong with it.
        why: String,
    },
    /// An object is gone.
    Gone {
        /// Its kind.
        kind: Kind,
        /// Where it was.
        key: ObjectKey,
        /// The version of the store that lacks it.
        version: u64,
    },
    /// The list of a kind is complete.
    Whole(Kind, u64),
    /// A bookmark: the watch of a kind lives.
    Fresh(Kind, u64),
    /// The watch of a kind ended; whoever follows tries again.
    Broken(Kind),
    /// The answer to [`crate::Effect::Count`]; `None` if there was none.
    Counted(Option<Count>),
    /// What the DaemonSets of the cluster ask of every Node, in all (OP-51).
    DaemonSets(Amounts),
    /// The stream to the shard is open.
    Opened(SessionId),
    /// The shard said something.
    Heard(SessionId, Heard),
    /// The stream is over, or never began.
    Closed(SessionId, ClosedBy),
    /// A write ended.
    Wrote(EffectId, WriteOutcome),
    /// The Pods of a Node: all of them, and again whenever one changes; `None` if they cannot be read.
    Pods(EffectId, Option<Vec<PodBrief>>),
    /// An eviction ended.
    Evicted(EffectId, EvictionOutcome),
    /// The owners of requests were read; `None` if they cannot be.
    Owners(EffectId, Option<OwnersFound>),
    /// A template was rendered: what came out, or why nothing did.
    Rendered(EffectId, Result<Vec<u8>, String>),
    /// The template file was read: the template in force from now on, or why it cannot be used.
    Template(Result<Arc<Template>, String>),
    /// A join token was made, or could not be.
    Token(Result<JoinToken, String>),
    /// The record of spares was read, `None` if there is none (OP-67).
    SpareRecord(Option<String>),
}

/// A token that lets a machine join.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinToken {
    /// The token itself.
    pub text: String,
    /// When it ends.
    pub expires: Time,
}

/// Why a session is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClosedBy {
    /// The connection broke or could not be made.
    Transport(String),
    /// The shard refuses this operator for a reason that trying again does not change: PERMISSION_DENIED,
    /// INVALID_ARGUMENT or UNIMPLEMENTED, in its words.
    Refused(String),
}

/// How a write ended (OP-9).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteOutcome {
    /// It is done.
    Done,
    /// 404: the object is not there.
    Gone,
    /// 409: the object is another one, or has changed.
    Conflict,
    /// 400 or 422: the API server refuses these bytes, or a test in the patch failed.
    Refused(String),
    /// 429, 503 or 504: later, and when.
    Throttled(Option<Duration>),
    /// Anything else, in its words.
    Failed(String),
}

/// How an eviction ended (OP-39).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvictionOutcome {
    /// 201: the Pod is on its way.
    Sent,
    /// 404 or 409: that Pod is no longer there.
    Gone,
    /// A disruption budget refuses, or two budgets are in each other's way.
    Budget,
    /// The API server is too busy, and until when.
    Throttled(Option<Duration>),
    /// Anything else, in its words.
    Failed(String),
}

/// What became of the owner of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerState {
    /// It is there, the same one, not finished; and whether it has a Node.
    Live {
        /// Whether it is bound to a Node.
        is_bound: bool,
    },
    /// It is gone, another one, or finished.
    Over,
}

/// The owners asked for, in the order asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnersFound {
    /// What became of each.
    pub owners: Vec<(Owner, OwnerState)>,
    /// Whether the CRD of requests is there and is not being deleted.
    pub is_crd_there: bool,
}

/// What an acknowledgement answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Echo {
    /// The Hello.
    Hello,
    /// A roll-up.
    RollUp,
    /// A roll-up that was refused.
    RollUpRejected,
    /// All machines of the cluster follow.
    ResyncBegin,
    /// All of them were named.
    ResyncEnd,
    /// Something this operator does not know.
    Unknown,
}

/// What the shard did with a roll-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// It is in force.
    Accepted,
    /// It is looked at later; the one before stays in force.
    Held,
    /// It is refused; the one before stays in force.
    Rejected,
}

/// The state of a machine as the shard names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MachineState {
    /// It could be made.
    Speculative,
    /// It is being made.
    Creating,
    /// It is nobody's.
    Idle,
    /// It is joining.
    Configuring,
    /// It serves.
    Configured,
    /// It is being taken away.
    Draining,
    /// It is being deleted.
    Deleting,
    /// It failed.
    Failed,
    /// A number this operator does not know.
    Unknown,
}

/// What became of a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeState {
    /// The machine; any text.
    pub machine: String,
    /// The cluster the frame names; empty for this one.
    pub cluster: String,
    /// Its state.
    pub state: MachineState,
    /// The Node's name as far as the shard knows.
    pub node_name: String,
    /// The cloud's name for it.
    pub provider_id: String,
    /// Why it failed.
    pub last_error: String,
    /// Labels the Node will carry.
    pub labels: BTreeMap<String, String>,
    /// What Pods may ask of it.
    pub resources: Amounts,
    /// Taints the Node will carry.
    pub taints: Vec<Taint>,
    /// Whether the machine has left the cluster for good.
    pub is_removed: bool,
}

/// A machine to drain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// The machine; any text.
    pub machine: String,
    /// Its Node as far as the shard knows.
    pub node_name: String,
    /// The cloud's name for it.
    pub provider_id: String,
}

/// An order to drain machines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reclaim {
    /// Its id; any text.
    pub instruction: String,
    /// Names of Nodes or machines, from a shard that names no targets.
    pub nodes: Vec<String>,
    /// The machines.
    pub targets: Vec<Target>,
    /// How long they have, from now.
    pub grace_seconds: i64,
    /// Who takes over; zero for nobody.
    pub preemptor_priority: i32,
    /// Whether it can wait.
    pub voluntary: bool,
}

/// What the shard knows of a row (OP-53).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowStatus {
    /// The profile's text.
    pub fingerprint: String,
    /// The row's group.
    pub group: String,
    /// How much of it serves.
    pub serving: Amounts,
    /// How much is on its way.
    pub coming: Amounts,
    /// How much is on its way and makes no progress.
    pub stuck: Amounts,
    /// How much is missing.
    pub missing: Amounts,
    /// Why, in one word.
    pub reason: String,
    /// Why, in one sentence.
    pub sentence: String,
}

/// A hint at what is to be had.
#[derive(Clone, Debug, PartialEq)]
pub struct Hint {
    /// Which hint it replaces; any text.
    pub key: String,
    /// What was asked for.
    pub requirements: Vec<Requirement>,
    /// How much of it one machine offers.
    pub resources: Amounts,
    /// How many machines.
    pub count: u32,
    /// How sure that is.
    pub availability: crate::objects::Availability,
    /// Dollars per hour.
    pub cost_per_hour: f64,
}

/// A request for what a machine needs to join.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootstrapRequest {
    /// What to echo.
    pub request: String,
    /// The cluster the frame names; empty for this one.
    pub cluster: String,
    /// The machine; empty from a shard that does not say.
    pub machine: String,
    /// The cloud's name for it; may be empty.
    pub provider_id: String,
    /// What the Need asks of a machine.
    pub requirements: Vec<Requirement>,
}

/// A frame of the shard.
#[derive(Clone, Debug, PartialEq)]
pub enum Heard {
    /// An acknowledgement.
    Ack {
        /// Of what.
        echo: Echo,
        /// What the shard can do; on the acknowledgement of the Hello.
        features: Vec<String>,
        /// Which roll-up; empty from a shard that does not say.
        rollup_id: String,
        /// What became of it; `None` from a shard that does not say.
        disposition: Option<Disposition>,
        /// Why.
        reason: String,
        /// How many machines were named between the markers.
        resync_count: Option<u64>,
    },
    /// A request for what a machine needs to join.
    Bootstrap(BootstrapRequest),
    /// An order to drain.
    Reclaim(Reclaim),
    /// An order is taken back.
    ReclaimCancel {
        /// Which.
        instruction: String,
    },
    /// What became of a machine.
    NodeState(Box<NodeState>),
    /// A hint at what is to be had.
    Available(Hint),
    /// What the shard knows of rows.
    NeedStatus {
        /// The rows.
        rows: Vec<RowStatus>,
        /// Whether a row that is not named is unknown.
        is_complete: bool,
    },
    /// A frame this operator does not know.
    Unknown,
}
