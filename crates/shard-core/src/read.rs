//! Reads: what a shard shows of itself to people and tools (RD-1, RD-2), as plain values.
//!
//! ```text
//! reader ─▶ runtime ─▶ core's own thread, between events: one page, bounded ─▶ reader
//! ```
//!
//! Nothing is prepared for readers that nobody asked for. A page is built when it is asked for, from
//! what stands in the ledger, and copies what it shows; pages look at a bounded number of entries.
//! Verdicts cannot wait: as soon as a decision is committed the engine knows the fleet that follows
//! from it. So they are taken down in the cycle itself, but only in one that somebody asked for
//! ([`ShardCore::want_verdicts`]), and then shared by all readers.

use crate::{
    ShardCore,
    breaker::Pool,
    effect::{OperationId, RequestId},
    event::{Code, Features, SessionId},
    operation::{Operation, Step},
    pause::Pause,
    shortfall::Withheld,
};
use bigfleet_model::{
    ActionKind, Amounts, ClusterId, Decision, Machine, MachineId, NeedKey, Reason, State, Time,
    Verdict,
};
use std::{collections::BTreeMap, sync::Arc};

/// Entries a page looks at, at most.
pub const PAGE: usize = 1000;

/// A page, and where the next one begins.
#[derive(Clone, Debug, PartialEq)]
pub struct Page<T, K> {
    /// What it shows.
    pub entries: Vec<T>,
    /// What to ask the next page after; `None` if there is none.
    pub next: Option<K>,
}

/// One machine as the shard holds it.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineView {
    /// The record with its commitments.
    pub machine: Machine,
    /// Since when it is seen in its state.
    pub state_since: Option<Time>,
    /// When its provider last showed it; `None` if it has not since the start.
    pub seen_at: Option<Time>,
    /// Its node in the cluster; empty if not known.
    pub node_name: String,
    /// Its node did not become ready.
    pub not_ready: bool,
    /// It would be reclaimed, but is kept until what replaces it serves (RF-11).
    pub held: bool,
    /// Why it is no candidate for new work.
    pub unavailable: Option<Unavailable>,
    /// Why the provider's newest record was refused; the last good one is shown.
    pub refused: Option<String>,
    /// Its provider cannot delete it.
    pub undeletable: bool,
    /// What is being done to it.
    pub work: Option<ActionKind>,
}

/// Why a machine cannot be acquired (RF-17).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// What the provider shows of it is not confirmed.
    Unconfirmed,
    /// Its pool is left alone for a while.
    PoolBackoff,
}

/// Which machines to show. All that is given must hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MachineFilter {
    /// Bound to or meant for this cluster.
    pub cluster: Option<ClusterId>,
    /// In one of these states; empty for any.
    pub states: Vec<State>,
    /// Of this type.
    pub instance_type: Option<String>,
    /// In this zone.
    pub zone: Option<String>,
    /// Only those with something remarkable: not ready, held, unavailable, refused, undeletable.
    pub flagged: bool,
}

impl MachineFilter {
    fn admits(&self, machine: &Machine) -> bool {
        let shape = machine.shape();
        let meant = machine.intent().map(|intent| &intent.need.cluster);
        let is = |wanted: &Option<String>, text: &str| {
            wanted.as_deref().is_none_or(|wanted| wanted == text)
        };
        (self.states.is_empty() || self.states.contains(&machine.state()))
            && is(&self.instance_type, &shape.instance_type)
            && is(&self.zone, &shape.zone)
            && self
                .cluster
                .as_ref()
                .is_none_or(|wanted| machine.cluster() == Some(wanted) || meant == Some(wanted))
    }
}

impl MachineView {
    fn is_flagged(&self) -> bool {
        self.not_ready
            || self.held
            || self.undeletable
            || self.unavailable.is_some()
            || self.refused.is_some()
    }
}

/// One cluster as the shard holds it.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterView {
    /// The cluster.
    pub cluster: ClusterId,
    /// Its operator's session: which, since when, what it can do.
    pub session: Option<(SessionId, Time, Features)>,
    /// Since when it has none.
    pub gone_since: Option<Time>,
    /// This process has accepted a roll-up from it.
    pub ready: bool,
    /// When the roll-up in force was accepted, and its id.
    pub accepted: Option<(Time, String)>,
    /// Roll-ups held in a row by rail 2.
    pub held: u32,
    /// When a roll-up was last refused, and why.
    pub refused: Option<(Time, String)>,
    /// Why nothing is acquired for it.
    pub withheld: Option<Withheld>,
    /// Its rows.
    pub rows: usize,
    /// Needs of it that are short.
    pub short: usize,
    /// Machines bound to it or meant for it, by state.
    pub machines: BTreeMap<State, u32>,
    /// Of those, with a node that is not ready.
    pub not_ready: u32,
}

