//! Every scenario and every defect by name, so that each is a test of its own.
//!
//! A name is written with `_` for `-`. One that is missing here fails `every_…_has_a_test`.

#![allow(
    dead_code,
    unused_macros,
    unused_imports,
    reason = "not every test that shares this file uses all of it"
)]

/// Hands the names of all small scenarios to a macro, in the order of `Scenario::all`.
macro_rules! small_scenarios {
    ($make_tests:ident) => {
        $make_tests! {
            training_job_topology
            capacity_stockout
            priority_inversion
            withdrawal
            provider_configure_failure
            drain_failure_withdrawal
            steady_state
            bare_pods
            supply_exhaustion
            bound_counts
            bound_counts_shrinkage
            cost_routing
            idle_release
            release_after_shrink
            steady_state_rails
            supply_exhaustion_rails
            release_after_shrink_rails
            gang_scatter
            unsatisfiable_gang
            sub_machine_gangs
            oversized_gangs
            gang_contention
            gang_dwell
            incumbency
            incumbency_shared_racks
            at_1_static
            at_2_one_loss
            at_3_backlog
            at_4_failed_create
            runway
            runway_churn
            runway_burst
            loss_rate
            shed_regrow
            machine_rotation
            gang_sweep
            large_gangs
            kept_promises
            promises_over_a_crash
            own_rack
            first_come
            long_drain
            bigger_and_cheaper
            withdrawal_rails
            reclaim_in_a_crash_loop
            empty_roll_ups
            hasty_roll_ups
            unit_mistake
            crash_while_buying
            disk_lost
            no_node
            twins
            wrong_disk
            stock_out
            bad_cluster
            bad_cluster_crash_loop
            deletes_fail
            partition
            one_missing
            half_a_list
            dip
            dip_and_gone
            dip_and_crash
            dip_paused
            leftovers_first
            preempted_for_a_moment
            emptiest_first
            two_sizes
            dear_to_lose
            gang_at_home
            whole_units
            whole_in_two_dimensions
            units_of_two_sizes
            part_of_a_unit
            whole_now_and_then
            outgrown
            units_and_dips
            drain_a_rack
            drain_a_gang
            drain_in_a_crash_loop
            drain_now_under_rails
            drain_now_without_operator
            drained_and_noticed
            drain_one_by_one
            drain_on_and_off
            drain_without_spare
            drain_blocked
            drained_and_idle
            spot_notices
            wrong_notices
            drains_in_bad_weather
            drain_by_halves
            drain_beside_a_wait
            drain_of_an_incomplete_gang
            drain_under_folded_gangs
            drain_in_a_full_zone
            drain_of_a_zone
            drain_takes_its_turn
            drained_on_its_way
            random
            random_weather
            random_faults
            random_faults_rails
            soak_short
        }
    };
}

/// The small ones with a real operator, which take more time each.
macro_rules! operated_scenarios {
    ($make_tests:ident) => {
        $make_tests! {
            cluster_ramp
            ten_threes
            spares_refused
            cluster_rollover
            cluster_dip
            dip_unheard
            dip_and_killed
            left_unheard
            operator_killed
            killed_and_alone
            two_operators
            watch_faults
            api_refusals
            shard_restarts
            bad_cloud
            requests_wiped
            cluster_cut_off
            persons_cordon
            precious_pods
            hopeless_pods
            pods_apart
            short_cluster
            cluster_weather
        }
    };
}

/// The same for the large ones.
macro_rules! large_scenarios {
    ($make_tests:ident) => {
        $make_tests! {
            soak
            day_1k
            scarcity_5k
            preemption_5k
            oscillation_5k
            cost_routing_5k
            spot_churn_5k
            uber_5k
            gang_sweep_at_scale
        }
    };
}

/// The same for the defects.
macro_rules! defects {
    ($make_tests:ident) => {
        $make_tests! {
            attribution_lost_at_maturing
            claims_not_committed
            roll_up_arrival_reset
            first_roll_up_gate_off
            truncated_list_believed
            create_error_burns_slot
            commit_after_calling
            intent_not_durable
            fencing_not_checked
            reclaim_cap_off
            creating_not_credited
            credit_by_cluster_only
            draining_not_promised
            no_make_before_break
            no_own_first
            no_incumbent
            no_group_on_metadata
            unjoined_counted
            failed_configure_forgiven
            probes_unlimited
            delete_tried_for_ever
            partition_believed
            reclaims_forgotten
            hasty_roll_up_guard
            unit_mistake_believed
            twin_not_seen
            missing_not_asked_for
            credit_rounded_up
            credit_by_first_dimension
            merged_whole_if_any
            parts_of_units
            restored_first
            restored_last
            restored_for_anybody
            restored_and_restamped
            restored_too_late
            restored_though_preempted
            disruption_in_keep_order
            busiest_first
            penalty_ignored
            domain_ignored
            outgrown_not_held
            drain_not_durable
            leaving_now_capped
            soon_told_as_now
            now_told_as_soon
            drained_idle_offered
            deadline_ignored
            undrain_forgotten
            notices_all_believed
            notice_for_ever
            now_needs_operator
            soon_forced
            weaker_word_counts
            partial_purchase_kept
            leaving_held_for_anybody
            leaving_is_leftover
            incomplete_gang_replaces
            leaving_is_no_witness
            like_refused_by_spread
            dead_domain_counts
            replaced_after_all
            leaving_intent_stands
            cordon_without_record
            configured_is_no_cancel
            no_cleaning_on_leaving
            no_cleaning_by_resync
            cordon_not_remembered
            voluntary_not_settled
            record_is_an_instruction
            no_withdrawal_guard
            partial_cache_believed
            acknowledged_when_sent
            mass_flip_believed
            equal_units_whole
            bins_rounded_up
            spare_not_recorded_first
            doubt_kept
            alone_ignored
            running_pods_told
            lease_ignored
            provider_ignores_fences
            roll_up_guard_off
            bare_pods
            unmet_only
        }
    };
}

pub(crate) use {defects, large_scenarios, operated_scenarios, small_scenarios};

/// `gang_dwell` to `gang-dwell`.
pub(crate) fn dashed(name: &str) -> String {
    name.replace('_', "-")
}

/// Fails unless the tests are exactly what there is to test.
#[track_caller]
pub(crate) fn are_all(tested: &[&str], mut there: Vec<String>) {
    let mut tested: Vec<String> = tested.iter().map(|name| dashed(name)).collect();
    tested.sort();
    there.sort();
    assert_eq!(tested, there, "the names in tests/list/mod.rs");
}
