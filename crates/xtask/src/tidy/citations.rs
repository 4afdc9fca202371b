//! Citations: a rule or a section that is cited somewhere is written down in `docs/`.
//!
//! ```text
//! **SH-5** in docs/spec/      defines a rule       SH-5 anywhere      cites it
//! **G9**   in docs/spec/      the same             G9                 cites it
//! ## 12. Phase 1 in engine.md defines a section    engine.md §12      cites it; in engine.md, §12 alone
//! 4. at the start of a line   defines a part of it wire 6.4.4         cites wire.md
//! ```
//!
//! A reader who meets an id must be able to look it up, so a citation that leads nowhere fails.

use std::collections::{BTreeMap, BTreeSet};

use super::{File, Problem, Rule, markdown};

/// Words that are spelt like the id of a rule.
const NOT_RULES: &[&str] = &["UTF-8", "CRC-32", "DEV-50", "E-7"];

/// Every citation without a definition.
pub(super) fn problems(files: &[File]) -> Vec<Problem> {
    let rules = rules(files);
    let pages = pages(files);
    let mut found = Vec::new();
    for file in files.iter().filter(|file| cites(&file.path)) {
        for (index, line) in file.text.lines().enumerate() {
            for id in ids(line) {
                if !rules.contains(id) {
                    let what = format!("{id} is defined nowhere in docs/spec/ (as **{id}**)");
                    found.push(Problem::at(file, index + 1, Rule::Citation, what));
                }
            }
            for (page, section) in sections(line, page_name(&file.path)) {
                if let Some(what) = missing(&pages, page, section) {
                    found.push(Problem::at(file, index + 1, Rule::Citation, what));
                }
            }
        }
    }
    found
}

/// Everything that is ours and written by hand, but this crate: its tests plant what is wrong.
fn cites(path: &str) -> bool {
    let written = [".rs", ".md", ".proto", ".toml", ".yaml", ".yml", ".sh"];
    written.iter().any(|end| path.ends_with(end)) && !path.starts_with("crates/xtask/")
}

fn is_spec(file: &&File) -> bool {
    file.path.starts_with("docs/spec/") && file.path.ends_with(".md")
}

/// The rules `docs/spec/` defines: ids in bold.
fn rules(files: &[File]) -> BTreeSet<&str> {
    let mut rules = BTreeSet::new();
    for file in files.iter().filter(is_spec) {
        for bold in file.text.split("**").skip(1).step_by(2) {
            rules.extend(ids(bold).into_iter().filter(|id| id.len() == bold.len()));
        }
    }
    rules
}

/// The ids of rules in a text: `SH-5`, `LIST-02`, `EX-NT3`, `G9`.
fn ids(text: &str) -> Vec<&str> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_'));
    words
        .filter(|word| is_id(word) && !NOT_RULES.contains(word))
        .collect()
}

fn is_id(word: &str) -> bool {
    if let Some(example) = word.strip_prefix("EX-") {
        let letters = example.trim_end_matches(|c: char| c.is_ascii_digit());
        return !letters.is_empty() && all(letters, |c| c.is_ascii_uppercase());
    }
    let (family, number) = match word.split_once('-') {
        Some(parts) => parts,
        None if word.starts_with('G') => word.split_at(1),
        None => return false,
    };
    let family_fits = (1..=5).contains(&family.len()) && all(family, |c| c.is_ascii_uppercase());
    let number_fits = (1..=2).contains(&number.len()) && all(number, |c| c.is_ascii_digit());
    family_fits && number_fits
}

fn all(text: &str, fits: impl Fn(char) -> bool) -> bool {
    text.chars().all(fits)
}

/// The numbered sections of each page, by the name of the page.
fn pages(files: &[File]) -> BTreeMap<&str, BTreeSet<String>> {
    let is_page = |file: &&File| markdown::is_page(file);
    let mut pages = BTreeMap::new();
    for file in files.iter().filter(is_page) {
        if let Some(name) = page_name(&file.path) {
            pages.entry(name).or_insert_with(|| numbered(&file.text));
        }
    }
    pages
}

fn page_name(path: &str) -> Option<&str> {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.ends_with(".md").then_some(name)
}

/// `6.4` of a heading `### 6.4 Blobs`, and `6.4.2` of the second item of its list.
fn numbered(text: &str) -> BTreeSet<String> {
    let mut numbers = BTreeSet::new();
    let mut section = String::new();
    for line in text.lines() {
        let (number, after) = leading_number(line.trim_start_matches('#').trim_start());
        if line.starts_with('#') {
            section = number.to_owned();
            numbers.insert(section.clone());
        } else if !section.is_empty() && after.starts_with(". ") && !number.contains('.') {
            numbers.insert(format!("{section}.{number}"));
        }
    }
    numbers
}

/// A number such as `6.4.2` and what follows it; a full stop after it does not belong to it.
fn leading_number(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .unwrap_or(text.len());
    let number = text[..end].trim_end_matches('.');
    (number, &text[number.len()..])
}

