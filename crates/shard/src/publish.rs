//! What is published: a snapshot of the core at the end of a cycle, and the metrics made of it.
//!
//! A scrape copies nothing from the core and asks it nothing: it renders the last snapshot. The core
//! names its own numbers; what only the runtime knows (the disk, Lists, certificates) comes after them.

use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use bigfleet_model::Time;
use bigfleet_net::TlsCounts;
use bigfleet_shard_core::{Awaits, Histogram, Number, ShardCore, Stage, Value, WorkView};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use tokio::sync::watch;

use crate::audit::AuditCounts;
use crate::clock::Clock;
use crate::news::twin_text;
use crate::panics::Panics;
use crate::provider::ListTimes;
use crate::rpcs::Rpcs;
use crate::session::SessionCounts;
use crate::store::CommitTimes;
use crate::trouble::Trouble;

/// Counted here and by the core.
const IDENTITY_REJECTED: &str = "bigfleet_shard_session_identity_rejected_total";

/// The core as it was at the end of a cycle.
#[derive(Clone, Debug)]
pub(crate) struct Published {
    /// Why it is not ready, if it is not.
    not_ready: Option<String>,
    fenced: bool,
    twin: bool,
    cycle: u64,
    in_flight: usize,
    removals_held: usize,
    numbers: Vec<Number>,
    /// Since when the oldest work in each stage is there: its age is counted when somebody looks, so
    /// that it grows between two cycles too.
    oldest: [(&'static str, Option<Time>); STAGES.len()],
}

impl Published {
    pub(crate) fn of(core: &ShardCore) -> Self {
        let (gauges, rails) = (core.gauges(), core.rails());
        Self {
            not_ready: why_not_ready(core),
            fenced: rails.fenced,
            twin: rails.twin.is_some(),
            removals_held: rails.removals_held,
            cycle: gauges.cycle,
            in_flight: gauges.in_flight,
            numbers: core.numbers(),
            oldest: oldest(core),
        }
    }
}

/// Work in flight is bounded (SH-2), and so is what this looks at.
fn oldest(core: &ShardCore) -> [(&'static str, Option<Time>); STAGES.len()] {
    let mut oldest = STAGES.map(|stage| (stage, None));
    let mut page = core.work_page(None);
    loop {
        for WorkView { stage, since, .. } in &page.entries {
            let word = stage_word(*stage);
            if let Some((_, first)) = oldest.iter_mut().find(|(stage, _)| *stage == word) {
                *first = Some(first.map_or(*since, |first: Time| first.min(*since)));
            }
        }
        match &page.next {
            Some(next) => page = core.work_page(Some(next)),
            None => return oldest,
        }
    }
}

const STAGES: [&str; 9] = [
    "disk", "queued", "blob", "drain", "call", "provider", "backoff", "confirm", "paused",
];

pub(crate) fn stage_word(stage: Stage) -> &'static str {
    match stage {
        Stage::Disk => "disk",
        Stage::Queued => "queued",
        Stage::Blob(_) => "blob",
        Stage::Drain => "drain",
        Stage::Call => "call",
        Stage::Provider => "provider",
        Stage::Backoff => "backoff",
        Stage::Confirm => "confirm",
        Stage::Paused => "paused",
    }
}

/// The last snapshot, for everybody who asks whether the shard is ready or scrapes its metrics.
#[derive(Clone, Debug, Default)]
pub(crate) struct Publisher {
    last: Arc<ArcSwap<Option<Published>>>,
    is_ready: watch::Sender<bool>,
}

impl Publisher {
    pub(crate) fn publish(&self, published: Published) {
        let is_ready = published.not_ready.is_none();
        self.last.store(Arc::new(Some(published)));
        self.is_ready
            .send_if_modified(|said| std::mem::replace(said, is_ready) != is_ready);
    }

    /// Whether the shard is ready, for whoever waits for that to change.
    pub(crate) fn readiness(&self) -> watch::Receiver<bool> {
        self.is_ready.subscribe()
    }

    /// Whether the shard is ready, or why not.
    pub(crate) fn ready(&self) -> Result<(), String> {
        match self.last.load().as_ref() {
            Some(published) => published.not_ready.clone().map_or(Ok(()), Err),
            None => Err("starting".to_owned()),
        }
    }
}

/// Why a shard is not ready; `None` if it is.
pub(crate) fn why_not_ready(core: &ShardCore) -> Option<String> {
    if core.is_ready() {
        return None;
    }
    let rails = core.rails();
    Some(match (rails.fenced, rails.twin, rails.incident) {
        (true, _, _) => "fenced: another process runs this shard".to_owned(),
        (false, Some((seen, own)), _) => twin_text(seen, own),
        (false, None, Some(what)) => format!("stopped by an incident: {what}"),
        (false, None, None) => core.awaits().map_or_else(String::new, awaited),
    })
}

/// What the shard still has to see before it decides (SH-10).
fn awaited(awaits: Awaits) -> String {
    let Awaits {
        lists,
        remembered,
        unseen,
    } = awaits;
    let seen = remembered.saturating_sub(unseen);
    match lists {
        0 => "no List of the provider has been complete yet".to_owned(),
        lists => format!(
            "{lists} complete Lists show only {seen} of the {remembered} machines this shard \
             remembers: nothing is decided before one shows 90 % of them or 3 agree"
        ),
    }
}

/// Everything a scrape shows.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    pub(crate) clock: Clock,
    pub(crate) publisher: Publisher,
    pub(crate) commits: Arc<CommitTimes>,
    pub(crate) lists: Arc<ListTimes>,
    pub(crate) rpcs: Arc<Rpcs>,
    pub(crate) sessions: Arc<SessionCounts>,
    pub(crate) audit: Arc<AuditCounts>,
    pub(crate) panics: Arc<Panics>,
    pub(crate) beside: Arc<Beside>,
    pub(crate) tls: Option<Arc<bigfleet_net::Tls>>,
    pub(crate) trouble: Trouble,
    pub(crate) about: About,
}

type Source = Box<dyn Fn() -> Vec<Number> + Send + Sync>;

/// Series of parts that the shard does not know, such as whoever reports it to a coordinator.
#[derive(Default)]
pub(crate) struct Beside(Mutex<Vec<Source>>);

impl fmt::Debug for Beside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Beside({})", self.sources().len())
    }
}

