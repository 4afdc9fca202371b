//! How a transition ends: well, late, badly, in the middle, and what is cleaned up after it.

use super::*;
use crate::machine::FailureClass;

#[test]
fn what_comes_after_a_timeout_is_discarded() {
    let mut bench = bench(1);
    let operation = bench.ask("m1", create()).unwrap().operation;
    let mut effects = Vec::new();
    bench.kit.handle(
        Event::TimedOut {
            machine: id("m1"),
            operation,
            refused: None,
        },
        &mut effects,
    );
    bench.kit.commit();
    let failed = bench.machine("m1");
    assert!(
        failed.last_error.contains("create timed out"),
        "{}",
        failed.last_error
    );
    let late = bench.created();
    let [
        Effect::Discarded {
            left: Some(left), ..
        },
    ] = late.as_slice()
    else {
        panic!("the host of a late create is left to nobody: {late:?}");
    };
    assert_eq!(left.host, Some(host("h")));
    assert_eq!(bench.machine("m1"), failed);
    for ask in [create(), configure("a"), drain(), Ask::Delete] {
        assert!(matches!(
            bench.ask("m1", ask),
            Err(Refusal::Position { .. })
        ));
    }
    assert_eq!(bench.machine("m1"), failed);
}

#[test]
fn a_create_without_a_usable_host_fails() {
    let mut bench = bench(1);
    bench.ask("m1", create()).unwrap();
    bench.end(Ok(Some(Created::default())));
    assert_eq!(bench.machine("m1").state, State::Failed);
    assert!(bench.machine("m1").last_error.contains("no usable host"));
}

#[test]
fn an_interrupted_transition_comes_back_failed_and_says_so() {
    let mut bench = bench(2);
    bench.walk("m1", State::Idle);
    bench.ask("m1", configure("a")).unwrap();
    assert_eq!(bench.kit.recover(), 1);
    let failed = bench.machine("m1");
    assert!(
        failed.last_error.contains("configure was interrupted"),
        "{}",
        failed.last_error
    );
    assert_eq!(bench.machine("m2").state, State::Speculative);
}

/// The user data is gone, so whoever wanted the machine configured has to send it again.
#[test]
fn an_interrupted_configure_can_be_asked_for_again_if_the_backend_says_so() {
    let mut bench = bench(2);
    bench.kit.options.reconfigures = true;
    bench.walk("m1", State::Idle);
    bench.walk("m2", State::Idle);
    let first = bench.ask("m1", configure("a")).unwrap().operation;
    bench.ask("m2", Ask::Delete).unwrap();
    assert_eq!(bench.kit.recover(), 1, "only the delete is given up");
    bench.kit.commit();
    let idle = bench.machine("m1");
    assert_eq!((idle.state, idle.cluster.as_str()), (State::Idle, ""));
    assert!(idle.metadata.is_empty() && idle.last_error.is_empty() && idle.host.is_some());
    let again = bench.ask("m1", configure("a")).unwrap();
    assert!(!again.replayed, "it is done anew");
    assert_ne!(again.operation, first);
}

#[test]
fn what_needs_no_secret_is_taken_up_again_with_its_own_id() {
    let mut bench = bench(4);
    bench.kit.options.resumes = true;
    bench.walk("m2", State::Idle);
    bench.walk("m3", State::Configured);
    bench.walk("m4", State::Idle);
    let create = bench.ask("m1", create()).unwrap().operation;
    bench.ask("m2", configure("a")).unwrap();
    let long = Ask::Drain { grace_seconds: 90 };
    let drain = bench.ask("m3", long).unwrap().operation;
    let delete = bench.ask("m4", Ask::Delete).unwrap().operation;
    let work = bench.kit.resume();
    let ids: Vec<_> = work
        .iter()
        .map(|work| Arc::clone(&work.operation))
        .collect();
    assert_eq!(ids, [create, drain, delete]);
    let grace = Duration::from_secs(90);
    assert_eq!(work[1].task, Task::Drain { grace });
    assert_eq!(bench.kit.recover(), 1, "only the configure is given up");
    assert_eq!(bench.machine("m2").state, State::Failed);
    assert_eq!(bench.machine("m1").state, State::Creating);
}

fn failed_after_create(bench: &mut Bench) {
    bench.walk("m1", State::Configured);
    bench.ask("m1", drain()).unwrap();
    bench.end(Err(Failure::permanent("stuck")));
    assert_eq!(bench.machine("m1").state, State::Failed);
}

