//! Lists and Gets: what the provider shows, and when the shard believes it (shard.md §3, SH-9..SH-13).
//!
//! ```text
//! sighting ─▶ ours? ─▶ new: taken in            as expected: taken over
//!                      older than our change: ignored     a jump: confirmed by a Get, then adopted
//! ```
//!
//! No single List removes much or moves a machine out of turn.

use super::{
    ShardCore,
    incident::LateAnswer,
    machines::{ASSIGNED_INTENT, bound_by, is_natural, stand_alike},
};
use crate::{
    audit::Outcome,
    defect::Defect,
    effect::{Alert, Effect, GetId, ListId, OperationId},
    event::{Got, Listed, Sighting},
    list_pace::ListKind,
    record::Record,
    schedule::Timer,
    supply::{Absence, Owner},
    work::{WalkPosition, WorkStage},
};
use bigfleet_model::{ActionKind, MachineId, MachineRefused, State, Time, Via, shown};
use std::time::Duration;

/// How soon a failed confirming read is made again.
const ASK_AGAIN: Duration = Duration::from_secs(10);

impl ShardCore {
    pub(super) fn start_list(&mut self, now: Time, effects: &mut Vec<Effect>) {
        let Some(kind) = self.list_pace.due(now, self.is_list_awaited()) else {
            return;
        };
        if let Some((list, cursor)) = self.supply.begin_list(now, kind) {
            self.list_pace.began(now, kind);
            self.holdings.list_begins(now);
            effects.push(Effect::List { list, cursor });
        }
    }

    /// Whether operations wait for a List to show that they are done.
    pub(super) fn is_list_awaited(&self) -> bool {
        self.supply.is_trusted() && self.work.waits_to_be_seen()
    }

    pub(super) fn list_page(
        &mut self,
        now: Time,
        list: ListId,
        machines: Vec<Sighting>,
        refused: Vec<(String, MachineRefused)>,
        effects: &mut Vec<Effect>,
    ) {
        let Some(began) = self.supply.list_began(list) else {
            return self.late(LateAnswer::List);
        };
        self.list_pace.heard(now);
        for (id, why) in &refused {
            if let Ok(id) = MachineId::new(id) {
                self.supply.refuse_record(list, id, why.to_string());
            }
            let label = why.breach.label();
            *self.counters.machines_rejected.entry(label).or_default() += 1;
        }
        for sighting in machines {
            let id = sighting.machine.id().clone();
            self.look_for_twin(now, &sighting);
            self.watch(&sighting);
            let leaving = sighting.leaving;
            self.see(now, began, sighting, effects);
            self.hear_notice(now, &id, leaving, effects);
            self.supply.shown(&id, list);
        }
    }

    pub(super) fn list_ended(
        &mut self,
        now: Time,
        list: ListId,
        outcome: Listed,
        effects: &mut Vec<Effect>,
    ) {
        let Some(listing) = self.supply.end_list(list) else {
            return self.late(LateAnswer::List);
        };
        if self.list_pace.ended(now, outcome != Listed::Failed) {
            self.work.retry_unreached(now); // SH-41
        }
        let is_believed = self.has(Defect::TruncatedListBelieved);
        let (full, removed, cursor) = match outcome {
            Listed::Complete {
                full,
                removed,
                cursor,
            } => (full || is_believed, removed, cursor),
            Listed::Failed if is_believed => (true, Vec::new(), Vec::new()),
            Listed::Failed => return,
        };
        // What an early List lacks is not believed gone. If it showed everything, what it lacks would not
        // come up again, so the next List of the interval asks for everything, too.
        let (full, cursor) = match listing.kind() {
            ListKind::Regular => (full, cursor),
            ListKind::Early if full => (false, Vec::new()),
            ListKind::Early => (false, cursor),
        };
        // The next List begins after this one: what was passed over now would not be shown again.
        if !cursor.is_empty() {
            for machine in listing.overtaken() {
                self.read_again(machine);
            }
        }
        let is_watched = !self.holdings.is_alone() && self.holdings.takes_look_again();
        let cursor = if is_watched { Vec::new() } else { cursor };
        self.supply.set_cursor(cursor);
        for machine in removed {
            self.gone(now, &machine, effects);
        }
        if !full {
            return;
        }
        self.supply.forget_suspect_not_shown();
        let watched = self.holdings.list_over(now);
        self.note_spoken(watched);
        let work = &self.work;
        let is_working = |machine: &MachineId| work.is_at(machine);
        for (machine, absence) in self.supply.sweep(&listing, is_working, is_believed) {
            match absence {
                Absence::Gone => self.gone(now, &machine, effects),
                Absence::InDoubt
                    if self.has(Defect::MissingNotAskedFor) && !self.work.is_at(&machine) =>
                {
                    self.gone(now, &machine, effects);
                }
                Absence::InDoubt => self.supply.doubt(&machine),
                Absence::HeldBack => {}
            }
        }
        let missing = self.supply.removals_held();
        if 0 < missing && self.supply.is_trusted() {
            effects.push(Effect::Alert(Alert::RemovalHeld { missing }));
        }
        if self.supply.listed(&listing, now) {
            self.holdings.note_all();
            self.rails.forget_serving_at_start();
            self.schedule.want_cycle();
        }
        if self.supply.lists() == 1 {
            if let Some(seen) = self.rails.twin() {
                let own = self.epoch;
                effects.push(Effect::Alert(Alert::Twin { seen, own }));
            }
            let connected = self.sessions.connected();
            let connected: Vec<_> = connected.map(|(cluster, _)| cluster.clone()).collect();
            for cluster in connected {
                self.resync(now, &cluster, effects);
            }
        }
    }