impl Beside {
    fn sources(&self) -> MutexGuard<'_, Vec<Source>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, source: Source) {
        self.sources().push(source);
    }

    /// Those of one name together.
    pub(crate) fn numbers(&self) -> Vec<Number> {
        self.sources().iter().flat_map(|source| source()).collect()
    }
}

/// What does not change while the process lives.
#[derive(Clone, Debug)]
pub(crate) struct About {
    pub(crate) epoch: u64,
    /// What explains a graph, as labels.
    pub(crate) settings: Vec<(&'static str, String)>,
}

impl About {
    fn numbers(&self) -> [Number; 3] {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let number = |name, labels, value| Number {
            name,
            labels,
            value: Value::Gauge(value),
        };
        let built = vec![("version", version), ("component", "shard".to_owned())];
        [
            number("bigfleet_build_info", built, 1.0),
            number("bigfleet_shard_config_info", self.settings.clone(), 1.0),
            number("bigfleet_shard_epoch", Vec::new(), self.epoch as f64),
        ]
    }
}

impl Metrics {
    /// The text a scraper reads.
    pub(crate) fn render(&self) -> String {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self.clone()));
        let mut text = String::new();
        let written = prometheus_client::encoding::text::encode(&mut text, &registry);
        debug_assert!(written.is_ok(), "writing to a text does not fail");
        text
    }
}

