//! The three catalogs: realistic, coverage and cost routing (workloads.md §2.1, §2.2, §2.3).
//!
//! The realistic one is calibrated on *machines*: Pods pack a hundred to a commodity machine and one
//! to a training machine, so a fleet drawn to a Pod mix would be nine tenths GPUs (workloads.md §2.1).

use crate::{
    Size,
    catalog::{Archetype, Catalog, Gang, Together},
    valid,
};
use bigfleet_model::{Spread, WhenUnsatisfiable, ZONE_KEY};
use std::time::Duration;

/// The zones every catalog's workloads may run in.
pub const ZONES: [&str; 3] = ["zone-a", "zone-b", "zone-c"];

/// The realistic catalog: the mix of a large fleet, calibrated on machines.
pub fn realistic() -> Catalog {
    checked(vec![
        tiny_stateless(16073),
        cpu_service(2755),
        cpu_batch(1378),
        critical_realtime(230),
        memory_cache(2000),
        stateful_db(2000),
        gpu_inference(100),
        gpu_training("small", 32, (16384.0, 32768.0), Together::Rack, (2, 8)),
        gpu_training("medium", 18, (32768.0, 65536.0), Together::Rack, (8, 16)),
        Archetype {
            sizes: vec![(1, Size::cores(128, 512).with_gpus(8))],
            burst_only: true,
            ..gpu_training("large", 1, (65536.0, 131_072.0), Together::Zone, (64, 256))
        },
    ])
}

/// The coverage catalog: every path is walked in a small fleet. For gates only; no measurement taken
/// with it says anything about a fleet.
pub fn coverage() -> Catalog {
    checked(vec![
        tiny_stateless(40),
        cpu_service(15),
        cpu_batch(10),
        memory_cache(8),
        stateful_db(8),
        Archetype {
            instance_types: names(&["a3-highgpu-1g", "a2-highgpu-1g"]),
            pods_per_node: Some(1),
            ..gpu_inference(5)
        },
        gpu_training("small", 8, (16384.0, 32768.0), Together::Rack, (2, 4)),
        gpu_training("medium", 6, (32768.0, 65536.0), Together::Zone, (4, 8)),
        critical_realtime(3),
    ])
}

/// The cost-routing catalog: two archetypes that differ only in what an interruption costs them.
pub fn cost_routing() -> Catalog {
    let kind = |name, interruption| Archetype {
        pods_per_node: Some(100),
        ..archetype(
            name,
            100,
            &["c6i.4xlarge", "m6i.2xlarge"],
            &[(1, Size::cores(4, 8))],
            100,
            (interruption, 0.0),
        )
    };
    checked(vec![kind("tolerant", 0.0), kind("sensitive", 8.0)])
}

fn tiny_stateless(weight: u32) -> Archetype {
    let sizes = [(60, Size::milli(400, 500)), (40, Size::milli(300, 384))];
    let types = ["m6i.large", "m6i.xlarge"];
    Archetype {
        spread: spread(2, WhenUnsatisfiable::ScheduleAnyway, 0.45),
        ..archetype("tiny-stateless", weight, &types, &sizes, 100, (32.0, 64.0))
    }
}

fn cpu_service(weight: u32) -> Archetype {
    let sizes = [
        (70, Size::milli(2200, 8500)),
        (30, Size::milli(4200, 16500)),
    ];
    let types = ["m6i.xlarge", "m6i.2xlarge"];
    Archetype {
        spread: spread(1, WhenUnsatisfiable::DoNotSchedule, 0.75),
        ..archetype(
            "cpu-service",
            weight,
            &types,
            &sizes,
            1000,
            (1024.0, 8192.0),
        )
    }
}

fn cpu_batch(weight: u32) -> Archetype {
    let sizes = [(60, Size::cores(4, 8)), (40, Size::cores(8, 16))];
    let types = ["c6i.4xlarge", "c6i.8xlarge", "n2-standard-32"];
    Archetype {
        spread: spread(2, WhenUnsatisfiable::ScheduleAnyway, 0.15),
        mean_lifetime: Some(Duration::from_secs(600)),
        ..archetype("cpu-batch", weight, &types, &sizes, 100, (64.0, 256.0))
    }
}

fn critical_realtime(weight: u32) -> Archetype {
    let sizes = [(1, Size::cores(4, 8))];
    let types = ["c6i.4xlarge", "m6i.2xlarge"];
    Archetype {
        spread: spread(1, WhenUnsatisfiable::DoNotSchedule, 1.0),
        ..archetype(
            "critical-realtime",
            weight,
            &types,
            &sizes,
            1_000_000,
            (65536.0, 65536.0),
        )
    }
}

fn memory_cache(weight: u32) -> Archetype {
    let sizes = [(1, Size::cores(2, 16))];
    let types = ["r6i.xlarge", "r6i.2xlarge"];
    let penalties = (4096.0, 16384.0);
    Archetype {
        gang: gang(Together::Rack, (3, 5), true),
        ordered: true,
        ..archetype("memory-cache", weight, &types, &sizes, 1000, penalties)
    }
}

fn stateful_db(weight: u32) -> Archetype {
    let sizes = [(1, Size::cores(8, 32))];
    let types = ["r6i.2xlarge", "r6i.4xlarge"];
    let penalties = (8192.0, 32768.0);
    Archetype {
        gang: gang(Together::Rack, (3, 5), true),
        ordered: true,
        ..archetype("stateful-db", weight, &types, &sizes, 1000, penalties)
    }
}

