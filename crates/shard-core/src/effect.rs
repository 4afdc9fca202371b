//! Effects: everything a shard wants done, as plain data.
//!
//! ```text
//! cycle ─▶ Persist(barrier) ─▶ hands write ─▶ Persisted(barrier) ─▶ Call, Reclaim, BootstrapRequest
//! ```
//!
//! There is no channel, callback or future: the answer to an effect arrives as an event with its id.

use crate::{audit::AuditRecord, event::SessionId, record::Record};
use bigfleet_model::{Amounts, ClusterId, Host, MachineId, Requirement, State, Time};
use std::{collections::BTreeMap, fmt};

/// A point in the sequence of writes: everything written up to here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Barrier(pub u64);

/// One List, from its first page to its last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListId(pub u64);

/// One Get.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GetId(pub u64);

/// A committed operation: the epoch that committed it and a counter. Also the id of its reclaim
/// instruction and the value of `assigned-intent`, so that all of them survive a restart. Written the same
/// everywhere, so that whoever finds it in one log can look for it in the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OperationId {
    /// The epoch it was committed in.
    pub epoch: u64,
    /// Its number within the epoch.
    pub number: u64,
}

impl fmt::Display for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_id(f, OPERATION, self.epoch, self.number)
    }
}

impl OperationId {
    /// Reads what [`fmt::Display`] wrote, also in an earlier version; `None` is no id of ours.
    pub fn parse(text: &str) -> Option<Self> {
        let (epoch, number) = read_id(text, OPERATION)?;
        Some(Self { epoch, number })
    }
}

/// A request for a bootstrap blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestId {
    /// The epoch it was made in.
    pub epoch: u64,
    /// Its number within the epoch.
    pub number: u64,
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_id(f, REQUEST, self.epoch, self.number)
    }
}

impl RequestId {
    /// Reads what [`fmt::Display`] wrote, also in an earlier version; `None` is no id of ours.
    pub fn parse(text: &str) -> Option<Self> {
        let (epoch, number) = read_id(text, REQUEST)?;
        Some(Self { epoch, number })
    }
}

/// How ids began that an earlier version wrote, and those begin that are too large for 16 digits.
const OPERATION: &str = "op-";
const REQUEST: &str = "blob-";

/// 16 lowercase hex digits, the epoch and then the number, as operators know ids (wire 3.3); spelled out
/// after four thousand million starts or operations.
fn write_id(f: &mut fmt::Formatter<'_>, prefix: &str, epoch: u64, number: u64) -> fmt::Result {
    match (u32::try_from(epoch), u32::try_from(number)) {
        (Ok(epoch), Ok(number)) => write!(f, "{epoch:08x}{number:08x}"),
        _ => write!(f, "{prefix}{epoch}-{number}"),
    }
}

fn read_id(text: &str, prefix: &str) -> Option<(u64, u64)> {
    if let Some(spelled) = text.strip_prefix(prefix) {
        let (epoch, number) = spelled.split_once('-')?;
        return Some((epoch.parse().ok()?, number.parse().ok()?));
    }
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let is_id = text.len() == 16 && text.bytes().all(is_digit);
    let (epoch, number) = text.split_at_checked(8).filter(|_| is_id)?;
    let read = |half| u64::from_str_radix(half, 16).ok();
    Some((read(epoch)?, read(number)?))
}

/// What fences a mutating call (FE-2). The sequence is fresh for every attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// The shard.
    pub shard: String,
    /// Its epoch.
    pub epoch: u64,
    /// The attempt.
    pub sequence: u64,
}

/// A call to the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderCall {
    /// Speculative to Idle.
    Create,
    /// Idle to Configured.
    Configure {
        /// For whom.
        cluster: ClusterId,
        /// What the operator gave.
        blob: Vec<u8>,
        /// What the provider is to echo.
        metadata: BTreeMap<String, String>,
    },
    /// Configured to Idle.
    Drain {
        /// How long it may take.
        grace_seconds: u32,
    },
    /// Idle to Speculative.
    Delete,
}

/// A text frame's worth of acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Echo {
    /// `hello`.
    Hello,
    /// `rollup`: accepted.
    RollUpAccepted,
    /// `rollup`: held by rail 2.
    RollUpHeld,
    /// `rollup-rejected`; never `rollup`.
    RollUpRejected,
    /// `node-state-resync-begin`.
    ResyncBegin,
    /// `node-state-resync`, with how many machines were named.
    ResyncEnd(u32),
}

