//! Breakers: what follows when an acquisition ends badly, or well again (SH-22).
//!
//! ```text
//! operation ended ─▶ failed ─▶ ended_badly: noted, on record, closed to the engine ─▶ until ─▶ one probe
//!                └▶ succeeded ─▶ ended_well: closed, open to the engine again; makes up for two spent machines
//! ```
//!
//! Every operation ends in [`ShardCore::finish`], so every bad end of one comes here, whoever said so and
//! however it was learnt. What ends badly without an operation comes here by itself: a blob that did not
//! come for a call that goes on, a node that never became Ready, a machine somebody else began.

use super::ShardCore;
use crate::{
    audit::Outcome,
    defect::Defect,
    rails::{BreakerKey, InFlight, JoinStep, Pool, Spent},
    record::{KeptOperation, Record},
    schedule::Timer,
    work::Operation,
};
use bigfleet_model::{Action, ActionKind, ClusterId, Machine, MachineId, NeedKey, State, Time};
use std::collections::BTreeSet;

impl ShardCore {
    /// An operation ended otherwise than it should have.
    pub(super) fn failed(&mut self, now: Time, operation: &Operation, outcome: Outcome) {
        if let Some(key) = self.to_blame(operation, outcome) {
            if let BreakerKey::Join(cluster, _) = &key {
                self.spend(now, &operation.machine, cluster);
            }
            self.ended_badly(now, key, &operation.trouble);
        }
    }

    /// What an end is held against; nothing if nobody was asked, or it was no acquisition.
    fn to_blame(&self, operation: &Operation, outcome: Outcome) -> Option<BreakerKey> {
        let step = match outcome {
            Outcome::BlobError | Outcome::Timeout => JoinStep::Blob,
            Outcome::ProviderError | Outcome::InventoryMiss | Outcome::Conflict => {
                JoinStep::Configure
            }
            Outcome::Success
            | Outcome::Fenced
            | Outcome::NoSession
            | Outcome::NeverSent
            | Outcome::Adopted
            | Outcome::DrainBlocked
            | Outcome::TakenBack
            | Outcome::Suppressed
            | Outcome::DryRun
            | Outcome::Retired
            | Outcome::DrainMarked
            | Outcome::DrainLifted
            | Outcome::DrainDeadlinePassed
            | Outcome::LeavingAnnounced
            | Outcome::LeavingWithdrawn => return None,
        };
        match operation.action {
            ActionKind::Provision => self
                .supply
                .pool_of(&operation.machine)
                .map(BreakerKey::Create),
            ActionKind::Bootstrap => {
                let cluster = operation.cluster.clone()?;
                Some(BreakerKey::Join(cluster, step))
            }
            ActionKind::Preempt
            | ActionKind::Reclaim
            | ActionKind::Delete
            | ActionKind::Restore => None,
        }
    }

    /// A machine that nothing is done to here is Failed where it was on its way: somebody else's step, or
    /// one of an earlier process, but the pool and the cluster are the same.
    pub(super) fn failed_on_its_way(&mut self, now: Time, known: &Machine, seen: &Machine) {
        let key = match (known.state(), seen.state()) {
            (State::Creating, State::Failed) => BreakerKey::Create(Pool::of(known.shape())),
            (State::Configuring, State::Failed) => {
                let Some(cluster) = known.cluster() else {
                    return;
                };
                self.spend(now, known.id(), cluster);
                BreakerKey::Join(cluster.clone(), JoinStep::Configure)
            }
            _ => return,
        };
        self.ended_badly(now, key, seen.last_error());
    }

    /// The one place that hears of every bad end: it is on record, and nothing of the kind is tried for a
    /// while.
    pub(super) fn ended_badly(&mut self, now: Time, key: BreakerKey, why: &str) {
        let is_configure = matches!(&key, BreakerKey::Join(_, JoinStep::Configure));
        if is_configure && self.has(Defect::FailedConfigureForgiven) {
            return;
        }
        let old = self.rails.forget_old_breakers(now);
        let (until, is_opened) = self.rails.ended_badly(&key, now, why);
        self.counters.breakers_opened += u64::from(is_opened);
        for key in old.iter().chain([&key]) {
            let record = self.rails.breakers().record(key);
            self.remember_record(record);
        }
        for key in old {
            self.review_breaker(now, &key);
        }
        self.schedule.set(until, reminder(&key));
        self.review_breaker(now, &key);
    }

    /// Something that may have ended badly before ended well.
    pub(super) fn ended_well(&mut self, now: Time, key: &BreakerKey) {
        if self.rails.ended_well(key) {
            let record = self.rails.breakers().record(key);
            self.remember_record(record);
            self.review_breaker(now, key);
        }
    }

