//! An admin's mark on a machine, as it is stored.

use bigfleet_shard_core::{DrainMark, Record};
use prost::Message;

use super::{Value, machine_id, moment, seconds};

#[derive(Clone, PartialEq, Message)]
pub(super) struct StoredDrain {
    #[prost(string, tag = "1")]
    by: String,
    #[prost(double, tag = "2")]
    at: f64,
    #[prost(string, tag = "3")]
    reason: String,
    #[prost(double, optional, tag = "4")]
    deadline: Option<f64>,
    #[prost(bool, tag = "5")]
    passed: bool,
}

impl Value {
    pub(in crate::store) fn of_drain(mark: &DrainMark) -> Self {
        let drain = StoredDrain {
            by: mark.by.to_string(),
            at: seconds(mark.at),
            reason: mark.reason.to_string(),
            deadline: mark.deadline.map(seconds),
            passed: mark.passed,
        };
        Self {
            drain: Some(drain),
            ..Self::default()
        }
    }
}

/// A machine an admin has marked to leave.
pub(in crate::store) fn drained(key: &str, bytes: &[u8]) -> Result<Record, String> {
    let stored = Value::unseal(bytes)?.drain;
    let stored = stored.ok_or("it is no drain's")?;
    let mark = DrainMark {
        by: stored.by.into(),
        at: moment(stored.at)?,
        reason: stored.reason.into(),
        deadline: stored.deadline.map(moment).transpose()?,
        passed: stored.passed,
    };
    Ok(Record::Drained {
        machine: machine_id(key)?,
        mark: Some(mark),
    })
}
