//! Metadata: the caller's map, changed or shown at the wrong time.

use std::collections::BTreeMap;

use bigfleet_wire::v1alpha1::{ListFilter, Machine, MachineList, MachineState as State};
use tonic::Status;

use super::Defect;
use super::Plant::{Asked, Listed, Record};
use crate::mutants::proxy::{Ask, Kind, Memory};

pub(super) static ALL: &[Defect] = &[
    defect!(
        "metadata-loses-empty-values",
        "forgets keys with an empty value",
        ["META-01"],
        Record(loses_empty)
    ),
    defect!(
        "metadata-is-trimmed",
        "trims spaces from values",
        ["META-01"],
        Record(trims)
    ),
    defect!(
        "metadata-missing-in-lists",
        "shows metadata on Get alone",
        ["META-01"],
        Listed(unlisted_metadata)
    ),
    defect!(
        "metadata-stays-after-drain",
        "keeps the metadata of a drained machine",
        ["META-02"],
        Record(metadata_stays)
    ),
    defect!(
        "metadata-is-cut",
        "cuts metadata of many keys",
        ["PROP-05"],
        Record(cuts)
    ),
    defect!(
        "metadata-comes-late",
        "shows metadata once configured",
        ["META-04"],
        Record(late_metadata)
    ),
    defect!(
        "metadata-of-the-retry",
        "takes the metadata of a retry",
        ["META-05"],
        Asked(notes_retry),
        Record(retry_wins)
    ),
];

fn loses_empty(machine: &mut Machine, _: &mut Memory) {
    machine.shard_metadata.retain(|_, value| !value.is_empty());
}

fn trims(machine: &mut Machine, _: &mut Memory) {
    for value in machine.shard_metadata.values_mut() {
        *value = value.trim().to_owned();
    }
}

fn unlisted_metadata(
    _: &ListFilter,
    mut list: MachineList,
    _: &mut Memory,
) -> Result<MachineList, Status> {
    for machine in &mut list.machines {
        machine.shard_metadata.clear();
    }
    Ok(list)
}

fn metadata_stays(machine: &mut Machine, memory: &mut Memory) {
    match machine.state() {
        State::Configured => {
            memory.machines.insert(machine.id.clone(), machine.clone());
        }
        State::Idle => {
            if let Some(before) = memory.machines.get(&machine.id) {
                machine.shard_metadata = before.shard_metadata.clone();
            }
        }
        _ => {}
    }
}

fn cuts(machine: &mut Machine, _: &mut Memory) {
    if 200 < machine.shard_metadata.len() {
        let first: BTreeMap<_, _> = machine
            .shard_metadata
            .clone()
            .into_iter()
            .take(200)
            .collect();
        machine.shard_metadata = first;
    }
}

fn late_metadata(machine: &mut Machine, _: &mut Memory) {
    if machine.state() == State::Configuring {
        machine.shard_metadata.clear();
    }
}

fn notes_retry(ask: &mut Ask, memory: &mut Memory) -> Option<Status> {
    if ask.kind == Kind::Configure
        && let Some(before) = ask
            .before
            .clone()
            .filter(|m| m.state() == State::Configured)
    {
        let shard_metadata = ask.metadata.clone();
        let retried = Machine {
            shard_metadata,
            ..before
        };
        memory.machines.insert(ask.machine.clone(), retried);
    }
    None
}

fn retry_wins(machine: &mut Machine, memory: &mut Memory) {
    if let Some(retried) = memory.machines.get(&machine.id) {
        machine.shard_metadata = retried.shard_metadata.clone();
    }
}
