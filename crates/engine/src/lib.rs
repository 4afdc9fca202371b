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
//! | records | 2.4 M × 32 B | 77 MB |
//! | ids | 2.4 M × (14 B + 8 B + 7 B of table) | 70 MB |
//! | rows | 460 K × (96 B + 96 B of slot) | 88 MB |
//! | full cycle | 35 K Needs × 7 cache lines × 50 ns + 20 K classes × 6 × 50 ns | 18 ms |
//! | steady cycle | per changed row 6 cache lines to take it in, 6 to decide × 50 ns | 0.6 µs a row |
//! | quiet cycle | two comparisons | < 1 µs |
//!
//! Nearly every Need needs all the machines it has, and a full cycle looks at none of those (see
//! `holding.rs`). That is why it costs less than reading 579,000 records would. What was measured is in
//! `docs/performance.md`.
//!
//! No clock, thread, hash order or randomness is in here: the same facts, in any order and with any
//! [`HashKey`], give the same bytes.

mod index;
mod names;
mod requested_amounts;
mod slab;
mod slim_list;
mod small_list;
mod table;
mod texts;

mod catalog;
mod fleet_tables;
mod holding;
mod idle;
mod lines;
mod offers;
mod pool;
mod shape_set;
mod units;

mod changes;
mod class;
mod demand;
mod machines;

mod attribution;
mod fold;
mod own_machines;

mod domain;
mod pass_a;
mod pass_b;
mod picking;
mod replace;
mod rivals;
mod serving_lines;
mod spread;

mod excess;
mod exchange;
mod preempt;

mod compact;
mod cycle;
mod render;

mod explain;

pub use cycle::Part;
pub use explain::{
    Ahead, Alike, Choice, ClaimSource, Comparison, DomainWeight, Edit, Equal, Equals, Explainer,
    Explanation, Fate, LeftOut, MachineKind, Mark, NotReplaced, Outranks, Preemption, Remedy, Rule,
    StaysBecause, Victim, VictimFate, WholeUnits, explain,
};
pub use fleet_tables::{Counts, Work};
pub use machines::{Beside, KnownShape, MachineFact};

use bigfleet_model::{
    Action, Cluster, ClusterId, Decision, Digest, Disruption, Fleet, FleetMachine, HashKey, Holds,
    Machine, MachineId, Need, NeedKey, Price, Probability, Restamp, Shape, Time, Verdict,
};
use cycle::Outcome;
use fleet_tables::FleetTables;
use index::NeedIndex;
use std::sync::Arc;

/// A mistake of an earlier version, which the simulator switches on to show that it would be caught.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// Pass A is left out: the first Need in the order takes any machine of the cluster (RF-4).
    OwnNotFirst,
    /// A gang chooses its domain anew in every cycle and does not prefer the one it is in (RF-6).
    NoIncumbent,
    /// A machine counts for a whole unit of which it holds a part (RF-19).
    CreditRoundedUp,
    /// Whole units are counted by the first of their dimensions (RF-19).
    CreditByFirstDimension,
    /// Drains are taken back before loose machines are taken (RF-5: B1a before B1).
    RestoredFirst,
    /// Drains are taken back after free machines are taken (RF-5: B1a after B2).
    RestoredLast,
    /// Drains are taken back for any cluster (RF-20).
    RestoredForAnybody,
    /// What is taken back is listed as committed otherwise, too (RF-20).
    RestoredAndRestamped,
    /// What disturbs less is claimed last (RF-2: keep order does not know disruption).
    DisruptionInKeepOrder,
    /// Of equals the one leaves that disturbs most (RF-18).
    BusiestFirst,
    /// An exchange does not look at what a machine is worth to whom it serves (RF-18).
    PenaltyIgnored,
    /// An exchange does not look at where machines lie (RF-18).
    DomainIgnored,
    /// A machine that its Need has outgrown is let go at once (RF-11).
    OutgrownNotHeld,
    /// What was found in place of a machine that leaves is kept though it is not enough (RF-21).
    PartialPurchaseKept,
    /// A machine that leaves soon is held for any Need that waits (RF-21).
    LeavingHeldForAnybody,
    /// A machine that leaves soon is anybody's leftover, though its Need is there or has replaced it (RF-21).
    LeavingIsLeftover,
    /// What was given back for others is not attributed to the Need that gave it back (RF-21).
    ReplacedNotRestamped,
    /// A gang that is short replaces what leaves (RF-21).
    IncompleteGangReplaces,
    /// A machine that leaves soon is no witness (RF-12, RF-21).
    LeavingIsNoWitness,
    /// A machine does not replace one of its own domain if the spread would refuse it (RF-21).
    LikeRefusedBySpread,
    /// A domain counts for the spread though all that is bound there leaves (RF-21).
    DeadDomainCounts,
    /// Needs replace what leaves once all have had their turn (RF-21).
    ReplacedAfterAll,
    /// The intent of an unbound machine stands though it leaves (RF-21).
    LeavingIntentStands,
}

