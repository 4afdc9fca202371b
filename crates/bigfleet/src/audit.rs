//! `bigfleet audit`: the audit log as people ask about it, without a shard.

use crate::{failure::Failure, output::say};
use bigfleet_ctl::audit::{AuditFiles, AuditFilter, AuditLine, AuditSummary, audit_moment};
use bigfleet_model::counted;
use bigfleet_provider_fake::duration;
use clap::{Args as ClapArgs, ValueEnum};
use std::{path::PathBuf, time::Duration};

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
    /// Only about this cluster, and what concerned the whole shard
    #[arg(long)]
    cluster: Option<String>,
    /// Only these kinds: Bootstrap, Provision, Preempt, Reclaim, Delete, rail, admin, summary, event, or one of those that `get events`
    /// shows, such as provider-lost
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
    let mut logs: Vec<AuditFiles> = args.files.iter().map(|file| AuditFiles::of(file)).collect();
    for log in &mut logs {
        if !log.path().exists() {
            let path = log.path().display();
            let why = "there is no such file; --audit-log of bigfleet shard says where it is";
            return Err(Failure::Undone(format!("bigfleet audit: {path}: {why}")));
        }
        reading.news_of(log)?;
    }
    if reading.unreadable != 0 {
        let lines = counted(reading.unreadable, "line", "lines");
        eprintln!("{lines} could not be read");
    }
    if args.summary {
        return say(&reading.summary.text(&reading.filter));
    }
    if !args.follow {
        return Ok(());
    }
    loop {
        std::thread::sleep(LOOK_EVERY);
        for log in &mut logs {
            reading.news_of(log)?;
        }
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
    /// Reads what was written since the last look, or all of it.
    fn news_of(&mut self, log: &mut AuditFiles) -> Result<(), Failure> {
        match log.read(|text| self.line(text)) {
            Ok(done) => done,
            Err(why) => {
                let path = log.path().display();
                Err(Failure::Undone(format!("bigfleet audit: {path}: {why}")))
            }
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
}
