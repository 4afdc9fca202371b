//! The map: ARCHITECTURE.md has one entry per crate, and each says what is absent on purpose.

use std::collections::BTreeSet;

use super::{File, Problem, Rule};

const PAGE: &str = "ARCHITECTURE.md";

/// Crates without an entry, entries without a crate, and entries without an invariant. `crates` are the
/// names of the folders below `crates/`.
pub(super) fn problems(files: &[File], crates: &BTreeSet<&str>) -> Vec<Problem> {
    let Some(page) = files.iter().find(|file| file.path == PAGE) else {
        return Vec::new();
    };
    let entries = entries(&page.text);
    let mut found = Vec::new();
    for entry in &entries {
        if !crates.contains(entry.name) {
            let what = format!("the map has an entry for {}, which is no crate", entry.name);
            found.push(Problem::at(page, entry.line, Rule::Map, what));
        } else if !entry.text.contains("**Invariant:**") {
            let what = format!(
                "the entry of {} does not end in its **Invariant:**",
                entry.name
            );
            found.push(Problem::at(page, entry.line, Rule::Map, what));
        }
    }
    let named: BTreeSet<&str> = entries.iter().map(|entry| entry.name).collect();
    for name in crates.difference(&named) {
        found.push(Problem::new(
            PAGE,
            Rule::Map,
            format!("the map has no entry for {name}"),
        ));
    }
    found
}

struct Entry<'a> {
    line: usize,
    name: &'a str,
    text: String,
}

/// Paragraphs that begin with ``**`name`** —``.
fn entries(text: &str) -> Vec<Entry<'_>> {
    let mut entries: Vec<Entry<'_>> = Vec::new();
    let mut within = false;
    for (index, line) in text.lines().enumerate() {
        let opened = line
            .strip_prefix("**`")
            .and_then(|rest| rest.split_once("`** —"));
        if let Some((name, _)) = opened {
            entries.push(Entry {
                line: index + 1,
                name,
                text: String::new(),
            });
        }
        within = (within || opened.is_some()) && !line.is_empty();
        if let Some(entry) = entries.last_mut().filter(|_| within) {
            entry.text.push_str(line);
            entry.text.push('\n');
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let page = File {
            path: PAGE.to_owned(),
            text: text.to_owned(),
        };
        let found: Vec<String> = problems(&[page], &BTreeSet::from(["engine", "model"]))
            .iter()
            .map(Problem::to_string)
            .collect();
        assert_eq!(found, expected);
    }

    const MODEL: &str = "**`model`** — words.\n**Invariant:** none.\n\n";

    #[test]
    fn one_entry_per_crate_is_a_map() {
        check(
            &format!("{MODEL}**`engine`** — decides.\nSlowly. **Invariant:** no clock.\n"),
            &[],
        );
    }

    #[test]
    fn what_the_map_lacks_or_invents_is_named() {
        check(
            &format!("{MODEL}**`clock`** — time. **Invariant:** none.\n"),
            &[
                "ARCHITECTURE.md:4: [map] the map has an entry for clock, which is no crate",
                "ARCHITECTURE.md: [map] the map has no entry for engine",
            ],
        );
        check(
            &format!("{MODEL}**`engine`** — decides.\n\n**Invariant:** of something else.\n"),
            &["ARCHITECTURE.md:4: [map] the entry of engine does not end in its **Invariant:**"],
        );
    }
}
