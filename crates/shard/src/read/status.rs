//! InspectStatus: everything somebody should know, worst first (shard.md §9).
//!
//! ```text
//! the core: rails, pauses, clusters, work, Needs ─┐
//! beside it: provider, disk, certificates,        ├─▶ problems, worst first, each with where to look
//!            audit log, coordinator ──────────────┘
//! ```
//!
//! Whoever is paged asks this one question. It is answered from what the shard knows at that moment, and waits
//! for no cycle. Nothing is listed that is as it should be; an empty list means that all is well.

mod leaving;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bigfleet_model::{Time, counted, shown};
use bigfleet_shard_core::{
    BackoffView, ClusterView, PausedBy, RailsView, Scope, ShardCore, Stage, Value, WorkView,
};
use bigfleet_wire::unix_nanos;
use bigfleet_wire::v1alpha1::{InspectStatusResponse, ProblemSeverity, ProblemView};
use tonic::Status;

use super::shortfall_text::span;
use super::{Reads, ShardInfo};
use crate::audit::AuditCounts;
use crate::clock::Clock;
use crate::events::{Events, Happened};
use crate::news::twin_text;
use crate::publish::{Beside, Publisher, stage_word};
use crate::rpcs::Rpcs;
use crate::settings::Settings;
use crate::trouble::Trouble;

/// A Need that has missed something for longer than this is a problem.
const MISSING_FOR: Duration = Duration::from_secs(5 * 60);
/// An operation that waits for one thing longer than this is stuck, whatever it is; one that was refused is at once.
const WAITS_FOR: Duration = Duration::from_secs(10 * 60);
/// Entries of one kind; the rest are counted.
const MOST_OF_A_KIND: usize = 10;
const CERTIFICATE_SOON: Duration = Duration::from_secs(14 * 24 * 60 * 60);
const CERTIFICATE_NOW: Duration = Duration::from_secs(2 * 24 * 60 * 60);
/// For so long machines that were lost at once are a problem by themselves.
const LOSSES_FOR: Duration = Duration::from_secs(10 * 60);
/// Every machine is shown again within this, and what cannot be read of it too.
const DOUBTED_FOR: Duration = Duration::from_secs(15 * 60);
/// A clock that is off by more than this was set; less may be how clocks are kept in step.
const CLOCK_OFF: f64 = 60.0;
const DISK_LOW: u64 = 512 << 20;
const DISK_FULL: u64 = 64 << 20;

/// What stands beside the core, and is asked when somebody asks.
#[derive(Clone, Debug)]
pub(crate) struct Surroundings {
    pub(crate) publisher: Publisher,
    pub(crate) audit: Arc<AuditCounts>,
    pub(crate) beside: Arc<Beside>,
    pub(crate) tls: Option<Arc<bigfleet_net::Tls>>,
    pub(crate) data_dir: std::path::PathBuf,
    pub(crate) coordinator: Option<String>,
    rpcs: Arc<Rpcs>,
    clock: Clock,
    trouble: Trouble,
}

impl Surroundings {
    pub(crate) fn new(metrics: &crate::publish::Metrics, settings: &Settings) -> Self {
        Self {
            publisher: metrics.publisher.clone(),
            audit: Arc::clone(&metrics.audit),
            beside: Arc::clone(&metrics.beside),
            tls: metrics.tls.clone(),
            data_dir: settings.data_dir.clone(),
            coordinator: settings.around.coordinator_addr.clone(),
            rpcs: Arc::clone(&metrics.rpcs),
            clock: metrics.clock,
            trouble: metrics.trouble.clone(),
        }
    }
}

pub(super) async fn inspect(reads: &Reads) -> Result<InspectStatusResponse, Status> {
    let info = Arc::clone(&reads.info);
    let asked = reads.hub.ask(move |core| {
        let now = info.now();
        let mut found = Found::at(now);
        of_core(core, &info, &mut found);
        (info.header(core, 0), core.epoch(), found)
    });
    let (header, epoch, mut found) = asked.await?;
    of_losses(&reads.events, &mut found);
    of_surroundings(&reads.surroundings, &reads.info.shard, &mut found);
    let now = found.now;
    let problems = found.sorted();
    Ok(InspectStatusResponse {
        header: Some(header),
        problems,
        answered_at_unix_nanos: unix_nanos(now),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        epoch,
    })
}

