//! The decision engine: from machines, demand and time to actions, claims and verdicts.
//!
//! ```text
//! facts ──▶ Engine ──▶ decide(now) ──▶ Decision
//!           │  dense records, interned shapes and profiles, own sets in keep order
//!           └─ knows what changed since it last decided
//! ```
//!
//! Two ways in, one answer: [`Engine::decide`] looks only at what changed, [`Engine::decide_full`]
//! at everything; [`decide`] does the latter for one [`Fleet`]. The rules are in
//! `docs/spec/engine.md`, and a comment names the rule it serves.
//!
//! # What it costs
//!
//! At 500,000 serving machines of 2.4 million, 460,000 rows and 2,000 clusters:
//!
//! | What | Arithmetic | |
//! |---|---|---|
//! | records | 2.4 M × 40 B | 96 MB |
//! | ids | 2.4 M × (14 B + 8 B + 7 B of table) | 70 MB |
//! | rows | 460 K × (176 B + 144 B of slot) | 147 MB |
//! | full cycle | 35 K Needs × 7 cache lines × 50 ns + 20 K classes × 6 × 50 ns | 18 ms |
//! | steady cycle | per changed row 6 cache lines to take it in, 6 to decide × 50 ns | 0.6 µs a row |
//! | quiet cycle | two comparisons | < 1 µs |
//!
//! A full cycle touches no machine of a Need that needs all it has (see `holding.rs`): that is nearly
//! every one, and why it costs less than reading 579,000 records would. What was measured, and where it differs, is in `docs/performance.md`.
//!
//! No clock, thread, hash order or randomness is in here: the same facts, in any order, give the
//! same bytes.

mod few;
mod names;
mod slab;
mod tables;

mod book;
mod class;
mod demand;
mod holding;
mod machines;
mod pool;

mod attribution;
mod claim;
mod fold;

mod domain;
mod own;
mod rest;
mod spread;

mod excess;
mod preempt;

mod compact;
mod cycle;
mod render;

mod explain;

pub use book::{Counts, Work};
pub use cycle::Part;
pub use explain::{
    Ahead, Alike, Choice, Comparison, DomainWeight, Explainer, Explanation, Fate, How, Kind,
    LeftOut, Outranks, Preemption, Rule, Victim, VictimFate, explain,
};
pub use machines::{KnownShape, MachineFact};

use bigfleet_model::{
    Action, Cluster, ClusterId, Decision, Digest, Fleet, FleetMachine, Holds, Machine, MachineId,
    Need, Price, Probability, Restamp, Shape, Time, Verdict,
};
use book::Book;
use cycle::Outcome;
use std::sync::Arc;

/// An old mistake. Only for the simulator, which must catch it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// No Need keeps its own first: whoever comes first in the order takes whatever the cluster has (RF-4).
    OwnNotFirst,
    /// A gang chooses its domain anew every cycle, wherever it stands, by what it could have there (RF-6).
    NoIncumbent,
}

/// No number.
pub(crate) const NONE: u32 = u32::MAX;

/// The answer for one fleet, with no memory of an earlier one.
pub fn decide(fleet: &Fleet) -> Decision {
    let mut engine = Engine::new();
    engine.load(fleet);
    engine.decide_full(fleet.now);
    engine.decision()
}

/// A row that was put into an engine, until it is taken out or the engine's generation changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownRow(u32, u32);

/// A fleet that is told what changes and decides on it.
#[derive(Clone, Debug, Default)]
pub struct Engine {
    book: Book,
    outcome: Outcome,
}

impl Engine {
    /// An empty fleet, with the holds of R-4.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in a whole fleet.
    pub fn load(&mut self, fleet: &Fleet) {
        self.set_holds(fleet.holds);
        for (id, cluster) in &fleet.clusters {
            self.put_cluster(id, cluster);
        }
        for machine in fleet.machines.values() {
            self.put_machine(machine);
        }
    }

    /// Goes from one fleet to another, telling itself only what differs.
    pub fn follow(&mut self, before: &Fleet, after: &Fleet) {
        self.set_holds(after.holds);
        for id in before
            .machines
            .keys()
            .filter(|id| !after.machines.contains_key(*id))
        {
            self.remove_machine(id);
        }
        for id in before
            .clusters
            .keys()
            .filter(|id| !after.clusters.contains_key(*id))
        {
            self.remove_cluster(id);
        }
        for (id, cluster) in &after.clusters {
            if before.clusters.get(id) != Some(cluster) {
                self.put_cluster(id, cluster);
            }
        }
        for (id, machine) in &after.machines {
            if before.machines.get(id) != Some(machine) {
                self.put_machine(machine);
            }
        }
    }

    /// Puts a machine in the place of what was known of it.
    pub fn put_machine(&mut self, machine: &FleetMachine) {
        let FleetMachine {
            machine,
            idle_since,
            not_ready,
            unavailable,
        } = machine;
        self.put_record(machine, *idle_since, *not_ready, *unavailable);
    }

    /// As [`Self::put_machine`], for callers that keep records and what is known beside them apart.
    pub fn put_record(
        &mut self,
        machine: &Machine,
        idle_since: Option<Time>,
        not_ready: bool,
        unavailable: bool,
    ) {
        self.book
            .put_machine(machine, idle_since, not_ready, unavailable);
    }

    /// The number of a shape at a price, for [`Self::put_fact`].
    pub fn know_shape(
        &mut self,
        shape: &Arc<Shape>,
        price: Price,
        interruption: Probability,
    ) -> KnownShape {
        KnownShape(
            self.book.shape(shape, price, interruption),
            self.book.generation,
        )
    }

