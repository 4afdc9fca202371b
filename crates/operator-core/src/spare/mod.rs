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
mod record;

use crate::{
    defect::Defect,
    demand::{
        class::{Size, UnitClass},
        ledger::SpareRow,
    },
    objects::{NodeFacts, ObjectKey, Owner, StuckReason},
};
use bigfleet_model::{Amounts, Group, Profile, Time};
use bins::{bin_group, bin_of};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

const LOOK_EVERY: Duration = Duration::from_secs(10);
const ROUND_EVERY: Duration = Duration::from_secs(60);
const STUCK_FOR: Duration = Duration::from_secs(60);
const EMPTY_FOR: Duration = Duration::from_secs(30);
const LOWER_AFTER: Duration = Duration::from_secs(600);
const LOWER_EVERY: Duration = Duration::from_secs(120);
const CONSOLIDATE_EVERY: Duration = Duration::from_secs(600);
const DOUBLE_WITHIN: Duration = Duration::from_secs(1800);
const REMADE_FOR: Duration = Duration::from_secs(7200);
const REMADE_PAUSE: Duration = Duration::from_secs(600);
const LONGEST_REMADE_PAUSE: Duration = Duration::from_secs(3600);
/// Who has opened so many bins is unplaceable.
const MOST_OPENED: usize = 4;
/// Pods that are read before they open.
const MOST_READ: usize = 100;

/// A request whose Pod is stuck, or was.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    pub(crate) key: ObjectKey,
    pub(crate) uid: String,
    pub(crate) owner: Option<Owner>,
    pub(crate) profile: Arc<Profile>,
    pub(crate) unit: Amounts,
    pub(crate) acknowledged: Option<Time>,
    pub(crate) reason: StuckReason,
    /// The sum at which an earlier process found it unplaceable.
    pub(crate) unplaceable: Option<Size>,
}

/// A profile and what its plain requests ask for.
#[derive(Clone, Debug)]
pub(crate) struct Wants {
    pub(crate) profile: Arc<Profile>,
    pub(crate) units: BTreeMap<Amounts, u64>,
    /// Requests that came since the process began.
    pub(crate) came: u64,
}

impl Wants {
    pub(super) fn sum_of(&self, fits: impl Fn(&Amounts) -> bool) -> Amounts {
        let units = self.units.iter().filter(|(unit, _)| fits(unit));
        units.fold(Amounts::NONE, |sum, (unit, count)| {
            sum.add(&unit.scale(i64::try_from(*count).unwrap_or(i64::MAX)))
        })
    }

    fn size(&self) -> Size {
        Size::of(&self.sum_of(|_| true))
    }

    pub(super) fn class_sum(&self, class: &UnitClass) -> Amounts {
        self.sum_of(|unit| UnitClass::of(unit) == *class)
    }
}

/// A machine that is on its way or leaves.
#[derive(Clone, Debug)]
pub(crate) struct Underway {
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) resources: Amounts,
    pub(crate) first_seen: Time,
    pub(crate) is_leaving: bool,
}

/// What the shard says of a row: whether it misses nothing, and whether nothing is coming.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowWord {
    pub(crate) misses_nothing: bool,
    pub(crate) nothing_coming: bool,
}

/// What the shard says of the row of a profile and group, if anything.
pub(crate) type RowWords<'a> = Box<dyn Fn(&Profile, &Group) -> Option<RowWord> + 'a>;

