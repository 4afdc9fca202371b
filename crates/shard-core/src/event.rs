//! Events: everything a shard is told, as plain data.
//!
//! An event names the question it answers by the id that was in the effect. Answers may come late,
//! twice or never; an id nobody waits for is ignored.

use crate::{
    effect::{Barrier, GetId, ListId, OperationId, RequestId},
    histogram::Phase,
    leaving::DrainMark,
    rails::{PauseNote, Scope},
    uplink::Answer,
};
use bigfleet_model::{
    Assignment, ClusterId, Disruption, Echoed, Machine, MachineId, MachineRefused, Row, Time,
};
use std::collections::BTreeSet;

/// A session as the hands number it; a number is never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionId(pub u64);

/// A machine as the provider shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Sighting {
    /// The record, without commitment.
    pub machine: Machine,
    /// The metadata the provider echoes.
    pub echoed: Echoed,
    /// When the provider will take it away, if it says so (SH-20).
    pub leaving: Option<Time>,
}

impl Sighting {
    /// The commitment the provider echoes; what of it cannot be read is passed over (MD-2).
    pub(crate) fn recalled(&self) -> Assignment {
        let mut assignment = self.machine.assignment().clone();
        assignment.read_metadata(&self.echoed);
        assignment
    }
}

impl From<Machine> for Sighting {
    fn from(machine: Machine) -> Self {
        Self {
            machine,
            echoed: Echoed::default(),
            leaving: None,
        }
    }
}

/// How a List ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listed {
    /// Every page arrived.
    Complete {
        /// Whether it names every machine there is, so that one it lacks may be gone.
        full: bool,
        /// Machines the provider says are gone.
        removed: Vec<MachineId>,
        /// What to ask for changes since; empty for everything.
        cursor: Vec<u8>,
    },
    /// It did not come to its end; what was seen still counts.
    Failed,
}

/// What a Get found.
#[derive(Clone, Debug, PartialEq)]
pub enum Got {
    /// The machine.
    Found(Box<Sighting>),
    /// No such machine.
    NotFound,
    /// No usable answer.
    Failed,
}

/// A provider's refusal, by its status code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Code {
    /// The connection broke, or another code that says nothing about what was done.
    Transport,
    /// UNAVAILABLE.
    Unavailable,
    /// DEADLINE_EXCEEDED.
    DeadlineExceeded,
    /// CANCELLED.
    Cancelled,
    /// UNKNOWN.
    Unknown,
    /// RESOURCE_EXHAUSTED.
    ResourceExhausted,
    /// NOT_FOUND.
    NotFound,
    /// INTERNAL.
    Internal,
    /// ALREADY_EXISTS.
    AlreadyExists,
    /// INVALID_ARGUMENT.
    InvalidArgument,
    /// UNIMPLEMENTED.
    Unimplemented,
    /// FAILED_PRECONDITION: fenced.
    FailedPrecondition,
}

impl Code {
    /// Whether it says that the provider was not reached, and nothing of what it would have said.
    pub(crate) fn is_silence(self) -> bool {
        match self {
            Self::Transport
            | Self::Unavailable
            | Self::DeadlineExceeded
            | Self::Cancelled
            | Self::Unknown => true,
            Self::ResourceExhausted
            | Self::NotFound
            | Self::Internal
            | Self::AlreadyExists
            | Self::InvalidArgument
            | Self::Unimplemented
            | Self::FailedPrecondition => false,
        }
    }

    /// Its name, as people know it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Transport => "the connection broke",
            Self::Unavailable => "UNAVAILABLE",
            Self::DeadlineExceeded => "DEADLINE_EXCEEDED",
            Self::Cancelled => "CANCELLED",
            Self::Unknown => "UNKNOWN",
            Self::ResourceExhausted => "RESOURCE_EXHAUSTED",
            Self::NotFound => "NOT_FOUND",
            Self::Internal => "INTERNAL",
            Self::AlreadyExists => "ALREADY_EXISTS",
            Self::InvalidArgument => "INVALID_ARGUMENT",
            Self::Unimplemented => "UNIMPLEMENTED",
            Self::FailedPrecondition => "FAILED_PRECONDITION",
        }
    }

    /// Its name, and the provider's words if there were any.
    pub fn said(self, text: &str) -> String {
        if text.is_empty() {
            self.name().to_owned()
        } else {
            format!("{}: {text}", self.name())
        }
    }
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq)]
pub enum CallOutcome {
    /// The provider took it on, and shows the machine.
    Acked {
        /// The machine as of then.
        seen: Box<Sighting>,
        /// The provider's name for what it took on; for people.
        operation: String,
    },
    /// It certainly never left this process.
    NeverSent,
    /// The provider, or the way to it, said no.
    Refused {
        /// By which code: all that decides.
        code: Code,
        /// In which words; for people.
        text: String,
    },
}

