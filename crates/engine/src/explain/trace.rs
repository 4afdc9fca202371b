//! Trace: what a cycle weighs for one Need, written down as it does.
//!
//! Only what is gone when the cycle ends is kept here: how the domains stood when a gang chose,
//! which victims were weighed and picked, which machines were given back. Everything else is read
//! from the tables afterwards. A hook costs one branch when nothing is traced, and changes no decision
//! when something is.

use crate::{
    domain::{DomainCase, Domains, Weights},
    excess::Excess,
    fleet_tables::FleetTables,
    index::{DomainIndex, MachineIndex, NeedIndex},
};

/// What was weighed for one Need.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    need: NeedIndex,
    pub(crate) choice: Option<Weighing>,
    pub(crate) victims: Option<VictimTrace>,
    pub(crate) pruned: Vec<MachineIndex>,
}

/// The domains as a gang found them, and the case of RF-6 that chose.
#[derive(Clone, Debug)]
pub(crate) struct Weighing {
    pub(crate) case: DomainCase,
    pub(crate) domains: Vec<(DomainIndex, Weights, Option<usize>)>,
}

/// What Phase 2 weighed.
#[derive(Clone, Debug, Default)]
pub(crate) struct VictimTrace {
    /// Configured machines the Need can use, those that may be preempted with score and head start.
    pub(crate) weighed: Vec<WeighedVictim>,
    /// Before pruning, and before a gang that cannot be completed gives all of it back.
    pub(crate) picked: Vec<MachineIndex>,
    /// What is still missing with those, in the order of what is wanted.
    pub(crate) left: Vec<i128>,
}

/// A machine that was considered as a victim.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WeighedVictim {
    pub(crate) machine: MachineIndex,
    /// V-3: the highest of what it is stamped with, its claimant's, and the hold's.
    pub(crate) standing: i32,
    /// Score and head start, if it may be preempted.
    pub(crate) rank: Option<(f64, bool)>,
    /// It was picked for another Need before.
    pub(crate) is_taken: bool,
}

impl Trace {
    pub(crate) fn of(need: NeedIndex) -> Self {
        Self {
            need,
            choice: None,
            victims: None,
            pruned: Vec::new(),
        }
    }
}

impl FleetTables {
    pub(crate) fn is_traced(&self, need: NeedIndex) -> bool {
        self.trace.as_ref().is_some_and(|trace| trace.need == need)
    }

    /// Called when a gang has chosen a domain and claims nothing there yet.
    pub(crate) fn trace_choice(&mut self, need: NeedIndex, domains: &Domains, case: DomainCase) {
        if !self.is_traced(need) {
            return;
        }
        let work = self.work;
        let weighs_victims = case != DomainCase::Complete && !self.is_parked(need);
        let needed = weighs_victims.then(|| self.victims_needed(need, domains));
        self.work = work;
        let table = domains.weights().map(|(domain, weights)| {
            let victims = needed
                .as_ref()
                .and_then(|needed| needed.get(&domain).copied());
            (domain, weights, victims)
        });
        let is_something = |(_, weights, victims): &(DomainIndex, Weights, Option<usize>)| {
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

    /// Called when a newly taken machine is given back (RF-8).
    pub(crate) fn trace_pruned(&mut self, need: NeedIndex, machine: MachineIndex) {
        if let Some(trace) = &mut self.trace
            && trace.need == need
        {
            trace.pruned.push(machine);
        }
    }

    /// Called with the machines that may be preempted; all others the Need can use may not.
    pub(crate) fn trace_victims(
        &mut self,
        need: NeedIndex,
        excess: &Excess,
        eligible: impl Iterator<Item = (MachineIndex, f64, bool)>,
    ) {
        let ranks: std::collections::BTreeMap<MachineIndex, (f64, bool)> = eligible
            .map(|(machine, score, first)| (machine, (score, first)))
            .collect();
        let shapes = self.catalog.by_price(self.need(need).usage);
        let configured = shapes.flat_map(|shape| &self.stocks[shape].configured);
        let others = configured.filter(|machine| self.claimant(**machine) != Some(need));
        let weighed = others.map(|machine| {
            let held_at = excess.hold_priority(*machine).unwrap_or(i32::MIN);
            WeighedVictim {
                machine: *machine,
                standing: self.stands_at(*machine).max(held_at),
                rank: ranks.get(machine).copied(),
                is_taken: self.record(*machine).preempted,
            }
        });
        let victims = Some(VictimTrace {
            weighed: weighed.collect(),
            ..VictimTrace::default()
        });
        if let Some(trace) = &mut self.trace {
            trace.victims = victims;
        }
    }

    /// Called with the machines picked, and what is missing with them.
    pub(crate) fn trace_picked(&mut self, need: NeedIndex, picked: &[MachineIndex], left: &[i128]) {
        if let Some(trace) = &mut self.trace
            && trace.need == need
            && let Some(victims) = &mut trace.victims
        {
            (victims.picked, victims.left) = (picked.to_vec(), left.to_vec());
        }
    }
}
