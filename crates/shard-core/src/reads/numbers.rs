//! Numbers: everything a shard publishes, by the name it is published under (shard.md §8).
//!
//! Kept as plain counts while things happen and read out whole, once per cycle, by whoever publishes
//! them. Series are bounded by their labels: kinds, outcomes, states, buckets; a few grow, with
//! the number of clusters.

use super::Reads;
use crate::{
    audit::Outcome,
    core::LateAnswer,
    histogram::{Histogram, Phase, seconds},
    holdings::{ExceptionKind, TransferState},
    leaving::{LeavingPhase, LeavingSource, OddNotice},
};
use bigfleet_model::{ActionKind, ClusterId, Dimension, Leaving, UnmetReason};
use std::collections::BTreeMap;

/// One value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// It only grows.
    Counter(u64),
    /// It goes up and down.
    Gauge(f64),
    /// How long things took.
    Histogram(Histogram),
}

/// One series.
#[derive(Clone, Debug, PartialEq)]
pub struct Number {
    /// The name it is published under.
    pub name: &'static str,
    /// Labels and their values.
    pub labels: Vec<(&'static str, String)>,
    /// What it stands at.
    pub value: Value,
}

/// Priority classes, and ages in seconds, as the gauges of shortfalls split them.
const CLASSES: [&str; 4] = ["other", "batch", "service", "critical"];
const AGES: [&str; 4] = ["1-9", "10-59", "60-299", "300+"];

const REASONS: [UnmetReason; 6] = [
    UnmetReason::Unspecified,
    UnmetReason::PriorityStarved,
    UnmetReason::NoMatchingSupply,
    UnmetReason::TopologyUnsatisfiable,
    UnmetReason::PreemptionExhausted,
    UnmetReason::SpreadUnsatisfiable,
];

/// Dimensions of demand that are shown.
const MOST_DIMENSIONS: usize = 32;

#[derive(Default)]
struct Sheet(Vec<Number>);

impl Sheet {
    fn put(&mut self, name: &'static str, labels: &[(&'static str, &str)], value: Value) {
        let labels = labels
            .iter()
            .map(|(key, value)| (*key, (*value).to_owned()));
        self.0.push(Number {
            name,
            labels: labels.collect(),
            value,
        });
    }

    fn counter(&mut self, name: &'static str, count: u64) {
        self.put(name, &[], Value::Counter(count));
    }

    fn gauge(&mut self, name: &'static str, value: f64) {
        self.put(name, &[], Value::Gauge(value));
    }

    fn histogram(&mut self, name: &'static str, histogram: &Histogram) {
        self.put(name, &[], Value::Histogram(histogram.clone()));
    }

    fn by_kind(&mut self, name: &'static str, counts: &BTreeMap<ActionKind, u64>) {
        for kind in ActionKind::ALL {
            let count = counts.get(&kind).copied().unwrap_or(0);
            self.put(name, &[("kind", kind.word())], Value::Counter(count));
        }
    }
}

