//! Cycle: decide, limit, commit; then let the disk catch up before anything leaves (SH-5).
//!
//! ```text
//! engine.decide ─▶ shortfalls, parking ─▶ pause, rails, admission ─▶ commit ─▶ Persist
//!                                              the rest derives again    └─ barrier ─▶ gate
//! ```
//!
//! Transitions, intents, restamps and ended intents are applied together, so the next cycle decides
//! on committed facts only, whatever latency and order the calls have.

use crate::{
    ShardCore,
    admission::admit,
    audit::{AuditRecord, Outcome},
    defect::Defect,
    effect::{Effect, OperationId},
    histogram::Phase,
    operation::{Operation, walk},
    settings::{CYCLE_SPACING, MOST_IN_FLIGHT},
    shortfall::{ShortCounts, Shortfall},
    timers::after,
};
use bigfleet_model::{
    Action, ActionKind, Assignment, ClusterId, Intent, MachineId, NeedKey, Restamp, State, Time,
    Verdict, Via,
};
use std::collections::BTreeMap;

impl ShardCore {
    pub(crate) fn run_cycle(
        &mut self,
        now: Time,
        effects: &mut Vec<Effect>,
        begins: &mut dyn FnMut(Phase),
    ) {
        begins(Phase::Snapread);
        self.begin_cycle(now);
        // CY-5, SH-10: what the provider has is not known well enough to decide on.
        if !self.truth.trusted {
            begins(Phase::Execute);
            return;
        }
        let engine = &mut self.ledger.engine;
        engine.decide_in_parts(now, &mut |part| begins(Phase::of(part)));
        begins(Phase::Execute);
        let decided = self.commit_decision(now, effects);
        begins(Phase::Emit);
        self.send_hints(now, effects);
        begins(Phase::Execute);
        if decided {
            self.persist(effects);
        }
    }

    /// Commits what was decided, as far as it may be done; says whether any of it is to leave.
    fn commit_decision(&mut self, now: Time, effects: &mut Vec<Effect>) -> bool {
        // Read whole before any of it, a parked gang included, changes what was decided on.
        let ended = self.ledger.engine.ended_intents();
        let restamps = self.ledger.engine.restamps();
        // A whole fleet may want to be bound at once; what there is no room for need not be spelled
        // out, unless it is said of each why it is not done.
        let most = match self.is_open() {
            true => self.room().0,
            false => usize::MAX,
        };
        let (actions, beyond) = self.ledger.engine.actions_within(most);
        self.held = self.ledger.engine.held();
        let verdicts = self.asked_verdicts();
        self.review_short();
        if let Some(decision) = verdicts {
            self.take_down(now, decision);
        }
        let actions = self.permitted(now, actions, beyond, effects);
        for machine in &ended {
            self.end_intent(now, machine, effects);
        }
        if !self.has(Defect::ClaimsNotCommitted) {
            for restamp in restamps {
                self.restamp(now, restamp, effects);
            }
        }
        let decided = !actions.is_empty();
        for action in actions {
            self.commit(now, action, effects);
        }
        decided
    }

    /// Takes in what the engine left short: shortfalls, ages, parking. Only a new decision is looked
    /// at; a cycle in which nothing changed ages what it had.
    fn review_short(&mut self) {
        if std::mem::take(&mut self.ledger.touched) {
            self.short = self.ledger.engine.short();
            self.short_counts = ShortCounts::of(&self.short);
        }
        let gangs = self.short.iter().filter(|verdict| is_gang(verdict));
        let stalled = gangs.map(|verdict| {
            let acquired = 0 < verdict.bootstrap + verdict.provision;
            (verdict.need.key(), acquired || verdict.same_satisfiable)
        });
        let changed: Vec<(NeedKey, bool)> = self.parking.review(stalled);
        let withheld = |cluster: &ClusterId| {
            let known = self.demand.clusters.get(cluster);
            known.and_then(|known| known.withheld)
        };
        let short = self.short.iter().map(|verdict| Shortfall {
            need: (*verdict.need).clone(),
            deficit: verdict.residual.sub(&verdict.capacity_freed),
            age: 0,
            reason: verdict.unmet_reason,
            withheld: withheld(&verdict.need.cluster),
        });
        self.shortfalls
            .review(short.filter(|entry| !entry.deficit.is_zero()));
        for (key, parked) in changed {
            self.demand.park(&key, parked, &mut self.ledger);
        }
    }

