//! Truth: what the provider shows, and when the shard believes it (shard.md §3, SH-9..SH-13).
//!
//! ```text
//! sighting ─▶ ours? ─▶ new: taken in            as expected: taken over
//!                      older than our change: ignored     a jump: confirmed by a Get, then adopted
//! ```
//!
//! A List may be older than what we did since it began, may lack machines, and may lie; no single
//! one of them removes much or moves a machine out of turn.

use crate::{
    ShardCore,
    adopt::stand_alike,
    audit::Outcome,
    defect::Defect,
    effect::{Alert, Effect, GetId, ListId},
    event::{Got, Listed, Sighting},
    ledger::Ledger,
    operation::{Operation, Step},
    record::Kept,
    settings::MOST_GETS,
    settle::Place,
    timers::{Timer, after},
};
use bigfleet_model::{ClusterId, Machine, MachineId, MachineRefused, Time, Via};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Complete Lists that must agree before many machines are believed gone.
const LISTS_AGREE: u32 = 3;
/// A List that has not ended after so long is given up, should whoever reads it have lost it.
const LIST_PATIENCE_SECONDS: f64 = 600.0;
/// With a cursor, every so many Lists ask for everything, so that what vanished is missed (RC-3).
const FULL_EVERY: u32 = 60;
/// How soon a failed confirming read is made again.
const ASK_AGAIN: f64 = 10.0;

/// What has been read of the provider.
#[derive(Clone, Debug, Default)]
pub(crate) struct Truth {
    /// Enough has been seen since the start to decide on (SH-10).
    pub(crate) trusted: bool,
    /// Complete full Lists so far.
    pub(crate) lists: u32,
    listing: Option<Listing>,
    /// Lists begun since the last full one.
    since_full: u32,
    cursor: Vec<u8>,
    counter: u64,
    missing: BTreeMap<MachineId, Missing>,
    /// Machines to read one by one, in the order they came up.
    doubted: VecDeque<MachineId>,
    asked: BTreeMap<GetId, (MachineId, u64)>,
    /// Machines whose newest record was refused, with the reason; the last good one stands.
    pub(crate) refused: BTreeMap<MachineId, String>,
    /// Machines the last full List lacked and that are kept all the same.
    pub(crate) removals_held: usize,
    /// When a full List was last taken in whole.
    pub(crate) listed: Option<Time>,
    confirming: BTreeSet<MachineId>,
    /// From an earlier process, and not seen since.
    pub(crate) remembered: BTreeMap<MachineId, Box<Kept>>,
    pub(crate) remembered_at_start: usize,
    pub(crate) served: BTreeSet<ClusterId>,
    pub(crate) foreign_seen: bool,
    pub(crate) owned: BTreeSet<MachineId>,
    /// Failed machines an admin has forgotten: not taken in again while they are Failed.
    pub(crate) retired: BTreeSet<MachineId>,
}

/// A machine that the last full List lacked.
#[derive(Clone, Copy, Debug)]
struct Missing {
    /// Full Lists in a row that lacked it.
    lists: u32,
    /// When the last was that had it.
    seen_at: Option<Time>,
}

#[derive(Clone, Debug)]
struct Listing {
    id: ListId,
    started: Time,
    began: u64,
    /// Shown with records that were refused, of machines that are not in the ledger. Those that are
    /// carry the List's id there.
    refused: BTreeSet<MachineId>,
    /// Shown otherwise than they are known, but something came after the List began, or a call is out.
    overtaken: Vec<MachineId>,
}

impl Truth {
    /// When the provider last showed a machine of the ledger, to within a List: `None` if not since the
    /// start.
    pub(crate) fn seen_at(&self, machine: &MachineId, ledger: &Ledger) -> Option<Time> {
        let listing = self.listing.as_ref();
        if let Some(now) = listing.filter(|listing| ledger.is_shown(machine, listing.id)) {
            return Some(now.started);
        }
        let missing = self.missing.get(machine);
        missing.map_or(self.listed, |missing| missing.seen_at)
    }
}

