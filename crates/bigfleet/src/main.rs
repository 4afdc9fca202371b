//! `bigfleet`: one binary, a verb per thing it does. Under the name `kubectl-bigfleet` it is a plugin of kubectl.
//!
//! | Exit status | Means |
//! |---|---|
//! | 0 | done |
//! | 1 | could not be done, or a process refuses what it is to start with, or lost a part of itself; stderr says why |
//! | 2 | the command line or a file it names is wrong; stderr names every problem, stdout is empty |

mod audit;
mod bench;
mod certs;
mod cluster_side;
#[cfg(test)]
mod command_tree;
mod config;
mod conformance;
mod connection;
mod coordinator;
mod crds;
mod decide;
mod drain;
mod engines;
mod explain;
mod failure;
mod help;
mod input;
mod kinds;
mod kubectl;
mod operator;
mod output;
mod ownership;
mod pod_controller;
mod provider;
mod shard;
mod sim;
mod snapshot;
mod table;
mod up;
mod up_kubernetes;
mod verbs;
mod why;

use bigfleet_shard::Trouble;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand, error::ErrorKind};
use std::process::ExitCode;

/// What a shard hears is small pieces of text, read on one thread and freed on another; half of what
/// roll-ups cost, and a third of a List, was the system's allocator (decision 0010).
#[global_allocator]
static MEMORY: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// One autoscaler for a whole fleet of Kubernetes clusters: decides which machines serve which cluster.
///
/// Start with `bigfleet up`, which runs everything on a simulated cloud, and look at it from another
/// terminal with `bigfleet get clusters` or `bigfleet top`.
#[derive(Debug, Parser)]
#[command(name = "bigfleet", version, propagate_version = true, after_help = help::WORDS)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Run a demonstration: a shard (the decider), a simulated cloud and a few clusters, in one process.
    Up(Box<up::Args>),
    /// Show what would be decided for a fleet described in a file; changes nothing.
    Decide(decide::Args),
    /// Measure how fast the parts are, on generated workloads.
    Bench(bench::Args),
    /// Run a provider: the server through which a shard creates and deletes machines.
    Provider(provider::Args),
    /// Certify a provider: check every promise of the provider contract against it, and report.
    Conformance(Box<conformance::Args>),
    /// Run a shard: decides which machines serve which cluster, and has a provider make it so.
    Shard(Box<shard::Args>),
    /// Run a replica of the coordinator: three of them agree which shard has which part of the fleet.
    Coordinator(Box<coordinator::Args>),
    /// Run a cluster's operator: tells the shard what its Pods need, and drains the Nodes it takes back.
    Operator(Box<operator::Args>),
    /// Run a pod controller: makes a CapacityRequest of every Pod, for the operator to read.
    PodController(Box<pod_controller::Args>),
    /// Print the resources a cluster must know before its operator starts, for `kubectl apply`.
    Crds(crds::Args),
    /// List clusters, machines, Needs, work, decisions, shortfalls, pauses or rails of a running shard; shards, domains or
    /// replicas of a coordinator.
    Get(verbs::GetArgs),
    /// Show everything about one machine, Need or cluster of a running shard, or about a shard.
    Describe(verbs::DescribeArgs),
    /// Show why a cluster has the machines it has, and what it would take to get more.
    Explain(verbs::ExplainArgs),
    /// Say where a Pod waits on its way to a Node, and what would change it; also `kubectl bigfleet why`.
    Why(Box<why::Args>),
    /// Wait until something is as it should be: a machine Configured, a Need served.
    Wait(verbs::WaitArgs),
    /// Say whether all is well, and what is not, worst first; the exit status is 0 only if it is.
    Status(verbs::StatusArgs),
    /// Watch a running shard on one screen.
    Top(verbs::TopArgs),
    /// Stop all changes to machines for a while; deciding continues.
    Pause(verbs::PauseArgs),
    /// End a pause: changes to machines go on.
    Resume(verbs::ResumeArgs),
    /// Remove a Failed machine from the records, if its provider lists it for ever.
    Retire(verbs::RetireArgs),
    /// Give back the machines of a cluster that no longer exists.
    Release(verbs::ReleaseArgs),
    /// Take machines out of service, each once another serves in its place.
    Drain(drain::DrainArgs),
    /// Keep machines after all that were to be drained, or give them back to service.
    Undrain(drain::UndrainArgs),
    /// Give a domain (all machines with one value of a label) to a shard.
    Assign(ownership::AssignArgs),
    /// Take a domain from its shard.
    Unassign(ownership::UnassignArgs),
    /// Give a domain of one shard to another.
    Move(ownership::MoveArgs),
    /// Forget a shard that is no more.
    Remove(ownership::RemoveArgs),
    /// Change the group of replicas that is the coordinator: take one out, let another lead.
    Raft(ownership::RaftArgs),
    /// Back up what the coordinator knows, look at backups, and restore one.
    Snapshot(snapshot::Args),
    /// End a restore of the coordinator: from then on domains are handed out again.
    FinishRestore(snapshot::FinishArgs),
    /// Ask an audit log what happened, when, to whom and why; needs no shard.
    Audit(audit::Args),
    /// Name shards and how to call them, so that the other verbs need no flags.
    Config(config::Args),
    /// Make certificates: an authority, and what it signs for shards, operators, providers and people.
    Certs(certs::Args),
    /// Test the deciding code on simulated fleets with injected faults.
    Sim(sim::Args),
    /// Say which version this program is, and which the shard is.
    Version(verbs::VersionArgs),
    /// Print a completion script for a shell.
    Completions(help::CompletionsArgs),
    /// Print a manual page.
    Man(help::ManArgs),
}

