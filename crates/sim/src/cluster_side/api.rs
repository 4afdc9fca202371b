//! API: what an API server makes of a write, and what goes wrong on the way (OP-9, OP-28, OP-39).
//!
//! ```text
//! write ─▶ refused: 409, 429, 500, no answer ─▶ nothing is done
//!      └─▶ done ─▶ answered, or the answer is lost
//! ```

use super::{
    Side,
    settings::ApiWeather,
    store::{NAMESPACE, Pod, Resource, Store, in_seconds},
};
use crate::{clock::Moment, dice::Dice};
use bigfleet_model::Time;
use bigfleet_operator_core::{
    AvailableFacts, Eviction, EvictionOutcome, NodeFacts, Object, ObjectKey, Owner, PodEffect,
    RequestFacts, RequestSpec, RequestStatus, UpcomingFacts, Write, WriteOutcome,
};
use std::time::Duration;

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Done,
    AnswerLost,
    Conflict,
    Throttled(Duration),
    Failed,
    /// The server is not there.
    Away,
}

impl Fate {
    pub(super) fn drawn(weather: ApiWeather, dice: &mut Dice) -> Self {
        match () {
            () if dice.per_mille(weather.conflict) => Self::Conflict,
            () if dice.per_mille(weather.throttled) => {
                Self::Throttled(Duration::from_secs(dice.between(1, 20)))
            }
            () if dice.per_mille(weather.failed) => Self::Failed,
            () if dice.per_mille(weather.answer_lost) => Self::AnswerLost,
            () => Self::Done,
        }
    }

    /// Under which name it is counted; `None` if all is well.
    pub(super) fn name(self) -> Option<&'static str> {
        match self {
            Self::Done => None,
            Self::AnswerLost => Some("api answer lost"),
            Self::Conflict => Some("api conflict"),
            Self::Throttled(_) => Some("api throttled"),
            Self::Failed => Some("api error"),
            Self::Away => Some("api away"),
        }
    }

    pub(super) fn is_done(self) -> bool {
        matches!(self, Self::Done | Self::AnswerLost)
    }

    /// Whether the caller hears of it only when it stops waiting.
    pub(super) fn is_silent(self) -> bool {
        matches!(self, Self::AnswerLost | Self::Away)
    }

    /// What the caller of a write hears, if it was not simply done.
    pub(super) fn outcome(self) -> Option<WriteOutcome> {
        Some(match self {
            Self::Done => return None,
            Self::AnswerLost | Self::Away => WriteOutcome::Failed("no answer in 10 s".to_owned()),
            Self::Conflict => WriteOutcome::Conflict,
            Self::Throttled(after) => WriteOutcome::Throttled(Some(after)),
            Self::Failed => WriteOutcome::Failed("internal error".to_owned()),
        })
    }

    /// The same of an eviction: 409 says that another Pod has the name.
    pub(super) fn eviction(self) -> Option<EvictionOutcome> {
        Some(match self {
            Self::Done => return None,
            Self::AnswerLost | Self::Away => {
                EvictionOutcome::Failed("no answer in 10 s".to_owned())
            }
            Self::Throttled(after) => EvictionOutcome::Throttled(Some(after)),
            Self::Conflict | Self::Failed => EvictionOutcome::Failed("internal error".to_owned()),
        })
    }
}

/// Carries out a write of an operator.
pub(super) fn write(store: &mut Store, write: Write) -> WriteOutcome {
    match write {
        Write::Acknowledge {
            request, uid, at, ..
        } => change_status(store, &request, &uid, |status| {
            status.acknowledged_at = Some(in_seconds(at));
        }),
        Write::Serve {
            request,
            uid,
            served,
            ..
        } => change_status(store, &request, &uid, |status| status.served = Some(served)),
        Write::CordonNode { node, uid, record } => patch_node(store, &node, &uid, None, |node| {
            node.is_cordoned = true;
            node.drain = Some(record).filter(|record| !record.is_empty());
        }),
        Write::ReleaseNode {
            node,
            uid,
            version,
            uncordon,
        } => patch_node(store, &node, &uid, Some(&version), |node| {
            node.drain = None;
            node.is_cordoned &= !uncordon;
        }),
        Write::LabelNode {
            node,
            uid,
            key,
            value,
        } => patch_node(store, &node, &uid, None, |node| {
            node.labels.insert(key.to_owned(), value);
        }),
        Write::DeleteNode { node, uid } => match store.node(&node) {
            Some(known) if known.uid == uid => {
                store.remove(Resource::Nodes, &ObjectKey::cluster(&node));
                WriteOutcome::Done
            }
            Some(_) => WriteOutcome::Conflict,
            None => WriteOutcome::Gone,
        },
        Write::ApplyUpcoming {
            name,
            machine,
            mut content,
        } => {
            content.started = content.started.map(in_seconds);
            store.put(Object::Upcoming(Box::new(UpcomingFacts {
                name,
                machine: Some(machine.to_string()),
                content: *content,
            })));
            WriteOutcome::Done
        }
        Write::DeleteUpcoming { name } => removed(store, Resource::Upcoming, &name),
        Write::ApplyAvailable { name, content } => {
            let content = *content;
            store.put(Object::Available(Box::new(AvailableFacts {
                name,
                content,
            })));
            WriteOutcome::Done
        }
        Write::DeleteAvailable { name } => removed(store, Resource::Available, &name),
        Write::SpareRecord { text } => {
            store.next_version();
            store.spare_record = Some(text);
            WriteOutcome::Done
        }
    }
}

