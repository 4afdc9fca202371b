//! Controller: the process of the pod controller, with the real core.
//!
//! ```text
//! Pods, requests, Nodes ─▶ PodController::handle ─▶ writes on their way
//! ```

use super::{
    Out, Side, SideEvent, api,
    store::{Pod, Resource, Stored},
    streams::{Follower, News},
};
use crate::clock::Moment;
use bigfleet_operator_core::{
    ContainerFacts, LabelRule, LabelSelector, Object, ObjectKey, PeerTerm, PodConfig,
    PodController, PodEffect, PodEvent, PodFacts, ShownNode, ShownRequest,
};
use std::collections::{BTreeMap, BTreeSet};

const FOLLOWED: [Resource; 3] = [Resource::Pods, Resource::Requests, Resource::Nodes];

/// A process.
pub(crate) struct ControllerProcess {
    number: u64,
    core: PodController,
    wake: u64,
    rosters: BTreeMap<Resource, Roster>,
    is_whole: bool,
}

/// The objects of a kind, so that a new list also says which are gone.
#[derive(Default)]
struct Roster {
    known: BTreeSet<ObjectKey>,
    filling: Option<BTreeSet<ObjectKey>>,
    is_whole: bool,
}

impl Side {
    pub(super) fn start_controller(&mut self, now: Moment, out: &mut Out) {
        self.processes += 1;
        let number = self.processes;
        self.controller = Some(ControllerProcess {
            number,
            core: PodController::new(PodConfig::default()),
            wake: 0,
            rosters: FOLLOWED.map(|one| (one, Roster::default())).into(),
            is_whole: false,
        });
        for resource in FOLLOWED {
            let follower = Follower::Controller(number, resource);
            self.streams.follow(now, follower, &mut out.streams);
        }
    }

    pub(super) fn kill_controller(&mut self) {
        self.controller = None;
        self.streams
            .end(|one| matches!(one, Follower::Controller(..)));
    }

    /// Something a stream of the controller brought.
    pub(super) fn bring_controller(
        &mut self,
        now: Moment,
        number: u64,
        resource: Resource,
        news: &News,
        out: &mut Out,
    ) {
        let process = self.controller.as_mut();
        let Some(process) = process.filter(|process| process.number == number) else {
            return;
        };
        let roster = process.rosters.entry(resource).or_default();
        let mut events = Vec::new();
        match news {
            News::Began => roster.filling = Some(BTreeSet::new()),
            News::Broken => roster.filling = None,
            News::Fresh(_) => {}
            News::Whole(_) => {
                roster.is_whole = true;
                if let Some(filled) = roster.filling.take() {
                    let gone = roster.known.difference(&filled).cloned();
                    events.extend(gone.filter_map(|key| gone_event(resource, key)));
                    roster.known = filled;
                }
            }
            News::Listed(object, _) => {
                let key = key_of(object);
                roster.known.insert(key.clone());
                if let Some(filling) = &mut roster.filling {
                    filling.insert(key);
                }
                events.extend(self.seen_by_controller(object));
            }
            News::Changed(change) if change.is_gone => {
                roster.known.remove(&change.key);
                if let Some(filling) = &mut roster.filling {
                    filling.remove(&change.key);
                }
                events.extend(gone_event(resource, change.key.clone()));
            }
            News::Changed(change) => {
                roster.known.insert(change.key.clone());
                if let Some(filling) = &mut roster.filling {
                    filling.insert(change.key.clone());
                }
                events.extend(self.seen_by_controller(&change.object));
            }
        }
        if let Some(process) = &mut self.controller
            && !process.is_whole
            && process.rosters.values().all(|roster| roster.is_whole)
        {
            process.is_whole = true;
            events.push(PodEvent::Whole);
        }
        for event in events {
            self.tell_controller(now, event, out);
        }
    }

    fn seen_by_controller(&self, object: &Stored) -> Option<PodEvent> {
        Some(match object {
            Stored::Pod(pod) => PodEvent::Pod(Box::new(self.facts(pod))),
            Stored::Other(Object::Request(facts)) => PodEvent::Request(Box::new(ShownRequest {
                key: facts.key.clone(),
                pod_uid: facts.owner.as_ref()?.uid.clone(),
                created: facts.created,
                spec: facts.spec.clone(),
                has_status: facts.status.is_some(),
                stuck: facts.status.as_ref().and_then(|status| status.stuck),
                served: facts
                    .status
                    .as_ref()
                    .and_then(|status| status.served.clone()),
            })),
            Stored::Other(Object::Node(facts)) => PodEvent::Node(
                facts.name.clone(),
                Some(ShownNode {
                    disruption: facts.disruption,
                    empty_since: facts.empty_since,
                    is_unmanaged: false,
                }),
            ),
            Stored::Other(Object::Upcoming(_) | Object::Available(_)) => return None,
        })
    }