impl CallOutcome {
    /// Taken on by a provider that gives it no name.
    pub fn acked(seen: Sighting) -> Self {
        Self::Acked {
            seen: Box::new(seen),
            operation: String::new(),
        }
    }

    /// Refused without a word.
    pub fn refused(code: Code) -> Self {
        Self::Refused {
            code,
            text: String::new(),
        }
    }
}

/// An operator's answer to a request for a bootstrap blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlobAnswer {
    /// The blob, and for how many seconds it may be handed over; zero for ever.
    Blob {
        /// Handed to the provider as it is; the shard does not read it.
        user_data: Vec<u8>,
        /// Seconds.
        ttl_seconds: u32,
    },
    /// The operator could not make one.
    Error(String),
}

/// How far an operator is with draining a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrainPhase {
    /// Cordoned, evicting.
    Started,
    /// A disruption budget stands in the way.
    Blocked,
    /// Nothing that must move is left.
    Drained,
    /// The operator knows no such node.
    Unresolved,
}

/// A node as its operator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeFact {
    /// The machine it runs on, if the operator can tell.
    pub machine: Option<MachineId>,
    /// Its host, as the operator was told it; empty if it does not know.
    pub provider_id: String,
    /// Its name in the cluster.
    pub node_name: String,
    /// Whether it is Ready.
    pub ready: bool,
    /// What draining it would disturb, if the operator tells (RF-2).
    pub disruption: Option<Disruption>,
}

