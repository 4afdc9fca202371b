//! Progress of a run: a bar for people, a line per behaviour for logs.

use bigfleet_conformance::{Outcome, Progress, Report};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;

/// Tells how far a run is.
pub(super) enum Telling {
    Bar(ProgressBar),
    Lines,
}

impl Telling {
    pub(super) fn new() -> Self {
        if !std::io::stderr().is_terminal() {
            return Self::Lines;
        }
        let bar = ProgressBar::new(0);
        let style = ProgressStyle::with_template("{msg:40!} {wide_bar} {pos}/{len} {elapsed}");
        if let Ok(style) = style {
            bar.set_style(style);
        }
        Self::Bar(bar)
    }

    pub(super) fn tell(&mut self, progress: Progress<'_>) {
        match (self, progress) {
            (Self::Bar(bar), Progress::Begins(count)) => bar.set_length(count as u64),
            (Self::Bar(bar), Progress::Did(report)) => {
                let behaviour = &report.behaviour;
                bar.set_message(format!("{} {}", behaviour.id, behaviour.title));
                bar.inc(1);
                if matches!(report.outcome, Outcome::Failed(_)) {
                    bar.println(line(report));
                }
            }
            (Self::Lines, Progress::Begins(_)) => {}
            (Self::Lines, Progress::Did(report)) => eprintln!("{}", line(report)),
        }
    }

    pub(super) fn finish(&self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

fn line(report: &Report) -> String {
    let outcome = match &report.outcome {
        Outcome::Passed => "passed".to_owned(),
        Outcome::Failed(why) => format!("FAILED: {why}"),
        Outcome::Lacks(what) => format!("skipped: the provider has no {what}"),
        Outcome::NotTried(why) => format!("not tried: {why}"),
    };
    let (behaviour, seconds) = (&report.behaviour, report.took.as_secs_f64());
    let (id, title) = (behaviour.id, behaviour.title);
    format!("{id} {title} ... {outcome} ({seconds:.2} s)")
}