/// Problems as they are found.
struct Found {
    now: Time,
    problems: Vec<ProblemView>,
}

impl Found {
    fn at(now: Time) -> Self {
        Self {
            now,
            problems: Vec::new(),
        }
    }

    fn put(
        &mut self,
        severity: ProblemSeverity,
        kind: &str,
        what: impl Into<String>,
        since: Option<Time>,
        verb: impl Into<String>,
    ) {
        self.problems.push(ProblemView {
            severity: severity.into(),
            kind: kind.to_owned(),
            what: what.into(),
            since_unix_nanos: since.map_or(0, unix_nanos),
            verb: verb.into(),
        });
    }

    fn critical(&mut self, kind: &str, what: impl Into<String>, since: Option<Time>, verb: &str) {
        self.put(ProblemSeverity::Critical, kind, what, since, verb);
    }

    fn warning(
        &mut self,
        kind: &str,
        what: impl Into<String>,
        since: Option<Time>,
        verb: impl Into<String>,
    ) {
        self.put(ProblemSeverity::Warning, kind, what, since, verb);
    }

    /// As many of a kind as fit on a screen, and one more that counts the rest.
    fn bounded<T>(
        &mut self,
        kind: &str,
        verb: &str,
        all: Vec<T>,
        mut each: impl FnMut(&mut Self, T),
    ) {
        let more = all.len().saturating_sub(MOST_OF_A_KIND);
        for one in all.into_iter().take(MOST_OF_A_KIND) {
            each(self, one);
        }
        if 0 < more {
            self.warning(kind, format!("and {more} more like these"), None, verb);
        }
    }

    /// The worst first, then the oldest; those of unknown age last.
    fn sorted(mut self) -> Vec<ProblemView> {
        self.problems.sort_by_key(|problem| {
            let since = match problem.since_unix_nanos {
                0 => i64::MAX,
                since => since,
            };
            (std::cmp::Reverse(problem.severity), since)
        });
        self.problems
    }
}

fn of_core(core: &ShardCore, info: &ShardInfo, found: &mut Found) {
    let view = core.rails();
    of_shard(&view, found);
    of_pauses(&view, info, found);
    of_rails(&view, found);
    let clusters = core.clusters();
    let clusters = clusters.iter().filter_map(|id| core.cluster_view(id));
    of_sessions(clusters, found);
    of_work(core, found);
    of_needs(core, found);
    leaving::of_leaving(core, found);
    of_provider(core, info, found);
}

fn of_shard(view: &RailsView, found: &mut Found) {
    if view.fenced {
        let what = "another process runs this shard: this one was superseded and has stopped itself; \
                    stop whichever should not be";
        found.critical("fence", what, None, "bigfleet get rails");
    }
    if let Some((seen, own)) = view.twin {
        found.critical("fence", twin_text(seen, own), None, "bigfleet get rails");
    }
    if let Some(incident) = &view.incident {
        let what = format!("stopped by an incident, a defect of ours: {incident}");
        found.critical("incident", what, None, "bigfleet get rails");
    }
    if view.dry_run {
        let what = "dry run: decisions are shown and no machine is changed (--dry-run)";
        found.warning("pause", what, None, "bigfleet get actions");
    }
}

fn of_pauses(view: &RailsView, info: &ShardInfo, found: &mut Found) {
    let pauses = view.pauses.clone();
    found.bounded("pause", "bigfleet get pauses", pauses, |found, pause| {
        let (scope, severity) = match &pause.scope {
            Scope::All => ("everything".to_owned(), ProblemSeverity::Critical),
            Scope::Cluster(cluster) => (format!("cluster {cluster}"), ProblemSeverity::Warning),
            Scope::Provider(_) => {
                let provider = format!("the provider at {}", info.provider_address);
                (provider, ProblemSeverity::Critical)
            }
        };
        let by = match (pause.by, info.flag_pauses) {
            (PausedBy::Admin, _) => "`bigfleet pause`",
            (PausedBy::Configuration, true) => "--actuation-paused",
            (PausedBy::Configuration, false) => "the pause file",
        };
        let mut what = format!("{scope} is paused by {by}, no machine is changed");
        if !pause.note.reason.is_empty() {
            what += &format!(": {}", pause.note.reason);
        }
        let since = Some(pause.since);
        found.put(severity, "pause", what, since, "bigfleet get pauses");
    });
}

