//! `bigfleet get`: every kind in every form.

use serde_json::Value;

use crate::called::{cells, starred};
use crate::scene::Scene;

const KINDS: [&str; 6] = [
    "clusters",
    "needs",
    "machines",
    "actions",
    "shortfalls",
    "pauses",
];

/// Columns and keys whose values are never the same twice.
const VARIES: &[&str] = &[
    // columns
    "REPORTED",
    "LAST-HEARD",
    "AGE",
    "AGO",
    "CYCLE",
    "FOR",
    "SEQUENCE",
    "OPERATION",
    "SINCE",
    "ENDS-IN",
    "BY",
    "WHY",
    "WITHHELD",
    // keys
    "computed_at",
    "cycle",
    "started",
    "last_frame",
    "accepted",
    "timestamp",
    "arrival",
    "state_since",
    "seen_at",
    "lacking_since",
    "answered_at",
    "since",
    "why",
    "provider",
    "sequence",
    "time",
    "decided_cycle",
    "operation",
    "expires",
    "requested_by",
    "outbox_frames",
    "withheld_total",
];

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_in_every_form() {
    let scene = Scene::new("verbs-lists").await;
    let paused = ["pause", "--cluster=a", "--reason=to be listed"];
    scene.call(&paused).done();
    for kind in KINDS {
        let get = |form: &str| scene.call(&["get", kind, "-o", form]).done();
        insta::assert_snapshot!(format!("{kind}-table"), cells(&get("table"), VARIES));
        insta::assert_snapshot!(format!("{kind}-wide"), cells(&get("wide"), VARIES));
        let json: Value = serde_json::from_str(&get("json")).unwrap();
        let json = starred(json, VARIES);
        let text = serde_json::to_string_pretty(&json).unwrap();
        insta::assert_snapshot!(format!("{kind}-json"), text);
        let yaml: Value = serde_norway::from_str(&get("yaml")).unwrap();
        assert_eq!(starred(yaml, VARIES), json, "YAML is the same document");
        for form in ["table", "wide", "json", "yaml"] {
            let text = get(form);
            let raw = text.chars().find(|c| c.is_control() && *c != '\n');
            assert_eq!(raw, None, "{text:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_listed_can_be_chosen() {
    let scene = Scene::new("verbs-chosen").await;
    let machine = scene.serving();
    let get = |args: &[&str]| scene.call(&[&["get"], args].concat());

    // One that is named is shown by itself, under every word for its kind.
    for kind in ["machine", "machines", "ma"] {
        let text = get(&[kind, &machine, "-o", "json"]).done();
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (&value["id"], &value["state"]),
            (&machine.as_str().into(), &"Configured".into())
        );
    }
    let lines = |text: String| text.lines().count();
    assert_eq!(lines(get(&["machines", "--no-headers"]).done()), 8);
    assert_eq!(lines(get(&["machines"]).done()), 9);
    assert_eq!(
        lines(get(&["machines", "--cluster", "a", "--no-headers"]).done()),
        1
    );
    assert_eq!(
        lines(get(&["machines", "-l", "state!=Configured", "--no-headers"]).done()),
        7
    );
    assert_eq!(
        lines(
            get(&[
                "machines",
                "-l",
                "state in (idle, configured)",
                "--no-headers"
            ])
            .done()
        ),
        1
    );
    assert_eq!(
        lines(get(&["needs", "-l", "topology.kubernetes.io/zone", "--no-headers"]).done()),
        1
    );
    assert_eq!(
        lines(get(&["sf", "-l", "priority=100", "--no-headers"]).done()),
        0
    );
    let name = scene.need("missing");
    for called in [name.clone(), format!("a/{name}")] {
        assert_eq!(lines(get(&["need", &called, "--no-headers"]).done()), 1);
    }

    let limited = get(&["machines", "--limit", "2", "--no-headers"]);
    assert_eq!(limited.err, "2 of 8 machines\n");
    assert_eq!(lines(limited.done()), 2);
    let limited = get(&["machines", "--limit", "2", "-l", "state!=Configured"]);
    assert_eq!(limited.err, "2 of 7 machines\n");
    let limited = get(&["actions", "--limit", "1", "--no-headers"]);
    assert_eq!(limited.err, "1 of 4 actions\n");
    assert!(limited.out.contains("Bootstrap") && limited.out.contains("success"));
    let none = get(&["machines", "-l", "gpu"]);
    assert_eq!(
        (none.status, none.out.as_str(), none.err.as_str()),
        (Some(0), "", "no machines found\n")
    );
    let none = get(&["clusters", "-l", "cluster=b", "-o", "json"]).done();
    let none: Value = serde_json::from_str(&none).unwrap();
    assert_eq!(none["items"], Value::Array(Vec::new()));

    let missing = get(&["machine", "x\u{1b}[2J"]).undone();
    assert_eq!(
        missing,
        "machine \"x\\u{1b}[2J\" not found; `bigfleet get machines` lists what there is\n"
    );
    assert!(
        get(&["clusters", "b"])
            .undone()
            .starts_with("cluster \"b\" not found")
    );
    assert!(
        get(&["needs", "12345678"])
            .undone()
            .starts_with("need \"12345678\" not found")
    );
    let refused = get(&["machines", "-l", "state of (x)"]).refused();
    assert!(
        refused.contains("\"state of (x)\" is not key=value"),
        "{refused}"
    );
    let refused = get(&["nodes"]).refused();
    assert!(refused.contains("machines, work, actions"), "{refused}");
    get(&["machines", "-o", "xml"]).refused();
}