/// One operation in flight.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkView {
    /// Its id, which is also its instruction's.
    pub id: OperationId,
    /// The machine.
    pub machine: MachineId,
    /// What was decided.
    pub action: ActionKind,
    /// Why.
    pub reason: Reason,
    /// What it waits for.
    pub stage: Stage,
    /// Since when it waits for that.
    pub since: Time,
    /// The cluster the machine joins or leaves.
    pub cluster: Option<ClusterId>,
    /// The Need it is for.
    pub need: Option<NeedKey>,
    /// When it was committed, or taken up by this process.
    pub committed: Time,
    /// When a drain's grace ends.
    pub deadline: Option<Time>,
    /// Calls made so far.
    pub attempts: u32,
    /// What the last call was refused with.
    pub refused: Option<(Code, String)>,
    /// What the provider calls it; empty before it has taken it on.
    pub name: String,
    /// The cycle that decided it.
    pub decided_cycle: u64,
}

/// What an operation waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Its commit is not on disk yet.
    Disk,
    /// A free call slot, or its operator.
    Queued,
    /// The operator's blob.
    Blob(RequestId),
    /// The operator's word that the node is drained.
    Drain,
    /// The answer to a call.
    Call,
    /// The provider's completion, seen by reading.
    Provider,
    /// The next attempt.
    Backoff,
    /// A confirming read.
    Confirm,
    /// The end of a pause.
    Paused,
}

/// Everything that limits or stops the shard.
#[derive(Clone, Debug, PartialEq)]
pub struct RailsView {
    /// Rail 1: its setting, in millionths; zero is off.
    pub reclaim_cap_per_million: u32,
    /// Reclaims it held back in the last cycle.
    pub reclaims_capped: u64,
    /// Rail 2 is on.
    pub roll_up_guard: bool,
    /// Clusters with a held roll-up, and how many in a row.
    pub held: Vec<(ClusterId, u32)>,
    /// Machines the last full List lacked and that are kept all the same (SH-10).
    pub removals_held: usize,
    /// The pauses in force, oldest first.
    pub pauses: Vec<Pause>,
    /// Pools that are not asked for machines.
    pub breakers: Vec<BreakerView>,
    /// Clusters in bootstrap backoff.
    pub bootstraps: Vec<BackoffView>,
    /// Decisions are shown and nothing leaves.
    pub dry_run: bool,
    /// Another process runs this shard; this one has stopped itself.
    pub fenced: bool,
}

/// A pool that is not asked for machines for a while (SH-11).
#[derive(Clone, Debug, PartialEq)]
pub struct BreakerView {
    /// Which.
    pub pool: Pool,
    /// Failures in a row.
    pub failures: u32,
    /// Until when it is left alone.
    pub until: Time,
    /// What the last failure was.
    pub last_error: String,
}

/// A cluster for which nothing is acquired for a while, because its operator could not bootstrap (W-5).
#[derive(Clone, Debug, PartialEq)]
pub struct BackoffView {
    /// Which.
    pub cluster: ClusterId,
    /// Failures in a row.
    pub failures: u32,
    /// Until when it is left alone.
    pub until: Time,
    /// What the last failure was, in the operator's words if it had any.
    pub last_error: String,
}

/// One Need and what the last cycle decided about it (VD-1).
#[derive(Clone, Debug, PartialEq)]
pub struct NeedView {
    /// The engine's verdict.
    pub verdict: Verdict,
    /// What is missing after what was preempted for it (V-8); zero when satisfied.
    pub unresolved: Amounts,
    /// Cycles in a row it has been short.
    pub age: u32,
    /// Cycles in a row without progress, for a gang.
    pub parked_age: u32,
    /// Why the shard holds back.
    pub withheld: Option<Withheld>,
}

/// What a cycle decided about every Need.
#[derive(Clone, Debug, PartialEq)]
pub struct Decided {
    /// Which cycle.
    pub cycle: u64,
    /// When.
    pub at: Time,
    /// By priority descending, arrival, cluster, then the total order (VD-4).
    pub needs: Vec<NeedView>,
}

