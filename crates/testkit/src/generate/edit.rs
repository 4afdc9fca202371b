//! Edit: one step of a history, as clusters, providers and the shard itself make them.

use super::{Generator, machines::enter, rows_of, set_rows};
use bigfleet_model::{
    Assignment, ClusterId, Fleet, Intent, Machine, MachineFacts, MachineId, Need, Profile, Row,
    Shape, State,
};
use std::{sync::Arc, time::Duration};

type WeightedEdit = (&'static str, usize, fn(&mut Generator, &mut Fleet));

/// What may happen, and how often in a hundred.
pub(super) const STEPS: [WeightedEdit; 22] = [
    ("rows replaced", 4, Generator::replace_rows),
    ("row added", 6, Generator::add_row),
    ("row removed", 5, Generator::remove_row),
    ("row resized", 6, Generator::resize_row),
    ("priority edited", 5, Generator::edit_priority),
    ("parked toggled", 4, Generator::toggle_parked),
    ("whole units toggled", 4, Generator::toggle_whole),
    ("machine appeared", 9, Generator::appear),
    ("machine vanished", 5, Generator::vanish),
    ("machine matured", 14, Generator::mature),
    ("machine failed", 4, Generator::fail),
    ("machine committed", 10, Generator::start),
    ("machine relabelled", 4, Generator::relabel),
    ("machine repriced", 4, Generator::reprice),
    ("intent added", 3, Generator::add_intent),
    ("intent ended", 3, Generator::end_intent),
    ("machine restamped", 3, Generator::restamp),
    ("mark toggled", 4, Generator::toggle_mark),
    ("disruption told", 6, Generator::tell_disruption),
    ("time passed", 4, Generator::pass_time),
    ("cluster flag", 2, Generator::toggle_cluster),
    ("cluster gone or back", 1, Generator::drop_cluster),
];

pub(super) fn step(generator: &mut Generator, fleet: &mut Fleet) -> &'static str {
    if let Some(marked) = generator.marks.edit(fleet) {
        return marked;
    }
    let total = STEPS.iter().map(|(_, weight, _)| weight).sum();
    let mut at = generator.prng.below(total);
    for (name, weight, act) in STEPS {
        if at < weight {
            act(generator, fleet);
            return name;
        }
        at -= weight;
    }
    unreachable!("a number below the total falls to a step")
}

fn assigned(intent: Intent) -> Assignment {
    Assignment {
        terms: intent.terms,
        fingerprint: intent.need.fingerprint,
        group: intent.need.group,
        keep_price: intent.keep_price,
    }
}

impl Generator {
    fn any_cluster(&mut self) -> ClusterId {
        self.prng.pick(&self.palette.clusters).clone()
    }

    /// The id of a machine of which this holds.
    fn any_machine(
        &mut self,
        fleet: &Fleet,
        holds: impl Fn(&Machine) -> bool,
    ) -> Option<MachineId> {
        let all: Vec<_> = fleet
            .machines
            .values()
            .filter(|m| holds(&m.machine))
            .collect();
        (!all.is_empty()).then(|| self.prng.pick(&all).machine.id().clone())
    }

    fn replace_rows(&mut self, fleet: &mut Fleet) {
        let id = self.any_cluster();
        let count = self.prng.between(0, 4);
        let rows = (0..count).map(|_| self.row(fleet.now)).collect();
        set_rows(fleet, &id, rows);
    }

    fn add_row(&mut self, fleet: &mut Fleet) {
        let id = self.any_cluster();
        let mut rows = fleet.clusters.get(&id).map(rows_of).unwrap_or_default();
        let mut new = self.row(fleet.now);
        // A sibling: the same gang again under another name.
        if !rows.is_empty() && self.prng.percent(40) {
            let group = new.0.group;
            new = self.prng.pick(&rows).clone();
            new.0.group = group;
        }
        rows.push(new);
        set_rows(fleet, &id, rows);
    }

    fn remove_row(&mut self, fleet: &mut Fleet) {
        self.change_row(fleet, |_, rows, at| {
            rows.remove(at);
        });
    }

    fn resize_row(&mut self, fleet: &mut Fleet) {
        self.change_row(fleet, |generator, rows, at| {
            let row = &mut rows[at].0;
            match generator.prng.below(4) {
                0 => row.aggregate = super::rows::halved(&row.aggregate),
                1 if row.aggregate.iter().all(|(_, milli)| milli < 1_000_000) => {
                    row.aggregate = row.aggregate.scale(2);
                }
                _ => (row.aggregate, row.min_unit) = generator.amounts(),
            }
        });
    }

