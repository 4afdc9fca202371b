//! The planted defects, each with the behaviours that must notice it.
//!
//! One file for each kind of promise. What a defect does is a function or two; where it sits between the
//! checks and the provider is its [`Plant`].

macro_rules! defect {
    ($name:literal, $does:literal, [$($id:literal),+], $($plant:expr),+) => {
        Defect { name: $name, does: $does, caught_by: &[$($id),+], plants: &[$($plant),+] }
    };
}

mod codes;
mod failures;
mod fence;
mod idempotency;
mod lifecycle;
mod lists;
mod metadata;
mod notices;
mod records;
mod restarts;

use bigfleet_wire::v1alpha1::{ListFilter, Machine, MachineList, TransitionAck};
use tonic::{Code, Status};

use super::proxy::{Ask, Memory};

type Answer = Result<TransitionAck, Status>;
type Shown = Result<Machine, Status>;

/// Where a defect sits, and what it does there.
#[derive(Clone, Copy, Debug)]
pub(super) enum Plant {
    /// Before a mutation is looked at; a status refuses it.
    Asked(fn(&mut Ask, &mut Memory) -> Option<Status>),
    /// In the answer to a mutation.
    Ack(fn(&Ask, Answer, &mut Memory) -> Answer),
    /// In every record that is shown.
    Record(fn(&mut Machine, &mut Memory)),
    /// In the answer to a Get.
    Got(fn(&str, Shown, &mut Memory) -> Shown),
    /// In how a List is understood.
    Filter(fn(&mut ListFilter)),
    /// In the answer to a List.
    Listed(fn(&ListFilter, MachineList, &mut Memory) -> Result<MachineList, Status>),
    /// A Delete takes a machine from its cluster.
    DeletesBound,
    /// A call is answered before it is on disk.
    LosesLastWrite,
}

/// One broken promise.
#[derive(Debug)]
pub struct Defect {
    /// Its name on the command line and in reports.
    pub name: &'static str,
    /// What a provider with it does.
    pub does: &'static str,
    /// The behaviours one of which must notice it.
    pub caught_by: &'static [&'static str],
    pub(super) plants: &'static [Plant],
}

impl Defect {
    /// Every planted defect.
    pub fn all() -> Vec<&'static Self> {
        GROUPS.iter().copied().flatten().collect()
    }
}

/// The proxy alone.
pub(super) const NONE: Defect = Defect {
    name: "none",
    does: "keeps every promise",
    caught_by: &[],
    plants: &[],
};

/// In the order in which they are hunted.
static GROUPS: [&[Defect]; 10] = [
    codes::ALL,
    fence::ALL,
    idempotency::ALL,
    lifecycle::ALL,
    metadata::ALL,
    records::ALL,
    lists::ALL,
    notices::ALL,
    restarts::ALL,
    failures::ALL,
];

fn code(answer: &Answer) -> Code {
    answer.as_ref().err().map_or(Code::Ok, Status::code)
}

fn ack_of(ask: &Ask) -> TransitionAck {
    TransitionAck {
        operation_id: "op-made-up".to_owned(),
        machine: ask.before.clone(),
        ..TransitionAck::default()
    }
}

fn with_id(answer: Answer, id: impl FnOnce(String) -> String) -> Answer {
    answer.map(|ack| TransitionAck {
        operation_id: id(ack.operation_id),
        ..ack
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Suite, catalogue};
    use std::collections::BTreeSet;

    #[test]
    fn every_defect_names_behaviours_that_decide() {
        let known = catalogue();
        let all = Defect::all();
        let names: BTreeSet<_> = all.iter().map(|defect| defect.name).collect();
        assert_eq!(names.len(), all.len(), "a name occurs twice");
        assert!(30 <= all.len(), "{}", all.len());
        for defect in all {
            // Notices are beyond the contract, and so is the behaviour that looks at them.
            let beyond = notices::ALL.iter().any(|one| one.name == defect.name);
            let suite = if beyond { Suite::Ours } else { Suite::Contract };
            for id in defect.caught_by {
                let named = known.iter().find(|behaviour| behaviour.id == *id);
                let found = named.map(|named| named.suite());
                assert_eq!(found, Some(suite), "{}: {id}", defect.name);
            }
        }
    }
}
