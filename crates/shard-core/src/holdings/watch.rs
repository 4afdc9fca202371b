//! Watch: a domain another shard may still be at work in, and machines of it that were seen unbound for long enough (CO-27).
//!
//! ```text
//! given ─▶ shared ─ another shard's mark in a List? begin anew : Lists 2 min apart without one ─▶ not shared
//!             └─ unbound in Lists 2 min apart, and all between ─▶ taken in
//! ```
//!
//! A call the former holder sent may still be on its way when it says that it let go. No provider carries one out later than two
//! minutes after it was sent; until then a machine that looks free may be about to be somebody's.

use super::{HeldDomain, Holdings};
use crate::{record::Record, uplink::Domain};
use bigfleet_model::{Machine, MachineId, Time};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// For how long a machine has to look free.
const LATEST_CALL: Duration = Duration::from_secs(120);

/// What Lists showed of shared domains.
#[derive(Clone, Debug, Default)]
pub(super) struct Watch {
    /// When the List under way began.
    began: Time,
    /// Since when each machine was shown unbound, in every List.
    unbound: BTreeMap<MachineId, Time>,
    /// Since when no List has shown another shard's mark in a domain.
    clean: BTreeMap<Domain, Time>,
    /// What the List under way has shown.
    shown: BTreeSet<MachineId>,
    marked: BTreeSet<Domain>,
    /// Something was given: what Lists showed before is to be shown again.
    look_again: bool,
}

impl Watch {
    pub(super) fn look_again(&mut self) {
        self.look_again = true;
    }

    pub(super) fn begin_anew(&mut self, domain: &Domain) {
        self.clean.remove(domain);
    }
}

impl Holdings {
    /// A List begins.
    pub(crate) fn list_begins(&mut self, now: Time) {
        self.watch.began = now;
        self.watch.shown.clear();
        self.watch.marked.clear();
    }

    /// A machine carries another shard's mark.
    pub(crate) fn see_mark(&mut self, machine: &Machine) {
        self.watch.unbound.remove(machine.id());
        if let Some(domain) = self.shared_domain_of(machine).cloned() {
            self.watch.marked.insert(domain);
        }
    }

    /// A machine is shown unbound that is ours and not taken in yet; says whether it may be.
    pub(crate) fn may_take_in(&mut self, machine: &Machine, now: Time) -> bool {
        if self.shared_domain_of(machine).is_none() {
            return true;
        }
        let id = machine.id();
        self.watch.shown.insert(id.clone());
        let since = *self.watch.unbound.entry(id.clone()).or_insert(now);
        let is_free = LATEST_CALL <= self.watch.began.duration_since(since);
        if is_free {
            self.watch.unbound.remove(id);
        }
        is_free
    }

    /// A machine that is watched is shown bound.
    pub(crate) fn see_bound(&mut self, machine: &MachineId) {
        self.watch.unbound.remove(machine);
    }

    /// A List that showed everything is over. Returns what to remember.
    pub(crate) fn list_over(&mut self, now: Time) -> Vec<Record> {
        let watch = &mut self.watch;
        let shown = &watch.shown;
        watch.unbound.retain(|machine, _| shown.contains(machine));
        let shared = self.domains.iter().filter(|(_, held)| held.shared);
        let mut over = Vec::new();
        for (domain, held) in shared {
            if watch.marked.contains(domain) {
                watch.clean.remove(domain);
                continue;
            }
            let since = *watch.clean.entry(domain.clone()).or_insert(now);
            if LATEST_CALL <= watch.began.duration_since(since) {
                over.push((domain.clone(), *held));
            }
        }
        let mut records = Vec::new();
        for (domain, held) in over {
            self.watch.clean.remove(&domain);
            let shared = false;
            let held = Some(HeldDomain { shared, ..held });
            self.domains.extend(held.map(|held| (domain.clone(), held)));
            records.push(Record::Domain { domain, held });
        }
        records
    }

    /// Whether Lists have to show everything: something was given, or is watched.
    pub(crate) fn takes_look_again(&mut self) -> bool {
        let is_watching = self.domains.values().any(|held| held.shared);
        std::mem::take(&mut self.watch.look_again) || is_watching
    }

    /// The List under way may have passed over what is ours by now: so the one after it shows everything, too.
    pub(crate) fn look_at_all(&mut self) {
        self.watch.look_again();
    }

    /// Machines that look free, and are not taken in yet.
    pub(crate) fn watched(&self) -> usize {
        self.watch.unbound.len()
    }

    fn shared_domain_of(&self, machine: &Machine) -> Option<&Domain> {
        let mut shared = self.domains.iter().filter(|(_, held)| held.shared);
        let found = shared.find(|(domain, _)| super::is_inside(machine.shape(), domain));
        found.map(|(domain, _)| domain)
    }
}
