//! Ledger: what reached the API server about Pods and Nodes, from its own audit log. Nothing of ours writes it.
//!
//! ```text
//! record and cordon ── settle, if voluntary ──▶ evictions ──▶ Node deleted, or record off and uncordoned
//! ```
//!
//! The operator is known by its user; a Pod's Node by the scheduler's binding.

use bigfleet_k8s::nanos;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

/// The user the operator acts as.
pub(crate) const OPERATOR: &str = "operator";
const RECORD: &str = "bigfleet.lucy.sh/drain";

/// What happened, and what should not have.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// Evictions that were let through.
    pub(crate) evicted: usize,
    /// Evictions that a budget refused.
    pub(crate) refused: usize,
    /// Nodes that were cordoned for a drain, each drain once.
    pub(crate) drains: usize,
    /// Nodes with a record now.
    pub(crate) draining: BTreeSet<String>,
    /// One line for each thing that must not happen.
    pub(crate) broken: Vec<String>,
    node_of: BTreeMap<String, String>,
    records: BTreeMap<String, Record>,
}

#[derive(Debug)]
struct Record {
    instruction: String,
    voluntary: bool,
    cordoned: i64,
}

/// One request.
struct Asked<'a> {
    at: i64,
    user: &'a str,
    verb: &'a str,
    /// With its subresource: `pods/eviction`.
    resource: String,
    name: String,
    code: u64,
    body: &'a Value,
}

impl<'a> Asked<'a> {
    fn read(event: &'a Value) -> Option<Self> {
        let target = &event["objectRef"];
        let text = |value: &'a Value| value.as_str();
        let resource = text(&target["resource"])?;
        let resource = text(&target["subresource"])
            .map_or(resource.to_owned(), |sub| format!("{resource}/{sub}"));
        Some(Self {
            at: nanos(text(&event["requestReceivedTimestamp"])?)?,
            user: text(&event["user"]["username"])?,
            verb: text(&event["verb"])?,
            resource,
            name: text(&target["name"]).unwrap_or_default().to_owned(),
            code: event["responseStatus"]["code"].as_u64()?,
            body: &event["requestObject"],
        })
    }
}

impl Ledger {
    /// Judges everything up to now. A voluntary drain has to wait this long before it evicts anybody.
    pub(crate) fn of(audit_log: &Path, settle: Duration) -> Self {
        let text = std::fs::read_to_string(audit_log).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let events: Vec<Value> = whole
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let mut asked: Vec<Asked<'_>> = events.iter().filter_map(Asked::read).collect();
        asked.sort_by_key(|one| one.at);
        let mut ledger = Self::default();
        for one in &asked {
            ledger.take(one, settle);
        }
        ledger.draining = ledger.records.keys().cloned().collect();
        ledger
    }

    /// How it went, in a line.
    pub(crate) fn summary(&self) -> String {
        let Self {
            evicted,
            refused,
            drains,
            ..
        } = self;
        format!("{drains} drains, {evicted} evictions, {refused} refused by a budget")
    }

    /// Nothing happened that must not.
    #[track_caller]
    pub(crate) fn holds(&self) {
        assert!(self.broken.is_empty(), "{:#?}", self.broken);
    }

    fn take(&mut self, asked: &Asked<'_>, settle: Duration) {
        let done = asked.code < 300;
        let name = &asked.name;
        match (asked.verb, asked.resource.as_str()) {
            ("create", "pods/binding") if done => {
                let node = asked.body["target"]["name"].as_str().unwrap();
                self.node_of.insert(name.clone(), node.to_owned());
            }
            ("create", "pods/eviction") => self.evict(asked, settle),
            // The first one says that it shall end; this one, that it has.
            ("delete", "pods") if done && asked.body["gracePeriodSeconds"] == 0 => {
                self.node_of.remove(name);
            }
            ("patch", "nodes") if done => self.record(asked),
            ("delete", "nodes") if done => {
                let left = self.node_of.iter().filter(|(_, node)| *node == name);
                let left: Vec<&String> = left.map(|(pod, _)| pod).collect();
                if !left.is_empty() {
                    let user = asked.user;
                    self.broken
                        .push(format!("{user} deletes {name}, where {left:?} are"));
                }
                self.records.remove(name);
            }
            _ => {}
        }
        let changes_pods = asked.resource == "pods" || asked.resource == "pods/binding";
        if asked.user == OPERATOR && changes_pods {
            let verb = asked.verb;
            self.broken.push(format!("the operator: {verb} Pod {name}"));
        }
    }

