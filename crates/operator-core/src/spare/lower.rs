//! A Node that stays empty takes a spare away (OP-64, OP-69).

use super::{
    SpareStep, Spares,
    profile::{Spare, counts, served_size},
    view::{Pending, SpareView, Underway, Wants, accepts, is_host},
};
use crate::{
    demand::class::Size,
    objects::{NodeFacts, StuckReason},
};
use bigfleet_model::{Group, Time};
use std::time::Duration;

const LOWER_AFTER: Duration = Duration::from_secs(600);
const LOWER_EVERY: Duration = Duration::from_secs(120);
const CONSOLIDATE_EVERY: Duration = Duration::from_secs(600);

impl Spares {
    /// OP-64, OP-69.
    pub(super) fn lower(&mut self, now: Time, view: &SpareView<'_>, steps: &mut Vec<SpareStep>) {
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
