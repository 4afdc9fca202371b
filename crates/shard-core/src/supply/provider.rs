//! Provider: what has been read of it, and how far that is believed (shard.md §3, SH-9, SH-10).
//!
//! ```text
//! List ─▶ pages ─▶ end ─▶ what it lacks: asked for by name, or held back until three agree
//! in doubt ─▶ Get ─▶ the answer is final        remembered ─▶ seen again ─▶ trusted from 90 % on
//! ```
//!
//! A List may be older than what we did since it began, may lack machines, and may lie; no single one of
//! them removes much.
//!
//! **Invariant:** a machine is read by name at most once at a time, and what an earlier process remembered
//! of a machine is forgotten as soon as the ledger knows it.

use crate::{
    effect::{GetId, ListId},
    list_pace::ListKind,
    record::Kept,
    settings::MOST_GETS,
    work::hold_deadline,
};
use bigfleet_model::{MachineId, Time};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

/// Complete Lists that must agree before many machines are believed gone.
const LISTS_AGREE: u32 = 3;
/// Machines asked for by name because one List lacks them.
const MOST_ASKED: usize = 1000;
/// Of so many machines one may be missing, and is asked for at once.
const FEW_OF: usize = 100;
/// Of so many remembered machines one may still be unseen when deciding begins.
const UNSEEN_OF: usize = 10;
/// A List that has not ended after so long is given up, should whoever reads it have lost it.
const LIST_PATIENCE: Duration = Duration::from_secs(600);
/// With a cursor, every so many Lists ask for everything, so that what vanished is missed (RC-3).
const FULL_EVERY: u32 = 60;

/// What has been read of the provider.
#[derive(Clone, Debug, Default)]
pub(super) struct Provider {
    /// Enough has been seen since the start to decide on (SH-10).
    is_trusted: bool,
    /// Complete full Lists so far.
    lists: u32,
    listing: Option<Listing>,
    /// Lists begun since the last full one.
    since_full: u32,
    /// Lists of the interval always ask for everything.
    full_lists: bool,
    cursor: Vec<u8>,
    /// The last number of a List or a Get.
    number: u64,
    missing: BTreeMap<MachineId, Missing>,
    /// Machines to read one by one, in the order they came up.
    doubted: VecDeque<MachineId>,
    asked: BTreeMap<GetId, (MachineId, u64)>,
    /// Doubted or asked.
    confirming: BTreeSet<MachineId>,
    /// Machines whose newest record was refused, with the reason; the last good one stands.
    refused: BTreeMap<MachineId, String>,
    /// Machines the last full List lacked and that are kept all the same.
    removals_held: usize,
    /// When a full List was last taken in whole.
    listed: Option<Time>,
    /// From an earlier process, and not seen since.
    remembered: BTreeMap<MachineId, Box<Kept>>,
    remembered_at_start: usize,
}

/// A machine that the last full List lacked.
#[derive(Clone, Copy, Debug)]
struct Missing {
    /// Full Lists in a row that lacked it.
    lists: u32,
    /// When the last was that had it.
    seen_at: Option<Time>,
}

/// A List under way.
#[derive(Clone, Debug)]
pub(crate) struct Listing {
    pub(super) id: ListId,
    kind: ListKind,
    started: Time,
    /// Its place among reads and changes.
    pub(super) began: u64,
    /// Shown with records that were refused, of machines that are not in the ledger. Those that are
    /// carry the List's id there.
    refused: BTreeSet<MachineId>,
    /// Shown otherwise than they are known, but something came after the List began, or a call is out.
    overtaken: Vec<MachineId>,
}

impl Listing {
    /// Why it was made.
    pub(crate) fn kind(&self) -> ListKind {
        self.kind
    }

    /// Machines that were passed over, and that a List of changes would not show again.
    pub(crate) fn overtaken(&self) -> &[MachineId] {
        &self.overtaken
    }
}

/// What becomes of a machine that a full List lacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Absence {
    /// It is gone: [`crate::Defect::TruncatedListBelieved`].
    Gone,
    /// It is asked for by name.
    InDoubt,
    /// It is kept until more Lists agree.
    HeldBack,
}

impl Provider {
    pub(super) fn new(full_lists: bool) -> Self {
        Self {
            full_lists,
            ..Self::default()
        }
    }
}