    /// A machine was configured for a cluster. If its nodes are in trouble that is not the end of it.
    pub(super) fn configured(&mut self, now: Time, cluster: &ClusterId) {
        if self.rails.is_untroubled() {
            return;
        }
        for step in [JoinStep::Blob, JoinStep::Configure] {
            self.ended_well(now, &BreakerKey::Join(cluster.clone(), step));
        }
        let node = BreakerKey::Join(cluster.clone(), JoinStep::Node);
        if self.rails.breakers().get(&node).is_none() {
            self.make_up(cluster);
        }
        self.review_cluster(now, cluster);
    }

    /// A machine became a Ready node of a cluster.
    pub(super) fn joined(&mut self, now: Time, cluster: &ClusterId) {
        let node = BreakerKey::Join(cluster.clone(), JoinStep::Node);
        if self.rails.breakers().get(&node).is_some() {
            self.ended_well(now, &node);
            self.make_up(cluster);
            self.review_cluster(now, cluster);
        }
    }

    /// A machine of a cluster never became a Ready node.
    pub(super) fn never_joined(&mut self, now: Time, machine: &MachineId, cluster: &ClusterId) {
        self.spend(now, machine, cluster);
        let node = BreakerKey::Join(cluster.clone(), JoinStep::Node);
        self.ended_badly(now, node, &format!("the node of {machine} is not Ready"));
    }

    /// A machine no longer serves a cluster: nobody waits for its node.
    pub(super) fn node_left(&mut self, now: Time, cluster: &ClusterId) {
        let node = BreakerKey::Join(cluster.clone(), JoinStep::Node);
        if self.rails.breakers().get(&node).is_some() {
            self.review_cluster(now, cluster);
        }
    }

    /// A person wants a cluster tried again, whatever happened before.
    pub(super) fn try_afresh(&mut self, now: Time, cluster: &ClusterId) {
        for step in JoinStep::ALL {
            self.ended_well(now, &BreakerKey::Join(cluster.clone(), step));
        }
        for machine in self.rails.spent_mut().clear(cluster) {
            self.remember(&machine);
        }
        self.review_cluster(now, cluster);
    }

    /// A machine came to serve a cluster: that makes up for some that it used up before.
    fn make_up(&mut self, cluster: &ClusterId) {
        for machine in self.rails.spent_mut().make_up(cluster) {
            self.remember(&machine);
        }
    }

    fn spend(&mut self, now: Time, machine: &MachineId, cluster: &ClusterId) {
        if self.supply.get(machine).is_none() || self.has(Defect::FailedConfigureForgiven) {
            return;
        }
        self.recall_spent(now, machine, cluster);
        self.remember(machine);
    }

    /// A machine was spent at that moment, and counts for so long.
    pub(super) fn recall_spent(&mut self, at: Time, machine: &MachineId, cluster: &ClusterId) {
        self.rails.spent_mut().spend(machine, cluster, at);
        let until = Spent::counts_until(at);
        self.schedule.set(until, Timer::Cluster(cluster.clone()));
    }

    /// A machine is supply again, or gone: it was not used up.
    pub(super) fn give_back(&mut self, now: Time, machine: &MachineId) {
        if let Some(cluster) = self.rails.spent_mut().give_back(machine) {
            self.remember(machine);
            self.review_cluster(now, &cluster);
        }
    }

    /// Machines that were spent long ago count no more.
    pub(super) fn forget_old_spending(&mut self, now: Time, cluster: &ClusterId) {
        for machine in self.rails.spent_mut().forget_old(cluster, now) {
            self.remember(&machine);
        }
    }

    /// An acquisition is over: whoever waits for it to be may try the next.
    pub(super) fn acquisition_over(&mut self, now: Time, operation: &Operation) {
        if self.rails.is_untroubled() {
            return;
        }
        if let Some(cluster) = acquired_for(operation.action, operation.need.as_ref()) {
            let cluster = cluster.clone();
            self.review_cluster(now, &cluster);
        }
        if operation.action == ActionKind::Provision
            && let Some(pool) = self.supply.pool_of(&operation.machine)
        {
            self.review_pool(now, &pool);
        }
    }

    /// Leaves of a cycle's acquisitions those that may be tried; clusters that have used up what they may
    /// are told to the engine.
    pub(super) fn limit_acquisitions(&mut self, now: Time, actions: &mut Vec<Action>) {
        if self.rails.is_untroubled() || self.has(Defect::ProbesUnlimited) {
            return;
        }
        let in_flight = self.acquisitions_in_flight();
        let supply = &self.supply;
        let pool_of = |machine: &MachineId| supply.pool_of(machine);
        let exhausted = self
            .rails
            .limit_acquisitions(actions, now, &in_flight, pool_of);
        for cluster in &exhausted {
            self.review_cluster(now, cluster);
        }
    }

