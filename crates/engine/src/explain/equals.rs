//! Equals: why this machine is reclaimed and not another that is just like it (RF-18, R-1).
//!
//! Read off a fleet and its decision alone, so that whoever has both can ask.

use bigfleet_model::{
    ActionKind, Amounts, ClusterId, Decision, Disruption, Dollars, Fleet, FleetMachine, MachineId,
    Need, Price, State,
};
use std::{cmp::Reverse, collections::BTreeMap};

/// A machine like one that is reclaimed, which stays.
#[derive(Clone, Debug, PartialEq)]
pub struct Equal {
    /// The one that stays.
    pub machine: MachineId,
    /// What it has over the other.
    pub because: StaysBecause,
}

/// The first comparison that decides which of two equals stays; of the one that stays, then of the other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StaysBecause {
    /// It is kept at a lower price.
    Cheaper(Price, Price),
    /// Losing it costs more.
    DearerToLose(Dollars, Dollars),
    /// Draining it would disturb more.
    DisturbsMore(Disruption, Disruption),
    /// All else is equal, and its id comes first.
    Id,
}

/// The machines that stay, by what makes them equals.
pub struct Equals<'a> {
    fleet: &'a Fleet,
    staying: BTreeMap<(&'a ClusterId, &'a Amounts), Vec<(&'a FleetMachine, &'a Need)>>,
}

/// What is compared, the one that stays first.
type Standing<'a> = (Price, Reverse<Dollars>, Reverse<Disruption>, &'a MachineId);

fn standing(found: &FleetMachine) -> Standing<'_> {
    let machine = &found.machine;
    let penalty = Reverse(machine.terms().reclamation);
    let disturbs = Reverse(found.disturbs());
    (machine.keep_price(), penalty, disturbs, machine.id())
}

impl<'a> Equals<'a> {
    /// The machines that serve on after this decision about this fleet.
    pub fn new(fleet: &'a Fleet, decision: &'a Decision) -> Self {
        let needs = decision.needs.iter().map(|verdict| &*verdict.need);
        let needs: BTreeMap<_, &Need> = needs.map(|need| (need.key(), need)).collect();
        let preempts = decision.actions.iter();
        let preempts = preempts.filter(|action| action.kind == ActionKind::Preempt);
        let preempted: Vec<&MachineId> = preempts.map(|action| &action.machine).collect();
        let mut staying: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for claim in &decision.claims {
            let found = fleet.machines.get(&claim.machine);
            let serving = found.filter(|found| {
                found.machine.state() == State::Configured && !preempted.contains(&&claim.machine)
            });
            if let Some(found) = serving
                && let Some(cluster) = found.machine.cluster()
                && let Some(need) = needs.get(&claim.need)
            {
                let size = (cluster, found.machine.shape().effective());
                staying.entry(size).or_default().push((found, *need));
            }
        }
        Self { fleet, staying }
    }

    /// The closest equal of a machine that is reclaimed: it stays, and would be the next to go. One that is
    /// marked to leave goes for that alone (RF-21).
    pub fn of(&self, machine: &MachineId) -> Option<Equal> {
        let going = self.fleet.machines.get(machine);
        let going = going.filter(|going| going.leaving.is_none())?;
        let shape = going.machine.shape();
        let equals = self
            .staying
            .get(&(going.machine.cluster()?, shape.effective()))?;
        let better = equals.iter().filter(|(stays, need)| {
            standing(stays) < standing(going) && shape.serves(&need.row.profile, &need.row.min_unit)
        });
        let (stays, _) = better.max_by_key(|(stays, _)| standing(stays))?;
        let (ours, theirs) = (standing(stays), standing(going));
        let because = if ours.0 != theirs.0 {
            StaysBecause::Cheaper(ours.0, theirs.0)
        } else if ours.1 != theirs.1 {
            StaysBecause::DearerToLose(ours.1.0, theirs.1.0)
        } else if ours.2 != theirs.2 {
            StaysBecause::DisturbsMore(ours.2.0, theirs.2.0)
        } else {
            StaysBecause::Id
        };
        Some(Equal {
            machine: stays.machine.id().clone(),
            because,
        })
    }
}
