//! Purity: what the source of a core may not name.
//!
//! `Cargo.toml` keeps other people's clocks out of a core, but the standard library comes with its
//! own. A core that reads one gives a different answer tomorrow, and the simulator can no longer
//! stand for production.

use super::graph::{Graph, row};
use super::lexer::{Token, tokens};
use super::table::Row;
use super::{File, Problem, Rule};

/// Every place in the `src/` of our crates that names something its row bans.
pub(super) fn problems(graph: &Graph, files: &[File], table: &[Row]) -> Vec<Problem> {
    let mut found = Vec::new();
    for this in &graph.crates {
        let Some(row) = row(table, &this.package).filter(|row| !row.bans.is_empty()) else {
            continue;
        };
        let sources = format!("{}/src/", this.folder);
        let of_this = |file: &&File| file.path.starts_with(&sources) && file.path.ends_with(".rs");
        for file in files.iter().filter(of_this) {
            for (line, rule, name) in named(&tokens(&file.text)) {
                if row.bans.contains(&rule) {
                    let what = format!("`{}` may not use `{name}`: {}", row.name, why(rule));
                    found.push(Problem::at(file, line, rule, what));
                }
            }
        }
    }
    found
}

fn why(rule: Rule) -> &'static str {
    match rule {
        Rule::Clock => "time is an argument",
        Rule::Thread => "a core runs where it is called",
        Rule::Random => "the same input gives the same answer",
        Rule::HashOrder => "its order differs between runs; use BTreeMap, BTreeSet or a sorted Vec",
        Rule::World => "a core sees only its arguments",
        Rule::Print => "a core returns what it has to say",
        Rule::UnlistedCrate
        | Rule::UpwardArrow
        | Rule::KeptOut
        | Rule::ForbiddenOutside
        | Rule::WorkspaceLints
        | Rule::MachinePath
        | Rule::Unfinished
        | Rule::SkippedTest
        | Rule::Unreasoned
        | Rule::Example
        | Rule::Citation
        | Rule::StalePath
        | Rule::StaleCommand
        | Rule::Map => "see CONTRIBUTING.md",
    }
}

/// Everything of interest the code names, whoever may use it.
fn named(code: &[Token]) -> Vec<(usize, Rule, String)> {
    let mut found = Vec::new();
    for (at, token) in code.iter().enumerate() {
        let Some(name) = token.ident() else { continue };
        let macro_call = code.get(at + 1).is_some_and(|next| next.is('!'));
        if let Some(rule) = by_name(name, macro_call) {
            found.push((token.line, rule, name.to_owned()));
        }
        if matches!(name, "std" | "core" | "alloc") {
            found.extend(by_path(code, at));
        }
    }
    found.sort();
    found.dedup();
    found
}

/// Names that mean trouble wherever they come from.
fn by_name(name: &str, macro_call: bool) -> Option<Rule> {
    match name {
        "Instant" | "SystemTime" | "UNIX_EPOCH" => Some(Rule::Clock),
        "thread_local" if macro_call => Some(Rule::Thread),
        "rand" | "getrandom" | "fastrand" | "RandomState" => Some(Rule::Random),
        "HashMap" | "HashSet" | "hash_map" | "hash_set" | "DefaultHasher" => Some(Rule::HashOrder),
        "print" | "println" | "eprint" | "eprintln" | "dbg" if macro_call => Some(Rule::Print),
        _ => None,
    }
}

/// Modules of the standard library that mean trouble, in a path or in a `use` tree.
fn by_path(code: &[Token], root: usize) -> Vec<(usize, Rule, String)> {
    let line = code[root].line;
    let name = code[root].ident().unwrap_or_default().to_owned();
    if code.get(root + 1).and_then(Token::ident) == Some("as") {
        return vec![(line, Rule::World, format!("{name} under another name"))];
    }
    let mut paths = Vec::new();
    follow(code, root, &mut Vec::new(), &mut paths);
    let mut found = Vec::new();
    for (line, path) in paths {
        let segment = |at: usize| path.get(at).map(String::as_str);
        let rule = match (segment(1), segment(2)) {
            (Some("time"), Some("Duration")) => None,
            (Some("time"), _) => Some(Rule::Clock),
            (Some("thread"), _) => Some(Rule::Thread),
            (Some("random"), _) => Some(Rule::Random),
            (Some("fs" | "net" | "env" | "process" | "os" | "*"), _) => Some(Rule::World),
            (Some("io"), Some("stdin" | "stdout" | "stderr")) => Some(Rule::World),
            (_, _) => None,
        };
        if let Some(rule) = rule {
            let shown = path
                .iter()
                .take(3)
                .map(String::as_str)
                .collect::<Vec<_>>()
                .join("::");
            found.push((line, rule, shown));
        }
    }
    found
}

