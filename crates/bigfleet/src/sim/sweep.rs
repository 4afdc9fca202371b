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
    collections::BTreeMap,
    io::IsTerminal,
    ops::Range,
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
    pub(crate) core_seconds: f64,
    /// How often each fault struck.
    pub(crate) struck: BTreeMap<&'static str, u64>,
    /// The longest it took to come to rest once the faults had stopped.
    pub(crate) rested_after_seconds: f64,
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
            core_seconds: 0.0,
            struck: BTreeMap::new(),
            rested_after_seconds: 0.0,
            machines: 0,
        }
    }

    pub(crate) fn take(&mut self, report: &Report, defect: Option<Defect>) {
        self.seeds += 1;
        self.events += report.events;
        self.simulated_seconds += report.simulated_millis as f64 / 1000.0;
        self.machines = self.machines.max(report.machines);
        for (fault, count) in &report.struck {
            *self.struck.entry(fault).or_default() += count;
        }
        let rested = report.rested_after.unwrap_or(0) as f64 / 1000.0;
        self.rested_after_seconds = self.rested_after_seconds.max(rested);
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

/// One run, and its seconds.
type Ran = (Report, f64);

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
    for (at, (report, seconds)) in ran {
        let into = &mut swept[runs[at].0];
        into.core_seconds += seconds;
        into.take(&report, defect);
    }
    swept
}

fn one(scenario: &Scenario, seed: u64, defect: Option<Defect>) -> Ran {
    let began = Instant::now();
    let report = run(scenario, seed, defect, false);
    (report, began.elapsed().as_secs_f64())
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
