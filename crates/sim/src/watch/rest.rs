//! Rest: what is left once nothing is under way.

use super::{Rule, cover};
use crate::{
    clock::{Moment, seconds},
    cluster_side, descriptions,
    world::World,
};
use bigfleet_model::{ActionKind, Intent, Machine, Price, Probability, State};
use bigfleet_provider_kit as kit;
use bigfleet_shard_core::Record;
use std::sync::Arc;

/// Nothing happened for this long: longer than a cycle and a List with all their latencies.
const STILL: u64 = seconds(45);
/// Longer while something is short: a gang that is parked tries again every thirty-two cycles (engine.md §15).
const STILL_SHORT: u64 = seconds(345);
/// And nothing happens for so many cycles afterwards: longer than a bought machine is held Idle, too.
const STAYS: u64 = 100;

impl World {
    /// After the faults: the fleet comes to rest within a bound, is in order, and stays at rest.
    pub(crate) fn come_to_rest(&mut self) {
        let calm = self.now;
        let bound = calm.after(self.plan.rest_within);
        while !self.is_at_rest() {
            if bound <= self.now {
                let text = format!("still not at rest: {}", self.unrest());
                self.watch.broke(Rule::ComesToRest, self.now, text);
                return;
            }
            if !self.run_until(self.now.after(seconds(10))) {
                return;
            }
        }
        let rested = self.now;
        self.rested_after = Some(rested.since(calm));
        self.check_truth();
        self.check_leaks();
        self.check_order();
        self.check_out();
        self.check_sides();
        let done = self.sides_done();
        let claims = self.claims();
        let mut stays = seconds(self.plan.shard.cycle_seconds) * STAYS;
        if self.has_sides() {
            stays = stays.max(cluster_side::STAYS);
        }
        if self.watch.broken.is_none() && self.run_until(rested.after(stays)) {
            self.check_stillness(rested);
            self.check_claims(rested, claims);
            self.check_quiet(&done);
        }
    }

    fn is_at_rest(&self) -> bool {
        let Some(process) = self.process() else {
            return false;
        };
        let still = self
            .watch
            .acted_at
            .max(self.watch.moved_at)
            .max(self.watch.disturbed_at);
        let patience = match process.core.shortfalls().count() {
            0 => STILL,
            _ => STILL_SHORT,
        };
        patience <= self.now.since(still)
            && process.core.is_ready()
            && process.core.gauges().in_flight == 0
            && self.cloud.under_way() == 0
            && self.watch.repairs == 0
            && !self.some_node_is_awaited()
            && !self.some_drain_is_tried_again()
            // What an incremental List left out is only missed by the next full one (RC-3).
            && self.watch.lied_at <= self.watch.truthful_at
            && self.processes.len() == 1
            && self.clusters.iter().all(|one| {
                one.session.is_some() && process.core.withheld(&one.id).is_none()
            })
            && !(0 < process.core.shortfalls().count() && self.some_pool_is_backed_off())
            && self.sides_rest()
    }

    fn some_pool_is_backed_off(&self) -> bool {
        let create = self.plan.stages.create.most();
        self.watch.some_pool_is_backed_off(self.now, create)
    }

    /// Whether a machine serves a cluster that reports nodes, is none, and has not been given up on.
    fn some_node_is_awaited(&self) -> bool {
        let reported = |one: &&Arc<kit::Machine>| {
            let cluster = self.cluster_named(&one.cluster);
            cluster
                .filter(|cluster| self.plan.clusters[*cluster].reports_nodes())
                .is_some_and(|cluster| !self.clusters[cluster].has_node(&one.id))
        };
        let mut serving = self
            .cloud
            .machines()
            .filter(|one| one.state == State::Configured);
        let core = self.process().map(|process| &process.core);
        serving.any(|one| reported(&one) && core.is_some_and(|core| !core.is_not_ready(&one.id)))
    }