/// Collects every path that starts at `at`, opening the braces of a `use` tree. Answers where the
/// path ends.
fn follow(
    code: &[Token],
    at: usize,
    path: &mut Vec<String>,
    paths: &mut Vec<(usize, Vec<String>)>,
) -> usize {
    let Some(token) = code.get(at) else { return at };
    if token.is('{') {
        let mut at = at + 1;
        while code.get(at).is_some_and(|token| !token.is('}')) {
            let end = follow(code, at, path, paths);
            // Past a comma, an `as name`, or whatever else this tree holds.
            at = end.max(at + 1);
        }
        return at + 1;
    }
    let Some(segment) = token.ident().or_else(|| token.is('*').then_some("*")) else {
        return at;
    };
    path.push(segment.to_owned());
    let colons = code.get(at + 1).is_some_and(|next| next.is(':'))
        && code.get(at + 2).is_some_and(|next| next.is(':'));
    let continues = code
        .get(at + 3)
        .is_some_and(|next| next.ident().is_some() || next.is('{') || next.is('*'));
    let end = if colons && continues {
        follow(code, at + 3, path, paths)
    } else {
        paths.push((token.line, path.clone()));
        at + 1
    };
    path.pop();
    end
}

#[cfg(test)]
mod tests {
    use super::super::graph::Crate;
    use super::super::table::TABLE;
    use super::*;

    fn breaches(krate: &str, text: &str) -> Vec<String> {
        let this = Crate {
            package: format!("bigfleet-{krate}"),
            folder: format!("crates/{krate}"),
            workspace_lints: true,
            dependencies: Vec::new(),
        };
        let graph = Graph {
            crates: vec![this],
            ..Graph::default()
        };
        let file = File {
            path: format!("crates/{krate}/src/lib.rs"),
            text: text.to_owned(),
        };
        problems(&graph, &[file], TABLE)
            .iter()
            .map(Problem::to_string)
            .collect()
    }

    fn rules(text: &str) -> Vec<&'static str> {
        let mut rules: Vec<&str> = named(&tokens(text))
            .iter()
            .map(|(_, rule, _)| rule.name())
            .collect();
        rules.sort_unstable();
        rules.dedup();
        rules
    }

    #[test]
    fn a_planted_clock_is_named_with_its_line() {
        assert_eq!(
            breaches(
                "engine",
                "//! Decides.\n\nuse std::time::{Duration, Instant};\n"
            ),
            [
                "crates/engine/src/lib.rs:3: [core-clock] `engine` may not use `Instant`: time is \
                 an argument",
                "crates/engine/src/lib.rs:3: [core-clock] `engine` may not use \
                 `std::time::Instant`: time is an argument",
            ]
        );
    }

    #[test]
    fn a_planted_hash_map_is_named_with_its_line() {
        assert_eq!(
            breaches(
                "model",
                "use std::collections::BTreeMap;\ntype A = std::collections::HashMap<u8, u8>;"
            ),
            [
                "crates/model/src/lib.rs:2: [core-hash-order] `model` may not use `HashMap`: its \
              order differs between runs; use BTreeMap, BTreeSet or a sorted Vec"
            ]
        );
    }

    #[test]
    fn every_door_to_the_world_is_watched() {
        for (text, rule) in [
            ("let now = SystemTime::now();", "core-clock"),
            ("use std::time;", "core-clock"),
            ("std::thread::spawn(f);", "core-thread"),
            ("use std::{sync::Arc, thread};", "core-thread"),
            ("thread_local!(static A: u8 = 0);", "core-thread"),
            ("let x: u8 = rand::random();", "core-random"),
            ("use std::hash::RandomState;", "core-random"),
            (
                "use std::collections::{BTreeMap, HashSet};",
                "core-hash-order",
            ),
            ("use std::collections::hash_map::Entry;", "core-hash-order"),
            (
                "use std::{collections::{BTreeMap}, fs::File};",
                "core-outside-world",
            ),
            ("std::env::var(\"HOME\")", "core-outside-world"),
            ("std::net::TcpStream::connect(a)", "core-outside-world"),
            ("std::process::exit(1)", "core-outside-world"),
            ("use ::std as s;", "core-outside-world"),
            ("use std::*;", "core-outside-world"),
            ("std::io::stdout().lock()", "core-outside-world"),
            ("println!(\"hello\");", "core-print"),
        ] {
            assert_eq!(rules(text), [rule], "{text}");
        }
    }

    #[test]
    fn what_a_core_needs_is_left_alone() {
        for text in [
            "use core::time::Duration;",
            "use std::time::Duration; let d = std::time::Duration::from_secs(1);",
            "use std::collections::{BTreeMap, btree_map::Entry};",
            "use std::{cmp::Reverse, fmt, sync::Arc};",
            "// Instant, HashMap and std::thread are banned here.",
            "let text = \"std::fs::read and SystemTime\";",
            "let print = 1; fn dbg() {}",
        ] {
            assert_eq!(rules(text), Vec::<&str>::new(), "{text}");
        }
    }

    #[test]
    fn a_runtime_may_do_what_a_core_may_not() {
        assert!(breaches("shard", "use std::time::Instant; use std::fs;").is_empty());
    }
}
