//! Record: one machine as its provider says it is, screened.
//!
//! ```text
//! message ── size ── quantities, unreadable ones as 0 ── grid ST-5 ──▶ Record, with warnings
//!              └──────────────────────────────────────────────┴──────▶ refused, with a label
//! ```
//!
//! A refused record leaves the last good one in force; it is never read as a removal (wire 6.14).

use bigfleet_model::{
    Echoed, IdRefused, MAX_ID_BYTES, Machine, MachineRefused, StateNumber, StatedFacts, Time, shown,
};

use crate::limits::{
    MAX_CONFIGURE_BYTES, MAX_ERROR_BYTES, MAX_LABELS, MAX_RESOURCES, OverLimit, check_bytes,
    check_count, check_text,
};
use crate::names::Names;
use crate::shapes::Shapes;
use crate::shown::Shown;
use crate::v1alpha1::{self, FailureClass};

/// A provider's record that passed the screening.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The machine, without commitment: `MachineFacts::recall` fills that in.
    pub machine: Machine,
    /// The metadata the provider echoes.
    pub echoed: Echoed,
    /// The shard the provider says owns it; may be empty.
    pub owner_shard: String,
    /// Whether a failure may pass; an unknown class reads as unspecified.
    pub failure_class: FailureClass,
    /// When the machine will be gone, as its provider says; no moment is too odd to be one. Whoever knows
    /// what time it is says what an odd one is worth (SH-20).
    pub leaving: Option<Time>,
    /// What could not be read and does not stop the record.
    pub warnings: Vec<Warning>,
}

/// Something in a record that was read as less than it says. To be logged once per shape.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Warning {
    /// A quantity is malformed; the dimension reads 0.
    #[error("{field}[\"{resource}\"]: quantity \"{text}\" is malformed and reads 0 (Q-5)")]
    Quantity {
        /// Which vector.
        field: &'static str,
        /// Which dimension, made fit to print.
        resource: String,
        /// Its text, made fit to print.
        text: String,
    },
    /// A dimension has no usable name and is passed over.
    #[error("{field}: \"{resource}\" is not a resource name and is passed over (Q-5)")]
    Resource {
        /// Which vector.
        field: &'static str,
        /// The name, made fit to print.
        resource: String,
    },
    /// The capacity type is unknown and reads as unspecified.
    #[error("capacity_type {0} is unknown and reads as unspecified (wire 9.4)")]
    CapacityType(i32),
    /// The text of the failure is too long; the head of it is kept.
    #[error("last_error has {found} bytes and is cut to {MAX_ERROR_BYTES} (wire 8.1)")]
    LastErrorCut {
        /// How long it was.
        found: usize,
    },
}

/// Why a record cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RecordProblem {
    /// It breaks the grid.
    #[error(transparent)]
    Grid(#[from] MachineRefused),
    /// It holds more than it may.
    #[error("machine \"{id}\": {over}")]
    Limit {
        /// Which machine, made fit to print.
        id: String,
        /// What is too much.
        over: OverLimit,
    },
    /// The list names the machine more than once, so none of the records can be believed.
    #[error("machine \"{0}\" is listed more than once (wire 6.14)")]
    Duplicate(String),
    /// The list names the machine as removed, too.
    #[error("machine \"{0}\" is both listed and removed; the removal is refused (wire 12)")]
    ListedAndRemoved(String),
    /// A removed id is not one.
    #[error("removed_ids \"{0}\": {1} (wire 12)")]
    RemovedId(String, IdRefused),
}

impl RecordProblem {
    /// The rejection label used in metrics and logs.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Grid(refused) => refused.breach.label(),
            Self::Limit { .. }
            | Self::Duplicate(_)
            | Self::ListedAndRemoved(_)
            | Self::RemovedId(..) => "structural",
        }
    }
}

/// What the records of a List have in common, read and kept once.
#[derive(Debug, Default)]
pub struct Alike {
    shapes: Shapes,
    names: Names,
}

impl Record {
    /// Screens a provider's record.
    pub fn read(message: v1alpha1::Machine) -> Result<Self, RecordProblem> {
        let mut shown = Shown::default();
        let Ok(()) = shown.set(&message);
        Self::screen(&shown, &mut Alike::default())
    }

    /// Screens one of many records.
    pub(crate) fn screen(record: &Shown<'_>, alike: &mut Alike) -> Result<Self, RecordProblem> {
        check_size(record).map_err(|over| RecordProblem::Limit {
            id: shown(record.id),
            over,
        })?;
        let mut warnings = Vec::new();
        let facts = StatedFacts {
            id: record.id,
            state: StateNumber(record.state),
            host: (record.host_provider, record.host_reference),
            cluster: record.cluster,
            shape: alike.shapes.of(record, &mut warnings),
            price_per_hour: record.price_per_hour,
            interruption_probability: record.interruption_probability,
            last_error: cut(record.last_error, &mut warnings),
        };
        let machine = Machine::stated(&facts, |text| alike.names.cluster(text))?;
        Ok(Self {
            machine,
            echoed: Echoed::new(record.shard_metadata.iter()),
            owner_shard: record.owner_shard_id.to_owned(),
            failure_class: FailureClass::try_from(record.failure_class).unwrap_or_default(),
            leaving: announced(record.leaving_unix_nanos),
            warnings,
        })
    }
}

/// 0 is no announcement.
fn announced(unix_nanos: i64) -> Option<Time> {
    (unix_nanos != 0).then(|| Time::from_nanos(unix_nanos))
}

