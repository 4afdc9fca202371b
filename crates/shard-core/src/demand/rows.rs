//! Rows: the demand of a cluster that is in force, and how a roll-up differs from it.
//!
//! ```text
//! sent now    a b C d x     beside those sent last, in order: equal, or equal in key (C)
//! sent last   a b c d e     what is left over by key: new (x), gone (e), moved
//! ```
//!
//! A roll-up says everything again, nearly all of it as before and in the same order, so what a row is
//! compared with is mostly found right beside it, and nothing is sorted, moved or built anew. A roll-up
//! is first only proposed: rail 2 may still hold it.
//!
//! Rows are known by the number of their profile and their group. A profile is a long text; it is
//! compared with its neighbour's, not looked up.

use crate::intern::Interned;
use bigfleet_model::{ClusterId, Dimension, Group, Need, Profile, Row, Time};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// How many of the rows sent last are looked at for the one a row continues.
const LOOK_AHEAD: usize = 4;
/// The slot of a row that has none yet.
const NO_SLOT: u32 = u32::MAX;

/// The rows of a cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rows {
    held: Vec<Option<HeldRow>>,
    free: Vec<u32>,
    /// Places by the number of the profile, then by group.
    index: BTreeMap<u32, BTreeMap<Group, u32>>,
    /// Places in the order they were last sent; empty if some were sent in parts.
    sent: Vec<u32>,
}

#[derive(Clone, Debug)]
struct HeldRow {
    number: u32,
    need: Need,
}

/// A roll-up as it differs from the rows in force.
#[derive(Debug, Default)]
pub(crate) struct Proposal {
    rows: Vec<Option<Row>>,
    /// Places whose rows differ, with the position of the row to put there.
    changed: Vec<(u32, usize)>,
    /// Numbers of profiles, with the position of the row.
    new: Vec<(u32, usize)>,
    /// Places that are not named any more.
    gone: Vec<u32>,
    /// The order of places, those of new rows missing; `None` if it stays.
    sent: Option<Vec<u32>>,
}

/// What replacing rows did, each in the order of profile and group; those whose profile is gone
/// altogether come last.
#[derive(Debug, Default)]
pub(crate) struct Moved {
    pub(crate) new: Vec<Need>,
    pub(crate) changed: Vec<Need>,
    pub(crate) gone: Vec<Need>,
    /// Whether other profiles are demanded than before.
    pub(crate) profiles: bool,
}

impl Moved {
    pub(crate) fn is_empty(&self) -> bool {
        self.new.is_empty() && self.gone.is_empty() && self.changed.is_empty()
    }
}

