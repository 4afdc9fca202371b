//! Output: the same records as a table, as more columns, as JSON, YAML, CSV, names, or what a path leads to.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use serde_json::Value;

use crate::error::CtlError;
use crate::json_path::{Path, PathRefused, Template};
use crate::text::{Field, printable, printable_lines, table};
use crate::when::{Moment, local_now};
use crate::{record, select::Fact};

/// The form an answer is written in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
    /// `kind/name`, a line each.
    Name,
    /// All columns, apart by commas.
    Csv,
    /// Columns of one's own: a name and a path each.
    CustomColumns(Vec<(String, Path)>),
    /// What paths lead to, from the object that `json` prints.
    JsonPath(Template),
}

impl Form {
    /// The words for `-o`, as help shows them.
    pub const WORDS: [&'static str; 8] = [
        "table",
        "wide",
        "json",
        "yaml",
        "name",
        "csv",
        "custom-columns=NAME:.path,…",
        "jsonpath={.path}",
    ];
}

/// Why a form is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormRefused {
    /// No form of that name.
    #[error("\"{0}\" is none of {words}", words = Form::WORDS.join(", "))]
    Unknown(String),
    /// A path of it cannot be understood.
    #[error(transparent)]
    Path(#[from] PathRefused),
    /// A column without a name or a path.
    #[error("\"{0}\" is not NAME:.path, as in custom-columns=ID:.id,ZONE:.zone")]
    Column(String),
}

impl FromStr for Form {
    type Err = FormRefused;

    fn from_str(text: &str) -> Result<Self, FormRefused> {
        if let Some(columns) = text.strip_prefix("custom-columns=") {
            let column = |column: &str| {
                let split = column.split_once(':');
                let split = split.filter(|(name, path)| !name.is_empty() && !path.is_empty());
                let (name, path) = split.ok_or_else(|| FormRefused::Column(column.to_owned()))?;
                Ok((name.to_owned(), path.parse()?))
            };
            let columns: Result<_, FormRefused> = columns.split(',').map(column).collect();
            return columns.map(Self::CustomColumns);
        }
        if let Some(template) = text.strip_prefix("jsonpath=") {
            return Ok(Self::JsonPath(template.parse()?));
        }
        match text {
            "table" => Ok(Self::Table),
            "wide" => Ok(Self::Wide),
            "json" => Ok(Self::Json),
            "yaml" => Ok(Self::Yaml),
            "name" => Ok(Self::Name),
            "csv" => Ok(Self::Csv),
            other => Err(FormRefused::Unknown(printable(other))),
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Table => "table",
            Self::Wide => "wide",
            Self::Json => "json",
            Self::Yaml => "yaml",
            Self::Name => "name",
            Self::Csv => "csv",
            Self::CustomColumns(_) => "custom-columns",
            Self::JsonPath(_) => "jsonpath",
        })
    }
}

/// How an answer is written.
#[derive(Clone, Debug, Default)]
pub struct Style {
    /// The form.
    pub form: Form,
    /// Leave out the line with the column names.
    pub no_headers: bool,
    /// Whether to use colours.
    pub colour: bool,
    /// Labels that get a column each (`-L`).
    pub label_columns: Vec<String>,
    /// One more column with all labels.
    pub show_labels: bool,
}

/// What a verb prints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The answer itself, for stdout.
    pub text: String,
    /// What a person should know besides, a line each, for stderr.
    pub notes: Vec<String>,
    /// What could not be done although the rest was: one of several names is not there.
    pub failed: Option<CtlError>,
}

impl Answer {
    /// Only a text.
    pub fn of(text: String) -> Self {
        Self {
            text,
            ..Self::default()
        }
    }
}

/// A record that `get` can list, filter and find by name.
pub(crate) trait Listable: Serialize {
    /// The word for one of them, as in "machine".
    const ONE: &'static str;
    /// The word for several, as in "machines".
    const MANY: &'static str;
    /// What it means that there are none, where "none found" does not say it.
    const NOTHING: Option<&'static str> = None;
    /// The names of the columns, and of those that `-o wide` adds.
    const COLUMNS: (&'static [&'static str], &'static [&'static str]);

    /// The keys of [`fact`](Self::fact) besides labels.
    const KEYS: &'static [&'static str];

    /// The name by which it is found again.
    fn name(&self) -> String;
    /// Whether records of this kind have labels.
    const HAS_LABELS: bool = false;
    /// Its labels; `None` if records of this kind have none.
    fn labels(&self) -> Option<&BTreeMap<String, String>> {
        None
    }
    /// What a column for this label (`-L`) says of it.
    fn label(&self, key: &str) -> Option<&str> {
        self.labels()?.get(key).map(String::as_str)
    }
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

/// Who answered a list.
pub(crate) trait ListSource: Serialize {
    /// The moment from which ages count.
    fn now(&self) -> i64;
    /// Why the answer may be empty although there is something; `None` if it may not.
    fn unready(&self) -> Option<String>;
    /// What a person is to read before anything else, a line each.
    fn first(&self) -> String;
    /// How many entries there are, if fewer were sent because of a limit.
    fn total(&self) -> Option<usize>;
}

impl ListSource for AnswerSource {
    fn now(&self) -> i64 {
        let said = self.answered_at.or(self.computed_at);
        said.unwrap_or_else(local_now)
    }

    fn unready(&self) -> Option<String> {
        match (self.not_ready.as_str(), self.cycle) {
            ("", 0) => Some("the shard has not finished its first cycle".to_owned()),
            ("", _) => None,
            (why, _) => Some(format!("the shard is not ready: {}", printable(why))),
        }
    }

