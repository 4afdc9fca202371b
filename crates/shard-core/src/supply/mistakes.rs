//! Mistakes: what the engine is told of a machine while an old defect is switched on.

use crate::defect::Defect;
use bigfleet_model::{Fingerprint, FleetMachine, Group, Leaving, Machine, State};

/// What the engine is told instead; `None` if it is not told of the machine at all.
pub(super) fn wrongly_told(mut told: FleetMachine, defect: Defect) -> Option<FleetMachine> {
    let promised = told.machine.intent().is_some();
    let mut facts = told.machine.clone().into_facts();
    match (defect, told.machine.state()) {
        (Defect::CreatingNotCredited, State::Creating) => {
            facts.intent = None;
            told.unavailable = true;
        }
        (Defect::CreditByClusterOnly, state) if state.is_bound() => {
            facts.assignment.fingerprint = Fingerprint::default();
            facts.assignment.group = Group::default();
        }
        (Defect::NoMakeBeforeBreak, State::Configuring) => {
            facts.state = State::Configured.into();
        }
        (Defect::UnjoinedCounted, _) => told.not_ready = false,
        (Defect::SoonToldAsNow, _) => told.leaving = told.leaving.map(|_| Leaving::Now),
        (Defect::NowToldAsSoon, _) => told.leaving = told.leaving.map(|_| Leaving::Soon),
        (Defect::DrainedIdleOffered, state) if !state.is_bound() => told.leaving = None,
        (Defect::DrainingNotPromised, State::Draining) if promised => return None,
        _ => {}
    }
    told.machine = Machine::new(facts).unwrap_or(told.machine);
    Some(told)
}
