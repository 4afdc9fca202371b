//! The list: every change cargo-mutants would make, and how to make one.

use std::path::Path;
use std::process::Command;

use serde::Deserialize;

use crate::steps::{Failed, answer, cargo};

/// One small change.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Mutant {
    /// `crates/model/src/text.rs:175:5: replace text_hash -> u64 with 1`.
    pub(super) name: String,
    pub(super) package: String,
    /// Relative to the root of the workspace.
    pub(super) file: String,
    span: Span,
    replacement: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
struct Span {
    start: Position,
    /// The first character that stays.
    end: Position,
}

/// Both count from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
struct Position {
    line: usize,
    column: usize,
}

/// Every change to these packages.
pub(super) fn list(root: &Path, packages: &[String]) -> Result<Vec<Mutant>, Failed> {
    let mut command = Command::new(cargo());
    command
        .args(["mutants", "--list", "--json"])
        .current_dir(root);
    for package in packages {
        command.args(["--package", package]);
    }
    let text = answer(&mut command)?;
    serde_json::from_slice(&text).map_err(|why| Failed::Answer {
        command: "cargo mutants --list --json".to_owned(),
        why: why.to_string(),
    })
}

impl Mutant {
    /// The line it changes.
    pub(super) fn line(&self) -> usize {
        self.span.start.line
    }

    /// What it changes, without the place.
    pub(super) fn change(&self) -> &str {
        self.name.splitn(4, ':').nth(3).unwrap_or(&self.name).trim()
    }

    /// The text of its file, changed.
    pub(super) fn applied(&self, text: &str) -> String {
        let mut changed = String::with_capacity(text.len() + self.replacement.len());
        let mut at = Position { line: 1, column: 1 };
        for c in text.chars() {
            if at == self.span.start {
                changed.push_str(&self.replacement);
            }
            if at < self.span.start || self.span.end <= at {
                changed.push(c);
            }
            at = match c {
                '\n' => Position {
                    line: at.line + 1,
                    column: 1,
                },
                _ => Position {
                    column: at.column + 1,
                    ..at
                },
            };
        }
        changed
    }

    #[cfg(test)]
    pub(super) fn named(name: &str) -> Self {
        let start = Position { line: 2, column: 3 };
        Self {
            name: name.to_owned(),
            package: "bigfleet-model".to_owned(),
            file: "crates/model/src/a.rs".to_owned(),
            span: Span {
                start,
                end: Position { line: 2, column: 5 },
            },
            replacement: "→".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_read_as_cargo_mutants_writes_it() {
        let text = r#"[{"diff": "…", "file": "crates/model/src/text.rs", "function": null, "genre": "FnValue",
            "name": "crates/model/src/text.rs:175:5: replace text_hash -> u64 with 1", "package": "bigfleet-model",
            "replacement": "1", "span": {"end": {"column": 47, "line": 187}, "start": {"column": 5, "line": 175}}}]"#;
        let mutants: Vec<Mutant> = serde_json::from_str(text).unwrap();
        assert_eq!(mutants[0].line(), 175);
        assert_eq!(mutants[0].change(), "replace text_hash -> u64 with 1");
    }

    #[test]
    fn the_span_is_replaced_and_nothing_else() {
        let mutant = Mutant::named("a.rs:2:3: replace b with c");
        assert_eq!(mutant.applied("ä b\nö ab ü\n"), "ä b\nö → ü\n");
    }

    #[test]
    fn a_span_over_several_lines_goes_as_a_whole() {
        let mut mutant = Mutant::named("a.rs:1:2: replace b with c");
        mutant.span.start = Position { line: 1, column: 2 };
        mutant.span.end = Position { line: 3, column: 2 };
        assert_eq!(mutant.applied("a{\n  b\n}c\n"), "a→c\n");
    }
}