/// Everything spares are decided from.
pub(crate) struct SpareView<'a> {
    pub(crate) wants: Vec<Wants>,
    pub(crate) pending: Vec<Pending>,
    pub(crate) nodes: Vec<&'a NodeFacts>,
    pub(crate) underway: Vec<Underway>,
    /// What the shard says of a row of this profile and group; `None` if it says nothing of rows at all.
    pub(crate) word: Option<RowWords<'a>>,
    /// Rows are split by unit class.
    pub(crate) by_class: bool,
    pub(crate) consolidate: bool,
    pub(crate) defect: Option<Defect>,
}

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
pub(crate) struct Spare {
    pub(crate) bin: Amounts,
    pub(crate) count: u64,
    /// The size of what the bin is for, when the count last changed (OP-66).
    pub(crate) raised_at: Size,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct ProfileSpare {
    pub(crate) bins: BTreeMap<Group, Spare>,
    /// The sum at the last lowering.
    pub(crate) lowered_at: Option<Size>,
    /// The sum at the raise that bars lowering.
    pub(crate) barred_at: Option<Size>,
    barred_came: u64,
    last_round: Option<Time>,
}

impl ProfileSpare {
    fn put(&mut self, spare: Spare) {
        self.bins.insert(bin_group(&spare.bin), spare);
    }
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

    /// One round of a profile: who is stuck opens bins, and what did not help is taken back.
    fn round(&mut self, now: Time, want: &Wants, view: &SpareView<'_>, steps: &mut Vec<SpareStep>) {
        let fingerprint = want.profile.fingerprint().as_str().to_owned();
        let last = self
            .profiles
            .get(&fingerprint)
            .and_then(|known| known.last_round);
        if last.is_some_and(|last| now.duration_since(last) < ROUND_EVERY) || self.reading.is_some()
        {
            return;
        }
        let of_profile = view
            .pending
            .iter()
            .filter(|pod| pod.profile == want.profile);
        let mut stuck: Vec<&Pending> = of_profile
            .filter(|pod| self.is_stuck(now, pod, want, view))
            .collect();
        if stuck.is_empty() {
            return;
        }
        stuck.sort_by_key(|pod| {
            let opened = self
                .openings
                .get(&pod.uid)
                .map_or(0, |opening| opening.bins.len());
            let size = std::cmp::Reverse((Size::of(&pod.unit), pod.unit.clone()));
            (size, opened, pod.uid.clone())
        });
        let owners = stuck
            .iter()
            .filter_map(|pod| pod.owner.clone())
            .take(MOST_READ);
        let owners: Vec<Owner> = owners.collect();
        let bound = match self.read.take() {
            Some((profile, bound)) if profile == fingerprint => bound,
            _ if owners.is_empty() => BTreeSet::new(),
            _ => {
                self.reading = Some(fingerprint);
                steps.push(SpareStep::Read(owners));
                return;
            }
        };
        let is_free = |pod: &&Pending| {
            pod.owner
                .as_ref()
                .is_none_or(|owner| !bound.contains(&owner.uid))
        };
        let stuck: Vec<&Pending> = stuck.into_iter().filter(is_free).collect();
        self.profile(&fingerprint).last_round = Some(now);
        for pod in &stuck {
            let opening = self
                .openings
                .entry(pod.uid.clone())
                .or_insert_with(|| Opening {
                    profile: fingerprint.clone(),
                    bins: Vec::new(),
                    doubted_since: None,
                    seen: None,
                });
            opening.seen = Some(now);
        }
        let mut doubled = BTreeSet::new();
        let (in_doubt, others): (Vec<&Pending>, Vec<&Pending>) =
            stuck.into_iter().partition(|pod| {
                self.is_doubted_for_long(now, &pod.uid)
                    || empty_hosts(now, pod, &pod.unit, view).next().is_some()
            });
        for pod in in_doubt {
            self.doubt(now, pod, want, view, &mut doubled, steps);
        }
        self.raise(now, &others, want, view, steps);
    }