    fn tell_controller(&mut self, now: Moment, event: PodEvent, out: &mut Out) {
        let Some(process) = &mut self.controller else {
            return;
        };
        let number = process.number;
        let mut effects = Vec::new();
        process.core.handle(now.time(), event, &mut effects);
        for effect in effects {
            if let PodEffect::WakeAt(time) = effect {
                if let Some(process) = &mut self.controller {
                    process.wake += 1;
                    let at = Moment::not_before(time).max(now);
                    out.at(at, SideEvent::ControllerWake(number, process.wake));
                }
                continue;
            }
            self.writes += 1;
            let at = now.after(self.call_takes());
            out.at(at, SideEvent::PodWrite(Box::new(effect)));
        }
    }

    pub(super) fn wake_controller(&mut self, now: Moment, number: u64, wake: u64, out: &mut Out) {
        let current = self.controller.as_ref();
        if current.is_some_and(|process| (process.number, process.wake) == (number, wake)) {
            self.tell_controller(now, PodEvent::Woken, out);
        }
    }

    /// A write of the controller arrives. What fails is noticed by comparing.
    pub(super) fn pod_write_arrives(&mut self, now: Moment, effect: PodEffect, out: &mut Out) {
        if self.fate(now, out).is_done() {
            api::write_of_pods(&mut self.store, now.time(), effect);
        }
    }

    /// A Pod as its controller sees it.
    fn facts(&self, pod: &Pod) -> PodFacts {
        let work = &self.works[pod.work];
        let rules = work.profile.requirements().iter().map(|rule| LabelRule {
            key: rule.key().to_owned(),
            operator: rule.operator().word().to_owned(),
            values: rule.values().to_vec(),
        });
        let rules: Vec<LabelRule> = rules.collect();
        let labels: BTreeMap<String, String> =
            [("app".to_owned(), format!("w{}", pod.work))].into();
        let apart = self.rules_of(pod.work).are_apart.then(|| PeerTerm {
            topology_key: "kubernetes.io/hostname".to_owned(),
            selector: Some(LabelSelector {
                match_labels: labels.clone(),
                match_expressions: Vec::new(),
            }),
        });
        PodFacts {
            brief: self.brief(pod),
            labels,
            node_name: pod.node.clone(),
            is_gated: false,
            is_nominated: false,
            unschedulable: pod.unschedulable.clone(),
            containers: vec![ContainerFacts {
                requests: pod.each.texts(),
                is_sidecar: false,
            }],
            init_containers: Vec::new(),
            pod_requests: BTreeMap::new(),
            overhead: BTreeMap::new(),
            node_selector: BTreeMap::new(),
            node_terms: (!rules.is_empty()).then(|| vec![rules]),
            volume_zones: Vec::new(),
            priority: work.profile.priority(),
            priority_class: String::new(),
            affinity: Vec::new(),
            anti_affinity: apart.into_iter().collect(),
            spread: Vec::new(),
        }
    }
}

fn key_of(object: &Stored) -> ObjectKey {
    match object {
        Stored::Pod(pod) => pod.key.clone(),
        Stored::Other(Object::Request(facts)) => facts.key.clone(),
        Stored::Other(Object::Node(facts)) => ObjectKey::cluster(&facts.name),
        Stored::Other(Object::Upcoming(facts)) => ObjectKey::cluster(&facts.name),
        Stored::Other(Object::Available(facts)) => ObjectKey::cluster(&facts.name),
    }
}

fn gone_event(resource: Resource, key: ObjectKey) -> Option<PodEvent> {
    match resource {
        Resource::Pods => Some(PodEvent::PodGone(key)),
        Resource::Requests => Some(PodEvent::RequestGone(key)),
        Resource::Nodes => Some(PodEvent::Node(key.name, None)),
        Resource::Upcoming | Resource::Available => None,
    }
}