impl Rows {
    pub(crate) fn len(&self) -> usize {
        self.held.len() - self.free.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Need> {
        let places = self.index.values().flat_map(BTreeMap::values);
        places.filter_map(|place| Some(&self.at(*place)?.need))
    }

    /// The number of every profile, with the first of its rows.
    pub(crate) fn profiles(&self) -> impl Iterator<Item = (u32, &Need)> {
        let firsts = self.index.iter();
        firsts.filter_map(|(number, places)| {
            let place = places.values().next()?;
            Some((*number, &self.at(*place)?.need))
        })
    }

    /// The rows of a group.
    pub(crate) fn of_group(&self, group: &Group) -> impl Iterator<Item = &Need> {
        let places = self.index.values().filter_map(|places| places.get(group));
        places.filter_map(|place| Some(&self.at(*place)?.need))
    }

    /// Has every row of a group changed.
    pub(crate) fn change_group(&mut self, group: &Group, mut change: impl FnMut(&mut Need)) {
        for place in self.index.values().filter_map(|places| places.get(group)) {
            if let Some(Some(held)) = self.held.get_mut(*place as usize) {
                change(&mut held.need);
            }
        }
    }

    fn at(&self, place: u32) -> Option<&HeldRow> {
        self.held.get(place as usize)?.as_ref()
    }

    fn find(&self, number: u32, group: &Group) -> Option<u32> {
        self.index.get(&number)?.get(group).copied()
    }

    /// Whether a row is the one at this place, if in other amounts.
    fn continues(&self, place: u32, row: &Row) -> bool {
        self.at(place).is_some_and(|held| {
            let known = &held.need.row;
            known.group == row.group
                && (Arc::ptr_eq(&known.profile, &row.profile) || known.profile == row.profile)
        })
    }

    fn differs(&self, place: u32, row: &Row) -> bool {
        self.at(place).is_none_or(|held| {
            let known = &held.need.row;
            known.min_unit != row.min_unit
                || known.whole_units != row.whole_units
                || (known.aggregate != row.aggregate && !row.rounds_up_to(&known.aggregate))
        })
    }

    /// How rows differ from those in force. Errs with the position of one that cannot be summed (NT-3).
    /// Whoever does not accept them lets them go with [`Proposal::discard`].
    pub(crate) fn propose(
        &self,
        rows: Vec<Row>,
        profiles: &mut Interned<Profile>,
    ) -> Result<Proposal, usize> {
        let (rows, mut proposal) = match self.compare(&rows, profiles) {
            Some(proposal) => match rounded(rows) {
                Ok(rows) => (rows, proposal),
                Err(at) => {
                    proposal.discard(profiles);
                    return Err(at);
                }
            },
            None => {
                let merged = Row::merge(rows)?;
                // Rows without equals can always be compared.
                let mut proposal = self.compare(&merged, profiles).ok_or(0_usize)?;
                // What was sent was parts: their order says nothing about the next roll-up.
                proposal.sent = Some(Vec::new());
                (merged, proposal)
            }
        };
        proposal.rows = rows.into_iter().map(Some).collect();
        Ok(proposal)
    }

    /// Compares rows with those sent last. `None` if some of them are parts of one.
    fn compare(&self, rows: &[Row], profiles: &mut Interned<Profile>) -> Option<Proposal> {
        let mut proposal = Proposal::default();
        let mut taken = vec![false; self.held.len()];
        let mut sent = Vec::with_capacity(rows.len());
        let mut left = Vec::new();
        let mut before = self.sent.as_slice();
        for (at, row) in rows.iter().enumerate() {
            let near = &before[..before.len().min(LOOK_AHEAD)];
            let Some(skip) = near.iter().position(|place| self.continues(*place, row)) else {
                left.push(at);
                sent.push(NO_SLOT);
                continue;
            };
            let place = near[skip];
            before = &before[skip + 1..];
            taken[place as usize] = true;
            sent.push(place);
            if self.differs(place, row) {
                proposal.changed.push((place, at));
            }
        }
        let mut arrived = Vec::new();
        let mut fresh: BTreeSet<(u32, &Group)> = BTreeSet::new();
        for at in left {
            let row = &rows[at];
            let arrivals = profiles.arrivals();
            let number = profiles.number(&row.profile);
            if arrivals != profiles.arrivals() {
                arrived.push(number);
            }
            let place = self.find(number, &row.group);
            let is_part = match place {
                Some(place) => taken[place as usize],
                None => !fresh.insert((number, &row.group)),
            };
            if is_part {
                // As it was: the next to arrive get the numbers these had.
                for number in arrived.into_iter().rev() {
                    profiles.forget_unused(number);
                }
                return None;
            }
            match place {
                Some(place) => {
                    taken[place as usize] = true;
                    sent[at] = place;
                    if self.differs(place, row) {
                        proposal.changed.push((place, at));
                    }
                }
                None => proposal.new.push((number, at)),
            }
        }
        proposal.sent = Some(sent);
        self.leave_out(&taken, &mut proposal);
        let key = |place: u32| self.at(place).map(|one| (one.number, &one.need.row.group));
        proposal.changed.sort_by_key(|(place, _)| key(*place));
        let rows_of = |at: usize| &rows[at].group;
        proposal
            .new
            .sort_by_key(|(number, at)| (*number, rows_of(*at)));
        Some(proposal)
    }

    /// What is not taken is gone; rows of profiles that stay come first.
    fn leave_out(&self, taken: &[bool], proposal: &mut Proposal) {
        let mut last = Vec::new();
        for (number, places) in &self.index {
            let mut gone = places.values().filter(|place| !taken[**place as usize]);
            let stays = places.values().any(|place| taken[*place as usize])
                || proposal.new.iter().any(|(one, _)| one == number);
            if stays {
                proposal.gone.extend(gone);
            } else {
                last.extend(gone.by_ref());
            }
        }
        proposal.gone.append(&mut last);
    }

    /// Puts a proposal in force. A row that stays keeps its arrival and whether it is parked (NT-4),
    /// unless arrivals are to be `reset`; a new one arrives as `arrival` says.
    pub(crate) fn replace(
        &mut self,
        cluster: &ClusterId,
        mut proposal: Proposal,
        profiles: &mut Interned<Profile>,
        reset: Option<Time>,
        mut arrival: impl FnMut(&Row) -> Time,
    ) -> Moved {
        let mut moved = Moved::default();
        for (place, at) in &proposal.changed {
            let held = self.held.get_mut(*place as usize).and_then(Option::as_mut);
            if let Some((held, row)) = held.zip(proposal.rows[*at].take()) {
                held.need.row.aggregate = row.aggregate;
                held.need.row.min_unit = row.min_unit;
                held.need.row.whole_units = row.whole_units;
                moved.changed.push(held.need.clone());
            }
        }
        if let Some(now) = reset {
            let places = self.index.values().flat_map(BTreeMap::values);
            let stay = places.filter(|place| !proposal.gone.contains(place));
            moved.changed.clear();
            for place in stay {
                if let Some(Some(held)) = self.held.get_mut(*place as usize) {
                    held.need.arrival = Some(now);
                    moved.changed.push(held.need.clone());
                }
            }
        }
        for (number, at) in &proposal.new {
            let Some(mut row) = proposal.rows[*at].take() else {
                continue;
            };
            if let Some(profile) = profiles.get(*number) {
                row.profile.clone_from(profile);
            }
            let need = Need {
                cluster: cluster.clone(),
                arrival: Some(arrival(&row)),
                row,
                parked: false,
            };
            moved.new.push(need.clone());
            let place = self.insert(*number, need, profiles, &mut moved.profiles);
            if let Some(sent) = proposal.sent.as_mut().and_then(|sent| sent.get_mut(*at)) {
                *sent = place;
            }
        }
        for place in proposal.gone {
            let gone = self.remove(place, profiles, &mut moved.profiles);
            moved.gone.extend(gone);
        }
        if let Some(sent) = proposal.sent {
            self.sent = sent;
        }
        moved
    }

    fn insert(
        &mut self,
        number: u32,
        need: Need,
        profiles: &mut Interned<Profile>,
        moved: &mut bool,
    ) -> u32 {
        let group = need.row.group.clone();
        let held = Some(HeldRow { number, need });
        let place = match self.free.pop() {
            Some(place) => {
                self.held[place as usize] = held;
                place
            }
            None => {
                self.held.push(held);
                (self.held.len() - 1) as u32
            }
        };
        let places = self.index.entry(number).or_default();
        if places.is_empty() {
            profiles.keep(number);
            *moved = true;
        }
        places.insert(group, place);
        place
    }

    fn remove(
        &mut self,
        place: u32,
        profiles: &mut Interned<Profile>,
        moved: &mut bool,
    ) -> Option<Need> {
        let HeldRow { number, need } = self.held.get_mut(place as usize)?.take()?;
        self.free.push(place);
        let places = self.index.get_mut(&number)?;
        places.remove(&need.row.group);
        if places.is_empty() {
            self.index.remove(&number);
            profiles.leave(number);
            *moved = true;
        }
        Some(need)
    }
}

/// Rows with no part of a unit where they ask for whole ones (RF-19). Errs with the position of one that
/// cannot be counted then.
fn rounded(mut rows: Vec<Row>) -> Result<Vec<Row>, usize> {
    for (at, row) in rows.iter_mut().enumerate() {
        row.round_up().ok_or(at)?;
    }
    Ok(rows)
}

impl Proposal {
    /// The first row that is new or changed and asks for more of something than `most` says: of what, and
    /// how much. Where that says nothing, there is no limit.
    pub(crate) fn beyond(
        &self,
        most: impl Fn(&Dimension) -> Option<i128>,
    ) -> Option<(&Dimension, i128)> {
        let changed = self.changed.iter().map(|(_, at)| *at);
        let new = self.new.iter().map(|(_, at)| *at);
        let rows = changed.chain(new).filter_map(|at| self.rows[at].as_ref());
        let mut asked = rows.flat_map(|row| row.aggregate.iter());
        asked.find(|(name, milli)| most(name).is_some_and(|most| most < *milli))
    }

    /// Has rows ask for what they were sent with: [`crate::Defect::PartsOfUnits`].
    pub(crate) fn ask_for_parts(&mut self, sent: Vec<Row>) {
        for (row, sent) in self.rows.iter_mut().flatten().zip(sent) {
            row.aggregate = sent.aggregate;
        }
    }

    /// Forgets the profiles of rows that were not accepted.
    pub(crate) fn discard(self, profiles: &mut Interned<Profile>) {
        let numbers: BTreeSet<u32> = self.new.iter().map(|(number, _)| *number).collect();
        for number in numbers {
            profiles.forget_unused(number);
        }
    }
}
