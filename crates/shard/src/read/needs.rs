//! InspectNeeds: demand, and what became of it in the last cycle (wire 6.18).

use std::sync::Arc;

use bigfleet_model::{
    Amounts, ClusterId, INSTANCE_TYPE_KEY, NeedKey, Time, UnmetReason as Engine, ZONE_KEY,
};
use bigfleet_shard_core::{NeedStage, NeedView, Pool, Progress, Withheld};
use bigfleet_wire::v1alpha1::inspect_needs_response::Frame;
use bigfleet_wire::v1alpha1::{
    self as wire, InspectNeedsHeader, InspectNeedsRequest, InspectNeedsResponse, UnmetReason,
};
use bigfleet_wire::{reason_for, unix_nanos};
use tonic::Status;

use super::stream::{Cut, Out, count, limited};
use super::{Reads, cluster_filter, shortfall_text};
use crate::hub::Stopping;

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
    let info = Arc::clone(&reads.info);
    let asked = reads.hub.ask(move |core| {
        core.want_verdicts();
        let header = info.header(core, 0);
        let breakers = core.rails().breakers;
        (
            header,
            core.decided().cloned(),
            core.decided_as_of(),
            breakers,
        )
    });
    let (header, decided, as_of, waiting) = asked.await?;
    let waiting: Vec<Pool> = waiting.into_iter().map(|one| one.pool).collect();
    let needs = decided.as_deref().map_or(&[][..], |decided| &decided.needs);
    let admitted: Vec<&NeedView> = needs.iter().filter(|view| wanted.admits(view)).collect();
    // Without verdicts it is not yet computed, which is not the same as no demand.
    let (cycle, at) = as_of.unzip();
    let header = InspectNeedsHeader {
        cycle: cycle.map_or(0, |cycle| cycle.try_into().unwrap_or(i64::MAX)),
        computed_at_unix_nanos: at.map_or(0, unix_nanos),
        total_needs: count(admitted.len()),
        troubles: header.troubles,
        not_ready: header.not_ready,
        answered_at_unix_nanos: header.answered_at_unix_nanos,
        shard_id: header.shard_id,
    };
    out.send(frame(Frame::Header(header))).await?;
    let mut rest = &admitted[..limited(wanted.limit, admitted.len())];
    while !rest.is_empty() {
        let keys = rest.iter().take(AT_ONCE).map(|view| &view.verdict.need);
        let keys = keys.map(|need| (need.key(), need.row.aggregate.clone()));
        let found = progress(reads, keys.collect()).await?;
        for (view, progress) in rest.iter().zip(&found) {
            let now = reads.info.now();
            let row = message(view, progress, &waiting, wanted.new_reasons, now);
            out.send(frame(Frame::Need(row))).await?;
        }
        rest = &rest[found.len()..];
    }
    Ok(())
}

/// Needs of which the core is asked at once where they stand.
const AT_ONCE: usize = 128;
/// Machines it looks at for that; one Need may have more.
pub(super) const MOST_MACHINES: usize = 4096;

/// Where Needs stand now: of the first one, and of as many after it as are looked at at once.
pub(super) async fn progress(
    reads: &Reads,
    needs: Vec<(NeedKey, Amounts)>,
) -> Result<Vec<Progress>, Stopping> {
    let asked = reads.hub.ask(move |core| {
        let (mut looked, mut found) = (0, Vec::new());
        for (need, wants) in &needs {
            let (progress, machines) = core.progress(need, wants);
            found.push(progress);
            looked += machines;
            if MOST_MACHINES <= looked {
                break;
            }
        }
        found
    });
    asked.await
}

/// A row, where it stands and its verdict, for a reader that knows our reasons or does not.
pub(super) fn message(
    view: &NeedView,
    progress: &Progress,
    waiting: &[Pool],
    new_reasons: bool,
    now: Time,
) -> wire::NeedView {
    let reason = reason(view, waiting);
    let parked = view.verdict.parked && !view.verdict.satisfied;
    let stage = |stage: &NeedStage| wire::NeedStage {
        stuck: stage.stuck.is_some(),
        stage: stage.stage.clone(),
        machines: count(stage.machines as usize),
        since_unix_nanos: unix_nanos(stage.since),
        why: stage.stuck.clone().unwrap_or_default(),
        machine_id: stage.machine.to_string(),
    };
    wire::NeedView {
        parked_age_cycles: count(if parked { view.parked_age as usize } else { 0 }),
        age_cycles_unmet: count(view.age as usize),
        unmet_reason: reason_for(reason, new_reasons).into(),
        reason_detail: shortfall_text::status(view, progress, reason, now),
        serving: Some((&progress.serving).into()),
        coming: Some((&progress.coming).into()),
        stuck: Some((&progress.stuck).into()),
        missing: Some((&progress.missing).into()),
        stages: progress.stages.iter().map(stage).collect(),
        lacking_since_unix_nanos: progress.lacking_since.map_or(0, unix_nanos),
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
        let now = Time::from_nanos(0);
        for (withheld, reason) in [
            (Withheld::NoOperatorSession, UnmetReason::NoOperatorSession),
            (Withheld::ActuationPaused, UnmetReason::ActuationPaused),
            (Withheld::BootstrapBackoff, UnmetReason::ProviderBackoff),
        ] {
            starved.withheld = Some(withheld);
            let shown = message(&starved, &Progress::default(), &[], true, now);
            assert_eq!(shown.unmet_reason, i32::from(reason));
            let old = message(&starved, &Progress::default(), &[], false, now);
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
