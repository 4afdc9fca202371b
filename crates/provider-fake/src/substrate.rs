//! The substrate: what a cloud would do, as a value. It has no clock; it says how long things take.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bigfleet_model::{CapacityType, Host, MachineId, State, Time};
use bigfleet_provider_kit::{
    Created, Event, Failure, Instance, Machine, Outcome, Quote, Transition,
};
use bigfleet_seeded::Prng;

use crate::knobs::{Knobs, Latency};
use crate::selectors::{Selector, cannot_be_created};

/// How far ahead an interruption lies that a caller asked to be announced.
const ANNOUNCED: Duration = Duration::from_secs(3600);

/// What becomes of one operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// How long it takes before it ends.
    pub after: Duration,
    /// What the kit is told then, if anything.
    pub end: End,
}

/// How an operation ends.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    /// It returns.
    Returns(Outcome),
    /// It goes on until it is given up.
    Blocks,
    /// It goes on past being given up, and then returns this.
    IgnoresCancel(Outcome),
    /// It panics.
    Panics,
}

#[derive(Clone, Debug)]
struct Slot {
    /// As it was last described, with the price that was last asked for.
    instance: Instance,
    selector: Option<Selector>,
    /// What it really costs by now.
    market_price: f64,
    /// When what is announced of it is withdrawn, if somebody asked for that.
    withdrawn: Option<Time>,
}

impl Slot {
    fn new(instance: Instance) -> Self {
        Self {
            market_price: instance.offer.price_per_hour,
            instance,
            selector: None,
            withdrawn: None,
        }
    }

    /// Its host is gone, and what was announced of it with it.
    fn lose_host(&mut self) {
        self.instance.host = None;
        self.instance.leaving = None;
        self.withdrawn = None;
    }

    fn leaves(&mut self, at: Option<Time>) -> Option<Event> {
        self.instance.leaving = at;
        let machine = MachineId::new(&self.instance.id).ok()?;
        Some(Event::Leaves { machine, at })
    }
}

/// The simulated cloud.
#[derive(Clone, Debug)]
pub struct Substrate {
    provider: String,
    knobs: Knobs,
    hooks: bool,
    random: Prng,
    slots: BTreeMap<String, Slot>,
    hosts: u64,
}

impl Substrate {
    /// A cloud with these slots. With `hooks`, callers can pick faults over the wire.
    pub fn new(provider: &str, slots: Vec<Instance>, knobs: Knobs, hooks: bool) -> Self {
        let random = Prng::new(knobs.seed);
        let slot = |instance: Instance| (instance.id.clone(), Slot::new(instance));
        let slots = slots.into_iter().map(slot).collect();
        Self {
            provider: provider.to_owned(),
            knobs,
            hooks,
            random,
            slots,
            hosts: 0,
        }
    }

    /// The knobs, to turn.
    pub fn knobs_mut(&mut self) -> &mut Knobs {
        &mut self.knobs
    }

    /// The inventory as it is now.
    pub fn describe(&self) -> Vec<Instance> {
        self.slots
            .values()
            .map(|slot| slot.instance.clone())
            .collect()
    }

    /// What everything costs now. Inventories show these prices from here on.
    pub fn prices(&mut self) -> Vec<Quote> {
        let quote = |slot: &mut Slot| {
            if slot.instance.offer.price_per_hour != slot.market_price {
                Arc::make_mut(&mut slot.instance.offer).price_per_hour = slot.market_price;
            }
            Quote {
                id: slot.instance.id.clone(),
                price_per_hour: slot.market_price,
                interruption_probability: slot.instance.offer.interruption_probability,
            }
        };
        self.slots.values_mut().map(quote).collect()
    }

    /// A new cloud learns which hosts the last one had.
    pub fn restore(&mut self, machines: &[Arc<Machine>]) {
        for machine in machines {
            if let Some(slot) = self.slots.get_mut(machine.id.as_str()) {
                slot.instance.host.clone_from(&machine.host);
                slot.selector = Selector::of(&machine.cluster).filter(|_| self.hooks);
            }
        }
    }