    /// OP-62.
    fn raise(
        &mut self,
        now: Time,
        stuck: &[&Pending],
        want: &Wants,
        view: &SpareView<'_>,
        steps: &mut Vec<SpareStep>,
    ) {
        let mut room: BTreeMap<UnitClass, i128> = BTreeMap::new();
        let mut open: Vec<(Amounts, bool)> = Vec::new();
        for pod in stuck {
            let is_alone = pod.reason == StuckReason::Alone;
            let place = open
                .iter_mut()
                .find(|(left, shares)| *shares && !is_alone && left.covers(&pod.unit));
            if let Some((left, _)) = place {
                *left = left.sub(&pod.unit);
                continue;
            }
            let class = UnitClass::of(&pod.unit);
            let most = room.entry(class.clone()).or_insert_with(|| {
                let of_shape = Size::ONE.0 << class.order();
                let size = Size::of(&want.class_sum(&class)).0;
                (size + 8 * of_shape - 1).div_euclid(8 * of_shape).max(1)
            });
            if *most <= 0 || !self.may_open(now, pod) {
                continue;
            }
            let opened = self
                .openings
                .get(&pod.uid)
                .map_or(0, |opening| opening.bins.len());
            if MOST_OPENED <= opened {
                self.give_up(now, pod, want, steps);
                continue;
            }
            *most -= 1;
            let hosts: Vec<&Amounts> = hosts(pod, &pod.unit, view)
                .map(|node| &node.allocatable)
                .collect();
            let bin = bin_of(
                &pod.unit,
                &hosts,
                view.defect == Some(Defect::BinsRoundedUp),
            );
            open.push((bin.sub(&pod.unit), !is_alone));
            self.add(pod, bin, want, steps);
        }
    }

    fn may_open(&mut self, now: Time, pod: &Pending) -> bool {
        let key = (
            pod.profile.fingerprint().as_str().to_owned(),
            pod.unit.clone(),
        );
        let is_first = self
            .openings
            .get(&pod.uid)
            .is_none_or(|opening| opening.bins.is_empty());
        match self.remade.get_mut(&key).filter(|_| is_first) {
            Some(remade) if now < remade.next => false,
            Some(remade) => {
                remade.pause = (remade.pause * 2).min(LONGEST_REMADE_PAUSE);
                remade.next = now + remade.pause;
                true
            }
            None => true,
        }
    }

    fn add(&mut self, pod: &Pending, bin: Amounts, want: &Wants, steps: &mut Vec<SpareStep>) {
        self.changes += 1;
        let group = bin_group(&bin);
        if let Some(opening) = self.openings.get_mut(&pod.uid) {
            opening.bins.push(bin.clone());
        }
        let (served, sum) = (served_size(want, &bin), want.size());
        let known = self.profile(want.profile.fingerprint().as_str());
        known.change(&group, &bin, served, 1);
        if known
            .lowered_at
            .is_some_and(|then| !Size::moved_by_an_eighth(sum, then))
        {
            (known.barred_at, known.barred_came) = (Some(sum), want.came);
        }
        let profile = want.profile.fingerprint().as_str().to_owned();
        steps.push(SpareStep::Raised {
            profile,
            bin: group,
        });
    }

    fn take_back(&mut self, pod: &Pending, want: &Wants) {
        let bin = self
            .openings
            .get_mut(&pod.uid)
            .and_then(|opening| opening.bins.pop());
        let Some(bin) = bin else { return };
        self.changes += 1;
        let served = served_size(want, &bin);
        let known = self.profile(want.profile.fingerprint().as_str());
        known.change(&bin_group(&bin), &bin, served, -1);
    }

    /// OP-63: an empty Node could hold it, so another one does not help.
    fn doubt(
        &mut self,
        now: Time,
        pod: &Pending,
        want: &Wants,
        view: &SpareView<'_>,
        doubled: &mut BTreeSet<UnitClass>,
        steps: &mut Vec<SpareStep>,
    ) {
        let keeps = view.defect == Some(Defect::DoubtKept);
        let hosts: Vec<&Amounts> = hosts(pod, &pod.unit, view)
            .map(|node| &node.allocatable)
            .collect();
        let double = bin_of(&pod.unit, &hosts, false).scale(2);
        let opening = self.openings.get_mut(&pod.uid);
        let was_doubted =
            opening.is_some_and(|opening| opening.doubted_since.replace(now).is_some());
        if !keeps {
            self.take_back(pod, want);
        }
        let is_hopeless = was_doubted || empty_hosts(now, pod, &double, view).next().is_some();
        if is_hopeless {
            return self.give_up(now, pod, want, steps);
        }
        if doubled.insert(UnitClass::of(&pod.unit)) && self.may_open(now, pod) {
            self.add(pod, double, want, steps);
        }
    }

