//! Write: what the pod controller wants written, as calls, no faster than asked.

use crate::health::Health;
use crate::lease::Hold;
use crate::notes::{create, wall_clock_nanos};
use crate::read::node::{DISRUPTION, EMPTY_SINCE};
use crate::read::request::POD_LABEL;
use bigfleet_k8s::{
    Call, CapacityRequestSpec, Cluster, LabelExpression, LabelSelector, OBJECT_VERSION, Peers,
    Quantity, Refused, Requirement, ResourceKind, TopologySpread, seconds_text,
};
use bigfleet_operator_core::{
    LabelRule, ObjectKey, PeerTerm, PodEffect, RequestSpec, Served, Stuck, StuckReason,
};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::Instant;

const MANAGER: &str = "bigfleet-pod-controller";
const AT_ONCE: usize = 16;
/// Writes that wait; more are made again by comparing, ten seconds later.
const WAITING: usize = 16_384;

/// Writes in the background, in order, a few at once.
#[derive(Debug)]
pub(super) struct Pen(mpsc::Sender<PodEffect>);

impl Pen {
    pub(super) fn new(cluster: Cluster, qps: u32, burst: u32, hold: Hold, health: Health) -> Self {
        let (effects, mut waiting) = mpsc::channel(WAITING);
        tokio::spawn(async move {
            let places = Arc::new(Semaphore::new(AT_ONCE));
            let pace = Pace::new(qps, burst);
            while let Some(effect) = waiting.recv().await {
                pace.wait().await;
                let Ok(place) = Arc::clone(&places).acquire_owned().await else {
                    return;
                };
                if !hold.is_held() {
                    continue; // another process leads
                }
                let (cluster, health, pace) = (cluster.clone(), health.clone(), pace.clone());
                tokio::spawn(async move {
                    let written = write(&cluster, effect).await;
                    health.answered("write", written.as_ref().err());
                    if let Err(refused) = written {
                        pace.rest(&refused);
                    }
                    drop(place);
                });
            }
        });
        Self(effects)
    }

    /// Puts it in line. What is lost is noticed by comparing.
    pub(super) fn write(&self, effect: PodEffect) {
        drop(self.0.try_send(effect));
    }
}

/// A bucket of tokens, and rests the API server asks for.
#[derive(Clone, Debug)]
struct Pace {
    between: Duration,
    burst: u32,
    next: Arc<Mutex<Instant>>,
}

impl Pace {
    fn new(qps: u32, burst: u32) -> Self {
        Self {
            between: Duration::from_secs(1) / qps.max(1),
            burst: burst.max(1),
            next: Arc::new(Mutex::new(Instant::now())),
        }
    }

    async fn wait(&self) {
        let until = {
            let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
            let credit = self.between * (self.burst - 1);
            let now = Instant::now();
            let earliest = now.checked_sub(credit).unwrap_or(now);
            *next = (*next).max(earliest) + self.between;
            *next - self.between
        };
        tokio::time::sleep_until(until).await;
    }

    /// OP-9: nothing leaves until the server has had its rest.
    fn rest(&self, refused: &Refused) {
        if let Refused::Said(said) = refused
            && [429, 503, 504].contains(&said.code)
        {
            let rest = said.retry_after.unwrap_or(Duration::from_secs(1));
            let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
            *next = (*next).max(Instant::now() + rest);
        }
    }
}

fn path(key: &ObjectKey) -> String {
    let folder = ResourceKind::CapacityRequest.path_in(&key.namespace);
    format!("{folder}/{}", key.name)
}

async fn write(cluster: &Cluster, effect: PodEffect) -> Result<(), Refused> {
    let is_there = |refused: &Refused| refused.code() == Some(409);
    let is_gone = |refused: &Refused| refused.code() == Some(404);
    let written = match effect {
        PodEffect::WakeAt(_) => Ok(()),
        PodEffect::Create { key, pod, spec } => {
            let folder = ResourceKind::CapacityRequest.path_in(&key.namespace);
            let call = Call::create(&folder, &request(&key, &pod, &spec));
            match cluster.done(call).await {
                Err(refused) if is_there(&refused) => Ok(()),
                Err(refused) => Err(refused),
                Ok(()) => cluster.done(pend(&key)).await,
            }
        }
        PodEffect::Pend(key) => cluster.done(pend(&key)).await,
        PodEffect::Patch(key, spec) => {
            let value = json!(wire_spec(&spec));
            let replace = json!([{ "op": "replace", "path": "/spec", "value": value }]);
            cluster.done(Call::json_patch(&path(&key), &replace)).await
        }
        PodEffect::Delete(key) => cluster.done(Call::delete(&path(&key), None)).await,
        PodEffect::Stick(key, stuck) => cluster.done(stick(&key, stuck)).await,
        PodEffect::Tell { pod, uid, served } => cluster.done(tell(&pod, &uid, &served)).await,
        PodEffect::Annotate {
            node,
            disruption,
            empty_since,
        } => {
            let since = empty_since.map(|since| seconds_text(since.nanos()));
            let notes = json!({ DISRUPTION: disruption.to_string(), EMPTY_SINCE: since });
            let body = json!({ "metadata": { "annotations": notes } });
            cluster
                .done(Call::merge_patch(&format!("/api/v1/nodes/{node}"), &body))
                .await
        }
    };
    match written {
        Err(refused) if is_gone(&refused) => Ok(()), // what is gone needs no word
        Err(refused) => {
            tracing::warn!(%refused, "a write was refused");
            Err(refused)
        }
        Ok(()) => Ok(()),
    }
}

