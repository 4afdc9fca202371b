//! Above: what a report says, what its answer changes, and what is let go of because of it (CO-14, CO-16, CO-25, CO-30).
//!
//! ```text
//! ReportWanted ─▶ what it speaks of is handed to the disk ─▶ on disk ─▶ taken
//! Answered ─▶ term ─▶ scope ─▶ foreign ─▶ gone ─▶ instructions ─▶ letting go
//! ```
//!
//! No cycle waits for any of it. What an answer gives or takes away counts in memory at once; calls come after the write (SH-5),
//! and so does the next report.

use super::ShardCore;
use crate::{
    audit::Outcome,
    defect::{AboveDefect, Defect},
    effect::{Alert, Barrier, Effect},
    event::Sighting,
    reads::Report,
    record::Record,
    supply::Owner,
    uplink::{Answer, Disposition, Instruction, Order},
};
use bigfleet_model::{ActionKind, Machine, MachineId, Shape, Time};

impl ShardCore {
    /// Draws up a report, and hands what it speaks of to the disk.
    pub(super) fn report_wanted(&mut self, effects: &mut Vec<Effect>) {
        if self.journal.speaks() {
            self.persist(effects);
        }
        self.drawn_up = Some((self.journal.spoken(), Box::new(self.report())));
    }

    /// The report that was wanted last, if what it speaks of is on disk: it never says more than a restart would keep (CO-16).
    /// Each is taken once.
    pub fn take_report(&mut self) -> Option<Report> {
        let is_hasty = self.has(Defect::Above(AboveDefect::ReportBeforeDisk));
        let journal = &self.journal;
        let is_on_disk = |barrier: Barrier| is_hasty || journal.is_on_disk(barrier);
        let drawn_up = self.drawn_up.take_if(|(spoken, _)| is_on_disk(*spoken));
        drawn_up.map(|(_, report)| *report)
    }

    /// The answer to the newest report (CO-54).
    pub(super) fn answered(&mut self, now: Time, answer: Answer, effects: &mut Vec<Effect>) {
        if !self.uplink.hears(answer.term) {
            return;
        }
        let term = self.uplink.hear_term(answer.term);
        self.note_spoken(term);
        let scope = self.holdings.hear_scope(answer.scope);
        self.note_spoken(scope);
        for machine in &answer.foreign {
            self.keep_away(now, machine, effects);
        }
        let gone = self.holdings.hear_gone(answer.gone);
        self.note_spoken(gone);
        for instruction in answer.instructions {
            self.obey(instruction);
        }
        if self.holdings.takes_look_again() {
            self.look_again();
        }
    }

    /// What was passed over may be ours now, and a List that asks for changes would not show it again.
    fn look_again(&mut self) {
        self.supply.set_cursor(Vec::new());
        self.holdings.look_at_all();
    }

    /// A machine of ours by domain is somebody else's: it is left alone, whatever its mark.
    fn keep_away(&mut self, now: Time, machine: &MachineId, effects: &mut Vec<Effect>) {
        let known = self.supply.get(machine);
        let Some(away) = self.holdings.hear_foreign(machine, known) else {
            return;
        };
        self.note_spoken([away]);
        let is_bound = known_bound(self.supply.get(machine));
        if is_bound || self.work.is_at(machine) {
            self.conflict(machine, effects);
        }
        self.gone(now, machine, effects);
    }

    fn obey(&mut self, instruction: Instruction) {
        if instruction.id.is_empty() {
            return;
        }
        if let Some((disposition, reason)) = self.uplink.refusal(&instruction) {
            let id = instruction.id;
            return self.uplink.acknowledge(id, disposition, reason);
        }
        let term = self.uplink.hear_term(instruction.term);
        self.note_spoken(term);
        let Instruction { id, order, .. } = instruction;
        let done = match order {
            Order::AssignDomain(domain) => Ok(self.holdings.assign(domain)),
            Order::UnassignDomain(domain) => self.holdings.unassign(domain),
            Order::Move | Order::Unknown => Ok(Vec::new()), // refused above
        };
        let (disposition, reason) = match done {
            Ok(records) => {
                self.note_spoken(records);
                self.uplink.note_done(id.clone());
                self.note_spoken([Record::Instruction(id.clone())]);
                (Disposition::Accepted, String::new())
            }
            Err(undone) => undone,
        };
        self.uplink.acknowledge(id, disposition, reason);
    }