    /// Decides how an operation will go.
    pub fn plan(&mut self, kind: Transition, machine: &Machine, grace: Duration) -> Plan {
        let mut after = self.knobs.latency.of(kind).draw(&mut self.random);
        if kind == Transition::Drain {
            // Budgets are honoured for the grace and not a moment longer: then it is forced.
            after = after.min(grace.max(Duration::from_millis(1)));
        }
        let failed = self.random.chance(self.knobs.failure.of(kind));
        let busy = self.knobs.busy.of(kind);
        let busy = busy != 0.0 && self.random.chance(busy);
        let chosen = self.chosen(kind, machine);
        let error = |text: &str| End::Returns(Err(Failure::permanent(text)));
        let end = match (kind, chosen) {
            _ if busy => End::Returns(Err(Failure::passing(format!("simulated busy {kind}")))),
            _ if failed => End::Returns(Err(Failure::retryable(format!("simulated {kind} fault")))),
            (Transition::Create, _) if self.hooks && cannot_be_created(machine) => {
                error("injected create error")
            }
            (Transition::Create, _) => match self.out_of_stock(machine) {
                Some(failure) => End::Returns(Err(failure)),
                None => End::Returns(Ok(Some(self.host_for(machine)))),
            },
            (Transition::Configure, Some(Selector::Error)) => error("injected configure error"),
            (Transition::Configure, Some(Selector::Timeout | Selector::ReadinessBlock)) => {
                End::Blocks
            }
            (Transition::Configure, Some(Selector::SlowOk)) => End::IgnoresCancel(Ok(None)),
            (Transition::Configure, Some(Selector::Panic)) => End::Panics,
            (Transition::Configure, Some(Selector::Dwell(dwell))) => {
                after = dwell;
                End::Returns(Ok(None))
            }
            (Transition::Drain, Some(Selector::DrainError)) => error("injected drain error"),
            (Transition::Drain, Some(Selector::DrainSlow)) => {
                after = grace;
                End::Returns(Ok(None))
            }
            (Transition::Delete, Some(Selector::DeleteError)) => error("injected delete error"),
            (Transition::Configure | Transition::Drain | Transition::Delete, _) => {
                End::Returns(Ok(None))
            }
        };
        Plan { after, end }
    }

    /// The fault the caller picked, if it may.
    fn chosen(&mut self, kind: Transition, machine: &Machine) -> Option<Selector> {
        let slot = self
            .slots
            .get_mut(machine.id.as_str())
            .filter(|_| self.hooks)?;
        match kind {
            Transition::Create => slot.selector = None,
            Transition::Configure => {
                slot.selector = Selector::of(&machine.cluster);
                slot.withdrawn = None; // a notice that was asked for before is over
            }
            Transition::Drain | Transition::Delete => {}
        }
        slot.selector
    }

    fn out_of_stock(&self, machine: &Machine) -> Option<Failure> {
        let offer = &machine.offer;
        let short = self.knobs.stock.iter().find(|stock| {
            let here = |kind: &str, zone: &str| {
                stock.instance_type == kind && (stock.zone.is_empty() || stock.zone == zone)
            };
            let taken = |slot: &&Slot| {
                let offer = &slot.instance.offer;
                slot.instance.host.is_some() && here(&offer.instance_type, &offer.zone)
            };
            here(&offer.instance_type, &offer.zone)
                && stock.hosts <= self.slots.values().filter(taken).count()
        });
        short.map(|stock| {
            let (kind, zone) = (&offer.instance_type, &offer.zone);
            let text = format!("insufficient capacity: {} of {kind} in {zone}", stock.hosts);
            Failure::no_stock(text)
        })
    }

    /// Reserves a host at once: two creates that overlap must not share the last one in stock.
    fn host_for(&mut self, machine: &Machine) -> Created {
        self.hosts += 1;
        let reference = format!("host-{:04}-{}", self.hosts, machine.id);
        let host = Host {
            provider: self.provider.clone(),
            reference,
        };
        if let Some(slot) = self.slots.get_mut(machine.id.as_str()) {
            slot.instance.host = Some(host.clone());
        }
        Created {
            host,
            ..Created::default()
        }
    }