/// The command line, and the trouble a test requests with it.
fn read() -> Result<(Cli, Vec<String>), clap::Error> {
    let command = shard::with_trouble(Cli::command(), Trouble::CAN_BE_REQUESTED);
    let args = conformance::go_flags(std::env::args_os().collect());
    let matches = command.try_get_matches_from(args)?;
    let trouble = shard::requested_trouble(&matches);
    Ok((Cli::from_arg_matches(&matches)?, trouble))
}

/// The command line, or the end: with 2 if it is not one of ours, with 1 if a process is to start with a
/// value that is none (docs/operating.md).
fn parse() -> Result<(Cli, Vec<String>), ExitCode> {
    read().map_err(|refused| {
        let is_value = matches!(
            refused.kind(),
            ErrorKind::InvalidValue | ErrorKind::ValueValidation
        );
        let verb = std::env::args_os().nth(1).unwrap_or_default();
        let is_process = ["shard", "coordinator", "operator", "pod-controller"]
            .iter()
            .any(|it| verb == *it);
        if is_value && is_process {
            let text = refused.to_string();
            let line = text.lines().next().unwrap_or_default();
            let reason = line.strip_prefix("error: ").unwrap_or(line);
            eprintln!("bigfleet {}: {reason}", verb.display());
            return ExitCode::FAILURE;
        }
        drop(refused.print());
        ExitCode::from(u8::try_from(refused.exit_code()).unwrap_or(2))
    })
}

fn main() -> ExitCode {
    if let Some(ended) = kubectl::run() {
        return ended;
    }
    let (cli, trouble) = match parse() {
        Ok(read) => read,
        Err(ended) => return ended,
    };
    let outcome = match cli.verb {
        Verb::Up(args) => up::run(&args),
        Verb::Decide(args) => decide::run(&args),
        Verb::Bench(args) => bench::run(&args),
        Verb::Provider(args) => provider::run(&args),
        Verb::Conformance(args) => conformance::run(&args),
        Verb::Shard(args) => shard::run(&args, &trouble),
        Verb::Coordinator(args) => coordinator::run(&args),
        Verb::Operator(args) => operator::run(&args),
        Verb::PodController(args) => pod_controller::run(&args),
        Verb::Crds(args) => crds::run(args),
        Verb::Get(args) => verbs::get(&args),
        Verb::Describe(args) => verbs::describe(&args),
        Verb::Explain(args) => verbs::explain(&args),
        Verb::Why(args) => why::run(&args),
        Verb::Wait(args) => verbs::wait(&args),
        Verb::Status(args) => verbs::status(&args),
        Verb::Top(args) => verbs::top(&args),
        Verb::Pause(args) => verbs::pause(&args),
        Verb::Resume(args) => verbs::resume(&args),
        Verb::Retire(args) => verbs::retire(&args),
        Verb::Release(args) => verbs::release(&args),
        Verb::Drain(args) => drain::drain(&args),
        Verb::Undrain(args) => drain::undrain(&args),
        Verb::Assign(args) => ownership::assign(&args),
        Verb::Unassign(args) => ownership::unassign(&args),
        Verb::Move(args) => ownership::moved(&args),
        Verb::Remove(args) => ownership::remove(&args),
        Verb::Raft(args) => ownership::raft(&args),
        Verb::Snapshot(args) => snapshot::run(&args),
        Verb::FinishRestore(args) => snapshot::finish(&args),
        Verb::Audit(args) => audit::run(&args),
        Verb::Config(args) => config::run(&args),
        Verb::Certs(args) => certs::run(&args),
        Verb::Sim(args) => sim::run(&args),
        Verb::Version(args) => verbs::version(&args),
        Verb::Completions(args) => help::completions(&args, Cli::command()),
        Verb::Man(args) => help::man(&args, Cli::command()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: [&str; 5] = [
        "bigfleet",
        "shard",
        "--provider-addr",
        "x:1",
        "--trouble=store-forgets",
    ];

    #[test]
    fn the_ordinary_command_line_has_no_test_switches() {
        let ordinary = shard::with_trouble(Cli::command(), false);
        let refused = ordinary.try_get_matches_from(REQUEST).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::UnknownArgument);
        assert_eq!(refused.exit_code(), 2, "a usage error");
    }

    #[test]
    fn a_build_of_the_tests_has_them() {
        const {
            assert!(
                Trouble::CAN_BE_REQUESTED,
                "the tests of the process need it"
            )
        };
        let command = shard::with_trouble(Cli::command(), true);
        let matches = command.try_get_matches_from(REQUEST).unwrap();
        assert_eq!(shard::requested_trouble(&matches), ["store-forgets"]);
        let matches = Cli::command().try_get_matches_from(&REQUEST[..4]).unwrap();
        assert!(shard::requested_trouble(&matches).is_empty());
    }
}
