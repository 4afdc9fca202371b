//! A Need: what a cluster asks for, and what the last decision gave it.

use std::collections::BTreeMap;

pub(crate) use bigfleet_model::need_name;
use bigfleet_model::quantity::parse_demand;
use bigfleet_wire::v1alpha1 as wire;
use serde::Serialize;

use super::{at, count};
use crate::enum_names;
use crate::when::{Moment, moment};

/// A Need and its verdict. Keys are those of fleet files and of decisions.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct NeedRecord {
    pub(crate) cluster: String,
    /// Its short name within the cluster.
    pub(crate) need: String,
    pub(crate) need_fingerprint: String,
    pub(crate) group: String,
    pub(crate) priority: i32,
    pub(crate) aggregate_resources: BTreeMap<String, String>,
    pub(crate) min_unit: BTreeMap<String, String>,
    /// Every unit equals `min_unit`, and machines count with the whole units they hold.
    pub(crate) whole_units: bool,
    pub(crate) requirements: Vec<RequirementRecord>,
    pub(crate) spread: Vec<SpreadRecord>,
    pub(crate) interruption_penalty_bucket: i32,
    pub(crate) reclamation_penalty_bucket: i32,
    #[serde(serialize_with = "at")]
    pub(crate) arrival: Moment,
    /// What serves it, is on its way to it, is stuck on its way, and is missing: together what it asks for.
    pub(crate) serving: BTreeMap<String, String>,
    pub(crate) coming: BTreeMap<String, String>,
    pub(crate) stuck: BTreeMap<String, String>,
    pub(crate) missing: BTreeMap<String, String>,
    /// Where what is coming or stuck is.
    pub(crate) stages: Vec<StageRecord>,
    /// When it was last served in full; null while it is.
    #[serde(serialize_with = "at")]
    pub(crate) lacking_since: Moment,
    /// What the last decision covers on paper, on its way or not.
    pub(crate) satisfied: bool,
    pub(crate) residual_deficit: BTreeMap<String, String>,
    pub(crate) claimed: u32,
    pub(crate) bootstrap: u32,
    pub(crate) provision: u32,
    pub(crate) same_domain: String,
    pub(crate) same_satisfiable: bool,
    pub(crate) same_candidates: Vec<DomainRecord>,
    pub(crate) parked: bool,
    pub(crate) unmet_reason: String,
    /// The reason in a sentence.
    pub(crate) why: String,
    pub(crate) matching_supply: Option<SupplyRecord>,
    pub(crate) victims_found: u32,
    pub(crate) capacity_freed: BTreeMap<String, String>,
}

/// Machines on their way to a Need that are at the same place.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct StageRecord {
    pub(crate) stuck: bool,
    pub(crate) stage: String,
    pub(crate) machines: u32,
    #[serde(serialize_with = "at")]
    pub(crate) since: Moment,
    /// What holds them up; empty unless stuck.
    pub(crate) why: String,
    /// One of them.
    pub(crate) machine: String,
}

/// One condition on a machine.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RequirementRecord {
    pub(crate) key: String,
    pub(crate) operator: String,
    pub(crate) values: Vec<String>,
}

/// How evenly its machines must be spread over a topology.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct SpreadRecord {
    pub(crate) topology_key: String,
    pub(crate) max_skew: i32,
    pub(crate) when_unsatisfiable: String,
}

/// How much of it one domain could hold.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct DomainRecord {
    pub(crate) domain: String,
    pub(crate) coverage_per_mille: i32,
    pub(crate) satisfiable: bool,
}

/// How many machines would fit it, whoever uses them now.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct SupplyRecord {
    pub(crate) idle: u32,
    pub(crate) configured: u32,
    pub(crate) speculative: u32,
    pub(crate) capped: bool,
}

fn texts(resources: Option<&wire::Resources>) -> BTreeMap<String, String> {
    resources.map_or_else(BTreeMap::new, |some| some.resources.clone())
}

impl From<&wire::NeedView> for NeedRecord {
    fn from(view: &wire::NeedView) -> Self {
        let row = view.need.clone().unwrap_or_default();
        let preemption = view.preemption.clone().unwrap_or_default();
        let fingerprint = &view.profile_fingerprint;
        Self {
            cluster: view.cluster_id.clone(),
            need: need_name(fingerprint, &row.group),
            need_fingerprint: fingerprint.clone(),
            priority: row.priority,
            requirements: row.requirements.iter().map(Into::into).collect(),
            spread: row.spread.iter().map(Into::into).collect(),
            interruption_penalty_bucket: row.interruption_penalty_bucket,
            reclamation_penalty_bucket: row.reclamation_penalty_bucket,
            aggregate_resources: row.aggregate_resources,
            min_unit: row.min_unit,
            whole_units: row.whole_units,
            group: row.group,
            arrival: moment(view.arrival_unix_nanos),
            serving: texts(view.serving.as_ref()),
            coming: texts(view.coming.as_ref()),
            stuck: texts(view.stuck.as_ref()),
            // A shard that does not say so is asked for what it cannot cover.
            missing: texts(view.missing.as_ref().or(view.residual_deficit.as_ref())),
            stages: view.stages.iter().map(Into::into).collect(),
            lacking_since: moment(view.lacking_since_unix_nanos),
            satisfied: view.satisfied,
            residual_deficit: texts(view.residual_deficit.as_ref()),
            claimed: count(view.claimed_machine_count),
            bootstrap: count(view.bootstrap_count),
            provision: count(view.provision_count),
            same_domain: view.same_domain.clone(),
            same_satisfiable: view.same_satisfiable,
            same_candidates: view.same_candidates.iter().map(Into::into).collect(),
            parked: view.acquisition_parked,
            unmet_reason: enum_names::unmet_reason(view.unmet_reason),
            why: view.reason_detail.clone(),
            matching_supply: view.matching_supply.map(Into::into),
            victims_found: count(preemption.victims_found),
            capacity_freed: texts(preemption.capacity_freed.as_ref()),
        }
    }
}

