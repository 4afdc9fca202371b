//! Every number of the specification has a number behind it (shard.md §8).

use crate::support::{FULL, World, cluster, crowded};
use bigfleet_shard_core::{Event, Phase, ShardConfig, Value};
use std::collections::BTreeSet;

const SPECIFICATION: &str = include_str!("../../../../docs/spec/shard.md");

/// The names in the first column of the tables of shard.md §8.
fn specified() -> BTreeSet<&'static str> {
    let rows = SPECIFICATION
        .lines()
        .filter_map(|line| line.strip_prefix("| `"));
    let names = rows.filter_map(|row| row.split('`').next());
    names
        .filter(|name| name.starts_with("bigfleet_shard_"))
        .collect()
}

/// A world in which everything has happened that makes a series appear.
fn lived() -> World {
    let mut world = World::new(
        ShardConfig::production("s", "p"),
        "m01..m12 Configured a cpu=4 $1\n i1 Idle cpu=4 $1",
    );
    let session = world.ask("a", "cpu=52", 20.0);
    world.roll_up("a", "");
    world.tell(Event::RolledUp {
        session,
        cluster: crate::support::cluster("b"),
        rollup_id: String::new(),
        rows: Ok(Vec::new()),
    });
    world.tell(Event::CycleTook {
        seconds: 0.004,
        phases: vec![(Phase::Phase1, 0.003)],
    });
    world
}

#[test]
fn every_name_of_the_specification_has_a_number_and_the_other_way_round() {
    let numbers = lived().core.numbers();
    let mut published: BTreeSet<&str> = numbers.iter().map(|number| number.name).collect();
    let coordinated = ShardConfig {
        coordinated: true,
        ..ShardConfig::production("s", "p")
    };
    let told = World::new(coordinated, "").core.numbers();
    let above: BTreeSet<&str> = told.iter().map(|number| number.name).collect();
    assert_eq!(
        above.difference(&published).count(),
        7,
        "only with a coordinator"
    );
    published.extend(above);
    let specified = specified();
    assert!(40 < specified.len(), "{}", specified.len());
    let missing: Vec<_> = specified.difference(&published).collect();
    assert!(missing.is_empty(), "no number behind {missing:?}");
    let unheard: Vec<_> = published.difference(&specified).collect();
    assert!(unheard.is_empty(), "not in the specification: {unheard:?}");
    let mut series = BTreeSet::new();
    for number in &numbers {
        assert!(
            series.insert((number.name, &number.labels)),
            "{number:?} twice"
        );
    }
}

#[test]
fn numbers_move_with_what_happens() {
    let world = lived();
    let numbers = world.core.numbers();
    let value = |name: &str, label: &str| {
        let found = numbers.iter().find(|number| {
            let labelled = number.labels.iter().any(|(_, value)| value == label);
            number.name == name && (label.is_empty() || labelled)
        });
        match &found.unwrap_or_else(|| panic!("{name}")).value {
            Value::Counter(count) => *count as f64,
            Value::Gauge(value) => *value,
            Value::Histogram(histogram) => histogram.count() as f64,
        }
    };
    assert_eq!(value("bigfleet_shard_actions_total", "Bootstrap"), 1.0);
    assert_eq!(value("bigfleet_shard_configure_phase_seconds", ""), 1.0);
    assert_eq!(value("bigfleet_shard_cycle_duration_seconds", ""), 1.0);
    assert_eq!(
        value("bigfleet_shard_cycle_phase_duration_seconds", "phase1"),
        1.0
    );
    assert_eq!(
        value("bigfleet_shard_cycle_phase_duration_seconds", "phase2"),
        0.0
    );
    assert_eq!(value("bigfleet_shard_rollups_rejected_total", "a"), 1.0);
    assert_eq!(value("bigfleet_shard_active_sessions", ""), 1.0);
    assert_eq!(value("bigfleet_shard_utilisation_ratio", "cpu"), 0.0);
}

/// One series of a core, by name and the values of its labels; NaN if it is not there.
fn shown(world: &World, name: &str, labels: &[&str]) -> f64 {
    let numbers = world.core.numbers();
    let found = numbers.iter().find(|number| {
        let values: Vec<&str> = number.labels.iter().map(|(_, of)| of.as_str()).collect();
        number.name.strip_prefix("bigfleet_shard_") == Some(name) && values == labels
    });
    match found.map(|number| &number.value) {
        Some(Value::Counter(count)) => *count as f64,
        Some(Value::Gauge(value)) => *value,
        Some(Value::Histogram(histogram)) => histogram.count() as f64,
        None => f64::NAN,
    }
}

