//! How every bench answers: the report, then each promise beside it, then the exit status if asked for.

use crate::{failure::Failure, output::say, table::columns};
use bigfleet_bench::{Check, Judged, Promises};
use clap::{Args as ClapArgs, ValueEnum};
use serde::Serialize;
use std::io::IsTerminal;

/// How a report is written and judged.
#[derive(Debug, ClapArgs)]
pub(super) struct AnswerArgs {
    /// The form of the answer [default: table on a terminal, else json]
    #[arg(short, long, value_enum)]
    output: Option<Output>,

    /// End with exit status 1 if one of the checks does not hold
    #[arg(long)]
    gate: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Output {
    /// One JSON object.
    Json,
    /// A table for people.
    Table,
}

impl AnswerArgs {
    /// Writes the report and its checks, and judges them if asked to.
    pub(super) fn answer<R: Promises + Serialize>(
        &self,
        report: R,
        table: fn(&R) -> String,
    ) -> Result<(), Failure> {
        let judged = Judged::new(report);
        let is_terminal = std::io::stdout().is_terminal();
        let usual = if is_terminal {
            Output::Table
        } else {
            Output::Json
        };
        say(&match self.output.unwrap_or(usual) {
            Output::Json => serde_json::to_string(&judged).map_err(std::io::Error::from)? + "\n",
            Output::Table => table(&judged.report) + "\n" + &checks_table(&judged.checks),
        })?;
        self.judge(&judged.checks)
    }

    fn judge(&self, checks: &[Check]) -> Result<(), Failure> {
        let broken = checks.iter().filter(|check| !check.holds);
        let lines: Vec<String> = broken
            .map(|check| {
                let (name, bound) = (&check.name, check.bound);
                format!(
                    "the check {name} {bound} does not hold: it is {}",
                    value(check)
                )
            })
            .collect();
        if self.gate && !lines.is_empty() {
            return Err(Failure::Undone(lines.join("\n")));
        }
        Ok(())
    }
}

fn value(check: &Check) -> String {
    let known = check.value.map(|value| value.to_string());
    known.unwrap_or_else(|| "unknown".to_owned())
}

fn checks_table(checks: &[Check]) -> String {
    let row = |check: &Check| {
        let holds = if check.holds { "yes" } else { "NO" };
        vec![
            check.name.clone(),
            value(check),
            check.bound.to_string(),
            holds.to_owned(),
        ]
    };
    columns(
        &["CHECK", "VALUE", "BOUND", "HOLDS"],
        checks.iter().map(row),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::ExitCode;

    /// A run that cannot have kept its promise.
    #[derive(Serialize)]
    struct Impossible;

    impl Promises for Impossible {
        fn checks(&self) -> Vec<Check> {
            vec![
                Check::at_most("seconds", 1.0, 2.0),
                Check::at_most("years", 1.0, 0.0),
            ]
        }
    }

    fn judged(gate: bool) -> Result<(), Failure> {
        let output = Some(Output::Json);
        AnswerArgs { output, gate }.judge(&Impossible.checks())
    }

    #[test]
    fn with_a_gate_a_broken_check_ends_in_status_1() {
        let failure = judged(true).unwrap_err();
        let Failure::Undone(why) = &failure else {
            panic!("{failure:?}");
        };
        assert_eq!(why, "the check years_at_most 0 does not hold: it is 1");
        assert_eq!(failure.report(), ExitCode::from(1));
    }

    #[test]
    fn without_a_gate_it_is_only_said() {
        assert!(judged(false).is_ok());
        let table = checks_table(&Impossible.checks());
        assert!(
            table.contains("years_at_most") && table.contains("NO"),
            "{table}"
        );
    }

    #[test]
    fn with_a_gate_checks_that_hold_end_in_status_0() {
        let gate = AnswerArgs {
            output: None,
            gate: true,
        };
        assert!(gate.judge(&Impossible.checks()[..1]).is_ok());
    }
}
