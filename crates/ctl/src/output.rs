//! Output: the same records as a table, as more columns, as JSON or as YAML.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::text::{Field, printable, table};
use crate::when::{Moment, local_now};
use crate::{record, select::Fact};

/// The form an answer is written in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "flags", derive(clap::ValueEnum))]
pub enum Form {
    /// A table for people.
    #[default]
    Table,
    /// The same table with more columns.
    Wide,
    /// One JSON object.
    Json,
    /// The same object as YAML.
    Yaml,
}

/// How an answer is written.
#[derive(Clone, Copy, Debug, Default)]
pub struct Style {
    /// The form.
    pub form: Form,
    /// Leave out the line with the column names.
    pub no_headers: bool,
    /// Whether to use colours.
    pub colour: bool,
}

/// What a verb prints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The answer itself, for stdout.
    pub text: String,
    /// What a person should know besides, a line each, for stderr.
    pub notes: Vec<String>,
}

/// A record that `get` can list, filter and find by name.
pub(crate) trait Listable: Serialize {
    /// The word for one of them, as in "machine".
    const ONE: &'static str;
    /// The word for several, as in "machines".
    const MANY: &'static str;
    /// The names of the columns, and of those that `-o wide` adds.
    const COLUMNS: (&'static [&'static str], &'static [&'static str]);

    /// Whether a person who types this name means this record.
    fn is_called(&self, name: &str) -> bool;
    /// What a selector (`-l`) compares a key with; `None` if the record has nothing under it.
    fn fact(&self, key: &str) -> Option<Fact>;
    /// The cells of the columns; ages are counted up to `now`.
    fn fields(&self, now: i64) -> Vec<Field>;
    /// The cells of the columns that `-o wide` adds.
    fn more(&self, now: i64) -> Vec<Field>;
}

/// Which shard answered, and as of when.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct AnswerSource {
    /// The id of the shard; null where the answer does not say.
    pub(crate) shard: Option<String>,
    /// The cycle the answer is as of; 0 means that none has run yet.
    pub(crate) cycle: i64,
    /// When that cycle ran.
    #[serde(serialize_with = "record::at")]
    pub(crate) computed_at: Moment,
    /// The shard's clock when it answered.
    #[serde(serialize_with = "record::at")]
    pub(crate) answered_at: Moment,
    /// What concerns the whole shard and comes before anything else: paused, fenced, its provider lost.
    pub(crate) troubles: Vec<String>,
    /// Why the shard is not ready; empty if it is.
    pub(crate) not_ready: String,
    /// How many entries there are, if the shard sent fewer because of a limit.
    #[serde(skip)]
    pub(crate) total: Option<usize>,
}

impl AnswerSource {
    /// The moment from which ages count.
    pub(crate) fn now(&self) -> i64 {
        let said = self.answered_at.or(self.computed_at);
        said.unwrap_or_else(local_now)
    }

    /// Why the answer may be empty although there is something; `None` if it may not.
    pub(crate) fn unready(&self) -> Option<String> {
        match (self.not_ready.as_str(), self.cycle) {
            ("", 0) => Some("the shard has not finished its first cycle".to_owned()),
            ("", _) => None,
            (why, _) => Some(format!("the shard is not ready: {}", printable(why))),
        }
    }

    /// What a person is to read before anything else, a line each.
    pub(crate) fn first(&self) -> String {
        let lines = self.troubles.iter().map(|line| printable(line) + "\n");
        lines.collect()
    }
}

/// A list as JSON or YAML.
#[derive(Serialize)]
struct Document<'a, T> {
    #[serde(flatten)]
    source: &'a AnswerSource,
    items: &'a [T],
}

/// Writes a list.
pub(crate) fn list<T: Listable>(items: &[T], source: &AnswerSource, style: Style) -> String {
    match style.form {
        Form::Json => json(&Document { source, items }),
        Form::Yaml => yaml(&Document { source, items }),
        Form::Table | Form::Wide => {
            let rows = rows(items, source.now(), style, style.form == Form::Wide);
            if style.no_headers {
                rows
            } else {
                source.first() + &rows
            }
        }
    }
}

fn rows<T: Listable>(items: &[T], now: i64, style: Style, wide: bool) -> String {
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

/// JSON without characters that a terminal would obey.
pub(crate) fn json(value: &impl Serialize) -> String {
    escaped(value, |c| {
        let mut units = [0; 2];
        let units = c.encode_utf16(&mut units).iter();
        units.map(|unit| format!("\\u{unit:04x}")).collect()
    })
}

/// YAML without characters that a terminal would obey. If a name contains one, the document is written
/// as JSON, which is YAML too and has an escape for every character.
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

/// JSON with those characters escaped that JSON itself leaves alone. They occur only inside strings.
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