fn pend(key: &ObjectKey) -> Call {
    let body = json!({ "status": { "phase": "Pending" } });
    Call::merge_patch(&format!("{}/status", path(key)), &body)
}

/// The condition alone: it is a list by type, so nobody else's is touched.
fn stick(key: &ObjectKey, stuck: Option<Stuck>) -> Call {
    let condition = match stuck {
        Some(stuck) => json!({
            "type": "Stuck", "status": "True", "message": "the scheduler finds no Node for the Pod",
            "reason": match stuck.reason {
                StuckReason::Insufficient => "Insufficient",
                StuckReason::Alone => "Alone",
                StuckReason::Other => "Other",
            },
            "lastTransitionTime": seconds_text(stuck.since.nanos()),
        }),
        None => json!({ "type": "Stuck", "status": "False", "reason": "Scheduled", "message": "" }),
    };
    let body = json!({
        "apiVersion": OBJECT_VERSION, "kind": ResourceKind::CapacityRequest.name(),
        "metadata": { "name": key.name, "namespace": key.namespace },
        "status": { "conditions": [condition] },
    });
    Call::apply(&format!("{}/status", path(key)), MANAGER, &body)
}

/// An Event on the Pod, in the words of its request.
fn tell(pod: &ObjectKey, uid: &str, served: &Served) -> Call {
    let about = json!({
        "apiVersion": "v1", "kind": "Pod", "namespace": pod.namespace, "name": pod.name, "uid": uid,
    });
    let nanos = wall_clock_nanos();
    let message = if served.is_served {
        "the Pod no longer waits for a machine"
    } else {
        &served.message
    };
    let name = format!("{}.{nanos:x}", pod.name);
    let words = (served.reason.as_str(), message);
    create(&pod.namespace, &name, &about, words, MANAGER, nanos)
}

fn request(key: &ObjectKey, (pod, uid): &(String, String), spec: &RequestSpec) -> Value {
    json!({
        "apiVersion": OBJECT_VERSION, "kind": ResourceKind::CapacityRequest.name(),
        "metadata": {
            "name": key.name, "namespace": key.namespace,
            "labels": { POD_LABEL: uid },
            "ownerReferences": [{
                "apiVersion": "v1", "kind": "Pod", "name": pod, "uid": uid, "controller": true,
            }],
        },
        "spec": wire_spec(spec),
    })
}

fn wire_spec(spec: &RequestSpec) -> CapacityRequestSpec {
    let requirement = |rule: &LabelRule| Requirement {
        key: rule.key.clone(),
        operator: rule.operator.clone(),
        values: rule.values.clone(),
    };
    let spread = |rule: &bigfleet_operator_core::SpreadRule| TopologySpread {
        topology_key: rule.topology_key.clone(),
        max_skew: rule.max_skew,
        when_unsatisfiable: rule.when_unsatisfiable.clone(),
    };
    let amounts = spec.resources.iter();
    let quantity = |text: &String| Quantity(text.clone());
    CapacityRequestSpec {
        requirements: spec.requirements.iter().map(requirement).collect(),
        resources: amounts
            .map(|(name, text)| (name.clone(), quantity(text)))
            .collect(),
        priority: spec.priority,
        topology_spread: spec.topology_spread.iter().map(spread).collect(),
        co_location: spec.co_location.as_ref().map(peers),
        anti_affinity: spec.anti_affinity.iter().map(peers).collect(),
        interruption_penalty: spec.interruption_penalty.as_ref().map(quantity),
        reclamation_penalty: spec.reclamation_penalty.as_ref().map(quantity),
    }
}

fn peers(term: &PeerTerm) -> Peers {
    let expression = |rule: &LabelRule| LabelExpression {
        key: rule.key.clone(),
        operator: rule.operator.clone(),
        values: rule.values.clone(),
    };
    let selector = |from: &bigfleet_operator_core::LabelSelector| LabelSelector {
        match_labels: from.match_labels.clone(),
        match_expressions: from.match_expressions.iter().map(expression).collect(),
    };
    Peers {
        topology_key: term.topology_key.clone(),
        label_selector: term.selector.as_ref().map(selector),
    }
}
