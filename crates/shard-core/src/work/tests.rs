//! What the part promises, asked of it alone; and the invariant, after any order of everything it can be
//! told.

use super::*;
use crate::event::Code;
use bigfleet_model::{ActionKind, NeedKey, Reason};
use proptest::prelude::*;
use std::time::Duration;

fn at(seconds: f64) -> Time {
    Time::from_seconds(seconds).unwrap()
}

fn id(number: u8) -> MachineId {
    MachineId::new(&format!("m{number}")).unwrap()
}

fn cluster(name: &str) -> ClusterId {
    ClusterId::new(name).unwrap()
}

fn action(kind: ActionKind, machine: MachineId, cluster: Option<ClusterId>) -> Action {
    Action {
        kind,
        machine,
        cluster,
        purpose: None::<(NeedKey, _)>,
        grace_seconds: 60,
        preemptor_priority: 0,
        reason: Reason::Idle,
    }
}

/// So many calls at once, and so many of them for one cluster.
fn work(most: usize, of_cluster: usize) -> Work {
    let config = ShardConfig {
        execute_concurrency: most,
        calls_per_cluster: of_cluster,
        ..ShardConfig::undamped("s", "p")
    };
    Work::new(&config, 3)
}

/// Commits a Provision for a cluster, on disk.
fn ready(work: &mut Work, number: u8, of: &str) -> MachineId {
    commit(work, ActionKind::Provision, number, of);
    work.persisted(Barrier(1), at(0.0));
    id(number)
}

fn commit(work: &mut Work, kind: ActionKind, number: u8, of: &str) {
    let action = action(kind, id(number), Some(cluster(of)));
    work.commit(action, 1, at(0.0), Barrier(1), false, None);
}

fn stage(work: &Work, machine: &MachineId) -> WorkStage {
    work.get(machine).unwrap().stage
}

/// Sends what may be sent, in order; returns which.
fn send_all(work: &mut Work) -> Vec<MachineId> {
    let (mut last, mut sent) = (None, Vec::new());
    work.ease(|_| false);
    while let Some((position, machine)) = work.next_ready(last) {
        let machine = machine.clone();
        last = Some(position);
        if work.may_send(&machine) {
            work.send(&machine, at(0.0)).unwrap();
            sent.push(machine);
        } else {
            work.put_aside(&machine);
        }
        assert_eq!(work.check(), Ok(()));
    }
    sent
}

fn end_call(work: &mut Work, machine: &MachineId, outcome: &CallOutcome) -> bool {
    let operation = work.get(machine).unwrap();
    let WorkStage::Call(sequence) = operation.stage else {
        panic!("{machine} is not calling");
    };
    work.call_ended(operation.id, sequence, outcome).is_some()
}

/// SH-5.
#[test]
fn nothing_is_ready_before_its_commit_is_on_disk() {
    let mut work = work(9, 0);
    commit(&mut work, ActionKind::Provision, 1, "a");
    let machine = id(1);
    assert_eq!(stage(&work, &machine), WorkStage::Disk);
    assert_eq!(
        (work.waiting(), work.len(), work.room()),
        (0, 1, MOST_IN_FLIGHT - 1)
    );
    work.back_off(&machine, at(0.0));
    let operation = work.get(&machine).unwrap().id;
    work.retry(operation, at(1.0));
    assert_eq!(
        stage(&work, &machine),
        WorkStage::Disk,
        "tried again too early"
    );
    work.persisted(Barrier(0), at(1.0));
    assert!(!work.may_send(&machine));
    work.persisted(Barrier(1), at(2.0));
    assert_eq!(stage(&work, &machine), WorkStage::Ready);
    assert_eq!(work.get(&machine).unwrap().since, at(2.0));
    assert_eq!(work.waiting(), 1);
    assert!(work.may_send(&machine));
}

