//! Value: what a template works with, and how it is printed.

use std::{collections::BTreeMap, fmt};

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing.
    Nil,
    /// Yes or no.
    Bool(bool),
    /// A number.
    Integer(i64),
    /// A text.
    Text(String),
    /// Values in an order.
    List(Vec<Value>),
    /// Values by name; a name that is not there is nothing.
    Map(BTreeMap<String, Value>),
    /// Fields; one that is not there is an error.
    Record(Vec<(&'static str, Value)>),
}

impl Value {
    /// A record of these fields.
    pub fn record<const N: usize>(fields: [(&'static str, Value); N]) -> Self {
        Self::Record(fields.into())
    }

    /// Whether `if` and `with` take it for true.
    pub(super) fn is_true(&self) -> bool {
        match self {
            Self::Nil => false,
            Self::Bool(value) => *value,
            Self::Integer(value) => *value != 0,
            Self::Text(value) => !value.is_empty(),
            Self::List(values) => !values.is_empty(),
            Self::Map(values) => !values.is_empty(),
            Self::Record(_) => true,
        }
    }

    pub(super) fn field(&self, name: &str) -> Result<Self, String> {
        match self {
            Self::Record(fields) => fields
                .iter()
                .find(|(field, _)| *field == name)
                .map(|(_, value)| value.clone())
                .ok_or_else(|| format!("there is no field {name}")),
            Self::Map(values) => Ok(values.get(name).cloned().unwrap_or(Self::Nil)),
            other => Err(format!("{} has no field {name}", other.noun())),
        }
    }

    fn noun(&self) -> &'static str {
        match self {
            Self::Nil => "nothing",
            Self::Bool(_) => "a yes or no",
            Self::Integer(_) => "a number",
            Self::Text(_) => "a text",
            Self::List(_) => "a list",
            Self::Map(_) => "a map",
            Self::Record(_) => "a record",
        }
    }

    /// As an error message shows it: short, and a text in quotes.
    pub(super) fn shown(&self) -> String {
        let text = match self {
            Self::Text(text) => format!("{text:?}"),
            other => other.to_string(),
        };
        bigfleet_model::shown(&text).replace("\\\"", "\"")
    }
}

/// As Go prints it.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |f: &mut fmt::Formatter<'_>, values: &mut dyn Iterator<Item = String>| {
            let values: Vec<String> = values.collect();
            f.write_str(&values.join(" "))
        };
        match self {
            Self::Nil => f.write_str("<no value>"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Integer(value) => write!(f, "{value}"),
            Self::Text(text) => f.write_str(text),
            Self::List(values) => {
                f.write_str("[")?;
                joined(f, &mut values.iter().map(Self::to_string))?;
                f.write_str("]")
            }
            Self::Map(values) => {
                f.write_str("map[")?;
                joined(
                    f,
                    &mut values.iter().map(|(key, value)| format!("{key}:{value}")),
                )?;
                f.write_str("]")
            }
            Self::Record(fields) => {
                f.write_str("{")?;
                joined(f, &mut fields.iter().map(|(_, value)| value.to_string()))?;
                f.write_str("}")
            }
        }
    }
}
