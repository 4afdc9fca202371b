//! Codes: a wrong answer to a wrong call.

use bigfleet_wire::v1alpha1::{Machine, MachineState as State};
use tonic::{Code, Status};

use super::Plant::{Ack, Asked, Got, Record};
use super::{Answer, Defect, Shown, ack_of, code};
use crate::mutants::proxy::{Ask, Kind, Memory};

pub(super) static ALL: &[Defect] = &[
    defect!(
        "unknown-machine-is-internal",
        "answers INTERNAL for an unknown machine",
        ["ERR-05"],
        Ack(unknown_is_internal)
    ),
    defect!(
        "get-invents-machines",
        "answers a Get of an unknown machine",
        ["ERR-12"],
        Got(invents)
    ),
    defect!(
        "empty-id-is-not-found",
        "answers NOT_FOUND for an empty id",
        ["ERR-06"],
        Ack(empty_is_not_found)
    ),
    defect!(
        "wrong-state-is-fenced",
        "uses the code of the fence for a wrong state",
        ["ERR-01"],
        Ack(wrong_state_is_fenced)
    ),
    defect!(
        "wrong-state-is-accepted",
        "says OK to a Create on a bound machine",
        ["ERR-01"],
        Ack(wrong_state_is_ok)
    ),
    defect!(
        "negative-grace-is-internal",
        "answers INTERNAL to a negative grace",
        ["ERR-08"],
        Asked(negative_grace)
    ),
    defect!(
        "large-blob-is-unavailable",
        "answers UNAVAILABLE to a large blob",
        ["ERR-11"],
        Asked(large_blob)
    ),
    defect!(
        "unknown-delete-is-ok",
        "says OK to a Delete of an unknown machine",
        ["ERR-12"],
        Ack(unknown_delete)
    ),
    defect!(
        "configures-slots",
        "binds a slot that has no host",
        ["ERR-02"],
        Asked(notes_slot),
        Record(leaks_cluster)
    ),
];

fn unknown_is_internal(_: &Ask, answer: Answer, _: &mut Memory) -> Answer {
    match code(&answer) {
        Code::NotFound => Err(Status::internal("no such machine")),
        _ => answer,
    }
}

fn invents(id: &str, answer: Shown, _: &mut Memory) -> Shown {
    match &answer {
        Err(status) if status.code() == Code::NotFound => Ok(Machine {
            id: id.to_owned(),
            state: State::Speculative.into(),
            ..Machine::default()
        }),
        _ => answer,
    }
}

fn empty_is_not_found(ask: &Ask, answer: Answer, _: &mut Memory) -> Answer {
    if ask.machine.is_empty() {
        return Err(Status::not_found("no such machine"));
    }
    answer
}

fn wrong_state_is_fenced(_: &Ask, answer: Answer, _: &mut Memory) -> Answer {
    match code(&answer) {
        Code::Internal => Err(Status::failed_precondition("wrong state")),
        _ => answer,
    }
}

fn wrong_state_is_ok(ask: &Ask, answer: Answer, _: &mut Memory) -> Answer {
    match code(&answer) {
        Code::Internal if ask.kind == Kind::Create => Ok(ack_of(ask)),
        _ => answer,
    }
}

fn negative_grace(ask: &mut Ask, _: &mut Memory) -> Option<Status> {
    (ask.grace < 0).then(|| Status::internal("grace"))
}

fn large_blob(ask: &mut Ask, _: &mut Memory) -> Option<Status> {
    ((1 << 20) < ask.blob.len()).then(|| Status::unavailable("too large"))
}

fn unknown_delete(ask: &Ask, answer: Answer, _: &mut Memory) -> Answer {
    match code(&answer) {
        Code::NotFound if ask.kind == Kind::Delete => Ok(ack_of(ask)),
        _ => answer,
    }
}

fn notes_slot(ask: &mut Ask, memory: &mut Memory) -> Option<Status> {
    if ask.kind == Kind::Configure && ask.is_at(State::Speculative) {
        memory
            .names
            .insert(ask.machine.clone(), ask.cluster.clone());
    }
    None
}

fn leaks_cluster(machine: &mut Machine, memory: &mut Memory) {
    if let Some(cluster) = memory.names.get(&machine.id) {
        machine.cluster = cluster.clone();
    }
}
