//! Counts: what a replica has counted, and all of its numbers as one page.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bigfleet_coordinator_core::{Caller, CoordinatorCore, Refused, ReportEnd};
use bigfleet_model::Time;

use crate::consensus::{Results, View};

/// What a process has counted since it began.
#[derive(Debug, Default)]
pub(crate) struct Counts(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    applied: BTreeMap<&'static str, u64>,
    apply_seconds: f64,
    turned_away: BTreeMap<&'static str, u64>,
    reigns: u64,
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
        inner.apply_seconds += took.as_secs_f64();
    }

    pub(crate) fn turned_away(&self, rpc: &'static str) {
        *self.inner().turned_away.entry(rpc).or_default() += 1;
    }

    pub(crate) fn reign_begun(&self) {
        self.inner().reigns += 1;
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
        let ends = ends.map(|(name, end)| {
            let count = counters.reports.get(&end);
            (name, count.copied().unwrap_or_default())
        });
        page.counter(
            "reports",
            "reports of shards, by how they ended",
            "outcome",
            ends,
        );
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

#[derive(Debug, Default)]
struct Page {
    text: String,
    last: &'static str,
}

impl Page {
    fn head(&mut self, name: &'static str, help: &str, kind: &str) {
        if self.last != name {
            self.last = name;
            let name = format!("bigfleet_coordinator_{name}");
            // Writing to a text cannot fail.
            let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        }
    }

    fn gauge(&mut self, name: &'static str, help: &str, value: u64) {
        self.head(name, help, "gauge");
        let _ = writeln!(self.text, "bigfleet_coordinator_{name} {value}");
    }

    fn labelled(&mut self, name: &'static str, help: &str, label: &str, of: &str, value: u64) {
        self.head(name, help, "gauge");
        let of = of.escape_default();
        let _ = writeln!(
            self.text,
            "bigfleet_coordinator_{name}{{{label}=\"{of}\"}} {value}"
        );
    }

    fn counter<'a>(
        &mut self,
        name: &'static str,
        help: &str,
        label: &str,
        counts: impl IntoIterator<Item = (&'a str, u64)>,
    ) {
        self.head(name, help, "counter");
        for (of, value) in counts {
            let labels = if label.is_empty() {
                String::new()
            } else {
                format!("{{{label}=\"{of}\"}}")
            };
            let _ = writeln!(
                self.text,
                "bigfleet_coordinator_{name}_total{labels} {value}"
            );
        }
    }
}
