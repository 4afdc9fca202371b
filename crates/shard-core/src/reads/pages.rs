//! Pages: machines, clusters, work and rails, a bounded number of entries at a time.

use super::{
    Reads,
    views::{
        BackoffView, BreakerView, ClusterView, HeldView, MachineFilter, MachineView, PAGE, Page,
        RailsView, Stage, Trouble, Unavailable, WorkView,
    },
};
use crate::{
    effect::OperationId,
    rails::{BreakerKey, JoinStep, KeptBreaker, Pause, Scope},
    work::{Operation, WorkStage},
};
use bigfleet_model::{ClusterId, Machine, MachineId, State};
use std::collections::BTreeMap;

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

impl Reads<'_> {
    /// One machine, as shown.
    pub(crate) fn machine_view(&self, id: &MachineId) -> Option<MachineView> {
        let machine = self.supply.get(id)?;
        let beside = self.supply.beside(id);
        let unavailable = if beside.unconfirmed {
            Some(Unavailable::Unconfirmed)
        } else {
            let closed = self.supply.ledger().is_closed(machine);
            closed.then_some(Unavailable::PoolBackoff)
        };
        Some(MachineView {
            machine: machine.clone(),
            state_since: self.supply.ledger().state_since(id),
            seen_at: self.supply.seen_at(id),
            node_name: self.supply.node_name(id).to_owned(),
            not_ready: beside.not_ready,
            held: self.supply.is_kept_for_replacement(id),
            unavailable,
            refused: self.supply.refused(id).cloned(),
            undeletable: beside.undeletable,
            work: self.work.get(id).map(|one| one.action),
            leaving: self.leaving_view(id),
        })
    }

    /// Machines after an id, in id order. A page looks at no more than [`PAGE`] machines, so it may
    /// show few or none and still have a next one.
    pub(crate) fn machines_page(
        &self,
        filter: &MachineFilter,
        after: Option<&MachineId>,
    ) -> Page<MachineView, MachineId> {
        let rest = self.supply.ledger().after(after);
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
    pub(crate) fn cluster_view(&self, cluster: &ClusterId) -> Option<ClusterView> {
        let session = self.sessions.of(cluster);
        let known = self.demand.of(cluster);
        let gone_since = self.sessions.gone_since(cluster);
        let mut machines: BTreeMap<State, u32> = BTreeMap::new();
        let mut not_ready = 0;
        let meant = self.supply.ledger().promised_to(cluster);
        let meant = meant.iter().filter(|id| {
            let known = self.supply.get(id);
            known.is_some_and(|known| known.cluster() != Some(cluster))
        });
        for id in self.supply.bound_to(cluster).chain(meant) {
            if let Some(machine) = self.supply.get(id) {
                *machines.entry(machine.state()).or_default() += 1;
                not_ready += u32::from(self.supply.beside(id).not_ready);
            }
        }
        let is_known = session.is_some() || known.is_some() || gone_since.is_some();
        if !is_known && machines.is_empty() {
            return None;
        }
        Some(ClusterView {
            cluster: cluster.clone(),
            session: session.map(|one| (one.id, one.opened, one.features)),
            gone_since,
            ready: known.is_some_and(|known| known.is_ready()),
            accepted: known.and_then(|known| known.accepted().cloned()),
            held: self.rails.quarantine().held(cluster),
            refused: known.and_then(|known| known.refused().cloned()),
            withheld: known.and_then(|known| known.withheld()),
            rows: known.map_or(0, |known| known.len()),
            short: self.demand.short_of(cluster) as usize,
            lacking: self.demand.lacking().of_cluster(cluster) as usize,
            machines,
            not_ready,
        })
    }

    /// Every cluster that has a session, demand or machines, or once had, by id.
    pub(crate) fn clusters(&self) -> Vec<ClusterId> {
        let known = self.demand.clusters().map(|(cluster, _)| cluster);
        let gone = self.sessions.absent();
        let bound = self.supply.ledger().clusters();
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
    pub(crate) fn work_page(&self, after: Option<&MachineId>) -> Page<WorkView, MachineId> {
        let rest = self.work.after(after).take(PAGE);
        let entries: Vec<WorkView> = rest.map(work_view).collect();
        let last = entries.last().filter(|_| entries.len() == PAGE);
        let next = last.map(|last| last.machine.clone());
        Page { entries, next }
    }

    /// One operation under way, by its id.
    pub(crate) fn work_of(&self, operation: OperationId) -> Option<WorkView> {
        let machine = self.work.machine(operation)?;
        self.work.get(machine).map(work_view)
    }

    fn backoff_view(
        &self,
        cluster: &ClusterId,
        step: JoinStep,
        breaker: &KeptBreaker,
    ) -> BackoffView {
        let spent = self.rails.spent();
        BackoffView {
            cluster: cluster.clone(),
            step,
            breaker: breaker.clone(),
            spent: spent.count(cluster),
            exhausted: spent.is_exhausted(cluster),
        }
    }

    /// What a cluster's machines keep failing at: the step that is waited for longest.
    pub(crate) fn join_trouble(&self, cluster: &ClusterId) -> Option<BackoffView> {
        let joins = self.rails.breakers().joins(cluster);
        let (step, breaker) = joins.max_by_key(|(_, breaker)| breaker.until)?;
        Some(self.backoff_view(cluster, step, breaker))
    }

    /// What limits or stops the shard now.
    pub(crate) fn rails_view(&self) -> RailsView {
        let held = self.rails.quarantine().all_held();
        let (mut breakers, mut bootstraps) = (Vec::new(), Vec::new());
        for (key, breaker) in self.rails.breakers().iter() {
            let holds = self.now < breaker.until || breaker.is_open();
            match key {
                BreakerKey::Create(pool) if holds => breakers.push(BreakerView {
                    pool: pool.clone(),
                    breaker: breaker.clone(),
                }),
                BreakerKey::Create(_) => {}
                BreakerKey::Join(cluster, step) => {
                    let view = self.backoff_view(cluster, *step, breaker);
                    bootstraps.extend(Some(view).filter(|view| holds || view.exhausted));
                }
            }
        }
        RailsView {
            reclaim_cap_per_million: self.config.rails.reclaim_cap_per_million,
            reclaims_capped: self.rails.reclaims_capped(),
            capped: self.rails.capped_clusters().collect(),
            roll_up_guard: self.rails.quarantine().is_on(),
            held: held
                .map(|(cluster, held)| HeldView {
                    cluster: cluster.clone(),
                    reports: held.reports,
                    since: held.since,
                    why: held.why.clone(),
                })
                .collect(),
            removals_held: self.supply.removals_held(),
            pauses: self.rails.pauses(),
            breakers,
            bootstraps,
            dry_run: self.rails.is_dry_run(),
            fenced: self.rails.is_fenced(),
            twin: self.rails.twin().map(|seen| (seen, self.epoch)),
            incident: self.rails.incident().map(str::to_owned),
            provider_lost: self.provider_lost,
        }
    }

    /// What concerns the whole shard, worst first.
    pub(crate) fn troubles(&self) -> Vec<Trouble> {
        let mut troubles = Vec::new();
        if self.rails.is_fenced() {
            troubles.push(Trouble::Fenced);
        }
        if let Some(seen) = self.rails.twin() {
            troubles.push(Trouble::Twin(seen, self.epoch));
        }
        if let Some(what) = self.rails.incident() {
            troubles.push(Trouble::Incident(what.to_owned()));
        }
        let pauses = self.rails.pauses().into_iter();
        let is_of_all = |pause: &Pause| match &pause.scope {
            Scope::All => true,
            Scope::Provider(provider) => *provider == self.config.provider,
            Scope::Cluster(_) => false,
        };
        troubles.extend(pauses.filter(is_of_all).map(Trouble::Paused));
        if self.rails.is_dry_run() {
            troubles.push(Trouble::DryRun);
        }
        troubles.extend(self.provider_lost.map(Trouble::ProviderLost));
        troubles
    }
}

fn work_view(operation: &Operation) -> WorkView {
    let stage = match operation.stage {
        _ if operation.held_since.is_some() => Stage::Paused,
        WorkStage::Disk => Stage::Disk,
        WorkStage::Ready => Stage::Queued,
        WorkStage::Blob(request) => Stage::Blob(request),
        WorkStage::DrainReport => Stage::Drain,
        WorkStage::Call(_) => Stage::Call,
        WorkStage::Provider => Stage::Provider,
        WorkStage::Backoff => Stage::Backoff,
        WorkStage::Confirm => Stage::Confirm,
    };
    // Between two attempts it is as old as its trouble.
    let failing = operation.failing_since;
    let failing = failing.filter(|_| stage == Stage::Backoff);
    let since = operation.held_since.or(failing);
    WorkView {
        id: operation.id,
        machine: operation.machine.clone(),
        action: operation.action,
        reason: operation.reason,
        stage,
        since: since.unwrap_or(operation.since),
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