type Encoded = Result<(), std::fmt::Error>;

/// Writes metrics: a thin layer over the encoder, which wants each metric described before it is written.
struct MetricsText<'a, 'b>(&'a mut DescriptorEncoder<'b>);

impl MetricsText<'_, '_> {
    /// The encoder ends counters in `_total` itself, and so do the names.
    fn describe<'s>(
        &'s mut self,
        name: &'s str,
        help: &'s str,
        kind: MetricType,
    ) -> Result<MetricEncoder<'s>, std::fmt::Error> {
        let name = name.strip_suffix("_total").unwrap_or(name);
        self.0.encode_descriptor(name, help, None, kind)
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) -> Encoded {
        let counter = ConstCounter::new(value);
        counter.encode(self.describe(name, help, MetricType::Counter)?)
    }

    fn seconds(&mut self, name: &str, help: &str, spent: Duration) -> Encoded {
        let counter = ConstCounter::new(spent.as_secs_f64());
        counter.encode(self.describe(name, help, MetricType::Counter)?)
    }

    fn gauge(&mut self, name: &str, help: &str, value: f64) -> Encoded {
        let gauge = ConstGauge::new(value);
        gauge.encode(self.describe(name, help, MetricType::Gauge)?)
    }

    /// All series of one name.
    fn series(&mut self, of_name: &[Number]) -> Encoded {
        let Some(first) = of_name.first() else {
            return Ok(());
        };
        let kind = match first.value {
            Value::Counter(_) => MetricType::Counter,
            Value::Gauge(_) => MetricType::Gauge,
            Value::Histogram(_) => MetricType::Histogram,
        };
        let mut encoder = self.describe(first.name, "See docs/metrics.md", kind)?;
        for number in of_name {
            if number.labels.is_empty() {
                put(&number.value, &mut encoder)?
            } else {
                put(&number.value, &mut encoder.encode_family(&number.labels)?)?
            }
        }
        Ok(())
    }
}

fn put(value: &Value, encoder: &mut MetricEncoder<'_>) -> Encoded {
    match value {
        Value::Counter(count) => encoder.encode_counter::<[(&str, &str); 0], _, u64>(count, None),
        Value::Gauge(value) => encoder.encode_gauge(value),
        Value::Histogram(histogram) => {
            let (count, buckets) = (histogram.count(), buckets(histogram));
            encoder.encode_histogram::<[(&str, &str); 0]>(histogram.sum, count, &buckets, None)
        }
    }
}

/// Upper bounds with what fell between them; the last is without bound.
fn buckets(histogram: &Histogram) -> Vec<(f64, u64)> {
    let bounds = histogram.bounds().into_iter().chain([f64::INFINITY]);
    bounds.zip(histogram.counts.iter().copied()).collect()
}

impl Collector for Metrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Encoded {
        let mut text = MetricsText(&mut encoder);
        if let Some(published) = self.publisher.last.load().as_ref() {
            for of_name in published.numbers.chunk_by(same_name) {
                match of_name {
                    [one] if one.name == IDENTITY_REJECTED => {
                        text.series(&[self.with_streams(one)])?;
                    }
                    of_name => text.series(of_name)?,
                }
            }
            of_core(&mut text, published, self.clock.now())?;
        }
        for number in self.about.numbers() {
            text.series(&[number])?;
        }
        for of_name in self.rpcs.numbers().chunk_by(same_name) {
            text.series(of_name)?;
        }
        text.series(&self.panics.numbers())?;
        for of_name in self.beside.numbers().chunk_by(same_name) {
            text.series(of_name)?;
        }
        self.of_runtime(&mut text)
    }
}

fn same_name(one: &Number, other: &Number) -> bool {
    one.name == other.name
}

