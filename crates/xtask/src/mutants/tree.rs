//! The tree: a copy of the workspace in which one file at a time is changed, and cargo runs.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::list::Mutant;
use crate::steps::{Failed, cargo, git_files};

/// How a run of cargo ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Well,
    Badly,
    /// It was given up, and its processes were ended.
    Never,
}

/// The copy, the original, and where builds and logs go; all below `target/mutants`.
pub(super) struct Tree {
    original: PathBuf,
    copy: PathBuf,
    build: PathBuf,
    log: PathBuf,
}

impl Tree {
    /// Brings the copy up to date. A file that did not change is left alone, so that cargo does not build
    /// it again.
    pub(super) fn copy(root: &Path) -> Result<Self, Failed> {
        let folder = root.join("target/mutants");
        let tree = Self {
            original: root.to_path_buf(),
            copy: folder.join("tree"),
            build: folder.join("build"),
            log: folder.join("last.log"),
        };
        let files = git_files(root)?;
        for file in &files {
            tree.refresh(file)?;
        }
        for stale in inside(&tree.copy).map_err(|why| unusable(&tree.copy, why))? {
            let known = stale
                .strip_prefix(&tree.copy)
                .is_ok_and(|path| files.iter().any(|file| Path::new(file) == path));
            if !known {
                fs::remove_file(&stale).map_err(|why| unusable(&stale, why))?;
                // A folder of a crate that is gone would still be taken for a crate.
                let mut folder = stale.parent();
                while let Some(empty) = folder.filter(|empty| fs::remove_dir(empty).is_ok()) {
                    folder = empty.parent();
                }
            }
        }
        Ok(tree)
    }

    fn refresh(&self, file: &str) -> Result<(), Failed> {
        let from = self.original.join(file);
        let to = self.copy.join(file);
        if !from.is_file() {
            return Ok(());
        }
        let wanted = fs::read(&from).map_err(|why| unusable(&from, why))?;
        if fs::read(&to).is_ok_and(|there| there == wanted) {
            return Ok(());
        }
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder).map_err(|why| unusable(folder, why))?;
        }
        fs::write(&to, wanted).map_err(|why| unusable(&to, why))
    }

    /// Makes a change; the answer is what was there before.
    pub(super) fn change(&self, mutant: &Mutant) -> Result<String, Failed> {
        let path = self.copy.join(&mutant.file);
        let before = fs::read_to_string(&path).map_err(|why| unusable(&path, why))?;
        fs::write(&path, mutant.applied(&before)).map_err(|why| unusable(&path, why))?;
        Ok(before)
    }

    /// Takes a change back. What the original tree holds by now does not matter: a run takes an hour, and
    /// people go on working.
    pub(super) fn restore(&self, mutant: &Mutant, before: &str) -> Result<(), Failed> {
        let path = self.copy.join(&mutant.file);
        fs::write(&path, before).map_err(|why| unusable(&path, why))
    }

    /// Builds tests of a package.
    pub(super) fn build(
        &self,
        package: &str,
        targets: &[&str],
        patience: Duration,
    ) -> Result<Ended, Failed> {
        let arguments = ["test", "--locked", "--package", package, "--no-run"];
        self.cargo(&[arguments.as_slice(), targets].concat(), patience)
    }

    /// Runs tests of a package, and stops at the first program of them that fails.
    pub(super) fn test(
        &self,
        package: &str,
        targets: &[&str],
        patience: Duration,
    ) -> Result<Ended, Failed> {
        let arguments = ["test", "--locked", "--package", package];
        self.cargo(&[arguments.as_slice(), targets].concat(), patience)
    }

    fn cargo(&self, arguments: &[&str], patience: Duration) -> Result<Ended, Failed> {
        let log = File::create(&self.log).map_err(|why| unusable(&self.log, why))?;
        let also = log.try_clone().map_err(|why| unusable(&self.log, why))?;
        let mut command = Command::new(cargo());
        command
            .args(arguments)
            .current_dir(&self.copy)
            .env("CARGO_TARGET_DIR", &self.build)
            // A change may leave a name unused; that is no reason to refuse it.
            .env("RUSTFLAGS", "--cap-lints=warn")
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            .env("CARGO_INCREMENTAL", "1")
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(also)
            // Its own group, so that the tests it started can be ended with it.
            .process_group(0);
        let start = |source| Failed::Start {
            command: format!("cargo {}", arguments.join(" ")),
            source,
        };
        let mut child = command.spawn().map_err(start)?;
        let began = Instant::now();
        loop {
            match child.try_wait().map_err(start)? {
                Some(status) if status.success() => return Ok(Ended::Well),
                Some(_) => return Ok(Ended::Badly),
                None if patience <= began.elapsed() => break,
                None => std::thread::sleep(Duration::from_millis(50)),
            }
        }
        let group = format!("-{}", child.id());
        let ended = Command::new("kill").args(["-KILL", "--", &group]).status();
        ended.map_err(start)?;
        child.wait().map_err(start)?;
        Ok(Ended::Never)
    }
}

fn inside(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                open.push(path);
            } else {
                files.push(path);
            }
        }
    }
    Ok(files)
}

fn unusable(path: &Path, source: io::Error) -> Failed {
    Failed::Read {
        path: path.to_path_buf(),
        source,
    }
}
