//! A full decision, for people. Gates count work instead (`tests/gates.rs`).

use bigfleet_bench::{CO_LOCATED_DIGEST, FIVE_K_DIGEST, Rig};
use bigfleet_workloads::Preset;
use criterion::{Criterion, criterion_group, criterion_main};

/// 20 clusters that are short, 2,580 rows, 18,000 machines.
fn co_located(c: &mut Criterion) {
    full(c, Preset::CoLocated, CO_LOCATED_DIGEST);
}

/// 20 clusters in a steady state, 4,743 rows, 24,432 machines.
fn five_k(c: &mut Criterion) {
    full(c, Preset::FiveK, FIVE_K_DIGEST);
}

fn full(c: &mut Criterion, preset: Preset, digest: &str) {
    let workload = preset.build(1);
    let mut rig = Rig::load(&workload);
    rig.decide_full();
    // Faster but different is a bug.
    assert_eq!(rig.engine().decision().digest().to_string(), digest);
    let name = format!("decide/{}", preset.name());
    c.bench_function(&name, |b| b.iter(|| rig.decide_full()));
}

criterion_group!(benches, co_located, five_k);
criterion_main!(benches);
