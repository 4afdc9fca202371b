//! Commands: what the log says, and nothing else changes a table.
//!
//! ```text
//! 1 AddShard   2 RemoveShard   3 BindCluster   4 AssignDomain   5 UnassignDomain   6, 7 retired
//! 8 MoveDomain   9 SetIdentity   10 Heard   11 BeginReign   12 FinishRestore   13 SetRebalancePaused   14 SetCluster
//! ```
//!
//! A command holds everything its effect depends on: applying it reads no clock, draws nothing and knows no setting, so
//! every replica ends with the same tables (CO-17). How it is written to a disk is the runtime's; the numbers are here so
//! that no format can give one to two meanings.

use std::collections::BTreeMap;

use bigfleet_model::{ClusterId, Time};

use crate::{Domain, Facts, Provider, ShardId};

/// Which process speaks for a shard (CO-13).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity {
    /// Counts the starts in a data directory.
    pub epoch: u64,
    /// Drawn with the data directory; `None` for a shard of an earlier version, which does not say it.
    pub directory: Option<u64>,
    /// Drawn at every start.
    pub process: u64,
}

/// One change of the tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Registers a shard by name alone.
    AddShard {
        /// The shard.
        shard: ShardId,
        /// Where it can be reached; may be empty.
        address: String,
        /// When it was proposed.
        registered_at: Time,
    },
    /// Forgets a shard (CO-51), for good if it is gone (CO-52).
    RemoveShard {
        /// The shard.
        shard: ShardId,
        /// An admin's word that no process of it will run again.
        gone: bool,
    },
    /// Notes which shard serves a cluster.
    BindCluster {
        /// The cluster.
        cluster: ClusterId,
        /// The shard.
        shard: ShardId,
    },
    /// Says that a shard shall have a domain that nobody shall have yet.
    AssignDomain {
        /// The domain.
        domain: Domain,
        /// The shard.
        shard: ShardId,
    },
    /// Says that nobody shall have a domain.
    UnassignDomain {
        /// The domain.
        domain: Domain,
    },
    /// Says that another shard shall have a domain.
    MoveDomain {
        /// The domain.
        domain: Domain,
        /// The shard that shall have it.
        to: ShardId,
    },
    /// Notes which process speaks for a shard, where it is and which provider it has.
    SetIdentity {
        /// The shard.
        shard: ShardId,
        /// The process.
        identity: Identity,
        /// Whether anything is on its disk.
        has_records: bool,
        /// Where it can be reached; empty leaves what is on record.
        address: String,
        /// Its provider.
        provider: Provider,
        /// When it was proposed.
        registered_at: Time,
    },
    /// Takes in what a shard said in a report that was heard (CO-20).
    Heard {
        /// The reign that heard it.
        reign: u64,
        /// The shard.
        shard: ShardId,
        /// Its process.
        identity: Identity,
        /// What it said.
        facts: Facts,
    },
    /// Begins a reign above this floor, and above the one before (CO-11, CO-12).
    BeginReign {
        /// The highest mark a shard has shown; 0 for none.
        floor: u64,
    },
    /// Makes the tables what shards say they are, after a restore (CO-46).
    FinishRestore {
        /// What every shard said.
        facts: BTreeMap<ShardId, Facts>,
    },
    /// Pauses rebalancing, or goes on with it.
    SetRebalancePaused(bool),
    /// Names the consensus group.
    SetCluster {
        /// Its id.
        id: String,
        /// Counts its restores.
        generation: u64,
    },
}

impl Command {
    /// Its number in the log. 6 and 7 were quotas and providers and are never used again.
    pub fn kind(&self) -> u8 {
        match self {
            Self::AddShard { .. } => 1,
            Self::RemoveShard { .. } => 2,
            Self::BindCluster { .. } => 3,
            Self::AssignDomain { .. } => 4,
            Self::UnassignDomain { .. } => 5,
            Self::MoveDomain { .. } => 8,
            Self::SetIdentity { .. } => 9,
            Self::Heard { .. } => 10,
            Self::BeginReign { .. } => 11,
            Self::FinishRestore { .. } => 12,
            Self::SetRebalancePaused(_) => 13,
            Self::SetCluster { .. } => 14,
        }
    }
}