/// Lists.
impl Provider {
    /// Begins a List, unless one is under way: of a provider slower than the interval none would ever
    /// come to its end.
    pub(super) fn begin_list(
        &mut self,
        now: Time,
        kind: ListKind,
        begin_read: impl FnOnce() -> u64,
    ) -> Option<(ListId, Vec<u8>)> {
        let under_way = self.listing.as_ref();
        if under_way.is_some_and(|one| now.duration_since(one.started) < LIST_PATIENCE) {
            return None;
        }
        self.number += 1;
        let id = ListId(self.number);
        self.listing = Some(Listing {
            id,
            kind,
            started: now,
            began: begin_read(),
            refused: BTreeSet::new(),
            overtaken: Vec::new(),
        });
        let wants_changes = match kind {
            ListKind::Early => true,
            // Whoever waits for Lists to agree, on what to begin with or on what is gone, waits for whole
            // ones.
            ListKind::Regular => {
                self.since_full += 1;
                let is_settled = self.is_trusted && self.missing.is_empty();
                is_settled && !self.full_lists && self.since_full < FULL_EVERY
            }
        };
        let cursor = if wants_changes {
            self.cursor.clone()
        } else {
            Vec::new()
        };
        Some((id, cursor))
    }

    /// The List under way, if it is this one.
    pub(super) fn listing(&self, list: ListId) -> Option<&Listing> {
        self.listing.as_ref().filter(|one| one.id == list)
    }

    /// The List shows a record of a machine that is not in the ledger, and that was refused: not
    /// believed, but there.
    pub(super) fn refuse_unknown(&mut self, machine: MachineId) {
        if let Some(listing) = &mut self.listing {
            listing.refused.insert(machine);
        }
    }

    /// The newest record of a machine of the ledger was refused.
    pub(super) fn refuse(&mut self, machine: MachineId, why: String) {
        self.refused.insert(machine, why);
    }

    /// The newest record of a machine is good.
    pub(super) fn accept(&mut self, machine: &MachineId) {
        self.refused.remove(machine);
    }

    pub(super) fn refused(&self, machine: &MachineId) -> Option<&String> {
        self.refused.get(machine)
    }

    /// The List shows a machine otherwise than it is known, and is not believed.
    pub(super) fn overtake(&mut self, machine: MachineId) {
        if let Some(listing) = &mut self.listing {
            listing.overtaken.push(machine);
        }
    }

    /// A List came to its end, or was given up.
    pub(super) fn end_list(&mut self, list: ListId) -> Option<Listing> {
        self.listing.take_if(|one| one.id == list)
    }

    /// Where the next List goes on.
    pub(super) fn set_cursor(&mut self, cursor: Vec<u8>) {
        self.cursor = cursor;
    }

    /// SH-10: what a full List lacks, and what becomes of it: a few missing machines are asked for by name at
    /// once, many only when three Lists agree, and one with an operation always. `not_shown` are
    /// those of the ledger, `total` is how many that has.
    pub(super) fn sweep<'l>(
        &mut self,
        listing: &Listing,
        not_shown: impl Iterator<Item = &'l MachineId>,
        total: usize,
        is_working: impl Fn(&MachineId) -> bool,
        is_believed: bool,
    ) -> Vec<(MachineId, Absence)> {
        self.since_full = 0;
        self.lists = self.lists.saturating_add(1);
        let remembered = self.remembered.keys();
        let remembered = remembered.filter(|id| !listing.refused.contains(*id));
        let absent = not_shown.cloned().chain(remembered.cloned());
        let absent: BTreeSet<MachineId> = absent.collect();
        self.missing.retain(|id, _| absent.contains(id));
        let total = total + self.remembered.len();
        let are_few = self.is_trusted && absent.len() <= (total / FEW_OF).max(1);
        let seen_at = self.listed;
        let mut asked = 0;
        let judge = |machine: MachineId| {
            let missing = self.missing.entry(machine.clone());
            let missing = missing.or_insert(Missing { lists: 0, seen_at });
            missing.lists += 1;
            let is_missed = are_few || LISTS_AGREE <= missing.lists;
            let absence = if is_believed {
                Absence::Gone
            } else if is_working(&machine) || (is_missed && asked < MOST_ASKED) {
                asked += 1;
                Absence::InDoubt
            } else {
                Absence::HeldBack
            };
            (machine, absence)
        };
        let judged: Vec<_> = absent.into_iter().map(judge).collect();
        let held = judged.iter().filter(|(_, one)| *one == Absence::HeldBack);
        self.removals_held = held.count();
        judged
    }

    /// Machines the last full List lacked and that are kept all the same.
    pub(super) fn removals_held(&self) -> usize {
        self.removals_held
    }

    /// A full List was taken in whole; says whether there is enough now to decide on, for the first time:
    /// a List shows 90 % of what is remembered, or three agree (SH-10).
    pub(super) fn listed(&mut self, now: Time) -> bool {
        self.listed = Some(now);
        let unseen = self.remembered.len() * UNSEEN_OF;
        let is_enough = unseen <= self.remembered_at_start || LISTS_AGREE <= self.lists;
        let is_new = !self.is_trusted && is_enough;
        self.is_trusted |= is_enough;
        is_new
    }

    pub(super) fn is_trusted(&self) -> bool {
        self.is_trusted
    }

    /// Complete full Lists so far.
    pub(super) fn lists(&self) -> u32 {
        self.lists
    }

    /// When the provider last showed a machine of the ledger, to within a List: `None` if not since the
    /// start. `is_shown` says whether a List has shown it.
    pub(super) fn seen_at(
        &self,
        machine: &MachineId,
        is_shown: impl Fn(ListId) -> bool,
    ) -> Option<Time> {
        let listing = self.listing.as_ref();
        if let Some(under_way) = listing.filter(|listing| is_shown(listing.id)) {
            return Some(under_way.started);
        }
        let missing = self.missing.get(machine);
        missing.map_or(self.listed, |missing| missing.seen_at)
    }
}

