//! Records: a batch of changes as bytes. A machine is stored in the form the contract gives it,
//! which only ever grows; the rest is ours.

use std::sync::Arc;

use bigfleet_model::MachineId;
use bigfleet_wire::v1alpha1 as wire;
use prost::Message;

use crate::call::Transition;
use crate::fencing_marks::Mark;
use crate::machine::FailureClass;
use crate::serve::convert;
use crate::tables::Change;

#[derive(Clone, PartialEq, Message)]
pub(super) struct Batch {
    #[prost(message, repeated, tag = "1")]
    changes: Vec<Stored>,
    /// Counters, in a snapshot only.
    #[prost(uint64, tag = "2")]
    pub(super) head: u64,
    #[prost(uint64, tag = "3")]
    pub(super) next_operation: u64,
}

#[derive(Clone, PartialEq, Message)]
struct Stored {
    #[prost(oneof = "StoredChange", tags = "1, 2, 3, 4, 5")]
    change: Option<StoredChange>,
}

#[expect(
    clippy::large_enum_variant,
    reason = "a record is built, encoded and dropped"
)]
#[derive(Clone, PartialEq, prost::Oneof)]
enum StoredChange {
    #[prost(message, tag = "1")]
    Machine(StoredMachine),
    #[prost(message, tag = "2")]
    Removed(StoredRemoval),
    #[prost(message, tag = "3")]
    Mark(StoredMark),
    #[prost(message, tag = "4")]
    MarkForgotten(StoredMark),
    #[prost(message, tag = "5")]
    Operation(StoredOperation),
}

#[derive(Clone, PartialEq, Message)]
struct StoredMachine {
    #[prost(message, optional, tag = "1")]
    machine: Option<wire::Machine>,
    #[prost(uint64, tag = "2")]
    revision: u64,
    #[prost(bool, tag = "3")]
    refined: bool,
    #[prost(bool, tag = "4")]
    no_stock: bool,
}

#[derive(Clone, PartialEq, Message)]
struct StoredRemoval {
    #[prost(string, tag = "1")]
    id: String,
    #[prost(uint64, tag = "2")]
    revision: u64,
}

#[derive(Clone, PartialEq, Message)]
struct StoredMark {
    #[prost(string, tag = "1")]
    machine: String,
    #[prost(string, tag = "2")]
    shard: String,
    #[prost(int64, tag = "3")]
    epoch: i64,
    #[prost(int64, tag = "4")]
    sequence: i64,
}

#[derive(Clone, PartialEq, Message)]
struct StoredOperation {
    #[prost(string, tag = "1")]
    machine: String,
    #[prost(string, tag = "2")]
    kind: String,
    #[prost(string, tag = "3")]
    operation: String,
    #[prost(uint64, tag = "4")]
    next: u64,
    #[prost(uint64, tag = "5")]
    grace_seconds: u64,
}

pub(super) fn encode<'c>(
    changes: impl Iterator<Item = &'c Change>,
    counters: (u64, u64),
) -> Vec<u8> {
    let changes = changes.map(stored).collect();
    let (head, next_operation) = counters;
    Batch {
        changes,
        head,
        next_operation,
    }
    .encode_to_vec()
}

/// The changes of a batch; the text says what makes it unusable.
pub(super) fn decode(bytes: &[u8]) -> Result<(Vec<Change>, Batch), String> {
    let mut batch = Batch::decode(bytes).map_err(|why| why.to_string())?;
    let changes = std::mem::take(&mut batch.changes);
    let changes: Result<Vec<Change>, String> = changes.into_iter().map(change).collect();
    Ok((changes?, batch))
}

fn stored(change: &Change) -> Stored {
    let change = match change {
        Change::Machine { machine, revision } => StoredChange::Machine(StoredMachine {
            machine: Some(convert::machine(machine)),
            revision: *revision,
            refined: machine.refined,
            no_stock: machine.failure == FailureClass::NoStock,
        }),
        Change::Removed { id, revision } => StoredChange::Removed(StoredRemoval {
            id: id.to_string(),
            revision: *revision,
        }),
        Change::Mark { key, mark } => StoredChange::Mark(StoredMark {
            machine: key.0.to_string(),
            shard: key.1.to_string(),
            epoch: mark.epoch,
            sequence: mark.sequence,
        }),
        Change::MarkForgotten { key } => StoredChange::MarkForgotten(StoredMark {
            machine: key.0.to_string(),
            shard: key.1.to_string(),
            ..StoredMark::default()
        }),
        Change::Operation {
            machine,
            kind,
            operation,
            next,
            grace_seconds,
        } => StoredChange::Operation(StoredOperation {
            machine: machine.to_string(),
            kind: kind.word().to_owned(),
            operation: operation.to_string(),
            next: *next,
            grace_seconds: *grace_seconds,
        }),
    };
    Stored {
        change: Some(change),
    }
}

fn change(stored: Stored) -> Result<Change, String> {
    let id = |text: &str| MachineId::new(text).map_err(|why| why.to_string());
    Ok(
        match stored
            .change
            .ok_or("a change of a kind this version does not know")?
        {
            StoredChange::Machine(StoredMachine {
                machine,
                revision,
                refined,
                no_stock,
            }) => {
                let mut machine = convert::stored_machine(machine.ok_or("a machine is missing")?)?;
                machine.refined = refined;
                if no_stock {
                    machine.failure = FailureClass::NoStock;
                }
                Change::Machine {
                    machine: Arc::new(machine),
                    revision,
                }
            }
            StoredChange::Removed(StoredRemoval { id: gone, revision }) => Change::Removed {
                id: id(&gone)?,
                revision,
            },
            StoredChange::Mark(StoredMark {
                machine,
                shard,
                epoch,
                sequence,
            }) => {
                let key = (machine.into(), shard.into());
                Change::Mark {
                    key,
                    mark: Mark { epoch, sequence },
                }
            }
            StoredChange::MarkForgotten(StoredMark { machine, shard, .. }) => {
                Change::MarkForgotten {
                    key: (machine.into(), shard.into()),
                }
            }
            StoredChange::Operation(StoredOperation {
                machine,
                kind,
                operation,
                next,
                grace_seconds,
            }) => {
                let kind =
                    Transition::from_word(&kind).ok_or_else(|| format!("\"{kind}\" is no kind"))?;
                Change::Operation {
                    machine: id(&machine)?,
                    kind,
                    operation: operation.into(),
                    next,
                    grace_seconds,
                }
            }
        },
    )
}