/// What holds something back: quarantined reports, breakers, and the other rails.
fn of_rails(view: &RailsView, found: &mut Found) {
    let rails = "bigfleet get rails";
    let held = view.held.clone();
    found.bounded("quarantine", rails, held, |found, held| {
        let (cluster, why) = (&held.cluster, &held.why);
        let reports = match held.reports {
            1 => "its last roll-up is".to_owned(),
            reports => format!("{reports} roll-ups in a row are"),
        };
        let what =
            format!("cluster {cluster}: {reports} held, its earlier demand stays in force: {why}");
        let verb = format!("bigfleet describe cluster {cluster}");
        found.warning("quarantine", what, Some(held.since), verb);
    });
    let capped = view.capped.clone();
    found.bounded("rail", rails, capped, |found, capped| {
        let cluster = &capped.cluster;
        let machines = counted(capped.machines, "machine", "machines");
        let what =
            format!("cluster {cluster}: {machines} to be reclaimed, held by the reclaim cap");
        found.warning("rail", what, Some(capped.since), rails);
    });
    if 0 < view.removals_held {
        let what = counted(
            view.removals_held,
            "machine was missing from the provider's last List and is kept",
            "machines were missing from the provider's last List and are kept",
        );
        found.warning("rail", what, None, rails);
    }
    let pools: Vec<_> = view
        .breakers
        .iter()
        .filter(|one| one.breaker.is_open())
        .collect();
    found.bounded("breaker", rails, pools, |found, one| {
        let (failures, last) = (one.breaker.failures, &one.breaker.last_error);
        let pool = &one.pool;
        let what = format!(
            "{} in zone {}: {failures} Creates in a row failed, the last with \"{last}\"",
            pool.instance_type, pool.zone
        );
        found.warning("breaker", what, Some(one.breaker.since), rails);
    });
    let joins: Vec<&BackoffView> = view
        .bootstraps
        .iter()
        .filter(|one| one.breaker.is_open())
        .collect();
    found.bounded("breaker", rails, joins, |found, one| {
        let (cluster, step, failures) = (&one.cluster, one.step.word(), one.breaker.failures);
        let last = &one.breaker.last_error;
        let what = format!(
            "cluster {cluster}: {failures} machines in a row did not get past {step}, the last with \"{last}\""
        );
        let verb = format!("bigfleet describe cluster {cluster}");
        found.warning("breaker", what, Some(one.breaker.since), verb);
    });
}

/// Clusters that have something to lose, and whose operator is not there.
fn of_sessions(clusters: impl Iterator<Item = ClusterView>, found: &mut Found) {
    let gone = clusters.filter(|one| one.session.is_none());
    let gone: Vec<_> = gone
        .filter(|one| 0 < one.rows || one.machines.values().any(|count| 0 < *count))
        .collect();
    found.bounded("session", "bigfleet get clusters", gone, |found, one| {
        let cluster = &one.cluster;
        let machines: u32 = one.machines.values().sum();
        let machines = counted(machines, "machine stays", "machines stay");
        let what = format!(
            "the operator of cluster {cluster} is not connected: its {machines}, and it gets no new ones"
        );
        let verb = format!("bigfleet describe cluster {cluster}");
        found.warning("session", what, one.gone_since, verb);
    });
}

