//! Demand: what each cluster was last believed to want, and since when.
//!
//! ```text
//! roll-up ─▶ rows ─▶ rail 2 ─▶ what differs from the last ─▶ engine, row by row
//! ```
//!
//! A roll-up replaces a cluster's whole demand; the engine is told only the rows that differ, so a
//! quiet roll-up costs a comparison.

use crate::{defect::Defect, guard::Guard, ledger::Ledger, shortfall::Withheld};
use bigfleet_model::{
    Bucket, Cluster, ClusterId, Fingerprint, Group, Need, NeedKey, Profile, Requirement, Row, Time,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The identity of a row within its cluster.
type RowKey = (Arc<Profile>, Group);

/// The roll-up in force.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Accepted {
    pub(crate) at: Time,
    pub(crate) rollup_id: String,
}

/// One cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClusterDemand {
    /// This process has accepted a roll-up from it (SH-8).
    pub(crate) ready: bool,
    /// Why nothing is acquired for it, as the engine was last told.
    pub(crate) withheld: Option<Withheld>,
    pub(crate) guard: Guard,
    pub(crate) accepted: Option<Accepted>,
    /// When a roll-up was last refused, and why.
    pub(crate) refused: Option<(Time, String)>,
    rows: BTreeMap<RowKey, Need>,
    /// How often its rows changed.
    pub(crate) moves: u64,
    /// How often the engine was told something of it.
    pub(crate) told: u64,
    /// When each demanded fingerprint was first seen, until a machine serves it (PL-1).
    pub(crate) first_seen: BTreeMap<Fingerprint, Option<Time>>,
}

impl ClusterDemand {
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = &Need> {
        self.rows.values()
    }
}

/// The demand of every cluster that ever reported.
#[derive(Clone, Debug, Default)]
pub(crate) struct Demand {
    pub(crate) clusters: BTreeMap<ClusterId, ClusterDemand>,
    /// Rows per interruption bucket.
    pub(crate) gauge: BTreeMap<Bucket, u32>,
}

impl Demand {
    pub(crate) fn is_ready(&self, cluster: &ClusterId) -> bool {
        self.clusters.get(cluster).is_some_and(|known| known.ready)
    }

    /// Takes over rows that were accepted, merged already.
    pub(crate) fn accept(
        &mut self,
        cluster: &ClusterId,
        mut needs: Vec<Need>,
        now: Time,
        ledger: &mut Ledger,
    ) {
        let known = self.clusters.entry(cluster.clone()).or_default();
        let mut rows = BTreeMap::new();
        let mut fresh = Vec::new();
        for need in &mut needs {
            let key = (Arc::clone(&need.row.profile), need.row.group.clone());
            if let Some(before) = known.rows.remove(&key) {
                // The profile we hold is the one the engine knows by pointer.
                need.row.profile = Arc::clone(&before.row.profile);
                need.parked = before.parked;
                if ledger.defect != Some(Defect::RollUpArrivalReset) {
                    need.arrival = before.arrival;
                }
                if *need != before {
                    fresh.push(need.clone());
                }
            } else {
                need.arrival = now;
                *self
                    .gauge
                    .entry(need.row.profile.interruption())
                    .or_default() += 1;
                fresh.push(need.clone());
            }
            rows.insert(key, need.clone());
        }
        let gone = std::mem::replace(&mut known.rows, rows);
        for need in gone.values() {
            let count = self
                .gauge
                .entry(need.row.profile.interruption())
                .or_default();
            *count = count.saturating_sub(1);
        }
        known.remember(now);
        known.moves += u64::from(!gone.is_empty() || !fresh.is_empty());
        known.told += 1;
        if known.ready {
            for need in gone.values() {
                ledger.engine.remove_row(need);
            }
            for need in &fresh {
                ledger.engine.put_row(need);
            }
            ledger.touched |= !gone.is_empty() || !fresh.is_empty();
        } else {
            known.ready = true;
            self.tell_engine(cluster, ledger);
        }
    }

    /// Notes why nothing is acquired for a cluster; the engine hears of it if that changes.
    pub(crate) fn withhold(
        &mut self,
        cluster: &ClusterId,
        withheld: Option<Withheld>,
        ledger: &mut Ledger,
    ) {
        let Some(known) = self.clusters.get_mut(cluster) else {
            return;
        };
        let before = std::mem::replace(&mut known.withheld, withheld);
        known.told += 1;
        if known.ready && before.is_some() != withheld.is_some() {
            self.tell_engine(cluster, ledger);
        }
    }

    /// Stamps a gang parked or not; the engine hears of it.
    pub(crate) fn park(&mut self, key: &NeedKey, parked: bool, ledger: &mut Ledger) {
        let Some(known) = self.clusters.get_mut(&key.cluster) else {
            return;
        };
        for need in known.rows.values_mut() {
            let is_it = need.row.group == key.group
                && *need.row.profile.fingerprint() == key.fingerprint
                && need.row.profile.same_key().is_some();
            if is_it {
                need.parked = parked;
                known.told += 1;
                ledger.engine.put_row(need);
                ledger.touched = true;
            }
        }
    }

    /// What a Need asks of a machine, folded forms included; nothing if it is gone.
    pub(crate) fn requirements(&self, key: &NeedKey) -> Vec<Requirement> {
        let Some(known) = self.clusters.get(&key.cluster) else {
            return Vec::new();
        };
        let mut profiles = known.rows.keys().map(|(profile, _)| profile);
        let found = profiles.find_map(|profile| {
            if *profile.fingerprint() == key.fingerprint {
                return Some(profile.requirements().to_vec());
            }
            let folded = profile.same_key().map(|_| profile.folded());
            folded
                .filter(|folded| *folded.fingerprint() == key.fingerprint)
                .map(|folded| folded.requirements().to_vec())
        });
        found.unwrap_or_default()
    }

    fn tell_engine(&self, cluster: &ClusterId, ledger: &mut Ledger) {
        let Some(known) = self.clusters.get(cluster) else {
            return;
        };
        let rows = known.rows.values();
        let rows = rows.map(|need| (need.row.clone(), need.arrival, need.parked));
        // Rows are merged already, so their sums can be counted.
        if let Ok(mut value) = Cluster::new(cluster, rows) {
            value.ready = known.ready;
            value.acquire = known.withheld.is_none();
            ledger.engine.put_cluster(cluster, &value);
            ledger.touched = true;
        }
    }
}

impl ClusterDemand {
    /// Remembers fingerprints seen for the first time and forgets those no longer demanded.
    fn remember(&mut self, now: Time) {
        let demanded: BTreeSet<&Fingerprint> = self
            .rows
            .keys()
            .map(|(profile, _)| profile.fingerprint())
            .collect();
        self.first_seen
            .retain(|fingerprint, _| demanded.contains(fingerprint));
        for fingerprint in demanded {
            let seen = self.first_seen.entry(fingerprint.clone()).or_default();
            seen.get_or_insert(now);
        }
    }

    /// A machine serves this fingerprint: how long that took, once (PL-1).
    pub(crate) fn served(&mut self, fingerprint: &Fingerprint, now: Time) -> Option<f64> {
        let since = self.first_seen.get_mut(fingerprint)?.take()?;
        Some(now.since(since))
    }
}

/// Rows as Needs of a cluster, merged (NT-3). Errs with the position of a row that cannot be summed.
pub(crate) fn merge(cluster: &ClusterId, rows: Vec<Row>, now: Time) -> Result<Vec<Need>, usize> {
    Need::merge(rows.into_iter().map(|row| Need {
        cluster: cluster.clone(),
        row,
        arrival: now,
        parked: false,
    }))
}
