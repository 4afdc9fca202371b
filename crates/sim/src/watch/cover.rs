//! Cover: what Needs have, judged from the outside, by adding up.
//!
//! ```text
//! reclaim of m from c ─▶ every Need of c that can use m and waits for another is covered by serving
//!                        machines (RF-11); every plain one, whether it waits or not; no gang in two racks
//! ```
//!
//! Which rack a gang waits for, and how far a spread may lean, is the engine's business, and the oracle's
//! to check.

use super::{Decided, Rule, marks};
use crate::{descriptions, world::World};
use bigfleet_model::{ActionKind, Amounts, Machine, MachineId, NeedKey, Reason, Row, Shape, State};
use bigfleet_shard_core::ShardCore;
use std::collections::{BTreeMap, BTreeSet};

impl World {
    /// One cycle's decision, just committed, and the machines whose commitments it changed.
    pub(crate) fn look_at_decision(&mut self, decided: &[Decided], touched: &BTreeSet<&MachineId>) {
        if let Some((one, earlier)) = self.watch.commits.doubled(decided) {
            let (operation, machine) = (one.operation, &one.machine);
            let text = format!("{operation} begins on {machine} while {earlier} is under way");
            self.watch.broke(Rule::OneOperation, self.now, text);
        }
        self.check_committed(decided);
        self.check_bought(decided, touched);
        let mut drained: BTreeMap<usize, (u32, u32)> = BTreeMap::new();
        self.check_left_alone(decided);
        for one in decided {
            // What leaves now waits neither for its cluster's word nor for its turn (SH-20).
            let core = self.process().map(|process| &process.core);
            if core.is_some_and(|core| marks::is_hurried(core, one)) {
                continue;
            }
            let (machine, name) = (&one.machine, one.cluster.as_ref());
            let name = name.map_or("", |cluster| cluster.as_str());
            let Some(cluster) = self.cluster_named(name) else {
                continue;
            };
            match one.kind {
                ActionKind::Reclaim => drained.entry(cluster).or_default().0 += 1,
                ActionKind::Preempt => drained.entry(cluster).or_default().1 += 1,
                ActionKind::Bootstrap
                | ActionKind::Provision
                | ActionKind::Delete
                | ActionKind::Restore => {}
            }
            if one.kind != ActionKind::Reclaim {
                continue;
            }
            let heard = self
                .process()
                .is_some_and(|one| one.heard.contains(&cluster));
            if !heard {
                let text = format!("{machine} is reclaimed from {name}, which has not reported");
                self.watch.broke(Rule::ReportedFirst, self.now, text);
            }
        }
        self.check_cover(decided);
        self.check_emptiest(decided);
        self.check_cap(&drained);
    }

    /// DC-1: a machine is on its way, and whose it will be is written on it, before any call leaves.
    fn check_committed(&mut self, decided: &[Decided]) {
        let Some(core) = self.process().map(|process| &process.core) else {
            return;
        };
        let wrong = decided.iter().find_map(|one| {
            let known = core.machine(&one.machine)?;
            let begun = known.state() == one.kind.transitional();
            let promised = one.need.as_ref().filter(|_| one.acquires());
            let attributed = promised.is_none_or(|need| is_attributed(known, need));
            (!begun || !attributed).then(|| (one, known.state()))
        });
        if let Some((one, state)) = wrong {
            let (operation, machine, kind) = (one.operation, &one.machine, one.kind.word());
            let text =
                format!("{operation}, {kind} of {machine}, is decided and the machine {state}");
            self.watch.broke(Rule::Committed, self.now, text);
        }
    }