/// SH-5: a write releases the operations that are in it, not whatever their machines are at by then.
#[test]
fn a_write_does_not_release_a_later_operation_of_the_same_machine() {
    let mut work = work(9, 0);
    commit(&mut work, ActionKind::Provision, 1, "a");
    let machine = id(1);
    work.end(&machine);
    let again = action(ActionKind::Provision, machine.clone(), Some(cluster("a")));
    work.commit(again, 2, at(1.0), Barrier(2), false, None);
    work.persisted(Barrier(1), at(2.0));
    assert_eq!(stage(&work, &machine), WorkStage::Disk);
    assert!(!work.may_send(&machine));
    assert_eq!(work.check(), Ok(()));
    work.persisted(Barrier(2), at(3.0));
    assert!(work.may_send(&machine));
}

/// The check that everything else relies on sees what it is for.
#[test]
fn an_operation_that_is_not_where_its_stage_says_is_seen() {
    let stages = [
        WorkStage::Disk,
        WorkStage::Blob(RequestId {
            epoch: 3,
            number: 9,
        }),
        WorkStage::Call(9),
        WorkStage::Backoff,
    ];
    for wrong in stages {
        let mut work = work(9, 0);
        let machine = ready(&mut work, 1, "a");
        assert_eq!(work.check(), Ok(()));
        work.operations.get_mut(&machine).unwrap().stage = wrong;
        assert!(work.check().is_err(), "{wrong:?}");
    }
    let mut work = work(9, 0);
    commit(&mut work, ActionKind::Provision, 1, "a");
    work.operations.get_mut(&id(1)).unwrap().stage = WorkStage::Ready;
    assert!(work.check().is_err(), "ready, and not listed as that");
}

/// SH-2: drains for somebody, machines for clusters, purchases, reclaims, deletes; then the oldest.
#[test]
fn the_line_is_ordered_by_urgency_and_age() {
    let mut work = work(9, 0);
    for (number, kind) in [
        (1, ActionKind::Delete),
        (2, ActionKind::Reclaim),
        (3, ActionKind::Provision),
        (4, ActionKind::Bootstrap),
        (5, ActionKind::Preempt),
        (6, ActionKind::Preempt),
    ] {
        commit(&mut work, kind, number, "a");
    }
    work.persisted(Barrier(1), at(0.0));
    assert_eq!(send_all(&mut work), [5, 6, 4, 3, 2, 1].map(id));
}

#[test]
fn slots_are_shared_and_given_back() {
    let mut work = work(3, 2);
    for number in 1..=4 {
        ready(&mut work, number, "a");
    }
    ready(&mut work, 5, "b");
    ready(&mut work, 6, "b");
    assert_eq!(send_all(&mut work), [1, 2, 5].map(id), "a has its share");
    assert_eq!((work.on_wire(), work.waiting()), (3, 3));
    assert_eq!(send_all(&mut work), []);
    assert!(end_call(&mut work, &id(5), &CallOutcome::NeverSent));
    work.end(&id(5));
    assert_eq!(send_all(&mut work), [id(6)]);
    assert!(end_call(&mut work, &id(1), &CallOutcome::NeverSent));
    work.end(&id(1));
    work.ease(|cluster| cluster.as_str() == "a");
    assert_eq!(work.next_ready(None), None, "a is closed");
    assert_eq!(send_all(&mut work), [id(3)], "and open again");
    assert_eq!(work.waiting(), 1);
}

/// A call outlives its operation: the slot is free when the call has ended, not before.
#[test]
fn a_call_holds_its_slot_until_it_ends() {
    let mut work = work(1, 0);
    let machine = ready(&mut work, 1, "a");
    let sent = work.send(&machine, at(0.0)).unwrap();
    assert!(!sent.again && sent.sequence == 1);
    work.end(&machine);
    ready(&mut work, 2, "a");
    assert_eq!(send_all(&mut work), []);
    let never = CallOutcome::NeverSent;
    assert!(work.call_ended(sent.operation, 1, &never).is_none(), "late");
    assert_eq!(send_all(&mut work), [id(2)]);
}