/// What an operator asked for in its Hello.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// It reports drains: `drain-report.v1`.
    pub drain_report: bool,
    /// It reports nodes: `node-report.v1`.
    pub node_report: bool,
    /// It understands resync markers: `resync.v1`.
    pub resync: bool,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A moment asked for by [`crate::Effect::WakeAt`] has come.
    Woken,
    /// Decide now, whatever the interval says.
    CycleDue,
    /// Everything up to this barrier is on disk.
    Persisted {
        /// The last write that is on disk, and with it all before.
        barrier: Barrier,
    },
    /// Part of a List.
    ListPage {
        /// Which List.
        list: ListId,
        /// Machines that passed the screening.
        machines: Vec<Sighting>,
        /// Records that did not, with their raw ids: seen, but not believed.
        refused: Vec<(String, MachineRefused)>,
    },
    /// A List came to its end.
    ListEnded {
        /// Which List.
        list: ListId,
        /// Whether every page arrived, and what it says is gone.
        outcome: Listed,
    },
    /// A Get came back.
    GotMachine {
        /// Which Get.
        get: GetId,
        /// The machine, or that there is none.
        answer: Got,
    },
    /// A mutating call ended.
    CallEnded {
        /// Whose call.
        operation: OperationId,
        /// Which attempt: the sequence number of its token.
        sequence: u64,
        /// Whether the provider took it on.
        outcome: CallOutcome,
    },
    /// An operator connected and said Hello.
    SessionOpened {
        /// The session.
        session: SessionId,
        /// The cluster it speaks for.
        cluster: ClusterId,
        /// What it can do.
        features: Features,
        /// The cluster its certificate names, where it has one.
        identity: Option<ClusterId>,
    },
    /// A repeated Hello inside a session.
    HelloAgain {
        /// The session.
        session: SessionId,
    },
    /// A session is over.
    SessionClosed {
        /// The session.
        session: SessionId,
    },
    /// A cluster's whole demand.
    RolledUp {
        /// The session it came on.
        session: SessionId,
        /// The cluster the message names.
        cluster: ClusterId,
        /// What to echo; empty for none.
        rollup_id: String,
        /// The rows, or what is wrong with them, in words.
        rows: Result<Vec<Row>, String>,
    },
    /// The last roll-up accepted on a session once more, row for row: the same in every effect as
    /// [`Event::RolledUp`] with those rows, without anybody reading them again. Whoever drives the
    /// core compares what was sent, and learns from [`crate::ShardCore::roll_ups_accepted`] what was
    /// accepted.
    RollUpRepeated {
        /// The session it came on.
        session: SessionId,
        /// What to echo; empty for none.
        rollup_id: String,
    },
    /// An answer to a request for a blob.
    BlobAnswered {
        /// The session it came on.
        session: SessionId,
        /// Which request.
        request: RequestId,
        /// The answer.
        answer: BlobAnswer,
    },
    /// A report about a drain.
    DrainReported {
        /// The session it came on.
        session: SessionId,
        /// The instruction's id.
        instruction: OperationId,
        /// The machine.
        machine: MachineId,
        /// How far it is.
        phase: DrainPhase,
    },
    /// A report about nodes.
    NodesReported {
        /// The session it came on.
        session: SessionId,
        /// Whether these are all nodes of the cluster.
        complete: bool,
        /// The nodes.
        nodes: Vec<NodeFact>,
    },
    /// No effect of this scope leaves until resumed or until the moment given.
    Pause {
        /// Who pauses: file and flags, or an admin.
        by: PausedBy,
        /// The effects that are held back.
        scope: Scope,
        /// Since when, if it is older than the event that tells of it.
        since: Option<Time>,
        /// Until when; `None` until resumed.
        until: Option<Time>,
        /// Who asked for it and why.
        note: PauseNote,
    },
    /// A pause is lifted. An admin lifts only what an admin paused.
    Resume {
        /// Whose pause.
        by: PausedBy,
        /// The scope of the pause to lift.
        scope: Scope,
    },
    /// Machines that came into or left the set this shard owns.
    Owned {
        /// New ones.
        add: BTreeSet<MachineId>,
        /// Ones that left.
        remove: BTreeSet<MachineId>,
    },
    /// The coordinator was heard with this term.
    CoordinatorTerm(u64),
    /// A report is wanted: it can be taken once what it speaks of is on disk ([`crate::ShardCore::take_report`], CO-16).
    ReportWanted,
    /// The answer to the newest report.
    Answered(Box<Answer>),
    /// Another process is on record as this shard (CO-14).
    Superseded,
    /// A report arrived.
    Reported {
        /// How many of the acks it carried, from the first on.
        acks: usize,
    },
    /// An admin drops a cluster whose operator is gone: its demand ends, and its machines are
    /// reclaimed as the rails allow (AD-1).
    ReleaseCluster {
        /// The cluster to release.
        cluster: ClusterId,
        /// The machines bound to it, as the admin believes; another number releases nothing.
        machines: usize,
    },
    /// An admin forgets a Failed machine that its provider keeps showing.
    RetireMachine {
        /// The machine to forget.
        machine: MachineId,
    },
    /// An admin marks machines to leave (SH-20).
    DrainMachines {
        /// Those that are meant; one that cannot be marked is passed over.
        machines: BTreeSet<MachineId>,
        /// Who, when, why and until when.
        mark: DrainMark,
    },
    /// An admin lifts such marks.
    UndrainMachines {
        /// Those that are meant; one without a mark is passed over.
        machines: BTreeSet<MachineId>,
        /// Who asks.
        by: String,
        /// What the admin gave as the reason, for the audit log.
        reason: String,
    },
    /// How long a cycle took, by the clock of whoever drives the core.
    CycleTook {
        /// From its beginning until its effects were started, in seconds.
        seconds: f64,
        /// Its phases, in seconds; and taking in a List, if one has ended since the last cycle.
        phases: Vec<(Phase, f64)>,
    },
}

/// Which layer a pause belongs to (SH-16).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PausedBy {
    /// The pause file or a flag: the bottom layer.
    Configuration,
    /// A remote admin.
    Admin,
}
