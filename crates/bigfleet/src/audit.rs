//! `bigfleet audit`: the audit log as people ask about it, without a shard.

use crate::{failure::Failure, output::say};
use bigfleet_ctl::audit::{AuditFilter, AuditLine, AuditSummary, audit_files, audit_moment};
use bigfleet_provider_fake::duration;
use clap::{Args as ClapArgs, ValueEnum};
use std::{
    fs::File,
    io::{BufRead, BufReader, Seek, SeekFrom},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::Duration,
};

/// `bigfleet audit`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// The audit log of a shard (--audit-log); what was set aside of it (.1, .2, …) is read first
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Only from then on: 2026-11-18T14:02:00Z, 14:02 (UTC, the last time it was), or 15m ago
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Only until then
    #[arg(long, value_name = "WHEN")]
    until: Option<String>,
    /// Only about this machine
    #[arg(long)]
    machine: Option<String>,
    /// Only about this cluster
    #[arg(long)]
    cluster: Option<String>,
    /// Only these kinds: Bootstrap, Provision, Preempt, Reclaim, Delete, rail, admin, summary
    #[arg(long = "kind", value_name = "KIND", value_delimiter = ',')]
    kinds: Vec<String>,
    /// Say what it all comes to, and why, instead of every line
    #[arg(long, conflicts_with = "follow")]
    summary: bool,
    /// Go on, and print lines as they are written
    #[arg(short, long)]
    follow: bool,
    /// The form of each line
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// In words.
    Text,
    /// As it stands in the file.
    Json,
}

/// How often a file is looked at that is followed.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Reads, chooses, says.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let filter = filter(args)?;
    let mut reading = Reading {
        args,
        filter,
        summary: AuditSummary::default(),
        unreadable: 0,
    };
    let mut followed = None;
    for file in &args.files {
        for path in audit_files(file) {
            followed = Some((path.clone(), reading.whole(&path)?));
        }
    }
    if reading.unreadable != 0 {
        eprintln!("{} lines could not be read", reading.unreadable);
    }
    if args.summary {
        return say(&reading.summary.text(&reading.filter));
    }
    match followed {
        Some((path, at)) if args.follow => reading.follow(&path, at),
        _ => Ok(()),
    }
}

fn filter(args: &Args) -> Result<AuditFilter, Failure> {
    let now = bigfleet_ctl::when::now();
    let moment = |flag: &str, text: &Option<String>| {
        let text = text.as_deref();
        let read = text.map(|text| audit_moment(text, now, duration(text).ok()));
        let wrong = |why: String| Failure::Input(format!("bigfleet audit: {flag}: {why}"));
        read.transpose().map_err(wrong)
    };
    Ok(AuditFilter {
        since: moment("--since", &args.since)?,
        until: moment("--until", &args.until)?,
        machine: args.machine.clone(),
        cluster: args.cluster.clone(),
        kinds: args.kinds.clone(),
    })
}

struct Reading<'a> {
    args: &'a Args,
    filter: AuditFilter,
    summary: AuditSummary,
    unreadable: usize,
}

impl Reading<'_> {
    /// Reads a file to its end, and says where that was.
    fn whole(&mut self, path: &Path) -> Result<u64, Failure> {
        let file = File::open(path).map_err(|why| unreadable(path, &why))?;
        self.lines(path, file, 0)
    }

    /// Reads whole lines from there on; half a line at the end is read the next time.
    fn lines(&mut self, path: &Path, mut file: File, from: u64) -> Result<u64, Failure> {
        file.seek(SeekFrom::Start(from))
            .map_err(|why| unreadable(path, &why))?;
        let mut reader = BufReader::new(file);
        let (mut at, mut text) = (from, Vec::new());
        loop {
            text.clear();
            let read = reader.read_until(b'\n', &mut text);
            let read = read.map_err(|why| unreadable(path, &why))?;
            if read == 0 || !text.ends_with(b"\n") {
                return Ok(at);
            }
            at += read as u64;
            self.line(&String::from_utf8_lossy(&text))?;
        }
    }

    fn line(&mut self, text: &str) -> Result<(), Failure> {
        let Some(line) = AuditLine::read(text.trim_end()) else {
            self.unreadable += usize::from(!text.trim().is_empty());
            return Ok(());
        };
        if !line.is_meant(&self.filter) {
            return Ok(());
        }
        if self.args.summary {
            self.summary.add(&line);
            return Ok(());
        }
        match self.args.output {
            Output::Text => say(&line.words()),
            Output::Json => say(&line.json()),
        }
    }

    /// Prints what is written from now on; a file that was set aside is read to its end first.
    fn follow(&mut self, path: &Path, from: u64) -> Result<(), Failure> {
        let mut at = from;
        let mut file = File::open(path).map_err(|why| unreadable(path, &why))?;
        loop {
            let again = file.try_clone().map_err(|why| unreadable(path, &why))?;
            at = self.lines(path, again, at)?;
            let held = file.metadata().map_err(|why| unreadable(path, &why))?;
            let is_same = std::fs::metadata(path).is_ok_and(|there| there.ino() == held.ino());
            if !is_same && let Ok(next) = File::open(path) {
                self.lines(path, file, at)?; // what was written between the look and the move
                (file, at) = (next, 0);
                continue;
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

fn unreadable(path: &Path, why: &std::io::Error) -> Failure {
    Failure::Undone(format!("bigfleet audit: {}: {why}", path.display()))
}
