//! Slots: the machines an offering stands for, each with an id that is the same at every start.

use std::collections::BTreeMap;
use std::sync::Arc;

use bigfleet_model::{Host, Time};
use bigfleet_provider_kit::{Instance, Offer};

use crate::config::{Config, Offering, Supply};

/// One machine there is to have.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) id: String,
    pub(crate) offering: usize,
    /// The host it is called after.
    pub(crate) host: Option<String>,
    /// Whether that host is there from the start.
    pub(crate) exists: bool,
}

/// The host of a slot, as it was described.
#[derive(Clone, Debug)]
pub(crate) struct SlotHost {
    pub(crate) reference: String,
    /// When it will be gone, if that is announced.
    pub(crate) leaving: Option<Time>,
}

/// Everything there is to have.
#[derive(Clone, Debug)]
pub struct Slots {
    provider: String,
    offerings: Vec<Offering>,
    slots: Vec<Slot>,
    by_id: BTreeMap<String, usize>,
}

impl Slots {
    /// The slots of a file. With `seeds` the counts of its offerings are scaled to that many machines in all,
    /// at least one each; lists of hosts stay as they are.
    pub fn new(config: &Config, provider: &str, seeds: Option<usize>) -> Self {
        let mut slots = Vec::new();
        let counts = counts(&config.offerings, seeds);
        for (at, offering) in config.offerings.iter().enumerate() {
            let exists = offering.exists();
            match &offering.supply {
                Supply::Count(_) => slots.extend((0..counts[at]).map(|index| Slot {
                    id: format!("{provider}-{}-{index:05}", offering.name),
                    offering: at,
                    host: None,
                    exists,
                })),
                Supply::Hosts(hosts) => slots.extend(hosts.iter().map(|host| Slot {
                    id: format!("{provider}-{host}"),
                    offering: at,
                    host: Some(host.clone()),
                    exists,
                })),
            }
        }
        let by_id = slots.iter().enumerate();
        let by_id = by_id.map(|(at, slot)| (slot.id.clone(), at)).collect();
        Self {
            provider: provider.to_owned(),
            offerings: config.offerings.clone(),
            slots,
            by_id,
        }
    }

    pub(crate) fn get(&self, id: &str) -> Option<&Slot> {
        self.by_id.get(id).map(|at| &self.slots[*at])
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter()
    }

    /// The ids of all machines.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.slots.iter().map(|slot| slot.id.as_str())
    }

    pub(crate) fn offering(&self, slot: &Slot) -> &Offering {
        &self.offerings[slot.offering]
    }

    pub(crate) fn offer(&self, id: &str) -> Option<&Arc<Offer>> {
        self.get(id).map(|slot| &self.offering(slot).offer)
    }

    /// A host of this provider.
    pub(crate) fn host(&self, reference: &str) -> Host {
        Host {
            provider: self.provider.clone(),
            reference: reference.to_owned(),
        }
    }

    /// The inventory, given which hosts exist, by machine.
    pub(crate) fn instances(&self, hosts: &BTreeMap<String, SlotHost>) -> Vec<Instance> {
        let instance = |slot: &Slot| {
            let host = hosts.get(&slot.id);
            Instance {
                id: slot.id.clone(),
                host: host.map(|host| self.host(&host.reference)),
                hint: None,
                offer: Arc::clone(&self.offering(slot).offer),
                leaving: host.and_then(|host| host.leaving),
            }
        };
        self.slots.iter().map(instance).collect()
    }
}

/// How many machines each offering has: its own count, or its share of `seeds`.
fn counts(offerings: &[Offering], seeds: Option<usize>) -> Vec<usize> {
    let counts: Vec<usize> = offerings
        .iter()
        .map(|offering| match &offering.supply {
            Supply::Count(count) => *count,
            Supply::Hosts(_) => 0,
        })
        .collect();
    let total: usize = counts.iter().sum();
    let (Some(seeds), 1..) = (seeds, total) else {
        return counts;
    };
    // Each gets what it has of the sum up to it, so that all shares add up to the seeds.
    let upto = |sum: usize| (sum as u128 * seeds as u128 / total as u128) as usize;
    let mut sum = 0;
    let shares = counts.iter().map(|count| {
        let before = sum;
        sum += count;
        let share = upto(sum) - upto(before);
        if *count == 0 { 0 } else { share.max(1) }
    });
    shares.collect()
}