    /// SH-33: before the first complete List nothing was decided here, so a mark of this shard is an earlier
    /// process's, and its epoch is below ours unless our data directory is not the one it wrote.
    fn look_for_twin(&mut self, now: Time, sighting: &Sighting) {
        if 0 < self.supply.lists() || self.has(Defect::TwinNotSeen) {
            return;
        }
        let marked = bound_by(sighting).filter(|_| self.supply.is_marked(sighting));
        let twin = marked.filter(|operation| self.epoch <= operation.epoch);
        if let Some(operation) = twin
            && self.rails.note_twin(operation.epoch)
        {
            self.gate_moved(now);
        }
    }

    /// One sighting from a List that began at that moment.
    fn see(&mut self, now: Time, began: u64, sighting: Sighting, effects: &mut Vec<Effect>) {
        let id = sighting.machine.id().clone();
        self.supply.accept_record(&id);
        if let Some(kept) = self.supply.take_remembered(&id) {
            let undeletable = kept.undeletable;
            self.recognise(now, sighting, *kept, effects);
            if undeletable {
                self.supply.note_undeletable(&id);
            }
            return;
        }
        let Some(known) = self.supply.get(&id) else {
            self.discover(now, sighting, effects);
            return;
        };
        // RC-4 1b: it may be older than what we did or were told since.
        if self.supply.is_stale(&id, began) {
            if !stand_alike(&sighting.machine, known) {
                self.supply.overtake(id);
            }
            return;
        }
        if let Some(operation) = self.work.get(&id) {
            let (stage, acked) = (operation.stage, operation.acked);
            match (self.position(&id, &sighting), stage) {
                (WalkPosition::Transitional, WorkStage::Call(_)) => {}
                // Older than the call's own answer, or newer: whoever comes last need not be right.
                (_, WorkStage::Call(_)) => self.supply.overtake(id),
                (WalkPosition::Target, _) => self.done(now, &sighting, effects),
                (WalkPosition::Transitional, WorkStage::Provider | WorkStage::Backoff) => {
                    self.follow(now, &sighting, effects);
                }
                (WalkPosition::Transitional, _) => {}
                (WalkPosition::Source, WorkStage::Provider) if acked => self.supply.doubt(&id),
                (WalkPosition::Source, _) => {}
                (WalkPosition::Elsewhere | WalkPosition::Conflict, _) => self.supply.doubt(&id),
            }
            return;
        }
        let seen = &sighting.machine;
        let is_on_its_way = is_natural(known.state(), seen.state())
            && (seen.cluster().is_none() || known.cluster() == seen.cluster());
        if stand_alike(seen, known) {
            self.refresh(now, &sighting, effects);
        } else if is_on_its_way {
            let known = known.clone();
            self.failed_on_its_way(now, &known, seen);
            self.arrive(now, &sighting, Via::Step, effects);
        } else {
            self.supply.doubt(&id);
        }
    }

