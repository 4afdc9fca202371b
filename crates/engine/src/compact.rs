//! Compact: rebuilding the tables without what nothing refers to any more.
//!
//! Tables of distinct things only grow: every price that moves makes a new shape, every job with a label
//! of its own a new profile. When a table has doubled since the last time, all of them are rebuilt from
//! the rows and machines there are. That costs as much as loading the fleet, but so much growth has to
//! come first that it stays a small part of the work.

use crate::{
    fleet_tables::FleetTables,
    index::{MachineIndex, NeedIndex},
    machines::{KnownShape, MachineFact},
};

/// Smaller tables are not worth rebuilding.
const WORTH_IT: usize = 4096;

/// How large the tables were when they were last rebuilt.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sizes {
    shapes: usize,
    uses: usize,
    profiles: usize,
    keys: usize,
    dimensions: usize,
    fingerprints: usize,
    terms: usize,
}

impl Sizes {
    fn of(tables: &FleetTables) -> Self {
        Self {
            shapes: tables.catalog.shapes.len(),
            uses: tables.catalog.uses.len(),
            profiles: tables.catalog.profiles.len(),
            keys: tables.catalog.keys.len(),
            dimensions: tables.catalog.dimensions.count(),
            fingerprints: tables.fingerprints.count(),
            terms: tables.catalog.terms.len(),
        }
    }

    fn doubled_since(self, before: Self) -> bool {
        let doubled = |now: usize, before: usize| WORTH_IT.max(before * 2) < now;
        doubled(self.shapes, before.shapes)
            || doubled(self.uses, before.uses)
            || doubled(self.profiles, before.profiles)
            || doubled(self.keys, before.keys)
            || doubled(self.dimensions, before.dimensions)
            || doubled(self.fingerprints, before.fingerprints)
            || doubled(self.terms, before.terms)
    }
}

impl FleetTables {
    /// The rebuilt tables, if one has doubled since the last time.
    pub(crate) fn compacted(&self) -> Option<Self> {
        Sizes::of(self)
            .doubled_since(self.written)
            .then(|| self.rewritten())
    }

    fn rewritten(&self) -> Self {
        let mut tables = Self {
            holds: self.holds,
            ..Self::new(self.catalog.key())
        };
        if let Some(mistake) = self.mistake {
            tables.make(mistake);
        }
        for (index, cluster) in self.clusters.entries() {
            if cluster.known {
                let id = self.cluster_id(index);
                tables.report(&id, cluster.ready, cluster.acquire);
            }
            let rows: Vec<NeedIndex> = self.rows(cluster).collect();
            for row in rows {
                tables.put_row(&self.need_value(row));
            }
        }
        for machine in self.records.indexes() {
            self.copy_machine(machine, &mut tables);
        }
        tables.generation = self.generation.wrapping_add(1);
        tables.written = Sizes::of(&tables);
        tables.work = self.work;
        tables
    }

    fn copy_machine(&self, machine: MachineIndex, tables: &mut Self) {
        let record = self.record(machine);
        let Some(state) = record.state else { return };
        let shape = &self.catalog.shapes[record.shape];
        let shape = tables.shape(&shape.shape, shape.price, shape.interruption);
        let committed = self.catalog.terms[record.terms];
        let way_back = self.ways_back.get(&machine);
        let cluster = record.cluster.or(way_back.map(|way_back| way_back.cluster));
        let cluster = cluster.map(|cluster| self.cluster_id(cluster));
        let way_back = way_back.map(|way_back| self.catalog.terms[way_back.terms]);
        let attribution = record.slot.map(|slot| self.slot_key(slot));
        tables.put_fact(&MachineFact {
            id: self.ids.get(machine),
            state,
            shape: KnownShape {
                shape,
                generation: tables.generation,
            },
            cluster: cluster.as_ref(),
            attribution: attribution.as_ref(),
            terms: committed.terms,
            keep_price: committed.keep_price,
            idle_since: self.idle.get(machine).map(|(_, since)| since),
            not_ready: record.unfit,
            unavailable: record.unfit,
            disruption: self.disruptions[machine],
            reversible: way_back.map(|at| (at.terms, at.keep_price)),
            leaving: record.leaving,
        });
        if self.let_off.contains(&machine)
            && let Some(copy) = tables.ids.find(self.ids.get(machine))
        {
            tables.let_off.insert(copy);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Sizes, WORTH_IT};
    use crate::Engine;
    use bigfleet_model::{Fleet, FleetMachine};
    use bigfleet_testkit::fleet;

    #[test]
    fn any_table_that_has_doubled_is_enough() {
        let before = Sizes {
            shapes: WORTH_IT,
            uses: WORTH_IT,
            profiles: WORTH_IT,
            keys: WORTH_IT,
            dimensions: WORTH_IT,
            fingerprints: WORTH_IT,
            terms: WORTH_IT,
        };
        assert!(!before.doubled_since(before));
        let grown = |grow: fn(&mut Sizes) -> &mut usize, size: usize| {
            let mut now = before;
            *grow(&mut now) = size;
            now.doubled_since(before)
        };
        let tables: [fn(&mut Sizes) -> &mut usize; 7] = [
            |sizes| &mut sizes.shapes,
            |sizes| &mut sizes.uses,
            |sizes| &mut sizes.profiles,
            |sizes| &mut sizes.keys,
            |sizes| &mut sizes.dimensions,
            |sizes| &mut sizes.fingerprints,
            |sizes| &mut sizes.terms,
        ];
        for table in tables {
            assert!(!grown(table, 2 * WORTH_IT));
            assert!(grown(table, 2 * WORTH_IT + 1));
        }
        let small = Sizes::default();
        let at_most = Sizes {
            shapes: WORTH_IT,
            ..small
        };
        assert!(!at_most.doubled_since(small), "not worth the trouble yet");
    }

    /// The same fleet at another price.
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

    /// What a cluster no longer asks for is forgotten, however much of it there was.
    #[test]
    fn rows_that_are_never_the_same_again_do_not_fill_memory() {
        let mut engine = Engine::new();
        let mut now = fleet("i1..i3 Idle cpu=4");
        for step in 0..40 {
            let rows = (0..500).map(|number| {
                format!("need a cpu=4 min:d{step}-{number}=1 k{step}-{number}=Same prio={step}\n")
            });
            let machines = "i1..i3 Idle cpu=4\n".to_owned();
            let next = fleet(&(machines + &rows.collect::<String>()));
            engine.follow(&now, &next);
            engine.decide(next.now);
            now = next;
        }
        assert_eq!(engine.decision(), crate::decide(&now));
        let sizes = Sizes::of(&engine.tables);
        let most = [sizes.uses, sizes.profiles, sizes.keys, sizes.dimensions];
        assert!(most.iter().all(|size| *size <= 2 * WORTH_IT), "{sizes:?}");
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
