//! Tidy: the rules no compiler knows.
//!
//! ```text
//! cargo metadata ─┐
//!                 ├─▶ Repo (a plain value) ─▶ rules ─▶ problems, one line each
//! files on disk ──┘
//! ```
//!
//! Only [`load`] touches the disk. Every rule is a function from a value to problems, so a test can
//! plant a breach and see it named.

mod citations;
mod commands;
mod examples;
mod graph;
mod house;
mod lexer;
mod load;
mod map;
mod markdown;
mod paths;
mod purity;
mod table;

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::steps::{Failed, workspace_root};

/// What the rules look at.
#[derive(Clone, Debug, Default, PartialEq)]
struct Repo {
    graph: graph::Graph,
    files: Vec<File>,
}

/// A text file of the repository; its path is relative to the root, with forward slashes.
#[derive(Clone, Debug, PartialEq)]
struct File {
    path: String,
    text: String,
}

/// One breach of one rule, at one place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Problem {
    /// `path` or `path:line`.
    place: String,
    rule: Rule,
    what: String,
}

/// The rules, by the name a report shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rule {
    /// A crate is not in the table of rings.
    UnlistedCrate,
    /// A dependency points up, or sideways where no sideways arrow is drawn.
    UpwardArrow,
    /// A dependency on one of our crates that this crate keeps out.
    KeptOut,
    /// A dependency on a crate of others that this crate keeps out.
    ForbiddenOutside,
    /// The manifest does not take its lints from the workspace.
    WorkspaceLints,
    /// A core reaches for the world outside of its inputs.
    Clock,
    Thread,
    Random,
    HashOrder,
    World,
    Print,
    /// A file mentions a path of somebody's machine.
    MachinePath,
    /// Unfinished code, or a test that does not run.
    Unfinished,
    SkippedTest,
    /// A lint exception without its reason.
    Unreasoned,
    /// An example of the specification that no test names, or a stale excuse for one.
    Example,
    /// A rule or a section that is cited and written down nowhere.
    Citation,
    /// A page that names a file, a test or a heading there is not.
    StalePath,
    /// A page that names a command or a flag there is not.
    StaleCommand,
    /// A crate that the map in ARCHITECTURE.md lacks, or an entry without a crate.
    Map,
}

impl Rule {
    fn name(self) -> &'static str {
        match self {
            Rule::UnlistedCrate => "unlisted-crate",
            Rule::UpwardArrow => "upward-arrow",
            Rule::KeptOut => "kept-out",
            Rule::ForbiddenOutside => "forbidden-dependency",
            Rule::WorkspaceLints => "workspace-lints",
            Rule::Clock => "core-clock",
            Rule::Thread => "core-thread",
            Rule::Random => "core-random",
            Rule::HashOrder => "core-hash-order",
            Rule::World => "core-outside-world",
            Rule::Print => "core-print",
            Rule::MachinePath => "machine-path",
            Rule::Unfinished => "unfinished",
            Rule::SkippedTest => "skipped-test",
            Rule::Unreasoned => "unreasoned-exception",
            Rule::Example => "example",
            Rule::Citation => "dangling-citation",
            Rule::StalePath => "stale-path",
            Rule::StaleCommand => "stale-command",
            Rule::Map => "map",
        }
    }
}

impl Problem {
    fn new(place: impl Into<String>, rule: Rule, what: impl Into<String>) -> Self {
        Problem {
            place: place.into(),
            rule,
            what: what.into(),
        }
    }

    fn at(file: &File, line: usize, rule: Rule, what: impl Into<String>) -> Self {
        Problem::new(format!("{}:{line}", file.path), rule, what)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: [{}] {}", self.place, self.rule.name(), self.what)
    }
}

/// `cargo xtask tidy`.
pub(crate) fn command(root: Option<PathBuf>) -> Result<(), Failed> {
    let root = match root {
        Some(root) => root,
        None => workspace_root()?,
    };
    match report(&root)? {
        0 => {
            println!("tidy: no problems");
            Ok(())
        }
        problems => Err(Failed::Untidy(problems)),
    }
}

/// Prints every problem of the workspace at `root`; the answer is how many there are.
pub(crate) fn report(root: &Path) -> Result<usize, Failed> {
    let problems = problems(&load::load(root)?, &crate::command_line());
    for problem in &problems {
        eprintln!("{problem}");
    }
    Ok(problems.len())
}

/// Every problem of a repository, in order of place. `xtask` is our own command line, as text.
fn problems(repo: &Repo, xtask: &str) -> Vec<Problem> {
    let mut found = graph::problems(&repo.graph, table::TABLE);
    found.extend(purity::problems(&repo.graph, &repo.files, table::TABLE));
    found.extend(house::problems(&repo.files));
    found.extend(examples::problems(&repo.files, table::EXAMPLES_NOT_BUILT));
    found.extend(citations::problems(&repo.files));
    let crates = &repo.graph.crates;
    let packages: BTreeSet<&str> = crates.iter().map(|each| each.package.as_str()).collect();
    let folders = crates
        .iter()
        .filter_map(|each| each.folder.strip_prefix("crates/"));
    found.extend(paths::problems(&repo.files, &packages));
    found.extend(map::problems(&repo.files, &folders.collect()));
    found.extend(commands::problems(&repo.files, &packages, xtask));
    found.sort();
    found.dedup();
    found
}
