//! House rules for the text of files: nothing unfinished, nothing skipped, no exception without its
//! reason, no path of somebody's machine.

use super::lexer::{Token, tokens};
use super::{File, Problem, Rule};

/// Folders that exist on a machine of ours and on nobody else's. Split, so that this file passes.
const MACHINE_PATHS: &[&str] = &[concat!("/wo", "rk/"), concat!("/tmp/", "bash")];

/// Every breach the text of the files shows.
pub(super) fn problems(files: &[File]) -> Vec<Problem> {
    let mut found = Vec::new();
    for file in files {
        found.extend(machine_paths(file));
        if file.path.ends_with(".rs") {
            let code = tokens(&file.text);
            found.extend(unfinished(file, &code));
            found.extend(attributes(file, &code));
        }
    }
    found
}

fn machine_paths(file: &File) -> Vec<Problem> {
    let mut found = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        for path in MACHINE_PATHS {
            // At the start of a path only: `docs/…` may well have a folder of that name.
            let starts = |(at, _): (usize, &str)| {
                let before = line[..at].chars().next_back();
                !before.is_some_and(|c| c.is_alphanumeric() || "._-~}".contains(c))
            };
            if line.match_indices(path).any(starts) {
                let what = format!("`{path}` exists on one machine only");
                found.push(Problem::at(file, index + 1, Rule::MachinePath, what));
            }
        }
    }
    found
}

fn unfinished(file: &File, code: &[Token]) -> Vec<Problem> {
    let calls = code.windows(2).filter(|pair| pair[1].is('!'));
    let marks = calls.filter(|pair| matches!(pair[0].ident(), Some("todo" | "unimplemented")));
    let problem = |pair: &[Token]| {
        let what = format!(
            "`{}!` is not an implementation",
            pair[0].ident().unwrap_or_default()
        );
        Problem::at(file, pair[0].line, Rule::Unfinished, what)
    };
    marks.map(problem).collect()
}

fn attributes(file: &File, code: &[Token]) -> Vec<Problem> {
    let mut found = Vec::new();
    for (at, token) in code.iter().enumerate().filter(|(_, token)| token.is('#')) {
        let inner = usize::from(code.get(at + 1).is_some_and(|next| next.is('!')));
        let start = at + 1 + inner;
        if !code.get(start).is_some_and(|next| next.is('[')) {
            continue;
        }
        let body = body(&code[start + 1..]);
        if skips_a_test(body) {
            let what = "a test that does not run proves nothing; delete it or make it pass";
            found.push(Problem::at(file, token.line, Rule::SkippedTest, what));
        }
        if excuses_a_lint(body) && !has_reason(body) {
            let what = "a lint exception needs its `reason = \"…\"`";
            found.push(Problem::at(file, token.line, Rule::Unreasoned, what));
        }
    }
    found
}

/// The tokens up to the bracket that closes the attribute.
fn body(code: &[Token]) -> &[Token] {
    let mut depth = 1_usize;
    for (at, token) in code.iter().enumerate() {
        depth += usize::from(token.is('['));
        depth -= usize::from(token.is(']'));
        if depth == 0 {
            return &code[..at];
        }
    }
    code
}

fn skips_a_test(body: &[Token]) -> bool {
    let first = body.first().and_then(Token::ident);
    let named = || body.iter().any(|token| token.ident() == Some("ignore"));
    first == Some("ignore") || (first == Some("cfg_attr") && named())
}

fn excuses_a_lint(body: &[Token]) -> bool {
    body.windows(2)
        .any(|pair| matches!(pair[0].ident(), Some("allow" | "expect")) && pair[1].is('('))
}

fn has_reason(body: &[Token]) -> bool {
    body.windows(2)
        .any(|pair| pair[0].ident() == Some("reason") && pair[1].is('='))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, text: &str, expected: &[&str]) {
        let file = File {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        let found: Vec<String> = problems(&[file]).iter().map(Problem::to_string).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn a_machine_path_is_named_in_any_file() {
        for path in MACHINE_PATHS {
            let text = format!("first\nsee {path}main/notes");
            check(
                "docs/a.md",
                &text,
                &[&format!(
                    "docs/a.md:2: [machine-path] `{path}` exists on one machine only"
                )],
            );
            check("docs/a.md", &format!("our{path}order is fine"), &[]);
        }
    }

    #[test]
    fn unfinished_code_is_named() {
        check(
            "a.rs",
            "fn a() {\n    todo!()\n}",
            &["a.rs:2: [unfinished] `todo!` is not an implementation"],
        );
        check(
            "a.rs",
            "unimplemented!(\"later\")",
            &["a.rs:1: [unfinished] `unimplemented!` is not an implementation"],
        );
        check(
            "a.rs",
            "// todo!() is banned\nlet a = \"unimplemented!()\";",
            &[],
        );
        check("a.md", "todo!() is banned", &[]);
    }

    #[test]
    fn a_skipped_test_is_named() {
        let line = "a.rs:1: [skipped-test] a test that does not run proves nothing; delete it or \
                    make it pass";
        check("a.rs", "#[ignore] fn a() {}", &[line]);
        check("a.rs", "#[ignore = \"slow\"] fn a() {}", &[line]);
        check(
            "a.rs",
            "#[cfg_attr(debug_assertions, ignore)] fn a() {}",
            &[line],
        );
        check("a.rs", "#[cfg(test)] fn ignore() {}", &[]);
    }

    #[test]
    fn a_lint_exception_needs_its_reason() {
        let line = "a.rs:1: [unreasoned-exception] a lint exception needs its `reason = \"…\"`";
        check("a.rs", "#[allow(clippy::unwrap_used)] fn a() {}", &[line]);
        check("a.rs", "#![allow(missing_docs)]", &[line]);
        check("a.rs", "#[expect(dead_code)] fn a() {}", &[line]);
        check(
            "a.rs",
            "#[cfg_attr(test, allow(dead_code))] fn a() {}",
            &[line],
        );
        check(
            "a.rs",
            "#[allow(dead_code, reason = \"kept for [this]\")] fn a() {}",
            &[],
        );
        check(
            "a.rs",
            "#[expect(\n    dead_code,\n    reason = \"why\"\n)] fn a() {}",
            &[],
        );
        check("a.rs", "#[should_panic(expected = \"x\")] fn a() {}", &[]);
    }
}
