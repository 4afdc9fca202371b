//! Metrics: plain counters, named as every provider names them.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use bigfleet_net::TlsCounts;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::driver::Census;

type Label = (&'static str, &'static str);

const BUCKETS: [f64; 10] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.25, 1.0, 2.5,
];

#[derive(Debug)]
pub(super) struct Metrics {
    requests: Family<Vec<Label>, Counter>,
    durations: Family<Vec<Label>, Histogram>,
    reconciles: Family<Vec<Label>, Counter>,
    prices: Family<Vec<Label>, Counter>,
    priced_at: Gauge<f64, AtomicU64>,
    clean_ups: Family<Vec<Label>, Counter>,
    given_back: Family<Vec<Label>, Counter>,
    pub(super) retries: Counter,
    pub(super) resumed: Counter,
    pub(super) panics: Counter,
    pub(super) discarded: Counter,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            requests: Family::default(),
            durations: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            reconciles: Family::default(),
            prices: Family::default(),
            priced_at: Gauge::default(),
            clean_ups: Family::default(),
            given_back: Family::default(),
            retries: Counter::default(),
            resumed: Counter::default(),
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
        count(&self.reconciles, outcome);
    }

    pub(super) fn priced(&self, outcome: &'static str, now: Option<Duration>) {
        count(&self.prices, outcome);
        if let Some(now) = now.filter(|_| outcome == "ok") {
            self.priced_at.set(now.as_secs_f64());
        }
    }

    pub(super) fn cleaned_up(&self, outcome: &'static str) {
        count(&self.clean_ups, outcome);
    }

    pub(super) fn given_back(&self, outcome: &'static str) {
        count(&self.given_back, outcome);
    }

    /// The text a scraper reads.
    pub(super) fn render(&self, name: &str, census: &Census, tls: Option<TlsCounts>) -> String {
        let mut registry = Registry::with_prefix(format!("bigfleet_{name}"));
        let machines = Family::<Vec<Label>, Gauge>::default();
        for (state, count) in &census.counts {
            let gauge = machines.get_or_create(&vec![("state", state.word())]);
            gauge.set(i64::try_from(*count).unwrap_or(i64::MAX));
        }
        if let Some(tls) = tls {
            certificates(&mut registry, tls);
        }
        let oldest = Gauge::<f64, AtomicU64>::default();
        oldest.set(census.oldest_failed.as_secs_f64());
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
        registry.register("price_refresh", "Price lists fetched", self.prices.clone());
        registry.register(
            "price_last_success_timestamp_seconds",
            "When prices were last fetched",
            self.priced_at.clone(),
        );
        registry.register(
            "clean_ups",
            "Failed machines cleaned up",
            self.clean_ups.clone(),
        );
        registry.register(
            "late_hosts",
            "Hosts made too late and given back",
            self.given_back.clone(),
        );
        registry.register(
            "transition_retries",
            "Passing refusals tried again",
            self.retries.clone(),
        );
        registry.register(
            "resumed_transitions",
            "Transitions taken up after a restart",
            self.resumed.clone(),
        );
        registry.register(
            "failed_oldest_seconds",
            "How long the longest known failed machine is failed",
            oldest,
        );
        registry.register("machines", "Machines by state", machines);
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &registry);
        text
    }
}

fn count(family: &Family<Vec<Label>, Counter>, outcome: &'static str) {
    family.get_or_create(&vec![("outcome", outcome)]).inc();
}

fn certificates(registry: &mut Registry, tls: TlsCounts) {
    let reloads = Family::<Vec<Label>, Counter>::default();
    for (outcome, count) in [("ok", tls.reloaded), ("refused", tls.refused)] {
        let counter = reloads.get_or_create(&vec![("outcome", outcome)]);
        counter.inc_by(count);
    }
    let expires = Gauge::<i64>::default();
    expires.set(tls.expires_unix_seconds);
    registry.register("tls_reloads", "Changed certificates seen", reloads);
    registry.register(
        "tls_certificate_expiry_timestamp_seconds",
        "When the certificate in force expires",
        expires,
    );
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
        tonic::Code::PermissionDenied => "PermissionDenied",
        tonic::Code::Unknown
        | tonic::Code::ResourceExhausted
        | tonic::Code::Aborted
        | tonic::Code::OutOfRange
        | tonic::Code::DataLoss
        | tonic::Code::Unauthenticated => "Unknown",
    }
}
