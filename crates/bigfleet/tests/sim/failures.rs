//! What is said of a seed that breaks a rule, and of a defect that nobody objects to.

use super::{object, sim, text};

/// The words of a command that was printed, without `bigfleet sim`.
fn words(command: &str) -> &str {
    let words = command.strip_prefix("bigfleet sim ");
    words.unwrap_or_else(|| panic!("not a command: {command}"))
}

#[test]
fn a_failing_seed_says_what_it_takes_and_how_to_see_it_again() {
    let output = sim("run long-drain --seed 1 -o json --defect draining-not-promised");
    assert_eq!(output.status.code(), Some(1));
    let ran = object(&output);
    assert_eq!(ran["failures"][0]["scenario"], "long-drain");
    assert_eq!(ran["failures"][0]["seed"], 1);
    assert_eq!(ran["failures"][0]["rule"], "nothing-too-much");
    let said = text(&output.stderr);
    let again = "bigfleet sim run long-drain --seed 1 --defect draining-not-promised";
    assert!(said.contains(&format!("again: {again}")), "{said}");
    assert!(said.contains("what led to it"), "{said}");
    assert!(said.contains("Preempt"), "{said}");
}

/// The gate objects to one Create too many. Without the loss it would object to one too few, with and
/// without the defect: that is no shorter history of this failure.
#[test]
fn a_shortened_history_is_of_the_same_failure() {
    let output = sim("run runway --seed 2 --defect creating-not-credited -o json");
    let said = text(&output.stderr);
    let headline = said.lines().next().unwrap();
    assert!(headline.starts_with("gate at ") && headline.ends_with(": 19 Creates, not 1"));
    assert!(said.contains("317.000 machines vanish: 1 of a"), "{said}");
    assert!(
        said.contains("Provision spec-0000 … spec-0018 a (19)"),
        "{said}"
    );
    assert!(
        !said.contains("--fair-weather"),
        "there is no weather: {said}"
    );
}

#[test]
fn a_shortened_run_breaks_as_its_headline_says_and_holds_without_the_defect() {
    let output = sim("sweep first-come --seeds 2 --defect roll-up-arrival-reset -o json");
    assert_eq!(output.status.code(), Some(1));
    let swept = object(&output);
    let first = &swept["failures"][0];
    assert_eq!(first["scenario"], "first-come");
    assert_eq!(first, &swept["scenarios"][0]["failures"][0]);
    let shortened = first["shortened"].as_str().unwrap();
    assert!(shortened.contains("--without"), "{shortened}");

    // The line under the command is the break of that very run.
    let said = text(&output.stderr);
    let lines = said.lines();
    let mut below = lines.skip_while(|line| !line.starts_with("shortened: "));
    assert_eq!(
        below.next(),
        Some(format!("shortened: {shortened}").as_str())
    );
    let headline = below.next().unwrap();
    let again = sim(&format!("{} -o json", words(shortened)));
    assert_eq!(again.status.code(), Some(1));
    assert_eq!(object(&again)["failures"][0]["reason"], headline);
    assert_eq!(object(&again)["failures"][0]["replay"], shortened);

    let whole = words(shortened).replace("--defect roll-up-arrival-reset", "");
    let without = sim(&whole);
    assert_eq!(without.status.code(), Some(0), "{}", text(&without.stderr));
}

#[test]
fn of_several_failures_the_first_is_told_whole() {
    let output = sim("sweep runway --seeds 3 --defect creating-not-credited -o table");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("2 of 3 runs failed"));
    let said = text(&output.stderr);
    assert!(said.starts_with("2 runs failed\n"), "{said}");
    for seed in [2, 3] {
        let command = format!("  bigfleet sim run runway --seed {seed} --defect");
        assert!(said.contains(&command), "{said}");
    }
    assert_eq!(said.matches("what led to it:").count(), 1, "{said}");
}

#[test]
fn a_defect_that_is_caught_is_told_with_who_and_how() {
    let line = "mutants twins long-drain --defect provider-ignores-fences \
                --defect draining-not-promised --seeds 5 --jobs 2";
    let output = sim(&format!("{line} -o json"));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let hunted = object(&output);
    assert_eq!(
        (&hunted["defects"], &hunted["escaped"]),
        (&2.into(), &0.into())
    );
    for mutant in hunted["mutants"].as_array().unwrap() {
        assert_eq!(mutant["caught"], true, "{mutant}");
        assert!(mutant["reason"].as_str() > Some(""), "{mutant}");
    }
    let table = text(&sim(&format!("{line} -o table")).stdout);
    assert!(table.contains("all 2 caught"), "{table}");
    assert!(
        table.lines().all(|line| line.chars().count() < 160),
        "{table}"
    );
}

/// Nobody withdraws from a provider that does not fence: with no other scenario to object, it escapes.
#[test]
fn a_defect_that_escapes_fails_the_command() {
    let output = sim("mutants withdrawal --defect provider-ignores-fences --seeds 2 -o json");
    assert_eq!(output.status.code(), Some(1));
    let hunted = object(&output);
    assert_eq!(hunted["escaped"], 1);
    assert_eq!(hunted["mutants"][0]["caught"], false);
    assert_eq!(text(&output.stderr), "escaped: provider-ignores-fences\n");
}
