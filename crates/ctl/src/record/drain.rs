//! A machine that is to leave: as it stands, and as a drain would have it.

use bigfleet_wire::v1alpha1 as wire;
use serde::Serialize;

use super::{at, need_name};
use crate::enum_names;
use crate::when::{Moment, moment};

/// How a machine leaves.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct LeavingRecord {
    /// `soon` or `now`.
    pub(crate) word: String,
    /// `admin` or `provider`.
    pub(crate) source: String,
    pub(crate) reason: String,
    pub(crate) requested_by: String,
    #[serde(serialize_with = "at")]
    pub(crate) since: Moment,
    /// Null if it waits for as long as it takes.
    #[serde(serialize_with = "at")]
    pub(crate) deadline: Moment,
    pub(crate) phase: String,
    #[serde(serialize_with = "at")]
    pub(crate) phase_since: Moment,
    /// Machines on their way in its place.
    pub(crate) replacements: Vec<String>,
    /// Where it stands and what is in the way.
    pub(crate) status: String,
}

impl From<&wire::MachineLeaving> for LeavingRecord {
    fn from(leaving: &wire::MachineLeaving) -> Self {
        Self {
            word: leaving.word.clone(),
            source: leaving.source.clone(),
            reason: leaving.reason.clone(),
            requested_by: leaving.requested_by.clone(),
            since: moment(leaving.since_unix_nanos),
            deadline: moment(leaving.deadline_unix_nanos),
            phase: enum_names::leaving_phase(leaving.phase),
            phase_since: moment(leaving.phase_since_unix_nanos),
            replacements: leaving.replacement_ids.clone(),
            status: leaving.sentence.clone(),
        }
    }
}

impl LeavingRecord {
    /// Whether no cluster has the machine.
    pub(crate) fn is_out(&self) -> bool {
        self.phase == "Out"
    }
}

/// A machine that leaves, in a list of those.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct DrainRecord {
    pub(crate) machine: String,
    pub(crate) state: String,
    pub(crate) cluster: String,
    #[serde(flatten)]
    pub(crate) leaving: LeavingRecord,
}

/// What a drain does to one machine, or would.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PlannedDrain {
    pub(crate) machine: String,
    pub(crate) cluster: String,
    /// The short name of the Need it serves; empty if none.
    pub(crate) need: String,
    pub(crate) need_fingerprint: String,
    pub(crate) group: String,
    pub(crate) phase: String,
    pub(crate) replacements: Vec<String>,
    pub(crate) price_per_hour: f64,
    pub(crate) replacement_price_per_hour: f64,
    pub(crate) status: String,
    /// It cannot be drained, and the status says what applies instead.
    pub(crate) passed_over: bool,
}

impl From<&wire::MachineDrain> for PlannedDrain {
    fn from(row: &wire::MachineDrain) -> Self {
        let need = match row.need_fingerprint.as_str() {
            "" => String::new(),
            fingerprint => need_name(fingerprint, &row.group),
        };
        Self {
            machine: row.machine_id.clone(),
            cluster: row.cluster_id.clone(),
            need,
            need_fingerprint: row.need_fingerprint.clone(),
            group: row.group.clone(),
            phase: enum_names::leaving_phase(row.phase),
            replacements: row.replacement_ids.clone(),
            price_per_hour: row.price_per_hour,
            replacement_price_per_hour: row.replacement_price_per_hour,
            status: row.sentence.clone(),
            passed_over: row.passed_over,
        }
    }
}

impl PlannedDrain {
    /// Whether nothing takes its place.
    pub(crate) fn is_unreplaced(&self) -> bool {
        self.phase == "NoReplacement"
    }
}
