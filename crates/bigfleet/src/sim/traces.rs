//! Traces: written by `run --trace`, run again by `replay`, drawn by `view`.
//!
//! A trace names what was run in its second line, and everything after that is a function of it. So
//! replaying is running again and comparing.

use super::{defect, scenario};
use crate::{failure::Failure, output::say};
use bigfleet_sim::{Chart, Defect, Report, Scenario, Without, run_without};
use clap::Args as ClapArgs;
use std::{
    fs,
    path::{Path, PathBuf},
};

const FIRST: &str = "# bigfleet sim trace 1";

/// What to run again.
#[derive(Debug, ClapArgs)]
pub(crate) struct ReplayArgs {
    /// A trace that `bigfleet sim run --trace` wrote.
    file: PathBuf,
}

/// What to draw.
#[derive(Debug, ClapArgs)]
pub(crate) struct ViewArgs {
    /// A trace that `bigfleet sim run --trace` wrote.
    file: PathBuf,

    /// Where the picture goes; by default beside the trace.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    /// How wide the chart in the terminal is, in characters.
    #[arg(long, default_value_t = 110)]
    width: usize,
}

/// A trace: what was run, then what happened.
pub(crate) fn text(report: &Report, defect: Option<Defect>, without: &Without) -> String {
    let defect = defect.map_or("none".to_owned(), Defect::name);
    let numbers: Vec<String> = without.changes.iter().map(usize::to_string).collect();
    let (scenario, seed, fair) = (report.scenario, report.seed, without.weather);
    let without = numbers.join(",");
    let mut text = format!(
        "{FIRST}\n# scenario {scenario} seed {seed} defect {defect} fair-weather {fair} without {without}\n"
    );
    for line in &report.lines {
        text += line;
        text.push('\n');
    }
    text
}

fn read(path: &Path) -> Result<String, Failure> {
    let why = |error| Failure::Undone(format!("{} cannot be read: {error}", path.display()));
    fs::read_to_string(path).map_err(why)
}

struct Told {
    scenario: Scenario,
    seed: u64,
    defect: Option<Defect>,
    without: Without,
}

/// What the second line of a trace says was run.
fn told(trace: &str) -> Result<Told, String> {
    let mut lines = trace.lines();
    if lines.next() != Some(FIRST) {
        return Err(format!("the file does not begin with \"{FIRST}\""));
    }
    let second = lines.next().unwrap_or("");
    let words: Vec<&str> = second.split(' ').collect();
    let after = |word: &str| {
        let at = words.iter().position(|one| *one == word);
        at.and_then(|at| words.get(at + 1)).copied().unwrap_or("")
    };
    let number = |text: &str| {
        let bad = |_| format!("line 2: \"{text}\" is not a number");
        text.parse::<u64>().map_err(bad)
    };
    let numbers = after("without").split(',').filter(|text| !text.is_empty());
    let changes = numbers.map(|text| number(text).map(|one| one as usize));
    Ok(Told {
        scenario: scenario(after("scenario"))?,
        seed: number(after("seed"))?,
        defect: match after("defect") {
            "none" => None,
            name => Some(defect(name)?),
        },
        without: Without {
            changes: changes.collect::<Result<_, _>>()?,
            weather: after("fair-weather") == "true",
        },
    })
}

/// Runs a trace again; the first line that differs is an error.
pub(crate) fn replay(args: &ReplayArgs) -> Result<(), Failure> {
    let trace = read(&args.file)?;
    let bad = |why: String| Failure::Input(format!("{}: {why}", args.file.display()));
    let told = told(&trace).map_err(bad)?;
    let done = run_without(&told.scenario, told.seed, told.defect, &told.without, true);
    let before: Vec<&str> = trace.lines().skip(2).collect();
    let lines = before.len().max(done.lines.len());
    for at in 0..lines {
        let (was, is) = (
            before.get(at).copied(),
            done.lines.get(at).map(String::as_str),
        );
        if was != is {
            let none = "nothing";
            return Err(Failure::Undone(format!(
                "line {}: it was\n  {}\nand is\n  {}",
                at + 3,
                was.unwrap_or(none),
                is.unwrap_or(none)
            )));
        }
    }
    let outcome = match &done.broken {
        Some(broken) => broken.to_string(),
        None => "every rule held".to_owned(),
    };
    say(&format!("the same {lines} lines; {outcome}\n"))
}

/// Draws a trace.
pub(crate) fn view(args: &ViewArgs) -> Result<(), Failure> {
    let trace = read(&args.file)?;
    let bad = |why| Failure::Input(format!("{}: {why}", args.file.display()));
    let chart = Chart::read(&trace).map_err(bad)?;
    let picture = args.svg.clone();
    let picture = picture.unwrap_or_else(|| args.file.with_extension("svg"));
    let why = |error| Failure::Undone(format!("{} cannot be written: {error}", picture.display()));
    fs::write(&picture, chart.svg()).map_err(why)?;
    say(&format!(
        "{}\npicture: {}\n",
        chart.text(args.width),
        picture.display()
    ))
}
