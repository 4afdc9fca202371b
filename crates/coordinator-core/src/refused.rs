//! Refused: why something is not done, in words for people and as the code a caller gets.
//!
//! Each names the rule's values: who has it, who wanted it, what to do next. Nothing is changed by what is refused.

use std::{fmt, time::Duration};

use bigfleet_model::ClusterId;

use crate::{Domain, NameRefused, Provider, ReportRefused, ShardId};

/// The status a caller gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// Ask another replica: FAILED_PRECONDITION, which means nothing else.
    NotLeader,
    /// INVALID_ARGUMENT.
    InvalidArgument,
    /// NOT_FOUND.
    NotFound,
    /// ALREADY_EXISTS.
    AlreadyExists,
    /// PERMISSION_DENIED.
    PermissionDenied,
    /// ABORTED: not now.
    Aborted,
    /// UNAVAILABLE: nothing is known to have happened; try again.
    Unavailable,
}

/// Why something is not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// This replica does not lead, or not yet.
    NotLeader,
    /// The log did not take it in time. Whether it will is not known.
    NotCommitted,
    /// A text is no name.
    Name(NameRefused),
    /// A report cannot be read.
    Report(ReportRefused),
    /// The certificate names somebody else.
    Caller {
        /// Who it names.
        presented: String,
        /// Who may.
        required: String,
    },
    /// No such shard is registered.
    UnknownShard(ShardId),
    /// The shard is registered.
    ShardExists(ShardId),
    /// The shard was said to be gone for good.
    ShardGone(ShardId),
    /// The shard has reported lately, so it is not gone.
    ShardAlive {
        /// The shard.
        shard: ShardId,
        /// How long ago.
        ago: Duration,
    },
    /// Another process is on record as this shard (CO-13).
    OtherProcess {
        /// The shard.
        shard: ShardId,
        /// The epoch on record.
        epoch: u64,
        /// What of the report does not agree with it.
        why: &'static str,
    },
    /// The cluster is bound to another shard.
    ClusterBound {
        /// The cluster.
        cluster: ClusterId,
        /// The shard it is bound to.
        bound: ShardId,
        /// The shard it was to be bound to.
        requested: ShardId,
    },
    /// The domain is assigned to another shard.
    DomainAssigned {
        /// The domain.
        domain: Domain,
        /// The shard it is assigned to.
        assigned: ShardId,
        /// The shard that was to have it.
        requested: ShardId,
    },
    /// A domain is named twice in one change.
    Twice(Domain),
    /// More changes than one entry of the log may have.
    TooMany {
        /// How many it may have.
        most: usize,
    },
    /// A domain that is to be moved is assigned to nobody.
    DomainUnassigned(Domain),
    /// The provider's domains have another key: a machine would have two owners.
    OtherKey {
        /// The domain.
        domain: Domain,
        /// The key that is in use.
        key: String,
        /// The provider both domains are of.
        provider: Provider,
    },
    /// The command is of a reign that is over.
    ReignOver {
        /// Its reign.
        reign: u64,
        /// The present one.
        present: u64,
    },
    /// The tables came from a backup and wait for `finish-restore`.
    Restored,
    /// There is no restore to finish.
    NotRestored,
    /// Shards that must be heard before a restore is finished.
    NotHeard(Vec<ShardId>),
    /// The tables have a cluster id, which is not this one.
    OtherCluster {
        /// The id they have.
        present: String,
        /// The id they were to get.
        requested: String,
    },
    /// A table is full.
    Full {
        /// The table.
        table: &'static str,
        /// How many rows it may have.
        most: usize,
    },
}

impl Refused {
    /// The code a caller gets.
    pub fn code(&self) -> Code {
        match self {
            Self::NotLeader => Code::NotLeader,
            Self::NotCommitted | Self::Full { .. } | Self::ReignOver { .. } => Code::Unavailable,
            Self::Name(_) | Self::Report(_) | Self::OtherKey { .. } => Code::InvalidArgument,
            Self::OtherCluster { .. } | Self::Twice(_) | Self::TooMany { .. } => {
                Code::InvalidArgument
            }
            Self::Caller { .. } => Code::PermissionDenied,
            Self::UnknownShard(_) | Self::DomainUnassigned(_) => Code::NotFound,
            Self::ShardExists(_)
            | Self::ShardGone(_)
            | Self::OtherProcess { .. }
            | Self::ClusterBound { .. }
            | Self::DomainAssigned { .. } => Code::AlreadyExists,
            Self::ShardAlive { .. } | Self::Restored | Self::NotRestored | Self::NotHeard(_) => {
                Code::Aborted
            }
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotLeader => f.write_str("coordinator: not leader"),
            Self::NotCommitted => f.write_str(
                "the coordinator's replicas did not agree in time; it may still happen, so look before trying again",
            ),
            Self::Name(why) => fmt::Display::fmt(why, f),
            Self::Report(why) => fmt::Display::fmt(why, f),
            Self::Caller {
                presented,
                required,
            } => write!(f, "this needs {required}, and the certificate presented is {presented}"),
            Self::UnknownShard(shard) => write!(f, "shard {shard} is not registered"),
            Self::ShardExists(shard) => write!(f, "shard {shard} is registered"),
            Self::ShardGone(shard) => write!(
                f,
                "shard {shard} was declared gone for good; a new shard needs another id"
            ),
            Self::ShardAlive { shard, ago } => write!(
                f,
                "shard {shard} reported {} s ago, so it is not gone; stop it and wait until it was silent for 600 s",
                ago.as_secs()
            ),
            Self::OtherProcess { shard, epoch, why } => write!(
                f,
                "another process is on record as shard {shard}, with epoch {epoch}: {why}"
            ),
            Self::ClusterBound {
                cluster,
                bound,
                requested,
            } => write!(
                f,
                "cluster {cluster} is bound to shard {bound}, not to {requested}"
            ),
            Self::DomainAssigned {
                domain,
                assigned,
                requested,
            } => write!(
                f,
                "domain {domain} is assigned to shard {assigned}, not to {requested}; move it, or unassign it first"
            ),
            Self::Twice(domain) => write!(f, "domain {domain} is named twice"),
            Self::TooMany { most } => write!(f, "at most {most} changes are made at once"),
            Self::DomainUnassigned(domain) => {
                write!(f, "domain {domain} is assigned to no shard; assign it")
            }
            Self::OtherKey {
                domain,
                key,
                provider,
            } => write!(
                f,
                "domain {domain}: domains of {provider} have the key {key}, and a machine with both labels would have two owners"
            ),
            Self::ReignOver { reign, present } => {
                write!(f, "reign {reign} is over, the present one is {present}")
            }
            Self::Restored => f.write_str(
                "the tables came from a backup; finish the restore before anything is handed out",
            ),
            Self::NotRestored => f.write_str("there is no restore to finish"),
            Self::NotHeard(shards) => {
                let shards: Vec<&str> = shards.iter().map(ShardId::as_str).collect();
                write!(
                    f,
                    "not heard yet: {}; wait for them, or remove those that are gone for good",
                    shards.join(", ")
                )
            }
            Self::OtherCluster { present, requested } => {
                write!(f, "this is cluster {present}, not {requested}")
            }
            Self::Full { table, most } => {
                write!(f, "there may be {most} {table} and there are as many")
            }
        }
    }
}

impl std::error::Error for Refused {}

impl From<NameRefused> for Refused {
    fn from(why: NameRefused) -> Self {
        Self::Name(why)
    }
}

impl From<ReportRefused> for Refused {
    fn from(why: ReportRefused) -> Self {
        Self::Report(why)
    }
}
