//! Reading: a text to a fleet, or to the list of all that is wrong with it.
//!
//! ```text
//! bytes ── JSON or YAML ──▶ one machine, one cluster at a time ── checks ──▶ Fleet + warnings
//!                                                             └─ problems ──▶ Refused
//! ```
//!
//! Machines are checked as they are parsed, so a large file needs the memory of its fleet, not of
//! its text taken apart.

use crate::{
    cluster,
    fields::Fields,
    machine::{self, Shapes},
    moment::{moment, span},
    node::{Digits, Node, Reading},
    problem::{FilePart, Problem, Refused},
};
use bigfleet_model::{Cluster, Fleet, Holds, shown};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::{collections::BTreeSet, fmt, time::Duration};

/// The largest file accepted, in bytes.
pub const MAX_FILE_BYTES: usize = 1 << 30;

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

impl Format {
    /// By the ending of the file's name, or else by whether the text begins with a brace.
    pub fn of(name: &str, text: &[u8]) -> Self {
        let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
        match name.rsplit_once('.').map(|(_, ending)| ending) {
            Some("json") => Self::Json,
            Some("yaml" | "yml") => Self::Yaml,
            _ if first == Some(&b'{') => Self::Json,
            _ => Self::Yaml,
        }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Json => "JSON",
            Self::Yaml => "YAML",
        }
    }
}

/// A fleet that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// The fleet.
    pub fleet: Fleet,
    /// What was read as 0 because it is no quantity (Q-5).
    pub warnings: Vec<Problem>,
}

/// Reads a fleet file; on error, everything that is wrong with it.
pub fn read(text: &[u8], format: Format) -> Result<Loaded, Refused> {
    if MAX_FILE_BYTES < text.len() {
        let bytes = text.len();
        let what = format!("{bytes} bytes are more than the {MAX_FILE_BYTES} allowed");
        let mut refused = Refused::default();
        refused.push(&FilePart::File, what);
        return Err(refused);
    }
    match format {
        Format::Json => read_as(text, format, Digits::Json),
        // The parser of YAML tells either what type a value has or what its digits are.
        Format::Yaml => {
            let loaded = read_as(text, format, Digits::Lost)?;
            if has_fractions(&loaded.fleet) {
                read_as(text, format, Digits::Yaml)
            } else {
                Ok(loaded)
            }
        }
    }
}

/// Whether a fleet has moments that are not whole seconds.
fn has_fractions(fleet: &Fleet) -> bool {
    let idle = fleet.machines.values().filter_map(|held| held.idle_since);
    let needs = fleet.clusters.values().flat_map(Cluster::needs);
    let mut moments = idle
        .chain(needs.filter_map(|need| need.arrival))
        .chain([fleet.now]);
    let mut holds = fleet.holds.on_demand.into_iter().chain(fleet.holds.spot);
    moments.any(|at| at.nanos() % 1_000_000_000 != 0) || holds.any(|hold| hold.subsec_nanos() != 0)
}

fn read_as(text: &[u8], format: Format, digits: Digits) -> Result<Loaded, Refused> {
    let mut reader = Reader::new(digits);
    let parsed = match format {
        Format::Json => reader.json(text).map_err(|error| error.to_string()),
        Format::Yaml => reader.yaml(text).map_err(|error| error.to_string()),
    };
    if let Err(error) = parsed {
        // One line per problem, whatever the parser has to say.
        let what = format!("not a fleet in {}: {}", format.word(), one_line(&error));
        reader.refused.push(&FilePart::File, what);
    }
    match reader.refused.count() {
        0 => Ok(Loaded {
            fleet: reader.fleet,
            warnings: reader.warnings.problems,
        }),
        _ => Err(reader.refused),
    }
}

pub(crate) fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}

/// Where the moments of a machine, of a cluster and of the holds are.
const MACHINE: &[&[&str]] = &[&["idle_since"]];
const CLUSTER: &[&[&str]] = &[&["needs"], &["arrival"]];
const HOLDS: &[&[&str]] = &[&["OnDemand", "Spot"]];

struct Reader {
    digits: Digits,
    fleet: Fleet,
    shapes: Shapes,
    /// Ids of machines and clusters that were refused, to know a second one by.
    refused_ids: BTreeSet<(Section, String)>,
    refused: Refused,
    warnings: Refused,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Section {
    Machines,
    Clusters,
}

impl Reader {
    fn new(digits: Digits) -> Self {
        Self {
            digits,
            fleet: Fleet::default(),
            shapes: Shapes::default(),
            refused_ids: BTreeSet::new(),
            refused: Refused::default(),
            warnings: Refused::default(),
        }
    }

