//! Reports: one certificate, told to machines and to people.
//!
//! The names of files and keys are those of the public suite, so that what reads its reports reads ours;
//! what we add stands beside it under names of its own.

mod badge;
mod html;
mod json;
mod junit;
mod text;

use std::io;
use std::path::Path;

use crate::certificate::Certificate;
use crate::runner::Outcome;

pub use text::summary;

/// Writes every report into a folder that exists.
pub fn write(certificate: &Certificate, folder: &Path) -> io::Result<()> {
    let timestamp = timestamp();
    let files = [
        ("report.json", json::report(certificate, &timestamp)?),
        ("junit.xml", junit::report(certificate)),
        ("badge.json", badge::report(certificate)?),
        ("report.html", html::report(certificate, &timestamp)),
    ];
    for (name, text) in files {
        std::fs::write(folder.join(name), text)?;
    }
    Ok(())
}

/// Now, to the second.
fn timestamp() -> String {
    let now = jiff::Timestamp::now();
    jiff::Timestamp::from_second(now.as_second())
        .unwrap_or(now)
        .to_string()
}

/// The word of the public suite for an outcome.
fn status(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Passed => "passed",
        Outcome::Failed(_) => "failed",
        Outcome::Lacks(_) => "skipped",
        Outcome::NotTried(_) => "not_implemented",
    }
}

/// Why it is not `passed`, in a sentence; empty if it is.
fn reason(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Passed => String::new(),
        Outcome::Failed(why) | Outcome::NotTried(why) => why.clone(),
        Outcome::Lacks(what) => format!("the provider has no {what}"),
    }
}

/// Text as XML and HTML take it. What XML cannot say at all becomes the replacement character.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            '\n' | '\t' => out.push(c),
            c if c.is_control() || c == '\u{fffe}' || c == '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
