//! Demand: what each cluster was last believed to want, and since when.
//!
//! ```text
//! roll-up ─▶ rows ─▶ rail 2 ─▶ what differs from the last ─▶ engine, row by row
//! ```
//!
//! A roll-up replaces a cluster's whole demand; the engine is told only the rows that differ, so a
//! quiet roll-up costs a comparison. Rows are kept by the number of their profile and their group: a
//! profile is a long text, and is compared once per row, not once per comparison of rows.

use crate::{defect::Defect, guard::Guard, intern::Interned, ledger::Ledger, shortfall::Withheld};
use bigfleet_model::{
    Amounts, Bucket, Cluster, ClusterId, Fingerprint, Group, Need, NeedKey, Profile, Requirement,
    Row, Time,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// Rows by the number of their profile, then by group.
pub(crate) type Rows = BTreeMap<u32, BTreeMap<Group, Need>>;

/// The roll-up in force.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Accepted {
    pub(crate) at: Time,
    pub(crate) rollup_id: String,
}

/// What a cluster asks of machines with one of its profiles, whatever it asks with the rest of it.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    /// The number of the profile.
    pub(crate) number: u32,
    pub(crate) profile: Arc<Profile>,
    /// The unit a machine must hold, by the first row of the profile.
    pub(crate) unit: Amounts,
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
    rows: Rows,
    /// One row of every profile that is demanded, by the number of the profile.
    pub(crate) heads: Vec<Head>,
    /// How often those changed.
    pub(crate) heads_moved: u64,
    /// How often the engine was told something of it.
    pub(crate) told: u64,
    /// When rows of an earlier process arrived, until this one has heard the cluster.
    pub(crate) remembered: BTreeMap<(Fingerprint, Group), Time>,
    /// When each demanded fingerprint was first seen, until a machine serves it (PL-1).
    pub(crate) first_seen: BTreeMap<Fingerprint, Option<Time>>,
}

impl ClusterDemand {
    pub(crate) fn len(&self) -> usize {
        self.rows.values().map(BTreeMap::len).sum()
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = &Need> {
        self.rows.values().flat_map(BTreeMap::values)
    }

    /// When each row arrived, those of an earlier process included while nothing newer is known.
    pub(crate) fn arrivals(&self, cluster: &ClusterId) -> impl Iterator<Item = (NeedKey, Time)> {
        let key = |fingerprint: &Fingerprint, group: &Group| NeedKey {
            cluster: cluster.clone(),
            fingerprint: fingerprint.clone(),
            group: group.clone(),
        };
        let remembered = self.remembered.iter();
        let remembered =
            remembered.map(move |((fingerprint, group), at)| (key(fingerprint, group), *at));
        self.rows()
            .map(|need| (need.key(), need.arrival))
            .chain(remembered)
    }

    /// The number of every demanded profile, with one of its rows.
    pub(crate) fn profiles(&self) -> impl Iterator<Item = (u32, &Need)> {
        let rows = self.rows.iter();
        rows.filter_map(|(profile, rows)| Some((*profile, rows.values().next()?)))
    }
}

/// The demand of every cluster that ever reported.
#[derive(Clone, Debug, Default)]
pub(crate) struct Demand {
    pub(crate) clusters: BTreeMap<ClusterId, ClusterDemand>,
    profiles: Interned<Profile>,
    /// Rows per interruption bucket.
    pub(crate) gauge: BTreeMap<Bucket, u32>,
}

impl Demand {
    pub(crate) fn is_ready(&self, cluster: &ClusterId) -> bool {
        self.clusters.get(cluster).is_some_and(|known| known.ready)
    }