/// What an operator is told of a machine (NS-2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeState {
    /// The machine.
    pub machine: MachineId,
    /// Its state.
    pub state: State,
    /// Its host.
    pub host: Option<Host>,
    /// Its node's name, if the operator said it; else empty.
    pub node_name: String,
    /// Why it failed.
    pub last_error: String,
    /// Labels, instance type and zone included (NS-3).
    pub labels: BTreeMap<String, String>,
    /// What it offers.
    pub resources: Amounts,
    /// The provider no longer has it.
    pub removed: bool,
}

/// How sure a hint is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// There is none.
    None,
    /// It would have to be bought.
    Medium,
    /// It is idle.
    High,
}

/// A frame to an operator.
#[derive(Clone, Debug, PartialEq)]
pub enum Frame {
    /// An acknowledgement.
    Ack {
        /// Of what.
        echo: Echo,
        /// Which roll-up; empty for none.
        rollup_id: String,
        /// Why, where that is a question.
        reason: String,
        /// The highest coordinator term heard.
        term: u64,
        /// This shard's epoch.
        epoch: u64,
    },
    /// What became of a machine; supersedes what was said of it before.
    Node(Box<NodeState>),
    /// A request for a bootstrap blob.
    BootstrapRequest {
        /// Its id.
        request: RequestId,
        /// For which machine.
        machine: MachineId,
        /// Where that is.
        host: Option<Host>,
        /// What the Need asks of a machine.
        requirements: Vec<Requirement>,
    },
    /// Cordon, evict, report.
    Reclaim {
        /// Its id, the same when it is sent again.
        instruction: OperationId,
        /// The machine.
        machine: MachineId,
        /// Its node, if the operator told us.
        node_name: String,
        /// Where it is.
        host: Option<Host>,
        /// How long from now.
        grace_seconds: u32,
        /// When that ends.
        deadline: Time,
        /// Who takes over; zero for nobody.
        preemptor_priority: i32,
        /// Nobody waits for it: a Reclaim, which may be withdrawn.
        voluntary: bool,
    },
    /// Never mind: uncordon.
    ReclaimCancel {
        /// Which instruction.
        instruction: OperationId,
    },
    /// How much of what the cluster asks for is free (AV-1).
    Available {
        /// The fingerprint asked for.
        fingerprint: bigfleet_model::Fingerprint,
        /// What it requires.
        requirements: Vec<Requirement>,
        /// How many machines.
        count: u32,
        /// How sure.
        confidence: Confidence,
        /// The cheapest, in dollars per hour.
        cost_per_hour: f64,
    },
}

/// Why the hands are to end a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// A newer session of the cluster took its place: ABORTED.
    Replaced,
    /// The certificate names another cluster: PERMISSION_DENIED.
    Identity,
}

/// Something a human must hear about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Alert {
    /// The provider has seen a newer token: another process runs this shard. All mutations stop.
    Fenced {
        /// On which machine.
        machine: MachineId,
    },
    /// The coordinator knows another process as this shard. All mutations stop, restarts included.
    Superseded,
    /// Something happened that cannot: the shard is not what it believes to be. All mutations stop.
    Impossible {
        /// To which machine.
        machine: MachineId,
        /// What happened, in the words of whoever refused it.
        what: String,
    },
    /// A provider did not delete a machine, and it is supply again (SH-23).
    DeleteGivenUp {
        /// The machine that stays Idle.
        machine: MachineId,
    },
    /// The provider's records show an epoch of this shard that is not below this process's (SH-33).
    Twin {
        /// The highest that they show.
        seen: u64,
        /// This process's.
        own: u64,
    },
    /// The provider calls our call malformed.
    CallRefused {
        /// About which machine.
        machine: MachineId,
    },
    /// A machine is bound to somebody else than asked.
    Conflict {
        /// The machine that is bound.
        machine: MachineId,
    },
    /// A machine carries another shard's mark: no new unbound machine is adopted from here on.
    ForeignShard {
        /// The first one seen.
        machine: MachineId,
    },
    /// So many nodes of a cluster stopped being ready at once that none is believed.
    NodesFrozen {
        /// Which cluster.
        cluster: ClusterId,
    },
    /// A roll-up looks like a mistake (SR-3): held, or said so often that it is believed.
    RollUpSuspicious {
        /// Of which cluster.
        cluster: ClusterId,
        /// Rows of the demand in force.
        rows_before: usize,
        /// Rows it has.
        rows_now: usize,
        /// How many in a row are held, this one included; zero if it is believed.
        held: u32,
        /// What is wrong with it, for people.
        why: String,
    },
    /// A machine is drained by its provider alone: its operator is not there to evict what runs on it.
    DrainFallback {
        /// Which machine.
        machine: MachineId,
        /// Of which cluster.
        cluster: ClusterId,
        /// What is left of its grace.
        grace_seconds: u32,
    },
    /// A provider announces to take away more than half of a cluster: the latest of them are not hurried.
    NoticesHeld {
        /// Of which cluster.
        cluster: ClusterId,
        /// How many of its machines are not hurried.
        machines: usize,
    },
    /// So many machines are missing from a List that it is not believed yet.
    RemovalHeld {
        /// How many machines the List lacks.
        missing: usize,
    },
}

