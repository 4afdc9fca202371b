//! A cloud's day, in no time at all.

use super::*;
use crate::knobs::{ByKind, Latency, Stock};
use bigfleet_provider_kit::{Ask, Timeouts, Token};

const SECOND: Duration = Duration::from_secs(1);

fn cloud(knobs: Knobs) -> FakeCloud {
    let options = Options {
        timeouts: Timeouts::all(60 * SECOND),
        ..Options::default()
    };
    FakeCloud::new(crate::conventional("fake", 12), knobs, options).unwrap()
}

fn ids(cloud: &FakeCloud) -> Vec<MachineId> {
    cloud.kit.tables().machines().keys().cloned().collect()
}

fn call(cloud: &mut FakeCloud, now: Duration, id: &MachineId, ask: Ask) -> Result<Ack, CallFailed> {
    let (machine, token) = (id.to_string(), Token::default());
    cloud.mutate(
        now,
        Mutation {
            machine,
            token,
            ask,
        },
    )
}

fn create() -> Ask {
    Ask::Create {
        metadata: Arc::default(),
    }
}

fn configure(cluster: &str) -> Ask {
    let (cluster, blob) = (cluster.to_owned(), Arc::from([]));
    Ask::Configure {
        cluster,
        blob,
        metadata: Arc::default(),
    }
}

#[test]
fn without_latency_a_call_lands_at_once() {
    let mut cloud = cloud(Knobs::default());
    let id = ids(&cloud)[0].clone();
    let ack = call(&mut cloud, SECOND, &id, create()).unwrap();
    assert_eq!(ack.machine.state, State::Idle);
}

#[test]
fn staged_work_waits_to_be_completed() {
    let mut knobs = Knobs::default();
    knobs.staged.create = true;
    let mut cloud = cloud(knobs);
    let id = ids(&cloud)[0].clone();
    call(&mut cloud, SECOND, &id, create()).unwrap();
    cloud.advance(30 * SECOND);
    assert_eq!(cloud.count(State::Creating), 1);
    assert_eq!(cloud.complete_all_staged(30 * SECOND), 1);
    assert_eq!(cloud.count(State::Idle), 1);
    assert!(!cloud.complete_staged(30 * SECOND, &id));
}

#[test]
fn completions_overtake_each_other_and_the_same_seed_repeats_it() {
    let run = |seed| {
        let latency = ByKind::all("1s..50s".parse::<Latency>().unwrap());
        let mut cloud = cloud(Knobs {
            seed,
            latency,
            ..Knobs::default()
        });
        let ids = ids(&cloud);
        for id in &ids {
            call(&mut cloud, SECOND, id, create()).unwrap();
        }
        let mut order = Vec::new();
        while let Some(at) = cloud.next_due() {
            cloud.advance(at);
            let idle: Vec<_> = cloud.in_state(State::Idle).collect();
            order.extend(
                idle.into_iter()
                    .filter(|id| !order.contains(id))
                    .collect::<Vec<_>>(),
            );
        }
        order
    };
    let order = run(3);
    assert_eq!(order, run(3));
    assert_eq!(order.len(), 12);
    assert!(!order.is_sorted(), "{order:?}");
}

#[test]
fn what_is_out_of_stock_fails_as_retryable() {
    let stock = Stock {
        instance_type: "g4.standard".to_owned(),
        zone: "zone-a".to_owned(),
        hosts: 1,
    };
    let mut cloud = cloud(Knobs {
        stock: vec![stock],
        ..Knobs::default()
    });
    for id in ids(&cloud)
        .iter()
        .filter(|id| id.as_str().contains("g4.standard-zone-a"))
    {
        call(&mut cloud, SECOND, id, create()).unwrap();
    }
    assert_eq!(
        (cloud.count(State::Idle), cloud.count(State::Failed)),
        (1, 2)
    );
    let failed = cloud.in_state(State::Failed).next().unwrap();
    let failed = cloud.get(failed.as_str()).unwrap();
    assert_eq!(failed.failure, bigfleet_provider_kit::FailureClass::NoStock);
    assert!(failed.last_error.starts_with("insufficient capacity"));
    // Nobody asked for clean-ups, and there is nothing to clean up.
    cloud.advance(60 * SECOND);
    assert_eq!(cloud.count(State::Failed), 2, "to be seen for a minute");
    cloud.advance(63 * SECOND);
    assert_eq!(cloud.count(State::Failed), 0, "slots again");
    let slot = cloud.get(failed.id.as_str()).unwrap();
    assert_eq!(
        (slot.state, slot.last_error.as_str()),
        (State::Speculative, "")
    );
}