#[test]
fn pauses_between_attempts_double_up_to_a_minute() {
    let mut work = work(9, 0);
    let machine = ready(&mut work, 1, "a");
    let mut pauses = Vec::new();
    for attempt in 0..40 {
        let sent = work.send(&machine, at(0.0)).unwrap();
        assert_eq!(sent.again, attempt != 0);
        assert!(end_call(
            &mut work,
            &machine,
            &CallOutcome::refused(Code::Unavailable)
        ));
        let (until, operation) = work.back_off(&machine, at(0.0)).unwrap();
        pauses.push(until.duration_since(at(0.0)).as_secs());
        assert_eq!(stage(&work, &machine), WorkStage::Backoff);
        work.retry(operation, until);
        assert_eq!(stage(&work, &machine), WorkStage::Ready);
        work.retry(operation, until);
    }
    assert_eq!(pauses[..7], [2, 4, 8, 16, 32, 60, 60]);
    assert_eq!(pauses.last(), Some(&60));
    let operation = work.get(&machine).unwrap();
    assert_eq!(operation.trouble, "UNAVAILABLE");
    assert!(!operation.is_unsent() && operation.touched);
}

/// DC-7: a call that certainly never left did not count, unless somebody was reached some other way.
#[test]
fn what_never_left_is_unsent_unless_somebody_was_reached() {
    for (acked, instructed, is_unsent) in [
        (false, false, true),
        (true, false, false),
        (false, true, false),
    ] {
        let mut work = work(9, 0);
        let machine = ready(&mut work, 1, "a");
        if acked {
            work.taken_on(&machine, at(0.0));
            work.make_ready(&machine, at(0.0));
        }
        if instructed {
            work.instructed(&machine, false, at(0.0));
            assert_eq!(
                stage(&work, &machine),
                WorkStage::Ready,
                "it does not report"
            );
        }
        work.send(&machine, at(0.0));
        assert!(!work.get(&machine).unwrap().is_unsent());
        assert!(end_call(&mut work, &machine, &CallOutcome::NeverSent));
        assert_eq!(work.get(&machine).unwrap().is_unsent(), is_unsent);
    }
}

#[test]
fn a_blob_is_waited_for_by_whom_it_was_asked_for() {
    let mut work = work(1, 0);
    commit(&mut work, ActionKind::Bootstrap, 1, "a");
    commit(&mut work, ActionKind::Bootstrap, 2, "b");
    work.persisted(Barrier(1), at(0.0));
    let request = work.ask_for_blob(&id(1), at(1.0)).unwrap();
    assert_eq!(
        request,
        RequestId {
            epoch: 3,
            number: 3
        }
    );
    assert_eq!(work.asked(request).map(|one| &one.machine), Some(&id(1)));
    assert_eq!(work.waiting_for_blob(&cluster("a")), [id(1)]);
    assert_eq!(work.waiting_for_blob(&cluster("b")), []);
    assert_eq!(work.ask_for_blob(&id(9), at(1.0)), None);
    work.back_off(&id(1), at(1.0));
    assert!(work.asked(request).is_none(), "it waits for something else");
    let request = work.ask_for_blob(&id(1), at(2.0)).unwrap();
    assert!(work.asked(request).is_some());
    let blob = |until| Blob {
        user_data: Vec::new(),
        until,
    };
    work.blob_came(&id(1), blob(Some(at(9.0))), at(3.0));
    let operation = work.get(&id(1)).unwrap();
    assert!(operation.has_blob(at(8.9)) && !operation.has_blob(at(9.0)));
    // The only slot is taken: one whose blob runs out goes on being looked at.
    work.blob_came(&id(2), blob(None), at(3.0));
    work.send(&id(2), at(3.0)).unwrap();
    work.put_aside(&id(1));
    assert_eq!(
        work.next_ready(None).map(|(_, machine)| machine),
        Some(&id(1))
    );
    work.blob_came(&id(1), blob(None), at(3.0));
    work.put_aside(&id(1));
    assert_eq!(work.next_ready(None), None, "this one waits for a slot");
    assert!(work.get(&id(1)).unwrap().has_blob(at(1e6)));
}