fn removed(store: &mut Store, resource: Resource, name: &str) -> WriteOutcome {
    if store.remove(resource, &ObjectKey::cluster(name)) {
        WriteOutcome::Done
    } else {
        WriteOutcome::Gone
    }
}

fn change_status(
    store: &mut Store,
    key: &ObjectKey,
    uid: &str,
    change: impl FnOnce(&mut RequestStatus),
) -> WriteOutcome {
    let Some(mut facts) = store.request(key).cloned() else {
        return WriteOutcome::Gone;
    };
    if facts.uid != uid {
        return WriteOutcome::Refused("the uid differs".to_owned());
    }
    change(facts.status.get_or_insert_default());
    store.put(Object::Request(Box::new(facts)));
    WriteOutcome::Done
}

fn patch_node(
    store: &mut Store,
    name: &str,
    uid: &str,
    version: Option<&str>,
    patch: impl FnOnce(&mut NodeFacts),
) -> WriteOutcome {
    let Some(node) = store.node(name) else {
        return WriteOutcome::Gone;
    };
    if node.uid != uid || version.is_some_and(|version| version != node.version) {
        return WriteOutcome::Conflict;
    }
    store.change_node(name, patch);
    WriteOutcome::Done
}

/// Carries out a write of the pod controller; what is gone needs no word.
pub(super) fn write_of_pods(store: &mut Store, now: Time, effect: PodEffect) {
    match effect {
        PodEffect::Create { key, pod, spec } => create(store, now, key, pod, *spec),
        PodEffect::Pend(key) => change_request(store, &key, |facts| {
            facts.status.get_or_insert_default();
        }),
        PodEffect::Patch(key, spec) => change_request(store, &key, |facts| {
            facts.generation += 1;
            facts.spec = *spec;
        }),
        PodEffect::Delete(key) => {
            store.remove(Resource::Requests, &key);
        }
        PodEffect::Stick(key, stuck) => change_request(store, &key, |facts| {
            let stuck = stuck.map(|mut stuck| {
                stuck.since = in_seconds(stuck.since);
                stuck
            });
            facts.status.get_or_insert_default().stuck = stuck;
        }),
        PodEffect::Annotate {
            node,
            disruption,
            empty_since,
        } => store.change_node(&node, |node| {
            node.disruption = Some(disruption);
            node.empty_since = empty_since.map(in_seconds);
        }),
        PodEffect::WakeAt(_) | PodEffect::Tell { .. } => {}
    }
}

fn change_request(store: &mut Store, key: &ObjectKey, change: impl FnOnce(&mut RequestFacts)) {
    if let Some(mut facts) = store.request(key).cloned() {
        change(&mut facts);
        store.put(Object::Request(Box::new(facts)));
    }
}

fn create(
    store: &mut Store,
    now: Time,
    key: ObjectKey,
    (name, pod_uid): (String, String),
    spec: RequestSpec,
) {
    if !store.is_crd_there || store.request(&key).is_some() {
        return;
    }
    let uid = store.next_uid();
    store.put(Object::Request(Box::new(RequestFacts {
        key,
        uid,
        generation: 1,
        created: in_seconds(now),
        owner: Some(Owner {
            key: ObjectKey::namespaced(NAMESPACE, &name),
            uid: pod_uid,
        }),
        spec,
        status: Some(RequestStatus::default()),
    })));
}

impl Side {
    /// Whether a Pod runs where it is, as far as anybody can see.
    pub(super) fn is_healthy(&self, pod: &Pod) -> bool {
        let node = self.store.node(&pod.node);
        pod.is_running && !pod.is_terminating && node.is_some_and(|node| node.is_ready)
    }

    pub(super) fn healthy_of(&self, work: usize) -> u32 {
        let pods = self.store.pods().filter(|pod| pod.work == work);
        pods.filter(|pod| self.is_healthy(pod)).count() as u32
    }

    /// Carries out an eviction, unless a budget refuses.
    pub(super) fn carry_out_eviction(
        &mut self,
        now: Moment,
        eviction: &Eviction,
    ) -> EvictionOutcome {
        let Some(pod) = self.store.pod(&eviction.pod).cloned() else {
            return EvictionOutcome::Gone;
        };
        if pod.uid != eviction.uid {
            return EvictionOutcome::Gone;
        }
        let at_least = self.rules_of(pod.work).at_least;
        if self.is_healthy(&pod) && 0 < at_least && self.healthy_of(pod.work) <= at_least {
            return EvictionOutcome::Budget;
        }
        if !pod.is_terminating {
            self.evicted += 1;
            self.end_pod(now, &pod.key);
        }
        EvictionOutcome::Sent
    }
}
