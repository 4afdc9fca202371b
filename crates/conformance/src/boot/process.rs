//! A provider as a process of ours: what it says last, and its end with everything it has started.
//!
//! An executable may be a script around the provider, so what is ended is its process group. The group is ended
//! before the process is reaped: until then its number cannot belong to anybody else.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process_group, test_kill_process_group, waitid,
};

/// The most of a log that is looked at for the reason of an early end.
const LOG_TAIL: usize = 4096;

/// How long a group that was killed may take to be gone, and how often that is looked at.
const GONE_WITHIN: Duration = Duration::from_secs(2);
const LOOKS_EVERY: Duration = Duration::from_millis(2);

/// A process of ours, and where it writes.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    log: PathBuf,
    ended: bool,
}

impl Process {
    /// Starts it in a process group of its own.
    pub(super) fn start(command: &mut Command, log: PathBuf) -> std::io::Result<Self> {
        let child = command.process_group(0).spawn()?;
        Ok(Self {
            child,
            log,
            ended: false,
        })
    }

    fn pid(&self) -> Option<Pid> {
        i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
    }

    /// How it ended and what it said last, if it has.
    pub(super) fn ended(&mut self) -> Option<(String, String)> {
        if !self.ended {
            let peek = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            waitid(WaitId::Pid(self.pid()?), peek).ok().flatten()?;
        }
        self.kill();
        let status = self.child.wait().ok()?;
        Some((status.to_string(), last_words(&self.log)))
    }

    /// Ends it without a warning, and what it started with it.
    pub(super) fn kill(&mut self) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        let group = self.pid();
        if let Some(group) = group {
            // A group that is gone already is as good.
            let _ = kill_process_group(group, Signal::KILL);
        }
        drop(self.child.wait());
        // What a script started is nobody's child here, and has its ports until it is really gone.
        let began = Instant::now();
        while group.is_some_and(|group| test_kill_process_group(group).is_ok())
            && began.elapsed() < GONE_WITHIN
        {
            std::thread::sleep(LOOKS_EVERY);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The last line of a log that says something.
fn last_words(log: &Path) -> String {
    let text = std::fs::read(log).unwrap_or_default();
    let tail = &text[text.len().saturating_sub(LOG_TAIL)..];
    let tail = String::from_utf8_lossy(tail);
    // A refusal of an unknown flag ends in a hint to read the help; the line that matters is above.
    let mut lines = tail.lines().filter(|line| !line.trim().is_empty());
    let named = lines
        .clone()
        .find(|line| line.trim_start().starts_with("error"));
    let said = named.or_else(|| lines.next_back()).unwrap_or_default();
    said.trim().chars().take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    /// A script whose provider is a process below it: killing the script alone would leave it behind.
    #[test]
    fn what_a_script_has_started_ends_with_it() {
        let folder = std::env::temp_dir().join(format!("bigfleet-process-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let written = folder.join("pid");
        let mut command = Command::new("/bin/sh");
        let script = format!("sleep 1000 & echo $! > {}; wait", written.display());
        command.arg("-c").arg(script);
        let mut process = Process::start(&mut command, folder.join("log")).unwrap();
        let began = Instant::now();
        let below: u32 = loop {
            let text = std::fs::read_to_string(&written).unwrap_or_default();
            match text.trim().parse() {
                Ok(pid) => break pid,
                Err(why) => assert!(began.elapsed() < Duration::from_secs(30), "{why}: {text}"),
            }
            std::thread::yield_now();
        };
        assert_eq!(process.ended(), None);
        process.kill();
        let runs = || {
            let stat = std::fs::read_to_string(format!("/proc/{below}/stat")).unwrap_or_default();
            let state = stat
                .rsplit(") ")
                .next()
                .and_then(|rest| rest.chars().next());
            stat.contains("sleep") && state != Some('Z')
        };
        while runs() {
            assert!(began.elapsed() < Duration::from_secs(30), "{below} runs on");
            std::thread::yield_now();
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn an_end_is_told_with_its_status_and_its_last_line_as_often_as_it_is_asked_for() {
        let log = std::env::temp_dir().join(format!("bigfleet-words-{}", std::process::id()));
        let out = std::fs::File::create(&log).unwrap();
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg("echo no disk; exit 3").stdout(out);
        let mut process = Process::start(&mut command, log.clone()).unwrap();
        let began = Instant::now();
        let first = loop {
            if let Some(ended) = process.ended() {
                break ended;
            }
            assert!(began.elapsed() < Duration::from_secs(30));
            std::thread::yield_now();
        };
        assert_eq!(first, ("exit status: 3".to_owned(), "no disk".to_owned()));
        assert_eq!(process.ended(), Some(first));
        std::fs::remove_file(&log).unwrap();
    }
}