#[test]
fn a_drain_waits_for_its_operator_and_is_told_again() {
    let mut work = work(9, 0);
    commit(&mut work, ActionKind::Reclaim, 1, "a");
    work.persisted(Barrier(1), at(0.0));
    let machine = id(1);
    work.instruct_later(&machine, at(1.0));
    assert_eq!(
        stage(&work, &machine),
        WorkStage::Ready,
        "it was not told yet"
    );
    work.instructed(&machine, true, at(1.0));
    assert_eq!(stage(&work, &machine), WorkStage::DrainReport);
    work.instruct_later(&machine, at(2.0));
    assert!(!work.get(&machine).unwrap().instructed);
    work.instructed(&machine, true, at(3.0));
    work.drained(&machine, at(4.0));
    let operation = work.get(&machine).unwrap();
    assert!(operation.drained && operation.instructed && operation.is_drain());
    assert_eq!(operation.stage, WorkStage::Ready);
}

/// SH-16: a deadline stands still while the gate holds its operation back.
#[test]
fn a_held_deadline_gets_its_time_back() {
    let mut work = work(9, 0);
    let machine = ready(&mut work, 1, "a");
    let deadline = |work: &Work| work.get(&machine).unwrap().deadline;
    assert_eq!(deadline(&work), at(60.0));
    assert!(!work.hold(&machine, false, at(1.0)));
    assert!(work.hold(&machine, true, at(10.0)));
    assert!(!work.hold(&machine, true, at(15.0)), "held already");
    assert_eq!(deadline(&work), at(60.0));
    assert!(work.hold(&machine, false, at(40.0)));
    assert_eq!(deadline(&work), at(90.0));
    assert!(!work.hold(&id(9), true, at(0.0)));
}

#[test]
fn what_is_read_while_a_call_is_out_is_looked_at_when_it_ends() {
    let mut work = work(9, 0);
    let machine = ready(&mut work, 1, "a");
    assert!(!work.overtake(&machine) && !work.is_calling(&machine));
    let sent = work.send(&machine, at(0.0)).unwrap();
    assert!(work.overtake(&machine) && work.is_calling(&machine));
    let outcome = CallOutcome::NeverSent;
    let ended = work.call_ended(sent.operation, sent.sequence, &outcome);
    assert!(ended.is_some_and(|ended| ended.overtaken));
    work.make_ready(&machine, at(0.0));
    let sent = work.send(&machine, at(0.0)).unwrap();
    assert_eq!(sent.sequence, 2, "a fresh one");
    let ended = work.call_ended(sent.operation, sent.sequence, &outcome);
    assert!(ended.is_some_and(|ended| !ended.overtaken));
    assert!(
        work.call_ended(sent.operation, 1, &outcome).is_none(),
        "an older one"
    );
}

#[test]
fn pages_go_on_after_a_machine() {
    let mut work = work(9, 0);
    for number in 1..=3 {
        ready(&mut work, number, "a");
    }
    let after = |machine: Option<&MachineId>| -> Vec<MachineId> {
        work.after(machine).map(|one| one.machine.clone()).collect()
    };
    assert_eq!(after(None), [1, 2, 3].map(id));
    assert_eq!(after(Some(&id(2))), [id(3)]);
}

