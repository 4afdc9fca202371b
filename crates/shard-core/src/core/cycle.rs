//! Cycle: decide, limit, commit; then let the disk catch up before anything leaves (SH-5).
//!
//! ```text
//! engine.decide ─▶ shortfalls, parking ─▶ pause, rails, admission ─▶ commit ─▶ Persist
//!                                              the rest derives again    └─ barrier ─▶ gate
//! ```
//!
//! Transitions, intents, restamps and ended intents are applied together, so the next cycle decides
//! on committed facts only, whatever latency and order the calls have.

use super::{ShardCore, leaving::leaves_now};
use crate::{
    audit::{AuditRecord, Outcome},
    defect::Defect,
    effect::Effect,
    histogram::Phase,
    rails::admit,
    settings::CYCLE_SPACING,
    supply::Decided,
};
use bigfleet_model::{Action, ActionKind, Machine, MachineId, Restamp, State, Time, Via};

impl ShardCore {
    pub(super) fn run_cycle(
        &mut self,
        now: Time,
        effects: &mut Vec<Effect>,
        begins: &mut dyn FnMut(Phase),
    ) {
        begins(Phase::Snapread);
        self.schedule.begin_cycle(now);
        // CY-5, SH-10: what the provider has is not known well enough to decide on.
        if !self.supply.is_trusted() {
            begins(Phase::Execute);
            return;
        }
        self.let_go(now, effects);
        self.review_leaving(now, effects);
        self.supply.decide(now, &mut |part| begins(Phase::of(part)));
        begins(Phase::Execute);
        let is_any_to_leave = self.commit_decision(now, effects);
        begins(Phase::Emit);
        let stock = self.supply.ledger().stock();
        self.demand.send_hints(now, stock, &self.sessions, effects);
        begins(Phase::Execute);
        if is_any_to_leave {
            self.persist(effects);
        }
        debug_assert_eq!(self.work.check(), Ok(()));
    }

    /// Commits what was decided, as far as it may be done; says whether any of it is to leave.
    fn commit_decision(&mut self, now: Time, effects: &mut Vec<Effect>) -> bool {
        // What there is no room for need not be spelled out, unless it is said of each why it is not done.
        let most = if self.rails.is_open() {
            self.room().0
        } else {
            usize::MAX
        };
        let Decided {
            ended_intents,
            restamps,
            actions,
            beyond,
            short,
            lacking,
        } = self.supply.decided(most);
        let cycle = self.schedule.cycle();
        let verdicts = self.verdicts.is_due(cycle, now, short.is_some());
        let verdicts = verdicts.then(|| self.supply.verdicts());
        self.demand.review(short, &mut self.supply.rows());
        if let Some(lacking) = lacking {
            self.demand.review_lacking(lacking, now);
        }
        if let Some(verdicts) = verdicts {
            let decided = self.reads().verdicts(verdicts);
            self.verdicts.put(decided);
        }
        let due_to_leave = Self::due_to_leave(&actions);
        let actions = self.permitted(now, actions, beyond, effects);
        for machine in &ended_intents {
            self.end_intent(now, machine, effects);
        }
        if !self.has(Defect::ClaimsNotCommitted) {
            for restamp in &restamps {
                self.restamp(now, restamp, effects);
            }
        }
        let is_any_to_leave = !actions.is_empty();
        let tried = self.troubled(&actions);
        for action in actions {
            self.commit(now, action, effects);
        }
        for key in &tried {
            self.review_breaker(now, key); // while it is tried, nothing else of the kind is
        }
        self.note_leaving(now, due_to_leave);
        is_any_to_leave
    }

