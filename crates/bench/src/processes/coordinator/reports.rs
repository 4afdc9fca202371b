//! Reports: shards that say as much as shards may.

use bigfleet_wire::v1alpha1 as wire;

use super::group::Group;
use crate::processes::report::NotMeasured;

/// SHA-256 of `*` and a line's end: what a shard says that has everything of its provider (CO-31).
const EVERYTHING: [u8; 32] = [
    0xcd, 0xbc, 0xae, 0x15, 0x10, 0x5d, 0x6b, 0x78, 0x1e, 0x62, 0x08, 0x13, 0xc7, 0x9c, 0x7e, 0x86,
    0x87, 0x40, 0xd4, 0xe9, 0xcc, 0x53, 0xce, 0x6f, 0x5f, 0xcb, 0xbc, 0x12, 0x38, 0x7a, 0xdf, 0x4b,
];

/// A shard that has everything of a provider of its own.
pub(super) struct Shard {
    report: wire::ShardReport,
    id: String,
}

fn resources(cpu: &str, memory: &str) -> wire::Resources {
    let resources = [("cpu", cpu), ("memory", memory)];
    let resources = resources.map(|(name, amount)| (name.to_owned(), amount.to_owned()));
    wire::Resources {
        resources: resources.into(),
    }
}

fn shortfall(nth: usize) -> wire::Shortfall {
    let values = (0..4).map(|value| format!("family-{value}")).collect();
    let requirement = wire::NodeSelectorRequirement {
        key: "node.kubernetes.io/instance-family".to_owned(),
        operator: wire::node_selector_requirement::Operator::In.into(),
        values,
    };
    wire::Shortfall {
        requirements: vec![requirement],
        deficit: Some(resources("320", "1280Gi")),
        priority: 1_000,
        age_cycles: i32::try_from(nth).unwrap_or_default(),
        profile_fingerprint: format!("{nth:032x}"),
        min_unit: Some(resources("4", "16Gi")),
        ..wire::Shortfall::default()
    }
}

fn pool(nth: usize) -> wire::CapacityPool {
    wire::CapacityPool {
        instance_type: format!("m6i.{nth}xlarge"),
        zone: "eu-1a".to_owned(),
        idle: 20,
        speculative: 100,
        configured: 4_000,
        allocatable: Some(resources("31850m", "120Gi")),
    }
}

impl Shard {
    pub(super) fn new(nth: usize, shortfalls: usize, pools: usize) -> Self {
        let id = format!("shard-{nth}");
        let mut report = wire::ShardReport {
            shard_id: id.clone(),
            shard_epoch: 1,
            summary: Some(wire::ShardSummary {
                total_machines: 500_000,
                free_machines: 2_000,
                pools: (0..pools).map(pool).collect(),
                ..wire::ShardSummary::default()
            }),
            shortfalls: (0..shortfalls).map(shortfall).collect(),
            shard_address: format!("{id}.shards:7780"),
            directory: 7,
            process: "0123456789abcdef".to_owned(),
            domains_digest: EVERYTHING.to_vec(),
            ..wire::ShardReport::default()
        };
        report.set_scope(wire::Scope::Everything);
        Self { report, id }
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// It serves so many clusters of its own.
    pub(super) fn serves(&mut self, clusters: usize) {
        let named = (0..clusters).map(|nth| format!("cluster-{}-{nth}", self.id));
        self.report.clusters = named.collect();
    }

    /// Reports once, and remembers the reign.
    pub(super) async fn report(&mut self, group: &Group) -> Result<(), NotMeasured> {
        // A try that was not answered may have arrived: the next is another report.
        let cycle = std::cell::Cell::new(self.report.cycle);
        let report = &self.report;
        let next = || {
            cycle.set(cycle.get() + 1);
            let mut report = report.clone();
            report.cycle = cycle.get();
            report
        };
        let answer = group.report(next).await?;
        self.report.cycle = cycle.get();
        self.report.coordinator_term_seen = answer.coordinator_term;
        Ok(())
    }
}
