//! Snapshot: the tables as plain rows, in order, and the way back.
//!
//! ```text
//! Tables ─▶ Snapshot ─▶ bytes of whoever stores it ─▶ Snapshot ─▶ checked, row by row ─▶ Tables
//! ```
//!
//! A row that does not fit fails the whole and is named: tables that silently lack a row would hand out what somebody has.

use std::fmt;

use bigfleet_model::{ClusterId, MachineId};

use super::{DomainRow, IdentityRow, MachineRow, Scalars, ShardRow, Tables, Transfer};
use crate::{
    Domain, Provider, ShardId, TransferId,
    limits::{
        HIGHEST_REIGN, MOST_CLUSTERS, MOST_DOMAINS, MOST_GONE, MOST_MOVED, MOST_ROWS, MOST_SHARDS,
        MOST_TRANSFERS,
    },
    names::is_id,
};

/// Everything the replicas agree on, as rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The id of the consensus group; absent before it was named.
    pub cluster: Option<String>,
    /// Counts its restores.
    pub generation: u64,
    /// The reign that began last.
    pub reign: u64,
    /// It came from a backup and waits for `finish-restore`.
    pub restored: bool,
    /// Rebalancing is paused.
    pub rebalance_paused: bool,
    /// Counts the commands that changed something.
    pub revision: u64,
    /// Transfers the tables themselves began in this reign.
    pub minted: u64,
    /// Registered shards.
    pub shards: Vec<(ShardId, ShardRow)>,
    /// The process on record for each shard that ever reported.
    pub identities: Vec<(ShardId, IdentityRow)>,
    /// Shards that are gone for good.
    pub gone: Vec<ShardId>,
    /// Which shard serves which cluster.
    pub clusters: Vec<(ClusterId, ShardId)>,
    /// Who shall have and who has each domain.
    pub domains: Vec<(Domain, DomainRow)>,
    /// Who has everything of a provider.
    pub everything: Vec<(Provider, ShardId)>,
    /// Machines that do not follow their domain.
    pub machines: Vec<(MachineId, MachineRow)>,
    /// Transfers under way.
    pub transfers: Vec<(TransferId, Transfer)>,
}

/// A row of a snapshot that does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowRefused {
    /// Its table.
    pub table: &'static str,
    /// Its key.
    pub row: String,
    /// The rule it breaks, in words.
    pub why: String,
}

impl fmt::Display for RowRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.table, self.row, self.why)
    }
}

impl std::error::Error for RowRefused {}

fn refuse(table: &'static str, row: &impl fmt::Display, why: impl Into<String>) -> RowRefused {
    let (row, why) = (row.to_string(), why.into());
    RowRefused { table, row, why }
}

fn bounded(table: &'static str, rows: usize, most: usize) -> Result<(), RowRefused> {
    if most < rows {
        return Err(refuse(table, &rows, format!("there may be {most} rows")));
    }
    Ok(())
}

const TWICE: &str = "is there twice";

impl Snapshot {
    /// The snapshot as a restore begins with it (CO-46): whatever is told from now on is above anything a shard can have heard, and
    /// nothing is told before every shard was heard.
    pub fn begin_restore(mut self, bump: u64) -> Self {
        self.generation = self.generation.saturating_add(1);
        self.reign = self.reign.saturating_add(bump).min(HIGHEST_REIGN);
        self.restored = true;
        self
    }
}

impl Tables {
    /// The tables as rows.
    pub fn snapshot(&self) -> Snapshot {
        let Scalars {
            cluster,
            generation,
            reign,
            restored,
            rebalance_paused,
            revision,
            minted,
        } = self.scalars.clone();
        let registry = &self.registry;
        Snapshot {
            cluster,
            generation,
            reign,
            restored,
            rebalance_paused,
            revision,
            minted,
            shards: owned(registry.shards()),
            identities: owned(registry.identities()),
            gone: registry.gone().iter().cloned().collect(),
            clusters: owned(self.clusters.iter()),
            domains: owned(self.domains.rows()),
            everything: owned(self.domains.all_everything()),
            machines: owned(self.ledger.rows()),
            transfers: owned(self.ledger.transfers()),
        }
    }

    /// The tables of these rows, if every one of them fits.
    pub fn from_snapshot(snapshot: Snapshot) -> Result<Self, RowRefused> {
        let mut tables = Self {
            scalars: Scalars {
                cluster: snapshot.cluster,
                generation: snapshot.generation,
                reign: snapshot.reign,
                restored: snapshot.restored,
                rebalance_paused: snapshot.rebalance_paused,
                revision: snapshot.revision,
                minted: snapshot.minted,
            },
            ..Self::default()
        };
        if HIGHEST_REIGN < snapshot.reign {
            return Err(refuse("reign", &snapshot.reign, "is too high"));
        }
        tables.put_shards(snapshot.gone, snapshot.shards, snapshot.identities)?;
        tables.put_clusters(snapshot.clusters)?;
        tables.put_domains(snapshot.domains, snapshot.everything)?;
        tables.put_ledger(snapshot.machines, snapshot.transfers)?;
        Ok(tables)
    }