    /// RF-11, and nobody acquires for a Need what it gives up.
    pub(super) fn check_cover(&mut self, decided: &[Decided]) {
        let reclaims = decided.iter().filter(|one| one.kind == ActionKind::Reclaim);
        let mut reclaims: Vec<&Decided> = reclaims.collect();
        if reclaims.is_empty() {
            return;
        }
        let Some(core) = self.process().map(|process| &process.core) else {
            return;
        };
        reclaims.retain(|one| !marks::is_hurried(core, one));
        let own = Own::of(core);
        let wrong = reclaims
            .into_iter()
            .find_map(|one| self.missed_by(one, &own, decided));
        if let Some((rule, text)) = wrong {
            self.watch.broke(rule, self.now, text);
        }
    }

    /// Whether a Need of its cluster still wants a machine that is reclaimed: the rule, and who does.
    fn missed_by(
        &self,
        reclaim: &Decided,
        own: &Own<'_>,
        decided: &[Decided],
    ) -> Option<(Rule, String)> {
        let machine = &reclaim.machine;
        let name = reclaim.cluster.as_ref()?.as_str();
        let cluster = self.cluster_named(name)?;
        let core = own.core;
        let shape = core.machine(machine)?.shape();
        let id = &self.clusters[cluster].id;
        let rows = self.watch.demand.of(cluster).unwrap_or_default();
        let is_node = self.clusters[cluster].has_node(machine);
        for row in rows {
            let key = key(id, row);
            // RF-11: one that its own Need has outgrown serves it until that is served by others.
            let is_outgrown = !shape.serves(&row.profile, &row.min_unit)
                && is_plain(row)
                && was_for(core, machine, &key);
            // RF-21: one that leaves soon is held for the Need it is attributed to, and for no other.
            let is_for_another = reclaim.reason == Reason::Leaving && !was_for(core, machine, &key);
            if !can_use(row, shape) && !is_outgrown || is_for_another {
                continue;
            }
            // What never became a node serves nobody; it is kept for its own Need, and for one that
            // waits for another machine.
            let waits = own
                .by(&key)
                .iter()
                .any(|one| one.state() != State::Configured);
            let of_no_use = self.plan.clusters[cluster].node_reports
                && !is_node
                && !was_for(core, machine, &key);
            // Where a gang may stand is the engine's business, but what it waits for has not arrived.
            if !waits && (of_no_use || !is_plain(row)) || !own.is_in_one_place(&key, row) {
                continue;
            }
            let need = descriptions::need(&key);
            if !own.serving(&key, row).covers(&row.aggregate) {
                let own = names(own.by(&key).iter().copied(), core);
                let wanted = descriptions::amounts(&row.aggregate);
                let node = if is_node { "" } else { " (no node)" };
                let text = format!(
                    "{machine}{node} is reclaimed from {id} while {need} wants {wanted} and has {own}"
                );
                return Some((Rule::MakeBeforeBreak, text));
            }
            // What is acquired may be for the next one that leaves.
            let is_judged = is_plain(row) && reclaim.reason != Reason::Leaving;
            if let Some(other) = acquired_for(&key, decided).filter(|_| is_judged) {
                let text = format!(
                    "{machine} is reclaimed from {id} while {other} is acquired for {need}"
                );
                return Some((Rule::NoRoundTrip, text));
            }
        }
        None
    }
}

/// The machines attributed to each Need, found in one look at the fleet: a shed reclaims thousands at once.
struct Own<'a> {
    core: &'a ShardCore,
    by_need: BTreeMap<NeedKey, Vec<&'a Machine>>,
}

impl<'a> Own<'a> {
    fn of(core: &'a ShardCore) -> Self {
        let mut by_need: BTreeMap<NeedKey, Vec<&Machine>> = BTreeMap::new();
        for one in core.machines() {
            if let Some(need) = one.attribution() {
                by_need.entry(need).or_default().push(one);
            }
        }
        Self { core, by_need }
    }

    fn by(&self, need: &NeedKey) -> &[&'a Machine] {
        self.by_need.get(need).map_or(&[], Vec::as_slice)
    }

