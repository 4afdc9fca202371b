//! Demand: what each cluster was last believed to want, and since when.
//!
//! ```text
//! roll-up ─▶ how it differs from the rows in force ─▶ rail 2 ─▶ in force ─▶ engine, row by row
//! ```
//!
//! A roll-up replaces a cluster's whole demand; the engine is told only the rows that differ, so a
//! quiet roll-up costs a comparison.
//!
//! **Invariant:** the rows in force are those the engine was told of every cluster that was heard, and what
//! is short, parked or counted of a gang is about rows that were demanded when the last cycle decided.

mod churn;
mod cluster;
mod hints;
mod lacking;
mod parking;
mod rows;
mod shortfall;

pub use churn::GangChurn;
pub use shortfall::{ReportedShortfall, Shortfall, Withheld};

pub(crate) use churn::Churn;
pub(crate) use cluster::ClusterDemand;
pub(crate) use rows::Proposal;

use crate::{defect::Defect, intern::Interned, settings::ShardConfig, supply::EngineRows};
use bigfleet_model::{
    Bucket, ClusterId, Fingerprint, Group, Need, NeedKey, Profile, Requirement, Row, Time, Verdict,
};
use churn::Gangs;
use hints::Hints;
use lacking::Lacking;
use parking::Parking;
use rows::{Moved, Rows};
use shortfall::{ShortCounts, Shortfalls, Split};
use std::{collections::BTreeMap, time::Duration};

/// What clusters ask for, and how much of it is missing.
#[derive(Clone, Debug)]
pub(crate) struct Demand {
    clusters: BTreeMap<ClusterId, ClusterDemand>,
    profiles: Interned<Profile>,
    /// Rows per interruption bucket.
    gauge: BTreeMap<Bucket, u32>,
    /// The Needs the last decision left short.
    short: Vec<Verdict>,
    /// How many those are, by what readers ask for.
    short_counts: ShortCounts,
    shortfalls: Shortfalls,
    lacking: Lacking,
    parking: Parking,
    hints: Hints,
    gangs: Gangs,
    /// See [`Defect::RollUpArrivalReset`].
    resets_arrivals: bool,
}

impl Demand {
    pub(crate) fn new(config: &ShardConfig) -> Self {
        Self {
            clusters: BTreeMap::new(),
            profiles: Interned::default(),
            gauge: BTreeMap::new(),
            short: Vec::new(),
            short_counts: ShortCounts::default(),
            shortfalls: Shortfalls::default(),
            lacking: Lacking::default(),
            parking: Parking::default(),
            hints: Hints::new(config.hint_interval),
            gangs: Gangs::default(),
            resets_arrivals: config.defect == Some(Defect::RollUpArrivalReset),
        }
    }

    pub(crate) fn is_ready(&self, cluster: &ClusterId) -> bool {
        self.clusters
            .get(cluster)
            .is_some_and(ClusterDemand::is_ready)
    }

    /// What one cluster was last believed to want.
    pub(crate) fn of(&self, cluster: &ClusterId) -> Option<&ClusterDemand> {
        self.clusters.get(cluster)
    }

    /// Every cluster that ever reported.
    pub(crate) fn clusters(&self) -> impl Iterator<Item = (&ClusterId, &ClusterDemand)> {
        self.clusters.iter()
    }

    /// Why nothing is acquired for a cluster.
    pub(crate) fn withheld(&self, cluster: &ClusterId) -> Option<Withheld> {
        self.clusters.get(cluster)?.withheld()
    }

    /// Rows per interruption bucket.
    pub(crate) fn gauge(&self) -> &BTreeMap<Bucket, u32> {
        &self.gauge
    }

