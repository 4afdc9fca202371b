//! Demand: Needs as a real operator would report them, from the archetypes of the workload catalog.
//!
//! ```text
//! archetype (size, priority, penalties, spread) × Pods ─▶ one row of a roll-up
//! ```
//!
//! Only the number of Pods is chosen here. What a Pod asks for, what it is worth and where it may run comes
//! from the catalog, so a demonstration shows the same trade-offs as our measurements.

use std::collections::BTreeMap;

use bigfleet_model::{INSTANCE_TYPE_KEY, Operator, ZONE_KEY};
use bigfleet_wire::v1alpha1::{CapacityNeed, NodeSelectorRequirement, PenaltyBucket};
use bigfleet_workloads::{Archetype, Catalog, RACK_KEY, Size, ZONES, cost_routing, realistic};

/// A workload of the demonstration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Workload {
    /// Stateless services: lasting, and dear to interrupt.
    Service,
    /// A crawler that minds no interruption: what spot machines are for.
    Crawl,
    /// Batch: low priority, and much of it.
    Batch,
    /// Training: one gang that has to share a rack.
    Training,
    /// Payments: outranks everything.
    Critical,
}

impl Workload {
    /// The word for it in speech.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Service => "service",
            Self::Crawl => "crawler",
            Self::Batch => "batch",
            Self::Training => "training",
            Self::Critical => "payment",
        }
    }

    /// The Need of this many Pods; `None` for 0, since a roll-up leaves out what nobody asks for.
    pub(crate) fn row(self, pods: u32) -> Option<CapacityNeed> {
        // Payments want the type of machine that batch uses, so that they preempt it; the crawler does not.
        let (catalog, name, types) = match self {
            Self::Service => (realistic(), "cpu-service", 0..2),
            Self::Crawl => (cost_routing(), "tolerant", 1..2),
            Self::Batch => (realistic(), "cpu-batch", 0..3),
            Self::Training => (realistic(), "gpu-training-small", 0..1),
            Self::Critical => (realistic(), "critical-realtime", 0..1),
        };
        let archetype = archetype(&catalog, name)?;
        row(
            archetype,
            archetype.instance_types.get(types)?.to_vec(),
            pods,
        )
    }

    /// What one Pod of it asks for, and at which priority, as people say it.
    pub(crate) fn each(self) -> String {
        let Some(one) = self.row(1) else {
            return String::new();
        };
        let amount = |key: &str| {
            one.min_unit
                .get(key)
                .map(|amount| format!("{key}={amount}"))
        };
        let amounts = ["cpu", "memory", "nvidia.com/gpu"]
            .into_iter()
            .filter_map(amount);
        let amounts: Vec<String> = amounts.collect();
        format!("{} at priority {}", amounts.join(" "), one.priority)
    }
}

fn archetype<'a>(catalog: &'a Catalog, name: &str) -> Option<&'a Archetype> {
    catalog.archetypes().get(catalog.position(name)?)
}

fn row(archetype: &Archetype, types: Vec<String>, pods: u32) -> Option<CapacityNeed> {
    let (_, unit) = archetype.sizes.first().filter(|_| 0 < pods)?;
    let requirement =
        |key: &str, operator: Operator, values: Vec<String>| NodeSelectorRequirement {
            key: key.to_owned(),
            operator: operator.number(),
            values,
        };
    let zones = ZONES.map(str::to_owned).into();
    let mut requirements = vec![
        requirement(INSTANCE_TYPE_KEY, Operator::In, types),
        requirement(ZONE_KEY, Operator::In, zones),
    ];
    let mut group = String::new();
    if archetype.gang.is_some() {
        requirements.push(requirement(RACK_KEY, Operator::Same, Vec::new()));
        group = format!("{RACK_KEY}\0app={},;", archetype.name);
    }
    let usual = archetype.spread.iter().filter(|(_, chance)| 0.5 <= *chance);
    let (interruption, reclamation) = archetype.buckets();
    Some(CapacityNeed {
        requirements,
        aggregate_resources: amounts(unit.times(pods)),
        min_unit: amounts(*unit),
        priority: archetype.priorities().first().copied().unwrap_or_default(),
        spread: usual.map(|(spread, _)| spread.into()).collect(),
        interruption_penalty_bucket: PenaltyBucket::from(interruption).into(),
        reclamation_penalty_bucket: PenaltyBucket::from(reclamation).into(),
        group,
        whole_units: false,
    })
}

fn amounts(size: Size) -> BTreeMap<String, String> {
    let cpu = match size.cpu_milli % 1000 {
        0 => format!("{}", size.cpu_milli / 1000),
        _ => format!("{}m", size.cpu_milli),
    };
    let memory = match size.memory_mib % 1024 {
        0 => format!("{}Gi", size.memory_mib / 1024),
        _ => format!("{}Mi", size.memory_mib),
    };
    let mut amounts = BTreeMap::from([("cpu".to_owned(), cpu), ("memory".to_owned(), memory)]);
    if 0 < size.gpus {
        amounts.insert("nvidia.com/gpu".to_owned(), size.gpus.to_string());
    }
    amounts
}

#[cfg(test)]
mod tests {
    use super::*;
    use bigfleet_model::{ClusterId, RowFacts};
    use bigfleet_wire::Rollup;
    use bigfleet_wire::v1alpha1::ClusterCapacityNeeds;

    const ALL: [Workload; 5] = [
        Workload::Service,
        Workload::Crawl,
        Workload::Batch,
        Workload::Training,
        Workload::Critical,
    ];

    #[test]
    fn every_row_is_one_a_shard_accepts() {
        let needs = ALL
            .into_iter()
            .filter_map(|workload| workload.row(3))
            .collect();
        let roll_up = ClusterCapacityNeeds {
            cluster_id: "a".to_owned(),
            needs,
            ..ClusterCapacityNeeds::default()
        };
        let read = Rollup::read(roll_up, &ClusterId::new("a").unwrap()).unwrap();
        assert_eq!(read.rows.len(), ALL.len());
    }

    #[test]
    fn nobody_asking_is_no_row() {
        assert!(ALL.into_iter().all(|workload| workload.row(0).is_none()));
    }

    #[test]
    fn it_is_said_as_people_say_it() {
        assert_eq!(Workload::Batch.each(), "cpu=4 memory=8Gi at priority 100");
        assert_eq!(
            Workload::Training.each(),
            "cpu=64 memory=256Gi nvidia.com/gpu=8 at priority 1000"
        );
    }

    #[test]
    fn a_gang_keeps_together_and_payments_outrank_all_else() {
        let facts = |workload: Workload| RowFacts::from(workload.row(2).unwrap()).check().unwrap();
        assert_eq!(facts(Workload::Training).profile.same_key(), Some(RACK_KEY));
        let priority = |workload: Workload| facts(workload).profile.priority();
        let most = ALL.into_iter().max_by_key(|workload| priority(*workload));
        assert_eq!(most, Some(Workload::Critical));
    }
}