    fn edit_priority(&mut self, fleet: &mut Fleet) {
        self.change_row(fleet, |generator, rows, at| {
            let row = &mut rows[at].0;
            row.profile = generator.with_other_priority(row).into();
        });
    }

    fn with_other_priority(&mut self, row: &Row) -> Profile {
        let old = &row.profile;
        let bucket = if self.prng.percent(30) {
            *self.prng.pick(&self.palette.buckets)
        } else {
            old.reclamation()
        };
        let priority = if self.prng.percent(50) {
            *self.prng.pick(&self.palette.priorities)
        } else {
            old.priority().saturating_add(1)
        };
        let (requirements, spread) = (old.requirements().to_vec(), old.spread().to_vec());
        Profile::new(requirements, spread, priority, old.interruption(), bucket)
    }

    fn toggle_parked(&mut self, fleet: &mut Fleet) {
        self.change_row(fleet, |_, rows, at| rows[at].2 = !rows[at].2);
    }

    fn toggle_whole(&mut self, fleet: &mut Fleet) {
        self.change_row(fleet, |_, rows, at| {
            rows[at].0.whole_units = !rows[at].0.whole_units;
        });
    }

    fn change_row(
        &mut self,
        fleet: &mut Fleet,
        change: impl Fn(&mut Self, &mut super::Rows, usize),
    ) {
        let all: Vec<&Need> = fleet.clusters.values().flat_map(|c| c.needs()).collect();
        if all.is_empty() {
            return;
        }
        let picked = *self.prng.pick(&all);
        let (id, row) = (picked.cluster.clone(), picked.row.clone());
        let mut rows = rows_of(&fleet.clusters[&id]);
        if let Some(at) = rows.iter().position(|(other, ..)| *other == row) {
            change(self, &mut rows, at);
        }
        set_rows(fleet, &id, rows);
    }

    fn appear(&mut self, fleet: &mut Fleet) {
        let machine = self.machine(fleet);
        fleet.put(machine);
    }

    fn vanish(&mut self, fleet: &mut Fleet) {
        if let Some(id) = self.any_machine(fleet, |_| true) {
            fleet.machines.remove(&id);
        }
    }

    /// What was on its way arrives; an intent goes along.
    fn mature(&mut self, fleet: &mut Fleet) {
        let on_the_way = |m: &Machine| !m.state().is_stable() && m.state() != State::Failed;
        self.change_machine(fleet, on_the_way, |generator, facts, from| {
            let to = match from {
                State::Creating | State::Draining => State::Idle,
                State::Configuring => State::Configured,
                State::Deleting => State::Speculative,
                other => other,
            };
            let cluster = generator.cluster_of(facts);
            enter(facts, to, &cluster);
        });
    }

    fn fail(&mut self, fleet: &mut Fleet) {
        let on_the_way = |m: &Machine| !m.state().is_stable() && m.state() != State::Failed;
        self.change_machine(fleet, on_the_way, |generator, facts, _| {
            let cluster = generator.cluster_of(facts);
            enter(facts, State::Failed, &cluster);
        });
    }

    /// As the shard commits its actions: Bootstrap, Provision, Preempt, Reclaim, Delete.
    fn start(&mut self, fleet: &mut Fleet) {
        let before = fleet.clone();
        let stable = |m: &Machine| m.state().is_stable();
        self.change_machine(fleet, stable, |generator, facts, from| {
            let deleted = generator.prng.percent(10);
            let to = match from {
                State::Speculative => State::Creating,
                State::Idle if deleted => State::Deleting,
                State::Idle => State::Configuring,
                _ => State::Draining,
            };
            let promised = facts.intent.take();
            let cluster = match &promised {
                Some(intent) => intent.need.cluster.clone(),
                None => generator.cluster_of(facts),
            };
            enter(facts, to, &cluster);
            match promised {
                // It goes on its way to whom it was promised.
                Some(intent) if to == State::Configuring => facts.assignment = assigned(intent),
                _ => generator.commit(facts, to, &before),
            }
        });
    }

