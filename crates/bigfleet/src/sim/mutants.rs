//! `bigfleet sim mutants`: who catches which old mistake.

use super::{Output, chosen, names, progress::Progress, report::say_json, sweep, threads};
use crate::{failure::Failure, output::say, table::columns};
use bigfleet_sim::{Caught, Defect, Scenario, hunt};
use clap::Args as ClapArgs;
use serde::Serialize;
use std::{
    num::NonZeroUsize,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

/// Letters of a reason that are shown to people.
const SENTENCE: usize = 72;

/// What was asked.
#[derive(Debug, ClapArgs)]
pub(crate) struct MutantsArgs {
    /// The scenarios to try [default: all with up to 1,000 machines]
    #[arg(value_parser = names::scenario)]
    scenarios: Vec<Scenario>,

    /// Only this mistake; may be repeated
    #[arg(long, value_parser = names::defect)]
    defect: Vec<Defect>,

    /// How many seeds of each scenario to try before a mistake counts as not caught
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,

    /// How many mistakes at the same time [default: one per core]
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,

    /// The form of the answer [default: table on a terminal, else json]
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
    let mut defects = Defect::all();
    if !args.defect.is_empty() {
        defects.retain(|one| args.defect.contains(one));
    }
    let hunt = Hunt {
        among: sweep::once_each(&args.scenarios),
        seeds: args.seeds,
        defects,
    };
    let caught = hunt.all(threads(args.jobs)).into_iter();
    let caught = caught.zip(&hunt.defects);
    let lines: Vec<Line> = caught
        .map(|(caught, defect)| line(*defect, caught))
        .collect();
    let escaped = lines.iter().filter(|line| !line.caught);
    let escaped: Vec<String> = escaped.map(|line| line.defect.clone()).collect();
    let wall_seconds = began.elapsed().as_secs_f64();
    match chosen(args.output) {
        Output::Json => say_json(&Object {
            defects: lines.len(),
            escaped: escaped.len(),
            wall_seconds,
            mutants: lines,
        })?,
        Output::Table => say(&text(&lines, escaped.len(), wall_seconds))?,
    }
    if escaped.is_empty() {
        Ok(())
    } else {
        Err(Failure::Undone(format!("escaped: {}", escaped.join(", "))))
    }
}

fn text(lines: &[Line], escaped: usize, wall_seconds: f64) -> String {
    let row = |line: &Line| {
        let or_none = |text: Option<&str>| text.unwrap_or("ESCAPED").to_owned();
        vec![
            line.defect.clone(),
            or_none(line.scenario),
            line.seed.map_or(String::new(), |seed| seed.to_string()),
            line.rule.unwrap_or("").to_owned(),
            line.reason.as_deref().map_or(String::new(), sentence),
        ]
    };
    let header = ["DEFECT", "CAUGHT BY", "SEED", "RULE", "HOW"];
    let table = columns(&header, lines.iter().map(row));
    let outcome = match escaped {
        0 => format!("all {} caught", lines.len()),
        escaped => format!("{escaped} of {} escaped", lines.len()),
    };
    format!("{table}\n {outcome}; {wall_seconds:.1} s by the clock\n")
}

/// The beginning of a reason, to its first full stop and no longer than a line.
fn sentence(reason: &str) -> String {
    let ends = [". ", "; ", "\n"].iter().filter_map(|end| reason.find(end));
    let first = &reason[..ends.min().unwrap_or(reason.len())];
    let mut cut = String::new();
    for word in first.split_whitespace() {
        if SENTENCE < cut.chars().count() + word.chars().count() {
            return cut + " …";
        }
        if !cut.is_empty() {
            cut.push(' ');
        }
        cut += word;
    }
    cut
}

struct Hunt {
    defects: Vec<Defect>,
    seeds: u64,
    among: Vec<Scenario>,
}

impl Hunt {
    /// One hunt per defect, so many at once; answers in the order of the defects.
    fn all(&self, jobs: usize) -> Vec<Option<Caught>> {
        let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let progress = Progress::new(self.defects.len() as u64);
        std::thread::scope(|scope| {
            for _ in 0..jobs.min(self.defects.len()) {
                scope.spawn(|| {
                    while let Some(at) = Some(next.fetch_add(1, Ordering::Relaxed))
                        && let Some(defect) = self.defects.get(at)
                    {
                        let caught = hunt(*defect, self.seeds, &self.among);
                        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                        found.push((at, caught));
                        progress.did(&defect.name());
                    }
                });
            }
        });
        progress.finish();
        let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        found.sort_by_key(|(at, _): &(usize, Option<Caught>)| *at);
        found.into_iter().map(|(_, caught)| caught).collect()
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_cut_to_its_first_sentence_and_to_a_line() {
        assert_eq!(
            sentence("two were bought; one was missing"),
            "two were bought"
        );
        let long = "machine ".repeat(40);
        let cut = sentence(&long);
        assert!(
            cut.ends_with("machine …") && cut.chars().count() < SENTENCE + 3,
            "{cut}"
        );
    }
}
