//! Part: one of the programs, its log, and its end.

use crate::place;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const ENDS_WITHIN: Duration = Duration::from_secs(15);
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How much of a log a failure shows.
const SHOWN: u64 = 4000;

/// A program that does not run as it should.
#[derive(Debug, thiserror::Error)]
pub enum PartRefused {
    /// It is not on this machine.
    #[error("{0} is not there; build it once with `cargo xtask kube`, or set KUBEBUILDER_ASSETS")]
    Missing(String),
    /// It cannot be started.
    #[error("{name} cannot be started: {source}")]
    Start {
        /// The program, such as `etcd`.
        name: String,
        /// What the operating system said.
        source: io::Error,
    },
    /// It ended, or is not ready.
    #[error("{name} {what}; the end of its log:\n{log}")]
    Unwell {
        /// The program, such as `etcd`.
        name: String,
        /// What is wrong.
        what: &'static str,
        /// The end of its log.
        log: String,
    },
}

impl PartRefused {
    /// Whether somebody else took its port first.
    pub(crate) fn is_taken_port(&self) -> bool {
        matches!(self, Self::Unwell { log, .. } if log.contains("address already in use"))
    }
}

/// Where a program is.
pub(crate) fn program(name: &str) -> Result<PathBuf, PartRefused> {
    place::program(name).ok_or_else(|| PartRefused::Missing(name.to_owned()))
}

/// A program that runs. Ended when dropped.
pub(crate) struct Part {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

impl Part {
    pub(crate) fn start(
        name: &'static str,
        folder: &Path,
        flags: &[String],
    ) -> Result<Self, PartRefused> {
        let refused = |source| PartRefused::Start {
            name: name.to_owned(),
            source,
        };
        let log = folder.join(format!("{name}.log"));
        let out = File::options()
            .create(true)
            .append(true)
            .open(&log)
            .map_err(refused)?;
        let mut command = Command::new(program(name)?);
        command
            .args(flags)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", folder)
            .stdin(Stdio::null())
            .stdout(out.try_clone().map_err(refused)?)
            .stderr(out);
        // What a terminal sends to a test must not reach it: it is ended in order.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let child = command.spawn().map_err(refused)?;
        let part = Self { name, child, log };
        let pid = folder.join(format!("{name}.pid"));
        std::fs::write(pid, part.child.id().to_string()).map_err(refused)?;
        Ok(part)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn name(&self) -> &str {
        self.name
    }

    /// Waits until it is ready; ended or too slow, it says so with its log.
    pub(crate) fn wait(
        &mut self,
        within: Duration,
        is_ready: impl Fn() -> bool,
    ) -> Result<(), PartRefused> {
        let until = Instant::now() + within;
        while !is_ready() {
            let has_ended = self.child.try_wait().map_or(true, |ended| ended.is_some());
            if has_ended {
                return Err(self.unwell("ended at once"));
            }
            if until < Instant::now() {
                return Err(self.unwell("is not ready in time"));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    fn unwell(&self, what: &'static str) -> PartRefused {
        PartRefused::Unwell {
            name: self.name.to_owned(),
            what,
            log: end_of(&self.log).unwrap_or_default(),
        }
    }

    /// The end of its log.
    pub(crate) fn log(&self) -> String {
        format!(
            "== {}\n{}",
            self.name,
            end_of(&self.log).unwrap_or_default()
        )
    }

    /// Asks it to end, and ends it if it does not.
    pub(crate) fn stop(&mut self) {
        let pid = Pid::from_child(&self.child);
        if self.child.try_wait().is_ok_and(|ended| ended.is_some()) {
            return;
        }
        kill_process(pid, Signal::TERM).ok(); // gone already is as good
        let until = Instant::now() + ENDS_WITHIN;
        while self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            if until < Instant::now() {
                drop(self.child.kill());
                drop(self.child.wait());
                return;
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.stop();
    }
}

fn end_of(log: &Path) -> io::Result<String> {
    let mut file = File::open(log)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(SHOWN)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
