//! Listing: what List and the four mutations answer.
//!
//! One bad record never costs the others: it is refused by itself, and its machine still counts as
//! seen (wire G27).

use std::collections::BTreeSet;

use bigfleet_model::MachineId;

use crate::fields::{Fields, Unreadable};
use crate::limits::{OverLimit, check_text};
use crate::record::{Alike, Record, RecordProblem};
use crate::shown::Shown;
use crate::v1alpha1::{MachineList, TransitionAck};

/// A List answer, or one page of it, sorted into what can be used and what cannot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listing {
    /// The usable records, in the order they came. No id appears twice.
    pub records: Vec<Record>,
    /// The others, each with its reason.
    pub refused: Vec<RefusedRecord>,
    /// Machines that ceased to exist. None of them is also listed.
    pub removed: BTreeSet<MachineId>,
    /// The cursor to pass next time; empty means the provider has none.
    pub revision: Vec<u8>,
    /// The listing names every machine, so what it does not name is gone.
    pub is_full: bool,
    /// Machines over all pages, if the provider says so.
    pub total: Option<u32>,
    /// Additions the provider understands.
    pub features: Vec<String>,
    /// The token of the next page; empty on the last.
    pub next_page: Vec<u8>,
}

/// A record, or a removal, that cannot be used. The last good record stays in force.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{problem}")]
pub struct RefusedRecord {
    /// The machine, which counts as seen; unknown if the id itself is unusable.
    pub id: Option<MachineId>,
    /// What is wrong.
    pub problem: RecordProblem,
}

impl Listing {
    /// Screens a List answer. Never fails as a whole.
    pub fn read(message: MachineList) -> Self {
        let listing = Self {
            revision: message.revision,
            is_full: message.is_full,
            total: total(message.total_machines),
            features: message.features,
            next_page: message.next_page_token,
            ..Self::default()
        };
        let removed = message.removed_ids.iter().map(String::as_str).collect();
        let alike = &mut Alike::default();
        let Ok(listing) = listing.screened(&message.machines, removed, Shown::set, alike);
        listing
    }

    /// Screens a List answer as it was sent, without making a message of it. What its records have in
    /// common is shared with those of other pages. Fails only where there is no message.
    pub fn read_bytes(message: &[u8], alike: &mut Alike) -> Result<Self, Unreadable> {
        let (mut listing, mut removed) = (Self::default(), Vec::new());
        let (mut machines, mut total_machines) = (Vec::new(), 0);
        let mut fields = Fields(message);
        while let Some(field) = fields.next()? {
            match field.number {
                1 => machines.push(field.bytes()?),
                2 => listing.revision = field.bytes()?.to_vec(),
                1000 => removed.push(field.text()?),
                1001 => listing.is_full = field.bool()?,
                1002 => total_machines = field.int32()?,
                1003 => listing.features.push(field.text()?.to_owned()),
                1004 => listing.next_page = field.bytes()?.to_vec(),
                _ => {}
            }
        }
        listing.total = total(total_machines);
        listing.screened(&machines, removed, |shown, bytes| shown.read(bytes), alike)
    }

    /// Where a List answer, as it was sent, goes on; empty on the last page. Reads no record.
    pub fn next_page(message: &[u8]) -> Result<&[u8], Unreadable> {
        let (mut fields, mut next_page) = (Fields(message), &[][..]);
        while let Some(field) = fields.next()? {
            if field.number == 1004 {
                next_page = field.bytes()?;
            }
        }
        Ok(next_page)
    }

    fn screened<'a, T, E>(
        mut self,
        machines: &'a [T],
        removed: Vec<&str>,
        read: impl Fn(&mut Shown<'a>, &'a T) -> Result<(), E>,
        alike: &mut Alike,
    ) -> Result<Self, E> {
        let mut ids = Vec::with_capacity(machines.len());
        let mut repeated = BTreeSet::new();
        loop {
            let mut shown = Shown::default();
            self.records.reserve_exact(machines.len());
            for machine in machines {
                read(&mut shown, machine)?;
                ids.push(shown.id);
                self.screen(&shown, repeated.contains(shown.id), alike);
            }
            if !repeated.is_empty() {
                break;
            }
            repeated = twice(&ids);
            if repeated.is_empty() {
                break;
            }
            // Rare, and known only now: once more, without those.
            (self.records, self.refused) = (Vec::new(), Vec::new());
            ids.clear();
        }
        if !removed.is_empty() {
            let listed = ids.into_iter().collect();
            removed.into_iter().for_each(|id| self.remove(id, &listed));
        }
        Ok(self)
    }

    fn screen(&mut self, shown: &Shown<'_>, is_repeated: bool, alike: &mut Alike) {
        let read = if is_repeated {
            Err(RecordProblem::Duplicate(bigfleet_model::shown(shown.id)))
        } else {
            Record::screen(shown, alike)
        };
        match read {
            Ok(record) => self.records.push(record),
            Err(problem) => {
                let id = id_of(shown.id);
                self.refused.push(RefusedRecord { id, problem });
            }
        }
    }

    fn remove(&mut self, text: &str, listed: &BTreeSet<&str>) {
        let problem = match MachineId::new(text) {
            Ok(_) if listed.contains(text) => {
                RecordProblem::ListedAndRemoved(bigfleet_model::shown(text))
            }
            Ok(id) => {
                self.removed.insert(id);
                return;
            }
            Err(refused) => RecordProblem::RemovedId(bigfleet_model::shown(text), refused),
        };
        let id = id_of(text);
        self.refused.push(RefusedRecord { id, problem });
    }
}

