//! Trace: what a cycle weighs for one Need, written down as it does.
//!
//! Only what is gone when the cycle ends is kept here: how the domains stood when a gang chose,
//! which victims were weighed and picked, which machines were given back. Everything else is read
//! from the books afterwards. Off, each hook is one branch; on, it reads and never writes.

use crate::{
    book::{Book, MachineIx, NeedIx},
    domain::{Case, Domains, Weights},
    excess::Held,
    tables::DomainIx,
};

/// What was weighed for one Need.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    need: NeedIx,
    pub(crate) choice: Option<Weighing>,
    pub(crate) victims: Option<Victims>,
    pub(crate) pruned: Vec<MachineIx>,
}

/// The domains as a gang found them, and the case of RF-6 that chose.
#[derive(Clone, Debug)]
pub(crate) struct Weighing {
    pub(crate) case: Case,
    pub(crate) domains: Vec<(DomainIx, Weights, Option<usize>)>,
}

/// What Phase 2 weighed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Victims {
    /// Configured machines the Need can use, those that may be preempted with score and head start.
    pub(crate) weighed: Vec<Weighed>,
    /// Before pruning, and before a gang that cannot be completed gives all of it back.
    pub(crate) picked: Vec<MachineIx>,
    /// What is still missing with those, in the order of what is wanted.
    pub(crate) left: Vec<i128>,
}

/// A machine in the way of a Need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weighed {
    pub(crate) machine: MachineIx,
    /// V-3: the highest of what it is stamped with, its claimant's, and the hold's.
    pub(crate) standing: i32,
    /// Score and head start, if it may be preempted.
    pub(crate) rank: Option<(f64, bool)>,
    /// It was picked for another Need before.
    pub(crate) is_taken: bool,
}

impl Trace {
    pub(crate) fn of(need: NeedIx) -> Self {
        Self {
            need,
            choice: None,
            victims: None,
            pruned: Vec::new(),
        }
    }
}

impl Book {
    pub(crate) fn is_traced(&self, need: NeedIx) -> bool {
        self.trace.as_ref().is_some_and(|trace| trace.need == need)
    }

    /// A gang has chosen, and has not moved yet.
    pub(crate) fn trace_choice(&mut self, need: NeedIx, domains: &Domains, case: Case) {
        if !self.is_traced(need) {
            return;
        }
        let work = self.work;
        let weighs_victims = case != Case::Complete && !self.is_parked(need);
        let needed = weighs_victims.then(|| self.victims_needed(need, domains));
        self.work = work;
        let table = domains.weights().map(|(domain, weights)| {
            let victims = needed.as_ref().and_then(|needed| needed[domain as usize]);
            (domain, weights, victims)
        });
        let is_something = |(_, weights, victims): &(DomainIx, Weights, Option<usize>)| {
            !weights.is_nothing() || victims.is_some()
        };
        let choice = Some(Weighing {
            case,
            domains: table.filter(is_something).collect(),
        });
        if let Some(trace) = &mut self.trace {
            trace.choice = choice;
        }
    }

    /// A machine newly taken is given back (RF-8).
    pub(crate) fn trace_pruned(&mut self, need: NeedIx, machine: MachineIx) {
        if let Some(trace) = &mut self.trace
            && trace.need == need
        {
            trace.pruned.push(machine);
        }
    }

    /// These may be preempted, with score and head start; the rest of what the Need can use may not.
    pub(crate) fn trace_victims(
        &mut self,
        need: NeedIx,
        held: &Held,
        eligible: impl Iterator<Item = (MachineIx, f64, bool)>,
    ) {
        let ranks: std::collections::BTreeMap<MachineIx, (f64, bool)> = eligible
            .map(|(machine, score, first)| (machine, (score, first)))
            .collect();
        let usage = &self.tables.uses[self.need(need).usage as usize];
        let shapes = usage.by_price.iter();
        let configured = shapes.flat_map(|shape| &self.stocks[*shape as usize].configured);
        let others = configured.filter(|machine| self.claimant(**machine) != need);
        let weighed = others.map(|machine| {
            let stands_at = self.victim_priority(*machine, i32::MAX);
            let raised = held.priority(*machine).unwrap_or(i32::MIN);
            Weighed {
                machine: *machine,
                standing: stands_at.unwrap_or(i32::MAX).max(raised),
                rank: ranks.get(machine).copied(),
                is_taken: self.record(*machine).preempted,
            }
        });
        let victims = Some(Victims {
            weighed: weighed.collect(),
            ..Victims::default()
        });
        if let Some(trace) = &mut self.trace {
            trace.victims = victims;
        }
    }

    /// These were picked, which leaves so much missing.
    pub(crate) fn trace_picked(&mut self, need: NeedIx, picked: &[MachineIx], left: &[i128]) {
        if let Some(trace) = &mut self.trace
            && trace.need == need
            && let Some(victims) = &mut trace.victims
        {
            (victims.picked, victims.left) = (picked.to_vec(), left.to_vec());
        }
    }
}
