//! Fields: an object of the file, taken apart key by key.
//!
//! Each key is taken once, by the type it must have; what is wrong is noted, and reading goes on
//! with a harmless value. Whatever nobody took is an unknown key.

use crate::{moment::moment, node::Node, problem::FilePart, problem::Refused};
use bigfleet_model::{Dollars, Price, Time, shown};
use std::collections::BTreeMap;

/// The longest text accepted, in bytes; ids are bounded more tightly by the model.
pub const MAX_TEXT_BYTES: usize = 64 * 1024;

/// An object being read.
#[derive(Debug)]
pub struct Fields<'a> {
    place: &'a FilePart,
    /// Where in its place this object is: `assigned.`, `requirements[2].`; empty for the whole.
    path: String,
    entries: Vec<(String, Option<Node>)>,
    refused: &'a mut Refused,
}

impl<'a> Fields<'a> {
    /// Opens an object; notes it if it is something else, and keys that appear twice.
    pub fn open(
        node: Node,
        place: &'a FilePart,
        path: String,
        refused: &'a mut Refused,
    ) -> Option<Self> {
        let Node::Object(entries) = node else {
            let name = path.trim_end_matches('.');
            let subject = if name.is_empty() { "it" } else { name };
            refused.push(place, format!("{subject}: {node} is not an object"));
            return None;
        };
        let mut fields = Self {
            place,
            path,
            entries: Vec::with_capacity(entries.len()),
            refused,
        };
        for (key, node) in entries {
            if fields.entries.iter().any(|(earlier, _)| *earlier == key) {
                fields.note(&key, "is given twice")
            } else {
                fields.entries.push((key, Some(node)))
            }
        }
        Some(fields)
    }

    /// Notes what is wrong with a field.
    pub fn note(&mut self, key: &str, what: &str) {
        let what = format!("{}{}: {what}", self.path, shown(key));
        self.refused.push(self.place, what);
    }

    /// How many problems the file has so far.
    pub fn problems(&self) -> usize {
        self.refused.count()
    }

    /// The value under a key, as it is.
    pub fn take(&mut self, key: &str) -> Option<Node> {
        let found = self.entries.iter_mut().find(|(name, _)| name == key);
        found.and_then(|(_, node)| node.take())
    }

    /// The value under a key where `null` says the same as nothing.
    pub fn take_some(&mut self, key: &str) -> Option<Node> {
        self.take(key).filter(|node| *node != Node::Null)
    }

