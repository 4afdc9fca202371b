//! `check` and `fix`: the same ground, once read-only and once rewriting.
//!
//! ```text
//! setup ─▶ formatting ─▶ tidy ─▶ lints ─▶ tests and doc tests ─▶ docs        cheapest first, stop at the first failure
//! ```
//!
//! Every cargo step is `--locked` and uses the dev profile, so a check never edits `Cargo.lock` and
//! builds the tree for tests once.

use crate::setup::setup;
use crate::steps::{Cargo, Failed, cargo_step, require, step, workspace_root};
use crate::tidy;

/// What is built once, from nothing, keeps no partial results for the next build: they would be
/// more than half of the disk it takes.
const BUILT_ONCE: (&str, &str) = ("CARGO_INCREMENTAL", "0");

const FORMATTING: Cargo = Cargo {
    args: &["fmt", "--all", "--check"],
    env: &[],
};

const LINTS: Cargo = Cargo {
    args: &[
        "clippy",
        "--workspace",
        "--all-targets",
        "--locked",
        "--",
        "-D",
        "warnings",
    ],
    env: &[BUILT_ONCE],
};

/// Without a target selection this runs unit, integration and doc tests.
const TESTS: Cargo = Cargo {
    args: &["test", "--workspace", "--locked"],
    env: &[BUILT_ONCE],
};

const DOCS: Cargo = Cargo {
    args: &["doc", "--workspace", "--no-deps", "--locked"],
    env: &[("RUSTDOCFLAGS", "-D warnings")],
};

const REFORMAT: Cargo = Cargo {
    args: &["fmt", "--all"],
    env: &[],
};

const REPAIR: Cargo = Cargo {
    args: &[
        "clippy",
        "--workspace",
        "--all-targets",
        "--fix",
        "--allow-dirty",
        "--allow-staged",
    ],
    env: &[],
};

/// Everything CI runs. Beyond what `setup` installs it writes nothing but build output.
pub(crate) fn check() -> Result<(), Failed> {
    require("fmt", "rustfmt")?;
    require("clippy", "clippy")?;
    setup()?;
    let root = workspace_root()?;
    cargo_step("formatting", &FORMATTING, &root)?;
    step("tidy", "cargo xtask tidy", || {
        tidy::report(&root).map(|problems| problems == 0)
    })?;
    cargo_step("lints", &LINTS, &root)?;
    cargo_step("tests", &TESTS, &root)?;
    cargo_step("docs", &DOCS, &root)?;
    println!("check: all steps passed");
    Ok(())
}

/// Repairs what can be repaired without a decision.
pub(crate) fn fix() -> Result<(), Failed> {
    require("fmt", "rustfmt")?;
    require("clippy", "clippy")?;
    let root = workspace_root()?;
    cargo_step("lints", &REPAIR, &root)?;
    cargo_step("formatting", &REFORMAT, &root)
}
