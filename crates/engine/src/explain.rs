//! Explain: why a Need got what it got.
//!
//! ```text
//! fleet ──▶ one full cycle, traced for one Need ──▶ position · machines · domains · victims
//! ```
//!
//! It runs the same cycle that decides; the trace only writes down what the cycle weighed (`trace`). An
//! explanation has an engine of its own, so asking cannot change an answer. It is bounded: machines that
//! are alike are one line, and every list says how much it leaves out.

mod choice;
mod equals;
mod fate;
mod leaving;
mod machines;
mod remedies;
mod trace;
mod victims;

pub use choice::{Choice, Comparison, DomainWeight, Rule};
pub use equals::{Equal, Equals, StaysBecause};
pub use fate::{ClaimSource, Fate, NotReplaced};
pub use machines::{Alike, LeftOut, MachineKind};
pub use remedies::{Edit, Mark, Remedy};
pub(crate) use trace::Trace;
pub use victims::{Preemption, Victim, VictimFate};

use crate::{
    Engine,
    cycle::{Outcome, PlannedAction},
    fleet_tables::{FleetTables, NeedEntry},
    index::{MachineIndex, NeedIndex},
};
use bigfleet_model::{
    Action, Amounts, Decision, Fleet, Group, HashKey, Need, NeedKey, Time, Verdict,
};
use machines::ExplainedCycle;

/// The comparison that puts another Need ahead of this one (O-1): its value, then this one's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outranks {
    /// A higher priority.
    Priority(i32, i32),
    /// A higher interruption bucket.
    Interruption(u8, u8),
    /// A higher reclamation bucket.
    Reclamation(u8, u8),
    /// An earlier arrival.
    Arrival(Option<Time>, Option<Time>),
    /// The texts that tell them apart: cluster, fingerprint, group, smallest unit, amounts.
    Name,
}

/// A Need that is served earlier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ahead {
    /// Its identity.
    pub need: NeedKey,
    /// The comparison that puts it first.
    pub by: Outranks,
    /// How many machines it has that this Need could use.
    pub holds: usize,
}

/// What the machines of a Need come to that counts whole units (RF-19), in the dimensions it asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WholeUnits {
    /// What they count for.
    pub counted: Amounts,
    /// What they would count for otherwise.
    pub otherwise: Amounts,
}

/// Everything an explanation says about one Need.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// What was decided about it, with the Need as it was evaluated: after folding.
    pub verdict: Verdict,
    /// Its place in the order in which Needs are served, counted from 1.
    pub position: usize,
    /// How many Needs there are.
    pub needs: usize,
    /// Needs that are served earlier; those that have machines it could use come first.
    pub ahead: Vec<Ahead>,
    /// What is done for it, in emission order.
    pub actions: Vec<Action>,
    /// What its machines come to, if it counts whole units.
    pub whole_units: Option<WholeUnits>,
    /// All machines, grouped by what they are and what became of them.
    pub machines: Vec<Alike>,
    /// How many of those groups are not listed.
    pub left_out: LeftOut,
    /// How a gang's domain was chosen.
    pub choice: Option<Choice>,
    /// What Phase 2 weighed, if the Need was short and may preempt.
    pub preemption: Option<Preemption>,
}

impl Explanation {
    /// How many Needs ahead are named.
    pub const MOST_AHEAD: usize = 10;
}

/// Explains the Need with this identity. For a gang that folded, explains the row it folded to.
///
/// Needs whose texts collide have one identity: the first in the order is explained. For the
/// others, and for several Needs of one fleet, see [`Explainer`].
pub fn explain(fleet: &Fleet, need: &NeedKey) -> Option<Explanation> {
    let mut explainer = Explainer::new(fleet);
    let position = *explainer.find(need).first()?;
    explainer.at(position)
}

/// A fleet to ask about, decided on once.
#[derive(Debug)]
pub struct Explainer<'a> {
    fleet: &'a Fleet,
    engine: Engine,
    order: Vec<NeedIndex>,
}

impl<'a> Explainer<'a> {
    /// Loads a fleet and decides about it.
    pub fn new(fleet: &'a Fleet) -> Self {
        Self::keyed(fleet, HashKey::default())
    }

    /// As [`Self::new`], for names that strangers choose: see [`Engine::keyed`].
    pub fn keyed(fleet: &'a Fleet, key: HashKey) -> Self {
        let mut engine = Engine::keyed(key);
        engine.load(fleet);
        engine.decide_full(fleet.now);
        let order = engine.tables.needs_in_order();
        Self {
            fleet,
            engine,
            order,
        }
    }

    /// The identities of the Needs after folding, in the total order.
    pub fn needs(&self) -> impl Iterator<Item = NeedKey> {
        self.order
            .iter()
            .map(|need| self.engine.tables.key_of(*need))
    }

    /// The positions of the Needs with this identity, counted from 0: several where texts collide,
    /// that of the folded row for a gang that folded.
    pub fn find(&self, key: &NeedKey) -> Vec<usize> {
        let at = |key: &NeedKey| {
            let slot = self.engine.tables.find_slot(key);
            let has_slot = |at: &usize| Some(self.engine.tables.need(self.order[*at]).slot) == slot;
            (0..self.order.len()).filter(has_slot).collect::<Vec<_>>()
        };
        let found = at(key);
        if !found.is_empty() {
            return found;
        }
        let rows = self.fleet.clusters.get(&key.cluster);
        let mut rows = rows.into_iter().flat_map(|cluster| cluster.needs());
        let gang = rows.find(|row| row.row.profile.same_key().is_some() && row.key() == *key);
        gang.map_or_else(Vec::new, |gang| at(&folded_key(gang)))
    }