    /// How rows differ from those a cluster has in force. Errs with the position of a row that cannot be
    /// summed. Whoever does not accept them lets them go with [`Self::discard`].
    pub(crate) fn propose(
        &mut self,
        cluster: &ClusterId,
        rows: Vec<Row>,
    ) -> Result<Proposal, usize> {
        match self.clusters.get(cluster) {
            Some(known) => known.propose(rows, &mut self.profiles),
            None => Rows::default().propose(rows, &mut self.profiles),
        }
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
        engine: &mut EngineRows<'_>,
    ) -> Replaced {
        let known = self.clusters.entry(cluster.clone()).or_default();
        let reset = self.resets_arrivals.then_some(now);
        let (moved, forgotten) = known.replace(cluster, proposal, &mut self.profiles, reset, now);
        let Moved {
            new, changed, gone, ..
        } = moved;
        for need in &new {
            *self
                .gauge
                .entry(need.row.profile.interruption())
                .or_default() += 1;
        }
        for need in &gone {
            let rows = self.gauge.entry(need.row.profile.interruption());
            let rows = rows.or_default();
            *rows = rows.saturating_sub(1);
        }
        let forgotten = match forgotten {
            // It is heard for the first time: the engine is told all of it.
            Some(forgotten) => {
                known.tell(cluster, engine);
                forgotten
            }
            None => {
                for need in &gone {
                    engine.remove(need);
                }
                for need in new.iter().chain(&changed) {
                    engine.put(need);
                }
                BTreeMap::new()
            }
        };
        for need in &gone {
            self.gangs.forget(&need.key());
        }
        Replaced {
            new,
            gone,
            forgotten,
        }
    }

    /// The rows in force were accepted again.
    pub(crate) fn accept_again(
        &mut self,
        cluster: &ClusterId,
        now: Time,
        engine: &mut EngineRows<'_>,
    ) -> Replaced {
        self.accept(cluster, Proposal::default(), now, engine)
    }

    /// Notes which roll-up is in force, once everything that follows from it is done.
    pub(crate) fn note_accepted(&mut self, cluster: &ClusterId, now: Time, rollup_id: String) {
        if let Some(known) = self.clusters.get_mut(cluster) {
            known.note_accepted(now, rollup_id);
        }
    }

    /// Notes why a roll-up was refused.
    pub(crate) fn note_refused(&mut self, cluster: &ClusterId, now: Time, reason: String) {
        let known = self.clusters.entry(cluster.clone()).or_default();
        known.note_refused(now, reason);
    }

    /// A cluster that is to be shown, whatever becomes of what it said.
    pub(crate) fn note_cluster(&mut self, cluster: ClusterId) {
        self.clusters.entry(cluster).or_default();
    }

    /// Forgets a cluster that has no rows.
    pub(crate) fn forget_cluster(&mut self, cluster: &ClusterId) {
        self.clusters.remove(cluster);
        self.lacking.forget_recalled(|one| one == cluster);
    }

    /// When a row of an earlier process arrived; `None` if it is gone.
    pub(crate) fn recall_arrival(&mut self, need: NeedKey, at: Option<Time>) {
        let known = self.clusters.entry(need.cluster).or_default();
        known.recall_arrival((need.fingerprint, need.group), at);
    }

    /// Notes why nothing is acquired for a cluster; the engine hears of it if that changes. Says whether
    /// it is another reason than before, or the cluster is not known.
    pub(crate) fn withhold(
        &mut self,
        cluster: &ClusterId,
        withheld: Option<Withheld>,
        engine: &mut EngineRows<'_>,
    ) -> bool {
        let Some(known) = self.clusters.get_mut(cluster) else {
            return true;
        };
        known.withhold(cluster, withheld, engine)
    }

    /// A machine serves this fingerprint: how long that took, once (PL-1).
    pub(crate) fn served(
        &mut self,
        cluster: &ClusterId,
        fingerprint: &Fingerprint,
        now: Time,
    ) -> Option<Duration> {
        self.clusters.get_mut(cluster)?.served(fingerprint, now)
    }

