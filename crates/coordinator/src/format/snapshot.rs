//! Snapshot: all rows of the tables, in order.

use bigfleet_coordinator_core::{
    DomainRow, IdentityRow, MachineRow, Provider, ShardId, ShardRow, Snapshot, Tables, Transfer,
    TransferId, TransferState,
};
use bigfleet_model::{ClusterId, MachineId, Time};
use prost::Message;

use super::parts::{
    StoredDomain, StoredIdentity, StoredProvider, domain, machines, needed, optional_domain,
    optional_shard, provider, texts,
};
use super::{FormatRefused, open, seal};

#[derive(Clone, PartialEq, Message)]
struct StoredSnapshot {
    #[prost(string, optional, tag = "1")]
    cluster: Option<String>,
    #[prost(uint64, tag = "2")]
    generation: u64,
    #[prost(uint64, tag = "3")]
    reign: u64,
    #[prost(bool, tag = "4")]
    restored: bool,
    #[prost(bool, tag = "5")]
    rebalance_paused: bool,
    #[prost(uint64, tag = "6")]
    revision: u64,
    #[prost(uint64, tag = "7")]
    minted: u64,
    #[prost(message, repeated, tag = "8")]
    shards: Vec<ShardLine>,
    #[prost(message, repeated, tag = "9")]
    identities: Vec<IdentityLine>,
    #[prost(string, repeated, tag = "10")]
    gone: Vec<String>,
    #[prost(message, repeated, tag = "11")]
    clusters: Vec<ClusterLine>,
    #[prost(message, repeated, tag = "12")]
    domains: Vec<DomainLine>,
    #[prost(message, repeated, tag = "13")]
    everything: Vec<EverythingLine>,
    #[prost(message, repeated, tag = "14")]
    machines: Vec<MachineLine>,
    #[prost(message, repeated, tag = "15")]
    transfers: Vec<TransferLine>,
}

#[derive(Clone, PartialEq, Message)]
struct ShardLine {
    #[prost(string, tag = "1")]
    shard: String,
    #[prost(string, tag = "2")]
    address: String,
    #[prost(message, optional, tag = "3")]
    provider: Option<StoredProvider>,
    #[prost(sint64, tag = "4")]
    registered_at: i64,
}

#[derive(Clone, PartialEq, Message)]
struct IdentityLine {
    #[prost(string, tag = "1")]
    shard: String,
    #[prost(message, optional, tag = "2")]
    identity: Option<StoredIdentity>,
    #[prost(message, optional, tag = "3")]
    provider: Option<StoredProvider>,
}

#[derive(Clone, PartialEq, Message)]
struct ClusterLine {
    #[prost(string, tag = "1")]
    cluster: String,
    #[prost(string, tag = "2")]
    shard: String,
}

#[derive(Clone, PartialEq, Message)]
struct DomainLine {
    #[prost(message, optional, tag = "1")]
    domain: Option<StoredDomain>,
    #[prost(string, optional, tag = "2")]
    desired: Option<String>,
    #[prost(string, optional, tag = "3")]
    holder: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct EverythingLine {
    #[prost(message, optional, tag = "1")]
    provider: Option<StoredProvider>,
    #[prost(string, tag = "2")]
    shard: String,
}

#[derive(Clone, PartialEq, Message)]
struct MachineLine {
    #[prost(string, tag = "1")]
    machine: String,
    #[prost(string, tag = "2")]
    transfer: String,
    #[prost(message, optional, tag = "3")]
    domain: Option<StoredDomain>,
    #[prost(message, optional, tag = "4")]
    provider: Option<StoredProvider>,
    #[prost(string, tag = "5")]
    owner: String,
}

#[derive(Clone, PartialEq, Message)]
struct TransferLine {
    #[prost(string, tag = "1")]
    id: String,
    #[prost(string, optional, tag = "2")]
    from: Option<String>,
    #[prost(string, tag = "3")]
    to: String,
    #[prost(string, repeated, tag = "4")]
    machines: Vec<String>,
    #[prost(message, optional, tag = "5")]
    domain: Option<StoredDomain>,
    #[prost(uint32, tag = "6")]
    state: u32,
    #[prost(bool, tag = "7")]
    from_closed: bool,
    #[prost(bool, tag = "8")]
    to_closed: bool,
}

/// The tables as bytes.
pub fn write_snapshot(tables: &Tables) -> Vec<u8> {
    let rows = tables.snapshot();
    seal(&StoredSnapshot {
        cluster: rows.cluster,
        generation: rows.generation,
        reign: rows.reign,
        restored: rows.restored,
        rebalance_paused: rows.rebalance_paused,
        revision: rows.revision,
        minted: rows.minted,
        shards: rows.shards.iter().map(ShardLine::new).collect(),
        identities: rows.identities.iter().map(IdentityLine::new).collect(),
        gone: texts(&rows.gone),
        clusters: rows.clusters.iter().map(ClusterLine::new).collect(),
        domains: rows.domains.iter().map(DomainLine::new).collect(),
        everything: rows.everything.iter().map(EverythingLine::new).collect(),
        machines: rows.machines.iter().map(MachineLine::new).collect(),
        transfers: rows.transfers.iter().map(TransferLine::new).collect(),
    })
}

/// The rows in these bytes. [`Tables::from_snapshot`] checks how they fit together.
pub fn read_snapshot(bytes: &[u8]) -> Result<Snapshot, FormatRefused> {
    let stored: StoredSnapshot = open(bytes)?;
    let gone = stored.gone.iter().map(|shard| ShardId::new(shard));
    Ok(Snapshot {
        cluster: stored.cluster,
        generation: stored.generation,
        reign: stored.reign,
        restored: stored.restored,
        rebalance_paused: stored.rebalance_paused,
        revision: stored.revision,
        minted: stored.minted,
        shards: all(&stored.shards, ShardLine::read)?,
        identities: all(&stored.identities, IdentityLine::read)?,
        gone: gone.collect::<Result<_, _>>()?,
        clusters: all(&stored.clusters, ClusterLine::read)?,
        domains: all(&stored.domains, DomainLine::read)?,
        everything: all(&stored.everything, EverythingLine::read)?,
        machines: all(&stored.machines, MachineLine::read)?,
        transfers: all(&stored.transfers, TransferLine::read)?,
    })
}

fn all<L, R>(
    lines: &[L],
    read: fn(&L) -> Result<R, FormatRefused>,
) -> Result<Vec<R>, FormatRefused> {
    lines.iter().map(read).collect()
}

impl ShardLine {
    fn new((shard, row): &(ShardId, ShardRow)) -> Self {
        Self {
            shard: shard.to_string(),
            address: row.address.clone(),
            provider: Some((&row.provider).into()),
            registered_at: row.registered_at.nanos(),
        }
    }