    /// The actions that may be committed: pause and dry-run, then what the shard knows better, then
    /// rail 1, then admission.
    fn permitted(
        &mut self,
        now: Time,
        actions: Vec<Action>,
        beyond: usize,
        effects: &mut Vec<Effect>,
    ) -> Vec<Action> {
        let (room, is_limited) = self.room();
        let mut wanted = Vec::with_capacity(actions.len());
        for action in actions {
            match self.suppression(&action) {
                Some(outcome) => self.suppress(now, action, outcome, effects),
                None if self.is_committable(now, &action) => wanted.push(action),
                None => {}
            }
        }
        let capped = self.cap_reclaims(now, wanted);
        let (admitted, cut) = admit(capped, room);
        let cut = cut + beyond;
        self.counters.deferred += cut as u64;
        // If it is the operations in flight that leave no room, it is their end that wakes the next.
        if 0 < cut && is_limited {
            self.cycle_by(after(now, CYCLE_SPACING));
        }
        let mut reclaims: BTreeMap<ClusterId, u32> = BTreeMap::new();
        for action in admitted
            .iter()
            .filter(|one| one.kind == ActionKind::Reclaim)
        {
            if let Some(cluster) = &action.cluster {
                *reclaims.entry(cluster.clone()).or_default() += 1;
            }
        }
        for (cluster, count) in reclaims {
            self.reclaim_cap.spend(&cluster, count);
        }
        admitted
    }

    /// How many actions may be committed now, and whether it is a configured limit that says so (SH-2).
    fn room(&self) -> (usize, bool) {
        let room = MOST_IN_FLIGHT.saturating_sub(self.operations.len());
        let limit = self.config.max_actions_per_cycle;
        match 0 < limit && limit < room {
            true => (limit, true),
            false => (room, false),
        }
    }

    /// Whether there is nothing that could suppress an action.
    fn is_open(&self) -> bool {
        !self.fenced && self.pauses.is_empty() && !self.config.dry_run
    }

    fn suppression(&self, action: &Action) -> Option<Outcome> {
        if self.is_open() {
            return None;
        }
        let cluster_paused = || {
            let meant = action.purpose.as_ref().map(|(need, _)| &need.cluster);
            let mut clusters = action.cluster.iter().chain(meant);
            clusters.any(|cluster| self.pauses.cluster(cluster))
        };
        if self.fenced || self.pauses.all(&self.config.provider) || cluster_paused() {
            return Some(Outcome::Suppressed);
        }
        self.config.dry_run.then_some(Outcome::DryRun)
    }

    fn suppress(&mut self, now: Time, action: Action, outcome: Outcome, effects: &mut Vec<Effect>) {
        let counter = match outcome {
            Outcome::DryRun => &mut self.counters.dry_run,
            _ => {
                let meant = action.purpose.as_ref().map(|(need, _)| &need.cluster);
                let clusters = action.cluster.iter().chain(meant);
                self.pauses.withhold(&self.config.provider, clusters);
                &mut self.counters.suppressed
            }
        };
        *counter.entry(action.kind).or_default() += 1;
        let (need, terms) = action.purpose.unzip();
        let price = self.price_of(&action.machine);
        effects.push(Effect::Audit(AuditRecord {
            time: now,
            cycle: self.cycle,
            decided_cycle: self.cycle,
            kind: Some(action.kind),
            operation: None,
            machine: action.machine,
            cluster: action.cluster,
            need,
            priority: terms.map(|terms| terms.priority),
            reason: Some(action.reason),
            grace_seconds: action.grace_seconds,
            outcome,
            error: String::new(),
            provider_operation: String::new(),
            took_seconds: None,
            price,
            epoch: self.epoch,
            event: self.heard,
        }));
    }

    /// What the engine cannot know: sessions, reclaims given up, providers that cannot delete.
    fn is_committable(&mut self, now: Time, action: &Action) -> bool {
        let known = self.ledger.get(&action.machine);
        let in_place = known.is_some_and(|known| known.state() == walk(action.kind).source)
            && !self.operations.contains_key(&action.machine);
        debug_assert!(
            in_place || self.config.defect.is_some(),
            "{} is not where it was decided on",
            action.machine
        );
        let beside = self.ledger.beside(&action.machine);
        match action.kind {
            ActionKind::Reclaim => {
                let cluster = action.cluster.as_ref();
                let connected = cluster.is_some_and(|one| {
                    self.sessions.of(one).is_some() || self.released.contains(one)
                });
                in_place && connected && !self.cancelled.waits(&action.machine, now)
            }
            ActionKind::Delete => {
                self.counters.deletes_unsupported += u64::from(beside.undeletable);
                in_place && !beside.undeletable
            }
            ActionKind::Bootstrap | ActionKind::Provision | ActionKind::Preempt => in_place,
        }
    }

