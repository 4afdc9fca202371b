//! What simulations came to, as an object and for people.

use super::history::replay_without;
use crate::{failure::Failure, output::say, table::columns};
use bigfleet_sim::{Defect, Report, Without};
use serde::Serialize;
use std::collections::BTreeMap;

/// Failures that are listed for people.
const SHOWN: usize = 24;

/// What the seeds of one scenario came to.
#[derive(Debug, Serialize)]
pub(crate) struct Swept {
    pub(crate) scenario: &'static str,
    /// Runs: one per seed.
    pub(crate) seeds: u64,
    pub(crate) failures: Vec<FailedSeed>,
    pub(crate) events: u64,
    #[serde(rename = "simulated_seconds", serialize_with = "as_seconds")]
    pub(crate) simulated_millis: u64,
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
    pub(crate) scenario: &'static str,
    pub(crate) seed: u64,
    pub(crate) rule: &'static str,
    pub(crate) reason: String,
    /// The command that shows it again.
    pub(crate) replay: String,
    /// The command that shows the least of it, where that was looked for and is less.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) shortened: Option<String>,
}

// Whole until it is written, so that the order in which runs end cannot be seen in the sum.
fn as_seconds<S: serde::Serializer>(millis: &u64, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(*millis as f64 / 1000.0)
}

impl Swept {
    pub(crate) fn of(scenario: &'static str) -> Self {
        Self {
            scenario,
            seeds: 0,
            failures: Vec::new(),
            events: 0,
            simulated_millis: 0,
            core_seconds: 0.0,
            struck: BTreeMap::new(),
            rested_after_seconds: 0.0,
            machines: 0,
        }
    }

    pub(crate) fn take(&mut self, report: &Report, defect: Option<Defect>, without: &Without) {
        self.seeds += 1;
        self.events += report.events;
        self.simulated_millis += report.simulated_millis;
        self.machines = self.machines.max(report.machines);
        for (fault, count) in &report.struck {
            *self.struck.entry(fault).or_default() += count;
        }
        let rested = report.rested_after.unwrap_or(0) as f64 / 1000.0;
        self.rested_after_seconds = self.rested_after_seconds.max(rested);
        if let Some(broken) = &report.broken {
            self.failures.push(FailedSeed {
                scenario: self.scenario,
                seed: report.seed,
                rule: broken.rule.name(),
                reason: broken.to_string(),
                replay: replay_without(self.scenario, report.seed, defect, without),
                shortened: None,
            });
        }
    }
}

/// A run: the object of a sweep, with what one run can say.
#[derive(Serialize)]
pub(crate) struct RunObject<'a> {
    #[serde(flatten)]
    swept: &'a Swept,
    seed: u64,
    wall_seconds: f64,
    digest: String,
    bootstraps: u64,
    provisions: u64,
    preempts: u64,
    reclaims: u64,
    deletes: u64,
    restores: u64,
    creates: u64,
}

/// A sweep: the sums, and each scenario.
#[derive(Serialize)]
pub(crate) struct SweepObject<'a> {
    scenario: String,
    seeds: u64,
    failures: Vec<&'a FailedSeed>,
    events: u64,
    simulated_seconds: f64,
    /// By the clock on the wall, and added up over the cores.
    wall_seconds: f64,
    core_seconds: f64,
    scenarios: &'a [Swept],
}

pub(crate) fn say_json(object: &impl Serialize) -> Result<(), Failure> {
    say(&(serde_json::to_string(object).map_err(std::io::Error::from)? + "\n"))
}

pub(crate) fn run<'a>(swept: &'a Swept, report: &Report) -> RunObject<'a> {
    let [
        bootstraps,
        provisions,
        preempts,
        reclaims,
        deletes,
        restores,
    ] = report.actions;
    RunObject {
        swept,
        seed: report.seed,
        wall_seconds: swept.core_seconds,
        digest: format!("{:016x}", report.digest),
        bootstraps,
        provisions,
        preempts,
        reclaims,
        deletes,
        restores,
        creates: report.creates,
    }
}

pub(crate) fn sweep(swept: &[Swept], wall_seconds: f64) -> SweepObject<'_> {
    let names: Vec<&str> = swept.iter().map(|one| one.scenario).collect();
    let total = Total::of(swept);
    SweepObject {
        scenario: names.join(","),
        seeds: total.runs,
        failures: swept.iter().flat_map(|one| &one.failures).collect(),
        events: total.events,
        simulated_seconds: total.millis as f64 / 1000.0,
        wall_seconds,
        core_seconds: total.core_seconds,
        scenarios: swept,
    }
}

