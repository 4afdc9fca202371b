//! One cluster: the rows in force, since when, and why nothing is acquired for it.

use super::{
    rows::{Moved, Proposal, Rows},
    shortfall::Withheld,
};
use crate::{intern::Interned, supply::EngineRows};
use bigfleet_model::{
    Amounts, Cluster, ClusterId, Fingerprint, Group, Need, NeedKey, Profile, Row, Time,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

/// When rows of an earlier process arrived.
pub(super) type Arrivals = BTreeMap<(Fingerprint, Group), Time>;

/// What a cluster asks of machines with one of its profiles, whatever it asks with the rest of it.
#[derive(Clone, Debug)]
pub(super) struct ProfileHead {
    /// The number of the profile.
    pub(super) number: u32,
    pub(super) profile: Arc<Profile>,
    /// The unit a machine must hold, by the first row of the profile.
    pub(super) unit: Amounts,
}

/// One cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClusterDemand {
    /// This process has accepted a roll-up from it (SH-8).
    is_ready: bool,
    /// Why nothing is acquired for it, as the engine was last told.
    withheld: Option<Withheld>,
    /// When the roll-up in force was accepted, and its id.
    accepted: Option<(Time, String)>,
    /// When a roll-up was last refused, and why.
    refused: Option<(Time, String)>,
    rows: Rows,
    /// One row of every profile that is demanded, by the number of the profile.
    heads: Vec<ProfileHead>,
    /// How often those changed.
    heads_moved: u64,
    /// How often the engine was told something of it.
    told: u64,
    /// Until this process has heard the cluster.
    remembered: Arrivals,
    /// When each demanded fingerprint was first seen, until a machine serves it (PL-1).
    first_seen: BTreeMap<Fingerprint, Option<Time>>,
}

impl ClusterDemand {
    /// Whether this process has accepted a roll-up from it.
    pub(crate) fn is_ready(&self) -> bool {
        self.is_ready
    }

    pub(crate) fn withheld(&self) -> Option<Withheld> {
        self.withheld
    }

    /// When the roll-up in force was accepted, and its id.
    pub(crate) fn accepted(&self) -> Option<&(Time, String)> {
        self.accepted.as_ref()
    }

    /// When a roll-up was last refused, and why.
    pub(crate) fn refused(&self) -> Option<&(Time, String)> {
        self.refused.as_ref()
    }

    /// How often the engine was told something of it.
    pub(crate) fn told(&self) -> u64 {
        self.told
    }

