//! `bigfleet decide FILE`: the offline what-if. Save a fleet, change a number, see what would
//! happen and why.

use crate::{engines::Engine, explain, failure::Failure, input, output::say, table};
use bigfleet_fleet_file::{decision_json, decision_yaml};
use bigfleet_model::{Decision, Fleet};
use clap::{Args as ClapArgs, ValueEnum};
use std::{io::IsTerminal, path::PathBuf};

/// What was asked.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// The fleet, as JSON or YAML; `-` reads it from stdin.
    file: PathBuf,

    /// Which engine decides. All of them give the same answer.
    #[arg(long, value_enum, default_value_t = Engine::Full)]
    engine: Engine,

    /// The seed of the random edits of `--engine incremental`.
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// How the answer is written: by default `table` on a terminal, else `json`.
    #[arg(short, long, value_enum)]
    output: Option<Output>,

    /// Explains Needs instead: all of a cluster, or one by its fingerprint and group.
    #[arg(long, value_name = "CLUSTER[/FINGERPRINT[/GROUP]]")]
    explain: Option<String>,
}

/// How the answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// One object, the same bytes for the same answer.
    Json,
    /// The same object as YAML.
    Yaml,
    /// For people.
    Table,
}

/// Reads, decides, writes.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let loaded = input::load(&args.file)?;
    for warning in &loaded.warnings {
        eprintln!("warning: {warning}");
    }
    let decision = args.engine.decide(&loaded.fleet, args.seed);
    let text = answer(args, &loaded.fleet, &decision)?;
    say(&text)
}

fn answer(args: &Args, fleet: &Fleet, decision: &Decision) -> Result<String, Failure> {
    let terminal = std::io::stdout().is_terminal();
    let usual = if terminal {
        Output::Table
    } else {
        Output::Json
    };
    let output = args.output.unwrap_or(usual);
    if let Some(called) = &args.explain {
        let explanations = explain::explain(fleet, decision, called)?;
        return Ok(explain::text(&explanations, output));
    }
    Ok(match output {
        Output::Json => decision_json(decision),
        Output::Yaml => decision_yaml(decision),
        Output::Table => table::decision(decision),
    })
}
