//! CRDs: what is installed in a cluster.
//!
//! ```text
//! about a kind: names, columns, schema of spec and status ─▶ CustomResourceDefinition ─▶ `bigfleet crds`
//! ```

use crate::resources::{GROUP, ResourceKind};
use crate::schema::{
    atomic, by_type, list, map, may, moment, must, number, object, quantity, text, with, word,
};
use serde_json::{Value, json};

/// The three, as objects to apply.
pub fn crds() -> Vec<Value> {
    ResourceKind::ALL.map(crd).to_vec()
}

/// The three, as `kubectl apply -f -` reads them.
pub fn crds_yaml() -> String {
    let document = |crd: Value| {
        // An object made of texts, lists and numbers is always YAML.
        let text = serde_norway::to_string(&crd).unwrap_or_default();
        format!("---\n{text}")
    };
    crds().into_iter().map(document).collect()
}

fn crd(kind: ResourceKind) -> Value {
    let about = About::of(kind);
    let mut version = json!({
        "name": "v1alpha1",
        "served": true,
        "storage": true,
        "subresources": { "status": {} },
        "additionalPrinterColumns": about.columns,
        "schema": { "openAPIV3Schema": {
            "type": "object",
            "description": about.description,
            "required": ["spec"],
            "properties": {
                "apiVersion": { "type": "string" },
                "kind": { "type": "string" },
                "metadata": { "type": "object" },
                "spec": about.spec,
                "status": about.status,
            },
        } },
    });
    if kind == ResourceKind::CapacityRequest {
        version["selectableFields"] = json!([{ "jsonPath": ".status.phase" }]);
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{}.{GROUP}", kind.plural()) },
        "spec": {
            "group": GROUP,
            "scope": about.scope,
            "names": {
                "kind": kind.name(),
                "listKind": format!("{}List", kind.name()),
                "plural": kind.plural(),
                "singular": kind.name().to_lowercase(),
                "shortNames": about.short_names,
                "categories": ["fleet"],
            },
            "versions": [version],
        },
    })
}

struct About {
    description: &'static str,
    scope: &'static str,
    short_names: &'static [&'static str],
    columns: Value,
    spec: Value,
    status: Value,
}

impl About {
    fn of(kind: ResourceKind) -> Self {
        let column = |name: &str, of: &str, path: &str| json!({ "name": name, "type": of, "jsonPath": path });
        let age = || column("Age", "date", ".metadata.creationTimestamp");
        match kind {
            ResourceKind::CapacityRequest => Self {
                description: "What one Pod needs of a machine.",
                scope: "Namespaced",
                short_names: &["cr", "crs"],
                columns: json!([
                    column("Phase", "string", ".status.phase"),
                    column("Priority", "integer", ".spec.priority"),
                    age(),
                    column(
                        "Served",
                        "string",
                        ".status.conditions[?(@.type==\"Served\")].reason"
                    ),
                ]),
                spec: request_spec(),
                status: request_status(),
            },
            ResourceKind::UpcomingNode => Self {
                description: "A machine on its way to being a Node, or away from it.",
                scope: "Cluster",
                short_names: &["upn"],
                columns: json!([
                    column("Phase", "string", ".status.phase"),
                    column("Node", "string", ".status.nodeRef.name"),
                    age(),
                ]),
                spec: upcoming_spec(),
                status: upcoming_status(),
            },
            ResourceKind::AvailableCapacity => Self {
                description: "How much more could be had of something; a hint, never a promise.",
                scope: "Cluster",
                short_names: &["avc"],
                columns: json!([
                    column("Availability", "string", ".spec.availability"),
                    column("Available", "integer", ".spec.availableCount"),
                    column("Cost", "string", ".spec.cost"),
                ]),
                spec: available_spec(),
                status: object([]),
            },
        }
    }
}

fn requirements() -> Value {
    let values = with(atomic(text()), "maxItems", 4096);
    let requirement = object([
        must("key", "The label.", text()),
        must(
            "operator",
            "In, NotIn, Exists or DoesNotExist; anything else is read as Exists.",
            text(),
        ),
        may("values", "The values, for In and NotIn.", values),
    ]);
    with(list(requirement), "maxItems", 256)
}

fn resources() -> Value {
    with(map(quantity()), "maxProperties", 64)
}

/// Peers, and the domain in which they count.
fn peers() -> Value {
    let expression = object([
        must("key", "The label.", text()),
        must("operator", "In, NotIn, Exists or DoesNotExist.", text()),
        may("values", "The values, for In and NotIn.", atomic(text())),
    ]);
    let selector = object([
        may(
            "matchLabels",
            "Labels that must have these values.",
            map(text()),
        ),
        may(
            "matchExpressions",
            "Further conditions.",
            atomic(expression),
        ),
    ]);
    object([
        must(
            "topologyKey",
            "The label whose values are the domains.",
            text(),
        ),
        may(
            "labelSelector",
            "The peers.",
            with(selector, "x-kubernetes-map-type", "atomic"),
        ),
    ])
}

