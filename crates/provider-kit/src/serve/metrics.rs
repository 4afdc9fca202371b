//! Metrics: plain counters, named as every provider names them.

use std::time::Duration;

use bigfleet_model::State;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

type Label = (&'static str, &'static str);

const BUCKETS: [f64; 10] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.25, 1.0, 2.5,
];

#[derive(Debug)]
pub(super) struct Metrics {
    requests: Family<Vec<Label>, Counter>,
    durations: Family<Vec<Label>, Histogram>,
    reconciles: Family<Vec<Label>, Counter>,
    pub(super) panics: Counter,
    pub(super) discarded: Counter,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            requests: Family::default(),
            durations: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            reconciles: Family::default(),
            panics: Counter::default(),
            discarded: Counter::default(),
        }
    }
}

impl Metrics {
    pub(super) fn called(&self, method: &'static str, code: tonic::Code, took: Option<Duration>) {
        let labels = vec![("method", method), ("code", code_word(code))];
        self.requests.get_or_create(&labels).inc();
        if let Some(took) = took {
            let labels = vec![("method", method)];
            self.durations
                .get_or_create(&labels)
                .observe(took.as_secs_f64());
        }
    }

    pub(super) fn reconciled(&self, outcome: &'static str) {
        self.reconciles
            .get_or_create(&vec![("outcome", outcome)])
            .inc();
    }

    /// The text a scraper reads.
    pub(super) fn render(&self, name: &str, counts: &[(State, usize)]) -> String {
        let mut registry = Registry::with_prefix(format!("bigfleet_{name}"));
        let machines = Family::<Vec<Label>, Gauge>::default();
        for (state, count) in counts {
            let gauge = machines.get_or_create(&vec![("state", state.word())]);
            gauge.set(i64::try_from(*count).unwrap_or(i64::MAX));
        }
        registry.register("grpc_requests", "Calls answered", self.requests.clone());
        registry.register(
            "grpc_request_duration_seconds",
            "Time to answer a call",
            self.durations.clone(),
        );
        registry.register("reconcile", "Inventories taken", self.reconciles.clone());
        registry.register("panics", "Panics survived", self.panics.clone());
        registry.register(
            "late_completions",
            "Completions discarded",
            self.discarded.clone(),
        );
        registry.register("machines", "Machines by state", machines);
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &registry);
        text
    }
}

fn code_word(code: tonic::Code) -> &'static str {
    match code {
        tonic::Code::Ok => "OK",
        tonic::Code::InvalidArgument => "InvalidArgument",
        tonic::Code::NotFound => "NotFound",
        tonic::Code::AlreadyExists => "AlreadyExists",
        tonic::Code::FailedPrecondition => "FailedPrecondition",
        tonic::Code::Unimplemented => "Unimplemented",
        tonic::Code::Internal => "Internal",
        tonic::Code::Unavailable => "Unavailable",
        tonic::Code::Cancelled => "Canceled",
        tonic::Code::DeadlineExceeded => "DeadlineExceeded",
        tonic::Code::Unknown
        | tonic::Code::PermissionDenied
        | tonic::Code::ResourceExhausted
        | tonic::Code::Aborted
        | tonic::Code::OutOfRange
        | tonic::Code::DataLoss
        | tonic::Code::Unauthenticated => "Unknown",
    }
}
