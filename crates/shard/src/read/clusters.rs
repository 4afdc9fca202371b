//! InspectClusters: the clusters the shard serves, by id.

use std::collections::BTreeMap;
use std::sync::Arc;

use bigfleet_model::{ClusterId, Time};
use bigfleet_shard_core::{BackoffView, ClusterView, Features, Withheld};
use bigfleet_wire::v1alpha1::inspect_clusters_response::Frame;
use bigfleet_wire::v1alpha1::{
    self as wire, AcquireBlock, InspectClustersResponse, RollupView, SessionView, StateCount,
};
use bigfleet_wire::{Feature, unix_nanos};

use super::machines::state;
use super::stream::{Cut, Out, count};
use super::{Reads, shortfall_text};

/// Clusters whose operator could not bootstrap lately.
type Backoffs = BTreeMap<ClusterId, BackoffView>;

pub(super) async fn send(
    reads: &Reads,
    wanted: Option<ClusterId>,
    out: &Out<InspectClustersResponse>,
) -> Result<(), Cut> {
    let frame = |frame| InspectClustersResponse { frame: Some(frame) };
    let info = Arc::clone(&reads.info);
    let began = reads.hub.ask(move |core| {
        let mut ids = core.clusters();
        ids.retain(|id| wanted.as_ref().is_none_or(|wanted| wanted == id));
        let backoffs = ids.iter().filter_map(|id| core.join_trouble(id));
        let backoffs: Backoffs = backoffs
            .map(|backoff| (backoff.cluster.clone(), backoff))
            .collect();
        (info.header(core, ids.len()), ids, backoffs)
    });
    let (header, ids, backoffs) = began.await?;
    out.send(frame(Frame::Header(header))).await?;
    for id in ids {
        // One at a time: each counts all of its machines.
        let view = reads.hub.ask(move |core| core.cluster_view(&id)).await?;
        if let Some(view) = view {
            let built = reads.sessions.built(&view.cluster);
            let seen = view.session.and_then(|(id, ..)| reads.sessions.seen(id));
            let backoff = backoffs.get(&view.cluster);
            let mut view = message(&view, seen.unwrap_or_default(), backoff, reads.info.now());
            if let Some(rollup) = &mut view.rollup {
                rollup.timestamp_unix_nanos = built;
            }
            out.send(frame(Frame::Cluster(view))).await?;
        }
    }
    Ok(())
}

fn message(
    view: &ClusterView,
    (heard, waiting): (i64, usize),
    backoff: Option<&BackoffView>,
    now: Time,
) -> wire::ClusterView {
    let moment = |at: Option<Time>| at.map_or(0, unix_nanos);
    let counts = view.machines.iter();
    wire::ClusterView {
        cluster_id: view.cluster.to_string(),
        session: view.session.map(|(_, since, features)| SessionView {
            started_unix_nanos: unix_nanos(since),
            last_frame_unix_nanos: heard,
            features: names(features),
            outbox_frames: count(waiting),
        }),
        session_ended_unix_nanos: moment(view.gone_since),
        ready: view.ready,
        rollup: view.accepted.as_ref().map(|(at, id)| RollupView {
            accepted_unix_nanos: unix_nanos(*at),
            timestamp_unix_nanos: 0, // the core keeps none: an operator's clock decides nothing
            rollup_id: id.clone(),
            rows: count(view.rows),
        }),
        rollups_held: count(view.held as usize),
        rollup_refused_unix_nanos: moment(view.refused.as_ref().map(|(at, _)| *at)),
        rollup_refused_reason: view
            .refused
            .as_ref()
            .map_or_else(String::new, |(_, why)| why.clone()),
        acquire: view.withheld.is_none(),
        acquire_block: view
            .withheld
            .map_or(AcquireBlock::Unspecified, block)
            .into(),
        acquire_detail: view
            .withheld
            .map_or_else(String::new, |why| detail(why, view, backoff, now)),
        needs: count(view.rows),
        needs_unmet: count(view.short),
        machines: counts
            .map(|(of, number)| StateCount {
                state: state(*of),
                count: count(*number as usize),
            })
            .collect(),
        not_ready: count(view.not_ready as usize),
        needs_lacking: count(view.lacking),
    }
}

fn block(withheld: Withheld) -> AcquireBlock {
    match withheld {
        Withheld::NoOperatorSession => AcquireBlock::NoSession,
        Withheld::BootstrapBackoff => AcquireBlock::BootstrapBackoff,
        Withheld::ActuationPaused => AcquireBlock::Paused,
    }
}

fn detail(why: Withheld, view: &ClusterView, backoff: Option<&BackoffView>, now: Time) -> String {
    let said = why.words();
    match (why, view.gone_since, backoff) {
        (Withheld::NoOperatorSession, Some(since), _) => {
            format!("{said}, for {} now", shortfall_text::span(since, now))
        }
        (Withheld::NoOperatorSession, None, _) => {
            format!("{said}, and none was since the shard started")
        }
        (Withheld::BootstrapBackoff, _, Some(backoff)) => {
            format!("{said}, {}", shortfall_text::backoff(backoff, now))
        }
        (Withheld::BootstrapBackoff, _, None) | (Withheld::ActuationPaused, _, _) => {
            said.to_owned()
        }
    }
}

/// The additions an operator listed, of those the shard knows.
fn names(features: Features) -> Vec<String> {
    let listed = |feature: &Feature| match feature {
        Feature::DrainReport => features.drain_report,
        Feature::NodeReport => features.node_report,
        Feature::Resync => features.resync,
        // The shard has no use for these and does not keep them.
        Feature::ReclaimTarget
        | Feature::WholeUnits
        | Feature::Disruption
        | Feature::NeedStatus => false,
    };
    let known = Feature::ALL.into_iter().filter(listed);
    known.map(|feature| feature.name().to_owned()).collect()
}
