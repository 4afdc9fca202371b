//! Commands: what a page tells people to type can be typed.
//!
//! ```text
//! docs/commands.txt   every verb and flag of `bigfleet`, held to the binary by one of its tests ─┐
//! our own flags       asked of the parser of this very program                                   ├─▶ Known
//! crates/*/tests      which tests can be named after `--test`                                    ┘
//! ```
//!
//! Looked at are spans and blocks of code: lines that begin with `bigfleet`, `cargo xtask`, `cargo run`
//! or `cargo test`, and flags that stand alone.

use std::collections::{BTreeMap, BTreeSet};

use super::markdown::{is_page, parse};
use super::{File, Problem, Rule};

/// The verbs and flags of `bigfleet`, one command per line.
const TREE: &str = "docs/commands.txt";
/// Flags of cargo and rustup that pages speak of.
const CARGO_FLAGS: &[&str] = &[
    "--release",
    "--locked",
    "--workspace",
    "--package",
    "--test",
    "--features",
    "--all",
    "--check",
    "--profile",
    "--bin",
    "--no-deps",
    "--all-targets",
    "-p",
    "-D",
];

/// Everything a page says to type that cannot be typed. `xtask` is our own command line, as lines of
/// the same form as [`TREE`].
pub(super) fn problems(files: &[File], packages: &BTreeSet<&str>, xtask: &str) -> Vec<Problem> {
    let tree = files.iter().find(|file| file.path == TREE);
    let known = Known {
        commands: read(tree.map_or("", |file| &file.text))
            .chain(read(xtask))
            .collect(),
        tests: tests(files),
        packages,
    };
    let mut found = Vec::new();
    for file in files.iter().filter(|file| is_page(file)) {
        let page = parse(&file.text);
        for piece in page.spans.iter().chain(&page.blocks) {
            for what in known.text(piece.text) {
                found.push(Problem::at(file, piece.line, Rule::StaleCommand, what));
            }
        }
    }
    found
}

/// What one command takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Takes {
    flags: BTreeSet<String>,
    /// Words that its first argument may be; none if it may be anything.
    words: Vec<String>,
}

struct Known<'a> {
    commands: BTreeMap<String, Takes>,
    /// Test targets by package folder.
    tests: BTreeSet<&'a str>,
    packages: &'a BTreeSet<&'a str>,
}

/// Lines such as `bigfleet get {clusters,needs} -o --output`.
fn read(text: &str) -> impl Iterator<Item = (String, Takes)> {
    let lines = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.map(|line| {
        let mut path = Vec::new();
        let mut takes = Takes::default();
        for word in line.split_whitespace() {
            if word.starts_with('-') {
                takes.flags.insert(word.to_owned());
            } else if let Some(words) = word.strip_prefix('{') {
                let words = words.trim_end_matches('}').split(',');
                takes.words = words.map(str::to_owned).collect();
            } else {
                path.push(word);
            }
        }
        (path.join(" "), takes)
    })
}

fn tests(files: &[File]) -> BTreeSet<&str> {
    let below = files
        .iter()
        .filter_map(|file| file.path.strip_prefix("crates/"));
    let parts = below.map(|path| path.split('/').collect::<Vec<_>>());
    parts
        .filter_map(|parts| match parts.as_slice() {
            [_, "tests", name] => name.strip_suffix(".rs"),
            [_, "tests", name, "main.rs"] => Some(*name),
            _ => None,
        })
        .collect()
}