    /// How many rows it has.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn rows_of(&self, group: &Group) -> impl Iterator<Item = &Need> {
        self.rows.of_group(group)
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
        let rows = self.rows.iter();
        rows.filter_map(|need| Some((need.key(), need.arrival?)))
            .chain(remembered)
    }

    /// The number of every demanded profile, with one of its rows.
    pub(super) fn profiles(&self) -> impl Iterator<Item = (u32, &Need)> {
        self.rows.profiles()
    }

    /// One row of every profile, and how often those changed.
    pub(super) fn heads(&self) -> (&[ProfileHead], u64) {
        (&self.heads, self.heads_moved)
    }

    /// The cluster as the engine is told of it.
    pub(crate) fn as_told(&self, cluster: &ClusterId) -> Option<Cluster> {
        let rows = self.rows.iter();
        let rows = rows.map(|need| (need.row.clone(), need.arrival, need.parked));
        // Rows are merged already, so their sums can be counted.
        let mut value = Cluster::new(cluster, rows).ok()?;
        value.ready = self.is_ready;
        value.acquire = self.withheld.is_none();
        Some(value)
    }

    pub(super) fn tell(&self, cluster: &ClusterId, engine: &mut EngineRows<'_>) {
        if let Some(value) = self.as_told(cluster) {
            engine.put_cluster(cluster, &value);
        }
    }

    pub(super) fn propose(
        &self,
        rows: Vec<Row>,
        profiles: &mut Interned<Profile>,
    ) -> Result<Proposal, usize> {
        self.rows.propose(rows, profiles)
    }

    /// Puts rows in force; says what moved. The first time the cluster is heard it also returns the
    /// arrivals of rows an earlier process knew and that are not there any more.
    pub(super) fn replace(
        &mut self,
        cluster: &ClusterId,
        proposal: Proposal,
        profiles: &mut Interned<Profile>,
        reset: Option<Time>,
        now: Time,
    ) -> (Moved, Option<Arrivals>) {
        let remembered = &mut self.remembered;
        let arrival = |row: &Row| {
            if remembered.is_empty() {
                return now;
            }
            let key = (row.profile.fingerprint().clone(), row.group.clone());
            remembered.remove(&key).unwrap_or(now)
        };
        let moved = self
            .rows
            .replace(cluster, proposal, profiles, reset, arrival);
        self.note_seen(now, moved.profiles);
        self.told += 1;
        if !moved.is_empty() {
            self.note_heads();
        }
        let is_first = !std::mem::replace(&mut self.is_ready, true);
        let forgotten = is_first.then(|| std::mem::take(&mut self.remembered));
        (moved, forgotten)
    }

    pub(super) fn note_accepted(&mut self, now: Time, rollup_id: String) {
        self.accepted = Some((now, rollup_id));
    }

    pub(super) fn note_refused(&mut self, now: Time, reason: String) {
        self.refused = Some((now, reason));
    }

    pub(super) fn recall_arrival(&mut self, row: (Fingerprint, Group), at: Option<Time>) {
        match at {
            Some(at) => self.remembered.insert(row, at),
            None => self.remembered.remove(&row),
        };
    }

    /// See [`super::Demand::withhold`].
    pub(super) fn withhold(
        &mut self,
        cluster: &ClusterId,
        withheld: Option<Withheld>,
        engine: &mut EngineRows<'_>,
    ) -> bool {
        let before = std::mem::replace(&mut self.withheld, withheld);
        self.told += 1;
        if self.is_ready && before.is_some() != withheld.is_some() {
            self.tell(cluster, engine);
        }
        before != withheld
    }

    /// Stamps a gang parked or not; the engine hears of it.
    pub(super) fn park(&mut self, key: &NeedKey, parked: bool, engine: &mut EngineRows<'_>) {
        let told = &mut self.told;
        self.rows.change_group(&key.group, |need| {
            let profile = &need.row.profile;
            if *profile.fingerprint() == key.fingerprint && profile.same_key().is_some() {
                need.parked = parked;
                *told += 1;
                engine.put(need);
            }
        });
    }

    /// A machine serves this fingerprint: how long that took, once (PL-1).
    pub(super) fn served(&mut self, fingerprint: &Fingerprint, now: Time) -> Option<Duration> {
        let since = self.first_seen.get_mut(fingerprint)?.take()?;
        Some(now.duration_since(since))
    }

    /// Notes fingerprints seen for the first time and forgets those no longer demanded.
    fn note_seen(&mut self, now: Time, profiles_moved: bool) {
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
        for fingerprint in demanded {
            let seen = self.first_seen.entry(fingerprint).or_default();
            seen.get_or_insert(now);
        }
    }

    /// Notes the first row of every profile, if one is another than before.
    fn note_heads(&mut self) {
        let same = |(head, (number, need)): (&ProfileHead, (u32, &Need))| {
            head.number == number
                && Arc::ptr_eq(&head.profile, &need.row.profile)
                && head.unit == need.row.min_unit
        };
        let heads = self.heads.iter();
        if heads.len() == self.profiles().count() && heads.zip(self.profiles()).all(same) {
            return;
        }
        let head = |(number, need): (u32, &Need)| ProfileHead {
            number,
            profile: Arc::clone(&need.row.profile),
            unit: need.row.min_unit.clone(),
        };
        self.heads = self.profiles().map(head).collect();
        self.heads_moved += 1;
    }
}
