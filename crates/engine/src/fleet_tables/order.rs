//! The two orders of the engine: which machine a Need keeps first, and which Need is served first.

use super::{FleetTables, NeedEntry};
use crate::{
    Mistake,
    index::{MachineIndex, NeedIndex, TermsIndex},
};
use bigfleet_model::{Dollars, Price};
use std::cmp::Reverse;

impl FleetTables {
    /// Keep order (RF-2).
    pub(crate) fn keep_order(&self, one: MachineIndex, other: MachineIndex) -> std::cmp::Ordering {
        self.keep_key(one)
            .cmp(&self.keep_key(other))
            .then_with(|| self.by_mistake(one, other))
            .then_with(|| self.ids.compare(one, other))
    }

    /// What keep order does not know: [`Mistake::DisruptionInKeepOrder`].
    fn by_mistake(&self, one: MachineIndex, other: MachineIndex) -> std::cmp::Ordering {
        match self.mistake {
            Some(Mistake::DisruptionInKeepOrder) => self.disturbs(other).cmp(&self.disturbs(one)),
            _ => std::cmp::Ordering::Equal,
        }
    }

    /// Keep order but for the id: price, then what is dearest to lose (RF-2).
    pub(crate) fn keep_key(&self, machine: MachineIndex) -> (Price, Reverse<Dollars>) {
        self.terms_key(self.record(machine).terms)
    }

    pub(crate) fn terms_key(&self, terms: TermsIndex) -> (Price, Reverse<Dollars>) {
        let committed = &self.catalog.terms[terms];
        (committed.keep_price, Reverse(committed.terms.reclamation))
    }

    /// The price a machine was committed at (RF-2).
    pub(crate) fn keep_price(&self, machine: MachineIndex) -> Price {
        self.catalog.terms[self.record(machine).terms].keep_price
    }

    /// The total order of Needs (O-1).
    pub(crate) fn need_order(&self, one: NeedIndex, other: NeedIndex) -> std::cmp::Ordering {
        let (a, b) = (self.need(one), self.need(other));
        let head = |need: &NeedEntry| {
            let profile = &self.catalog.profiles[need.profile].profile;
            let precedence = (
                profile.priority(),
                profile.interruption(),
                profile.reclamation(),
            );
            (Reverse(precedence), need.arrival)
        };
        let text = |need: &NeedEntry| {
            let min_unit = self.catalog.uses[need.usage].min_unit.key();
            (
                min_unit,
                self.catalog.dimensions.amounts(need.wanted.iter()).key(),
            )
        };
        let (slot_a, slot_b) = (&self.slots[a.slot], &self.slots[b.slot]);
        head(a)
            .cmp(&head(b))
            .then_with(|| self.cluster_names.compare(a.cluster, b.cluster))
            .then_with(|| {
                self.fingerprints
                    .compare(slot_a.fingerprint, slot_b.fingerprint)
            })
            .then_with(|| self.groups.compare(slot_a.group, slot_b.group))
            .then_with(|| text(a).cmp(&text(b)))
    }
}
