//! Records: what a shard answered, under the names that fleet files use. `-o json` and `-o yaml` print
//! them as they are; tables, descriptions and the live view are made from them.
//!
//! ```text
//! wire message ──▶ record ──┬─▶ json · yaml
//!                           └─▶ table · wide · describe · live view
//! ```
//!
//! Only here do numbers that stand for words become words, nanoseconds moments, and a zero that means
//! "none" an `Option`.

mod action;
mod cluster;
mod drain;
mod event;
mod explanation;
mod machine;
mod need;
mod ownership;
mod pause;
mod rail;
mod table;
mod work;

pub(crate) use action::ActionRecord;
pub(crate) use cluster::ClusterRecord;
pub(crate) use drain::{DrainRecord, LeavingRecord, PlannedDrain};
pub(crate) use event::EventRecord;
pub(crate) use explanation::{ChangeRecord, DecidedRecord, ExplanationRecord};
pub(crate) use machine::{MachineRecord, NeedRef};
pub(crate) use need::{NeedRecord, need_name};
pub(crate) use ownership::{
    ClusterOwnerRecord, DomainRecord, InstructionRecord, ReplicaRecord, ReportRecord, ShardRecord,
};
pub(crate) use pause::{BreakerRecord, PauseRecord, RailRecord, scope_text};
pub(crate) use rail::{HoldRecord, holds};
pub(crate) use table::{Choice, TableRecord, Victims, WholeUnits};
pub(crate) use work::WorkRecord;

use serde::{Serialize, Serializer};

use crate::when::{Moment, rfc3339};

/// A moment in a file: RFC 3339, or null.
pub(crate) fn at<S: Serializer>(moment: &Moment, to: S) -> Result<S::Ok, S::Error> {
    moment.map(rfc3339).serialize(to)
}

/// Dollars in a file: a number, or `"+Inf"` as in a fleet file.
pub(crate) fn dollars<S: Serializer>(amount: &f64, to: S) -> Result<S::Ok, S::Error> {
    if *amount == f64::INFINITY {
        to.serialize_str("+Inf")
    } else {
        to.serialize_f64(*amount)
    }
}

/// A count of the wire, whose type would allow less than zero.
pub(crate) fn count(number: i32) -> u32 {
    u32::try_from(number).unwrap_or(0)
}

pub(crate) fn some(text: &str) -> Option<String> {
    Some(text)
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
}