    /// The object under a key, opened.
    pub fn object(&mut self, key: &str) -> Option<Fields<'_>> {
        let node = self.take_some(key)?;
        let path = format!("{}{key}.", self.path);
        Fields::open(node, self.place, path, self.refused)
    }

    /// One object of a list, opened.
    pub fn item(&mut self, key: &str, at: usize, node: Node) -> Option<Fields<'_>> {
        let path = format!("{}{key}[{at}].", self.path);
        Fields::open(node, self.place, path, self.refused)
    }

    /// A text; empty if absent.
    pub fn text(&mut self, key: &str) -> String {
        match self.take(key) {
            None => String::new(),
            Some(node) => self.as_text(key, node),
        }
    }

    /// A text that must be there; `None`, and noted, if it is not.
    pub fn required_text(&mut self, key: &str, rule: &str) -> Option<String> {
        match self.take(key) {
            Some(Node::Text(text)) => Some(self.as_text(key, Node::Text(text))),
            Some(node) => {
                self.note(key, &format!("{node} is not text"));
                None
            }
            None => {
                self.note(key, &format!("is missing ({rule})"));
                None
            }
        }
    }

    fn as_text(&mut self, key: &str, node: Node) -> String {
        match node {
            Node::Text(text) if text.len() <= MAX_TEXT_BYTES => return text,
            Node::Text(text) => {
                let bytes = text.len();
                let what = format!("{bytes} bytes are more than the {MAX_TEXT_BYTES} allowed");
                self.note(key, &what);
            }
            other => self.note(key, &format!("{other} is not text")),
        }
        String::new()
    }

    /// One of these words; `None` if absent, or, noted, if it is another.
    pub fn word<T: Copy>(
        &mut self,
        key: &str,
        words: impl IntoIterator<Item = (&'static str, T)>,
        rule: &str,
    ) -> Option<T> {
        let node = self.take(key)?;
        let mut known = Vec::new();
        for (word, meaning) in words {
            if matches!(&node, Node::Text(text) if text == word) {
                return Some(meaning);
            }
            known.push(word);
        }
        let known = known.join(", ");
        self.note(key, &format!("{node} is not one of {known} ({rule})"));
        None
    }

    /// True or false; `absent` if absent.
    pub fn flag(&mut self, key: &str, absent: bool) -> bool {
        match self.take(key) {
            None => absent,
            Some(Node::Flag(flag)) => flag,
            Some(other) => {
                self.note(key, &format!("{other} is neither true nor false"));
                absent
            }
        }
    }

    /// A whole number; `absent` if absent.
    pub fn whole<T: TryFrom<i128>>(&mut self, key: &str, absent: T) -> T {
        let node = self.take(key);
        let whole = node.and_then(|node| self.as_whole(key, &node));
        whole.unwrap_or(absent)
    }

    /// A whole number that need not be stated; `None` if it is not, or, noted, if it is something else.
    pub fn stated_whole<T: TryFrom<i128>>(&mut self, key: &str) -> Option<T> {
        let node = self.take_some(key)?;
        self.as_whole(key, &node)
    }

    fn as_whole<T: TryFrom<i128>>(&mut self, key: &str, node: &Node) -> Option<T> {
        let exact = match *node {
            Node::Whole(number) => Some(number),
            // 100.0 is how some writers spell 100.
            Node::Number(number) if number.fract() == 0.0 && number.abs() < 1e15 => {
                Some(number as i128)
            }
            _ => None,
        };
        match (exact, exact.map(T::try_from)) {
            (_, Some(Ok(number))) => return Some(number),
            (Some(_), _) => self.note(key, &format!("{node} is out of range")),
            (None, _) => self.note(key, &format!("{node} is not a whole number")),
        }
        None
    }

    /// A number of any kind, the nonsense ones included; 0 if absent.
    pub fn number(&mut self, key: &str) -> f64 {
        self.optional_number(key).unwrap_or_default()
    }

    /// A number of any kind; `None` if absent, or, noted, if it is something else.
    pub fn optional_number(&mut self, key: &str) -> Option<f64> {
        let node = self.take(key)?;
        let number = as_number(&node);
        if number.is_none() {
            self.note(key, &format!("{node} is not a number"));
        }
        number
    }

    /// A penalty in dollars: a number or `"+Inf"`; 0 if absent.
    pub(crate) fn dollars(&mut self, key: &str) -> Dollars {
        let Some(node) = self.take(key) else {
            return Dollars::ZERO;
        };
        let dollars = match &node {
            Node::Text(text) if text == "+Inf" => Some(Dollars::PINNED),
            other => as_number(other).and_then(Dollars::new),
        };
        dollars.unwrap_or_else(|| {
            let what = format!("{node} is neither a non-negative number nor \"+Inf\" (MD-2)");
            self.note(key, &what);
            Dollars::ZERO
        })
    }

    /// A price; `None` if absent.
    pub(crate) fn price(&mut self, key: &str) -> Option<Price> {
        let node = self.take_some(key)?;
        let price = as_number(&node).and_then(Price::new);
        if price.is_none() {
            self.note(
                key,
                &format!("{node} is not a finite non-negative number (RF-2)"),
            );
        }
        price
    }

    /// A moment; `None` if absent.
    pub(crate) fn time(&mut self, key: &str) -> Option<Time> {
        let node = self.take_some(key)?;
        let time = moment(&node);
        if let Err(refused) = time {
            self.note(key, &format!("{node} {refused}"));
        }
        time.ok()
    }

    /// A list; empty if absent.
    pub fn list(&mut self, key: &str) -> Vec<Node> {
        match self.take(key) {
            None => Vec::new(),
            Some(Node::List(items)) => items,
            Some(other) => {
                self.note(key, &format!("{other} is not a list"));
                Vec::new()
            }
        }
    }

    /// A list of texts; empty if absent.
    pub fn text_list(&mut self, key: &str) -> Vec<String> {
        let mut texts = Vec::new();
        for (at, node) in self.list(key).into_iter().enumerate() {
            texts.push(self.as_text(&format!("{key}[{at}]"), node));
        }
        texts
    }

    /// An object of texts; empty if absent. Keys are bounded like texts.
    pub fn text_map(&mut self, key: &str) -> BTreeMap<String, String> {
        self.map(key, |fields, name, node| fields.as_text(name, node))
    }

    /// An object of quantity texts; plain numbers are read as the texts they are written as.
    pub fn quantity_map(&mut self, key: &str) -> BTreeMap<String, String> {
        self.map(key, |fields, name, node| match node {
            Node::Whole(number) => number.to_string(),
            Node::Number(number) => number.to_string(),
            other => fields.as_text(name, other),
        })
    }

    fn map(
        &mut self,
        key: &str,
        read: impl Fn(&mut Fields<'_>, &str, Node) -> String,
    ) -> BTreeMap<String, String> {
        let mut map = BTreeMap::new();
        let Some(mut fields) = self.object(key) else {
            return map;
        };
        for (name, node) in std::mem::take(&mut fields.entries) {
            if MAX_TEXT_BYTES < name.len() {
                let bytes = name.len();
                let what = format!("a key of {bytes} bytes is longer than {MAX_TEXT_BYTES}");
                fields.note(&name, &what);
            }
            if let Some(node) = node {
                let text = read(&mut fields, &name, node);
                map.insert(name, text);
            }
        }
        map
    }

    /// Ends the reading: what nobody took is unknown.
    pub fn close(mut self) {
        for (key, node) in std::mem::take(&mut self.entries) {
            if node.is_some() {
                self.note(&key, "is not a known key");
            }
        }
    }
}

/// A number of any kind.
pub(crate) fn as_number(node: &Node) -> Option<f64> {
    match node {
        Node::Whole(number) => Some(*number as f64),
        Node::Number(number) => Some(*number),
        Node::Digits(text) => text.parse().ok(),
        Node::Null | Node::Flag(_) | Node::Text(_) | Node::List(_) | Node::Object(_) => None,
    }
}
