//! Schema: a few words to write down what a resource looks like, in the dialect of CustomResourceDefinitions.

use serde_json::{Map, Value, json};

/// A field, whether it has to be there, and what it is.
pub(crate) struct Field(pub(crate) &'static str, pub(crate) bool, pub(crate) Value);

/// A field that has to be there.
pub(crate) fn must(name: &'static str, about: &str, what: Value) -> Field {
    Field(name, true, with(what, "description", about))
}

/// A field that may be left out.
pub(crate) fn may(name: &'static str, about: &str, what: Value) -> Field {
    Field(name, false, with(what, "description", about))
}

/// The same, and this besides.
pub(crate) fn with(mut schema: Value, key: &str, value: impl Into<Value>) -> Value {
    schema[key] = value.into();
    schema
}

pub(crate) fn text() -> Value {
    json!({ "type": "string" })
}

pub(crate) fn moment() -> Value {
    json!({ "type": "string", "format": "date-time" })
}

pub(crate) fn number() -> Value {
    json!({ "type": "integer", "format": "int32" })
}

/// One of these words, which only we write.
pub(crate) fn word(words: &[&str]) -> Value {
    json!({ "type": "string", "enum": words })
}

/// An amount: a number, or a text like `1500m`.
pub(crate) fn quantity() -> Value {
    json!({
        "anyOf": [{ "type": "integer" }, { "type": "string" }],
        "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
        "x-kubernetes-int-or-string": true,
    })
}

pub(crate) fn object<const N: usize>(fields: [Field; N]) -> Value {
    let required = fields.iter().filter(|field| field.1).map(|field| field.0);
    let required: Vec<&str> = required.collect();
    let properties: Map<String, Value> = fields
        .into_iter()
        .map(|Field(name, _, what)| (name.to_owned(), what))
        .collect();
    let mut schema = json!({ "type": "object" });
    if !properties.is_empty() {
        schema["properties"] = Value::Object(properties);
    }
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

pub(crate) fn map(of: Value) -> Value {
    json!({ "type": "object", "additionalProperties": of })
}

pub(crate) fn list(of: Value) -> Value {
    json!({ "type": "array", "items": of })
}

/// A list that is written as a whole.
pub(crate) fn atomic(of: Value) -> Value {
    with(list(of), "x-kubernetes-list-type", "atomic")
}

/// A list of which everybody writes the items of their own type.
pub(crate) fn by_type(of: Value) -> Value {
    let list = with(list(of), "x-kubernetes-list-type", "map");
    with(list, "x-kubernetes-list-map-keys", json!(["type"]))
}
