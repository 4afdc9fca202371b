//! Schemas of the files this cloud reads, held to the code that reads them.
//!
//! No schema library is needed for that: the code says which fields it knows when it is given one that
//! it does not, and every example of the schema must be something the code takes.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// A schema as it stands in the documentation.
pub(crate) struct Schema(Value);

impl Schema {
    pub(crate) fn new(text: &str) -> Self {
        Self(serde_json::from_str(text).unwrap())
    }

    fn at(&self, pointer: &str) -> &Value {
        self.0.pointer(pointer).unwrap()
    }

    /// Follows a reference to its definition.
    fn resolved<'s>(&'s self, value: &'s Value) -> &'s Value {
        let target = value["$ref"].as_str();
        target.map_or(value, |target| self.at(&target[1..]))
    }

    /// The object at this place of the schema has exactly the fields that the code reads, requires
    /// those the code requires, has an example for each that the code takes, and a word on the page.
    pub(crate) fn check<T: DeserializeOwned>(&self, pointer: &str, page: &str) {
        let object = self.at(pointer);
        assert_eq!(object["additionalProperties"], false, "{pointer}");
        let properties = object["properties"].as_object().unwrap();
        let mut named: Vec<&str> = properties.keys().map(String::as_str).collect();
        let mut known = fields::<T>();
        named.sort_unstable();
        known.sort_unstable();
        assert_eq!(named, known, "{pointer}");
        let required: Vec<&str> = object["required"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|name| name.as_str().unwrap())
            .collect();
        let example = |name: &str| self.examples(&properties[name]).first().cloned();
        let whole = || -> Map<String, Value> {
            let required = required.iter();
            let pairs =
                required.map(|name| ((*name).to_owned(), example(name).unwrap_or_default()));
            pairs.collect()
        };
        assert!(
            takes::<T>(&whole()),
            "{pointer}: the required fields are enough"
        );
        for name in &named {
            assert!(
                page.contains(&format!("`{name}`")),
                "{name} is not on the page"
            );
            let mut without = whole();
            if without.remove(*name).is_some() {
                assert!(!takes::<T>(&without), "{pointer}: {name} is required");
            }
            let examples = self.examples(&properties[*name]);
            assert!(!examples.is_empty(), "{pointer}: {name} has no example");
            for value in examples {
                let mut with = whole();
                with.insert((*name).to_owned(), value.clone());
                assert!(takes::<T>(&with), "{pointer}: {name} = {value}");
            }
            let mut wrong = whole();
            wrong.insert((*name).to_owned(), json!([[true]]));
            assert!(!takes::<T>(&wrong), "{pointer}: {name} has a type");
        }
    }

    fn examples(&self, property: &Value) -> Vec<Value> {
        let resolved = self.resolved(property);
        let given = |value: &Value| value["examples"].as_array().cloned();
        let usual = || match resolved["type"].as_str() {
            Some("string") => vec![json!("x")],
            Some("integer") => vec![json!(1)],
            _ => Vec::new(),
        };
        given(property)
            .or_else(|| given(resolved))
            .unwrap_or_else(usual)
    }
}

fn takes<T: DeserializeOwned>(object: &Map<String, Value>) -> bool {
    serde_json::from_value::<T>(Value::Object(object.clone())).is_ok()
}

/// The fields a type reads, by its own word.
pub(crate) fn fields<T: DeserializeOwned>() -> Vec<&'static str> {
    let refused = serde_json::from_value::<T>(json!({"no such field": 0}))
        .err()
        .unwrap();
    let text = refused.to_string();
    let (_, expected) = text.split_once("expected").unwrap();
    let names: Vec<String> = expected
        .split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect();
    names.into_iter().map(|name| &*name.leak()).collect()
}
