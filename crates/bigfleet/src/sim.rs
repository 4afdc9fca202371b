//! `bigfleet sim`: fleet life under a seeded clock.
//!
//! ```text
//! list ─▶ which scenarios      run ─▶ one seed ─▶ trace ─▶ replay, view
//! sweep ─▶ many seeds, on several cores             mutants ─▶ every defect must be caught
//! ```
//!
//! A failing seed prints the command that runs it again. The status is 1 if a rule broke.

mod mutants;
mod report;
mod sweep;
mod traces;

use crate::{failure::Failure, output::say, table::columns};
use bigfleet_sim::{Class, Defect, Scenario, Without, run_without};
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
    /// Lists the scenarios.
    List(ListArgs),
    /// Runs one scenario with one seed.
    Run(RunArgs),
    /// Runs scenarios with many seeds.
    Sweep(SweepArgs),
    /// Switches every old mistake on, one at a time, and says who caught it.
    Mutants(mutants::MutantsArgs),
    /// Runs a trace again, and says where it differs.
    Replay(traces::ReplayArgs),
    /// Draws a trace, in the terminal and as an SVG file.
    View(traces::ViewArgs),
}

#[derive(Debug, ClapArgs)]
struct ListArgs {
    /// How the answer is written: by default `table` on a terminal, else `json`.
    #[arg(short, long, value_enum)]
    output: Option<Output>,
}

#[derive(Debug, ClapArgs)]
struct RunArgs {
    /// The scenario; `bigfleet sim list` names them.
    #[arg(value_parser = scenario)]
    scenario: Scenario,

    /// The seed everything is drawn from.
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Switches an old mistake back on.
    #[arg(long, value_parser = defect)]
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

#[derive(Debug, ClapArgs)]
struct SweepArgs {
    /// The scenarios; by default all of up to 1,000 machines.
    #[arg(value_parser = scenario)]
    scenarios: Vec<Scenario>,

    /// How many seeds of each.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,

    /// The first seed.
    #[arg(long, default_value_t = 1)]
    from: u64,

    /// Runs at once; by default one per core.
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,

    /// Switches an old mistake back on.
    #[arg(long, value_parser = defect)]
    defect: Option<Defect>,

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

fn scenario(name: &str) -> Result<Scenario, String> {
    let unknown = || format!("there is no scenario {name}; `bigfleet sim list` names them");
    Scenario::named(name).ok_or_else(unknown)
}

fn defect(name: &str) -> Result<Defect, String> {
    let names = || Defect::all().into_iter().map(Defect::name);
    let unknown = || {
        let names: Vec<String> = names().collect();
        format!("there is no defect {name}; there are {}", names.join(", "))
    };
    Defect::named(name).ok_or_else(unknown)
}

/// Does what was asked.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    match &args.what {
        What::List(args) => list(args),
        What::Run(args) => run_one(args),
        What::Sweep(args) => sweep_many(args),
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

fn list(args: &ListArgs) -> Result<(), Failure> {
    let all = Scenario::all();
    match chosen(args.output) {
        Output::Json => report::say_json(&report::scenarios(&all)),
        Output::Table => {
            let row = |one: &Scenario| {
                let class = match one.class {
                    Class::Small => "small",
                    Class::Large => "large",
                };
                [one.name, class, one.about].map(str::to_owned).to_vec()
            };
            let rows = all.iter().map(row);
            say(&columns(&["SCENARIO", "SIZE", "WHAT HAPPENS"], rows))
        }
    }
}

fn run_one(args: &RunArgs) -> Result<(), Failure> {
    let began = Instant::now();
    let traced = args.trace.is_some();
    let without = Without {
        changes: args.without.iter().copied().collect(),
        weather: args.fair_weather,
    };
    let done = run_without(&args.scenario, args.seed, args.defect, &without, traced);
    if let Some(path) = &args.trace {
        let text = traces::text(&done, args.defect, &without);
        let written = std::fs::write(path, text);
        let why = |error| Failure::Undone(format!("{} cannot be written: {error}", path.display()));
        written.map_err(why)?;
    }
    let broken = done.broken.is_some();
    let mut swept = sweep::Swept::of(done.scenario);
    swept.take(&done, args.defect);
    swept.core_seconds = began.elapsed().as_secs_f64();
    match chosen(args.output) {
        Output::Json => report::say_json(&report::run(&swept, &done))?,
        Output::Table => say(&report::run_text(&done, args.defect))?,
    }
    match broken {
        true => Err(Failure::Undone(report::history(
            &args.scenario,
            &done,
            args.defect,
            without,
        ))),
        false => Ok(()),
    }
}

fn sweep_many(args: &SweepArgs) -> Result<(), Failure> {
    let mut scenarios = args.scenarios.clone();
    if scenarios.is_empty() {
        let small = |one: &Scenario| one.class == Class::Small;
        scenarios = Scenario::all().into_iter().filter(small).collect();
    }
    let seeds = args.from..args.from.saturating_add(args.seeds);
    let jobs = args
        .jobs
        .or_else(|| std::thread::available_parallelism().ok());
    let began = Instant::now();
    let swept = sweep::sweep(
        &scenarios,
        seeds,
        args.defect,
        jobs.map_or(1, NonZeroUsize::get),
    );
    match chosen(args.output) {
        Output::Json => {
            let wall_seconds = began.elapsed().as_secs_f64();
            report::say_json(&report::sweep(&swept, wall_seconds))?;
        }
        Output::Table => say(&report::sweep_text(&swept))?,
    }
    let failures: usize = swept.iter().map(|one| one.failures.len()).sum();
    if failures == 0 {
        return Ok(());
    }
    let first = swept
        .iter()
        .find_map(|one| Some((one, one.failures.first()?)));
    let mut text = report::failed(&swept);
    if let Some((swept, failure)) = first
        && let Some(scenario) = Scenario::named(swept.scenario)
    {
        let without = Without::default();
        let again = run_without(&scenario, failure.seed, args.defect, &without, false);
        let history = report::history(&scenario, &again, args.defect, without);
        text = format!("{text}the first:\n{history}");
    }
    Err(Failure::Undone(text))
}
