//! `bigfleet decide`: the offline what-if. Save a fleet, change a number, see what would happen and
//! why. The fleet is a file, or taken home from a running shard.

use crate::{engines::Engine, explain, failure::Failure, input, output::say, table, verbs};
use bigfleet_fleet_file::{Loaded, decision_json, decision_yaml};
use bigfleet_model::{Decision, Fleet};
use clap::{Args as ClapArgs, ValueEnum};
use std::{io::IsTerminal, path::PathBuf};

/// What was asked.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// The fleet file, JSON or YAML; `-` reads standard input
    #[arg(required_unless_present = "from_shard", conflicts_with = "from_shard")]
    file: Option<PathBuf>,

    /// Use the fleet of a running shard instead of a file [default address: as for `bigfleet get`]
    #[arg(long, value_name = "HOST:PORT", num_args = 0..=1, default_missing_value = "")]
    from_shard: Option<String>,

    /// Only this cluster, and the machines it could use
    #[arg(long, requires = "from_shard", conflicts_with = "file")]
    cluster: Option<String>,

    /// Save the fleet to this file, to edit it and decide again
    #[arg(
        long,
        value_name = "FILE",
        requires = "from_shard",
        conflicts_with = "file"
    )]
    save: Option<PathBuf>,

    #[command(flatten)]
    connection: verbs::ConnectionArgs,

    /// Which implementation decides; all of them give the same answer
    #[arg(long, value_enum, default_value_t = Engine::Full)]
    engine: Engine,

    /// The seed of the random edits of `--engine incremental`
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// The form of the answer [default: table on a terminal, else json]
    #[arg(short, long, value_enum)]
    output: Option<Output>,

    /// Explain instead why Needs (what clusters ask for) get the machines they get: all Needs of a
    /// cluster, or one by its fingerprint (its requirements as one text) and group
    #[arg(long, value_name = "CLUSTER[/FINGERPRINT[/GROUP]]")]
    explain: Option<String>,
}

/// How the answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// One JSON object; the same answer is always the same bytes.
    Json,
    /// The same object as YAML.
    Yaml,
    /// A table for people.
    Table,
}

/// Reads, decides, writes.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let loaded = load(args)?;
    for warning in &loaded.warnings {
        eprintln!("warning: {warning}");
    }
    let decision = args.engine.decide(&loaded.fleet, args.seed);
    let text = answer(args, &loaded.fleet, &decision)?;
    say(&text)
}

fn load(args: &Args) -> Result<Loaded, Failure> {
    match (&args.file, args.from_shard.as_deref()) {
        (Some(file), _) => input::load(file),
        (None, said) => {
            let said = said.filter(|said| !said.is_empty());
            let cluster = args.cluster.as_deref().unwrap_or_default();
            input::take(&args.connection, said, cluster, args.save.as_deref())
        }
    }
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
        Output::Table => table::decision(fleet, decision),
    })
}