    /// A machine never seen before.
    fn discover(&mut self, now: Time, sighting: Sighting, effects: &mut Vec<Effect>) {
        let id = sighting.machine.id().clone();
        match self.owner(&sighting, now) {
            Owner::Us => {}
            Owner::NotYet => return,
            owner @ (Owner::SomebodyElse | Owner::ForeignAgain) => {
                if owner == Owner::ForeignAgain {
                    self.supply.doubt(&id);
                }
                self.counters.foreign += 1;
                return;
            }
        }
        let (is_retired, is_new_again) = self.supply.judge_retired(&sighting.machine);
        if is_new_again {
            self.remember_record(Record::Retired {
                machine: id.clone(),
                retired: false,
            });
        }
        if is_retired {
            return;
        }
        let is_bound = sighting.machine.cluster().is_some();
        let bound_by = bound_by(&sighting);
        let assignment = sighting.recalled();
        let machine = sighting.machine.committed(assignment, None);
        self.admit_machine(now, &id, machine, effects);
        if let Some(operation) = bound_by {
            self.supply.note_bound_by(&id, operation);
        }
        if is_bound {
            self.remember(&id);
        }
    }

    /// Reads a machine that moved while it was being read, once no call is out that may move it further.
    fn read_again(&mut self, machine: &MachineId) {
        if !self.work.overtake(machine) {
            self.supply.doubt(machine);
        }
    }

    pub(super) fn got(&mut self, now: Time, get: GetId, answer: Got, effects: &mut Vec<Effect>) {
        let Some((machine, began)) = self.supply.got(get) else {
            return self.late(LateAnswer::Get);
        };
        if self.supply.get(&machine).is_none() {
            return self.got_unknown(now, &machine, began, answer, effects);
        }
        if self.work.is_calling(&machine) || self.supply.is_stale(&machine, began) {
            self.settled(&machine);
            self.read_again(&machine); // the world moved on, and no List need show it again
            return;
        }
        match answer {
            Got::Found(sighting) if sighting.machine.id() == &machine => {
                self.settled(&machine);
                self.believe(now, &sighting, effects);
                self.hear_notice(now, &machine, sighting.leaving, effects);
            }
            Got::NotFound => self.gone(now, &machine, effects),
            Got::Found(_) | Got::Failed => self.ask_again_later(now, &machine),
        }
    }

    /// The answer to a Get of a machine that is not in the ledger: one that an earlier process remembered and
    /// that no List shows (SH-10), or one that seems to be another shard's (SH-13).
    fn got_unknown(
        &mut self,
        now: Time,
        machine: &MachineId,
        began: u64,
        answer: Got,
        effects: &mut Vec<Effect>,
    ) {
        let is_remembered = self.supply.remembered().contains_key(machine);
        if self.supply.is_suspect(machine) {
            let is_foreign = match &answer {
                Got::Found(sighting) => self.is_foreign(sighting),
                Got::NotFound | Got::Failed => false,
            };
            if self.supply.judge_suspect(is_foreign) {
                let machine = machine.clone();
                self.remember_record(Record::ForeignSeen);
                effects.push(Effect::Alert(Alert::ForeignShard { machine }));
            }
            return;
        }
        match answer {
            Got::Found(sighting) if is_remembered && sighting.machine.id() == machine => {
                self.see(now, began, *sighting, effects);
            }
            Got::NotFound if is_remembered => self.gone(now, machine, effects),
            Got::Failed if is_remembered => self.ask_again_later(now, machine),
            Got::Found(_) | Got::NotFound | Got::Failed => self.late(LateAnswer::Get),
        }
    }

    /// A Get said nothing. Lists that lack the machine meanwhile do not ask for it once more.
    fn ask_again_later(&mut self, now: Time, machine: &MachineId) {
        self.supply.put_off(machine);
        let reminder = Timer::Confirm(machine.clone());
        self.schedule.set(now + ASK_AGAIN, reminder);
    }

    fn settled(&mut self, machine: &MachineId) {
        self.supply.set_unconfirmed(machine, false);
        self.schedule.want_cycle();
    }

