//! Counters: what is published of a shard, as plain numbers kept as things happen.
//!
//! Series are bounded by their types: kinds, outcomes, states, buckets. Only those per
//! cluster grow, with the number of clusters. A series that empties stays at zero (shard.md §8).

use crate::{audit::Outcome, core::LateAnswer, demand::Churn};
use bigfleet_model::{ActionKind, ClusterId};
use std::collections::BTreeMap;

/// Why provider records were refused, by rejection label.
pub type Rejections = BTreeMap<&'static str, u64>;

/// Numbers that only grow, and gauges set each cycle (`docs/metrics.md`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counters {
    /// `actions_total`: committed, by kind.
    pub actions: BTreeMap<ActionKind, u64>,
    /// `action_execute_outcomes_total`.
    pub outcomes: BTreeMap<(ActionKind, Outcome), u64>,
    /// `actions_deferred_total`: cut by the cycle's own limit or by admission.
    pub deferred: u64,
    /// `actions_suppressed_total`, by kind.
    pub suppressed: BTreeMap<ActionKind, u64>,
    /// `actions_dryrun_total`, by kind.
    pub dry_run: BTreeMap<ActionKind, u64>,
    /// `reclaims_capped_total`.
    pub reclaims_capped: u64,
    /// The same, by cluster.
    pub reclaims_capped_of: BTreeMap<ClusterId, u64>,
    /// Drains that began without an operator to evict.
    pub drain_fallbacks: u64,
    /// `idle_releases_total`: Speculative reached.
    pub idle_releases: u64,
    /// `machines_rejected_total`, by label.
    pub machines_rejected: Rejections,
    /// `rollups_rejected_total`, by cluster.
    pub rollups_rejected: BTreeMap<ClusterId, u64>,
    /// `rollup_quarantined`, by cluster: roll-ups held in a row.
    pub rollups_held: BTreeMap<ClusterId, u32>,
    /// Sessions that began without one before them.
    pub sessions_installed: u64,
    /// Sessions that ended.
    pub sessions_removed: u64,
    /// Sessions that took another's place.
    pub sessions_replaced: u64,
    /// `session_identity_rejected_total`.
    pub identity_rejected: u64,
    /// Machines whose state was taken over from the provider outside our own steps.
    pub adoptions: u64,
    /// Machines bound to somebody else than asked.
    pub conflicts: u64,
    /// Records of machines that are not ours.
    pub foreign: u64,
    /// Unbound machines that were let go because they are another shard's to have.
    pub let_go: u64,
    /// Machines removed from the ledger.
    pub removed: u64,
    /// Operations taken back because nothing had left.
    pub rollbacks: u64,
    /// Reclaims given up at their deadline.
    pub drains_blocked: u64,
    /// Calls sent again.
    pub retries: u64,
    /// Times a pool's breaker opened.
    pub breakers_opened: u64,
    /// Deletes decided for machines whose provider cannot delete.
    pub deletes_unsupported: u64,
    /// Commitments that changed without an action.
    pub restamps: u64,
    /// Intents that ended.
    pub intents_ended: u64,
    /// Records handed out to be persisted.
    pub records: u64,
    /// Machines committed to gangs (shard.md §8).
    pub gang_joined: u64,
    /// Machines that left gangs.
    pub gang_left: u64,
    /// Times a gang's next machine was in another domain.
    pub gang_flips: u64,
    /// Things that happened and cannot: anything but zero, and the shard has stopped itself.
    pub incidents: u64,
    /// Notices of providers that are in the far past, too far ahead, or of machines that serve nobody.
    pub odd_notices: BTreeMap<&'static str, u64>,
    /// Answers nobody waited for any more.
    pub late_answers: BTreeMap<LateAnswer, u64>,
}

impl Counters {
    pub(crate) fn acted(&mut self, kind: ActionKind) {
        *self.actions.entry(kind).or_default() += 1;
    }

    pub(crate) fn gangs_moved(&mut self, churn: Churn) {
        self.gang_joined += u64::from(churn.joined);
        self.gang_left += u64::from(churn.left);
        self.gang_flips += u64::from(churn.flipped);
    }

    /// Drops the series of a cluster that is forgotten.
    pub(crate) fn forget_cluster(&mut self, cluster: &ClusterId) {
        self.reclaims_capped_of.remove(cluster);
        self.rollups_rejected.remove(cluster);
        self.rollups_held.remove(cluster);
    }

    pub(crate) fn ended(&mut self, kind: ActionKind, outcome: Outcome) {
        debug_assert!(Outcome::ENDS.contains(&outcome), "{outcome:?} is no end");
        *self.outcomes.entry((kind, outcome)).or_default() += 1;
    }
}
