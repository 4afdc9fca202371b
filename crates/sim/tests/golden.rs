//! Goldens: the scripted scenarios byte for byte, and a digest of every small one, for seed 1.
//!
//! ```text
//! run(scenario, 1) ─▶ what changed, was committed and became of machines ─▶ tests/golden/<scenario>.txt
//!                  └▶ digest of every event ───────────────────────────────▶ tests/golden/digests.txt
//! ```
//!
//! They say that a seed is the same run on every machine, and show in a diff what a change of a rule did to six
//! stories anybody can read. A change that is meant is written anew, and looked at, with
//! `BIGFLEET_SIM_GOLDEN=write cargo test -p bigfleet-sim --test golden`.

use bigfleet_sim::{Class, Scenario, run};
use std::{env, fmt::Write, fs, path::PathBuf};

const SCRIPTED: [&str; 6] = [
    "training-job-topology",
    "capacity-stockout",
    "priority-inversion",
    "withdrawal",
    "provider-configure-failure",
    "drain-failure-withdrawal",
];

/// Compares with what is written down, or writes it down if that is asked for.
fn golden(name: &str, is: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let path = path.join("tests/golden").join(format!("{name}.txt"));
    if env::var("BIGFLEET_SIM_GOLDEN").is_ok_and(|value| value == "write") {
        let written = fs::write(&path, is);
        assert!(written.is_ok(), "{}: {written:?}", path.display());
    }
    let was = fs::read_to_string(&path).unwrap_or_default();
    let differs = was.lines().zip(is.lines()).find(|(was, is)| was != is);
    assert!(
        was == is,
        "{name}: {differs:?} is the first line that differs, of {} and {}; if that is meant: \
         BIGFLEET_SIM_GOLDEN=write cargo test -p bigfleet-sim --test golden",
        was.lines().count(),
        is.lines().count()
    );
}

/// What changed, what was committed, what became of machines; and of the fleet as a whole each time it differs.
fn story(lines: &[String]) -> String {
    let (mut told, mut last) = (String::new(), "");
    for line in lines {
        let Some((_, what)) = line.split_once(' ') else {
            continue;
        };
        let kept = match what.split(' ').next() {
            Some("change" | "commit" | "provider" | "calm") => true,
            Some("sample") => std::mem::replace(&mut last, what) != what,
            _ => false,
        };
        if kept {
            told.push_str(line);
            told.push('\n');
        }
    }
    told
}

#[test]
fn the_scripted_scenarios_are_what_they_were() {
    for name in SCRIPTED {
        let report = run(&Scenario::named(name).unwrap(), 1, None, true);
        let told = story(&report.lines);
        assert!(told.contains(" commit "), "{name} commits nothing");
        golden(name, &told);
    }
}

#[test]
fn every_small_scenario_is_the_same_run_on_every_machine() {
    let mut digests = String::new();
    for scenario in Scenario::all() {
        if scenario.class == Class::Small {
            let report = run(&scenario, 1, None, false);
            writeln!(digests, "{} {:016x}", scenario.name, report.digest).unwrap();
        }
    }
    golden("digests", &digests);
}
