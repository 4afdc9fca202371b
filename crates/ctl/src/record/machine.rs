//! A machine, as the shard holds it.

use std::collections::BTreeMap;

use bigfleet_wire::v1alpha1 as wire;
use serde::Serialize;

use super::{LeavingRecord, at, dollars, need_name, some};
use crate::enum_names;
use crate::when::{Moment, moment};

/// A machine. Keys are those of the fleet file.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct MachineRecord {
    pub(crate) id: String,
    pub(crate) state: String,
    pub(crate) cluster: String,
    pub(crate) instance_type: String,
    pub(crate) zone: String,
    pub(crate) capacity_type: String,
    pub(crate) price_per_hour: f64,
    pub(crate) interruption_probability: f64,
    pub(crate) host: Option<HostRecord>,
    pub(crate) node: Option<String>,
    pub(crate) provider: String,
    /// What it offers.
    pub(crate) resources: BTreeMap<String, String>,
    pub(crate) labels: BTreeMap<String, String>,
    /// The Need it serves.
    pub(crate) assigned: Option<NeedRef>,
    /// The Need it is on its way to serve.
    pub(crate) intent: Option<NeedRef>,
    #[serde(serialize_with = "at")]
    pub(crate) state_since: Moment,
    #[serde(serialize_with = "at")]
    pub(crate) seen_at: Moment,
    /// The operation in progress on it.
    pub(crate) work: Option<String>,
    pub(crate) unavailable: bool,
    pub(crate) unavailable_reason: String,
    pub(crate) not_ready: bool,
    pub(crate) held: bool,
    pub(crate) record_refused: bool,
    pub(crate) refused_reason: String,
    pub(crate) reserved_for_transfer: bool,
    pub(crate) last_error: String,
    pub(crate) failure_class: Option<String>,
    /// How it leaves, if it is marked.
    pub(crate) leaving: Option<LeavingRecord>,
}

/// The host behind a machine, as its provider calls it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct HostRecord {
    pub(crate) provider: String,
    #[serde(rename = "ref")]
    pub(crate) reference: String,
}

/// The Need a machine belongs to.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct NeedRef {
    pub(crate) cluster: String,
    /// Its short name.
    pub(crate) need: String,
    pub(crate) need_fingerprint: String,
    pub(crate) group: String,
    pub(crate) priority: i32,
    #[serde(serialize_with = "dollars")]
    pub(crate) interruption_penalty_dollars: f64,
    #[serde(serialize_with = "dollars")]
    pub(crate) reclamation_penalty_dollars: f64,
    pub(crate) keep_price: Option<f64>,
}

impl From<&wire::Attribution> for NeedRef {
    fn from(one: &wire::Attribution) -> Self {
        Self {
            cluster: one.cluster_id.clone(),
            need: need_name(&one.profile_fingerprint, &one.group),
            need_fingerprint: one.profile_fingerprint.clone(),
            group: one.group.clone(),
            priority: one.priority,
            interruption_penalty_dollars: one.interruption_penalty_dollars,
            reclamation_penalty_dollars: one.reclamation_penalty_dollars,
            keep_price: one.keep_price_per_hour,
        }
    }
}

impl From<&wire::MachineView> for MachineRecord {
    fn from(view: &wire::MachineView) -> Self {
        let machine = view.machine.clone().unwrap_or_default();
        let offered = |of: Option<wire::Resources>| {
            of.map(|of| of.resources)
                .filter(|offers| !offers.is_empty())
        };
        // What the hardware really offers replaces the declared shape as a whole.
        let resources = offered(machine.allocatable).or(offered(machine.resources));
        let host = |host: wire::HostRef| HostRecord {
            provider: host.provider,
            reference: host.r#ref,
        };
        let unspecified = |word: String| Some(word).filter(|word| word != "Unspecified");
        Self {
            id: machine.id,
            state: enum_names::state(machine.state),
            cluster: machine.cluster,
            instance_type: machine.instance_type,
            zone: machine.zone,
            capacity_type: enum_names::tier(machine.capacity_type),
            price_per_hour: machine.price_per_hour,
            interruption_probability: machine.interruption_probability,
            host: machine.host.map(host),
            node: some(&view.node_name),
            provider: view.provider_address.clone(),
            resources: resources.unwrap_or_default(),
            labels: machine.labels,
            assigned: view.attribution.as_ref().map(Into::into),
            intent: view.intent.as_ref().map(Into::into),
            state_since: moment(view.state_since_unix_nanos),
            seen_at: moment(view.seen_at_unix_nanos),
            work: unspecified(enum_names::work_kind(view.work)),
            unavailable: view.unavailable,
            unavailable_reason: view.unavailable_reason.clone(),
            not_ready: view.not_ready,
            held: view.held,
            record_refused: view.record_refused,
            refused_reason: view.refused_reason.clone(),
            reserved_for_transfer: view.reserved_for_transfer,
            last_error: machine.last_error,
            failure_class: unspecified(enum_names::failure_class(machine.failure_class)),
            leaving: view.leaving.as_ref().map(Into::into),
        }
    }
}

impl MachineRecord {
    /// The Need it serves or is on its way to.
    pub(crate) fn need(&self) -> Option<&NeedRef> {
        self.assigned.as_ref().or(self.intent.as_ref())
    }

    /// The cluster it serves or is on its way to; empty if none.
    pub(crate) fn cluster(&self) -> &str {
        match self.cluster.as_str() {
            "" => self.intent.as_ref().map_or("", |intent| &intent.cluster),
            cluster => cluster,
        }
    }

    /// Everything unusual about it: a word each, with the reason where there is one.
    pub(crate) fn flags(&self) -> Vec<(&'static str, &str)> {
        let leaving = self.leaving.as_ref();
        let all = [
            (
                leaving.is_some(),
                "leaving",
                leaving.map_or("", |leaving| leaving.status.as_str()),
            ),
            (
                self.unavailable,
                "unavailable",
                self.unavailable_reason.as_str(),
            ),
            (self.not_ready, "not-ready", ""),
            (self.held, "held", "until its replacement serves"),
            (
                self.record_refused,
                "record-refused",
                self.refused_reason.as_str(),
            ),
            (self.reserved_for_transfer, "reserved", "for a transfer"),
        ];
        let raised = all.into_iter().filter(|(raised, ..)| *raised);
        raised.map(|(_, name, why)| (name, why)).collect()
    }
}
