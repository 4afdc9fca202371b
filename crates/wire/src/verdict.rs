//! Verdict: what a cycle decided about a Need, as readers see it.

use bigfleet_model::{DomainCoverage, MatchingSupply, Time, Verdict};

use crate::amounts::stated;
use crate::v1alpha1::{self, NeedView, PreemptionSummary, UnmetReason};

impl From<&Verdict> for NeedView {
    /// All that the verdict knows. What serves, comes and is stuck is the ledger's, and so are ages: they stay
    /// empty, as does the detail in words.
    fn from(verdict: &Verdict) -> Self {
        let need = &verdict.need;
        let short = !verdict.satisfied;
        let victims = short && 0 < verdict.victims_found;
        Self {
            need: Some((&need.row).into()),
            cluster_id: need.cluster.to_string(),
            arrival_unix_nanos: need.arrival.map_or(0, unix_nanos),
            profile_fingerprint: need.row.profile.fingerprint().to_string(),
            satisfied: verdict.satisfied,
            residual_deficit: stated(&verdict.residual).filter(|_| short),
            claimed_machine_count: count(verdict.claimed),
            bootstrap_count: count(verdict.bootstrap),
            provision_count: count(verdict.provision),
            same_domain: verdict.same_domain.clone(),
            same_satisfiable: verdict.same_satisfiable,
            acquisition_parked: verdict.parked,
            unmet_reason: UnmetReason::from(verdict.unmet_reason).into(),
            matching_supply: short.then(|| (&verdict.matching_supply).into()),
            preemption: victims.then(|| PreemptionSummary {
                victims_found: count(verdict.victims_found),
                capacity_freed: stated(&verdict.capacity_freed),
            }),
            same_candidates: verdict.same_candidates.iter().map(Into::into).collect(),
            ..Self::default()
        }
    }
}

impl From<&MatchingSupply> for v1alpha1::MatchingSupply {
    fn from(supply: &MatchingSupply) -> Self {
        Self {
            idle: count(supply.idle),
            configured: count(supply.configured),
            speculative: count(supply.speculative),
            capped: supply.capped,
        }
    }
}

impl From<&DomainCoverage> for v1alpha1::DomainCoverage {
    fn from(coverage: &DomainCoverage) -> Self {
        Self {
            domain: coverage.domain.clone(),
            coverage_per_mille: count(coverage.coverage_per_mille),
            satisfiable: coverage.satisfiable,
        }
    }
}

impl From<bigfleet_model::UnmetReason> for UnmetReason {
    fn from(reason: bigfleet_model::UnmetReason) -> Self {
        use bigfleet_model::UnmetReason as Model;
        match reason {
            Model::Unspecified => Self::Unspecified,
            Model::PriorityStarved => Self::PriorityStarved,
            Model::NoMatchingSupply => Self::NoMatchingSupply,
            Model::TopologyUnsatisfiable => Self::TopologyUnsatisfiable,
            Model::PreemptionExhausted => Self::PreemptionExhausted,
            Model::SpreadUnsatisfiable => Self::SpreadUnsatisfiable,
        }
    }
}

/// The reason as a reader can take it: one that predates our reasons gets PRIORITY_STARVED in their
/// place, and reads the difference in `reason_detail` (wire 12).
pub fn reason_for(reason: UnmetReason, accepts_new: bool) -> UnmetReason {
    match reason {
        UnmetReason::Unspecified
        | UnmetReason::PriorityStarved
        | UnmetReason::NoMatchingSupply
        | UnmetReason::TopologyUnsatisfiable
        | UnmetReason::PreemptionExhausted => reason,
        UnmetReason::SpreadUnsatisfiable
        | UnmetReason::NoOperatorSession
        | UnmetReason::ProviderBackoff
        | UnmetReason::ActuationPaused => {
            if accepts_new {
                reason
            } else {
                UnmetReason::PriorityStarved
            }
        }
    }
}

/// A moment of a model whose origin is the Unix epoch. Before the epoch is 0, which is "not stated".
pub fn unix_nanos(moment: Time) -> i64 {
    moment.nanos().max(0)
}

fn count(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bigfleet_model::{Amounts, ClusterId, Dimension, Need, RowFacts};
    use std::sync::Arc;

    fn verdict(satisfied: bool) -> Verdict {
        let cpu = |milli| Amounts::from_entries([(Dimension::new("cpu").unwrap(), milli)]);
        let need = Need {
            cluster: ClusterId::new("a").unwrap(),
            row: RowFacts::default().check().unwrap(),
            arrival: Time::from_seconds(2.5),
            parked: false,
        };
        Verdict {
            need: Arc::new(need),
            satisfied,
            residual: cpu(1500),
            claimed: 3,
            bootstrap: 2,
            provision: 1,
            same_domain: String::new(),
            same_satisfiable: false,
            parked: false,
            victims_found: u32::MAX,
            capacity_freed: cpu(4000),
            unmet_reason: bigfleet_model::UnmetReason::SpreadUnsatisfiable,
            matching_supply: MatchingSupply::capped(5, 2000, 7),
            same_candidates: vec![],
        }
    }

    #[test]
    fn a_short_need_says_what_is_missing_and_why() {
        let view = NeedView::from(&verdict(false));
        assert_eq!(view.profile_fingerprint, "p=0|ipb=0|rpb=0|reqs=|spr=");
        assert_eq!(view.arrival_unix_nanos, 2_500_000_000);
        assert_eq!(view.residual_deficit.unwrap().resources["cpu"], "1500m");
        let supply = view.matching_supply.unwrap();
        assert_eq!(
            (supply.idle, supply.speculative, supply.capped),
            (5, 1000, true)
        );
        assert_eq!(view.preemption.unwrap().victims_found, i32::MAX);
        assert_eq!(view.unmet_reason, 1000);
    }

    #[test]
    fn a_covered_need_states_no_shortage() {
        let view = NeedView::from(&verdict(true));
        assert_eq!(view.residual_deficit, None);
        assert_eq!(view.matching_supply, None);
        assert_eq!(view.preemption, None);
    }

    #[test]
    fn old_readers_get_only_reasons_they_know() {
        for number in [0, 1, 2, 3, 4, 1000, 1001, 1002, 1003] {
            let reason = UnmetReason::try_from(number).unwrap();
            assert_eq!(reason_for(reason, true), reason);
            let known = if number < 1000 { number } else { 1 };
            assert_eq!(reason_for(reason, false) as i32, known);
        }
    }

    #[test]
    fn moments_before_the_epoch_are_not_stated() {
        let at = |nanos| unix_nanos(Time::from_nanos(nanos));
        assert_eq!((at(-1), at(0), at(1)), (0, 0, 1));
        assert_eq!((at(i64::MIN), at(i64::MAX)), (0, i64::MAX));
    }
}
