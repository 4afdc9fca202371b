//! Reconcile: what a fresh inventory of the substrate says about the machines already known.
//!
//! ```text
//! described and unknown        ─▶ added
//! described and known          ─▶ price, interruption, shape, labels, notice refreshed; nothing else
//! not confirmed, twice in a row ─┬─ with a host ──▶ Failed: host lost
//!                                └─ Speculative ──▶ removed
//! quoted and known ─▶ price and interruption refreshed; a quote that cannot be one changes nothing
//! ```
//!
//! A single miss proves nothing: inventories of clouds lag. A machine that moved while the substrate
//! was being asked is left alone altogether.

use std::collections::BTreeMap;
use std::sync::Arc;

use bigfleet_model::{CapacityType, MachineId, State, Time};

use crate::event::Quote;
use crate::machine::{Failure, Machine, Offer};
use crate::seed::{self, SeedRefused};
use crate::tables::{MachineEntry, Tables};

#[derive(Debug, Default)]
pub(crate) struct Inventory {
    pub(crate) changed: Vec<Machine>,
    pub(crate) lost: Vec<(Machine, Failure)>,
    pub(crate) gone: Vec<MachineId>,
    pub(crate) missed: BTreeMap<MachineId, ()>,
}

pub(crate) fn compare(
    tables: &Tables,
    described: &BTreeMap<MachineId, Machine>,
    as_of: u64,
    missed: &BTreeMap<MachineId, ()>,
) -> Inventory {
    let mut inventory = Inventory::default();
    for (id, machine) in described {
        match tables.machines().get(id) {
            None => inventory.changed.push(machine.clone()),
            Some(entry) => {
                let known = &*entry.machine;
                let refreshed = refreshed(known, &machine.offer);
                // What was announced since the substrate was asked is newer than its answer.
                let is_settled = entry.revision <= as_of;
                let told = is_settled.then(|| {
                    let known = refreshed.as_ref().unwrap_or(known);
                    leaves(known, machine.leaving)
                });
                inventory.changed.extend(told.flatten().or(refreshed));
            }
        }
    }
    // An empty answer is a broken substrate, not an empty one.
    if described.is_empty() {
        return inventory;
    }
    let settled = |entry: &&MachineEntry| entry.revision <= as_of;
    for entry in tables.machines().values().filter(settled) {
        let id = &entry.machine.id;
        let seen = described.get(id);
        let unconfirmed = match entry.machine.state {
            State::Idle | State::Configured => seen.is_none_or(|seen| seen.host.is_none()),
            State::Speculative => seen.is_none(),
            State::Creating
            | State::Configuring
            | State::Draining
            | State::Deleting
            | State::Failed => false,
        };
        if !unconfirmed {
            continue;
        }
        if !missed.contains_key(id) {
            inventory.missed.insert(id.clone(), ());
        } else if entry.machine.state == State::Speculative {
            inventory.gone.push(id.clone());
        } else {
            let text = "host lost: the substrate no longer reports it".to_owned();
            let lost = (Machine::clone(&entry.machine), Failure::permanent(text));
            inventory.lost.push(lost);
        }
    }
    inventory
}

/// The machine with the fields a describe may refresh, if any of them differs.
fn refreshed(known: &Machine, offered: &Arc<Offer>) -> Option<Machine> {
    if Arc::ptr_eq(&known.offer, offered) {
        return None;
    }
    let mut offer = (*known.offer).clone();
    offer.price_per_hour = offered.price_per_hour;
    offer.interruption_probability = offered.interruption_probability;
    offer.capacity_type = offered.capacity_type;
    offer.labels.clone_from(&offered.labels);
    if !known.refined {
        offer.resources.clone_from(&offered.resources);
        offer.allocatable.clone_from(&offered.allocatable);
    }
    let offer = Arc::new(offer);
    (offer != known.offer).then(|| Machine {
        offer,
        ..known.clone()
    })
}

/// The machine with what is announced of its host, if that is news. Nothing goes where no host is.
pub(crate) fn leaves(known: &Machine, at: Option<Time>) -> Option<Machine> {
    let leaving = at.filter(|_| known.host.is_some());
    (leaving != known.leaving).then(|| Machine {
        leaving,
        ..known.clone()
    })
}

/// The known machines whose price or interruption a quote changes, and the quotes that are none.
pub(crate) fn priced(tables: &Tables, quotes: &[Quote]) -> (Vec<Machine>, Vec<SeedRefused>) {
    let (mut changed, mut refused) = (Vec::new(), Vec::new());
    // Slots that offered the same go on sharing what they offer.
    let mut made = BTreeMap::<(usize, u64, u64), Arc<Offer>>::new();
    for quote in quotes {
        let (price, chance) = (quote.price_per_hour, quote.interruption_probability);
        let Some(entry) = tables.machines().get(quote.id.as_str()) else {
            continue;
        };
        let known = &entry.machine.offer;
        if (known.price_per_hour, known.interruption_probability) == (price, chance) {
            continue;
        }
        let key = (
            Arc::as_ptr(known) as usize,
            price.to_bits(),
            chance.to_bits(),
        );
        let offer = made.entry(key).or_insert_with(|| {
            let mut offer = Offer::clone(known);
            offer.price_per_hour = price;
            offer.interruption_probability = chance;
            Arc::new(offer)
        });
        let free = price == 0.0 && offer.capacity_type != CapacityType::BareMetal;
        let checked = if free {
            // It would win every ranking, and more likely means that a price list has a hole.
            Err("a price of 0 is for capacity that is already paid".to_owned())
        } else {
            seed::costs(offer)
        };
        match checked {
            Ok(()) => changed.push(Machine {
                offer: Arc::clone(offer),
                ..Machine::clone(&entry.machine)
            }),
            Err(problem) => refused.push(SeedRefused {
                id: quote.id.clone(),
                problem,
            }),
        }
    }
    (changed, refused)
}