    /// Rows as Needs of a cluster, merged (NT-3). Errs with the position of a row that cannot be
    /// summed. Whoever does not accept them lets them go with [`Self::discard`].
    pub(crate) fn merge(
        &mut self,
        cluster: &ClusterId,
        rows: Vec<Row>,
        now: Time,
    ) -> Result<Rows, usize> {
        let mut merged = Rows::new();
        for (at, mut row) in rows.into_iter().enumerate() {
            let number = self.profiles.number(&row.profile);
            if let Some(profile) = self.profiles.get(number) {
                row.profile.clone_from(profile);
            }
            let need = Need {
                cluster: cluster.clone(),
                row,
                arrival: now,
                parked: false,
            };
            let equals = merged.entry(number).or_default();
            let group = need.row.group.clone();
            let need = match equals.remove(&group) {
                None => Some(need),
                Some(first) => {
                    let sum = Need::merge([first, need]).ok();
                    sum.and_then(|mut one| one.pop())
                }
            };
            let Some(need) = need else {
                self.discard(&merged);
                return Err(at);
            };
            equals.insert(group, need);
        }
        Ok(merged)
    }

    /// How many profiles there have ever been: a number stands for one of them until that changes.
    pub(crate) fn profiles_seen(&self) -> u64 {
        self.profiles.arrivals
    }

    /// Forgets the profiles of rows that were not accepted.
    pub(crate) fn discard(&mut self, rows: &Rows) {
        for number in rows.keys() {
            self.profiles.forget_unused(*number);
        }
    }

    /// Takes over rows that were accepted; returns those that are new and those that are gone.
    pub(crate) fn accept(
        &mut self,
        cluster: &ClusterId,
        rows: Rows,
        now: Time,
        ledger: &mut Ledger,
    ) -> Replaced {
        let known = self.clusters.entry(cluster.clone()).or_default();
        let mut before = std::mem::replace(&mut known.rows, rows);
        let mut replaced = Replaced::default();
        let mut changed = Vec::new();
        for (number, rows) in &mut known.rows {
            let mut equals = before.remove(number);
            if equals.is_none() {
                self.profiles.keep(*number);
            }
            for (group, need) in rows {
                let Some(was) = equals.as_mut().and_then(|equals| equals.remove(group)) else {
                    let key = (need.row.profile.fingerprint().clone(), group.clone());
                    if let Some(arrival) = known.remembered.remove(&key) {
                        need.arrival = arrival;
                    }
                    replaced.new.push(need.clone());
                    continue;
                };
                need.parked = was.parked;
                if ledger.defect != Some(Defect::RollUpArrivalReset) {
                    need.arrival = was.arrival;
                }
                if *need != was {
                    changed.push(need.clone());
                }
            }
            replaced
                .gone
                .extend(equals.into_iter().flat_map(BTreeMap::into_values));
        }
        for (number, rows) in before {
            replaced.gone.extend(rows.into_values());
            self.profiles.leave(number);
        }
        for (needs, enter) in [(&replaced.new, true), (&replaced.gone, false)] {
            for need in needs {
                let count = self.gauge.entry(need.row.profile.interruption());
                let count = count.or_default();
                *count = match enter {
                    true => *count + 1,
                    false => count.saturating_sub(1),
                };
            }
        }
        known.remember(now);
        known.note_heads();
        known.told += 1;
        let moved = !replaced.is_empty() || !changed.is_empty();
        if known.ready {
            for need in &replaced.gone {
                ledger.engine.remove_row(need);
            }
            for need in replaced.new.iter().chain(&changed) {
                ledger.engine.put_row(need);
            }
            ledger.touched |= moved;
        } else {
            known.ready = true;
            replaced.forgotten = std::mem::take(&mut known.remembered);
            self.tell_engine(cluster, ledger);
        }
        replaced
    }

    /// The rows in force were accepted again: what [`Self::accept`] does with rows that are all equal.
    pub(crate) fn accept_again(
        &mut self,
        cluster: &ClusterId,
        now: Time,
        ledger: &mut Ledger,
    ) -> Replaced {
        let Some(known) = self.clusters.get_mut(cluster) else {
            return Replaced::default();
        };
        if ledger.defect == Some(Defect::RollUpArrivalReset) {
            let mut rows = known.rows.clone();
            for need in rows.values_mut().flat_map(BTreeMap::values_mut) {
                need.arrival = now;
            }
            return self.accept(cluster, rows, now, ledger);
        }
        for seen in known.first_seen.values_mut() {
            seen.get_or_insert(now);
        }
        known.told += 1;
        Replaced::default()
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
        let rows = known.rows.values_mut();
        for need in rows.filter_map(|rows| rows.get_mut(&key.group)) {
            let profile = &need.row.profile;
            if *profile.fingerprint() == key.fingerprint && profile.same_key().is_some() {
                need.parked = parked;
                known.told += 1;
                ledger.engine.put_row(need);
                ledger.touched = true;
            }
        }
    }

