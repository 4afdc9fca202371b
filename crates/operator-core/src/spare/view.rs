//! What spares are decided from.

use crate::{
    defect::Defect,
    demand::class::{Size, UnitClass},
    objects::{NodeFacts, ObjectKey, Owner, StuckReason},
};
use bigfleet_model::{Amounts, Group, Profile, Time};
use std::{collections::BTreeMap, sync::Arc, time::Duration};

const EMPTY_FOR: Duration = Duration::from_secs(30);

/// A request whose Pod is stuck, or was.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    pub(crate) key: ObjectKey,
    pub(crate) uid: String,
    pub(crate) owner: Option<Owner>,
    pub(crate) profile: Arc<Profile>,
    pub(crate) unit: Amounts,
    pub(crate) acknowledged: Option<Time>,
    pub(crate) reason: StuckReason,
    /// The sum at which an earlier process found it unplaceable.
    pub(crate) unplaceable: Option<Size>,
}

/// A profile and what its plain requests ask for.
#[derive(Clone, Debug)]
pub(crate) struct Wants {
    pub(crate) profile: Arc<Profile>,
    pub(crate) units: BTreeMap<Amounts, u64>,
    /// Requests that came since the process began.
    pub(crate) came: u64,
}

impl Wants {
    pub(super) fn sum_of(&self, fits: impl Fn(&Amounts) -> bool) -> Amounts {
        let units = self.units.iter().filter(|(unit, _)| fits(unit));
        units.fold(Amounts::NONE, |sum, (unit, count)| {
            sum.add(&unit.scale(i64::try_from(*count).unwrap_or(i64::MAX)))
        })
    }

    pub(super) fn size(&self) -> Size {
        Size::of(&self.sum_of(|_| true))
    }

    pub(super) fn class_sum(&self, class: &UnitClass) -> Amounts {
        self.sum_of(|unit| UnitClass::of(unit) == *class)
    }
}

/// A machine that is on its way or leaves.
#[derive(Clone, Debug)]
pub(crate) struct Underway {
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) resources: Amounts,
    pub(crate) first_seen: Time,
    pub(crate) is_leaving: bool,
}

/// What the shard says of a row: whether it misses nothing, and whether nothing is coming.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowWord {
    pub(crate) misses_nothing: bool,
    pub(crate) nothing_coming: bool,
}

/// What the shard says of the row of a profile and group, if anything.
pub(crate) type RowWords<'a> = Box<dyn Fn(&Profile, &Group) -> Option<RowWord> + 'a>;

/// Everything spares are decided from.
pub(crate) struct SpareView<'a> {
    pub(crate) wants: Vec<Wants>,
    pub(crate) pending: Vec<Pending>,
    pub(crate) nodes: Vec<&'a NodeFacts>,
    pub(crate) underway: Vec<Underway>,
    /// What the shard says of a row of this profile and group; `None` if it says nothing of rows at all.
    pub(crate) word: Option<RowWords<'a>>,
    /// Rows are split by unit class.
    pub(crate) by_class: bool,
    pub(crate) consolidate: bool,
    pub(crate) defect: Option<Defect>,
}

pub(super) fn accepts(profile: &Profile, labels: &BTreeMap<String, String>) -> bool {
    profile
        .requirements()
        .iter()
        .all(|need| need.accepts(labels.get(need.key()).map(String::as_str)))
}

pub(super) fn is_host(node: &NodeFacts, profile: &Profile) -> bool {
    node.is_ready && !node.is_cordoned && accepts(profile, &node.labels)
}

/// Nodes that could hold so much of the Pod's profile.
pub(super) fn hosts<'a>(
    pod: &Pending,
    amount: &Amounts,
    view: &SpareView<'a>,
) -> impl Iterator<Item = &'a NodeFacts> {
    let could = |node: &&&NodeFacts| is_host(node, &pod.profile) && node.allocatable.covers(amount);
    view.nodes.iter().filter(could).copied()
}

/// Those of them that are empty.
pub(super) fn empty_hosts<'a>(
    now: Time,
    pod: &Pending,
    amount: &Amounts,
    view: &SpareView<'a>,
) -> impl Iterator<Item = &'a NodeFacts> {
    hosts(pod, amount, view).filter(move |node| {
        let is_old = |since: Time| EMPTY_FOR <= now.duration_since(since);
        node.empty_since.is_some_and(is_old) && is_old(node.ready_since)
    })
}

pub(super) fn sum<'a>(amounts: impl Iterator<Item = &'a Amounts>) -> Amounts {
    amounts.fold(Amounts::NONE, |sum, one| sum.add(one))
}
