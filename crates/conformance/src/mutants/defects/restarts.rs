//! Restarts: what a provider forgets when it is killed.

use bigfleet_wire::v1alpha1::{ListFilter, Machine, MachineList, MachineState as State};
use tonic::Status;

use super::Plant::{Ack, Asked, Listed, LosesLastWrite, Record};
use super::{Answer, Defect, with_id};
use crate::mutants::proxy::{Ask, Memory};

pub(super) static ALL: &[Defect] = &[
    defect!(
        "restart-loses-marks",
        "forgets fencing marks",
        ["DUR-01"],
        Asked(marks_lost)
    ),
    defect!(
        "restart-loses-operations",
        "forgets operation ids",
        ["DUR-02"],
        Ack(operations_lost)
    ),
    defect!(
        "restart-loses-metadata",
        "forgets a metadata key",
        ["DUR-03"],
        Record(metadata_lost)
    ),
    defect!(
        "restart-loses-a-machine",
        "forgets a machine",
        ["DUR-04"],
        Listed(machine_lost)
    ),
    defect!(
        "restart-counts-anew",
        "numbers operations from one again",
        ["DUR-05"],
        Ack(counts_anew)
    ),
    defect!(
        "restart-leaves-stuck",
        "leaves a machine in the middle",
        ["DUR-06"],
        Record(stuck)
    ),
    defect!(
        "restart-raises-the-bar",
        "fences new shards below old marks",
        ["DUR-07"],
        Asked(high_bar)
    ),
    defect!(
        "answers-before-the-write",
        "acknowledges what is not on disk",
        ["DUR-03"],
        LosesLastWrite
    ),
];

fn marks_lost(ask: &mut Ask, memory: &mut Memory) -> Option<Status> {
    if memory.reborn && !ask.shard.is_empty() {
        ask.shard += "-reborn";
    }
    None
}

fn operations_lost(_: &Ask, answer: Answer, memory: &mut Memory) -> Answer {
    let reborn = memory.reborn;
    with_id(answer, |id| if reborn { format!("{id}-again") } else { id })
}

fn metadata_lost(machine: &mut Machine, memory: &mut Memory) {
    if memory.reborn {
        machine.shard_metadata.pop_last();
    }
}

fn machine_lost(
    _: &ListFilter,
    mut list: MachineList,
    memory: &mut Memory,
) -> Result<MachineList, Status> {
    if memory.reborn {
        list.machines.pop();
    }
    Ok(list)
}

fn counts_anew(_: &Ask, answer: Answer, memory: &mut Memory) -> Answer {
    with_id(answer, |id| {
        if let Some(known) = memory.names.get(&id) {
            return known.clone();
        }
        let nth = memory.next();
        memory.names.insert(id, format!("op-{nth}"));
        format!("op-{nth}")
    })
}

fn stuck(machine: &mut Machine, memory: &mut Memory) {
    if memory.reborn && machine.state() == State::Failed {
        machine.state = State::Configuring.into();
        machine.last_error.clear();
    }
}

fn high_bar(ask: &mut Ask, memory: &mut Memory) -> Option<Status> {
    let low = memory.reborn && !ask.shard.is_empty() && ask.token() < (5, 0);
    low.then(|| Status::failed_precondition("below the mark of the store"))
}
