//! `bigfleet`: one binary, a verb per thing it does.
//!
//! | Exit status | Means |
//! |---|---|
//! | 0 | done |
//! | 1 | could not be done, or a process refuses what it is to start with, or lost a part of itself; stderr says why |
//! | 2 | the command line or a file it names is wrong; stderr names every problem, stdout is empty |

mod bench;
mod decide;
mod engines;
mod explain;
mod failure;
mod help;
mod input;
mod output;
mod provider;
mod shard;
mod sim;
mod table;
mod up;
mod verbs;

use clap::{CommandFactory, Parser, Subcommand, error::ErrorKind};
use std::process::ExitCode;

/// What a shard hears is small pieces of text, read on one thread and freed on another; half of what
/// roll-ups cost, and a third of a List, was the system's allocator (decision 0010).
#[global_allocator]
static MEMORY: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// One autoscaler for a whole fleet of Kubernetes clusters.
#[derive(Debug, Parser)]
#[command(name = "bigfleet", version, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Runs everything in one process: a shard, a cloud in memory, and clusters that play a scenario.
    Up(Box<up::Args>),
    /// Decides about a fleet that is written down in a file, and changes nothing.
    Decide(decide::Args),
    /// Measures what the parts cost, on named workloads.
    Bench(bench::Args),
    /// Runs a provider.
    Provider(provider::Args),
    /// Runs a shard: decides which machines serve which cluster, and has its provider do it.
    Shard(Box<shard::Args>),
    /// Lists what a running shard holds and does.
    Get(verbs::GetArgs),
    /// Says everything about one machine, Need or cluster of a running shard.
    Describe(verbs::DescribeArgs),
    /// Says why a running shard serves a cluster's Needs as it does.
    Explain(verbs::ExplainArgs),
    /// Shows a running shard, live.
    Top(verbs::TopArgs),
    /// Lets nothing leave a running shard for a while; it goes on deciding.
    Pause(verbs::PauseArgs),
    /// Lifts a pause.
    Resume(verbs::ResumeArgs),
    /// Forgets a Failed machine that its provider keeps showing.
    Retire(verbs::RetireArgs),
    /// Gives back the machines of a cluster whose operator is gone for good.
    Release(verbs::ReleaseArgs),
    /// Lives through years of a fleet under a seeded clock.
    Sim(sim::Args),
    /// Prints the script with which a shell completes this command line.
    Completions(help::CompletionsArgs),
    /// Prints a manual page.
    Man(help::ManArgs),
}

/// The command line, or the end: with 2 if it is not one of ours, with 1 if a process is to start with a
/// value that is none (docs/operating.md).
fn parse() -> Result<Cli, ExitCode> {
    Cli::try_parse().map_err(|refused| {
        let is_value = matches!(
            refused.kind(),
            ErrorKind::InvalidValue | ErrorKind::ValueValidation
        );
        let is_process = std::env::args_os()
            .nth(1)
            .is_some_and(|verb| verb == "shard");
        if is_value && is_process {
            let text = refused.to_string();
            let line = text.lines().next().unwrap_or_default();
            let reason = line.strip_prefix("error: ").unwrap_or(line);
            eprintln!("bigfleet shard: {reason}");
            return ExitCode::FAILURE;
        }
        drop(refused.print());
        ExitCode::from(u8::try_from(refused.exit_code()).unwrap_or(2))
    })
}

fn main() -> ExitCode {
    let cli = match parse() {
        Ok(cli) => cli,
        Err(ended) => return ended,
    };
    let outcome = match cli.verb {
        Verb::Up(args) => up::run(&args),
        Verb::Decide(args) => decide::run(&args),
        Verb::Bench(args) => bench::run(&args),
        Verb::Provider(args) => provider::run(&args),
        Verb::Shard(args) => shard::run(&args),
        Verb::Get(args) => verbs::get(&args),
        Verb::Describe(args) => verbs::describe(&args),
        Verb::Explain(args) => verbs::explain(&args),
        Verb::Top(args) => verbs::top(&args),
        Verb::Pause(args) => verbs::pause(&args),
        Verb::Resume(args) => verbs::resume(&args),
        Verb::Retire(args) => verbs::retire(&args),
        Verb::Release(args) => verbs::release(&args),
        Verb::Sim(args) => sim::run(&args),
        Verb::Completions(args) => help::completions(&args, Cli::command()),
        Verb::Man(args) => help::man(&args, Cli::command()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