    /// The actions that may be committed: pause and dry-run, then what the shard knows better, then
    /// breakers, then rail 1, then admission.
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
            match self.rails.suppress(&action) {
                Some(outcome) => self.suppressed(action, outcome, effects),
                None if self.is_committable(now, &action, effects) => wanted.push(action),
                None => {}
            }
        }
        self.limit_acquisitions(now, &mut wanted);
        let ledger = self.supply.ledger();
        let configured = |cluster: &_| ledger.configured(cluster);
        let is_capped = self.has(Defect::LeavingNowCapped);
        let is_outside = |machine: &_| !is_capped && leaves_now(ledger, machine);
        let capped = self
            .rails
            .cap_reclaims(&mut wanted, configured, is_outside, now);
        self.counters.reclaims_capped += capped.clusters.len() as u64;
        if let Some(next) = capped.next {
            self.schedule.cycle_by(next);
        }
        for cluster in capped.clusters {
            *self.counters.reclaims_capped_of.entry(cluster).or_default() += 1;
        }
        let (admitted, cut) = admit(wanted, room);
        let cut = cut + beyond;
        self.counters.deferred += cut as u64;
        // If it is the operations in flight that leave no room, it is their end that wakes the next.
        if 0 < cut && is_limited {
            self.schedule.cycle_by(now + CYCLE_SPACING);
        }
        for action in &admitted {
            if let (ActionKind::Reclaim, Some(cluster)) = (action.kind, &action.cluster)
                && !self.is_outside_rail(&action.machine)
            {
                self.rails.reclaim_committed(cluster, &action.machine);
            }
        }
        admitted
    }

    /// How many actions may be committed now, and whether it is a configured limit that says so (SH-2).
    fn room(&self) -> (usize, bool) {
        let room = self.work.room();
        let limit = self.config.max_actions_per_cycle;
        if 0 < limit && limit < room {
            (limit, true)
        } else {
            (room, false)
        }
    }

    /// An action that pauses or dry-run hold back.
    fn suppressed(&mut self, action: Action, outcome: Outcome, effects: &mut Vec<Effect>) {
        let counts = if outcome == Outcome::DryRun {
            &mut self.counters.dry_run
        } else {
            &mut self.counters.suppressed
        };
        *counts.entry(action.kind).or_default() += 1;
        let record = self.audit(action.machine.clone(), outcome);
        effects.push(Effect::Audit(record.decided(action)));
    }

    /// The line of the audit log for what happens to a machine now; the one place where one is begun.
    pub(super) fn audit(&self, machine: MachineId, outcome: Outcome) -> AuditRecord {
        AuditRecord {
            time: self.now,
            cycle: self.schedule.cycle(),
            decided_cycle: self.schedule.cycle(),
            kind: None,
            operation: None,
            cluster: None,
            need: None,
            priority: None,
            reason: None,
            grace_seconds: 0,
            outcome,
            error: String::new(),
            provider_operation: String::new(),
            said: String::new(),
            took_seconds: None,
            price: self.supply.price_of(&machine),
            epoch: self.epoch,
            event: self.heard,
            machine,
        }
    }

    /// What the engine cannot know: sessions, what was given up lately, providers that cannot delete.
    fn is_committable(&mut self, now: Time, action: &Action, effects: &mut Vec<Effect>) -> bool {
        let machine = &action.machine;
        let state = self.supply.get(machine).map(Machine::state);
        let operation = self.work.get(machine);
        // Its drain may have been handed over since (RF-20).
        if action.kind == ActionKind::Restore {
            return operation.is_some_and(|one| self.may_take_back(one));
        }
        if state != Some(action.kind.source()) || operation.is_some() {
            // Some of the old mistakes lead here.
            if self.config.defect.is_none() {
                let what = format!("{} was decided, but it is {state:?}", action.kind.word());
                self.impossible(machine, what, effects);
            }
            return false;
        }
        match action.kind {
            ActionKind::Reclaim => {
                let cluster = action.cluster.as_ref();
                let is_connected = cluster.is_some_and(|one| {
                    self.sessions.is_connected(one) || self.rails.is_released(one)
                });
                // SH-3: what leaves now needs no operator.
                let needs_none = self.leaves_now(machine) && !self.has(Defect::NowNeedsOperator);
                (is_connected || needs_none) && !self.rails.is_given_up(machine, now)
            }
            ActionKind::Delete => {
                let undeletable = self.supply.beside(machine).undeletable;
                self.counters.deletes_unsupported += u64::from(undeletable);
                !undeletable && !self.rails.is_given_up(machine, now)
            }
            ActionKind::Bootstrap
            | ActionKind::Provision
            | ActionKind::Preempt
            | ActionKind::Restore => true,
        }
    }

    /// DC-5: the machine is ordinary supply again, and its hold starts now.
    pub(super) fn end_intent(&mut self, now: Time, machine: &MachineId, effects: &mut Vec<Effect>) {
        let is_idle = |known: &Machine| known.state() == State::Idle;
        let Some(is_idle) = self.supply.get(machine).map(is_idle) else {
            return;
        };
        self.counters.intents_ended += 1;
        self.step(now, machine, Via::Step, Machine::release_intent, effects);
        if is_idle {
            self.supply.restart_idle_clock(machine, now);
        }
    }

    /// RF-7: the machine is committed to another Need without an action.
    fn restamp(&mut self, now: Time, to: &Restamp, effects: &mut Vec<Effect>) {
        self.counters.restamps += 1;
        let restamp = |known: &Machine| known.restamp(to);
        self.step(now, &to.machine, Via::Step, restamp, effects);
    }

    /// DC-1: the transition and the attribution at once, before anything is queued.
    fn commit(&mut self, now: Time, action: Action, effects: &mut Vec<Effect>) {
        let machine = action.machine.clone();
        let committed = match self.supply.get(&machine).map(|known| known.commit(&action)) {
            Some(Ok(committed)) => committed,
            Some(Err(refused)) => return self.impossible(&machine, refused.to_string(), effects),
            None => return self.impossible(&machine, "it is not known".to_owned(), effects),
        };
        if action.kind == ActionKind::Restore {
            return self.take_back(now, action, committed, effects);
        }
        self.counters.acted(action.kind);
        let not_ready = self.supply.beside(&machine).not_ready;
        let is_late = self.has(Defect::CommitAfterCalling);
        let late = is_late.then(|| committed.clone());
        let (cycle, barrier) = (self.schedule.cycle(), self.journal.next_barrier());
        self.work
            .commit(action, cycle, now, barrier, not_ready, late);
        if is_late {
            self.remember(&machine);
        } else {
            self.change(now, committed, Via::Step, effects);
        }
        if self.leaves_now(&machine) {
            self.hasten(now, &machine, false, effects);
        }
        self.mark_reversible(&machine);
    }
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
