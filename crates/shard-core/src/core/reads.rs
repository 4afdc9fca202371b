//! What a shard shows of itself: the public face of [`crate::reads`]. Reading changes nothing.

use super::ShardCore;
use crate::{
    counters::Counters,
    demand::{GangChurn, ReportedShortfall, Shortfall, Withheld},
    effect::OperationId,
    event::SessionId,
    histogram::Latencies,
    reads::{
        Awaits, BackoffView, ClusterView, Decided, Export, Gauges, MachineFilter, MachineView,
        Number, Page, Progress, RailsView, Reads, Report, Summary, Trouble, WorkView,
    },
    supply::GaugeKey,
};
use bigfleet_model::{
    Amounts, Bucket, ClusterId, Disruption, Fleet, Machine, MachineId, NeedKey, Time,
};
use std::{collections::BTreeMap, sync::Arc, time::Duration};

impl ShardCore {
    pub(super) fn reads(&self) -> Reads<'_> {
        Reads {
            config: &self.config,
            epoch: self.epoch,
            now: self.now,
            supply: &self.supply,
            demand: &self.demand,
            work: &self.work,
            sessions: &self.sessions,
            leaving: &self.leaving,
            rails: &self.rails,
            schedule: &self.schedule,
            uplink: &self.uplink,
            holdings: &self.holdings,
            provider_lost: self.list_pace.lost_since(self.now),
            counters: &self.counters,
            latencies: &self.latencies,
        }
    }

    /// Whether the shard works: it has seen its provider, and has not stopped itself.
    pub fn is_ready(&self) -> bool {
        self.supply.is_trusted() && !self.rails.is_stopped()
    }

    /// Whether everything is paused: by configuration, by an admin, or since the shard has stopped itself.
    pub fn is_paused(&self) -> bool {
        self.rails.is_paused()
    }

    /// Whether nothing stops or pauses anything: then no call is held back.
    pub fn is_gate_open(&self) -> bool {
        self.rails.is_open()
    }

    /// Whether nothing may leave now that concerns this machine (SH-16).
    pub fn holds_back(&self, machine: &MachineId) -> bool {
        self.is_closed(machine)
    }

    /// What draining a machine would disturb, if its cluster's operator has told (SH-19).
    pub fn disruption(&self, machine: &MachineId) -> Option<Disruption> {
        self.supply.beside(machine).disruption
    }

    /// Whether the drain of a machine can still be taken back (SH-18).
    pub fn is_reversible(&self, machine: &MachineId) -> bool {
        self.supply.beside(machine).reversible
    }

    /// What is still to be seen before anything is decided (SH-10); `None` once it was.
    pub fn awaits(&self) -> Option<Awaits> {
        self.reads().awaits()
    }

    /// The cycle counter.
    pub fn cycle(&self) -> u64 {
        self.schedule.cycle()
    }

    /// Its epoch.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Numbers that only grow.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// How long things took.
    pub fn latencies(&self) -> &Latencies {
        &self.latencies
    }

    /// Gauges of now.
    pub fn gauges(&self) -> Gauges {
        self.reads().gauges()
    }

    /// Every series that is published, in the order of the specification.
    pub fn numbers(&self) -> Vec<Number> {
        self.reads().numbers()
    }

    /// Machines by state, capacity type and bucket; a series once set stays, at zero.
    pub fn inventory_gauge(&self) -> &BTreeMap<GaugeKey, u32> {
        self.supply.ledger().gauge()
    }

    /// Rows of demand by bucket.
    pub fn demand_gauge(&self) -> &BTreeMap<Bucket, u32> {
        self.demand.gauge()
    }

    /// One machine.
    pub fn machine(&self, id: &MachineId) -> Option<&Machine> {
        self.supply.get(id)
    }

    /// Every machine, by id.
    pub fn machines(&self) -> impl Iterator<Item = &Machine> {
        self.supply.ledger().iter()
    }

    /// Since when a machine is idle.
    pub fn idle_since(&self, id: &MachineId) -> Option<Time> {
        self.supply.ledger().idle_since(id)
    }

    /// Whether a machine's node is known not to have become ready.
    pub fn is_not_ready(&self, id: &MachineId) -> bool {
        self.supply.beside(id).not_ready
    }

    /// Whether something is being done to a machine.
    pub fn is_pending(&self, id: &MachineId) -> bool {
        self.work.is_at(id)
    }

    /// When the last cycle ran; `None` before the first.
    pub fn last_cycle(&self) -> Option<Time> {
        self.schedule.last_cycle()
    }

    /// How long the last cycle took, as far as whoever drives the core says so.
    pub fn last_cycle_took(&self) -> Duration {
        self.schedule.last_cycle_took()
    }

    /// Whether this process has accepted a roll-up from a cluster.
    pub fn is_cluster_ready(&self, cluster: &ClusterId) -> bool {
        self.demand.is_ready(cluster)
    }

    /// Why nothing is acquired for a cluster, if so.
    pub fn withheld(&self, cluster: &ClusterId) -> Option<Withheld> {
        self.demand.withheld(cluster)
    }

    /// What the machines of a cluster keep failing at, if they do (SH-22).
    pub fn join_trouble(&self, cluster: &ClusterId) -> Option<BackoffView> {
        self.reads().join_trouble(cluster)
    }

    /// What is short of one Need, if anything is.
    pub fn shortfall(&self, need: &NeedKey) -> Option<&Shortfall> {
        self.demand.shortfall(need)
    }

    /// What is short, Need by Need.
    pub fn shortfalls(&self) -> impl Iterator<Item = &Shortfall> {
        self.demand.shortfalls()
    }

    /// What is short, as reported upward.
    pub fn reported_shortfalls(&self) -> Vec<ReportedShortfall> {
        self.reads().reported_shortfalls()
    }

    /// What each gang went through, by identity.
    pub fn gang_churn(&self) -> &BTreeMap<NeedKey, GangChurn> {
        self.demand.gang_churn()
    }

    /// How many roll-ups were accepted on a session. One handed in was accepted if this grew, and may
    /// be repeated from then on; zero for a session that is over.
    pub fn roll_ups_accepted(&self, session: SessionId) -> u64 {
        self.sessions.accepted(session)
    }

    /// One machine, as shown.
    pub fn machine_view(&self, id: &MachineId) -> Option<MachineView> {
        self.reads().machine_view(id)
    }

    /// Machines after an id, in id order. A page looks at no more than [`crate::PAGE`] machines, so it may
    /// show few or none and still have a next one.
    pub fn machines_page(
        &self,
        filter: &MachineFilter,
        after: Option<&MachineId>,
    ) -> Page<MachineView, MachineId> {
        self.reads().machines_page(filter, after)
    }

    /// One cluster, as shown: one that has a session, demand or machines, or once had.
    pub fn cluster_view(&self, cluster: &ClusterId) -> Option<ClusterView> {
        self.reads().cluster_view(cluster)
    }

    /// Every cluster that has a session, demand or machines, or once had, by id.
    pub fn clusters(&self) -> Vec<ClusterId> {
        self.reads().clusters()
    }

    /// Work in flight after a machine, by machine.
    pub fn work_page(&self, after: Option<&MachineId>) -> Page<WorkView, MachineId> {
        self.reads().work_page(after)
    }

    /// One operation under way, by its id.
    pub fn work_of(&self, operation: OperationId) -> Option<WorkView> {
        self.reads().work_of(operation)
    }

    /// What limits or stops the shard now.
    pub fn rails(&self) -> RailsView {
        self.reads().rails_view()
    }

    /// The next cycle that decides anything new takes down every Need's verdict, however many there are:
    /// somebody looks.
    pub fn want_verdicts(&mut self) {
        self.verdicts.want();
    }

    /// The verdicts that were last taken down; `None` before the first cycle that decided.
    pub fn decided(&self) -> Option<&Arc<Decided>> {
        self.verdicts.get()
    }

    /// The last cycle whose verdicts those are, and its moment.
    pub fn decided_as_of(&self) -> Option<(u64, Time)> {
        self.verdicts.as_of()
    }

    /// Where a Need stands that asks for so much: what serves, comes, is stuck and is missing. Also how many
    /// machines were looked at.
    pub fn progress(&self, need: &NeedKey, wants: &Amounts) -> (Progress, usize) {
        self.reads().progress(need, wants)
    }

    /// What concerns the whole shard and comes before anything else that is said of it, worst first.
    pub fn troubles(&self) -> Vec<Trouble> {
        self.reads().troubles()
    }

    /// How many rows a cluster was last believed to ask for, and what they add up to.
    pub fn demand_of(&self, cluster: &ClusterId) -> Option<(usize, &Amounts)> {
        let baseline = self.rails.quarantine().baseline(cluster)?;
        Some((baseline.rows, &baseline.totals))
    }

    /// The Needs that are not served in full, and since when.
    pub fn lacking(&self) -> impl Iterator<Item = (&NeedKey, Time)> {
        self.demand.lacking().iter()
    }

    /// Since when one Need is not served in full; `None` if it is.
    pub fn lacking_since(&self, need: &NeedKey) -> Option<Time> {
        self.demand.lacking().since(need)
    }

    /// What changed of that since this was last asked, `None` for a Need that is served in full again. It
    /// decides nothing and is among no records: whoever writes those may write it beside them, and hand it
    /// back with [`Self::recall_lacking`], so that ages outlive the process.
    pub fn take_lacking_changes(&mut self) -> Vec<(NeedKey, Option<Time>)> {
        self.demand.lacking_mut().take_unwritten()
    }

    /// Since when a Need was not served in full, as an earlier process wrote it down.
    pub fn recall_lacking(&mut self, need: NeedKey, since: Time) {
        self.demand.lacking_mut().recall(need, since);
    }

    /// Since when the provider cannot be reached: no List comes to its end.
    pub fn provider_lost(&self) -> Option<Time> {
        self.list_pace.lost_since(self.now)
    }

    /// Takes a copy of the fleet further by at most so many machines and about as many rows; the fleet,
    /// once it is whole.
    pub fn export_step(&self, export: &mut Export, most: usize) -> Option<Fleet> {
        self.reads().export_step(export, most)
    }

    /// The number that was drawn with the data directory.
    pub fn set_directory(&mut self, directory: u64) {
        self.holdings.recall_directory(directory);
    }

    /// Whether a coordinator is to say which unbound machines are ours, and has not (CO-26).
    pub fn awaits_scope(&self) -> bool {
        self.holdings.is_unsaid()
    }

    /// What to report upward now. Reading it changes nothing; the acks in it stay until
    /// [`crate::Event::Reported`].
    pub fn report(&self) -> Report {
        self.reads().report()
    }

    /// Machines and demand in a few numbers: counted by shape and by cluster, never by machine.
    pub fn summary(&self) -> Summary {
        self.reads().summary()
    }
}