/// Decides about one fleet from nothing: no earlier decision is used.
pub fn decide(fleet: &Fleet) -> Decision {
    let mut engine = Engine::new();
    engine.load(fleet);
    engine.decide_full(fleet.now);
    engine.decision()
}

/// The handle of a row in an engine. It ends when the row is taken out or the engine's generation changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownRow {
    need: NeedIndex,
    generation: u32,
}

/// Holds a fleet, is told what changes in it, and decides.
#[derive(Clone, Debug, Default)]
pub struct Engine {
    tables: FleetTables,
    outcome: Outcome,
}

impl Engine {
    /// An engine with an empty fleet and the default holds of R-4.
    pub fn new() -> Self {
        Self::default()
    }

    /// As [`Self::new`], for names that strangers choose: none of them can make searches slow without knowing
    /// the key (D-6). Nothing that is decided depends on it.
    pub fn keyed(key: HashKey) -> Self {
        Self {
            tables: FleetTables::new(key),
            outcome: Outcome::default(),
        }
    }

    /// Adds every cluster and machine of a fleet.
    pub fn load(&mut self, fleet: &Fleet) {
        self.set_holds(fleet.holds);
        for (id, cluster) in &fleet.clusters {
            self.put_cluster(id, cluster);
        }
        for machine in fleet.machines.values() {
            self.put_machine(machine);
        }
    }

    /// Applies the differences between two fleets; `before` must be what the engine holds.
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

    /// Adds a machine, or replaces what is known of it.
    pub fn put_machine(&mut self, machine: &FleetMachine) {
        let FleetMachine {
            ref machine,
            idle_since,
            not_ready,
            unavailable,
            disruption,
            reversible,
            leaving,
        } = *machine;
        let beside = Beside {
            idle_since,
            not_ready,
            unavailable,
            disruption,
            reversible,
            leaving,
        };
        self.put_record(machine, beside);
    }

    /// As [`Self::put_machine`], for callers that keep the record apart from the rest.
    pub fn put_record(&mut self, machine: &Machine, beside: Beside) {
        self.tables.put_machine(machine, beside);
    }

    /// Makes a shape at a price known to the engine, for [`Self::put_fact`].
    pub fn know_shape(
        &mut self,
        shape: &Arc<Shape>,
        price: Price,
        interruption: Probability,
    ) -> KnownShape {
        KnownShape {
            shape: self.tables.shape(shape, price, interruption),
            generation: self.tables.generation,
        }
    }

    /// As [`Self::put_machine`], for callers that have no [`Machine`] in memory.
    pub fn put_fact(&mut self, fact: &MachineFact<'_>) {
        self.tables.put_fact(fact);
    }

    /// Notes what draining a machine would disturb, if that is known (RF-2). It is read where something leaves
    /// and nowhere else: no Need is looked at because of it, and a decision by which nothing leaves stands.
    pub fn set_disruption(&mut self, id: &MachineId, told: Option<Disruption>) {
        self.tables.set_disruption(id, told);
    }

    /// Removes a machine.
    pub fn remove_machine(&mut self, id: &MachineId) {
        self.tables.remove_machine(id);
    }

    /// Replaces a cluster's flags and its whole demand.
    pub fn put_cluster(&mut self, id: &ClusterId, cluster: &Cluster) {
        self.tables.put_cluster(id, cluster);
    }

    /// Marks a cluster as reported, ready and allowed to acquire. Its demand stays.
    pub fn ready(&mut self, id: &ClusterId) {
        self.tables.report(id, true, true);
    }

    /// Adds a row, or replaces the one with the same profile and group. For callers that know which rows
    /// of a roll-up differ from the last; the rest of the cluster's demand stays.
    pub fn put_row(&mut self, need: &Need) -> KnownRow {
        KnownRow {
            need: self.tables.put_row(need),
            generation: self.tables.generation,
        }
    }

    /// As [`Self::put_row`] for a row whose handle is known, which saves looking for it.
    ///
    /// # Panics
    ///
    /// If the handle is of another row, or the row was removed.
    pub fn update_row(&mut self, row: KnownRow, need: &Need) {
        assert_eq!(
            row.generation,
            self.tables.generation,
            "{} is a row of this generation",
            need.key()
        );
        self.tables.update_row(row.need, need);
    }

    /// Removes the row with the same profile and group, if there is one.
    pub fn remove_row(&mut self, need: &Need) {
        self.tables.withdraw_row(need);
    }

    /// Removes a cluster and its demand, as if it had never reported.
    pub fn remove_cluster(&mut self, id: &ClusterId) {
        self.tables.remove_cluster(id);
    }

    /// Sets how long unclaimed machines may stay idle.
    pub fn set_holds(&mut self, holds: Holds) {
        if self.tables.holds != holds {
            self.tables.holds = holds;
            self.tables.changed = true;
        }
    }

    /// Switches an old mistake on.
    pub fn make(&mut self, mistake: Mistake) {
        self.tables.make(mistake);
    }

