//! Traces: written by `run --trace`, run again by `replay`, drawn by `view`.
//!
//! A trace names what was run, and everything after that is a function of it. So replaying is running
//! again and comparing.

use crate::{failure::Failure, output::say};
use bigfleet_sim::{
    BUILT, Chart, TraceFile, TraceRefused, begins_a_trace, line_number, run_without,
};
use clap::Args as ClapArgs;
use std::{
    fs,
    io::{IsTerminal, Read},
    path::{Path, PathBuf},
};

/// Where no terminal says how wide it is.
const WIDTH: u16 = 100;

/// What to run again.
#[derive(Debug, ClapArgs)]
pub(crate) struct ReplayArgs {
    /// A file that `bigfleet sim run --trace` wrote
    file: PathBuf,
}

/// What to draw.
#[derive(Debug, ClapArgs)]
pub(crate) struct ViewArgs {
    /// A file that `bigfleet sim run --trace` wrote
    file: PathBuf,

    /// The SVG file to write [default: beside the trace]
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    /// The width of the chart in the terminal, in characters [default: the width of the terminal]
    #[arg(long, value_parser = clap::value_parser!(u16).range(40..))]
    width: Option<u16>,
}

/// A day of a thousand machines is a hundredth of it.
const LARGEST_TRACE: u64 = 1 << 30;

fn read(path: &Path) -> Result<String, Failure> {
    let why = |error| Failure::Undone(format!("{} cannot be read: {error}", path.display()));
    let bytes = fs::metadata(path).map_err(why)?.len();
    if LARGEST_TRACE < bytes {
        let text = format!(
            "{}: {bytes} bytes are more than a trace may have",
            path.display()
        );
        return Err(Failure::Input(text));
    }
    fs::read_to_string(path).map_err(why)
}

fn refused(path: &Path) -> impl Fn(TraceRefused) -> Failure {
    move |why| Failure::Input(format!("{}: {why}", path.display()))
}

/// Runs a trace again; the first line that differs is an error.
pub(crate) fn replay(args: &ReplayArgs) -> Result<(), Failure> {
    let text = read(&args.file)?;
    let trace = TraceFile::read(&text).map_err(refused(&args.file))?;
    let done = run_without(
        &trace.scenario,
        trace.seed,
        trace.defect,
        &trace.without,
        true,
    );
    let lines = trace.lines.len().max(done.lines.len());
    for at in 0..lines {
        let was = trace.lines.get(at).copied();
        let is = done.lines.get(at).map(String::as_str);
        if was != is {
            let none = "nothing";
            return Err(Failure::Undone(format!(
                "line {}: it was\n  {}\nand is\n  {}\n{}",
                line_number(at),
                was.unwrap_or(none),
                is.unwrap_or(none),
                whose_fault(trace.build)
            )));
        }
    }
    let outcome = match &done.broken {
        Some(broken) => broken.to_string(),
        None => "every rule held".to_owned(),
    };
    say(&format!("the same {lines} lines; {outcome}\n"))
}

/// A run is a function of the seed *and* of the simulator: another one lives another history.
fn whose_fault(build: &str) -> String {
    if build == BUILT {
        format!(
            "both were made by version {BUILT}: the trace or the sources were changed, or the run \
             is not a function of its seed"
        )
    } else {
        format!(
            "the trace was made by version {build} and this is {BUILT}: another version may live \
             another history"
        )
    }
}

/// Draws a trace.
pub(crate) fn view(args: &ViewArgs) -> Result<(), Failure> {
    let text = read(&args.file)?;
    let trace = TraceFile::read(&text).map_err(refused(&args.file))?;
    let chart = Chart::read(&trace).map_err(refused(&args.file))?;
    let picture = args.svg.clone();
    let picture = picture.unwrap_or_else(|| args.file.with_extension("svg"));
    if is_a_trace(&picture) {
        let place = picture.display();
        let why = format!("{place} is a trace, and a picture would replace it: say --svg FILE");
        return Err(Failure::Input(why));
    }
    let why = |error| Failure::Undone(format!("{} cannot be written: {error}", picture.display()));
    fs::write(&picture, chart.svg()).map_err(why)?;
    let chart = chart.text(usize::from(args.width.unwrap_or_else(terminal_width)));
    say(&format!("{chart}\npicture: {}\n", picture.display()))
}

/// Whether a picture written there would replace a trace: this one under whatever name, or another.
fn is_a_trace(path: &Path) -> bool {
    let mut start = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(64).read_to_end(&mut start));
    read.is_ok() && begins_a_trace(&start)
}

fn terminal_width() -> u16 {
    let size = std::io::stdout()
        .is_terminal()
        .then(crossterm::terminal::size);
    let known = size.and_then(Result::ok);
    known.map_or(WIDTH, |(width, _)| width.max(40))
}
