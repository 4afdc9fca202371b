//! The cloud: the real provider kit under the simulated clock, and the ways it goes wrong.
//!
//! ```text
//! call ─▶ stock? ─▶ Kit ─▶ Start ─▶ (drawn latency) ─▶ Settled ─▶ Kit ─▶ what changed ─▶ world
//! List ─▶ Kit ─▶ stale? truncated? ─▶ page
//! ```
//!
//! The kit decides everything a provider decides: order of checks, fencing, idempotency, positions.
//! Only time, stock and what is said of the machines are made here.

use crate::{
    clock::Moment,
    dice::Dice,
    plan::{MachinePlan, Start},
};
use bigfleet_model::{
    Amounts, Dimension, Host, Machine as Record, MachineFacts, MachineId, Shape,
    quantity::parse_supply,
};
use bigfleet_provider_kit::{
    Change as Stored, Effect, Event, Failure, FailureClass, Instance, Kit, ListPage, Machine,
    Offer, Options, Query, State, Tables, TextMap, Timeouts, Transition,
};
use bigfleet_shard_core::Sighting;
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// A machine that changed, and what it is now; `None` if it is gone.
pub(crate) type Changed = (MachineId, Option<Arc<Machine>>);

/// The provider.
pub(crate) struct Cloud {
    kit: Kit,
    /// What each slot was at the start, for its repair.
    slots: BTreeMap<MachineId, (Arc<Offer>, bool)>,
    /// By the address of the offer. Offers are kept, so no address is used twice.
    shapes: BTreeMap<usize, (Arc<Offer>, Arc<Shape>)>,
    /// What the last full List said, and when.
    last_page: Option<(Moment, ListPage)>,
    pub(crate) away_until: Moment,
    pub(crate) deletes_fail_until: Moment,
    pub(crate) out_of_stock: Vec<(String, Moment)>,
    /// Which calls are to fail, and about which machine if not any.
    pub(crate) fail_next: Vec<(Transition, Option<&'static str>)>,
    pub(crate) truncate: (u32, u64),
}

/// How old the answer of a List may be: one cycle, and the time the List takes.
pub(crate) const LAG: u64 = 15_000;

/// What a List asks for, and how it will be answered.
pub(crate) struct ListAsked {
    pub(crate) since: Vec<u8>,
    pub(crate) incremental: bool,
    pub(crate) stale: bool,
}

/// What a List brought.
pub(crate) struct ListAnswer {
    pub(crate) machines: Vec<Sighting>,
    pub(crate) removed: Vec<MachineId>,
    pub(crate) full: bool,
    pub(crate) cursor: Vec<u8>,
    /// Machines were left out of it.
    pub(crate) lied: bool,
}

impl Cloud {
    /// A cloud with these machines; `serving` says whom each serves and what it echoes.
    pub(crate) fn new(
        seed: u64,
        machines: &[MachinePlan],
        serving: impl Fn(&MachinePlan) -> Option<(String, TextMap)>,
    ) -> Self {
        let options = Options {
            timeouts: Timeouts::all(Duration::from_secs(3600)),
            ..Options::default()
        };
        let mut cloud = Self {
            kit: Kit::new(Tables::new(seed), options),
            slots: BTreeMap::new(),
            shapes: BTreeMap::new(),
            last_page: None,
            away_until: Moment::START,
            deletes_fail_until: Moment::START,
            out_of_stock: Vec::new(),
            fail_next: Vec::new(),
            truncate: (0, 0),
        };
        for machine in machines {
            let owned = machine.start != Start::Speculative;
            cloud.put(&machine.id, &machine.offer, owned);
            if let Some((cluster, metadata)) = serving(machine)
                && let Ok(known) = cloud.kit.tables().get(&machine.id)
            {
                let mut known = Machine::clone(&known);
                known.state = State::Configured;
                known.cluster = cluster;
                known.metadata = Arc::new(metadata);
                cloud.kit.adopt(known);
            }
        }
        cloud.kit.commit();
        cloud
    }

