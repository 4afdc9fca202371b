//! `bigfleet provider`: providers this binary can be, and what one costs.

use crate::{failure::Failure, output::say, table::columns};
use bigfleet_conformance::{BenchReport, Binary, Percentiles};
use bigfleet_provider_fake::{ProviderFakeArgs, Timepiece};
use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use std::{
    io::IsTerminal,
    path::PathBuf,
    sync::Arc,
    time::{Instant, SystemTime, UNIX_EPOCH},
};

/// What was asked.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    #[command(subcommand)]
    which: Which,
}

#[derive(Debug, Subcommand)]
enum Which {
    /// Run a simulated cloud, which can be told to fail in many ways
    Fake(Box<ProviderFakeArgs>),
}

/// `bigfleet bench provider`.
#[derive(Debug, ClapArgs)]
pub(crate) struct BenchArgs {
    /// How many machines the provider offers
    #[arg(long, default_value_t = 20_000)]
    slots: usize,

    /// The directory of its state file, to measure that disk [default: that for temporary files]
    #[arg(long)]
    folder: Option<PathBuf>,

    /// The form of the answer [default: table on a terminal, else json]
    #[arg(short, long, value_enum)]
    output: Option<Output>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Output {
    /// One JSON object.
    Json,
    /// A table for people.
    Table,
}

/// Runs it until the process is asked to end.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let Which::Fake(args) = &args.which;
    let origin = Instant::now();
    let time = Timepiece {
        clock: Arc::new(move || origin.elapsed()),
        // A host whose clock is before 1970 still gets a provider.
        began_at: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default(),
    };
    bigfleet_provider_fake::run(args, Some(time)).map_err(|refused| match refused.is_usage() {
        true => Failure::Input(refused.to_string()),
        false => Failure::Undone(refused.to_string()),
    })
}

/// Boots this very binary as a provider and measures it from outside.
pub(crate) fn bench(args: &BenchArgs) -> Result<(), Failure> {
    let undone = |why: &dyn std::fmt::Display| Failure::Undone(why.to_string());
    let binary = Binary {
        program: std::env::current_exe().map_err(|why| undone(&why))?,
        args: vec!["provider".into(), "fake".into()],
    };
    let parent = args.folder.clone().unwrap_or_else(std::env::temp_dir);
    let folder = parent.join(format!("bigfleet-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|why| undone(&why))?;
    let runtime = tokio::runtime::Runtime::new().map_err(|why| undone(&why))?;
    let measured = runtime.block_on(bigfleet_conformance::bench(&binary, &folder, args.slots));
    // What is left behind in a folder for what may be left behind does no harm.
    drop(std::fs::remove_dir_all(&folder));
    let report = measured.map_err(|why| undone(&why))?;
    let usual = match std::io::stdout().is_terminal() {
        true => Output::Table,
        false => Output::Json,
    };
    say(&match args.output.unwrap_or(usual) {
        Output::Json => serde_json::to_string(&report).map_err(std::io::Error::from)? + "\n",
        Output::Table => table(&report),
    })
}

fn table(report: &BenchReport) -> String {
    let one = |what: &str, value: String| vec![what.to_owned(), value, String::new()];
    let two = |what: &str, of: Percentiles| {
        vec![
            what.to_owned(),
            format!("{} ms", of.p50),
            format!("{} ms", of.p99),
        ]
    };
    let memory = report
        .peak_rss_mb
        .map_or("unknown".to_owned(), |mb| format!("{mb} MB"));
    let rate = format!("{} per second", report.durable_mutations_per_second);
    let rows = vec![
        two("full list", report.list_ms),
        one("list by pages", format!("{} ms", report.list_pages_ms)),
        two("get", report.get_ms),
        two("mutation", report.mutation_ms),
        two("mutation, few slots", report.mutation_ms_at_few),
        two("durable mutation", report.durable_mutation_ms),
        one("durable mutations, 64 callers", rate),
        one("boot", format!("{} ms", report.boot_ms)),
        one("restart", format!("{} ms", report.restart_ms)),
        one("peak memory", memory),
    ];
    columns(&[&format!("{} SLOTS", report.slots), "P50", "P99"], rows)
}