    /// An operation succeeded: what that means for the cloud.
    pub fn succeeded(&mut self, kind: Transition, machine: &Machine) {
        let Some(slot) = self.slots.get_mut(machine.id.as_str()) else {
            return;
        };
        match (kind, slot.selector) {
            // A host that was made too late may be given back after its slot has another one.
            (Transition::Delete, _) => {
                let another = machine.host.is_some() && slot.instance.host != machine.host;
                if !another {
                    slot.lose_host();
                }
            }
            (Transition::Configure, Some(Selector::Reprice)) => {
                slot.market_price *= 2.0;
            }
            (Transition::Configure, Some(Selector::HostLoss)) => slot.lose_host(),
            (Transition::Create | Transition::Configure | Transition::Drain, _) => {}
        }
    }

    /// Lets time pass up to now: machines break, hosts vanish, spot capacity is announced to be taken back
    /// and is, prices and labels move. `machines` is what the kit knows; the answer is what the kit is told.
    pub fn tick<'m>(
        &mut self,
        now: Time,
        elapsed: Duration,
        machines: impl Iterator<Item = &'m Arc<Machine>>,
    ) -> Vec<Event> {
        let mut events = Vec::new();
        for machine in machines {
            events.extend(self.notice(now, machine));
            events.extend(self.strike(now, elapsed.as_secs_f64(), machine));
        }
        events
    }

    /// What somebody asked to be announced of a machine, and withdrawn.
    fn notice(&mut self, now: Time, machine: &Machine) -> Option<Event> {
        let slot = self.slots.get_mut(machine.id.as_str())?;
        if let Some(withdrawn) = slot.withdrawn {
            return (slot.instance.leaving.is_some() && withdrawn <= now)
                .then(|| slot.leaves(None))
                .flatten();
        }
        let Some(Selector::Notice(lasts)) = slot.selector else {
            return None;
        };
        if machine.state != State::Configured {
            return None;
        }
        let lead = match self.knobs.interruption_notice {
            Latency::NONE => ANNOUNCED,
            lead => lead.draw(&mut self.random),
        };
        slot.withdrawn = Some(now + lasts);
        slot.leaves(Some(now + lead))
    }

    fn strike(&mut self, now: Time, seconds: f64, machine: &Machine) -> Option<Event> {
        // The chance of at least one event of a rate in the time that passed.
        let chance = |rate: f64| 1.0 - (-rate * seconds).exp();
        let (knobs, random) = (&self.knobs, &mut self.random);
        let reprice = random.chance(chance(knobs.price_change_rate));
        let relabel = random.chance(chance(knobs.label_change_rate));
        if let Some(slot) = self.slots.get_mut(machine.id.as_str()) {
            if reprice && slot.market_price != 0.0 {
                slot.market_price *= 0.9 + 0.2 * random.unit();
            }
            if relabel {
                let value = format!("{}", random.below(1000));
                Arc::make_mut(&mut slot.instance.offer)
                    .labels
                    .insert("fake.bigfleet.lucy.sh/generation".to_owned(), value);
            }
        }
        if !matches!(machine.state, State::Idle | State::Configured) {
            return None;
        }
        if random.chance(chance(knobs.host_loss_rate)) {
            if let Some(slot) = self.slots.get_mut(machine.id.as_str()) {
                slot.lose_host();
            }
            return None;
        }
        let spot = machine.offer.capacity_type == CapacityType::Spot;
        let hourly = machine.offer.interruption_probability / 3600.0;
        let interrupted = spot && random.chance(chance(knobs.interruption_factor * hourly));
        let broken = random.chance(chance(knobs.failure_rate));
        let slot = self.slots.get_mut(machine.id.as_str());
        let announced = slot.as_ref().and_then(|slot| slot.instance.leaving);
        let is_over = announced.is_some_and(|at| at <= now);
        let failure = match (interrupted || is_over, broken) {
            (true, _) if announced.is_some() && !is_over => return None,
            (true, _) if announced.is_none() && knobs.interruption_notice != Latency::NONE => {
                let lead = knobs.interruption_notice.draw(random);
                return slot?.leaves(Some(now + lead));
            }
            (true, _) => Failure::retryable("spot capacity was taken back"),
            (false, true) => Failure::permanent("simulated machine fault"),
            (false, false) => return None,
        };
        if let Some(slot) = slot {
            slot.lose_host();
        }
        Some(Event::Broke {
            machine: machine.id.clone(),
            failure,
        })
    }
}

#[cfg(test)]
mod tests;
