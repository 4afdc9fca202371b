//! What holds something back, one row each, whatever kind of rail it is.

use bigfleet_model::counted;
use bigfleet_wire::v1alpha1 as wire;
use serde::Serialize;
use wire::pause_scope::Scope;

use super::{at, scope_text};
use crate::when::{Moment, moment};

/// Something that holds something back now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct HoldRecord {
    /// Which rail: `rollup-guard`, `configure-breaker`, `pause` and so on.
    pub(crate) rail: String,
    /// The cluster it concerns; empty for the whole shard.
    pub(crate) cluster: String,
    /// What is held back, and why.
    pub(crate) why: String,
    /// How often in a row whoever is held back gave reason for it: roll-ups held, attempts that failed.
    pub(crate) reports: i64,
    /// Since when; null if the shard does not say.
    #[serde(serialize_with = "at")]
    pub(crate) since: Moment,
}

/// Everything that holds something back, by rail and cluster.
pub(crate) fn holds(rails: &wire::InspectRailsResponse) -> Vec<HoldRecord> {
    let has_own_rows = |rail: &wire::RailView| {
        let mut others = rails.rails.iter();
        others.any(|one| one.name == rail.name && !one.cluster_id.is_empty())
    };
    let engaged = rails.rails.iter().filter(|rail| rail.engaged);
    // A rail that says for which clusters it is engaged need not say it once more for all of them.
    let engaged = engaged.filter(|rail| !rail.cluster_id.is_empty() || !has_own_rows(rail));
    let mut holds: Vec<HoldRecord> = engaged.map(HoldRecord::from).collect();
    holds.extend(rails.breakers.iter().map(HoldRecord::from));
    holds.extend(rails.pauses.iter().map(HoldRecord::from));
    if rails.dry_run {
        holds.push(HoldRecord {
            rail: "dry-run".to_owned(),
            cluster: String::new(),
            why: "decisions are shown and nothing leaves".to_owned(),
            reports: 0,
            since: None,
        });
    }
    holds.sort_by(|one, other| (&one.rail, &one.cluster).cmp(&(&other.rail, &other.cluster)));
    holds
}

impl From<&wire::RailView> for HoldRecord {
    fn from(view: &wire::RailView) -> Self {
        Self {
            rail: view.name.clone(),
            cluster: view.cluster_id.clone(),
            why: view.detail.clone(),
            reports: view.reports,
            since: moment(view.since_unix_nanos),
        }
    }
}

impl From<&wire::BreakerView> for HoldRecord {
    fn from(view: &wire::BreakerView) -> Self {
        let failures = view.failures;
        let mut why = format!(
            "{} in zone {}: {} in a row failed",
            view.instance_type,
            view.zone,
            counted(failures, "Create", "Creates")
        );
        if !view.last_error.is_empty() {
            why += &format!(", the last with \"{}\"", view.last_error);
        }
        Self {
            rail: "create-breaker".to_owned(),
            cluster: String::new(),
            why,
            reports: failures.into(),
            since: moment(view.since_unix_nanos),
        }
    }
}

impl From<&wire::PauseView> for HoldRecord {
    fn from(view: &wire::PauseView) -> Self {
        let scope = view.scope.as_ref();
        let cluster = match scope.and_then(|scope| scope.scope.as_ref()) {
            Some(Scope::ClusterId(id)) => id.clone(),
            Some(Scope::All(_) | Scope::ProviderAddress(_)) | None => String::new(),
        };
        let scope = scope_text(scope);
        let why = match view.reason.as_str() {
            "" => format!("{scope} is paused"),
            reason => format!("{scope} is paused: {reason}"),
        };
        Self {
            rail: "pause".to_owned(),
            cluster,
            why,
            reports: 0,
            since: moment(view.started_unix_nanos),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_row_per_thing_that_holds_something_back() {
        let rail = |name: &str, cluster: &str, engaged| wire::RailView {
            name: name.to_owned(),
            cluster_id: cluster.to_owned(),
            engaged,
            detail: "why".to_owned(),
            reports: 2,
            ..wire::RailView::default()
        };
        let rails = wire::InspectRailsResponse {
            rails: vec![
                rail("rollup-guard", "", true),
                rail("rollup-guard", "b", true),
                rail("removal-sweep", "", true),
                rail("reclaim-cap", "", false),
            ],
            breakers: vec![wire::BreakerView {
                instance_type: "m5".to_owned(),
                zone: "a".to_owned(),
                failures: 4,
                last_error: "sold out".to_owned(),
                since_unix_nanos: 1_000_000_000,
                ..wire::BreakerView::default()
            }],
            pauses: vec![wire::PauseView {
                scope: Some(wire::PauseScope {
                    scope: Some(Scope::ClusterId("a".to_owned())),
                }),
                ..wire::PauseView::default()
            }],
            dry_run: true,
            ..wire::InspectRailsResponse::default()
        };
        let holds = holds(&rails);
        let shown: Vec<(&str, &str)> = holds
            .iter()
            .map(|hold| (hold.rail.as_str(), hold.cluster.as_str()))
            .collect();
        assert_eq!(
            shown,
            [
                ("create-breaker", ""),
                ("dry-run", ""),
                ("pause", "a"),
                ("removal-sweep", ""),
                ("rollup-guard", "b"),
            ]
        );
        let json = serde_json::to_value(&holds[0]).unwrap();
        assert_eq!(
            json,
            serde_json::json!({
                "rail": "create-breaker",
                "cluster": "",
                "why": "m5 in zone a: 4 Creates in a row failed, the last with \"sold out\"",
                "reports": 4,
                "since": "1970-01-01T00:00:01Z",
            })
        );
    }
}
