//! Reconcile: what a fresh inventory of the substrate says about the machines already known.
//!
//! ```text
//! described and unknown        ─▶ added
//! described and known          ─▶ price, interruption, shape, labels refreshed; nothing else
//! not confirmed, twice in a row ─┬─ with a host ──▶ Failed: host lost
//!                                └─ Speculative ──▶ removed
//! ```
//!
//! A single miss proves nothing: inventories of clouds lag. A machine that moved while the substrate
//! was being asked is left alone altogether.

use std::collections::BTreeMap;
use std::sync::Arc;

use bigfleet_model::{MachineId, State};

use crate::machine::{Failure, Machine, Offer};
use crate::tables::{Entry, Tables};

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
            Some(entry) => inventory
                .changed
                .extend(refreshed(&entry.machine, &machine.offer)),
        }
    }
    // An empty answer is a broken substrate, not an empty one.
    if described.is_empty() {
        return inventory;
    }
    let settled = |entry: &&Entry| entry.revision <= as_of;
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
