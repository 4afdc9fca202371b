//! What a provider answers, and how it shows a machine.

use bigfleet_model::{Assignment, Echoed, Machine, MachineRefused};
use bigfleet_shard_core::{CallOutcome, Event, Got, ListId, Listed, OperationId, Sighting, Token};

/// A machine without what only the shard knows: for whom it is, and whom it is meant for.
pub fn bare(machine: Machine) -> Machine {
    let bare = machine.committed(Assignment::default(), None);
    // Only an intent is refused here, and there is none.
    bare.unwrap_or_else(|refused| panic!("a machine without commitment is refused: {refused:?}"))
}

/// A machine as its provider shows it, with the metadata it was bound with.
pub fn shown(machine: Machine) -> Sighting {
    let echoed = match machine.cluster() {
        Some(_) => (&machine.assignment().to_metadata()).into(),
        None => Echoed::default(),
    };
    let machine = bare(machine);
    Sighting {
        machine,
        echoed,
        leaving: None,
    }
}

/// A call is answered.
pub fn call_ended(operation: OperationId, token: &Token, outcome: CallOutcome) -> Event {
    Event::CallEnded {
        operation,
        sequence: token.sequence,
        outcome,
    }
}

/// The answer to a Get: the machine, if there is one.
pub fn found(machine: Option<Sighting>) -> Got {
    machine.map_or(Got::NotFound, |found| Got::Found(Box::new(found)))
}

/// A List in one page, and its end.
pub fn listed(
    list: ListId,
    machines: Vec<Sighting>,
    refused: Vec<(String, MachineRefused)>,
    outcome: Listed,
) -> [Event; 2] {
    let page = Event::ListPage {
        list,
        machines,
        refused,
    };
    [page, Event::ListEnded { list, outcome }]
}
