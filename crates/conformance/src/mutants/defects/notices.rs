//! Notices: announcements that not everybody hears, or that are never taken back.

use bigfleet_wire::v1alpha1::{ListFilter, Machine, MachineList};
use tonic::Status;

use super::Defect;
use super::Plant::{Listed, Record};
use crate::mutants::proxy::Memory;

pub(super) static ALL: &[Defect] = &[
    defect!(
        "notice-is-not-listed",
        "announces only to who asks for the machine by name",
        ["X-17"],
        Listed(silent)
    ),
    defect!(
        "notice-is-never-withdrawn",
        "goes on announcing what was withdrawn",
        ["X-17"],
        Record(for_ever)
    ),
];

fn silent(_: &ListFilter, mut list: MachineList, _: &mut Memory) -> Result<MachineList, Status> {
    for machine in &mut list.machines {
        machine.leaving_unix_nanos = 0;
    }
    Ok(list)
}

fn for_ever(machine: &mut Machine, _: &mut Memory) {
    if machine.cluster.starts_with("fault-notice-") {
        machine.leaving_unix_nanos = machine.leaving_unix_nanos.max(1);
    }
}
