//! Demand: what the clusters of a measurement ask for, in machines of one size.
//!
//! ```text
//! walk       every cluster 100 plain rows, which together want every machine there is
//! sessions   every cluster 99 small gangs, which fold into one Need, and a plain row that may grow
//! ```

use std::collections::BTreeMap;

use bigfleet_wire::v1alpha1 as wire;

/// Rows of one roll-up.
pub(crate) const ROWS: usize = 100;
/// What every machine has to give.
const CPU: usize = 4;
const MEMORY: &str = "16Gi";
const ARCH: &str = "kubernetes.io/arch";
const ZONE: &str = "topology.kubernetes.io/zone";
const ZONES: usize = 3;

/// The cluster of this number.
pub(crate) fn cluster(number: usize) -> String {
    format!("cluster-{number:05}")
}

/// An offerings file with so many Idle machines.
pub(crate) fn offerings(machines: usize) -> String {
    let of_zone = |zone: usize| {
        serde_json::json!({
            "instance_type": "bench.4",
            "zone": format!("zone-{zone}"),
            "capacity_type": "bare_metal",
            "count": share(machines, zone, ZONES),
            "resources": { "cpu": CPU.to_string(), "memory": MEMORY },
            "allocatable": { "cpu": CPU.to_string(), "memory": MEMORY },
            "labels": { ARCH: "amd64" },
        })
    };
    serde_json::Value::from_iter((0..ZONES).map(of_zone)).to_string()
}

/// Part `nth` of `parts` of a number: they differ by one at most and add up.
pub(crate) fn share(number: usize, nth: usize, parts: usize) -> usize {
    number * (nth + 1) / parts - number * nth / parts
}

/// The whole demand of one of the clusters that together want all machines, one row of each priority.
pub(crate) fn whole_fleet(
    number: usize,
    clusters: usize,
    machines: usize,
) -> wire::ClusterCapacityNeeds {
    let of_row = |row: usize| share(machines, number * ROWS + row, clusters * ROWS);
    let rows = (0..ROWS).map(|row| (row, of_row(row)));
    let rows = rows.filter(|(_, machines)| 0 < *machines);
    let needs = rows.map(|(row, machines)| plain(row, machines)).collect();
    roll_up(number, needs)
}

/// The demand of a cluster that holds so many machines, and one more when it has grown.
pub(crate) fn of_session(
    number: usize,
    machines: usize,
    has_grown: bool,
) -> wire::ClusterCapacityNeeds {
    let gangs = ROWS - 1;
    let member = (machines.saturating_sub(1) * CPU * 1000 / gangs).max(1);
    let gang = |nth: usize| {
        let mut need = plain(1, 1);
        need.aggregate_resources = amount(format!("{member}m"));
        need.min_unit = amount(format!("{member}m"));
        need.requirements.push(requirement(ZONE, 5, &[]));
        need.group = format!("gang-{nth}");
        need
    };
    let grown = plain(2, 1 + usize::from(has_grown));
    let needs = (0..gangs).map(gang).chain([grown]).collect();
    roll_up(number, needs)
}

/// How many whole machines a plain row wants.
pub(crate) fn whole_machines(need: &wire::CapacityNeed) -> usize {
    let cpu = need.aggregate_resources.get("cpu");
    cpu.and_then(|cpu| cpu.parse::<usize>().ok())
        .unwrap_or_default()
        / CPU
}

fn roll_up(number: usize, needs: Vec<wire::CapacityNeed>) -> wire::ClusterCapacityNeeds {
    wire::ClusterCapacityNeeds {
        cluster_id: cluster(number),
        needs,
        ..wire::ClusterCapacityNeeds::default()
    }
}

fn plain(priority: usize, machines: usize) -> wire::CapacityNeed {
    wire::CapacityNeed {
        requirements: vec![requirement(ARCH, 1, &["amd64"])],
        aggregate_resources: amount((machines * CPU).to_string()),
        min_unit: amount(CPU.to_string()),
        priority: priority.try_into().unwrap_or(i32::MAX),
        ..wire::CapacityNeed::default()
    }
}

fn amount(cpu: String) -> BTreeMap<String, String> {
    BTreeMap::from([("cpu".to_owned(), cpu)])
}

fn requirement(key: &str, operator: i32, values: &[&str]) -> wire::NodeSelectorRequirement {
    wire::NodeSelectorRequirement {
        key: key.to_owned(),
        operator,
        values: values.iter().map(|value| (*value).to_owned()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clusters_of_a_walk_want_every_machine() {
        let (clusters, machines) = (3, 1_234);
        let rows = (0..clusters).flat_map(|one| whole_fleet(one, clusters, machines).needs);
        let wanted: usize = rows.map(|need| whole_machines(&need)).sum();
        assert_eq!(wanted, machines);
    }
}