    /// As [`Self::put_machine`], for callers that have no record in memory.
    pub fn put_fact(&mut self, fact: &MachineFact<'_>) {
        self.book.put_fact(fact);
    }

    /// Forgets a machine.
    pub fn remove_machine(&mut self, id: &MachineId) {
        self.book.remove_machine(id);
    }

    /// Replaces a cluster's flags and its whole demand.
    pub fn put_cluster(&mut self, id: &ClusterId, cluster: &Cluster) {
        self.book.put_cluster(id, cluster);
    }

    /// Notes that a cluster has reported, is ready, and may acquire; its demand stays.
    pub fn ready(&mut self, id: &ClusterId) {
        self.book.report(id, true, true);
    }

    /// Puts one row in the place of the one equal in profile and group: for callers that know which
    /// rows of a roll-up differ from the last. The rest of the cluster's demand stays.
    pub fn put_row(&mut self, need: &Need) -> KnownRow {
        KnownRow(self.book.put_row(need), self.book.generation)
    }

    /// As [`Self::put_row`] for a row put before, without looking for it.
    ///
    /// # Panics
    ///
    /// If it is another row, or was taken out since.
    pub fn update_row(&mut self, row: KnownRow, need: &Need) {
        assert_eq!(
            row.1,
            self.book.generation,
            "{} is a row of this generation",
            need.key()
        );
        self.book.update_row(row.0, need);
    }

    /// Takes one row out, found by its profile and group.
    pub fn remove_row(&mut self, need: &Need) {
        self.book.withdraw_row(need);
    }

    /// Forgets that a cluster ever reported.
    pub fn remove_cluster(&mut self, id: &ClusterId) {
        self.book.remove_cluster(id);
    }

    /// Sets how long unclaimed machines may stay idle.
    pub fn set_holds(&mut self, holds: Holds) {
        if self.book.holds != holds {
            self.book.holds = holds;
            self.book.changed = true;
        }
    }

    /// Brings an old mistake back.
    pub fn make(&mut self, mistake: Mistake) {
        self.book.mistake = Some(mistake);
    }

    /// Counts how often the tables were written anew, which [`Self::decide`] does when they have
    /// outgrown the fleet. A [`KnownShape`] or [`KnownRow`] is good for one generation.
    pub fn generation(&self) -> u32 {
        self.book.generation
    }

    /// Decides on what changed since the last decision.
    pub fn decide(&mut self, now: Time) {
        self.decide_in_parts(now, &mut |_| {});
    }

    /// As [`Self::decide`], and says when each part begins; none does where nothing changed.
    pub fn decide_in_parts(&mut self, now: Time, begins: &mut dyn FnMut(Part)) {
        if self.book.changed || !self.outcome.stands_at(now) {
            if let Some(book) = self.book.compacted() {
                (self.book, self.outcome) = (book, Outcome::default());
            }
            let before = std::mem::take(&mut self.outcome);
            self.outcome = self.book.cycle(before, now, false, begins);
        }
    }

    /// Decides with no use of an earlier decision.
    pub fn decide_full(&mut self, now: Time) {
        let before = std::mem::take(&mut self.outcome);
        self.outcome = self.book.cycle(before, now, true, &mut |_| {});
    }

    /// The last decision, in the words of the model.
    ///
    /// # Panics
    ///
    /// If the fleet has changed since, as for everything else that reads a decision: its machines
    /// and rows may be gone.
    pub fn decision(&self) -> Decision {
        self.book.decision(self.current())
    }

    /// The digest of [`Self::decision`], without holding it.
    pub fn digest(&self) -> Digest {
        self.book.digest(self.current())
    }

    /// What to do, in emission order: the first part of [`Self::decision`], without the cost of the
    /// rest.
    pub fn actions(&self) -> Vec<Action> {
        self.book.actions(self.current())
    }

    /// The same without the acquisitions after the first so many, and how many those are: for whoever
    /// could not do more of them now, and asks again later.
    pub fn actions_within(&self, acquisitions: usize) -> (Vec<Action>, usize) {
        self.book.actions_within(self.current(), acquisitions)
    }

    /// Commitments that change without an action, by machine.
    pub fn restamps(&self) -> Vec<Restamp> {
        self.book.restamps(self.current())
    }

    /// The verdicts of the Needs Phase 1 left short, in the total order: those of [`Self::decision`],
    /// without the cost of the rest.
    pub fn short(&self) -> Vec<Verdict> {
        let mut short: Vec<_> = self.current().short.keys().copied().collect();
        short.sort_by(|one, other| self.book.need_order(*one, *other));
        let verdict = |need| self.book.verdict(need, &self.outcome);
        short.into_iter().map(verdict).collect()
    }

    /// Machines whose intent ended, by id.
    pub fn ended_intents(&self) -> Vec<MachineId> {
        self.book.named(&self.current().ended)
    }

    /// Machines that would be reclaimed but for what replaces them (RF-11), by id.
    pub fn held(&self) -> Vec<MachineId> {
        self.book.named(&self.current().held)
    }

    /// The last decision, which only means something while nothing has changed.
    fn current(&self) -> &Outcome {
        assert!(
            !self.book.changed,
            "a decision is read before the fleet it was made for changes"
        );
        &self.outcome
    }

    /// The shape of a machine that is known.
    pub fn shape_of(&self, id: &str) -> Option<KnownShape> {
        self.book
            .ids
            .find(id)
            .map(|machine| KnownShape(self.book.record(machine).shape, self.book.generation))
    }

    /// How much the engine holds of everything.
    pub fn counts(&self) -> Counts {
        self.book.counts()
    }

    /// What deciding has touched so far.
    pub fn work(&self) -> Work {
        self.book.work
    }
}