fn clean_up(bench: &mut Bench) -> usize {
    let mut effects = Vec::new();
    let machine = id("m1");
    bench.kit.handle(Event::CleanUp { machine }, &mut effects);
    bench.kit.commit();
    let before = bench.started.len();
    for effect in effects {
        if let Effect::Start(work) = effect {
            assert_eq!(work.task, Task::CleanUp);
            bench.started.push(work);
        }
    }
    bench.started.len() - before
}

#[test]
fn a_cleaned_up_machine_is_a_slot_again_and_failed_until_then() {
    let mut bench = bench(1);
    failed_after_create(&mut bench);
    let failed = bench.machine("m1");
    assert_eq!(clean_up(&mut bench), 1);
    assert_eq!(clean_up(&mut bench), 0, "one at a time");
    assert_eq!(bench.machine("m1"), failed);
    assert!(matches!(
        bench.ask("m1", create()),
        Err(Refusal::Position { .. })
    ));
    let again = bench.end(Err(Failure::new("busy")));
    assert!(matches!(again.as_slice(), [Effect::Failed(_)]), "{again:?}");
    assert_eq!(
        bench.machine("m1"),
        failed,
        "a clean-up that fails changes nothing"
    );

    assert_eq!(clean_up(&mut bench), 1);
    bench.end(Ok(None));
    let slot = bench.machine("m1");
    assert_eq!((slot.state, &slot.host), (State::Speculative, &None));
    let traces = (
        slot.cluster.as_str(),
        slot.metadata.len(),
        slot.last_error.as_str(),
    );
    assert_eq!(traces, ("", 0, ""));
    assert_eq!(slot.failure, FailureClass::Unspecified);
    assert_eq!(clean_up(&mut bench), 0, "nothing is failed any more");
    assert!(bench.ask("m1", create()).is_ok());
}

/// Nothing was made: there is nothing to clean up, whatever becomes of hosts otherwise.
#[test]
fn a_slot_that_found_no_stock_comes_back_without_any_work() {
    for deletes in [true, false] {
        let mut bench = bench(1);
        bench.kit.options.deletes = deletes;
        bench.ask("m1", create()).unwrap();
        bench.end(Err(Failure::no_stock("none of it in zone-a")));
        let failed = bench.machine("m1");
        assert_eq!(
            (failed.state, &*failed.last_error),
            (State::Failed, "none of it in zone-a")
        );
        let options = Options::default();
        assert_eq!(options.clean_up_after, None);
        assert_eq!(options.cool_down(&failed), Some(options.restock_after));
        assert_eq!(clean_up(&mut bench), 0, "no work");
        let slot = bench.machine("m1");
        assert_eq!(
            (slot.state, slot.last_error.as_str()),
            (State::Speculative, "")
        );
        assert!(bench.ask("m1", create()).is_ok());
    }
}

/// A host that is there is evidence, and may cost money: only a Create can say that it made nothing.
#[test]
fn no_stock_is_said_of_a_create_or_means_no_more_than_retryable() {
    let mut bench = bench(1);
    bench.walk("m1", State::Configured);
    bench.ask("m1", drain()).unwrap();
    bench.end(Err(Failure::no_stock("odd")));
    let failed = bench.machine("m1");
    assert_eq!(failed.failure, FailureClass::Retryable);
    assert_eq!(Options::default().cool_down(&failed), None);
}

#[test]
fn a_host_that_is_not_given_back_is_idle_after_its_clean_up() {
    let mut bench = bench(1);
    failed_after_create(&mut bench);
    bench.kit.options.deletes = false;
    clean_up(&mut bench);
    bench.end(Ok(None));
    let idle = bench.machine("m1");
    assert_eq!(
        (idle.state, idle.host.clone()),
        (State::Idle, Some(host("h")))
    );
    assert_eq!(idle.cluster, "");
}

#[test]
fn a_clean_up_that_was_rolled_back_can_begin_again() {
    let mut bench = bench(1);
    failed_after_create(&mut bench);
    let (mut effects, machine) = (Vec::new(), id("m1"));
    bench.kit.handle(Event::CleanUp { machine }, &mut effects);
    bench.kit.rollback();
    assert_eq!(clean_up(&mut bench), 1);
}
