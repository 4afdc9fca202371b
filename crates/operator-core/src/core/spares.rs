//! Spares: what they are decided from, and what follows (operator.md §5).

use super::OperatorCore;
use crate::{
    demand::{class::Size, gang::Gang},
    effect::{Alert, Effect, Note, Write},
    event::{EffectId, OwnerState, OwnersFound},
    objects::{Kind, Phase, Served},
    queue::Item,
    spare::{Pending, RowWord, SpareStep, SpareView, Underway, Wants},
};
use bigfleet_model::{Group, Profile, Time};
use std::{collections::BTreeSet, sync::Arc, time::Duration};

/// A machine that has not arrived by then is not waited for.
const COMING_FOR: Duration = Duration::from_secs(1800);
/// A machine that has just arrived has not had its Pods yet.
const ARRIVED_FOR: Duration = Duration::from_secs(30);
const UNPLACEABLE: &str = "Unplaceable";

impl OperatorCore {
    pub(super) fn spare_recorded(&mut self, text: Option<&str>, effects: &mut Vec<Effect>) {
        if let Err(why) = self.spares.recorded(text) {
            effects.push(Effect::Alert(Alert::SpareRecordUnreadable(why)));
        }
    }

    pub(super) fn wants(&self) -> Vec<Wants> {
        let want = |(profile, units): (&Arc<Profile>, &std::collections::BTreeMap<_, _>)| Wants {
            profile: Arc::clone(profile),
            units: units.clone(),
            came: self
                .came
                .get(profile.fingerprint().as_str())
                .copied()
                .unwrap_or(0),
        };
        self.ledger.plain().map(want).collect()
    }

    pub(super) fn look_at_spares(&mut self, now: Time, effects: &mut Vec<Effect>) {
        let can_see = self.requests.is_fresh(now)
            && self.nodes.is_fresh(now)
            && self.upcoming_shown.is_whole();
        if !can_see || self.spares.next().is_some_and(|next| now < next) {
            return;
        }
        let pending = self.pending();
        let mut spares = std::mem::take(&mut self.spares);
        let steps = spares.look(now, &self.spare_view(now, pending.clone()));
        self.spares = spares;
        for step in steps {
            self.spare_step(now, step, effects);
        }
        for pod in &pending {
            let word = self.spares.unplaceable_at(&pod.uid).map(unplaceable_word);
            self.served.own_word(&pod.key, word);
        }
        self.write_spares();
    }

    pub(super) fn write_spares(&mut self) {
        if let Some(text) = self.spares.to_write() {
            let item = Item::Write(Write::SpareRecord { text });
            if !self.queue.is_pending(&item.slot()) {
                self.queue.push(item);
            }
        }
    }

    fn spare_view(&self, now: Time, pending: Vec<Pending>) -> SpareView<'_> {
        let features = self.session.features();
        let word = |profile: &Profile, group: &Group| {
            let row = (
                profile.fingerprint().as_str().to_owned(),
                group.as_str().to_owned(),
            );
            self.served.row(&row).map(|row| RowWord {
                misses_nothing: row.missing.is_zero(),
                nothing_coming: row.coming.is_zero(),
            })
        };
        SpareView {
            wants: self.wants(),
            pending,
            nodes: self.nodes.iter().map(|(_, node)| node).collect(),
            underway: self.underway(now),
            word: features.need_status.then(|| Box::new(word) as Box<_>),
            by_class: self.config.unit_classes && features.whole_units,
            consolidate: self.config.consolidate,
            defect: self.config.defect,
        }
    }

    /// Requests whose Pods are stuck.
    fn pending(&self) -> Vec<Pending> {
        let mut pending = Vec::new();
        for (key, request) in self.requests.iter() {
            let Some(status) = request.status.as_ref() else {
                continue;
            };
            let Some(stuck) = status.stuck.filter(|_| request.row.gang == Gang::None) else {
                continue;
            };
            pending.push(Pending {
                key: key.clone(),
                uid: request.uid.clone(),
                owner: request.owner.clone(),
                profile: Arc::clone(&request.row.profile),
                unit: request.unit.clone(),
                acknowledged: status.acknowledged_at,
                reason: stuck.reason,
                unplaceable: status.served.as_ref().and_then(read_unplaceable),
            });
        }
        pending
    }

    /// Machines that are coming or leaving.
    fn underway(&self, now: Time) -> Vec<Underway> {
        let mut underway = Vec::new();
        for (_, wanted) in self.upcoming.iter() {
            let known = &wanted.content;
            let first_seen = known.started.unwrap_or(now);
            let is_late = COMING_FOR <= now.duration_since(first_seen);
            let (counts, is_leaving) = match known.phase {
                Phase::Provisioning | Phase::Launched | Phase::Registered => (!is_late, false),
                Phase::Ready => (now.duration_since(wanted.phase_since) < ARRIVED_FOR, false),
                Phase::Draining => (true, true),
                Phase::Drained | Phase::Failed => (false, false),
            };
            if counts {
                underway.push(Underway {
                    labels: known.labels.clone(),
                    resources: known.resources.clone(),
                    first_seen,
                    is_leaving,
                });
            }
        }
        underway
    }

    fn spare_step(&mut self, now: Time, step: SpareStep, effects: &mut Vec<Effect>) {
        match step {
            SpareStep::Read(owners) => {
                let id = self.next_id();
                self.spare_read = Some(id);
                effects.push(Effect::ReadOwners(id, owners));
            }
            SpareStep::Raised { .. } => {
                self.counters.spare_changes[0] += 1;
                self.pace.changed(now);
            }
            SpareStep::Lowered { .. } => {
                self.counters.spare_changes[1] += 1;
                self.pace.changed(now);
            }
            SpareStep::Unplaceable { request, .. } => {
                self.pace.changed(now); // what it had opened may be taken back
                effects.push(Effect::Tell(Note {
                    kind: Kind::Request,
                    about: request,
                    reason: UNPLACEABLE,
                    message: "another Node did not help this Pod; no more is asked for it"
                        .to_owned(),
                }));
            }
        }
    }

    /// The Pods that want to open bins were read; whether the answer was to this.
    pub(super) fn spare_owners(
        &mut self,
        now: Time,
        id: EffectId,
        found: Option<&OwnersFound>,
    ) -> bool {
        if self.spare_read != Some(id) {
            return false;
        }
        self.spare_read = None;
        let is_placed = |state: &OwnerState| *state != OwnerState::Live { is_bound: false };
        let bound = found.map(|found| {
            let placed = found.owners.iter().filter(|(_, state)| is_placed(state));
            placed
                .map(|(owner, _)| owner.uid.clone())
                .collect::<BTreeSet<_>>()
        });
        self.spares.owners_read(now, bound);
        true
    }
}

fn unplaceable_word(sum: Size) -> Served {
    Served {
        is_served: false,
        reason: UNPLACEABLE.to_owned(),
        message: format!("another Node did not help this Pod (sum {})", sum.0),
    }
}

/// What an earlier process found, read back from the condition.
fn read_unplaceable(served: &Served) -> Option<Size> {
    let text = Some(&served.message).filter(|_| served.reason == UNPLACEABLE)?;
    let number = text.rsplit_once("(sum ")?.1.strip_suffix(')')?;
    number.parse().ok().map(Size)
}
