//! What becomes of actions: the walks of each kind, and how they end (SH-5, SH-6, SH-11).

use crate::support::{FULL, Refusal, World, cluster, id, world};
use bigfleet_model::{Holds, State, Time};
use bigfleet_shard_core::{
    Code, Defect, Effect, Event, Features, Outcome, ProviderCall, ShardConfig, ShardCore, Withheld,
};
use std::time::Duration;

/// The whole way of a bought machine, with a provider that takes its time.
#[test]
fn a_speculative_machine_is_bought_bootstrapped_drained_and_deleted() {
    let mut world = world("s1 Speculative cpu=4 $1 OnDemand");
    world.provider.latency = 30.0;
    world.ask("a", "cpu=4", 200.0);
    assert_eq!(world.state("s1"), State::Configured);
    assert_eq!(world.calls(), ["Create s1", "Configure s1"]);
    world.roll_up("a", "");
    world.run(2000.0);
    assert_eq!(world.state("s1"), State::Speculative);
    let calls = ["Create s1", "Configure s1", "Drain s1", "Delete s1"];
    assert_eq!(world.calls(), calls);
    assert_eq!(world.core.counters().idle_releases, 1);
}

/// EX-W1.
#[test]
fn ex_w1_a_bootstrap_without_an_operator_rolls_back() {
    let mut world = world("m1 Idle cpu=4 $1");
    world.connect("a", FULL);
    world.run(1.0);
    world.disk_delay = Some(5.0);
    world.roll_up("a", "cpu=4");
    assert_eq!(world.state("m1"), State::Configuring, "committed at once");
    world.disconnect("a");
    world.run(6.0);
    let machine = world.core.machine(&id("m1")).unwrap();
    assert_eq!((machine.state(), machine.cluster()), (State::Idle, None));
    assert_eq!(machine.attribution(), None);
    assert_eq!(world.outcomes(), [("m1".to_owned(), Outcome::NoSession)]);
    assert!(world.calls().is_empty());
    let a = cluster("a");
    assert_eq!(world.core.withheld(&a), Some(Withheld::NoOperatorSession));
    let short: Vec<_> = world.core.shortfalls().map(|one| one.withheld).collect();
    assert_eq!(short, [Some(Withheld::NoOperatorSession)], "it says why");
    world.connect("a", FULL);
    world.run(20.0);
    assert_eq!(world.state("m1"), State::Configured, "re-decided");
}

/// EX-W2.
#[test]
fn ex_w2_a_machine_on_its_way_is_not_bought_again() {
    let mut world = world("s1..s3 Speculative cpu=4 $1");
    world.provider.latency = 45.0;
    world.ask("a", "cpu=4", 40.0);
    assert_eq!(world.state("s1"), State::Creating);
    assert_eq!(world.calls(), ["Create s1"]);
    world.run(30.0);
    assert_eq!(world.calls(), ["Create s1", "Configure s1"]);
}

/// EX-W3 and EX-NS2.
#[test]
fn ex_w3_a_reclaim_of_a_synchronous_provider_tells_the_cluster_twice() {
    let mut world = world("m1 Configured a cpu=4 $1");
    let session = world.connect("a", Features::default());
    world.run(1.0);
    world.clear();
    world.roll_up("a", "");
    world.run(1.0);
    assert_eq!(world.nodes(session), ["m1 Draining", "m1 Idle"]);
    let machine = world.core.machine(&id("m1")).unwrap();
    assert_eq!((machine.cluster(), machine.attribution()), (None, None));
}

/// EX-W4.
#[test]
fn ex_w4_a_drain_of_an_asynchronous_provider_ends_in_a_list() {
    let mut world = world("m1 Configured a cpu=4 $1");
    world.provider.latency = 25.0;
    let session = world.connect("a", Features::default());
    world.run(1.0);
    world.clear();
    world.roll_up("a", "");
    world.run(15.0);
    assert_eq!(world.state("m1"), State::Draining);
    assert!(world.core.is_pending(&id("m1")));
    world.run(20.0);
    assert_eq!(world.state("m1"), State::Idle);
    assert_eq!(world.nodes(session), ["m1 Draining", "m1 Idle"]);
}

