//! `bigfleet sim`: fleet life under a seeded clock.
//!
//! ```text
//! list ─▶ which scenarios and defects    run ─▶ one seed ─▶ trace ─▶ replay, view
//! sweep ─▶ many seeds, on several cores  mutants ─▶ every defect must be caught
//! ```
//!
//! A failing seed prints the command that runs it again. The status is 1 if a rule broke, and 2 if what
//! was asked makes no sense.

mod history;
mod list;
mod mutants;
mod names;
mod progress;
mod report;
mod sweep;
mod traces;

use crate::{failure::Failure, output::say};
use bigfleet_sim::{Defect, Scenario, Without, run_without, trace_text};
use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use std::{io::IsTerminal, num::NonZeroUsize, path::PathBuf, time::Instant};

/// What was asked.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List the scenarios, and the old mistakes that can be switched back on
    List(list::ListArgs),
    /// Run one scenario with one seed
    Run(RunArgs),
    /// Run scenarios with many seeds
    Sweep(sweep::SweepArgs),
    /// Check that every old mistake, switched back on, is caught by some scenario
    Mutants(mutants::MutantsArgs),
    /// Run a recorded trace again, and show the first difference
    Replay(traces::ReplayArgs),
    /// Draw a recorded trace, in the terminal and as an SVG file
    View(traces::ViewArgs),
}

#[derive(Debug, ClapArgs)]
struct RunArgs {
    /// The scenario, as `bigfleet sim list` names it
    #[arg(value_parser = names::scenario)]
    scenario: Scenario,

    /// The seed of everything random
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Switch an old mistake back on, as `bigfleet sim list` names it
    #[arg(long, value_parser = names::defect)]
    defect: Option<Defect>,

    /// Leave out these entries of the timeline, by position, as a shortened failure prints them
    #[arg(long, value_name = "N,N…", value_delimiter = ',')]
    without: Vec<usize>,

    /// No faults: no message is lost, late or stale
    #[arg(long)]
    fair_weather: bool,

    /// Record everything that happens to this file
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,

    /// The form of the answer [default: table on a terminal, else json]
    #[arg(short, long, value_enum)]
    output: Option<Output>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// One JSON object.
    Json,
    /// A table for people.
    Table,
}

/// Does what was asked.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    match &args.what {
        What::List(args) => list::list(args),
        What::Run(args) => run_one(args),
        What::Sweep(args) => sweep::run(args),
        What::Mutants(args) => mutants::run(args),
        What::Replay(args) => traces::replay(args),
        What::View(args) => traces::view(args),
    }
}

fn chosen(output: Option<Output>) -> Output {
    let usual = if std::io::stdout().is_terminal() {
        Output::Table
    } else {
        Output::Json
    };
    output.unwrap_or(usual)
}

/// So many threads as were asked for, or one per core.
fn threads(jobs: Option<NonZeroUsize>) -> usize {
    let jobs = jobs.or_else(|| std::thread::available_parallelism().ok());
    jobs.map_or(1, NonZeroUsize::get)
}

fn run_one(args: &RunArgs) -> Result<(), Failure> {
    let without = Without {
        changes: args.without.iter().copied().collect(),
        weather: args.fair_weather,
    };
    let checked = without.check(&args.scenario, args.seed);
    checked.map_err(|refused| Failure::Input(format!("--without: {refused}")))?;
    let began = Instant::now();
    let traced = args.trace.is_some();
    let done = run_without(&args.scenario, args.seed, args.defect, &without, traced);
    let mut swept = report::Swept::of(done.scenario);
    swept.core_seconds = began.elapsed().as_secs_f64();
    swept.take(&done, args.defect, &without);
    if let Some(path) = &args.trace {
        let written = std::fs::write(path, trace_text(&done, args.defect, &without));
        let why = |error| Failure::Undone(format!("{} cannot be written: {error}", path.display()));
        written.map_err(why)?;
    }
    let told = done
        .broken
        .as_ref()
        .map(|broken| history::history(&args.scenario, &done, broken, args.defect, &without));
    if let (Some(told), Some(failure)) = (&told, swept.failures.first_mut()) {
        failure.shortened.clone_from(&told.shortened);
    }
    match chosen(args.output) {
        Output::Json => report::say_json(&report::run(&swept, &done))?,
        Output::Table => say(&report::run_text(&done, args.defect))?,
    }
    told.map_or(Ok(()), |told| Err(Failure::Undone(told.text)))
}
