//! The runner: boots what each lane needs, runs its behaviours one after another, and reports.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::boot::{Binary, BootFailed};
use crate::subject::{Call, Subject};
use crate::{Behaviour, Capability, Lane, catalogue};

/// What to run, and how much of it.
#[derive(Clone, Debug)]
pub struct Options {
    /// The provider to check.
    pub binary: Binary,
    /// For state files; must exist.
    pub folder: PathBuf,
    /// Only behaviours whose id contains one of these; empty for all.
    pub filter: Vec<String>,
    /// Slots of the core lane.
    pub seeds: usize,
    /// Slots of the scale lane.
    pub scale_seeds: usize,
    /// How long the scale lane churns.
    pub soak: Duration,
    /// Where the properties draw from.
    pub rng_seed: u64,
}

/// What became of one behaviour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The promise was kept.
    Kept,
    /// The provider does without the capability it needs.
    Skipped(Capability),
    /// It was not kept, and why.
    Broken(String),
}

/// One behaviour, run.
#[derive(Clone, Debug)]
pub struct Report {
    /// The behaviour that was checked.
    pub behaviour: Behaviour,
    /// Whether it was kept.
    pub verdict: Verdict,
    /// How long the check took.
    pub took: Duration,
}

/// Runs what was asked for; every report is also handed to `told` as soon as it is there.
pub async fn run(
    options: &Options,
    mut told: impl FnMut(&Report),
) -> Result<Vec<Report>, BootFailed> {
    let wanted = |id: &str| {
        options.filter.is_empty() || options.filter.iter().any(|part| id.contains(part.as_str()))
    };
    let all: Vec<Behaviour> = catalogue().into_iter().filter(|b| wanted(b.id)).collect();
    let mut reports = Vec::new();
    for lane in [
        Lane::Core,
        Lane::Fault,
        Lane::Durable,
        Lane::Scale,
        Lane::BareMetal,
    ] {
        let of_lane: Vec<&Behaviour> = all.iter().filter(|b| b.lane == lane).collect();
        if of_lane.is_empty() {
            continue;
        }
        let subject = boot(options, lane).await?;
        let has = probe(&subject, lane).await;
        for behaviour in of_lane {
            let started = Instant::now();
            let verdict = match behaviour.needs.filter(|needs| !has.contains(needs)) {
                Some(missing) => Verdict::Skipped(missing),
                None => match (behaviour.check)(&subject).await {
                    Ok(()) => Verdict::Kept,
                    Err(unmet) => Verdict::Broken(unmet.to_string()),
                },
            };
            let report = Report {
                behaviour: *behaviour,
                verdict,
                took: started.elapsed(),
            };
            told(&report);
            reports.push(report);
        }
    }
    Ok(reports)
}

async fn boot(options: &Options, lane: Lane) -> Result<Subject, BootFailed> {
    let state = options.folder.join("scale-state");
    let (seeds, state, flags): (usize, _, &[&str]) = match lane {
        Lane::Core => (options.seeds, None, &[]),
        Lane::Fault => {
            let flags = &[
                "--fault-hooks",
                "--transition-timeout=2s",
                "--reconcile-interval=200ms",
                "--price-refresh=200ms",
            ];
            (64, None, flags)
        }
        Lane::Durable => (64, None, &[]),
        // With the store on: a scale that is only reached in memory is no scale.
        Lane::Scale => (options.scale_seeds, Some(state.as_path()), &[]),
        Lane::BareMetal => (32, None, &["--bare-metal"]),
    };
    let running = options.binary.boot(seeds, state, flags).await?;
    let mut subject = Subject::new(
        running,
        options.binary.clone(),
        options.folder.clone(),
        seeds,
    );
    subject.soak = options.soak;
    subject.rng_seed = options.rng_seed;
    Ok(subject)
}

/// What the provider can do, found out by asking it to.
async fn probe(subject: &Subject, lane: Lane) -> Vec<Capability> {
    let mut has = Vec::new();
    if lane == Lane::BareMetal {
        return has;
    }
    let before = subject.head().await.unwrap_or_default();
    let Ok(id) = subject.idle().await else {
        return has;
    };
    let after = subject.head().await.unwrap_or_default();
    if !after.is_empty() && before != after {
        has.push(Capability::SinceRevision);
    }
    let answer = subject.call(&id, Call::Delete).await;
    if crate::check::code(&answer) != tonic::Code::Unimplemented {
        has.push(Capability::Delete);
    }
    has
}