fn total(machines: i32) -> Option<u32> {
    let total = u32::try_from(machines).ok();
    total.filter(|total| 0 < *total)
}

fn id_of(text: &str) -> Option<MachineId> {
    MachineId::new(text).ok()
}

/// Ids that appear more than once. Which of the records is true cannot be told, so none is used.
fn twice<'a>(ids: &[&'a str]) -> BTreeSet<&'a str> {
    if ids.is_sorted_by(|one, next| one < next) {
        return BTreeSet::new(); // most list by id
    }
    let mut ids = ids.to_vec();
    ids.sort_unstable();
    let twice = ids.windows(2).filter(|pair| pair[0] == pair[1]);
    let named = twice.filter(|pair| id_of(pair[0]).is_some());
    named.map(|pair| pair[0]).collect()
}

/// An accepted mutation.
#[derive(Clone, Debug, PartialEq)]
pub struct Ack {
    /// The provider's name for the operation.
    pub operation: String,
    /// The machine as of acceptance. That it is the one asked for is the caller's to check (SH-12).
    pub record: Record,
    /// A retry was answered from the record; nothing was started.
    pub replayed: bool,
}

/// Why an acknowledgement says nothing usable. The outcome of the call is unknown.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AckRefused {
    /// The operation has no name.
    #[error("operation_id is empty (wire 3.2)")]
    NoOperation,
    /// The machine is missing.
    #[error("machine is absent (wire 3.2)")]
    NoMachine,
    /// The operation's name is too long.
    #[error(transparent)]
    Limit(#[from] OverLimit),
    /// The machine is unusable.
    #[error(transparent)]
    Record(#[from] RecordProblem),
}

impl Ack {
    /// Screens the answer to a mutation.
    pub fn read(message: TransitionAck) -> Result<Self, AckRefused> {
        if message.operation_id.is_empty() {
            return Err(AckRefused::NoOperation);
        }
        check_text("operation_id", &message.operation_id)?;
        let record = Record::read(message.machine.ok_or(AckRefused::NoMachine)?)?;
        Ok(Self {
            operation: message.operation_id,
            record,
            replayed: message.replayed,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v1alpha1::Machine;

    fn slot(id: &str) -> Machine {
        Machine {
            id: id.to_owned(),
            state: 1,
            ..Machine::default()
        }
    }

    fn texts(listing: &Listing) -> Vec<String> {
        listing.refused.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn one_bad_record_of_fifty_costs_itself_alone() {
        let mut machines: Vec<_> = (0..50).map(|n| slot(&format!("m{n}"))).collect();
        machines[7].state = 99;
        machines[8].id = String::new();
        let listing = Listing::read(MachineList {
            machines,
            ..MachineList::default()
        });
        assert_eq!(listing.records.len(), 48);
        assert_eq!(
            texts(&listing),
            [
                "machine \"m7\": State(99) is not a state (ST-5)",
                "machine \"\": an id must not be empty (ST-5)",
            ]
        );
        assert_eq!(
            listing.refused[0].id,
            id_of("m7"),
            "it still counts as seen"
        );
        assert_eq!(listing.refused[1].id, None);
    }

    #[test]
    fn no_record_of_a_repeated_id_is_used() {
        let machines = vec![slot("m1"), slot("m2"), slot("m1")];
        let listing = Listing::read(MachineList {
            machines,
            ..MachineList::default()
        });
        assert_eq!(listing.records.len(), 1);
        assert_eq!(
            texts(&listing),
            ["machine \"m1\" is listed more than once (wire 6.14)"; 2]
        );
    }

    #[test]
    fn a_removal_never_contradicts_the_list() {
        let listing = Listing::read(MachineList {
            machines: vec![slot("m1")],
            removed_ids: ["m1", "m2", ""].map(str::to_owned).to_vec(),
            ..MachineList::default()
        });
        assert_eq!(listing.removed, BTreeSet::from([id_of("m2").unwrap()]));
        assert_eq!(
            texts(&listing),
            [
                "machine \"m1\" is both listed and removed; the removal is refused (wire 12)",
                "removed_ids \"\": an id must not be empty (wire 12)",
            ]
        );
    }

    #[test]
    fn an_acknowledgement_needs_an_operation_and_a_machine() {
        let ack = |operation_id: &str, machine| {
            Ack::read(TransitionAck {
                operation_id: operation_id.to_owned(),
                machine,
                replayed: false,
            })
        };
        assert_eq!(ack("", Some(slot("m1"))), Err(AckRefused::NoOperation));
        assert_eq!(ack("o1", None), Err(AckRefused::NoMachine));
        assert!(matches!(
            ack("o1", Some(slot(""))),
            Err(AckRefused::Record(_))
        ));
        assert_eq!(ack("o1", Some(slot("m1"))).unwrap().operation, "o1");
    }
}
