//! Records: fields that say what cannot be.

use bigfleet_wire::v1alpha1::{CapacityType, Machine, MachineState as State};

use super::Defect;
use super::Plant::Record;
use crate::mutants::proxy::Memory;

pub(super) static ALL: &[Defect] = &[
    defect!(
        "price-is-not-a-number",
        "shows a price that is no number",
        ["SHAPE-02"],
        Record(no_price)
    ),
    defect!(
        "spot-is-never-interrupted",
        "shows spot with a probability of zero",
        ["SHAPE-02"],
        Record(safe_spot)
    ),
    defect!(
        "label-shadows-zone",
        "puts the zone into a label",
        ["SHAPE-01"],
        Record(shadow)
    ),
    defect!(
        "amounts-cannot-be-read",
        "shows allocatable in words",
        ["SHAPE-04"],
        Record(words_for_amounts)
    ),
    defect!(
        "provider-label-changes",
        "changes the provider of a host",
        ["SHAPE-05"],
        Record(other_provider)
    ),
    defect!(
        "host-without-zone",
        "shows hosts without a zone",
        ["SHAPE-06"],
        Record(no_zone)
    ),
];

fn no_price(machine: &mut Machine, _: &mut Memory) {
    machine.price_per_hour = f64::NAN;
}

fn safe_spot(machine: &mut Machine, _: &mut Memory) {
    if machine.capacity_type() == CapacityType::Spot {
        machine.interruption_probability = 0.0;
    }
}

fn shadow(machine: &mut Machine, _: &mut Memory) {
    machine
        .labels
        .insert("zone".to_owned(), machine.zone.clone());
}

fn words_for_amounts(machine: &mut Machine, _: &mut Memory) {
    if let Some(allocatable) = &mut machine.allocatable {
        allocatable
            .resources
            .insert("cpu".to_owned(), "plenty".to_owned());
    }
}

fn other_provider(machine: &mut Machine, _: &mut Memory) {
    if machine.state() == State::Configured
        && let Some(host) = &mut machine.host
    {
        host.provider += "-bound";
    }
}

fn no_zone(machine: &mut Machine, _: &mut Memory) {
    if machine.host.is_some() {
        machine.zone.clear();
    }
}
