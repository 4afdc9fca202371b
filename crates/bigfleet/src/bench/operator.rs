//! `bigfleet bench operator`: this very binary as a cluster's operator and pod controller, measured from outside.

use super::{
    answer::AnswerArgs,
    at_least_one, bar,
    shard::{cost, one, times},
    show,
};
use crate::{failure::Failure, table::columns};
use bigfleet_bench::processes::{OperatorReport, OperatorSettings, operator};
use clap::Args as ClapArgs;
use std::time::Duration;

/// What was asked.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Measure at the size the bounds were made for: 100,000 requests and 150,000 Pods; takes most of an hour
    #[arg(long, conflicts_with_all = ["requests", "pods"])]
    full: bool,

    /// How many CapacityRequests there are
    #[arg(long, default_value_t = 10_000, value_parser = at_least_one)]
    requests: usize,

    /// How many changes are timed while requests are acknowledged, and as many after
    #[arg(long, default_value_t = 10, value_parser = at_least_one)]
    changes: usize,

    /// How many machines the shard tells of at once
    #[arg(long, default_value_t = 1_000, value_parser = at_least_one)]
    updates: usize,

    /// How many Pods there are
    #[arg(long, default_value_t = 15_000, value_parser = at_least_one)]
    pods: usize,

    /// How many Pods a second in the burst
    #[arg(long, default_value_t = 50, value_parser = at_least_one)]
    burst_rate: usize,

    /// How long the burst lasts
    #[arg(long, default_value = "20s", value_parser = bigfleet_provider_fake::duration)]
    burst: Duration,

    #[command(flatten)]
    answer: AnswerArgs,
}

/// Measures, then writes.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let undone = |why: &dyn std::fmt::Display| Failure::Undone(why.to_string());
    let tenfold = if args.full { 10 } else { 1 };
    let settings = OperatorSettings {
        program: std::env::current_exe().map_err(|why| undone(&why))?,
        requests: args.requests * tenfold,
        changes: args.changes,
        updates: args.updates,
        pods: args.pods * tenfold,
        burst_rate: args.burst_rate,
        burst: args.burst,
    };
    let bar = bar();
    let runtime = tokio::runtime::Runtime::new().map_err(|why| undone(&why))?;
    let measured = runtime.block_on(operator(&settings, &mut show(&bar)));
    bar.finish_and_clear();
    args.answer
        .answer(measured.map_err(|why| undone(&why))?, table)
}

fn table(report: &OperatorReport) -> String {
    let seconds = |seconds: f64| format!("{seconds} s");
    let known = |number: Option<f64>, unit: &str| {
        number.map_or("unknown".to_owned(), |number| format!("{number} {unit}"))
    };
    let requests = &report.requests;
    let mut rows = vec![
        one("REQUESTS", requests.requests),
        one("roll-up of all of them", seconds(requests.whole_seconds)),
        one(
            "CPU until then",
            known(requests.cpu_until_whole_seconds, "s"),
        ),
        times("building a roll-up", requests.roll_up_ms),
        times("change to roll-up", requests.change_to_roll_up_ms),
        times("the same at rest", requests.change_to_roll_up_at_rest_ms),
        one(
            "acknowledged",
            format!("{} per second", requests.acknowledged_per_second),
        ),
        cost("operator", requests.operator),
        cost("API server", requests.api_server),
        cost("etcd", requests.etcd),
    ];
    let updates = &report.updates;
    rows.extend([
        one(
            "MACHINES",
            format!("{}, {} lost", updates.machines, updates.lost),
        ),
        one("took", seconds(updates.seconds)),
        cost("operator", updates.operator),
        cost("API server", updates.api_server),
        cost("etcd", updates.etcd),
    ]);
    let pods = &report.pods;
    rows.extend([
        one("PODS", pods.pods),
        one(
            "requests of them",
            format!("{} per second", pods.requests_per_second),
        ),
        cost("pod controller", pods.pod_controller),
        cost("API server", pods.api_server),
        cost("etcd", pods.etcd),
        one("started again, ready", seconds(pods.ready_seconds)),
        one("CPU until then", known(pods.cpu_until_whole_seconds, "s")),
        one("its most memory", known(pods.restarted_peak_rss_mb, "MB")),
        one(
            "BURST",
            format!(
                "{} Pods, {} a second, {} lost",
                pods.burst.pods, pods.burst.per_second, pods.burst.lost
            ),
        ),
        times("Pod to request", pods.burst.to_request_ms),
        cost("API server", pods.burst.api_server),
        cost("etcd", pods.burst.etcd),
    ]);
    columns(
        &[&format!("{} CORES", report.cores), "P50", "P99", "WORST"],
        rows,
    )
}
