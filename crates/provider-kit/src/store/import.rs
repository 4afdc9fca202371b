//! Import: takes over the JSON state file older providers write, so that moving to this kit loses
//! neither bindings nor fencing marks.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use bigfleet_model::{CapacityType, Host, MachineId, State};
use serde::Deserialize;

use super::StoreRefused;
use crate::call::Transition;
use crate::fencing_marks::Mark;
use crate::machine::{FailureClass, Machine, Offer, TextMap};
use crate::tables::{Change, Tables};

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    machines: Option<Vec<Record>>,
    #[serde(default)]
    fences: Option<Vec<Fence>>,
    #[serde(default)]
    ops: Option<Vec<Operation>>,
    #[serde(default)]
    rev: u64,
    #[serde(default)]
    next_op: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Record {
    #[serde(rename = "ID")]
    id: String,
    state: String,
    #[serde(default)]
    host: Option<RecordHost>,
    #[serde(default)]
    instance_type: String,
    #[serde(default)]
    zone: String,
    #[serde(default)]
    capacity_type: String,
    #[serde(default)]
    price_per_hour: f64,
    #[serde(default)]
    interruption_probability: f64,
    #[serde(default)]
    resources: Option<TextMap>,
    #[serde(default)]
    allocatable: Option<TextMap>,
    #[serde(default)]
    labels: Option<TextMap>,
    #[serde(default)]
    cluster: String,
    #[serde(default)]
    shard_metadata: Option<TextMap>,
    #[serde(default)]
    last_error: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct RecordHost {
    #[serde(default)]
    provider: String,
    #[serde(default)]
    r#ref: String,
}

#[derive(Deserialize)]
struct Fence {
    shard_id: String,
    machine_id: String,
    epoch: i64,
    sequence: i64,
}

#[derive(Deserialize)]
struct Operation {
    machine_id: String,
    kind: String,
    operation_id: String,
}

/// The tables a JSON state file stands for.
pub(super) fn import(path: &Path, incarnation: u64) -> Result<Tables, StoreRefused> {
    let refused = |problem: String| StoreRefused::Import {
        path: path.into(),
        problem,
    };
    let text = fs::read_to_string(path).map_err(|why| refused(why.to_string()))?;
    let file: File = serde_json::from_str(&text).map_err(|why| refused(why.to_string()))?;
    tables(file, incarnation).map_err(refused)
}

fn tables(file: File, incarnation: u64) -> Result<Tables, String> {
    let mut tables = Tables::new(incarnation);
    tables.restore_counters(file.rev, file.next_op);
    for record in file.machines.unwrap_or_default() {
        let named = format!("machine \"{}\"", record.id);
        let machine = machine(record).map_err(|why| format!("{named}: {why}"))?;
        let revision = tables.next_revision();
        tables.load(Change::Machine {
            machine: Arc::new(machine),
            revision,
        });
    }
    for fence in file.fences.unwrap_or_default() {
        let key = (fence.machine_id.into(), fence.shard_id.into());
        let mark = Mark {
            epoch: fence.epoch,
            sequence: fence.sequence,
        };
        tables.load(Change::Mark { key, mark });
    }
    for operation in file.ops.unwrap_or_default() {
        let kind = Transition::from_word(&operation.kind)
            .ok_or_else(|| format!("operation kind \"{}\" is not known", operation.kind))?;
        let machine = MachineId::new(&operation.machine_id).map_err(|why| why.to_string())?;
        let (operation, next) = (operation.operation_id.into(), file.next_op);
        tables.load(Change::Operation {
            machine,
            kind,
            operation,
            next,
            grace_seconds: 0,
        });
    }
    Ok(tables)
}

fn machine(record: Record) -> Result<Machine, String> {
    let state = State::ALL
        .into_iter()
        .find(|state| state.word() == record.state);
    let capacity = |tier: &CapacityType| tier.word() == record.capacity_type;
    let capacity_type = CapacityType::ALL.into_iter().find(capacity);
    let host = record.host.map(|host| Host {
        provider: host.provider,
        reference: host.r#ref,
    });
    let offer = Offer {
        instance_type: record.instance_type,
        zone: record.zone,
        capacity_type: capacity_type
            .ok_or_else(|| format!("capacity type \"{}\" is not known", record.capacity_type))?,
        price_per_hour: record.price_per_hour,
        interruption_probability: record.interruption_probability,
        resources: record.resources.unwrap_or_default(),
        allocatable: record.allocatable.unwrap_or_default(),
        labels: record.labels.unwrap_or_default(),
    };
    Ok(Machine {
        id: MachineId::new(&record.id).map_err(|why| why.to_string())?,
        state: state.ok_or_else(|| format!("state \"{}\" is not known", record.state))?,
        host: host.filter(|host| !host.is_empty()),
        offer: Arc::new(offer),
        refined: false,
        cluster: record.cluster,
        metadata: Arc::new(record.shard_metadata.unwrap_or_default()),
        last_error: record.last_error,
        failure: FailureClass::Unspecified,
        owner: Arc::default(),
        leaving: None,
    })
}
