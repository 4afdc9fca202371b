//! Counts: what a replica has counted, and all of its numbers as one page.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bigfleet_coordinator_core::{
    AckOutcome, Caller, CoordinatorCore, OrderKind, Refused, ReportEnd, TransferState,
};
use bigfleet_model::Time;

use crate::consensus::{Results, View};
use crate::metrics_page::{Histogram, Page};

/// What a process has counted since it began.
#[derive(Debug, Default)]
pub(crate) struct Counts(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    applied: BTreeMap<&'static str, u64>,
    apply_seconds: Histogram,
    /// Bytes of the last snapshot that was saved or exported.
    state_bytes: u64,
    turned_away: BTreeMap<&'static str, u64>,
    reigns: u64,
    exported: u64,
    not_exported: u64,
    last_export: Option<Instant>,
}

impl Counts {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn proposed(&self, results: &Result<Results, Refused>, took: Duration) {
        let outcome = match results {
            Err(_) => "error",
            Ok(results) if results.iter().any(Result::is_err) => "fsm_error",
            Ok(_) => "success",
        };
        let mut inner = self.inner();
        *inner.applied.entry(outcome).or_default() += 1;
        inner.apply_seconds.add(took);
    }

    pub(crate) fn turned_away(&self, rpc: &'static str) {
        *self.inner().turned_away.entry(rpc).or_default() += 1;
    }

    pub(crate) fn reign_begun(&self) {
        self.inner().reigns += 1;
    }

    /// The tables were this long when they were last written out.
    pub(crate) fn state_bytes(&self, bytes: usize) {
        self.inner().state_bytes = bytes as u64;
    }

    pub(crate) fn exported(&self, is_done: bool) {
        let mut inner = self.inner();
        if is_done {
            inner.exported += 1;
            inner.last_export = Some(Instant::now());
        } else {
            inner.not_exported += 1;
        }
    }

