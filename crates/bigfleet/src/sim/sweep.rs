//! A sweep: many seeds at once, reported in the order of the seeds.
//!
//! ```text
//! (scenario, seed) ─▶ next, taken by whichever thread is free ─▶ report ─▶ sorted by seed
//! ```
//!
//! A run is one thread's and shares nothing, so which thread ran it cannot be seen in it.

use bigfleet_sim::{Defect, Report, Scenario, run};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::{
    io::IsTerminal,
    ops::Range,
    panic::catch_unwind,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

/// What the seeds of one scenario came to.
#[derive(Debug, Serialize)]
pub(crate) struct Swept {
    pub(crate) scenario: &'static str,
    pub(crate) seeds: u64,
    pub(crate) failures: Vec<FailedSeed>,
    pub(crate) events: u64,
    pub(crate) simulated_seconds: f64,
    /// Of one core.
    pub(crate) wall_seconds: f64,
    pub(crate) machines: usize,
}

/// A seed that broke a rule.
#[derive(Debug, Serialize)]
pub(crate) struct FailedSeed {
    pub(crate) seed: u64,
    pub(crate) rule: &'static str,
    pub(crate) reason: String,
    pub(crate) replay: String,
}

impl Swept {
    pub(crate) fn of(scenario: &'static str) -> Self {
        Self {
            scenario,
            seeds: 0,
            failures: Vec::new(),
            events: 0,
            simulated_seconds: 0.0,
            wall_seconds: 0.0,
            machines: 0,
        }
    }

    pub(crate) fn take(&mut self, report: &Report, defect: Option<Defect>) {
        self.seeds += 1;
        self.events += report.events;
        self.simulated_seconds += report.simulated_millis as f64 / 1000.0;
        self.machines = self.machines.max(report.machines);
        if let Some(broken) = &report.broken {
            self.failures.push(FailedSeed {
                seed: report.seed,
                rule: broken.rule.name(),
                reason: broken.to_string(),
                replay: super::report::replay(self.scenario, report.seed, defect),
            });
        }
    }
}

/// One run, or what it said when it fell over.
type Ran = (Result<Report, String>, f64);

/// Runs every scenario with every seed.
pub(crate) fn sweep(
    scenarios: &[Scenario],
    seeds: Range<u64>,
    defect: Option<Defect>,
    jobs: usize,
) -> Vec<Swept> {
    let runs: Vec<(usize, u64)> = (0..scenarios.len())
        .flat_map(|scenario| seeds.clone().map(move |seed| (scenario, seed)))
        .collect();
    let (next, ran) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let bar = bar(runs.len());
    std::thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, runs.len().max(1)) {
            scope.spawn(|| {
                while let Some(at) = Some(next.fetch_add(1, Ordering::Relaxed))
                    && let Some((scenario, seed)) = runs.get(at).copied()
                {
                    let done = one(&scenarios[scenario], seed, defect);
                    ran.lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push((at, done));
                    bar.set_message(scenarios[scenario].name);
                    bar.inc(1);
                }
            });
        }
    });
    bar.finish_and_clear();
    let mut ran: Vec<(usize, Ran)> = ran.into_inner().unwrap_or_else(PoisonError::into_inner);
    ran.sort_by_key(|(at, _)| *at);
    let mut swept: Vec<Swept> = scenarios.iter().map(|one| Swept::of(one.name)).collect();
    for (at, (done, seconds)) in ran {
        let (scenario, seed) = runs[at];
        let into = &mut swept[scenario];
        into.wall_seconds += seconds;
        match done {
            Ok(report) => into.take(&report, defect),
            Err(reason) => {
                into.seeds += 1;
                let replay = super::report::replay(into.scenario, seed, defect);
                into.failures.push(FailedSeed {
                    seed,
                    rule: "panic",
                    reason,
                    replay,
                });
            }
        }
    }
    swept
}

fn one(scenario: &Scenario, seed: u64, defect: Option<Defect>) -> Ran {
    let began = Instant::now();
    let done = catch_unwind(|| run(scenario, seed, defect, false));
    let done = done.map_err(|thrown| {
        let text = thrown.downcast_ref::<String>().cloned();
        let text = text.or_else(|| thrown.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        text.unwrap_or_else(|| "it panicked".to_owned())
    });
    (done, began.elapsed().as_secs_f64())
}

/// On stderr, and only if that is a terminal.
pub(crate) fn bar(runs: usize) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(runs as u64);
    let style = ProgressStyle::with_template("{msg:28} {wide_bar} {pos}/{len} {elapsed} eta {eta}");
    if let Ok(style) = style {
        bar.set_style(style);
    }
    bar
}
