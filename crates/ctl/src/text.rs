//! Text: columns, amounts and names, fit for a terminal.
//!
//! Names come from files and from other processes. None may move the cursor, colour a line or turn
//! the direction of writing, so every character that is not plainly visible is escaped on its way out.

use std::collections::BTreeMap;

use bigfleet_model::quantity::{format_short, parse_demand};
use bigfleet_model::{Amounts, shown};
use comfy_table::{Cell, CellAlignment, Color, Table, presets::NOTHING};

/// What a cell says about itself, for those who see colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tint {
    /// Nothing.
    #[default]
    Plain,
    /// As it should be.
    Good,
    /// On its way, or held.
    Notable,
    /// Somebody should look.
    Bad,
}

/// One cell of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Field {
    /// What it says; made fit to print when it is drawn.
    pub text: String,
    /// Its colour.
    pub tint: Tint,
    /// A number: written to the right.
    pub is_number: bool,
}

impl Field {
    /// A number.
    pub fn number(value: impl ToString) -> Self {
        Self {
            text: value.to_string(),
            is_number: true,
            ..Self::default()
        }
    }

    /// A text with a colour.
    pub fn tinted(text: impl Into<String>, tint: Tint) -> Self {
        Self {
            text: text.into(),
            tint,
            is_number: false,
        }
    }
}

impl<T: Into<String>> From<T> for Field {
    fn from(text: T) -> Self {
        Self::tinted(text, Tint::Plain)
    }
}

/// Columns without lines, as other command line tools print them.
pub fn columns(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let fields = |row: Vec<String>| row.into_iter().map(Field::from).collect();
    table(Some(header), rows.into_iter().map(fields), false)
}

/// The same, with colours if there are to be any, and with or without the line above.
pub fn table(
    header: Option<&[&str]>,
    rows: impl IntoIterator<Item = Vec<Field>>,
    colour: bool,
) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING);
    if colour {
        table.enforce_styling()
    } else {
        table.force_no_tty()
    };
    if let Some(header) = header {
        table.set_header(header);
    }
    for row in rows {
        table.add_row(row.into_iter().map(cell));
    }
    if table.is_empty() && header.is_none() {
        return String::new();
    }
    let lines = table.lines().map(|line| line.trim_end().to_owned() + "\n");
    lines.collect()
}

/// A text in its colour, if there are to be any.
pub(crate) fn tinted(text: &str, tint: Tint, colour: bool) -> String {
    let code = match tint {
        Tint::Plain => return text.to_owned(),
        Tint::Good => 32,
        Tint::Notable => 33,
        Tint::Bad => 31,
    };
    if colour {
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    } else {
        text.to_owned()
    }
}

fn cell(field: Field) -> Cell {
    let cell = Cell::new(printable(&field.text));
    let cell = if field.is_number {
        cell.set_alignment(CellAlignment::Right)
    } else {
        cell
    };
    match field.tint {
        Tint::Plain => cell,
        Tint::Good => cell.fg(Color::Green),
        Tint::Notable => cell.fg(Color::Yellow),
        Tint::Bad => cell.fg(Color::Red),
    }
}

/// The text with everything escaped that is not plainly visible. Quotes and backslashes are.
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '\'' | '\\' => out.push(c),
            _ => out.extend(c.escape_debug()),
        }
    }
    out
}

/// The same for several lines: line ends stay.
pub fn printable_lines(text: &str) -> String {
    let lines = text.split('\n').map(printable);
    lines.collect::<Vec<_>>().join("\n")
}

/// A shard's reason without the ids of its rules, as in `… is connected (AD-1)`: they mean something in
/// a log, and nothing to who asked.
pub(crate) fn without_rule_ids(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(" (") {
        plain += before;
        match after.split_once(')') {
            Some((inside, after)) if is_rule_id(inside) => rest = after,
            _ => {
                plain += " (";
                rest = after;
            }
        }
    }
    plain + rest
}

fn is_rule_id(text: &str) -> bool {
    let all = |part: &str, of: fn(&char) -> bool| !part.is_empty() && part.chars().all(|c| of(&c));
    let parts = text.split_once('-');
    parts.is_some_and(|(letters, digits)| {
        all(letters, char::is_ascii_uppercase) && all(digits, char::is_ascii_digit)
    })
}

/// `cpu=4 memory=16Gi`.
pub fn amounts(amounts: &Amounts) -> String {
    let word = |(name, milli): (&bigfleet_model::Dimension, i128)| {
        format!("{}={}", shown(name.as_str()), format_short(milli))
    };
    let words: Vec<String> = amounts.iter().map(word).collect();
    words.join(" ")
}

/// The same of what the wire says. A quantity that is none stands as it came.
pub fn quantities(quantities: &BTreeMap<String, String>) -> String {
    let word = |(name, text): (&String, &String)| match parse_demand(text) {
        Ok(milli) => format!("{name}={}", format_short(milli)),
        Err(_) => format!("{name}={text}"),
    };
    let words: Vec<String> = quantities.iter().map(word).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_as_short_as_people_write_them() {
        let wire = [("cpu", "1.5"), ("memory", "1073741824"), ("x", "many")];
        let wire = wire.map(|(name, text)| (name.to_owned(), text.to_owned()));
        assert_eq!(quantities(&wire.into()), "cpu=1500m memory=1Gi x=many");
    }

    #[test]
    fn no_name_moves_the_cursor_or_turns_the_line() {
        let text = columns(&["A"], [vec!["x\u{1b}[2Jy".to_owned()]]);
        assert!(text.contains("x\\u{1b}[2Jy"), "{text}");
        assert_eq!(printable("a\u{202e}b\u{9b}c\n"), "a\\u{202e}b\\u{9b}c\\n");
        assert_eq!(printable("it's \"ö\" \\"), "it's \"ö\" \\");
        assert_eq!(printable_lines("a\nb\tc"), "a\nb\\tc");
    }

    #[test]
    fn rule_ids_are_left_out_and_nothing_else() {
        let plain = "cluster a has an operator connected";
        assert_eq!(without_rule_ids(&format!("{plain} (AD-1)")), plain);
        assert_eq!(
            without_rule_ids("held (SH-16); again (Q-5) soon"),
            "held; again soon"
        );
        for kept in ["rack (r-1)", "a (AB-)", "(AD-1", "x (AD-1", "f(x) (see b)"] {
            assert_eq!(without_rule_ids(kept), kept);
        }
    }

    #[test]
    fn colours_are_there_only_if_asked_for() {
        let rows = || [vec![Field::tinted("short", Tint::Bad), Field::number(3)]];
        assert_eq!(table(None, rows(), false), " short  3\n");
        assert!(table(None, rows(), true).contains("\u{1b}["));
        assert_eq!(table(None, [], false), "");
    }
}
