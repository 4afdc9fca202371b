//! Entry: the commands of one entry of the log. The number of a command's field is its kind.

use bigfleet_coordinator_core::{Command, Facts, ShardId};
use bigfleet_model::{ClusterId, Time};
use prost::Message;

use super::parts::{
    StoredDomain, StoredFacts, StoredIdentity, StoredProvider, domain, facts, needed, provider,
};
use super::{FormatRefused, open, seal};

#[derive(Clone, PartialEq, Message)]
struct StoredEntry {
    #[prost(message, repeated, tag = "1")]
    commands: Vec<StoredCommand>,
}

#[derive(Clone, PartialEq, Message)]
struct StoredCommand {
    #[prost(
        oneof = "CommandBody",
        tags = "1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13, 14"
    )]
    body: Option<CommandBody>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum CommandBody {
    #[prost(message, tag = "1")]
    AddShard(StoredShard),
    #[prost(message, tag = "2")]
    RemoveShard(StoredRemoval),
    #[prost(message, tag = "3")]
    BindCluster(StoredBinding),
    #[prost(message, tag = "4")]
    AssignDomain(StoredAssignment),
    #[prost(message, tag = "5")]
    UnassignDomain(StoredDomain),
    #[prost(message, tag = "8")]
    MoveDomain(StoredAssignment),
    #[prost(message, tag = "9")]
    SetIdentity(StoredRegistration),
    #[prost(message, tag = "10")]
    Heard(StoredHeard),
    #[prost(uint64, tag = "11")]
    BeginReign(u64),
    #[prost(message, tag = "12")]
    FinishRestore(StoredRestore),
    #[prost(bool, tag = "13")]
    SetRebalancePaused(bool),
    #[prost(message, tag = "14")]
    SetCluster(StoredCluster),
}

#[derive(Clone, PartialEq, Message)]
struct StoredShard {
    #[prost(string, tag = "1")]
    shard: String,
    #[prost(string, tag = "2")]
    address: String,
    #[prost(sint64, tag = "3")]
    registered_at: i64,
}

#[derive(Clone, PartialEq, Message)]
struct StoredRemoval {
    #[prost(string, tag = "1")]
    shard: String,
    #[prost(bool, tag = "2")]
    gone: bool,
}

#[derive(Clone, PartialEq, Message)]
struct StoredBinding {
    #[prost(string, tag = "1")]
    cluster: String,
    #[prost(string, tag = "2")]
    shard: String,
}

#[derive(Clone, PartialEq, Message)]
struct StoredAssignment {
    #[prost(message, optional, tag = "1")]
    domain: Option<StoredDomain>,
    #[prost(string, tag = "2")]
    shard: String,
}

#[derive(Clone, PartialEq, Message)]
struct StoredRegistration {
    #[prost(string, tag = "1")]
    shard: String,
    #[prost(message, optional, tag = "2")]
    identity: Option<StoredIdentity>,
    #[prost(bool, tag = "3")]
    has_records: bool,
    #[prost(string, tag = "4")]
    address: String,
    #[prost(message, optional, tag = "5")]
    provider: Option<StoredProvider>,
    #[prost(sint64, tag = "6")]
    registered_at: i64,
}

#[derive(Clone, PartialEq, Message)]
struct StoredHeard {
    #[prost(uint64, tag = "1")]
    reign: u64,
    #[prost(string, tag = "2")]
    shard: String,
    #[prost(message, optional, tag = "3")]
    identity: Option<StoredIdentity>,
    #[prost(message, optional, tag = "4")]
    facts: Option<StoredFacts>,
}

#[derive(Clone, PartialEq, Message)]
struct StoredWords {
    #[prost(string, tag = "1")]
    shard: String,
    #[prost(message, optional, tag = "2")]
    facts: Option<StoredFacts>,
}

#[derive(Clone, PartialEq, Message)]
struct StoredRestore {
    #[prost(message, repeated, tag = "1")]
    words: Vec<StoredWords>,
}

#[derive(Clone, PartialEq, Message)]
struct StoredCluster {
    #[prost(string, tag = "1")]
    id: String,
    #[prost(uint64, tag = "2")]
    generation: u64,
}

/// An entry as bytes.
pub fn write_entry(commands: &[Command]) -> Vec<u8> {
    let commands = commands.iter().map(|command| StoredCommand {
        body: Some(body(command)),
    });
    seal(&StoredEntry {
        commands: commands.collect(),
    })
}

/// The commands of an entry.
pub fn read_entry(bytes: &[u8]) -> Result<Vec<Command>, FormatRefused> {
    let entry: StoredEntry = open(bytes)?;
    entry.commands.iter().map(command).collect()
}

