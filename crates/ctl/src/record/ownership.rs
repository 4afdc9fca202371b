//! Who has what, as the coordinator has it on record.

use std::collections::BTreeMap;

use bigfleet_wire::v1alpha1 as wire;
use serde::Serialize;
use wire::coordinator_instruction::Payload;

use super::{at, count, some};
use crate::when::{Moment, moment};

/// A registered shard.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ShardRecord {
    pub(crate) id: String,
    /// Where it can be called; null if it never said.
    pub(crate) address: Option<String>,
    /// The provider it says it has; null before its first report to this leader.
    pub(crate) provider: Option<String>,
    /// Machines of every state; null before its first report to this leader.
    pub(crate) machines: Option<u32>,
    pub(crate) free: Option<u32>,
    /// How many domains it shall have.
    pub(crate) domains: usize,
    /// How many it has.
    pub(crate) holds: usize,
    pub(crate) clusters: usize,
    #[serde(serialize_with = "at")]
    pub(crate) registered: Moment,
    /// Null if this leader had none.
    #[serde(serialize_with = "at")]
    pub(crate) last_report: Moment,
}

/// A domain: all machines with one value of a label.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct DomainRecord {
    /// `key=value`.
    pub(crate) domain: String,
    pub(crate) key: String,
    pub(crate) value: String,
    /// The shard that shall have it.
    pub(crate) shard: Option<String>,
    /// The shard that has it.
    pub(crate) held_by: Option<String>,
    pub(crate) state: &'static str,
}

/// A cluster and who serves it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ClusterOwnerRecord {
    pub(crate) id: String,
    pub(crate) shard: String,
    /// Others that serve it too, which none should.
    pub(crate) also_at: Vec<String>,
}

/// A replica of the coordinator.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ReplicaRecord {
    pub(crate) name: String,
    pub(crate) voter: bool,
    pub(crate) leader: bool,
    /// Null where it does not lead.
    pub(crate) reign: Option<u64>,
    pub(crate) address: String,
    pub(crate) raft_address: String,
}

/// An instruction that was given and not answered.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct InstructionRecord {
    pub(crate) id: String,
    pub(crate) shard: String,
    pub(crate) kind: &'static str,
    /// What it is about: a domain, or machines.
    pub(crate) about: String,
    pub(crate) reign: i64,
    pub(crate) number: i64,
}

/// The newest report of a shard.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ReportRecord {
    pub(crate) shard: String,
    /// Counts the reports of its process.
    pub(crate) number: i64,
    #[serde(serialize_with = "at")]
    pub(crate) received: Moment,
    pub(crate) provider: Option<String>,
    pub(crate) machines: u32,
    pub(crate) free: u32,
    pub(crate) pools: Vec<PoolRecord>,
    pub(crate) shortfalls: Vec<ReportedShortfall>,
}

/// Machines of one type in one zone.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PoolRecord {
    instance_type: String,
    zone: String,
    idle: u32,
    speculative: u32,
    configured: u32,
    allocatable: BTreeMap<String, String>,
}

/// What is missing there.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ReportedShortfall {
    priority: i32,
    deficit: BTreeMap<String, String>,
    age_cycles: u32,
    /// Nobody else's machines can help.
    constrained: bool,
    fingerprint: String,
}

impl From<&wire::ShardRegistryEntry> for ShardRecord {
    fn from(entry: &wire::ShardRegistryEntry) -> Self {
        Self {
            id: entry.shard_id.clone(),
            address: some(&entry.address),
            provider: None,
            machines: None,
            free: None,
            domains: 0,
            holds: 0,
            clusters: 0,
            registered: moment(entry.registered_at_unix_ns),
            // Some coordinators write "never" as a moment long before 1970.
            last_report: moment(entry.last_heartbeat_unix_ns.max(0)),
        }
    }
}

