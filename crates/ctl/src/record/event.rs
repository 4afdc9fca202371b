//! Something that changed.

use bigfleet_wire::v1alpha1 as wire;
use serde::Serialize;

use super::{at, some};
use crate::when::{Moment, moment};

/// An event.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct EventRecord {
    pub(crate) sequence: i64,
    #[serde(serialize_with = "at")]
    pub(crate) time: Moment,
    pub(crate) kind: String,
    /// `info`, `warning` or `error`.
    pub(crate) severity: String,
    /// The cluster it concerns; null for the whole shard.
    pub(crate) cluster: Option<String>,
    pub(crate) text: String,
}

impl From<&wire::EventView> for EventRecord {
    fn from(view: &wire::EventView) -> Self {
        Self {
            sequence: view.sequence,
            time: moment(view.time_unix_nanos),
            kind: view.kind.clone(),
            severity: view.severity.clone(),
            cluster: some(&view.cluster_id),
            text: view.text.clone(),
        }
    }
}
