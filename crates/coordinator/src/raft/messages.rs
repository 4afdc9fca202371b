//! Messages: what replicas say to one another and write to disk, as bytes and back.

use std::collections::{BTreeMap, BTreeSet};

use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, VoteRequest, VoteResponse,
};
use openraft::{CommittedLeaderId, EntryPayload};
use prost::{Message, Oneof};

use super::types::{
    Entry, Group, LogId, Member, Membership, Payload, SnapshotMeta, StoredMembership, Vote,
};
use crate::FormatRefused;
use crate::format::{needed, open, seal};

/// What has a form on disk and between replicas.
pub(crate) trait Stored: Sized {
    /// Its form.
    type Form: Message + Default;

    fn form(&self) -> Self::Form;

    fn of(form: Self::Form) -> Result<Self, FormatRefused>;

    fn write(&self) -> Vec<u8> {
        seal(&self.form())
    }

    fn read(bytes: &[u8]) -> Result<Self, FormatRefused> {
        Self::of(open(bytes)?)
    }
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct LogIdForm {
    #[prost(uint64, tag = "1")]
    term: u64,
    #[prost(uint64, tag = "2")]
    node: u64,
    #[prost(uint64, tag = "3")]
    index: u64,
}

impl Stored for LogId {
    type Form = LogIdForm;

    fn form(&self) -> LogIdForm {
        LogIdForm {
            term: self.leader_id.term,
            node: self.leader_id.node_id,
            index: self.index,
        }
    }

