//! `bigfleet bench decide`: what a decision costs on a named workload.
//!
//! The object is the same whoever reads it; people get a bar while they wait and a table instead.

use crate::{failure::Failure, output::say, provider, table::columns};
use bigfleet_bench::{DecideReport, Percentiles, Settings, decide};
use bigfleet_workloads::Preset;
use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;

/// What was asked.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Full, steady and quiet cycles of the decision engine.
    Decide(DecideArgs),
    /// A provider of its own: listing, mutations, memory.
    Provider(provider::BenchArgs),
}

#[derive(Debug, ClapArgs)]
struct DecideArgs {
    /// The workload.
    #[arg(long, value_enum)]
    profile: Profile,

    /// How many cycles of each kind; of quiet ones at least a hundred.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    cycles: u32,

    /// The seed the workload and its churn are drawn from.
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Churn in the first so many clusters only, to compare fleets at the same absolute churn.
    #[arg(long, value_name = "N")]
    churning_clusters: Option<usize>,

    /// How the answer is written: by default `table` on a terminal, else `json`.
    #[arg(short, long, value_enum)]
    output: Option<Output>,
}

/// The workloads there are numbers for.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Profile {
    /// 5,000 Pods in 2 clusters: to see that it runs.
    #[value(name = "dev-50")]
    Dev50,
    /// 20 clusters that are short, 2,580 rows, 18,000 machines.
    CoLocated,
    /// 500,000 Pods in 20 clusters.
    #[value(name = "5k")]
    FiveK,
    /// 5,000,000 Pods in 200 clusters.
    #[value(name = "50k")]
    FiftyK,
    /// 50,000,000 Pods in 2,000 clusters: the most one shard is meant for.
    #[value(name = "500k")]
    FiveHundredK,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Output {
    /// One object.
    Json,
    /// For people.
    Table,
}

impl Profile {
    fn preset(self) -> Preset {
        match self {
            Self::Dev50 => Preset::Dev50,
            Self::CoLocated => Preset::CoLocated,
            Self::FiveK => Preset::FiveK,
            Self::FiftyK => Preset::FiftyK,
            Self::FiveHundredK => Preset::FiveHundredK,
        }
    }
}

/// Measures, then writes.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let args = match &args.what {
        What::Decide(args) => args,
        What::Provider(args) => return provider::bench(args),
    };
    let settings = Settings {
        preset: args.profile.preset(),
        seed: args.seed,
        cycles: args.cycles as usize,
        churning_clusters: args.churning_clusters,
    };
    let bar = bar();
    let report = decide(settings, &mut |phase, done, of| {
        bar.set_message(phase);
        bar.set_length(of as u64);
        bar.set_position(done as u64);
    });
    bar.finish_and_clear();
    let usual = match std::io::stdout().is_terminal() {
        true => Output::Table,
        false => Output::Json,
    };
    say(&match args.output.unwrap_or(usual) {
        Output::Json => serde_json::to_string(&report).map_err(std::io::Error::from)? + "\n",
        Output::Table => table(&report),
    })
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

fn table(report: &DecideReport) -> String {
    let one = |what: &str, value: String| vec![what.to_owned(), value, String::new()];
    let two = |what: &str, of: Percentiles, unit: &str| {
        vec![
            what.to_owned(),
            format!("{} {unit}", of.p50),
            format!("{} {unit}", of.p99),
        ]
    };
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
        one(
            "peak memory",
            report
                .peak_rss_mb
                .map_or("unknown".to_owned(), |mb| format!("{mb} MB")),
        ),
        one("digest", report.digest.clone()),
    ]);
    let header = format!("{} SEED {}", report.profile.to_uppercase(), report.seed);
    columns(&[&header, "P50", "P99"], rows)
}
