//! Verdicts: what a cycle decided about every Need.
//!
//! Verdicts cannot wait for a reader: as soon as a decision is committed the engine knows the fleet that
//! follows from it. So they are taken down in the cycle itself, but only in one that somebody asked for,
//! and then shared by all readers.

use super::{Reads, views::BackoffView};
use crate::demand::Withheld;
use bigfleet_model::{Amounts, Decision, Time, Verdict};
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

/// The verdicts last taken down, and whether somebody asked for newer ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Verdicts {
    decided: Option<Arc<Decided>>,
    are_wanted: bool,
}

impl Verdicts {
    pub(crate) fn want(&mut self) {
        self.are_wanted = true;
    }

    /// Whether this cycle is to take verdicts down; asked once.
    pub(crate) fn take_wanted(&mut self) -> bool {
        std::mem::take(&mut self.are_wanted)
    }

    pub(crate) fn put(&mut self, decided: Decided) {
        self.decided = Some(Arc::new(decided));
    }

    pub(crate) fn get(&self) -> Option<&Arc<Decided>> {
        self.decided.as_ref()
    }
}

impl Reads<'_> {
    /// Every verdict of a decision, with the ages this cycle gave them.
    pub(crate) fn verdicts(&self, decision: Decision) -> Decided {
        let mut needs: Vec<NeedView> = decision
            .needs
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
