//! `get -w` and `wait`: the same question again and again, until something changed or is as it should be.
//!
//! ```text
//! ask ─▶ list ─▶ compare by name ─▶ print what is new, changed or gone ─▶ a pause ─▶ ask again
//! ```

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use crate::client::Client;
use crate::error::CtlError;
use crate::get::{ListedEntry, Resource, Selection, get_listed};
use crate::output::{Form, Style};
use crate::select::Selector;
use crate::text::printable;

/// Moments and counts that move while nothing happens: they make no line of their own.
const MOVES: [&str; 8] = [
    "seen_at",
    "last_frame",
    "accepted",
    "rollup_id",
    "age_cycles_unmet",
    "parked_age_cycles",
    "withheld_total",
    "stage_since",
];

/// Asks every so often, and hands over the text of what changed, until somebody stops it or the shard is gone.
pub async fn watch(
    client: &Client,
    resource: Resource,
    selection: &Selection,
    style: &Style,
    every: Duration,
    mut say: impl FnMut(&str) -> bool,
) -> Result<(), CtlError> {
    let mut known: BTreeMap<String, Value> = BTreeMap::new();
    let mut style = style.clone();
    let mut is_first = true;
    loop {
        let listed = get_listed(client, resource, selection, &style).await;
        let listed = match listed {
            // Whoever waits for one that is not there yet waits on.
            Err(CtlError::NotFound { .. }) if !is_first => None,
            other => Some(other?),
        };
        let (whole, entries) = match listed {
            Some(listed) => (listed.answer.text, listed.entries),
            None => Default::default(),
        };
        let changed = changed(&mut known, &entries);
        if !changed.is_empty() {
            let only = Selection {
                names: changed.clone(),
                limit: 0,
                ..selection.clone()
            };
            let text = if is_first {
                whole
            } else {
                match get_listed(client, resource, &only, &style).await {
                    Ok(listed) => listed.answer.text,
                    Err(CtlError::NotFound { .. }) => String::new(),
                    Err(error) => return Err(error),
                }
            };
            if !say(&text) {
                return Ok(());
            }
            style.no_headers = true;
        }
        for gone in gone(&mut known, &entries) {
            let line = match style.form {
                Form::Table | Form::Wide => format!(" {} is gone\n", printable(&gone)),
                _ => String::new(),
            };
            if !say(&line) {
                return Ok(());
            }
        }
        is_first = false;
        tokio::time::sleep(every).await;
    }
}

/// The names of what is new or not as it was.
fn changed(known: &mut BTreeMap<String, Value>, entries: &[ListedEntry]) -> Vec<String> {
    let mut changed = Vec::new();
    for entry in entries {
        let state = steady(entry.state.clone());
        if known.get(&entry.name) != Some(&state) {
            changed.push(entry.name.clone());
            known.insert(entry.name.clone(), state);
        }
    }
    changed
}

fn gone(known: &mut BTreeMap<String, Value>, entries: &[ListedEntry]) -> Vec<String> {
    let is_there = |name: &String| entries.iter().any(|entry| entry.name == *name);
    let gone: Vec<String> = known
        .keys()
        .filter(|name| !is_there(name))
        .cloned()
        .collect();
    for name in &gone {
        known.remove(name);
    }
    gone
}

/// The state without what moves by itself.
fn steady(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let steady_fields = fields.into_iter();
            let steady_fields = steady_fields.filter(|(name, _)| !MOVES.contains(&name.as_str()));
            Value::Object(steady_fields.map(|(name, of)| (name, steady(of))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(steady).collect()),
        other => other,
    }
}

/// What `wait` waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// There is no such entry any more.
    Gone,
    /// There is one.
    There,
    /// Every one that is named is so.
    Is(Selector),
}

impl std::str::FromStr for Awaited {
    type Err = crate::select::SelectorRefused;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "delete" | "gone" => Ok(Self::Gone),
            "create" | "there" => Ok(Self::There),
            // As kubectl writes it: condition=…
            other => other
                .strip_prefix("condition=")
                .unwrap_or(other)
                .parse()
                .map(Self::Is),
        }
    }
}

/// Asks until it is so; an error that says how it is instead if it is not in time.
pub async fn wait(
    client: &Client,
    resource: Resource,
    selection: &Selection,
    awaited: &Awaited,
    within: Duration,
    every: Duration,
) -> Result<Vec<String>, CtlError> {
    let deadline = tokio::time::Instant::now() + within;
    let all = Selection {
        selector: Selector::default(),
        ..selection.clone()
    };
    let is_so = match awaited {
        Awaited::Is(selector) => Selection {
            selector: selector.clone(),
            ..all.clone()
        },
        Awaited::Gone | Awaited::There => all.clone(),
    };
    loop {
        let names = async |selection: &Selection| {
            let listed = get_listed(client, resource, selection, &Style::default()).await;
            match listed {
                Ok(listed) if listed.answer.failed.is_none() => Ok(Some(listed.entries)),
                Ok(_) | Err(CtlError::NotFound { .. }) => Ok(None),
                Err(error) => Err(error),
            }
        };
        let found = names(&is_so).await?;
        let done = match awaited {
            Awaited::Gone => found
                .is_none_or(|entries| entries.is_empty())
                .then(Vec::new),
            Awaited::There | Awaited::Is(_) => found.filter(|entries| !entries.is_empty()),
        };
        if let Some(entries) = done {
            return Ok(entries.into_iter().map(|entry| entry.name).collect());
        }
        if deadline < tokio::time::Instant::now() + every {
            return Err(CtlError::Local(format!(
                "not so within {}; `bigfleet get` shows how it is, and --timeout waits longer",
                crate::when::span(within)
            )));
        }
        tokio::time::sleep(every).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn entry(name: &str, state: Value) -> ListedEntry {
        ListedEntry {
            name: name.to_owned(),
            state,
        }
    }

    #[test]
    fn only_what_is_not_as_it_was_makes_a_line() {
        let mut known = BTreeMap::new();
        let first = [
            entry("a", json!({"state": "Idle", "seen_at": 1})),
            entry("b", json!({"state": "Idle"})),
        ];
        assert_eq!(changed(&mut known, &first), ["a", "b"]);
        let later = [entry("a", json!({"state": "Idle", "seen_at": 2}))];
        assert!(changed(&mut known, &later).is_empty());
        assert_eq!(gone(&mut known, &later), ["b"]);
        let moved = [entry("a", json!({"state": "Creating", "seen_at": 2}))];
        assert_eq!(changed(&mut known, &moved), ["a"]);
    }

    #[test]
    fn conditions_are_selectors() {
        assert_eq!("delete".parse(), Ok(Awaited::Gone));
        let is: Awaited = "condition=state=Idle".parse().unwrap();
        assert_eq!(is, Awaited::Is("state=Idle".parse().unwrap()));
        assert!("state of".parse::<Awaited>().is_err());
    }
}
