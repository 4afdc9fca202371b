//! Lists: what the leader knows of shards, domains, clusters, replicas, reports and instructions.

use std::collections::BTreeMap;

use serde::Serialize;

use super::CoordinatorClient;
use crate::error::CtlError;
use crate::output::ListSource;
use crate::record::{ClusterOwnerRecord, DomainRecord, ReportRecord, ShardRecord};
use crate::when::local_now;

/// Which replica answered.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct CoordinatorSource {
    /// Its address.
    pub(crate) coordinator: String,
    /// Why a list may be empty although there is something.
    #[serde(skip)]
    pub(crate) unready: Option<&'static str>,
}

impl CoordinatorSource {
    pub(crate) fn of(client: &CoordinatorClient) -> Self {
        Self {
            coordinator: client.target(),
            unready: None,
        }
    }
}

impl ListSource for CoordinatorSource {
    fn now(&self) -> i64 {
        local_now()
    }

    fn unready(&self) -> Option<String> {
        self.unready.map(str::to_owned)
    }

    fn first(&self) -> String {
        String::new()
    }

    fn total(&self) -> Option<usize> {
        None
    }
}

/// Who has what, from several answers of the leader.
pub(crate) struct Ownership {
    pub(crate) shards: Vec<ShardRecord>,
    pub(crate) domains: Vec<DomainRecord>,
    pub(crate) clusters: Vec<ClusterOwnerRecord>,
    pub(crate) reports: Vec<ReportRecord>,
}

/// Asks for all of it.
pub(crate) async fn ownership(client: &CoordinatorClient) -> Result<Ownership, CtlError> {
    let entries = client.shards().await?;
    let domains = client.domains().await?;
    let clusters = client.clusters().await?;
    let reports = client.reports().await?;
    let domains: Vec<DomainRecord> = domains.iter().map(Into::into).collect();
    let clusters: Vec<ClusterOwnerRecord> = clusters.into_iter().map(Into::into).collect();
    let reports: Vec<ReportRecord> = reports.iter().map(Into::into).collect();
    let mut shards: Vec<ShardRecord> = entries.iter().map(Into::into).collect();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for (place, shard) in shards.iter().enumerate() {
        places.insert(shard.id.clone(), place);
    }
    let place = |shard: &Option<String>| places.get(shard.as_deref()?).copied();
    for domain in &domains {
        if let Some(place) = place(&domain.shard) {
            shards[place].domains += 1;
        }
        if let Some(place) = place(&domain.held_by) {
            shards[place].holds += 1;
        }
    }
    for cluster in &clusters {
        if let Some(place) = places.get(&cluster.shard) {
            shards[*place].clusters += 1;
        }
    }
    for report in &reports {
        if let Some(place) = places.get(&report.shard) {
            let shard = &mut shards[*place];
            shard.machines = Some(report.machines);
            shard.free = Some(report.free);
            shard.provider = report.provider.clone();
        }
    }
    Ok(Ownership {
        shards,
        domains,
        clusters,
        reports,
    })
}