#[test]
fn a_late_success_does_not_undo_a_timeout() {
    let mut cloud = cloud(Knobs::default());
    let id = ids(&cloud)[0].clone();
    call(&mut cloud, SECOND, &id, create()).unwrap();
    call(&mut cloud, SECOND, &id, configure("fault-slow-ok")).unwrap();
    cloud.advance(61 * SECOND);
    let failed = cloud.get(id.as_str()).unwrap();
    assert!(
        failed.last_error.contains("timed out"),
        "{}",
        failed.last_error
    );
    cloud.advance(70 * SECOND);
    assert_eq!(cloud.get(id.as_str()).unwrap(), failed);
}

#[test]
fn a_lost_host_is_noticed_by_the_inventory() {
    let mut cloud = cloud(Knobs {
        host_loss_rate: 1e9,
        ..Knobs::default()
    });
    let id = ids(&cloud)[0].clone();
    call(&mut cloud, SECOND, &id, create()).unwrap();
    cloud.advance(2 * SECOND);
    cloud.reconcile();
    assert_eq!(cloud.count(State::Failed), 0);
    cloud.reconcile();
    assert_eq!(cloud.count(State::Failed), 1);
}

#[test]
fn spot_is_taken_back_and_prices_and_labels_move() {
    let knobs = Knobs {
        interruption_factor: 1e9,
        price_change_rate: 1e9,
        label_change_rate: 1e9,
        ..Knobs::default()
    };
    let mut cloud = cloud(knobs);
    for id in ids(&cloud) {
        call(&mut cloud, SECOND, &id, create()).unwrap();
    }
    let before = cloud.list(Query::default()).unwrap();
    cloud.advance(2 * SECOND);
    cloud.reconcile();
    assert_eq!(
        (cloud.count(State::Failed), cloud.count(State::Idle)),
        (4, 8)
    );
    let query = Query {
        since: before.revision,
        ..Query::default()
    };
    assert_eq!(cloud.list(query).unwrap().machines.len(), 12);
}

#[test]
fn lists_are_stale_cut_or_full_of_holes_when_asked_to_be() {
    let all = |knobs: Knobs| {
        let mut cloud = cloud(knobs);
        let before = cloud.list(Query::default()).unwrap();
        cloud.fail_machine(&ids(&cloud)[0], "test");
        let after = cloud.list(Query::default()).unwrap();
        (before.revision == after.revision, after.machines.len())
    };
    assert_eq!(all(Knobs::default()), (false, 12));
    assert_eq!(
        all(Knobs {
            stale_list: 1.0,
            ..Knobs::default()
        }),
        (true, 12)
    );
    assert_eq!(
        all(Knobs {
            truncated_list: 1.0,
            ..Knobs::default()
        }),
        (false, 6)
    );
    assert_eq!(
        all(Knobs {
            flapping: 1.0,
            ..Knobs::default()
        }),
        (false, 0)
    );
}

#[test]
fn a_harness_can_break_remove_shed_and_begin_in_the_middle() {
    let mut cloud = cloud(Knobs::default());
    let id = ids(&cloud)[0].clone();
    cloud.fail_next(id.as_str(), Kind::Create, "quota");
    let failed = call(&mut cloud, SECOND, &id, create());
    assert_eq!(failed, Err(CallFailed::Injected("quota".to_owned())));
    assert!(call(&mut cloud, SECOND, &id, create()).is_ok());
    cloud.fail_machine(&id, "smoke");
    assert_eq!(cloud.get(id.as_str()).unwrap().last_error, "smoke");
    cloud.remove_machine(&id);
    assert!(cloud.get(id.as_str()).is_err());
    assert_eq!(cloud.shed_speculative(0.5), 5);
    let mut instance = crate::conventional("other", 1).remove(0);
    instance.id = "serving".to_owned();
    let metadata = TextMap::from([("k".to_owned(), "v".to_owned())]);
    cloud.add_configured(instance, "a", metadata).unwrap();
    assert_eq!(cloud.random_configured(), MachineId::new("serving").ok());
    assert!(
        call(
            &mut cloud,
            SECOND,
            &MachineId::new("serving").unwrap(),
            Ask::Drain { grace_seconds: 1 }
        )
        .is_ok()
    );
}

