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
    /// Lists the scenarios, and the defects that can be switched on.
    List(list::ListArgs),
    /// Runs one scenario with one seed.
    Run(RunArgs),
    /// Runs scenarios with many seeds.
    Sweep(sweep::SweepArgs),
    /// Switches every old mistake on, one at a time, and says who caught it.
    Mutants(mutants::MutantsArgs),
    /// Runs a trace again, and says where it differs.
    Replay(traces::ReplayArgs),
    /// Draws a trace, in the terminal and as an SVG file.
    View(traces::ViewArgs),
}

#[derive(Debug, ClapArgs)]
struct RunArgs {
    /// The scenario; `bigfleet sim list` names them.
    #[arg(value_parser = names::scenario)]
    scenario: Scenario,

    /// The seed everything is drawn from.
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Switches an old mistake back on; `bigfleet sim list` names them.
    #[arg(long, value_parser = names::defect)]
    defect: Option<Defect>,

    /// Leaves out entries of the timeline, by position: what a shortened failure prints.
    #[arg(long, value_name = "N,N…", value_delimiter = ',')]
    without: Vec<usize>,

    /// Nothing is lost, late or stale.
    #[arg(long)]
    fair_weather: bool,

    /// Writes down everything that happens.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,

    /// How the answer is written: by default `table` on a terminal, else `json`.
    #[arg(short, long, value_enum)]
    output: Option<Output>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// One object.
    Json,
    /// For people.
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
    let usual = match std::io::stdout().is_terminal() {
        true => Output::Table,
        false => Output::Json,
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
