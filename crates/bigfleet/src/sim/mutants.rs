//! `bigfleet sim mutants`: who catches which old mistake.

use super::{Output, chosen, report};
use crate::{failure::Failure, output::say, table::columns};
use bigfleet_sim::{Caught, Defect, hunt};
use clap::Args as ClapArgs;
use serde::Serialize;
use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

/// What was asked.
#[derive(Debug, ClapArgs)]
pub(crate) struct MutantsArgs {
    /// How many seeds of each scenario are tried before a defect counts as escaped.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,

    /// How the answer is written: by default `table` on a terminal, else `json`.
    #[arg(short, long, value_enum)]
    output: Option<Output>,
}

#[derive(Serialize)]
struct Line {
    defect: String,
    caught: bool,
    scenario: Option<&'static str>,
    seed: Option<u64>,
    rule: Option<&'static str>,
    reason: Option<String>,
    runs: Option<u64>,
}

#[derive(Serialize)]
struct Object {
    defects: usize,
    escaped: usize,
    wall_seconds: f64,
    mutants: Vec<Line>,
}

/// Hunts every defect; one that escapes fails the command.
pub(crate) fn run(args: &MutantsArgs) -> Result<(), Failure> {
    let began = Instant::now();
    let defects = Defect::all();
    let lines: Vec<Line> = hunted(&defects, args.seeds)
        .into_iter()
        .zip(&defects)
        .map(|(caught, defect)| line(*defect, caught))
        .collect();
    let escaped: Vec<String> = lines
        .iter()
        .filter(|line| !line.caught)
        .map(|line| line.defect.clone())
        .collect();
    match chosen(args.output) {
        Output::Json => report::say_json(&Object {
            defects: lines.len(),
            escaped: escaped.len(),
            wall_seconds: began.elapsed().as_secs_f64(),
            mutants: lines,
        })?,
        Output::Table => {
            let row = |line: &Line| {
                let or_none = |text: Option<&str>| text.unwrap_or("ESCAPED").to_owned();
                vec![
                    line.defect.clone(),
                    or_none(line.scenario),
                    line.seed.map_or(String::new(), |seed| seed.to_string()),
                    or_none(line.rule),
                    line.reason.clone().unwrap_or_default(),
                ]
            };
            let header = ["DEFECT", "CAUGHT BY", "SEED", "RULE", "HOW"];
            say(&columns(&header, lines.iter().map(row)))?;
        }
    }
    match escaped.is_empty() {
        true => Ok(()),
        false => Err(Failure::Undone(format!("escaped: {}", escaped.join(", ")))),
    }
}

/// One hunt per defect, on every core; answers in the order of the defects.
fn hunted(defects: &[Defect], seeds: u64) -> Vec<Option<Caught>> {
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let bar = super::sweep::bar(defects.len());
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                while let Some(at) = Some(next.fetch_add(1, Ordering::Relaxed))
                    && let Some(defect) = defects.get(at)
                {
                    let caught = hunt(*defect, seeds);
                    let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                    found.push((at, caught));
                    bar.inc(1);
                }
            });
        }
    });
    bar.finish_and_clear();
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.sort_by_key(|(at, _): &(usize, Option<Caught>)| *at);
    found.into_iter().map(|(_, caught)| caught).collect()
}

fn line(defect: Defect, caught: Option<Caught>) -> Line {
    let caught = caught.as_ref();
    Line {
        defect: defect.name(),
        caught: caught.is_some(),
        scenario: caught.map(|one| one.scenario),
        seed: caught.map(|one| one.seed),
        rule: caught.map(|one| one.broken.rule.name()),
        reason: caught.map(|one| one.broken.text.clone()),
        runs: caught.map(|one| one.runs),
    }
}