    fn first(&self) -> String {
        let lines = self.troubles.iter().map(|line| printable(line) + "\n");
        lines.collect()
    }

    fn total(&self) -> Option<usize> {
        self.total
    }
}

/// A list as JSON or YAML.
#[derive(Serialize)]
struct Document<'a, S, T> {
    #[serde(flatten)]
    source: &'a S,
    items: &'a [T],
}

/// Writes a list.
pub(crate) fn list<T: Listable>(items: &[T], source: &impl ListSource, style: &Style) -> String {
    match &style.form {
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
        Form::Name => names(items),
        Form::Csv => csv(items, source.now(), style),
        Form::CustomColumns(columns) => custom(items, columns, style),
        Form::JsonPath(template) => {
            printable_lines(&template.text(&value(&Document { source, items })))
        }
    }
}

/// One record by itself, as kubectl writes one that was named.
pub(crate) fn single<T: Listable>(item: &T, source: &impl ListSource, style: &Style) -> String {
    match &style.form {
        Form::Json => json(item),
        Form::Yaml => yaml(item),
        Form::JsonPath(template) => printable_lines(&template.text(&value(item))),
        _ => list(std::slice::from_ref(item), source, style),
    }
}

/// A record that is one page for people, as a document; `None` if the form asks for the page.
pub fn document(record: &impl Serialize, form: &Form) -> Result<Option<String>, CtlError> {
    match form {
        Form::Table | Form::Wide => Ok(None),
        Form::Json => Ok(Some(json(record))),
        Form::Yaml => Ok(Some(yaml(record))),
        Form::JsonPath(template) => Ok(Some(printable_lines(&template.text(&value(record))))),
        Form::Name | Form::Csv | Form::CustomColumns(_) => Err(CtlError::Usage(format!(
            "-o {form} is for lists; this verb prints table, json, yaml or jsonpath"
        ))),
    }
}

/// A record that is one page for people: the page, or the record in the form that was asked for.
pub fn answer_of(record: &impl Serialize, page: String, form: &Form) -> Result<Answer, CtlError> {
    Ok(Answer::of(document(record, form)?.unwrap_or(page)))
}

/// A line each: `machine/m-1`.
fn names<T: Listable>(items: &[T]) -> String {
    let line = |item: &T| format!("{}/{}\n", T::ONE, printable(&item.name()));
    items.iter().map(line).collect()
}

/// What an empty cell says: that nothing is there is something else than a column that was cut off.
const NONE: &str = "<none>";

fn header<T: Listable>(style: &Style, wide: bool) -> Vec<String> {
    let (columns, more) = T::COLUMNS;
    let more = if wide { more } else { &[] };
    let named = columns.iter().chain(more).map(|name| (*name).to_owned());
    // As kubectl names them: what comes after the last slash.
    let label = |key: &String| key.rsplit('/').next().unwrap_or(key).to_uppercase();
    let labels = style.label_columns.iter().map(label);
    let all = style.show_labels.then(|| "LABELS".to_owned());
    named.chain(labels).chain(all).collect()
}

fn cells<T: Listable>(item: &T, now: i64, style: &Style, wide: bool) -> Vec<Field> {
    let mut cells = item.fields(now);
    if wide {
        cells.extend(item.more(now));
    }
    let columns = style.label_columns.iter();
    cells.extend(columns.map(|key| Field::from(item.label(key).unwrap_or_default())));
    if style.show_labels {
        cells.push(item.labels().map(labels).unwrap_or_default().into());
    }
    cells
}

fn rows<T: Listable>(items: &[T], now: i64, style: &Style, wide: bool) -> String {
    if items.is_empty() {
        return String::new();
    }
    let shown = |item: &T| {
        let cells = cells(item, now, style, wide).into_iter();
        let filled = cells.map(|cell| {
            if cell.text.is_empty() {
                Field::from(NONE)
            } else {
                cell
            }
        });
        filled.collect()
    };
    let header = header::<T>(style, wide);
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let header = (!style.no_headers).then_some(header.as_slice());
    table(header, items.iter().map(shown), style.colour)
}

/// All columns, apart by commas (RFC 4180); an empty cell is empty.
fn csv<T: Listable>(items: &[T], now: i64, style: &Style) -> String {
    let quoted = |cell: &str| {
        let cell = printable(cell);
        if cell.contains([',', '"']) {
            format!("\"{}\"", cell.replace('"', "\"\""))
        } else {
            cell
        }
    };
    let line = |cells: Vec<String>| cells.join(",") + "\n";
    let header = || {
        line(
            header::<T>(style, true)
                .iter()
                .map(|name| quoted(name))
                .collect(),
        )
    };
    let row = |item: &T| {
        let cells = cells(item, now, style, true);
        line(cells.iter().map(|cell| quoted(&cell.text)).collect())
    };
    let header = (!style.no_headers).then(header).unwrap_or_default();
    header + &items.iter().map(row).collect::<String>()
}

fn custom<T: Listable>(items: &[T], columns: &[(String, Path)], style: &Style) -> String {
    let header: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
    let row = |item: &T| {
        let value = value(item);
        let cell = |(_, path): &(String, Path)| {
            let text = path.text(&value, ",").filter(|text| !text.is_empty());
            Field::from(text.unwrap_or_else(|| NONE.to_owned()))
        };
        columns.iter().map(cell).collect()
    };
    let header = (!style.no_headers).then_some(header.as_slice());
    table(header, items.iter().map(row), style.colour)
}

/// A record as paths see it.
#[expect(
    clippy::expect_used,
    reason = "writing our own records, whose keys are texts, into memory cannot fail"
)]
pub(crate) fn value(record: &impl Serialize) -> Value {
    serde_json::to_value(record).expect("a record is JSON")
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
