//! Node: a piece of JSON or YAML as it was written, duplicate keys included.
//!
//! Reading straight into records would stop at the first problem and drop the second of two equal
//! keys. A node keeps everything, so that the walk over it can name all that is wrong.

use bigfleet_model::shown;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// A value of the file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    Null,
    Flag(bool),
    Whole(i128),
    Number(f64),
    Text(String),
    List(Vec<Node>),
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

/// What was found where something else was expected.
impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::Whole(number) => write!(f, "{number}"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => write!(f, "\"{}\"", shown(text)),
            Self::List(_) => f.write_str("a list"),
            Self::Object(_) => f.write_str("an object"),
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
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
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Node, A::Error> {
        let mut object = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            object.push(entry);
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
