//! Explain: why a Need got what it got.
//!
//! ```text
//! fleet ──▶ one full cycle, traced for one Need ──▶ position · machines · domains · victims
//! ```
//!
//! The cycle is the one that decides; the trace only writes down what it weighed (`trace`). An
//! explanation runs on books of its own, so asking cannot change an answer. It is bounded: machines
//! alike are one line, and every list says how much it leaves out.

mod choice;
mod fate;
mod machines;
mod trace;
mod victims;

pub use choice::{Choice, Comparison, DomainWeight, Rule};
pub use fate::{Fate, How};
pub use machines::{Alike, Kind, LeftOut};
pub(crate) use trace::Trace;
pub use victims::{Preemption, Victim, VictimFate};

use crate::{
    Engine,
    book::{Book, NeedIx},
    cycle::{Outcome, Step},
};
use bigfleet_model::{Action, Decision, Fleet, Group, Need, NeedKey, Time, Verdict};
use machines::View;

/// The comparison that puts one Need ahead of another (O-1), theirs before ours.
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
    /// The texts: cluster, fingerprint, group, and what else tells them apart.
    Name,
}

/// A Need whose turn is earlier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ahead {
    /// Which.
    pub need: NeedKey,
    /// Why.
    pub by: Outranks,
    /// How many machines it has that this Need could use.
    pub holds: usize,
}

/// What there is to say about one Need.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// What was decided about it, and the Need as it was evaluated: folded where it folded.
    pub verdict: Verdict,
    /// Its turn, counted from 1.
    pub position: usize,
    /// How many Needs have one.
    pub needs: usize,
    /// Of those whose turn is earlier, first the ones that have machines it could use.
    pub ahead: Vec<Ahead>,
    /// What is done for it, in emission order.
    pub actions: Vec<Action>,
    /// All machines, those alike together.
    pub machines: Vec<Alike>,
    /// Which are not listed.
    pub left_out: LeftOut,
    /// For a gang, how it came by its domain.
    pub choice: Option<Choice>,
    /// What Phase 2 weighed, if the Need was short and may preempt.
    pub preemption: Option<Preemption>,
}

impl Explanation {
    /// How many Needs ahead are named.
    pub const MOST_AHEAD: usize = 10;
}

/// Explains the Need with this identity; a gang that folded, by the row it folded to.
///
/// Needs whose texts collide have one identity: the first in the order is explained. For the
/// others, and for several Needs of one fleet, see [`Explainer`].
pub fn explain(fleet: &Fleet, need: &NeedKey) -> Option<Explanation> {
    let mut explainer = Explainer::new(fleet);
    let position = *explainer.find(need).first()?;
    explainer.at(position)
}

/// A fleet to ask about.
#[derive(Debug)]
pub struct Explainer<'a> {
    fleet: &'a Fleet,
    engine: Engine,
    order: Vec<NeedIx>,
}

impl<'a> Explainer<'a> {
    /// Takes in a fleet and decides on it.
    pub fn new(fleet: &'a Fleet) -> Self {
        let mut engine = Engine::new();
        engine.load(fleet);
        engine.decide_full(fleet.now);
        let order = engine.book.needs_in_order();
        Self {
            fleet,
            engine,
            order,
        }
    }

    /// The identities of the Needs after folding, in the total order.
    pub fn needs(&self) -> impl Iterator<Item = NeedKey> {
        self.order.iter().map(|need| self.engine.book.key_of(*need))
    }

    /// The positions of the Needs with this identity, counted from 0: several where texts collide,
    /// that of the folded row for a gang that folded.
    pub fn find(&self, key: &NeedKey) -> Vec<usize> {
        let at = |key: &NeedKey| {
            let slot = self.engine.book.find_slot(key);
            let has_slot = |at: &usize| self.engine.book.need(self.order[*at]).slot == slot;
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
        self.engine.book.trace = Some(Box::new(Trace::of(need)));
        self.engine.decide_full(self.fleet.now);
        let trace = self.engine.book.trace.take();
        let trace = trace.map_or_else(|| Trace::of(need), |trace| *trace);
        let Engine { book, outcome } = &self.engine;
        Some(book.explain(outcome, &self.order, position, trace))
    }

    /// The decision as of the last question; the same as before it.
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

impl Book {
    fn explain(
        &self,
        outcome: &Outcome,
        order: &[NeedIx],
        position: usize,
        trace: Trace,
    ) -> Explanation {
        let need = order[position];
        let preempted = outcome.steps.iter().filter_map(|step| match step {
            Step::Preempt { machine, need, .. } => Some((*machine, *need)),
            Step::Bootstrap { .. }
            | Step::Provision { .. }
            | Step::Reclaim { .. }
            | Step::Delete { .. } => None,
        });
        let choice = self.explain_choice(need, trace.choice.clone());
        let (machines, left_out) = self.explain_machines(&View {
            need,
            trace: &trace,
            held: outcome.held.iter().copied().collect(),
            preempted: preempted.collect(),
            buys_nothing: choice
                .as_ref()
                .is_some_and(|choice| choice.rule == Rule::Partial),
        });
        let preemption = trace
            .victims
            .map(|victims| self.explain_victims(need, victims));
        let steps = outcome.steps.iter().zip(self.actions(outcome));
        let for_it = steps.filter(|(step, _)| match step {
            Step::Bootstrap { need: of, .. }
            | Step::Provision { need: of, .. }
            | Step::Preempt { need: of, .. } => *of == need,
            Step::Reclaim { .. } | Step::Delete { .. } => false,
        });
        Explanation {
            verdict: self.verdict(need, outcome),
            position: position + 1,
            needs: order.len(),
            ahead: self.explain_order(need, &order[..position]),
            actions: for_it.map(|(_, action)| action).collect(),
            machines,
            left_out,
            choice,
            preemption,
        }
    }

    /// Who comes first, and which comparison says so.
    fn explain_order(&self, need: NeedIx, ahead: &[NeedIx]) -> Vec<Ahead> {
        let holds = |other: NeedIx| {
            let of_use = |machine: &&u32| self.serves(need, self.record(**machine).shape);
            self.claims(other).iter().filter(of_use).count()
        };
        let mut ahead: Vec<(usize, NeedIx)> =
            ahead.iter().map(|other| (holds(*other), *other)).collect();
        // Stable: within each half the total order stays.
        ahead.sort_by_key(|(holds, _)| *holds == 0);
        ahead.truncate(Explanation::MOST_AHEAD);
        let named = |(holds, other): (usize, NeedIx)| Ahead {
            need: self.key_of(other),
            by: self.outranks(other, need),
            holds,
        };
        ahead.into_iter().map(named).collect()
    }

    fn outranks(&self, other: NeedIx, need: NeedIx) -> Outranks {
        let profile = |at: NeedIx| &self.tables.profiles[self.need(at).profile as usize].profile;
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