/// The price of every machine, as List tells it.
fn listed(cloud: &mut FakeCloud) -> Vec<f64> {
    let page = cloud.list(Query::default()).unwrap();
    let price = |machine: &Arc<Machine>| machine.offer.price_per_hour;
    page.machines.iter().map(price).collect()
}

#[test]
fn prices_are_listed_as_they_were_last_asked_for() {
    let minutes = |count: u32| 60 * count * SECOND;
    let mut cloud = cloud(Knobs {
        price_change_rate: 1e9,
        ..Knobs::default()
    });
    let id = ids(&cloud)[0].clone();
    call(&mut cloud, SECOND, &id, create()).unwrap();
    let (before, host) = (
        listed(&mut cloud),
        cloud.get(id.as_str()).unwrap().host.clone(),
    );
    let cursor = cloud.list(Query::default()).unwrap().revision;
    cloud.refresh_prices_every(minutes(30));
    cloud.advance(minutes(29));
    cloud.reconcile();
    assert_eq!(
        listed(&mut cloud),
        before,
        "the market has moved, but nobody asked"
    );
    cloud.advance(minutes(31));
    let after = listed(&mut cloud);
    let moved = before
        .iter()
        .zip(&after)
        .filter(|(before, after)| before != after);
    assert_eq!(moved.count(), 12);
    let query = Query {
        since: cursor,
        ..Query::default()
    };
    let delta = cloud.list(query).unwrap().machines;
    assert_eq!(delta.len(), 12, "a price that moved is in the delta");
    assert_eq!(cloud.get(id.as_str()).unwrap().host, host);
    cloud.advance(minutes(61));
    assert_ne!(listed(&mut cloud), after, "and again half an hour later");
}

#[test]
fn a_busy_cloud_is_tried_again_until_time_is_up() {
    let busy = |share| {
        let mut cloud = cloud(Knobs {
            busy: ByKind::all(share),
            ..Knobs::default()
        });
        for id in ids(&cloud) {
            call(&mut cloud, SECOND, &id, create()).unwrap();
        }
        cloud.advance(120 * SECOND);
        cloud
    };
    assert_eq!(busy(0.5).count(State::Idle), 12);
    let never = busy(1.0);
    assert_eq!(never.count(State::Failed), 12);
    let failed = never.get(ids(&never)[0].as_str()).unwrap();
    for part in ["timed out", "busy create"] {
        assert!(failed.last_error.contains(part), "{}", failed.last_error);
    }
    let hosts = never
        .describe()
        .into_iter()
        .filter(|slot| slot.host.is_some());
    assert_eq!(hosts.count(), 0, "what was turned away made no host");
}

#[test]
fn a_host_made_too_late_does_not_stay() {
    let mut knobs = Knobs::default();
    knobs.latency.create = "90s".parse().unwrap();
    knobs.latency.delete = "5s".parse().unwrap();
    let mut cloud = cloud(knobs);
    let id = ids(&cloud)[0].clone();
    call(&mut cloud, SECOND, &id, create()).unwrap();
    let hosts = |cloud: &FakeCloud| {
        let slots = cloud.describe().into_iter();
        slots.filter(|slot| slot.host.is_some()).count()
    };
    cloud.advance(92 * SECOND);
    assert_eq!((cloud.count(State::Failed), hosts(&cloud)), (1, 1));
    cloud.advance(96 * SECOND);
    assert_eq!((cloud.count(State::Failed), hosts(&cloud)), (1, 0));
}

#[test]
fn a_failed_slot_is_offered_again_after_its_cool_down() {
    let options = Options {
        clean_up_after: Some(600 * SECOND),
        ..Options::default()
    };
    let mut knobs = Knobs::default();
    knobs.failure.configure = 1.0;
    let mut cloud = FakeCloud::new(crate::conventional("fake", 12), knobs, options).unwrap();
    let id = ids(&cloud)[0].clone();
    call(&mut cloud, SECOND, &id, create()).unwrap();
    call(&mut cloud, SECOND, &id, configure("a")).unwrap();
    cloud.advance(600 * SECOND);
    assert_eq!(cloud.count(State::Failed), 1);
    cloud.advance(601 * SECOND);
    let slot = cloud.get(id.as_str()).unwrap();
    assert_eq!((slot.state, &slot.host), (State::Speculative, &None));
    assert_eq!((slot.cluster.as_str(), slot.last_error.as_str()), ("", ""));
    let ack = call(&mut cloud, 602 * SECOND, &id, create()).unwrap();
    assert_eq!(ack.machine.state, State::Idle);
}