/// EX-W5.
#[test]
fn ex_w5_a_released_machine_has_no_host() {
    let mut world = world("m1 Idle cpu=4 $1 OnDemand");
    world.run(700.0);
    let machine = world.core.machine(&id("m1")).unwrap();
    assert_eq!(
        (machine.state(), machine.host()),
        (State::Speculative, None)
    );
    assert_eq!(world.calls(), ["Delete m1"]);
}

/// SH-5: nothing leaves that is not on disk.
#[test]
fn nothing_leaves_before_its_commit_is_on_disk() {
    let mut world = world("m1 Idle cpu=4 $1\n s1 Speculative cpu=4 $2\n x1 Configured b cpu=4 $1");
    world.connect("a", FULL);
    world.connect("b", FULL);
    world.run(1.0);
    world.disk_delay = None;
    world.roll_up("a", "cpu=8");
    world.roll_up("b", "");
    world.run(300.0);
    let acted = world
        .effects
        .iter()
        .filter(|(_, one)| one.acts_on().is_some());
    assert_eq!(acted.count(), 0);
    assert_eq!(world.state("m1"), State::Configuring);
    assert_eq!(world.state("s1"), State::Creating);
    assert_eq!(world.state("x1"), State::Draining);
}

/// SH-11: unknown is sent again with a fresh sequence, and buys nothing else.
#[test]
fn an_unknown_outcome_is_sent_again_with_a_fresh_sequence() {
    let mut world = world("s1..s2 Speculative cpu=4 $1");
    let codes = [Code::Unavailable, Code::DeadlineExceeded, Code::Transport];
    let lost = codes.map(Refusal::Lost).to_vec();
    world.provider.refuse.insert(id("s1"), lost);
    world.ask("a", "cpu=4", 100.0);
    assert_eq!(world.state("s1"), State::Configured);
    assert_eq!(world.state("s2"), State::Speculative);
    assert_eq!(world.provider.machines[&id("s1")].creates, 1);
    let sequences: Vec<u64> = world
        .effects
        .iter()
        .filter_map(|(_, effect)| match effect {
            Effect::Call { token, .. } => Some(token.sequence),
            _ => None,
        })
        .collect();
    assert!(
        sequences.is_sorted_by(|one, next| one < next),
        "{sequences:?}"
    );
}

/// DC-7.
#[test]
fn a_call_that_never_left_is_taken_back() {
    let mut world = world("s1 Speculative cpu=4 $1");
    world
        .provider
        .refuse
        .insert(id("s1"), vec![Refusal::NeverSent]);
    world.ask("a", "cpu=4", 0.15);
    assert_eq!(world.outcomes(), [("s1".to_owned(), Outcome::NeverSent)]);
    assert_eq!(world.core.counters().rollbacks, 1);
    world.run(60.0);
    assert_eq!(world.state("s1"), State::Configured, "decided again");
}

/// SH-11: a stock-out costs time, never a slot.
#[test]
fn a_stock_out_backs_the_pool_off_and_takes_another() {
    let mut world = world(
        "s1..s2 Speculative cpu=4 $1 type=m5 zone=a
         t1 Speculative cpu=4 $2 type=m5 zone=b",
    );
    let sold_out = vec![Refusal::Code(Code::ResourceExhausted); 9];
    world.provider.refuse.insert(id("s1"), sold_out.clone());
    world.provider.refuse.insert(id("s2"), sold_out);
    world.ask("a", "cpu=4", 30.0);
    assert_eq!(world.calls(), ["Create s1", "Create t1", "Configure t1"]);
    assert_eq!(world.state("s1"), State::Speculative);
    world.roll_up("a", "cpu=8");
    world.run(400.0);
    let tries = world
        .calls()
        .iter()
        .filter(|call| *call == "Create s1")
        .count();
    assert!((3..=8).contains(&tries), "tried {tries} times");
    assert_eq!(world.core.counters().breakers_opened, 1);
}