fn request_spec() -> Value {
    let spread = object([
        must(
            "topologyKey",
            "The label whose values are the domains.",
            text(),
        ),
        must("maxSkew", "How much two domains may differ.", number()),
        must(
            "whenUnsatisfiable",
            "DoNotSchedule or ScheduleAnyway.",
            text(),
        ),
    ]);
    object([
        may(
            "requirements",
            "Conditions on the machine; all of them hold.",
            requirements(),
        ),
        must(
            "resources",
            "One Pod's request, not the shape of a machine.",
            resources(),
        ),
        must(
            "priority",
            "The value of its PriorityClass; higher is served first.",
            number(),
        ),
        may(
            "topologySpread",
            "How its peers are to be spread.",
            with(list(spread), "maxItems", 64),
        ),
        may(
            "coLocation",
            "Peers that must be in the same domain.",
            peers(),
        ),
        may(
            "antiAffinity",
            "Peers that must not be in the same domain.",
            with(list(peers()), "maxItems", 16),
        ),
        may(
            "interruptionPenalty",
            "What it costs to interrupt it, in dollars.",
            quantity(),
        ),
        may(
            "reclamationPenalty",
            "What it costs to take its machine away, in dollars.",
            quantity(),
        ),
    ])
}

fn conditions() -> Value {
    by_type(object([
        must("type", "What.", text()),
        must("status", "True, False or Unknown.", text()),
        may("reason", "Why, in one word.", text()),
        may("message", "Why, in one sentence.", text()),
        may("lastTransitionTime", "Since when.", moment()),
    ]))
}

fn request_status() -> Value {
    object([
        must(
            "phase",
            "Pending, then Acknowledged once the shard has it.",
            word(&["Pending", "Acknowledged"]),
        ),
        may("acknowledgedAt", "When it was acknowledged.", moment()),
        may(
            "conditions",
            "Stuck: the scheduler finds no Node for the Pod. Served: what BigFleet does about it.",
            conditions(),
        ),
    ])
}

fn upcoming_spec() -> Value {
    let taint = object([
        must("key", "Its key.", text()),
        may("value", "Its value.", text()),
        must(
            "effect",
            "NoSchedule, PreferNoSchedule or NoExecute.",
            text(),
        ),
        may("timeAdded", "When it was added.", moment()),
    ]);
    object([
        must("resources", "What Pods may ask of it.", resources()),
        may("labels", "Labels the Node will carry.", map(text())),
        may("taints", "Taints the Node will carry.", list(taint)),
    ])
}

fn upcoming_status() -> Value {
    let phases = [
        "Provisioning",
        "Launched",
        "Registered",
        "Ready",
        "Draining",
        "Drained",
        "Failed",
    ];
    let node = object([
        may("apiVersion", "The version of the API.", text()),
        may("fieldPath", "A part of the object.", text()),
        may("kind", "Node.", text()),
        may("name", "Its name.", text()),
        may("namespace", "Its namespace; a Node has none.", text()),
        may("resourceVersion", "Its version.", text()),
        may("uid", "Which one of that name.", text()),
    ]);
    object([
        must("phase", "Where it stands.", word(&phases)),
        may(
            "nodeRef",
            "The Node, once it is known.",
            with(node, "x-kubernetes-map-type", "atomic"),
        ),
        may("providerID", "The cloud's name for it.", text()),
        may(
            "provisioningStartTime",
            "When the operator first heard of it.",
            moment(),
        ),
        may("lastError", "Why it failed.", text()),
        may(
            "conditions",
            "NodeReady: whether its Node is there and ready.",
            conditions(),
        ),
    ])
}