    fn relabel(&mut self, fleet: &mut Fleet) {
        self.change_machine(
            fleet,
            |_| true,
            |generator, facts, _| {
                let mut shape = Shape::clone(&facts.shape);
                let rack = generator.prng.pick(&generator.palette.racks).to_string();
                match generator.prng.below(4) {
                    0 => shape.labels.insert("rack".to_owned(), rack),
                    1 => shape.labels.remove("rack"),
                    2 => {
                        shape.zone = generator.prng.pick(&generator.palette.zones).to_string();
                        None
                    }
                    _ => {
                        shape.allocatable =
                            Some(generator.prng.pick(&generator.palette.sizes).clone());
                        None
                    }
                };
                facts.shape = Arc::new(shape);
            },
        );
    }

    fn reprice(&mut self, fleet: &mut Fleet) {
        self.change_machine(
            fleet,
            |_| true,
            |generator, facts, _| {
                facts.price_per_hour = *generator.prng.pick(&generator.palette.prices);
                facts.interruption_probability = *generator.prng.pick(&generator.palette.chances);
            },
        );
    }

    fn add_intent(&mut self, fleet: &mut Fleet) {
        let before = fleet.clone();
        self.change_machine(
            fleet,
            |m| m.state().may_hold_intent(),
            |generator, facts, _| {
                let (need, terms) = generator.purpose(&before, None);
                facts.intent = Some(Intent {
                    need,
                    terms,
                    keep_price: None,
                });
            },
        );
    }

    fn end_intent(&mut self, fleet: &mut Fleet) {
        self.change_machine(
            fleet,
            |m| m.intent().is_some(),
            |_, facts, _| facts.intent = None,
        );
    }

    fn restamp(&mut self, fleet: &mut Fleet) {
        let before = fleet.clone();
        self.change_machine(
            fleet,
            |m| m.state().is_bound(),
            |generator, facts, state| {
                if generator.prng.percent(80) {
                    generator.commit(facts, state, &before)
                } else {
                    facts.assignment = Assignment::default()
                }
            },
        );
    }

    fn toggle_mark(&mut self, fleet: &mut Fleet) {
        if let Some(id) = self.any_machine(fleet, |_| true)
            && let Some(machine) = fleet.machines.get_mut(&id)
        {
            match self.prng.below(3) {
                0 => machine.not_ready = !machine.not_ready,
                1 => machine.unavailable = !machine.unavailable,
                _ => machine.reversible = !machine.reversible,
            }
        }
    }

    fn tell_disruption(&mut self, fleet: &mut Fleet) {
        let told = self.disruption();
        if let Some(id) = self.any_machine(fleet, |_| true)
            && let Some(machine) = fleet.machines.get_mut(&id)
        {
            machine.disruption = told;
        }
    }

    fn pass_time(&mut self, fleet: &mut Fleet) {
        fleet.now = fleet.now + Duration::from_secs(*self.prng.pick(&[1, 10, 60, 600]));
        if self.prng.percent(10) {
            fleet.holds = self.holds();
        }
    }

    fn toggle_cluster(&mut self, fleet: &mut Fleet) {
        let id = self.any_cluster();
        self.flags(fleet, &id);
    }

    fn drop_cluster(&mut self, fleet: &mut Fleet) {
        let id = self.any_cluster();
        if fleet.clusters.remove(&id).is_none() {
            let rows = vec![self.row(fleet.now)];
            set_rows(fleet, &id, rows);
        }
    }

    fn cluster_of(&mut self, facts: &MachineFacts) -> ClusterId {
        ClusterId::new(&facts.cluster).unwrap_or_else(|_| self.any_cluster())
    }

    /// Changes the facts of one machine of which this holds, and keeps its idle clock (M-4).
    fn change_machine(
        &mut self,
        fleet: &mut Fleet,
        holds: impl Fn(&Machine) -> bool,
        change: impl Fn(&mut Self, &mut MachineFacts, State),
    ) {
        let Some(id) = self.any_machine(fleet, holds) else {
            return;
        };
        let now = fleet.now;
        if let Some(held) = fleet.machines.get_mut(&id) {
            let before = held.machine.state();
            let mut facts = held.machine.clone().into_facts();
            change(self, &mut facts, before);
            held.machine = Machine::new(facts).expect("a changed machine passes the grid");
            match (before, held.machine.state()) {
                (State::Idle, State::Idle) => {}
                (_, State::Idle) => held.idle_since = Some(now),
                _ => held.idle_since = None,
            }
        }
    }
}
