//! Hardware: the machines of the demonstration's cloud.
//!
//! ```text
//! three zones × { bare metal: there, paid for · reserved · on-demand · spot: quota }
//! accelerators: one rack of four that is owned, half a rack elsewhere, and a rack to rent
//! ```
//!
//! Few enough to read through, and scarce where the tour wants scarcity: there are 18 large machines, so a
//! batch wave can take them all and a burst that outranks it has to preempt.

use std::sync::Arc;

use bigfleet_model::{CapacityType, Host};
use bigfleet_provider_kit::{Instance, Offer, TextMap};
use bigfleet_workloads::{RACK_KEY, ZONES};

/// The name under which the cloud's hosts are known.
pub(crate) const PROVIDER: &str = "fake";

struct MachineType {
    name: &'static str,
    resources: &'static [(&'static str, &'static str)],
    allocatable: &'static [(&'static str, &'static str)],
    on_demand: f64,
}

const SMALL: MachineType = MachineType {
    name: "m6i.2xlarge",
    resources: &[("cpu", "8"), ("memory", "32Gi")],
    allocatable: &[("cpu", "7900m"), ("memory", "30Gi")],
    on_demand: 0.384,
};
const LARGE: MachineType = MachineType {
    name: "c6i.4xlarge",
    resources: &[("cpu", "16"), ("memory", "32Gi")],
    allocatable: &[("cpu", "15900m"), ("memory", "29Gi")],
    on_demand: 0.68,
};
const ACCELERATED: MachineType = MachineType {
    name: "a3-highgpu-8g",
    resources: &[
        ("cpu", "208"),
        ("memory", "1872Gi"),
        ("nvidia.com/gpu", "8"),
    ],
    allocatable: &[
        ("cpu", "206"),
        ("memory", "1800Gi"),
        ("nvidia.com/gpu", "8"),
    ],
    on_demand: 88.25,
};

/// What every zone has.
const PER_ZONE: &[(&MachineType, CapacityType, usize)] = &[
    (&SMALL, CapacityType::BareMetal, 4),
    (&SMALL, CapacityType::Reserved, 2),
    (&SMALL, CapacityType::OnDemand, 3),
    (&SMALL, CapacityType::Spot, 4),
    (&LARGE, CapacityType::BareMetal, 1),
    (&LARGE, CapacityType::OnDemand, 3),
    (&LARGE, CapacityType::Spot, 2),
];

/// Racks of accelerators: zone, how held, how many.
const RACKS: &[(usize, CapacityType, usize)] = &[
    (0, CapacityType::BareMetal, 4),
    (1, CapacityType::BareMetal, 2),
    (2, CapacityType::OnDemand, 4),
];

/// Every slot there is.
pub(crate) fn slots() -> Vec<Instance> {
    let mut slots = Vec::new();
    for zone in ZONES {
        for (kind, tier, count) in PER_ZONE {
            let offer = Arc::new(offer(kind, *tier, zone, "rack-0"));
            slots.extend((0..*count).map(|at| slot(&offer, at)));
        }
    }
    for (zone, tier, count) in RACKS {
        let offer = Arc::new(offer(&ACCELERATED, *tier, ZONES[*zone], "rack-1"));
        slots.extend((0..*count).map(|at| slot(&offer, at)));
    }
    slots
}

fn slot(offer: &Arc<Offer>, at: usize) -> Instance {
    let tier = match offer.capacity_type {
        CapacityType::BareMetal => "metal",
        CapacityType::Reserved => "reserved",
        CapacityType::OnDemand => "ondemand",
        CapacityType::Spot => "spot",
        CapacityType::Unspecified => "unspecified",
    };
    let id = format!("{tier}-{}-{}-{at}", offer.instance_type, offer.zone);
    // Bare metal stands there from the start; everything else is quota until it is created.
    let host = (offer.capacity_type == CapacityType::BareMetal).then(|| Host {
        provider: PROVIDER.to_owned(),
        reference: format!("serial-{id}"),
    });
    Instance {
        id,
        host,
        offer: Arc::clone(offer),
        ..Instance::default()
    }
}

/// Prices and interruptions as clouds have them: a commitment saves a third, spot two thirds.
fn offer(kind: &MachineType, tier: CapacityType, zone: &str, rack: &str) -> Offer {
    let (share, interruption_probability) = match tier {
        CapacityType::BareMetal => (0.0, 0.0),
        CapacityType::Reserved => (0.63, 0.0),
        CapacityType::OnDemand | CapacityType::Unspecified => (1.0, 0.0),
        CapacityType::Spot => (0.34, 0.05),
    };
    let texts = |pairs: &[(&str, &str)]| -> TextMap {
        let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        pairs.iter().map(owned).collect()
    };
    Offer {
        instance_type: kind.name.to_owned(),
        zone: zone.to_owned(),
        capacity_type: tier,
        price_per_hour: (kind.on_demand * share * 1000.0).round() / 1000.0,
        interruption_probability,
        resources: texts(kind.resources),
        allocatable: texts(kind.allocatable),
        labels: texts(&[
            ("kubernetes.io/arch", "amd64"),
            (RACK_KEY, &format!("{zone}-{rack}")),
        ]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_provider_accepts_every_slot_and_no_two_share_an_id() {
        let slots = slots();
        for slot in &slots {
            bigfleet_provider_kit::check_instance(slot, true).unwrap();
        }
        let ids: BTreeSet<&str> = slots.iter().map(|slot| slot.id.as_str()).collect();
        assert_eq!(ids.len(), slots.len());
    }

    #[test]
    fn every_way_to_hold_a_machine_is_in_every_zone() {
        for zone in ZONES {
            let here = slots().into_iter().filter(|slot| slot.offer.zone == zone);
            let tiers: BTreeSet<CapacityType> = here.map(|slot| slot.offer.capacity_type).collect();
            assert_eq!(tiers.len(), 4, "{zone}");
        }
    }
}