fn available_spec() -> Value {
    let words = ["None", "Low", "Medium", "High"];
    object([
        may("requirements", "Conditions on the machine.", requirements()),
        must("resources", "What one machine offers.", resources()),
        must("availableCount", "How many machines.", number()),
        must("availability", "How sure that is.", word(&words)),
        must("cost", "Dollars per hour.", quantity()),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::*;

    fn of(kind: ResourceKind) -> Value {
        let mut crd = crd(kind);
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"].take()
    }

    fn required(schema: &Value) -> Vec<&str> {
        let names = schema["required"].as_array().into_iter().flatten();
        names.filter_map(Value::as_str).collect()
    }

    #[test]
    fn what_must_be_there_is_what_the_contract_says() {
        let request = of(ResourceKind::CapacityRequest);
        assert_eq!(required(&request["spec"]), ["resources", "priority"]);
        assert_eq!(required(&request["status"]), ["phase"]);
        let spec = &request["spec"]["properties"];
        assert_eq!(required(&spec["coLocation"]), ["topologyKey"]);
        assert_eq!(
            required(&spec["requirements"]["items"]),
            ["key", "operator"]
        );
        assert_eq!(
            required(&of(ResourceKind::UpcomingNode)["spec"]),
            ["resources"]
        );
        let available = of(ResourceKind::AvailableCapacity);
        let needed = ["resources", "availableCount", "availability", "cost"];
        assert_eq!(required(&available["spec"]), needed);
    }

    #[test]
    fn bounds_and_kinds_of_lists_are_there() {
        let request = of(ResourceKind::CapacityRequest);
        let spec = &request["spec"]["properties"];
        assert_eq!(spec["requirements"]["maxItems"], 256);
        assert_eq!(
            spec["requirements"]["items"]["properties"]["values"]["maxItems"],
            4096
        );
        assert_eq!(spec["topologySpread"]["maxItems"], 64);
        assert_eq!(spec["antiAffinity"]["maxItems"], 16);
        assert_eq!(spec["resources"]["maxProperties"], 64);
        let quantity = &spec["resources"]["additionalProperties"];
        assert_eq!(quantity["x-kubernetes-int-or-string"], true);
        assert_eq!(
            quantity["anyOf"],
            json!([{ "type": "integer" }, { "type": "string" }])
        );
        let selector = &spec["coLocation"]["properties"]["labelSelector"];
        assert_eq!(selector["x-kubernetes-map-type"], "atomic");
        let conditions = &request["status"]["properties"]["conditions"];
        assert_eq!(conditions["x-kubernetes-list-map-keys"], json!(["type"]));
        assert_eq!(
            request["spec"]["properties"]["requirements"]["items"]["properties"]["operator"]["enum"],
            Value::Null,
            "a foreign producer writes Gt"
        );
    }

    /// Every field of a value is in the schema, and every field of the schema is in the value.
    fn same_fields(at: &str, value: &Value, schema: &Value) {
        if let (Value::Object(fields), Some(properties)) = (value, schema["properties"].as_object())
        {
            let (mut one, mut other): (Vec<_>, Vec<_>) =
                (fields.keys().collect(), properties.keys().collect());
            one.sort();
            other.sort();
            assert_eq!(one, other, "{at}");
            for (name, value) in fields {
                same_fields(&format!("{at}.{name}"), value, &properties[name]);
            }
        }
        if let Value::Array(items) = value {
            items
                .iter()
                .for_each(|item| same_fields(at, item, &schema["items"]));
        }
    }

    #[test]
    fn types_and_schemas_have_the_same_fields() {
        let selector = LabelSelector {
            match_labels: [("a".to_owned(), "b".to_owned())].into(),
            match_expressions: vec![LabelExpression {
                values: vec![String::new()],
                ..LabelExpression::default()
            }],
        };
        let peers = Peers {
            topology_key: "t".to_owned(),
            label_selector: Some(selector),
        };
        let requirement = Requirement {
            values: vec![String::new()],
            ..Requirement::default()
        };
        let spec = CapacityRequestSpec {
            requirements: vec![requirement.clone()],
            topology_spread: vec![TopologySpread::default()],
            co_location: Some(peers.clone()),
            anti_affinity: vec![peers],
            interruption_penalty: Some(Quantity::default()),
            reclamation_penalty: Some(Quantity::default()),
            ..CapacityRequestSpec::default()
        };
        let condition = Condition {
            last_transition_time: Some(String::new()),
            ..Condition::default()
        };
        let status = CapacityRequestStatus {
            acknowledged_at: Some(String::new()),
            conditions: vec![condition.clone()],
            ..CapacityRequestStatus::default()
        };
        let taint = Taint {
            value: "v".to_owned(),
            time_added: Some(String::new()),
            ..Taint::default()
        };
        let upcoming = UpcomingNodeSpec {
            labels: [("a".to_owned(), "b".to_owned())].into(),
            taints: vec![taint],
            ..UpcomingNodeSpec::default()
        };
        let text = || "x".to_owned();
        let node = NodeReference {
            api_version: text(),
            field_path: text(),
            kind: text(),
            name: text(),
            namespace: text(),
            resource_version: text(),
            uid: text(),
        };
        let upcoming_status_value = UpcomingNodeStatus {
            phase: text(),
            node_ref: Some(node),
            provider_id: text(),
            provisioning_start_time: Some(text()),
            last_error: text(),
            conditions: vec![condition],
        };
        let available = AvailableCapacitySpec {
            requirements: vec![requirement],
            ..AvailableCapacitySpec::default()
        };
        same_fields("CapacityRequest.spec", &json!(spec), &request_spec());
        same_fields("CapacityRequest.status", &json!(status), &request_status());
        same_fields("UpcomingNode.spec", &json!(upcoming), &upcoming_spec());
        same_fields(
            "UpcomingNode.status",
            &json!(upcoming_status_value),
            &upcoming_status(),
        );
        same_fields(
            "AvailableCapacity.spec",
            &json!(available),
            &available_spec(),
        );
    }

    #[test]
    fn three_documents_are_printed() {
        let text = crds_yaml();
        assert_eq!(
            text.matches("\nkind: CustomResourceDefinition\n").count(),
            3
        );
        assert_eq!(text.matches("---\n").count(), 3);
    }
}
