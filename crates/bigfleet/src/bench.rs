//! `bigfleet bench`: what a decision costs on a named workload, alone and in a whole shard; what a
//! provider, a shard, a coordinator and a cluster's side cost as processes.
//!
//! The object is the same whoever reads it; people get a bar while they wait and a table instead.

mod answer;
mod coordinator;
mod operator;
mod provider;
mod shard;

use crate::{failure::Failure, table::columns};
use answer::AnswerArgs;
use bigfleet_bench::{
    CoreReport, DecideReport, Percentiles, Progress, Promises, Settings, Told, core, decide,
};
use bigfleet_workloads::Preset;
use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::io::IsTerminal;

/// What was asked.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Measure decisions alone: from nothing, after small changes, and without any change
    Decide(WorkloadArgs),
    /// Measure whole cycles of a shard, without network and disk
    Core(WorkloadArgs),
    /// Start a provider and measure its calls and its memory
    Provider(provider::Args),
    /// Start an operator and a pod controller beside a real API server, and measure both
    Operator(operator::Args),
    /// Start a shard and measure throughput, many sessions, and a restart
    Shard(shard::Args),
    /// Start replicas of a coordinator and measure failover, reports, writes and what they remember
    Coordinator(coordinator::Args),
}

#[derive(Debug, ClapArgs)]
struct WorkloadArgs {
    /// The workload
    #[arg(long, value_enum)]
    profile: Profile,

    /// How many cycles of each kind; at least a hundred of those without changes
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    cycles: u32,

    /// The seed of the workload and of its changes
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Change only the first N clusters, to compare fleets of different size at the same rate of change
    #[arg(long, value_name = "N")]
    churning_clusters: Option<usize>,

    #[command(flatten)]
    answer: AnswerArgs,
}

/// The workloads there are numbers for.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Profile {
    /// 5,000 Pods in 2 clusters: a quick try.
    #[value(name = "dev-50")]
    Dev50,
    /// 20 clusters that lack machines, 2,580 Needs, 18,000 machines.
    CoLocated,
    /// 500,000 Pods in 20 clusters.
    #[value(name = "5k")]
    FiveK,
    /// The same, whose clusters tell more than sums: whole units, and what a drain would disturb.
    #[value(name = "5k-told")]
    FiveKTold,
    /// 5,000,000 Pods in 200 clusters.
    #[value(name = "50k")]
    FiftyK,
    /// 50,000,000 Pods in 2,000 clusters: the most one shard is made for.
    #[value(name = "500k")]
    FiveHundredK,
}

impl Profile {
    fn preset(self) -> Preset {
        match self {
            Self::Dev50 => Preset::Dev50,
            Self::CoLocated => Preset::CoLocated,
            Self::FiveK => Preset::FiveK,
            Self::FiveKTold => Preset::FiveKTold,
            Self::FiftyK => Preset::FiftyK,
            Self::FiveHundredK => Preset::FiveHundredK,
        }
    }
}

/// Measures, then writes.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    match &args.what {
        What::Decide(args) => measure(args, decide, decide_table),
        What::Core(args) => measure(args, core, core_table),
        What::Provider(args) => provider::run(args),
        What::Operator(args) => operator::run(args),
        What::Shard(args) => shard::run(args),
        What::Coordinator(args) => coordinator::run(args),
    }
}

fn measure<R: Promises + Serialize>(
    args: &WorkloadArgs,
    bench: fn(Settings, Progress<'_>) -> R,
    table: fn(&R) -> String,
) -> Result<(), Failure> {
    let settings = Settings {
        preset: args.profile.preset(),
        seed: args.seed,
        cycles: args.cycles as usize,
        churning_clusters: args.churning_clusters,
    };
    let bar = bar();
    let report = bench(settings, &mut show(&bar));
    bar.finish_and_clear();
    args.answer.answer(report, table)
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("it has to be at least 1".to_owned()),
        Ok(number) => Ok(number),
        Err(why) => Err(format!("{why}")),
    }
}

fn show(bar: &ProgressBar) -> impl FnMut(&'static str, usize, usize) + Send {
    |phase, done, of| {
        bar.set_message(phase);
        bar.set_length(of as u64);
        bar.set_position(done as u64);
    }
}

