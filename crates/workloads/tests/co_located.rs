//! The engine benchmark's fleet is exactly the one written down (workloads.md §6).

use bigfleet_model::{Fleet, Machine, NeedKey, Row, State};
use bigfleet_workloads::{Preset, RACK_KEY, Tier};
use std::collections::{BTreeMap, BTreeSet};

fn rows(fleet: &Fleet) -> BTreeMap<String, u32> {
    let mut rows = BTreeMap::new();
    for need in fleet.clusters.values().flat_map(|cluster| cluster.needs()) {
        let Row {
            profile,
            aggregate,
            min_unit,
            group,
            whole_units: _,
        } = &need.row;
        let gang = if group.is_empty() { "plain" } else { "gang" };
        let text = format!(
            "{gang} {} {aggregate:?} {min_unit:?}",
            profile.fingerprint()
        );
        *rows.entry(text).or_default() += 1;
    }
    rows
}

#[test]
fn twenty_clusters_report_2580_rows_of_four_kinds() {
    let fleet = Preset::CoLocated.build(1).fleet();
    let expected = [
        (
            "gang p=1000|ipb=16|rpb=16|reqs=node.kubernetes.io/instance-type:1:a3-highgpu-8g;\
             topology.bigfleet/rack:5:;|spr= \
             {\"cpu\": \"320\", \"nvidia.com/gpu\": \"40\"} {\"cpu\": \"64\", \"nvidia.com/gpu\": \"8\"}",
            640,
        ),
        (
            "gang p=1000|ipb=16|rpb=16|reqs=node.kubernetes.io/instance-type:1:r6i.2xlarge;\
             topology.bigfleet/rack:5:;|spr= \
             {\"cpu\": \"16\", \"memory\": \"137438953472\"} {\"cpu\": \"4\", \"memory\": \"34359738368\"}",
            1900,
        ),
        (
            "plain p=1000|ipb=16|rpb=16|reqs=node.kubernetes.io/instance-type:1:m6i.xlarge;|spr= \
             {\"cpu\": \"6600\", \"memory\": \"26738688000000\"} {\"cpu\": \"2200m\", \"memory\": \"8912896000\"}",
            20,
        ),
        (
            "plain p=100|ipb=16|rpb=16|reqs=node.kubernetes.io/instance-type:1:m6i.large,m6i.xlarge;|spr= \
             {\"cpu\": \"7000\", \"memory\": \"9175040000000\"} {\"cpu\": \"400m\", \"memory\": \"524288000\"}",
            20,
        ),
    ];
    let expected = expected.map(|(text, count)| (text.to_owned(), count));
    assert_eq!(rows(&fleet), BTreeMap::from(expected));
    assert_eq!(fleet.clusters.len(), 20);
}

#[test]
fn eighteen_thousand_machines_stand_in_twelve_racks_of_blocks_of_eight() {
    let fleet = Preset::CoLocated.build(1).fleet();
    let mut kinds: BTreeMap<(State, &str, String), u32> = BTreeMap::new();
    let mut racks: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for machine in fleet.machines.values().map(|m| &m.machine) {
        let shape = machine.shape();
        assert_eq!(shape.zone, "zone-a");
        let offer = format!("{:?}", shape.effective());
        *kinds
            .entry((machine.state(), &shape.instance_type, offer))
            .or_default() += 1;
        let rack = shape.attribute(RACK_KEY).unwrap();
        racks.entry(&shape.instance_type).or_default().insert(rack);
    }
    let tiny = "{\"cpu\": \"40\", \"memory\": \"52428800000\"}";
    let service = "{\"cpu\": \"22\", \"memory\": \"89128960000\"}";
    let cache = "{\"cpu\": \"40\", \"memory\": \"343597383680\"}";
    let gpu = "{\"cpu\": \"64\", \"nvidia.com/gpu\": \"8\"}";
    let expected = [
        (State::Speculative, "a3-highgpu-8g", gpu, 4000),
        (State::Speculative, "m6i.large", tiny, 4000),
        (State::Speculative, "r6i.2xlarge", cache, 4000),
        (State::Idle, "a3-highgpu-8g", gpu, 333),
        (State::Idle, "m6i.large", tiny, 334),
        (State::Idle, "r6i.2xlarge", cache, 333),
        (State::Configured, "a3-highgpu-8g", gpu, 300),
        (State::Configured, "m6i.large", tiny, 3500),
        (State::Configured, "m6i.xlarge", service, 600),
        (State::Configured, "r6i.2xlarge", cache, 600),
    ];
    let expected = expected.map(|(state, kind, offer, n)| ((state, kind, offer.to_owned()), n));
    assert_eq!(kinds, BTreeMap::from(expected));
    assert!(racks.values().all(|racks| racks.len() == 12));
    assert_eq!(fleet.machines.len(), 18_000);
}

/// Tiny rows are covered exactly; caches serve the row their gangs fold to; GPU machines serve gangs
/// that no rack boundary runs through.
#[test]
fn serving_machines_are_committed_to_rows_of_their_cluster() {
    let workload = Preset::CoLocated.build(1);
    let mut own: BTreeMap<NeedKey, Vec<Machine>> = BTreeMap::new();
    for machine in workload.machines().filter(|m| m.tier == Tier::Configured) {
        let record = workload.record(&machine);
        own.entry(record.attribution().unwrap())
            .or_default()
            .push(record);
    }
    let mut sizes: BTreeMap<(&str, bool), Vec<usize>> = BTreeMap::new();
    for (key, machines) in &own {
        let kind = machines[0].shape().instance_type.as_str();
        let folded = key.group.as_str() == "fold:cpu=16000;memory=137438953472000;";
        sizes
            .entry((kind, folded))
            .or_default()
            .push(machines.len());
        let racks: BTreeSet<_> = machines
            .iter()
            .map(|m| m.shape().attribute(RACK_KEY))
            .collect();
        assert!(
            kind != "a3-highgpu-8g" || racks.len() == 1,
            "{key} is torn apart"
        );
    }
    assert_eq!(sizes[&("m6i.large", false)], [175; 20]);
    assert_eq!(sizes[&("m6i.xlarge", false)], [30; 20]);
    assert_eq!(sizes[&("r6i.2xlarge", true)], [30; 20]);
    let gpu = &sizes[&("a3-highgpu-8g", false)];
    assert_eq!(gpu.iter().sum::<usize>(), 300);
    assert!(gpu.iter().all(|machines| *machines <= 5));
    assert_eq!(workload.cluster(0).folded_row_count(), 35);
}
