//! What limits or stops a shard: pauses, rails, and pools that are not asked for a while.

use bigfleet_wire::v1alpha1 as wire;
use serde::Serialize;
use wire::pause_scope::Scope;

use super::{at, count};
use crate::enum_names;
use crate::when::{Moment, moment};

/// A pause in force.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PauseRecord {
    pub(crate) id: String,
    /// `all`, `cluster C` or `provider P`.
    pub(crate) scope: String,
    pub(crate) origin: String,
    pub(crate) requested_by: String,
    pub(crate) reason: String,
    #[serde(serialize_with = "at")]
    pub(crate) started: Moment,
    /// Null if it does not end by itself.
    #[serde(serialize_with = "at")]
    pub(crate) expires: Moment,
    pub(crate) withheld_total: i64,
}

/// A rail: a safety limit on what the shard may do at once.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RailRecord {
    pub(crate) name: String,
    pub(crate) cluster: String,
    pub(crate) enabled: bool,
    pub(crate) engaged: bool,
    pub(crate) setting: String,
    pub(crate) detail: String,
    pub(crate) withheld_total: i64,
}

/// A pool (machine type and zone) that is not asked for machines for now, after failures.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct BreakerRecord {
    pub(crate) provider: String,
    pub(crate) instance_type: String,
    pub(crate) zone: String,
    pub(crate) failures: u32,
    #[serde(serialize_with = "at")]
    pub(crate) retry: Moment,
    pub(crate) last_error: String,
}

/// What a pause covers, in words.
pub(crate) fn scope_text(scope: Option<&wire::PauseScope>) -> String {
    match scope.and_then(|scope| scope.scope.as_ref()) {
        Some(Scope::All(_)) => "all".to_owned(),
        Some(Scope::ClusterId(id)) => format!("cluster {id}"),
        Some(Scope::ProviderAddress(address)) => format!("provider {address}"),
        None => "unknown".to_owned(),
    }
}

impl From<&wire::PauseView> for PauseRecord {
    fn from(view: &wire::PauseView) -> Self {
        Self {
            id: view.pause_id.clone(),
            scope: scope_text(view.scope.as_ref()),
            origin: enum_names::pause_origin(view.origin),
            requested_by: view.requested_by.clone(),
            reason: view.reason.clone(),
            started: moment(view.started_unix_nanos),
            expires: moment(view.expires_unix_nanos),
            withheld_total: view.withheld_total,
        }
    }
}

impl From<&wire::RailView> for RailRecord {
    fn from(view: &wire::RailView) -> Self {
        Self {
            name: view.name.clone(),
            cluster: view.cluster_id.clone(),
            enabled: view.enabled,
            engaged: view.engaged,
            setting: view.setting.clone(),
            detail: view.detail.clone(),
            withheld_total: view.withheld_total,
        }
    }
}

impl From<&wire::BreakerView> for BreakerRecord {
    fn from(view: &wire::BreakerView) -> Self {
        Self {
            provider: view.provider_address.clone(),
            instance_type: view.instance_type.clone(),
            zone: view.zone.clone(),
            failures: count(view.failures),
            retry: moment(view.retry_unix_nanos),
            last_error: view.last_error.clone(),
        }
    }
}
