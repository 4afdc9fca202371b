//! Orders: T over Needs (O-1), and keep order over machines (RF-2).

use crate::world::Unit;
use bigfleet_model::{
    Bucket, ClusterId, Dollars, Fingerprint, Group, MachineId, Need, Price, Profile, Time,
};
use std::{cmp::Reverse, sync::Arc};

/// O-1: priority desc, interruption bucket desc, reclamation bucket desc, arrival asc, cluster,
/// fingerprint, group, min_unit key, aggregate key. The profile itself comes last: it tells rows
/// apart whose texts collide, so that listing order never matters (D-2).
pub(crate) fn total_order(need: &Need) -> impl Ord + use<> {
    type Rank = (Reverse<i32>, Reverse<Bucket>, Reverse<Bucket>, Option<Time>);
    type Key = (ClusterId, Fingerprint, Group);
    let profile = &need.row.profile;
    let rank: Rank = (
        Reverse(profile.priority()),
        Reverse(profile.interruption()),
        Reverse(profile.reclamation()),
        need.arrival,
    );
    let key: Key = (
        need.cluster.clone(),
        profile.fingerprint().clone(),
        need.row.group.clone(),
    );
    let amounts = (need.row.min_unit.key(), need.row.aggregate.key());
    let last: Arc<Profile> = Arc::clone(profile);
    (rank, key, amounts, last)
}

/// RF-2, without the id: keep price asc, reclamation penalty desc. For a machine with an intent
/// both are the intent's.
pub(crate) fn keep_order(unit: &Unit<'_>) -> (Price, Reverse<Dollars>) {
    let (price, penalty, _id) = unit.machine().keep_key();
    (price, penalty)
}

/// RF-2 for a machine whose drain may be taken back: an intent that ended is none, so both are those of the
/// time it was bound.
pub(crate) fn restore_order(unit: &Unit<'_>) -> (Price, Reverse<Dollars>) {
    let assigned = unit.machine().assignment();
    let price = assigned.keep_price.unwrap_or(unit.machine().price());
    (price, Reverse(assigned.terms.reclamation))
}

/// RF-2.
pub(crate) fn keep_order_with_id<'a>(
    unit: &Unit<'a>,
) -> ((Price, Reverse<Dollars>), &'a MachineId) {
    (keep_order(unit), unit.id())
}
