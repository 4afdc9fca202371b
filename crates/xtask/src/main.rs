//! The project's own commands, run as `cargo xtask <command>`.
//!
//! ```text
//! setup   installs what the tests need and cargo does not bring
//! check   exactly what CI runs; begins with setup, and else writes nothing
//! tidy    the rules no compiler knows: who may import whom, what a core may not touch
//! fix     the one that rewrites: formatting, and lints that can repair themselves
//! kube    builds the parts of a real Kubernetes that the tests start
//! fuzz    goes on where the tests stop, for as long as one likes
//! soak    everything that can go wrong at once, against processes, for minutes
//! e2e     everything together on a real Kubernetes, with as many kills as one likes
//! histories   what clients of a coordinator see while it fails, judged
//! mutants changes the code in small ways, and sees whether a test notices
//! ```

mod check;
mod command_line;
mod e2e;
mod fuzz;
mod histories;
mod kube;
mod mutants;
mod setup;
mod soak;
mod steps;
mod tidy;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

/// The project's own commands.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Install what the tests need and cargo does not bring, or name it where that is not allowed.
    Setup,
    /// Run everything CI runs: setup, formatting, tidy, lints, tests, docs. Changes no file of the repository.
    Check,
    /// Check the dependency rings, the purity of the cores and the house rules for files.
    Tidy {
        /// The workspace to look at; the one around the current directory when absent.
        #[arg(long)]
        root: Option<PathBuf>,
    },
    /// Rewrite what can be repaired: formatting, and lints that know their own fix.
    Fix,
    /// Provide a real Kubernetes for the tests: from KUBEBUILDER_ASSETS, the user's cache, or built once.
    Kube(kube::KubeArgs),
    /// Search for a wrong answer, for as long as one likes.
    Fuzz {
        #[command(subcommand)]
        target: fuzz::Target,
    },
    /// Change the code in small ways, one at a time, and see whether a test notices.
    Mutants(mutants::MutantsArgs),
    /// Run shard, provider and operators with everything that can go wrong at once.
    Soak(soak::SoakArgs),
    /// Kill whoever moves machines of a real Kubernetes, again and again, beside a ledger of what reached its API server.
    E2e(e2e::EndToEndArgs),
    /// More histories of clients of a coordinator that fails, each judged.
    Histories(histories::HistoriesArgs),
}

/// Our own command line, one line per command, for `tidy` to hold pages to.
fn command_line() -> String {
    command_line::lines(&Cli::command(), "cargo xtask")
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Setup => setup::setup(),
        Command::Check => check::check(),
        Command::Tidy { root } => tidy::command(root),
        Command::Fix => check::fix(),
        Command::Kube(args) => kube::kube(args),
        Command::Fuzz { target } => fuzz::fuzz(target),
        Command::Mutants(args) => mutants::mutants(&args),
        Command::Soak(args) => soak::soak(args),
        Command::E2e(args) => e2e::end_to_end(args),
        Command::Histories(args) => histories::histories(args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failed) => {
            eprintln!("{failed}");
            ExitCode::FAILURE
        }
    }
}