    /// The breakers that the acquisitions among these actions are to be noted with.
    pub(super) fn troubled(&self, actions: &[Action]) -> BTreeSet<BreakerKey> {
        let mut keys = BTreeSet::new();
        if self.rails.is_untroubled() {
            return keys;
        }
        for action in actions {
            let need = action.purpose.as_ref().map(|(need, _)| need);
            if let Some(cluster) = acquired_for(action.kind, need) {
                keys.insert(BreakerKey::Join(cluster.clone(), JoinStep::Configure));
            }
            if action.kind == ActionKind::Provision {
                keys.extend(self.supply.pool_of(&action.machine).map(BreakerKey::Create));
            }
        }
        keys
    }

    /// Tells the engine what a breaker keeps from it, or no longer does.
    pub(super) fn review_breaker(&mut self, now: Time, key: &BreakerKey) {
        match key {
            BreakerKey::Create(pool) => self.review_pool(now, pool),
            BreakerKey::Join(cluster, _) => self.review_cluster(now, cluster),
        }
    }

    /// Closes a pool to the engine, or opens it (RF-17).
    pub(super) fn review_pool(&mut self, now: Time, pool: &Pool) {
        let key = BreakerKey::Create(pool.clone());
        let breakers = self.rails.breakers();
        let is_probed =
            || breakers.is_open(&key) && 0 < self.acquisitions_in_flight().creates(pool);
        let is_closed = breakers.waits(&key, now) || is_probed();
        if self.supply.set_closed(pool, is_closed) && !is_closed {
            self.schedule.want_cycle();
        }
    }

    /// Whether nothing is to be acquired for a cluster now, because it did not end well lately.
    pub(super) fn is_join_held(&self, now: Time, cluster: &ClusterId) -> bool {
        let rails = &self.rails;
        let mut joins = rails.breakers().joins(cluster);
        let is_open = || {
            rails
                .breakers()
                .joins(cluster)
                .any(|(_, one)| one.is_open())
        };
        rails.spent().is_exhausted(cluster)
            || joins.any(|(_, one)| now < one.until)
            || (is_open() && self.acquisitions_in_flight().is_probing(cluster))
    }

    /// The acquisitions under way, those of an earlier process included whose machines were not seen yet.
    pub(super) fn acquisitions_in_flight(&self) -> InFlight {
        let mut in_flight = InFlight::default();
        for operation in self.work.after(None) {
            if let Some(cluster) = acquired_for(operation.action, operation.need.as_ref()) {
                *in_flight.of_cluster.entry(cluster.clone()).or_default() += 1;
            }
            if operation.action == ActionKind::Provision
                && let Some(pool) = self.supply.pool_of(&operation.machine)
            {
                *in_flight.of_pool.entry(pool).or_default() += 1;
            }
        }
        for (key, known) in self.rails.breakers().iter() {
            if let BreakerKey::Join(cluster, JoinStep::Node) = key
                && known.is_open()
                && self
                    .sessions
                    .of(cluster)
                    .is_some_and(|one| one.reports_nodes)
            {
                let awaited = self.supply.awaited_nodes(cluster);
                in_flight.awaited_nodes.insert(cluster.clone(), awaited);
            }
        }
        let remembered = self.supply.remembered().values();
        let unseen = remembered.filter_map(|kept| kept.operation.as_deref());
        for KeptOperation { action, need, .. } in unseen {
            if let Some(cluster) = acquired_for(*action, need.as_ref()) {
                *in_flight.of_cluster.entry(cluster.clone()).or_default() += 1;
            }
            in_flight.of_unknown_pool += usize::from(*action == ActionKind::Provision);
        }
        in_flight
    }

    /// The breakers an earlier process knew are all recalled: they go on from where they were.
    pub(super) fn resume_breakers(&mut self, now: Time) {
        let known = self.rails.breakers().iter();
        let known: Vec<(BreakerKey, Time)> =
            known.map(|(key, kept)| (key.clone(), kept.until)).collect();
        for (key, until) in known {
            self.schedule.set(until, reminder(&key));
            self.review_breaker(now, &key);
        }
    }

    /// The records of all breakers.
    pub(super) fn breaker_records(&self) -> impl Iterator<Item = Record> {
        let breakers = self.rails.breakers();
        breakers.iter().map(|(key, _)| breakers.record(key))
    }
}

/// Whether a machine in this state can be acquired.
pub(super) fn is_supply(state: State) -> bool {
    matches!(state, State::Idle | State::Speculative)
}

/// The cluster an operation acquires a machine for.
fn acquired_for(action: ActionKind, need: Option<&NeedKey>) -> Option<&ClusterId> {
    match action {
        ActionKind::Bootstrap | ActionKind::Provision | ActionKind::Preempt => {
            need.map(|need| &need.cluster)
        }
        ActionKind::Reclaim | ActionKind::Delete | ActionKind::Restore => None,
    }
}

/// Whom to remind when the wait of a breaker is over.
fn reminder(key: &BreakerKey) -> Timer {
    match key {
        BreakerKey::Create(pool) => Timer::Pool(pool.clone()),
        BreakerKey::Join(cluster, _) => Timer::Cluster(cluster.clone()),
    }
}
