//! The offerings of a config file: what there is to have, and what it costs.

use std::collections::BTreeMap;
use std::sync::Arc;

use bigfleet_fleet_file::document::Fields;
use bigfleet_model::CapacityType;
use bigfleet_provider_kit::{Instance, Offer, check_instance};

/// Slots that offer the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Offering {
    /// Tells it from the others; part of the ids of its machines.
    pub name: String,
    /// What each of its machines offers.
    pub offer: Arc<Offer>,
    /// How many there are, or which.
    pub supply: Supply,
}

/// How many machines an offering has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Supply {
    /// This many, all alike.
    Count(usize),
    /// One per host, called after it.
    Hosts(Vec<String>),
}

/// The most machines of one file.
const MOST_MACHINES: usize = 500_000;

const TIERS: [(&str, CapacityType); 4] = [
    ("bare_metal", CapacityType::BareMetal),
    ("reserved", CapacityType::Reserved),
    ("on_demand", CapacityType::OnDemand),
    ("spot", CapacityType::Spot),
];

/// The word for a capacity type in files and in what programs are given.
pub(crate) fn tier_word(tier: CapacityType) -> &'static str {
    let found = TIERS.iter().find(|(_, of)| *of == tier);
    found.map_or("unspecified", |(word, _)| word)
}

impl Offering {
    /// Whether its machines exist from the start: hosts of metal that somebody has racked.
    pub fn exists(&self) -> bool {
        let metal = self.offer.capacity_type == CapacityType::BareMetal;
        metal && matches!(self.supply, Supply::Hosts(_))
    }

    /// Whether a program has to make its machines.
    pub fn is_created(&self) -> bool {
        !self.exists()
    }

    /// Whether a shard gives its machines back when nobody needs them.
    pub fn is_deleted(&self) -> bool {
        match self.offer.capacity_type {
            CapacityType::OnDemand | CapacityType::Spot => true,
            CapacityType::BareMetal | CapacityType::Reserved | CapacityType::Unspecified => false,
        }
    }

    fn machines(&self) -> usize {
        match &self.supply {
            Supply::Count(count) => *count,
            Supply::Hosts(hosts) => hosts.len(),
        }
    }
}

pub(super) fn read(fields: &mut Fields<'_>) -> Vec<Offering> {
    let mut offerings = Vec::new();
    let nodes = fields.list("offerings");
    if nodes.is_empty() {
        fields.note(
            "offerings",
            "is missing or empty: there is nothing to offer",
        );
    }
    for (at, node) in nodes.into_iter().enumerate() {
        if let Some(mut entry) = fields.item("offerings", at, node) {
            let (offering, problem) = offering(&mut entry);
            entry.close();
            if let Some(problem) = problem {
                fields.note(&format!("offerings[{at}]"), &problem);
            }
            offerings.push(offering);
        }
    }
    twice(fields, &offerings);
    let machines = offerings.iter().map(Offering::machines);
    let machines = machines.fold(0_usize, usize::saturating_add);
    if MOST_MACHINES < machines {
        let what = format!("{machines} machines are more than the {MOST_MACHINES} allowed");
        fields.note("offerings", &what);
    }
    offerings
}

/// An offering, and what is wrong with it as a whole.
fn offering(entry: &mut Fields<'_>) -> (Offering, Option<String>) {
    let before = entry.problems();
    let every = "every offering has one";
    let instance_type = entry
        .required_text("instance_type", every)
        .unwrap_or_default();
    let zone = entry.required_text("zone", every).unwrap_or_default();
    let tier = entry.take("capacity_type");
    if tier.is_none() {
        entry.note("capacity_type", &format!("is missing ({every})"));
    }
    let tier = tier.and_then(|node| {
        let word = node.to_string();
        let found = TIERS
            .iter()
            .find(|(known, _)| word == format!("\"{known}\""));
        if found.is_none() {
            let known = TIERS.map(|(word, _)| word).join(", ");
            entry.note("capacity_type", &format!("{node} is not one of {known}"));
        }
        found.map(|(_, tier)| *tier)
    });
    let offer = Offer {
        price_per_hour: price(entry, tier),
        interruption_probability: entry.number("interruption_probability"),
        resources: entry.quantity_map("resources"),
        allocatable: entry.quantity_map("allocatable"),
        labels: entry.text_map("labels"),
        capacity_type: tier.unwrap_or_default(),
        instance_type,
        zone,
    };
    let name = entry.text("name");
    let name = if name.is_empty() {
        let tier = tier_word(offer.capacity_type).replace('_', "-");
        format!("{tier}-{}-{}", offer.instance_type, offer.zone)
    } else {
        name
    };
    let supply = supply(entry);
    let offer = Arc::new(offer);
    let mut problem = None;
    if entry.problems() == before {
        let sample = Instance {
            id: name.clone(),
            offer: Arc::clone(&offer),
            ..Instance::default()
        };
        problem = check_instance(&sample, true).err().map(|it| it.problem);
    }
    let offering = Offering {
        name,
        offer,
        supply,
    };
    (offering, problem)
}

