//! The catalogue: which slots there are.

use std::collections::BTreeMap;
use std::sync::Arc;

use bigfleet_model::{CapacityType, Host};
use bigfleet_provider_kit::{Instance, Offer, TextMap};
use serde::Deserialize;

use crate::selectors::CREATE_FAULT_LABEL;

struct Type {
    name: &'static str,
    cpu: &'static str,
    memory: &'static str,
    allocatable_cpu: &'static str,
    allocatable_memory: &'static str,
    on_demand: f64,
}

const TYPES: [Type; 2] = [
    Type {
        name: "g4.standard",
        cpu: "4",
        memory: "16Gi",
        allocatable_cpu: "3920m",
        allocatable_memory: "15Gi",
        on_demand: 0.40,
    },
    Type {
        name: "g8.standard",
        cpu: "8",
        memory: "32Gi",
        allocatable_cpu: "7910m",
        allocatable_memory: "30Gi",
        on_demand: 0.80,
    },
];
const ZONES: [&str; 3] = ["zone-a", "zone-b", "zone-c"];
/// Spot costs this share of on-demand, and is interrupted this often per hour.
const SPOT_SHARE: f64 = 0.3;
const SPOT_INTERRUPTION: f64 = 0.05;

fn texts<const N: usize>(pairs: [(&str, &str); N]) -> TextMap {
    pairs
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
}

fn id(provider: &str, offer: &Offer, index: usize) -> String {
    let tier = match offer.capacity_type {
        CapacityType::BareMetal => "bare-metal",
        CapacityType::Reserved => "reserved",
        CapacityType::OnDemand => "on-demand",
        CapacityType::Spot => "spot",
        CapacityType::Unspecified => "unspecified",
    };
    let (kind, zone) = (&offer.instance_type, &offer.zone);
    format!("{provider}-{tier}-{kind}-{zone}-{index:05}")
}

fn offer(kind: &Type, zone: &str, tier: CapacityType) -> Offer {
    let (price, interruption) = match tier {
        CapacityType::Spot => (kind.on_demand * SPOT_SHARE, SPOT_INTERRUPTION),
        CapacityType::BareMetal => (0.0, 0.0),
        CapacityType::Unspecified | CapacityType::Reserved | CapacityType::OnDemand => {
            (kind.on_demand, 0.0)
        }
    };
    Offer {
        instance_type: kind.name.to_owned(),
        zone: zone.to_owned(),
        capacity_type: tier,
        price_per_hour: price,
        interruption_probability: interruption,
        resources: texts([("cpu", kind.cpu), ("memory", kind.memory)]),
        allocatable: texts([
            ("cpu", kind.allocatable_cpu),
            ("memory", kind.allocatable_memory),
        ]),
        labels: texts([("kubernetes.io/arch", "amd64")]),
    }
}

/// Makes slots; those of one kind share their offer in memory.
#[derive(Default)]
struct Maker(BTreeMap<(usize, usize, CapacityType), Arc<Offer>>);

impl Maker {
    fn nth(&mut self, provider: &str, index: usize, tier: CapacityType) -> Instance {
        let (kind, zone) = ((index / 3) % TYPES.len(), (index / 6) % ZONES.len());
        let made = self.0.entry((kind, zone, tier));
        let offer = made.or_insert_with(|| Arc::new(offer(&TYPES[kind], ZONES[zone], tier)));
        Instance {
            id: id(provider, offer, index),
            offer: Arc::clone(offer),
            ..Instance::default()
        }
    }
}

/// On-demand and spot slots over several types and zones; every third is spot.
pub fn conventional(provider: &str, count: usize) -> Vec<Instance> {
    let tier = |index: usize| match index % 3 {
        2 => CapacityType::Spot,
        _ => CapacityType::OnDemand,
    };
    let mut maker = Maker::default();
    let slot = |index| maker.nth(provider, index, tier(index));
    (0..count).map(slot).collect()
}

/// Hosts that are already there and cannot be given back.
pub(crate) fn bare_metal(provider: &str, count: usize) -> Vec<Instance> {
    let host = |instance: &Instance| Host {
        provider: provider.to_owned(),
        reference: format!("serial-{}", instance.id),
    };
    let mut maker = Maker::default();
    let instances = (0..count).map(|index| maker.nth(provider, index, CapacityType::BareMetal));
    instances
        .map(|slot| Instance {
            host: Some(host(&slot)),
            ..slot
        })
        .collect()
}

/// The eight slots whose creation always fails; they exist only where fault hooks are on.
pub(crate) fn create_faults() -> Vec<Instance> {
    let slot = |index: usize| {
        let mut slot = Maker::default().nth("fault", 0, CapacityType::OnDemand);
        slot.id = format!("faultcreate-{index}");
        Arc::make_mut(&mut slot.offer).labels = texts([(CREATE_FAULT_LABEL, "error")]);
        slot
    };
    (0..8).map(slot).collect()
}

