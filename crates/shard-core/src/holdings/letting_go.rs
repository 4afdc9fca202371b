//! Letting go: which machines are looked at because they may not be ours any more, and when a domain is reported no longer (CO-30).
//!
//! ```text
//! unassigned ─▶ every unbound machine looked at ─┬─▶ without operation: removed, without a word to the provider
//! became unbound, operation ended ─▶ looked at ──┘   with one: lingers until it has ended
//! nothing lingers ─▶ the domain is not held any more
//! ```
//!
//! A machine that a Bootstrap is under way for lingers, too: the provider may not have heard of it, and then shows it to whoever gets
//! the domain as one that is free.

use super::{HeldScope, Holdings, is_inside};
use crate::{record::Record, uplink::Domain};
use bigfleet_model::{MachineId, Shape};
use std::collections::BTreeSet;

/// What is to be looked at.
#[derive(Clone, Debug, Default)]
pub(super) struct LettingGo {
    /// Every machine is to be looked at.
    all: bool,
    machines: BTreeSet<MachineId>,
    /// Not ours by what is held, and still with an operation.
    lingering: BTreeSet<MachineId>,
}

impl LettingGo {
    pub(super) fn begin(&mut self) {
        self.all = true;
    }
}

impl Holdings {
    /// Whether a machine may be known that is not ours.
    fn limits(&self) -> bool {
        matches!(
            self.scope,
            Some(HeldScope::EverythingLeaving | HeldScope::Assigned)
        )
    }

    /// Something changed about a machine that may make it one to let go of.
    pub(crate) fn note(&mut self, machine: &MachineId) {
        if self.limits() {
            self.letting_go.machines.insert(machine.clone());
        }
    }

    /// The provider was seen well enough: everything is looked at.
    pub(crate) fn note_all(&mut self) {
        self.letting_go.begin();
    }

    /// Whether every known machine is to be looked at; asking makes it so that it was.
    pub(crate) fn takes_all(&mut self) -> bool {
        std::mem::take(&mut self.letting_go.all) && self.limits()
    }

    /// The machines to look at.
    pub(crate) fn take_noted(&mut self) -> BTreeSet<MachineId> {
        std::mem::take(&mut self.letting_go.machines)
    }

    /// Whether a machine that is not ours has still an operation.
    pub(crate) fn set_lingering(&mut self, machine: &MachineId, lingers: bool) {
        if lingers {
            self.letting_go.lingering.insert(machine.clone());
        } else {
            self.letting_go.lingering.remove(machine);
        }
    }

    /// Whether something is being let go of.
    pub(crate) fn is_letting_go(&self) -> bool {
        self.scope == Some(HeldScope::EverythingLeaving)
            || self.domains.values().any(|held| held.leaving)
    }

    /// Machines that linger.
    pub(crate) fn lingering(&self) -> impl Iterator<Item = &MachineId> {
        self.letting_go.lingering.iter()
    }

    /// Ends what nothing lingers of; `shapes` are those of the machines that do. Returns what to remember.
    pub(crate) fn end_leaving(&mut self, shapes: &[&Shape]) -> Vec<Record> {
        let mut records = Vec::new();
        let leaving = self.domains.iter().filter(|(_, held)| held.leaving);
        let over: Vec<Domain> = leaving
            .map(|(domain, _)| domain)
            .filter(|domain| !shapes.iter().any(|shape| is_inside(shape, domain)))
            .cloned()
            .collect();
        for domain in over {
            records.push(self.set_domain(domain.clone(), None));
            records.extend(self.forget_away_of(&domain));
        }
        let lingers = shapes.iter().any(|shape| !self.covers_shape(shape));
        if self.scope == Some(HeldScope::EverythingLeaving) && !lingers {
            records.push(self.set_scope(HeldScope::Assigned));
        }
        records
    }

    /// CO-39: a machine is away for as long as its domain is held, and no longer.
    fn forget_away_of(&mut self, domain: &Domain) -> Vec<Record> {
        let holds_nothing = self.domains.is_empty() && self.scope == Some(HeldScope::Assigned);
        let is_over = |one: &super::Exception| {
            let is_of_it = one.domain.as_ref() == Some(domain);
            let is_of_none = one.domain.is_none() && holds_nothing;
            one.kind == super::ExceptionKind::Away && (is_of_it || is_of_none)
        };
        let open: BTreeSet<&MachineId> = self
            .transfers
            .values()
            .flat_map(|transfer| &transfer.machines)
            .collect();
        let over = self
            .exceptions
            .iter()
            .filter(|(machine, one)| is_over(one) && !open.contains(machine));
        let over: Vec<MachineId> = over.map(|(machine, _)| machine.clone()).collect();
        let forget = over.into_iter().map(|machine| {
            self.exceptions.remove(&machine);
            let exception = None;
            Record::Exception { machine, exception }
        });
        forget.collect()
    }
}
