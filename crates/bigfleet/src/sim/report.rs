//! What a simulation came to, as an object and for people.

use super::sweep::{FailedSeed, Swept};
use crate::{failure::Failure, output::say, table::columns};
use bigfleet_sim::{Class, Defect, Report, Scenario, Without, run_without, shorten};
use serde::Serialize;

/// Events of the end of a failed run that are shown.
const SHOWN: usize = 24;

#[derive(Serialize)]
struct ScenarioLine {
    name: &'static str,
    size: &'static str,
    about: &'static str,
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

pub(crate) fn scenarios(all: &[Scenario]) -> impl Serialize {
    let line = |one: &Scenario| ScenarioLine {
        name: one.name,
        size: match one.class {
            Class::Small => "small",
            Class::Large => "large",
        },
        about: one.about,
    };
    all.iter().map(line).collect::<Vec<_>>()
}

pub(crate) fn run<'a>(swept: &'a Swept, report: &Report) -> RunObject<'a> {
    let [bootstraps, provisions, preempts, reclaims, deletes] = report.actions;
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
        creates: report.creates,
    }
}

pub(crate) fn sweep(swept: &[Swept], wall_seconds: f64) -> SweepObject<'_> {
    let names: Vec<&str> = swept.iter().map(|one| one.scenario).collect();
    SweepObject {
        scenario: names.join(","),
        seeds: swept.iter().map(|one| one.seeds).sum(),
        failures: swept.iter().flat_map(|one| &one.failures).collect(),
        events: swept.iter().map(|one| one.events).sum(),
        simulated_seconds: swept.iter().map(|one| one.simulated_seconds).sum(),
        wall_seconds,
        core_seconds: swept.iter().map(|one| one.core_seconds).sum(),
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
    let [bootstraps, provisions, preempts, reclaims, deletes] = report.actions;
    let row = |what: &str, value: String| vec![what.to_owned(), value];
    let hours = report.simulated_millis as f64 / 3_600_000.0;
    let outcome = match &report.broken {
        Some(broken) => format!("broke {}", broken.rule.name()),
        None => "every rule held".to_owned(),
    };
    let rows = [
        row("outcome", outcome),
        row("defect", defect.map_or("none".to_owned(), Defect::name)),
        row("machines", report.machines.to_string()),
        row("fleet life", format!("{hours:.2} h")),
        row("events", report.events.to_string()),
        row("bootstraps", bootstraps.to_string()),
        row("provisions", provisions.to_string()),
        row("preempts", preempts.to_string()),
        row("reclaims", reclaims.to_string()),
        row("deletes", deletes.to_string()),
        row("digest", format!("{:016x}", report.digest)),
    ];
    let seed = format!("SEED {}", report.seed);
    columns(&[&report.scenario.to_uppercase(), &seed], rows)
}

pub(crate) fn sweep_text(swept: &[Swept]) -> String {
    let row = |one: &Swept| {
        let years = one.simulated_seconds / (365.25 * 86_400.0);
        let hours = one.core_seconds.max(1e-9) / 3600.0;
        vec![
            one.scenario.to_owned(),
            one.seeds.to_string(),
            one.failures.len().to_string(),
            one.events.to_string(),
            format!("{:.1} h", one.simulated_seconds / 3600.0),
            format!("{:.2} s", one.core_seconds),
            format!("{:.1}", years / hours),
        ]
    };
    let header = [
        "SCENARIO",
        "SEEDS",
        "FAILED",
        "EVENTS",
        "FLEET LIFE",
        "CORE TIME",
        "YEARS PER CORE HOUR",
    ];
    columns(&header, swept.iter().map(row))
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

/// Why a run failed: the rule, the least of the timeline that still breaks it, what led to it, and the
/// command that shows it again.
pub(crate) fn history(
    scenario: &Scenario,
    report: &Report,
    defect: Option<Defect>,
    given: Without,
) -> String {
    let Some(broken) = &report.broken else {
        return "the run did not fail again".to_owned();
    };
    let (seed, rule) = (report.seed, broken.rule);
    let (without, left) = match given == Without::default() {
        true => shorten(scenario, seed, defect, rule),
        false => (given, Vec::new()),
    };
    let again = run_without(scenario, seed, defect, &without, true);
    let shown = again.broken.as_ref().unwrap_or(broken);
    let words: Vec<&str> = shown.text.split_whitespace().collect();
    let concerns = |line: &&String| {
        let told = line.split_once(' ').map_or("", |(_, rest)| rest);
        let quiet = ["sample", "tell", "provider"];
        let quiet = quiet.iter().any(|word| told.starts_with(word));
        let named = |word: &&str| 3 < word.len() && word.contains('-') && told.contains(*word);
        words.iter().any(named) || !quiet
    };
    let told: Vec<&String> = again.lines.iter().filter(concerns).collect();
    let last = &told[told.len().saturating_sub(SHOWN)..];
    let indented =
        |lines: &[String]| -> String { lines.iter().map(|line| format!("  {line}\n")).collect() };
    let last: Vec<String> = last.iter().map(|line| (*line).clone()).collect();
    let mut text = format!("{broken}\n");
    if !left.is_empty() {
        text += &format!("what it takes:\n{}", indented(&left));
    }
    text += &format!("what led to it:\n{}", indented(&last));
    text += &format!("again: {}", replay(report.scenario, seed, defect));
    if without != Without::default() {
        let short = replay_without(report.scenario, seed, defect, &without);
        text += &format!("\nshortened: {short}");
    }
    text
}

fn replay_without(scenario: &str, seed: u64, defect: Option<Defect>, without: &Without) -> String {
    let mut text = replay(scenario, seed, defect);
    if !without.changes.is_empty() {
        let numbers: Vec<String> = without.changes.iter().map(usize::to_string).collect();
        text += &format!(" --without {}", numbers.join(","));
    }
    if without.weather {
        text += " --fair-weather";
    }
    text
}
