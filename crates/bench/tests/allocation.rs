//! A quiet cycle allocates nothing, at any size.

use bigfleet_bench::Rig;
use bigfleet_workloads::{Churn, Preset};

#[test]
fn a_quiet_cycle_allocates_nothing() {
    for preset in [Preset::Dev50, Preset::CoLocated, Preset::FiveK] {
        let workload = preset.build(1);
        let mut rig = Rig::load(&workload);
        rig.decide_full();
        // Also after cycles that were not.
        let mut churn = Churn::new(&workload, 1);
        for cycle in 0..3 {
            let quiet = allocation_counter::measure(|| {
                rig.wait();
                rig.decide();
            });
            assert_eq!(
                quiet.count_total,
                0,
                "{} cycle {cycle}: {quiet:?}",
                preset.name()
            );
            let facts = rig.next_facts(&mut churn);
            let busy = allocation_counter::measure(|| {
                rig.take_in(&facts);
                rig.decide();
            });
            assert_ne!(busy.count_total, 0, "the counter counts nothing");
        }
    }
}
