//! Simplify: plainer values in the place of those a mistake does not depend on.

use crate::minimise::{Identity, Shrinking, change_rows, identity};
use bigfleet_model::{
    Amounts, Assignment, Bucket, CapacityType, Fingerprint, Fleet, FleetMachine, Holds, Machine,
    MachineFacts, MachineId, Need, Profile, Shape, Time,
};
use std::sync::Arc;

/// What is not about one machine or row.
pub(crate) fn fleets(shrinking: &mut Shrinking<'_>) {
    shrinking.attempt_on_all(|fleet| fleet.holds = Holds::default());
    shrinking.attempt_on_all(|fleet| {
        fleet.clusters.values_mut().for_each(|cluster| {
            (cluster.ready, cluster.acquire) = (true, true);
        });
    });
    shrinking.attempt_on_all(|fleet| fleet.now = Time::ZERO);
}

type Plainer = fn(&mut FleetMachine);
type PlainerFacts = fn(&mut MachineFacts);
type PlainerShape = fn(&mut Shape);

const MACHINE: [Plainer; 6] = [
    |found| found.leaving = None,
    |found| found.not_ready = false,
    |found| found.unavailable = false,
    |found| found.disruption = None,
    |found| found.reversible = false,
    |found| found.idle_since = None,
];

const FACTS: [PlainerFacts; 6] = [
    |facts| facts.price_per_hour = 0.0,
    |facts| facts.interruption_probability = 0.0,
    |facts| facts.intent = None,
    |facts| facts.assignment = Assignment::default(),
    |facts| facts.assignment.keep_price = None,
    |facts| {
        if let Some(intent) = &mut facts.intent {
            intent.keep_price = None;
        }
    },
];

const SHAPE: [PlainerShape; 6] = [
    |shape| shape.labels.clear(),
    |shape| drop(shape.labels.remove("tier")),
    |shape| shape.allocatable = None,
    |shape| shape.zone.clear(),
    |shape| shape.instance_type.clear(),
    |shape| shape.capacity_type = CapacityType::Unspecified,
];

/// One machine, wherever the trail has it.
pub(crate) fn machine(shrinking: &mut Shrinking<'_>, id: &MachineId) {
    for plainer in MACHINE {
        shrinking.attempt_on_all(|fleet| {
            fleet.machines.get_mut(id).into_iter().for_each(plainer);
        });
    }
    for plainer in FACTS {
        shrinking.attempt_on_all(|fleet| change_facts(fleet, id, plainer));
    }
    for plainer in SHAPE {
        shrinking.attempt_on_all(|fleet| {
            change_facts(fleet, id, |facts| plainer(Arc::make_mut(&mut facts.shape)));
        });
    }
}

fn change_facts(fleet: &mut Fleet, id: &MachineId, change: impl FnOnce(&mut MachineFacts)) {
    let Some(found) = fleet.machines.get_mut(id) else {
        return;
    };
    let mut facts = found.machine.clone().into_facts();
    change(&mut facts);
    if let Ok(machine) = Machine::new(facts) {
        found.machine = machine;
    }
}

/// One row, wherever the trail has it, and those committed to it along with it.
pub(crate) fn row(shrinking: &mut Shrinking<'_>, wanted: &Identity) {
    let plain: [fn(&mut Need); 5] = [
        |need| need.parked = false,
        |need| need.row.whole_units = false,
        |need| need.arrival = None,
        |need| need.row.min_unit = Amounts::NONE,
        |need| need.row.aggregate = need.row.min_unit.clone(),
    ];
    for plainer in plain {
        shrinking.attempt_on_all(|fleet| {
            change_rows(fleet, |need| {
                if identity(need) == *wanted {
                    plainer(need);
                }
                true
            });
        });
    }
    let mut wanted = wanted.clone();
    for plainer in PROFILE {
        let plainer = plainer(&wanted.1);
        if shrinking.attempt_on_all(|fleet| change_profile(fleet, &wanted, &plainer)) {
            wanted.1 = plainer.into();
        }
    }
}

type PlainerProfile = fn(&Profile) -> Profile;

const PROFILE: [PlainerProfile; 6] = [
    |old| with(old, |parts| parts.0.clear()),
    |old| with(old, |parts| drop(parts.0.pop())),
    |old| with(old, |parts| parts.1.clear()),
    |old| with(old, |parts| parts.2 = 0),
    |old| with(old, |parts| parts.3 = Bucket::UNSPECIFIED),
    |old| with(old, |parts| parts.4 = Bucket::UNSPECIFIED),
];

type Parts = (
    Vec<bigfleet_model::Requirement>,
    Vec<bigfleet_model::Spread>,
    i32,
    Bucket,
    Bucket,
);

fn with(old: &Profile, change: impl FnOnce(&mut Parts)) -> Profile {
    let mut parts = (
        old.requirements().to_vec(),
        old.spread().to_vec(),
        old.priority(),
        old.interruption(),
        old.reclamation(),
    );
    change(&mut parts);
    Profile::new(parts.0, parts.1, parts.2, parts.3, parts.4)
}

/// Gives a row another profile and lets the machines committed to it, as received or folded, follow.
fn change_profile(fleet: &mut Fleet, wanted: &Identity, profile: &Profile) {
    let texts = [
        (
            wanted.1.fingerprint().clone(),
            profile.fingerprint().clone(),
        ),
        (
            wanted.1.folded().fingerprint().clone(),
            profile.folded().fingerprint().clone(),
        ),
    ];
    let rename = |text: &mut Fingerprint| {
        if let Some((_, new)) = texts.iter().find(|(old, _)| old == text) {
            *text = new.clone();
        }
    };
    change_rows(fleet, |need| {
        if identity(need) == *wanted {
            need.row.profile = Arc::new(profile.clone());
        }
        true
    });
    let ids: Vec<MachineId> = fleet.machines.keys().cloned().collect();
    for id in ids {
        change_facts(fleet, &id, |facts| {
            if facts.cluster == wanted.0.as_str() {
                rename(&mut facts.assignment.fingerprint);
            }
            if let Some(intent) = &mut facts.intent
                && intent.need.cluster == wanted.0
            {
                rename(&mut intent.need.fingerprint);
            }
        });
    }
}