    /// Something a report speaks of is to reach the disk.
    pub(super) fn note_spoken(&mut self, records: impl IntoIterator<Item = Record>) {
        for record in records {
            let arm = self.journal.note_spoken(record);
            self.set_flush(arm);
        }
    }

    /// CO-14: another process is on record as this shard. Nothing leaves any more, and no later process of this directory acts.
    pub(super) fn superseded(&mut self, now: Time, effects: &mut Vec<Effect>) {
        if self.rails.is_superseded() {
            return;
        }
        self.rails.supersede();
        if !self.has(Defect::Above(AboveDefect::SupersededForgotten)) {
            self.note_spoken([Record::Superseded]);
        }
        self.persist(effects);
        effects.push(Effect::Alert(Alert::Superseded));
        self.gate_moved(now);
    }

    /// Whose a machine is that was never seen before.
    pub(super) fn owner(&mut self, sighting: &Sighting, now: Time) -> Owner {
        let is_taken =
            self.has(Defect::Above(AboveDefect::LostDiskTakesAll)) && self.holdings.is_unsaid();
        if self.holdings.is_alone() || is_taken {
            return self.owner_by_marks(sighting);
        }
        let machine = &sighting.machine;
        if self.holdings.is_away(machine.id()) {
            return Owner::SomebodyElse;
        }
        let is_ours = match (machine.cluster(), self.supply.mark(sighting)) {
            (None, _) => self.covers(machine),
            (Some(_), Some(shard)) if shard == self.config.shard => true,
            (Some(_), Some(shard)) => self.holdings.is_gone(shard) && self.covers(machine),
            // CO-26: what is bound need not wait until somebody says what is ours.
            (Some(_), None) if self.holdings.is_unsaid() => {
                return self.owner_by_marks(sighting);
            }
            (Some(cluster), None) => {
                let is_served = self.supply.is_served(cluster) || self.demand.is_ready(cluster);
                is_served && self.covers(machine)
            }
        };
        if !is_ours {
            return Owner::SomebodyElse;
        }
        let is_watched =
            machine.cluster().is_none() && !self.has(Defect::Above(AboveDefect::SharedNotWatched));
        if is_watched && !self.holdings.may_take_in(machine, now) {
            return Owner::NotYet;
        }
        Owner::Us
    }

    /// Whether a machine carries the mark of another shard that may still run.
    pub(super) fn is_foreign(&self, sighting: &Sighting) -> bool {
        let mark = self.supply.mark(sighting);
        self.supply.is_foreign(sighting) && mark.is_none_or(|shard| !self.holdings.is_gone(shard))
    }

    /// What a List shows of marks, whoever's the machine is (CO-27).
    pub(super) fn watch(&mut self, sighting: &Sighting) {
        let machine = &sighting.machine;
        if self.holdings.is_alone() || machine.cluster().is_none() {
            return;
        }
        if self.is_foreign(sighting) {
            self.holdings.see_mark(machine);
        } else {
            self.holdings.see_bound(machine.id());
        }
    }

    /// CO-28: whether a machine is ours by its mark alone.
    pub(super) fn is_by_mark(&self, machine: &MachineId) -> bool {
        let known = self.supply.get(machine);
        let is_covered = known.is_none_or(|known| self.covers(known));
        self.holdings.is_told()
            && !is_covered
            && !self.has(Defect::Above(AboveDefect::DrainedUnseen))
    }

    /// Whether the Drain of a machine waits for a Get that shows our mark.
    pub(super) fn awaits_mark(&self, machine: &MachineId) -> bool {
        let drain = self.work.get(machine).filter(|one| one.is_drain());
        drain.is_some_and(|drain| !drain.mark_seen) && self.is_by_mark(machine)
    }

