//! Watching: what the cluster has, kind by kind (OP-2 to OP-7).

use super::OperatorCore;
use crate::{
    defect::Defect,
    demand::{KeptRequest, request::understand},
    effect::{Effect, Note},
    follow::{Change, Count},
    objects::{AvailableFacts, Kind, NodeFacts, Object, ObjectKey, RequestFacts, UpcomingFacts},
    served::RowName,
};
use bigfleet_model::Time;

/// Profiles whose arrivals are counted.
const MOST_PROFILES: usize = 100_000;

impl OperatorCore {
    pub(super) fn began(&mut self, now: Time, kind: Kind) {
        match kind {
            Kind::Request => self.requests.began(now),
            Kind::Upcoming => self.upcoming_shown.began(now),
            Kind::Available => self.available_shown.began(now),
            Kind::Node => self.nodes.began(now),
        }
    }

    pub(super) fn fresh(&mut self, now: Time, kind: Kind, version: u64) {
        match kind {
            Kind::Request => self.requests.heard(now, version),
            Kind::Upcoming => self.upcoming_shown.heard(now, version),
            Kind::Available => self.available_shown.heard(now, version),
            Kind::Node => self.nodes.heard(now, version),
        }
    }

    pub(super) fn broken(&mut self, now: Time, kind: Kind, effects: &mut Vec<Effect>) {
        if self.has(Defect::PartialCacheBelieved) {
            self.whole(now, kind, 0, effects);
        }
        match kind {
            Kind::Request => {
                self.requests.broken();
                self.count_check.watching(now);
            }
            Kind::Upcoming => self.upcoming_shown.broken(),
            Kind::Available => self.available_shown.broken(),
            Kind::Node => self.nodes.broken(),
        }
    }

    pub(super) fn seen(
        &mut self,
        now: Time,
        object: Object,
        version: u64,
        effects: &mut Vec<Effect>,
    ) {
        self.fresh(now, object.kind(), version);
        match object {
            Object::Request(facts) => {
                let key = facts.key.clone();
                let kept = self.understood(*facts, effects);
                let change = self.requests.seen(key, kept);
                change
                    .into_iter()
                    .for_each(|change| self.request_changed(now, change));
            }
            Object::Upcoming(facts) => {
                let key = ObjectKey::cluster(&facts.name);
                let change = self.upcoming_shown.seen(key, *facts);
                change
                    .into_iter()
                    .for_each(|change| self.upcoming_changed(now, change, effects));
            }
            Object::Available(facts) => {
                let key = ObjectKey::cluster(&facts.name);
                let change = self.available_shown.seen(key, *facts);
                change
                    .into_iter()
                    .for_each(|change| self.available_changed(&change));
            }
            Object::Node(facts) => {
                let key = ObjectKey::cluster(&facts.name);
                let change = self.nodes.seen(key, *facts);
                change
                    .into_iter()
                    .for_each(|change| self.node_changed(now, change, effects));
            }
        }
    }

    pub(super) fn gone(
        &mut self,
        now: Time,
        kind: Kind,
        key: &ObjectKey,
        version: u64,
        effects: &mut Vec<Effect>,
    ) {
        self.fresh(now, kind, version);
        match kind {
            Kind::Request => {
                let change = self.requests.gone(key);
                change
                    .into_iter()
                    .for_each(|change| self.request_changed(now, change));
            }
            Kind::Upcoming => {
                let change = self.upcoming_shown.gone(key);
                change
                    .into_iter()
                    .for_each(|change| self.upcoming_changed(now, change, effects));
            }
            Kind::Available => {
                let change = self.available_shown.gone(key);
                change
                    .into_iter()
                    .for_each(|change| self.available_changed(&change));
            }
            Kind::Node => {
                let change = self.nodes.gone(key);
                change
                    .into_iter()
                    .for_each(|change| self.node_changed(now, change, effects));
            }
        }
    }

    pub(super) fn whole(&mut self, now: Time, kind: Kind, version: u64, effects: &mut Vec<Effect>) {
        self.fresh(now, kind, version);
        match kind {
            Kind::Request => {
                let changes = self.requests.whole();
                changes
                    .into_iter()
                    .for_each(|change| self.request_changed(now, change));
                self.count_check.watching(now);
            }
            Kind::Upcoming => {
                let changes = self.upcoming_shown.whole();
                let changes = changes.into_iter();
                changes.for_each(|change| self.upcoming_changed(now, change, effects));
            }
            Kind::Available => {
                let changes = self.available_shown.whole();
                changes
                    .into_iter()
                    .for_each(|change| self.available_changed(&change));
            }
            Kind::Node => {
                let changes = self.nodes.whole();
                changes
                    .into_iter()
                    .for_each(|change| self.node_changed(now, change, effects));
                self.drains.node_changed(); // what could not be told before may be told now
            }
        }
    }

    /// OP-6.
    pub(super) fn unreadable(
        &mut self,
        now: Time,
        kind: Kind,
        key: ObjectKey,
        why: String,
        effects: &mut Vec<Effect>,
    ) {
        self.counters.unreadable += 1;
        effects.push(Effect::Tell(Note {
            kind,
            about: key.clone(),
            reason: "Unreadable",
            message: why,
        }));
        match kind {
            Kind::Request => {
                let before = self.requests.unread();
                self.requests.unreadable(key);
                if before < self.requests.unread() {
                    self.unread_until
                        .get_or_insert(now + self.config.rollup_interval);
                }
            }
            Kind::Upcoming => self.upcoming_shown.unreadable(key),
            Kind::Available => self.available_shown.unreadable(key),
            Kind::Node => self.nodes.unreadable(key),
        }
    }

