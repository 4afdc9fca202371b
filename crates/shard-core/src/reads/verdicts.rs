//! Verdicts: what a cycle decided about every Need.
//!
//! Verdicts cannot wait for a reader: as soon as a decision is committed the engine knows the fleet that
//! follows from it. So they are taken down in the cycle itself, for whoever may ask, and no reader waits for
//! a cycle. Taking them down costs as much as there are Needs; a cycle with more of them than a bound leaves
//! that to a later one, so that on average it costs a cycle no more than that bound.

use super::{Reads, views::BackoffView};
use crate::demand::Withheld;
use bigfleet_model::{Amounts, Time, Verdict};
use std::sync::Arc;

/// One Need and what the last cycle decided about it (VD-1).
#[derive(Clone, Debug, PartialEq)]
pub struct NeedView {
    /// The engine's verdict.
    pub verdict: Verdict,
    /// What is missing after what was preempted for it (V-8); zero when satisfied.
    pub unresolved: Amounts,
    /// Cycles in a row it has been short.
    pub age: u32,
    /// Cycles in a row without progress, for a gang.
    pub parked_age: u32,
    /// Why the shard holds back.
    pub withheld: Option<Withheld>,
    /// What its cluster's machines keep failing at, if that is why (SH-22).
    pub trouble: Option<BackoffView>,
}

/// What a cycle decided about every Need.
#[derive(Clone, Debug, PartialEq)]
pub struct Decided {
    /// Which cycle.
    pub cycle: u64,
    /// The moment it decided.
    pub at: Time,
    /// By priority descending, arrival, cluster, then the total order (VD-4).
    pub needs: Vec<NeedView>,
}

/// Verdicts that a cycle takes down on average, at most.
const PER_CYCLE: u64 = 1024;

/// The verdicts last taken down, and as of when they are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Verdicts {
    decided: Option<Arc<Decided>>,
    /// The last cycle that decided just that, and its moment.
    as_of: Option<(u64, Time)>,
    are_wanted: bool,
}

impl Verdicts {
    pub(crate) fn want(&mut self) {
        self.are_wanted = true;
    }

    /// Whether this cycle is to take verdicts down: its decision is another than the one they are of, and
    /// somebody asked, or enough cycles have passed.
    pub(crate) fn is_due(&mut self, cycle: u64, now: Time, is_new: bool) -> bool {
        let Some(decided) = &self.decided else {
            return true;
        };
        let is_current = self.as_of.is_some_and(|(as_of, _)| as_of + 1 == cycle);
        if is_current && !is_new {
            self.as_of = Some((cycle, now));
            return false;
        }
        let passed = cycle.saturating_sub(decided.cycle);
        let needs = decided.needs.len() as u64;
        self.are_wanted || needs <= passed.saturating_mul(PER_CYCLE)
    }

    pub(crate) fn put(&mut self, decided: Decided) {
        self.are_wanted = false;
        self.as_of = Some((decided.cycle, decided.at));
        self.decided = Some(Arc::new(decided));
    }

    pub(crate) fn get(&self) -> Option<&Arc<Decided>> {
        self.decided.as_ref()
    }

    pub(crate) fn as_of(&self) -> Option<(u64, Time)> {
        self.as_of
    }
}

impl Reads<'_> {
    /// Verdicts with the ages this cycle gave them.
    pub(crate) fn verdicts(&self, verdicts: Vec<Verdict>) -> Decided {
        let mut needs: Vec<NeedView> = verdicts
            .into_iter()
            .map(|verdict| self.need_view(verdict))
            .collect();
        needs.sort_by(|one, other| {
            let (one, other) = (&one.verdict.need, &other.verdict.need);
            let priority = |need: &bigfleet_model::Need| need.row.profile.priority();
            priority(other)
                .cmp(&priority(one))
                .then(one.arrival.cmp(&other.arrival))
                .then_with(|| one.cluster.cmp(&other.cluster))
        });
        Decided {
            cycle: self.schedule.cycle(),
            at: self.now,
            needs,
        }
    }

    fn need_view(&self, verdict: Verdict) -> NeedView {
        if verdict.satisfied {
            return NeedView {
                verdict,
                unresolved: Amounts::default(),
                age: 0,
                parked_age: 0,
                withheld: None,
                trouble: None,
            };
        }
        let key = verdict.need.key();
        let withheld = self.demand.withheld(&key.cluster);
        let is_troubled = withheld == Some(Withheld::BootstrapBackoff);
        NeedView {
            unresolved: verdict.residual.sub(&verdict.capacity_freed),
            age: self.demand.short_age(&key),
            parked_age: self.demand.parked_age(&key),
            trouble: self.join_trouble(&key.cluster).filter(|_| is_troubled),
            withheld,
            verdict,
        }
    }
}
