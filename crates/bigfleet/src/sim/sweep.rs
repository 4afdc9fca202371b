//! `bigfleet sim sweep`: many seeds at once, reported in the order of the seeds.
//!
//! ```text
//! (scenario, seed) ─▶ next, taken by whichever thread is free ─▶ report ─▶ summed up
//! ```
//!
//! A run is one thread's and shares nothing, so which thread ran it cannot be seen in it. Reports are
//! summed up as they come, so a sweep takes no more room the longer it is; only failures are kept.

use super::{
    Output, chosen, history, names,
    progress::Progress,
    report::{self, Swept},
    threads,
};
use crate::{failure::Failure, output::say};
use bigfleet_sim::{Defect, Scenario, Without, run as run_seed};
use clap::Args as ClapArgs;
use std::{
    num::NonZeroUsize,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

/// What was asked.
#[derive(Debug, ClapArgs)]
pub(crate) struct SweepArgs {
    /// The scenarios [default: all with up to 1,000 machines]
    #[arg(value_parser = names::scenario)]
    scenarios: Vec<Scenario>,

    /// How many seeds to run of each scenario
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,

    /// The first seed
    #[arg(long, default_value_t = 1)]
    from: u64,

    /// How many runs at the same time [default: one per core]
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,

    /// Switch an old mistake back on, as `bigfleet sim list` names it
    #[arg(long, value_parser = names::defect)]
    defect: Option<Defect>,

    /// The form of the answer [default: table on a terminal, else json]
    #[arg(short, long, value_enum)]
    output: Option<Output>,
}

/// Sweeps; a seed that breaks a rule fails the command.
pub(crate) fn run(args: &SweepArgs) -> Result<(), Failure> {
    let scenarios = once_each(&args.scenarios);
    let work = work(args, &scenarios)?;
    let began = Instant::now();
    let mut swept = sweep(&work, threads(args.jobs));
    let wall_seconds = began.elapsed().as_secs_f64();
    let told = tell_first(&mut swept, args.defect);
    match chosen(args.output) {
        Output::Json => report::say_json(&report::sweep(&swept, wall_seconds))?,
        Output::Table => say(&report::sweep_text(&swept, wall_seconds))?,
    }
    told.map_or(Ok(()), |first| {
        let all = report::failed(&swept);
        Err(Failure::Undone(format!("{all}the first:\n{first}")))
    })
}

/// The scenarios that were named, or the usual ones; in their order, and each once.
pub(crate) fn once_each(named: &[Scenario]) -> Vec<Scenario> {
    let mut once: Vec<Scenario> = Vec::new();
    for scenario in named {
        if once.iter().all(|one| one.name != scenario.name) {
            once.push(*scenario);
        }
    }
    if once.is_empty() {
        Scenario::usual()
    } else {
        once
    }
}

/// Which runs there are, by number.
struct Work<'a> {
    scenarios: &'a [Scenario],
    from: u64,
    seeds: u64,
    runs: u64,
    defect: Option<Defect>,
}

fn work<'a>(args: &SweepArgs, scenarios: &'a [Scenario]) -> Result<Work<'a>, Failure> {
    let (from, seeds) = (args.from, args.seeds);
    if from.checked_add(seeds - 1).is_none() {
        let why = format!(
            "{seeds} seeds from {from} on go past the last seed, {}",
            u64::MAX
        );
        return Err(Failure::Input(why));
    }
    let runs = seeds.checked_mul(scenarios.len() as u64);
    let too_many = || Failure::Input(format!("{seeds} seeds of each scenario cannot be counted"));
    Ok(Work {
        scenarios,
        from,
        seeds,
        runs: runs.ok_or_else(too_many)?,
        defect: args.defect,
    })
}

/// Runs every scenario with every seed.
fn sweep(work: &Work<'_>, jobs: usize) -> Vec<Swept> {
    let swept = work.scenarios.iter().map(|one| Swept::of(one.name));
    let (next, swept) = (AtomicU64::new(0), Mutex::new(swept.collect::<Vec<_>>()));
    let progress = Progress::new(work.runs);
    std::thread::scope(|scope| {
        for _ in 0..jobs.min(usize::try_from(work.runs).unwrap_or(usize::MAX)) {
            scope.spawn(|| {
                while let Some(at) = Some(next.fetch_add(1, Ordering::Relaxed))
                    && at < work.runs
                {
                    let which = (at / work.seeds) as usize;
                    let scenario = &work.scenarios[which];
                    let began = Instant::now();
                    let done = run_seed(scenario, work.from + at % work.seeds, work.defect, false);
                    let seconds = began.elapsed().as_secs_f64();
                    let mut swept = swept.lock().unwrap_or_else(PoisonError::into_inner);
                    swept[which].core_seconds += seconds;
                    swept[which].take(&done, work.defect, &Without::default());
                    progress.did(scenario.name);
                }
            });
        }
    });
    progress.finish();
    let mut swept = swept.into_inner().unwrap_or_else(PoisonError::into_inner);
    for one in &mut swept {
        one.failures.sort_by_key(|failure| failure.seed);
    }
    swept
}

/// The first failure, told whole and made as short as could be.
fn tell_first(swept: &mut [Swept], defect: Option<Defect>) -> Option<String> {
    let failures = swept.iter_mut().flat_map(|one| &mut one.failures);
    let failure = failures.into_iter().next()?;
    let without = Without::default();
    let scenario = Scenario::named(failure.scenario)?;
    let again = run_seed(&scenario, failure.seed, defect, false);
    let Some(broken) = &again.broken else {
        return Some(format!("{} did not fail again", failure.replay));
    };
    let told = history::history(&scenario, &again, broken, defect, &without);
    failure.shortened = told.shortened;
    Some(told.text)
}