    fn evict(&mut self, asked: &Asked<'_>, settle: Duration) {
        let pod = &asked.name;
        if asked.user != OPERATOR {
            self.broken.push(format!("{} evicts {pod}", asked.user));
        }
        match asked.code {
            200..300 => self.evicted += 1,
            429 => self.refused += 1,
            _ => {}
        }
        let Some(node) = self.node_of.get(pod) else {
            return; // it was gone already, and the answer said so
        };
        let Some(record) = self.records.get(node) else {
            self.broken.push(format!(
                "{pod} is evicted from {node}, which is not drained"
            ));
            return;
        };
        let waited = asked.at - record.cordoned;
        if record.voluntary && i128::from(waited) < settle.as_nanos() as i128 {
            let waited = Duration::from_nanos(waited.max(0) as u64);
            self.broken.push(format!(
                "{pod} is evicted {waited:?} after {node} was cordoned"
            ));
        }
    }

    fn record(&mut self, asked: &Asked<'_>) {
        let node = &asked.name;
        let said = asked.body.pointer("/metadata/annotations");
        let Some(said) = said.and_then(|said| said.get(RECORD)) else {
            return;
        };
        let Some(text) = said.as_str() else {
            self.records.remove(node); // taken off
            return;
        };
        let record = Record {
            instruction: field(text, "instruction").to_owned(),
            voluntary: text.split(' ').any(|word| word == "voluntary"),
            cordoned: field(text, "cordoned").parse().unwrap(),
        };
        if asked.body["spec"]["unschedulable"] != true {
            self.broken
                .push(format!("a record on {node} without a cordon: {text}"));
        }
        let known = self.records.get(node);
        if known.is_none_or(|known| known.instruction != record.instruction) {
            self.drains += 1;
        }
        self.records.insert(node.clone(), record);
    }
}

fn field<'a>(text: &'a str, name: &str) -> &'a str {
    let value = text.split(' ').find_map(|word| word.strip_prefix(name));
    value.and_then(|value| value.strip_prefix('=')).unwrap()
}

/// Each rule can fail: a log with one breach is judged as that, and one without as clean.
#[test]
fn a_breach_of_each_kind_is_seen() {
    let event = |second: u8, user: &str, verb: &str, resource: &str, name: &str, body: Value| {
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        let mut target = json!({ "resource": resource, "name": name });
        if !subresource.is_empty() {
            target["subresource"] = subresource.into();
        }
        json!({
            "requestReceivedTimestamp": format!("2026-01-01T00:00:{second:02}.000000Z"),
            "user": { "username": user }, "verb": verb, "objectRef": target,
            "responseStatus": { "code": 200 }, "requestObject": body,
        })
    };
    let cordoned = nanos("2026-01-01T00:00:10Z").unwrap();
    let record = format!("instruction=i machine=m deadline=9 cordoned={cordoned} voluntary");
    let cordon = |on: bool| json!({ "metadata": { "annotations": { RECORD: record } }, "spec": { "unschedulable": on } });
    let judged = |second: Value| {
        let folder = crate::shard_scene::Folder::new("ledger");
        let log = folder.file("audit.log");
        let bound = json!({ "target": { "name": "n" } });
        let events = [
            event(0, "scheduler", "create", "pods/binding", "p", bound),
            event(10, OPERATOR, "patch", "nodes", "n", cordon(true)),
            second,
        ];
        let lines = events.map(|event| format!("{event}\n"));
        std::fs::write(&log, lines.concat()).unwrap();
        Ledger::of(&log, Duration::from_secs(5)).broken
    };
    let evict = |second, user| event(second, user, "create", "pods/eviction", "p", json!({}));
    assert_eq!(judged(evict(15, OPERATOR)), [""; 0]);
    let breaches = [
        evict(14, OPERATOR),
        evict(9, OPERATOR),
        evict(15, "somebody"),
        event(20, OPERATOR, "delete", "pods", "p", json!({})),
        event(20, OPERATOR, "delete", "nodes", "n", json!({})),
        event(20, OPERATOR, "patch", "nodes", "n", cordon(false)),
    ];
    for breach in breaches {
        let broken = judged(breach.clone());
        assert_eq!(broken.len(), 1, "{breach}: {broken:?}");
    }
}