/// SE-9: whatever an operator sends, its operations hold so many bytes of blobs; the rest is asked for as there is
/// room again. Without a bound all are held at once, which with blobs of three megabytes was gigabytes.
#[test]
fn blobs_that_wait_are_bounded_and_asked_for_again() {
    let held = [100, usize::MAX].map(|most| {
        let mut work = work(1, 0);
        work.blob_room = BlobRoom::of(most);
        let machines: Vec<MachineId> = (0..20).map(|n| ready(&mut work, n, "a")).collect();
        for machine in &machines {
            assert!(work.has_blob_room(machine), "nothing is held yet");
            work.ask_for_blob(machine, at(0.0));
        }
        let came = |work: &mut Work, machine: &MachineId| {
            let user_data = vec![0; 10];
            work.blob_came(
                machine,
                Blob {
                    user_data,
                    until: None,
                },
                at(1.0),
            )
        };
        let kept = machines.iter().filter(|id| came(&mut work, id)).count();
        assert_eq!(work.blob_room.in_all(), 10 * kept);
        if kept < machines.len() {
            let waits = machines.iter().filter(|id| !work.has_blob_room(id));
            assert_eq!(
                waits.count(),
                20,
                "also those that have theirs need no other"
            );
            let waiting = |work: &Work| work.lists.clusters_without_room().len();
            for (ended, machine) in machines.iter().take(kept).enumerate() {
                assert_eq!(waiting(&work), 1, "after {ended}");
                work.end(machine);
                work.ease(|_| false);
                if ended == 5 {
                    break;
                }
            }
            assert_eq!(waiting(&work), 0, "half of the room is free");
            assert_eq!(work.check(), Ok(()));
        }
        kept
    });
    assert_eq!(held, [10, 20]);
}

/// One thing that can happen to a machine's operation.
fn happen(work: &mut Work, what: u8, machine: &MachineId, now: Time) {
    let kinds = [
        ActionKind::Bootstrap,
        ActionKind::Provision,
        ActionKind::Preempt,
        ActionKind::Reclaim,
        ActionKind::Delete,
    ];
    let known = work.get(machine).map(|one| (one.id, one.stage));
    match (what, known) {
        (0..=4, None) => {
            let of = (what != 4).then(|| cluster("a"));
            let action = action(kinds[what as usize], machine.clone(), of);
            work.commit(action, 1, now, Barrier(u64::from(what)), false, None);
        }
        (5, _) => work.persisted(Barrier(3), now),
        (6, _) => work.make_ready(machine, now),
        (7, _) => drop(work.back_off(machine, now)),
        (8, Some((operation, _))) => work.retry(operation, now),
        (9, _) => drop(work.ask_for_blob(machine, now)),
        (10, _) => work.instructed(machine, true, now),
        (11, _) => work.drained(machine, now),
        (12, _) if work.may_send(machine) => drop(work.send(machine, now)),
        (12, _) => work.put_aside(machine),
        (13, Some((operation, WorkStage::Call(sequence)))) => {
            work.call_ended(operation, sequence, &CallOutcome::NeverSent);
            work.confirm(machine, now);
        }
        (14, _) => work.taken_on(machine, now),
        (15, _) => drop(work.end(machine)),
        (16, _) => work.ease(|_| false),
        (17, Some(_)) => {
            let user_data = vec![0; 40];
            work.blob_came(
                machine,
                Blob {
                    user_data,
                    until: None,
                },
                now,
            );
        }
        (18, Some((_, WorkStage::Ready))) => drop(work.has_blob_room(machine)),
        _ => {}
    }
}

proptest! {
    /// Whatever happens, in whatever order: an operation is in exactly one place.
    #[test]
    fn an_operation_is_in_exactly_one_place(
        events in prop::collection::vec((0_u8..19, 1_u8..5), 1..200),
    ) {
        let mut work = work(2, 1);
        work.blob_room = BlobRoom::of(100);
        for (step, (what, machine)) in events.into_iter().enumerate() {
            let now = at(0.0) + Duration::from_secs(step as u64);
            happen(&mut work, what, &id(machine), now);
            prop_assert_eq!(work.check(), Ok(()));
        }
    }
}
