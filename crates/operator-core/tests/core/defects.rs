//! Every defect changes an outcome: a switch that does nothing would make a failing arm worthless.

use crate::support::{World, config, pod, request};
use bigfleet_operator_core::{Defect, Event, Kind, MachineState, Object, OperatorConfig};

/// What a scenario shows with the rule kept, and with the mistake.
fn arms<T>(defect: Defect, scenario: impl Fn(OperatorConfig) -> T) -> (T, T) {
    let kept = config();
    assert_eq!(kept.defect, None);
    let broken = OperatorConfig {
        defect: Some(defect),
        ..kept.clone()
    };
    (scenario(kept), scenario(broken))
}

#[test]
fn all_defects_are_listed_once() {
    let mut all = Defect::ALL.to_vec();
    all.dedup();
    assert!(all.is_sorted());
    assert_eq!(all.len(), Defect::ALL.len());
}

fn serving(config: OperatorConfig) -> World {
    let mut world = World::started(config);
    world.serve(1, &["p1"]);
    world.run_for(3);
    world
}

#[test]
fn a_cordon_without_record_is_never_taken_back_by_another_process() {
    let cordoned = arms(Defect::CordonWithoutRecord, |config| {
        let mut world = serving(config.clone());
        world.protected.insert("uid-p1".to_owned());
        world.reclaim("i1", "m1", false, 60);
        world
            .machines
            .insert("m1".to_owned(), MachineState::Configured);
        world.restart(config);
        world.run_for(60);
        world.nodes["n1"].is_cordoned
    });
    assert_eq!(cordoned, (false, true));
}

#[test]
fn a_machine_that_serves_again_stays_cordoned_if_that_is_no_cancel() {
    let cordoned = arms(Defect::ConfiguredIsNoCancel, |config| {
        let mut world = serving(config);
        world.reclaim("i1", "m1", true, 600);
        world.machine_is("m1", MachineState::Configured);
        world.nodes["n1"].is_cordoned
    });
    assert_eq!(cordoned, (false, true));
}

#[test]
fn what_left_is_left_behind_without_cleaning() {
    let left = arms(Defect::NoCleaningOnLeaving, |config| {
        let mut world = serving(config);
        world.reclaim("i1", "m1", false, 60);
        world.machine_is("m1", MachineState::Idle);
        let now = world.now;
        world.change_node("n1", |node| {
            (node.is_ready, node.ready_since) = (false, now)
        });
        world.run_for(120);
        world.nodes.len() + world.upcoming.len()
    });
    assert_eq!(left, (0, 2));
}

#[test]
fn what_left_unheard_is_left_behind_without_resync() {
    let left = arms(Defect::NoCleaningByResync, |config| {
        let mut world = serving(config);
        world.lose_session();
        world.machines.clear();
        world.run_for(60);
        world.upcoming.len()
    });
    assert_eq!(left, (0, 1));
}

#[test]
fn a_persons_cordon_is_taken_off_if_it_is_not_remembered() {
    let cordoned = arms(Defect::CordonNotRemembered, |config| {
        let mut world = serving(config);
        world.change_node("n1", |node| node.is_cordoned = true);
        world.reclaim("i1", "m1", true, 600);
        world.cancel("i1");
        world.nodes["n1"].is_cordoned
    });
    assert_eq!(cordoned, (true, false));
}

#[test]
fn a_voluntary_drain_disturbs_for_nothing_if_it_does_not_settle() {
    let evicted = arms(Defect::VoluntaryNotSettled, |config| {
        let mut world = serving(config);
        world.reclaim("i1", "m1", true, 600);
        world.run_for(30);
        world.cancel("i1");
        world.evicted.len()
    });
    assert_eq!(evicted, (0, 1));
}

#[test]
fn a_precious_pod_is_disturbed() {
    let evicted = arms(Defect::DisturbsAnyPod, |config| {
        let mut world = serving(config);
        let mut precious = pod("precious");
        precious.annotations.insert(
            "bigfleet.lucy.sh/do-not-disrupt".to_owned(),
            "true".to_owned(),
        );
        world.pods.insert("n1".to_owned(), vec![precious]);
        world.reclaim("i1", "m1", true, 600);
        world.run_for(120);
        world.evicted.len()
    });
    assert_eq!(evicted, (0, 1));
}

#[test]
fn a_record_alone_evicts() {
    let evicted = arms(Defect::RecordIsAnInstruction, |config| {
        let mut world = serving(config.clone());
        world.reclaim("i1", "m1", true, 600);
        world.is_shard_up = false;
        world.restart(config);
        world.run_for(120);
        world.evicted.len()
    });
    assert_eq!(evicted, (0, 1));
}

#[test]
fn a_wiped_store_withdraws_everything() {
    let sent = arms(Defect::NoWithdrawalGuard, |config| {
        let mut world = World::started(config);
        (0..20).for_each(|n| world.add_request(request(&format!("p{n}"), "1")));
        world.run_for(3);
        world.forget_said();
        (0..20).for_each(|n| world.remove_request(&format!("p{n}")));
        world.run_for(60);
        world.roll_ups().len()
    });
    assert_eq!(sent.0, 0);
    assert!(0 < sent.1);
}

#[test]
fn a_list_that_broke_off_is_believed() {
    let counted = arms(Defect::PartialCacheBelieved, |config| {
        let mut world = World::started(config);
        ["a", "b", "c"]
            .iter()
            .for_each(|name| world.add_request(request(name, "1")));
        world.tell(Event::Began(Kind::Request));
        world.tell(Event::Seen(Object::Request(Box::new(request("a", "1"))), 1));
        world.tell(Event::Broken(Kind::Request));
        world.core.requests()
    });
    assert_eq!(counted, (3, 1));
}

#[test]
fn a_request_is_told_what_no_shard_has() {
    let acknowledged = arms(Defect::AcknowledgedWhenSent, |config| {
        let mut world = World::started(config);
        world.answer = None;
        world.add_request(request("a", "1"));
        world.run_for(3);
        world.core.counters().acknowledged
    });
    assert_eq!(acknowledged, (0, 1));
}

#[test]
fn a_broken_network_is_believed() {
    let told = arms(Defect::MassFlipBelieved, |config| {
        let mut world = World::started(config);
        (0..10).for_each(|n| world.serve(n, &[]));
        world.run_for(5);
        world.forget_said();
        for n in 0..9 {
            let now = world.now;
            world.change_node(&format!("n{n}"), |node| {
                (node.is_ready, node.ready_since) = (false, now)
            });
        }
        world.run_for(5);
        let is_report =
            |frame: &_| matches!(frame, bigfleet_operator_core::Frame::NodeReport { .. });
        world
            .frames
            .iter()
            .filter(|(_, frame)| is_report(frame))
            .count()
    });
    assert_eq!(told, (0, 1));
}

/// A whole row of equal units that one new Pod of another size makes a row that is not: every machine moves.
#[test]
fn rows_of_equal_units_flip_their_shape() {
    let flips = arms(Defect::EqualUnitsWhole, |config| {
        let mut world = World::started(config);
        world.add_request(request("a", "1"));
        world.run_for(3);
        let before = world.roll_ups().pop().unwrap()[0].whole_units;
        world.add_request(request("b", "2"));
        world.run_for(3);
        before != world.roll_ups().pop().unwrap()[0].whole_units
    });
    assert_eq!(flips, (false, true));
}
