//! Write: what the core wants written, as calls, and how they ended (OP-9, OP-28, OP-39).

use crate::notes::wall_clock_nanos;
use crate::read::upcoming::{AVAILABILITY, PHASES, READINESS, word};
use bigfleet_k8s::{Call, Cluster, OBJECT_VERSION, Refused, ResourceKind, seconds_text};
use bigfleet_model::quantity::format_short;
use bigfleet_model::{Amounts, MachineId, Requirement, Time};
use bigfleet_operator_core::{
    AvailableCapacity, DRAIN_ANNOTATION, Eviction, EvictionOutcome, MACHINE_LABEL, NodeReadiness,
    ObjectKey, Served, UpcomingNode, Write, WriteOutcome,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Whose fields these are, for server-side apply.
pub(crate) const MANAGER: &str = "bigfleet-operator";
/// The record of spares, in the operator's namespace.
pub(crate) const SPARE_RECORD: &str = "bigfleet-operator-spare";
pub(crate) const RECORD_KEY: &str = "record";

/// Writes, and says how that ended.
pub(crate) async fn write(
    cluster: &Cluster,
    namespace: &str,
    write: Write,
) -> (WriteOutcome, Option<Refused>) {
    match written(cluster, namespace, write).await {
        Ok(()) => (WriteOutcome::Done, None),
        Err(refused) => (outcome(&refused), Some(refused)),
    }
}

async fn written(cluster: &Cluster, namespace: &str, write: Write) -> Result<(), Refused> {
    if let Write::SpareRecord { text } = &write {
        return record(cluster, namespace, text).await;
    }
    for call in calls(write) {
        cluster.done(call).await?;
    }
    Ok(())
}

fn outcome(refused: &Refused) -> WriteOutcome {
    match refused {
        Refused::Said(said) => match said.code {
            404 => WriteOutcome::Gone,
            409 => WriteOutcome::Conflict,
            400 | 422 => WriteOutcome::Refused(refused.to_string()),
            429 | 503 | 504 => WriteOutcome::Throttled(said.retry_after),
            _ => WriteOutcome::Failed(refused.to_string()),
        },
        Refused::Unreachable(_) | Refused::Unreadable(_) => {
            WriteOutcome::Failed(refused.to_string())
        }
    }
}

fn request_path(key: &ObjectKey) -> String {
    let path = ResourceKind::CapacityRequest.path_in(&key.namespace);
    format!("{path}/{}/status", key.name)
}

fn node_path(name: &str) -> String {
    format!("/api/v1/nodes/{name}")
}

fn of(kind: ResourceKind, name: &str) -> String {
    format!("{}/{name}", kind.path())
}

/// The calls of a write, in order; a record of spares needs an answer in between, and has none here.
fn calls(write: Write) -> Vec<Call> {
    let call = match write {
        Write::Acknowledge {
            request,
            uid,
            at,
            has_status,
        } => acknowledge(&request, &uid, at, has_status),
        Write::Serve {
            request,
            served,
            has_status,
            ..
        } => serve(&request, &served, has_status),
        Write::CordonNode { node, uid, record } => Call::merge_patch(
            &node_path(&node),
            &json!({
                "metadata": { "uid": uid, "annotations": { DRAIN_ANNOTATION: record } },
                "spec": { "unschedulable": true },
            }),
        ),
        Write::ReleaseNode {
            node,
            uid,
            version,
            uncordon,
        } => {
            let mut body = json!({ "metadata": {
                "uid": uid, "resourceVersion": version, "annotations": { DRAIN_ANNOTATION: null },
            } });
            if uncordon {
                body["spec"] = json!({ "unschedulable": null });
            }
            Call::merge_patch(&node_path(&node), &body)
        }
        Write::LabelNode {
            node,
            uid,
            key,
            value,
        } => Call::merge_patch(
            &node_path(&node),
            &json!({ "metadata": { "uid": uid, "labels": { key: value } } }),
        ),
        Write::DeleteNode { node, uid } => Call::delete(&node_path(&node), Some(&uid)),
        Write::ApplyUpcoming {
            name,
            machine,
            content,
        } => return upcoming(&name, &machine, &content).to_vec(),
        Write::DeleteUpcoming { name } => {
            Call::delete(&of(ResourceKind::UpcomingNode, &name), None)
        }
        Write::ApplyAvailable { name, content } => available(&name, &content),
        Write::DeleteAvailable { name } => {
            Call::delete(&of(ResourceKind::AvailableCapacity, &name), None)
        }
        Write::SpareRecord { .. } => return Vec::new(),
    };
    vec![call]
}

/// OP-28: a uid in a merge patch on a status is ignored, so it is tested.
fn acknowledge(request: &ObjectKey, uid: &str, at: Time, has_status: bool) -> Call {
    let at = seconds_text(at.nanos());
    let test = json!({ "op": "test", "path": "/metadata/uid", "value": uid });
    let adds = if has_status {
        json!([
            test,
            { "op": "add", "path": "/status/phase", "value": "Acknowledged" },
            { "op": "add", "path": "/status/acknowledgedAt", "value": at },
        ])
    } else {
        let status = json!({ "phase": "Acknowledged", "acknowledgedAt": at });
        json!([test, { "op": "add", "path": "/status", "value": status }])
    };
    Call::json_patch(&request_path(request), &adds)
}

/// The condition alone: it is a list by type, so nobody else's is touched.
fn serve(request: &ObjectKey, served: &Served, has_status: bool) -> Call {
    let status = if served.is_served { "True" } else { "False" };
    let condition = json!({
        "type": "Served", "status": status, "reason": served.reason, "message": served.message,
        "lastTransitionTime": seconds_text(wall_clock_nanos()),
    });
    let mut body = json!({
        "apiVersion": OBJECT_VERSION, "kind": ResourceKind::CapacityRequest.name(),
        "metadata": { "name": request.name, "namespace": request.namespace },
        "status": { "conditions": [condition] },
    });
    if !has_status {
        body["status"]["phase"] = json!("Pending");
    }
    Call::apply(&request_path(request), MANAGER, &body)
}

fn texts(amounts: &Amounts) -> BTreeMap<String, String> {
    let text = |(name, milli): (&_, i128)| (ToString::to_string(name), format_short(milli));
    amounts.iter().map(text).collect()
}

/// The object, then its status.
fn upcoming(name: &str, machine: &MachineId, content: &UpcomingNode) -> [Call; 2] {
    let path = of(ResourceKind::UpcomingNode, name);
    let taint = |taint: &bigfleet_operator_core::Taint| json!({ "key": taint.key, "value": taint.value, "effect": taint.effect });
    let taints: Vec<Value> = content.taints.iter().map(taint).collect();
    let head = json!({ "apiVersion": OBJECT_VERSION, "kind": ResourceKind::UpcomingNode.name() });
    let (mut object, mut status) = (head.clone(), head);
    object["metadata"] =
        json!({ "name": name, "annotations": { MACHINE_LABEL: machine.as_str() } });
    object["spec"] = json!({
        "resources": texts(&content.resources), "labels": content.labels, "taints": taints,
    });
    status["metadata"] = json!({ "name": name });
    status["status"] = upcoming_status(content);
    [
        Call::apply(&path, MANAGER, &object),
        Call::apply(&format!("{path}/status"), MANAGER, &status),
    ]
}

fn upcoming_status(content: &UpcomingNode) -> Value {
    let mut status = json!({ "phase": word(&PHASES, content.phase) });
    if !content.node_name.is_empty() {
        status["nodeRef"] = json!({ "kind": "Node", "name": content.node_name });
    }
    if !content.provider_id.is_empty() {
        status["providerID"] = json!(content.provider_id);
    }
    if let Some(started) = content.started {
        status["provisioningStartTime"] = json!(seconds_text(started.nanos()));
    }
    if !content.last_error.is_empty() {
        status["lastError"] = json!(content.last_error);
    }
    if let Some(readiness) = content.readiness {
        let is_ready = readiness == NodeReadiness::Ready;
        let holds = if is_ready { "True" } else { "False" };
        status["conditions"] = json!([{
            "type": "NodeReady", "status": holds, "reason": word(&READINESS, readiness), "message": "",
        }]);
    }
    status
}

fn available(name: &str, content: &AvailableCapacity) -> Call {
    let requirement = |it: &Requirement| json!({ "key": it.key(), "operator": it.operator().word(), "values": it.values() });
    let requirements: Vec<Value> = content.requirements.iter().map(requirement).collect();
    let body = json!({
        "apiVersion": OBJECT_VERSION, "kind": ResourceKind::AvailableCapacity.name(),
        "metadata": { "name": name },
        "spec": {
            "requirements": requirements,
            "resources": texts(&content.resources),
            "availableCount": content.count.min(i32::MAX as u32),
            "availability": word(&AVAILABILITY, content.availability),
            "cost": content.cost,
        },
    });
    Call::apply(&of(ResourceKind::AvailableCapacity, name), MANAGER, &body)
}

/// The record of spares: replaced where it is, made where it is not.
async fn record(cluster: &Cluster, namespace: &str, text: &str) -> Result<(), Refused> {
    let folder = format!("/api/v1/namespaces/{namespace}/configmaps");
    let body = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": SPARE_RECORD, "namespace": namespace },
        "data": { RECORD_KEY: text },
    });
    let path = format!("{folder}/{SPARE_RECORD}");
    match cluster.done(Call::replace(&path, &body)).await {
        Err(refused) if refused.code() == Some(404) => {
            cluster.done(Call::create(&folder, &body)).await
        }
        done => done,
    }
}