impl Reads<'_> {
    /// Every series, in the order of the specification.
    pub(crate) fn numbers(&self) -> Vec<Number> {
        let mut sheet = Sheet::default();
        self.put_times(&mut sheet);
        self.put_fleet(&mut sheet);
        self.put_actions(&mut sheet);
        self.put_rails(&mut sheet);
        self.put_sessions(&mut sheet);
        self.put_broker(&mut sheet);
        self.put_ours(&mut sheet);
        sheet.0
    }

    fn put_times(&self, sheet: &mut Sheet) {
        let times = self.latencies;
        sheet.histogram("bigfleet_shard_cycle_duration_seconds", &times.cycle);
        for (phase, histogram) in Phase::ALL.iter().zip(&times.phases) {
            sheet.put(
                "bigfleet_shard_cycle_phase_duration_seconds",
                &[("phase", phase.label())],
                Value::Histogram(histogram.clone()),
            );
        }
        sheet.histogram("bigfleet_shard_configure_phase_seconds", &times.configure);
        sheet.histogram("bigfleet_shard_request_bootstrap_seconds", &times.bootstrap);
        sheet.histogram("bigfleet_shard_drain_phase_seconds", &times.drain);
        sheet.histogram(
            "bigfleet_shard_provisioning_latency_seconds",
            &times.provisioning,
        );
    }

    fn put_fleet(&self, sheet: &mut Sheet) {
        for ((state, tier, bucket), count) in self.supply.ledger().gauge() {
            sheet.put(
                "bigfleet_shard_inventory_machines",
                &[
                    ("state", &state.to_string()),
                    ("capacity_type", tier.word()),
                    ("interruption_penalty_bucket", &bucket.label()),
                ],
                Value::Gauge(f64::from(*count)),
            );
        }
        for (bucket, count) in self.demand.gauge() {
            sheet.put(
                "bigfleet_shard_demand_machines",
                &[("interruption_penalty_bucket", &bucket.label())],
                Value::Gauge(f64::from(*count)),
            );
        }
        let split = self.demand.split();
        let all: u32 = split.by_class.iter().sum();
        sheet.gauge("bigfleet_shard_shortfalls", f64::from(all));
        for (class, count) in CLASSES.iter().zip(split.by_class) {
            sheet.put(
                "bigfleet_shard_shortfalls_by_priority",
                &[("priority_class", class)],
                Value::Gauge(f64::from(count)),
            );
        }
        let lacking = self.demand.lacking();
        for (age, count) in AGES.iter().zip(lacking.by_age(self.now)) {
            sheet.put(
                "bigfleet_shard_shortfalls_aged",
                &[("bucket", age)],
                Value::Gauge(f64::from(count)),
            );
        }
    }

    fn put_actions(&self, sheet: &mut Sheet) {
        let counters = self.counters;
        sheet.by_kind("bigfleet_shard_actions_total", &counters.actions);
        // All of them from the start: the first of a series that was not there is no increase, and
        // the first action that is fenced is what somebody must be woken for.
        for kind in ActionKind::ALL {
            for outcome in Outcome::ENDS {
                let count = counters.outcomes.get(&(kind, outcome)).copied();
                sheet.put(
                    "bigfleet_shard_action_execute_outcomes_total",
                    &[("kind", kind.word()), ("outcome", outcome.label())],
                    Value::Counter(count.unwrap_or(0)),
                );
            }
        }
        for kind in ActionKind::ALL {
            for outcome in Outcome::ENDS {
                let took = self.latencies.actions.get(&(kind, outcome)).cloned();
                // Success is always shown; whatever else never happened has no duration.
                let none = (outcome == Outcome::Success).then(Histogram::of_actions);
                if let Some(took) = took.or(none) {
                    sheet.put(
                        "bigfleet_shard_action_duration_seconds",
                        &[("kind", kind.word()), ("outcome", outcome.label())],
                        Value::Histogram(took),
                    );
                }
            }
        }
        sheet.counter("bigfleet_shard_actions_deferred_total", counters.deferred);
        // What is committed is neither dropped nor found twice (DC-8): these stay at zero.
        sheet.counter("bigfleet_shard_actions_dropped_total", 0);
        sheet.counter("bigfleet_shard_actions_deduped_total", 0);
        let waiting = self.work.waiting();
        sheet.gauge("bigfleet_shard_action_queue_depth", waiting as f64);
        let on_wire = self.work.on_wire() as f64;
        sheet.gauge("bigfleet_shard_execute_inflight", on_wire);
        sheet.counter("bigfleet_shard_idle_releases_total", counters.idle_releases);
    }

    fn put_rails(&self, sheet: &mut Sheet) {
        let counters = self.counters;
        sheet.counter(
            "bigfleet_shard_reclaims_capped_total",
            counters.reclaims_capped,
        );
        let clusters = self.clusters();
        for cluster in &clusters {
            let held = counters.rollups_held.get(cluster).copied();
            sheet.put(
                "bigfleet_shard_rollup_quarantined",
                &[("cluster", cluster.as_str())],
                Value::Gauge(f64::from(held.unwrap_or(0))),
            );
        }
        sheet.by_kind(
            "bigfleet_shard_actions_suppressed_total",
            &counters.suppressed,
        );
        let paused = f64::from(u8::from(self.rails.is_paused()));
        sheet.gauge("bigfleet_shard_actuation_paused", paused);
        for cluster in &clusters {
            let paused = self.rails.is_cluster_paused(cluster) || self.rails.is_paused();
            sheet.put(
                "bigfleet_shard_actuation_paused",
                &[("cluster", cluster.as_str())],
                Value::Gauge(f64::from(u8::from(paused))),
            );
        }
        sheet.by_kind("bigfleet_shard_actions_dryrun_total", &counters.dry_run);
        for reason in ["price", "interruption_probability", "structural"] {
            let count = counters.machines_rejected.get(reason).copied();
            sheet.put(
                "bigfleet_shard_machines_rejected_total",
                &[("reason", reason)],
                Value::Counter(count.unwrap_or(0)),
            );
        }
        for cluster in &clusters {
            let count = counters.rollups_rejected.get(cluster).copied();
            sheet.put(
                "bigfleet_shard_rollups_rejected_total",
                &[("cluster", cluster.as_str())],
                Value::Counter(count.unwrap_or(0)),
            );
        }
    }

    fn put_sessions(&self, sheet: &mut Sheet) {
        let counters = self.counters;
        sheet.gauge("bigfleet_shard_active_sessions", self.sessions.len() as f64);
        for (event, count) in [
            ("installed", counters.sessions_installed),
            ("removed", counters.sessions_removed),
            ("replaced", counters.sessions_replaced),
        ] {
            sheet.put(
                "bigfleet_shard_session_lifecycle_total",
                &[("event", event)],
                Value::Counter(count),
            );
        }
        sheet.counter(
            "bigfleet_shard_session_identity_rejected_total",
            counters.identity_rejected,
        );
        sheet.counter("bigfleet_shard_incidents_total", counters.incidents);
        for answer in LateAnswer::ALL {
            let count = counters.late_answers.get(&answer).copied();
            sheet.put(
                "bigfleet_shard_late_answers_total",
                &[("answer", answer.label())],
                Value::Counter(count.unwrap_or(0)),
            );
        }
    }

    /// Needs are served one after another, so nothing is ever proposed twice: constant zeros, for
    /// the dashboards that read them.
    fn put_broker(&self, sheet: &mut Sheet) {
        for outcome in ["committed", "conflict"] {
            sheet.put(
                "bigfleet_shard_phase1_occ_proposals_total",
                &[("outcome", outcome)],
                Value::Counter(0),
            );
        }
        sheet.counter("bigfleet_shard_phase1_occ_displacements_total", 0);
        sheet.counter("bigfleet_shard_phase1_occ_retries_exhausted_total", 0);
    }

    /// What the reference does not have.
    fn put_ours(&self, sheet: &mut Sheet) {
        let counters = self.counters;
        for (name, count) in [
            ("bigfleet_shard_adoptions_total", counters.adoptions),
            ("bigfleet_shard_conflicts_total", counters.conflicts),
            ("bigfleet_shard_foreign_records_total", counters.foreign),
            ("bigfleet_shard_machines_removed_total", counters.removed),
            ("bigfleet_shard_rollbacks_total", counters.rollbacks),
            (
                "bigfleet_shard_drains_blocked_total",
                counters.drains_blocked,
            ),
            ("bigfleet_shard_call_retries_total", counters.retries),
            (
                "bigfleet_shard_breakers_opened_total",
                counters.breakers_opened,
            ),
            ("bigfleet_shard_restamps_total", counters.restamps),
            ("bigfleet_shard_intents_ended_total", counters.intents_ended),
            ("bigfleet_shard_records_total", counters.records),
            (
                "bigfleet_shard_gang_machines_joined_total",
                counters.gang_joined,
            ),
            (
                "bigfleet_shard_gang_machines_left_total",
                counters.gang_left,
            ),
            (
                "bigfleet_shard_gang_domain_flips_total",
                counters.gang_flips,
            ),
        ] {
            sheet.counter(name, count);
        }
        sheet.counter(
            "bigfleet_shard_drain_fallbacks_total",
            counters.drain_fallbacks,
        );
        self.put_needs(sheet);
        self.put_leaving(sheet);
        self.put_clusters(sheet);
        self.put_above(sheet);
        for (tier, state, spent) in self.supply.ledger().stock().spend() {
            sheet.put(
                "bigfleet_shard_estimated_spend_dollars_per_hour",
                &[
                    ("capacity_type", tier.word()),
                    ("state", &state.to_string()),
                ],
                Value::Gauge(spent),
            );
        }
        let summary = self.summary();
        for (dimension, part) in &summary.utilisation {
            sheet.put(
                "bigfleet_shard_utilisation_ratio",
                &[("dimension", dimension.as_str())],
                Value::Gauge(*part),
            );
        }
    }

    /// What the coordinator has to do with: nothing of it for a shard that has none.
    fn put_above(&self, sheet: &mut Sheet) {
        let holdings = self.holdings;
        if holdings.is_alone() {
            return;
        }
        let is_superseded = f64::from(u8::from(self.rails.is_superseded()));
        sheet.gauge("bigfleet_shard_superseded", is_superseded);
        let is_waiting = f64::from(u8::from(holdings.is_unsaid()));
        sheet.gauge("bigfleet_shard_scope_awaited", is_waiting);
        for (kind, word) in [
            (ExceptionKind::Away, "away"),
            (ExceptionKind::Guest, "guest"),
        ] {
            let of_kind = holdings.exceptions().filter(|(_, one)| one.kind == kind);
            sheet.put(
                "bigfleet_shard_exceptions",
                &[("kind", word)],
                Value::Gauge(of_kind.count() as f64),
            );
        }
        for (state, role, word) in [
            (TransferState::Reserved, "donor", "reserved"),
            (TransferState::Released, "donor", "released"),
            (TransferState::Claimed, "recipient", "claimed"),
            (TransferState::Refused, "recipient", "refused"),
        ] {
            let in_state = holdings.transfers().filter(|(_, one)| one.state == state);
            sheet.put(
                "bigfleet_shard_transfer_records",
                &[("role", role), ("state", word)],
                Value::Gauge(in_state.count() as f64),
            );
        }
        let leaving = holdings.lingering().count() as f64;
        sheet.gauge("bigfleet_shard_letting_go_machines", leaving);
        let watched = holdings.watched() as f64;
        sheet.gauge("bigfleet_shard_quarantined_machines", watched);
        let let_go = self.counters.let_go;
        sheet.counter("bigfleet_shard_machines_let_go_total", let_go);
    }

    /// Rows of demand: how many are served, why the others are not, and what all of them add up to.
    fn put_needs(&self, sheet: &mut Sheet) {
        let ready = self.demand.clusters().filter(|(_, known)| known.is_ready());
        let rows: usize = ready.map(|(_, known)| known.len()).sum();
        let short = self.demand.short();
        for (satisfied, count) in [("true", rows.saturating_sub(short)), ("false", short)] {
            sheet.put(
                "bigfleet_shard_needs",
                &[("satisfied", satisfied)],
                Value::Gauge(count as f64),
            );
        }
        for reason in REASONS {
            let count = self.demand.short_for(reason);
            sheet.put(
                "bigfleet_shard_need_unmet",
                &[("reason", reason.text())],
                Value::Gauge(f64::from(count)),
            );
        }
        // What somebody offers is shown at zero when nobody wants it.
        let offered = self.supply.ledger().stock().iter();
        let offered = offered.flat_map(|(_, shape, _)| shape.effective().iter());
        let mut demanded: BTreeMap<&Dimension, f64> =
            offered.map(|(name, _)| (name, 0.0)).collect();
        for baseline in self.baselines() {
            for (dimension, total) in baseline.totals.iter() {
                *demanded.entry(dimension).or_default() += total as f64 / 1000.0;
            }
        }
        // Clusters may ask for anything by any name; series are bounded all the same.
        for (dimension, total) in demanded.into_iter().take(MOST_DIMENSIONS) {
            sheet.put(
                "bigfleet_shard_demand_resources",
                &[("dimension", dimension.as_str())],
                Value::Gauge(total),
            );
        }
        let parked = self.demand.parked() as f64;
        sheet.gauge("bigfleet_shard_gangs_parked", parked);
        let lacking = self.demand.lacking();
        sheet.gauge("bigfleet_shard_needs_lacking", lacking.len() as f64);
        let age = |since| seconds(self.now.duration_since(since));
        let oldest = lacking.oldest().map_or(0.0, age);
        sheet.gauge("bigfleet_shard_need_lacking_oldest_seconds", oldest);
        let lost = self.provider_lost.map_or(0.0, age);
        sheet.gauge("bigfleet_shard_provider_lost_seconds", lost);
    }

    /// Machines that are to leave, and for how long the one that waits longest is without a replacement.
    fn put_leaving(&self, sheet: &mut Sheet) {
        let counts = self.leaving_counts();
        for source in LeavingSource::ALL {
            for word in Leaving::ALL {
                for phase in LeavingPhase::ALL {
                    let count = counts.machines.get(&(source, word, phase)).copied();
                    sheet.put(
                        "bigfleet_shard_leaving_machines",
                        &[
                            ("source", source.word()),
                            ("word", word.word()),
                            ("phase", phase.label()),
                        ],
                        Value::Gauge(f64::from(count.unwrap_or(0))),
                    );
                }
            }
        }
        let since = counts.unreplaced_since;
        let oldest = since.map_or(0.0, |since| seconds(self.now.duration_since(since)));
        sheet.gauge("bigfleet_shard_leaving_unreplaced_oldest_seconds", oldest);
        let held = self.leaving.beyond() as f64;
        sheet.gauge("bigfleet_shard_leaving_notices_held", held);
        for odd in OddNotice::ALL {
            let count = self.counters.odd_notices.get(odd.label()).copied();
            sheet.put(
                "bigfleet_shard_leaving_notices_odd_total",
                &[("reason", odd.label())],
                Value::Counter(count.unwrap_or(0)),
            );
        }
    }

    /// One series per cluster the shard knows.
    fn put_clusters(&self, sheet: &mut Sheet) {
        let clusters = self.clusters();
        let serves = |cluster: &&ClusterId| {
            let known = self.demand.of(cluster);
            let wants = known.is_some_and(|known| 0 < known.len());
            let holds = self.supply.bound_to(cluster).next().is_some();
            wants || holds || self.sessions.is_connected(cluster)
        };
        let bound = clusters.iter().filter(serves).count() as f64;
        sheet.gauge("bigfleet_shard_bound_clusters", bound);
        let failed = self.supply.ledger().failed_since();
        let failed = failed.map_or(0.0, |since| seconds(self.now.duration_since(since)));
        sheet.gauge("bigfleet_shard_failed_oldest_seconds", failed);
        for cluster in &clusters {
            let count = self.counters.reclaims_capped_of.get(cluster).copied();
            sheet.put(
                "bigfleet_shard_reclaims_capped_by_cluster_total",
                &[("cluster", cluster.as_str())],
                Value::Counter(count.unwrap_or(0)),
            );
        }
        for cluster in &clusters {
            let since = self.rails.quarantine().held_since(cluster);
            sheet.put(
                "bigfleet_shard_rollup_quarantine_seconds",
                &[("cluster", cluster.as_str())],
                Value::Gauge(since.map_or(0.0, |since| seconds(self.now.duration_since(since)))),
            );
        }
    }
}