/// Operations that were refused, or that wait for one thing for too long, by what is in their way.
fn of_work(core: &ShardCore, found: &mut Found) {
    let mut stuck: BTreeMap<(String, &'static str), (usize, Time)> = BTreeMap::new();
    let mut page = core.work_page(None);
    loop {
        for work in &page.entries {
            let Some(why) = stuck_by(work, found.now) else {
                continue;
            };
            let group = stuck.entry((why, work.action.word()));
            let (count, since) = group.or_insert((0, work.committed));
            *count += 1;
            *since = (*since).min(work.committed);
        }
        match &page.next {
            Some(next) => page = core.work_page(Some(next)),
            None => break,
        }
    }
    let mut stuck: Vec<_> = stuck.into_iter().collect();
    stuck.sort_by_key(|(_, (count, since))| (std::cmp::Reverse(*count), *since));
    found.bounded(
        "work",
        "bigfleet get work",
        stuck,
        |found, ((why, action), (count, since))| {
            let many = counted(count, "operation is", "operations are");
            let what = format!("{many} stuck in {action}: {why}");
            found.warning("work", what, Some(since), "bigfleet get work");
        },
    );
}

/// What keeps an operation from going on; `None` if it is on its way. What a pause holds back is said once, by
/// the pause.
fn stuck_by(work: &WorkView, now: Time) -> Option<String> {
    if work.stage == Stage::Paused {
        return None;
    }
    if let Some((_, refused)) = &work.refused {
        return Some(format!("refused with \"{refused}\""));
    }
    // A drain may take as long as its grace.
    let patience = match (work.stage, work.deadline) {
        (Stage::Drain, Some(deadline)) => deadline.duration_since(work.since).max(WAITS_FOR),
        _ => WAITS_FOR,
    };
    let waited = now.duration_since(work.since);
    (patience < waited).then(|| format!("it waits for: {}", stage_word(work.stage)))
}

/// Needs that have not been served in full for long.
fn of_needs(core: &ShardCore, found: &mut Found) {
    let mut lacking: BTreeMap<&str, (usize, Time)> = BTreeMap::new();
    for (need, since) in core.lacking() {
        if MISSING_FOR < found.now.duration_since(since) {
            let (count, first) = lacking.entry(need.cluster.as_str()).or_insert((0, since));
            *count += 1;
            *first = (*first).min(since);
        }
    }
    let lacking: Vec<_> = lacking.into_iter().collect();
    let verb = "bigfleet get shortfalls";
    found.bounded("need", verb, lacking, |found, (cluster, (count, since))| {
        let many = counted(count, "Need is", "Needs are");
        let what = format!("cluster {cluster}: {many} not served in full for more than 5 minutes");
        let verb = format!("bigfleet explain {cluster}");
        found.critical("need", what, Some(since), &verb);
    });
}

fn of_provider(core: &ShardCore, info: &ShardInfo, found: &mut Found) {
    let Some(since) = core.provider_lost() else {
        return;
    };
    let address = &info.provider_address;
    let mut what = format!("the provider at {address} does not answer");
    let why = info.provider_error();
    if !why.is_empty() {
        what += &format!(": {why}");
    }
    found.critical("provider", what, Some(since), "bigfleet get work");
}

fn of_surroundings(around: &Surroundings, shard: &str, found: &mut Found) {
    if let Err(why) = around.publisher.ready() {
        found.critical(
            "ready",
            format!("not ready: {why}"),
            None,
            "bigfleet get rails",
        );
    }
    of_records(around, found);
    of_disk(around, found);
    of_certificate(around, shard, found);
    of_coordinator(around, found);
    of_clock(around.clock.behind(around.trouble.host_clock()), found);
}

/// A shard keeps its own time from its start on, so that a clock that is set ends no drain and no pause.
fn of_clock(behind: f64, found: &mut Found) {
    if behind.abs() < CLOCK_OFF {
        return;
    }
    let way = if behind < 0.0 { "back" } else { "forward" };
    let off = Duration::from_secs_f64(behind.abs());
    let off = span(Time::ZERO, Time::ZERO + off);
    let what = format!(
        "the host's clock was set {off} {way} since this process began: the moments it tells and logs are off by \
         that, spans are not; restart it when that suits"
    );
    found.warning("clock", what, None, "date -u");
}

/// Machines that were lost at once, for a while: what lacks them may not have lacked anything for long yet.
fn of_losses(events: &Events, found: &mut Found) {
    let now = found.now;
    let is_recent = |one: &Arc<Happened>| {
        one.news.kind == "mass-loss" && now.duration_since(one.time) < LOSSES_FOR
    };
    let lost = events.after(0).into_iter().filter(is_recent).collect();
    let verb = "bigfleet get events";
    found.bounded("machines", verb, lost, |found, one: Arc<Happened>| {
        found.critical("machines", &*one.news.text, Some(one.time), verb);
    });
}

/// What a provider says of machines and cannot be read counts as nothing, so a fleet may look smaller than it is.
fn of_records(around: &Surroundings, found: &mut Found) {
    if let Some(doubted) = around.rpcs.doubted_within(DOUBTED_FOR) {
        let what = format!(
            "the provider says what cannot be read, and counts for less: {}",
            shown(&doubted)
        );
        let verb = "grep 'provider record read as less' in the shard's log";
        found.warning("provider", what, None, verb);
    }
}

fn of_disk(around: &Surroundings, found: &mut Found) {
    let folder = around.data_dir.display();
    let verb = format!("df -h {folder}");
    if let Ok(found_there) = rustix::fs::statvfs(&around.data_dir) {
        let free = found_there.f_bavail.saturating_mul(found_there.f_frsize);
        let left = free >> 20;
        let what =
            format!("{left} MiB are left on the disk of {folder}; once it is full the shard ends");
        if free < DISK_FULL {
            found.critical("disk", what, None, &verb);
        } else if free < DISK_LOW {
            found.warning("disk", what, None, &verb);
        }
    }
    let lost = around.audit.lost.load(Ordering::Relaxed);
    if 0 < lost {
        let lines = counted(lost, "line", "lines");
        let what = format!("{lines} of the audit log could not be written");
        found.warning("disk", what, None, verb);
    }
}

fn of_certificate(around: &Surroundings, shard: &str, found: &mut Found) {
    let Some(tls) = &around.tls else {
        return;
    };
    let counts = tls.counts();
    let verb = format!("bigfleet certs issue shard {shard}");
    let ends = Duration::from_secs(counts.expires_unix_seconds.max(0).unsigned_abs());
    match ends.checked_sub(around.trouble.host_clock()) {
        None => {
            let what = "the shard's certificate has expired: nobody new can connect, and no provider be called anew";
            found.critical("certificate", what, None, &verb);
        }
        Some(left) if left < CERTIFICATE_SOON => {
            let hours = left.as_secs() / 3600;
            let what = format!(
                "the shard's certificate ends in {} days {} hours",
                hours / 24,
                hours % 24
            );
            let severity = if left < CERTIFICATE_NOW {
                ProblemSeverity::Critical
            } else {
                ProblemSeverity::Warning
            };
            found.put(severity, "certificate", what, None, verb.clone());
        }
        Some(_) => {}
    }
    if counts.is_refused {
        let what = "changed certificate files cannot be used; the ones before stay in force";
        found.warning("certificate", what, None, verb);
    }
}

/// It is not needed for anything, but somebody meant it to be there.
fn of_coordinator(around: &Surroundings, found: &mut Found) {
    let Some(address) = &around.coordinator else {
        return;
    };
    let numbers = around.beside.numbers();
    let gauge = |name: &str| {
        let number = numbers.iter().find(|number| number.name == name);
        number.and_then(|number| match number.value {
            Value::Gauge(value) => Some(value),
            Value::Counter(_) | Value::Histogram(_) => None,
        })
    };
    if gauge("bigfleet_shard_coordinator_connected") == Some(0.0) {
        let what = format!(
            "the coordinator at {address} is not reached; the shard decides alone meanwhile"
        );
        let last = gauge("bigfleet_shard_coordinator_last_success_timestamp_seconds");
        let last = last.filter(|last| 0.0 < *last);
        let since = last.map(|seconds| Time::from_nanos(0) + Duration::from_secs_f64(seconds));
        found.warning(
            "coordinator",
            what,
            since,
            "grep 'coordinator not reached' in the shard's log",
        );
    }
}