/// Required but for metal, which is already paid for: elsewhere a default of zero would make the machine
/// the cheapest of all.
fn price(entry: &mut Fields<'_>, tier: Option<CapacityType>) -> f64 {
    let before = entry.problems();
    let price = entry.optional_number("price_per_hour");
    if entry.problems() != before {
        return 0.0;
    }
    match (price, tier) {
        (Some(price), Some(tier)) if price == 0.0 && tier != CapacityType::BareMetal => {
            entry.note(
                "price_per_hour",
                "0 is for bare_metal, which is already paid for; it would win every comparison",
            );
            price
        }
        (Some(price), _) => price,
        (None, Some(CapacityType::BareMetal) | None) => 0.0,
        (None, Some(_)) => {
            entry.note(
                "price_per_hour",
                "is missing (only bare_metal does without)",
            );
            0.0
        }
    }
}

fn supply(entry: &mut Fields<'_>) -> Supply {
    let before = entry.problems();
    let count: usize = entry.whole("count", 0);
    let hosts = entry.text_list("hosts");
    let readable = entry.problems() == before;
    let mut seen = BTreeMap::new();
    for (at, host) in hosts.iter().enumerate() {
        let key = format!("hosts[{at}]");
        if host.is_empty() || host.contains('/') {
            entry.note(
                &key,
                &format!("{host:?} is not a host's name (empty, or has a slash)"),
            );
        } else if let Some(first) = seen.insert(host, at) {
            entry.note(&key, &format!("{host:?} is hosts[{first}] already"));
        }
    }
    match (count, hosts.is_empty()) {
        (0, true) if readable => {
            entry.note("count", "is missing or 0, and there is no list of hosts")
        }
        (0, _) | (_, true) => {}
        (_, false) => entry.note("count", "and hosts exclude each other"),
    }
    if hosts.is_empty() {
        Supply::Count(count)
    } else {
        Supply::Hosts(hosts)
    }
}

/// Two offerings of one name would have machines of one id; so would two hosts of one name.
fn twice(fields: &mut Fields<'_>, offerings: &[Offering]) {
    let (mut names, mut hosts) = (BTreeMap::new(), BTreeMap::new());
    for (at, offering) in offerings.iter().enumerate() {
        if let Some(first) = names.insert(&offering.name, at) {
            fields.note(
                &format!("offerings[{at}]"),
                &format!(
                    "has the name {:?} of offerings[{first}]; give one of them a name of its own",
                    offering.name
                ),
            );
        }
        let Supply::Hosts(listed) = &offering.supply else {
            continue;
        };
        for host in listed {
            if let Some(first) = hosts.insert(host, at).filter(|first| *first != at) {
                fields.note(
                    &format!("offerings[{at}]"),
                    &format!("host {host:?} is in offerings[{first}] already"),
                );
            }
        }
    }
    let counted = |name: &str| {
        let named = |offering: &&Offering| offering.name == name;
        let found = offerings.iter().find(named);
        found.is_some_and(|it| matches!(it.supply, Supply::Count(_)))
    };
    for (host, at) in hosts {
        // The id of a counted machine is the name of its offering and a number.
        let numbered = host.rsplit_once('-').filter(|(name, number)| {
            counted(name) && 5 <= number.len() && number.bytes().all(|it| it.is_ascii_digit())
        });
        if let Some((name, _)) = numbered {
            fields.note(
                &format!("offerings[{at}]"),
                &format!("host {host:?} reads like a machine of the offering {name:?}"),
            );
        }
    }
}
