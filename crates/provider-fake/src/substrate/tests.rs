//! What the cloud would do, asked directly: no kit, no clock, no process.

use super::*;
use crate::catalogue::conventional;
use crate::knobs::{Latency, PerTransition, Stock};
use bigfleet_provider_kit::{FailureClass, check_instance};

const SECOND: Duration = Duration::from_secs(1);
const NOW: Time = Time::from_nanos(1_000_000_000_000);

/// Twelve slots, every third of them spot.
fn cloud(knobs: Knobs) -> Substrate {
    Substrate::new("fake", conventional("fake", 12), knobs, true)
}

/// Every machine as a provider would show it now.
fn machines(cloud: &Substrate) -> Vec<Arc<Machine>> {
    let checked = |instance: &Instance| Arc::new(check_instance(instance, true).unwrap());
    cloud.describe().iter().map(checked).collect()
}

fn serving(machine: &Machine, cluster: &str) -> Machine {
    Machine {
        cluster: cluster.to_owned(),
        ..machine.clone()
    }
}

fn create(cloud: &mut Substrate, machine: &Machine) -> Outcome {
    match cloud.plan(Transition::Create, machine, Duration::ZERO).end {
        End::Returns(outcome) => outcome,
        other => panic!("{other:?}"),
    }
}

/// A cloud in which every slot has a host.
fn full(knobs: Knobs) -> Substrate {
    let mut cloud = cloud(knobs);
    for machine in machines(&cloud) {
        create(&mut cloud, &machine).unwrap();
    }
    cloud
}

fn hosts(cloud: &Substrate) -> usize {
    let slots = cloud.describe().into_iter();
    slots.filter(|slot| slot.host.is_some()).count()
}

#[test]
fn a_prompt_cloud_takes_no_time_and_a_create_makes_a_host() {
    let mut cloud = cloud(Knobs::default());
    let slot = machines(&cloud).remove(0);
    let plan = cloud.plan(Transition::Create, &slot, Duration::ZERO);
    assert_eq!(plan.after, Duration::ZERO);
    let End::Returns(Ok(Some(created))) = plan.end else {
        panic!("{plan:?}");
    };
    assert_eq!(machines(&cloud)[0].host, Some(created.host));
    cloud.succeeded(Transition::Delete, &machines(&cloud)[0]);
    assert_eq!(hosts(&cloud), 0);
}

#[test]
fn operations_overtake_each_other_and_the_same_seed_repeats_it() {
    let run = |seed| {
        let mut cloud = cloud(Knobs {
            seed,
            latency: PerTransition::all("1s..50s".parse::<Latency>().unwrap()),
            ..Knobs::default()
        });
        let times: Vec<Duration> = machines(&cloud)
            .iter()
            .map(|slot| cloud.plan(Transition::Create, slot, Duration::ZERO).after)
            .collect();
        times
    };
    let times = run(3);
    assert_eq!(times, run(3));
    assert_ne!(times, run(4));
    assert!(!times.is_sorted(), "{times:?}");
}

#[test]
fn a_drain_takes_no_longer_than_its_grace() {
    let mut cloud = cloud(Knobs {
        latency: PerTransition::all(Latency::Fixed(60 * SECOND)),
        ..Knobs::default()
    });
    let machine = machines(&cloud).remove(0);
    let mut drain = |grace| cloud.plan(Transition::Drain, &machine, grace).after;
    assert_eq!(drain(5 * SECOND), 5 * SECOND);
    assert_eq!(drain(300 * SECOND), 60 * SECOND);
}

#[test]
fn what_is_out_of_stock_is_not_made_until_a_host_is_given_back() {
    let mut cloud = cloud(Knobs {
        stock: vec![Stock {
            instance_type: "g4.standard".to_owned(),
            zone: "zone-a".to_owned(),
            hosts: 1,
        }],
        ..Knobs::default()
    });
    let here = |machine: &Arc<Machine>| machine.id.as_str().contains("g4.standard-zone-a");
    let slots: Vec<_> = machines(&cloud).into_iter().filter(here).collect();
    assert!(create(&mut cloud, &slots[0]).is_ok());
    let refused = create(&mut cloud, &slots[1]).unwrap_err();
    assert_eq!(refused.class, FailureClass::NoStock);
    assert!(refused.text.starts_with("insufficient capacity"));
    cloud.succeeded(Transition::Delete, &slots[0]);
    assert!(create(&mut cloud, &slots[1]).is_ok());
}

#[test]
fn a_busy_cloud_asks_to_come_back_and_a_failing_one_does_not() {
    let outcome = |knobs| {
        let mut cloud = cloud(knobs);
        let slot = machines(&cloud).remove(0);
        let failure = create(&mut cloud, &slot).unwrap_err();
        assert_eq!(hosts(&cloud), 0, "what was turned away made no host");
        failure.class
    };
    let busy = Knobs {
        busy: PerTransition::all(1.0),
        ..Knobs::default()
    };
    assert_eq!(outcome(busy), FailureClass::Passing);
    let failing = Knobs {
        failure: PerTransition::all(1.0),
        ..Knobs::default()
    };
    assert_eq!(outcome(failing), FailureClass::Retryable);
}