    /// What those that serve add up to.
    fn serving(&self, need: &NeedKey, row: &Row) -> Amounts {
        let serves =
            |one: &&&Machine| one.state() == State::Configured && !self.core.is_not_ready(one.id());
        let sizes = self.by(need).iter().filter(serves);
        sizes.fold(Amounts::default(), |sum, one| {
            sum.add(&credit(row, one.shape()))
        })
    }

    /// Of a gang in two racks, what it claims is in the rack the engine prefers; the rest it only has (RF-4).
    fn is_in_one_place(&self, need: &NeedKey, row: &Row) -> bool {
        let Some(same) = row.profile.same_key() else {
            return true;
        };
        let own = self.by(need).iter();
        let places: BTreeSet<Option<&str>> = own.map(|one| one.shape().attribute(same)).collect();
        places.len() <= 1
    }
}

pub(super) fn is_plain(row: &Row) -> bool {
    row.profile.same_key().is_none() && row.profile.hard_spreads().next().is_none()
}

pub(super) fn can_use(row: &Row, shape: &Shape) -> bool {
    shape.serves(&row.profile, &row.min_unit) && shape.effective().contributes_to(&row.aggregate)
}

/// What a machine counts for: all it offers or, where the row asks for whole units, as many as it holds (RF-19).
pub(super) fn credit(row: &Row, shape: &Shape) -> Amounts {
    let offers = shape.effective();
    if !row.whole_units {
        return offers.clone();
    }
    let unit = &row.min_unit;
    let holds = unit
        .iter()
        .map(|(name, milli)| offers.get(name.as_str()) / milli);
    let units = holds.min().unwrap_or(0);
    let entries = offers.iter().map(|(name, milli)| {
        let counts = match unit.get(name.as_str()) {
            0 => milli,
            each => units * each,
        };
        (name.clone(), counts)
    });
    Amounts::from_entries(entries)
}

pub(super) fn key(cluster: &bigfleet_model::ClusterId, row: &Row) -> NeedKey {
    NeedKey {
        cluster: cluster.clone(),
        fingerprint: row.profile.fingerprint().clone(),
        group: row.group.clone(),
    }
}

/// Machines in words, with their states.
pub(super) fn names<'a>(machines: impl Iterator<Item = &'a Machine>, core: &ShardCore) -> String {
    let name = |one: &Machine| {
        let ready = readiness(core, one.id());
        format!("{} {}{ready}", one.id(), one.state())
    };
    machines.map(name).collect::<Vec<_>>().join(", ")
}

fn readiness(core: &ShardCore, machine: &MachineId) -> &'static str {
    if core.is_not_ready(machine) {
        " (no node)"
    } else {
        ""
    }
}

/// Whether a machine that is being drained was committed to a Need.
fn was_for(core: &ShardCore, machine: &MachineId, need: &NeedKey) -> bool {
    core.machine(machine).is_some_and(|one| {
        let assignment = one.assignment();
        assignment.fingerprint == need.fingerprint && assignment.group == need.group
    })
}

/// [`Machine::attribution`] compared, without making it.
pub(super) fn is_attributed(machine: &Machine, need: &NeedKey) -> bool {
    match machine.state() {
        State::Configuring | State::Configured => {
            let assignment = machine.assignment();
            machine.cluster() == Some(&need.cluster)
                && assignment.fingerprint == need.fingerprint
                && assignment.group == need.group
        }
        State::Creating | State::Idle | State::Draining => {
            machine.intent().is_some_and(|intent| intent.need == *need)
        }
        State::Speculative | State::Deleting | State::Failed => false,
    }
}

/// A machine newly acquired for a Need in this decision.
fn acquired_for(need: &NeedKey, decided: &[Decided]) -> Option<MachineId> {
    let mut acquired = decided.iter().filter(|one| one.acquires());
    let found = acquired.find(|one| one.need.as_ref() == Some(need));
    found.map(|one| one.machine.clone())
}