    /// Everything, as OpenMetrics text.
    pub(crate) fn page(&self, core: &CoordinatorCore, view: &View, now: Time) -> String {
        let inner = self.inner();
        let mut page = Page::default();
        let tables = core.tables();
        page.gauge(
            "raft_term",
            "the reign, which rises with every leader",
            tables.reign(),
        );
        page.gauge(
            "is_leader",
            "1 while this replica leads",
            u64::from(core.is_leading() && view.has_quorum),
        );
        page.gauge(
            "restored",
            "1 until a restore is finished",
            u64::from(tables.is_restored()),
        );
        page.gauge("commit_index", "entries of the log here", view.last);
        page.gauge("applied_index", "entries applied here", view.applied);
        page.counter(
            "leader_changes",
            "reigns this process began",
            "",
            [("", inner.reigns)],
        );
        let outcomes = ["success", "error", "fsm_error"];
        let applied =
            outcomes.map(|one| (one, inner.applied.get(one).copied().unwrap_or_default()));
        page.counter("apply", "proposals, by how they ended", "outcome", applied);
        page.histogram(
            "apply_duration_seconds",
            "from a proposal to its result",
            &inner.apply_seconds,
        );
        page.gauge(
            "state_bytes",
            "size of the snapshot that was last saved or exported from here",
            inner.state_bytes,
        );
        page.counter(
            "identity_rejected",
            "calls whose certificate did not fit",
            "rpc",
            inner.turned_away.iter().map(|(rpc, count)| (*rpc, *count)),
        );
        let ends = [
            ("heard", ReportEnd::Heard),
            ("unheard", ReportEnd::Unheard),
            ("old", ReportEnd::Old),
            ("refused", ReportEnd::Refused),
            ("other_process", ReportEnd::OtherProcess),
        ];
        let counters = core.counters();
        let count = |end| counters.reports.get(&end).copied().unwrap_or_default();
        let ends = ends.map(|(name, end)| (name, count(end)));
        page.counter(
            "reports",
            "reports of shards, by how they ended",
            "outcome",
            ends,
        );
        page.counter(
            "reports_unheard",
            "reports that were answered with WAIT",
            "",
            [("", count(ReportEnd::Unheard))],
        );
        page.counter(
            "identity_conflicts",
            "reports of a process that is not on record for its shard",
            "",
            [("", count(ReportEnd::OtherProcess))],
        );
        let acks = counters.acks.iter();
        let acks = acks.map(|((kind, outcome), count)| {
            let labels = [
                ("kind", kind_name(*kind)),
                ("outcome", outcome_name(*outcome)),
            ];
            (labels, *count)
        });
        page.counter_of_two("instruction_acks", "answers to instructions", acks);
        let floors = [
            ("raised", counters.floor_raised),
            ("refused", counters.floor_refused),
        ];
        page.counter(
            "term_floor",
            "marks of shards above the reign",
            "outcome",
            floors,
        );
        page.counter(
            "snapshot_export",
            "backups put into the export folder, by how that ended",
            "outcome",
            [("success", inner.exported), ("error", inner.not_exported)],
        );
        if let Some(last) = inner.last_export {
            page.gauge(
                "snapshot_export_age_seconds",
                "since this process last put a backup into the export folder",
                last.elapsed().as_secs(),
            );
        }
        for (directory, lag) in &view.lags {
            let member = view.members.iter().find(|(one, _, _)| one == directory);
            let name = member.map_or("", |(_, member, _)| member.name.as_str());
            page.labelled(
                "peer_lag_entries",
                "entries a replica lacks",
                "peer",
                name,
                *lag,
            );
        }
        // Whoever scrapes may see what any reader may.
        if let Ok(shown) = core.read(&Caller::Unverified) {
            let domains = shown.domain_counts();
            for (state, count) in [
                ("held", domains.held),
                ("waiting", domains.waiting),
                ("leaving", domains.leaving),
            ] {
                page.labelled(
                    "domains",
                    "domains, by how they stand",
                    "state",
                    state,
                    count as u64,
                );
            }
            page.gauge(
                "machine_rows",
                "machines that do not follow their domain",
                shown.machines().count() as u64,
            );
            page.gauge(
                "everything_conflicts",
                "providers of which two shards hold everything",
                shown.everything_conflicts() as u64,
            );
            let clusters = shown.clusters();
            let twice = clusters.iter().filter(|one| !one.also_at.is_empty());
            page.gauge(
                "binding_conflicts",
                "clusters that two shards serve",
                twice.count() as u64,
            );
            for (state, name) in [
                (TransferState::Moving, "moving"),
                (TransferState::Done, "done"),
                (TransferState::Returning, "returning"),
            ] {
                let open = shown.transfers().filter(|(_, one)| one.state == state);
                page.labelled(
                    "transfers_open",
                    "transfers of machines between shards, by how far they are",
                    "state",
                    name,
                    open.count() as u64,
                );
            }
            let instructions = shown.instructions();
            let shards = shown.shards();
            for shard in &shards {
                let id = shard.shard.as_str();
                let pending = instructions.iter().filter(|(of, _)| of.as_str() == id);
                page.labelled(
                    "pending_instructions",
                    "instructions not acknowledged",
                    "shard",
                    id,
                    pending.count() as u64,
                );
            }
            for shard in &shards {
                if let Some(last) = shard.last_report {
                    let (id, age) = (shard.shard.as_str(), now.duration_since(last).as_secs());
                    page.labelled(
                        "report_age_seconds",
                        "since the last report",
                        "shard",
                        id,
                        age,
                    );
                }
            }
        }
        page.text.push_str("# EOF\n");
        page.text
    }
}

fn kind_name(kind: OrderKind) -> &'static str {
    match kind {
        OrderKind::AssignDomain => "assign_domain",
        OrderKind::UnassignDomain => "unassign_domain",
        OrderKind::Claim => "claim",
        OrderKind::Return => "return",
    }
}

fn outcome_name(outcome: AckOutcome) -> &'static str {
    match outcome {
        AckOutcome::Accepted => "accepted",
        AckOutcome::RejectedStale => "rejected_stale",
        AckOutcome::RejectedInvalid => "rejected_invalid",
        AckOutcome::Failed => "failed",
    }
}
