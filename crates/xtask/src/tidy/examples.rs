//! Examples: each `EX-*` of the specification is named by a test.
//!
//! The specification's examples are its sharpest sentences. One that no test names is a promise
//! nobody keeps, and nobody would notice.

use std::collections::{BTreeMap, BTreeSet};

use super::{File, Problem, Rule};

/// Examples in `docs/spec/` that no source below `crates/` names, and excuses that are out of date.
pub(super) fn problems(files: &[File], not_built: &[(&str, &str)]) -> Vec<Problem> {
    let mut promised: BTreeMap<String, String> = BTreeMap::new();
    for file in files.iter().filter(|file| is_spec(&file.path)) {
        for (index, line) in file.text.lines().enumerate() {
            for id in ids(line, IN_SPEC) {
                let place = format!("{}:{}", file.path, index + 1);
                promised.entry(id).or_insert(place);
            }
        }
    }
    let sources = files.iter().filter(|file| is_test_source(&file.path));
    let tested: BTreeSet<String> = sources.flat_map(|file| ids(&file.text, IN_TESTS)).collect();
    let excused: BTreeMap<&str, &str> = not_built.iter().copied().collect();

    let mut found = Vec::new();
    for (id, place) in &promised {
        if !tested.contains(id) && !excused.contains_key(id.as_str()) {
            let what = format!("no test names {id}");
            found.push(Problem::new(place.clone(), Rule::Example, what));
        }
    }
    for (id, reason) in excused {
        let place = "crates/xtask/src/tidy/table.rs";
        if tested.contains(id) {
            let what = format!("{id} has a test now; drop the excuse ({reason})");
            found.push(Problem::new(place, Rule::Example, what));
        } else if !promised.contains_key(id) && !promised.is_empty() {
            let what = format!("{id} is in no specification; drop the excuse ({reason})");
            found.push(Problem::new(place, Rule::Example, what));
        }
    }
    found
}

fn is_spec(path: &str) -> bool {
    path.starts_with("docs/spec/") && path.ends_with(".md")
}

/// Sources and tests of every crate but this one, whose own tests speak of made-up examples.
fn is_test_source(path: &str) -> bool {
    let Some(inside) = path.strip_prefix("crates/") else {
        return false;
    };
    let Some((name, rest)) = inside.split_once('/') else {
        return false;
    };
    let code = rest.starts_with("src/") || rest.starts_with("tests/");
    name != "xtask" && code && rest.ends_with(".rs")
}

/// How the specification spells an example.
const IN_SPEC: &[&str] = &["EX-"];
/// How a test may spell it: in a comment, or in the name of a function.
const IN_TESTS: &[&str] = &["EX-", "ex_"];

/// The example ids in a text. An id is letters, then digits; a dash between the two does not count.
fn ids(text: &str, spellings: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for (at, mark) in spellings
        .iter()
        .flat_map(|spelling| text.match_indices(spelling))
    {
        let inside_a_word = text[..at]
            .chars()
            .next_back()
            .is_some_and(char::is_alphanumeric);
        let rest = &text[at + mark.len()..];
        let letters = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (letters, rest) = rest.split_at(letters);
        let dashed = rest.strip_prefix('-');
        let dashed = dashed.filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        let rest = dashed.unwrap_or(rest);
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, rest) = rest.split_at(digits);
        let ends = !rest.chars().next().is_some_and(char::is_alphanumeric);
        if !inside_a_word && !letters.is_empty() && ends {
            found.push(format!("EX-{}{digits}", letters.to_ascii_uppercase()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    fn check(files: &[File], not_built: &[(&str, &str)], expected: &[&str]) {
        let found: Vec<String> = problems(files, not_built)
            .iter()
            .map(Problem::to_string)
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn an_example_without_a_test_is_named() {
        check(
            &[
                file(
                    "docs/spec/a.md",
                    "intro\n- **EX-NT1** one\n- **EX-NT10** ten\n- EX-B",
                ),
                file(
                    "crates/model/src/a.rs",
                    "/// EX-NT10\nfn ex_b_rounds_up() {}",
                ),
            ],
            &[],
            &["docs/spec/a.md:2: [example] no test names EX-NT1"],
        );
    }

    #[test]
    fn a_dash_before_the_number_does_not_count() {
        let spec = file("docs/spec/a.md", "**EX-CO-11** one\n**EX-CO-12** two");
        let test = file("crates/model/tests/q.rs", "/// EX-CO11");
        let missing = "docs/spec/a.md:2: [example] no test names EX-CO12";
        check(&[spec, test], &[], &[missing]);
    }

    #[test]
    fn either_spelling_counts_wherever_tests_live() {
        let spec = file("docs/spec/a.md", "**EX-Q** and EX-P2");
        check(
            &[
                spec.clone(),
                file(
                    "crates/model/tests/q.rs",
                    "fn ex_q() {} fn ex_p2_order() {}",
                ),
            ],
            &[],
            &[],
        );
        check(
            &[spec.clone(), file("crates/a/src/b/c.rs", "// EX-Q, EX-P2.")],
            &[],
            &[],
        );
        check(
            &[
                spec,
                file("docs/notes.md", "EX-Q EX-P2"),
                file("crates/xtask/src/a.rs", "EX-Q EX-P2"),
            ],
            &[],
            &[
                "docs/spec/a.md:1: [example] no test names EX-P2",
                "docs/spec/a.md:1: [example] no test names EX-Q",
            ],
        );
    }

    #[test]
    fn an_excuse_lasts_as_long_as_it_is_needed() {
        let spec = file("docs/spec/a.md", "EX-F1");
        check(
            std::slice::from_ref(&spec),
            &[("EX-F1", "no engine yet")],
            &[],
        );
        check(
            &[
                spec.clone(),
                file("crates/engine/src/f.rs", "fn ex_f1() {}"),
            ],
            &[("EX-F1", "no engine yet")],
            &[
                "crates/xtask/src/tidy/table.rs: [example] EX-F1 has a test now; drop the excuse \
               (no engine yet)",
            ],
        );
        check(
            &[spec, file("crates/engine/src/f.rs", "fn ex_f1() {}")],
            &[("EX-F2", "no engine yet")],
            &[
                "crates/xtask/src/tidy/table.rs: [example] EX-F2 is in no specification; drop the \
               excuse (no engine yet)",
            ],
        );
    }

    #[test]
    fn words_that_look_like_ids_are_not() {
        let text = "HEX-A1 index_b EX- ex_ EX-4 EX-A1b regex-b vertex_q ex_nt1x";
        assert_eq!(ids(text, IN_TESTS), Vec::<String>::new());
        assert_eq!(
            ids("ex_post (EX-P1..4) \"EX-MD3\"", IN_SPEC),
            ["EX-P1", "EX-MD3"]
        );
        assert_eq!(
            ids("fn ex_nt1_orders test_ex_b", IN_TESTS),
            ["EX-NT1", "EX-B"]
        );
    }
}
