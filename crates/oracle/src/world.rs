//! The world of one cycle: machines with their attribution, and the Needs in their order.
//!
//! Nothing here changes during the cycle; what changes is in the ledger.

use bigfleet_model::{
    Amounts, ClusterId, Dimension, Fleet, FleetMachine, Machine, MachineId, Need, NeedKey, State,
    Terms,
};
use std::{borrow::Cow, sync::Arc};

/// A machine and whom it is committed to (RF-1).
#[derive(Clone, Debug)]
pub(crate) struct Unit<'a> {
    /// The record and what the shard knows beside it.
    pub(crate) fleet: &'a FleetMachine,
    /// The row the recorded attribution passes to, where it names none (RF-1).
    pub(crate) heir: Option<(NeedKey, Terms)>,
    /// The attribution in force: the heir if there is one, else what is recorded.
    pub(crate) attribution: Option<NeedKey>,
    /// The intent ended before the pass (RF-1).
    pub(crate) ended: bool,
}

impl<'a> Unit<'a> {
    pub(crate) fn machine(&self) -> &'a Machine {
        &self.fleet.machine
    }

    pub(crate) fn id(&self) -> &'a MachineId {
        self.machine().id()
    }

    pub(crate) fn state(&self) -> State {
        self.machine().state()
    }

    pub(crate) fn allocatable(&self) -> &'a Amounts {
        self.machine().shape().effective()
    }

    /// `not_ready` means nothing outside Configured and Configuring (RF-1). What leaves `now` is as good as
    /// that (RF-21).
    pub(crate) fn not_ready(&self) -> bool {
        self.fleet.is_uncounted()
    }

    /// RF-21: no mark says that it leaves.
    pub(crate) fn stays(&self) -> bool {
        self.fleet.leaving.is_none()
    }

    /// RF-21: bound, and a last resort.
    pub(crate) fn leaves_soon(&self) -> bool {
        self.fleet.leaves_soon()
    }

    /// Bound to this cluster: Configured or Configuring.
    pub(crate) fn bound_to(&self, cluster: &ClusterId) -> bool {
        self.state().is_bound() && self.machine().cluster() == Some(cluster)
    }

    /// Its drain can be taken back: the shard says so, and it is meant for nobody (RF-20).
    pub(crate) fn can_be_restored(&self) -> bool {
        self.fleet.is_reversible() && self.without_intent()
    }

    /// Without intent: none recorded, or the one recorded has ended (RF-1).
    pub(crate) fn without_intent(&self) -> bool {
        self.machine().intent().is_none() || self.ended
    }

    /// The value of a topology key; an empty one is no domain (RF-6, RF-9).
    pub(crate) fn domain(&self, key: &str) -> Option<&'a str> {
        let value = self.machine().shape().attribute(key);
        value.filter(|value| !value.is_empty())
    }
}

/// The input of a cycle, normalised.
#[derive(Debug)]
pub(crate) struct World<'a> {
    /// As given.
    pub(crate) fleet: &'a Fleet,
    /// By id.
    pub(crate) units: Vec<Unit<'a>>,
    /// After folding, in the total order (O-1). A Need's *rank* is its place here.
    pub(crate) needs: Vec<Arc<Need>>,
}

impl World<'_> {
    /// RF-1, but for who claims it: bound to the Need's cluster and not `not_ready`; RF-21: nor one that leaves
    /// `soon` and is attributed to a Need of this cycle.
    pub(crate) fn may_be_leftover(&self, need: &Need, unit: &Unit<'_>) -> bool {
        let is_own = || {
            unit.attribution
                .as_ref()
                .is_some_and(|key| self.has_need(key))
        };
        unit.bound_to(&need.cluster) && !unit.not_ready() && !(unit.leaves_soon() && is_own())
    }

    /// Whether a Need of this identity is among this cycle's.
    pub(crate) fn has_need(&self, key: &NeedKey) -> bool {
        self.needs.iter().any(|need| need.key() == *key)
    }
}

/// A cluster that is not in the fleet has not reported (engine.md §22.3 no. 6).
pub(crate) fn is_ready(fleet: &Fleet, cluster: &ClusterId) -> bool {
    fleet.clusters.get(cluster).is_some_and(|found| found.ready)
}

/// Whether machines may be acquired for a cluster (RF-16).
pub(crate) fn may_acquire(fleet: &Fleet, cluster: &ClusterId) -> bool {
    fleet
        .clusters
        .get(cluster)
        .is_none_or(|found| found.acquire)
}

/// RM-3: match, and the min-unit floor.
pub(crate) fn can_use(need: &Need, unit: &Unit<'_>) -> bool {
    let shape = unit.machine().shape();
    shape.serves(&need.row.profile, &need.row.min_unit)
}

/// A gang is a Need with a Same requirement.
pub(crate) fn is_gang(need: &Need) -> bool {
    need.row.profile.same_key().is_some()
}

/// `parked` counts on Same Needs only (engine.md §22.3 no. 4).
pub(crate) fn is_parked(need: &Need) -> bool {
    need.parked && is_gang(need)
}

/// The domain of a machine for a gang; `None` for a plain Need.
pub(crate) fn domain_of<'a>(need: &Need, unit: &Unit<'a>) -> Option<&'a str> {
    unit.domain(need.row.profile.same_key()?)
}

/// Whether a machine lies where the Need is served: anywhere for a plain Need, in `domain` for a
/// gang (S-2).
pub(crate) fn lies_in(need: &Need, unit: &Unit<'_>, domain: &str) -> bool {
    !is_gang(need) || domain_of(need, unit) == Some(domain)
}

/// What a machine counts with for a Need (RF-19): its allocatable; if the row asks for whole units, as many
/// of them as it holds, and all of what a unit does not have.
pub(crate) fn credit<'a>(need: &Need, unit: &Unit<'a>) -> Cow<'a, Amounts> {
    let (allocatable, min_unit) = (unit.allocatable(), &need.row.min_unit);
    if !need.row.whole_units {
        return Cow::Borrowed(allocatable);
    }
    let fit = |(name, milli): (&Dimension, i128)| allocatable.get(name.as_str()) / milli;
    let units = min_unit.iter().map(fit).min().unwrap_or(0);
    let of_units = min_unit
        .iter()
        .map(|(name, milli)| (name.clone(), milli * units));
    let others = allocatable
        .iter()
        .filter(|(name, _)| min_unit.get(name.as_str()) == 0);
    let others = others.map(|(name, milli)| (name.clone(), milli));
    Cow::Owned(Amounts::from_entries(of_units.chain(others)))
}

/// The sum of what these machines count with for a Need.
pub(crate) fn credits<'w, 'a: 'w>(
    need: &Need,
    units: impl IntoIterator<Item = &'w Unit<'a>>,
) -> Amounts {
    let add = |sum: Amounts, unit: &Unit<'_>| sum.add(&credit(need, unit));
    units.into_iter().fold(Amounts::NONE, add)
}

/// The sum of what these machines offer.
pub(crate) fn sum<'w, 'a: 'w>(units: impl IntoIterator<Item = &'w Unit<'a>>) -> Amounts {
    let add = |sum: Amounts, unit: &Unit<'_>| sum.add(unit.allocatable());
    units.into_iter().fold(Amounts::NONE, add)
}