/// The command that runs a seed again.
pub(crate) fn replay(scenario: &str, seed: u64, defect: Option<Defect>) -> String {
    let defect = defect.map_or(String::new(), |defect| {
        format!(" --defect {}", defect.name())
    });
    format!("bigfleet sim run {scenario} --seed {seed}{defect}")
}

pub(crate) fn run_text(report: &Report, defect: Option<Defect>) -> String {
    let [
        bootstraps,
        provisions,
        preempts,
        reclaims,
        deletes,
        restores,
    ] = report.actions;
    let row = |what: &str, value: String| vec![what.to_owned(), value];
    let hours = report.simulated_millis as f64 / 3_600_000.0;
    let outcome = match &report.broken {
        Some(broken) => format!("broke {}", broken.rule.name()),
        None => "every rule held".to_owned(),
    };
    let rest = report.rested_after.map_or("never".to_owned(), |millis| {
        format!("{:.1} s after the faults", millis as f64 / 1000.0)
    });
    let rows = [
        row("outcome", outcome),
        row("defect", defect.map_or("none".to_owned(), Defect::name)),
        row("machines", report.machines.to_string()),
        row("fleet life", format!("{hours:.2} h")),
        row("at rest", rest),
        row("events", report.events.to_string()),
        row("bootstraps", bootstraps.to_string()),
        row("provisions", provisions.to_string()),
        row("preempts", preempts.to_string()),
        row("reclaims", reclaims.to_string()),
        row("deletes", deletes.to_string()),
        row("restores", restores.to_string()),
        row("digest", format!("{:016x}", report.digest)),
    ];
    let seed = format!("SEED {}", report.seed);
    let mut text = columns(&[&report.scenario.to_uppercase(), &seed], rows);
    text.push('\n');
    if report.struck.is_empty() {
        text += " no fault struck\n"
    } else {
        let struck = report.struck.iter();
        let struck = struck.map(|(fault, count)| row(fault, count.to_string()));
        text += &columns(&["WHAT STRUCK", "TIMES"], struck);
    }
    text
}

/// What scenarios came to together.
#[derive(Default)]
struct Total {
    runs: u64,
    failed: usize,
    events: u64,
    millis: u64,
    core_seconds: f64,
}

impl Total {
    fn of(swept: &[Swept]) -> Self {
        let mut total = Self::default();
        for one in swept {
            total.runs += one.seeds;
            total.failed += one.failures.len();
            total.events += one.events;
            total.millis += one.simulated_millis;
            total.core_seconds += one.core_seconds;
        }
        total
    }

    fn row(&self, name: &str) -> Vec<String> {
        let hours = self.millis as f64 / 3_600_000.0;
        let years = hours / (365.25 * 24.0);
        let core_hours = self.core_seconds.max(1e-9) / 3600.0;
        vec![
            name.to_owned(),
            self.runs.to_string(),
            self.failed.to_string(),
            self.events.to_string(),
            format!("{hours:.1} h"),
            format!("{:.2} s", self.core_seconds),
            format!("{:.1}", years / core_hours),
        ]
    }
}

pub(crate) fn sweep_text(swept: &[Swept], wall_seconds: f64) -> String {
    let one_row = |one: &Swept| Total::of(std::slice::from_ref(one)).row(one.scenario);
    let total = Total::of(swept);
    let header = [
        "SCENARIO",
        "RUNS",
        "FAILED",
        "EVENTS",
        "FLEET LIFE",
        "CORE TIME",
        "YEARS PER CORE HOUR",
    ];
    let rows = swept.iter().map(one_row).chain([total.row("total")]);
    let outcome = match total.failed {
        0 => format!("every rule held in all {} runs", total.runs),
        failed => format!("{failed} of {} runs failed", total.runs),
    };
    let table = columns(&header, rows);
    format!("{table}\n {outcome}; {wall_seconds:.1} s by the clock\n")
}

/// Seeds that failed, each with the command that shows it again.
pub(crate) fn failed(swept: &[Swept]) -> String {
    let failures: Vec<&FailedSeed> = swept.iter().flat_map(|one| &one.failures).collect();
    let line = |one: &&FailedSeed| format!("  {}: {}\n", one.replay, one.reason);
    let mut text = format!("{} runs failed\n", failures.len());
    text += &failures.iter().take(SHOWN).map(line).collect::<String>();
    if SHOWN < failures.len() {
        text += &format!("  and {} more, in the JSON form\n", failures.len() - SHOWN);
    }
    text
}
