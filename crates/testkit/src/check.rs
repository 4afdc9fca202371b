//! Check: a decision against the lines a test expects.

use crate::{Fixture, outcome};
use bigfleet_model::{Amounts, Decision, Dimension, Fleet, Verdict, quantity::parse_demand};

/// Decides on the fleet of `before` and compares with the lines of `after`.
///
/// Actions are compared always: exactly those, in that order; none in the text means none decided.
/// Facts are compared where the text has them:
///
/// | Line | Says |
/// |---|---|
/// | `claims: m1 m2` | every claimed machine, by id |
/// | `claims a/g1: m1 m2` | those of one Need |
/// | `held: m3`, `ended: k1`, `restamps: m1` | those lists, by id |
/// | `satisfied a/g1` | its verdict |
/// | `short a/g1: cpu=4 NO_MATCHING_SUPPLY` | its residual and, if given, why |
/// | `domain a/g1: r1 unsatisfiable` | the domain of a gang, and whether it can hold it |
/// | `absent a/g1` | no verdict has this identity, for instance because the gang folded |
///
/// Needs are called as in [`fleet`](crate::fleet); `a/fold:g1` is the folded form.
///
/// # Panics
///
/// If they differ, with both sides and everything the decision says.
#[track_caller]
pub fn check(decide: impl Fn(&Fleet) -> Decision, before: &str, after: &str) {
    let fixture = Fixture::read(before);
    let decision = decide(&fixture.fleet);
    let lines = after
        .lines()
        .map(|line| line.split('#').next().unwrap_or("").trim());
    let expected: Vec<String> = lines
        .filter(|line| !line.is_empty())
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    let (facts, actions): (Vec<_>, Vec<_>) = expected.into_iter().partition(|line| is_fact(line));
    let mut wanted = actions;
    let mut got: Vec<String> = decision.actions.iter().map(outcome::action).collect();
    for fact in facts {
        got.push(actual(&fact, &decision, &fixture));
        wanted.push(canonical(&fact));
    }
    if wanted != got {
        panic!(
            "the decision is not the expected one\n\n{}\n\nexpected:\n{}\n\ndecided:\n{}\n\n\
             all of it:\n{}\n",
            diff(&wanted, &got),
            wanted.join("\n"),
            got.join("\n"),
            outcome::story(&decision)
        );
    }
}

const FACTS: [&str; 8] = [
    "claims",
    "held",
    "ended",
    "restamps",
    "short",
    "satisfied",
    "domain",
    "absent",
];

fn is_fact(line: &str) -> bool {
    FACTS.contains(&kind(line))
}

fn kind(line: &str) -> &str {
    line.split([' ', ':']).next().unwrap_or("")
}

/// The Need a fact is about; empty for none. A `:` within it, as in `a/fold:g1`, has no space
/// after it.
fn subject(line: &str) -> &str {
    let rest = line[kind(line).len()..].trim_start();
    let rest = rest.strip_prefix(": ").map_or(rest, |_| "");
    rest.split(' ').next().unwrap_or("").trim_end_matches(':')
}

/// The line the decision would write where the test wrote this one.
fn actual(fact: &str, decision: &Decision, fixture: &Fixture) -> String {
    let called = subject(fact);
    let key = (!called.is_empty()).then(|| fixture.need_key(called));
    let verdict = || -> Option<&Verdict> {
        let key = key.as_ref()?;
        decision
            .needs
            .iter()
            .find(|verdict| verdict.need.key() == *key)
    };
    let of_verdict = |write: &dyn Fn(&Verdict) -> String| {
        verdict().map_or_else(|| format!("absent {called}"), write)
    };
    match kind(fact) {
        "claims" if key.is_none() => outcome::claims(decision, "claims", None),
        "claims" => outcome::claims(decision, &format!("claims {called}"), key.as_ref()),
        "held" => outcome::ids("held", &decision.held),
        "ended" => outcome::ids("ended", &decision.ended_intents),
        "restamps" => outcome::ids("restamps", decision.restamps.iter().map(|to| &to.machine)),
        "domain" => of_verdict(&|verdict| outcome::domain(&format!("domain {called}"), verdict)),
        "short" | "satisfied" | "absent" => {
            let reason = fact.split(' ').next_back().is_some_and(is_reason);
            of_verdict(&|verdict| outcome::state_of(called, verdict, reason))
        }
        other => unreachable!("{other} is not among {FACTS:?}"),
    }
}

fn is_reason(word: &str) -> bool {
    word.contains(|c: char| c.is_ascii_uppercase()) && !word.contains('=')
}

/// The line as an outcome would spell it: quantities by value, dimensions ascending.
fn canonical(fact: &str) -> String {
    let Some((head, rest)) = fact.split_once(": ").filter(|_| kind(fact) == "short") else {
        return fact.to_owned();
    };
    let (pairs, others): (Vec<&str>, Vec<&str>) =
        rest.split(' ').partition(|word| word.contains('='));
    let entry = |pair: &str| {
        let (name, text) = pair.split_once('=').expect("a pair");
        let milli = parse_demand(text).unwrap_or_else(|refused| panic!("{refused}: {fact}"));
        (Dimension::new(name).expect("a dimension"), milli)
    };
    let residual = Amounts::from_entries(pairs.into_iter().map(entry));
    let others: String = others.iter().map(|word| format!(" {word}")).collect();
    format!("{head}:{}{others}", outcome::amounts(&residual))
}

/// Lines only expected with `-`, lines only decided with `+`, in a longest common order.
fn diff(wanted: &[String], got: &[String]) -> String {
    let (rows, columns) = (wanted.len(), got.len());
    let mut common = vec![vec![0_usize; columns + 1]; rows + 1];
    for i in (0..rows).rev() {
        for j in (0..columns).rev() {
            common[i][j] = if wanted[i] == got[j] {
                common[i + 1][j + 1] + 1
            } else {
                common[i + 1][j].max(common[i][j + 1])
            };
        }
    }
    let (mut i, mut j, mut lines) = (0, 0, Vec::new());
    while i < rows || j < columns {
        if i < rows && j < columns && wanted[i] == got[j] {
            lines.push(format!("  {}", wanted[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == columns || (i < rows && common[i][j + 1] <= common[i + 1][j]) {
            lines.push(format!("- {}", wanted[i]));
            i += 1;
        } else {
            lines.push(format!("+ {}", got[j]));
            j += 1;
        }
    }
    lines.join("\n")
}
