//! Troubles: what is wrong with the shard as a whole, above everything else on the screen (SV-5).
//!
//! The shard says it in a sentence that begins with capitals: they stand in the first line instead of "acting",
//! the sentences below it, wrapped, and what does not fit has a mark.

use super::screen::{Connection, Screen};
use crate::text::printable;

/// What is wrong, worst first; nothing of a shard that does not answer, of which that is said instead.
pub(super) fn of(screen: &Screen) -> Vec<String> {
    let status = &screen.overview.status;
    if screen.connection != Connection::Live {
        return Vec::new();
    }
    let unready = Some(&status.not_ready).filter(|why| !why.is_empty());
    let unready = unready.map(|why| format!("NOT READY: {}", printable(why)));
    let troubles = status.troubles.iter().map(|text| printable(text));
    troubles.chain(unready).collect()
}

/// The capitals that a sentence begins with: `PROVIDER LOST for 25 s: …`.
pub(super) fn headline(trouble: &str) -> String {
    let is_capital = |word: &&str| word.chars().all(|c| c.is_ascii_uppercase());
    let words = trouble.split([' ', ':']).take_while(is_capital);
    words
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// The sentences in lines of this width, at most so many; a mark where there was more.
pub(super) fn lines(troubles: &[String], width: u16, most: usize) -> Vec<String> {
    let width = usize::from(width);
    let mut lines: Vec<String> = troubles.iter().flat_map(|text| wrap(text, width)).collect();
    if most < lines.len() {
        lines.truncate(most);
        if let Some(last) = lines.last_mut() {
            let kept: String = last.chars().take(width.saturating_sub(1)).collect();
            *last = kept + "…";
        }
    }
    lines
}

/// A sentence in lines, broken between words where that is possible; further lines are indented.
fn wrap(text: &str, width: usize) -> Vec<String> {
    const INDENT: &str = "  ";
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split(' ') {
        let mut word: Vec<char> = word.chars().collect();
        loop {
            let used = line.chars().count();
            let space = usize::from(!line.trim().is_empty());
            if used + space + word.len() <= width {
                line.extend(std::iter::repeat_n(' ', space).chain(word));
                break;
            }
            // Longer than a line by itself: broken where the line ends.
            if line.trim().is_empty() {
                let fits = word.len().min(width.saturating_sub(used).max(1));
                line.extend(word.drain(..fits));
            }
            lines.push(std::mem::replace(&mut line, INDENT.to_owned()));
        }
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_capitals_are_the_headline() {
        for (trouble, expected) in [
            (
                "PROVIDER LOST for 25 s: cloud:9000 cannot be reached",
                "PROVIDER LOST",
            ),
            ("DRY RUN: decisions are shown", "DRY RUN"),
            ("FENCED: another process runs this shard", "FENCED"),
            ("PAUSED for 60 s: everything is paused", "PAUSED"),
        ] {
            assert_eq!(headline(trouble), expected);
        }
    }

    #[test]
    fn sentences_wrap_between_words_and_what_is_left_out_has_a_mark() {
        let troubles = ["PAUSED for 60 s: everything".to_owned(), "x".repeat(30)];
        let whole = lines(&troubles, 20, 9);
        assert_eq!(
            whole,
            [
                "PAUSED for 60 s:",
                "  everything",
                &"x".repeat(20),
                &format!("  {}", "x".repeat(10))
            ]
        );
        assert_eq!(
            lines(&troubles, 20, 2),
            ["PAUSED for 60 s:", "  everything…"]
        );
    }
}