    /// How often the tables were rebuilt, which [`Self::decide`] does when most of a table is no longer in
    /// use. A [`KnownShape`] or [`KnownRow`] is valid for one generation.
    pub fn generation(&self) -> u32 {
        self.tables.generation
    }

    /// Decides on what changed since the last decision.
    pub fn decide(&mut self, now: Time) {
        self.decide_in_parts(now, &mut |_| {});
    }

    /// As [`Self::decide`], and calls `begins` at the start of each part; not at all if nothing changed.
    pub fn decide_in_parts(&mut self, now: Time, begins: &mut dyn FnMut(Part)) {
        let moved = self.tables.disruption_moved && self.outcome.lets_go();
        if self.tables.changed || moved || !self.outcome.stands_at(now) {
            if let Some(tables) = self.tables.compacted() {
                (self.tables, self.outcome) = (tables, Outcome::default());
            }
            let before = std::mem::take(&mut self.outcome);
            self.outcome = self.tables.cycle(before, now, false, begins);
        }
    }

    /// Decides about everything anew; no earlier decision is used.
    pub fn decide_full(&mut self, now: Time) {
        let before = std::mem::take(&mut self.outcome);
        self.outcome = self.tables.cycle(before, now, true, &mut |_| {});
    }

    /// The last decision, in the words of the model.
    ///
    /// # Panics
    ///
    /// If the fleet has changed since: machines and rows of the decision may be gone. The same holds for
    /// everything below that reads a decision.
    pub fn decision(&self) -> Decision {
        self.tables.decision(self.current())
    }

    /// The digest of [`Self::decision`], without building it in memory.
    pub fn digest(&self) -> Digest {
        self.tables.digest(self.current())
    }

    /// The actions of [`Self::decision`] alone, in emission order.
    pub fn actions(&self) -> Vec<Action> {
        self.tables.actions(self.current())
    }

    /// The same with at most so many acquisitions, and how many were left out: for callers that have no
    /// room for more now.
    pub fn actions_within(&self, acquisitions: usize) -> (Vec<Action>, usize) {
        self.tables.actions_within(self.current(), acquisitions)
    }

    /// Commitments that change without an action, by machine.
    pub fn restamps(&self) -> Vec<Restamp> {
        self.tables.restamps(self.current())
    }

    /// The verdicts of [`Self::decision`] alone, in the total order.
    pub fn verdicts(&self) -> Vec<Verdict> {
        self.tables.verdicts(self.current()).collect()
    }

    /// The verdicts of the Needs that Phase 1 left short, in the total order.
    pub fn short(&self) -> Vec<Verdict> {
        let mut short: Vec<_> = self.current().short.keys().copied().collect();
        short.sort_by(|one, other| self.tables.need_order(*one, *other));
        let verdict = |need| self.tables.verdict(need, &self.outcome);
        short.into_iter().map(verdict).collect()
    }

    /// The Needs of the last decision that are not covered by Configured machines alone: something is on
    /// its way to them, or missing. By identity.
    pub fn lacking(&self) -> Vec<NeedKey> {
        let lacking = self.tables.lacking.iter();
        let mut keys: Vec<NeedKey> = lacking.map(|need| self.tables.key_of(*need)).collect();
        keys.sort();
        keys.dedup(); // texts may collide
        keys
    }

    /// The machines that are recorded as a Need's: those bound for it, and those on their way to it. As of
    /// now, whatever was decided last.
    pub fn machines_of(&self, need: &NeedKey) -> Vec<MachineId> {
        let slot = self.tables.find_slot(need);
        let machines = slot.map(|slot| &self.tables.slots[slot].machines);
        let machines = machines.into_iter().flatten();
        machines
            .map(|machine| self.tables.machine_id(*machine))
            .collect()
    }

    /// Machines whose intent ended, by id.
    pub fn ended_intents(&self) -> Vec<MachineId> {
        self.tables.named(&self.current().ended)
    }

    /// Machines that stay until their replacement serves (RF-11), by id.
    pub fn held(&self) -> Vec<MachineId> {
        self.tables.named(&self.current().held)
    }

    /// The last decision, if it is still about this fleet.
    fn current(&self) -> &Outcome {
        assert!(
            !self.tables.changed,
            "a decision is read before the fleet it was made for changes"
        );
        &self.outcome
    }

    /// The shape of a machine, if there is such a machine.
    pub fn shape_of(&self, id: &str) -> Option<KnownShape> {
        let machine = self.tables.ids.find(id)?;
        Some(KnownShape {
            shape: self.tables.record(machine).shape,
            generation: self.tables.generation,
        })
    }

    /// How many machines, shapes, profiles and rows the engine holds.
    pub fn counts(&self) -> Counts {
        self.tables.counts()
    }

    /// How many places of its tables the engine looks at to find every name in them once: not many more than
    /// there are names.
    pub fn places_searched(&self) -> usize {
        self.tables.places_searched()
    }

    /// What deciding has touched so far.
    pub fn work(&self) -> Work {
        self.tables.work
    }
}