/// Machines are counted where they are, and no longer where they were.
#[test]
fn machines_are_counted_by_their_state() {
    let mut world = World::new(ShardConfig::undamped("s", "p"), "m1..m3 Idle cpu=4 $1");
    let counts = |world: &World| {
        let numbers = world.core.numbers();
        ["Idle", "Configured"].map(|state| {
            let of_state = numbers.iter().filter(|number| {
                let is_of_state = number.labels.iter().any(|(_, value)| value == state);
                number.name == "bigfleet_shard_inventory_machines" && is_of_state
            });
            of_state
                .map(|number| match number.value {
                    Value::Gauge(value) => value,
                    Value::Counter(_) | Value::Histogram(_) => f64::NAN,
                })
                .sum::<f64>()
        })
    };
    world.run(1.0);
    assert_eq!(counts(&world), [3.0, 0.0]);
    world.ask("a", "cpu=8", 20.0);
    assert_eq!(counts(&world), [1.0, 2.0]);
}

/// A day of one cluster, in the numbers the reference does not have.
#[test]
fn demand_money_and_rails_are_in_the_numbers() {
    let mut world = World::new(
        ShardConfig::production("s", "p"),
        "m01..m39 Configured a cpu=4 $1.5
         i1 Idle cpu=4 $2
         s1 Speculative cpu=4 $9",
    );
    world.ask("a", "cpu=160", 20.0);
    assert_eq!(shown(&world, "needs", &["true"]), 1.0);
    assert_eq!(shown(&world, "needs", &["false"]), 0.0);
    assert_eq!(shown(&world, "demand_resources", &["cpu"]), 160.0);
    assert_eq!(shown(&world, "bound_clusters", &[]), 1.0);
    let spend = "estimated_spend_dollars_per_hour";
    let all: f64 = world
        .core
        .numbers()
        .iter()
        .filter(|number| number.name.ends_with(spend))
        .map(|number| match number.value {
            Value::Gauge(value) => value,
            _ => f64::NAN,
        })
        .sum();
    assert_eq!(all, 39.0 * 1.5 + 2.0, "one that is not there yet is free");
    let ended = "action_duration_seconds";
    assert_eq!(shown(&world, ended, &["Bootstrap", "success"]), 1.0);
    assert_eq!(shown(&world, ended, &["Reclaim", "success"]), 0.0);
    assert!(shown(&world, ended, &["Reclaim", "fenced"]).is_nan());

    world.roll_up(
        "a",
        "cpu=160\n cpu=400 zone=In(nowhere)\n cpu=9 group=g rack=Same zone=In(nowhere)",
    );
    world.run(120.0);
    assert_eq!(shown(&world, "needs", &["false"]), 2.0);
    let reasons = ["NO_MATCHING_SUPPLY", "TOPOLOGY_UNSATISFIABLE"];
    let unmet = reasons.map(|reason| shown(&world, "need_unmet", &[reason]));
    assert_eq!(unmet.iter().sum::<f64>(), 2.0, "{unmet:?}");
    assert_eq!(shown(&world, "gangs_parked", &[]), 1.0);

    // Nobody is there to evict, and a person has spoken for the cluster.
    world.disconnect("a");
    assert_eq!(shown(&world, "bound_clusters", &[]), 1.0);
    assert_eq!(shown(&world, "active_sessions", &[]), 0.0);
    world.tell(Event::ReleaseCluster {
        cluster: crate::support::cluster("a"),
        machines: 40,
    });
    world.run(1.0);
    assert_eq!(
        shown(&world, "drain_fallbacks_total", &[]),
        2.0,
        "a twentieth"
    );
    let capped = shown(&world, "reclaims_capped_by_cluster_total", &["a"]);
    assert!(38.0 <= capped, "{capped}");
    assert_eq!(shown(&world, "reclaims_capped_total", &[]), capped);
}

/// Rail 2 says since when.
#[test]
fn a_roll_up_that_is_held_is_held_for_so_long() {
    let mut world = World::new(ShardConfig::production("s", "p"), "i1 Idle cpu=4 $1");
    world.connect("a", FULL);
    let rows: Vec<String> = (0..12).map(|at| format!("cpu=1 prio={at}")).collect();
    world.roll_up("a", &rows.join("\n"));
    world.run(1.0);
    let held = |world: &World| shown(world, "rollup_quarantine_seconds", &["a"]);
    assert_eq!(held(&world), 0.0);
    world.roll_up("a", "");
    world.run(7.0);
    world.roll_up("a", "");
    assert!((7.0..8.0).contains(&held(&world)), "{}", held(&world));
    world.run(13.0);
    world.roll_up("a", "");
    assert_eq!(held(&world), 0.0, "the third is believed, after 20 s");
}

