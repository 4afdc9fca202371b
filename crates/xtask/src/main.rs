//! The project's own commands, run as `cargo xtask <command>`.
//!
//! ```text
//! check   exactly what CI runs; writes nothing
//! tidy    the rules no compiler knows: who may import whom, what a core may not touch
//! fix     the one that rewrites: formatting, and lints that can repair themselves
//! ```

mod check;
mod steps;
mod tidy;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The project's own commands.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

// A long-running `fuzz` belongs here once there are fuzz targets: one variant, one module.
#[derive(Debug, Subcommand)]
enum Command {
    /// Run everything CI runs: formatting, tidy, lints, tests, docs. Writes nothing.
    Check,
    /// Check the dependency rings, the purity of the cores and the house rules for files.
    Tidy {
        /// The workspace to look at; the one around the current directory when absent.
        #[arg(long)]
        root: Option<PathBuf>,
    },
    /// Rewrite what can be repaired: formatting, and lints that know their own fix.
    Fix,
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Check => check::check(),
        Command::Tidy { root } => tidy::command(root),
        Command::Fix => check::fix(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failed) => {
            eprintln!("{failed}");
            ExitCode::FAILURE
        }
    }
}
