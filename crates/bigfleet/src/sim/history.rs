//! Why a run failed, for people: the rule, the least of its timeline that still breaks it, what led to
//! it, and the commands that show it again.
//!
//! ```text
//! gate at 2150.000 s: 20 Creates, not 1        the run that was asked for
//! again: bigfleet sim run …
//! shortened: bigfleet sim run … --without 1    another history; all below is of that one
//! gate at 2150.000 s: 19 Creates, not 1
//! what it takes:  …
//! what led to it: …
//! ```

use super::report::replay;
use bigfleet_sim::{Broken, Defect, Report, Scenario, Without, run_without, shorten};

/// Lines of the end of a failed run that are shown.
const SHOWN: usize = 24;

/// A failed run, made as short as could be.
pub(crate) struct History {
    /// The whole of it.
    pub(crate) text: String,
    /// The command of the shortened run, where something could be left out.
    pub(crate) shortened: Option<String>,
}

/// The history of a failed run; what was left out of it by hand is not shortened further.
pub(crate) fn history(
    scenario: &Scenario,
    report: &Report,
    broken: &Broken,
    defect: Option<Defect>,
    given: &Without,
) -> History {
    let seed = report.seed;
    let by_hand = *given != Without::default();
    let (without, shown, left) = if by_hand {
        (given.clone(), broken.clone(), Vec::new())
    } else {
        let short = shorten(scenario, seed, defect, broken);
        (short.without, short.broken, short.left)
    };
    let shorter = !by_hand && without != Without::default();
    let command = replay_without(scenario.name, seed, defect, &without);
    let mut text = format!("{broken}\n");
    if shorter {
        let whole = replay(scenario.name, seed, defect);
        text += &format!("again: {whole}\nshortened: {command}\n{shown}\n");
    } else {
        text += &format!("again: {command}\n")
    }
    if !left.is_empty() {
        text += &format!("what it takes:\n{}", indented(&left));
    }
    let again = run_without(scenario, seed, defect, &without, true);
    let told = led_to(&shown, &again.lines);
    text += &format!("what led to it:\n{}", indented(&told));
    History {
        text: text.trim_end().to_owned(),
        shortened: shorter.then_some(command),
    }
}

fn indented(lines: &[String]) -> String {
    lines.iter().map(|line| format!("  {line}\n")).collect()
}

/// The last lines that concern what broke, like ones together.
fn led_to(broken: &Broken, lines: &[String]) -> Vec<String> {
    let words = broken.text.split_whitespace();
    let words = words.map(|word| word.trim_matches(|one: char| !one.is_alphanumeric()));
    let names: Vec<&str> = words
        .filter(|word| 3 < word.len() && word.contains('-'))
        .collect();
    let concerns = |line: &&String| {
        let told = line.split_once(' ').map_or("", |(_, rest)| rest);
        let begins = |words: &[&str]| words.iter().any(|word| told.starts_with(word));
        // An operation that went well says no more than its commit did.
        let quiet = begins(&["sample", "tell", "provider"]) || told.ends_with(" success");
        let named = names.iter().any(|name| told.contains(name));
        !begins(&["broke "]) && (named || !quiet)
    };
    let told = together(lines.iter().filter(concerns));
    told[told.len().saturating_sub(SHOWN)..].to_vec()
}

/// Lines that say the same of one machine after another become one line:
/// `1.615 told a own-0000 … own-0007 Configured (8)`.
fn together<'a>(lines: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut runs: Vec<(&str, &str, usize)> = Vec::new(); // the first line, the last, how many
    for line in lines {
        match runs.last_mut() {
            Some((first, last, count)) if alike(first, line) => {
                *last = line;
                *count += 1;
            }
            _ => runs.push((line, line, 1)),
        }
    }
    let words = |(first, last, count): &(&str, &str, usize)| match count {
        1 => (*first).to_owned(),
        count => {
            let pairs = first.split(' ').zip(last.split(' '));
            let words = pairs.map(|(first, last)| {
                if first == last {
                    first.to_owned()
                } else {
                    format!("{first} … {last}")
                }
            });
            format!("{} ({count})", words.collect::<Vec<_>>().join(" "))
        }
    };
    runs.iter().map(words).collect()
}

/// Whether two lines differ only in when it was and in which machine or operation they are about.
fn alike(one: &str, other: &str) -> bool {
    let what = |line: &'_ str| line.find(' ').unwrap_or(0);
    let (one, other) = (&one[what(one)..], &other[what(other)..]);
    let (mut one, mut other) = (one.split(' '), other.split(' '));
    loop {
        match (one.next(), other.next()) {
            (None, None) => return true,
            (Some(one), Some(other)) if one == other || (is_id(one) && is_id(other)) => {}
            _ => return false,
        }
    }
}

/// `own-0007` or `0000000100000014`: a machine or an operation, and neither a word nor a count.
fn is_id(word: &str) -> bool {
    let has_digit = word.chars().any(|one| one.is_ascii_digit());
    let is_long = word.len() == 16 && word.chars().all(|one| one.is_ascii_hexdigit());
    has_digit && (word.contains('-') || is_long)
}

/// The command that runs a seed again, with something left out.
pub(crate) fn replay_without(
    scenario: &str,
    seed: u64,
    defect: Option<Defect>,
    without: &Without,
) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn like_lines_after_each_other_are_one_line() {
        let lines = [
            "1.615 told a own-0000 Configured",
            "1.615 told a own-0001 Configured",
            "1.615 told a own-0002 Configured",
            "1.615 told b own-0003 Configured",
            "2.000 told b own-0004 Configured",
            "2.000 commit 0000000100000001 Provision spec-0 b",
            "2.000 commit 000000010000000a Provision spec-7 b",
        ]
        .map(str::to_owned);
        let expected = [
            "1.615 told a own-0000 … own-0002 Configured (3)",
            "1.615 … 2.000 told b own-0003 … own-0004 Configured (2)",
            "2.000 commit 0000000100000001 … 000000010000000a Provision spec-0 … spec-7 b (2)",
        ];
        assert_eq!(together(lines.iter()), expected);
    }
}