/// An entry of an offerings file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Offering {
    instance_type: String,
    zone: String,
    capacity_type: Tier,
    count: usize,
    #[serde(default)]
    resources: TextMap,
    #[serde(default)]
    allocatable: TextMap,
    #[serde(default)]
    labels: TextMap,
    /// Required except for bare metal, which is already paid for. Elsewhere a default of zero would make
    /// the machine the cheapest of all.
    price_per_hour: Option<f64>,
    interruption_probability: Option<f64>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Tier {
    OnDemand,
    Spot,
    Reserved,
    BareMetal,
}

/// Why an offerings file was refused.
#[derive(Debug, thiserror::Error)]
pub enum OfferingsRefused {
    /// Not the JSON it should be.
    #[error("offerings: {0}")]
    Json(#[from] serde_json::Error),
    /// Nothing to offer.
    #[error("offerings: no slots")]
    Empty,
    /// No price, and no type of ours to take one from.
    #[error("offerings: {0} has no price_per_hour, and no default is known for the type")]
    NoPrice(String),
}

/// The slots an offerings file stands for.
pub(crate) fn offerings(provider: &str, json: &str) -> Result<Vec<Instance>, OfferingsRefused> {
    let entries: Vec<Offering> = serde_json::from_str(json)?;
    let mut slots = Vec::new();
    for entry in entries {
        let offer = Arc::new(entry.offer()?);
        for index in 0..entry.count {
            let id = id(provider, &offer, index);
            let metal = offer.capacity_type == CapacityType::BareMetal;
            let reference = format!("serial-{id}");
            let host = metal.then(|| Host {
                provider: provider.to_owned(),
                reference,
            });
            slots.push(Instance {
                id,
                host,
                offer: Arc::clone(&offer),
                ..Instance::default()
            });
        }
    }
    if slots.is_empty() {
        return Err(OfferingsRefused::Empty);
    }
    Ok(slots)
}

impl Offering {
    fn offer(&self) -> Result<Offer, OfferingsRefused> {
        let tier = match self.capacity_type {
            Tier::OnDemand => CapacityType::OnDemand,
            Tier::Spot => CapacityType::Spot,
            Tier::Reserved => CapacityType::Reserved,
            Tier::BareMetal => CapacityType::BareMetal,
        };
        let known = TYPES.iter().find(|kind| kind.name == self.instance_type);
        let usual = known.map(|kind| offer(kind, &self.zone, tier));
        let price = match (self.price_per_hour, &usual, tier) {
            (Some(price), _, _) => price,
            (None, _, CapacityType::BareMetal) => 0.0,
            (None, Some(usual), _) => usual.price_per_hour,
            (None, None, _) => return Err(OfferingsRefused::NoPrice(self.instance_type.clone())),
        };
        let usual = usual.unwrap_or_default();
        let chance = match tier {
            CapacityType::Spot => SPOT_INTERRUPTION,
            CapacityType::Unspecified
            | CapacityType::BareMetal
            | CapacityType::Reserved
            | CapacityType::OnDemand => 0.0,
        };
        let or = |given: &TextMap, usual: TextMap| {
            if given.is_empty() {
                usual
            } else {
                given.clone()
            }
        };
        Ok(Offer {
            instance_type: self.instance_type.clone(),
            zone: self.zone.clone(),
            capacity_type: tier,
            price_per_hour: price,
            interruption_probability: self.interruption_probability.unwrap_or(chance),
            resources: or(&self.resources, usual.resources),
            allocatable: or(&self.allocatable, usual.allocatable),
            labels: self.labels.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Schema;

    #[test]
    fn the_schema_says_what_the_code_reads() {
        let schema = Schema::new(include_str!("../../../docs/schema/offerings.json"));
        let page = include_str!("../../../docs/provider-fake.md");
        schema.check::<Offering>("/items", page);
    }

    #[test]
    fn the_example_of_the_page_can_be_offered() {
        let page = include_str!("../../../docs/provider-fake.md");
        let example = page
            .split("```json\n")
            .nth(1)
            .and_then(|rest| rest.split("```").next());
        let slots = offerings("fake", example.unwrap()).unwrap();
        assert_eq!(slots.len(), 30);
        let knobs = page
            .split("```json\n")
            .nth(2)
            .and_then(|rest| rest.split("```").next());
        let knobs: crate::Knobs = serde_json::from_str(knobs.unwrap()).unwrap();
        assert_eq!(knobs.seed, 7);
    }
}