/// SH-23: the provider has an error for every Delete, and does nothing.
#[test]
fn a_delete_that_fails_is_given_up_and_its_host_stays_supply() {
    let seen = [None, Some(Defect::DeleteTriedForEver)].map(|defect| {
        let config = ShardConfig {
            defect,
            holds: Holds {
                on_demand: Some(Duration::from_secs(60)),
                spot: None,
            },
            ..ShardConfig::undamped("s", "p")
        };
        let machines = "m1 Idle cpu=4 $1 OnDemand\n s1 Speculative cpu=4 $1 OnDemand";
        let mut world = World::new(config, machines);
        let errors = vec![Refusal::Code(Code::Internal); 900];
        world.provider.refuse.insert(id("m1"), errors);
        world.connect("a", FULL);
        world.run(1.0);
        world.roll_up("a", "");
        world.run(500.0);
        let deletes = world.calls().len();
        assert!((3..=20).contains(&deletes), "{:?}", world.calls());
        let state = world.state("m1");
        world.provider.refuse.clear();
        world.clear();
        world.roll_up("a", "cpu=4");
        world.run(30.0);
        (state, world.calls())
    });
    let kept = (State::Idle, vec!["Configure m1".to_owned()]);
    assert_eq!(seen[0], kept);
    assert_eq!(seen[1].0, State::Deleting);
    assert!(seen[1].1.contains(&"Create s1".to_owned()), "{:?}", seen[1]);
}

/// SH-11: NOT_FOUND.
#[test]
fn a_machine_that_is_gone_is_replaced_by_exactly_one() {
    let mut world = world("s1..s3 Speculative cpu=4 $1");
    let gone = vec![Refusal::Code(Code::NotFound)];
    world.provider.refuse.insert(id("s1"), gone);
    world.provider.hidden.insert(id("s1"));
    world.connect("a", FULL);
    world.run(1.0);
    world.provider.hidden.clear();
    world.tell(Event::CycleDue);
    world.run(10.0);
    world.roll_up("a", "cpu=4");
    world.provider.hidden.insert(id("s1"));
    world.run(60.0);
    assert!(world.core.machine(&id("s1")).is_none());
    assert_eq!(world.calls(), ["Create s1", "Create s2", "Configure s2"]);
}

/// SH-11: INTERNAL is resolved by a Get; Failed is the provider's word.
#[test]
fn an_internal_error_is_resolved_by_a_get() {
    let mut world = world("s1..s2 Speculative cpu=4 $1");
    world.provider.latency = 20.0;
    let lost = vec![Refusal::Lost(Code::Internal)];
    world.provider.refuse.insert(id("s1"), lost);
    world.ask("a", "cpu=4", 5.0);
    assert_eq!(world.calls(), ["Create s1"], "the Get shows it is at it");
    world.there("s1").become_state(State::Failed);
    world.run(100.0);
    assert_eq!(world.state("s1"), State::Failed);
    assert_eq!(world.state("s2"), State::Configured);
}

/// SH-11: UNIMPLEMENTED on Delete.
#[test]
fn a_machine_that_cannot_be_deleted_stays_idle_and_is_not_tried_again() {
    let mut world = world("m1 Idle cpu=4 $1 OnDemand");
    let unsupported = vec![Refusal::Code(Code::Unimplemented); 3];
    world.provider.refuse.insert(id("m1"), unsupported);
    world.run(3000.0);
    assert_eq!(world.state("m1"), State::Idle);
    assert_eq!(world.calls(), ["Delete m1"]);
    assert!(0 < world.core.counters().deletes_unsupported);
}

/// SH-11: INVALID_ARGUMENT.
#[test]
fn a_malformed_call_backs_the_cluster_off() {
    let mut world = world("m1 Idle cpu=4 $1");
    let refused = vec![Refusal::Code(Code::InvalidArgument)];
    world.provider.refuse.insert(id("m1"), refused);
    world.ask("a", "cpu=4", 5.0);
    assert_eq!(world.state("m1"), State::Idle);
    let a = cluster("a");
    assert_eq!(world.core.withheld(&a), Some(Withheld::BootstrapBackoff));
    world.run(30.0);
    assert_eq!(world.state("m1"), State::Configured);
}

