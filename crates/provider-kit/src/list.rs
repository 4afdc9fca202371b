//! List: filters, deltas, caps and pages over one consistent moment.
//!
//! ```text
//! no cursor ───▶ every machine, by id; a capped answer starts somewhere else each time
//! At(r) ───────▶ what changed after r, oldest change first
//! Scan ────────▶ where a capped answer stopped, around to where it began
//! ```
//!
//! A capped answer's cursor continues it: a delta stops at the revision it came to, a full listing
//! carries its place and ends at the revision it began with, so whatever changed meanwhile comes
//! last. Threading cursors until an empty page therefore misses nothing.

use std::ops::Bound;
use std::sync::Arc;

use bigfleet_model::{MachineId, State};

use crate::call::Refusal;
use crate::cursor::Cursor;
use crate::machine::Machine;
use crate::tables::{MachineEntry, Tables};

/// What List is asked for; zero means no limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// `None` means all; an empty choice matches nothing.
    pub states: Option<Vec<State>>,
    /// A hard ceiling on the answer.
    pub max_results: usize,
    /// Only what changed after this cursor.
    pub since: Vec<u8>,
    /// Continues a listing by pages.
    pub page_token: Vec<u8>,
    /// The most machines per page.
    pub page_size: usize,
    /// Whether removed ids are wanted.
    pub removed: bool,
    /// Where a fresh capped listing starts; the caller hands in another number each time.
    pub rotation: usize,
}

/// An answer to List.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListPage {
    /// The machines of this page.
    pub machines: Vec<Arc<Machine>>,
    /// The cursor to continue from.
    pub revision: Vec<u8>,
    /// Machines that ceased to exist since the cursor, if asked for.
    pub removed: Vec<MachineId>,
    /// Whether this answer with all its pages names every machine.
    pub is_full: bool,
    /// Machines in the whole listing.
    pub total: usize,
    /// The next page; empty on the last, and for those who did not ask for pages.
    pub next_page: Vec<u8>,
}

impl Tables {
    /// One machine as it is now.
    pub fn get(&self, id: &str) -> Result<Arc<Machine>, Refusal> {
        if id.is_empty() {
            return Err(Refusal::Invalid("id: an id must not be empty".to_owned()));
        }
        let entry = self.machines().get(id);
        entry
            .map(|entry| Arc::clone(&entry.machine))
            .ok_or_else(|| Refusal::NotFound(id.to_owned()))
    }

    /// Machines, as asked.
    pub fn list(&self, query: &Query) -> Result<ListPage, Refusal> {
        let seen = match query.page_token.as_slice() {
            [] => self.known(&query.since),
            token => Some(self.known(token).ok_or_else(|| {
                Refusal::Invalid(
                    "page_token: not of this store; begin the listing again".to_owned(),
                )
            })?),
        };
        let limits = [query.max_results, query.page_size];
        let limit = limits
            .into_iter()
            .filter(|limit| *limit != 0)
            .min()
            .unwrap_or(usize::MAX);
        let listing = Listing {
            tables: self,
            query,
            limit,
        };
        Ok(match seen {
            None => listing.fresh(),
            Some(Cursor::At(revision)) => listing.delta(revision),
            Some(Cursor::Scan {
                revision,
                start,
                after,
            }) => listing.scan(revision, start, Bound::Excluded(after)),
        })
    }

    /// The cursor, if this store handed it out and can still answer it without loss.
    fn known(&self, bytes: &[u8]) -> Option<Cursor> {
        let cursor = Cursor::decode(bytes, self.incarnation())?;
        match cursor {
            Cursor::At(revision) => self.floor() <= revision && revision <= self.head(),
            Cursor::Scan { revision, .. } => revision <= self.head(),
        }
        .then_some(cursor)
    }

    /// The current head as a cursor.
    pub fn cursor(&self) -> Vec<u8> {
        Cursor::At(self.head()).encode(self.incarnation())
    }
}

struct Listing<'t> {
    tables: &'t Tables,
    query: &'t Query,
    limit: usize,
}