/// On stderr, and only if that is a terminal. Drawn between measurements, never by a thread that
/// would compete with them.
fn bar() -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(1);
    if let Ok(style) = ProgressStyle::with_template("{msg:22} {wide_bar} {elapsed}") {
        bar.set_style(style);
    }
    bar
}

fn one(what: &str, value: String) -> Vec<String> {
    vec![what.to_owned(), value, String::new()]
}

fn two(what: &str, of: Percentiles, unit: &str) -> Vec<String> {
    vec![
        what.to_owned(),
        format!("{} {unit}", of.p50),
        format!("{} {unit}", of.p99),
    ]
}

fn memory(peak_rss_mb: Option<f64>) -> Vec<String> {
    let known = peak_rss_mb.map(|mb| format!("{mb} MB"));
    one("peak memory", known.unwrap_or_else(|| "unknown".to_owned()))
}

fn core_table(report: &CoreReport) -> String {
    let per_cycle = |what: &str, count: f64| one(what, format!("{count} per cycle"));
    let rows = vec![
        two("cycle", report.cycle_ms, "ms"),
        two("events of a cycle", report.events_ms, "ms"),
        two("quiet cycle", report.quiet_us, "µs"),
        one("load", format!("{} ms", report.load_ms)),
        one("machines", report.machines.to_string()),
        one("clusters", report.clusters.to_string()),
        one("rows", report.rows.to_string()),
        per_cycle("events", report.events_per_cycle),
        per_cycle("actions", report.actions_per_cycle),
        per_cycle("records written", report.records_per_cycle),
        per_cycle("bytes written", report.bytes_persisted_per_cycle),
        memory(report.peak_rss_mb),
    ];
    let header = format!("{} SEED {}", report.profile.to_uppercase(), report.seed);
    columns(&[&header, "P50", "P99"], rows)
}

fn told_rows(told: &Told) -> Vec<Vec<String>> {
    let both = |what: &str, sums: Percentiles, whole: Percentiles| {
        one(
            what,
            format!("{} ms, {} ms with sums only", whole.p50, sums.p50),
        )
    };
    vec![
        both(
            "steady, whole units",
            told.sums_steady_ms,
            told.whole_steady_ms,
        ),
        both("full, whole units", told.sums_full_ms, told.whole_full_ms),
        one("a word on disruption", format!("{} µs", told.disruption_us)),
    ]
}

fn decide_table(report: &DecideReport) -> String {
    let mut rows = vec![
        two("full cycle", report.full_ms, "ms"),
        two("steady cycle", report.steady_ms, "ms"),
        two("quiet cycle", report.quiet_us, "µs"),
        one("load", format!("{} ms", report.load_ms)),
    ];
    if let Some(oracle_ms) = report.oracle_ms {
        let times = oracle_ms / report.full_ms.p50.max(0.001);
        rows.push(one(
            "the oracle",
            format!("{oracle_ms} ms, {times:.0} times a full cycle"),
        ));
    }
    rows.extend([
        one("machines", report.machines.to_string()),
        one("shapes", report.shapes.to_string()),
        one("profiles", report.profiles.to_string()),
        one("rows", report.rows.to_string()),
        one("rows after fold", report.rows_after_fold.to_string()),
        one(
            "changed rows",
            format!("{} per cycle", report.changed_rows_per_cycle),
        ),
        one(
            "changed machines",
            format!("{} per cycle", report.changed_machines_per_cycle),
        ),
        one(
            "hot record",
            format!("{} bytes", report.hot_bytes_per_machine),
        ),
        memory(report.peak_rss_mb),
        one("digest", report.digest.clone()),
    ]);
    if let Some(growth) = &report.growth {
        let (here, there) = (growth.steady_ms.p50, growth.smaller_steady_ms.p50);
        let what = format!("the same changes in {}", growth.smaller);
        rows.push(one(&what, format!("{there} ms, {here} ms in this one")));
    }
    rows.extend(report.told.iter().flat_map(told_rows));
    let header = format!("{} SEED {}", report.profile.to_uppercase(), report.seed);
    columns(&[&header, "P50", "P99"], rows)
}