impl NeedRecord {
    /// How much of it is served: per mille of the resource that is served least.
    pub(crate) fn served_per_mille(&self) -> u32 {
        let milli = |text: &String| parse_demand(text).unwrap_or(0);
        let served = |(name, wanted): (&String, &String)| {
            let (wanted, serving) = (milli(wanted), self.serving.get(name).map_or(0, milli));
            if wanted <= 0 {
                1000
            } else {
                serving.clamp(0, wanted) * 1000 / wanted
            }
        };
        let worst = self.aggregate_resources.iter().map(served).min();
        worst.map_or(1000, |worst| u32::try_from(worst).unwrap_or(0))
    }

    /// Whether all of it serves.
    pub(crate) fn is_served(&self) -> bool {
        self.coming.is_empty() && self.stuck.is_empty() && self.missing.is_empty()
    }

    /// The worst that can be said of it: `missing`, `stuck`, `coming` or `served`.
    pub(crate) fn status(&self) -> &'static str {
        if !self.missing.is_empty() {
            "missing"
        } else if !self.stuck.is_empty() {
            "stuck"
        } else if !self.coming.is_empty() {
            "coming"
        } else {
            "served"
        }
    }
}

impl From<&wire::NeedStage> for StageRecord {
    fn from(stage: &wire::NeedStage) -> Self {
        Self {
            stuck: stage.stuck,
            stage: stage.stage.clone(),
            machines: count(stage.machines),
            since: moment(stage.since_unix_nanos),
            why: stage.why.clone(),
            machine: stage.machine_id.clone(),
        }
    }
}

impl From<&wire::NodeSelectorRequirement> for RequirementRecord {
    fn from(one: &wire::NodeSelectorRequirement) -> Self {
        Self {
            key: one.key.clone(),
            operator: enum_names::operator(one.operator),
            values: one.values.clone(),
        }
    }
}

impl std::fmt::Display for RequirementRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.key, self.operator)?;
        if self.values.is_empty() {
            Ok(())
        } else {
            write!(f, " ({})", self.values.join(", "))
        }
    }
}

impl From<&wire::TopologySpread> for SpreadRecord {
    fn from(one: &wire::TopologySpread) -> Self {
        Self {
            topology_key: one.topology_key.clone(),
            max_skew: one.max_skew,
            when_unsatisfiable: enum_names::when_unsatisfiable(one.when_unsatisfiable),
        }
    }
}

impl From<&wire::DomainCoverage> for DomainRecord {
    fn from(one: &wire::DomainCoverage) -> Self {
        Self {
            domain: one.domain.clone(),
            coverage_per_mille: one.coverage_per_mille,
            satisfiable: one.satisfiable,
        }
    }
}

impl From<wire::MatchingSupply> for SupplyRecord {
    fn from(one: wire::MatchingSupply) -> Self {
        Self {
            idle: count(one.idle),
            configured: count(one.configured),
            speculative: count(one.speculative),
            capped: one.capped,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amounts(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
        let owned = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
        entries.iter().map(owned).collect()
    }

    #[test]
    fn a_row_is_served_as_far_as_its_worst_dimension() {
        let need = NeedRecord {
            aggregate_resources: amounts(&[("cpu", "8"), ("memory", "4Gi")]),
            serving: amounts(&[("cpu", "6"), ("memory", "1Gi")]),
            ..NeedRecord::default()
        };
        assert_eq!(need.served_per_mille(), 250);
        assert_eq!(NeedRecord::default().served_per_mille(), 1000);
    }

    /// What is covered on paper and on its way is not served.
    #[test]
    fn a_row_is_called_by_the_worst_of_it() {
        let mut need = NeedRecord {
            satisfied: true,
            ..NeedRecord::default()
        };
        assert_eq!((need.status(), need.is_served()), ("served", true));
        need.coming = amounts(&[("cpu", "4")]);
        assert_eq!((need.status(), need.is_served()), ("coming", false));
        need.stuck = amounts(&[("cpu", "4")]);
        assert_eq!(need.status(), "stuck");
        need.missing = amounts(&[("cpu", "4")]);
        assert_eq!(need.status(), "missing");
    }

    #[test]
    fn a_name_tells_rows_apart_and_stays() {
        let name = need_name("p=100|ipb=1|rpb=6|reqs=|spr=", "");
        assert_eq!(name.len(), 8);
        assert_ne!(name, need_name("p=100|ipb=1|rpb=6|reqs=|spr=", "g"));
        assert_ne!(need_name("a", "b"), need_name("ab", ""));
        assert_eq!(
            name, "e76b7f6d",
            "a name that people wrote down must not change"
        );
    }
}