fn gpu_inference(weight: u32) -> Archetype {
    let sizes = [(1, Size::cores(8, 32).with_gpus(1))];
    let types = ["a3-highgpu-8g", "a2-highgpu-8g"];
    let penalties = (4096.0, 8192.0);
    Archetype {
        pods_per_node: Some(8),
        spread: spread(2, WhenUnsatisfiable::ScheduleAnyway, 0.5),
        ..archetype("gpu-inference", weight, &types, &sizes, 1000, penalties)
    }
}

fn gpu_training(
    kind: &str,
    weight: u32,
    penalties: (f64, f64),
    together: Together,
    members: (u32, u32),
) -> Archetype {
    let sizes = [(1, Size::cores(64, 256).with_gpus(8))];
    let name = format!("gpu-training-{kind}");
    Archetype {
        pods_per_node: Some(1),
        gang: gang(together, members, false),
        ..archetype(&name, weight, &["a3-highgpu-8g"], &sizes, 1000, penalties)
    }
}

fn archetype(
    name: &str,
    weight: u32,
    instance_types: &[&str],
    sizes: &[(u32, Size)],
    priority: i32,
    (interruption_penalty, reclamation_penalty): (f64, f64),
) -> Archetype {
    Archetype {
        name: name.to_owned(),
        weight,
        pods_per_node: None,
        instance_types: names(instance_types),
        sizes: sizes.to_vec(),
        priorities: vec![priority],
        interruption_penalty,
        reclamation_penalty,
        gang: None,
        spread: None,
        mean_lifetime: None,
        ordered: false,
        burst_only: false,
    }
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn gang(together: Together, (least, most): (u32, u32), partial_ok: bool) -> Option<Gang> {
    Some(Gang {
        together,
        least,
        most,
        partial_ok,
    })
}

fn spread(skew: i32, when: WhenUnsatisfiable, probability: f64) -> Option<(Spread, f64)> {
    Spread::new(ZONE_KEY.to_owned(), skew, when).map(|spread| (spread, probability))
}

fn checked(archetypes: Vec<Archetype>) -> Catalog {
    valid(Catalog::new(archetypes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_have_the_replicas_the_bands_say() {
        let catalog = realistic();
        let milli = |name| catalog.archetypes()[catalog.position(name).unwrap()].replicas_milli();
        assert_eq!(milli("tiny-stateless"), 21_375);
        assert_eq!(milli("memory-cache"), 4_000);
        assert_eq!(milli("gpu-training-small"), 5_000);
        assert_eq!(milli("gpu-training-medium"), 12_000);
        let drawn: u32 = catalog.archetypes().iter().map(Archetype::drawn).sum();
        assert_eq!(drawn, 24_586, "the large gang is never drawn");
    }

    /// workloads.md §2.1, the derived table: per cent of objects and of Pods.
    #[test]
    fn the_derived_mixes_are_those_of_the_table() {
        let catalog = realistic();
        let kinds = catalog.archetypes();
        let objects: u64 = kinds.iter().map(|kind| u64::from(kind.drawn())).sum();
        let pods: u64 = kinds.iter().map(Archetype::pod_share).sum();
        let machines = |kind: &Archetype| kind.pod_share() as f64 / f64::from(kind.packing(100));
        let all_machines: f64 = kinds.iter().map(machines).sum();
        let table = [
            ("tiny-stateless", 65.38, 75.45, 66.4),
            ("cpu-service", 11.21, 12.93, 11.4),
            ("cpu-batch", 5.61, 6.47, 5.7),
            ("critical-realtime", 0.94, 1.08, 0.95),
            ("memory-cache", 8.14, 1.76, 1.55),
            ("stateful-db", 8.14, 1.76, 1.55),
            ("gpu-inference", 0.41, 0.47, 5.2),
            ("gpu-training-small", 0.13, 0.035, 3.1),
            ("gpu-training-medium", 0.073, 0.047, 4.2),
        ];
        for (name, object, pod, machine) in table {
            let kind = &kinds[catalog.position(name).unwrap()];
            let close =
                |share: f64, want: f64| assert!((share - want).abs() < 0.06, "{name} {share}");
            close(100.0 * f64::from(kind.drawn()) / objects as f64, object);
            close(100.0 * kind.pod_share() as f64 / pods as f64, pod);
            close(100.0 * machines(kind) / all_machines, machine);
        }
    }

    #[test]
    fn a_broken_catalog_is_refused_by_name_of_the_breach() {
        let refused = |change: fn(&mut Archetype)| {
            let mut broken = tiny_stateless(1);
            change(&mut broken);
            let refused = Catalog::new(vec![tiny_stateless(1), broken]).unwrap_err();
            assert_eq!(refused.position, 1);
            refused.to_string()
        };
        assert!(refused(|a| a.name.clear()).contains("no name"));
        assert!(refused(|a| a.instance_types.clear()).contains("no instance type"));
        assert!(refused(|a| a.sizes.clear()).contains("no size"));
        assert!(
            refused(|a| a.spread = spread(1, WhenUnsatisfiable::DoNotSchedule, 1.5))
                .contains("from 0 to 1")
        );
        assert!(refused(|a| a.gang = gang(Together::Rack, (1, 2), true)).contains("together"));
    }

    #[test]
    fn gang_sizes_are_normalised() {
        let sizes = |least, most| gang(Together::Zone, (least, most), true).unwrap().sizes();
        assert_eq!(sizes(0, 0), (1, 1));
        assert_eq!(sizes(4, 2), (4, 4));
        assert_eq!(sizes(3, 5), (3, 5));
    }
}