fn check_size(record: &Shown<'_>) -> Result<(), OverLimit> {
    check_text("instance_type", record.instance_type)?;
    check_text("zone", record.zone)?;
    check_bytes("owner_shard_id", record.owner_shard_id.len(), MAX_ID_BYTES)?;
    check_text("host.provider", record.host_provider)?;
    check_text("host.ref", record.host_reference)?;
    check_count("resources", record.resources.len(), MAX_RESOURCES)?;
    check_count("allocatable", record.allocatable.len(), MAX_RESOURCES)?;
    check_count("labels", record.labels.len(), MAX_LABELS)?;
    for (key, value) in record.labels.iter() {
        check_text("labels", key)?;
        check_text("labels", value)?;
    }
    // No Configure could have carried more.
    let echoed = record.shard_metadata.iter();
    let echoed = echoed.map(|(key, value)| key.len() + value.len()).sum();
    check_bytes("shard_metadata", echoed, MAX_CONFIGURE_BYTES)
}

fn cut<'a>(text: &'a str, warnings: &mut Vec<Warning>) -> &'a str {
    let found = text.len();
    if found <= MAX_ERROR_BYTES {
        return text;
    }
    warnings.push(Warning::LastErrorCut { found });
    &text[..text.floor_char_boundary(MAX_ERROR_BYTES)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v1alpha1::{HostRef, MachineState, Resources};
    use bigfleet_model::Amounts;

    fn idle() -> v1alpha1::Machine {
        v1alpha1::Machine {
            id: "m1".to_owned(),
            state: MachineState::Idle.into(),
            host: Some(HostRef {
                provider: "p".to_owned(),
                r#ref: "h".to_owned(),
            }),
            ..Default::default()
        }
    }

    fn resources(entries: &[(&str, &str)]) -> Option<Resources> {
        let entry = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
        let resources = entries.iter().map(entry).collect();
        Some(Resources { resources })
    }

    #[test]
    fn the_screening_names_the_rule_and_its_label() {
        let refused = |message| Record::read(message).unwrap_err();
        for (message, label, text) in [
            (
                v1alpha1::Machine {
                    price_per_hour: -1.0,
                    ..idle()
                },
                "price",
                "machine \"m1\": price_per_hour -1 is not a finite non-negative number (ST-5)",
            ),
            (
                v1alpha1::Machine {
                    interruption_probability: f64::NAN,
                    ..idle()
                },
                "interruption_probability",
                "machine \"m1\": interruption_probability NaN is not between 0 and 1 (ST-5)",
            ),
            (
                v1alpha1::Machine {
                    host: None,
                    ..idle()
                },
                "structural",
                "machine \"m1\": state Idle needs a host (ST-5)",
            ),
            (
                v1alpha1::Machine {
                    state: 42,
                    ..idle()
                },
                "structural",
                "machine \"m1\": State(42) is not a state (ST-5)",
            ),
            (
                v1alpha1::Machine {
                    zone: "z".repeat(5000),
                    ..idle()
                },
                "structural",
                "machine \"m1\": zone has 5000 bytes, more than the 4096 allowed (wire 8.1)",
            ),
        ] {
            let problem = refused(message);
            assert_eq!(
                (problem.label(), problem.to_string().as_str()),
                (label, text)
            );
        }
    }

    /// EX-Q and Q-5: supply rounds down, and what cannot be read is 0 and said.
    #[test]
    fn unreadable_quantities_read_as_nothing_and_are_named() {
        let record = Record::read(v1alpha1::Machine {
            resources: resources(&[("cpu", "abc"), ("gpu", "100u"), ("mem", "1Ki"), ("", "1")]),
            capacity_type: 77,
            ..idle()
        })
        .unwrap();
        let held = &record.machine.shape().resources;
        assert_eq!(
            (held.get("cpu"), held.get("gpu"), held.get("mem")),
            (0, 0, 1_024_000)
        );
        let warnings: Vec<_> = record.warnings.iter().map(ToString::to_string).collect();
        assert_eq!(
            warnings,
            [
                "capacity_type 77 is unknown and reads as unspecified (wire 9.4)",
                "resources: \"\" is not a resource name and is passed over (Q-5)",
                "resources[\"cpu\"]: quantity \"abc\" is malformed and reads 0 (Q-5)",
            ]
        );
    }

    /// M-2: a stated vector counts as a whole, even when it is worth nothing.
    #[test]
    fn allocatable_that_is_worth_nothing_stays_stated() {
        let message = v1alpha1::Machine {
            resources: resources(&[("cpu", "4")]),
            allocatable: resources(&[("cpu", "junk")]),
            ..idle()
        };
        let record = Record::read(message).unwrap();
        assert_eq!(record.machine.shape().effective(), &Amounts::NONE);
        let again = Record::read((&record.machine).into()).unwrap();
        assert_eq!(again.machine, record.machine);
    }

    /// SH-20: 0 announces nothing, and every other number is a moment.
    #[test]
    fn a_notice_is_a_moment_and_zero_is_none() {
        for (told, read) in [
            (0, None),
            (7_000, Some(Time::from_nanos(7_000))),
            (-1, Some(Time::from_nanos(-1))),
            (i64::MAX, Some(Time::from_nanos(i64::MAX))),
        ] {
            let record = Record::read(v1alpha1::Machine {
                leaving_unix_nanos: told,
                ..idle()
            });
            assert_eq!(record.unwrap().leaving, read);
        }
    }

    #[test]
    fn a_long_failure_text_is_cut_and_the_failure_kept() {
        let record = Record::read(v1alpha1::Machine {
            state: MachineState::Failed.into(),
            last_error: "é".repeat(MAX_ERROR_BYTES),
            failure_class: 9,
            ..idle()
        })
        .unwrap();
        assert_eq!(record.machine.last_error().len(), MAX_ERROR_BYTES);
        assert_eq!(record.warnings.len(), 1);
        assert_eq!(record.failure_class, FailureClass::Unspecified);
    }
}
