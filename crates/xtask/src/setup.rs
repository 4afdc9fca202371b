//! `setup`: what the tests need of this computer and cargo does not bring.
//!
//! ```text
//! programs that are missing ─▶ their packages, installed where we may ─▶ named in one line otherwise
//! a kernel and a file system for guests ─▶ the cache of this user
//! the parts of a real Kubernetes ─▶ the cache of this user
//! ```
//!
//! Nothing happens where everything is there, so `check` always begins with it.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::steps::{Failed, step, workspace_root};

/// A program, and the package of Debian and its kin that has it.
const NEEDED: [(&str, &str); 4] = [
    ("fish", "fish"),
    ("python3", "python3"),
    ("qemu-system-x86_64", "qemu-system-x86"),
    ("zsh", "zsh"),
];

/// Makes sure that everything is there.
pub(crate) fn setup() -> Result<(), Failed> {
    let root = workspace_root()?;
    step("setup", "cargo xtask setup", || {
        let missing: Vec<&str> = NEEDED
            .iter()
            .filter(|(program, _)| !is_there(program))
            .map(|(_, package)| *package)
            .collect();
        if !missing.is_empty() {
            install(&missing)?;
        }
        crate::kube::provide(&root, false)?;
        guests(&root)
    })
}

fn is_there(program: &str) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| folder.join(program).is_file())
}

/// Whether a command ends well, its output unseen.
fn works(program: &str, args: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null());
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// Installs packages as root, or as somebody who may become root without a password.
fn install(packages: &[&str]) -> Result<(), Failed> {
    let refused = || Failed::Missing {
        packages: packages.join(" "),
    };
    let user = Command::new("id").arg("-u").output();
    let is_root = user.is_ok_and(|id| id.stdout.trim_ascii() == b"0");
    let before: &[&str] = if is_root {
        &[]
    } else if works("sudo", &["-n", "true"]) {
        &["sudo", "-n"]
    } else {
        return Err(refused());
    };
    let apt = |args: &[&str]| {
        println!("   {}", args.join(" "));
        let words = [before, args].concat();
        let mut command = Command::new(words[0]);
        command
            .args(&words[1..])
            .env("DEBIAN_FRONTEND", "noninteractive")
            .stdin(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    let install = [
        &["apt-get", "install", "-y", "-q", "--no-install-recommends"],
        packages,
    ]
    .concat();
    // Lists of packages that are old, or not there yet, are the usual reason.
    if apt(&install) || apt(&["apt-get", "update", "-q"]) && apt(&install) {
        Ok(())
    } else {
        Err(refused())
    }
}

/// The kernel and the file system of the example of virtual machines.
fn guests(root: &Path) -> Result<bool, Failed> {
    let program = root.join("examples/providers/virtual-machines/prepare.py");
    let command = program.display().to_string();
    let mut prepare = Command::new("python3");
    let status = prepare.arg(&program).stdout(Stdio::null()).status();
    let status = status.map_err(|source| Failed::Start { command, source })?;
    Ok(status.success())
}