fn of_core(text: &mut MetricsText<'_, '_>, published: &Published, now: Time) -> Encoded {
    text.gauge(
        "bigfleet_shard_cycle",
        "The cycle counter",
        published.cycle as f64,
    )?;
    text.gauge(
        "bigfleet_shard_fenced",
        "Whether another process runs this shard",
        f64::from(u8::from(published.fenced)),
    )?;
    text.gauge(
        "bigfleet_shard_twin",
        "Whether the provider knows a later epoch of this shard, which then does not act",
        f64::from(u8::from(published.twin)),
    )?;
    text.gauge(
        "bigfleet_shard_operations_in_flight",
        "Operations committed and not ended",
        published.in_flight as f64,
    )?;
    text.gauge(
        "bigfleet_shard_removals_held",
        "Machines the last full List lacked and that are kept",
        published.removals_held as f64,
    )?;
    let ages: Vec<Number> = published
        .oldest
        .iter()
        .map(|(stage, since)| Number {
            name: "bigfleet_shard_oldest_work_seconds",
            labels: vec![("stage", (*stage).to_owned())],
            value: Value::Gauge(since.map_or(0.0, |since| now.duration_since(since).as_secs_f64())),
        })
        .collect();
    text.series(&ages)
}

impl Metrics {
    /// Sessions are refused for their certificate before the core hears of them, and by the core.
    fn with_streams(&self, by_core: &Number) -> Number {
        let before = self.sessions.identity_rejected.load(Ordering::Relaxed);
        let value = match &by_core.value {
            Value::Counter(count) => Value::Counter(count + before),
            other => other.clone(),
        };
        Number {
            value,
            ..by_core.clone()
        }
    }

    fn of_runtime(&self, text: &mut MetricsText<'_, '_>) -> Encoded {
        let commits = self.commits.so_far();
        let (lists, listing) = self.lists.so_far();
        for (name, help, count) in [
            (
                "bigfleet_shard_store_commits",
                "Commits to the disk",
                commits.count,
            ),
            (
                "bigfleet_shard_store_records",
                "Records in them",
                commits.records,
            ),
            ("bigfleet_shard_lists", "Complete Lists", lists),
            (
                "bigfleet_shard_lists_failed",
                "Lists that did not come to their end",
                self.lists.failed.load(Ordering::Relaxed),
            ),
            (
                "bigfleet_shard_audit_lines_lost",
                "Lines the audit log could not take",
                self.audit.lost.load(Ordering::Relaxed),
            ),
            (
                "bigfleet_shard_audit_lines_summarised",
                "Actions that are only in summaries of the audit log",
                self.audit.summarised.load(Ordering::Relaxed),
            ),
        ] {
            text.counter(name, help, count)?;
        }
        text.seconds(
            "bigfleet_shard_store_commit_seconds",
            "Time spent in commits",
            commits.took,
        )?;
        text.seconds(
            "bigfleet_shard_list_seconds",
            "Time spent in Lists",
            listing,
        )?;
        text.gauge(
            "bigfleet_shard_store_commit_longest_seconds",
            "The longest commit",
            commits.longest.as_secs_f64(),
        )?;
        text.gauge(
            "bigfleet_shard_clock_behind_seconds",
            "By how much the host's clock is ahead of the shard's; it was set since the shard began",
            self.clock.behind(self.trouble.host_clock()),
        )?;
        match &self.tls {
            Some(tls) => of_certificates(text, tls.counts()),
            None => Ok(()),
        }
    }
}

fn of_certificates(text: &mut MetricsText<'_, '_>, counts: TlsCounts) -> Encoded {
    text.counter(
        "bigfleet_shard_tls_reloads",
        "Changed certificates taken into use",
        counts.reloaded,
    )?;
    text.counter(
        "bigfleet_shard_tls_reloads_refused",
        "Changed certificates refused",
        counts.refused,
    )?;
    text.gauge(
        "bigfleet_shard_tls_expires_timestamp_seconds",
        "When the certificate in force expires",
        counts.expires_unix_seconds as f64,
    )
}
