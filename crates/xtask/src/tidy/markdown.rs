//! Markdown: the parts of a page that a machine can check: headings, links and what is set as code.
//!
//! Not a parser of all of it. A page of ours has headings with `#`, fenced blocks with three backticks,
//! spans of code within one line, and links within one line.

use super::File;

/// A piece of a page, and the line it is on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece<'a> {
    pub(super) line: usize,
    pub(super) text: &'a str,
}

/// What a page holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Page<'a> {
    /// Headings, without their `#`.
    pub(super) headings: Vec<Piece<'a>>,
    /// Spans of code in a sentence.
    pub(super) spans: Vec<Piece<'a>>,
    /// Lines of fenced blocks.
    pub(super) blocks: Vec<Piece<'a>>,
    /// Where links point to.
    pub(super) links: Vec<Piece<'a>>,
}

/// A page a person reads; specifications and decisions included.
pub(super) fn is_page(file: &File) -> bool {
    file.path.ends_with(".md")
}

/// The parts of a page.
pub(super) fn parse(text: &str) -> Page<'_> {
    let mut page = Page::default();
    let mut fenced = false;
    for (index, text) in text.lines().enumerate() {
        let line = index + 1;
        if text.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if fenced {
            page.blocks.push(Piece { line, text });
        } else {
            if let Some(heading) = heading(text) {
                page.headings.push(Piece {
                    line,
                    text: heading,
                });
            }
            sentence(&mut page, line, text);
        }
    }
    page
}

fn heading(line: &str) -> Option<&str> {
    let rest = line.trim_start_matches('#');
    (rest.len() < line.len())
        .then(|| rest.strip_prefix(' '))
        .flatten()
        .map(str::trim)
}

fn sentence<'a>(page: &mut Page<'a>, line: usize, text: &'a str) {
    // Every second part between backticks is code.
    for (at, part) in text.split('`').enumerate() {
        if at % 2 == 1 {
            page.spans.push(Piece { line, text: part });
        }
    }
    for (at, _) in text.match_indices("](") {
        let rest = &text[at + 2..];
        if let Some(end) = rest.find(')') {
            page.links.push(Piece {
                line,
                text: &rest[..end],
            });
        }
    }
}

/// The anchor under which a heading can be linked to.
pub(super) fn anchor(heading: &str) -> String {
    let kept = heading
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| {
        if c == ' ' {
            '-'
        } else {
            c.to_ascii_lowercase()
        }
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts<'a>(pieces: &[Piece<'a>]) -> Vec<(usize, &'a str)> {
        pieces
            .iter()
            .map(|piece| (piece.line, piece.text))
            .collect()
    }

    #[test]
    fn a_page_is_taken_apart() {
        let page = parse(
            "# One `a`\n\nsee [b](c.md#d), `e` and [`f`](g)\n```sh\n# no heading `h`\n```\n## 2. Two\n",
        );
        assert_eq!(texts(&page.headings), [(1, "One `a`"), (7, "2. Two")]);
        assert_eq!(texts(&page.spans), [(1, "a"), (3, "e"), (3, "f")]);
        assert_eq!(texts(&page.blocks), [(5, "# no heading `h`")]);
        assert_eq!(texts(&page.links), [(3, "c.md#d"), (3, "g")]);
    }

    #[test]
    fn an_anchor_is_the_one_a_browser_jumps_to() {
        assert_eq!(
            anchor("6. Profile and fingerprint"),
            "6-profile-and-fingerprint"
        );
        assert_eq!(anchor("What `tidy` checks"), "what-tidy-checks");
    }
}