/// FE-4, SH-11: the first rejected token stops everything.
#[test]
fn a_fenced_shard_stops_all_mutations() {
    let mut world = world("m1..m2 Idle cpu=4 $1\n x1 Configured b cpu=4 $1");
    world.there("m1").mark = (9, 9);
    world.connect("a", FULL);
    world.connect("b", FULL);
    world.run(1.0);
    world.roll_up("a", "cpu=4");
    world.run(5.0);
    assert_eq!(world.calls(), ["Configure m1"]);
    assert!(!world.core.is_ready());
    world.roll_up("a", "cpu=8");
    world.roll_up("b", "");
    world.run(100.0);
    assert_eq!(world.calls(), ["Configure m1"], "nothing leaves any more");
    assert!(
        world
            .outcomes()
            .contains(&("m1".to_owned(), Outcome::Fenced))
    );
}

/// EX-FE3: tokens are compared per machine, so calls may arrive in any order across machines.
#[test]
fn ex_fe3_sequences_are_per_process_and_marks_per_machine() {
    let mut world = world("m1..m9 Idle cpu=4 $1");
    world.ask("a", "cpu=36", 5.0);
    let marks: Vec<u64> = world
        .provider
        .machines
        .values()
        .map(|there| there.mark.1)
        .collect();
    assert_eq!(marks.len(), 9);
    assert!(marks.iter().all(|mark| 1 <= *mark));
    assert_eq!(world.core.counters().retries, 0);
}

/// W-5: an operator that cannot make a blob costs time, never a machine.
#[test]
fn a_blob_that_does_not_come_rolls_back_and_backs_the_cluster_off() {
    let mut world = world("m1 Idle cpu=4 $1");
    world.blobs = false;
    world.ask("a", "cpu=4", 32.0);
    assert_eq!(world.state("m1"), State::Idle);
    assert_eq!(world.outcomes(), [("m1".to_owned(), Outcome::Timeout)]);
    world.blobs = true;
    world.run(60.0);
    assert_eq!(world.state("m1"), State::Configured);
}

/// SH-12: what Configure writes.
#[test]
fn configure_writes_who_bound_the_machine_and_by_which_operation() {
    let mut world = world("m1 Idle cpu=4 $1");
    world.ask("a", "cpu=4 prio=7", 5.0);
    let metadata = world.effects.iter().find_map(|(_, effect)| match effect {
        Effect::Call {
            call: ProviderCall::Configure { metadata, .. },
            ..
        } => Some(metadata.clone()),
        _ => None,
    });
    let metadata = metadata.unwrap();
    assert_eq!(metadata["bigfleet.lucy.sh/assigned-shard"], "s");
    assert_eq!(
        metadata["bigfleet.lucy.sh/assigned-intent"],
        "0000000100000001"
    );
    assert_eq!(metadata["bigfleet.lucy.sh/assigned-priority"], "7");
    assert_eq!(metadata.len(), 7);
}

/// SH-12: a machine that turns out to be bound to somebody else is a conflict, not ours.
#[test]
fn an_ack_for_another_cluster_is_a_conflict() {
    let mut world = world("m1 Idle cpu=4 $1");
    world.connect("a", FULL);
    world.run(1.0);
    let there = world.there("m1");
    there.set(|facts| facts.cluster = "z".to_owned());
    there.become_state(State::Configured);
    let shard = "bigfleet.lucy.sh/assigned-shard".to_owned();
    there.metadata.insert(shard, "other".to_owned());
    world.roll_up("a", "cpu=4");
    world.run(5.0);
    assert_eq!(world.core.counters().conflicts, 2, "seen, and not ours");
    assert!(world.core.machine(&id("m1")).is_none());
}

/// SH-1: a clock that wakes the shard a moment early does not stop it for ever.
#[test]
fn a_shard_woken_early_asks_to_be_woken_again() {
    let config = ShardConfig::undamped("s", "p");
    let mut core = ShardCore::new(config, 1, Time::ZERO).unwrap();
    let mut effects = Vec::new();
    let mut wake = |core: &mut ShardCore, seconds: f64| {
        effects.clear();
        let now = Time::from_seconds(seconds).unwrap();
        core.handle(now, Event::Woken, &mut effects);
        effects.iter().find_map(|effect| match effect {
            Effect::WakeAt(when) => Some(when.seconds()),
            _ => None,
        })
    };
    let asked = wake(&mut core, 0.0).expect("a shard that has just started waits for something");
    assert!(0.0 < asked);
    assert_eq!(wake(&mut core, asked - 0.001), Some(asked));
}
