//! Probes: how many of a cycle's acquisitions may be tried while a breaker knows of trouble (SH-22).
//!
//! ```text
//! decided ─▶ machine type and zone open? ─▶ cluster open? ─▶ its budget ─▶ one, some or all are committed
//! ```
//!
//! A machine that is already there is tried before one that would have to be bought, and that before one
//! that would have to be drained for it. What is not tried commits nothing and derives again.

use super::{
    Pool,
    admission::gang,
    breaker::{BreakerKey, Breakers, Spent},
};
use bigfleet_model::{Action, ActionKind, ClusterId, MachineId, NeedKey, Time};
use std::collections::{BTreeMap, BTreeSet};

/// Acquisitions under way.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    pub(crate) of_cluster: BTreeMap<ClusterId, usize>,
    /// Machines that are configured and not Ready nodes yet, of clusters whose nodes are in trouble.
    pub(crate) awaited_nodes: BTreeMap<ClusterId, usize>,
    pub(crate) of_pool: BTreeMap<Pool, usize>,
    /// Creates of an earlier process whose machines were not seen yet: they may be of any pool.
    pub(crate) of_unknown_pool: usize,
}

impl InFlight {
    fn operations(&self, cluster: &ClusterId) -> usize {
        self.of_cluster.get(cluster).copied().unwrap_or(0)
    }

    /// Whether something is under way for a cluster of which it is not known how it ends.
    pub(crate) fn is_probing(&self, cluster: &ClusterId) -> bool {
        let awaited = self.awaited_nodes.get(cluster).copied().unwrap_or(0);
        0 < self.operations(cluster) + awaited
    }

    pub(crate) fn creates(&self, pool: &Pool) -> usize {
        self.of_pool.get(pool).copied().unwrap_or(0) + self.of_unknown_pool
    }
}

/// How many more may be tried of one cluster or pool.
type Room<K> = BTreeMap<K, usize>;

/// Takes out the acquisitions that may not be tried now; notes and returns the clusters that have spent
/// their budget.
pub(super) fn limit(
    actions: &mut Vec<Action>,
    breakers: &Breakers,
    spent: &mut Spent,
    now: Time,
    in_flight: &InFlight,
    pool_of: impl Fn(&MachineId) -> Option<Pool>,
) -> Vec<ClusterId> {
    let mut exhausted = Vec::new();
    let mut wanted: BTreeMap<&ClusterId, usize> = BTreeMap::new();
    for cluster in actions.iter().filter_map(for_cluster) {
        *wanted.entry(cluster).or_default() += 1;
    }
    let mut clusters: Room<ClusterId> = BTreeMap::new();
    for (cluster, wanted) in wanted {
        let under_way = in_flight.operations(cluster);
        let mut left = spent.left(cluster, wanted + under_way, under_way);
        // After a machine that joined the next may be tried, however much was spent before it.
        if under_way == 0 && breakers.joins(cluster).next().is_none() {
            left = left.max(1);
        }
        // What is under way may yet come right, or be taken back.
        if left == 0 && under_way == 0 {
            spent.exhaust(cluster);
            exhausted.push(cluster.clone());
        }
        let mut joins = breakers.joins(cluster);
        let room = if joins.any(|(_, one)| now < one.until) {
            0
        } else if breakers.joins(cluster).any(|(_, one)| one.is_open()) {
            left.min(usize::from(!in_flight.is_probing(cluster)))
        } else {
            left
        };
        clusters.insert(cluster.clone(), room);
    }
    let mut pools: Room<Pool> = BTreeMap::new();
    for (key, known) in breakers.iter() {
        if let BreakerKey::Create(pool) = key
            && (known.is_open() || now < known.until)
        {
            let is_due = known.until <= now && in_flight.creates(pool) == 0;
            pools.insert(pool.clone(), usize::from(is_due));
        }
    }
    let mut order: Vec<usize> = (0..actions.len()).collect();
    order.sort_by_key(|at| actions[*at].kind); // Bootstrap, Provision, Preempt
    let mut refused = BTreeSet::new();
    let mut gangs: BTreeMap<&NeedKey, bool> = BTreeMap::new();
    for at in order {
        let action = &actions[at];
        let Some(cluster) = for_cluster(action) else {
            continue;
        };
        let pool = pool_of(&action.machine).filter(|_| action.kind == ActionKind::Provision);
        let pool = pool.filter(|pool| pools.contains_key(pool));
        let has_pool = pool.as_ref().is_none_or(|pool| 0 < pools[pool]);
        let room = clusters.get(cluster).copied().unwrap_or(0);
        let mut is_tried = 0 < room && has_pool;
        // The Preempts of a gang stand or fall together (SH-2).
        if let Some(gang) = gang(action) {
            is_tried = *gangs.entry(gang).or_insert(is_tried);
        }
        if !is_tried {
            refused.insert(at);
            continue;
        }
        clusters.insert(cluster.clone(), room.saturating_sub(1));
        if let Some(pool) = pool {
            pools.insert(pool, 0);
        }
    }
    drop(gangs);
    let mut at = 0;
    actions.retain(|_| {
        at += 1;
        !refused.contains(&(at - 1))
    });
    exhausted
}

/// The cluster an acquisition is for; `None` for anything else.
fn for_cluster(action: &Action) -> Option<&ClusterId> {
    match action.kind {
        ActionKind::Bootstrap | ActionKind::Provision | ActionKind::Preempt => {
            let meant = action.purpose.as_ref().map(|(need, _)| &need.cluster);
            meant.or(action.cluster.as_ref())
        }
        ActionKind::Reclaim | ActionKind::Delete | ActionKind::Restore => None,
    }
}
