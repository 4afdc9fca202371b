//! Roles: what each process may do, and nothing else: the list of docs/tour-kubernetes.md.

use crate::scene::Scene;
use serde_json::{Value, json};

pub(crate) const NOBODY: &str = "nobody-in-particular";
pub(crate) const READER: &str = "reader-of-pods";
pub(crate) const OPERATOR: &str = "bigfleet-operator";
pub(crate) const POD_CONTROLLER: &str = "bigfleet-pod-controller";

const OURS: &str = "bigfleet.lucy.sh";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> Value {
    json!({ "apiGroups": [group], "resources": resources, "verbs": verbs })
}

fn of_operator() -> Value {
    let words = [
        "upcomingnodes",
        "upcomingnodes/status",
        "availablecapacities",
        "availablecapacities/status",
    ];
    json!([
        rule(OURS, &["capacityrequests"], &["get", "list", "watch"]),
        rule(OURS, &["capacityrequests/status"], &["patch"]),
        rule(
            OURS,
            &words,
            &["get", "list", "watch", "create", "patch", "delete"]
        ),
        rule("", &["nodes"], &["get", "list", "watch", "patch", "delete"]),
        rule("", &["pods"], &["get", "list", "watch"]),
        rule("", &["pods/eviction"], &["create"]),
        rule("", &["events"], &["create"]),
        rule(
            "apiextensions.k8s.io",
            &["customresourcedefinitions"],
            &["get"]
        ),
        rule("apps", &["daemonsets"], &["list", "watch"]),
    ])
}

fn of_operator_at_home() -> Value {
    json!([
        rule(
            "coordination.k8s.io",
            &["leases"],
            &["create", "get", "update"]
        ),
        rule("", &["configmaps"], &["create", "get", "update"]),
    ])
}

fn of_pod_controller() -> Value {
    let read = [
        "pods",
        "nodes",
        "persistentvolumeclaims",
        "persistentvolumes",
    ];
    let all = ["get", "list", "watch", "create", "patch", "delete"];
    json!([
        rule("", &read, &["get", "list", "watch"]),
        rule("", &["nodes"], &["patch"]),
        rule("", &["events"], &["create"]),
        rule(OURS, &["capacityrequests"], &all),
        rule(OURS, &["capacityrequests/status"], &["patch"]),
    ])
}

fn of_reader() -> Value {
    json!([rule("", &["pods"], &["get"])])
}

/// Gives each its role.
pub(crate) async fn give(scene: &Scene) {
    let roles = [
        (OPERATOR, "ClusterRole", of_operator()),
        (OPERATOR, "Role", of_operator_at_home()),
        (POD_CONTROLLER, "ClusterRole", of_pod_controller()),
        (POD_CONTROLLER, "Role", of_operator_at_home()),
        (READER, "Role", of_reader()),
    ];
    for (user, kind, rules) in roles {
        let folder = |kind: &str| match kind {
            "ClusterRole" => format!("{RBAC}/clusterroles"),
            "ClusterRoleBinding" => format!("{RBAC}/clusterrolebindings"),
            "Role" => format!("{RBAC}/namespaces/default/roles"),
            _ => format!("{RBAC}/namespaces/default/rolebindings"),
        };
        let version = "rbac.authorization.k8s.io/v1";
        let role = json!({ "apiVersion": version, "kind": kind, "metadata": { "name": user }, "rules": rules });
        scene.create(&folder(kind), &role).await;
        let binding = format!("{kind}Binding");
        let bound = json!({
            "apiVersion": version, "kind": binding, "metadata": { "name": user },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": user },
            "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user }],
        });
        scene.create(&folder(&binding), &bound).await;
    }
}