/// Evicts a Pod, by its uid.
pub(crate) async fn evict(
    cluster: &Cluster,
    eviction: &Eviction,
) -> (EvictionOutcome, Option<Refused>) {
    let ObjectKey { namespace, name } = &eviction.pod;
    let mut options = json!({ "preconditions": { "uid": eviction.uid } });
    if let Some(seconds) = eviction.grace_seconds {
        options["gracePeriodSeconds"] = json!(seconds);
    }
    let body = json!({
        "apiVersion": "policy/v1", "kind": "Eviction",
        "metadata": { "name": name, "namespace": namespace },
        "deleteOptions": options,
    });
    let path = format!("/api/v1/namespaces/{namespace}/pods/{name}/eviction");
    match cluster.done(Call::create(&path, &body)).await {
        Ok(()) => (EvictionOutcome::Sent, None),
        Err(refused) => (eviction_outcome(&refused), Some(refused)),
    }
}

fn eviction_outcome(refused: &Refused) -> EvictionOutcome {
    let Refused::Said(said) = refused else {
        return EvictionOutcome::Failed(refused.to_string());
    };
    let is_two_budgets = said.code == 500 && said.message.contains("PodDisruptionBudget");
    match said.code {
        404 | 409 => EvictionOutcome::Gone,
        _ if refused.has_cause("DisruptionBudget") || is_two_budgets => EvictionOutcome::Budget,
        429 | 503 | 504 => EvictionOutcome::Throttled(said.retry_after),
        _ => EvictionOutcome::Failed(refused.to_string()),
    }
}