impl ShardCore {
    /// Begins a List, unless one is under way: of a provider slower than the interval none would
    /// ever come to its end.
    pub(crate) fn start_list(&mut self, now: Time, effects: &mut Vec<Effect>) {
        let next = after(now, self.config.cycle_interval.as_secs_f64());
        self.timers.set(next, Timer::List);
        let under_way = self.truth.listing.as_ref();
        if under_way.is_some_and(|listing| now.since(listing.started) < LIST_PATIENCE_SECONDS) {
            return;
        }
        self.truth.counter += 1;
        let id = ListId(self.truth.counter);
        self.truth.listing = Some(Listing {
            id,
            started: now,
            began: self.ledger.begin_read(),
            refused: BTreeSet::new(),
            overtaken: Vec::new(),
        });
        self.truth.since_full += 1;
        // Whoever waits for Lists to agree, on what to begin with or on what is gone, waits for whole ones.
        let settled = self.truth.trusted && self.truth.missing.is_empty();
        let cursor = match settled && self.truth.since_full < FULL_EVERY {
            true => self.truth.cursor.clone(),
            false => Vec::new(),
        };
        effects.push(Effect::List { list: id, cursor });
    }

    pub(crate) fn list_page(
        &mut self,
        now: Time,
        list: ListId,
        machines: Vec<Sighting>,
        refused: Vec<(String, MachineRefused)>,
        effects: &mut Vec<Effect>,
    ) {
        let Some(listing) = self.truth.listing.as_mut().filter(|one| one.id == list) else {
            return;
        };
        let began = listing.began;
        for (id, why) in &refused {
            // Not believed, but there: it is not missing.
            if let Ok(id) = MachineId::new(id) {
                if self.ledger.get(&id).is_some() {
                    self.ledger.shown(&id, list);
                    self.truth.refused.insert(id, why.to_string());
                } else {
                    listing.refused.insert(id);
                }
            }
            let label = why.breach.label();
            *self.counters.machines_rejected.entry(label).or_default() += 1;
        }
        for sighting in machines {
            let id = sighting.machine.id().clone();
            self.see(now, began, sighting, effects);
            self.ledger.shown(&id, list);
        }
    }

    pub(crate) fn list_ended(
        &mut self,
        now: Time,
        list: ListId,
        outcome: Listed,
        effects: &mut Vec<Effect>,
    ) {
        let Some(listing) = self.truth.listing.take_if(|one| one.id == list) else {
            return;
        };
        let believed = self.has(Defect::TruncatedListBelieved);
        let (full, removed, cursor) = match outcome {
            Listed::Complete {
                full,
                removed,
                cursor,
            } => (full || believed, removed, cursor),
            Listed::Failed if believed => (true, Vec::new(), Vec::new()),
            Listed::Failed => return,
        };
        // The next List begins after this one: what was passed over now would not be shown again.
        if !cursor.is_empty() {
            let overtaken = listing.overtaken.iter();
            overtaken.for_each(|machine| self.read_again(machine));
        }
        self.truth.cursor = cursor;
        for machine in removed {
            self.gone(now, &machine, effects);
        }
        if full {
            self.truth.since_full = 0;
            self.truth.lists = self.truth.lists.saturating_add(1);
            self.sweep(now, &listing, effects);
            self.truth.listed = Some(now);
            self.ledger.settle_before(listing.began);
            self.judge_trust(now, effects);
        }
    }

    /// SH-10: decide once a List shows 90 % of what is remembered, or three agree.
    fn judge_trust(&mut self, now: Time, effects: &mut Vec<Effect>) {
        let unseen = self.truth.remembered.len() * 10;
        let enough = unseen <= self.truth.remembered_at_start || LISTS_AGREE <= self.truth.lists;
        if !self.truth.trusted && enough {
            self.truth.trusted = true;
            self.wants_cycle = true;
        }
        if self.truth.lists == 1 {
            let connected = self
                .sessions
                .connected()
                .map(|(cluster, _)| cluster.clone());
            for cluster in connected.collect::<Vec<_>>() {
                self.resync(now, &cluster, effects);
            }
        }
    }

