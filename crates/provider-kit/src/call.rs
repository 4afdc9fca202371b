//! Calls: the four mutations, the token that fences them, and every way one can be refused.

use std::fmt;
use std::sync::Arc;

use bigfleet_model::{State, shown};

use crate::machine::{Machine, TextMap};

/// The largest metadata map accepted, keys and values together, in bytes: what a shard may write.
pub(crate) const MAX_METADATA_BYTES: usize = 512 << 10;
/// The largest bootstrap blob accepted, in bytes: what a shard may send.
pub(crate) const MAX_BLOB_BYTES: usize = 3 << 20;

/// One limit on both sides of the wire: a provider takes exactly what a shard may send.
#[cfg(feature = "serve")]
const _: () = assert!(
    MAX_METADATA_BYTES == bigfleet_wire::limits::MAX_METADATA_BYTES
        && MAX_BLOB_BYTES == bigfleet_wire::limits::MAX_BLOB_BYTES
);

/// One of the four transitions between the states in which a machine rests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Transition {
    /// Speculative to Idle.
    Create,
    /// Idle to Configured.
    Configure,
    /// Configured to Idle.
    Drain,
    /// Idle to Speculative.
    Delete,
}

impl Transition {
    /// Every transition.
    pub const ALL: [Self; 4] = [Self::Create, Self::Configure, Self::Drain, Self::Delete];

    /// The word used in files and messages.
    pub fn word(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Configure => "configure",
            Self::Drain => "drain",
            Self::Delete => "delete",
        }
    }

    /// The transition with this word, if there is one.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }

    /// The only state it may start from.
    pub fn source(self) -> State {
        match self {
            Self::Create => State::Speculative,
            Self::Configure | Self::Delete => State::Idle,
            Self::Drain => State::Configured,
        }
    }

    /// The state on the way.
    pub fn transitional(self) -> State {
        match self {
            Self::Create => State::Creating,
            Self::Configure => State::Configuring,
            Self::Drain => State::Draining,
            Self::Delete => State::Deleting,
        }
    }

    /// The state it ends in.
    pub fn target(self) -> State {
        match self {
            Self::Create | Self::Drain => State::Idle,
            Self::Configure => State::Configured,
            Self::Delete => State::Speculative,
        }
    }

    /// The transition a machine in this state is in the middle of.
    pub fn under_way(state: State) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.transitional() == state)
    }
}

impl fmt::Display for Transition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// The fencing token: who calls, from which of its starts, and which attempt it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Token {
    /// Empty means unfenced.
    pub shard: String,
    /// Higher for every start of the shard.
    pub epoch: i64,
    /// Higher for every call within an epoch.
    pub sequence: i64,
}

/// What a mutation asks for beyond the machine and the token.
#[derive(Clone, Debug, PartialEq)]
pub enum Ask {
    /// Give the slot a host.
    Create {
        /// Stored and echoed until Configure replaces it.
        metadata: Arc<TextMap>,
    },
    /// Make the host a node of a cluster.
    Configure {
        /// The cluster it is to serve; must not be empty.
        cluster: String,
        /// Opaque user data, handed to the backend and forgotten.
        blob: Arc<[u8]>,
        /// Stored and echoed until Drain completes.
        metadata: Arc<TextMap>,
    },
    /// Take the host out of its cluster.
    Drain {
        /// How long disruption budgets are honoured.
        grace_seconds: i64,
    },
    /// Give the host back.
    Delete,
}

impl Ask {
    /// The transition this asks for.
    pub fn kind(&self) -> Transition {
        match self {
            Self::Create { .. } => Transition::Create,
            Self::Configure { .. } => Transition::Configure,
            Self::Drain { .. } => Transition::Drain,
            Self::Delete => Transition::Delete,
        }
    }
}

/// A mutation as it arrived: unchecked.
#[derive(Clone, Debug, PartialEq)]
pub struct Mutation {
    /// The id, which may not exist.
    pub machine: String,
    /// Checked before anything else that depends on state.
    pub token: Token,
    /// The transition that is asked for, with its arguments.
    pub ask: Ask,
}

/// A mutation was accepted, or had been before.
#[derive(Clone, Debug, PartialEq)]
pub struct Ack {
    /// The same on every retry of one operation.
    pub operation: Arc<str>,
    /// The machine as it is now.
    pub machine: Arc<Machine>,
    /// Answered from the record; nothing was started.
    pub replayed: bool,
}

/// Why a call was refused. Each has exactly one status code (wire 2.1).
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// An argument no state could make valid.
    #[error("{0}")]
    Invalid(String),
    /// This provider, or this machine, cannot be deleted.
    #[error("{0}")]
    Unsupported(String),
    /// The token is not strictly newer than the mark.
    #[error(
        "fenced: token ({epoch}, {sequence}) of shard \"{}\" is not newer than its mark for machine \"{}\"",
        shown(shard),
        shown(machine)
    )]
    Fenced {
        /// The shard that called.
        shard: String,
        /// The machine it called for.
        machine: String,
        /// The epoch of the refused token.
        epoch: i64,
        /// The sequence number of the refused token.
        sequence: i64,
    },
    /// No such machine.
    #[error("machine \"{}\" does not exist", shown(.0))]
    NotFound(String),
    /// The machine is not in the state this transition starts from.
    #[error("{kind} is not legal on machine \"{}\": it is {state}, not {}", shown(machine), kind.source())]
    Position {
        /// The machine it was asked of.
        machine: String,
        /// The transition that is not possible now.
        kind: Transition,
        /// Where the machine is.
        state: State,
    },
    /// Configure for another cluster than the one the machine is bound to.
    #[error(
        "machine \"{}\" is bound to cluster \"{}\", not \"{}\"",
        shown(machine),
        shown(bound),
        shown(asked)
    )]
    Bound {
        /// The machine that is taken.
        machine: String,
        /// Its cluster.
        bound: String,
        /// The cluster of the call.
        asked: String,
    },
    /// The store did not take the change, so it did not happen.
    #[error("the change could not be stored and was not applied")]
    Unavailable,
    /// A defect of ours; the change was not applied.
    #[error("the call could not be handled and was not applied")]
    Defect,
}