impl ShardCore {
    /// One machine, as shown.
    pub fn machine_view(&self, id: &MachineId) -> Option<MachineView> {
        let machine = self.ledger.get(id)?;
        let beside = self.ledger.beside(id);
        let unavailable = if beside.unconfirmed {
            Some(Unavailable::Unconfirmed)
        } else {
            let closed = self.ledger.is_closed(machine);
            closed.then_some(Unavailable::PoolBackoff)
        };
        Some(MachineView {
            machine: machine.clone(),
            state_since: self.ledger.state_since(id),
            seen_at: self.truth.seen_at(id, &self.ledger),
            node_name: self.nodes.name(id),
            not_ready: beside.not_ready,
            held: self.held.binary_search(id).is_ok(),
            unavailable,
            refused: self.truth.refused.get(id).cloned(),
            undeletable: beside.undeletable,
            work: self.operations.get(id).map(|one| one.action),
        })
    }

    /// Machines after an id, in id order. A page looks at no more than [`PAGE`] machines, so it may
    /// show few or none and still have a next one.
    pub fn machines_page(
        &self,
        filter: &MachineFilter,
        after: Option<&MachineId>,
    ) -> Page<MachineView, MachineId> {
        let rest = self.ledger.after(after);
        let (mut entries, mut next, mut looked) = (Vec::new(), None, 0);
        for machine in rest.take(PAGE) {
            looked += 1;
            next = Some(machine.id().clone());
            if !filter.admits(machine) {
                continue;
            }
            let view = self.machine_view(machine.id());
            entries.extend(view.filter(|view| !filter.flagged || view.is_flagged()));
        }
        let next = next.filter(|_| looked == PAGE);
        Page { entries, next }
    }

    /// One cluster, as shown: one that has a session, demand or machines, or once had.
    pub fn cluster_view(&self, cluster: &ClusterId) -> Option<ClusterView> {
        let session = self.sessions.of(cluster);
        let known = self.demand.clusters.get(cluster);
        let gone_since = self.sessions.gone_since.get(cluster).copied();
        let mut machines: BTreeMap<State, u32> = BTreeMap::new();
        let mut not_ready = 0;
        let meant = self.ledger.promised_to(cluster);
        let meant = meant.iter().filter(|id| {
            let known = self.ledger.get(id);
            known.is_some_and(|known| known.cluster() != Some(cluster))
        });
        for id in self.ledger.bound_to(cluster).chain(meant) {
            if let Some(machine) = self.ledger.get(id) {
                *machines.entry(machine.state()).or_default() += 1;
                not_ready += u32::from(self.ledger.beside(id).not_ready);
            }
        }
        let is_known = session.is_some() || known.is_some() || gone_since.is_some();
        if !is_known && machines.is_empty() {
            return None;
        }
        let accepted = known.and_then(|known| known.accepted.as_ref());
        Some(ClusterView {
            cluster: cluster.clone(),
            session: session.map(|one| (one.id, one.opened, one.features)),
            gone_since,
            ready: known.is_some_and(|known| known.ready),
            accepted: accepted.map(|one| (one.at, one.rollup_id.clone())),
            held: known.map_or(0, |known| known.guard.held),
            refused: known.and_then(|known| known.refused.clone()),
            withheld: known.and_then(|known| known.withheld),
            rows: known.map_or(0, |known| known.len()),
            short: self
                .short_counts
                .of_cluster
                .get(cluster)
                .copied()
                .unwrap_or(0) as usize,
            machines,
            not_ready,
        })
    }

    /// Every cluster that has a session, demand or machines, or once had, by id.
    pub fn clusters(&self) -> Vec<ClusterId> {
        let known = self.demand.clusters.keys();
        let gone = self.sessions.gone_since.keys();
        let bound = self.ledger.clusters();
        let mut all: Vec<ClusterId> = known.chain(gone).chain(bound).cloned().collect();
        all.extend(
            self.sessions
                .connected()
                .map(|(cluster, _)| cluster.clone()),
        );
        all.sort();
        all.dedup();
        all
    }

    /// Work in flight after a machine, by machine.
    pub fn work_page(&self, after: Option<&MachineId>) -> Page<WorkView, MachineId> {
        use std::ops::Bound::{Excluded, Unbounded};
        let lower = after.map_or(Unbounded, Excluded);
        let rest = self.operations.range::<MachineId, _>((lower, Unbounded));
        let entries: Vec<WorkView> = rest
            .take(PAGE)
            .map(|(_, operation)| self.work_view(operation))
            .collect();
        let last = entries.last().filter(|_| entries.len() == PAGE);
        let next = last.map(|last| last.machine.clone());
        Page { entries, next }
    }