impl From<&wire::DomainState> for DomainRecord {
    fn from(one: &wire::DomainState) -> Self {
        let (shard, held_by) = (some(&one.desired_shard_id), some(&one.holder_shard_id));
        let state = match (&shard, &held_by) {
            (Some(shard), Some(holder)) if shard == holder => "held",
            (Some(_), Some(_)) => "moving",
            (Some(_), None) => "waiting",
            (None, _) => "leaving",
        };
        Self {
            domain: format!("{}={}", one.topology_key, one.topology_value),
            key: one.topology_key.clone(),
            value: one.topology_value.clone(),
            shard,
            held_by,
            state,
        }
    }
}

impl From<wire::ServedCluster> for ClusterOwnerRecord {
    fn from(one: wire::ServedCluster) -> Self {
        Self {
            id: one.cluster_id,
            shard: one.shard_id,
            also_at: one.also_at_shard_ids,
        }
    }
}

impl From<wire::Replica> for ReplicaRecord {
    fn from(one: wire::Replica) -> Self {
        Self {
            name: one.name,
            voter: one.voter,
            leader: one.leader,
            reign: one.leader.then_some(one.reign),
            address: one.address,
            raft_address: one.raft_address,
        }
    }
}

impl From<wire::PendingInstruction> for InstructionRecord {
    fn from(one: wire::PendingInstruction) -> Self {
        let given = one.instruction.unwrap_or_default();
        let domain = |key: &str, value: &str| format!("{key}={value}");
        let (kind, about) = match &given.payload {
            Some(Payload::AssignDomain(of)) => {
                ("AssignDomain", domain(&of.topology_key, &of.topology_value))
            }
            Some(Payload::UnassignDomain(of)) => (
                "UnassignDomain",
                domain(&of.topology_key, &of.topology_value),
            ),
            Some(Payload::ReassignSpeculative(of)) => {
                ("ReassignSpeculative", of.machine_ids.join(","))
            }
            Some(Payload::CrossShardDrain(of)) => ("CrossShardDrain", of.machine_ids.join(",")),
            Some(Payload::TransferOwnership(of)) => match of.phase() {
                wire::TransferPhase::Claim => ("Claim", of.machine_ids.join(",")),
                wire::TransferPhase::Return => ("Return", of.machine_ids.join(",")),
                wire::TransferPhase::Unspecified
                | wire::TransferPhase::Resolve
                | wire::TransferPhase::Release => ("Transfer", of.machine_ids.join(",")),
            },
            None => ("unknown", String::new()),
        };
        Self {
            id: given.instruction_id,
            shard: one.shard_id,
            kind,
            about,
            reign: given.coordinator_term,
            number: given.sequence_number,
        }
    }
}

fn amounts(resources: Option<&wire::Resources>) -> BTreeMap<String, String> {
    resources
        .map(|all| all.resources.clone())
        .unwrap_or_default()
}

impl From<&wire::ShardReportSnapshot> for ReportRecord {
    fn from(one: &wire::ShardReportSnapshot) -> Self {
        let summary = one.summary.clone().unwrap_or_default();
        let pool = |pool: &wire::CapacityPool| PoolRecord {
            instance_type: pool.instance_type.clone(),
            zone: pool.zone.clone(),
            idle: count(pool.idle),
            speculative: count(pool.speculative),
            configured: count(pool.configured),
            allocatable: amounts(pool.allocatable.as_ref()),
        };
        let shortfall = |short: &wire::Shortfall| ReportedShortfall {
            priority: short.priority,
            deficit: amounts(short.deficit.as_ref()),
            age_cycles: count(short.age_cycles),
            constrained: short.topology_constrained,
            fingerprint: short.profile_fingerprint.clone(),
        };
        Self {
            shard: one.shard_id.clone(),
            number: one.cycle,
            received: moment(one.received_at_unix_ns),
            provider: some(&summary.provider_address),
            machines: count(summary.total_machines),
            free: count(summary.free_machines),
            pools: summary.pools.iter().map(pool).collect(),
            shortfalls: one.shortfalls.iter().map(shortfall).collect(),
        }
    }
}
