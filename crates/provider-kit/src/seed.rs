//! Seeds: which entries of a substrate's inventory may become machines.
//!
//! At start a bad entry stops the provider: it is a mistake in the catalogue, found before anyone
//! depends on it. Later a bad entry is skipped, since the machines already listed must not vanish.

use std::sync::Arc;

use bigfleet_model::{CapacityType, Host, MachineId, State, shown};

use crate::machine::{FailureClass, Instance, Machine, Offer};

/// Label keys that would shadow a field of the record.
pub(crate) const FORBIDDEN_LABELS: [&str; 9] = [
    "instance-type",
    "instance_type",
    "instanceType",
    "zone",
    "availability-zone",
    "availability_zone",
    "capacity-type",
    "capacity_type",
    "capacityType",
];

/// Why an entry of the inventory cannot become a machine.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("instance \"{}\": {problem}", shown(id))]
pub struct SeedRefused {
    /// The id of the entry, as the substrate stated it.
    pub id: String,
    /// What is wrong with it.
    pub problem: String,
}

/// The machine an entry stands for, if it is a good one.
pub fn check(instance: &Instance, require_zone: bool) -> Result<Machine, SeedRefused> {
    let refused = |problem: String| SeedRefused {
        id: instance.id.clone(),
        problem,
    };
    let id = MachineId::new(&instance.id).map_err(|why| refused(why.to_string()))?;
    offer(instance, require_zone).map_err(refused)?;
    let host = instance.host.clone().filter(|host| !host.is_empty());
    let state = match (instance.hint, &host) {
        (None | Some(State::Idle), Some(host)) => {
            usable(host).map_err(refused)?;
            State::Idle
        }
        (None | Some(State::Speculative), None) => State::Speculative,
        (Some(State::Idle), None) => return Err(refused("Idle needs a host".to_owned())),
        (Some(State::Speculative), Some(_)) => {
            return Err(refused("Speculative must have no host".to_owned()));
        }
        (Some(state), _) => {
            return Err(refused(format!(
                "{state} is not a state an inventory can state"
            )));
        }
    };
    Ok(Machine {
        id,
        state,
        host,
        offer: Arc::clone(&instance.offer),
        refined: false,
        cluster: String::new(),
        metadata: Arc::default(),
        last_error: String::new(),
        failure: FailureClass::Unspecified,
        owner: Arc::default(),
        leaving: instance.leaving.filter(|_| state != State::Speculative),
    })
}

/// A host needs both names: a label to show and a reference to act on.
pub(crate) fn usable(host: &Host) -> Result<(), String> {
    if host.provider.is_empty() || host.reference.is_empty() {
        return Err(format!(
            "host \"{}/{}\" needs both a provider and a reference",
            shown(&host.provider),
            shown(&host.reference)
        ));
    }
    Ok(())
}

fn offer(instance: &Instance, require_zone: bool) -> Result<(), String> {
    let offer = &instance.offer;
    if offer.instance_type.is_empty() {
        return Err("instance_type is required".to_owned());
    }
    if offer.capacity_type == CapacityType::Unspecified {
        return Err("capacity_type is required".to_owned());
    }
    if require_zone && offer.zone.is_empty() {
        return Err("zone is required".to_owned());
    }
    costs(offer)?;
    match FORBIDDEN_LABELS
        .iter()
        .find(|key| offer.labels.contains_key(**key))
    {
        Some(key) => Err(format!("label \"{key}\" belongs into its own field")),
        None => Ok(()),
    }
}

/// Whether a price and a chance of interruption can be true of such capacity.
pub(crate) fn costs(offer: &Offer) -> Result<(), String> {
    let (price, chance) = (offer.price_per_hour, offer.interruption_probability);
    if !price.is_finite() || price < 0.0 {
        return Err(format!(
            "price_per_hour {price} is not a finite non-negative number"
        ));
    }
    if !(0.0..=1.0).contains(&chance) {
        return Err(format!(
            "interruption_probability {chance} is not between 0 and 1"
        ));
    }
    if offer.capacity_type == CapacityType::Spot && chance == 0.0 {
        return Err("interruption_probability of spot capacity must be above 0".to_owned());
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn slot(id: &str) -> Instance {
        let offer = Offer {
            instance_type: "m".to_owned(),
            zone: "a".to_owned(),
            capacity_type: CapacityType::OnDemand,
            price_per_hour: 0.4,
            ..Offer::default()
        };
        Instance {
            id: id.to_owned(),
            offer: Arc::new(offer),
            ..Instance::default()
        }
    }

    fn offer_of(instance: &mut Instance) -> &mut Offer {
        Arc::make_mut(&mut instance.offer)
    }

    fn refused(spoil: impl FnOnce(&mut Instance)) -> String {
        let mut instance = slot("m1");
        spoil(&mut instance);
        check(&instance, true).unwrap_err().to_string()
    }

    #[test]
    fn a_bad_entry_is_refused_by_name_and_rule() {
        let host = Host {
            provider: "p".to_owned(),
            reference: "r".to_owned(),
        };
        assert!(refused(|i| i.id.clear()).contains("must not be empty"));
        assert!(refused(|i| offer_of(i).instance_type.clear()).contains("instance_type"));
        assert!(refused(|i| offer_of(i).zone.clear()).contains("zone"));
        assert!(refused(|i| offer_of(i).price_per_hour = f64::NAN).contains("NaN"));
        assert!(refused(|i| offer_of(i).price_per_hour = -1.0).contains("-1"));
        assert!(refused(|i| offer_of(i).interruption_probability = 1.5).contains("1.5"));
        assert!(refused(|i| offer_of(i).capacity_type = CapacityType::Spot).contains("above 0"));
        assert!(
            refused(|i| offer_of(i).capacity_type = CapacityType::Unspecified).contains("capacity")
        );
        assert!(refused(|i| i.hint = Some(State::Idle)).contains("needs a host"));
        assert!(refused(|i| i.hint = Some(State::Draining)).contains("Draining"));
        assert!(
            refused(|i| i.host = Some(Host {
                reference: String::new(),
                ..host.clone()
            }))
            .contains("both")
        );
        assert!(
            refused(|i| drop(offer_of(i).labels.insert("zone".into(), "a".into())))
                .contains("label")
        );
        let contradiction = |i: &mut Instance| {
            i.host = Some(host.clone());
            i.hint = Some(State::Speculative);
        };
        assert!(refused(contradiction).contains("no host"));
    }

    #[test]
    fn a_host_makes_it_idle_and_its_absence_speculative() {
        let mut instance = slot("m1");
        assert_eq!(check(&instance, true).unwrap().state, State::Speculative);
        instance.host = Some(Host {
            provider: "p".to_owned(),
            reference: "r".to_owned(),
        });
        assert_eq!(check(&instance, true).unwrap().state, State::Idle);
    }
}
