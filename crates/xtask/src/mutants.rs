//! `mutants`: changes the code in small ways and sees whether a test notices.
//!
//! ```text
//! cargo-mutants lists every change ─▶ draw, by seed ─▶ a copy of the tree, one change at a time
//!     ─▶ the package's tests ── pass ─▶ the simulator's sweep: goldens and every scenario ── pass ─▶ survived
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

use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};

use crate::steps::{Failed, cargo, workspace_root};
use list::Mutant;
use report::{Outcome, Report};
use tree::{Ended, Tree};

/// The packages whose tests should notice everything.
const PACKAGES: [&str; 3] = ["bigfleet-model", "bigfleet-engine", "bigfleet-shard-core"];
/// The package whose tests run every scenario with some seeds, and hold the golden runs.
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
    let mut bounds = Bounds::default();
    let mut report = Report::default();
    for mutant in draw::shuffled(all, args.seed) {
        if report.tested() == args.sample {
            break;
        }
        let began = Instant::now();
        let outcome = attempt(&tree, &mutant, &mut bounds)?;
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

/// How long tests may take, measured where nothing is changed. They have to pass there.
#[derive(Debug, Default)]
struct Bounds(BTreeMap<String, Duration>);

impl Bounds {
    /// The bound of a package; `None` if it was not measured.
    fn of(&self, package: &str) -> Option<Duration> {
        self.0.get(package).copied()
    }

    fn measure(&mut self, tree: &Tree, package: &str) -> Result<(), Failed> {
        if self.0.contains_key(package) {
            return Ok(());
        }
        eprintln!("the tests of {package}, with nothing changed");
        let (targets, without) = targets(package);
        let built = tree.build(package, targets, BUILD_PATIENCE)?;
        let began = Instant::now();
        if built != Ended::Well
            || tree.test(package, &[targets, without].concat(), BUILD_PATIENCE)? != Ended::Well
        {
            let package = package.to_owned();
            return Err(Failed::Baseline { package });
        }
        let bound = (began.elapsed() * PATIENCE).max(LEAST_PATIENCE);
        self.0.insert(package.to_owned(), bound);
        Ok(())
    }
}

/// Which tests of a package to build, and which of them to leave out: all of a package, and of the simulator those that
/// run scenarios, but for the large ones, which take minutes each.
fn targets(package: &str) -> (&'static [&'static str], &'static [&'static str]) {
    if package == SIMULATOR {
        (&["--test", "*"], &["--", "--skip", "large::"])
    } else {
        (&[], &[])
    }
}

/// One change, from making it to taking it back.
fn attempt(tree: &Tree, mutant: &Mutant, bounds: &mut Bounds) -> Result<Outcome, Failed> {
    let stages = [
        (mutant.package.as_str(), Outcome::CaughtByTests),
        (SIMULATOR, Outcome::CaughtBySimulator),
    ];
    for (package, caught) in stages {
        // The simulator takes minutes, so it is only measured once something has come this far.
        bounds.measure(tree, package)?;
        let before = tree.change(mutant)?;
        let ended = try_tests(tree, package, bounds.of(package));
        tree.restore(mutant, &before)?;
        match ended? {
            None => return Ok(Outcome::Unviable),
            Some(Ended::Well) => {}
            Some(Ended::Badly) => return Ok(caught),
            Some(Ended::Never) => return Ok(Outcome::TimedOut),
        }
    }
    Ok(Outcome::Survived)
}

/// How the tests of a package end; `None` if they do not compile.
fn try_tests(tree: &Tree, package: &str, bound: Option<Duration>) -> Result<Option<Ended>, Failed> {
    let (targets, without) = targets(package);
    if tree.build(package, targets, BUILD_PATIENCE)? != Ended::Well {
        return Ok(None);
    }
    let bound = bound.unwrap_or(LEAST_PATIENCE);
    tree.test(package, &[targets, without].concat(), bound)
        .map(Some)
}
