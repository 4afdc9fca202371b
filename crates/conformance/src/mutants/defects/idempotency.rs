//! Idempotency: operation ids that do not name the operation.

use std::time::{Duration, Instant};

use bigfleet_wire::v1alpha1::TransitionAck;
use tonic::Status;

use super::Plant::Ack;
use super::{Answer, Defect, with_id};
use crate::mutants::proxy::{Ask, Memory};

pub(super) static ALL: &[Defect] = &[
    defect!(
        "replay-has-a-new-id",
        "starts a new operation for every retry",
        ["IDEM-02"],
        Ack(new_id_each_time)
    ),
    defect!(
        "replay-is-refused",
        "refuses a retry at the target",
        ["IDEM-01"],
        Ack(replay_refused)
    ),
    defect!(
        "operation-id-is-empty",
        "acknowledges without an id",
        ["IDEM-02"],
        Ack(empty_id)
    ),
    defect!(
        "operation-id-of-machine",
        "uses one id for all operations of a machine",
        ["IDEM-03"],
        Ack(id_of_machine)
    ),
    defect!(
        "operation-id-per-connection",
        "has operations of its own on every connection",
        ["IDEM-04"],
        Ack(id_of_connection)
    ),
    defect!(
        "operation-id-per-kind",
        "uses one id for all Creates",
        ["CONC-06"],
        Ack(id_of_kind)
    ),
    defect!(
        "burst-is-many",
        "starts an operation for each of sixteen equal calls",
        ["CONC-01", "CONC-02"],
        Ack(racing_ids)
    ),
    defect!(
        "ack-without-machine",
        "acknowledges without a record",
        ["META-04"],
        Ack(no_machine)
    ),
];

fn new_id_each_time(_: &Ask, answer: Answer, memory: &mut Memory) -> Answer {
    let nth = memory.next();
    with_id(answer, |id| format!("{id}-{nth}"))
}

fn replay_refused(ask: &Ask, answer: Answer, _: &mut Memory) -> Answer {
    if ask.is_at(ask.kind.target()) {
        return Err(Status::internal("already there"));
    }
    answer
}

fn empty_id(_: &Ask, answer: Answer, _: &mut Memory) -> Answer {
    with_id(answer, |_| String::new())
}

fn id_of_machine(ask: &Ask, answer: Answer, _: &mut Memory) -> Answer {
    with_id(answer, |_| format!("op-{}", ask.machine))
}

fn id_of_connection(ask: &Ask, answer: Answer, _: &mut Memory) -> Answer {
    with_id(answer, |id| format!("{id}-{}", ask.port))
}

fn id_of_kind(ask: &Ask, answer: Answer, _: &mut Memory) -> Answer {
    with_id(answer, |_| format!("op-{:?}", ask.kind))
}

fn racing_ids(ask: &Ask, answer: Answer, memory: &mut Memory) -> Answer {
    let nth = memory.next();
    let key = format!("{:?}|{}", ask.kind, ask.machine);
    let last = memory.since.insert(key, Instant::now());
    let racing = last.is_some_and(|last| last.elapsed() < Duration::from_millis(50));
    with_id(answer, |id| if racing { format!("{id}-{nth}") } else { id })
}

fn no_machine(_: &Ask, answer: Answer, _: &mut Memory) -> Answer {
    answer.map(|ack| TransitionAck {
        machine: None,
        ..ack
    })
}