    fn put_shards(
        &mut self,
        gone: Vec<ShardId>,
        shards: Vec<(ShardId, ShardRow)>,
        identities: Vec<(ShardId, IdentityRow)>,
    ) -> Result<(), RowRefused> {
        bounded("shards gone for good", gone.len(), MOST_GONE)?;
        bounded("shards", shards.len(), MOST_SHARDS)?;
        bounded("identities", identities.len(), MOST_SHARDS)?;
        for shard in gone {
            if !self.registry.put_gone(shard.clone()) {
                return Err(refuse("shard gone for good", &shard, TWICE));
            }
        }
        for (shard, row) in shards {
            self.check_not_gone("shard", &shard, &shard)?;
            if !self.registry.put(shard.clone(), row) {
                return Err(refuse("shard", &shard, TWICE));
            }
        }
        for (shard, row) in identities {
            self.check_not_gone("identity", &shard, &shard)?;
            if !self.registry.put_identity(shard.clone(), row) {
                return Err(refuse("identity", &shard, TWICE));
            }
        }
        Ok(())
    }

    fn check_not_gone(
        &self,
        table: &'static str,
        row: &impl fmt::Display,
        shard: &ShardId,
    ) -> Result<(), RowRefused> {
        if self.registry.is_gone(shard) {
            let why = format!("shard {shard} is gone for good");
            return Err(refuse(table, row, why));
        }
        Ok(())
    }

    fn put_clusters(&mut self, clusters: Vec<(ClusterId, ShardId)>) -> Result<(), RowRefused> {
        bounded("clusters", clusters.len(), MOST_CLUSTERS)?;
        for (cluster, shard) in clusters {
            if !is_id(cluster.as_str()) {
                return Err(refuse("cluster", &cluster, "is no id"));
            }
            if self.registry.shard(&shard).is_none() {
                let why = format!("shard {shard} is not registered");
                return Err(refuse("cluster", &cluster, why));
            }
            let bound = self.clusters.bind(&cluster, &shard);
            if bound != Ok(true) {
                return Err(refuse("cluster", &cluster, TWICE));
            }
        }
        Ok(())
    }

    fn put_domains(
        &mut self,
        domains: Vec<(Domain, DomainRow)>,
        everything: Vec<(Provider, ShardId)>,
    ) -> Result<(), RowRefused> {
        bounded("domains", domains.len(), MOST_DOMAINS)?;
        bounded("holders of everything", everything.len(), MOST_SHARDS)?;
        for (domain, row) in domains {
            if self.domains.row(&domain).is_some() {
                return Err(refuse("domain", &domain, TWICE));
            }
            if row == DomainRow::default() {
                return Err(refuse("domain", &domain, "nobody has it or shall have it"));
            }
            if let Some(desired) = &row.desired
                && self.registry.shard(desired).is_none()
            {
                let why = format!("shard {desired} is not registered");
                return Err(refuse("domain", &domain, why));
            }
            if let Some(holder) = &row.holder
                && !self.registry.is_known(holder)
            {
                let why = format!("nothing is known of shard {holder}, which has it");
                return Err(refuse("domain", &domain, why));
            }
            self.domains.set(&domain, row);
        }
        for (provider, shard) in everything {
            if self.domains.everything(&provider).is_some() {
                return Err(refuse("everything of", &provider, TWICE));
            }
            if !self.registry.is_known(&shard) {
                let why = format!("nothing is known of shard {shard}, which has it");
                return Err(refuse("everything of", &provider, why));
            }
            self.domains.set_everything(&provider, Some(shard));
        }
        Ok(())
    }

    fn put_ledger(
        &mut self,
        machines: Vec<(MachineId, MachineRow)>,
        transfers: Vec<(TransferId, Transfer)>,
    ) -> Result<(), RowRefused> {
        bounded("machines", machines.len(), MOST_ROWS)?;
        bounded("transfers", transfers.len(), MOST_TRANSFERS)?;
        for (machine, row) in machines {
            if self.ledger.row(&machine).is_some() {
                return Err(refuse("machine", &machine, TWICE));
            }
            self.check_not_gone("machine", &machine, &row.owner)?;
            self.ledger.set_row(&machine, Some(row));
        }
        for (id, transfer) in transfers {
            if self.ledger.transfer(&id).is_some() {
                return Err(refuse("transfer", &id, TWICE));
            }
            if MOST_MOVED < transfer.machines.len() {
                let why = format!("it moves more than {MOST_MOVED} machines");
                return Err(refuse("transfer", &id, why));
            }
            self.ledger.set_transfer(&id, Some(transfer));
        }
        Ok(())
    }
}

fn owned<'a, K: Clone + 'a, V: Clone + 'a>(
    rows: impl Iterator<Item = (&'a K, &'a V)>,
) -> Vec<(K, V)> {
    rows.map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}
