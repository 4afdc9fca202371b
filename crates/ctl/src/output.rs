//! Output: the same records as a table, as more columns, as JSON or as YAML.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::text::{Field, table};
use crate::when::{Moment, here};
use crate::{record, select::Fact};

/// In which form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "flags", derive(clap::ValueEnum))]
pub enum Form {
    /// For people.
    #[default]
    Table,
    /// For people with a wide screen.
    Wide,
    /// One object.
    Json,
    /// The same object as YAML.
    Yaml,
}

/// How an answer is written.
#[derive(Clone, Copy, Debug, Default)]
pub struct Style {
    /// In which form.
    pub form: Form,
    /// Leave the line with the names of columns out.
    pub no_headers: bool,
    /// Whether there are colours.
    pub colour: bool,
}

/// An answer: what goes to stdout, and what a person should know besides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// For stdout.
    pub text: String,
    /// For stderr, a line each.
    pub notes: Vec<String>,
}

/// A kind of thing that can be listed.
pub(crate) trait Shown: Serialize {
    /// What one is called.
    const ONE: &'static str;
    /// What several are called.
    const MANY: &'static str;
    /// The columns, then those of `-o wide`.
    const COLUMNS: (&'static [&'static str], &'static [&'static str]);

    /// Whether it is what somebody calls so.
    fn is_called(&self, name: &str) -> bool;
    /// What a selector sees under a key; nothing if there is nothing.
    fn fact(&self, key: &str) -> Option<Fact>;
    /// The cells of the columns, at that moment.
    fn fields(&self, now: i64) -> Vec<Field>;
    /// The cells of the columns of `-o wide`.
    fn more(&self, now: i64) -> Vec<Field>;
}

/// What an answer was taken from.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Taken {
    /// The shard; null where the answer does not say.
    pub(crate) shard: Option<String>,
    /// The cycle; 0 means that none has run yet.
    pub(crate) cycle: i64,
    /// When that was.
    #[serde(serialize_with = "record::at")]
    pub(crate) computed_at: Moment,
    /// How many there are, if the shard sent fewer.
    #[serde(skip)]
    pub(crate) total: Option<usize>,
}

impl Taken {
    /// The moment from which ages count.
    pub(crate) fn now(&self) -> i64 {
        self.computed_at.unwrap_or_else(here)
    }
}

/// A list as a document.
#[derive(Serialize)]
struct Document<'a, T> {
    #[serde(flatten)]
    taken: &'a Taken,
    items: &'a [T],
}

/// Writes a list.
pub(crate) fn list<T: Shown>(items: &[T], taken: &Taken, style: Style) -> String {
    match style.form {
        Form::Json => json(&Document { taken, items }),
        Form::Yaml => yaml(&Document { taken, items }),
        Form::Table => rows(items, taken.now(), style, false),
        Form::Wide => rows(items, taken.now(), style, true),
    }
}

fn rows<T: Shown>(items: &[T], now: i64, style: Style, wide: bool) -> String {
    if items.is_empty() {
        return String::new();
    }
    let (columns, more) = T::COLUMNS;
    let header: Vec<&str> = if wide {
        columns.iter().chain(more).copied().collect()
    } else {
        columns.to_vec()
    };
    let cells = |item: &T| {
        let mut cells = item.fields(now);
        if wide {
            cells.extend(item.more(now));
        }
        cells
    };
    let header = (!style.no_headers).then_some(header.as_slice());
    table(header, items.iter().map(cells), style.colour)
}

/// JSON that a terminal can be shown.
pub(crate) fn json(value: &impl Serialize) -> String {
    escaped(value, |c| {
        let mut units = [0; 2];
        let units = c.encode_utf16(&mut units).iter();
        units.map(|unit| format!("\\u{unit:04x}")).collect()
    })
}

/// YAML that a terminal can be shown. If somebody chose a name not to be seen, the document is written
/// as JSON is, which is YAML too and has an escape for every character.
#[expect(
    clippy::expect_used,
    reason = "writing our own records, whose keys are texts, into memory cannot fail"
)]
pub(crate) fn yaml(value: &impl Serialize) -> String {
    let text = serde_norway::to_string(value).expect("a record is YAML");
    if text.chars().all(|c| c == '\n' || is_visible(c)) {
        text
    } else {
        escaped(value, |c| format!("\\U{:08x}", u32::from(c)))
    }
}

/// JSON, with an escape for what it leaves as it is and a terminal would obey. Only inside of a string
/// can there be such a character.
#[expect(
    clippy::expect_used,
    reason = "writing our own records, whose keys are texts, into memory cannot fail"
)]
fn escaped(value: &impl Serialize, escape: impl Fn(char) -> String) -> String {
    let text = serde_json::to_string_pretty(value).expect("a record is JSON");
    let mut out = String::with_capacity(text.len() + 1);
    for c in text.chars() {
        if c == '\n' || is_visible(c) {
            out.push(c)
        } else {
            out += &escape(c)
        }
    }
    out + "\n"
}

fn is_visible(c: char) -> bool {
    matches!(c, '"' | '\'' | '\\') || c.escape_debug().eq([c])
}

/// `a=1,b=2`.
pub(crate) fn labels(labels: &BTreeMap<String, String>) -> String {
    let words = labels.iter().map(|(key, value)| format!("{key}={value}"));
    words.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_and_yaml_are_valid_and_quiet_whatever_the_names() {
        for hostile in [
            "plain",
            "x\u{1b}[2Jy",
            "c1 \u{9b}31m",
            "next\u{85}line",
            "turned \u{202e}round",
            "line\nline\r\n",
            "\u{7f}",
            "tag \u{e0041}",
            "it's \"quoted\" \\",
            "ö: - # {",
        ] {
            let value = BTreeMap::from([("name", hostile)]);
            let (json, yaml) = (json(&value), yaml(&value));
            for text in [&json, &yaml] {
                let raw = text.chars().find(|c| *c != '\n' && !is_visible(*c));
                assert_eq!(raw, None, "{text:?}");
            }
            let read: BTreeMap<String, String> = serde_json::from_str(&json).unwrap();
            assert_eq!(read["name"], hostile);
            let read: BTreeMap<String, String> = serde_norway::from_str(&yaml).unwrap();
            assert_eq!(read["name"], hostile, "{yaml}");
        }
    }
}
