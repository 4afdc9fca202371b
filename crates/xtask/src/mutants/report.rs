//! The report: what was tried, what was noticed, and what was not.

use std::fmt::Write;

use serde::Serialize;

use super::list::Mutant;

/// What became of one change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// A test of its own package failed.
    CaughtByTests,
    /// A test of the simulator failed.
    CaughtBySimulator,
    /// Tests did not end.
    TimedOut,
    /// It does not compile, so it is no change anybody could make.
    Unviable,
    /// Nobody noticed.
    Survived,
}

impl Outcome {
    pub(super) fn word(self) -> &'static str {
        match self {
            Outcome::CaughtByTests => "caught by its tests",
            Outcome::CaughtBySimulator => "caught by the simulator",
            Outcome::TimedOut => "caught, did not end",
            Outcome::Unviable => "does not compile",
            Outcome::Survived => "SURVIVED",
        }
    }
}

/// All that was tried.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Report {
    tested: usize,
    caught: usize,
    survived: Vec<Survivor>,
}

#[derive(Clone, Debug, Serialize)]
struct Survivor {
    file: String,
    line: usize,
    change: String,
}

impl Report {
    pub(super) fn tested(&self) -> usize {
        self.tested
    }

    pub(super) fn add(&mut self, mutant: Mutant, outcome: Outcome) {
        match outcome {
            Outcome::Unviable => {}
            Outcome::CaughtByTests | Outcome::CaughtBySimulator | Outcome::TimedOut => {
                self.tested += 1;
                self.caught += 1;
            }
            Outcome::Survived => {
                self.tested += 1;
                self.survived.push(Survivor {
                    line: mutant.line(),
                    change: mutant.change().to_owned(),
                    file: mutant.file,
                });
            }
        }
    }

    pub(super) fn json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    pub(super) fn text(&self) -> String {
        let Self {
            tested,
            caught,
            survived,
        } = self;
        let mut text = format!(
            "{tested} tried, {caught} caught, {} survived",
            survived.len()
        );
        for Survivor { file, line, change } in survived {
            // Writing to a string cannot fail.
            let _ = write!(text, "\n{file}:{line}: {change}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let mut report = Report::default();
        for outcome in [
            Outcome::CaughtByTests,
            Outcome::CaughtBySimulator,
            Outcome::TimedOut,
            Outcome::Unviable,
            Outcome::Survived,
        ] {
            report.add(
                Mutant::named("crates/model/src/a.rs:2:3: replace < with <="),
                outcome,
            );
        }
        report
    }

    #[test]
    fn what_does_not_compile_was_not_tested_and_what_does_not_end_was_caught() {
        let json: serde_json::Value = serde_json::from_str(&report().json()).unwrap();
        let expected = serde_json::json!({
            "tested": 4,
            "caught": 3,
            "survived": [{"file": "crates/model/src/a.rs", "line": 2, "change": "replace < with <="}],
        });
        assert_eq!(json, expected);
    }

    #[test]
    fn people_are_told_where_to_look() {
        assert_eq!(
            report().text(),
            "4 tried, 3 caught, 1 survived\ncrates/model/src/a.rs:2: replace < with <="
        );
    }
}
