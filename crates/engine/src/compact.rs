//! Compact: a book that forgets what nothing refers to any more.
//!
//! Tables of distinct things only grow: a price that moves makes a new shape, a job with a label of
//! its own a new profile. Once most of a table is dead the whole book is written anew from what is
//! alive. That costs as much as loading the fleet, and happens when a table has doubled beyond what
//! is in use, so it is paid for by the growth that made it due.

use crate::{
    NONE,
    book::{Book, MachineIx, NeedIx},
    machines::{KnownShape, MachineFact},
};
use bigfleet_model::{Price, State, Time};

/// Tables smaller than this are not worth the trouble.
const WORTH_IT: usize = 4096;

/// How large the tables were when they were last looked through.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sizes {
    shapes: usize,
    uses: usize,
    profiles: usize,
    fingerprints: usize,
    terms: usize,
}

impl Sizes {
    fn of(book: &Book) -> Self {
        Self {
            shapes: book.tables.shapes.len(),
            uses: book.tables.uses.len(),
            profiles: book.tables.profiles.len(),
            fingerprints: book.fingerprints.bound(),
            terms: book.tables.terms.len(),
        }
    }

    fn doubled_since(self, before: Self) -> bool {
        let doubled = |now: usize, before: usize| WORTH_IT.max(before * 2) < now;
        doubled(self.shapes, before.shapes)
            || doubled(self.uses, before.uses)
            || doubled(self.profiles, before.profiles)
            || doubled(self.fingerprints, before.fingerprints)
            || doubled(self.terms, before.terms)
    }
}

impl Book {
    /// The book written anew, if a table has doubled since it last was.
    pub(crate) fn compacted(&self) -> Option<Self> {
        Sizes::of(self)
            .doubled_since(self.written)
            .then(|| self.rewritten())
    }

    fn rewritten(&self) -> Self {
        let mut book = Self {
            holds: self.holds,
            mistake: self.mistake,
            ..Self::default()
        };
        for (number, cluster) in self.clusters.iter().enumerate() {
            if cluster.known {
                let id = self.cluster_id(number as u32);
                book.report(&id, cluster.ready, cluster.acquire);
            }
            let rows: Vec<NeedIx> = self.rows(cluster).collect();
            for row in rows {
                book.put_row(&self.need_value(row));
            }
        }
        for machine in 0..self.records.len() as MachineIx {
            self.copy_machine(machine, &mut book);
        }
        book.generation = self.generation.wrapping_add(1);
        book.written = Sizes::of(&book);
        book.work = self.work;
        book
    }

    fn copy_machine(&self, machine: MachineIx, book: &mut Self) {
        let record = self.record(machine);
        let Some(state) = record.state else { return };
        let shape = &self.tables.shapes[record.shape as usize];
        let shape = book.shape(&shape.shape, shape.price, shape.interruption);
        let cluster = (record.cluster != NONE).then(|| self.cluster_id(record.cluster));
        let attribution = (record.slot != NONE).then(|| self.slot_key(record.slot));
        let is_clock = state == State::Idle && attribution.is_none();
        let price = Price::new(record.number).filter(|_| !is_clock);
        book.put_fact(&MachineFact {
            id: self.ids.get(machine),
            state,
            shape: KnownShape(shape, book.generation),
            cluster: cluster.as_ref(),
            attribution: attribution.as_ref(),
            terms: self.tables.terms[record.terms as usize],
            keep_price: price.unwrap_or_default(),
            idle_since: Time::from_seconds(record.number).filter(|_| is_clock),
            not_ready: record.not_ready,
            unavailable: record.unavailable,
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::Engine;
    use bigfleet_model::{Fleet, FleetMachine};
    use bigfleet_testkit::fleet;

    /// The same fleet at a price nobody has seen.
    fn repriced(fleet: &Fleet, price: f64) -> Fleet {
        let mut next = fleet.clone();
        for held in next.machines.values_mut() {
            let mut facts = held.machine.clone().into_facts();
            facts.price_per_hour = price;
            let machine = bigfleet_model::Machine::new(facts).unwrap();
            *held = FleetMachine {
                machine,
                ..held.clone()
            };
        }
        next
    }

    #[test]
    fn a_price_that_moves_for_ever_does_not_fill_memory() {
        let mut now = fleet(
            "m1..m3 Configured a cpu=4 own=n
             i1..i3 Idle cpu=4 OnDemand idle-since=900
             k1 Creating cpu=4 own=n
             need a name:n cpu=24 min:cpu=4",
        );
        let mut engine = Engine::new();
        engine.load(&now);
        for step in 1..=20_000 {
            let next = repriced(&now, f64::from(step) / 1000.0);
            engine.follow(&now, &next);
            engine.decide(next.now);
            now = next;
            if step % 1000 == 0 {
                assert_eq!(engine.decision(), crate::decide(&now), "step {step}");
            }
        }
        assert!(
            engine.counts().shapes <= 8192,
            "{} shapes",
            engine.counts().shapes
        );
    }
}
