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

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod list;

use bigfleet_sim::{Class, Scenario, run};
use list::dashed;
use std::{env, fs, path::PathBuf};

fn file(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    path.join("tests/golden").join(format!("{name}.txt"))
}

/// Whether the goldens are to be written anew instead of compared with.
fn writes() -> bool {
    env::var("BIGFLEET_SIM_GOLDEN").is_ok_and(|value| value == "write")
}

/// Compares with what is written down, or writes it down if that is asked for.
fn golden(name: &str, is: &str) {
    let path = file(name);
    if writes() {
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

/// A scripted scenario is what it was, line by line.
fn is_the_story_it_was(name: &str) {
    let report = run(&Scenario::named(name).unwrap(), 1, None, true);
    let told = story(&report.lines);
    assert!(told.contains(" commit "), "{name} commits nothing");
    golden(name, &told);
}

mod scripted {
    use super::is_the_story_it_was;

    #[test]
    fn training_job_topology() {
        is_the_story_it_was("training-job-topology");
    }

    #[test]
    fn capacity_stockout() {
        is_the_story_it_was("capacity-stockout");
    }

    #[test]
    fn priority_inversion() {
        is_the_story_it_was("priority-inversion");
    }

    #[test]
    fn withdrawal() {
        is_the_story_it_was("withdrawal");
    }

    #[test]
    fn provider_configure_failure() {
        is_the_story_it_was("provider-configure-failure");
    }

    #[test]
    fn drain_failure_withdrawal() {
        is_the_story_it_was("drain-failure-withdrawal");
    }
}

/// The line of a scenario in `digests.txt`.
fn digest(scenario: &Scenario) -> String {
    let report = run(scenario, 1, None, false);
    format!("{} {:016x}", scenario.name, report.digest)
}

fn is_the_run_it_was(name: &str) {
    if writes() {
        return; // `digests_are_of_the_small_scenarios` writes all of them
    }
    let now = digest(&Scenario::named(&dashed(name)).unwrap());
    let written = fs::read_to_string(file("digests")).unwrap();
    assert!(
        written.lines().any(|line| line == now),
        "{now} is not in digests.txt; if that is meant: \
         BIGFLEET_SIM_GOLDEN=write cargo test -p bigfleet-sim --test golden"
    );
}

macro_rules! digest_tests {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                super::is_the_run_it_was(stringify!($name));
            }
        )*
    };
}

/// Seed 1 of every small scenario is the same run on every machine.
mod digests {
    crate::list::small_scenarios!(digest_tests);
}

/// The same of those with a real operator.
mod operated_digests {
    crate::list::operated_scenarios!(digest_tests);
}

#[test]
fn digests_are_of_the_small_scenarios() {
    let small = Scenario::usual();
    assert!(small.iter().all(|one| one.class == Class::Small));
    if writes() {
        let lines = small.iter().map(|one| digest(one) + "\n");
        golden("digests", &lines.collect::<String>());
    }
    let written = fs::read_to_string(file("digests")).unwrap();
    let of: Vec<&str> = written
        .lines()
        .filter_map(|line| line.split(' ').next())
        .collect();
    let names: Vec<&str> = small.iter().map(|one| one.name).collect();
    assert_eq!(of, names);
}
