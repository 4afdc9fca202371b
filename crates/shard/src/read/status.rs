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
mod noticed;
mod surroundings;

pub(crate) use surroundings::Surroundings;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bigfleet_model::{ClusterId, Time, counted};
use bigfleet_shard_core::{
    BackoffView, ClusterView, PausedBy, RailsView, Scope, ShardCore, Stage, WorkView,
};
use bigfleet_wire::unix_nanos;
use bigfleet_wire::v1alpha1::{InspectStatusResponse, ProblemSeverity, ProblemView};
use tonic::Status;

use super::{Reads, ShardInfo};
use crate::events::{Events, Happened};
use crate::news::twin_text;
use crate::publish::stage_word;

/// A Need that has missed something for longer than this is a problem.
const MISSING_FOR: Duration = Duration::from_secs(5 * 60);
/// An operation that waits for one thing longer than this is stuck, whatever it is; one that was refused is at once.
const WAITS_FOR: Duration = Duration::from_secs(10 * 60);
/// Entries of one kind; the rest are counted.
const MOST_OF_A_KIND: usize = 10;
/// For so long machines that were lost at once are a problem by themselves.
const LOSSES_FOR: Duration = Duration::from_secs(10 * 60);
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
    of_readiness(&reads.surroundings, &mut found);
    for noted in reads.surroundings.noted() {
        found.put(
            noted.severity,
            noted.kind,
            noted.what,
            noted.since,
            noted.verb,
        );
    }
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
            "{} in zone {}: {} in a row failed, the last with \"{last}\"",
            pool.instance_type,
            pool.zone,
            counted(failures, "Create", "Creates")
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
            "cluster {cluster}: {} in a row did not get past {step}, the last with \"{last}\"",
            counted(failures, "machine", "machines")
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
    let stuck = stuck_by_reason(core, found.now, Duration::ZERO);
    found.bounded(
        "work",
        "bigfleet get work",
        stuck,
        |found, ((why, action), (count, since))| {
            let what = stuck_text(count, action, &why);
            found.warning("work", what, Some(since), "bigfleet get work");
        },
    );
}

/// What is in the way of an action, how many operations that holds up, and since when.
type StuckWork = ((String, &'static str), (usize, Time));

/// Those that were refused at least so long ago count, and those that wait for one thing for too long; most first.
fn stuck_by_reason(core: &ShardCore, now: Time, refused_for: Duration) -> Vec<StuckWork> {
    let mut stuck: BTreeMap<(String, &'static str), (usize, Time)> = BTreeMap::new();
    let mut page = core.work_page(None);
    loop {
        for work in &page.entries {
            let Some(why) = stuck_by(work, now, refused_for) else {
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
    stuck
}

fn stuck_text(count: usize, action: &str, why: &str) -> String {
    let many = counted(count, "operation is", "operations are");
    format!("{many} stuck in {action}: {why}")
}

/// What keeps an operation from going on; `None` if it is on its way. What a pause holds back is said once, by
/// the pause.
fn stuck_by(work: &WorkView, now: Time, refused_for: Duration) -> Option<String> {
    if work.stage == Stage::Paused {
        return None;
    }
    if let Some((_, refused)) = &work.refused {
        let is_known = refused_for <= now.duration_since(work.committed);
        return is_known.then(|| format!("refused with \"{refused}\""));
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
    let lacking = lacking_by_cluster(core, found.now);
    let verb = "bigfleet get shortfalls";
    let lacking = lacking.into_iter().collect();
    found.bounded("need", verb, lacking, |found, (cluster, (count, since))| {
        let verb = format!("bigfleet explain {cluster}");
        let what = format!("cluster {cluster}: {}", lacking_text(count));
        found.critical("need", what, Some(since), &verb);
    });
}

/// How many Needs of a cluster have not been served in full for long, and since when the first.
fn lacking_by_cluster(core: &ShardCore, now: Time) -> BTreeMap<&ClusterId, (usize, Time)> {
    let mut lacking = BTreeMap::new();
    for (need, since) in core.lacking() {
        if MISSING_FOR < now.duration_since(since) {
            let (count, first) = lacking.entry(&need.cluster).or_insert((0, since));
            *count += 1;
            *first = (*first).min(since);
        }
    }
    lacking
}

fn lacking_text(count: usize) -> String {
    let many = counted(count, "Need is", "Needs are");
    format!("{many} not served in full for more than 5 minutes")
}

fn of_provider(core: &ShardCore, info: &ShardInfo, found: &mut Found) {
    let Some(since) = core.provider_lost() else {
        return;
    };
    let (address, problem) = (&info.provider_address, info.provider_problem());
    let what = format!("the provider at {address} {problem}");
    found.critical("provider", what, Some(since), "bigfleet get work");
}

fn of_readiness(around: &Surroundings, found: &mut Found) {
    if let Err(why) = around.publisher.ready() {
        let what = format!("not ready: {why}");
        found.critical("ready", what, None, "bigfleet get rails");
    }
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
