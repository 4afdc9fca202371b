//! A cluster, as the shard holds it.

use std::collections::BTreeMap;

use bigfleet_wire::v1alpha1 as wire;
use serde::Serialize;

use super::{at, count};
use crate::enum_names;
use crate::when::{Moment, moment};

/// A cluster.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct ClusterRecord {
    pub(crate) id: String,
    /// Its operator's session; null if none is live.
    pub(crate) session: Option<SessionRecord>,
    #[serde(serialize_with = "at")]
    pub(crate) session_ended: Moment,
    /// Whether it has reported since the shard started. Until then none of its machines is reclaimed.
    pub(crate) ready: bool,
    pub(crate) rollup: Option<RollupRecord>,
    pub(crate) rollups_held: u32,
    #[serde(serialize_with = "at")]
    pub(crate) rollup_refused: Moment,
    pub(crate) rollup_refused_reason: String,
    pub(crate) acquire: bool,
    pub(crate) acquire_block: Option<String>,
    pub(crate) acquire_detail: String,
    pub(crate) needs: u32,
    pub(crate) needs_unmet: u32,
    /// Needs that are not served in full.
    pub(crate) needs_lacking: u32,
    /// Machines by state.
    pub(crate) machines: BTreeMap<String, u32>,
    pub(crate) not_ready: u32,
}

/// The session of a connected operator.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct SessionRecord {
    #[serde(serialize_with = "at")]
    pub(crate) started: Moment,
    #[serde(serialize_with = "at")]
    pub(crate) last_frame: Moment,
    pub(crate) features: Vec<String>,
    pub(crate) outbox_frames: u32,
}

/// The roll-up in force: the last report of what the cluster needs that was accepted.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RollupRecord {
    #[serde(serialize_with = "at")]
    pub(crate) accepted: Moment,
    #[serde(serialize_with = "at")]
    pub(crate) timestamp: Moment,
    pub(crate) rollup_id: String,
    pub(crate) rows: u32,
}

impl From<&wire::ClusterView> for ClusterRecord {
    fn from(view: &wire::ClusterView) -> Self {
        let by_state = |one: &wire::StateCount| (enum_names::state(one.state), count(one.count));
        let block = enum_names::acquire_block(view.acquire_block);
        Self {
            id: view.cluster_id.clone(),
            session: view.session.as_ref().map(Into::into),
            session_ended: moment(view.session_ended_unix_nanos),
            ready: view.ready,
            rollup: view.rollup.as_ref().map(Into::into),
            rollups_held: count(view.rollups_held),
            rollup_refused: moment(view.rollup_refused_unix_nanos),
            rollup_refused_reason: view.rollup_refused_reason.clone(),
            acquire: view.acquire,
            acquire_block: Some(block).filter(|word| word != "Unspecified"),
            acquire_detail: view.acquire_detail.clone(),
            needs: count(view.needs),
            needs_unmet: count(view.needs_unmet),
            needs_lacking: count(view.needs_lacking),
            machines: view.machines.iter().map(by_state).collect(),
            not_ready: count(view.not_ready),
        }
    }
}

impl ClusterRecord {
    /// How many of its machines are in one of these states.
    pub(crate) fn count(&self, states: &[&str]) -> u32 {
        let counts = states.iter().filter_map(|state| self.machines.get(*state));
        counts.sum()
    }

    /// Machines that serve it.
    pub(crate) fn serving(&self) -> u32 {
        self.count(&["Configured"])
    }

    /// Machines on their way to it.
    pub(crate) fn coming(&self) -> u32 {
        self.count(&["Creating", "Idle", "Configuring"])
    }

    /// Machines on their way out of it.
    pub(crate) fn leaving(&self) -> u32 {
        self.count(&["Draining", "Deleting"])
    }
}

impl From<&wire::SessionView> for SessionRecord {
    fn from(view: &wire::SessionView) -> Self {
        Self {
            started: moment(view.started_unix_nanos),
            last_frame: moment(view.last_frame_unix_nanos),
            features: view.features.clone(),
            outbox_frames: count(view.outbox_frames),
        }
    }
}

impl From<&wire::RollupView> for RollupRecord {
    fn from(view: &wire::RollupView) -> Self {
        Self {
            accepted: moment(view.accepted_unix_nanos),
            timestamp: moment(view.timestamp_unix_nanos),
            rollup_id: view.rollup_id.clone(),
            rows: count(view.rows),
        }
    }
}