    /// SH-10: a few missing machines go at once, many only when three Lists agree. A machine with an
    /// operation is asked for by name.
    fn sweep(&mut self, now: Time, listing: &Listing, effects: &mut Vec<Effect>) {
        let remembered = self.truth.remembered.keys();
        let remembered = remembered.filter(|id| !listing.refused.contains(*id));
        let absent = self.ledger.not_shown(listing.id).chain(remembered);
        let absent: BTreeSet<MachineId> = absent.cloned().collect();
        self.truth.missing.retain(|id, _| absent.contains(id));
        let total = self.ledger.len() + self.truth.remembered.len();
        let few = absent.len() <= (total / 100).max(1) && self.truth.trusted
            || self.has(Defect::TruncatedListBelieved);
        let mut held = 0;
        for machine in absent {
            let seen_at = self.truth.listed;
            let missing = self.truth.missing.entry(machine.clone());
            let missing = missing.or_insert(Missing { lists: 0, seen_at });
            missing.lists += 1;
            let lists = missing.lists;
            if self.operations.contains_key(&machine) {
                self.doubt(&machine);
            } else if few || LISTS_AGREE <= lists {
                self.gone(now, &machine, effects);
            } else {
                held += 1;
            }
        }
        self.truth.removals_held = held;
        if 0 < held && self.truth.trusted {
            effects.push(Effect::Alert(Alert::RemovalHeld { missing: held }));
        }
    }

    /// A machine the provider no longer has: its intent and its operation end with it.
    pub(crate) fn gone(&mut self, now: Time, machine: &MachineId, effects: &mut Vec<Effect>) {
        self.truth.missing.remove(machine);
        self.truth.refused.remove(machine);
        self.cancelled.succeed(machine);
        self.truth.confirming.remove(machine);
        let remembered = self.truth.remembered.remove(machine);
        match remembered.as_ref().and_then(|kept| kept.operation.clone()) {
            Some(journalled) => {
                let operation = Operation::remembered(*journalled, machine.clone(), now);
                self.end_remembered(now, operation, Outcome::InventoryMiss, effects);
            }
            None => self.finish(now, machine, Outcome::InventoryMiss, effects),
        }
        if let Some(last) = self.ledger.remove(machine) {
            self.counters.removed += 1;
            self.nodes.forget(machine);
            self.notify_removed(&last, effects);
        } else if remembered.is_none() {
            return;
        }
        self.remember(machine);
        self.wants_cycle = true;
    }

    /// One sighting from a List that began at that moment.
    fn see(&mut self, now: Time, began: u64, sighting: Sighting, effects: &mut Vec<Effect>) {
        let id = sighting.machine.id().clone();
        self.truth.refused.remove(&id);
        if let Some(kept) = self.truth.remembered.remove(&id) {
            let undeletable = kept.undeletable;
            self.recognise(now, sighting, *kept, effects);
            self.mark_undeletable(&id, undeletable);
            return;
        }
        let Some(known) = self.ledger.get(&id) else {
            self.discover(now, sighting, effects);
            return;
        };
        // RC-4 1b: it may be older than what we did or were told since.
        if self.ledger.is_stale(&id, began) {
            if !stand_alike(&sighting.machine, known)
                && let Some(listing) = &mut self.truth.listing
            {
                listing.overtaken.push(id);
            }
            return;
        }
        if let Some(operation) = self.operations.get(&id) {
            let (step, acked) = (operation.step, operation.acked);
            match (self.place(&id, &sighting), step) {
                (Place::Transitional, Step::Wire(_)) => {}
                // Older than the call's own answer, or newer: whoever comes last need not be right.
                (_, Step::Wire(_)) => {
                    if let Some(listing) = &mut self.truth.listing {
                        listing.overtaken.push(id);
                    }
                }
                (Place::Target, _) => self.done(now, &sighting, effects),
                (Place::Transitional, Step::Provider | Step::Backoff) => {
                    self.follow(now, &sighting, effects);
                }
                (Place::Transitional, _) => {}
                (Place::Source, Step::Provider) if acked => self.doubt(&id),
                (Place::Source, _) => {}
                (Place::Elsewhere | Place::Conflict, _) => self.doubt(&id),
            }
            return;
        }
        let seen = &sighting.machine;
        let same = stand_alike(seen, known);
        let on_its_way = crate::adopt::natural(known.state(), seen.state())
            && (seen.cluster().is_none() || known.cluster() == seen.cluster());
        if same {
            self.refresh(now, &sighting, effects);
        } else if on_its_way {
            self.arrive(now, &sighting, Via::Step, effects);
        } else {
            self.doubt(&id);
        }
    }