    fn give_up(&mut self, now: Time, pod: &Pending, want: &Wants, steps: &mut Vec<SpareStep>) {
        let sum = want.size();
        if self.unplaceable.insert(pod.uid.clone(), sum).is_none() {
            let request = pod.key.clone();
            steps.push(SpareStep::Unplaceable { request, sum });
        }
        let key = (
            pod.profile.fingerprint().as_str().to_owned(),
            pod.unit.clone(),
        );
        let remade = self.remade.entry(key).or_insert(Remade {
            until: now,
            next: now + REMADE_PAUSE,
            pause: REMADE_PAUSE,
        });
        remade.until = now + REMADE_FOR;
    }

    /// OP-61.
    fn is_stuck(&self, now: Time, pod: &Pending, want: &Wants, view: &SpareView<'_>) -> bool {
        let is_seen = match pod.reason {
            StuckReason::Insufficient => true,
            StuckReason::Alone => view.defect != Some(Defect::AloneIgnored),
            StuckReason::Other => false,
        };
        let Some(acknowledged) = pod.acknowledged.filter(|_| is_seen) else {
            return false;
        };
        let opening = self.openings.get(&pod.uid);
        let since = opening
            .and_then(|opening| opening.seen)
            .map_or(acknowledged, |seen| seen.max(acknowledged));
        if now.duration_since(since) < STUCK_FOR || self.unplaceable.contains_key(&pod.uid) {
            return false;
        }
        let is_coming = |machine: &Underway| {
            !machine.is_leaving
                && machine.first_seen <= since + STUCK_FOR
                && accepts(&pod.profile, &machine.labels)
                && (machine.resources.is_zero() || machine.resources.covers(&pod.unit))
        };
        if view.underway.iter().any(is_coming) && view.defect != Some(Defect::ComingIgnored) {
            return false;
        }
        let class = UnitClass::of(&pod.unit);
        let offered = sum(hosts(pod, &pod.unit, view).map(|node| &node.allocatable));
        if !offered.covers(&want.class_sum(&class)) {
            return false;
        }
        self.is_doubted_for_long(now, &pod.uid) || self.nothing_outstanding(pod, want, &class, view)
    }

    /// OP-63: twice its bin was asked for, and half an hour later it is still stuck.
    fn is_doubted_for_long(&self, now: Time, uid: &str) -> bool {
        let since = self
            .openings
            .get(uid)
            .and_then(|opening| opening.doubted_since);
        since.is_some_and(|at| DOUBLE_WITHIN <= now.duration_since(at))
    }

    fn nothing_outstanding(
        &self,
        pod: &Pending,
        want: &Wants,
        class: &UnitClass,
        view: &SpareView<'_>,
    ) -> bool {
        let spares = self.rows(std::slice::from_ref(want));
        let Some(word) = &view.word else {
            // A shard that says nothing of rows: what there is must cover all that is asked for.
            let matching = view
                .nodes
                .iter()
                .filter(|node| accepts(&want.profile, &node.labels));
            let offered = sum(matching
                .filter(|node| node.is_ready)
                .map(|node| &node.allocatable));
            let asked = spares.iter().fold(want.sum_of(|_| true), |sum, spare| {
                sum.add(
                    &spare
                        .bin
                        .scale(i64::try_from(spare.count).unwrap_or(i64::MAX)),
                )
            });
            return offered.covers(&asked);
        };
        let is_well = |group: &Group, with_coming: bool| {
            word(&want.profile, group)
                .is_some_and(|word| word.misses_nothing && (!with_coming || word.nothing_coming))
        };
        let could_hold = spares
            .iter()
            .filter(|spare| 0 < spare.count && spare.bin.covers(&pod.unit));
        let group = if view.by_class {
            class.group()
        } else {
            Group::default()
        };
        is_well(&group, false)
            && could_hold
                .into_iter()
                .all(|spare| is_well(&spare.group, true))
    }