    /// That Get has come.
    pub(super) fn look_at_mark(
        &mut self,
        now: Time,
        sighting: &Sighting,
        effects: &mut Vec<Effect>,
    ) {
        let machine = sighting.machine.id();
        if self.supply.is_marked(sighting) {
            self.work.mark_seen(machine, now);
            return;
        }
        self.note_elsewhere(sighting);
        self.conflict(machine, effects);
        self.finish(now, machine, Outcome::Conflict, effects);
        self.gone(now, machine, effects);
    }

    /// SH-13.
    fn owner_by_marks(&mut self, sighting: &Sighting) -> Owner {
        let demand = &self.demand;
        let is_ready = |cluster: &_| demand.is_ready(cluster);
        self.supply.owner(sighting, is_ready)
    }

    /// Whether an unbound machine is ours.
    pub(super) fn covers(&self, machine: &Machine) -> bool {
        let is_nothing_all = self.has(Defect::Above(AboveDefect::NothingIsEverything));
        let holds_nothing = || {
            let held = self.holdings.held();
            held.is_some_and(|held| !held.everything && held.domains.is_empty())
        };
        self.holdings.covers(machine)
            || self.supply.is_owned(machine.id())
            || (is_nothing_all && holds_nothing())
    }

    /// CO-30: lets go of unbound machines that are not ours any more, and of domains nothing is left of.
    pub(super) fn let_go(&mut self, now: Time, effects: &mut Vec<Effect>) {
        if self.has(Defect::Above(AboveDefect::LeavingKept)) {
            let shapes: [&Shape; 0] = [];
            let ended = self.holdings.end_leaving(&shapes);
            return self.note_spoken(ended);
        }
        if self.holdings.takes_all() {
            let all = self.supply.ledger().iter();
            let unbound = all.filter(|known| is_unbound_or_acquired(self.action_at(known), known));
            let unbound: Vec<MachineId> = unbound.map(|known| known.id().clone()).collect();
            unbound.iter().for_each(|id| self.holdings.note(id));
        }
        for machine in self.holdings.take_noted() {
            let known = self.supply.get(&machine);
            let action = known.and_then(|known| self.action_at(known));
            let is_other = known
                .is_some_and(|known| is_unbound_or_acquired(action, known) && !self.covers(known));
            let lingers = is_other && action.is_some();
            self.holdings.set_lingering(&machine, lingers);
            if is_other && !lingers {
                self.counters.let_go += 1;
                self.gone(now, &machine, effects);
            }
        }
        if self.holdings.is_letting_go() && self.knows_what_lingers() {
            let lingering = self.holdings.lingering();
            let shapes = lingering.filter_map(|id| self.supply.get(id).map(Machine::shape));
            let is_hasty = self.has(Defect::Above(AboveDefect::LeavingOverTooSoon));
            let shapes: Vec<Shape> = shapes
                .filter(|_| !is_hasty)
                .map(|shape| (**shape).clone())
                .collect();
            let shapes: Vec<&Shape> = shapes.iter().collect();
            let ended = self.holdings.end_leaving(&shapes);
            self.note_spoken(ended);
        }
    }

    fn action_at(&self, known: &Machine) -> Option<ActionKind> {
        self.work.get(known.id()).map(|operation| operation.action)
    }

    /// Whether everything with an operation was seen since the start: until then a machine of any domain may be among them.
    fn knows_what_lingers(&self) -> bool {
        let mut remembered = self.supply.remembered().values();
        self.supply.is_trusted()
            && !remembered.any(|kept| {
                let operation = kept.operation.as_deref();
                operation.is_some_and(|one| acquires(one.action))
            })
    }
}

fn known_bound(known: Option<&Machine>) -> bool {
    known.is_some_and(|known| known.cluster().is_some())
}

/// Whether an operation begins at a machine that is bound to nobody: until it has ended, the provider may show it so.
fn acquires(action: ActionKind) -> bool {
    match action {
        ActionKind::Provision | ActionKind::Bootstrap | ActionKind::Delete => true,
        ActionKind::Preempt | ActionKind::Reclaim | ActionKind::Restore => false,
    }
}

/// Whether a machine is nobody's by a mark of ours: unbound, or bound by an operation that the provider may not have heard of.
fn is_unbound_or_acquired(action: Option<ActionKind>, known: &Machine) -> bool {
    known.cluster().is_none() || action.is_some_and(acquires)
}
