//! Who is stuck opens bins, and what did not help is taken back (OP-61 to OP-63).

use super::{
    Opening, Remade, SpareStep, Spares,
    bins::{bin_group, bin_of},
    profile::served_size,
    view::{Pending, SpareView, Underway, Wants, accepts, empty_hosts, hosts, sum},
};
use crate::{
    defect::Defect,
    demand::class::{Size, UnitClass},
    objects::{Owner, StuckReason},
};
use bigfleet_model::{Amounts, Group, Time};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

const ROUND_EVERY: Duration = Duration::from_secs(60);
const STUCK_FOR: Duration = Duration::from_secs(60);
const DOUBLE_WITHIN: Duration = Duration::from_secs(1800);
const REMADE_FOR: Duration = Duration::from_secs(7200);
const REMADE_PAUSE: Duration = Duration::from_secs(600);
const LONGEST_REMADE_PAUSE: Duration = Duration::from_secs(3600);
/// Who has opened so many bins is unplaceable.
const MOST_OPENED: usize = 4;
/// Pods that are read before they open.
const MOST_READ: usize = 100;

impl Spares {
    /// One round of a profile: who is stuck opens bins, and what did not help is taken back.
    pub(super) fn round(
        &mut self,
        now: Time,
        want: &Wants,
        view: &SpareView<'_>,
        steps: &mut Vec<SpareStep>,
    ) {
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
}