    /// OP-64, OP-69.
    fn lower(&mut self, now: Time, view: &SpareView<'_>, steps: &mut Vec<SpareStep>) {
        let is_spaced = |last: Option<Time>, span| {
            last.is_none_or(|last: Time| span <= now.duration_since(last))
        };
        if !is_spaced(self.last_lowering, LOWER_EVERY) {
            return;
        }
        for want in &view.wants {
            let profile = want.profile.fingerprint().as_str().to_owned();
            if !self.may_lower(want, view) {
                continue;
            }
            let is_removable = |node: &&NodeFacts| {
                view.consolidate
                    && node.disruption != Some(15)
                    && is_spaced(self.last_consolidation, CONSOLIDATE_EVERY)
                    && node
                        .removable_since
                        .is_some_and(|since| LOWER_AFTER <= now.duration_since(since))
            };
            let is_empty = |node: &&NodeFacts| {
                node.empty_since
                    .is_some_and(|since| LOWER_AFTER <= now.duration_since(since))
                    || is_removable(node)
            };
            let ready = view
                .nodes
                .iter()
                .copied()
                .filter(|node| is_host(node, &want.profile));
            let found = ready.filter(is_empty).find_map(|node| {
                let largest = self.largest_for(want, node)?;
                Some((largest, node.empty_since.is_none()))
            });
            let Some((group, is_consolidation)) = found else {
                continue;
            };
            let known = self.profile(&profile);
            let Some(spare) = known.bins.get(&group).cloned() else {
                continue;
            };
            known.change(&group, &spare.bin, served_size(want, &spare.bin), -1);
            known.lowered_at = Some(want.size());
            self.changes += 1;
            self.last_lowering = Some(now);
            if is_consolidation {
                self.last_consolidation = Some(now);
            }
            steps.push(SpareStep::Lowered {
                profile,
                bin: group,
            });
            return;
        }
    }

    fn may_lower(&self, want: &Wants, view: &SpareView<'_>) -> bool {
        let known = self.profiles.get(want.profile.fingerprint().as_str());
        let is_barred = known.is_some_and(|known| known.barred_at.is_some());
        let waits = |pod: &Pending| {
            pod.profile == want.profile
                && pod.reason != StuckReason::Other
                && !self.unplaceable.contains_key(&pod.uid)
        };
        let moves = |machine: &Underway| accepts(&want.profile, &machine.labels);
        known.is_some()
            && !is_barred
            && !view.pending.iter().any(waits)
            && !view.underway.iter().any(moves)
    }

    /// The largest spare that the Node could hold and that is over half of it in some dimension.
    fn largest_for(&self, want: &Wants, node: &NodeFacts) -> Option<Group> {
        let known = self.profiles.get(want.profile.fingerprint().as_str())?;
        let fits = |spare: &&(&Group, &Spare)| {
            let bin = &spare.1.bin;
            let is_most = |name: &str, milli: i128| node.allocatable.get(name) < milli * 2;
            0 < counts(spare.1, served_size(want, bin))
                && node.allocatable.covers(bin)
                && bin
                    .iter()
                    .any(|(name, milli)| is_most(name.as_str(), milli))
        };
        let all: Vec<(&Group, &Spare)> = known.bins.iter().collect();
        let largest = all.iter().filter(fits).max_by_key(|(group, spare)| {
            (Size::of(&spare.bin), spare.bin.clone(), (*group).clone())
        });
        largest.map(|(group, _)| (*group).clone())
    }
}

impl ProfileSpare {
    /// OP-66: every change starts from what the spare counts for now.
    fn change(&mut self, group: &Group, bin: &Amounts, served: Size, by: i64) {
        let spare = self.bins.entry(group.clone()).or_insert_with(|| Spare {
            bin: bin.clone(),
            count: 0,
            raised_at: served,
        });
        spare.count = counts(spare, served).saturating_add_signed(by);
        spare.raised_at = served;
        spare.bin = spare.bin.larger(bin); // bins that are written alike are one, the greater
        if spare.count == 0 {
            self.bins.remove(group);
        }
    }