    /// Puts a slot in, with a host if it is owned.
    fn put(&mut self, id: &str, offer: &Arc<Offer>, owned: bool) {
        let instance = Instance {
            id: id.to_owned(),
            host: owned.then(|| host(id)),
            offer: Arc::clone(offer),
            ..Instance::default()
        };
        let seeded = self.kit.seed(std::slice::from_ref(&instance));
        debug_assert!(seeded.is_ok(), "{seeded:?}");
        if let Ok(id) = MachineId::new(id) {
            self.slots.insert(id, (Arc::clone(offer), owned));
        }
    }

    /// Tells the kit something; answers with what changed and what it wants done.
    pub(crate) fn tell(&mut self, event: Event) -> (Vec<Changed>, Vec<Effect>) {
        let mut effects = Vec::new();
        self.kit.handle(event, &mut effects);
        (self.commit(), effects)
    }

    fn commit(&mut self) -> Vec<Changed> {
        let changed = self.kit.tables().pending().iter().filter_map(|change| {
            #[allow(
                clippy::wildcard_enum_match_arm,
                reason = "marks, operations and counters are not machines"
            )]
            match change {
                Stored::Machine { machine, .. } => {
                    Some((machine.id.clone(), Some(Arc::clone(machine))))
                }
                Stored::Removed { id, .. } => Some((id.clone(), None)),
                _ => None,
            }
        });
        let changed = changed.collect();
        self.kit.commit();
        changed
    }

    /// The provider's process restarts: operations under way have failed.
    pub(crate) fn restart(&mut self) -> Vec<Changed> {
        self.kit.recover();
        self.commit()
    }

    /// A Failed slot can be used again; one that vanished is back.
    pub(crate) fn repair(&mut self, id: &MachineId) -> Vec<Changed> {
        let Some((offer, owned)) = self.slots.get(id).cloned() else {
            return Vec::new();
        };
        let state = self.machine(id).map(|machine| machine.state);
        if state.is_some_and(|state| state != State::Failed) {
            return Vec::new();
        }
        let mut changed = Vec::new();
        if state.is_some() {
            let machine = id.clone();
            changed = self.tell(Event::Vanished { machine }).0;
        }
        self.put(id.as_str(), &offer, owned);
        changed.extend(self.commit());
        changed
    }

    /// Changes a machine's price and nothing else.
    pub(crate) fn reprice(&mut self, id: &MachineId, per_mille: u64) -> Vec<Changed> {
        let Some(machine) = self.machine(id) else {
            return Vec::new();
        };
        let mut machine = Machine::clone(machine);
        let mut offer = Offer::clone(&machine.offer);
        // Whole tenths of a cent, so that a price stays a short number.
        let milli = (offer.price_per_hour * 1000.0).round() as u64 * per_mille / 1000;
        offer.price_per_hour = milli as f64 / 1000.0;
        machine.offer = Arc::new(offer);
        self.kit.adopt(machine);
        self.commit()
    }

    /// Raises a machine's chance of interruption: it will be taken back soon (workloads.md §3.2).
    pub(crate) fn give_notice(&mut self, id: &MachineId) -> Vec<Changed> {
        let Some(machine) = self.machine(id) else {
            return Vec::new();
        };
        let mut machine = Machine::clone(machine);
        let mut offer = Offer::clone(&machine.offer);
        offer.interruption_probability = 0.99;
        machine.offer = Arc::new(offer);
        self.kit.adopt(machine);
        self.commit()
    }

    pub(crate) fn machine(&self, id: &MachineId) -> Option<&Arc<Machine>> {
        let entry = self.kit.tables().machines().get(id);
        entry.map(|entry| &entry.machine)
    }

    /// Every machine, by id.
    pub(crate) fn machines(&self) -> impl Iterator<Item = &Arc<Machine>> {
        let entries = self.kit.tables().machines().values();
        entries.map(|entry| &entry.machine)
    }

    pub(crate) fn len(&self) -> usize {
        self.kit.tables().machines().len()
    }

    pub(crate) fn count(&self, state: State) -> usize {
        self.kit.tables().count(state)
    }

    /// How many machines are in transition.
    pub(crate) fn under_way(&self) -> usize {
        let states = Transition::ALL.map(Transition::transitional);
        let count = |state| self.kit.tables().count(state);
        states.into_iter().map(count).sum()
    }

    pub(crate) fn is_out_of_stock(&self, now: Moment, machine: &Machine) -> bool {
        let kind = &machine.offer.instance_type;
        let short =
            |(what, until): &(String, Moment)| now < *until && (what.is_empty() || what == kind);
        self.out_of_stock.iter().any(short)
    }

    /// Whether the next call of this kind about this machine is to fail.
    pub(crate) fn takes_a_failure(&mut self, kind: Transition, machine: &MachineId) -> bool {
        let mut all = self.fail_next.iter();
        let at = all.position(|(what, whom)| {
            *what == kind && whom.is_none_or(|whom| whom == machine.as_str())
        });
        at.map(|at| self.fail_next.swap_remove(at)).is_some()
    }

    /// The machines a List asks for, or an answer that is a cycle old if the draw says so.
    pub(crate) fn list(&mut self, now: Moment, asked: ListAsked, dice: &mut Dice) -> ListAnswer {
        let query = Query {
            since: asked.since,
            removed: true,
            ..Query::default()
        };
        let mut page = self.kit.tables().list(&query).unwrap_or_default();
        if !page.is_full && asked.stale {
            return ListAnswer {
                machines: Vec::new(),
                removed: Vec::new(),
                full: false,
                cursor: query.since,
                lied: false,
            };
        }
        let all = page.machines.len();
        if page.is_full {
            let lags = |(at, _): &mut (Moment, ListPage)| asked.stale && now.since(*at) <= LAG;
            if let Some((_, earlier)) = self.last_page.take_if(lags) {
                page = earlier;
            } else {
                self.last_page = Some((now, page.clone()));
            }
            if 0 < self.truncate.0 {
                self.truncate.0 -= 1;
                let missing = self.truncate.1;
                page.machines.retain(|_| !dice.per_mille(missing));
            }
        }
        let machines = page.machines.iter().map(|one| self.sighting(one)).collect();
        ListAnswer {
            machines,
            removed: page.removed,
            full: page.is_full,
            lied: page.machines.len() != all,
            cursor: if asked.incremental {
                page.revision
            } else {
                Vec::new()
            },
        }
    }

    /// A machine as a client of the provider reads it.
    pub(crate) fn sighting(&mut self, machine: &Machine) -> Sighting {
        let shape = self.shape(&machine.offer);
        let facts = MachineFacts {
            host: machine.host.clone().unwrap_or_default(),
            cluster: machine.cluster.clone(),
            shape,
            price_per_hour: machine.offer.price_per_hour,
            interruption_probability: machine.offer.interruption_probability,
            last_error: machine.last_error.clone(),
            ..MachineFacts::new(machine.id.as_str(), machine.state)
        };
        let record = Record::new(facts);
        let record = record.unwrap_or_else(|refused| {
            panic!("the kit shows a machine the model refuses: {refused:?}")
        });
        Sighting {
            machine: record,
            echoed: (&*machine.metadata).into(),
            leaving: machine.leaving,
        }
    }

    pub(crate) fn shape(&mut self, offer: &Arc<Offer>) -> Arc<Shape> {
        let address = Arc::as_ptr(offer) as usize;
        let known = self.shapes.entry(address).or_insert_with(|| {
            let shape = Shape {
                instance_type: offer.instance_type.clone(),
                zone: offer.zone.clone(),
                capacity_type: offer.capacity_type,
                labels: offer.labels.clone(),
                resources: amounts(&offer.resources),
                allocatable: (!offer.allocatable.is_empty()).then(|| amounts(&offer.allocatable)),
            };
            (Arc::clone(offer), Arc::new(shape))
        });
        Arc::clone(&known.1)
    }
}

fn amounts(texts: &TextMap) -> Amounts {
    let entry = |(name, text): (&String, &String)| {
        let milli = parse_supply(text).ok()?;
        Some((Dimension::new(name).ok()?, i128::from(milli)))
    };
    Amounts::from_entries(texts.iter().filter_map(entry))
}

pub(crate) fn host(id: &str) -> Host {
    Host {
        provider: "sim".to_owned(),
        reference: format!("host-{id}"),
    }
}

/// A failure that may pass.
pub(crate) fn fault(text: &str) -> Failure {
    Failure {
        text: text.to_owned(),
        class: FailureClass::Retryable,
    }
}
