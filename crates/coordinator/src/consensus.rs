//! Consensus: what the coordinator needs of whatever makes replicas agree. No type of a library passes through here.

use std::future::Future;
use std::time::Duration;

use bigfleet_coordinator_core::{Applied, Command, Refused};

use crate::{Belonging, Member};

/// What each command of an entry answered.
pub(crate) type Results = Vec<Result<Applied, Refused>>;

/// A proposal that takes longer may or may not happen.
pub(crate) const AGREED_WITHIN: Duration = Duration::from_secs(5);

/// How a replica sees its group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct View {
    /// The term of the consensus; never on the wire.
    pub(crate) term: u64,
    /// This replica was elected in that term.
    pub(crate) is_elected: bool,
    /// It was, and a majority has answered it lately.
    pub(crate) has_quorum: bool,
    /// The leader, if one is known.
    pub(crate) leader: Option<u64>,
    /// Entries in the log, and of these applied.
    pub(crate) last: u64,
    pub(crate) applied: u64,
    /// Members by directory, and whether they vote.
    pub(crate) members: Vec<(u64, Member, bool)>,
    /// Entries each other member lacks, where this one leads.
    pub(crate) lags: Vec<(u64, u64)>,
}

impl View {
    /// Whether a leader is known that can agree with others. One that has lost its majority knows only of itself.
    pub(crate) fn is_led(&self) -> bool {
        self.leader.is_some() && (!self.is_elected || self.has_quorum)
    }

    /// The leader's addresses.
    pub(crate) fn leading_member(&self) -> Option<&Member> {
        let leader = self.leader?;
        let mut members = self.members.iter();
        let found = members.find(|(directory, _, _)| *directory == leader)?;
        Some(&found.1)
    }
}

/// Why the members stay as they are.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MemberRefused {
    /// There is none of that name.
    #[error("there is no replica {0}")]
    Unknown(String),
    /// It is not possible now.
    #[error("{0}")]
    NotNow(String),
}

/// A replica of a group that agrees.
pub(crate) trait Consensus: Send + Sync + 'static {
    /// Agrees on commands in one entry, and applies them here.
    fn propose(
        &self,
        commands: &[Command],
    ) -> impl Future<Output = Result<Results, Refused>> + Send;

    /// Confirms that this replica leads now, and that what was agreed on before is applied here.
    fn confirm(&self) -> impl Future<Output = Result<(), Refused>> + Send;

    /// How this replica sees its group.
    fn view(&self) -> View;

    /// Ends when the view has changed since the last call, or may have.
    fn changed(&self) -> impl Future<Output = ()> + Send;

    /// Makes a replica a member, at these addresses (CO-48).
    fn admit(
        &self,
        directory: u64,
        member: Member,
    ) -> impl Future<Output = Result<(), String>> + Send;

    /// A snapshot of what is applied now: index and term of its last entry, and its bytes.
    fn snapshot(&self) -> impl Future<Output = Result<(u64, u64, Vec<u8>), String>> + Send;

    /// The number drawn with the data directory, and the group it belongs to.
    fn identity(&self) -> (u64, Belonging);

    /// Takes a replica out of the group, if a majority of the rest can be reached (CO-50).
    fn remove(&self, name: &str) -> impl Future<Output = Result<(), MemberRefused>> + Send;

    /// Lets another replica lead, the one of this name or the one that is furthest, if this one does (CO-50). Waits until it
    /// does, or not for long; answers with its name.
    fn hand_over(
        &self,
        to: Option<&str>,
    ) -> impl Future<Output = Result<String, MemberRefused>> + Send;
}
