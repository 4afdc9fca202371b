//! Spare: no Pod that some machine could host waits for ever (operator.md §5).
//!
//! ```text
//! stuck Pod ── nothing is coming, nothing is outstanding ──▶ opens a bin ──▶ spare(profile, bin) + 1
//! empty Node ── for 10 min, nobody stuck, not barred ──▶ spare − 1
//! ```
//!
//! A row is a sum, and sums do not show that ten 3-cpu Pods need ten 4-cpu machines. BigFleet never models packing; the
//! scheduler does, and its word about Pods that fit nowhere and Nodes that stand empty is all that is used here.
//!
//! It comes to rest: every lowering takes a machine away, a raise after one bars the next, and without one each Pod opens at most
//! five bins.

pub(crate) mod bins;
mod deal;
mod lower;
mod profile;
mod record;
mod stuck;
mod view;

pub(crate) use view::{Pending, RowWord, SpareView, Underway, Wants};

use crate::{
    defect::Defect,
    demand::{class::Size, ledger::SpareRow},
    objects::{ObjectKey, Owner},
};
use bigfleet_model::{Amounts, Group, Time};
use profile::{ProfileSpare, counts, served_size};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

const LOOK_EVERY: Duration = Duration::from_secs(10);

/// What follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SpareStep {
    /// Read these before their Pods open bins.
    Read(Vec<Owner>),
    Raised {
        profile: String,
        bin: Group,
    },
    Lowered {
        profile: String,
        bin: Group,
    },
    Unplaceable {
        request: ObjectKey,
        sum: Size,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct Opening {
    pub(crate) profile: String,
    pub(crate) bins: Vec<Amounts>,
    /// Since when it is doubted that another Node helps; one of its class then opens twice its bin.
    pub(crate) doubted_since: Option<Time>,
    /// The last round that saw it stuck.
    pub(crate) seen: Option<Time>,
}

#[derive(Clone, Debug)]
struct Remade {
    until: Time,
    next: Time,
    pause: Duration,
}

/// Spares of all profiles.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spares {
    profiles: BTreeMap<String, ProfileSpare>,
    openings: BTreeMap<String, Opening>,
    unplaceable: BTreeMap<String, Size>,
    remade: BTreeMap<(String, Amounts), Remade>,
    is_known: bool,
    is_dealt: bool,
    unreadable: bool,
    next_look: Option<Time>,
    last_lowering: Option<Time>,
    last_consolidation: Option<Time>,
    /// Pods that are being read; bound ones are left out of the next round.
    reading: Option<String>,
    read: Option<(String, BTreeSet<String>)>,
    changes: u64,
    written: u64,
}

impl Spares {
    fn profile(&mut self, fingerprint: &str) -> &mut ProfileSpare {
        self.profiles.entry(fingerprint.to_owned()).or_default()
    }

    /// The record was read; `None` if there is none. What is wrong with it otherwise.
    pub(crate) fn recorded(&mut self, text: Option<&str>) -> Result<(), String> {
        *self = Self::default();
        match text {
            None => self.is_known = true,
            Some(text) => {
                if let Err(why) = record::read(text, self) {
                    *self = Self::default();
                    self.unreadable = true;
                    return Err(why);
                }
                (self.is_known, self.is_dealt) = (true, true);
            }
        }
        Ok(())
    }

    /// Whether roll-ups may use what is here: known, and on record.
    pub(crate) fn is_on_record(&self, defect: Option<Defect>) -> bool {
        let is_written = self.changes == self.written;
        self.is_known
            && self.is_dealt
            && (is_written || defect == Some(Defect::SpareNotRecordedFirst))
    }

    /// The text to write, if what is on record is old, and its number.
    pub(crate) fn to_write(&self) -> Option<String> {
        (self.is_dealt && self.changes != self.written).then(|| record::text(self))
    }

    pub(crate) fn wrote(&mut self, text: &str) -> bool {
        if record::text(self) == text {
            self.written = self.changes;
        }
        self.changes == self.written
    }

    pub(crate) fn next(&self) -> Option<Time> {
        self.next_look.filter(|_| self.is_known)
    }

    /// The Pods that open were read: those that have a Node, or are gone, open nothing.
    pub(crate) fn owners_read(&mut self, now: Time, bound: Option<BTreeSet<String>>) {
        let profile = self.reading.take();
        if let (Some(profile), Some(bound)) = (profile, bound) {
            self.read = Some((profile, bound));
            self.next_look = Some(now);
        }
    }

    /// The rows of the roll-up (OP-66).
    pub(crate) fn rows(&self, wants: &[Wants]) -> Vec<SpareRow> {
        let mut rows = Vec::new();
        for want in wants {
            let known = self.profiles.get(want.profile.fingerprint().as_str());
            for (group, spare) in known.iter().flat_map(|known| &known.bins) {
                rows.push(SpareRow {
                    profile: Arc::clone(&want.profile),
                    group: group.clone(),
                    bin: spare.bin.clone(),
                    count: counts(spare, served_size(want, &spare.bin)),
                });
            }
        }
        rows
    }

    pub(crate) fn unplaceable(&self) -> usize {
        self.unplaceable.len()
    }

    /// The sum at which a request was found unplaceable.
    pub(crate) fn unplaceable_at(&self, uid: &str) -> Option<Size> {
        self.unplaceable.get(uid).copied()
    }

    /// Looks at what is stuck and what is empty, if it is time to.
    pub(crate) fn look(&mut self, now: Time, view: &SpareView<'_>) -> Vec<SpareStep> {
        if !self.is_known || self.next_look.is_some_and(|at| now < at) {
            return Vec::new();
        }
        self.next_look = Some(now + LOOK_EVERY);
        if !self.is_dealt {
            self.is_dealt = true;
            deal::deal(self, view);
            self.changes += 1;
        }
        let mut steps = Vec::new();
        self.forget_settled(now, view);
        for want in &view.wants {
            self.round(now, want, view, &mut steps);
        }
        self.lower(now, view, &mut steps);
        steps
    }

    /// Pods that run, and profiles nobody asks for, are forgotten; a sum that moved makes a Pod placeable again.
    fn forget_settled(&mut self, now: Time, view: &SpareView<'_>) {
        let pending: BTreeSet<&str> = view.pending.iter().map(|pod| pod.uid.as_str()).collect();
        let before = self.openings.len();
        self.openings
            .retain(|uid, _| pending.contains(uid.as_str()));
        self.changes += u64::from(self.openings.len() < before);
        for pod in &view.pending {
            if let Some(sum) = pod.unplaceable {
                self.unplaceable.entry(pod.uid.clone()).or_insert(sum);
            }
        }
        let sums: BTreeMap<&str, Size> = view
            .wants
            .iter()
            .map(|want| (want.profile.fingerprint().as_str(), want.size()))
            .collect();
        let profile_of: BTreeMap<&str, &str> = view
            .pending
            .iter()
            .map(|pod| (pod.uid.as_str(), pod.profile.fingerprint().as_str()))
            .collect();
        self.unplaceable.retain(|uid, then| {
            let sum = profile_of
                .get(uid.as_str())
                .and_then(|profile| sums.get(profile));
            sum.is_some_and(|sum| !Size::moved_by_an_eighth(*sum, *then))
        });
        self.remade.retain(|_, remade| now < remade.until);
        for want in &view.wants {
            let known = self.profiles.get_mut(want.profile.fingerprint().as_str());
            if let Some(known) = known {
                known.lift_bar(want);
            }
        }
    }
}