/// Something to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Write these, all or a prefix of them, and answer [`crate::Event::Persisted`].
    Persist {
        /// What to answer.
        barrier: Barrier,
        /// In this order.
        records: Vec<Record>,
    },
    /// Call the provider.
    Call {
        /// For which operation.
        operation: OperationId,
        /// On which machine.
        machine: MachineId,
        /// What fences it.
        token: Token,
        /// The call itself.
        call: ProviderCall,
    },
    /// Read one machine.
    Get {
        /// What to answer.
        get: GetId,
        /// The machine to read.
        machine: MachineId,
    },
    /// Read all machines, or what changed since the cursor.
    List {
        /// What to answer.
        list: ListId,
        /// Since when; empty for everything.
        cursor: Vec<u8>,
    },
    /// Send an operator a frame.
    Send {
        /// On which session.
        session: SessionId,
        /// The message.
        frame: Frame,
    },
    /// End a session.
    Close {
        /// The session to end.
        session: SessionId,
        /// The reason its operator is given.
        reason: CloseReason,
    },
    /// Append to the audit log.
    Audit(AuditRecord),
    /// Tell a human.
    Alert(Alert),
    /// Send [`crate::Event::Woken`] at this moment; replaces what was asked before.
    WakeAt(Time),
}

impl Effect {
    /// The machine a mutation, an instruction or a blob request is about: the effects a pause holds
    /// back (SH-16). `None` for every other effect.
    pub fn acts_on(&self) -> Option<&MachineId> {
        match self {
            Self::Call { machine, .. } => Some(machine),
            Self::Send { frame, .. } => match frame {
                Frame::BootstrapRequest { machine, .. } | Frame::Reclaim { machine, .. } => {
                    Some(machine)
                }
                Frame::Ack { .. }
                | Frame::Node(_)
                | Frame::ReclaimCancel { .. }
                | Frame::Available { .. } => None,
            },
            Self::Persist { .. }
            | Self::Get { .. }
            | Self::List { .. }
            | Self::Close { .. }
            | Self::Audit(_)
            | Self::Alert(_)
            | Self::WakeAt(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// wire 3.3, and what an operator or a provider may still have from before an update.
    #[test]
    fn ids_are_sixteen_hex_digits_and_come_back_as_they_were_given_out() {
        let ids = [(3, 41), (1, 1), (u64::from(u32::MAX), 7), (1 << 40, 2)];
        for (epoch, number) in ids {
            let id = RequestId { epoch, number };
            assert_eq!(RequestId::parse(&id.to_string()), Some(id));
            let earlier = format!("blob-{epoch}-{number}");
            assert_eq!(RequestId::parse(&earlier), Some(id));
            let id = OperationId { epoch, number };
            assert_eq!(OperationId::parse(&id.to_string()), Some(id));
            let earlier = format!("op-{epoch}-{number}");
            assert_eq!(OperationId::parse(&earlier), Some(id));
        }
        let (epoch, number) = (3, 41);
        let id = OperationId { epoch, number };
        assert_eq!(id.to_string(), "0000000300000029");
        for hostile in [
            "",
            "blob-",
            "blob-1",
            "blob-x-1",
            "op-1--1",
            "16hexcharacters!",
            "000000030000002A",
            "+000000300000029",
            "000000030000002\u{e9}",
        ] {
            assert_eq!(RequestId::parse(hostile), None);
            assert_eq!(OperationId::parse(hostile), None);
        }
    }
}
