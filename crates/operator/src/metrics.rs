//! Metrics: what the core counted, as text.

use crate::health::Health;
use bigfleet_operator_core::{Counters, OperatorCore};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The core at one moment.
pub(crate) struct Snapshot {
    counters: Counters,
    is_leading: bool,
    requests: u64,
    ack_backlog: usize,
    writes_waiting: usize,
    unplaceable: usize,
    machines: (usize, usize),
    frozen: usize,
    drains: BTreeMap<&'static str, usize>,
}

impl Snapshot {
    pub(crate) fn of(core: &OperatorCore) -> Self {
        Self {
            counters: core.counters().clone(),
            is_leading: core.is_leading(),
            requests: core.requests(),
            ack_backlog: core.acknowledgements_waiting(),
            writes_waiting: core.writes_waiting(),
            unplaceable: core.unplaceable(),
            machines: core.machines_resolved(),
            frozen: core.nodes_frozen(),
            drains: core.drains(),
        }
    }

    pub(crate) fn text(&self, cluster: &str, health: &Health) -> String {
        let mut page = Page::new(cluster);
        let counters = &self.counters;
        page.gauge(
            "leader",
            "1 while this process acts",
            u64::from(self.is_leading),
        );
        page.gauge(
            "session_state",
            "1 while the shard is spoken to",
            u64::from(health.is_in_session()),
        );
        page.gauge("requests", "CapacityRequests that count", self.requests);
        page.gauge(
            "ack_backlog",
            "requests the shard has and that were not told",
            self.ack_backlog as u64,
        );
        page.gauge(
            "writes_waiting",
            "writes that wait for their turn",
            self.writes_waiting as u64,
        );
        page.gauge(
            "pods_unplaceable",
            "Pods that no further Node would help",
            self.unplaceable as u64,
        );
        page.gauge(
            "nodes_frozen",
            "Nodes whose silence is not told, as too many are silent",
            self.frozen as u64,
        );
        let (resolved, ambiguous) = self.machines;
        let machines = [
            ("resolved", resolved as u64),
            ("ambiguous", ambiguous as u64),
        ];
        page.labelled(
            "machines",
            "machines by whether their Node is known",
            "gauge",
            "node",
            machines,
        );
        let drains = self
            .drains
            .iter()
            .map(|(stage, count)| (*stage, *count as u64));
        page.labelled("drains", "drains by stage", "gauge", "state", drains);
        page.counter("rollups_sent", "roll-ups sent", counters.roll_ups);
        let [accepted, held, rejected] = counters.answers;
        let answers = [
            ("accepted", accepted),
            ("held", held),
            ("rejected", rejected),
        ];
        page.labelled(
            "rollups",
            "roll-ups by what the shard said",
            "counter",
            "disposition",
            answers,
        );
        page.counter(
            "acknowledged",
            "requests acknowledged",
            counters.acknowledged,
        );
        page.counter(
            "session_reconnects",
            "sessions that ended",
            counters.reconnects,
        );
        page.counter(
            "frames_dropped",
            "frames for somebody else, or without a usable name",
            counters.frames_dropped,
        );
        page.counter(
            "unreadable",
            "objects that could not be read",
            counters.unreadable,
        );
        page.counter(
            "writes_refused",
            "writes the API server refused as wrong",
            counters.writes_refused,
        );
        let [sent, gone, budget, other] = counters.evictions;
        let evictions = [
            ("sent", sent),
            ("gone", gone),
            ("budget", budget),
            ("other", other),
        ];
        page.labelled(
            "evictions",
            "evictions by outcome",
            "counter",
            "outcome",
            evictions,
        );
        let [counted, uncounted] = counters.resyncs;
        let resyncs = [("true", counted), ("false", uncounted)];
        page.labelled(
            "resyncs",
            "resyncs by whether their count agreed",
            "counter",
            "counted",
            resyncs,
        );
        let [blob, error] = counters.bootstraps;
        page.labelled(
            "bootstraps",
            "bootstrap requests answered",
            "counter",
            "outcome",
            [("blob", blob), ("error", error)],
        );
        let [raised, lowered] = counters.spare_changes;
        page.labelled(
            "spare_changes",
            "spares raised and lowered",
            "counter",
            "change",
            [("raised", raised), ("lowered", lowered)],
        );
        let alerts = health.alerts();
        page.labelled(
            "alerts",
            "things a human must hear",
            "counter",
            "alert",
            alerts,
        );
        let calls = health
            .calls()
            .into_iter()
            .map(|(code, count)| (code.to_string(), count));
        page.labelled(
            "api_requests",
            "calls to the API server by status, 0 for none",
            "counter",
            "code",
            calls,
        );
        page.end()
    }
}

/// The metrics of the pod controller: what it asks of the API server.
pub(crate) fn calls(health: &Health) -> String {
    let name = "bigfleet_unschedulable_pod_controller_api_requests";
    let mut text = format!("# TYPE {name} counter\n");
    for (code, count) in health.calls() {
        let _ = writeln!(text, "{name}_total{{code=\"{code}\"}} {count}");
    }
    text + "# EOF\n"
}

struct Page {
    cluster: String,
    text: String,
}

impl Page {
    fn new(cluster: &str) -> Self {
        Self {
            cluster: cluster.to_owned(),
            text: String::new(),
        }
    }

    fn head(&mut self, name: &str, help: &str, kind: &str) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "# TYPE bigfleet_operator_{name} {kind}");
        let _ = writeln!(self.text, "# HELP bigfleet_operator_{name} {help}");
    }

    fn gauge(&mut self, name: &str, help: &str, value: u64) {
        self.head(name, help, "gauge");
        let _ = writeln!(
            self.text,
            "bigfleet_operator_{name}{{cluster=\"{}\"}} {value}",
            self.cluster
        );
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.head(name, help, "counter");
        let _ = writeln!(
            self.text,
            "bigfleet_operator_{name}_total{{cluster=\"{}\"}} {value}",
            self.cluster
        );
    }

    fn labelled<L: AsRef<str>>(
        &mut self,
        name: &str,
        help: &str,
        kind: &str,
        label: &str,
        values: impl IntoIterator<Item = (L, u64)>,
    ) {
        self.head(name, help, kind);
        let end = if kind == "counter" { "_total" } else { "" };
        for (word, value) in values {
            let word = word.as_ref();
            let _ = writeln!(
                self.text,
                "bigfleet_operator_{name}{end}{{cluster=\"{}\",{label}=\"{word}\"}} {value}",
                self.cluster
            );
        }
    }

    fn end(mut self) -> String {
        self.text.push_str("# EOF\n");
        self.text
    }
}