    fn of(form: LogIdForm) -> Result<Self, FormatRefused> {
        let leader = CommittedLeaderId::new(form.term, form.node);
        Ok(Self::new(leader, form.index))
    }
}

fn optional<T: Stored>(form: Option<T::Form>) -> Result<Option<T>, FormatRefused> {
    form.map(T::of).transpose()
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct VoteForm {
    #[prost(uint64, tag = "1")]
    term: u64,
    #[prost(uint64, tag = "2")]
    node: u64,
    #[prost(bool, tag = "3")]
    committed: bool,
}

impl Stored for Vote {
    type Form = VoteForm;

    fn form(&self) -> VoteForm {
        VoteForm {
            term: self.leader_id.term,
            node: self.leader_id.node_id,
            committed: self.committed,
        }
    }

    fn of(form: VoteForm) -> Result<Self, FormatRefused> {
        Ok(if form.committed {
            Self::new_committed(form.term, form.node)
        } else {
            Self::new(form.term, form.node)
        })
    }
}

fn vote(form: Option<VoteForm>) -> Result<Vote, FormatRefused> {
    Vote::of(*needed(&form, "a vote")?)
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct MemberForm {
    #[prost(uint64, tag = "1")]
    directory: u64,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(string, tag = "3")]
    raft_address: String,
    #[prost(string, tag = "4")]
    grpc_address: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct VotersForm {
    #[prost(uint64, repeated, tag = "1")]
    directories: Vec<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct MembershipForm {
    #[prost(message, repeated, tag = "1")]
    voters: Vec<VotersForm>,
    #[prost(message, repeated, tag = "2")]
    members: Vec<MemberForm>,
}

impl Stored for Membership {
    type Form = MembershipForm;

    fn form(&self) -> MembershipForm {
        let voters = self.get_joint_config().iter().map(|voters| VotersForm {
            directories: voters.iter().copied().collect(),
        });
        let members = self.nodes().map(|(directory, member)| MemberForm {
            directory: *directory,
            name: member.name.clone(),
            raft_address: member.raft_address.clone(),
            grpc_address: member.grpc_address.clone(),
        });
        MembershipForm {
            voters: voters.collect(),
            members: members.collect(),
        }
    }

    fn of(form: MembershipForm) -> Result<Self, FormatRefused> {
        let member = |one: MemberForm| {
            let member = Member {
                name: one.name,
                raft_address: one.raft_address,
                grpc_address: one.grpc_address,
            };
            (one.directory, member)
        };
        let members: BTreeMap<u64, Member> = form.members.into_iter().map(member).collect();
        let voters = form.voters.into_iter();
        let voters: Vec<BTreeSet<u64>> = voters
            .map(|one| one.directories.into_iter().collect())
            .collect();
        let mut all = voters.iter().flatten();
        if !all.all(|directory| members.contains_key(directory)) {
            return Err(FormatRefused::Missing("the address of a voter"));
        }
        Ok(Self::new(voters, members))
    }
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct AgreedForm {
    #[prost(message, optional, tag = "1")]
    at: Option<LogIdForm>,
    #[prost(message, optional, tag = "2")]
    membership: Option<MembershipForm>,
}

impl Stored for StoredMembership {
    type Form = AgreedForm;

    fn form(&self) -> AgreedForm {
        AgreedForm {
            at: self.log_id().as_ref().map(Stored::form),
            membership: Some(self.membership().form()),
        }
    }

    fn of(form: AgreedForm) -> Result<Self, FormatRefused> {
        let membership = form
            .membership
            .ok_or(FormatRefused::Missing("the members"))?;
        Ok(Self::new(optional(form.at)?, Membership::of(membership)?))
    }
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct EntryForm {
    #[prost(message, optional, tag = "1")]
    at: Option<LogIdForm>,
    #[prost(oneof = "EntryBody", tags = "2, 3, 4")]
    body: Option<EntryBody>,
}

#[derive(Clone, PartialEq, Oneof)]
enum EntryBody {
    #[prost(bool, tag = "2")]
    Blank(bool),
    #[prost(bytes, tag = "3")]
    Commands(Vec<u8>),
    #[prost(message, tag = "4")]
    Membership(MembershipForm),
}

impl Stored for Entry {
    type Form = EntryForm;

    fn form(&self) -> EntryForm {
        let body = match &self.payload {
            EntryPayload::Blank => EntryBody::Blank(true),
            EntryPayload::Normal(payload) => EntryBody::Commands(payload.0.clone()),
            EntryPayload::Membership(membership) => EntryBody::Membership(membership.form()),
        };
        EntryForm {
            at: Some(self.log_id.form()),
            body: Some(body),
        }
    }

    fn of(form: EntryForm) -> Result<Self, FormatRefused> {
        let log_id = LogId::of(*needed(&form.at, "the place of an entry")?)?;
        let body = form.body.ok_or(FormatRefused::Missing("an entry"))?;
        let payload = match body {
            EntryBody::Blank(_) => EntryPayload::Blank,
            EntryBody::Commands(bytes) => EntryPayload::Normal(Payload(bytes)),
            EntryBody::Membership(form) => EntryPayload::Membership(Membership::of(form)?),
        };
        Ok(Self { log_id, payload })
    }
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SnapshotMetaForm {
    #[prost(message, optional, tag = "1")]
    last: Option<LogIdForm>,
    #[prost(message, optional, tag = "2")]
    membership: Option<AgreedForm>,
    #[prost(string, tag = "3")]
    id: String,
}

impl Stored for SnapshotMeta {
    type Form = SnapshotMetaForm;

    fn form(&self) -> SnapshotMetaForm {
        SnapshotMetaForm {
            last: self.last_log_id.as_ref().map(Stored::form),
            membership: Some(self.last_membership.form()),
            id: self.snapshot_id.clone(),
        }
    }

    fn of(form: SnapshotMetaForm) -> Result<Self, FormatRefused> {
        let membership = form
            .membership
            .ok_or(FormatRefused::Missing("the members"))?;
        Ok(Self {
            last_log_id: optional(form.last)?,
            last_membership: StoredMembership::of(membership)?,
            snapshot_id: form.id,
        })
    }
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct AppendForm {
    #[prost(message, optional, tag = "1")]
    vote: Option<VoteForm>,
    #[prost(message, optional, tag = "2")]
    previous: Option<LogIdForm>,
    #[prost(message, repeated, tag = "3")]
    entries: Vec<EntryForm>,
    #[prost(message, optional, tag = "4")]
    commit: Option<LogIdForm>,
}

impl Stored for AppendEntriesRequest<Group> {
    type Form = AppendForm;

    fn form(&self) -> AppendForm {
        AppendForm {
            vote: Some(self.vote.form()),
            previous: self.prev_log_id.as_ref().map(Stored::form),
            entries: self.entries.iter().map(Stored::form).collect(),
            commit: self.leader_commit.as_ref().map(Stored::form),
        }
    }

    fn of(form: AppendForm) -> Result<Self, FormatRefused> {
        let entries = form.entries.into_iter().map(Entry::of);
        Ok(Self {
            vote: vote(form.vote)?,
            prev_log_id: optional(form.previous)?,
            entries: entries.collect::<Result<_, _>>()?,
            leader_commit: optional(form.commit)?,
        })
    }
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct AppendAnswerForm {
    /// 1 success, 2 as far as `matching`, 3 conflict, 4 a higher vote.
    #[prost(uint32, tag = "1")]
    end: u32,
    #[prost(message, optional, tag = "2")]
    matching: Option<LogIdForm>,
    #[prost(message, optional, tag = "3")]
    vote: Option<VoteForm>,
}

impl Stored for AppendEntriesResponse<u64> {
    type Form = AppendAnswerForm;

    fn form(&self) -> AppendAnswerForm {
        let (end, matching, vote) = match self {
            Self::Success => (1, None, None),
            Self::PartialSuccess(matching) => (2, matching.as_ref().map(Stored::form), None),
            Self::Conflict => (3, None, None),
            Self::HigherVote(vote) => (4, None, Some(vote.form())),
        };
        AppendAnswerForm {
            end,
            matching,
            vote,
        }
    }

    fn of(form: AppendAnswerForm) -> Result<Self, FormatRefused> {
        Ok(match form.end {
            1 => Self::Success,
            2 => Self::PartialSuccess(optional(form.matching)?),
            3 => Self::Conflict,
            4 => Self::HigherVote(vote(form.vote)?),
            value => {
                let what = "the end of an append";
                return Err(FormatRefused::Number { what, value });
            }
        })
    }
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct VoteCallForm {
    #[prost(message, optional, tag = "1")]
    vote: Option<VoteForm>,
    #[prost(message, optional, tag = "2")]
    last: Option<LogIdForm>,
}

impl Stored for VoteRequest<u64> {
    type Form = VoteCallForm;

    fn form(&self) -> VoteCallForm {
        VoteCallForm {
            vote: Some(self.vote.form()),
            last: self.last_log_id.as_ref().map(Stored::form),
        }
    }

    fn of(form: VoteCallForm) -> Result<Self, FormatRefused> {
        Ok(Self::new(vote(form.vote)?, optional(form.last)?))
    }
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct VoteAnswerForm {
    #[prost(message, optional, tag = "1")]
    vote: Option<VoteForm>,
    #[prost(bool, tag = "2")]
    granted: bool,
    #[prost(message, optional, tag = "3")]
    last: Option<LogIdForm>,
}

impl Stored for VoteResponse<u64> {
    type Form = VoteAnswerForm;

    fn form(&self) -> VoteAnswerForm {
        VoteAnswerForm {
            vote: Some(self.vote.form()),
            granted: self.vote_granted,
            last: self.last_log_id.as_ref().map(Stored::form),
        }
    }

    fn of(form: VoteAnswerForm) -> Result<Self, FormatRefused> {
        Ok(Self {
            vote: vote(form.vote)?,
            vote_granted: form.granted,
            last_log_id: optional(form.last)?,
        })
    }
}

/// A whole snapshot on its way.
#[derive(Clone, Debug)]
pub(crate) struct SentSnapshot {
    pub(crate) vote: Vote,
    pub(crate) meta: SnapshotMeta,
    pub(crate) data: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SentSnapshotForm {
    #[prost(message, optional, tag = "1")]
    vote: Option<VoteForm>,
    #[prost(message, optional, tag = "2")]
    meta: Option<SnapshotMetaForm>,
    #[prost(bytes, tag = "3")]
    data: Vec<u8>,
}

impl Stored for SentSnapshot {
    type Form = SentSnapshotForm;

    fn form(&self) -> SentSnapshotForm {
        SentSnapshotForm {
            vote: Some(self.vote.form()),
            meta: Some(self.meta.form()),
            data: self.data.clone(),
        }
    }

    fn of(form: SentSnapshotForm) -> Result<Self, FormatRefused> {
        let meta = form.meta.ok_or(FormatRefused::Missing("a snapshot"))?;
        Ok(Self {
            vote: vote(form.vote)?,
            meta: SnapshotMeta::of(meta)?,
            data: form.data,
        })
    }
}

impl Stored for SnapshotResponse<u64> {
    type Form = VoteForm;

    fn form(&self) -> VoteForm {
        self.vote.form()
    }

    fn of(form: VoteForm) -> Result<Self, FormatRefused> {
        Ok(Self::new(Vote::of(form)?))
    }
}