impl Known<'_> {
    fn text(&self, text: &str) -> Vec<String> {
        // What follows a wide gap or a hash is said about the command, not typed.
        let typed = text.trim_start().trim_start_matches("$ ");
        let typed = typed.split("  ").next().unwrap_or_default();
        let typed = typed.split(" #").next().unwrap_or_default();
        let parts = typed.split(['|', ';']).flat_map(|part| part.split("&&"));
        parts.flat_map(|part| self.command(part)).collect()
    }

    fn command(&self, text: &str) -> Vec<String> {
        let strip = |word: &str| {
            let word = word.trim_matches(|c: char| "[](),".contains(c));
            word.trim_end_matches(['.', ':']).to_owned()
        };
        let words: Vec<String> = text.split_whitespace().map(strip).collect();
        // `NAME=value` before a command is for its environment.
        let start = words
            .iter()
            .position(|word| !word.contains('=') || word.starts_with('-'));
        let words: Vec<&str> = words[start.unwrap_or(words.len())..]
            .iter()
            .map(String::as_str)
            .collect();
        match words.as_slice() {
            ["bigfleet", rest @ ..] => self.invocation("bigfleet", rest),
            ["cargo", "xtask", rest @ ..] => self.invocation("cargo xtask", rest),
            [
                "cargo",
                verb @ ("run" | "test" | "build" | "check" | "clippy" | "bench"),
                rest @ ..,
            ] => self.cargo(verb, rest),
            [flag, ..] if flag.starts_with("--") && 2 < flag.len() => {
                self.flag(flag).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    /// A flag that stands alone is one of some command.
    fn flag(&self, flag: &str) -> Option<String> {
        let flag = flag.split('=').next().unwrap_or(flag);
        let known = CARGO_FLAGS.contains(&flag)
            || self
                .commands
                .values()
                .any(|takes| takes.flags.contains(flag));
        (!known && is_word(flag)).then(|| format!("no command has {flag}"))
    }

    fn invocation(&self, root: &str, words: &[&str]) -> Vec<String> {
        let mut found = Vec::new();
        let mut path = root.to_owned();
        let mut flags: BTreeSet<&str> = self.flags_of(&path);
        let mut first = true;
        for word in words {
            let flag = word.split('=').next().unwrap_or(word);
            if flag.starts_with('-') && 1 < flag.len() {
                first = false;
                if is_word(flag) && !flags.contains(flag) {
                    found.push(format!("{path} has no {flag}"));
                }
            } else if first && is_word(word) {
                let below = format!("{path} {word}");
                if self.commands.contains_key(&below) {
                    path = below;
                    flags.extend(self.flags_of(&path));
                } else {
                    first = false;
                    found.extend(self.first_argument(&path, word));
                }
            }
        }
        found
    }

    fn flags_of(&self, path: &str) -> BTreeSet<&str> {
        let takes = self.commands.get(path);
        let flags = takes.into_iter().flat_map(|takes| &takes.flags);
        flags.map(String::as_str).collect()
    }

    fn first_argument(&self, path: &str, word: &str) -> Option<String> {
        let below = format!("{path} ");
        let is_group = self.commands.keys().any(|name| name.starts_with(&below));
        let takes = self.commands.get(path)?;
        let allowed = takes.words.is_empty() || takes.words.iter().any(|allowed| allowed == word);
        (is_group || !allowed).then(|| format!("there is no {path} {word}"))
    }

    fn cargo(&self, verb: &str, words: &[&str]) -> Vec<String> {
        let mut found = Vec::new();
        let ours = words
            .iter()
            .position(|word| *word == "--")
            .unwrap_or(words.len());
        let (cargos, rest) = words.split_at(ours);
        let mut package = None;
        for pair in cargos.windows(2) {
            match pair {
                ["-p" | "--package", name] if is_word(name) => {
                    package = Some(*name);
                    if !self.packages.contains(name) {
                        found.push(format!("there is no crate {name}"));
                    }
                }
                ["--test", name] if is_word(name) && !self.tests.contains(name) => {
                    found.push(format!("there is no test {name}"));
                }
                _ => {}
            }
        }
        if verb == "run" && package.is_none_or(|package| package == "bigfleet") {
            found.extend(self.invocation("bigfleet", rest.get(1..).unwrap_or_default()));
        }
        found
    }
}

/// Not a placeholder such as `<verb>`, `…` or `NAME`.
fn is_word(word: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
    let short = word.len() == 2 && word.starts_with('-');
    !word.is_empty() && (short || word.chars().all(plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(page: &str, expected: &[&str]) {
        let file = |path: &str, text: &str| File {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        let tree = "# comment\nbigfleet --help\nbigfleet get {clusters,needs} -o --output\n\
                    bigfleet sim\nbigfleet sim run --seed\nbigfleet decide --engine\n";
        let files = [
            file("docs/a.md", page),
            file(TREE, tree),
            file("crates/sim/tests/golden.rs", ""),
            file("crates/sim/tests/sweeps/main.rs", ""),
        ];
        let xtask = "cargo xtask\ncargo xtask tidy --root\n";
        let packages = BTreeSet::from(["bigfleet", "bigfleet-sim"]);
        let found: Vec<String> = problems(&files, &packages, xtask)
            .iter()
            .map(Problem::to_string)
            .collect();
        assert_eq!(found, expected, "{page}");
    }

    #[test]
    fn what_can_be_typed_may_be_written() {
        check(
            "`bigfleet get clusters -o json`, `--engine oracle`, `bigfleet sim run NAME --seed 7`, `cargo xtask tidy`\n\
             ```sh\n$ bigfleet decide examples/fleet.json --engine=full | jq .x\nbigfleet <verb> --help  # --nothing\n\
             A=1 cargo test -p bigfleet-sim --test golden -- --nocapture\ncargo test --test sweeps\n\
             cargo run --release -- get needs\nbigfleet get     --lists things\n```\n",
            &[],
        );
    }

    #[test]
    fn a_flag_there_is_not_is_named() {
        check(
            "`bigfleet get clusters --wide` and `--wide`\n```sh\ncargo xtask tidy --fix\ncargo run -- sim run a --speed 3\n```\n",
            &[
                "docs/a.md:1: [stale-command] bigfleet get has no --wide",
                "docs/a.md:1: [stale-command] no command has --wide",
                "docs/a.md:3: [stale-command] cargo xtask tidy has no --fix",
                "docs/a.md:4: [stale-command] bigfleet sim run has no --speed",
            ],
        );
    }

    #[test]
    fn a_verb_crate_or_test_there_is_not_is_named() {
        check(
            "`bigfleet fly`, `bigfleet sim walk`, `bigfleet get pods`, `cargo xtask fly`, `cargo test -p bigfleet-gone --test gone`",
            &[
                "docs/a.md:1: [stale-command] there is no bigfleet fly",
                "docs/a.md:1: [stale-command] there is no bigfleet sim walk",
                "docs/a.md:1: [stale-command] there is no bigfleet get pods",
                "docs/a.md:1: [stale-command] there is no cargo xtask fly",
                "docs/a.md:1: [stale-command] there is no crate bigfleet-gone",
                "docs/a.md:1: [stale-command] there is no test gone",
            ],
        );
    }
}