    /// Whether a drain was given up, and is not yet tried again (SH-14).
    fn some_drain_is_tried_again(&self) -> bool {
        let Some(core) = self.process().map(|process| &process.core) else {
            return false;
        };
        let given_up = |record: &Record| match record {
            Record::Machine {
                kept: Some(kept), ..
            } => kept
                .given_up
                .is_some_and(|(_, until)| self.now < Moment::not_before(until).after(STILL)),
            _ => false,
        };
        core.records().iter().any(given_up)
    }

    fn unrest(&self) -> String {
        let in_flight = self.process().map_or(0, |one| one.core.gauges().in_flight);
        let (acted, under_way) = (self.watch.acted_at, self.cloud.under_way());
        let sessions = self.clusters.iter().filter(|one| one.session.is_some());
        format!(
            "{in_flight} operations, {under_way} machines on their way, {} sessions, last action at \
             {acted} s",
            sessions.count()
        )
    }

    /// The ledger says what the provider says, machine by machine.
    pub(super) fn check_truth(&mut self) {
        let Some(core) = self.process().map(|process| &process.core) else {
            return;
        };
        let mut wrong = None;
        for there in self.cloud.machines() {
            let known = core.machine(&there.id);
            let said = known.map(|one| (one.state(), one.cluster().map(ToString::to_string)));
            let cluster = Some(there.cluster.clone()).filter(|name| !name.is_empty());
            // A Failed machine keeps its cluster as evidence, which the ledger need not.
            let truth = match there.state {
                State::Failed => said.clone().filter(|(state, _)| *state == State::Failed),
                state => Some((state, cluster)),
            };
            let priced = known.is_none_or(|one| {
                let offer = &there.offer;
                Price::new(offer.price_per_hour).is_some_and(|price| price == one.price())
                    && Probability::new(offer.interruption_probability)
                        .is_some_and(|chance| chance == one.interruption())
            });
            if !priced {
                let text = format!(
                    "{} costs {} and breaks at {} at the provider, unlike in the ledger",
                    there.id, there.offer.price_per_hour, there.offer.interruption_probability
                );
                wrong.get_or_insert(text);
            }
            if said != truth || known.is_none() {
                let text = format!(
                    "{} is {} {} at the provider and {said:?} in the ledger",
                    there.id, there.state, there.cluster
                );
                wrong.get_or_insert(text);
            }
        }
        let extra = core
            .machines()
            .find(|one| self.cloud.machine(one.id()).is_none());
        if let Some(extra) = extra {
            wrong.get_or_insert(format!("{} is only in the ledger", extra.id()));
        }
        if let Some(text) = wrong {
            self.watch.broke(Rule::LedgerIsTruth, self.now, text);
        }
    }

    /// Nothing is left of what was under way.
    pub(super) fn check_leaks(&mut self) {
        if let Some((operation, machine)) = self.watch.commits.unaudited() {
            let text = format!("{operation} acted on {machine}, and no audit record says so");
            self.watch.broke(Rule::Audited, self.now, text);
        }
        let Some(core) = self.process().map(|process| &process.core) else {
            return;
        };
        let gauges = core.gauges();
        let busy = (gauges.in_flight, gauges.waiting, gauges.on_wire);
        let mut text = (busy != (0, 0, 0)).then(|| format!("work is left over: {busy:?}"));
        let promised = core.machines().find(|one| {
            let served = |intent: &Intent| core.withheld(&intent.need.cluster).is_none();
            one.intent().is_some_and(served)
        });
        if let Some(promised) = promised {
            let (id, state) = (promised.id(), promised.state());
            let need = promised.attribution().map(|need| descriptions::need(&need));
            let need = need.unwrap_or_default();
            text.get_or_insert(format!("{id} is {state} and promised to {need} for ever"));
        }
        // A machine that nothing can replace stays until something can.
        let held = core.machines().find(|one| {
            let view = core.machine_view(one.id());
            core.shortfalls().count() == 0 && view.is_some_and(|view| view.held)
        });
        if let Some(held) = held {
            text.get_or_insert(format!("{} is held back for ever", held.id()));
        }
        let left = core.records().into_iter().find_map(|record| match record {
            Record::Machine {
                machine,
                kept: Some(kept),
            } if kept.operation.is_some() => Some(machine),
            _ => None,
        });
        if let Some(machine) = left {
            text.get_or_insert(format!(
                "a record of an operation on {machine} is left over"
            ));
        }
        if let Some(text) = text {
            self.watch.broke(Rule::NothingLeaks, self.now, text);
        }
    }