impl Listing<'_> {
    fn wants(&self, entry: &MachineEntry) -> bool {
        let states = self.query.states.as_ref();
        states.is_none_or(|states| states.contains(&entry.machine.state))
    }

    fn matching(&self) -> usize {
        let wanted = |states: &Vec<State>| {
            let wanted = State::ALL
                .into_iter()
                .filter(|state| states.contains(state));
            wanted.map(|state| self.tables.count(state)).sum()
        };
        let states = self.query.states.as_ref();
        states.map_or(self.tables.machines().len(), wanted)
    }

    fn fresh(&self) -> ListPage {
        let head = self.tables.head();
        let mut entries = self
            .tables
            .machines()
            .values()
            .filter(|entry| self.wants(entry));
        let total = self.matching();
        if total <= self.limit {
            let machines = entries.map(|entry| Arc::clone(&entry.machine)).collect();
            return self.page(machines, Cursor::At(head), true, total, None);
        }
        let start = entries.nth(self.query.rotation % total.max(1));
        match start.map(|entry| entry.machine.id.clone()) {
            Some(start) => self.scan(head, start.clone(), Bound::Included(start)),
            None => self.page(Vec::new(), Cursor::At(head), true, total, None),
        }
    }

    /// From `from` in id order, around, up to but without `start`.
    fn scan(&self, revision: u64, start: MachineId, from: Bound<MachineId>) -> ListPage {
        let all = self.tables.machines();
        let place = match &from {
            Bound::Included(id) | Bound::Excluded(id) => Some(id.clone()),
            Bound::Unbounded => None,
        };
        let wrapped = place.is_some_and(|place| place < start);
        let first = if wrapped {
            all.range((from, Bound::Excluded(start.clone())))
        } else {
            all.range((from, Bound::Unbounded))
        };
        let rest = (!wrapped).then(|| all.range(..start.clone()));
        let entries = first
            .chain(rest.into_iter().flatten())
            .map(|(_, entry)| entry);
        let mut wanted = entries.filter(|entry| self.wants(entry));
        let machines: Vec<_> = wanted
            .by_ref()
            .take(self.limit)
            .map(|entry| Arc::clone(&entry.machine))
            .collect();
        let last = machines.last().filter(|_| wanted.next().is_some());
        let next = last.map(|last| Cursor::Scan {
            revision,
            start,
            after: last.id.clone(),
        });
        self.page(machines, Cursor::At(revision), true, self.matching(), next)
    }

    fn delta(&self, since: u64) -> ListPage {
        let after = (Bound::Excluded(since), Bound::Unbounded);
        let ids = self.tables.by_revision().range(after).map(|(_, id)| id);
        let entries = ids.filter_map(|id| self.tables.machines().get(id));
        let mut wanted = entries.filter(|entry| self.wants(entry));
        let taken: Vec<&MachineEntry> = wanted.by_ref().take(self.limit).collect();
        let rest = wanted.count();
        let total = taken.len() + rest;
        let last = taken
            .last()
            .filter(|_| rest != 0)
            .map(|entry| entry.revision);
        let upto = last.unwrap_or(self.tables.head());
        let machines = taken
            .iter()
            .map(|entry| Arc::clone(&entry.machine))
            .collect();
        let mut page = self.page(
            machines,
            Cursor::At(upto),
            false,
            total,
            last.map(Cursor::At),
        );
        if self.query.removed {
            let span = (Bound::Excluded(since), Bound::Included(upto.max(since)));
            let removed = if since < upto {
                self.tables
                    .removed()
                    .range(span)
                    .map(|(_, id)| id.clone())
                    .collect()
            } else {
                Vec::new()
            };
            page.removed = removed;
            page.removed
                .retain(|id| !self.tables.machines().contains_key(id));
        }
        page
    }

    /// Who asked for pages finds the continuation in `next_page` and keeps the revision for later;
    /// who only set a ceiling finds it in `revision`.
    fn page(
        &self,
        machines: Vec<Arc<Machine>>,
        revision: Cursor,
        full: bool,
        total: usize,
        next: Option<Cursor>,
    ) -> ListPage {
        let store = self.tables.incarnation();
        let paged = self.query.page_size != 0 || !self.query.page_token.is_empty();
        let whole = next.is_none() || paged;
        let (revision, next_page) = match (paged, next) {
            (true, next) => (
                revision,
                next.map(|next| next.encode(store)).unwrap_or_default(),
            ),
            (false, next) => (next.unwrap_or(revision), Vec::new()),
        };
        let is_full = full && whole && self.query.states.is_none() && self.query.max_results == 0;
        let revision = revision.encode(store);
        ListPage {
            machines,
            revision,
            removed: Vec::new(),
            is_full,
            total,
            next_page,
        }
    }
}