    fn read(&self) -> Result<(ShardId, ShardRow), FormatRefused> {
        let row = ShardRow {
            address: self.address.clone(),
            provider: provider(&self.provider)?,
            registered_at: Time::from_nanos(self.registered_at),
        };
        Ok((ShardId::new(&self.shard)?, row))
    }
}

impl IdentityLine {
    fn new((shard, row): &(ShardId, IdentityRow)) -> Self {
        Self {
            shard: shard.to_string(),
            identity: Some(row.identity.into()),
            provider: Some((&row.provider).into()),
        }
    }

    fn read(&self) -> Result<(ShardId, IdentityRow), FormatRefused> {
        let row = IdentityRow {
            identity: needed(&self.identity, "a shard's process")?.read(),
            provider: provider(&self.provider)?,
        };
        Ok((ShardId::new(&self.shard)?, row))
    }
}

impl ClusterLine {
    fn new((cluster, shard): &(ClusterId, ShardId)) -> Self {
        Self {
            cluster: cluster.to_string(),
            shard: shard.to_string(),
        }
    }

    fn read(&self) -> Result<(ClusterId, ShardId), FormatRefused> {
        Ok((ClusterId::new(&self.cluster)?, ShardId::new(&self.shard)?))
    }
}

impl DomainLine {
    fn new((domain, row): &(bigfleet_coordinator_core::Domain, DomainRow)) -> Self {
        Self {
            domain: Some(domain.into()),
            desired: row.desired.as_ref().map(ToString::to_string),
            holder: row.holder.as_ref().map(ToString::to_string),
        }
    }

    fn read(&self) -> Result<(bigfleet_coordinator_core::Domain, DomainRow), FormatRefused> {
        let row = DomainRow {
            desired: optional_shard(&self.desired)?,
            holder: optional_shard(&self.holder)?,
        };
        Ok((domain(&self.domain)?, row))
    }
}

impl EverythingLine {
    fn new((provider, shard): &(Provider, ShardId)) -> Self {
        Self {
            provider: Some(provider.into()),
            shard: shard.to_string(),
        }
    }

    fn read(&self) -> Result<(Provider, ShardId), FormatRefused> {
        Ok((provider(&self.provider)?, ShardId::new(&self.shard)?))
    }
}

impl MachineLine {
    fn new((machine, row): &(MachineId, MachineRow)) -> Self {
        Self {
            machine: machine.to_string(),
            transfer: row.transfer.to_string(),
            domain: row.domain.as_ref().map(StoredDomain::from),
            provider: Some((&row.provider).into()),
            owner: row.owner.to_string(),
        }
    }

    fn read(&self) -> Result<(MachineId, MachineRow), FormatRefused> {
        let row = MachineRow {
            transfer: TransferId::new(&self.transfer)?,
            domain: optional_domain(&self.domain)?,
            provider: provider(&self.provider)?,
            owner: ShardId::new(&self.owner)?,
        };
        Ok((MachineId::new(&self.machine)?, row))
    }
}

impl TransferLine {
    fn new((id, transfer): &(TransferId, Transfer)) -> Self {
        Self {
            id: id.to_string(),
            from: transfer.from.as_ref().map(ToString::to_string),
            to: transfer.to.to_string(),
            machines: texts(&transfer.machines),
            domain: transfer.domain.as_ref().map(StoredDomain::from),
            state: match transfer.state {
                TransferState::Moving => 1,
                TransferState::Done => 2,
                TransferState::Returning => 3,
            },
            from_closed: transfer.from_closed,
            to_closed: transfer.to_closed,
        }
    }

    fn read(&self) -> Result<(TransferId, Transfer), FormatRefused> {
        let state = match self.state {
            1 => TransferState::Moving,
            2 => TransferState::Done,
            3 => TransferState::Returning,
            value => {
                let what = "a transfer's state";
                return Err(FormatRefused::Number { what, value });
            }
        };
        let transfer = Transfer {
            from: optional_shard(&self.from)?,
            to: ShardId::new(&self.to)?,
            machines: machines(&self.machines)?,
            domain: optional_domain(&self.domain)?,
            state,
            from_closed: self.from_closed,
            to_closed: self.to_closed,
        };
        Ok((TransferId::new(&self.id)?, transfer))
    }
}