    /// The key a gang must agree on; `None` if it is not demanded.
    fn same_key(&self, gang: &NeedKey) -> Option<String> {
        let known = self.clusters.get(&gang.cluster)?;
        let mut equals = known.rows_of(&gang.group);
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
}

/// What is missing.
impl Demand {
    /// Takes in what a decision left short: shortfalls, ages, parking. Only a new decision is looked at;
    /// a cycle in which nothing changed ages what it had.
    pub(crate) fn review(&mut self, short: Option<Vec<Verdict>>, engine: &mut EngineRows<'_>) {
        if let Some(short) = short {
            self.short_counts = ShortCounts::of(&short);
            self.short = short;
        }
        let gangs = self.short.iter().filter(|verdict| is_gang(verdict));
        let stalled = gangs.map(|verdict| {
            let acquired = 0 < verdict.bootstrap + verdict.provision;
            (verdict.need.key(), acquired || verdict.same_satisfiable)
        });
        let changed: Vec<(NeedKey, bool)> = self.parking.review(stalled);
        let clusters = &self.clusters;
        let withheld = |cluster: &ClusterId| clusters.get(cluster)?.withheld();
        let short = self.short.iter().map(|verdict| Shortfall {
            need: (*verdict.need).clone(),
            deficit: verdict.residual.sub(&verdict.capacity_freed),
            age: 0,
            reason: verdict.unmet_reason,
            withheld: withheld(&verdict.need.cluster),
        });
        self.shortfalls
            .review(short.filter(|entry| !entry.deficit.is_zero()));
        for (key, parked) in changed {
            if let Some(known) = self.clusters.get_mut(&key.cluster) {
                known.park(&key, parked, engine);
            }
        }
    }

    /// Takes in which Needs are not served in full now.
    pub(crate) fn review_lacking(&mut self, lacking: impl IntoIterator<Item = NeedKey>, now: Time) {
        let clusters = &self.clusters;
        let is_heard =
            |cluster: &ClusterId| clusters.get(cluster).is_some_and(ClusterDemand::is_ready);
        self.lacking.review(lacking, is_heard, now);
    }

    /// Since when Needs have not been served in full, for whoever recalls it or writes it down.
    pub(crate) fn lacking_mut(&mut self) -> &mut Lacking {
        &mut self.lacking
    }

    /// The Needs that are not served in full, and since when.
    pub(crate) fn lacking(&self) -> &Lacking {
        &self.lacking
    }

    /// How many Needs the last decision left short.
    pub(crate) fn short(&self) -> usize {
        self.short.len()
    }

    /// Those of a cluster.
    pub(crate) fn short_of(&self, cluster: &ClusterId) -> u32 {
        self.short_counts.of_cluster(cluster)
    }

    /// Those with a reason.
    pub(crate) fn short_for(&self, reason: bigfleet_model::UnmetReason) -> u32 {
        self.short_counts.of_reason(reason)
    }

    /// What is missing for one Need, if anything is.
    pub(crate) fn shortfall(&self, need: &NeedKey) -> Option<&Shortfall> {
        self.shortfalls.get(need)
    }

    /// What is missing, Need by Need.
    pub(crate) fn shortfalls(&self) -> impl Iterator<Item = &Shortfall> {
        self.shortfalls.iter()
    }

    /// What is missing, as reported upward.
    pub(crate) fn reported_shortfalls(
        &self,
        has_free: impl FnMut(&Shortfall) -> bool,
    ) -> Vec<ReportedShortfall> {
        self.shortfalls.report(has_free)
    }

    /// How many fingerprints are short, by class.
    pub(crate) fn split(&self) -> Split {
        self.shortfalls.split()
    }

    /// For how many cycles a Need has been short.
    pub(crate) fn short_age(&self, key: &NeedKey) -> u32 {
        self.shortfalls.age(key)
    }

    /// For how many cycles a gang has made no progress.
    pub(crate) fn parked_age(&self, key: &NeedKey) -> u32 {
        self.parking.age(key)
    }

    /// How many gangs are parked.
    pub(crate) fn parked(&self) -> usize {
        self.parking.waiting()
    }
}

fn is_gang(verdict: &Verdict) -> bool {
    verdict.need.row.profile.same_key().is_some()
}

/// What one roll-up changed about which rows there are.
#[derive(Debug, Default)]
pub(crate) struct Replaced {
    pub(crate) new: Vec<Need>,
    pub(crate) gone: Vec<Need>,
    /// Rows an earlier process knew that are not there any more.
    pub(crate) forgotten: BTreeMap<(Fingerprint, Group), Time>,
}