/// The sections a line cites, each with the page that is meant; `None` if the line does not say.
fn sections<'a>(line: &'a str, own: Option<&'a str>) -> Vec<(Option<&'a str>, &'a str)> {
    let mut cited = Vec::new();
    let mut page_before: Option<&str> = None;
    let mut end_before = 0;
    for (at, mark) in line.match_indices('§') {
        let (number, after) = leading_number(&line[at + mark.len()..]);
        if number.is_empty() {
            continue;
        }
        let joined = line[end_before..at].trim();
        let goes_on = end_before != 0 && matches!(joined, "," | "and" | "to" | "or" | "–" | "..");
        let page = if goes_on {
            page_before
        } else {
            named_before(&line[..at]).or(own)
        };
        cited.push((page, number));
        (page_before, end_before) = (page, line.len() - after.len());
    }
    for (at, mark) in line.match_indices("wire ") {
        let starts_word = !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let (number, _) = leading_number(&line[at + mark.len()..]);
        if starts_word && !number.is_empty() {
            cited.push((Some("wire.md"), number));
        }
    }
    cited
}

/// `engine.md` of `see docs/spec/engine.md `, of `[engine.md](engine.md) ` and of `` `engine.md` ``.
fn named_before(text: &str) -> Option<&str> {
    let text = text.trim_end().trim_end_matches([')', '`']);
    let start = text
        .rfind(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c)))
        .map_or(0, |at| {
            at + text[at..].chars().next().map_or(1, char::len_utf8)
        });
    page_name(&text[start..])
}

fn missing(
    pages: &BTreeMap<&str, BTreeSet<String>>,
    page: Option<&str>,
    section: &str,
) -> Option<String> {
    let Some(page) = page else {
        return Some(format!(
            "§{section} of which page? Write `page.md §{section}`"
        ));
    };
    let Some(sections) = pages.get(page) else {
        return Some(format!("§{section} is cited of {page}, which there is not"));
    };
    (!sections.contains(section)).then(|| format!("{page} has no section {section}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(files: &[(&str, &str)], expected: &[&str]) {
        let files: Vec<File> = files
            .iter()
            .map(|(path, text)| File {
                path: (*path).to_owned(),
                text: (*text).to_owned(),
            })
            .collect();
        let found: Vec<String> = problems(&files).iter().map(Problem::to_string).collect();
        assert_eq!(found, expected);
    }

    const SPEC: (&str, &str) = (
        "docs/spec/engine.md",
        "## 12. Phase 1\n- **O-1** Order.\n### 12.3 Pass B\n1. First.\n2. Second (**A-2**).\n- **EX-A1** so.\n\
         | **G9** | version |\n",
    );

    #[test]
    fn a_rule_that_is_written_down_may_be_cited_anywhere() {
        check(
            &[
                SPEC,
                (
                    "crates/engine/src/a.rs",
                    "// O-1, A-2..A-2 and EX-A1 (wire G9); UTF-8, SHA-256",
                ),
                ("README.md", "O-1"),
            ],
            &[],
        );
    }

    #[test]
    fn a_rule_nobody_wrote_down_is_named() {
        check(
            &[
                SPEC,
                (
                    "crates/engine/src/a.rs",
                    "fn a() {}\n// as ZZ-9 has it (O-1, O-12, G8, EX-A2)",
                ),
                ("docs/tour.md", "**ZZ-8** is defined in no specification"),
            ],
            &[
                "crates/engine/src/a.rs:2: [dangling-citation] ZZ-9 is defined nowhere in docs/spec/ (as **ZZ-9**)",
                "crates/engine/src/a.rs:2: [dangling-citation] O-12 is defined nowhere in docs/spec/ (as **O-12**)",
                "crates/engine/src/a.rs:2: [dangling-citation] G8 is defined nowhere in docs/spec/ (as **G8**)",
                "crates/engine/src/a.rs:2: [dangling-citation] EX-A2 is defined nowhere in docs/spec/ (as **EX-A2**)",
                "docs/tour.md:1: [dangling-citation] ZZ-8 is defined nowhere in docs/spec/ (as **ZZ-8**)",
            ],
        );
    }

    #[test]
    fn words_that_look_like_ids_are_not() {
        let text = "GPU-8x a-1 B2 m-1 AB-123 X- -1 ABCDEF-1 FNV-1a GO O-1x A1-2 G100 G";
        assert_eq!(ids(text), Vec::<&str>::new());
        assert_eq!(
            ids("(SE-4): K-1..K-5, LIST-02."),
            ["SE-4", "K-1", "K-5", "LIST-02"]
        );
    }

    #[test]
    fn a_section_is_looked_up_in_the_page_that_is_named() {
        let good = "//! engine.md §12 and §12.3, `docs/spec/engine.md` §12.3.2";
        check(&[SPEC, ("a.rs", good)], &[]);
        check(
            &[
                SPEC,
                (
                    "a.rs",
                    "// engine.md §13, §12.4 and §12.3.3\n// model.md §1\n// §12",
                ),
            ],
            &[
                "a.rs:1: [dangling-citation] engine.md has no section 13",
                "a.rs:1: [dangling-citation] engine.md has no section 12.4",
                "a.rs:1: [dangling-citation] engine.md has no section 12.3.3",
                "a.rs:2: [dangling-citation] §1 is cited of model.md, which there is not",
                "a.rs:3: [dangling-citation] §12 of which page? Write `page.md §12`",
            ],
        );
    }

    #[test]
    fn a_page_may_cite_itself_and_the_wire_contract_by_number() {
        let wire = (
            "docs/spec/wire.md",
            "## 6. Rules\n### 6.4 Blobs\nSee §6.\n1. One.\n§7\n",
        );
        check(
            &[
                wire,
                ("a.rs", "// wire 6.4, wire 6.4.1 and wire 12; a firewire 99"),
            ],
            &[
                "docs/spec/wire.md:5: [dangling-citation] wire.md has no section 7",
                "a.rs:1: [dangling-citation] wire.md has no section 12",
            ],
        );
    }
}