    /// A Get's word, which is final.
    fn believe(&mut self, now: Time, sighting: &Sighting, effects: &mut Vec<Effect>) {
        let id = sighting.machine.id();
        if !self.work.is_at(id) {
            self.adopt(now, sighting, effects);
            return;
        }
        match self.position(id, sighting) {
            WalkPosition::Target => self.done(now, sighting, effects),
            WalkPosition::Transitional => self.follow(now, sighting, effects),
            // Its operator drains it, and nothing was asked of the provider yet: where else should it be?
            WalkPosition::Source if self.work.awaits_drain(id) => {}
            WalkPosition::Source if self.awaits_mark(id) => {
                self.look_at_mark(now, sighting, effects);
            }
            WalkPosition::Source if self.is_delete_overdue(now, id) => {
                self.give_up_delete(now, id, effects);
            }
            WalkPosition::Source => {
                self.work.not_begun(id);
                self.back_off(now, id);
            }
            WalkPosition::Conflict => {
                self.note_elsewhere(sighting);
                self.conflict(id, effects);
                self.finish(now, id, Outcome::Conflict, effects);
                self.adopt(now, sighting, effects);
            }
            WalkPosition::Elsewhere => {
                self.note_elsewhere(sighting);
                self.finish(now, id, Outcome::ProviderError, effects);
                // A step of ours that failed was moved by nobody else.
                if sighting.machine.state() == State::Failed && !self.is_foreign(sighting) {
                    self.arrive(now, sighting, Via::Adoption, effects);
                } else {
                    self.adopt(now, sighting, effects);
                }
            }
        }
    }

    /// The machine is where its operation leads.
    pub(super) fn done(&mut self, now: Time, sighting: &Sighting, effects: &mut Vec<Effect>) {
        self.arrive(now, sighting, Via::Step, effects);
        self.finish(now, sighting.machine.id(), Outcome::Success, effects);
    }

    /// The provider is at it.
    fn follow(&mut self, now: Time, sighting: &Sighting, effects: &mut Vec<Effect>) {
        self.work.taken_on(sighting.machine.id(), now);
        self.refresh(now, sighting, effects);
    }

    /// Where a sighting is on the walk of the machine's operation.
    pub(super) fn position(&self, machine: &MachineId, sighting: &Sighting) -> WalkPosition {
        let (Some(operation), Some(known)) = (self.work.get(machine), self.supply.get(machine))
        else {
            return WalkPosition::Elsewhere;
        };
        let kind = operation.action;
        let seen = &sighting.machine;
        let position = match seen.state() {
            state if state == kind.target() => WalkPosition::Target,
            state if state == kind.transitional() => WalkPosition::Transitional,
            state if state == kind.source() => WalkPosition::Source,
            _ => return WalkPosition::Elsewhere,
        };
        let is_bound = matches!(
            seen.state(),
            State::Configuring | State::Configured | State::Draining
        );
        if !is_bound {
            return position;
        }
        let is_ours_to_bind = kind == ActionKind::Bootstrap;
        if seen.cluster() != known.cluster() {
            return if is_ours_to_bind {
                WalkPosition::Conflict
            } else {
                WalkPosition::Elsewhere
            };
        }
        if is_ours_to_bind {
            // An absent key is an older provider's or an older shard's; another intent is not ours.
            let intent = sighting.echoed.get(ASSIGNED_INTENT);
            let is_ours = intent.is_none_or(|one| OperationId::parse(one) == Some(operation.id));
            return if is_ours {
                position
            } else {
                WalkPosition::Conflict
            };
        }
        // SH-6: it was bound anew since: the drain was for what it was before.
        if operation.is_drain() && self.is_rebound(sighting) {
            return WalkPosition::Elsewhere;
        }
        position
    }

    /// The provider shows a machine where its operation does not lead: that is what went wrong with it.
    pub(super) fn note_elsewhere(&mut self, sighting: &Sighting) {
        let seen = &sighting.machine;
        let mut trouble = format!("the provider shows it {}", seen.state());
        if let Some(cluster) = seen.cluster() {
            trouble += &format!(" for {cluster}");
        }
        let said = shown(seen.last_error());
        if !said.is_empty() {
            trouble += &format!(": {said}");
        }
        self.work.note_trouble(seen.id(), trouble);
    }
}