    /// The key a gang must agree on; `None` if it is not demanded.
    pub(crate) fn same_key(&self, gang: &NeedKey) -> Option<String> {
        let rows = self.clusters.get(&gang.cluster)?.rows.values();
        let mut equals = rows.filter_map(|rows| rows.get(&gang.group));
        let row = equals.find(|need| *need.row.profile.fingerprint() == gang.fingerprint)?;
        row.row.profile.same_key().map(str::to_owned)
    }

    /// What a Need asks of a machine, folded forms included; nothing if it is gone.
    pub(crate) fn requirements(&self, key: &NeedKey) -> Vec<Requirement> {
        let Some(known) = self.clusters.get(&key.cluster) else {
            return Vec::new();
        };
        let found = known.profiles().find_map(|(_, need)| {
            let profile = &need.row.profile;
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
        if let Some(value) = known.as_told(cluster) {
            ledger.engine.put_cluster(cluster, &value);
            ledger.touched = true;
        }
    }
}

/// What one roll-up changed about which rows there are.
#[derive(Debug, Default)]
pub(crate) struct Replaced {
    pub(crate) new: Vec<Need>,
    pub(crate) gone: Vec<Need>,
    /// Rows an earlier process knew that are not there any more.
    pub(crate) forgotten: BTreeMap<(Fingerprint, Group), Time>,
}

impl Replaced {
    fn is_empty(&self) -> bool {
        self.new.is_empty() && self.gone.is_empty()
    }
}

impl ClusterDemand {
    /// The cluster as the engine is told of it.
    pub(crate) fn as_told(&self, cluster: &ClusterId) -> Option<Cluster> {
        let rows = self.rows();
        let rows = rows.map(|need| (need.row.clone(), need.arrival, need.parked));
        // Rows are merged already, so their sums can be counted.
        let mut value = Cluster::new(cluster, rows).ok()?;
        value.ready = self.ready;
        value.acquire = self.withheld.is_none();
        Some(value)
    }

    /// Remembers fingerprints seen for the first time and forgets those no longer demanded.
    fn remember(&mut self, now: Time) {
        let profiles = self.profiles().map(|(_, need)| &need.row.profile);
        let demanded: BTreeSet<Fingerprint> = profiles
            .map(|profile| profile.fingerprint().clone())
            .collect();
        self.first_seen
            .retain(|fingerprint, _| demanded.contains(fingerprint));
        for fingerprint in &demanded {
            let seen = self.first_seen.entry(fingerprint.clone()).or_default();
            seen.get_or_insert(now);
        }
    }

    /// Notes the first row of every profile, if one is another than before.
    fn note_heads(&mut self) {
        let same = |(head, (number, need)): (&Head, (u32, &Need))| {
            head.number == number
                && Arc::ptr_eq(&head.profile, &need.row.profile)
                && head.unit == need.row.min_unit
        };
        let heads = self.heads.iter();
        if self.rows.len() == heads.len() && heads.zip(self.profiles()).all(same) {
            return;
        }
        let head = |(number, need): (u32, &Need)| Head {
            number,
            profile: Arc::clone(&need.row.profile),
            unit: need.row.min_unit.clone(),
        };
        self.heads = self.profiles().map(head).collect();
        self.heads_moved += 1;
    }

    /// A machine serves this fingerprint: how long that took, once (PL-1).
    pub(crate) fn served(&mut self, fingerprint: &Fingerprint, now: Time) -> Option<f64> {
        let since = self.first_seen.get_mut(fingerprint)?.take()?;
        Some(now.since(since))
    }
}