/// Gets.
impl Provider {
    /// Reads a machine by name as soon as may be; says whether that is not under way already.
    pub(super) fn doubt(&mut self, machine: &MachineId) -> bool {
        let is_new = self.confirming.insert(machine.clone());
        if is_new {
            self.doubted.push_back(machine.clone());
        }
        is_new
    }

    /// A Get failed: until it is made again nobody else asks for the machine.
    pub(super) fn put_off(&mut self, machine: &MachineId) {
        self.confirming.insert(machine.clone());
    }

    /// The Get that failed is made again; says whether it was not on the way already.
    pub(super) fn ask_again(&mut self, machine: &MachineId) -> bool {
        self.confirming.remove(machine);
        self.doubt(machine)
    }

    /// The next Get to send; a bounded number is on the way.
    pub(super) fn next_get(
        &mut self,
        begin_read: impl FnOnce() -> u64,
    ) -> Option<(GetId, MachineId)> {
        if MOST_GETS <= self.asked.len() {
            return None;
        }
        let machine = self.doubted.pop_front()?;
        self.number += 1;
        let get = GetId(self.number);
        self.asked.insert(get, (machine.clone(), begin_read()));
        Some((get, machine))
    }

    /// A Get came back: for which machine, and its place among reads and changes.
    pub(super) fn got(&mut self, get: GetId) -> Option<(MachineId, u64)> {
        let (machine, began) = self.asked.remove(&get)?;
        self.confirming.remove(&machine);
        Some((machine, began))
    }

    /// Forgets a machine that is gone; returns what was remembered of it.
    pub(super) fn forget(&mut self, machine: &MachineId) -> Option<Box<Kept>> {
        self.missing.remove(machine);
        self.refused.remove(machine);
        self.confirming.remove(machine);
        self.remembered.remove(machine)
    }
}

/// What an earlier process remembered.
impl Provider {
    /// What it remembered of a machine; `None` if that is over.
    pub(super) fn recall(&mut self, machine: MachineId, kept: Option<Box<Kept>>) {
        match kept {
            Some(kept) => self.remembered.insert(machine, kept),
            None => self.remembered.remove(&machine),
        };
    }

    /// Everything was recalled; returns how many machines that is.
    pub(super) fn recalled(&mut self) -> usize {
        self.remembered_at_start = self.remembered.len();
        self.remembered_at_start
    }

    pub(super) fn remembered_at_start(&self) -> usize {
        self.remembered_at_start
    }

    /// Machines that were not seen since the start, with what is remembered of them.
    pub(super) fn remembered(&self) -> &BTreeMap<MachineId, Box<Kept>> {
        &self.remembered
    }

    /// A remembered machine is seen.
    pub(super) fn take_remembered(&mut self, machine: &MachineId) -> Option<Box<Kept>> {
        self.remembered.remove(machine)
    }

    /// Stops the deadlines of remembered operations whose scope is closed, and lets the others run on: a
    /// pause may begin or end while the provider does not answer, or while no process runs. Returns those
    /// that changed.
    pub(super) fn hold_remembered(
        &mut self,
        is_closed: impl Fn(&Kept) -> bool,
        now: Time,
    ) -> Vec<MachineId> {
        let mut changed = Vec::new();
        for (machine, kept) in &mut self.remembered {
            if kept.operation.is_none() {
                continue;
            }
            let closed = is_closed(kept);
            if let Some(operation) = &mut kept.operation {
                let (held_since, deadline) = (&mut operation.held_since, &mut operation.deadline);
                if hold_deadline(held_since, deadline, closed, now) {
                    changed.push(machine.clone());
                }
            }
        }
        changed
    }
}