    /// Rail 1: the head of each cluster's reclaims.
    fn cap_reclaims(&mut self, now: Time, mut actions: Vec<Action>) -> Vec<Action> {
        self.capped = 0;
        let per_million = self.config.rails.reclaim_cap_per_million;
        if per_million == 0 || self.has(Defect::ReclaimCapOff) {
            return actions;
        }
        let interval = self.config.cycle_interval.as_secs_f64();
        let mut left: BTreeMap<ClusterId, u32> = BTreeMap::new();
        actions.retain(|action| {
            let (ActionKind::Reclaim, Some(cluster)) = (action.kind, &action.cluster) else {
                return true;
            };
            let (cap, ledger) = (&mut self.reclaim_cap, &self.ledger);
            let left = left.entry(cluster.clone()).or_insert_with(|| {
                cap.grant(
                    cluster,
                    ledger.configured(cluster),
                    per_million,
                    now,
                    interval,
                )
            });
            let allowed = 0 < *left;
            *left = left.saturating_sub(1);
            self.capped += u64::from(!allowed);
            if !allowed {
                let of = &mut self.counters.reclaims_capped_of;
                *of.entry(cluster.clone()).or_default() += 1;
            }
            self.counters.reclaims_capped += u64::from(!allowed);
            allowed
        });
        actions
    }

    /// DC-5: the machine is ordinary supply again, and its hold starts now.
    pub(crate) fn end_intent(&mut self, now: Time, machine: &MachineId, effects: &mut Vec<Effect>) {
        let Some(state) = self.ledger.get(machine).map(|known| known.state()) else {
            return;
        };
        let free = self.ledger.revise(machine, |facts| facts.intent = None);
        if let Some(free) = free {
            self.counters.intents_ended += 1;
            self.change(now, free, Via::Step, effects);
            if state == State::Idle {
                self.ledger.restart_idle_clock(machine, now);
            }
        }
    }

    /// RF-7: all five assignment fields, or the intent; the keep price stays.
    fn restamp(&mut self, now: Time, to: Restamp, effects: &mut Vec<Effect>) {
        let live = self.ledger.get(&to.machine).map(|known| known.price());
        let bound = self
            .ledger
            .get(&to.machine)
            .is_some_and(|known| known.state().is_bound());
        let stamped = self.ledger.revise(&to.machine, |facts| {
            if bound {
                facts.assignment = Assignment {
                    terms: to.terms,
                    fingerprint: to.need.fingerprint.clone(),
                    group: to.need.group.clone(),
                    keep_price: facts.assignment.keep_price,
                };
            } else {
                let keep_price = facts.intent.take().map_or(live, |intent| intent.keep_price);
                facts.intent = Some(Intent {
                    need: to.need.clone(),
                    terms: to.terms,
                    keep_price,
                });
            }
        });
        if let Some(stamped) = stamped {
            self.counters.restamps += 1;
            self.change(now, stamped, Via::Step, effects);
        }
    }

    /// DC-1: the transition and the attribution at once, before anything is queued.
    fn commit(&mut self, now: Time, action: Action, effects: &mut Vec<Effect>) {
        let committed = self
            .ledger
            .revise(&action.machine, |facts| action.commit(facts));
        let Some(committed) = committed else {
            debug_assert!(false, "{} cannot be committed", action.machine);
            return;
        };
        self.numbers += 1;
        let id = OperationId {
            epoch: self.epoch,
            number: self.numbers,
        };
        let barrier = self.next_barrier();
        let machine = action.machine.clone();
        self.counters.acted(action.kind);
        let mut operation = Operation::new(id, action, self.cycle, now, barrier);
        if self.has(Defect::CommitAfterCalling) {
            operation.late = Some(Box::new(committed.clone()));
        }
        self.operations.insert(machine.clone(), operation);
        self.by_operation.insert(id, machine.clone());
        self.awaiting_disk.push((barrier, machine.clone()));
        match self.has(Defect::CommitAfterCalling) {
            true => self.remember(&machine),
            false => self.change(now, committed, Via::Step, effects),
        }
    }
}

fn is_gang(verdict: &Verdict) -> bool {
    verdict.need.row.profile.same_key().is_some()
}

#[cfg(test)]
mod tests {
    use bigfleet_engine::Engine;
    use bigfleet_model::Verdict;
    use bigfleet_testkit::fleet;

    /// What is looked at each cycle is what the whole decision would say.
    #[test]
    fn the_short_needs_are_those_of_the_decision() {
        let fleet = fleet(
            "m1 Idle cpu=4 $1
             v1 Configured b cpu=4 $1 stamp=1 own-raw=F,
             need a cpu=4 prio=10
             need a cpu=8 prio=1000 zone=Exists
             need b cpu=32 group=g1 rack=Same
             need b cpu=400 prio=7",
        );
        let mut engine = Engine::new();
        engine.load(&fleet);
        engine.decide(fleet.now);
        let needs = engine.decision().needs.into_iter();
        let short: Vec<Verdict> = needs.filter(|need| !need.satisfied).collect();
        assert_eq!(engine.short(), short);
        assert_eq!(short.len(), 3);
    }
}
