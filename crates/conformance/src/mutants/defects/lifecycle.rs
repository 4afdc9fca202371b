//! Lifecycle: states, hosts and clusters that do not belong together.

use bigfleet_wire::v1alpha1::{Machine, MachineState as State};

use super::Defect;
use super::Plant::{DeletesBound, Record};
use crate::mutants::proxy::Memory;

pub(super) static ALL: &[Defect] = &[
    defect!(
        "cluster-stays-after-drain",
        "keeps the cluster of a drained machine",
        ["LIFE-05"],
        Record(cluster_stays)
    ),
    defect!(
        "configuring-shows-creating",
        "shows the wrong state on the way",
        ["LIFE-02"],
        Record(wrong_transition)
    ),
    defect!(
        "machine-does-not-rest",
        "shows a settled machine as draining now and then",
        ["LIFE-07"],
        Record(restless)
    ),
    defect!(
        "host-missing-when-idle",
        "shows an idle machine without its host",
        ["LIFE-06"],
        Record(no_host)
    ),
    defect!(
        "host-stays-after-delete",
        "keeps the host of a deleted machine",
        ["LIFE-08"],
        Record(host_stays)
    ),
    defect!(
        "deletes-bound-machines",
        "takes a machine from its cluster to delete it",
        ["ERR-04"],
        DeletesBound
    ),
];

fn cluster_stays(machine: &mut Machine, memory: &mut Memory) {
    match machine.state() {
        State::Configured => {
            memory
                .names
                .insert(machine.id.clone(), machine.cluster.clone());
        }
        State::Idle => {
            let before = memory.names.get(&machine.id).cloned();
            machine.cluster = before.unwrap_or_default();
        }
        _ => {}
    }
}

fn wrong_transition(machine: &mut Machine, memory: &mut Memory) {
    // Shown once per machine even where the transition is over before anybody looks.
    let first = !memory.names.contains_key(&machine.id);
    if machine.state() == State::Configured && first {
        memory.names.insert(machine.id.clone(), String::new());
        machine.state = State::Creating.into();
    }
}

fn restless(machine: &mut Machine, memory: &mut Memory) {
    if machine.state() == State::Configured && memory.next().is_multiple_of(7) {
        machine.state = State::Draining.into();
    }
}

fn no_host(machine: &mut Machine, _: &mut Memory) {
    if machine.state() == State::Idle {
        machine.host = None;
    }
}

fn host_stays(machine: &mut Machine, memory: &mut Memory) {
    if machine.host.is_some() {
        memory.machines.insert(machine.id.clone(), machine.clone());
    } else if let Some(before) = memory.machines.get(&machine.id) {
        machine.host = before.host.clone();
    }
}
