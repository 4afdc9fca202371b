//! `bigfleet bench coordinator`: this very binary as replicas of a coordinator, measured from outside.

use super::{answer::AnswerArgs, bar, show};
use crate::{failure::Failure, table::columns};
use bigfleet_bench::{
    Percentiles,
    processes::{CoordinatorReport, CoordinatorSettings, coordinator},
};
use bigfleet_provider_fake::duration;
use clap::Args as ClapArgs;
use std::{path::PathBuf, time::Duration};

/// `bigfleet bench coordinator`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// How often the leader is killed
    #[arg(long, default_value_t = 20, value_parser = super::at_least_one)]
    kills: usize,

    /// How many shards report
    #[arg(long, default_value_t = 200, value_parser = super::at_least_one)]
    shards: usize,

    /// How often each shard reports
    #[arg(long, value_parser = duration, default_value = "10s")]
    every: Duration,

    /// How long to watch reports, and then writes
    #[arg(long, value_parser = duration, default_value = "20s")]
    watched: Duration,

    /// How many callers write at once
    #[arg(long, default_value_t = 128, value_parser = super::at_least_one)]
    callers: usize,

    /// How many domains are on record
    #[arg(long, default_value_t = 100_000, value_parser = super::at_least_one)]
    domains: usize,

    /// How many clusters are on record
    #[arg(long, default_value_t = 20_000, value_parser = super::at_least_one)]
    clusters: usize,

    /// The directory of the data directories, to measure that disk [default: that for temporary files]
    #[arg(long)]
    folder: Option<PathBuf>,

    #[command(flatten)]
    answer: AnswerArgs,
}

/// Measures, then writes.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let undone = |why: &dyn std::fmt::Display| Failure::Undone(why.to_string());
    let settings = CoordinatorSettings {
        program: std::env::current_exe().map_err(|why| undone(&why))?,
        folder: args.folder.clone().unwrap_or_else(std::env::temp_dir),
        kills: args.kills,
        shards: args.shards,
        every: args.every,
        watched: args.watched,
        callers: args.callers,
        domains: args.domains,
        clusters: args.clusters,
    };
    let bar = bar();
    let runtime = tokio::runtime::Runtime::new().map_err(|why| undone(&why))?;
    let measured = runtime.block_on(coordinator(&settings, &mut show(&bar)));
    bar.finish_and_clear();
    args.answer
        .answer(measured.map_err(|why| undone(&why))?, table)
}

fn table(report: &CoordinatorReport) -> String {
    let one = |what: &str, value: String| vec![what.to_owned(), value, String::new()];
    let two = |what: &str, of: Percentiles| {
        let (middle, slow) = (format!("{} ms", of.p50), format!("{} ms", of.p99));
        vec![what.to_owned(), middle, slow]
    };
    let known = |value: Option<f64>, unit: &str| {
        value.map_or("unknown".to_owned(), |value| format!("{value} {unit}"))
    };
    let bytes = format!("{:.1} MB", report.snapshot_bytes as f64 / 1e6);
    let rows = vec![
        two("failover", report.failover_ms),
        two("report", report.report_ms),
        one(
            "reports, the leader",
            known(report.reporting_leader_cores, "cores"),
        ),
        two("write", report.write_ms),
        one("writes", format!("{} per second", report.writes_per_second)),
        one("snapshot", format!("{} s", report.snapshot_seconds)),
        one("size of it", bytes),
        one("restart", format!("{} s", report.restart_seconds)),
        one("memory", known(report.rss_mb, "MB")),
        one("most memory", known(report.peak_rss_mb, "MB")),
    ];
    columns(&["COORDINATOR", "P50", "P99"], rows)
}
