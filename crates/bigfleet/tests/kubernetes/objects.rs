//! What is applied to a cluster.

use serde_json::{Value, json};

pub(crate) const ZONE: &str = "topology.kubernetes.io/zone";

pub(crate) fn deployment(name: &str, replicas: u32, cpu: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": name },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": { "app": name } },
            "template": {
                "metadata": { "labels": { "app": name } },
                "spec": { "containers": [{
                    "name": "c", "image": "none", "resources": { "requests": { "cpu": cpu, "memory": "64Mi" } },
                }] },
            },
        },
    })
}

/// One Pod that no machine here could hold.
pub(crate) fn on_nvme(name: &str) -> Value {
    let mut nvme = deployment(name, 1, "250m");
    nvme["spec"]["template"]["spec"]["nodeSelector"] = json!({ "disk": "nvme" });
    nvme
}

/// So many Pods of a Deployment may be missing at once.
pub(crate) fn budget(name: &str, unavailable: u32) -> Value {
    json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": { "name": name },
        "spec": { "maxUnavailable": unavailable, "selector": { "matchLabels": { "app": name } } },
    })
}

/// The same, two domains of a zone never more than one apart.
pub(crate) fn spread(name: &str, replicas: u32, cpu: &str) -> Value {
    let mut spread = deployment(name, replicas, cpu);
    spread["spec"]["template"]["spec"]["topologySpreadConstraints"] = json!([{
        "topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": { "matchLabels": { "app": name } },
    }]);
    spread
}

/// The same, all in one zone.
pub(crate) fn gang(name: &str, replicas: u32, cpu: &str) -> Value {
    let mut gang = deployment(name, replicas, cpu);
    gang["spec"]["template"]["spec"]["affinity"] = json!({ "podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [{
            "topologyKey": ZONE, "labelSelector": { "matchLabels": { "app": name } },
        }],
    } });
    gang
}

/// The same, more important than others by so much.
pub(crate) fn important(name: &str, replicas: u32, cpu: &str, class: &str) -> Value {
    let mut important = deployment(name, replicas, cpu);
    important["spec"]["template"]["spec"]["priorityClassName"] = class.into();
    important
}

pub(crate) fn priority_class(name: &str, value: i32) -> Value {
    json!({ "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": { "name": name }, "value": value })
}