    fn work_view(&self, operation: &Operation) -> WorkView {
        let stage = match operation.step {
            _ if operation.held_since.is_some() => Stage::Paused,
            Step::Durable(_) => Stage::Disk,
            Step::Ready => Stage::Queued,
            Step::Blob(request) => Stage::Blob(request),
            Step::Report => Stage::Drain,
            Step::Wire(_) => Stage::Call,
            Step::Provider => Stage::Provider,
            Step::Backoff => Stage::Backoff,
            Step::Confirm(_) => Stage::Confirm,
        };
        WorkView {
            id: operation.id,
            machine: operation.machine.clone(),
            action: operation.action,
            reason: operation.reason,
            stage,
            since: operation.held_since.unwrap_or(operation.since),
            cluster: operation.cluster.clone(),
            need: operation.need.clone(),
            committed: operation.committed,
            deadline: operation.is_drain().then_some(operation.deadline),
            attempts: operation.attempts,
            refused: operation.refused.clone(),
            name: operation.name.clone(),
            decided_cycle: operation.decided_cycle,
        }
    }

    /// One operation under way, by its id.
    pub fn work_of(&self, operation: OperationId) -> Option<WorkView> {
        let machine = self.by_operation.get(&operation)?;
        self.operations.get(machine).map(|one| self.work_view(one))
    }

    /// What limits or stops the shard now.
    pub fn rails(&self) -> RailsView {
        let held = self.demand.clusters.iter();
        let held = held.filter(|(_, known)| 0 < known.guard.held);
        let waits = |(_, _, until, _): &(&ClusterId, u32, Time, &str)| self.now < *until;
        let bootstraps = self.bootstraps.iter().filter(waits);
        let breakers = self.breakers.iter();
        let breakers = breakers.filter(|(_, _, until, _)| self.now < *until);
        RailsView {
            reclaim_cap_per_million: self.config.rails.reclaim_cap_per_million,
            reclaims_capped: self.capped,
            roll_up_guard: self.config.rails.roll_up_guard,
            held: held
                .map(|(id, known)| (id.clone(), known.guard.held))
                .collect(),
            removals_held: self.truth.removals_held,
            pauses: self.pauses.in_force(),
            breakers: breakers
                .map(|(pool, failures, until, error)| BreakerView {
                    pool: pool.clone(),
                    failures,
                    until,
                    last_error: error.to_owned(),
                })
                .collect(),
            bootstraps: bootstraps
                .map(|(cluster, failures, until, error)| BackoffView {
                    cluster: cluster.clone(),
                    failures,
                    until,
                    last_error: error.to_owned(),
                })
                .collect(),
            dry_run: self.config.dry_run,
            fenced: self.fenced,
        }
    }

    /// The next cycle takes down every Need's verdict, once. That is the one read whose cost grows
    /// with the fleet and falls into a cycle; shortfalls are kept up anyway.
    pub fn want_verdicts(&mut self) {
        self.verdicts_wanted = true;
    }

    /// The verdicts that were last taken down; `None` if none were.
    pub fn decided(&self) -> Option<&Arc<Decided>> {
        self.decided.as_ref()
    }

    /// The whole decision, if somebody asked for verdicts.
    pub(crate) fn asked_verdicts(&mut self) -> Option<Decision> {
        std::mem::take(&mut self.verdicts_wanted).then(|| self.ledger.engine.decision())
    }

    /// Takes verdicts down, with the ages this cycle gave them.
    pub(crate) fn take_down(&mut self, now: Time, decision: Decision) {
        let mut needs: Vec<NeedView> = decision
            .needs
            .into_iter()
            .map(|verdict| self.need_view(verdict))
            .collect();
        needs.sort_by(|one, other| {
            let (one, other) = (&one.verdict.need, &other.verdict.need);
            let priority = |need: &bigfleet_model::Need| need.row.profile.priority();
            priority(other)
                .cmp(&priority(one))
                .then(one.arrival.cmp(&other.arrival))
                .then_with(|| one.cluster.cmp(&other.cluster))
        });
        self.decided = Some(Arc::new(Decided {
            cycle: self.cycle,
            at: now,
            needs,
        }));
    }

    fn need_view(&self, verdict: Verdict) -> NeedView {
        let known = self.demand.clusters.get(&verdict.need.cluster);
        if verdict.satisfied {
            return NeedView {
                verdict,
                unresolved: Amounts::default(),
                age: 0,
                parked_age: 0,
                withheld: None,
            };
        }
        let key = verdict.need.key();
        NeedView {
            unresolved: verdict.residual.sub(&verdict.capacity_freed),
            age: self.shortfalls.age(&key),
            parked_age: self.parking.age(&key),
            withheld: known.and_then(|known| known.withheld),
            verdict,
        }
    }
}
