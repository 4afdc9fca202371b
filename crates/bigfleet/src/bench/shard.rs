//! `bigfleet bench shard`: this very binary as a shard and as its provider, measured from outside.

use super::{answer::AnswerArgs, at_least_one, bar, columns, show};
use crate::failure::Failure;
use bigfleet_bench::{
    Percentiles,
    processes::{Part, ProcessCost, ShardReport, ShardSettings, Timings, WalkReport, shard},
};
use clap::{Args as ClapArgs, ValueEnum};
use std::{path::PathBuf, time::Duration};

/// What was asked.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Measure only this part; may be repeated [default: all parts]
    #[arg(long, value_enum)]
    part: Vec<PartName>,

    /// How many machines to bind, and to have while sessions are measured
    #[arg(long, default_value_t = 50_000, value_parser = at_least_one)]
    machines: usize,

    /// How many cluster operators connect, each with its own connection
    #[arg(long, default_value_t = 5_000, value_parser = at_least_one)]
    sessions: usize,

    /// How long to measure the sessions
    #[arg(long, default_value = "60s", value_parser = bigfleet_provider_fake::duration)]
    watched: Duration,

    /// How often each operator sends its roll-up (the report of what its cluster needs)
    #[arg(long, default_value = "10s", value_parser = bigfleet_provider_fake::duration)]
    every: Duration,

    /// How many machines the restarted shard has on record
    #[arg(long, default_value_t = 500_000, value_parser = at_least_one)]
    records: usize,

    /// The directory for all data, to measure that disk [default: that for temporary files]
    #[arg(long)]
    folder: Option<PathBuf>,

    #[command(flatten)]
    answer: AnswerArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum PartName {
    /// Idle machines, all of them bound.
    Walk,
    /// The same with the shard's default settings.
    DefaultWalk,
    /// Sessions held, and cycles under their load.
    Sessions,
    /// From the start of the process to ready, with everything remembered.
    Restart,
}

impl PartName {
    fn part(self) -> Part {
        match self {
            Self::Walk => Part::Walk,
            Self::DefaultWalk => Part::DefaultWalk,
            Self::Sessions => Part::Sessions,
            Self::Restart => Part::Restart,
        }
    }
}

/// Measures, then writes.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let undone = |why: &dyn std::fmt::Display| Failure::Undone(why.to_string());
    let parts = match args.part.as_slice() {
        [] => PartName::value_variants(),
        some => some,
    };
    let settings = ShardSettings {
        program: std::env::current_exe().map_err(|why| undone(&why))?,
        folder: args.folder.clone().unwrap_or_else(std::env::temp_dir),
        parts: parts.iter().copied().map(PartName::part).collect(),
        machines: args.machines,
        sessions: args.sessions,
        watched: args.watched,
        every: args.every,
        records: args.records,
    };
    let bar = bar();
    let runtime = tokio::runtime::Runtime::new().map_err(|why| undone(&why))?;
    let measured = runtime.block_on(shard(&settings, &mut show(&bar)));
    bar.finish_and_clear();
    args.answer
        .answer(measured.map_err(|why| undone(&why))?, table)
}

pub(super) fn one(what: &str, value: impl ToString) -> Vec<String> {
    vec![
        what.to_owned(),
        value.to_string(),
        String::new(),
        String::new(),
    ]
}

pub(super) fn times(what: &str, of: Percentiles) -> Vec<String> {
    let ms = |time: f64| format!("{time} ms");
    vec![what.to_owned(), ms(of.p50), ms(of.p99), ms(of.max)]
}

pub(super) fn cost(what: &str, of: Option<ProcessCost>) -> Vec<String> {
    let text = of.map(|of| {
        let (cores, now, most) = (of.cores, of.rss_mb, of.peak_rss_mb);
        format!("{cores} cores, {now} MB, at most {most} MB")
    });
    one(what, text.as_deref().unwrap_or("unknown"))
}

fn timings(rows: &mut Vec<Vec<String>>, of: Timings) {
    rows.push(times("decide and apply", of.cycle_ms));
    rows.push(times("commit to disk", of.commit_ms));
    rows.push(times("List", of.list_ms));
}

fn walk(rows: &mut Vec<Vec<String>>, name: &str, of: &WalkReport) {
    rows.push(one(
        name,
        format!("{} machines, {} clusters", of.machines, of.clusters),
    ));
    let rate = format!("{} per second", of.bindings_per_second);
    rows.push(one("bindings", rate));
    rows.push(one("took", format!("{} s", of.seconds)));
    rows.push(cost("shard", of.shard));
    rows.push(cost("provider", of.provider));
    rows.push(cost("operators", of.operators));
    timings(rows, of.timings);
}

fn table(report: &ShardReport) -> String {
    let mut rows = Vec::new();
    if let Some(of) = &report.walk {
        walk(&mut rows, "WALK", of);
    }
    if let Some(of) = &report.default_walk {
        walk(&mut rows, "WALK, DEFAULT SETTINGS", of);
    }
    if let Some(sessions) = &report.sessions {
        let held = format!("{} of {} held", sessions.held, sessions.sessions);
        rows.push(one("SESSIONS", held));
        rows.push(one(
            "roll-ups",
            format!("{} accepted of {}", sessions.accepted, sessions.rollups),
        ));
        rows.push(times("acknowledged", sessions.ack_ms));
        rows.push(cost("shard", sessions.shard));
        rows.push(cost("provider", sessions.provider));
        rows.push(cost("operators", sessions.operators));
        timings(&mut rows, sessions.timings);
    }
    if let Some(restart) = &report.restart {
        rows.push(one("RESTART", format!("{} records", restart.records)));
        rows.push(one("ready", format!("{} s", restart.ready_seconds)));
        rows.push(one("listening", format!("{} s", restart.listening_seconds)));
        rows.push(one("first List", format!("{} ms", restart.list_ms)));
        rows.push(cost("shard", restart.shard));
    }
    columns(
        &[&format!("{} CORES", report.cores), "P50", "P99", "WORST"],
        rows,
    )
}
