//! Paths: what a page names is there: files, headings, crates, and the tests it says show a rule.
//!
//! | On a page | Has to be |
//! |---|---|
//! | a link `(../spec/model.md#8-needs)` | a file or folder, and a heading of it |
//! | `crates/sim/tests`, `docs/tour.md` as code | a file or folder of the repository |
//! | `src/state.rs`, `wire.md` as code | the end of a file's path |
//! | `bigfleet-engine` as code | a crate of the workspace |
//! | `a_gang_keeps_its_own` as code | a name in the code |

use std::collections::BTreeSet;

use super::markdown::{Piece, anchor, is_page, parse};
use super::{File, Problem, Rule};

/// Folders of the repository: whatever begins with one is a path in it.
const FOLDERS: &[&str] = &["crates/", "docs/", "proto/", "examples/", ".ci/"];
/// Files that are ours wherever a page names one.
const OURS: &[&str] = &[".rs", ".md", ".proto"];

/// Everything pages name that is not there.
pub(super) fn problems(files: &[File], packages: &BTreeSet<&str>) -> Vec<Problem> {
    let known = Known {
        files,
        paths: files.iter().map(|file| file.path.as_str()).collect(),
        packages,
    };
    let mut found = Vec::new();
    for file in files.iter().filter(|file| is_page(file)) {
        let page = parse(&file.text);
        let mut report = |piece: &Piece<'_>, what: Option<String>| {
            found.extend(what.map(|what| Problem::at(file, piece.line, Rule::StalePath, what)));
        };
        for link in &page.links {
            report(link, known.link(&file.path, link.text));
        }
        for piece in page.spans.iter().chain(&page.blocks) {
            for word in piece.text.split_whitespace() {
                report(piece, known.word(word));
            }
        }
        for span in &page.spans {
            report(span, known.name(span.text));
        }
    }
    found
}

struct Known<'a> {
    files: &'a [File],
    paths: BTreeSet<&'a str>,
    packages: &'a BTreeSet<&'a str>,
}

impl Known<'_> {
    fn link(&self, page: &str, target: &str) -> Option<String> {
        if target.contains("://") || target.starts_with("mailto:") {
            return None;
        }
        let (path, heading) = target.split_once('#').unwrap_or((target, ""));
        let path = if path.is_empty() {
            page.to_owned()
        } else {
            beside(page, path)
        };
        if !self.exists(&path) {
            return Some(format!("the link to {target} leads nowhere"));
        }
        let linked = self.files.iter().find(|file| file.path == path)?;
        let anchors = parse(&linked.text).headings;
        let there = heading.is_empty() || anchors.iter().any(|piece| anchor(piece.text) == heading);
        (!there).then(|| format!("{path} has no heading #{heading}"))
    }

    /// A file, or a folder with something in it.
    fn exists(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let folder = format!("{path}/");
        let inside = self.paths.range(folder.as_str()..).next();
        self.paths.contains(path) || inside.is_some_and(|first| first.starts_with(&folder))
    }

    fn word(&self, word: &str) -> Option<String> {
        let word = word
            .trim_matches(|c: char| "\"'(),;:".contains(c))
            .trim_end_matches('.');
        // A pattern or a placeholder names no one file.
        if word.contains(|c: char| "*<>{}[]…$=".contains(c)) {
            return None;
        }
        if FOLDERS.iter().any(|folder| word.starts_with(folder)) {
            return (!self.exists(word)).then(|| format!("there is no {word}"));
        }
        if word.starts_with("bigfleet-") && !self.packages.contains(word) {
            return Some(format!("there is no crate {word}"));
        }
        let is_file = OURS
            .iter()
            .any(|end| word.len() > end.len() && word.ends_with(end));
        if is_file && !word.starts_with(['/', '.']) && !word.contains("://") {
            let end = format!("/{word}");
            let there = |path: &&str| **path == *word || path.ends_with(&end);
            return (!self.paths.iter().any(there)).then(|| format!("there is no file {word}"));
        }
        None
    }

    /// A name with several underscores is one of the code: a test, a field, a metric.
    fn name(&self, span: &str) -> Option<String> {
        let is_name = span
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
        if !is_name || span.split('_').filter(|part| !part.is_empty()).count() < 3 {
            return None;
        }
        let code = self.files.iter().filter(|file| !is_page(file));
        let mut code = code.filter(|file| !file.path.starts_with("crates/xtask/"));
        // A counter gets its ending when it is written out.
        let stem = span.strip_suffix("_total").unwrap_or(span);
        (!code.any(|file| file.text.contains(stem)))
            .then(|| format!("nothing in the code is called {span}"))
    }
}

/// `docs/spec/../a.md` of `docs/spec/b.md` and `../a.md`, without the detour.
fn beside(page: &str, target: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(page: &str, expected: &[&str]) {
        let file = |path: &str, text: &str| File {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        let files = [
            file("docs/spec/a.md", page),
            file("docs/tour.md", "# Ten minutes\n"),
            file("crates/sim/tests/golden.rs", "fn a_gang_keeps_its_own() {}"),
        ];
        let found: Vec<String> = problems(&files, &BTreeSet::from(["bigfleet-sim"]))
            .iter()
            .map(Problem::to_string)
            .collect();
        assert_eq!(found, expected, "{page}");
    }

    #[test]
    fn what_is_there_may_be_named() {
        check(
            "[a](../tour.md#ten-minutes) [b](https://x.org/y.md) [c](#one) [d](../../crates/sim/)\n# One\n\
             `crates/sim/tests`, `docs/tour.md`, `tests/golden.rs`, `tour.md`, `bigfleet-sim`, `docs/*.rs`,\n\
             `a_gang_keeps_its_own`, `two_words`, ./data.md\n```\nBIGFLEET=1 cargo test -p bigfleet-sim\n```\n",
            &[],
        );
    }

    #[test]
    fn a_stale_path_is_named() {
        check(
            "# One\n[a](../gone.md), [b](../tour.md#eleven-minutes)\n`crates/sim/gone`, `src/gone.rs`, `gone.md`\n\
             ```sh\ncat docs/gone.txt\n```\n",
            &[
                "docs/spec/a.md:2: [stale-path] the link to ../gone.md leads nowhere",
                "docs/spec/a.md:2: [stale-path] docs/tour.md has no heading #eleven-minutes",
                "docs/spec/a.md:3: [stale-path] there is no crates/sim/gone",
                "docs/spec/a.md:3: [stale-path] there is no file src/gone.rs",
                "docs/spec/a.md:3: [stale-path] there is no file gone.md",
                "docs/spec/a.md:5: [stale-path] there is no docs/gone.txt",
            ],
        );
    }

    #[test]
    fn a_crate_or_test_that_is_gone_is_named() {
        check(
            "`bigfleet-gone` and `a_gang_gives_up_its_own`",
            &[
                "docs/spec/a.md:1: [stale-path] there is no crate bigfleet-gone",
                "docs/spec/a.md:1: [stale-path] nothing in the code is called a_gang_gives_up_its_own",
            ],
        );
    }
}