#[test]
fn a_caller_picks_a_fault_by_the_cluster_it_configures_for() {
    let mut cloud = full(Knobs::default());
    let machine = machines(&cloud).remove(0);
    let mut end = |kind, cluster: &str| {
        let machine = serving(&machine, cluster);
        cloud.plan(kind, &machine, SECOND).end
    };
    let fails = |end: End| matches!(end, End::Returns(Err(_)));
    assert_eq!(end(Transition::Configure, "prod"), End::Returns(Ok(None)));
    assert_eq!(
        end(Transition::Configure, "fault-slow-ok"),
        End::IgnoresCancel(Ok(None))
    );
    assert_eq!(end(Transition::Configure, "fault-timeout"), End::Blocks);
    assert_eq!(end(Transition::Configure, "fault-panic"), End::Panics);
    assert!(fails(end(Transition::Configure, "fault-error")));
    // The fault stays with the machine: this one strikes when it leaves.
    assert!(!fails(end(Transition::Configure, "fault-drain-error")));
    assert!(fails(end(Transition::Drain, "")));
}

#[test]
fn a_lost_host_is_seen_only_in_the_inventory() {
    let mut cloud = full(Knobs {
        host_loss_rate: 1e9,
        ..Knobs::default()
    });
    let known = machines(&cloud);
    assert_eq!(cloud.tick(NOW, SECOND, known.iter()), []);
    assert_eq!(hosts(&cloud), 0);
}

#[test]
fn spot_is_taken_back_and_what_is_owned_is_not() {
    let mut cloud = full(Knobs {
        interruption_factor: 1e9,
        ..Knobs::default()
    });
    let known = machines(&cloud);
    let events = cloud.tick(NOW, SECOND, known.iter());
    let spot = known
        .iter()
        .filter(|machine| machine.offer.capacity_type == CapacityType::Spot);
    let broken = spot.map(|machine| Event::Broke {
        machine: machine.id.clone(),
        failure: Failure::retryable("spot capacity was taken back"),
    });
    assert_eq!(events, broken.collect::<Vec<_>>());
    assert_eq!((events.len(), hosts(&cloud)), (4, 8));
}

/// SH-20: announced once, in the inventory from then on, and taken back when it said so.
#[test]
fn an_interruption_may_be_announced_before_it_comes() {
    let mut cloud = full(Knobs {
        interruption_factor: 1e9,
        interruption_notice: "120s".parse().unwrap(),
        ..Knobs::default()
    });
    let known = machines(&cloud);
    let at = NOW + 120 * SECOND;
    let announced = cloud.tick(NOW, SECOND, known.iter());
    let is_notice =
        |event: &Event| matches!(event, Event::Leaves { at: told, .. } if *told == Some(at));
    assert!(announced.iter().all(is_notice));
    assert_eq!((announced.len(), hosts(&cloud)), (4, 12));
    let shown = |cloud: &Substrate| {
        let slots = cloud.describe().into_iter();
        slots.filter(|slot| slot.leaving == Some(at)).count()
    };
    assert_eq!(shown(&cloud), 4);
    assert_eq!(
        cloud.tick(at - SECOND, SECOND, known.iter()),
        [],
        "said once"
    );
    let taken = cloud.tick(at, SECOND, known.iter());
    assert!(
        taken
            .iter()
            .all(|event| matches!(event, Event::Broke { .. }))
    );
    assert_eq!((taken.len(), hosts(&cloud), shown(&cloud)), (4, 8, 0));
}

#[test]
fn a_caller_has_a_notice_announced_and_withdrawn() {
    let mut cloud = full(Knobs::default());
    let machine = Arc::new(Machine {
        state: State::Configured,
        ..serving(&machines(&cloud).remove(0), "fault-notice-2000")
    });
    cloud.plan(Transition::Configure, &machine, SECOND);
    let mut tick = |now| cloud.tick(now, SECOND, std::iter::once(&machine));
    let leaves = |at| {
        let machine = machine.id.clone();
        [Event::Leaves { machine, at }]
    };
    assert_eq!(tick(NOW), leaves(Some(NOW + 3600 * SECOND)));
    assert_eq!(tick(NOW + SECOND), []);
    assert_eq!(tick(NOW + 2 * SECOND), leaves(None));
    assert_eq!(tick(NOW + 3 * SECOND), [], "once");
}

#[test]
fn labels_move_at_once_and_prices_when_they_are_next_asked_for() {
    let mut cloud = full(Knobs {
        price_change_rate: 1e9,
        label_change_rate: 1e9,
        ..Knobs::default()
    });
    let prices = |cloud: &Substrate| -> Vec<f64> {
        let slots = cloud.describe().into_iter();
        slots.map(|slot| slot.offer.price_per_hour).collect()
    };
    let (before, known) = (prices(&cloud), machines(&cloud));
    assert_eq!(cloud.tick(NOW, SECOND, known.iter()), []);
    let relabelled = machines(&cloud);
    assert!(
        known
            .iter()
            .zip(&relabelled)
            .all(|(before, after)| before.offer.labels != after.offer.labels)
    );
    assert_eq!(prices(&cloud), before, "the market moved, but nobody asked");
    let quoted: Vec<f64> = cloud
        .prices()
        .iter()
        .map(|quote| quote.price_per_hour)
        .collect();
    assert!(
        before
            .iter()
            .zip(&quoted)
            .all(|(before, after)| before != after)
    );
    assert_eq!(
        prices(&cloud),
        quoted,
        "the inventory shows what was quoted"
    );
}

#[test]
fn a_host_made_too_late_is_given_back_and_its_successor_stays() {
    let mut cloud = cloud(Knobs::default());
    let slot = machines(&cloud).remove(0);
    create(&mut cloud, &slot).unwrap();
    let late = machines(&cloud).remove(0);
    create(&mut cloud, &slot).unwrap();
    let successor = machines(&cloud).remove(0);
    assert_ne!(late.host, successor.host);
    cloud.succeeded(Transition::Delete, &late);
    assert_eq!(machines(&cloud)[0].host, successor.host);
    cloud.succeeded(Transition::Delete, &successor);
    assert_eq!(hosts(&cloud), 0);
}
