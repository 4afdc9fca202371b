//! The end of a run on a terminal or in a log.

use std::fmt::Write;

use crate::behaviour::Suite;
use crate::certificate::{Certificate, Counts, Verdict};
use crate::runner::{Outcome, Report};

/// Totals, what failed and how to try it again, what was missing, and the verdict.
pub fn summary(certificate: &Certificate) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    for (suite, name) in [
        (Suite::Baseline, "baseline"),
        (Suite::Contract, "contract"),
        (Suite::Ours, "additional (does not decide)"),
    ] {
        let _ = writeln!(text, "{name}: {}", counted(certificate.counts(suite)));
    }
    let mut areas: Vec<(&str, usize, usize)> = Vec::new();
    for report in certificate.suite(Suite::Contract) {
        if matches!(report.outcome, Outcome::NotTried(_)) {
            continue;
        }
        let (area, passed) = (report.behaviour.area(), report.outcome == Outcome::Passed);
        match areas.iter_mut().find(|(known, ..)| *known == area) {
            Some((_, kept, all)) => (*kept, *all) = (*kept + usize::from(passed), *all + 1),
            None => areas.push((area, usize::from(passed), 1)),
        }
    }
    for (area, kept, all) in areas {
        let _ = writeln!(text, "  {area:<12} {kept}/{all}");
    }
    for report in &certificate.reports {
        if let Outcome::Failed(why) = &report.outcome {
            text += &failed(certificate, report, why);
        }
    }
    for what in certificate.lacks() {
        let _ = writeln!(text, "without {what}: what needs it was skipped");
    }
    if certificate.verdict() != Verdict::Certified {
        for why in certificate.missing() {
            let _ = writeln!(text, "not tried: {why}");
        }
    }
    let levels: Vec<&str> = certificate.levels().iter().map(|it| it.word()).collect();
    let levels = match levels.last() {
        None => "none".to_owned(),
        Some(highest) => format!("{highest} ({})", levels.join(", ")),
    };
    let _ = writeln!(text, "level: {levels}");
    let _ = writeln!(text, "verdict: {}", certificate.verdict());
    text
}

fn failed(certificate: &Certificate, report: &Report, why: &str) -> String {
    let (behaviour, replay) = (&report.behaviour, certificate.replay(report));
    let mut text = format!("FAILED {} {}\n  {why}\n", behaviour.id, behaviour.title);
    if let Some(last) = report.exchanges.last() {
        text += &format!("  sent: {}\n  came back: {}\n", last.sent, last.received);
    }
    text + &format!("  replay: {replay}\n")
}

fn counted(counts: Counts) -> String {
    let Counts {
        passed,
        failed,
        skipped,
        untried,
    } = counts;
    format!("{passed} passed, {failed} failed, {skipped} skipped, {untried} not tried")
}