    /// Explains the Need at this position, counted from 0.
    pub fn at(&mut self, position: usize) -> Option<Explanation> {
        let need = *self.order.get(position)?;
        self.engine.tables.trace = Some(Box::new(Trace::of(need)));
        self.engine.decide_full(self.fleet.now);
        let trace = self.engine.tables.trace.take();
        let trace = trace.map_or_else(|| Trace::of(need), |trace| *trace);
        let Engine { tables, outcome } = &self.engine;
        Some(tables.explain(outcome, &self.order, position, trace))
    }

    /// The decision. Asking does not change it.
    pub fn decision(&self) -> Decision {
        self.engine.decision()
    }
}

/// The identity of the row a gang folds to (F-2).
fn folded_key(need: &Need) -> NeedKey {
    NeedKey {
        cluster: need.cluster.clone(),
        fingerprint: need.row.profile.folded().fingerprint().clone(),
        group: Group::new(&format!("fold:{}", need.row.aggregate.key())),
    }
}

impl FleetTables {
    fn explain(
        &self,
        outcome: &Outcome,
        order: &[NeedIndex],
        position: usize,
        trace: Trace,
    ) -> Explanation {
        let need = order[position];
        let preempted = outcome.actions.iter().filter_map(|action| match action {
            PlannedAction::Preempt { machine, need, .. } => Some((*machine, *need)),
            PlannedAction::Restore { .. }
            | PlannedAction::Bootstrap { .. }
            | PlannedAction::Provision { .. }
            | PlannedAction::Reclaim { .. }
            | PlannedAction::Delete { .. } => None,
        });
        let choice = self.explain_choice(need, trace.choice.clone());
        let (machines, left_out) = self.explain_machines(&ExplainedCycle {
            need,
            trace: &trace,
            held: outcome.held.iter().copied().collect(),
            preempted: preempted.collect(),
            restored: &outcome.restored,
            buys_nothing: choice
                .as_ref()
                .is_some_and(|choice| choice.rule == Rule::Partial),
        });
        let preemption = trace
            .victims
            .map(|victims| self.explain_victims(need, victims));
        let planned = outcome.actions.iter().zip(self.actions(outcome));
        let for_it = planned.filter(|(action, _)| match action {
            PlannedAction::Restore { need: of, .. }
            | PlannedAction::Bootstrap { need: of, .. }
            | PlannedAction::Provision { need: of, .. }
            | PlannedAction::Preempt { need: of, .. } => *of == need,
            PlannedAction::Reclaim { .. } | PlannedAction::Delete { .. } => false,
        });
        Explanation {
            verdict: self.verdict(need, outcome),
            position: position + 1,
            needs: order.len(),
            ahead: self.explain_order(need, &order[..position]),
            actions: for_it.map(|(_, action)| action).collect(),
            whole_units: self.need(need).whole.then(|| self.explain_units(need)),
            machines,
            left_out,
            choice,
            preemption,
        }
    }

    fn explain_units(&self, need: NeedIndex) -> WholeUnits {
        let NeedEntry { usage, wanted, .. } = self.need(need);
        let sum = |whole: bool| {
            let amount = |dimension| {
                let claims = self.claims(need).iter();
                let each = claims.map(|machine| {
                    let shape = self.record(*machine).shape;
                    i128::from(self.catalog.credit(*usage, whole, shape).amount(dimension))
                });
                each.sum()
            };
            let wanted = wanted.iter().map(|(dimension, _)| dimension);
            self.catalog
                .dimensions
                .amounts(wanted.map(|dimension| (dimension, amount(dimension))))
        };
        WholeUnits {
            counted: sum(true),
            otherwise: sum(false),
        }
    }

    /// The Needs that are served earlier, with the comparison that puts them ahead.
    fn explain_order(&self, need: NeedIndex, ahead: &[NeedIndex]) -> Vec<Ahead> {
        let holds = |other: NeedIndex| {
            let of_use = |machine: &&MachineIndex| self.serves(need, self.record(**machine).shape);
            self.claims(other).iter().filter(of_use).count()
        };
        let mut ahead: Vec<(usize, NeedIndex)> =
            ahead.iter().map(|other| (holds(*other), *other)).collect();
        // The sort is stable, so each half stays in the total order.
        ahead.sort_by_key(|(holds, _)| *holds == 0);
        ahead.truncate(Explanation::MOST_AHEAD);
        let named = |(holds, other): (usize, NeedIndex)| Ahead {
            need: self.key_of(other),
            by: self.outranks(other, need),
            holds,
        };
        ahead.into_iter().map(named).collect()
    }

    fn outranks(&self, other: NeedIndex, need: NeedIndex) -> Outranks {
        let profile = |at: NeedIndex| &self.catalog.profiles[self.need(at).profile].profile;
        let (theirs, ours) = (profile(other), profile(need));
        let arrivals = (self.need(other).arrival, self.need(need).arrival);
        if theirs.priority() != ours.priority() {
            Outranks::Priority(theirs.priority(), ours.priority())
        } else if theirs.interruption() != ours.interruption() {
            let number = (theirs.interruption().number(), ours.interruption().number());
            Outranks::Interruption(number.0, number.1)
        } else if theirs.reclamation() != ours.reclamation() {
            let number = (theirs.reclamation().number(), ours.reclamation().number());
            Outranks::Reclamation(number.0, number.1)
        } else if arrivals.0 != arrivals.1 {
            Outranks::Arrival(arrivals.0, arrivals.1)
        } else {
            Outranks::Name
        }
    }
}