/// An alert on an increase does not see the first of a series that was not there before it.
#[test]
fn what_an_alert_waits_for_is_there_at_zero_before_it_happens() {
    let mut world = World::new(ShardConfig::production("s", "p"), "m1 Idle cpu=4 $1");
    world.connect("a", FULL);
    world.run(1.0);
    let numbers = world.core.numbers();
    let zero = |name: &str, labels: &[(&'static str, &str)]| {
        let labels: Vec<_> = labels
            .iter()
            .map(|(key, of)| (*key, (*of).to_owned()))
            .collect();
        let found = numbers
            .iter()
            .find(|number| number.name == name && number.labels == labels);
        let found = found.unwrap_or_else(|| panic!("{name} {labels:?} is not there"));
        assert!(
            [Value::Counter(0), Value::Gauge(0.0)].contains(&found.value),
            "{found:?}"
        );
    };
    for kind in ["Bootstrap", "Provision", "Preempt", "Reclaim", "Delete"] {
        let outcome = [("kind", kind), ("outcome", "fenced")];
        zero("bigfleet_shard_action_execute_outcomes_total", &outcome);
    }
    let cluster = [("cluster", "a")];
    zero("bigfleet_shard_rollups_rejected_total", &cluster);
    zero("bigfleet_shard_rollup_quarantined", &cluster);
}

/// CY-3: the first cycles are not measured.
#[test]
fn warm_up_cycles_are_not_measured() {
    let config = ShardConfig {
        metrics_warmup_cycles: 2,
        ..ShardConfig::undamped("s", "p")
    };
    let mut world = World::new(config, "m1 Idle cpu=4 $1");
    let took = || Event::CycleTook {
        seconds: 0.1,
        phases: Vec::new(),
    };
    let measured = [0, 1, 2].map(|_| {
        world.tell(Event::CycleDue);
        world.tell(took());
        world.now += 1.0;
        world.core.latencies().cycle.count()
    });
    assert_eq!(measured, [0, 0, 1]);
}

/// The depth of the queue counts whoever waits to leave, also those whose cluster has all its calls out.
#[test]
fn the_queue_is_as_deep_as_there_are_operations_that_wait_to_leave() {
    let mut world = crowded(5, "s01..s40 Speculative cpu=4 $1", 60.0);
    world.roll_up("a", "cpu=40");
    world.run(5.0);
    assert_eq!(shown(&world, "execute_inflight", &[]), 3.0);
    assert_eq!(shown(&world, "action_queue_depth", &[]), 7.0);
    world.roll_up("b", "cpu=12");
    world.run(5.0);
    assert_eq!(shown(&world, "execute_inflight", &[]), 5.0);
    assert_eq!(shown(&world, "action_queue_depth", &[]), 8.0);
    assert_eq!(world.core.gauges().waiting, 8);
}

/// SH-24: a cluster that was there once does not stay among the series for ever.
#[test]
fn a_cluster_that_holds_nothing_is_forgotten_after_an_hour() {
    let config = || ShardConfig::undamped("s", "p");
    let mut world = World::new(config(), "m1 Configured b cpu=4 $1");
    for name in ["a", "b"] {
        world.connect(name, FULL);
        world.run(1.0);
        world.roll_up(name, "cpu=4");
    }
    world.run(5.0);
    world.roll_up("a", "");
    world.run(700.0);
    world.disconnect("a");
    world.disconnect("b");
    let is_known = |world: &World, name: &str| {
        let numbers = world.core.numbers();
        let mut labels = numbers.iter().flat_map(|number| &number.labels);
        let is_in_series = labels.any(|(_, value)| value == name);
        assert_eq!(is_in_series, world.core.clusters().contains(&cluster(name)));
        is_in_series
    };
    world.run(3_500.0);
    assert!(is_known(&world, "a") && is_known(&world, "b"));
    world.run(200.0);
    assert!(!is_known(&world, "a"), "it holds nothing");
    assert!(is_known(&world, "b"), "it has a machine and wants one");
    let again = World::around(
        config(),
        world.provider.clone(),
        2,
        world.disk.records().to_vec(),
        world.now,
    );
    assert!(!is_known(&again, "a") && is_known(&again, "b"));
    world.connect("a", FULL);
    world.roll_up("a", "cpu=4");
    world.run(20.0);
    assert!(is_known(&world, "a"));
}