    /// OP-5.
    pub(super) fn counted(&mut self, now: Time, count: Option<Count>, effects: &mut Vec<Effect>) {
        let cached = (self.requests.len() + self.requests.unread()) as u64;
        let version = self.requests.version();
        if self.count_check.counted(now, count, cached, version) {
            effects.push(Effect::Follow(Kind::Request));
        }
    }

    fn understood(&mut self, facts: RequestFacts, effects: &mut Vec<Effect>) -> KeptRequest {
        let asked = understand(&facts.key.namespace, &facts.spec);
        let known = self.requests.get(&facts.key);
        let is_known = known
            .is_some_and(|known| known.uid == facts.uid && known.generation == facts.generation);
        if !is_known && !asked.degraded.is_empty() {
            for cause in &asked.degraded {
                *self.counters.degraded.entry(*cause).or_default() += 1;
            }
            let sentences: Vec<_> = asked
                .degraded
                .iter()
                .map(|cause| cause.sentence())
                .collect();
            effects.push(Effect::Tell(Note {
                kind: Kind::Request,
                about: facts.key.clone(),
                reason: "Degraded",
                message: sentences.join("; "),
            }));
        }
        let row = self.ledger.interned(asked.row);
        KeptRequest::new(facts, row, asked.unit)
    }

    fn request_changed(&mut self, now: Time, change: Change<KeptRequest>) {
        let Change { key, before, after } = change;
        if let Some(before) = &before {
            self.ledger.remove(&before.row, &before.unit);
        }
        let is_new =
            |after: &KeptRequest| before.as_ref().is_none_or(|before| before.uid != after.uid);
        if let Some(after) = after.as_ref().filter(|after| is_new(after)) {
            let profile = after.row.profile.fingerprint().as_str();
            if MOST_PROFILES <= self.came.len() {
                self.came.clear(); // a bar is lifted a little later
            }
            *self.came.entry(profile.to_owned()).or_default() += 1;
        }
        if let Some(after) = &after {
            self.ledger.add(&after.row, &after.unit);
            self.guard.present(after.owner.as_ref());
        } else if let Some(before) = &before {
            self.guard.withdrawn(before.owner.as_ref());
        }
        let next = self.answers.next_number();
        self.acknowledgements
            .changed(&key, before.as_ref(), after.as_ref(), next);
        let row = after
            .as_ref()
            .map(|after| self.row_name(after))
            .unwrap_or_default();
        let tells_all = self.has(Defect::RunningPodsTold);
        self.served.changed(&key, after.as_ref(), row, tells_all);
        let asks = |kept: &KeptRequest| (kept.row.clone(), kept.unit.clone(), kept.uid.clone());
        if before.as_ref().map(asks) != after.as_ref().map(asks) {
            self.pace.changed(now);
        }
    }

    /// What the shard can do is known, and with it how rows are named.
    pub(super) fn name_rows_anew(&mut self) {
        let tells_all = self.has(Defect::RunningPodsTold);
        for key in self.served.requests() {
            let Some(request) = self.requests.get(&key).cloned() else {
                continue;
            };
            let row = self.row_name(&request);
            self.served.changed(&key, Some(&request), row, tells_all);
        }
    }

    /// The row of the last roll-up a request counts in.
    pub(super) fn row_name(&self, request: &KeptRequest) -> RowName {
        let shaping = self.shaping();
        let group = shaping.group_of(&request.row.gang, &request.unit);
        let fingerprint = request.row.profile.fingerprint().as_str().to_owned();
        (fingerprint, group.as_str().to_owned())
    }

    fn upcoming_changed(
        &mut self,
        now: Time,
        change: Change<UpcomingFacts>,
        effects: &mut Vec<Effect>,
    ) {
        match &change.after {
            None => self.upcoming.gone(&change.key.name),
            Some(after) => {
                if let Some(machine) = self.upcoming.shown(now, after) {
                    self.recall_machine(now, &machine, &after.content, effects);
                }
            }
        }
    }

    fn available_changed(&mut self, change: &Change<AvailableFacts>) {
        let content = change.after.as_ref().map(|after| &after.content);
        self.hints.shown(&change.key.name, content);
    }

    fn node_changed(&mut self, now: Time, change: Change<NodeFacts>, effects: &mut Vec<Effect>) {
        let name = change.key.name;
        let replaced = match (&change.before, &change.after) {
            (Some(before), Some(after)) => before.uid != after.uid,
            (Some(_), None) => true,
            (None, _) => false,
        };
        if replaced {
            self.departures.node_gone(&name);
        }
        let mut touched = self.registry.node_changed(&name, change.after.as_ref());
        touched.extend(self.registry.machine_of(&name).cloned());
        touched.sort();
        touched.dedup();
        for machine in touched {
            self.machine_seen(now, &machine, effects);
        }
        self.drains.node_changed();
        if let Some(after) = &change.after {
            self.look_at_record(now, after, effects);
        }
    }
}
