//! Patches: what differs between a fleet and an edited one, as edits of the file that was written of it.
//!
//! JSON Patch, RFC 6902: a list of `add`, `replace` and `remove`, each with the place in the file. Whoever has
//! the file can make the edit by hand or with a tool.

use crate::write::{machine_value, need_value};
use bigfleet_model::{Fleet, FleetMachine, Need};
use serde_json::{Value, json};

/// The edits that turn rows of a written fleet into others, and add a machine. A row that is not in the fleet
/// is left out.
pub fn patch(fleet: &Fleet, rows: &[(Need, Need)], added: Option<&FleetMachine>) -> Value {
    let mut edits = Vec::new();
    for (before, after) in rows {
        let Some(place) = place(fleet, before) else {
            continue;
        };
        let (Value::Object(before), Value::Object(after)) = (need_value(before), need_value(after))
        else {
            continue;
        };
        for (key, value) in &after {
            let op = match before.get(key) {
                Some(known) if known == value => continue,
                Some(_) => "replace",
                None => "add",
            };
            edits.push(json!({ "op": op, "path": format!("{place}/{key}"), "value": value }));
        }
        for key in before.keys().filter(|key| !after.contains_key(*key)) {
            edits.push(json!({ "op": "remove", "path": format!("{place}/{key}") }));
        }
    }
    if let Some(machine) = added {
        let value = machine_value(machine);
        edits.push(json!({ "op": "add", "path": "/machines/-", "value": value }));
    }
    Value::Array(edits)
}

/// Where a row is in the file.
fn place(fleet: &Fleet, row: &Need) -> Option<String> {
    let clusters = fleet.clusters.iter().enumerate();
    let (cluster, (_, of)) = clusters
        .into_iter()
        .find(|(_, (id, _))| **id == row.cluster)?;
    let need = of.needs().iter().position(|need| need == row)?;
    Some(format!("/clusters/{cluster}/needs/{need}"))
}
