//! Types: what the consensus library is told about our group.

use bigfleet_coordinator_core::{Applied, Refused};

openraft::declare_raft_types!(
    /// The group.
    pub(crate) Group:
        D = Payload,
        R = Outcome,
        Node = Member,
        SnapshotData = Vec<u8>,
);

/// One entry of the log, as bytes of [`crate::write_entry`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Payload(pub(crate) Vec<u8>);

/// What applying an entry answered, command by command. Nothing for entries of the library itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome(pub(crate) Vec<Result<Applied, Refused>>);

/// A member of the group, whose id is the number drawn with its data directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Member {
    /// Its stable name.
    pub name: String,
    /// Where other replicas dial it.
    pub raft_address: String,
    /// Where shards and admins dial it.
    pub grpc_address: String,
}

pub(crate) type Entry = openraft::Entry<Group>;
pub(crate) type LogId = openraft::LogId<u64>;
pub(crate) type Vote = openraft::Vote<u64>;
pub(crate) type Membership = openraft::Membership<u64, Member>;
pub(crate) type StoredMembership = openraft::StoredMembership<u64, Member>;
pub(crate) type SnapshotMeta = openraft::SnapshotMeta<u64, Member>;
pub(crate) type StorageError = openraft::StorageError<u64>;
pub(crate) type Raft = openraft::Raft<Group>;
