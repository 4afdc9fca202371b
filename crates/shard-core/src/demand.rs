//! Demand: what each cluster was last believed to want, and since when.
//!
//! ```text
//! roll-up ─▶ how it differs from the rows in force ─▶ rail 2 ─▶ in force ─▶ engine, row by row
//! ```
//!
//! A roll-up replaces a cluster's whole demand; the engine is told only the rows that differ, so a
//! quiet roll-up costs a comparison.

use crate::{
    defect::Defect,
    guard::Guard,
    intern::Interned,
    ledger::Ledger,
    rows::{Moved, Proposal, Rows},
    shortfall::Withheld,
};
use bigfleet_model::{
    Amounts, Bucket, Cluster, ClusterId, Fingerprint, Group, Need, NeedKey, Profile, Requirement,
    Row, Time,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

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
    /// Since when roll-ups are held.
    pub(crate) held_since: Option<Time>,
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
        self.rows.len()
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = &Need> {
        self.rows.iter()
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
            .filter_map(|need| Some((need.key(), need.arrival?)))
            .chain(remembered)
    }

    /// The number of every demanded profile, with one of its rows.
    pub(crate) fn profiles(&self) -> impl Iterator<Item = (u32, &Need)> {
        self.rows.profiles()
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

    /// How rows differ from those a cluster has in force. Errs with the position of a row that cannot be
    /// summed. Whoever does not accept them lets them go with [`Self::discard`].
    pub(crate) fn propose(
        &mut self,
        cluster: &ClusterId,
        rows: Vec<Row>,
    ) -> Result<Proposal, usize> {
        match self.clusters.get(cluster) {
            Some(known) => known.rows.propose(cluster, rows, &mut self.profiles),
            None => Rows::default().propose(cluster, rows, &mut self.profiles),
        }
    }

    /// How many profiles there have ever been: a number stands for one of them until that changes.
    pub(crate) fn profiles_seen(&self) -> u64 {
        self.profiles.arrivals
    }

    /// Lets go of rows that were not accepted.
    pub(crate) fn discard(&mut self, proposal: Proposal) {
        proposal.discard(&mut self.profiles);
    }

    /// Puts rows that were accepted in force; returns those that are new and those that are gone.
    pub(crate) fn accept(
        &mut self,
        cluster: &ClusterId,
        proposal: Proposal,
        now: Time,
        ledger: &mut Ledger,
    ) -> Replaced {
        let known = self.clusters.entry(cluster.clone()).or_default();
        let remembered = &mut known.remembered;
        let arrival = |row: &Row| {
            if remembered.is_empty() {
                return now;
            }
            let key = (row.profile.fingerprint().clone(), row.group.clone());
            remembered.remove(&key).unwrap_or(now)
        };
        let reset = (ledger.defect == Some(Defect::RollUpArrivalReset)).then_some(now);
        let Moved {
            new,
            changed,
            gone,
            profiles,
        } = known
            .rows
            .replace(cluster, proposal, &mut self.profiles, reset, arrival);
        let mut replaced = Replaced {
            new,
            gone,
            forgotten: BTreeMap::new(),
        };
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
        known.remember(now, profiles);
        known.told += 1;
        let moved = !replaced.is_empty() || !changed.is_empty();
        if moved {
            known.note_heads();
        }
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

    /// The rows in force were accepted again.
    pub(crate) fn accept_again(
        &mut self,
        cluster: &ClusterId,
        now: Time,
        ledger: &mut Ledger,
    ) -> Replaced {
        self.accept(cluster, Proposal::default(), now, ledger)
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
        known.rows.change_group(&key.group, |need| {
            let profile = &need.row.profile;
            if *profile.fingerprint() == key.fingerprint && profile.same_key().is_some() {
                need.parked = parked;
                known.told += 1;
                ledger.engine.put_row(need);
                ledger.touched = true;
            }
        });
    }

    /// The key a gang must agree on; `None` if it is not demanded.
    pub(crate) fn same_key(&self, gang: &NeedKey) -> Option<String> {
        let mut equals = self.clusters.get(&gang.cluster)?.rows.of_group(&gang.group);
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
    fn remember(&mut self, now: Time, profiles_moved: bool) {
        if !profiles_moved {
            for seen in self.first_seen.values_mut() {
                seen.get_or_insert(now);
            }
            return;
        }
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
        if heads.len() == self.profiles().count() && heads.zip(self.profiles()).all(same) {
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
