//! InspectNeeds: demand, and what became of it in the last cycle (wire 6.18).

use bigfleet_model::{ClusterId, INSTANCE_TYPE_KEY, UnmetReason as Engine, ZONE_KEY};
use bigfleet_shard_core::{NeedView, Pool, Withheld};
use bigfleet_wire::v1alpha1::inspect_needs_response::Frame;
use bigfleet_wire::v1alpha1::{
    self as wire, InspectNeedsHeader, InspectNeedsRequest, InspectNeedsResponse, UnmetReason,
};
use bigfleet_wire::{reason_for, unix_nanos};
use tonic::Status;

use super::stream::{Cut, Out, count, limited};
use super::{Reads, cluster_filter, shortfall_text};

/// What is asked for, checked.
pub(super) struct NeedsFilter {
    cluster: Option<ClusterId>,
    limit: i32,
    new_reasons: bool,
}

impl NeedsFilter {
    pub(super) fn read(request: &InspectNeedsRequest) -> Result<Self, Status> {
        Ok(Self {
            cluster: cluster_filter(&request.cluster_id)?,
            limit: request.limit,
            new_reasons: request.accept_new_reasons,
        })
    }

    fn admits(&self, view: &NeedView) -> bool {
        let wanted = self.cluster.as_ref();
        wanted.is_none_or(|wanted| *wanted == view.verdict.need.cluster)
    }
}

pub(super) async fn send(
    reads: &Reads,
    wanted: &NeedsFilter,
    out: &Out<InspectNeedsResponse>,
) -> Result<(), Cut> {
    let frame = |frame| InspectNeedsResponse { frame: Some(frame) };
    let Some(decided) = reads.verdicts.recent(&reads.hub).await? else {
        // Not yet computed, which is not the same as no demand.
        let header = InspectNeedsHeader::default();
        return out.send(frame(Frame::Header(header))).await;
    };
    let waiting = reads.hub.ask(|core| core.rails().breakers).await?;
    let waiting: Vec<Pool> = waiting.into_iter().map(|one| one.pool).collect();
    let total = decided.needs.iter().filter(|view| wanted.admits(view));
    let total = total.count();
    let header = InspectNeedsHeader {
        cycle: decided.cycle.try_into().unwrap_or(i64::MAX),
        computed_at_unix_nanos: unix_nanos(decided.at),
        total_needs: count(total),
    };
    out.send(frame(Frame::Header(header))).await?;
    let rows = decided.needs.iter().filter(|view| wanted.admits(view));
    for view in rows.take(limited(wanted.limit, total)) {
        let row = message(view, &waiting, wanted.new_reasons);
        out.send(frame(Frame::Need(row))).await?;
    }
    Ok(())
}

/// A row and its verdict, for a reader that knows our reasons or does not.
pub(super) fn message(view: &NeedView, waiting: &[Pool], new_reasons: bool) -> wire::NeedView {
    let reason = reason(view, waiting);
    let parked = view.verdict.parked && !view.verdict.satisfied;
    wire::NeedView {
        parked_age_cycles: count(if parked { view.parked_age as usize } else { 0 }),
        age_cycles_unmet: count(view.age as usize),
        unmet_reason: reason_for(reason, new_reasons).into(),
        reason_detail: shortfall_text::shortfall(view, reason),
        ..(&view.verdict).into()
    }
}

/// Why a row is short: what the shard itself holds back first, since the engine only sees that
/// nothing may be acquired. Where nothing fits, nothing is held back.
pub(super) fn reason(view: &NeedView, waiting: &[Pool]) -> UnmetReason {
    let verdict = &view.verdict;
    match (verdict.unmet_reason, view.withheld) {
        (reason @ (Engine::Unspecified | Engine::NoMatchingSupply), _) => reason.into(),
        (_, Some(Withheld::NoOperatorSession)) => UnmetReason::NoOperatorSession,
        (_, Some(Withheld::ActuationPaused)) => UnmetReason::ActuationPaused,
        (_, Some(Withheld::BootstrapBackoff)) => UnmetReason::ProviderBackoff,
        // Slots that fit and are not taken, while a pool that may fit is left alone.
        (Engine::PriorityStarved, None)
            if 0 < verdict.matching_supply.speculative
                && waiting.iter().any(|pool| may_use(view, pool)) =>
        {
            UnmetReason::ProviderBackoff
        }
        (reason, None) => reason.into(),
    }
}

/// Whether machines of a pool fit, as far as its type and zone tell.
fn may_use(view: &NeedView, pool: &Pool) -> bool {
    let requirements = view.verdict.need.row.profile.requirements();
    requirements.iter().all(|one| match one.key() {
        INSTANCE_TYPE_KEY => one.accepts(Some(&pool.instance_type)),
        ZONE_KEY => one.accepts(Some(&pool.zone)),
        _ => true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::shortfall_text::tests::view;

    #[test]
    fn what_the_shard_holds_back_comes_before_what_the_engine_saw() {
        let mut starved = view(Engine::PriorityStarved);
        for (withheld, reason) in [
            (Withheld::NoOperatorSession, UnmetReason::NoOperatorSession),
            (Withheld::ActuationPaused, UnmetReason::ActuationPaused),
            (Withheld::BootstrapBackoff, UnmetReason::ProviderBackoff),
        ] {
            starved.withheld = Some(withheld);
            let shown = message(&starved, &[], true);
            assert_eq!(shown.unmet_reason, i32::from(reason));
            let old = message(&starved, &[], false);
            assert_eq!(old.unmet_reason, i32::from(UnmetReason::PriorityStarved));
            assert_eq!(old.reason_detail, shown.reason_detail);
        }
        let mut unfit = view(Engine::NoMatchingSupply);
        unfit.withheld = Some(Withheld::NoOperatorSession);
        assert_eq!(reason(&unfit, &[]), UnmetReason::NoMatchingSupply);
    }

    #[test]
    fn a_pool_left_alone_is_the_reason_only_if_slots_fit_and_wait() {
        let pool = Pool {
            instance_type: "m5".to_owned(),
            zone: "a".to_owned(),
        };
        let mut starved = view(Engine::PriorityStarved);
        let pools = std::slice::from_ref(&pool);
        assert_eq!(reason(&starved, pools), UnmetReason::PriorityStarved);
        starved.verdict.matching_supply.speculative = 3;
        assert_eq!(reason(&starved, pools), UnmetReason::ProviderBackoff);
        assert_eq!(reason(&starved, &[]), UnmetReason::PriorityStarved);
    }
}
