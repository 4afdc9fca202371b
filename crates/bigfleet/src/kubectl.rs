//! The same binary as a plugin of kubectl: `kubectl-bigfleet` on the PATH is `kubectl bigfleet`.
//!
//! | Called as | Is |
//! |---|---|
//! | `kubectl-bigfleet why POD …` | what kubectl runs for `kubectl bigfleet why POD …` |
//! | `kubectl_complete-bigfleet why we` | what kubectl runs to complete it: a word per line, then what the shell is not to add |

use crate::{failure::Failure, output::say, why};
use bigfleet_k8s::Cluster;
use bigfleet_operator::pod_names;
use clap::{CommandFactory, Parser, Subcommand};
use std::{ffi::OsString, path::Path, process::ExitCode, time::Duration};

const PLUGIN: &str = "kubectl-bigfleet";
const COMPLETION: &str = "kubectl_complete-bigfleet";
/// Nobody waits longer for a word to be completed.
const COMPLETED_WITHIN: Duration = Duration::from_secs(2);
/// Tells the shell not to offer files.
const NO_FILES: &str = ":4";

/// BigFleet brings machines to clusters; this says how far it is with one for your Pod.
#[derive(Debug, Parser)]
#[command(name = "kubectl bigfleet", bin_name = "kubectl bigfleet", version)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Say where a Pod waits on its way to a Node, and what would change it.
    Why(Box<why::Args>),
}

/// Runs as what this program was called; `None` if that is not one of kubectl's names.
pub(crate) fn run() -> Option<ExitCode> {
    let args: Vec<OsString> = std::env::args_os().collect();
    let called = args.first().map(Path::new)?;
    match called.file_stem()?.to_str()? {
        PLUGIN => Some(plugin(args)),
        COMPLETION => {
            let words = args.iter().skip(1);
            let words: Vec<String> = words.map(|it| it.to_string_lossy().into_owned()).collect();
            let lines = completed(&words).into_iter().chain([NO_FILES.to_owned()]);
            let text: String = lines.map(|line| line + "\n").collect();
            Some(ended(say(&text)))
        }
        _ => None,
    }
}

fn plugin(args: Vec<OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(refused) => {
            drop(refused.print());
            return ExitCode::from(u8::try_from(refused.exit_code()).unwrap_or(2));
        }
    };
    let Verb::Why(args) = cli.verb;
    ended(why::run(&args))
}

fn ended(done: Result<(), Failure>) -> ExitCode {
    done.map_or_else(|failure| failure.report(), |()| ExitCode::SUCCESS)
}

/// The words that may stand where the last one is being typed.
fn completed(words: &[String]) -> Vec<String> {
    let Some((typed, before)) = words.split_last() else {
        return Vec::new();
    };
    let verb = before.iter().position(|word| word == "why");
    let Some(after) = verb.and_then(|at| before.get(at + 1..)) else {
        return beginning(typed, vec!["why".to_owned()]);
    };
    if typed.starts_with('-') {
        return beginning(typed, flags());
    }
    let is_value = |flag: &&String| {
        let short = matches!(flag.as_str(), "-n" | "-o");
        short || (flag.starts_with("--") && !flag.contains('='))
    };
    if after.last().filter(is_value).is_some() {
        return Vec::new();
    }
    let value = |names: [&str; 2]| value(after, names);
    let kubeconfig = value(["--kubeconfig", "--kubeconfig"]);
    let context = value(["--context", "--context"]);
    let namespace = value(["--namespace", "-n"]).unwrap_or_default();
    beginning(
        typed,
        pods(kubeconfig, context, &namespace).unwrap_or_default(),
    )
}

fn beginning(typed: &str, words: Vec<String>) -> Vec<String> {
    let fits = |word: &String| word.starts_with(typed);
    words.into_iter().filter(fits).collect()
}

fn flags() -> Vec<String> {
    let command = Cli::command();
    let verb = command.find_subcommand("why");
    let flags = verb.into_iter().flat_map(clap::Command::get_arguments);
    flags
        .filter_map(|flag| Some(format!("--{}", flag.get_long()?)))
        .collect()
}

/// What was given for a flag, after it or joined to it.
fn value(words: &[String], names: [&str; 2]) -> Option<String> {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        for name in names {
            match word.strip_prefix(name) {
                Some("") => return words.next().cloned(),
                Some(rest) if name.starts_with("--") => {
                    return Some(rest.strip_prefix('=')?.to_owned());
                }
                Some(rest) => return Some(rest.trim_start_matches('=').to_owned()),
                None => {}
            }
        }
    }
    None
}

/// The Pods there are; none where they may not be read, or not soon enough.
fn pods(
    kubeconfig: Option<String>,
    context: Option<String>,
    namespace: &str,
) -> Option<Vec<String>> {
    if !namespace.is_empty() {
        why::check("namespace", namespace).ok()?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .ok()?;
    runtime.block_on(async {
        let cluster = Cluster::connect(kubeconfig.as_deref().map(Path::new), context.as_deref());
        let cluster = cluster.ok()?;
        let names = pod_names(&cluster, namespace);
        tokio::time::timeout(COMPLETED_WITHIN, names).await.ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(typed: &[&str]) -> Vec<String> {
        typed.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn the_plugin_s_command_line_is_a_possible_one() {
        Cli::command().debug_assert();
        let read = Cli::try_parse_from(["kubectl-bigfleet", "why", "web", "-n", "shop"]);
        assert!(read.is_ok(), "{read:?}");
        assert!(Cli::try_parse_from(["kubectl-bigfleet", "get", "machines"]).is_err());
    }

    #[test]
    fn verb_and_flags_are_completed_without_a_cluster() {
        assert_eq!(completed(&words(&["w"])), ["why"]);
        assert_eq!(completed(&words(&["x"])), [""; 0]);
        let flags = completed(&words(&["why", "web", "--sh"]));
        assert_eq!(flags, ["--shard", "--shard-context"]);
        assert_eq!(completed(&words(&["why", "-n", ""])), [""; 0]);
    }

    #[test]
    fn a_flag_s_value_is_found_however_it_is_written() {
        let namespace = |typed: &[&str]| value(&words(typed), ["--namespace", "-n"]);
        for typed in [
            &["-n", "shop"][..],
            &["-nshop"],
            &["--namespace", "shop"],
            &["web", "--namespace=shop"],
        ] {
            assert_eq!(namespace(typed).as_deref(), Some("shop"), "{typed:?}");
        }
        assert_eq!(namespace(&["web"]), None);
    }
}