    fn reading(&self, moments: &'static [&'static [&'static str]]) -> Reading {
        let digits = self.digits;
        Reading { digits, moments }
    }

    fn json(&mut self, text: &[u8]) -> Result<(), serde_json::Error> {
        let mut deserializer = serde_json::Deserializer::from_slice(text);
        Root(self).deserialize(&mut deserializer)?;
        deserializer.end()
    }

    fn yaml(&mut self, text: &[u8]) -> Result<(), serde_norway::Error> {
        Root(self).deserialize(serde_norway::Deserializer::from_slice(text))
    }

    fn machine(&mut self, node: Node, at: usize) {
        let id = node.text_at("id").unwrap_or("").to_owned();
        let again = self.fleet.machines.contains_key(id.as_str());
        self.refuse_again(again, Section::Machines, &id, at);
        let (refused, warnings) = (&mut self.refused, &mut self.warnings);
        match machine::read(node, at, &mut self.shapes, refused, warnings) {
            Some(machine) => self.fleet.put(machine),
            None => {
                self.refused_ids.insert((Section::Machines, id));
            }
        }
    }

    fn cluster(&mut self, node: Node, at: usize) {
        let id = node.text_at("id").unwrap_or("").to_owned();
        let again = self.fleet.clusters.contains_key(id.as_str());
        self.refuse_again(again, Section::Clusters, &id, at);
        match cluster::read(node, at, &mut self.refused) {
            Some((id, cluster)) => {
                self.fleet.clusters.insert(id, cluster);
            }
            None => {
                self.refused_ids.insert((Section::Clusters, id));
            }
        }
    }

    fn refuse_again(&mut self, again: bool, section: Section, id: &str, at: usize) {
        let refused =
            !self.refused_ids.is_empty() && self.refused_ids.contains(&(section, id.to_owned()));
        if id.is_empty() || !(again || refused) {
            return;
        }
        let id = shown(id);
        let (place, rule) = match section {
            Section::Machines => (FilePart::Machine { at, id }, "INV-1"),
            Section::Clusters => (FilePart::Cluster { at, id }, "NT-2"),
        };
        let what = format!("id: an earlier one has the same ({rule})");
        self.refused.push(&place, what);
    }

    fn holds(&mut self, node: Node) {
        let place = FilePart::File;
        let Some(mut fields) = Fields::open(node, &place, "holds.".to_owned(), &mut self.refused)
        else {
            return;
        };
        let Holds { on_demand, spot } = Holds::default();
        self.fleet.holds = Holds {
            on_demand: hold(&mut fields, "OnDemand", on_demand),
            spot: hold(&mut fields, "Spot", spot),
        };
        fields.close();
    }

    fn now(&mut self, node: Node) {
        match moment(&node) {
            Ok(now) => self.fleet.now = now,
            Err(refused) => {
                let what = format!("now: {node} {refused}");
                self.refused.push(&FilePart::File, what);
            }
        }
    }
}

/// A hold: seconds, `null` for ever, its default if absent (R-5).
fn hold(fields: &mut Fields<'_>, key: &str, absent: Option<Duration>) -> Option<Duration> {
    let node = match fields.take(key) {
        None => return absent,
        Some(Node::Null) => return None,
        Some(node) => node,
    };
    let hold = span(&node);
    if hold.is_none() {
        let what = format!("{node} is neither a usable number of seconds nor null (R-4)");
        fields.note(key, &what);
    }
    hold
}

/// The file's one object.
struct Root<'a>(&'a mut Reader);

impl<'de> DeserializeSeed<'de> for Root<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        // Not `deserialize_map`: to that, an empty YAML text is an empty fleet.
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Root<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with now, machines, clusters and holds")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let reader = self.0;
        let mut seen = BTreeSet::new();
        while let Some(key) = entries.next_key::<String>()? {
            if !seen.insert(key.clone()) {
                let what = format!("{}: is given twice", shown(&key));
                reader.refused.push(&FilePart::File, what);
                entries.next_value::<IgnoredAny>()?;
                continue;
            }
            match key.as_str() {
                "now" => reader.now(entries.next_value_seed(reader.digits)?),
                "holds" => reader.holds(entries.next_value_seed(reader.reading(HOLDS))?),
                "machines" => entries.next_value_seed(List(reader, Section::Machines))?,
                "clusters" => entries.next_value_seed(List(reader, Section::Clusters))?,
                other => {
                    let what = format!("{}: is not a known key", shown(other));
                    reader.refused.push(&FilePart::File, what);
                    entries.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

/// The machines or the clusters, each checked as soon as it is parsed.
struct List<'a>(&'a mut Reader, Section);

impl List<'_> {
    fn note_instead(self, found: &Node) {
        let name = match self.1 {
            Section::Machines => "machines",
            Section::Clusters => "clusters",
        };
        let what = format!("{name}: {found} is not a list");
        self.0.refused.push(&FilePart::File, what);
    }
}

impl<'de> DeserializeSeed<'de> for List<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for List<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let Self(reader, section) = self;
        let reading = reader.reading(match section {
            Section::Machines => MACHINE,
            Section::Clusters => CLUSTER,
        });
        let mut at = 0;
        while let Some(node) = items.next_element_seed(reading)? {
            match section {
                Section::Machines => reader.machine(node, at),
                Section::Clusters => reader.cluster(node, at),
            }
            at += 1;
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        while entries.next_entry::<String, IgnoredAny>()?.is_some() {}
        self.note_instead(&Node::Object(vec![]));
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.note_instead(&Node::Null);
        Ok(())
    }

    fn visit_bool<E>(self, flag: bool) -> Result<(), E> {
        self.note_instead(&Node::Flag(flag));
        Ok(())
    }

    fn visit_i64<E>(self, number: i64) -> Result<(), E> {
        self.note_instead(&Node::Whole(number.into()));
        Ok(())
    }

    fn visit_u64<E>(self, number: u64) -> Result<(), E> {
        self.note_instead(&Node::Whole(number.into()));
        Ok(())
    }

    fn visit_f64<E>(self, number: f64) -> Result<(), E> {
        self.note_instead(&Node::Number(number));
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.note_instead(&Node::Text(text.to_owned()));
        Ok(())
    }
}
