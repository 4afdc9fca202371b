//! Node: a piece of JSON or YAML as it was written, duplicate keys included.
//!
//! Reading straight into records would stop at the first problem and drop the second of two equal
//! keys. A node keeps everything, so that the walk over it can name all that is wrong.

use crate::read::{Format, one_line};
use bigfleet_model::shown;
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// A value of the file.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// Nothing.
    Null,
    /// True or false.
    Flag(bool),
    /// A whole number.
    Whole(i128),
    /// Any other number.
    Number(f64),
    /// A moment with a fraction or an exponent, as written.
    Digits(String),
    /// A text.
    Text(String),
    /// Values in order.
    List(Vec<Node>),
    /// Values by name, in the order of the file; a name may be there twice.
    Object(Vec<(String, Node)>),
}

impl Node {
    /// The text under this key, if this is an object that has one.
    pub(crate) fn text_at(&self, key: &str) -> Option<&str> {
        let Self::Object(entries) = self else {
            return None;
        };
        let found = entries.iter().find(|(name, _)| name == key);
        match found {
            Some((_, Self::Text(text))) => Some(text),
            _ => None,
        }
    }
}

/// The whole of a document that has no moments, or in one line why it is none.
pub fn node(text: &[u8], format: Format) -> Result<Node, String> {
    let parsed = match format {
        Format::Json => serde_json::from_slice(text).map_err(|why| why.to_string()),
        Format::Yaml => serde_norway::from_slice(text).map_err(|why| why.to_string()),
    };
    parsed.map_err(|why| format!("not {}: {}", format.word(), one_line(&why)))
}

/// What was found where something else was expected.
impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::Whole(number) => write!(f, "{number}"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Digits(text) => f.write_str(&shown(text)),
            Self::Text(text) => write!(f, "\"{}\"", shown(text)),
            Self::List(_) => f.write_str("a list"),
            Self::Object(_) => f.write_str("an object"),
        }
    }
}

/// How a node is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    /// How the digits of moments are kept.
    pub(crate) digits: Digits,
    /// The names that lead to moments below this node, one set per level.
    pub(crate) moments: &'static [&'static [&'static str]],
}

/// How the digits of a number are kept that would not fit a float.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Digits {
    /// They are not.
    Lost,
    /// As the JSON text has them.
    Json,
    /// As the YAML text has them. Quoted or not is lost instead, so the file must have been read once
    /// by type.
    Yaml,
}

impl Reading {
    /// Of what has no moments.
    const PLAIN: Self = Self {
        digits: Digits::Lost,
        moments: &[],
    };
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Reading::PLAIN.deserialize(deserializer)
    }
}

impl<'de> DeserializeSeed<'de> for Reading {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(self)
    }
}

/// Reads a moment: a node whose digits are kept.
impl<'de> DeserializeSeed<'de> for Digits {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        let text = match self {
            Self::Lost => return Node::deserialize(deserializer),
            Self::Json => Box::<RawValue>::deserialize(deserializer)?.get().to_owned(),
            Self::Yaml => String::deserialize(deserializer)?,
        };
        if has_fraction(&text) {
            return Ok(Node::Digits(text));
        }
        if self == Self::Json {
            serde_json::from_str(&text).map_err(D::Error::custom)
        } else {
            serde_norway::from_str(&text).map_err(D::Error::custom)
        }
    }
}

/// Whether this is a decimal number that is not plainly a whole one.
fn has_fraction(text: &str) -> bool {
    let digits = text.trim_start_matches(['-', '+', '.']);
    digits.starts_with(|first: char| first.is_ascii_digit())
        && text.contains(['.', 'e', 'E'])
        && text.parse::<f64>().is_ok()
}

impl<'de> Visitor<'de> for Reading {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("plain JSON or YAML")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Node, E> {
        Ok(Node::Flag(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Node, E> {
        Ok(Node::Whole(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Node, E> {
        Ok(Node::Whole(number.into()))
    }

    fn visit_i128<E>(self, number: i128) -> Result<Node, E> {
        Ok(Node::Whole(number))
    }

    fn visit_u128<E>(self, number: u128) -> Result<Node, E> {
        Ok(i128::try_from(number).map_or(Node::Number(number as f64), Node::Whole))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Node, E> {
        Ok(Node::Number(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Node, E> {
        Ok(Node::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Node, E> {
        Ok(Node::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        // The announced size is the peer's word, so it reserves nothing.
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            list.push(item);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Node, A::Error> {
        let mut object = Vec::new();
        while let Some(key) = entries.next_key::<String>()? {
            let below = match self.moments {
                [names, below @ ..] if names.contains(&key.as_str()) => Some(below),
                _ => None,
            };
            let node = match below {
                Some([]) => entries.next_value_seed(self.digits)?,
                Some(moments) => entries.next_value_seed(Self { moments, ..self })?,
                None => entries.next_value_seed(Self::PLAIN)?,
            };
            object.push((key, node));
        }
        Ok(Node::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_and_yaml_give_the_same_nodes() {
        let json = r#"{"a": [1, -2, 1.5, null, true], "b": {"c": "x", "c": "y"}}"#;
        let yaml = "a: [1, -2, 1.5, null, true]\nb:\n  c: x\n  c: y\n";
        let from_json: Node = serde_json::from_str(json).unwrap();
        let from_yaml: Node = serde_norway::from_str(yaml).unwrap();
        assert_eq!(from_json, from_yaml);
        let Node::Object(entries) = from_json else {
            panic!("an object");
        };
        assert_eq!(entries[1].1.text_at("c"), Some("x"));
        assert_eq!(entries[1].1.text_at("d"), None);
    }
}
