//! `bigfleet bench provider`: this very binary as a provider, measured from outside.

use super::{answer::AnswerArgs, bar, show};
use crate::{failure::Failure, table::columns};
use bigfleet_bench::{
    Percentiles,
    processes::{ProviderReport, ProviderSettings, provider},
};
use clap::Args as ClapArgs;
use std::path::PathBuf;

/// `bigfleet bench provider`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// How many machines the provider offers
    #[arg(long, default_value_t = 20_000, value_parser = super::at_least_one)]
    slots: usize,

    /// The directory of its state file, to measure that disk [default: that for temporary files]
    #[arg(long)]
    folder: Option<PathBuf>,

    #[command(flatten)]
    answer: AnswerArgs,
}

/// Measures, then writes.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let undone = |why: &dyn std::fmt::Display| Failure::Undone(why.to_string());
    let settings = ProviderSettings {
        program: std::env::current_exe().map_err(|why| undone(&why))?,
        folder: args.folder.clone().unwrap_or_else(std::env::temp_dir),
        slots: args.slots,
    };
    let bar = bar();
    let runtime = tokio::runtime::Runtime::new().map_err(|why| undone(&why))?;
    let measured = runtime.block_on(provider(&settings, &mut show(&bar)));
    bar.finish_and_clear();
    args.answer
        .answer(measured.map_err(|why| undone(&why))?, table)
}

fn table(report: &ProviderReport) -> String {
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
    let mut rows = vec![
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
        one(
            "programs that do nothing",
            format!("{} per second", report.exec.operations_per_second),
        ),
        two("full list of their slots", report.exec.list_ms),
    ];
    if let Some(seconds) = report.conformance_seconds {
        rows.push(one("certified in every profile", format!("{seconds} s")));
    }
    columns(&[&format!("{} SLOTS", report.slots), "P50", "P99"], rows)
}
