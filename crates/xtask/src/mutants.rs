//! `mutants`: changes the code in small ways and sees whether a test notices.
//!
//! ```text
//! cargo-mutants lists every change ─▶ draw, by seed ─▶ a copy of the tree, one change at a time
//!     ─▶ the package's tests ── pass ─▶ the simulator's tests: goldens and every scenario ── pass ─▶ survived
//!             └─ fail, or do not end ──────────────┴──▶ caught          does not compile ─▶ not counted
//! ```
//!
//! cargo-mutants finds the changes; trying one is done here, since all of them share one copy of the tree
//! and one build folder, so that each costs only what it makes cargo build again. Your own tree is not
//! touched.

mod draw;
mod list;
mod report;
mod tree;

use std::process::Command;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};

use crate::steps::{Failed, cargo, workspace_root};
use list::Mutant;
use report::{Outcome, Report};
use tree::{Ended, Tree};

/// The packages whose tests should notice everything.
const PACKAGES: [&str; 3] = ["bigfleet-model", "bigfleet-engine", "bigfleet-shard-core"];
/// The package whose tests are the simulator's sweep.
const SIMULATOR: &str = "bigfleet-sim";
/// A build that takes longer is taken for one that does not end.
const BUILD_PATIENCE: Duration = Duration::from_secs(1800);
/// The least time tests get, however quick they are when nothing is changed.
const LEAST_PATIENCE: Duration = Duration::from_secs(120);
/// How many times as long as usual tests may take: a loop that does not end is noticed by that.
const PATIENCE: u32 = 5;

/// What was asked.
#[derive(Clone, Debug, Args)]
pub(crate) struct MutantsArgs {
    /// The package to change; may be given several times.
    #[arg(long, short, value_name = "P", default_values = PACKAGES)]
    package: Vec<String>,

    /// How many changes to try.
    #[arg(long, value_name = "N", default_value_t = 60)]
    sample: usize,

    /// Draws the changes; the same seed over the same code draws the same ones.
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,

    /// How the answer is written; progress is on standard error.
    #[arg(long, short, value_enum, default_value_t = Output::Text)]
    output: Output,
}

/// A way to write the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people.
    Text,
    /// One object: tested, caught, survived.
    Json,
}

/// Tries a sample of all changes; survivors are no failure of the command.
pub(crate) fn mutants(args: &MutantsArgs) -> Result<(), Failed> {
    let root = workspace_root()?;
    install()?;
    let all = list::list(&root, &args.package)?;
    let found = all.len();
    eprintln!(
        "{found} changes are possible; {} are tried",
        args.sample.min(found)
    );
    let tree = Tree::copy(&root)?;
    let bounds = bounds(&tree, &args.package)?;
    let mut report = Report::default();
    for mutant in draw::shuffled(all, args.seed) {
        if report.tested() == args.sample {
            break;
        }
        let began = Instant::now();
        let outcome = attempt(&tree, &mutant, &bounds)?;
        eprintln!(
            "[{}/{}] {} ({:.0} s): {}",
            report.tested() + usize::from(outcome != Outcome::Unviable),
            args.sample,
            outcome.word(),
            began.elapsed().as_secs_f64(),
            mutant.name
        );
        report.add(mutant, outcome);
    }
    let answer = match args.output {
        Output::Text => report.text(),
        Output::Json => report.json(),
    };
    println!("{answer}");
    Ok(())
}

/// Installs cargo-mutants where it is missing.
fn install() -> Result<(), Failed> {
    let there = Command::new(cargo())
        .args(["mutants", "--version"])
        .output();
    if there.is_ok_and(|output| output.status.success()) {
        return Ok(());
    }
    eprintln!("cargo-mutants is not there yet; installing it");
    let arguments = ["install", "cargo-mutants", "--locked"];
    let status = Command::new(cargo()).args(arguments).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(_) | Err(_) => Err(Failed::NoMutants),
    }
}

/// How long the tests of each package may take, measured where nothing is changed; they have to pass.
fn bounds(tree: &Tree, packages: &[String]) -> Result<Vec<(String, Duration)>, Failed> {
    let mut bounds = Vec::new();
    let simulator = SIMULATOR.to_owned();
    for package in packages.iter().chain([&simulator]) {
        eprintln!("the tests of {package}, with nothing changed");
        if tree.build(package, BUILD_PATIENCE)? != Ended::Well {
            return Err(Failed::Baseline {
                package: package.clone(),
            });
        }
        let began = Instant::now();
        if tree.test(package, BUILD_PATIENCE)? != Ended::Well {
            return Err(Failed::Baseline {
                package: package.clone(),
            });
        }
        let bound = (began.elapsed() * PATIENCE).max(LEAST_PATIENCE);
        bounds.push((package.clone(), bound));
    }
    Ok(bounds)
}

fn attempt(tree: &Tree, mutant: &Mutant, bounds: &[(String, Duration)]) -> Result<Outcome, Failed> {
    tree.change(mutant)?;
    let outcome = noticed(tree, mutant, bounds);
    tree.restore(mutant)?;
    outcome
}

fn noticed(tree: &Tree, mutant: &Mutant, bounds: &[(String, Duration)]) -> Result<Outcome, Failed> {
    let bound = |package: &str| {
        let of = bounds.iter().find(|(name, _)| name == package);
        of.map_or(LEAST_PATIENCE, |(_, bound)| *bound)
    };
    for (package, caught) in [
        (mutant.package.as_str(), Outcome::CaughtByTests),
        (SIMULATOR, Outcome::CaughtBySimulator),
    ] {
        if tree.build(package, BUILD_PATIENCE)? != Ended::Well {
            return Ok(Outcome::Unviable);
        }
        match tree.test(package, bound(package))? {
            Ended::Well => {}
            Ended::Badly => return Ok(caught),
            Ended::Never => return Ok(Outcome::TimedOut),
        }
    }
    Ok(Outcome::Survived)
}
