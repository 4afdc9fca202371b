//! `bigfleet`: one binary, a verb per thing it does.
//!
//! | Exit status | Means |
//! |---|---|
//! | 0 | done |
//! | 1 | could not be done; stderr says why |
//! | 2 | the command line or the file is wrong; stderr names every problem, stdout is empty |

mod decide;
mod engines;
mod explain;
mod failure;
mod input;
mod table;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// One autoscaler for a whole fleet of Kubernetes clusters.
#[derive(Debug, Parser)]
#[command(name = "bigfleet", version, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Decides about a fleet that is written down in a file, and changes nothing.
    Decide(decide::Args),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().verb {
        Verb::Decide(args) => decide::run(&args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