    /// No Need is short while one of lower priority has a machine it could use. Checked for Needs that are no
    /// gang only, as elsewhere.
    pub(super) fn check_order(&mut self) {
        let Some(core) = self.process().map(|process| &process.core) else {
            return;
        };
        let short = core.shortfalls().map(|short| &short.need);
        let short = short.filter(|need| cover::is_plain(&need.row) && !need.parked);
        let wrong = short.into_iter().find_map(|need| {
            let priority = need.row.profile.priority();
            let victim = core.machines().find(|one| {
                one.state() == State::Configured
                    && one.terms().priority < priority
                    && self.wanted_at(one).is_none_or(|claimed| claimed < priority)
                    && !core.is_not_ready(one.id())
                    && core.leaving(one.id()).is_none()
                    && cover::can_use(&need.row, one.shape())
            })?;
            let has = victim.attribution();
            let has = has.map_or_else(|| "nobody".to_owned(), |need| descriptions::need(&need));
            let (need, victim) = (descriptions::need(&need.key()), victim.id());
            Some(format!("{need}: short while {victim} serves {has}"))
        });
        if let Some(text) = wrong {
            self.watch.broke(Rule::HighestFirst, self.now, text);
        }
    }

    /// The priority of the row that has a machine now.
    fn wanted_at(&self, machine: &Machine) -> Option<i32> {
        let cluster = self.cluster_named(machine.cluster()?.as_str())?;
        let mut rows = self.watch.demand.of(cluster)?.iter();
        let assignment = machine.assignment();
        let row = rows.find(|row| {
            *row.profile.fingerprint() == assignment.fingerprint && row.group == assignment.group
        });
        row.map(|row| row.profile.priority())
    }

    /// How often claims and the racks of gangs have changed, which they may without any action.
    fn claims(&self) -> [u64; 4] {
        let counters = self.process().map(|one| one.core.counters());
        counters.map_or([0; 4], |counters| {
            [
                counters.restamps,
                counters.gang_joined,
                counters.gang_left,
                counters.gang_flips,
            ]
        })
    }

    /// At static demand no Need claims another machine, and no gang looks at another rack.
    fn check_claims(&mut self, rested: Moment, before: [u64; 4]) {
        let after = self.claims();
        if before != after {
            let text = format!(
                "machines restamped, joined to gangs, taken from gangs, gangs that flipped: \
                 {before:?} at {rested} s and {after:?} now, though nothing changed"
            );
            self.watch.broke(Rule::ClaimsStand, self.now, text);
        }
    }

    /// At static demand nothing is acquired, drained or moved. Idle machines may be released when
    /// their hold is over.
    fn check_stillness(&mut self, rested: Moment) {
        let moved = self.log.actions.iter().find(|one| {
            let excused = match one.kind {
                ActionKind::Delete => true,
                ActionKind::Bootstrap
                | ActionKind::Provision
                | ActionKind::Preempt
                | ActionKind::Reclaim
                | ActionKind::Restore => false,
            };
            rested <= one.at && !excused
        });
        if let Some(moved) = moved {
            let text = format!(
                "{} of {} at {} s, though nothing changed since {rested} s",
                moved.kind.word(),
                moved.machine,
                moved.at
            );
            self.watch.broke(Rule::ComesToRest, self.now, text);
        }
    }
}