    /// A machine never seen before.
    fn discover(&mut self, now: Time, sighting: Sighting, effects: &mut Vec<Effect>) {
        if !self.is_ours(&sighting, effects) {
            self.counters.foreign += 1;
            return;
        }
        if self.is_retired(&sighting.machine) {
            return;
        }
        let id = sighting.machine.id().clone();
        let bound = sighting.machine.cluster().is_some();
        let bound_by = crate::settle::bound_by(&sighting);
        let assignment = sighting.recalled();
        self.admit_machine(now, sighting.machine.committed(assignment, None), effects);
        if let Some(operation) = bound_by {
            self.ledger.note_bound_by(&id, operation);
        }
        if bound {
            self.remember(&id);
        }
    }

    /// Inserts a machine with its commitments.
    pub(crate) fn admit_machine(
        &mut self,
        now: Time,
        machine: Result<Machine, MachineRefused>,
        effects: &mut Vec<Effect>,
    ) {
        let Ok(mut machine) = machine else {
            debug_assert!(false, "a machine that passed the grid keeps passing it");
            return;
        };
        self.ledger.stock.share_with(&mut machine);
        let id = machine.id().clone();
        if self.ledger.insert(machine, now).is_ok() {
            self.wants_cycle |= self.truth.trusted;
            self.notify(&id, None, effects);
        }
    }

    /// Reads a machine by itself before believing what a List or an ack says of it. It is no supply
    /// until then.
    pub(crate) fn doubt(&mut self, machine: &MachineId) {
        if self.truth.confirming.insert(machine.clone()) {
            self.truth.doubted.push_back(machine.clone());
            if self.ledger.get(machine).is_some() {
                self.ledger
                    .note(machine, |beside| beside.unconfirmed = true);
            }
        }
    }

    /// Reads a machine that moved while it was being read, once no call is out that may move it further.
    fn read_again(&mut self, machine: &MachineId) {
        match self.operations.get_mut(machine) {
            Some(operation) if matches!(operation.step, Step::Wire(_)) => {
                operation.overtaken = true;
            }
            _ => self.doubt(machine),
        }
    }

    /// The same for an operation, which waits for the answer.
    pub(crate) fn confirm(&mut self, machine: &MachineId) {
        if let Some(operation) = self.operations.get_mut(machine) {
            operation.enter(Step::Confirm(None), self.now);
        }
        self.doubt(machine);
    }

    /// Sends Gets for what is in doubt, a bounded number at a time.
    pub(crate) fn ask(&mut self, effects: &mut Vec<Effect>) {
        while self.truth.asked.len() < MOST_GETS {
            let Some(machine) = self.truth.doubted.pop_front() else {
                return;
            };
            self.truth.counter += 1;
            let get = GetId(self.truth.counter);
            let began = self.ledger.begin_read();
            self.truth.asked.insert(get, (machine.clone(), began));
            effects.push(Effect::Get { get, machine });
        }
    }

    pub(crate) fn got(&mut self, now: Time, get: GetId, answer: Got, effects: &mut Vec<Effect>) {
        let Some((machine, began)) = self.truth.asked.remove(&get) else {
            return;
        };
        self.truth.confirming.remove(&machine);
        if self.ledger.get(&machine).is_none() {
            return;
        }
        let calling = self.operations.get(&machine).map(|one| one.step);
        if matches!(calling, Some(Step::Wire(_))) || self.ledger.is_stale(&machine, began) {
            self.settled(&machine);
            self.read_again(&machine); // the world moved on, and no List need show it again
            return;
        }
        match answer {
            Got::Found(sighting) if sighting.machine.id() == &machine => {
                self.settled(&machine);
                self.believe(now, &sighting, effects);
            }
            Got::NotFound => self.gone(now, &machine, effects),
            Got::Found(_) | Got::Failed => {
                self.truth.confirming.remove(&machine);
                self.timers
                    .set(after(now, ASK_AGAIN), Timer::Confirm(machine));
            }
        }
    }

    fn settled(&mut self, machine: &MachineId) {
        self.ledger
            .note(machine, |beside| beside.unconfirmed = false);
        self.wants_cycle = true;
    }
}
