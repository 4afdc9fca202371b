//! What a release may not lose: the meaning of a decision, and that its cost follows churn. Work is
//! counted, so that the same code always passes or always fails.

use bigfleet_bench::{CO_LOCATED_DIGEST, FIVE_K_DIGEST, Rig};
use bigfleet_engine::Work;
use bigfleet_model::ActionKind;
use bigfleet_workloads::{Churn, Preset, Rates, Scale, Workload};

const SEED: u64 = 1;

/// The fleet record by record as a shard would load it, and as one value.
fn check_digest(preset: Preset, digest: &str) {
    let workload = preset.build(SEED);
    let mut rig = Rig::load(&workload);
    rig.decide_full();
    assert_eq!(rig.engine().decision().digest().to_string(), digest);
    let whole = bigfleet_engine::decide(&workload.fleet());
    assert_eq!(whole.digest().to_string(), digest);
}

#[test]
fn the_co_located_decision_is_what_it_was() {
    check_digest(Preset::CoLocated, CO_LOCATED_DIGEST);
}

#[test]
fn the_5k_decision_is_what_it_was() {
    check_digest(Preset::FiveK, FIVE_K_DIGEST);
}

/// The same numbers as the oracle's: what `bench decide` compares on every run, at a size that is
/// quick enough for a test.
#[test]
fn the_dev_50_decision_is_the_oracles() {
    let fleet = Preset::Dev50.build(SEED).fleet();
    let (engine, oracle) = (
        bigfleet_engine::decide(&fleet),
        bigfleet_oracle::decide(&fleet),
    );
    assert_eq!(engine, oracle);
}

/// Nothing leaves the fleet as it is drawn, so what its clusters tell decides nothing.
#[test]
fn a_steady_fleet_that_tells_more_is_decided_on_as_before() {
    check_digest(Preset::FiveKTold, FIVE_K_DIGEST);
}

/// Whole units, disruption: the same numbers as the oracle's.
#[test]
fn what_clusters_tell_is_decided_on_as_the_oracle_does() {
    let told = Scale {
        tells: true,
        ..Preset::Dev50.scale().unwrap()
    };
    let mut fleet = told.build("dev-50-told", SEED).fleet();
    let busy = |known: &bigfleet_model::FleetMachine| known.disruption.is_some();
    assert!(fleet.machines.values().any(busy));
    // A tenth of the demand goes, so that machines leave and it matters which.
    for cluster in fleet.clusters.values_mut() {
        let rows = cluster
            .needs()
            .iter()
            .step_by(10)
            .cloned()
            .collect::<Vec<_>>();
        let kept = cluster.needs().iter().filter(|need| !rows.contains(need));
        let kept = kept.map(|need| (need.row.clone(), need.arrival, need.parked));
        let id = rows[0].cluster.clone();
        *cluster = bigfleet_model::Cluster::new(&id, kept.collect::<Vec<_>>()).unwrap();
    }
    let (engine, oracle) = (
        bigfleet_engine::decide(&fleet),
        bigfleet_oracle::decide(&fleet),
    );
    assert_eq!(engine, oracle);
    assert!(engine.needs.iter().any(|one| one.need.row.whole_units));
    let reclaims = engine.actions.iter();
    let reclaims = reclaims.filter(|one| one.kind == ActionKind::Reclaim);
    assert_ne!(reclaims.count(), 0);
}

/// A dip of one cycle finds its machines on their way out and takes them back; where nobody says that it can be
/// done, nobody does.
#[test]
fn what_dips_and_returns_is_taken_back() {
    let restores = |preset: Preset| {
        let workload = preset.build(SEED);
        let mut rig = Rig::load(&workload);
        rig.decide_full();
        let mut churn = Churn::new(&workload, SEED);
        let mut restores = 0;
        for _ in 0..CYCLES {
            rig.wait();
            let facts = rig.next_facts(&mut churn);
            rig.take_in(&facts);
            rig.decide();
            let actions = rig.engine().actions();
            let restored = actions.iter();
            restores += restored
                .filter(|one| one.kind == ActionKind::Restore)
                .count();
        }
        restores
    };
    assert_eq!(restores(Preset::FiveK), 0);
    let restored = restores(Preset::FiveKTold);
    assert!(CYCLES < restored, "{restored}");
}

/// What happened in some steady cycles.
struct Steady {
    work: Work,
    /// Rows and machines that differed from the cycle before.
    changes: u64,
}

impl Steady {
    fn touched(&self) -> u64 {
        let Work {
            needs,
            machines,
            classes,
            ..
        } = self.work;
        needs + machines + classes
    }
}

const CYCLES: usize = 20;

/// A fleet at the catalog's churn in its first so many clusters.
fn steady(workload: &Workload, clusters: usize) -> Steady {
    let mut rig = Rig::load(workload);
    rig.decide_full();
    let rates = Rates {
        clusters,
        ..Rates::default()
    };
    let mut churn = Churn::with(workload, SEED, rates);
    let (mut before, mut changes) = (Work::default(), 0);
    // Only the second half counts: the first fills the fleet with machines on their way.
    for cycle in 0..2 * CYCLES {
        if cycle == CYCLES {
            (before, changes) = (rig.engine().work(), 0);
        }
        rig.wait();
        let facts = rig.next_facts(&mut churn);
        changes += (facts.rows() + facts.machines()) as u64;
        rig.take_in(&facts);
        rig.decide();
    }
    let after = rig.engine().work();
    let work = Work {
        needs: after.needs - before.needs,
        machines: after.machines - before.machines,
        classes: after.classes - before.classes,
        marked: after.marked - before.marked,
    };
    Steady { work, changes }
}

#[test]
fn a_quiet_cycle_touches_nothing() {
    for preset in [Preset::Dev50, Preset::FiveK] {
        let workload = preset.build(SEED);
        let mut rig = Rig::load(&workload);
        rig.decide_full();
        // Whatever was decided at first is done, and then nothing happens any more.
        let mut churn = Churn::with(
            &workload,
            SEED,
            Rates {
                clusters: 0,
                ..Rates::default()
            },
        );
        for _ in 0..5 {
            rig.wait();
            let facts = rig.next_facts(&mut churn);
            rig.take_in(&facts);
            rig.decide();
        }
        let before = rig.engine().work();
        for _ in 0..100 {
            rig.wait();
            rig.decide();
        }
        assert_eq!(rig.engine().work(), before);
    }
}

#[test]
fn a_steady_cycle_touches_what_changed() {
    let workload = Preset::FiveK.build(SEED);
    let Steady { work, changes } = steady(&workload, usize::MAX);
    println!("5k: {work:?} for {changes} changes");
    assert!(
        100 * CYCLES as u64 <= changes,
        "{changes} changes are no churn"
    );
    let Work {
        needs,
        machines,
        classes,
        ..
    } = work;
    // A changed row is one Need; several changes often meet in one folded row.
    assert!(needs <= changes, "{needs} needs for {changes} changes");
    assert!(
        classes <= changes,
        "{classes} classes for {changes} changes"
    );
    // A plain row walks its own machines, a hundred of them here; most changed rows are gangs.
    assert!(
        machines <= 80 * changes,
        "{machines} machines for {changes} changes"
    );
}

#[test]
fn the_same_churn_costs_the_same_in_a_larger_fleet() {
    let [small, large] = [5_000, 10_000].map(|machines| {
        let workload = Scale::of(machines).build("gate", SEED);
        steady(&workload, 10).touched()
    });
    println!("touched: {small} in 5k, {large} in 10k");
    assert!(
        0 < small && 2 * large <= 3 * small,
        "{small} in 5k, {large} in 10k"
    );
}
