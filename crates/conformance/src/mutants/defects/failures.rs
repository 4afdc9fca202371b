//! Failures: a machine that failed and does not look like it, or the other way round.

use std::time::{Duration, Instant};

use bigfleet_wire::v1alpha1::{ListFilter, Machine, MachineList, MachineState as State};
use tonic::Status;

use super::Plant::{Ack, Listed, Record};
use super::{Answer, Defect, ack_of};
use crate::mutants::proxy::{Ask, Kind, Memory};

pub(super) static ALL: &[Defect] = &[
    defect!(
        "failure-is-hidden",
        "shows a failed machine as idle",
        ["FAULT-01"],
        Record(hidden_failure)
    ),
    defect!(
        "failure-without-reason",
        "fails without an error",
        ["FAULT-02"],
        Record(no_reason)
    ),
    defect!(
        "late-success-is-believed",
        "believes a success after the timeout",
        ["FAULT-04"],
        Record(late_success)
    ),
    defect!(
        "failed-machine-is-moved",
        "accepts a Create of a failed machine",
        ["FAULT-05"],
        Ack(failed_is_ok)
    ),
    defect!(
        "failed-machine-is-unlisted",
        "leaves failed machines out of lists",
        ["FAULT-07"],
        Listed(failed_unlisted)
    ),
    defect!(
        "readiness-is-not-waited-for",
        "shows CONFIGURED before the node is Ready",
        ["FAULT-08"],
        Record(not_ready)
    ),
];

fn hidden_failure(machine: &mut Machine, _: &mut Memory) {
    if machine.state() == State::Failed {
        machine.state = State::Idle.into();
        machine.last_error.clear();
    }
}

fn no_reason(machine: &mut Machine, _: &mut Memory) {
    machine.last_error.clear();
}

fn late_success(machine: &mut Machine, memory: &mut Memory) {
    if machine.state() == State::Failed {
        let since = memory
            .since
            .entry(machine.id.clone())
            .or_insert_with(Instant::now);
        if Duration::from_millis(900) < since.elapsed() {
            machine.state = State::Configured.into();
            machine.last_error.clear();
        }
    }
}

fn failed_is_ok(ask: &Ask, answer: Answer, _: &mut Memory) -> Answer {
    if ask.kind == Kind::Create && ask.is_at(State::Failed) {
        return Ok(ack_of(ask));
    }
    answer
}

fn failed_unlisted(
    _: &ListFilter,
    mut list: MachineList,
    _: &mut Memory,
) -> Result<MachineList, Status> {
    list.machines
        .retain(|machine| machine.state() != State::Failed);
    Ok(list)
}

fn not_ready(machine: &mut Machine, _: &mut Memory) {
    if machine.state() == State::Configuring {
        machine.state = State::Configured.into();
    }
}