fn body(command: &Command) -> CommandBody {
    match command {
        Command::AddShard {
            shard,
            address,
            registered_at,
        } => CommandBody::AddShard(StoredShard {
            shard: shard.to_string(),
            address: address.clone(),
            registered_at: registered_at.nanos(),
        }),
        Command::RemoveShard { shard, gone } => CommandBody::RemoveShard(StoredRemoval {
            shard: shard.to_string(),
            gone: *gone,
        }),
        Command::BindCluster { cluster, shard } => CommandBody::BindCluster(StoredBinding {
            cluster: cluster.to_string(),
            shard: shard.to_string(),
        }),
        Command::AssignDomain { domain, shard } => CommandBody::AssignDomain(StoredAssignment {
            domain: Some(domain.into()),
            shard: shard.to_string(),
        }),
        Command::UnassignDomain { domain } => CommandBody::UnassignDomain(domain.into()),
        Command::MoveDomain { domain, to } => CommandBody::MoveDomain(StoredAssignment {
            domain: Some(domain.into()),
            shard: to.to_string(),
        }),
        Command::SetIdentity {
            shard,
            identity,
            has_records,
            address,
            provider,
            registered_at,
        } => CommandBody::SetIdentity(StoredRegistration {
            shard: shard.to_string(),
            identity: Some((*identity).into()),
            has_records: *has_records,
            address: address.clone(),
            provider: Some(provider.into()),
            registered_at: registered_at.nanos(),
        }),
        Command::Heard {
            reign,
            shard,
            identity,
            facts,
        } => CommandBody::Heard(StoredHeard {
            reign: *reign,
            shard: shard.to_string(),
            identity: Some((*identity).into()),
            facts: Some(facts.into()),
        }),
        Command::BeginReign { floor } => CommandBody::BeginReign(*floor),
        Command::FinishRestore { facts } => {
            let words = facts.iter().map(|(shard, facts)| StoredWords {
                shard: shard.to_string(),
                facts: Some(facts.into()),
            });
            CommandBody::FinishRestore(StoredRestore {
                words: words.collect(),
            })
        }
        Command::SetRebalancePaused(paused) => CommandBody::SetRebalancePaused(*paused),
        Command::SetCluster { id, generation } => CommandBody::SetCluster(StoredCluster {
            id: id.clone(),
            generation: *generation,
        }),
    }
}

fn command(stored: &StoredCommand) -> Result<Command, FormatRefused> {
    Ok(match needed(&stored.body, "a command")? {
        CommandBody::AddShard(one) => Command::AddShard {
            shard: ShardId::new(&one.shard)?,
            address: one.address.clone(),
            registered_at: Time::from_nanos(one.registered_at),
        },
        CommandBody::RemoveShard(one) => Command::RemoveShard {
            shard: ShardId::new(&one.shard)?,
            gone: one.gone,
        },
        CommandBody::BindCluster(one) => Command::BindCluster {
            cluster: ClusterId::new(&one.cluster)?,
            shard: ShardId::new(&one.shard)?,
        },
        CommandBody::AssignDomain(one) => Command::AssignDomain {
            domain: domain(&one.domain)?,
            shard: ShardId::new(&one.shard)?,
        },
        CommandBody::UnassignDomain(one) => Command::UnassignDomain {
            domain: one.read()?,
        },
        CommandBody::MoveDomain(one) => Command::MoveDomain {
            domain: domain(&one.domain)?,
            to: ShardId::new(&one.shard)?,
        },
        CommandBody::SetIdentity(one) => Command::SetIdentity {
            shard: ShardId::new(&one.shard)?,
            identity: needed(&one.identity, "a shard's process")?.read(),
            has_records: one.has_records,
            address: one.address.clone(),
            provider: provider(&one.provider)?,
            registered_at: Time::from_nanos(one.registered_at),
        },
        CommandBody::Heard(one) => Command::Heard {
            reign: one.reign,
            shard: ShardId::new(&one.shard)?,
            identity: needed(&one.identity, "a shard's process")?.read(),
            facts: facts(&one.facts)?,
        },
        CommandBody::BeginReign(floor) => Command::BeginReign { floor: *floor },
        CommandBody::FinishRestore(one) => Command::FinishRestore {
            facts: one.words.iter().map(words).collect::<Result<_, _>>()?,
        },
        CommandBody::SetRebalancePaused(paused) => Command::SetRebalancePaused(*paused),
        CommandBody::SetCluster(one) => Command::SetCluster {
            id: one.id.clone(),
            generation: one.generation,
        },
    })
}

fn words(stored: &StoredWords) -> Result<(ShardId, Facts), FormatRefused> {
    Ok((ShardId::new(&stored.shard)?, facts(&stored.facts)?))
}