    /// OP-65: the bar ends when the sum has moved by an eighth, or a quarter of the Pods are new.
    fn lift_bar(&mut self, want: &Wants) {
        let Some(then) = self.barred_at else { return };
        let pods: u64 = want.units.values().sum();
        let is_turned = pods <= want.came.saturating_sub(self.barred_came).saturating_mul(4);
        let is_turned = is_turned && 0 < pods;
        if Size::moved_by_an_eighth(want.size(), then) || is_turned {
            self.barred_at = None;
        }
    }
}

/// What a spare counts for while the demand it was raised for is smaller than it was.
fn counts(spare: &Spare, served: Size) -> u64 {
    if spare.raised_at.0 == 0 {
        return spare.count;
    }
    let eighths = (served.0.saturating_mul(8) + spare.raised_at.0 - 1) / spare.raised_at.0;
    let eighths = u64::try_from(eighths).unwrap_or(8).min(8);
    (spare.count * eighths * 2 + 8) / 16
}

/// The size of what those Pods ask for that the bin could hold and whose class is the bin's or the one below.
fn served_size(want: &Wants, bin: &Amounts) -> Size {
    let class = UnitClass::of(bin);
    let is_served =
        |unit: &Amounts| bin.covers(unit) && UnitClass::of(unit).is_at_or_just_below(&class);
    Size::of(&want.sum_of(is_served))
}

fn accepts(profile: &Profile, labels: &BTreeMap<String, String>) -> bool {
    profile
        .requirements()
        .iter()
        .all(|need| need.accepts(labels.get(need.key()).map(String::as_str)))
}

fn is_host(node: &NodeFacts, profile: &Profile) -> bool {
    node.is_ready && !node.is_cordoned && accepts(profile, &node.labels)
}

/// Nodes that could hold so much of the Pod's profile.
fn hosts<'a>(
    pod: &Pending,
    amount: &Amounts,
    view: &SpareView<'a>,
) -> impl Iterator<Item = &'a NodeFacts> {
    let could = |node: &&&NodeFacts| is_host(node, &pod.profile) && node.allocatable.covers(amount);
    view.nodes.iter().filter(could).copied()
}

/// Those of them that are empty.
fn empty_hosts<'a>(
    now: Time,
    pod: &Pending,
    amount: &Amounts,
    view: &SpareView<'a>,
) -> impl Iterator<Item = &'a NodeFacts> {
    hosts(pod, amount, view).filter(move |node| {
        let is_old = |since: Time| EMPTY_FOR <= now.duration_since(since);
        node.empty_since.is_some_and(is_old) && is_old(node.ready_since)
    })
}

fn sum<'a>(amounts: impl Iterator<Item = &'a Amounts>) -> Amounts {
    amounts.fold(Amounts::NONE, |sum, one| sum.add(one))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// EX-OP20 in numbers: half of what it was raised for counts half, and a change starts from there.
    #[test]
    fn ex_op20_a_spare_shrinks_with_what_it_was_raised_for() {
        let bin = Amounts::from_entries([(bigfleet_model::Dimension::new("cpu").unwrap(), 3600)]);
        let group = bin_group(&bin);
        let mut known = ProfileSpare::default();
        known.put(Spare {
            bin: bin.clone(),
            count: 8,
            raised_at: Size(100),
        });
        assert_eq!(counts(&known.bins[&group], Size(50)), 4);
        assert_eq!(counts(&known.bins[&group], Size(200)), 8);
        known.change(&group, &bin, Size(50), -1);
        let spare = &known.bins[&group];
        assert_eq!((spare.count, spare.raised_at), (3, Size(50)));
    }
}
