//! The same seed gives the same bytes, on every machine and after every change that does not mean to
//! change a workload. A benchmark's number is only worth comparing if this test has not moved.

use bigfleet_model::Row;
use bigfleet_workloads::{Churn, Preset, SeededMachine, Workload};

/// FNV-1a over lines of text.
struct Digest(u64);

impl Digest {
    fn line(&mut self, text: &str) {
        for byte in text.bytes().chain([b'\n']) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    fn row(&mut self, row: &Row) {
        let Row {
            profile,
            aggregate,
            min_unit,
            group,
            whole_units: _,
        } = row;
        let (aggregate, min_unit) = (aggregate.key(), min_unit.key());
        self.line(&format!(
            "{} {group} {aggregate} {min_unit}",
            profile.fingerprint()
        ));
    }
}

fn digest(write: impl FnOnce(&mut Digest)) -> String {
    let mut digest = Digest(0xcbf2_9ce4_8422_2325);
    write(&mut digest);
    format!("{:016x}", digest.0)
}

fn machines(workload: &Workload, every: usize) -> String {
    digest(|digest| {
        for machine in workload.machines().step_by(every).take(20_000) {
            let shape = &workload.shapes()[machine.shape()];
            let serves = workload
                .commitment(&machine)
                .map(|commitment| commitment.key().to_string());
            let (tier, offer) = (machine.tier, shape.effective().key());
            digest.line(&format!(
                "{machine} {tier:?} {} {:?} {offer} {serves:?}",
                shape.instance_type, shape.labels
            ));
        }
    })
}

fn rows(workload: &Workload, every: usize) -> String {
    digest(|digest| {
        for cluster in workload.clusters().step_by(every) {
            digest.line(cluster.id().as_str());
            cluster.rows().for_each(|row| digest.row(&row));
        }
    })
}

fn churn(workload: &Workload) -> String {
    digest(|digest| {
        let mut churn = Churn::new(workload, 1);
        for _ in 0..12 {
            let changes = churn.next_cycle().clone();
            for changed in changes.rows {
                digest.line(&format!("{changed:?}"));
                churn.row(changed).iter().for_each(|row| digest.row(row));
            }
            changes
                .lost
                .iter()
                .for_each(|lost| digest.line(&lost.to_string()));
        }
    })
}

#[test]
fn workloads_are_the_same_bytes_for_ever() {
    let found = |preset: Preset, every| {
        let workload = preset.build(1);
        let parts = [
            machines(&workload, every),
            rows(&workload, every),
            churn(&workload),
        ];
        format!("{} {}", preset.name(), parts.join(" "))
    };
    let found = [
        found(Preset::CoLocated, 1),
        found(Preset::Dev50, 1),
        found(Preset::FiveK, 1),
        found(Preset::FiftyK, 12),
    ];
    let expected = [
        "co-located 10a15af244a42d3b 3833aae4685acbef b2e50ae3a1539ae7",
        "dev-50 65dedc83ae1cb63c 5e544c19f37bee58 a1a5929447e2b79c",
        "5k 94e5b5c45aad6be7 3c4dbe36630e8620 2c94cb7a3f5a01e1",
        "50k 2da712a864803418 a5257ed6d1017da7 215e436b5e691ad3",
    ];
    assert_eq!(found, expected);
}

#[test]
fn another_seed_is_another_fleet() {
    let first = |seed| rows(&Preset::Dev50.build(seed), 1);
    assert_eq!(first(1), first(1));
    assert_ne!(first(1), first(2));
}

#[test]
fn a_machine_is_a_few_bytes_and_writes_its_own_id() {
    assert!(size_of::<SeededMachine>() <= 20);
    let workload = Preset::Dev50.build(1);
    let mut text = String::new();
    workload.machines().next().unwrap().write_id(&mut text);
    assert_eq!(text, "conf-s0-c0-i0");
    let last = workload.machines().last().unwrap();
    assert_eq!(last.to_string(), "spec-3069");
}
